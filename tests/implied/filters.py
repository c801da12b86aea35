"""Findings about line filters."""

import pathlib
import re
import tomllib

from figures import GIB, NUMBER, is_printed
from sentence import check_rates, check_times
from trials import ratio

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def filters_that_only(does):
    """The line filters that don't change lines: they copy or count them."""
    found = set()
    for path in ROOT.glob("entrants/*/filters.toml"):
        filters = tomllib.loads(path.read_text(encoding="utf-8"))["filter"]
        found |= {name for name, form in filters.items() if form.get("does") in does}
    return found


OTHER_TASKS = filters_that_only(("copy", "count"))


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
