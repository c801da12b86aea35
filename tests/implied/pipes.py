"""Findings about blocks, capacities, methods, places, waits and links."""

import re

from figures import BINARY, NUMBER, RATE, RATIO, SIZE, estimate, is_printed, size
from sentence import check_rates, check_times, is_triple, sizes_in
from trials import ratio, speed_ratio


def best_block(sentence, document, finding, trials, _pairs):
    group = document.beside(trials[0], ["block"])
    medians = {one.block: one.median("throughput") for one in group}
    best = max(medians.values())
    check_rates(sentence, [one for one in group if medians[one.block] == best])
    text = sentence.text
    within = {block for block, median in medians.items() if median >= 0.95 * best}
    if "hardly matters" in text:
        low, high = re.search(rf"from ({SIZE}) to ({SIZE})", text).groups()
        sentence.require([size(low), size(high)] == [min(medians), max(medians)], "not all sizes of the table")
        sentence.require(within == set(medians), f"not within 5 %: {set(medians) - within}")
        return
    named = size(re.match(rf"Blocks of ({SIZE}) are best", text).group(1))
    sentence.require(medians[named] == best, f"the best size is {max(medians, key=medians.get)}")
    said = re.search(r"; ([^;]*?) are within 5 %", text)
    if said:
        listed = sizes_in(said.group(1), medians)
        sentence.require(listed == within, f"within 5 %: {sorted(within)}, not {sorted(listed)}")
    elif "no other size comes within 5 %" in text:
        sentence.require(within == {named}, f"within 5 %: {sorted(within)}")
    open_ = re.search(r"; ([^;]*?) (?:is|are) not proved slower", text)
    listed = sizes_in(open_.group(1), medians) if open_ else set()
    sentence.require(not listed & within, "a size that is within 5 % is listed as not proved slower")
    top = next(one for one in group if one.block == named)
    for one in group:
        if one.block not in within | listed:
            found = ratio(one, top, "throughput")
            sentence.require(found and found[2] is not None and found[2] < 0.97, f"{one.block} isn't proved slower")


def capacity(sentence, document, finding, trials, pairs):
    text = sentence.text
    if "make no difference" in text:
        low, high = re.search(rf"from ({SIZE}|[a-z]+) to ({SIZE}|[a-z]+)", text).groups()
        speeds = [one.median("throughput") for one in trials]
        sentence.require(max(speeds) <= 1.06 * min(speeds), "the capacities differ by more than 3 % each way")
        return
    [(new, base)] = pairs
    first, second = re.search(rf"capacity of ({SIZE}|[a-z]+).* instead of ({SIZE}|[a-z]+) ", text).groups()
    for shown, one in ((first, new), (second, base)):
        if one.capacity and re.fullmatch(SIZE, shown):
            sentence.require(size(shown) == one.capacity, f"the capacity is {one.capacity}, not {shown}")
    found = ratio(new, base, "throughput")
    sentence.require((found[0] > 1) == ("gives" in text), "gain and loss are mixed up")


def as_fast(sentence, pairs):
    """'only 0.50× as fast' is slower, '1.5× as fast' is faster."""
    for new, base in pairs[:1]:
        found = speed_ratio(new, base)
        if " is only " in sentence.text:
            sentence.require(found[0] < 1, "only: it is faster")
        elif re.search(rf" is {NUMBER}× ", sentence.text):
            sentence.require(found[0] > 1, "it isn't faster")
        elif "equally fast" in sentence.text or "within 3 %" in sentence.text:
            sentence.require(abs(found[0] - 1) <= 0.03, f"not within 3 %: {found[0]:.4g}")


def zero_copy(sentence, document, finding, trials, pairs):
    check_rates(sentence, trials)
    as_fast(sentence, pairs)
    [(new, base)] = pairs
    order = re.search(rf"\((?:within 3 %; )?{RATE}[^)]*? against {RATE}", sentence.text)
    if order:
        first, unit, second, other = order.groups()
        sentence.require(
            is_printed(first, new.median("throughput"), BINARY[unit]), f"{first} {unit}/s isn't the new one's"
        )
        sentence.require(
            is_printed(second, base.median("throughput"), BINARY[other]), f"{second} {other}/s isn't the base's"
        )
    copies = new.record.get("copies")
    if "Zero copy" in sentence.text:
        sentence.require(copies == 0, f"it copies {copies} times")
    elif "One copy" in sentence.text:
        sentence.require(copies == 1, f"it copies {copies} times")
    if "checked every byte" in sentence.text:
        sentence.require(new.params["verify"] in ("xor", "full"), "the reader didn't check")


