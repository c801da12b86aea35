"""Findings about languages."""

import re

from figures import BINARY, GIB, NUMBER, SIZE, TIME, TIMES, is_printed, size
from trials import ratio


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
