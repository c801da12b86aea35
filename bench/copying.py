#!/usr/bin/env python3
"""Compares `pipeio::copy` with `std::io::copy`, `tokio::io::copy`, cat and pv, for pairs of kinds of file, on one CPU and two.

    bench/copying.py [--budget SECONDS] [--rounds N] [--only WORD] [--fresh]
    bench/copying.py --gifts [--rounds N]    # compares `Gift::send` with write, by block size, each byte newly written

First: cargo build --release -p pipeio --example ways. A cell is a pair of kinds and a placement. A round runs all five programs
once per cell, in random order; the cells are interleaved. A ratio is the rival's time divided by ours in the same round.
Results are kept in build/copying.jsonl. The next call continues there, unless --fresh is given. With 95 % probability, the
intervals of all cells contain the true medians (sign test, Bonferroni over cells and rivals), so no cell is conclusive before
about 12 rounds. Exits with 1 if an interval lies below 1, so that a rival was faster.
"""

import argparse
import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

from run import PIPEMARK, ROOT, interval

WAYS = PIPEMARK.parent / "examples/ways"
KEPT = ROOT / "build/copying.jsonl"
MIB = 1 << 20
SIZE = 192 * MIB
SOURCES = ("pipe", "file", "socket")
SINKS = ("pipe", "file", "socket", "null")


def programs():
    found = {way: [str(WAYS), way] for way in ("pipeio", "std", "tokio")}
    found |= {name: words for name, words in {"cat": ["cat"], "pv": ["pv", "-q"]}.items() if shutil.which(name)}
    return found


def seconds(cell, words, path):
    """Seconds until the last process has ended."""
    source, sink, place = cell
    cpus = sorted(os.sched_getaffinity(0))
    pinned = ["taskset", "-c", str(cpus[0]) if place == "one" else f"{cpus[0]},{cpus[-1]}"]
    with contextlib.ExitStack() as stack:

        def pair(kind):
            """The writing end and the reading end."""
            ends = [end.detach() for end in socket.socketpair()] if kind == "socket" else os.pipe()[::-1]
            return [stack.enter_context(os.fdopen(end, "rb" if which else "wb", 0)) for which, end in enumerate(ends)]

        out = f"{path}.out"
        # The file is emptied outside the measured time.
        with open(out, "ab") as file:
            file.truncate(0)
        feed = drain = None
        begin = time.monotonic()
        if source == "file":
            taken = stack.enter_context(open(path, "rb"))
        else:
            near, taken = pair(source)
            feed = subprocess.Popen([*pinned, "head", "-c", str(SIZE), path], stdout=near)
            near.close()
        if sink in ("file", "null"):
            given = stack.enter_context(open(out if sink == "file" else "/dev/null", "wb"))
        else:
            given, far = pair(sink)
            drain = subprocess.Popen([*pinned, "sh", "-c", "cat >/dev/null"], stdin=far)
            far.close()
        copy = subprocess.Popen([*pinned, *words], stdin=taken, stdout=given, stderr=subprocess.PIPE)
        taken.close()
        given.close()
        message = copy.communicate(timeout=120)[1]
        failed = copy.returncode or (feed and feed.wait(120)) or (drain and drain.wait(120))
        took = time.monotonic() - begin
        if failed or (sink == "file" and os.path.getsize(out) != SIZE):
            sys.exit(f"{' '.join(words)}, {cell}: {message.decode()}")
    return took


def kept(program):
    rounds = defaultdict(list)
    if KEPT.exists():
        for record in map(json.loads, KEPT.read_text().splitlines()):
            if record["program"] == program:
                rounds[tuple(record["cell"])].append(record["seconds"])
    return rounds


