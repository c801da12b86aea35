#!/usr/bin/env python3
"""Tests of the Python module, with the program that $PIPEMARK names. Prints the parts that can't be tested here."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "packaging/python"))

import pipemark  # noqa: E402
from pipemark._results import decode  # noqa: E402

ROWS = {"stage": 2, "name": "a <b>", "busy": 0.5, "starved": 0.25, "blocked": 0.25, "cpu": None}


class Calls(unittest.TestCase):
    def test_why_names_the_bottleneck_of_a_pipeline_that_it_runs(self):
        found = pipemark.why("yes | head -c 5m | LC_ALL=C sort -u; exit 3")
        self.assertEqual([stage.name for stage in found.stages], ["yes", "head", "sort"])
        self.assertEqual(found.exit_code, 3)
        self.assertEqual(found.verdict.text, found.raw["verdict"]["text"])
        self.assertEqual((found.pipes[0].writer, found.pipes[0].reader), (1, 2))
        self.assertIn("<td>sort</td>", found._repr_html_())

    def test_why_samples_a_running_pipeline(self):
        null = subprocess.DEVNULL
        shell = subprocess.Popen("yes | gzip", shell=True, stdin=null, stdout=null, stderr=null, preexec_fn=os.setsid)
        children = Path("/proc/{0}/task/{0}/children".format(shell.pid))
        try:
            end = time.monotonic() + 60
            while len(children.read_text().split()) < 2 and time.monotonic() < end:
                time.sleep(0.01)
            found = pipemark.why(pid=shell.pid, seconds=0.3)
            self.assertEqual({stage.name for stage in found.stages} - {"sh"}, {"yes", "gzip"})
            self.assertEqual(found.exit_code, 0)
        finally:
            os.killpg(shell.pid, 9)
            shell.wait()

    def test_ab_compares_commands(self):
        found = pipemark.ab("sleep 0.03", "sleep 0.01", runs=3, names=["long", "short"], shell="none")
        long, short = found.commands
        self.assertEqual((found.by, long.label, short.label), ("time", "long", "short"))
        self.assertLess(short.figures["time"].estimate.median, long.figures["time"].estimate.median)
        self.assertLess(short.figures["time"].comparison.change, 0)
        self.assertEqual([row["command"] for row in found.rows()], ["long", "short"])

    def test_ab_replaces_parameters(self):
        found = pipemark.ab("sleep 0.0{n}", runs=3, parameter="n=1,2")
        self.assertEqual([command.parameters for command in found.commands], [{"n": "1"}, {"n": "2"}])

    def test_bw_measures_settings(self):
        found = pipemark.bw(block=["4k", "64k"], runs=2, time="5ms", place="free", options=["--no-save"])
        self.assertTrue(all(trial.throughput.median > 0 for trial in found.trials if trial.status == "ok"))
        self.assertLessEqual({4096, 65536}, {trial.params["block"] for trial in found.trials})
        self.assertIn("bytes/s", found.conclusion())

    def test_tune_runs_variants(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "numbers"
            path.write_text("".join("{}\n".format(n * 7919 % 100_003) for n in range(100_000)))
            found = pipemark.tune("cat {0} | sort -n | uniq".format(path), budget="2s")
        self.assertEqual([stage.name for stage in found.stages], ["cat", "sort", "uniq"])
        self.assertGreater(found.time.median, 0)
        self.assertEqual(len(found.rows()), len(found.experiments))
        self.assertTrue(found.conclusion())


class Errors(unittest.TestCase):
    def test_errors_are_exceptions_with_the_message(self):
        for call, kind, text in [
            (lambda: pipemark.why(pid=2**31 - 2), pipemark.UsageError, "there is no process 2147483646"),
            (lambda: pipemark.bw(block="much"), pipemark.UsageError, "'much'"),
            (lambda: pipemark.ab("exit 3"), pipemark.MeasurementFailed, "3"),
            (lambda: pipemark.tune("yes | head -n 9 | tee /dev/null"), pipemark.UsageError, "tee"),
            (lambda: pipemark.why(unit="pipemark-no-such"), pipemark.UsageError, "has no processes"),
        ]:
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(text, str(caught.exception))
            self.assertNotIn("pipemark: ", str(caught.exception))
            self.assertNotEqual(caught.exception.exit_code, 0)
        with self.assertRaises(TypeError):
            pipemark.why()

    def test_a_pipeline_is_never_an_option(self):
        own = os.environ["PIPEMARK"]
        with tempfile.TemporaryDirectory() as directory:
            log, program = Path(directory) / "words", Path(directory) / "program"
            program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >{}\nexit 2\n".format(log))
            program.chmod(0o755)
            os.environ["PIPEMARK"] = str(program)
            try:
                for call in pipemark.why, pipemark.tune, pipemark.ab:
                    with self.assertRaises(pipemark.UsageError):
                        call("--yes | cat")
                    words = [word.strip() for word in log.read_text().splitlines()]
                    self.assertEqual(words[-2:], ["--", "--yes | cat"])
            finally:
                os.environ["PIPEMARK"] = own

    def test_a_missing_program_is_named(self):
        own = os.environ["PIPEMARK"]
        os.environ["PIPEMARK"] = "/nonexistent/pipemark"
        try:
            with self.assertRaises(pipemark.ProgramNotFound) as caught:
                pipemark.bw()
        finally:
            os.environ["PIPEMARK"] = own
        self.assertIn("/nonexistent/pipemark", str(caught.exception))


class Results(unittest.TestCase):
    def result(self):
        stage = {
            **ROWS,
            "number": 2,
            "command": "a <b>",
            "pid": 7,
            "processes": 1,
            "threads": 1,
            "computing": 0.5,
            "waiting_for_cpu": 0,
            "unknown_field": [1],
        }
        verdict = {"kind": "stage", "text": "a & b", "reason": "computing", "gain": {"low": 1, "high": None}}
        whole = {
            "pipeline": "a | b",
            "verdict": verdict,
            "stages": [stage],
            "pipes": [],
            "seconds": 1,
            "samples": 9,
            "notes": [],
        }
        return decode(pipemark.Why, whole)

    def test_fields_have_the_types_that_are_declared(self):
        found = self.result()
        self.assertIsInstance(found.stages[0].waiting_for_cpu, float)
        self.assertEqual(found.verdict.gain, pipemark.Gain(low=1.0))

    def test_html_is_escaped(self):
        text = self.result()._repr_html_()
        self.assertIn("<p><b>a &amp; b</b></p>", text)
        self.assertIn("<td>a &lt;b&gt;</td><td>0.5</td>", text)

    def test_frames_have_the_rows(self):
        found = self.result()
        for library in "pandas", "polars":
            if importlib.util.find_spec(library) is None:
                print("skipped: to_frame() with", library)
                continue
            frame = found.to_frame(library)
            self.assertEqual((frame.shape[0], list(frame.columns)), (1, list(found.rows()[0])))
        if importlib.util.find_spec("pandas") is None and importlib.util.find_spec("polars") is None:
            with self.assertRaises(ImportError):
                found.to_frame()

    def test_the_module_is_typed(self):
        if importlib.util.find_spec("mypy") is None:
            print("skipped: mypy --strict")
            return
        module = Path(pipemark.__file__).parent
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, str(module)]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(ended.returncode, 0, ended.stdout)


if __name__ == "__main__":
    unittest.main()
