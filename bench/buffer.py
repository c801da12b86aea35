#!/usr/bin/env python3
"""Times a pipeline of a steady producer and a consumer that pauses: without a buffer, with `pipemark relay --buffer`, and with
`mbuffer` between the two.

The producer writes 1 MiB and sleeps for 1/64 s, 320 times. The consumer takes 64 MiB, then works for 0.8 s without reading.

    bench/buffer.py [--rounds N]

Prints the median of N alternating runs (default: 5), and the CPU time of the stage between them."""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parent.parent / "target"))
PRODUCER = """
import os, time
for _ in range(320):
    block = memoryview(bytes(1 << 20))
    while block:
        block = block[os.write(1, block):]
    time.sleep(1 / 64)
"""
CONSUMER = """
import os, time
block = b"x"
while block:
    left = 64 << 20
    while left > 0 and (block := os.read(0, 1 << 16)):
        left -= len(block)
    time.sleep(0.8 if block else 0)
"""
STAGES = {
    "nothing": None,
    "pipemark relay --buffer 256m": [TARGET / "release/pipemark", "relay", "--buffer", "256m"],
    "mbuffer -q -m 256M": ["mbuffer", "-q", "-m", "256M"],
}


def run(stage):
    begin = time.monotonic()
    producer = subprocess.Popen([sys.executable, "-c", PRODUCER], stdout=subprocess.PIPE)
    between = producer if stage is None else subprocess.Popen(stage, stdin=producer.stdout, stdout=subprocess.PIPE)
    consumer = subprocess.Popen([sys.executable, "-c", CONSUMER], stdin=between.stdout)
    for process in {producer, between}:
        process.stdout.close()
    _, status, usage = os.wait4(between.pid, 0)
    between.returncode = os.waitstatus_to_exitcode(status)
    if any((producer.wait(), between.returncode, consumer.wait())):
        sys.exit(f"{stage}: a process failed")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rounds", type=int, default=5)
rounds = parser.parse_args().rounds
results = {name: [] for name in STAGES}
for _ in range(rounds):
    for name, stage in STAGES.items():
        results[name].append(run(stage))
for name, runs in results.items():
    real, cpu = (statistics.median(figures) for figures in zip(*runs))
    print(f"{name:30} {real:.2f} s" + (f", {cpu:.2f} s of CPU" if STAGES[name] else ""))
