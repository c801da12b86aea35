#!/usr/bin/env python3
"""Measures how often pipemark reports a difference between equal trials, and how often it finds a real one.

    bench/truth.py documents [--budget SECONDS]    findings, compare, trend and ab on documents, each of 8 equal trials
    bench/truth.py power [--budget SECONDS]        how often `ab` finds planted slowdowns of 3, 5, 10 and 20 %, and in what time
    bench/truth.py ci [--budget SECONDS]           the job of docs/ci.md, with equal programs and with one 10 % slower
    bench/truth.py all [--budget SECONDS]          all three interleaved, so that the documents are spread over a longer time
    bench/truth.py report                          the figures so far

Results are kept in build/truth (--state) as JSON lines. The next call continues there, unless --fresh is given. --pause SECONDS
spreads the documents over hours. Everything is measured on one CPU, so on two CPUs two calls can run in parallel, each under
taskset -c with its own state. `report` accepts several states.

Equal trials are one program under the names of four languages, twice each. For the planted difference, one of these programs
does less work. For a slowdown, it does more work. How long the work takes is measured first, with the amounts of work
alternating. Figures are never edited. Only the time of a planted document is changed for trends, so that it follows the others.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIPEMARK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/pipemark"
LANGUAGES = [f"l{n}" for n in range(1, 5)]
PLANTED, FASTER = "l3", 1.5
SLOWDOWNS = [0, 3, 5, 10, 20]
# Pairs of numbers of sessions and runs for `ab`. `report` prints how long each pair takes.
EFFORTS = [(5, 4), (8, 10), (10, 25), (10, 60)]
# The only slowdowns that are also measured with the longest effort, in per cent.
LONG = [3]
# The number of sessions on each side of `compare`, and of planted sessions at the end of a series for `trend`.
SESSIONS, SERIES = 3, 6
SUITE = f"""
name = "truth"
title = "Equal trials under different names"
[schedule]
runs = 20
[defaults]
place = "same"
total = "4m"
block = "64k"
[[experiment]]
name = "same"
title = "One program under the names of four languages, twice each"
params = {{ verify = "xor" }}
axes = {{ language = {json.dumps(LANGUAGES)}, program = ["idiomatic", "tuned"] }}
"""


class Bench:
    def __init__(self, options):
        self.options, self.directory = options, options.state[0]
        if options.fresh:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.end = time.monotonic() + options.budget
        self.work = self.directory / "work"
        subprocess.run(["cc", "-O2", "-o", self.work, ROOT / "bench/work.c"], check=True)

    def lines(self, name):
        """The results stored under `name` in all --state directories."""
        files = [directory / f"{name}.jsonl" for directory in self.options.state]
        return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]

    def add(self, name, line):
        with open(self.directory / f"{name}.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")

    def pipemark(self, *words, codes=(0,)):
        words = [str(PIPEMARK), *map(str, words)]
        ended = subprocess.run(words, capture_output=True, text=True, cwd=self.directory)
        if ended.returncode not in codes:
            sys.exit(f"{' '.join(words)}: exit {ended.returncode}\n{ended.stderr}")
        return ended

    def pipeline(self, steps, blocks=160):
        """A pipeline on one CPU. 160 blocks with 15,000 steps take about 40 ms."""
        cpu = min(os.sched_getaffinity(0))
        return f"taskset -c {cpu} {self.work} {blocks} {steps} | taskset -c {cpu} wc -c"

    def calibrate(self):
        """The number of steps for each slowdown in per cent, computed from the times of two step counts, which are measured once,
        alternating."""
        found = self.lines("steps")
        if not found:
            base, more = 15_000, 30_000
            words = [
                "ab",
                "--runs",
                60,
                "--quiet",
                "--json",
                "-",
                "--",
                self.pipeline(base),
                "--",
                self.pipeline(more),
            ]
            both = json.loads(self.pipemark(*words).stdout)
            a, b = (
                statistics.quantiles((run["time"] for run in command["runs"]), n=4)[0] for command in both["commands"]
            )
            step = (b - a) / (more - base)
            found = [{"base": base, "by": {percent: base + round(a * percent / 100 / step) for percent in SLOWDOWNS}}]
            self.add("steps", found[0])
        return found[0]["base"], {int(percent): steps for percent, steps in found[0]["by"].items()}

    def ab(self, one, other, sessions, runs, flags=()):
        start = time.monotonic()
        ended = self.pipemark(
            "ab", "--sessions", sessions, "--runs", runs, "--quiet", "--json", "-", *flags,
            "--", self.pipeline(one), "--", self.pipeline(other), codes=(0, 10, 12),
        )  # fmt: skip
        return (
            json.loads(ended.stdout)["commands"][1]["figures"]["time"]["verdict"],
            ended.returncode,
            time.monotonic() - start,
        )

    # The programs that do equal work, and the one that does less.

    def entrants(self, name, passes):
        """Makes a directory of programs. Each program makes a number of passes over an eighth of every block."""
        directory = self.directory / name
        source = (ROOT / "entrants/c/idiomatic.c").read_text()
        call = "        answer.bytes += length;\n"
        assert call in source
        extra = "        for (volatile int pass = 0; pass < PASSES; pass++)\n"
        # This line writes back an unchanged byte, but the compiler can't know that the byte is unchanged.
        extra += "            *(volatile unsigned char *)block ^= add_byte_xor(0, block, length / 8) & options->block >> 40;\n"
        for language in LANGUAGES:
            own = directory / language
            own.mkdir(parents=True, exist_ok=True)
            (own / "program.c").write_text(source.replace(call, extra + call))
            shutil.copy(ROOT / "entrants/c/stream.h", own)
            stream = (ROOT / "entrants/c/stream.c").read_text()
            (own / "stream.c").write_text(stream.replace('\\"C\\"', f'\\"{language}\\"'))
            commands = [
                [
                    "{cc}",
                    "-std=gnu11",
                    "-O2",
                    f"-DPASSES={passes(language, way)}",
                    "-o",
                    f"{{out}}/{way}",
                    "program.c",
                    "stream.c",
                ]
                for way in ("idiomatic", "tuned")
            ]
            (own / "entrant.toml").write_text(
                f'name = "{language}"\n[[tools]]\nname = "cc"\ntry = [["gcc"], ["cc"]]\nversion = ["--version"]\n'
                f'install = "gcc"\n[build]\ncommands = {json.dumps(commands)}\n'
                + "".join(f'[{way}]\nrun = ["{{out}}/{way}"]\nabout = "{way}"\n' for way in ("idiomatic", "tuned"))
            )
        return directory

    def document(self, entrants, *flags):
        words = ["run", "./truth.toml", "--entrants", entrants, "--quiet", "--json", "-", *flags]
        return self.pipemark(*words).stdout

    def passes(self):
        """The number of passes of the equal programs and of the planted one, computed from the times of two pass counts, which are
        measured once."""
        found = self.lines("passes")
        if not found:
            (self.directory / "truth.toml").write_text(SUITE)

            def seconds(amount):
                text = self.document(self.entrants("calibration", lambda *_: amount), "--no-save")
                trials = [t for t in json.loads(text)["trials"] if t["params"].get("language")]
                bad = [t["reason"] for t in trials if t["status"] != "ok"]
                if bad:
                    sys.exit(f"truth: {bad[0]}")
                # The fastest run is the least disturbed.
                return statistics.median(1 / t["estimate"]["throughput"]["max"] for t in trials)

            fast, slow = 16, 48
            few, many = seconds(fast), seconds(slow)
            all_have = fast + round((FASTER - 1) * few / ((many - few) / (slow - fast)))
            found = [{"all": all_have, "planted": fast}]
            self.add("passes", found[0])
        return found[0]["all"], found[0]["planted"]

    def documents(self):
        all_have, planted = self.passes()
        (self.directory / "truth.toml").write_text(SUITE)
        equal = self.entrants("equal", lambda *_: all_have)
        unequal = self.entrants("planted", lambda *which: planted if which == (PLANTED, "tuned") else all_have)
        db, steps = self.directory / "truth.db", self.calibrate()
        while time.monotonic() < self.end and len(self.lines("documents")) < self.options.count:
            start, number = time.monotonic(), len(self.lines("documents")) + 1
            text, with_plant = self.document(equal, "--db", db, "--label", "equal"), self.document(
                unequal, "--no-save"
            )
            line = {"at": time.time(), "false": {}, "found": {}, "load": os.getloadavg()[0]}
            false, found = line["false"], line["found"]
            false["findings"], _ = differences(json.loads(text))
            others, hit = differences(json.loads(with_plant))
            found["findings"], false["findings beside the plant"] = hit, others
            known, faster = self.keep("equal", text, 2 * SESSIONS), self.keep("planted", with_plant, SERIES)
            if number > 2 * SESSIONS and number % SESSIONS == 0:
                base, new = self.side(known[:SESSIONS], "base"), self.side(known[SESSIONS:], "new")
                false["compare"], _ = self.compare(base, new, db)
                others, found["compare"] = self.compare(base, self.side(faster[-SESSIONS:], "new"), db)
                false["compare beside the plant"] = others
                false["trend"], _ = self.trend(db)
            if number > 2 * SERIES and number % SERIES == 0:
                others, found["trend"] = self.planted_trend(db, faster)
                false["trend beside the plant"] = others
            level, slower = steps[0], self.steps_for_slower(steps)
            false["ab"] = int(self.ab(level, level, 5, 4)[0] in ("better", "worse"))
            found["ab"] = self.ab(slower, level, 5, 4)[0] == "better"
            line["seconds"] = time.monotonic() - start
            self.add("documents", line)
            print(json.dumps(line), flush=True)
            time.sleep(min(self.options.pause, max(0, self.end - time.monotonic())))
            yield

    def keep(self, name, document, count):
        """Stores a document under `name`; returns the last `count` stored there."""
        self.add(name, json.loads(document))
        kept = self.lines(name)[-count:]
        self.side(kept, name)
        return kept

    def side(self, documents, name):
        """Writes documents to a file that `compare` reads as the sessions of one side."""
        file = self.directory / f"{name}.jsonl"
        file.write_text("".join(json.dumps(document) + "\n" for document in documents))
        return file

    @staticmethod
    def steps_for_slower(steps):
        """The number of steps with which the pipeline takes FASTER times its normal time."""
        base, by = steps
        return base + round((by[20] - base) * (FASTER - 1) / 0.2)

    def compare(self, base, new, db):
        """The number of false verdicts, and whether the planted difference was found."""
        diff = json.loads(self.pipemark("compare", base, new, "--db", db, "--json", "-").stdout)
        changes = [c for group in diff["groups"] for c in group["changes"] if not c["reference"]]
        reported = [c for c in changes if c["comparison"]["verdict"] in ("better", "worse")]
        return count_false_and_planted(
            reported, lambda c: c["base_id"], lambda c: c["comparison"]["verdict"] == "better"
        )

    def trend(self, db):
        words = ["history", "trend", "--db", db, "--limit", 24, "--format", "json"]
        reported = [t for t in json.loads(self.pipemark(*words).stdout) if t.get("verdict")]
        return count_false_and_planted(reported, lambda t: t["trial"], lambda t: t["verdict"] == "better")

    def planted_trend(self, db, planted):
        """Like `trend`, with the planted sessions added at the end of the series."""
        own = self.directory / "trend.db"
        own.unlink(missing_ok=True)
        shutil.copy(db, own)
        for n, document in enumerate(planted):
            document["started"] = time.strftime(f"%Y-%m-%dT%H:%M:%S.{n}Z", time.gmtime(time.time() + 60 + n))
            file = self.directory / "later.json"
            file.write_text(json.dumps(document))
            self.pipemark("history", "import", file, "--db", own)
        return self.trend(own)

    def power(self):
        base, by = self.calibrate()
        cells = [(p, *effort) for p in SLOWDOWNS for effort in (EFFORTS if p in LONG else EFFORTS[:-1])]
        times = self.options.times
        while time.monotonic() < self.end:
            known = [(line["percent"], line["sessions"], line["runs"]) for line in self.lines("power")]
            percent, sessions, runs = cell = min(cells, key=known.count)
            if known.count(cell) >= times:
                return
            verdict, _, seconds = self.ab(base, by[percent], sessions, runs)
            line = {"percent": percent, "sessions": sessions, "runs": runs, "seconds": seconds, "verdict": verdict}
            self.add("power", {**line, "load": os.getloadavg()[0]})
            print(json.dumps(line), flush=True)
            yield

    def ci(self):
        base, by = self.calibrate()
        jobs = self.options.times
        while time.monotonic() < self.end and len(known := self.lines("ci")) < 2 * jobs:
            percent = 10 if len(known) % 2 else 0
            _, code, seconds = self.ab(base, by[percent], 10, 25, ["--threshold", "3%", "--fail-on", "worse"])
            self.add("ci", {"percent": percent, "code": code, "seconds": seconds, "load": os.getloadavg()[0]})
            print(f"{percent} % slower: code {code} after {seconds:.0f} s", flush=True)
            yield

    def all(self):
        series = [self.documents(), self.power(), self.power(), self.ci()]
        while series:
            series = [one for one in series if next(one, self) is None]
            yield

    def report(self):
        documents = self.lines("documents")
        for kind in ("false", "found"):
            for what in sorted({what for line in documents for what in line[kind]}):
                values = [line[kind][what] for line in documents if what in line[kind]]
                count = sum(map(bool, values))
                bound = (
                    f"at most {upper(count, len(values)):.1%}"
                    if kind == "false"
                    else f"at least {1 - upper(len(values) - count, len(values)):.1%}"
                )
                print(f"{kind} {what}: {count} of {len(values)} documents, {bound} (95 %)")
        if any_false := [any(line["false"].values()) for line in documents]:
            print(
                f"false, of any kind: {sum(any_false)} of {len(any_false)}, at most {upper(sum(any_false), len(any_false)):.1%}"
            )
            print(f"a document takes {statistics.median(line['seconds'] for line in documents):.1f} s")
        power = self.lines("power")
        for percent in SLOWDOWNS:
            cells = []
            for sessions, runs in EFFORTS:
                own = [l for l in power if (l["percent"], l["sessions"], l["runs"]) == (percent, sessions, runs)]
                if own:
                    reported = sum(l["verdict"] in (("better", "worse") if percent == 0 else ("worse",)) for l in own)
                    cells.append(f"{reported}/{len(own)} in {statistics.median(l['seconds'] for l in own):.0f} s")
            if cells:
                print(f"{percent} % slower: " + ", ".join(cells))
        for percent in (0, 10):
            if codes := [l["code"] for l in self.lines("ci") if l["percent"] == percent]:
                print(f"the job of docs/ci.md, {percent} % slower: red {codes.count(10)} of {len(codes)}")


def count_false_and_planted(reported, name, better):
    """The number of false verdicts in `reported`, and whether it also has the planted difference."""
    plant = f"language={PLANTED} program=tuned"
    hits = [one for one in reported if plant in name(one) and better(one)]
    return len(reported) - len(hits), bool(hits)


def differences(document):
    """Like `count_false_and_planted`, for the findings that compare tuned with idiomatic programs."""
    false, hit = 0, False
    for finding in document["findings"]:
        if finding["rule"] != "tuning":
            continue
        said = finding["text"].split(":", 1)[1].split("no difference")[0]
        for part in said.replace(";", ",").split(","):
            if f"{PLANTED} " in part:
                hit = True
            elif part.strip(" ."):
                false += any(f"{language} " in part for language in LANGUAGES)
    return false, hit


def upper(count, of):
    """The one-sided upper 95 % bound of a share, exact (Clopper and Pearson)."""
    if count >= of:
        return 1.0
    low, high = count / of, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = sum(math.comb(of, k) * middle**k * (1 - middle) ** (of - k) for k in range(count + 1))
        low, high = (middle, high) if below > 0.05 else (low, middle)
    return high


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("what", choices=["documents", "power", "ci", "all", "report"], nargs="?", default="report")
    flags.add_argument("--budget", type=float, default=600, help="stop after SECONDS")
    flags.add_argument("--count", type=int, default=200, help="enough documents")
    flags.add_argument("--times", type=int, default=20, help="enough comparisons of each kind, and jobs of each kind")
    flags.add_argument("--pause", type=float, default=0)
    flags.add_argument("--fresh", action="store_true")
    flags.add_argument("--state", type=lambda path: Path(path).resolve(), nargs="+", default=[ROOT / "build/truth"])
    options = flags.parse_args()
    if options.what != "report":
        options.state = options.state[:1]
    bench = Bench(options)
    if bench.options.what != "report":
        for _ in getattr(bench, bench.options.what)():
            pass
    bench.report()


if __name__ == "__main__":
    main()
