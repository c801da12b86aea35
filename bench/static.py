#!/usr/bin/env python3
"""Checks that the packages' static program measures the same as the ordinary program, within 3 %.

    bench/static.py [--rounds N]

Needs `make dist`, which leaves both programs in build/stage. A round runs each program once, in random order. A ratio is the
static program's throughput divided by the ordinary program's in the same round. With 95 % probability, the intervals of all
cells contain the true medians. Exits with 1 if an interval lies outside 0.97 to 1.03."""

import argparse
import json
import random
import statistics
import subprocess
import sys

from relay import interval
from run import ROOT

PROGRAMS = {"static": ROOT / "build/stage/static", "ordinary": ROOT / "build/stage/ordinary"}
# Trials for copies in the kernel, copies in user space (memcpy), and allocation of memory. All run on one CPU, where
# the speed doesn't depend on which end happens to sleep.
CELLS = {
    "pipe, 64 KiB": [],
    "vmsplice, 256 KiB": ["--send", "vmsplice", "--block", "256k", "--read-block", "256k", "--capacity", "1m"],
    "shared memory, copied": ["--link", "shm"],
    "Unix socket": ["--link", "unix-stream"],
}
WITHIN = 0.03


def throughput(program, flags):
    words = [program, "bw", "--place", "same", "--runs", "1", "--time", "200ms", "--no-save", "--json", "-", *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    done = [trial for trial in json.loads(done.stdout)["trials"] if trial["status"] == "ok"]
    return {trial["params"]["link"]: trial["estimate"]["throughput"]["median"] for trial in done}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="rounds per cell [default: 15]")
    options = parser.parse_args()
    ratios = {}
    for _ in range(options.rounds):
        for name, flags in random.sample(list(CELLS.items()), len(CELLS)):
            took = {which: throughput(PROGRAMS[which], flags) for which in random.sample(list(PROGRAMS), 2)}
            for link, value in took["static"].items():
                if link in took["ordinary"]:
                    what = "memory copy" if link == "memory-copy" else name
                    ratios.setdefault(what, []).append(value / took["ordinary"][link])
    good = True
    for what, found in sorted(ratios.items()):
        low, high = interval(found, 0.05 / len(ratios))
        verdict = (
            "BROKEN"
            if high < 1 - WITHIN or low > 1 + WITHIN
            else "kept" if low >= 1 - WITHIN and high <= 1 + WITHIN else "inconclusive"
        )
        good &= verdict != "BROKEN"
        print(f"{what:<24} {statistics.median(found):.3f} [{low:.3f} – {high:.3f}], {len(found)} rounds: {verdict}")
    if not good:
        sys.exit("promises broken")


if __name__ == "__main__":
    main()
