#!/usr/bin/env python3
"""Checks that the remedies of `pipemark why` gain what they promise, by timing each on a pipeline that needs it.

    bench/remedies.py [--only WORD] [--runs N] [--lock FILE] [--json FILE]

The pipelines are in bench/remedies.toml or are cases of tests/real. A remedy that gains less than its `gain` fails and must be
removed from the table of remedies."""

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PIPEMARK = os.path.abspath(os.environ.get("PIPEMARK", HERE.parent / "target/release/pipemark"))

spec = importlib.util.spec_from_file_location("real", HERE.parent / "tests/real/run.py")
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)


def case_of(row, cases):
    """The row as a case of tests/real, or the case that the row names."""
    if "case" in row:
        return cases[row["case"]]
    return {
        "name": row["id"], "family": "remedies", "programs": row.get("programs", []), "setup": row.get("setup", ""),
        "pipeline": row["before"], "fix": row["after"], "shell": "bash", "measured": True, **row.get("more", {}),
    }  # fmt: skip


def medians(case, place, runs):
    """Seconds that the pipeline and its fix take, as measured by `pipemark ab`, or seconds until their first byte of output."""
    if case.get("measure") == "first" or math.inf in (case.get("before"), case.get("after")):
        found, _, _ = real.time_commands({**case, "vain": None}, place, runs, real.BreakableLock(None))
        return found["before"], found["after"]
    before = case["pipeline"] if isinstance(case["pipeline"], str) else " ".join(case["pipeline"])
    words = [
        PIPEMARK,
        "ab",
        "--shell",
        case.get("shell", "sh").replace("dash", "sh"),
        "--ignore-output",
        "--warmup",
        "0",
    ]
    words += ["--runs", str(runs), "--limit", "60s", "--json", "-"]
    words += ["--prepare", case["reset"]] if "reset" in case else []
    done = subprocess.run(
        [*words, "--", before, "--", case["fix"]],
        cwd=place.directory, env=place.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    commands = json.loads(done.stdout)["commands"]
    return [command["figures"]["time"]["estimate"]["median"] / 1e9 for command in commands]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only remedies whose id contains this word")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--lock", metavar="FILE", help="hold this lock file while something is timed")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON")
    options = parser.parse_args()
    rows = [row for row in tomllib.loads((HERE / "remedies.toml").read_text())["remedy"] if options.only in row["id"]]
    if not rows:
        sys.exit(f"--only {options.only}: no such remedy")
    tables = [
        HERE.parent / "crates/pipemark-causes/src" / name for name in ("remedies.toml", "remedies_of_calls.toml")
    ]
    table = [row for path in tables for row in tomllib.loads(path.read_text())["remedy"]]
    known = {row["id"] for row in table}
    cases = {case["name"]: case for case in real.load()}
    real.adopt_orphans()
    turn, failed, results = real.BreakableLock(options.lock), 0, []
    for some in (rows[i : i + 12] for i in range(0, len(rows), 12)):
        turn.give()
        prepared = [(row, case_of(row, cases)) for row in some]
        prepared = [(row, case, real.prepare(case, True)) for row, case in prepared]
        for row, case, place in prepared:
            result = {"id": row["id"], "gain": row["gain"], "before": None, "after": None}
            results.append(result)
            if row["id"] not in known:
                print(f"{row['id']:26} is not in the table")
                failed += 1
                continue
            if isinstance(place, str):
                print(f"{row['id']:26} {place}")
                continue
            turn.take()
            try:
                with place:
                    before, after = medians(case, place, options.runs)
            except (RuntimeError, real.Failure, subprocess.TimeoutExpired) as error:
                print(f"{row['id']:26} failed: {error}", flush=True)
                failed += 1
                continue
            result |= {"before": before if math.isfinite(before) else None, "after": after}
            good = before / max(after, 1e-3) >= row["gain"]
            failed += not good
            print(
                f"{row['id']:26} {before:7.2f} s {after:7.2f} s {before / max(after, 1e-3):6.1f}×  at least {row['gain']}"
                f"{'' if good else ': FAILED'}",
                flush=True,
            )
    turn.give()
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    print(
        f"{len(results)} remedies, {failed} failed; {len(known - {row['id'] for row in rows})} of the table not timed"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