def by_size(sentence, text, pairs, pieces="blocks|messages"):
    """'faster with blocks of 64 B to 1 KiB, up to 4.00× (3.9–4.1) at 64 B; slower with …'"""
    by_block = {new.block: (speed_ratio(new, base), new, base) for new, base in pairs}
    for clause in re.split(r"; ", text):
        words = "faster|slower|equally fast \\(within 3 %\\)|inconclusive"
        found = re.search(rf"({words}) with (?:{pieces}) of (.*?)(?:, (?:up to |down to )?{NUMBER}×|$)", clause)
        if not found:
            sentence.require(False, f"no check knows '{clause}'")
            continue
        word, listed = found.group(1), sizes_in(found.group(2), by_block)
        for block in listed:
            value = by_block[block][0][0]
            right = {"f": value > 1.03, "s": value < 0.97, "e": abs(value - 1) <= 0.03, "i": True}[word[0]]
            sentence.require(right, f"{block}: {word} at a ratio of {value:.4g}")
        at = re.search(rf"(?:up|down) to {RATIO} at ({SIZE})", clause)
        if at:
            number, _, _, _, block = at.groups()
            values = [by_block[block][0][0] for block in listed]
            widest = max(values) if word == "faster" else min(values)
            sentence.require(is_printed(number, widest), f"the widest ratio is {widest:.4g}")
            sentence.require(is_printed(number, by_block[size(block)][0][0]), f"not at {block}")


def place(sentence, document, finding, trials, pairs):
    by_size(sentence, sentence.text.rstrip(".").split(": ", 1)[1], pairs)


def wait(sentence, document, finding, trials, pairs):
    new, base = pairs[0]
    as_fast(sentence, pairs)
    found = re.search(rf"({NUMBER}) s per (?:GiB|million messages) instead of ({NUMBER}) s", sentence.text)
    for shown, one in zip(found.groups(), (new, base)):
        sentence.require(is_printed(shown, one.median("cpu")), f"CPU time: {one.median('cpu'):.4g} s, not {shown}")
    named = sentence.text.split(" ")[0].lower()
    waits = {"spinning": "spin", "polling": "poll", "blocking": "block"}
    sentence.require(new.params["wait"] == waits[named] and base.params["wait"] == "block", "other wait policies")


def gap(sentence, document, finding, trials, pairs):
    check_times(sentence, trials, [one.params["gap"] for one in trials])
    for new, base in pairs:
        sentence.require(base.params["gap"] == 0 and new.params["gap"] > 0, "other pauses")


def round_trip(sentence, document, finding, trials, _pairs):
    [best] = trials
    check_times(sentence, trials)
    rivals = [
        one
        for one in document.trials
        if one.is_measured
        and one.is_latency
        and one.params["wait"] == best.params["wait"]
        and one.params.get("gap") == 0
        and not one.params.get("rate")
        and one.params["link"] != "null"
        and "filter" not in one.params
    ]
    shortest = min(one.median("p50") for one in rivals)
    sentence.require(best.median("p50") <= shortest * (1 + 1e-9), f"another takes {shortest:.4g} ns")
    shown = re.search(rf"with ({NUMBER}) s of CPU time per million", sentence.text).group(1)
    sentence.require(is_printed(shown, best.median("cpu")), f"CPU time: {best.median('cpu'):.4g} s")


def tail(sentence, document, finding, trials, _pairs):
    check_times(sentence, trials)
    tails = [estimate([one.of(run, "p99") / one.of(run, "p50") for run in one.samples]) for one in trials]
    for number, low, high, _ in re.findall(RATIO, sentence.text):
        sentence.require(is_triple([(*own, 1) for own in tails], number, low, high), f"no trial has the tail {number}")
    if len(tails) > 1:
        sentence.require(tails[0][0] >= tails[1][0], "the first tail isn't the longest")


def mechanism(one):
    params = one.params
    plain = (params["send"], params["recv"]) == ("write", "read")
    return params["link"] if plain else f"{params['link']} {params['send']}"


def best_link(sentence, document, finding, trials, pairs):
    for new, base in pairs:
        rivals = document.beside(new, ["link", "send", "recv"])
        rivals = [one for one in rivals if arrives(one)]
        fastest = max(one.speed for one in rivals)
        sentence.require(new.speed >= fastest * (1 - 1e-9), f"{new.block}: another link is faster")
    shown = [one for one in trials]
    (check_times if trials[0].is_latency else check_rates)(sentence, shown)


