"""The sentences of a document: its findings, and what the screen and the page say. Each is recomputed from the runs."""

import pathlib
import re
import tomllib

from figures import (
    BINARY,
    NUMBER,
    PERCENT,
    RATE,
    RATIO,
    SIZE,
    TIME,
    TIMES,
    all_figures,
    differ,
    estimate,
    is_among,
    is_printed,
    line,
    printed,
    size,
)

GIB = 2**30
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def filters_that_only(does):
    """The line filters that don't change lines: they copy or count them."""
    found = set()
    for path in ROOT.glob("entrants/*/filters.toml"):
        filters = tomllib.loads(path.read_text(encoding="utf-8"))["filter"]
        found |= {name for name, form in filters.items() if form.get("does") in does}
    return found


OTHER_TASKS = filters_that_only(("copy", "count"))
# Texts may print these limits, although no trial has them.
LIMITS = {"3", "5", "10"}


class Trial:
    """A trial with the figures of its runs."""

    def __init__(self, record):
        self.record, self.id, self.experiment = record, record["id"], record["experiment"]
        self.params, self.samples = record["params"], record["samples"]
        self.volume = self.params.get("volume")

    def of(self, run, name):
        if name == "throughput":
            return run["bytes"] * 1e9 / run["ns"]
        if name == "cpu":
            cpu = (run["user_ns"] + run["sys_ns"]) / 1e9
            # A round trip has two messages.
            trips = (run.get("latency") or {}).get("round_trips")
            return cpu / (2 * trips / 1e6) if trips else cpu / (run["bytes"] / GIB)
        if name == "filter_cpu":
            own = (run.get("pipeline") or {}).get("filter")
            return (own["user_ns"] + own["sys_ns"]) / 1e9 / (run["bytes"] / GIB) if own else None
        if name == "filter_switches":
            processes = [one for one in (run.get("pipeline") or {}).values() if one]
            return sum(one["context_switches"] for one in processes) / (run["bytes"] / 2**20) if processes else None
        if name == "real":
            return float(run.get("real_ns") or run["wall_ns"])
        trip = run.get("latency") or {}
        return float(trip[name]) if trip.get(name) else None

    def figures(self, name):
        found = [self.of(run, name) for run in self.samples]
        return None if None in found or not found else found

    def median(self, name):
        found = self.figures(name)
        return estimate(found)[0] if found else None

    def ends(self, name):
        return estimate(self.figures(name))[1:]

    @property
    def is_latency(self):
        return any(run.get("latency") for run in self.samples)

    @property
    def speed_name(self):
        return "p50" if self.is_latency else "throughput"

    @property
    def speed(self):
        median = self.median(self.speed_name)
        return 1e9 / median if self.is_latency else median

    @property
    def block(self):
        return self.params.get("block")

    @property
    def capacity(self):
        asked = self.params.get("capacity")
        granted = next((run["capacity_granted"] for run in self.samples if run.get("capacity_granted")), None)
        return granted or (asked if isinstance(asked, int) else None)

    @property
    def is_measured(self):
        wrong = self.record["status"] != "ok" or self.record["verified"] is False
        above = [own for own in self.record["warnings"] if own["kind"] == "above-ceiling"]
        unusable = any(2 * own["above"] > own["runs"] or own["runs"] == 0 for own in above)
        return bool(self.samples) and not wrong and not unusable and self.record["estimate"] is not None

    def settings(self, without):
        """The parameters except some, to find the trials that differ only in these."""
        return {key: value for key, value in self.params.items() if key not in without}


def ratio(new, base, name):
    """The ratio of a figure within rounds: its estimate, and the ratio of the medians."""
    of_base = {run["round"]: base.of(run, name) for run in base.samples}
    of_new = [(run["round"], new.of(run, name)) for run in new.samples]
    ratios = [own / of_base[at] for at, own in of_new if own and of_base.get(at)]
    found = estimate(ratios)
    medians = new.median(name), base.median(name)
    if not found or None in medians:
        return None
    return *found, medians[0] / medians[1]


def inverse(found):
    median, low, high, of_medians = found
    return 1 / median, high and 1 / high, low and 1 / low, 1 / of_medians


def speed_ratio(new, base):
    name = new.speed_name
    found = ratio(new, base, name)
    return inverse(found) if found and name == "p50" else found


