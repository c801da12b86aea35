#!/usr/bin/env python3
"""Measures the promises on chains and `pipemark relay`. Each is a ratio of two alternating measurements.

    bench/chain.py [--only WORD] [--rounds N]

Output and exit code are those of bench/run.py. Needs 2 GiB of disk or memory for a file in the temporary directory."""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import run
from run import PIPEMARK, alternating, command, interval, promise, requested


def chain(stage, length, total, *flags):
    """Runs a chain once. Returns bytes per second while data flows, and seconds from the start of the first process to the end of
    the last."""
    words = [
        "chain",
        "--length",
        length,
        "--stage",
        stage,
        "--total",
        total,
        "--runs",
        "1",
        "--json",
        "-",
        "--quiet",
        *flags,
    ]
    done = command([PIPEMARK, *words])
    trial = requested(done.stdout)[-1]
    if trial["status"] != "ok":
        sys.exit(f"chain of {length} {stage}: {trial['reason']}")
    return trial["estimate"]["throughput"]["median"], trial["estimate"]["real_ns"]["median"] / 1e9


def as_time(rounds):
    """Compares the real time of a chain of commands, as in time(1), with that of a shell's pipeline."""
    total = "1050000000"
    for length in (0, 2):
        pipeline = " | ".join([f"head -c {total} /dev/zero"] + ["cat"] * length) + " > /dev/null"

        def by_time():
            begin = time.monotonic()
            subprocess.run(["sh", "-c", pipeline], check=True)
            return time.monotonic() - begin

        ours = ["--source", "head -c {total} /dev/zero"]
        # Runs of a tenth of a second differ by a quarter, so a median needs 31 of them to be accurate to 5 %.
        rounds_here = max(rounds, 31 if length == 0 else 9)
        ratios = alternating(rounds_here, lambda: chain("cat", length, total, *ours)[1], by_time)
        # With stages, scheduling makes equal runs differ by more.
        bounds = {"least": 0.95, "most": 1.05} if length == 0 else {}
        promise(f"real time of {length} stages and 1.05 GB: chain / time sh -c", ratios, **bounds)


def per_hop(rounds):
    """Compares a chain of relays with a chain of cats, while data flows."""
    for length, total in ((16, "1g"), (64, "512m")):
        ratios = alternating(
            min(rounds, 5), lambda: chain("relay", length, total)[0], lambda: chain("cat", length, total)[0]
        )
        promise(f"throughput per hop of {length} stages: relay / cat", ratios, least=20)


def long_chains(rounds):
    """Compares 1024 relays with 1024 cats: the time from the first start to the last end, and the start alone."""
    total = "128m"
    rounds = min(rounds, 3)
    ratios = alternating(rounds, lambda: chain("cat", 1024, total)[1], lambda: chain("relay", 1024, total)[1])
    promise("real time of 1024 stages and 128 MiB, start included: cat / relay", ratios, least=10)
    for stage in ("cat", "relay"):
        seconds = [chain(stage, 1024, "64k")[1] / 3 for _ in range(rounds)]
        promise(f"start and end of 1024 {stage} processes / 3 s", seconds, most=1.0)


def file_to(stage, place, path):
    """Bytes per second from a file through one stage into `pipemark sink`."""
    on = {"same": ("taskset -c 0", "taskset -c 0"), "cross": ("taskset -c 0", "taskset -c 1"), "free": ("", "")}[place]
    pipeline = f"{on[0]} {stage} <{path} | {on[1]} {PIPEMARK} sink 2>/dev/null >&2"
    begin = time.monotonic()
    subprocess.run(["sh", "-c", pipeline], check=True)
    return 1 / (time.monotonic() - begin)


def one_relay(rounds):
    """Compares relay with cat and pv as the only stage between a fast source and sink, in every placement, from a pipe and from
    a file."""
    others = ["cat"] + (["pv -q"] if shutil.which("pv") else [])
    if len(others) == 1:
        print("skipped  pv: it is not installed (Debian's pv)")
    with tempfile.NamedTemporaryFile(prefix="pipemark-bench-") as file:
        subprocess.run([PIPEMARK, "gen", "random", "--total", "1g"], stdout=file, check=True)
        for place in ("same", "cross", "free"):
            for other in others:
                for send, recv in (("splice", "splice"), ("write", "read")):
                    flags = ["--place", place, "--send", send, "--recv", recv]
                    ratios = alternating(
                        rounds,
                        lambda: chain("relay", 1, "512m", *flags)[0],
                        lambda: chain(other, 1, "512m", *flags)[0],
                    )
                    promise(f"{send} → one stage → {recv}, place {place}: relay / {other}", ratios, least=1.0)
                ratios = alternating(
                    rounds,
                    lambda: file_to(f"{PIPEMARK} relay", place, file.name),
                    lambda: file_to(other, place, file.name),
                )
                promise(f"file → one stage → pipemark sink, place {place}: relay / {other}", ratios, least=1.0)


def progress_cost(rounds):
    """Compares relay --progress with relay. Both may differ by at most 1 %, so it takes hundreds of rounds."""
    for place, least in (("taskset -c 0", 200), ("taskset -c 0,1", 400)):
        for flags in ("", " --buffer 64m"):

            def seconds(progress):
                stage = f"{PIPEMARK} relay{flags}{progress} 2>/dev/null"
                begin = time.monotonic()
                subprocess.run(
                    [*place.split(), "sh", "-c", f"head -c 1G /dev/zero | {stage} | cat >/dev/null"], check=True
                )
                return time.monotonic() - begin

            ratios = alternating(max(rounds, least), lambda: seconds(" --progress"), lambda: seconds(""))
            low, high = interval(ratios, 0.05)
            what = f"real time of 1 GiB, {place}: relay{flags} --progress / relay{flags}"
            promise(
                f"{what}, lower end, median and upper end of the 95 % interval", [low, statistics.median(ratios), high]
            )
            promise(f"{what}, upper end", [high], most=1.01)


def limit(_):
    """Times ten seconds' worth of bytes through relay --limit."""
    for rate in (1, 100, 500):
        begin = time.monotonic()
        pipeline = f"head -c {10 * rate}M /dev/zero | {PIPEMARK} relay --limit {rate}m | cat >/dev/null"
        subprocess.run(["sh", "-c", pipeline], check=True)
        took = [(time.monotonic() - begin) / 10]
        promise(f"time of {10 * rate} MiB through relay --limit {rate}m / 10 s", took, least=0.98, most=1.02)


if __name__ == "__main__":
    run.main([as_time, per_hop, long_chains, one_relay, progress_cost, limit], __doc__)
