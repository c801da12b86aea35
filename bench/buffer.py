#!/usr/bin/env python3
"""Times a pipeline of a steady producer and a consumer that pauses: without a buffer, with `pipemark relay --buffer`, and with
`mbuffer` between the two.

The producer writes 1 MiB and sleeps for 1/64 s, 320 times. The consumer takes 64 MiB, then works for 0.8 s without reading.

    bench/buffer.py [--rounds N]

Prints the median of N alternating runs (default: 9), the CPU time of the stage between them, and the promises in the form of
bench/run.py."""

import os
import shutil
import statistics
import subprocess
import sys
import time

import run
from run import PIPEMARK, promise

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
    "pipemark relay --buffer 256m": [PIPEMARK, "relay", "--buffer", "256m"],
    "mbuffer -q -m 256M": ["mbuffer", "-q", "-m", "256M"],
}


def times(stage):
    """The real time of the pipeline and the CPU time of the stage, in seconds."""
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


def buffers(rounds):
    if not shutil.which("mbuffer"):
        print("skipped  mbuffer: it is not installed (Debian's mbuffer)")
        return
    results = {name: [] for name in STAGES}
    for _ in range(rounds):
        for name, stage in STAGES.items():
            results[name].append(times(stage))
    for name, runs in results.items():
        real, cpu = (statistics.median(figures) for figures in zip(*runs))
        print(f"{name:30} {real:.2f} s" + (f", {cpu:.2f} s of CPU" if STAGES[name] else ""))
    _, ours, theirs = results.values()
    for index, what in enumerate(("real time of the pipeline", "CPU time of the buffer")):
        ratios = [their[index] / our[index] for our, their in zip(ours, theirs)]
        promise(f"{what}: mbuffer -m 256M / relay --buffer 256m", ratios, least=0.97 if index == 0 else 1.0)


if __name__ == "__main__":
    run.main([buffers], __doc__)
