#!/usr/bin/env python3
"""Measures from which CPU pressure on a measurement of pipemark changes, which is when pipemark should warn.

    bench/pressure.py [--seconds S] [--pipemark PROGRAM]

Loops that are busy for a share of each 10 ms run on all CPUs, and beside them `pipemark bw`, with each share in turn in every
round. Before each run, the pressure is sampled for 200 ms, as pipemark does before it measures. A table has for each share the
pressure, and the throughput relative to that without loops in the same round, with its 95 % interval. The level is the lowest
pressure from which on the throughput differs by more than 5 %, the limit below which findings call results the same.

Needs an idle machine: ends with 1 if the pressure without loops is above 2 %."""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

from run import interval

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Shares of the time in which the loops are busy.
SHARES = [0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7]
MAX_IDLE, CHANGE = 2.0, 0.05
LOOP = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
share = float(sys.argv[2])
while True:
    end = time.perf_counter() + 0.01 * share
    while time.perf_counter() < end:
        pass
    time.sleep(0.01 * (1 - share))
"""


def stalled():
    """Microseconds since boot in which a task waited for a CPU."""
    with open("/proc/pressure/cpu", encoding="ascii") as file:
        return int(file.readline().split("total=")[1])


def pressure(seconds=0.2):
    before, start = stalled(), time.monotonic()
    time.sleep(seconds)
    return (stalled() - before) / 1e4 / (time.monotonic() - start)


def throughput(pipemark, place):
    words = [pipemark, "bw", "--place", place, "--runs", "1", "--time", "100ms", "--no-save", "--quiet", "--json", "-"]
    document = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    [sample] = next(one["samples"] for one in document["trials"] if one["params"]["link"] == "pipe")
    return sample["bytes"] / sample["ns"]


def one_run(pipemark, share):
    loops = []
    try:
        for cpu in os.sched_getaffinity(0) if share else []:
            loops.append(subprocess.Popen([sys.executable, "-c", LOOP, str(cpu), str(share)]))
        time.sleep(0.5)
        return pressure(), {place: throughput(pipemark, place) for place in ("same", "cross")}
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=180)
    options.add_argument("--pipemark", default=os.path.join(ROOT, "target/release/pipemark"))
    options = options.parse_args()
    idle = pressure(2)
    if idle > MAX_IDLE:
        sys.exit(f"the CPU pressure is {idle:.0f} % without any loop; measure on an idle machine")
    end, rounds = time.monotonic() + options.seconds, []
    while time.monotonic() < end:
        shares = random.sample(SHARES, len(SHARES))
        rounds.append({share: one_run(options.pipemark, share) for share in shares})
    changed = {}
    print(f"{len(rounds)} rounds\nbusy  pressure  same core               two cores")
    for share in SHARES:
        level, cells, differs = statistics.median(one[share][0] for one in rounds), [], False
        for place in ("same", "cross"):
            ratios = [one[share][1][place] / one[0][1][place] for one in rounds]
            low, high = interval(ratios, 0.05)
            differs |= high < 1 - CHANGE or low > 1 + CHANGE
            cells.append(f"{statistics.median(ratios):.3f} ({low:.3f}–{high:.3f})")
        changed[level] = differs
        print(f"{share:4.0%}  {level:6.1f} %  {'   '.join(cells)}{'   differs' if differs else ''}")
    above = [level for level in sorted(changed) if all(changed[other] for other in changed if other >= level)]
    print(f"level: {above[0]:.0f} %" if above else "level: none of these")


main()
