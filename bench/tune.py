#!/usr/bin/env python3
"""Compares what `pipemark tune` finds on the pipelines of tests/real with the known bottlenecks, and with the printed pipeline.

    bench/tune.py [--only REGEX] [--count N] [--seed N] [--budget SECONDS] [--results FILE] [--tune-budget SECONDS] [--list]
                  [--idle [--busy]] [--known]

Takes N pipelines in an order chosen by the seed: without services, with a known stage, and those that write the same again. For each, it checks:

- stage: the stage that the expert's fix names has the largest gain of all stages without their work, or nearly;
- gain: the printed pipeline, pasted into a new shell, brings at least 80 % of the printed gain;
- output: it writes the same, or what it writes differs as `tune` says;
- faster: it isn't slower than the original;
- fix: `tune` reaches at least 90 % of the expert's fix, if the table of remedies has it and it writes the same;
- time: `tune` keeps its budget;
- as announced: there are as many runs as announced, give or take a quarter;
- kinds: of each kind of experiment, at least one was made.

With --idle, the pipelines have nothing to gain, and no gain may be found; with --busy, two busy loops run meanwhile. With
--known, stages have known costs, and "without a stage" must agree with the pipeline in which that stage takes no time.

With --results, each result is added to a file when it is known, and pipelines in the file aren't measured again. After
--budget SECONDS, no other pipeline is begun; call it again to go on. Exits with 1 if a promise is broken, and with 2 if
pipelines are left."""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/real"))
import run as real  # noqa: E402

PIPEMARK = os.environ.get("PIPEMARK", str(ROOT / "target/release/pipemark"))
TURNS = 3
PROMISES = {
    "stage": 0.95, "gain": 1.0, "output": 1.0, "faster": 1.0, "fix": 1.0, "time": 1.0, "as announced": 0.9,
    "kinds": 0.9,
}  # fmt: skip
# A stage with this share of the largest gain may as well be the one.
NEARLY = 0.95
# A pipeline that is faster by less is as fast.
NO_DIFFERENCE = 1.03
# Pipelines in which no known change helps.
IDLE = [
    "seq 3000000 | wc -l",
    "head -c 300M /dev/zero | wc -c",
    "head -c 100M /dev/zero | md5sum",
    "seq 2000000 | tr 0-9 a-j | md5sum",
    "seq 2000000 | cut -c1-3 | md5sum",
    "seq 3000000 | tail -n 1",
    "yes | head -n 20000000 | wc -c",
    "seq 2000000 | rev | tail -n 1",
    "seq 1000000 | gzip -1 | wc -c",
    "head -c 50M /dev/zero | base64 | wc -c",
    "seq 2000000 | paste - - | wc -l",
    "seq 1000000 | nl | tail -n 1",
    "seq 2000000 | fold -w 3 | wc -l",
    "head -c 200M /dev/zero | cat | wc -c",
    "seq 1000000 | sha256sum | cut -c1-8",
    "seq 500000 | od -c | wc -l",
    "seq 2000000 | tac | head -n 1",
    "seq 1000000 | xz -0 | wc -c",
    "head -c 300M /dev/zero | cksum",
    "seq 3000000 | grep -v 7 | wc -c",
]


# Stages of known cost: the work of each, and the microseconds for each block of 16 KiB. The truth for "without a stage" is the
# pipeline in which that stage takes no time.
KNOWN = [
    [("cpu", 500), ("cpu", 250)],
    [("cpu", 250), ("sleep", 500)],
    [("sleep", 300), ("sleep", 600), ("sleep", 450)],
    [("cpu", 400), ("cpu", 300), ("cpu", 200)],
    [("sleep", 500), ("cpu", 400), ("sleep", 450)],
    [("cpu", 500), ("cpu", 500)],
]
KNOWN_ERROR = 0.05
KNOWN_TIMES = 3


class Results:
    """The results of pipelines by name, in a file of JSON lines if there is one."""

    def __init__(self, path, budget):
        self.path, self.deadline, self.rows, self.left = path, time.monotonic() + budget, {}, 0
        if path and path.exists():
            self.rows = {row["name"]: row for row in map(json.loads, path.read_text().splitlines())}

    def measure(self, names_and_calls):
        """The results of all, of which only new ones are measured as long as the time isn't over."""
        found = []
        for name, call in names_and_calls:
            if name not in self.rows and time.monotonic() >= self.deadline:
                self.left += 1
                continue
            if name not in self.rows:
                self.rows[name] = {"name": name} | call()
                if self.path:
                    with self.path.open("a") as file:
                        file.write(json.dumps(self.rows[name]) + "\n")
            found.append(self.rows[name])
        return found

    def end(self, is_kept):
        if self.left:
            print(f"{self.left} pipelines are left")
        sys.exit(1 if not is_kept else 2 if self.left else 0)


