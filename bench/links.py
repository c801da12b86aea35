#!/usr/bin/env python3
"""Checks links by other programs against other measurements of the same work.

    bench/links.py [--rounds N]
    bench/links.py --libzmq DIR    also ZeroMQ's own benchmark, from its source tree

A named pipe between two C programs must be within 3 % of pipemark's own named pipe, and ZeroMQ must be within 10 % of its own
perf/local_thr and perf/remote_thr. A ratio is of two measurements of one round. With 95 % probability, the intervals of all cells
contain the true medians. Exits with 1 if an interval lies outside. Needs `make`, and `make links` for ZeroMQ."""

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from run import PIPEMARK, ROOT, interval

CPUS = ("0", "1")  # of the sender and the receiver
MESSAGES = 400_000  # in a run of ZeroMQ's own benchmark, with 64 bytes each


def throughput(link, *flags):
    words = [PIPEMARK, "bw", "--link", link, "--runs", "1", "--time", "200ms", "--no-save", "--json", "-", *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    trial = next(trial for trial in json.loads(done.stdout)["trials"] if trial["params"]["link"] == link)
    if trial["status"] != "ok":
        sys.exit(f"{link}: {trial['reason']}")
    return trial["estimate"]["throughput"]["median"]


class OwnBenchmark:
    """ZeroMQ's programs, compiled against the installed library, which the link uses too."""

    def __init__(self, source, directory):
        self.directory = directory
        for name in ("local_thr", "remote_thr"):
            (directory / "platform.hpp").touch()
            program = source / f"perf/{name}.cpp"
            words = ["c++", "-O2", f"-I{directory}", "-o", directory / name, program, "-lzmq"]
            subprocess.run(words, check=True)

    def throughput(self, size):
        endpoint = f"ipc://{self.directory}/socket"
        words = [endpoint, str(size), str(MESSAGES)]
        receiver = subprocess.Popen(
            ["taskset", "-c", CPUS[1], self.directory / "local_thr", *words], stdout=subprocess.PIPE, text=True
        )
        try:
            sender = ["taskset", "-c", CPUS[0], self.directory / "remote_thr", *words]
            subprocess.run(sender, check=True, timeout=120)
            text = receiver.communicate(timeout=120)[0]
        finally:
            receiver.kill()
        return size * int(re.search(r"throughput: (\d+) \[msg/s\]", text)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="rounds per cell [default: 15]")
    parser.add_argument("--libzmq", type=Path, metavar="DIR", help="ZeroMQ's source tree")
    options = parser.parse_args()
    cells = {}
    for block in ("4k", "64k"):
        for verify in ("count", "full"):
            flags = ("--place", "same", "--block", block, "--verify", verify)
            pair = (lambda f=flags: throughput("pipe-c", *f), lambda f=flags: throughput("fifo", *f))
            cells[f"named pipe, {block}, {verify}"] = (0.03, *pair)
    with tempfile.TemporaryDirectory() as directory:
        if options.libzmq:
            own = OwnBenchmark(options.libzmq, Path(directory))
            flags = ("--place", ":".join(CPUS), "--block", "64", "--verify", "count")
            cells["ZeroMQ, 64 B"] = (0.1, lambda: throughput("zeromq", *flags), lambda: own.throughput(64))
        ratios = {name: [] for name in cells}
        for _ in range(options.rounds):
            for name in random.sample(list(cells), len(cells)):
                measured = {which: cells[name][which]() for which in random.sample([1, 2], 2)}
                ratios[name].append(measured[1] / measured[2])
    good = True
    for name, found in ratios.items():
        within = cells[name][0]
        low, high = interval(found, 0.05 / len(ratios))
        broken = high < 1 - within or low > 1 + within
        verdict = "BROKEN" if broken else "kept" if low >= 1 - within and high <= 1 + within else "inconclusive"
        good &= not broken
        print(f"{name:<24} {statistics.median(found):.3f} [{low:.3f} – {high:.3f}], {len(found)} rounds: {verdict}")
    if not good:
        sys.exit("promises broken")


if __name__ == "__main__":
    main()
