"""Findings about what a stage, a call, a byte or a message costs."""

import re

from figures import BINARY, GIB, NUMBER, RATE, SIZE, TIME, TIMES, is_printed, line, size


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
