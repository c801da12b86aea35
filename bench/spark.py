#!/usr/bin/env python3
"""Measures the promises on the line job on Apache Spark. First compares a standalone master and two executors of one core each
with two processes without Spark. Then runs a job of 4 GiB undisturbed, and again with an executor killed.

    make test-spark && bench/spark.py [--only WORD] [--rounds N]

Output and exit code are those of bench/run.py. Needs 10 GiB of memory for the files."""

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import run
from run import ROOT, promise

PYTHON = ROOT / "build/spark/bin/python"
if sys.prefix != str(ROOT / "build/spark"):
    if not PYTHON.exists():
        sys.exit("no Spark in build/spark, so nothing is measured: make test-spark installs it")
    os.execv(PYTHON, [PYTHON, *sys.argv])

sys.path[:0] = [str(ROOT / "engines"), str(ROOT / "engines/spark")]
os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
import line_job  # noqa: E402
import lines  # noqa: E402
from cluster import cluster, executors, submit  # noqa: E402
from pyspark import SparkConf, SparkContext  # noqa: E402

PIPEMARK = os.environ.get("PIPEMARK", str(run.PIPEMARK))
SIZE = 1 << 30
LINE = ("2024-01-01T00:00:00 host app[1]: " + "the quick brown fox jumps over the lazy dog " * 6)[:284] + "\n"


