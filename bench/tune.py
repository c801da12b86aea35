#!/usr/bin/env python3
"""Compares what `pipemark tune` finds on the pipelines of tests/real with the known bottlenecks, and with the printed pipeline.

    bench/tune.py [--only REGEX] [--count N] [--skip N] [--budget SECONDS] [--json FILE] [--list] [--idle] [--known]

Takes N pipelines that can run again: without services, whose output is the same in each run, with a known stage. For each, it
checks:

- stage: the stage that the expert's fix names has the largest gain of all stages without their work;
- gain: the printed pipeline, pasted into a new shell, brings at least 80 % of the printed gain;
- output: it writes the same;
- slower: it isn't slower than the original;
- fix: it reaches at least 90 % of the gain of the expert's fix (where `tune` found a faster pipeline);
- time: `tune` keeps its budget.

With --idle, the pipelines have nothing to gain, and no gain may be found. With --known, stages have known costs, and "without a
stage" must agree with the pipeline in which that stage takes no time. Exits with 1 if a promise is broken."""

import argparse
import json
import os
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
PROMISES = {"stage": 0.95, "gain": 1.0, "output": 1.0, "faster": 1.0, "fix": 0.0, "time": 1.0}
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
    best = max(without, key=lambda one: one["gain"])
    stage = case["truth"]["stage"]
    words = result["stages"][best["stage"] - 1]["command"]
    return re.search(rf"(^|\W){re.escape(stage)}", words) is not None


def row(name, case, budget):
    place = real.CaseDirectory(case)
    with place:
        shell = real.shell(case)
        shell = shell if shell in ("sh", "bash") else os.path.basename(shell)
        result, seconds, done = tune(case["pipeline"], budget, place.directory, place.environment, shell)
        if result is None:
            reason = done.stderr.strip().splitlines()
            return {"name": name, "skipped": f"exit {done.returncode}: {reason[-1] if reason else ''}"}
        found = {"name": name, "base": result["time"]["median"], "runs": result["runs"], "seconds": seconds}
        found["stage"] = named_stage(case, result)
        found["time"] = seconds <= result["budget"] + 2
        fastest = result["fastest"]
        if fastest:
            # pipemark stands in printed pipelines by its name.
            environment = place.environment | {"PATH": f"{os.path.dirname(PIPEMARK)}:{place.environment['PATH']}"}
            pipelines = [case["pipeline"], fastest["command"], case["fix"]]
            times, outputs = alternate(pipelines, place.directory, environment, shell)
            gain, by_fix = times[0] / times[1], times[0] / times[2]
            found |= {
                "command": fastest["command"], "printed": fastest["gain"], "pasted": gain, "expert": by_fix,
                "gain": gain >= 0.8 * fastest["gain"], "output": outputs[0] == outputs[1], "faster": gain > 0.97,
                "fix": gain >= 0.9 * by_fix,
            }  # fmt: skip
        return found


def show(found):
    if "skipped" in found:
        return f"{found['name']:36} skipped: {found['skipped'][:80]}"
    marks = " ".join(f"{key}:{'yes' if found[key] else 'NO'}" for key in PROMISES if found.get(key) is not None)
    gain = f"{found['printed']:.2f} {found['pasted']:.2f} {found['expert']:.2f}" if "printed" in found else "-"
    return f"{found['name']:36} {found['base']:.2f} s, {found['runs']} runs; printed, pasted, expert: {gain}; {marks}"


def idle(budget, skip, count):
    claimed = []
    pipelines = IDLE[skip:][:count]
    for pipeline in pipelines:
        result, _, done = tune(pipeline, budget, "/", dict(os.environ), "sh")
        fastest = result and result["fastest"]
        if fastest:
            environment = os.environ | {"PATH": f"{os.path.dirname(PIPEMARK)}:{os.environ['PATH']}"}
            (old, new), outputs = alternate([pipeline, fastest["command"]], "/", environment, "sh")
            true = old / new > 1.02 and outputs[0] == outputs[1]
            print(
                f"{pipeline}: {fastest['gain']:.2f} claimed, {old / new:.2f} pasted: {fastest['command']}", flush=True
            )
            claimed += [] if true else [pipeline]
        else:
            print(f"{pipeline}: no gain{'' if result else ' (' + done.stderr.strip()[-100:] + ')'}", flush=True)
    print(f"{len(pipelines)} pipelines with nothing to gain, {len(claimed)} false claims")
    return len(claimed) <= max(1, len(pipelines) * 0.05)


def known(budget):
    """Compares "without a stage" with the same pipeline in which the stage takes no time."""
    right = total = 0
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["cc", "-O2", "-pthread", "-o", f"{directory}/stage", ROOT / "bench/stage.c"], check=True)
        for costs in KNOWN:

            def pipeline(left_out=None, costs=costs):
                stages = [
                    f"./stage read {work} {0 if at == left_out else cost}" for at, (work, cost) in enumerate(costs)
                ]
                return " | ".join(["head -c 32M /dev/zero", *stages, "wc -c"])

            result, _, done = tune(pipeline(), budget, directory, dict(os.environ), "sh")
            if result is None:
                print(f"{costs}: failed: {done.stderr.strip()[-200:]}")
                total += len(costs)
                continue
            variants = [pipeline()] + [pipeline(at) for at in range(len(costs))]
            times, _ = alternate(variants, directory, dict(os.environ), "sh", turns=5)
            for at, cost in enumerate(costs):
                truth = times[0] / times[at + 1]
                found = [one["gain"] for one in result["experiments"] if one["id"] == f"without-{at + 2}"]
                is_right = bool(found) and found[0] is not None and abs(found[0] / truth - 1) <= KNOWN_ERROR
                total, right = total + 1, right + is_right
                print(
                    f"{costs} without {cost}: {truth:.2f} true, {found} found{'' if is_right else ' WRONG'}",
                    flush=True,
                )
    print(f"known costs: {right} of {total} within {KNOWN_ERROR:.0%}")
    return right >= 0.9 * total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--json")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--known", action="store_true")
    options = parser.parse_args()
    if options.idle:
        sys.exit(0 if idle(options.budget, options.skip, options.count) else 1)
    if options.known:
        sys.exit(0 if known(options.budget) else 1)
    real.adopt_orphans()
    cases = list(candidates(options.only))
    # Spread over all families.
    step = max(1, len(cases) // options.count)
    cases = cases[options.skip :: step][: options.count]
    if options.list:
        sys.exit("\n".join(f"{name}: {case['pipeline']}" for name, case in cases))
    rows = []
    for name, case in cases:
        try:
            found = row(name, case, options.budget)
        except (real.Failure, subprocess.TimeoutExpired) as error:
            found = {"name": name, "skipped": str(error)[:200]}
        rows.append(found)
        print(show(found), flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(rows, indent=1))
    broken = []
    for key, least in PROMISES.items():
        known = [found[key] for found in rows if found.get(key) is not None]
        if known:
            share = sum(known) / len(known)
            print(f"{key}: {sum(known)} of {len(known)}")
            broken += [key] if share < least else []
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
