#!/usr/bin/env python3
"""Tests of the line job under all kinds of failure, without an engine and on Dask: PIPEMARK=FILE engines/test_line_job.py

Spark's own tests are in spark/test_lines.py."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import line_job
from line_job import Failed, Job

PIPEMARK = os.environ.get("PIPEMARK", "pipemark")
DASK = Path(__file__).parent / "dask/lines.py"


def one_by_one(function, tasks):
    return [function(task) for task in tasks]


class Directory(unittest.TestCase):
    """A test in its own directory, which must hold nothing but the expected files at the end."""

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix="pipemark-engines-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.out = self.directory / "out"

    def file(self, name, content, mode=0o644):
        path = self.directory / name
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def filter(self, script):
        """A program to use in place of pipemark."""
        return str(self.file("filter", f"#!/bin/sh\n{script}\n".encode(), 0o755))

    def job(self, *inputs, words=("lines", "spaces"), split=4, pipemark=PIPEMARK):
        return Job(inputs, self.out, words, split, pipemark)

    def made(self):
        return b"".join(path.read_bytes() for path in sorted(self.out.iterdir()))

    def left(self, *names):
        self.assertEqual({path.name for path in self.directory.iterdir()}, set(names))

    def fails(self, sentence, *inputs, each=one_by_one, **options):
        with self.assertRaisesRegex(Failed, sentence), self.job(*inputs, **options) as job:
            job.run(each)


def local(words, *files):
    return subprocess.run([PIPEMARK, *words, *files], stdout=subprocess.PIPE, check=True).stdout


class Cuttings(Directory):
    def test_bytes_are_those_of_lines_wherever_files_are_cut(self):
        contents = [b"", b"\n", b"a b\r\n\n\rc\0d\n\xff\xc3( e", b"\0\n\n" + b"x" * 9, b"last\n"]
        files = [self.file(f"in{number}", content) for number, content in enumerate(contents)]
        for split, words in itertools.product([1, 5, 100], ["spaces", "number", "length -z", "number -z"]):
            words = ["lines", *words.split()]
            with self.subTest(split=split, words=words):
                with self.job(*files, files[2], words=words, split=split) as job:
                    job.run(one_by_one)
                self.assertEqual(self.made(), local(words, *files, files[2]))
                shutil.rmtree(self.out)

    def test_a_directory_is_its_files_in_the_order_of_names(self):
        for name in ["b", "a", ".hidden", "_SUCCESS"]:
            self.file(name, name.encode())
        with self.job(self.directory, words=["lines", "number"]) as job:
            job.run(one_by_one)
        self.assertEqual(self.made(), b"1\ta\n1\tb")


class Faults(Directory):
    def setUp(self):
        super().setUp()
        self.input = self.file("in", b"one\ntwo\nthree\n")

    def test_a_filter_that_fails_or_is_not_there(self):
        self.fails("ended with 1: no luck", self.input, pipemark=self.filter("echo no luck >&2; exit 1"))
        self.fails("ended with -9", self.input, pipemark=self.filter("kill -9 $$"))
        self.fails("program can't be run here: No such file.*--pipemark", self.input, pipemark="/no/such/program")
        self.fails("can't be run here: Permission denied", self.input, pipemark=str(self.input))
        self.fails("unexpected argument '--nonsense'", self.input, words=["lines", "--nonsense"])
        # Otherwise a file on the worker would be read instead of the range.
        self.fails("--range works on a single file", self.input, words=["lines", "spaces", str(self.input)])
        self.left("in", "filter")

    def test_a_filter_that_ends_early_with_0(self):
        self.fails("didn't say what it has read", self.input, pipemark=self.filter("exit 0"))
        says = 'echo "in: {} bytes by 1 reads; out: 0 bytes by 0 writes" >&2'
        self.fails("read 3 of 4 bytes", self.input, pipemark=self.filter(says.format(3)))
        # It reports more bytes than exist.
        lost = f'{PIPEMARK} "$@" > /dev/null'
        self.fails("of which 0 are there", self.input, pipemark=self.filter(lost))
        self.left("in", "filter")

    def test_an_input_that_changes_while_it_is_read(self):
        for change in ["echo x >> {}", "touch -d yesterday {}"]:
            with self.job(self.input, pipemark=self.filter(f'{PIPEMARK} "$@"\n' + change.format(self.input))) as job:
                self.assertRaisesRegex(Failed, "has changed", line_job.run, job.tasks[0])
                self.assertEqual(os.listdir(job.attempts), [])
        replaced = "cp {0} {0}2; mv {0}2 {0}".format(self.input)
        self.fails("has changed", self.input, pipemark=self.filter(f'{PIPEMARK} "$@"\n' + replaced))

        def change_after(function, tasks):
            attempts = one_by_one(function, tasks)
            self.input.write_bytes(b"other")
            return attempts

        self.fails("has changed", self.input, each=change_after)
        self.left("in", "filter")

    def test_an_output_that_exists_stays(self):
        self.file("out", b"mine")
        self.fails("is there already", self.input)
        self.assertEqual(self.out.read_bytes(), b"mine")
        self.out.unlink()

        def meanwhile(function, tasks):
            self.out.mkdir(exist_ok=True)
            return one_by_one(function, tasks)

        self.fails("is there already", self.input, each=meanwhile)
        self.assertEqual(list(self.out.iterdir()), [])
        self.left("in", "out")

    def test_an_output_that_has_no_directory(self):
        self.out = self.directory / "no/out"
        self.fails("no/out can't be made: No such file", self.input)
        self.out = self.input / "out"
        self.fails("in/out can't be made: Not a directory", self.input)
        self.left("in")

    def test_inputs_that_are_none(self):
        for path, sentence in [
            (self.directory / "no", "is not there"),
            ("/dev/null", "is no file"),
            (None, "no file to"),
        ]:
            self.fails(sentence, *[path] if path else [])
        self.left("in")

    def test_a_task_that_runs_twice_at_once(self):
        def twice(function, tasks):
            results = []
            again = [threading.Thread(target=lambda task=task: results.append(function(task))) for task in tasks * 2]
            for thread in again:
                thread.start()
            for thread in again:
                thread.join()
            self.assertEqual(len({attempt.name for attempt in results}), 2 * len(tasks))
            return results

        with self.job(self.input) as job:
            job.run(twice)
        self.assertEqual(self.made(), local(["lines"], self.input))
        self.left("in", "out")

    def test_what_is_lost_is_not_committed(self):
        def lose(job, change):
            def each(function, tasks):
                attempts = one_by_one(function, tasks)
                change(Path(job.attempts, attempts[1].name))
                return attempts

            with self.assertRaises((Failed, OSError)), job:
                job.run(each)

        lose(self.job(self.input), Path.unlink)
        lose(self.job(self.input), lambda path: os.truncate(path, 1))
        self.fails("task 3", self.input, each=lambda function, tasks: one_by_one(function, tasks[:3]))
        self.left("in")

    def test_an_attempt_too_late_makes_nothing(self):
        with self.assertRaises(Failed), self.job(self.input, pipemark="/no/such/program") as job:
            job.run(one_by_one)
        tasks = job.tasks
        with self.assertRaisesRegex(Failed, "No such file"):
            line_job.run(tasks[0])
        self.left("in")
        # An attempt that has begun continues to its end, but its directory is gone.
        slow = self.filter(f'sleep 0.3; exec {PIPEMARK} "$@"')
        with self.job(self.input, pipemark=slow) as job:
            late = threading.Thread(target=lambda: line_job.run(job.tasks[0]))
            late.start()
            time.sleep(0.1)
        late.join()
        self.left("in", "filter")
        # An attempt that begins while the directory is emptied.
        tries = []

        def empty(directory, **_):
            with self.assertRaisesRegex(Failed, "No such file"):
                line_job.run(job.tasks[0])
            tries.append(shutil_rmtree(directory))

        shutil_rmtree = shutil.rmtree
        with mock.patch("shutil.rmtree", empty), self.job(self.input) as job:
            pass
        self.assertEqual(len(tries), 1)
        self.left("in", "filter")


class OnDask(Directory):
    def setUp(self):
        super().setUp()
        if subprocess.run([sys.executable, "-c", "from dask import delayed"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("Dask is not installed")

    def driver(self, *words, before=()):
        return [*before, sys.executable, str(DASK), "--pipemark", PIPEMARK, *map(str, words)]

    def test_the_same_bytes_or_a_sentence(self):
        lines = b"".join(b"%d some  words\r\n" % number for number in range(50_000))
        files = [self.file("b", lines), self.file("a", lines + b"end")]
        subprocess.run(self.driver("--split", "100k", *files, self.out, "--", "lines", "number"), check=True)
        self.assertEqual(self.made(), local(["lines", "number"], *files))
        ended = subprocess.run(self.driver(*files, self.out, "--", "lines"), stderr=subprocess.PIPE, text=True)
        self.assertEqual(
            (ended.returncode, ended.stderr),
            (1, f"lines.py: {self.out} is there already; remove it, or name another\n"),
        )
        for words in [["--", "wc"], ["--", "lines", "--range", "0:1"], ["--split", "0", "--", "lines"]]:
            ended = subprocess.run(self.driver(*files, self.directory / "new", *words), stderr=subprocess.DEVNULL)
            self.assertEqual(ended.returncode, 2, words)
        self.left("a", "b", "out")

    def test_a_full_disk(self):
        disk = self.directory / "disk"
        disk.mkdir()
        source = self.file("in", b"some words\n" * 100_000)
        mount = f'mount -t tmpfs -o size=1m none {disk} || exit 77; "$@"; code=$?; ls -A {disk}; exit $code'
        command = self.driver(
            "--split", "100k", source, disk / "out", before=["unshare", "-m", "sh", "-c", mount, "sh"]
        )
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if ended.returncode == 77 or "unshare" in ended.stderr:
            self.skipTest("only root can mount a small disk")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended.stderr)
        self.assertRegex(ended.stderr, "No space left")

    def test_no_filter_outlives_a_driver_that_is_killed(self):
        source = self.file("in", b"x\n" * 10)
        stuck = self.filter(f"echo $$ >> {self.directory}/started; exec sleep 100")
        for number, remains in [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, 1)]:
            started = self.file("started", b"")
            command = [*self.driver("--split", "4", source, self.out), "--"][:-1]
            command[command.index(PIPEMARK)] = stuck
            # Tests that run in the background may ignore SIGINT.
            driver = subprocess.Popen(
                command, stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
            )
            while len(started.read_text().splitlines()) < min(2, os.cpu_count()):
                time.sleep(0.01)
                self.assertIsNone(driver.poll())
            driver.send_signal(number)
            self.assertNotEqual(driver.wait(timeout=60), 0)
            deadline = time.monotonic() + 30
            while any(Path("/proc", pid).exists() for pid in started.read_text().split()):
                self.assertLess(time.monotonic(), deadline, f"a filter remains after {number.name}")
                time.sleep(0.01)
            self.assertEqual(len(list(self.directory.glob(".out.*.partial"))), remains, number.name)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
