#!/usr/bin/env python3
"""Measures how often the interval that pipemark prints contains the estimate from very many real runs.

    bench/coverage.py [--runs 1000] [--minutes 5] [--state FILE]

Measures four interleaved trials, a hundred runs at a time, until each trial has N runs or the time is over. Results are kept in
FILE, and the next call continues there. Then draws runs in three ways (at random; spread over the session, like the rounds of
`pipemark run`; consecutive), stops drawing by the rule of `pipemark run`, and counts how often the interval of the drawn runs
contains the estimate from all runs."""

import argparse
import json
import math
import os
import random
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIPEMARK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/pipemark"
TRIALS = "--send write,vmsplice --place same,cross --time 20ms".split()
CHUNK = 100
# As in crates/pipemark-stats/src/estimate.rs (the rule) and crates/pipemark-run/src/plan/schedule.rs (the defaults).
PRECISION, MIN_TO_STOP, FARTHEST, MAX_RUNS = 0.03, 12, 5, 30


def measure():
    """The throughput of `CHUNK` runs of each trial, by the trial's name."""
    words = [str(PIPEMARK), "bw", *TRIALS, "--runs", str(CHUNK), "--no-save", "--json", "-"]
    document = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    trials = [trial for trial in document["trials"] if trial["params"]["link"] == "pipe"]
    return {trial["name"]: [s["bytes"] / s["ns"] for s in trial["samples"]] for trial in trials}


def critical_rank(runs):
    """Wilcoxon's critical rank k: the 95 % interval runs from the k-th smallest mean of two runs to the k-th largest."""
    ways = [1] + [0] * (runs * (runs + 1) // 2)
    for rank in range(1, runs + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    below, rank = 0, 0
    while 2 * (below + ways[rank]) <= 0.05 * 2**runs:
        below, rank = below + ways[rank], rank + 1
    return rank


RANKS = {runs: critical_rank(runs) for runs in range(7, MAX_RUNS + 1)}


def estimate(figures):
    """Hodges and Lehmann's estimate with its interval: low end, estimate, high end."""
    logs = [math.log(figure) for figure in figures]
    middles = sorted((one + other) / 2 for at, one in enumerate(logs) for other in logs[at:])
    rank, n = RANKS.get(len(figures), 1), len(middles)
    return [math.exp(x) for x in (middles[rank - 1], (middles[(n - 1) // 2] + middles[n // 2]) / 2, middles[-rank])]


def stopped(runs):
    """The interval of a trial stopped by the rule of `pipemark run`."""
    for n in range(MIN_TO_STOP, MAX_RUNS + 1):
        figures = runs[:n]
        low, middle, high = estimate(figures)
        narrow = max(middle - low, high - middle) <= PRECISION * middle
        spread = max(middle - min(figures), max(figures) - middle)
        if n == MAX_RUNS or narrow and spread <= FARTHEST * PRECISION * middle:
            return low, high


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--runs", type=int, default=1000)
    flags.add_argument("--minutes", type=float, default=5)
    flags.add_argument("--state", type=Path, default=ROOT / "build/coverage.json")
    options = flags.parse_args()
    end = time.monotonic() + 60 * options.minutes
    state = json.loads(options.state.read_text()) if options.state.exists() else {}
    while min(map(len, state.values()), default=0) < options.runs and time.monotonic() < end:
        for name, figures in measure().items():
            state.setdefault(name, []).extend(figures)
        options.state.parent.mkdir(exist_ok=True)
        options.state.write_text(json.dumps(state))
    dice = random.Random(1)
    print(
        "trial: runs; estimate of all (least to greatest); coverage with runs drawn at random, spread over the session, consecutive"
    )
    for name, figures in state.items():
        truth, step = estimate(figures)[1], len(figures) // MAX_RUNS
        parts = [
            [dice.choices(figures, k=MAX_RUNS) for _ in range(2000)],
            [figures[at : at + step * MAX_RUNS : step] for at in range(step)],
            [figures[at : at + MAX_RUNS] for at in range(0, len(figures) - MAX_RUNS + 1, MAX_RUNS // 2)],
        ]
        held = [[low <= truth <= high for low, high in map(stopped, part)] for part in parts]
        held = ", ".join(f"{sum(all) / max(1, len(all)):.1%} of {len(all)}" for all in held)
        print(f"{name}: {len(figures)}; {truth:.2f} GB/s ({min(figures):.2f}–{max(figures):.2f}); {held}", flush=True)


if __name__ == "__main__":
    main()
