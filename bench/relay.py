#!/usr/bin/env python3
"""Compares `pipemark relay` with cat, pv and mbuffer, each as a stage between common programs: which pipeline ends sooner?

    bench/relay.py [--budget SECONDS] [--rounds N] [--only WORD] [--list] [--fresh] [--buffer SIZE]

A cell is a source, a sink and a placement: on one CPU, on two, or free. A round runs the relay and each rival once per cell, in
random order; the cells are interleaved. Results are kept in build/relay.jsonl. The next call continues there, unless --fresh is
given. A cell's ratio is the median over its rounds. With 95 % probability, the intervals of all cells contain the true medians
(sign test, Bonferroni over cells, rivals and three analyses), so no cell is conclusive before 16 rounds. A cell that is
conclusive for each rival after 16 or 36 rounds gets no more rounds; other cells get 60. Exits with 1 if an interval lies below
0.97, or if more than a tenth of the cells are inconclusive after 60 rounds.

If copying is the bottleneck, the geometric mean is printed. Such a pipeline also runs without a stage, with a default pipe and
with a pipe of 1 MiB, which shows how fast a stage without cost would be. On a machine with two CPUs, `free` and `two CPUs` are
the same placement. With --buffer, the relay has a buffer, and its rival is mbuffer with a buffer of the same size. Needs 1 GiB of
memory for files."""

import argparse
import gzip
import hashlib
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from run import PIPEMARK, ROOT, interval

