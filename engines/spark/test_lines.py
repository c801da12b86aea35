#!/usr/bin/env python3
"""Tests of the line job on Spark, on this machine's CPUs and on a master with two executors: `make test-spark`."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
os.environ["PYSPARK_PYTHON"] = sys.executable

from cluster import cluster, executors, submit  # noqa: E402
from test_line_job import PIPEMARK, Directory, local  # noqa: E402

HOSTILE = b"a b\r\n\n\rc\0d \n\xff\xc3( e  \n" + b"x" * 3000 + b"\n" + b"\n" * 50
SPECULATION = ["spark.speculation=true", "spark.speculation.quantile=0.1", "spark.speculation.interval=100ms"]


class OnSpark(Directory):
    @classmethod
    def setUpClass(cls):
        context = cluster()
        cls.master = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)

    def setUp(self):
        super().setUp()
        handle, log = tempfile.mkstemp(prefix="pipemark-spark-log-")
        os.close(handle)
        self.log = Path(log)
        self.addCleanup(self.log.unlink)
        self.files = [self.file("b", HOSTILE * 400), self.file("a", HOSTILE * 100 + b"end"), self.file("c", b"")]

    def start(self, master, *words, pipemark=PIPEMARK, split="100k", conf=()):
        words = ["--pipemark", pipemark, "--split", split, *self.files, self.out, "--", *words]
        with open(self.log, "w") as log:
            driver = submit(master, HERE / "lines.py", *words, conf=conf, stdout=log, stderr=log)
        self.addCleanup(driver.wait)
        self.addCleanup(driver.kill)
        return driver

    def same(self, driver, *words):
        self.assertEqual(driver.wait(timeout=200), 0, self.log.read_text()[-3000:])
        self.assertTrue(self.made() == local(words, *self.files), words)
        self.left("a", "b", "c", "out", *(["filter", "started"] if self.directory.joinpath("filter").exists() else []))

    def slow(self):
        return self.filter(f'echo $$ >> {self.directory}/started; sleep 0.5; exec {PIPEMARK} "$@"')

    def started(self):
        path = self.directory / "started"
        return path.read_text().split() if path.exists() else []

    def no_filter_remains(self):
        deadline = time.monotonic() + 10
        while any(Path("/proc", pid).exists() for pid in self.started()):
            self.assertLess(time.monotonic(), deadline, "a filter remains")
            time.sleep(0.05)

    def test_the_same_bytes_on_this_machine_s_cpus(self):
        self.same(self.start("local[2]", "lines", "number", "-z"), "lines", "number", "-z")

    def test_the_same_bytes_on_two_executors(self):
        self.same(self.start(self.master, "lines", "spaces"), "lines", "spaces")

    def test_the_same_bytes_with_an_executor_killed(self):
        driver = self.start(self.master, "lines", "number", pipemark=self.slow())
        while len(self.started()) < 4:
            self.assertIsNone(driver.poll())
            time.sleep(0.02)
        killed = executors()[0]
        os.kill(killed, signal.SIGKILL)
        self.same(driver, "lines", "number")
        self.assertNotIn(killed, executors())
        self.no_filter_remains()

    def test_the_same_bytes_with_tasks_run_twice(self):
        # The first attempt of the first task hangs; the job ends when another attempt has finished it.
        stuck = f'echo $$ >> {self.directory}/started; mkdir {self.directory}/first 2>/dev/null && exec sleep 100; exec {PIPEMARK} "$@"'
        driver = self.start(self.master, "lines", "length", pipemark=self.filter(stuck), conf=SPECULATION)
        driver.wait(timeout=200)
        self.directory.joinpath("first").rmdir()
        self.same(driver, "lines", "length")
        self.no_filter_remains()

    def test_a_job_that_fails_leaves_a_sentence_and_nothing_else(self):
        driver = self.start(self.master, "lines", pipemark=self.filter("sleep 0.1; echo no luck >&2; exit 1"))
        self.assertEqual(driver.wait(timeout=200), 1)
        self.assertRegex(
            self.log.read_text(),
            rf"lines.py: bytes \d+ to \d+ of {self.directory}/[ab]: {self.directory}/filter ended with 1: no luck",
        )
        self.left("a", "b", "c", "filter")

    def test_no_filter_outlives_a_driver_that_is_killed(self):
        stuck = self.filter(f"echo $$ >> {self.directory}/started; exec sleep 100")
        driver = self.start(self.master, "lines", pipemark=stuck)
        while len(self.started()) < 2:
            self.assertIsNone(driver.poll())
            time.sleep(0.02)
        driver.kill()
        driver.wait()
        self.no_filter_remains()
        self.assertFalse(self.out.exists())


class Damage(unittest.TestCase):
    def test_what_the_other_ways_of_spark_do_to_bytes(self):
        command = [sys.executable, HERE.parents[1] / "entrants/spark/filter.py", "damage"]
        said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        print(said, file=sys.stderr)
        ways = dict(line.split(maxsplit=1) for line in said.splitlines())
        self.assertEqual(ways.pop("ranges"), "the same bytes")
        self.assertEqual({way.split(":")[0] for way in ways.values()}, {"changed"})
        self.assertIn(r"b'\r\n', b'lone\rcr', b'\xff'", ways["jvm-pipe"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
