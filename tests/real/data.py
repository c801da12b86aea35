#!/usr/bin/env python3
"""Writes test data to standard output: data.py KIND SIZE, with a SIZE such as 100M. The bytes are the same each time, and the
last line is complete.

KIND: log (web access log), json (one object per line), csv, text (words, some not ASCII), sql (INSERT statements),
fasta (one sequence), fastq (reads of the same sequence), bed (intervals), noise (random)."""

import os
import random
import sys

CHANCE = random.Random(40)
PATHS = ["/%s/%s" % (a, b) for a in ("img", "api", "user", "shop", "doc", "feed") for b in range(500)]
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64)", "curl/7.88.1", "Googlebot/2.1", "Mozilla/5.0 (Windows NT 10.0)"]
WORDS = [
    "".join(
        CHANCE.choices(
            "etaoinshrdlucmfwypvbgkjqxzäöüéñ", [50] * 12 + [20] * 8 + [5] * 6 + [1] * 5, k=CHANCE.randrange(2, 11)
        )
    )
    for _ in range(30000)
]
CODES = [200] * 8 + [404, 500]


def address():
    n = CHANCE.getrandbits(32)
    return "%d.%d.%d.%d" % (n >> 24, n >> 16 & 255, n >> 8 & 255, n & 255)


def log(n):
    return '%s - - [25/Nov/2026:10:%02d:%02d +0000] "GET %s HTTP/1.1" %d %d "-" "%s"\n' % (
        address(), n // 60 % 60, n % 60, CHANCE.choice(PATHS), CHANCE.choice(CODES), CHANCE.getrandbits(17), CHANCE.choice(AGENTS)
    )  # fmt: skip


def json(n):
    return '{"id":%d,"path":"%s","status":%d,"bytes":%d,"client":{"address":"%s","agent":"%s"}}\n' % (
        n, CHANCE.choice(PATHS), CHANCE.choice(CODES), CHANCE.getrandbits(17), address(), CHANCE.choice(AGENTS)
    )  # fmt: skip


def csv(n):
    return "%d,%s,%s,%.3f\n" % (n, CHANCE.choice(WORDS), address(), CHANCE.random() * 1000)


def text(_):
    return " ".join(CHANCE.choices(WORDS, k=12)) + "\n"


def sql(n):
    return "INSERT INTO t VALUES (%d, '%s', '%s', %d);\n" % (
        n,
        CHANCE.choice(WORDS),
        address(),
        CHANCE.getrandbits(17),
    )


def bed(_):
    begin = CHANCE.randrange(100_000_000)
    return "chr%d\t%d\t%d\tread\n" % (CHANCE.randrange(1, 20), begin, begin + CHANCE.randrange(50, 500))


GENOME = None


def genome():
    global GENOME
    GENOME = GENOME or "".join(random.Random(41).choices("ACGT", k=400_000))
    return GENOME


def fasta(n):
    return ">chr1\n" + genome() + "\n" if n == 0 else ""


def fastq(n):
    begin = CHANCE.randrange(len(genome()) - 150)
    read = genome()[begin : begin + 150]
    return "@read%d\n%s\n+\n%s\n" % (n, read, "I" * 150)


def noise(_):
    return CHANCE.randbytes(65536)


def blocks(kind):
    make, n = globals()[kind], 0
    while True:
        parts = [make(n + i) for i in range(16 if kind == "noise" else 2000)]
        n += len(parts)
        yield b"".join(parts) if kind == "noise" else "".join(parts).encode()


def write(kind, size, out):
    """Writes blocks until at least `size` bytes are written."""
    for block in blocks(kind):
        out.write(block)
        size -= len(block)
        if size <= 0 or kind == "fasta":
            return


def main():
    kind, size = sys.argv[1:]
    size = int(size[:-1]) << {"K": 10, "M": 20}[size[-1]]
    # The output for a smaller size is the beginning of that for a larger one, so one cached file per kind serves all sizes.
    cache = os.path.join(os.environ["REAL_CACHE"], kind) if "REAL_CACHE" in os.environ else os.devnull
    if cache == os.devnull:
        write(kind, size, sys.stdout.buffer)
        return
    if not os.path.exists(cache) or os.path.getsize(cache) < size and kind != "fasta":
        with open(cache, "wb") as file:
            write(kind, size, file)
    with open(cache, "rb") as file:
        left = os.path.getsize(cache) if kind == "fasta" else size
        while left > 0:
            block = file.read(min(left, 1 << 20))
            left -= len(block)
            if left <= 0 and kind not in ("noise", "fasta"):
                block = block[: block.rfind(b"\n") + 1]
            sys.stdout.buffer.write(block)


main()
