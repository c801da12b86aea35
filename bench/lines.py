#!/usr/bin/env python3
"""Measures the promises on `pipemark lines`. Each is a ratio of two alternating measurements.

    cargo build --release --manifest-path entrants/lines/Cargo.toml --target-dir build/entrants/lines
    bench/lines.py [--only WORD] [--rounds N]

Output and exit code are those of bench/run.py. The same pipe carries 6 or 1.6 GiB/s, depending on whether two programs share a
core, and a virtual machine's host may change that at any moment. So consider the range too, not only the median. Needs 1.4 GiB
of memory for the files."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import run
from run import PIPEMARK, ROOT, alternating, promise

BASELINE = ROOT / "build/entrants/lines/release/std-baseline"
LONG = ("2024-01-01T00:00:00 host app[1]: " + "the quick brown fox jumps over the lazy dog " * 6)[:284]
SHORT = "abcdefg"
# A file must be large enough to make process start-up negligible.
SIZE = 1 << 30
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def write(directory, piece, size):
    """Writes a file of at least `size` bytes that repeats `piece`."""
    path = Path(directory, "lines")
    block = piece.encode() * max(1, (1 << 20) // len(piece))
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(block)
    return path


def from_file(command, path):
    """The number of files per second that the command passes to /dev/null."""
    with open(path, "rb") as source:
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL)
        status = process.wait()
        elapsed = time.monotonic() - start
    if status != 0:
        sys.exit(f"{command} failed: status {status}")
    return 1 / elapsed


def fed_by_yes(command, says, line, seconds=0.2, warm_up=0.05):
    """Bytes per second from `yes LINE` to `command`. The command prints the number of bytes on the output `says`."""
    outputs = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, says: subprocess.PIPE}
    consumer = subprocess.Popen(command, stdin=subprocess.PIPE, **outputs)
    source = subprocess.Popen(["yes", line], stdout=consumer.stdin)
    consumer.stdin.close()
    written = lambda: int(re.search(r"wchar: (\d+)", Path(f"/proc/{source.pid}/io").read_text())[1])
    time.sleep(warm_up)
    before, start = written(), time.monotonic()
    time.sleep(seconds)
    passed, elapsed = written() - before, time.monotonic() - start
    source.kill()
    source.wait()
    arrived = int(re.search(r"(\d+) bytes", getattr(consumer, says).read().decode())[1])
    consumer.wait()
    if arrived < passed:
        sys.exit(f"{command}: {arrived} bytes arrived, and yes wrote {passed}")
    return passed / elapsed


# Each row: name, repeated piece, file size in bytes, flags of `lines`, and the promised ratio.
FILES = [
    ("285-byte lines, all threads", LONG + "\n", SIZE, [], 10),
    ("285-byte lines, one thread", LONG + "\n", SIZE, ["--threads", "1"], 1),
    ("8-byte lines, one thread", SHORT + "\n", SIZE // 16, ["--threads", "1"], 6),
    ("all newlines, one thread", "\n", SIZE // 128, ["--threads", "1"], 1),
    ("one huge line, one thread", "x" * 97, SIZE // 4, ["--threads", "1"], 1),
]


def files(rounds):
    """Compares with std-baseline, the fastest of the published programs, from a file in memory to /dev/null."""
    for name, piece, size, flags, least in FILES:
        with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
            path = write(directory, piece, size)
            ratios = alternating(
                rounds, lambda: from_file([PIPEMARK, "lines", *flags], path), lambda: from_file([BASELINE], path)
            )
        promise(f"file, {name}: pipemark lines / std-baseline", ratios, least=least)


def cat(rounds):
    """Compares all threads on 8-byte lines of a file in memory with cat, which only copies the file."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        path = write(directory, SHORT + "\n", SIZE)
        ratios = alternating(
            rounds, lambda: from_file([PIPEMARK, "lines"], path), lambda: from_file(["cat", str(path)], path)
        )
    promise("file, 8-byte lines, all threads: pipemark lines / cat FILE", ratios, least=0.4)


def yes(rounds):
    """Compares with a sink that only reads, both fed by yes. Whether two processes that contend for a lock run in step is decided
    at their start, so they are started often."""
    ours, sink = ([PIPEMARK, "lines", "--stats"], "stderr"), ([PIPEMARK, "sink"], "stdout")
    for name, line, times, least in (("285-byte", LONG, 10, 0.9), ("8-byte", SHORT, 10, 0.65)):
        ratios = alternating(times * rounds, lambda: fed_by_yes(*ours, line), lambda: fed_by_yes(*sink, line))
        promise(f"yes, {name} lines: pipemark lines / pipemark sink", ratios, least=least)


if __name__ == "__main__":
    run.main([files, cat, yes], __doc__)
