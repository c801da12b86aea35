"""The sentences of ab, compare, tune, claims and of verbs that pass on bytes, recomputed from the result in JSON and from the tables in the text."""

import re

from sentence import Sentence
from figures import BINARY, NUMBER, RATE, TIME, TIMES, differ, estimate, is_printed, printed


def flat(text):
    return " ".join(text.split())


# --- ab --------------------------------------------------------------------------------------------------------------


class Command:
    def __init__(self, command, by, start):
        self.json, self.label, self.by, self.start = command, command["label"], by, start
        self.figure = command["figures"].get(by) or {}

    def runs(self):
        """The figure of each run. Times include the start of the shell, which comparisons don't."""
        runs = [run for run in self.json["runs"] if self.by in run]
        return {(run["session"], run["round"]): run[self.by] - self.start for run in runs}


def of_ab(result, text):
    is_without_start = result["by"] == "time" and result["shell_start_taken_off"]
    start = result["shell_start"]["median"] if is_without_start else 0
    commands = [Command(one, result["by"], start) for one in result["commands"]]
    by_label = {one.label: one for one in commands}
    reference = by_label[result["reference"]]
    words, sentences = flat(text), []

    def add(kind, found):
        sentence = Sentence("ab", kind, found)
        sentences.append(sentence)
        return sentence

    labels = "|".join(re.escape(one.label) for one in commands)
    ratio = rf"({labels}) ran ({NUMBER})× as fast as ({labels}) \(({NUMBER}) to ({NUMBER})\): (?:({labels}) is )?(better|worse)"
    for one, number, other, low, high, _, verdict in re.findall(ratio, words):
        sentence = add("times as fast", f"{one} ran {number}× as fast as {other} ({low} to {high}): {verdict}")
        fast, slow = by_label[one], by_label[other]
        pairs = [time / fast.runs()[at] for at, time in slow.runs().items() if at in fast.runs()]
        middle = estimate(pairs)[0]
        sentence.require(float(low) * 0.99 <= middle <= float(high) * 1.01, f"the rounds' ratio is {middle:.4g}")
        sentence.require(not differ(float(number), middle, 0.05), f"the rounds' ratio is {middle:.4g}")
        sentence.require(min(float(low), float(high)) > 1, "the interval includes 1")
        judged = slow if slow is not reference else fast
        sentence.require(judged.figure.get("verdict") == verdict, f"the table says {judged.figure.get('verdict')}")
        of_medians = slow.figure["estimate"]["median"] / fast.figure["estimate"]["median"]
        said = "the medians above have another ratio" in words
        change = 1 + judged.figure["comparison"]["change"]
        own = judged.figure["estimate"]["median"] / reference.figure["estimate"]["median"]
        sentence.require(not differ(change, own) or said, f"the medians have the ratio {of_medians:.4g}")
    for one, other, again, low, high in re.findall(
        rf"({labels}) and ({labels}) are equally fast: ({labels}) takes ({NUMBER}) to ({NUMBER}) times as long", words
    ):
        sentence = add("equally fast", f"{again} takes {low} to {high} times as long")
        slow, fast = by_label[other], by_label[one]
        middle = estimate([time / fast.runs()[at] for at, time in slow.runs().items() if at in fast.runs()])[0]
        sentence.require(float(low) * 0.99 <= middle <= float(high) * 1.01, f"the rounds' ratio is {middle:.4g}")
        sentence.require(slow.figure["verdict"] == "same", slow.figure["verdict"])
    for one, number, other, low, high in re.findall(
        rf"({labels}) takes ({NUMBER}) times as long as ({labels}) \(({NUMBER}) to ({NUMBER})\): inconclusive", words
    ):
        sentence = add(
            "inconclusive", f"{one} takes {number} times as long as {other} ({low} to {high}): inconclusive"
        )
        slow, fast = by_label[one], by_label[other]
        middle = estimate([time / fast.runs()[at] for at, time in slow.runs().items() if at in fast.runs()])[0]
        sentence.require(float(low) * 0.99 <= middle <= float(high) * 1.01, f"the rounds' ratio is {middle:.4g}")
        sentence.require(slow.figure["verdict"] == "inconclusive", slow.figure["verdict"])
    for listed in re.findall(rf"not significantly different from ((?:{labels})(?:, (?:{labels}))*)", words):
        sentence = add("tied", f"not significantly different from {listed}")
        for label in listed.split(", "):
            sentence.require(by_label[label].json["rank"] == 1, f"{label} has the rank {by_label[label].json['rank']}")
    for label in re.findall(rf"({labels}) is best: better than every other command", words):
        sentence = add("best", f"{label} is best")
        others = [one for one in commands if one.label != label and not one.json["failed"]]
        sentence.require(all(one.figure["verdict"] == "worse" for one in others), "not every other command is worse")
    for label, count, all_of in re.findall(rf"({labels})(?:, which)? is better than (\d+) of (\d+) others", words):
        sentence = add("better than some", f"{label} is better than {count} of {all_of} others")
        others = [one for one in commands if one.label != label and not one.json["failed"]]
        worse = sum(one.figure.get("verdict") == "worse" for one in others)
        sentence.require([int(count), int(all_of)] == [worse, len(others)], f"{worse} of {len(others)}")
    wrote = re.search(r"(Each run|Both commands|All commands) wrote (?:the same )?([\d,]+) bytes?", words)
    if wrote:
        sentence = add("output", wrote.group(0))
        sizes = {one.json["output"] for one in commands if not one.json["failed"]}
        sentence.require(sizes == {int(wrote.group(2).replace(",", ""))}, f"outputs of {sizes}")
    for row in text.splitlines():
        cells = re.findall(TIME, row.split("%")[0])
        figure = re.match(r"\s*(user|system|CPU time)\s", row)
        if figure and len(cells) >= 2:
            sentence = add("one unit", flat(row))
            sentence.require(len({unit for _, unit in cells[:2]}) == 1, "two units in a row")
            for number, unit in cells[:2]:
                key = {"CPU time": "cpu"}.get(figure.group(1), figure.group(1))
                medians = [one.json["figures"][key]["estimate"] for one in commands]
                ends = [one[end] for one in medians for end in ("median", "low", "high", "min", "max")]
                ends = [end for end in ends if end is not None]
                sentence.require(
                    any(is_printed(number, end, TIMES[unit]) for end in ends), f"nothing is {number} {unit}"
                )
    return sentences + of_catch(result, by_label)


