#!/usr/bin/env python3
"""Measures the promises on `pipemark compare` and the suite large-pipe.

    bench/compare.py [--only WORD] [--rounds N]

Ratios are measured as in bench/run.py. For promises on verdicts, pipemark compares real samples of a trial with other samples of
the same trial, and with samples of the trial slowed down by 5 %."""

import copy
import json
import random
import subprocess
import tempfile
from pathlib import Path

import run
from run import PIPEMARK, alternating, command, pair, promise, rate, requested

# Exit codes with --fail-on better,worse.
WORSE, BETTER = 10, 13


def bw_pipe(rounds):
    """Measures what lmbench's bw_pipe measures: a fixed total in messages of one size. The C pair runs for a fixed time instead."""
    for block, place in ((65536, "0:0"), (65536, "0:1"), (4096, "0:0")):
        source, sink = place.split(":")
        flags = ["--block", str(block), "--place", place, "--total", "400m"]
        ratios = alternating(rounds, lambda: total_rate(*flags), lambda: pair(block, 0, source, sink))
        # pipemark may be faster than the pair of C programs.
        promise(f"bw_pipe, messages of {block} bytes on CPUs {place}: pipemark / C pair", ratios, least=0.97)


def total_rate(*flags):
    done = command([PIPEMARK, "bw", "--runs", "1", "--json", "-", *flags])
    return requested(done.stdout)[-1]["estimate"]["throughput"]["median"]


def large_pipe(rounds):
    base = ["--block", "128k", "--capacity", "4k", "--place", "cross"]
    both = ["--block", "128k", "--capacity", "32k", "--send", "vmsplice", "--place", "cross"]
    best = "--block 128k --capacity 1m --send vmsplice --pages huge --recv splice --place cross".split()
    promise(
        "LP+ZC (32 KiB, vmsplice and read) / base (4 KiB, write and read), 128 KiB across two CPUs",
        alternating(rounds, lambda: rate(*both), lambda: rate(*base)),
        least=1.5,
    )
    promise(
        "today's best (1 MiB, vmsplice of huge pages and splice) / base",
        alternating(rounds, lambda: rate(*best), lambda: rate(*base)),
        least=10,
    )


def measured(*flags):
    return json.loads(command([PIPEMARK, "bw", "--json", "-", *flags]).stdout)


def compared(directory, base, new, *flags):
    """The exit code of `pipemark compare` for two documents."""
    files = []
    for name, document in (("base.json", base), ("new.json", new)):
        path = Path(directory, name)
        path.write_text(json.dumps(document))
        files.append(path)
    words = [PIPEMARK, "compare", *files, "--fail-on", "better,worse", "--quiet", *flags]
    return subprocess.run(words, capture_output=True).returncode


def with_samples(document, samples):
    document = copy.deepcopy(document)
    document["trials"] = [t for t in document["trials"] if t["params"]["link"] != "memory-copy"]
    document["trials"][0]["samples"] = samples
    return document


def same_against_same(_):
    """Makes 200 comparisons of two sets of 10 runs, drawn from 60 real runs of one trial. Each reported difference is false."""
    for place in ("cross", "same"):
        document = measured("--runs", "60", "--time", "100ms", "--place", place)
        samples = requested(json.dumps(document))[-1]["samples"]
        draw = random.Random(2002)
        false = 0
        with tempfile.TemporaryDirectory() as directory:
            for _ in range(200):
                drawn = draw.sample(samples, 20)
                base, new = with_samples(document, drawn[:10]), with_samples(document, drawn[10:])
                false += compared(directory, base, new) in (WORSE, BETTER)
        promise(
            f"false verdicts in 200 comparisons of a trial with itself, {place}", [false / 200], most=0.05, unit=""
        )


def planted(_):
    """Checks that the default settings detect a writer that computes for 5 % of a block's time before each write."""
    for place in ("0:0",):
        block = 64 << 10
        found = 0
        tries = 10
        for _ in range(tries):
            delay = round(0.05 / 0.95 * block / rate("--place", place, "--block", str(block), time="500ms") * 1e9)
            with tempfile.NamedTemporaryFile(suffix=".json") as file:
                words = ["bw", "--block", str(block), "--place", place, "--write-delay", f"0,{delay}ns"]
                command([PIPEMARK, *words, "--quiet", "--json", file.name])
                choice = ["--base", "write-delay=0", "--new", f"write-delay={delay}ns"]
                done = subprocess.run(
                    [PIPEMARK, "compare", file.name, *choice, "--fail-on", "better,worse", "--json", "-"],
                    capture_output=True,
                    text=True,
                )
                change = json.loads(done.stdout)["groups"][0]["changes"][0]["comparison"]
                print(
                    f"        planted {delay} ns: {change['change']:+.3f} [{change['low']}, {change['high']}], "
                    f"{change['base_runs']} runs, {change['pairing']}: {change['verdict']}",
                    flush=True,
                )
                found += done.returncode == WORSE
        promise(f"a planted 5 % found in real runs of 64 KiB on CPUs {place}", [found / tries], least=0.9, unit="")


if __name__ == "__main__":
    run.main([bw_pipe, large_pipe, same_against_same, planted], __doc__)
