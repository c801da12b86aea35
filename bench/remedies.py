#!/usr/bin/env python3
"""Whether the remedies that `pipemark why` advises gain what they promise: each is timed on a pipeline that needs it.

    bench/remedies.py [--only WORD] [--runs N]

The pipelines are in bench/remedies.toml. A remedy that gives less than its `gain` fails, and goes from the table."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
PIPEMARK = os.environ.get("PIPEMARK", str(HERE.parent / "target/release/pipemark"))


def gain(row, runs):
    """How many times as fast the pipeline is with the remedy, by the medians of runs that alternate."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["bash", "-ec", row.get("setup", ":")], cwd=folder, check=True)
        words = [PIPEMARK, "ab", "--runs", str(runs), "--json", "-", "--", row["before"], "--", row["after"]]
        done = subprocess.run(words, cwd=folder, env={**os.environ, "SHELL": "/bin/bash"}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        result = json.loads(done.stdout)
        middle = lambda side: sorted(result[side]["nanoseconds"])[len(result[side]["nanoseconds"]) // 2]
        return middle("a") / 1e9, middle("b") / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="remedies whose id has this word")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rows = tomllib.loads((HERE / "remedies.toml").read_text())["remedy"]
    table = tomllib.loads((HERE.parent / "crates/pipemark-watch/src/remedies.toml").read_text())["remedy"]
    known = {row["id"] for row in table}
    failed = 0
    for row in (row for row in rows if options.only in row["id"]):
        missing = [program for program in row.get("programs", []) if not shutil.which(program)]
        if row["id"] not in known:
            print(f"{row['id']:24} is not in the table")
            failed += 1
        elif missing:
            print(f"{row['id']:24} skipped: {', '.join(missing)} isn't installed")
        else:
            try:
                before, after = gain(row, options.runs)
            except RuntimeError as error:
                print(f"{row['id']:24} failed: {error}")
                failed += 1
                continue
            good = before / after >= row["gain"]
            failed += not good
            print(f"{row['id']:24} {before:7.2f} s {after:7.2f} s {before / after:6.1f}×  at least {row['gain']}"
                  f"{'' if good else ': FAILED'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
