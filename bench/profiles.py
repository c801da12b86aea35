#!/usr/bin/env python3
"""Checks that the program of `cargo install` is as fast as that of the packages, within 5 %.

    cargo build --release --locked -p pipemark
    cargo build --profile dist --locked -p pipemark
    bench/profiles.py [--rounds N]

A round runs each command once with each program, in random order. A ratio is the CPU time with the profile `release` divided by
that with `dist` in the same round. With 95 % probability, the intervals of all commands contain the true medians. Exits with 1 if
an interval lies above 1.05."""

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
from pathlib import Path

from run import PIPEMARK, command, interval, ten_thousand_runs

PROGRAMS = {"release": PIPEMARK, "dist": PIPEMARK.parent.parent / "dist/pipemark"}
WITHIN = 0.05
TRIALS = 540


def many_trials(path):
    """Writes a document with many trials, copies of a few that differ in a parameter."""
    flags = ["--block", "4k,16k,64k", "--runs", "20", "--time", "5ms", "--no-save", "--quiet", "--json", path]
    command([PIPEMARK, "bw", *flags])
    document = json.loads(path.read_text())
    measured = [trial for trial in document["trials"] if not trial.get("reference")]
    copy = lambda n, trial: {**trial, "id": str(n), "params": {**trial["params"], "align": n // len(measured)}}
    document["trials"] = [copy(n, measured[n % len(measured)]) for n in range(TRIALS)]
    path.write_text(json.dumps(document))


def cpu_seconds(words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command(words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="rounds per command [default: 30]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        db, document, page = (Path(directory) / name for name in ("history.db", "many.json", "page.html"))
        ten_thousand_runs(db)
        many_trials(document)
        commands = {
            "list of 10,000 runs": ["history", "--db", db, "--limit", "0"],
            "10,000 runs as JSON": ["history", "--db", db, "--limit", "0", "--format", "json"],
            "runs by label": ["history", "--db", db, "--limit", "0", "--label", "*99*"],
            "trend of 10,000 runs": ["history", "trend", "--db", db, "--limit", "0", "block=64k"],
            f"page of {TRIALS} trials": ["report", document, "-o", page],
            f"tables of {TRIALS} trials": ["report", "--terminal", document],
        }
        ratios, times = {}, {}
        for _ in range(options.rounds):
            for name, words in random.sample(list(commands.items()), len(commands)):
                took = {which: cpu_seconds([PROGRAMS[which], *words]) for which in random.sample(list(PROGRAMS), 2)}
                ratios.setdefault(name, []).append(took["release"] / took["dist"])
                times.setdefault(name, []).append(took["release"])
    slow = False
    for name in commands:
        low, high = interval(ratios[name], 0.05 / len(commands))
        slow |= low > 1 + WITHIN
        verdict = "BROKEN" if low > 1 + WITHIN else "kept" if high <= 1 + WITHIN else "inconclusive"
        took = 1000 * statistics.median(times[name])
        median = statistics.median(ratios[name])
        print(f"{name:<24} {took:7.1f} ms  {median:.3f} [{low:.3f} – {high:.3f}]: {verdict}")
    if slow:
        sys.exit("promises broken")


if __name__ == "__main__":
    main()