class Sentence:
    """A sentence, with what is wrong about it."""

    def __init__(self, verb, kind, text):
        self.verb, self.kind, self.text, self.faults = verb, kind, text, []

    def require(self, holds, why):
        if not holds:
            self.faults.append(why)


class Document:
    def __init__(self, document):
        self.document = document
        self.trials = [Trial(record) for record in document["trials"]]
        self.by_id = {(one.experiment, one.id): one for one in self.trials}

    def trials_of(self, evidence):
        """The trials that a finding points to."""
        found = []

        def collect(json):
            if isinstance(json, dict):
                if "trial" in json and "experiment" in json:
                    found.append(self.by_id[json["experiment"], json["trial"]])
                for value in json.values():
                    collect(value)
            elif isinstance(json, list):
                for value in json:
                    collect(value)

        collect(evidence)
        return list(dict.fromkeys(found))

    def pairs_of(self, evidence):
        """The pairs of trials that a finding compares."""
        found = []

        def collect(json):
            if isinstance(json, dict):
                ends = json.get("of"), json.get("to")
                if all(isinstance(end, dict) and "trial" in end for end in ends):
                    found.append([self.by_id[end["experiment"], end["trial"]] for end in ends])
                for value in json.values():
                    collect(value)
            elif isinstance(json, list):
                for value in json:
                    collect(value)

        collect(evidence)
        return found

    def beside(self, one, varies):
        """The measured trials of the same table that differ from one only in these parameters."""
        alike = [
            other
            for other in self.trials
            if other.experiment == one.experiment
            and other.is_measured
            and other.settings([*varies, "volume"]) == one.settings([*varies, "volume"])
            and equivalent(other.volume, one.volume)
        ]
        return alike

    def check(self, finding):
        sentence = Sentence(self.document["suite"], finding["rule"], finding["text"])
        trials, pairs = self.trials_of(finding["evidence"]), self.pairs_of(finding["evidence"])
        check_ratios(sentence, pairs)
        check_settings(sentence, trials, finding["rule"])
        filters = trials and all("filter" in one.params for one in trials)
        rule = RULES.get(finding["rule"]) or (of_filters if filters else None)
        if rule is None:
            sentence.require(False, "no check knows this kind of sentence")
        else:
            rule(sentence, self, finding, trials, pairs)
        return sentence

    def findings(self):
        return [self.check(finding) for finding in self.document.get("findings", [])]


def equivalent(one, other):
    if one is None or other is None or one == other:
        return one == other
    (kind, value), (other_kind, other_value) = next(iter(one.items())), next(iter(other.items()))
    # A volume is rounded to whole blocks, and tables show volumes that are nearly equal beside each other.
    return kind == other_kind and kind == "total" and abs(value - other_value) <= 0.05 * max(value, other_value)


def is_triple(figures, number, low, high, scale=1.0):
    """Whether a printed ratio with its interval is one of these."""
    for found in figures:
        if found and found[1] is not None:
            ends = zip((number, low, high), found[:3])
            if all(is_printed(text, value * scale) for text, value in ends):
                return found
    return None


def check_ratios(sentence, pairs):
    """Each ratio is that of a pair, within rounds. If the medians have another ratio, the sentence says so."""
    known = []
    for new, base in pairs:
        for name in ("throughput", "p50", "cpu"):
            found = ratio(new, base, name)
            known += [found, inverse(found)] if found else []
    for pattern, scale in ((RATIO, 1.0), (PERCENT, 100.0)):
        for number, low, high, qualifier in re.findall(pattern, sentence.text):
            found = is_triple(known, number, low, high, scale)
            if sentence.kind == "tail" and not found:
                continue
            shown = f"{number} ({low}–{high})"
            sentence.require(found, f"no two of its trials have the ratio {shown}")
            same = [own for own in known if own and is_triple([own], number, low, high, scale)]
            agree = [not differ(own[0], own[3], 0.02) for own in same]
            # Of two ratios that are printed alike, either may be meant.
            if found and len(set(agree)) == 1:
                sentence.require(agree[0] == (not qualifier), f"{shown}: the ratio of the medians is {found[3]:.4g}")