def measure(cells, words, rounds, options, program):
    KEPT.parent.mkdir(exist_ok=True)
    end = time.monotonic() + options.budget
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="bench-copy-", dir=memory) as directory, open(KEPT, "a") as file:
        path = f"{directory}/bytes"
        with open(path, "wb") as content:
            content.write(random.Random(1).randbytes(MIB) * (SIZE // MIB))
        while time.monotonic() < end:
            least = min(len(rounds[cell]) for cell in cells)
            if least >= options.rounds:
                return
            for cell in random.sample(cells, len(cells)):
                if len(rounds[cell]) > least or time.monotonic() >= end:
                    continue
                took = {name: seconds(cell, words[name], path) for name in random.sample(list(words), len(words))}
                rounds[cell].append(took)
                file.write(json.dumps({"program": program, "cell": cell, "seconds": took}) + "\n")
                file.flush()


def show(cells, rivals, rounds):
    """Prints the results of each cell. Returns whether no rival is faster."""
    error = 0.05 / (len(cells) * len(rivals))
    beaten = []
    for cell in cells:
        line = []
        for rival in rivals:
            ratios = [took[rival] / took["pipeio"] for took in rounds[cell] if rival in took]
            if not ratios:
                continue
            low, high = interval(ratios, error)
            line.append(f"{rival} {statistics.median(ratios):5.2f}× [{low:.2f} – {high:.2f}]")
            if high < 1:
                beaten.append((cell, rival))
        print(f"{cell[0]:>6} → {cell[1]:<6} {cell[2]:<3}  {len(rounds[cell]):>3} rounds  {'  '.join(line)}")
    for cell, rival in beaten:
        print(f"BROKEN  {cell[0]} → {cell[1]}, {cell[2]}: {rival} is faster than pipeio::copy")
    return not beaten


def gifts(rounds, places):
    """Compares `Gift::send` with write. Both send to cat through a pipe of 1 MiB. There is no promise on this ratio."""
    cpus = sorted(os.sched_getaffinity(0))
    for place, block in itertools.product(places, (16, 32, 64, 256, 1024)):
        pinned = ["taskset", "-c", str(cpus[0]) if place == "one" else f"{cpus[0]},{cpus[-1]}"]
        ratios = []
        for _ in range(rounds):
            took = {}
            for way in random.sample(["write", "gift"], 2):
                out, into = os.pipe()
                fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, MIB)
                begin = time.monotonic()
                made = subprocess.Popen([*pinned, WAYS, way, str(block << 10)], stdout=into, stderr=subprocess.DEVNULL)
                taken = subprocess.Popen([*pinned, "sh", "-c", "cat >/dev/null"], stdin=out)
                os.close(out)
                os.close(into)
                if made.wait(60) or taken.wait(60):
                    sys.exit(f"{way} {block} KiB failed")
                took[way] = time.monotonic() - begin
            ratios.append(took["write"] / took["gift"])
        low, high = interval(ratios, 0.05 / 10)
        print(
            f"{block:>5} KiB, {place} CPU: write / gift {statistics.median(ratios):.2f} [{low:.2f} – {high:.2f}], {len(ratios)} rounds"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--budget", type=float, default=240, metavar="SECONDS", help="stop after this time [default: 240]"
    )
    parser.add_argument("--rounds", type=int, default=40, help="rounds per cell [default: 40]")
    parser.add_argument(
        "--only", metavar="WORD", help="only cells whose name contains WORD, such as 'pipe → file, one'"
    )
    parser.add_argument("--fresh", action="store_true", help="discard earlier results")
    parser.add_argument("--gifts", action="store_true", help="only compare gifts with write")
    options = parser.parse_args()
    if options.fresh:
        KEPT.unlink(missing_ok=True)
    if not WAYS.exists():
        sys.exit("build it first: cargo build --release -p pipeio --example ways")
    words = programs()
    places = ["one", "two"][: len(os.sched_getaffinity(0))]
    if options.gifts:
        return gifts(options.rounds, places)
    cells = [(source, sink, place) for source in SOURCES for sink in SINKS for place in places]
    cells = [cell for cell in cells if not options.only or options.only in f"{cell[0]} → {cell[1]}, {cell[2]}"]
    if not cells:
        sys.exit(f"--only {options.only}: no such cell")
    program = hashlib.sha256(WAYS.read_bytes()).hexdigest()[:16]
    rounds = kept(program)
    measure(cells, words, rounds, options, program)
    if not show(cells, [name for name in words if name != "pipeio"], rounds):
        sys.exit("promises broken")


if __name__ == "__main__":
    main()