def candidates(only):
    for case in real.load():
        name = f"{case['family']}/{case['name']}"
        plain = isinstance(case["pipeline"], str) and isinstance(case.get("fix"), str) and "service" not in case
        timed = "measured" in case and "measure" not in case and 0.3 <= float(case["before"]) <= 12
        stage = case["truth"].get("stage")
        if plain and timed and isinstance(stage, str) and re.search(only, name) and not real.missing(case, False):
            if set(case.get("needs", [])) <= {"root"}:
                yield name, case


def tune(pipeline, budget, directory, environment, shell):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        begin = time.monotonic()
        words = [PIPEMARK, "tune", "--yes", "--shell", shell, "--json", file.name, pipeline]
        words += ["--budget", f"{budget}s"] if budget else []
        done = subprocess.run(
            words,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
        )
        seconds = time.monotonic() - begin
        text = Path(file.name).read_text()
    return (json.loads(text) if text else None), seconds, done


def timed(pipeline, directory, environment, shell):
    begin = time.monotonic()
    done = subprocess.run(
        [shell, "-c", pipeline],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
    )
    return time.monotonic() - begin, done.stdout


def alternate(pipelines, directory, environment, shell, turns=TURNS):
    """The median times of pipelines in alternating runs, and their outputs."""
    times, outputs = [[] for _ in pipelines], []
    for turn in range(turns):
        for at, pipeline in enumerate(pipelines):
            seconds, output = timed(pipeline, directory, environment, shell)
            times[at].append(seconds)
            if turn == 0:
                outputs.append(output)
    return [statistics.median(one) for one in times], outputs


def named_stage(case, result):
    """Whether the expert's stage has the largest gain of all stages without their work; None if it wasn't measured."""
    without = [one for one in result["experiments"] if one["kind"] == "without" and one["gain"]]
    if not without:
        return None
    most = max(one["gain"] for one in without)
    best = [one for one in without if one["gain"] >= NEARLY * most]
    commands = [result["stages"][one["stage"] - 1]["command"] for one in best]
    return any(re.search(rf"(^|\W){re.escape(case['truth']['stage'])}", command) for command in commands)


def is_as_announced(line, runs):
    about, least, most = re.search(r"(?:about (\d+)|(\d+) to (\d+)) runs|$", line).groups()
    least, most = [int(one or about or 0) for one in (least, most)]
    return 0.75 * least <= runs <= 1.25 * most


def row(case, budget):
    place = real.CaseDirectory(case)
    with place:
        shell = real.shell(case)
        shell = shell if shell in ("sh", "bash") else os.path.basename(shell)
        result, seconds, done = tune(case["pipeline"], budget, place.directory, place.environment, shell)
        if result is None:
            reason = done.stderr.strip().splitlines()
            return {"skipped": f"exit {done.returncode}: {reason[-1] if reason else ''}"}
        found = {"base": result["time"]["median"], "runs": result["runs"], "seconds": seconds}
        found["announced"] = next((line for line in done.stderr.splitlines() if "runs in at most" in line), "")
        found["as announced"] = is_as_announced(found["announced"], result["runs"])
        kinds = {one["kind"] for one in result["experiments"] if one["runs"]}
        needed = {"without", "alone", "cpus"} | ({"capacity"} if len(result["stages"]) > 1 else set())
        found["kinds"] = needed <= kinds and "guesses" not in result["untried"]
        found["stage"] = named_stage(case, result)
        found["time"] = seconds <= result["budget"] + 2
        fastest = result["fastest"]
        # pipemark stands in printed pipelines by its name.
        environment = place.environment | {"PATH": f"{os.path.dirname(PIPEMARK)}:{place.environment['PATH']}"}
        pipelines = [case["pipeline"], case["fix"], *([fastest["command"]] if fastest else [])]
        times, outputs = alternate(pipelines, place.directory, environment, shell)
        by_fix, gain = times[0] / times[1], times[0] / times[-1] if fastest else 1.0
        found |= {"expert": by_fix, "pasted": gain}
        if case.get("remedies") and outputs[0] == outputs[1] and by_fix > NO_DIFFERENCE:
            found["fix"] = gain >= 0.9 * by_fix
        if fastest:
            found |= {
                "command": fastest["command"], "printed": fastest["gain"],
                "gain": gain >= 0.8 * fastest["gain"],
                "output": (outputs[0] == outputs[-1]) == fastest["same_output"],
                "faster": gain > 1 / NO_DIFFERENCE,
            }  # fmt: skip
        return found


def show(found):
    if "skipped" in found:
        return f"{found['name']:36} skipped: {found['skipped'][:80]}"
    marks = " ".join(f"{key}:{'yes' if found[key] else 'NO'}" for key in PROMISES if found.get(key) is not None)
    printed = f"{found['printed']:.2f}" if "printed" in found else "-"
    gains = f"{printed} {found['pasted']:.2f} {found['expert']:.2f}"
    return f"{found['name']:36} {found['base']:.2f} s, {found['runs']} runs; printed, pasted, expert: {gains}; {marks}"