def check_rates(sentence, trials, more=()):
    """Each rate and each time is the median of one of the trials."""
    rates = [one.median("throughput") for one in trials] + list(more)
    for number, unit in re.findall(RATE, sentence.text):
        right = any(is_printed(number, rate, BINARY[unit]) for rate in rates if rate)
        sentence.require(right, f"no trial has {number} {unit}/s")


def check_times(sentence, trials, more=()):
    times = [one.median(name) for one in trials for name in ("p50", "p99")]
    times += [end for one in trials if one.is_latency for end in one.ends("p50")]
    times += list(more)
    pauses = {one.params.get("gap") or 0 for one in trials}
    for number, unit in re.findall(rf"pause of {TIME}", sentence.text):
        sentence.require(
            any(is_printed(number, pause, TIMES[unit]) for pause in pauses), f"no pause of {number} {unit}"
        )
    text = re.sub(rf"pause of {TIME}|{TIME} of (?:CPU|work)|{TIME} per (?:GiB|million)", "", sentence.text)
    for number, unit in re.findall(TIME, text):
        right = any(is_printed(number, time, TIMES[unit]) for time in times if time)
        sentence.require(right, f"no trial has {number} {unit}")


PLACES = {"same": "on one core", "cross": "across two cores", "free": "unpinned"}


def check_settings(sentence, trials, rule):
    """The settings that a sentence names are those of its trials."""
    text = sentence.text
    ends = [one for one in trials if "send" in one.params and "recv" in one.params]
    # Rules about these parameters name several values.
    several = {
        "place": ("place", "place-groups", "recommended"),
        "block": (
            "best-link",
            "crossing",
            "shared-memory",
            "place",
            "best-block",
            "harness",
            "published",
            "recommended",
            "tail",
        ),
        "methods": (
            "best-link",
            "crossing",
            "shared-memory",
            "zero-copy",
            "fresh-data",
            "recommended",
            "tail",
            "published",
        ),
    }
    if not ends or len(ends) != len(trials):
        return
    arrows = re.findall(r"([a-z-]+) → ([a-z-]+)", text)
    methods = {(one.params["send"], one.params["recv"]) for one in ends}
    if arrows:
        sentence.require(set(arrows) <= methods, f"trials with {methods}, not {arrows}")
    if rule not in several["methods"] and arrows:
        sentence.require(len(methods) == 1, f"trials with {methods}, not only {arrows[0]}")
    if rule not in several["place"]:
        # The limit of the memory copy isn't one of the trials.
        own = text.split("memory-copy limit")[0]
        named = {place for place, words in PLACES.items() if words in own}
        places = {one.params.get("place") for one in ends}
        if named:
            sentence.require(named == places, f"trials with the places {places}, not {named}")
    if rule not in several["block"]:
        blocks = {one.block for one in ends}
        for found in re.findall(rf"(?:blocks|messages) of ({SIZE})(?! to)", text):
            sentence.require(size(found) in blocks, f"no trial has blocks of {found}")


def sizes_in(text, all_sizes):
    """The sizes that a list of ranges names: '64 B and 1 KiB to 64 KiB'."""
    found = set()
    for part in re.findall(rf"({SIZE})(?: to ({SIZE}))?", text):
        low = size(part[0])
        high = size(part[1]) if part[1] else low
        found |= {one for one in all_sizes if low <= one <= high}
    return found


# --- Rules -----------------------------------------------------------------------------------------------------------


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


def chain_cost(sentence, document, finding, trials, _pairs):
    text = sentence.text
    chains = sorted((one.params.get("length") or 0, one) for one in trials)
    lengths = [length for length, _ in chains]
    found = re.search(r": from (\d+) to (\d+) stages", text)
    sentence.require(int(found.group(2)) == lengths[-1] and int(found.group(1)) in lengths, f"lengths {lengths}")
    last = chains[-1][1]
    hop = re.search(rf"Transfer per hop at (\d+) stages?: {RATE} \(({NUMBER})(?: (\w+)/s)?–{RATE}\)", text)
    if hop:
        stages, number, unit, low, low_unit, high, high_unit = hop.groups()
        rates = [lengths[-1] * rate for rate in (last.median("throughput"), *last.ends("throughput"))]
        shown = (number, unit), (low, low_unit or high_unit), (high, high_unit)
        for (figure, of_unit), rate in zip(shown, rates):
            sentence.require(is_printed(figure, rate, BINARY[of_unit]), f"{rate:.4g} B/s per hop, not {figure}")
        sentence.require(int(stages) == lengths[-1], "not the longest chain")
    cost = re.search(rf"each additional stage costs {TIME}.* per GiB", text)
    if cost:
        points = [
            (length, median_of(one, "ns") / (median_of(one, "bytes") / GIB))
            for length, one in chains
            if length >= int(found.group(1))
        ]
        _, slope, _ = line(points, relative=True)
        sentence.require(is_printed(cost.group(1), slope, TIMES[cost.group(2)]), f"a stage costs {slope:.4g} ns")
    fit = re.search(rf"\(R² ({NUMBER})\)", text)
    if fit:
        sentence.require(float(fit.group(1)) >= 0.9, "a fit below 0.9")