def of_catch(result, by_label):
    """What --catch decides follows from the interval of the change."""
    catch = result.get("catch")
    if not catch:
        return []
    sentence = Sentence("ab", "catch", catch["sentence"])
    shown = re.search(r"([+-][\d.]+) % \(([+-]?[\d.]+) … ([+-]?[\d.]+) %\); limit ([\d.]+) %", catch["sentence"])
    [new] = [one for label, one in by_label.items() if label != result["reference"]]
    own = new.json["figures"][catch["by"]]["comparison"]
    if shown:
        ends = own["change"], own["judged_low"], own["judged_high"], catch["limit"]
        for number, value in zip(shown.groups(), ends):
            # From 100 on, percentages have no digits behind the point.
            right = is_printed(number.lstrip("+-"), abs(value) * 100)
            sentence.require(right and (value < 0) == number.startswith("-") or abs(value) < 5e-4, f"{value:.4g}")
    limit, threshold, same = catch["limit"], result["criterion"]["threshold"], result["criterion"]["same_within"]
    sentence.require(abs(threshold - limit * 2 / 3) < 1e-9 and abs(same - limit * 5 / 6) < 1e-9, "other thresholds")
    if own["judged_low"] is not None and catch["by"] == "time":
        caught, passed = own["judged_low"] > threshold, own["judged_high"] < same
        right = {"caught": caught, "passed": passed and not caught, "undecided": not caught and not passed}
        sentence.require(right[catch["answer"]], f"{own['judged_low']:.3f} to {own['judged_high']:.3f}")
    sentence.require(catch["sentence"].lower().startswith(catch["answer"]), catch["answer"])
    return [sentence]


# --- relay, sink, lines ----------------------------------------------------------------------------------------------


