#!/usr/bin/env python3
"""Holds the entrants to what docs/languages.md promises, as ratios of things measured in turns in one run.

    bench/languages.py [--pipemark PROGRAM] [--runs N] [--scale F]

Ends with 1 when a promise is not kept, and with 2 when one could not be tested here.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INTERPRETED = ["python", "javascript"]
NATIVE = ["c", "cpp", "rust", "zig"]


def ratio(new, base):
    """Median over the rounds in which both ran of the ratio of their throughputs."""
    rate = lambda trial: {s["round"]: s["bytes"] / s["ns"] for s in trial["samples"]}
    one, other = rate(new), rate(base)
    both = sorted(one.keys() & other.keys())
    return statistics.median(one[r] / other[r] for r in both) if both else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipemark", default=ROOT / "target/release/pipemark")
    parser.add_argument("--runs", default="7")
    parser.add_argument("--scale", default="1")
    options = parser.parse_args()
    command = [options.pipemark, "run", ROOT / "bench/languages.toml", "--json", "-"]
    command += ["--runs", options.runs, "--scale", options.scale, "--entrants", ROOT / "entrants"]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT)
    document = json.loads(done.stdout)
    trials = {}
    for trial in document["trials"]:
        params = trial["params"]
        trials[trial["experiment"], params.get("language"), params.get("program")] = trial

    # (promise, new, base, least ratio)
    program = lambda language, way: ("programs", language, way)
    languages = [language for experiment, language, way in trials if experiment == "programs" and way == "tuned"]
    promises = [
        (program(language, "tuned"), program("c", "tuned"), 0.7 if language in INTERPRETED else 0.9)
        for language in languages
        if language != "c"
    ]
    # Within 5 % of one another: the slowest against the fastest.
    natives = [program(language, "idiomatic") for language in NATIVE]
    measured = [key for key in natives if trials[key]["estimate"]]
    if len(measured) > 1:
        order = sorted(measured, key=lambda key: trials[key]["estimate"]["throughput"]["median"])
        promises.append((order[0], order[-1], 0.95))
    promises.append((("own", None, None), ("own", "c", "tuned"), 1.0))

    code = 0
    for new, base, least in promises:
        words = lambda key: " ".join(word for word in key[1:] if word) or "pipemark bw --verify xor"
        name = f"{words(new)} / {words(base)}"
        missing = [trials[key] for key in (new, base) if trials[key]["status"] != "ok"]
        if missing:
            print(f"{name:45} not tested: {missing[0]['reason'][:200]}")
            code = code or 2
            continue
        found = ratio(trials[new], trials[base])
        kept = found >= least
        print(f"{name:45} {found:6.3f}  promised {least:.2f}  {'kept' if kept else 'NOT KEPT'}")
        if not kept:
            code = 1
    # With others on the CPUs a ratio is theirs as much as ours.
    for warning in document["warnings"]:
        print("note:", json.dumps(warning))
    return code


if __name__ == "__main__":
    sys.exit(main())
