#!/usr/bin/env python3
"""Checks the promises of docs/languages.md on programs in other languages. The two programs of a ratio alternate within one run.

    bench/languages.py [--pipemark PROGRAM] [--runs N] [--scale F] [--only tuned|even]

A ratio is estimated as pipemark compares trials of one run: Hodges and Lehmann's estimate over the rounds, with its 95 %
interval. A promise is kept if the estimate reaches the promised ratio, broken if the whole interval is below it, and otherwise
inconclusive, because there were too few rounds.

Exits with 1 if a promise is broken, and with 2 if one could not be tested here or is inconclusive.
"""

import argparse
import itertools
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITES = {"tuned": "languages.toml", "even": "languages-even.toml"}
INTERPRETED = ["python", "javascript"]
NATIVE = ["c", "cpp", "rust", "zig"]


def ratio(new, base):
    """The ratio of NEW's throughput to BASE's, with its interval, from the rounds in which both ran, which must be at least six."""
    rate = lambda trial: {s["round"]: s["bytes"] / s["ns"] for s in trial["samples"]}
    one, other = rate(new), rate(base)
    logs = [math.log(one[r] / other[r]) for r in one.keys() & other.keys()]
    means = sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(logs, 2))
    # The number of means beyond each end of the interval: Wilcoxon's statistic, by normal approximation.
    n = len(logs)
    outside = math.floor(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    if outside < 1:
        raise SystemExit(f"{n} rounds in which both ran are too few for an interval; use --runs 6 or more")
    return [math.exp(x) for x in (statistics.median(means), means[outside - 1], means[-outside])]


def speed(trial):
    """The mean logarithm of the throughput. The difference of two trials' means is the mean of the log ratios within rounds."""
    return statistics.fmean(math.log(s["bytes"] / s["ns"]) for s in trial["samples"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipemark", default=ROOT / "target/release/pipemark")
    parser.add_argument("--runs", help="rounds, in place of those of the suites")
    parser.add_argument("--scale", default="1")
    parser.add_argument("--only", choices=SUITES, help="one of the two suites")
    options = parser.parse_args()
    trials, warnings = {}, []
    for suite in [SUITES[options.only]] if options.only else SUITES.values():
        command = [options.pipemark, "run", ROOT / "bench" / suite, "--json", "-", "--entrants", ROOT / "entrants"]
        command += ["--scale", options.scale] + (["--runs", options.runs] if options.runs else [])
        done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT)
        document = json.loads(done.stdout)
        warnings += document["warnings"]
        for trial in document["trials"]:
            params = trial["params"]
            trials[trial["experiment"], params.get("language"), params.get("program")] = trial

    # Each row: the promise, the new program, the base program, and the least ratio.
    program = lambda way, language: (way, language, way)
    languages = [language for experiment, language, _ in trials if experiment == "tuned"]
    promises = [
        (program("tuned", language), program("tuned", "c"), 0.7 if language in INTERPRETED else 0.9)
        for language in languages
        if language != "c"
    ]
    # The slowest native language is compared with the fastest: within 5 %.
    natives = [program("idiomatic", language) for language in NATIVE]
    measured = [key for key in natives if key in trials and trials[key]["samples"]]
    if len(measured) > 1:
        order = sorted(measured, key=lambda key: speed(trials[key]))
        promises.append((order[0], order[-1], 0.95))
    own = ("own", None, None)
    if own in trials:
        promises.append((own, ("own", "c", "tuned"), 1.0))

    code = 0
    for new, base, least in promises:
        words = lambda key: " ".join(word for word in key[1:] if word) or "pipemark bw --verify xor"
        name = f"{words(new)} / {words(base)}"
        missing = [trials[key] for key in (new, base) if trials[key]["status"] != "ok"]
        if missing:
            print(f"{name:45} not tested: {missing[0]['reason'][:200]}")
            code = code or 2
            continue
        found, low, high = ratio(trials[new], trials[base])
        if found >= least:
            verdict = "kept"
        elif high < least:
            verdict, code = "NOT KEPT", 1
        else:
            verdict, code = "inconclusive; use more --runs", code or 2
        print(f"{name:45} {found:6.3f} [{low:.3f}, {high:.3f}]  promised {least:.2f}  {verdict}")
    # Warnings are printed because a busy machine distorts ratios.
    for warning in warnings:
        print("note:", json.dumps(warning))
    return code


if __name__ == "__main__":
    sys.exit(main())