def of_bytes(verb, text):
    """A number of bytes, the time that they took, and the rate, which is their quotient."""
    words, sentences = flat(text), []
    for line in text.splitlines():
        count = re.search(r"(?:in: )?(\d+) bytes", line)
        time, rate = re.search(rf"(?:in |time: ){TIME}", words), re.search(RATE, words)
        if not count or not time or not rate or sentences:
            continue
        sentence = Sentence(verb, "rate", flat(line))
        low, high = printed(time.group(1), TIMES[time.group(2)] / 1e9)
        slowest, fastest = printed(rate.group(1), BINARY[rate.group(2)])
        own = int(count.group(1)) / high, int(count.group(1)) / max(low, 1e-12)
        sentence.require(own[0] <= fastest * 1.001 and slowest <= own[1] * 1.001, f"{own[0]:.4g} to {own[1]:.4g} B/s")
        sentences.append(sentence)
    for count, calls, size, unit in re.findall(r"(\d+) bytes in (\d+) reads of ([\d.]+) (B|KiB|MiB)", words):
        sentence = Sentence(verb, "mean", f"{count} bytes in {calls} reads of {size} {unit}")
        sentence.require(is_printed(size, int(count) / int(calls), BINARY[unit]), f"{int(count) / int(calls):.4g}")
        sentences.append(sentence)
    for count, size, unit in re.findall(r"\((\d+) bytes, ([\d.]+) (KiB|MiB|GiB),", words):
        sentence = Sentence(verb, "size", f"{count} bytes, {size} {unit}")
        sentence.require(is_printed(size, int(count), BINARY[unit]), f"{int(count) / BINARY[unit]:.4g} {unit}")
        sentences.append(sentence)
    return sentences


# --- compare ---------------------------------------------------------------------------------------------------------


def of_compare(result, text):
    sentences = []
    changes = [one for group in result["groups"] for one in group["changes"] if not one["reference"]]
    heading = re.search(r"^(\d+) trials?: (.*)$", text, re.M)
    if heading:
        sentence = Sentence("compare", "verdicts", heading.group(0))
        counted = {
            word: int(count)
            for count, word in re.findall(r"(\d+) (worse|better|same|inconclusive|no verdict)", heading.group(2))
        }
        # Without an interval of sessions or runs, there is no verdict.
        real = {}
        for one in changes:
            own = one["comparison"]
            word = own["verdict"] if own["judged_low"] is not None else "no verdict"
            real[word] = real.get(word, 0) + 1
        sentence.require(counted == real and int(heading.group(1)) == len(changes), f"{real} of {len(changes)}")
        sentences.append(sentence)
    for one in changes:
        own = one["comparison"]
        base, new = one.get("typical") or (one["base"], one["new"])
        sentence = Sentence("compare", "change", f"{one['name']}: {own['change']:+.1%}, {own['verdict']}")
        figures = 1 + own["change"]
        # A pair of runs stands for medians with another ratio; it is the nearest that there is.
        by = 0.02 if not one.get("typical") else 0.1
        sentence.require(not differ(figures, new / base, by), f"{new:.4g} / {base:.4g} isn't {figures:.4g}")
        if own["judged_low"] is not None:
            low, high = own["judged_low"], own["judged_high"]
            if own["verdict"] in ("worse", "better"):
                sentence.require(
                    low > result["threshold"] or high < -result["threshold"], "the interval isn't beyond the threshold"
                )
            if own["verdict"] == "same":
                sentence.require(
                    -result["same_within"] <= low and high <= result["same_within"], "the interval is wider"
                )
        sentences.append(sentence)
    return sentences


# --- tune ------------------------------------------------------------------------------------------------------------