LEAST, ENOUGH_ROUNDS, MAX_INCONCLUSIVE = 0.97, 60, 0.1
# The interim analyses: the rounds after which a cell may be conclusive, and the share of the error probability that
# each analysis may use.
ANALYSES = {16: 0.25, 36: 0.25, ENOUGH_ROUNDS: 0.5}
# The number of rounds in which a pipeline without a stage runs too.
NO_STAGE_ROUNDS = 8
KEPT = ROOT / "build/relay.jsonl"
NO_STAGE = ["none", "large pipe"]
STAGES = {"relay": f"{PIPEMARK} relay", "cat": "cat", "pv": "pv -q", "mbuffer": "mbuffer -q"}
# The buffering commands. With --buffer SIZE, both get a buffer of that size.
BUFFERED = {"relay": f"{PIPEMARK} relay --buffer {{}}", "mbuffer": "mbuffer -q -m {}"}
# Names and commands of sources: {path} is a text file, {size} the number of bytes to read.
SOURCES = {
    # The source yes is stopped after the time YES.
    "yes": "yes",
    "head": "head -c {size} /dev/zero",
    "zcat": "zcat {path}.{size}.gz",
    "dd 512": "dd if={path} bs=512 count={size} iflag=count_bytes status=none",
    "dd 8k": "dd if={path} bs=8k count={size} iflag=count_bytes status=none",
    "dd 64k": "dd if={path} bs=64k count={size} iflag=count_bytes status=none",
    "cat FILE": "cat {path}.part",
    "log": "perl -e '$| = 1; print \"2026-01-01T00:00:00 app[1]: a request was answered with 200 in 12 ms\\n\" for 1 .. {size} / 400'",
}
SINKS = {
    "null": ">/dev/null",
    "file": ">{path}.out",
    "cat": "| cat >/dev/null",
    "wc": "| wc -l >/dev/null",
    "grep": "| grep -c answered >/dev/null",
    "gzip": "| gzip -1 >/dev/null",
    "sort": "| sort >/dev/null",
}
MIB = 1 << 20
COPY_BOUND = [
    (source, sink)
    for source in ("yes", "head", "dd 8k", "dd 64k", "cat FILE")
    for sink in ("null", "cat", "wc", "grep")
]
# Bytes per run, so that a run takes about a tenth of a second. Slow readers get fewer bytes.
SIZES = {"gzip": 12 * MIB, "sort": 8 * MIB} | dict.fromkeys(COPY_BOUND, 256 * MIB)
SIZE, LARGEST = 96 * MIB, max(SIZES.values())
ZCAT_SIZES = {size // 2 for size in (SIZE, SIZES["gzip"], SIZES["sort"])}
# Seconds for which yes writes.
YES = 0.1
LARGE_PIPE = "perl -e 'fcntl(STDIN, 1031, 1 << 20) or die \"F_SETPIPE_SZ: $!\"; exec @ARGV'"


def places():
    cpus = sorted(os.sched_getaffinity(0))
    found = {"one": f"taskset -c {cpus[0]}", "two": f"taskset -c {cpus[0]},{cpus[-1]}", "free": ""}
    if len(cpus) == 1:
        return {"one": found["one"]}
    if len(cpus) == 2:
        del found["two"]
    return found


def rivals(buffered):
    here = {}
    for name in ("mbuffer",) if buffered else ("cat", "pv", "mbuffer"):
        if not shutil.which(name):
            print(f"skipped  {name}: it is not installed")
            continue
        done = subprocess.run([name, "--version"], capture_output=True, text=True)
        here[name] = (done.stdout + done.stderr).splitlines()[0]
        print(f"rival    {here[name]}")
    return here


def write_texts(path):
    words = "the quick brown fox jumps over a lazy dog while requests are answered in time".split()
    draw = random.Random(1)
    lines = "".join(" ".join(draw.choices(words, k=12)) + f" {draw.random()}\n" for _ in range(20_000)).encode()
    repeated = lines * math.ceil(LARGEST / len(lines))
    Path(path).write_bytes(repeated[:LARGEST])
    for size in ZCAT_SIZES:
        with gzip.open(f"{path}.{size}.gz", "wb", 1) as packed:
            packed.write(repeated[:size])


def seconds(cell, stage, path):
    """Seconds from the start of the pipeline's shell to the end of its last process, scaled to `size` bytes."""
    source, sink, place = cell
    size = SIZES.get((source, sink)) or SIZES.get(sink, SIZE)
    if source == "zcat":
        size //= 2
    feed, end = SOURCES[source], SINKS[sink]
    if source == "head" and sink in ("grep", "sort"):
        # A file of zeros would be a single line.
        feed = "head -c {size} {path}"
    if (source, sink) == ("yes", "sort"):
        # sort continues long after its input has ended, so it gets fewer bytes, in lines of two bytes.
        feed, size = "yes | head -c {size}", size // 8
    if source == "cat FILE":
        subprocess.run(["bash", "-c", f"head -c {size} {path} >{path}.part"], check=True)
    if stage == "large pipe":
        end = end.replace("| ", f"| {LARGE_PIPE} ")
    rest = (f"| {STAGES[stage]} " if stage in STAGES else "") + end
    Path(f"{path}.out").unlink(missing_ok=True)
    placed, written = places()[place].split(), size
    begin = time.monotonic()
    yes = subprocess.Popen([*placed, feed], stdout=subprocess.PIPE) if feed == "yes" else None
    pipeline = (rest.removeprefix("| ") if yes else f"{feed} {rest}").format(size=size, path=path)
    shell = subprocess.Popen(
        [*placed, "bash", "-c", pipeline], stdin=yes and yes.stdout, stderr=subprocess.PIPE, text=True
    )
    if yes:
        yes.stdout.close()
        time.sleep(YES)
        yes.send_signal(signal.SIGSTOP)
        written = int(re.search(r"wchar: (\d+)", Path(f"/proc/{yes.pid}/io").read_text())[1])
        yes.kill()
        yes.wait()
    errors = shell.communicate(timeout=120)[1]
    took = time.monotonic() - begin
    # grep finds nothing in the output of yes, and exits with 1.
    if shell.returncode > 1 or errors:
        sys.exit(f"{pipeline}: exit {shell.returncode}\n{errors}")
    return took * size / written


def kept(program):
    """Earlier rounds with the same binary, by cell."""
    rounds = defaultdict(list)
    if KEPT.exists():
        for line in KEPT.read_text().splitlines():
            record = json.loads(line)
            if record["program"] == program:
                rounds[tuple(record["cell"])].append(record["seconds"])
    return rounds


def verdict(took, name, error):
    """The verdict on one rival in a cell, with the median ratio and its interval; None if the cell has no round."""
    ratios = [one[name] / one["relay"] for one in took if name in one]
    if not ratios:
        return None
    part = next((part for after, part in ANALYSES.items() if len(took) <= after), ANALYSES[ENOUGH_ROUNDS])
    low, high = interval(ratios, error * part)
    word = "slower" if high < LEAST else "not slower" if low >= LEAST else "inconclusive"
    return word, statistics.median(ratios), low, high


def unfinished(cells, names, rounds, error):
    """The cells that need more rounds."""

    def is_conclusive(cell, after):
        return all(verdict(rounds[cell][:after], name, error)[0] != "inconclusive" for name in names)

    def finished(cell):
        reached = [after for after in ANALYSES if len(rounds[cell]) >= after]
        return any(after == ENOUGH_ROUNDS or is_conclusive(cell, after) for after in reached)

    return [cell for cell in cells if not finished(cell)]


def measure(cells, names, rounds, options, program, error):
    KEPT.parent.mkdir(exist_ok=True)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    end = time.monotonic() + options.budget
    with tempfile.TemporaryDirectory(prefix="bench-relay-", dir=memory) as directory, open(KEPT, "a") as file:
        path = f"{directory}/text"
        write_texts(path)
        while time.monotonic() < end:
            left = [cell for cell in unfinished(cells, names, rounds, error) if len(rounds[cell]) < options.rounds]
            if not left:
                return
            least = min(len(rounds[cell]) for cell in left)
            turn = [cell for cell in left if len(rounds[cell]) == least]
            random.shuffle(turn)
            for cell in turn:
                if time.monotonic() >= end:
                    return
                # If the sink is /dev/null, the pipeline without a stage has no pipe.
                stages = ["relay", *names]
                bound = cell[:2] in COPY_BOUND and cell[1] != "null" and len(rounds[cell]) < NO_STAGE_ROUNDS
                here = stages + NO_STAGE if bound else stages
                order = random.sample(here, len(here))
                took = {stage: seconds(cell, stage, path) for stage in order}
                rounds[cell].append(took)
                file.write(json.dumps({"program": program, "cell": cell, "seconds": took}) + "\n")
                file.flush()


def show(cells, names, rounds, every, error):
    """Prints the verdicts. Returns whether all promises are kept."""
    good = True
    finished = not unfinished(cells, names, rounds, error)
    fewest = min(len(rounds[cell]) for cell in cells)
    for name in names:
        verdicts, geometric = defaultdict(list), defaultdict(list)
        for cell in cells:
            if found := verdict(rounds[cell], name, error):
                word, median, low, high = found
                verdicts[word].append((median, low, high, len(rounds[cell]), cell))
                if cell[:2] in COPY_BOUND:
                    geometric[cell[2]].append(math.log(median))
        doubtful = [entry for entry in verdicts["inconclusive"] if finished]
        listed = sorted(sum(verdicts.values(), []) if every else verdicts["slower"] + doubtful)
        for median, low, high, count, (source, sink, place) in listed:
            print(
                f"         {median:6.3f}× [{low:.3f} – {high:.3f}]  {source} → {sink}, {place}: relay / {name}, {count} rounds"
            )
        counts = {word: len(verdicts[word]) for word in ("not slower", "slower", "inconclusive")}
        unsure = finished and counts["inconclusive"] > MAX_INCONCLUSIVE * len(cells)
        means = {place: math.exp(statistics.fmean(logs)) for place, logs in geometric.items()}
        whole = [value for logs in geometric.values() for value in logs]
        mean = math.exp(statistics.fmean(whole)) if whole else None
        kept_all = not (counts["slower"] or unsure)
        good &= kept_all
        word = "BROKEN" if not kept_all else "kept  " if counts["not slower"] else "open  "
        print(
            f"{word}   relay / {name}: {', '.join(f'{n} {word}' for word, n in counts.items())}, after {fewest} rounds or more"
        )
        if mean:
            parts = ", ".join(f"{place} {value:.2f}" for place, value in means.items())
            print(f"         geometric mean where copying bounds: {mean:.2f}× ({parts})")
    bounds = defaultdict(list)
    for cell in cells:
        took = [took for took in rounds[cell] if {"cat", *NO_STAGE} <= took.keys()]
        for stage in ("relay", *NO_STAGE) if took else ():
            bounds[stage, cell[2]].append(math.log(statistics.median(one["cat"] / one[stage] for one in took)))
    for place in places():
        if count := len(bounds["relay", place]):
            relay, none, large = (math.exp(statistics.fmean(bounds[stage, place])) for stage in ("relay", *NO_STAGE))
            print(
                f"         {place}, where copying bounds and a pipe follows: cat takes {relay:.2f}× the time of relay, {none:.2f}× that of no stage, {large:.2f}× that of no stage and a pipe of 1 MiB ({count} pairs)"
            )
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--budget", type=float, default=240, metavar="SECONDS", help="stop measuring after this time [default: 240]"
    )
    parser.add_argument("--rounds", type=int, default=ENOUGH_ROUNDS, help="rounds per cell [default: 60]")
    parser.add_argument("--only", metavar="WORD", help="only cells whose name contains WORD, such as 'head → wc, one'")
    parser.add_argument(
        "--buffer", metavar="SIZE", help="compare the relay with a buffer of SIZE, such as 64M, with mbuffer -m SIZE"
    )
    parser.add_argument("--list", action="store_true", help="print every cell, not only inconclusive ones")
    parser.add_argument("--fresh", action="store_true", help="discard earlier results")
    options = parser.parse_args()
    # The files are removed even if the bench is terminated.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("cut off"))
    if options.fresh:
        KEPT.unlink(missing_ok=True)
    names = rivals(options.buffer)
    if options.buffer:
        STAGES.update({name: stage.format(options.buffer) for name, stage in BUFFERED.items()})
    program = (
        (f"buffer {options.buffer}; " if options.buffer else "")
        + hashlib.sha256(PIPEMARK.read_bytes()).hexdigest()[:16]
        + "; "
        + "; ".join(names.values())
    )
    cells = [(source, sink, place) for source in SOURCES for sink in SINKS for place in places()]
    if options.only:
        cells = [cell for cell in cells if options.only in f"{cell[0]} → {cell[1]}, {cell[2]}"]
    if not cells:
        sys.exit(f"--only {options.only}: no such cell")
    rounds = kept(program)
    print(
        f"{len(cells)} cells, {len(places())} placements; "
        f"{min(len(rounds[cell]) for cell in cells)} rounds or more from earlier calls",
        flush=True,
    )
    error = 0.05 / (len(cells) * len(names))
    measure(cells, list(names), rounds, options, program, error)
    if not show(cells, list(names), rounds, options.list, error):
        sys.exit("promises broken")


if __name__ == "__main__":
    main()