def write(path, size):
    block = LINE.encode() * ((1 << 20) // len(LINE))
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(block)
    return path


class Bench:
    def __init__(self, context, directory):
        self.context, self.each, self.directory, self.out = (
            context,
            lines.executor_map(context),
            directory,
            directory / "out",
        )

    def spark(self, source, split, slots):
        """Seconds that the job takes on `slots` executors."""

        start = time.monotonic()
        with line_job.Job([source], self.out, ["lines"], split, PIPEMARK) as job:
            job.run(lambda function, tasks: self.each(function, tasks, 1 if slots == 1 else len(tasks)))
        elapsed = time.monotonic() - start
        shutil.rmtree(self.out)
        return elapsed

    def nothing(self, tasks):
        """Seconds that PySpark takes for tasks that do nothing. They run in new workers, because Spark doesn't reuse a worker for a
        different environment."""
        self.context.environment["PIPEMARK_NOTHING"] = "1"
        start = time.monotonic()
        self.context.parallelize(range(tasks), tasks).map(lambda task: task).collect()
        elapsed = time.monotonic() - start
        del self.context.environment["PIPEMARK_NOTHING"]
        return elapsed

    def driver(self):
        """CPU seconds of the driver's JVM and of this process."""
        words = Path(f"/proc/{self.context._gateway.proc.pid}/stat").read_text().rsplit(") ")[1].split()
        return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def local(self, source, split, slots):
        """Seconds that `slots` parallel processes without Spark take for the same ranges. Each process writes a file."""
        self.out.mkdir()
        ranges = [f"{low}:{low + split}" for low in range(0, source.stat().st_size, split)]
        start = time.monotonic()
        while ranges:
            running = []
            for part in [ranges.pop(0) for _ in range(min(slots, len(ranges)))]:
                with open(self.out / part, "wb") as file:
                    command = [PIPEMARK, "lines", "--threads", "1", "--range", part, source]
                    running.append(subprocess.Popen(command, stdout=file))
            if any(process.wait() for process in running):
                sys.exit("pipemark lines failed")
        elapsed = time.monotonic() - start
        shutil.rmtree(self.out)
        return elapsed


def throughput(bench, rounds):
    source = write(bench.directory / "in", 2 * SIZE)
    ways = list(itertools.product((bench.spark, bench.local), (1, 2)))
    speeds = {way: [] for way in ways}
    # The first round isn't counted, because memory is slower when it is used for the first time.
    for _ in range(rounds + 1):
        for way in random.sample(ways, len(ways)):
            how, slots = way
            speeds[way].append(1 / how(source, SIZE + (1 << 20), slots))
    one, two, alone, both = (measured[1:] for measured in speeds.values())
    ratios = lambda over, under: [a / b for a, b in zip(over, under)]
    promise("1 GiB a task: 1 executor / 1 process", ratios(one, alone), least=0.8)
    promise("1 GiB a task: 2 executors / 2 processes", ratios(two, both), least=0.8)
    gains = ratios(ratios(two, one), ratios(both, alone))
    promise("from 1 to 2 executors / from 1 to 2 processes", gains, least=0.9)
    source.unlink()


def per_task(bench, rounds):
    source = write(bench.directory / "in", 1 << 20)
    seconds = lambda tasks: bench.spark(source, -(-source.stat().st_size // tasks), 2)
    cost = lambda seconds, tasks=200: 2 * (seconds(tasks + 2) - seconds(2)) / tasks * 1000
    seconds(2)
    promise("the first 200 tasks, each", [cost(seconds)], unit=" ms")
    # Warm up the JVMs' compilers.
    for _ in range(2):
        cost(seconds)
        bench.nothing(20)
    costs = [(cost(seconds), cost(bench.nothing, 100)) for _ in range(rounds)]
    before = bench.driver()
    seconds(400)
    of_driver = (bench.driver() - before) / 400 * 1000
    promise("fixed cost of a task on an executor", [ours for ours, _ in costs], most=30, unit=" ms")
    promise("a task of PySpark that does nothing", [nothing for _, nothing in costs], unit=" ms")
    promise("the former / the latter", [ours / nothing for ours, nothing in costs])
    promise("CPU time of the driver for a task", [of_driver], unit=" ms")
    promise("a job of two tasks, executors already running", [seconds(2) * 1000 for _ in range(rounds)], unit=" ms")
    source.unlink()


def commit(bench, _):
    """Measures the driver's own work, without an engine."""
    tasks = 10_000
    source = write(bench.directory / "in", 1 << 20)
    with line_job.Job([source], bench.out, ["lines"], -(-source.stat().st_size // tasks), PIPEMARK) as job:
        attempts = [line_job.Attempt(task.index, str(task.index), 0) for task in job.tasks]
        for attempt in attempts:
            Path(job.attempts, attempt.name).touch()
        start = time.monotonic()
        job.commit(attempts)
        elapsed = time.monotonic() - start
    shutil.rmtree(bench.out)
    promise("commit of a task by the driver, a directory in memory", [elapsed / len(attempts) * 1e6], unit=" µs")
    source.unlink()


def has_same_bytes(source, out):
    """Whether the job's output files together equal the output of the filter alone."""
    alone = subprocess.Popen([PIPEMARK, "lines", source], stdout=subprocess.PIPE)
    parts = subprocess.Popen(["cat", *sorted(out.iterdir())], stdout=subprocess.PIPE)
    total = 0
    while True:
        one, other = alone.stdout.read(1 << 20), parts.stdout.read(1 << 20)
        if one != other:
            return False
        if not one:
            return alone.wait() == parts.wait() == 0 and total > 0
        total += len(one)


def whole_job(master, directory):
    """Runs spark-submit on 4 GiB: undisturbed, and with an executor killed once half of the task attempts exist."""
    source, out = write(directory / "in", 4 * SIZE), directory / "out"
    for kill in (False, True):
        start = time.monotonic()
        words = ["--pipemark", PIPEMARK, source, out, "--", "lines", "spaces"]
        driver = submit(
            master, ROOT / "engines/spark/lines.py", *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        killed = None
        while kill and driver.poll() is None and killed is None:
            if len(list(directory.glob(".out.*.partial/attempts/*"))) >= 8:
                killed = executors()[0]
                os.kill(killed, signal.SIGKILL)
            time.sleep(0.01)
        code = driver.wait()
        elapsed = time.monotonic() - start
        good = code == 0 and (killed is not None) == kill and has_same_bytes(source, out)
        what = "an executor killed" if kill else "nobody killed"
        promise(f"spark-submit of 4 GiB, {what}: the same bytes, after {elapsed:.1f} s", [float(good)], least=1)
        shutil.rmtree(out, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    # Files of this size must be removed, because they occupy memory.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parts = [throughput, per_task, commit]
    if not any(options.only in name for name in ("whole", *(part.__name__ for part in parts))):
        sys.exit(f"--only {options.only}: no such part")
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="pipemark-spark-", dir=memory) as directory, cluster() as master:
        if chosen := [part for part in parts if options.only in part.__name__]:
            settings = {"master": master, "log.level": "ERROR", "ui.showConsoleProgress": "false", "app.name": "bench"}
            conf = SparkConf().setAll([(f"spark.{name}", value) for name, value in settings.items()]).set(*lines.JAVA)
            context = SparkContext(conf=conf)
            for part in chosen:
                part(Bench(context, Path(directory)), options.rounds)
            context.stop()
        if options.only in "whole":
            whole_job(master, Path(directory))
    sys.exit(1 if run.BROKEN else 0)


if __name__ == "__main__":
    main()