def of_tune(result, text):
    words, sentences = flat(text), []
    without = {one["stage"]: one["gain"] for one in result["experiments"] if one["kind"] == "without" and one["gain"]}
    changes = [one for one in result["experiments"] if one["kind"] not in ("without", "alone")]

    def add(kind, found):
        sentence = Sentence("tune", kind, found)
        sentences.append(sentence)
        return sentence

    found = re.search(
        rf"bottleneck( of the stages measured)?: (\d+) \S+; without its work, the pipeline is ({NUMBER})× as fast",
        words,
    )
    if found:
        sentence = add("bottleneck", found.group(0))
        best = max(without, key=without.get)
        sentence.require(int(found.group(2)) == best, f"stage {best} gains most: {without}")
        sentence.require(is_printed(found.group(3), without[best]), f"{without[best]:.4g}")
        sentence.require(
            bool(found.group(1)) == (len(without) < len(result["stages"])), "not all stages were measured"
        )
    found = re.search(rf"(\d+) \S+ and (\d+) \S+ cost about the same: up to ({NUMBER})×", words)
    if found:
        sentence = add("alike", found.group(0))
        two = sorted(without, key=without.get)[-2:]
        sentence.require({int(found.group(1)), int(found.group(2))} == set(two), f"{without}")
        sentence.require(is_printed(found.group(3), max(without.values())), f"{without}")
        sentence.require(without[two[1]] < 1.05 * without[two[0]], "they differ by more than 5 %")
    if "alone decides the time" in words:
        sentence = add("no stage alone", "no stage alone decides the time")
        sentence.require(max(without.values()) < 1.05, f"{without}")
    found = re.search(rf"alone they take ({NUMBER}) s together, about as long", words)
    if found:
        sentence = add("no overlap", found.group(0))
        total = sum(one["seconds"] for one in result["experiments"] if one["kind"] == "alone" and one["seconds"])
        sentence.require(is_printed(found.group(1), total), f"{total:.4g} s")
        sentence.require(abs(total / result["time"]["median"] - 1) <= 0.16, "another time than the pipeline's")
    found = re.search(
        r"no gain: (.*?)(?= (?:omitted|not tried|without a result|fastest|no change|not proved|most of the time|$))",
        words,
    )
    if found:
        sentence = add("no gain", "no gain: " + found.group(1))
        listed = [one for one in changes if one["text"] and one["text"] in found.group(1)]
        useless = [one for one in listed if one["gain"] is not None and one["gain"] < 1.05]
        sentence.require(useless, "no change without a gain is listed")
    fastest = result["fastest"]
    if fastest:
        sentence = add("fastest", f"fastest: {fastest['gain']:.2f}× as fast")
        shown = re.search(rf"fastest: ({NUMBER})× as fast \(({NUMBER}) to ({NUMBER})\)", words)
        sentence.require(shown and is_printed(shown.group(1), fastest["gain"]), "another gain")
        sentence.require(fastest["low"] > 1, "the interval includes 1")
        proved = [one["gain"] for one in changes if one["verdict"] == "better" and one["command"]]
        sentence.require(
            fastest["gain"] >= max(proved, default=0) * 0.97, f"another gains {max(proved, default=0):.3g}"
        )
    elif "inconclusive" in words and "no change was proved faster" in words:
        sentence = add("inconclusive", "no change was proved faster: inconclusive")
        sentence.require(any(one["verdict"] == "inconclusive" for one in changes), "no verdict is inconclusive")
    predicted = result["prediction"]
    found = re.search(rf"(confirmed|not confirmed): without the work of that stage ({NUMBER})× as fast", words)
    if predicted and found:
        sentence = add("confirmed", found.group(0))
        own = without[predicted["stage"]]
        sentence.require(is_printed(found.group(2), own), f"the table says {own:.3g}")
        sentence.require(
            (found.group(1) == "confirmed") == (own >= 1.05 and own >= 0.9 * max(without.values())), f"{without}"
        )
    return sentences


# --- claims ----------------------------------------------------------------------------------------------------------

VERDICTS = {
    "holds": "holds",
    "doesn't hold": "doesnt-hold",
    "inconclusive": "cant-tell",
    "not measured": "not-measured",
}


def of_claims(document, text):
    sentences = []
    answered = [one for one in document.get("claims", []) if one.get("answer")]
    heading = re.search(r"^Claims \((.*)\)$", text, re.M)
    if heading:
        sentence = Sentence("claims", "counts", heading.group(0))
        total = sum(int(count) for count in re.findall(r": (\d+)", heading.group(1)))
        sentence.require(total == len(answered), f"{len(answered)} claims have an answer")
        holds = re.search(r"holds: (\d+)", heading.group(1))
        real = sum(one["answer"]["verdict"] == "holds" for one in answered)
        sentence.require((int(holds.group(1)) if holds else 0) == real, f"{real} hold")
        sentences.append(sentence)
    for claim in answered:
        answer = claim["answer"]
        sentence = Sentence("claims", answer["verdict"], f"{claim['says']} {answer['verdict']}: {answer['here']}")
        low = claim.get("low") if claim.get("low") is not None else float("-inf")
        high = claim.get("high") if claim.get("high") is not None else float("inf")
        for one in answer["evidence"]:
            ends = one["with_all_others"]
            inside = ends and ends[0] >= low and ends[1] <= high
            outside = ends and (ends[1] < low or ends[0] > high)
            if one["verdict"] == "holds":
                sentence.require(inside, f"{ends} isn't within {low} to {high}")
            if one["verdict"] in ("doesnt-hold", "reversed"):
                sentence.require(outside, f"{ends} isn't outside {low} to {high}")
        every = claim.get("which", "each") == "each"
        if answer["verdict"] == "holds" and every and answer["evidence"]:
            sentence.require(all(one["verdict"] == "holds" for one in answer["evidence"]), "it doesn't hold for all")
        for count, all_of in re.findall(r"holds for (\d+) of (\d+)", answer["here"]):
            real = sum(one["verdict"] == "holds" for one in answer["evidence"])
            sentence.require(
                [int(count), int(all_of)] == [real, len(answer["evidence"])], f"{real} of {len(answer['evidence'])}"
            )
        sentences.append(sentence)
    return sentences