def arrives(one):
    """Whether the bytes reach the reader, and a link moves them."""
    return (
        one.params["link"] not in ("null", "memory-copy", "two-copies")
        and one.params["recv"] not in ("splice", "vmsplice")
        and one.params["send"] != "tee"
    )


def crossing(sentence, document, finding, trials, pairs):
    for one in finding["evidence"]["crossings"]:
        ahead, behind = (document.pairs_of(one[side]) for side in ("ahead", "behind"))
        for new, base in ahead:
            sentence.require(speed_ratio(new, base)[0] > 1.03, f"{new.block}: {one['of']} isn't ahead")
        for new, base in behind:
            sentence.require(speed_ratio(new, base)[0] < 0.97, f"{new.block}: {one['of']} isn't behind")
        blocks = [[new.block for new, _ in side] for side in (ahead, behind)]
        sentence.require(max(blocks[0]) < min(blocks[1]), f"the sides aren't apart: {blocks}")


def shared_memory(sentence, document, finding, trials, pairs):
    for new, base in pairs:
        sentence.require(new.params["link"] == "shm" and base.params["link"] == "pipe", "other links")


def harness(sentence, document, finding, trials, pairs):
    for one in finding["evidence"]["by_block"]:
        null = document.by_id[one["of"]["experiment"], one["of"]["trial"]]
        ns = null.median("p50") or null.block * 1e9 / null.median("throughput")
        sentence.require(abs(ns / one["ns"] - 1) < 1e-6, f"{ns} ns per block")
    check_times(sentence, [], [one["ns"] for one in finding["evidence"]["by_block"]])


def memory_copy(sentence, document, finding, trials, _pairs):
    [best] = trials
    limit = document.document["memory_copy"]["median"]
    check_rates(sentence, trials, [limit])
    rivals = [
        one
        for one in document.trials
        if one.is_measured
        and not one.is_latency
        and one.record.get("copies") == 2
        and "send" in one.params
        and one.params["wait"] != "spin"
        and one.params["link"] not in ("null", "memory-copy")
        and one.params.get("pairs", 1) == 1
        and not one.params.get("length")
    ]
    most = max(one.median("throughput") for one in rivals)
    sentence.require(best.median("throughput") >= most * (1 - 1e-9), f"another has {most:.4g} B/s")
    share = re.search(rf"({NUMBER}) % of this machine", sentence.text).group(1)
    sentence.require(is_printed(share, best.median("throughput") / limit * 100), "another share of the limit")


def recommended(sentence, document, finding, trials, _pairs):
    [choice] = trials
    check_rates(sentence, trials)
    # Of the trials that differ only in sizes and places, the fastest, or one nearly as fast.
    rivals = document.beside(choice, ["block", "capacity", "place", "pages"])
    fastest = max(one.median("throughput") for one in rivals)
    limit = 0.95 if "within 5 % of the fastest" in sentence.text else 1.0
    sentence.require(choice.median("throughput") >= limit * fastest * (1 - 1e-9), f"another has {fastest:.4g} B/s")


def published(sentence, document, finding, trials, _pairs):
    ratios = {one: one.median("throughput") / one.record["published"]["throughput"] for one in trials}
    text = sentence.text
    check_rates(sentence, trials, [one.record["published"]["throughput"] for one in trials])
    spread = re.search(rf"are ({NUMBER})× to ({NUMBER})× the published figures", text)
    if spread:
        for shown, value in zip(spread.groups(), (min(ratios.values()), max(ratios.values()))):
            sentence.require(is_printed(shown, value), f"{value:.4g} times, not {shown}")
        theirs = max(trials, key=lambda one: one.record["published"]["throughput"])
        ours = max(trials, key=lambda one: one.median("throughput"))
        named = re.search(r"highest with (.*) \([^()]*\), ours with (.*?) \(", text).groups()
        best = theirs.record["published"]["throughput"], ours.median("throughput")
        named_of = [[one for one in trials if one.record["name"] == name] for name in named]
        sentence.require(
            any(one.record["published"]["throughput"] == best[0] for one in named_of[0]),
            f"published is best {theirs.id}",
        )
        sentence.require(any(one.median("throughput") == best[1] for one in named_of[1]), f"ours is best {ours.id}")
        others = re.search(r"; (\d+) others? (?:is|are) within 5 %", text)
        if others:
            near = [one for one in trials if one is not ours and one.median("throughput") >= 0.93 * best[1]]
            sentence.require(len(near) >= int(others.group(1)), f"only {len(near)} are near")
        return
    for shown in re.findall(rf"({NUMBER})× as fast", text):
        sentence.require(
            any(is_printed(shown, value) for value in ratios.values()), f"no trial is {shown} times as fast"
        )
