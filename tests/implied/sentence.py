"""A sentence, and what holds for all sentences about trials: their ratios, rates, times and settings."""

import re

from figures import BINARY, PERCENT, RATE, RATIO, SIZE, TIME, TIMES, differ, is_printed, size
from trials import inverse, ratio


class Sentence:
    """A sentence, with what is wrong about it."""

    def __init__(self, verb, kind, text):
        self.verb, self.kind, self.text, self.faults = verb, kind, text, []

    def require(self, holds, why):
        if not holds:
            self.faults.append(why)


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
        "place": ("place", "place-groups", "published", "recommended"),
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
        named |= {f"{writer}:{reader}" for writer, reader in re.findall(r"CPUs (\d+) and (\d+)", own)}
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