def real_pipelines(options, results):
    real.adopt_orphans()
    cases = sorted(candidates(options.only), key=lambda one: one[0])
    random.Random(options.seed).shuffle(cases)
    if options.list:
        sys.exit("\n".join(f"{name}: {case['pipeline']}" for name, case in cases))

    def call(name, case):
        try:
            found = row(case, options.tune_budget)
        except (real.Failure, subprocess.TimeoutExpired) as error:
            found = {"skipped": str(error)[:200]}
        print(show({"name": name} | found), flush=True)
        return found

    # Those that can't run again are replaced by others.
    rows = []
    for name, case in cases:
        if sum("skipped" not in found for found in rows) + results.left < options.count:
            rows += results.measure([(name, lambda name=name, case=case: call(name, case))])
    is_kept = True
    for key, least in PROMISES.items():
        known = [found[key] for found in rows if found.get(key) is not None]
        if known:
            is_right = sum(known) >= least * len(known)
            is_kept &= is_right
            print(f"{key}: {sum(known)} of {len(known)}{'' if is_right else f', which is less than {least:.0%}'}")
    print(f"{len(rows)} pipelines, {sum('skipped' in found for found in rows)} skipped")
    results.end(is_kept)


def idle(options, results):
    """Runs pipelines with nothing to gain, beside two busy loops if asked for."""

    def call(pipeline):
        result, seconds, done = tune(pipeline, options.tune_budget, "/", dict(os.environ), "sh")
        if result is None:
            return {"failed": done.stderr.strip()[-200:]}
        found = {"seconds": seconds, "budget": result["budget"], "false": False}
        if fastest := result["fastest"]:
            environment = os.environ | {"PATH": f"{os.path.dirname(PIPEMARK)}:{os.environ['PATH']}"}
            (old, new), outputs = alternate([pipeline, fastest["command"]], "/", environment, "sh", turns=7)
            is_true = old / new > NO_DIFFERENCE and outputs[0] == outputs[1]
            found |= {
                "false": not is_true,
                "printed": fastest["gain"],
                "pasted": old / new,
                "command": fastest["command"],
            }
        print(f"{pipeline}: {found}", flush=True)
        return found

    mark = "busy: " if options.busy else ""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 if options.busy else 0)]
    try:
        pipelines = IDLE[: options.count]
        rows = results.measure((mark + one, lambda one=one: call(one)) for one in pipelines)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    claims = sum(found.get("false", False) for found in rows)
    print(f"{len(rows)} pipelines with nothing to gain, {claims} false claims")
    results.end(claims <= 0.05 * len(rows) and not any("failed" in found for found in rows))


def known(options, results):
    """Compares "without a stage" with the same pipeline in which the stage takes no time."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["cc", "-O2", "-pthread", "-o", f"{directory}/stage", ROOT / "bench/stage.c"], check=True)
        environment = dict(os.environ)

        def call(costs):
            def pipeline(left_out=None):
                stages = [
                    f"./stage read {work} {0 if at == left_out else cost}" for at, (work, cost) in enumerate(costs)
                ]
                return " | ".join(["head -c 32M /dev/zero", *stages, "wc -c"])

            gains = [[] for _ in costs]
            for _ in range(KNOWN_TIMES):
                result, _, done = tune(pipeline(), options.tune_budget, directory, environment, "sh")
                if result is None:
                    return {"failed": done.stderr.strip()[-200:]}
                for at, found in enumerate(gains):
                    found += [
                        one["gain"]
                        for one in result["experiments"]
                        if one["id"] == f"without-{at + 2}" and one["gain"]
                    ]
            variants = [pipeline()] + [pipeline(at) for at in range(len(costs))]
            times, _ = alternate(variants, directory, environment, "sh", turns=7)
            true = [times[0] / one for one in times[1:]]
            found = [statistics.median(one) if one else None for one in gains]
            print(f"{costs}: true {[f'{one:.2f}' for one in true]}, found {found}", flush=True)
            return {"true": true, "found": found}

        rows = results.measure((str(costs), lambda costs=costs: call(costs)) for costs in KNOWN[: options.count])
    pairs = [pair for found in rows for pair in zip(found.get("true", []), found.get("found", []))]
    right = sum(one is not None and abs(one / truth - 1) <= KNOWN_ERROR for truth, one in pairs)
    print(f"known costs: {right} of {len(pairs)} within {KNOWN_ERROR:.0%}")
    results.end(right == len(pairs) and not any("failed" in found for found in rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=62)
    parser.add_argument("--budget", type=float, default=float("inf"), help="begin no pipeline after SECONDS")
    parser.add_argument("--tune-budget", type=float, help="the --budget of tune, in seconds")
    parser.add_argument("--results", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--known", action="store_true")
    options = parser.parse_args()
    run = idle if options.idle else known if options.known else real_pipelines
    run(options, Results(options.results, options.budget))


if __name__ == "__main__":
    main()