def median_of(one, field):
    values = sorted(float(run[field]) for run in one.samples)
    count = len(values)
    return (values[(count - 1) // 2] + values[count // 2]) / 2


def chain_published(sentence, document, finding, trials, _pairs):
    theirs = [(one.params.get("length") or 0, GIB / one.record["published"]["throughput"]) for one in trials]
    costs = re.search(rf"each stage costs ({NUMBER}) s per GiB", sentence.text).group(1)
    _, slope, fit = line(sorted(theirs), relative=True)
    sentence.require(is_printed(costs, slope) and fit >= 0.9, f"{slope:.4g} s per GiB")
    ours = [float(number) for number in re.findall(rf"({NUMBER}) s per GiB", sentence.text)]
    times = float(re.search(rf"({NUMBER})× as fast", sentence.text).group(1))
    sentence.require(abs(ours[0] / ours[1] / times - 1) < 0.02, f"{ours[0]} / {ours[1]} isn't {times}")


def call_cost(sentence, document, finding, trials, _pairs):
    evidence = finding["evidence"]
    words = re.search(rf"linear fit from ({SIZE}) to ({SIZE}), R² ({NUMBER})", sentence.text)
    low, high, fit = size(words.group(1)), size(words.group(2)), float(words.group(3))
    sentence.require([low, high] == [evidence["from"], evidence["to"]] and fit >= 0.9, "another fit")
    number, unit = re.search(rf"costs about {TIME}", sentence.text).groups()
    byte, byte_unit, per = re.search(rf"plus {TIME} \(.*?\) per (KiB|MiB)", sentence.text).groups()
    sweep = [one for one in document.beside(trials[0], ["block"]) if low <= one.block <= high]
    points = sorted((one.block, one.block * 1e9 / one.median("throughput")) for one in sweep)
    sentence.require(len(points) == evidence["points"] == len(trials), f"{len(points)} sizes of the table")
    call, slope, _ = line(points, relative=True)
    sentence.require(is_printed(number, call, TIMES[unit]), f"a call costs {call:.4g} ns")
    sentence.require(is_printed(byte, slope * BINARY[per], TIMES[byte_unit]), f"{per}: {slope * BINARY[per]:.4g} ns")
    even = re.search(rf"below about ({SIZE})", sentence.text)
    if even:
        sentence.require(abs(size(even.group(1)) * slope / call - 1) < 0.06, "another size breaks even")


def message_cost(sentence, document, finding, trials, _pairs):
    for fit in re.findall(rf"R² ({NUMBER})", sentence.text):
        sentence.require(float(fit) >= 0.9, f"a fit of {fit}")
    costs = [one["ns_per_call"]["value"] for one in finding["evidence"]["by_link"].values()]
    shown = [float(number) * TIMES[unit] for number, unit in re.findall(rf"{TIME} \+", sentence.text)]
    sentence.require(
        shown == sorted(shown) and len(shown) == len(costs), "the links aren't in the order of their costs"
    )


def place_groups(sentence, document, finding, trials, _pairs):
    within, across = finding["evidence"]["within"]["median"], finding["evidence"]["across"]["median"]
    latency = "round trip" in sentence.text or bool(re.search(TIME, sentence.text.split(";")[0]))
    sentence.require((within < across) == latency, "within a group it isn't faster")


def of_language(document, experiment, language, program):
    return [
        one
        for one in document.trials
        if one.params.get("language") == language and one.params.get("program") == program and one.is_measured
    ]


def tuning(sentence, document, finding, trials, pairs):
    text = sentence.text.split(": ", 1)[1]
    same = re.search(r"no difference for ([^.;]*)", text)
    for language in same.group(1).split(", ") if same else []:
        [(new, base)] = [pair for pair in pairs if pair[0].params["language"] == language]
        sentence.require(abs(ratio(new, base, "throughput")[0] - 1) <= 0.03, f"{language} differs")
    for language, number in re.findall(rf"(\w+) ({NUMBER})× \(", text):
        [(new, base)] = [pair for pair in pairs if pair[0].params["language"] == language]
        sentence.require(is_printed(number, ratio(new, base, "throughput")[0]), f"{language}: another ratio")
        tuned = new.params["program"] == "tuned" and base.params["program"] == "idiomatic"
        sentence.require(tuned, f"{language}: other programs")


def language_gap(sentence, document, finding, trials, _pairs):
    evidence = finding["evidence"]
    seconds = []
    for name in ("idiomatic", "tuned", "baseline"):
        one = document.by_id[evidence[name]["experiment"], evidence[name]["trial"]]
        seconds.append(GIB / one.median("throughput"))
    shown = re.findall(rf"takes ({NUMBER}) s", sentence.text)
    for number, value in zip(shown, seconds):
        sentence.require(is_printed(number, value), f"{value:.4g} s, not {number}")
    share = (seconds[0] - seconds[1]) / (seconds[0] - seconds[2])
    share = min(max(share, 0.0), 1.0)
    removed = re.search(r"removes (all|none|\d+ %) of the gap", sentence.text).group(1)
    right = {"all": share > 0.99, "none": share < 0.01}.get(removed)
    if right is None:
        right = abs(share * 100 - int(removed.split(" ")[0])) <= 0.51
    sentence.require(right, f"tuning removes {share:.3f}")


def start_up(sentence, document, finding, trials, _pairs):
    times = finding["evidence"]["start_up_ns"].values()
    number, unit, _, last, other, _ = re.search(
        rf"take {TIME} \(([^)]*)\) to {TIME} \(([^)]*)\)", sentence.text
    ).groups()
    sentence.require(is_printed(number, min(times), TIMES[unit]), "not the shortest start")
    sentence.require(is_printed(last, max(times), TIMES[other]), "not the longest start")


def language_by_block(sentence, document, finding, trials, _pairs):
    for one in finding["evidence"]["blocks"]:
        shares = [ratio(new, base, "throughput")[0] for new, base in document.pairs_of(one["share_of_the_fastest"])]
        near = 1 + sum(share >= 0.9 for share in shares)
        word = next(text for text, _ in BLOCKS(one["block"]))
        found = re.search(
            rf"(\d+) with {re.escape(word)} \(slowest: (\S+), ({NUMBER}) % of the fastest", sentence.text
        )
        sentence.require(found and int(found.group(1)) == near, f"{near} within 10 % at {word}")
        if found:
            sentence.require(is_printed(found.group(3), min(shares) * 100), f"the slowest has {min(shares):.4g}")
    verdict = re.search(rf"; from ({SIZE}) up, all are within 10 %", sentence.text)
    if verdict:
        blocks = [one for one in finding["evidence"]["blocks"] if one["block"] >= size(verdict.group(1))]
        for one in blocks:
            shares = [
                ratio(new, base, "throughput")[0] for new, base in document.pairs_of(one["share_of_the_fastest"])
            ]
            sentence.require(min(shares) >= 0.9, f"not all are within 10 % at {one['block']}")


def BLOCKS(count):
    for unit in ("GiB", "MiB", "KiB", "B"):
        if count % BINARY[unit] == 0:
            yield f"{count // BINARY[unit]} {unit}", unit


def language_best_block(sentence, document, finding, trials, _pairs):
    for part in sentence.text.split(": ", 1)[1].rstrip(".").split("; "):
        block, languages = part.split(" for ")
        for language in languages.split(", "):
            one = finding["evidence"]["languages"][language]["smallest"]
            trial = document.by_id[one["experiment"], one["trial"]]
            sentence.require(trial.block == size(block), f"{language}: {trial.block}")
            sweep = document.beside(trial, ["block"])
            best = max(other.median("throughput") for other in sweep)
            top = next(other for other in sweep if other.median("throughput") == best)
            share = ratio(trial, top, "throughput")
            sentence.require(trial is top or share[0] >= 0.95, f"{language}: {share and share[0]:.4g} of the best")


def of_filters(sentence, document, finding, trials, pairs):
    """Findings about filters: their ratios were checked; so are latencies and published times."""
    text = sentence.text
    if finding["rule"] == "lines-latency":
        evidence = finding["evidence"]
        quick, slow = (
            document.by_id[evidence[key]["experiment"], evidence[key]["trial"]] for key in ("quickest", "slowest")
        )
        rivals = [one for one in document.beside(quick, ["filter"]) if one.median("p50")]
        check_times(sentence, rivals)
        transforms = [one for one in rivals if one.params["filter"] not in OTHER_TASKS]
        sentence.require(
            quick.median("p50") <= min(one.median("p50") for one in transforms) * (1 + 1e-9), "not the quickest"
        )
        sentence.require(
            slow.median("p50") >= max(one.median("p50") for one in transforms) * (1 - 1e-9), "not the slowest"
        )
        held = re.search(r"hold lines back until more arrive: ([^.]*)", text)
        for name in held.group(1).split(", ") if held else []:
            warned = [
                one
                for one in document.trials
                if one.params.get("filter") == name and any(own["kind"] == "held" for own in one.record["warnings"])
            ]
            sentence.require(warned, f"{name} held no lines back")
    elif finding["rule"] == "lines-top-line":
        check_rates(sentence, trials)
        fastest, slowest = re.search(r"fastest filter (\S+), .*slowest filter (\S+),", text).groups()
        group = [one for one in document.beside(pairs[0][0], ["filter"]) if one.params["filter"] not in OTHER_TASKS]
        rates = {one.params["filter"]: one.median("throughput") for one in group}
        sentence.require(rates[fastest] == max(rates.values()), "not the fastest filter")
        sentence.require(rates[slowest] == min(rates.values()), "not the slowest filter")
    elif finding["rule"] == "lines-conjecture":
        shares = [
            float(number)
            for number in re.findall(r"(\d+) % of the total|and (\d+) % for lines", text)
            for number in number
            if number
        ]
        nanoseconds = re.search(rf"spends ({NUMBER}) ns of CPU time on each line and ({NUMBER}) ns on each KiB", text)
        line_ns, kib = nanoseconds.groups()
        short, long = (
            document.by_id[one["experiment"], one["trial"]] for one in finding["evidence"]["std_baseline"]["trials"]
        )
        costs = [one.median("filter_cpu") * 1e9 / GIB for one in (short, long)]
        per_line = (costs[0] - costs[1]) / (1 / 8 - 1 / 285)
        per_byte = max(costs[1] - per_line / 285, 0)
        sentence.require(is_printed(line_ns, per_line), f"{per_line:.4g} ns per line")
        sentence.require(is_printed(kib, per_byte * 1024), f"{per_byte * 1024:.4g} ns per KiB")
        for length, share in zip((8, 285), shares):
            value = per_line / (per_line + per_byte * length) * 100
            sentence.require(abs(value - share) <= 0.51, f"{value:.3g} % for lines of {length} bytes, not {share}")
    elif finding["rule"] == "lines-published":
        for name, theirs, ours in re.findall(rf"(\S+) ({NUMBER})×, here ({NUMBER})×", text):
            pair = [pair for pair in pairs if name in (pair[0].params["filter"], pair[1].params["filter"])]
            values = [ratio(new, base, "throughput")[0] for new, base in pair]
            values += [1 / value for value in values]
            sentence.require(any(is_printed(ours, value) for value in values), f"{name}: not {ours} times here")
            speeds = {one.params["filter"]: one.record["published"]["throughput"] for one in trials}
            value = max(speeds.values()) / speeds[name]
            sentence.require(is_printed(theirs, value), f"{name}: published {value:.4g} times")
    costs = re.search(
        rf"with ({NUMBER}) s of its own CPU time per GiB instead of ({NUMBER}) s, and ({NUMBER}) context switches per MiB"
        rf" instead of ({NUMBER})",
        text,
    )
    if costs:
        new, base = pairs[0]
        for name, shown in (("filter_cpu", costs.groups()[:2]), ("filter_switches", costs.groups()[2:])):
            for number, one in zip(shown, (new, base)):
                value = one.median(name)
                sentence.require(
                    is_printed(number, value), f"{one.params['filter']}: {name} {value:.4g}, not {number}"
                )


RULES = {
    "best-block": best_block,
    "capacity": capacity,
    "zero-copy": zero_copy,
    "fresh-data": zero_copy,
    "place": place,
    "wait": wait,
    "gap": gap,
    "round-trip": round_trip,
    "tail": tail,
    "best-link": best_link,
    "crossing": crossing,
    "shared-memory": shared_memory,
    "harness": harness,
    "memory-copy": memory_copy,
    "recommended": recommended,
    "published": published,
    "chain-cost": chain_cost,
    "chain-published": chain_published,
    "call-cost": call_cost,
    "message-cost": message_cost,
    "place-groups": place_groups,
    "tuning": tuning,
    "language-gap": language_gap,
    "start-up": start_up,
    "language-by-block": language_by_block,
    "language-best-block": language_best_block,
}


# --- The screen and the page -----------------------------------------------------------------------------------------


def screen(document, text):
    """The sentences of the screen: counts, the summary, and findings beside the tables that have their trials."""
    found = Document(document)
    requested = [one for one in found.trials if one.params.get("link") != "memory-copy"]
    measured = [one for one in requested if one.record["estimate"] is not None]
    sentences = []
    for count, all_of in re.findall(r": (\d+) of (\d+) trials$", text, re.M):
        sentence = Sentence(document["suite"], "rows", f"{count} of {all_of} trials")
        sentence.require(int(count) <= int(all_of) <= len(found.trials), "more than there are")
        sentences.append(sentence)
    summary = re.search(r"^Summary \((.*), (\d+) trials?\)$", text, re.M)
    if not summary:
        return sentences
    sentence = Sentence(document["suite"], "summary", summary.group(0))
    sentence.require(int(summary.group(2)) == len(measured), f"{len(measured)} trials were measured")
    sentences.append(sentence)
    above, below = text[: summary.start()], text[summary.end() :]
    rates, times = all_figures(above)
    omitted = "with --all:" in above
    named = re.findall(
        r"^  (?:default pipe|best with write and read|best, each byte new and checked)\s.*$", below, re.M
    )
    for line_of_summary in named:
        sentence = Sentence(document["suite"], "unit", line_of_summary.strip())
        sentence.require(re.search(RATE, line_of_summary), "this isn't a throughput")
        sentences.append(sentence)
    for row in re.findall(
        r"^  (default pipe|best with write and read|best, each byte new and checked)\s+" + RATE, below, re.M
    ):
        name, number, unit = row
        sentence = Sentence(document["suite"], "headline", f"{name}: {number} {unit}/s")
        low, high = printed(number, BINARY[unit])
        shown = any(low * 0.995 <= (one + other) / 2 <= high * 1.005 for one, other in rates)
        sentence.require(shown or omitted, "no row of the tables has this figure")
        sentences.append(sentence)
    wrapped = " ".join(below.split())
    for finding in document.get("findings", []):
        if " ".join(finding["text"].split()) in wrapped:
            sentence = Sentence(document["suite"], "beside", finding["text"])
            for one in found.trials_of(finding["evidence"]):
                ranges, value = (times, one.median("p50")) if one.is_latency else (rates, one.median("throughput"))
                sentence.require(
                    is_among(value, [(low * 0.995, high * 1.005) for low, high in ranges]), f"no row shows {one.id}"
                )
            sentences.append(sentence)
    return sentences


def page(document, text):
    found = Document(document)
    requested = [one for one in found.trials if one.params.get("link") != "memory-copy"]
    measured = sum(one.record["estimate"] is not None for one in requested)
    sentences = []
    facts = re.search(r"^(\d+) trials?, (\d+) runs? in", text, re.M)
    if facts:
        sentence = Sentence(document["suite"], "page", facts.group(0))
        sentence.require(int(facts.group(1)) == measured, f"{measured} trials were measured")
        sentence.require(int(facts.group(2)) == sum(len(one.samples) for one in requested), "another number of runs")
        sentences.append(sentence)
    return sentences


def check(document, brief="", report=""):
    """All sentences of a document."""
    return Document(document).findings() + screen(document, brief) + page(document, report)
