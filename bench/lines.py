#!/usr/bin/env python3
"""What `pipemark lines` promises, each as a ratio of two things measured in the same run.

    cargo build --release -p pipemark
    cargo build --release --manifest-path entrants/lines/Cargo.toml --target-dir build/entrants/lines
    bench/lines.py [ROUNDS]

Each round runs everything once, in a shuffled order; a ratio is the median over the rounds of ratios within a round.
Programs that share no core with each other and programs that do are as far apart as 6 and 1.6 GiB/s through the same
pipe, and a virtual machine's host may change that any second: so the spread is shown too.
"""

import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
PIPEMARK = os.path.join(TARGET, "release", "pipemark")
BASELINE = os.path.join(ROOT, "build", "entrants", "lines", "release", "std-baseline")
LONG = ("2024-01-01T00:00:00 host app[1]: " + "the quick brown fox jumps over the lazy dog " * 6)[:284]
SHORT = "abcdefg"
# Large enough that starting a process does not show.
SIZE = 1 << 30


def from_file(command, path):
    """Seconds for a whole file to /dev/null, and CPU seconds."""
    with open(path, "rb") as source:
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        elapsed = time.monotonic() - start
        process.returncode = status
    if status != 0:
        sys.exit(f"{command} failed: status {status}")
    return elapsed, used.ru_utime + used.ru_stime


def fed_by_yes(command, line, seconds=1.0):
    """Bytes per second that `yes LINE` got rid of through `command`, which says on its outputs how many arrived."""
    reader, writer = os.pipe()
    consumer = subprocess.Popen(command, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    start = time.monotonic()
    source = subprocess.Popen(["yes", line], stdout=writer)
    os.close(reader)
    os.close(writer)
    time.sleep(seconds)
    source.kill()
    elapsed = time.monotonic() - start
    source.wait()
    said = b"".join(consumer.communicate()).decode()
    return int(re.search(r"(\d+) bytes", said)[1]) / elapsed


def ratios(title, promise, measure, contestants, rounds):
    """Prints the median ratio of the first contestant to the second, and the spread."""
    figures = []
    for _ in range(rounds):
        order = list(range(2))
        random.shuffle(order)
        measured = {index: measure(contestants[index]) for index in order}
        figures.append(measured[0] / measured[1])
    ratio = statistics.median(figures)
    verdict = "holds" if ratio >= promise else "DOES NOT HOLD"
    print(f"{title:58} {ratio:6.2f}  (promised {promise}; {min(figures):.2f} to {max(figures):.2f})  {verdict}", flush=True)
    return ratio >= promise


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    one = [PIPEMARK, "lines", "--threads", "1"]
    auto = [PIPEMARK, "lines"]
    good = True
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        def made(name, piece, size=SIZE):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                block = piece * max(1, (1 << 20) // len(piece))
                while file.tell() < size:
                    file.write(block)
            return path

        def speed(path):
            return lambda command: 1 / from_file(command, path)[0]

        long, short = made("long", LONG.encode() + b"\n"), made("short", SHORT.encode() + b"\n", SIZE // 16)
        empty, huge = made("empty", b"\n", SIZE // 128), made("huge", b"x" * 97, SIZE // 4)
        for title, promise, path, ours in [
            ("file, 285-byte lines, all threads / std-baseline", 10, long, auto),
            ("file, 285-byte lines, one thread / std-baseline", 1, long, one),
            ("file, 8-byte lines, one thread / std-baseline", 6, short, one),
            ("file, all newlines, one thread / std-baseline", 1, empty, one),
            ("file, one huge line, one thread / std-baseline", 1, huge, one),
        ]:
            good &= ratios(title, promise, speed(path), [ours, [BASELINE]], rounds)

    # The top line: what a sink which only reads takes from yes.
    top, ours = [PIPEMARK, "sink"], ["sh", "-c", f"exec {PIPEMARK} lines --stats > /dev/null"]
    good &= ratios("yes, 285-byte lines / top line", 0.9, lambda command: fed_by_yes(command, LONG), [ours, top], rounds)
    good &= ratios("yes, 8-byte lines / top line", 0, lambda command: fed_by_yes(command, SHORT), [ours, top], rounds)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
