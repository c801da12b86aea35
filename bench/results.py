#!/usr/bin/env python3
"""Runs the measurements that bench/results.toml lists, and writes docs/results/*.toml and the page docs/results.md.

    bench/results.py [--only NAME,…] [--quick]    measure, then write the page
    bench/results.py --page                       write the page from the data files
    bench/results.py --check                      fail if a section of the page differs from its data file

A data file has the figures with command, date, machine and commit. A section says whether the measured code has changed since
the measurement. --quick runs each command briefly, to test this script; its figures are marked as such a test."""

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA, PAGE = ROOT / "docs/results", ROOT / "docs/results.md"
PIPEMARK = Path(os.environ.get("PIPEMARK", ROOT / "target/release/pipemark"))
QUICK = ["--runs", "5", "--time", "5ms"]
HEAD = """# Results

`make results` measures these figures, stores them in `docs/results/`, and writes this page from
them. Each row gives a median and its 95 % interval; in a table with the column *promised*, a row
gives the median of a ratio and its range. Compare only figures of the same section, because
sections may be from different days and machines.
"""


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()


def run_suite(words, quick):
    """Runs pipemark. Returns the rows of its document, and a description of the machine."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "out.json")
        quick = [flag for flag in QUICK if quick and not (words[0] == "chain" and flag in ("--time", "5ms"))]
        quick += ["--total", "4m"] if quick and words[0] == "chain" else []
        subprocess.run([PIPEMARK, *words, *quick, "--no-save", "--quiet", "--json", out], check=True)
        document = json.loads(out.read_text())
    rows = []
    for trial in document["trials"]:
        if trial["status"] != "ok" or trial.get("reference"):
            continue
        trips = trial["estimate"].get("latency")
        figure = trips["p50"] if trips else trial["estimate"]["throughput"]
        unit = "ns" if trips else "bytes/s"
        rows.append(
            {"what": trial["name"], "unit": unit, **{key: figure[key] for key in ("median", "low", "high", "runs")}}
        )
    host = document["host"]
    return rows, f"{host['cpu']}, {host['cpus']} CPUs, Linux {host['kernel'].split()[0]}"


def run_bench(script):
    """Runs a bench. Returns the promises that the bench checked, with their results."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as out:
        subprocess.run([ROOT / "bench" / script], env={**os.environ, "PIPEMARK_RESULTS": out.name})
        rows = [json.loads(line) for line in out]
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return rows, f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}"


def toml(value):
    return json.dumps(value, ensure_ascii=False)


def measure(result, quick):
    words = shlex.split(result.get("run", ""))
    rows, machine = run_suite(words, quick) if words else run_bench(result["bench"])
    facts = {
        "title": result["title"],
        "command": f"pipemark {result['run']}" if words else f"bench/{result['bench']}",
        "date": date.today().isoformat(),
        "machine": machine,
        "commit": git("rev-parse", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--", *result["code"])),
        "trial": quick,
        "code": result["code"],
    }
    lines = ["# Written by bench/results.py.", *(f"{key} = {toml(value)}" for key, value in facts.items())]
    for row in rows:
        lines += ["", "[[row]]", *(f"{key} = {toml(value)}" for key, value in row.items() if value is not None)]
    DATA.mkdir(exist_ok=True)
    (DATA / f"{result['name']}.toml").write_text("\n".join(lines) + "\n")


def shown(figure, unit):
    scales = {"bytes/s": [(2**30, "GiB/s"), (2**20, "MiB/s"), (1, "B/s")], "ns": [(1e6, "ms"), (1e3, "µs"), (1, "ns")]}
    divisor, name = next((s for s in scales.get(unit, []) if figure >= s[0]), (1, unit))
    return f"{figure / divisor:.3g} {name}" if name else f"{figure:.3g}"


def section(data):
    rows = data.get("row", [])
    promised = any("promised" in row for row in rows)
    lines = ["| what | promised | median | range |", "|---|---|---:|---:|"] if promised else []
    lines = lines or ["| what | median | 95 % interval | runs |", "|---|---:|---:|---:|"]
    for row in rows:
        low, high = (row.get(end) for end in ("low", "high"))
        ends = (
            f"{shown(low, row['unit'])} – {shown(high, row['unit'])}"
            if low is not None and high is not None
            else "too few runs"
        )
        what, median = row["what"].replace("|", "\\|"), shown(row["median"], row["unit"])
        cells = [what, row["promised"], median, ends] if promised else [what, median, ends, str(row["runs"])]
        lines.append(f"| {' | '.join(cells)} |")
    trial = " A trial of the script, not a result." if data["trial"] else ""
    return (
        f"\n## {data['title']}\n\n```sh\n{data['command']}\n```\n\n{data['date']}, {data['machine']}.{trial}\n\n"
        + "\n".join(lines)
        + "\n"
    )


def age(data):
    """A note if the measured code has changed since the measurement, or was uncommitted then; empty otherwise."""
    if (
        not data["commit"]
        or subprocess.run(["git", "-C", ROOT, "cat-file", "-e", data["commit"]], capture_output=True).returncode
    ):
        return ""
    later = git("rev-list", "--count", f"{data['commit']}..HEAD", "--", *data["code"])
    if data["changed"] or later not in ("", "0"):
        return "\n**Older than the code**: " + ", ".join(f"`{path}`" for path in data["code"]) + " changed since.\n"
    return ""


def page():
    order = [result["name"] for result in tomllib.loads((ROOT / "bench/results.toml").read_text())["result"]]
    found = [DATA / f"{name}.toml" for name in order]
    data = [tomllib.loads(path.read_text()) for path in found if path.exists()]
    empty = "" if data else "\nThere are no measurements yet.\n"
    PAGE.write_text(HEAD + empty + "".join(section(one) + age(one) for one in data))


def check():
    text = PAGE.read_text() if PAGE.exists() else ""
    wrong = [path.name for path in sorted(DATA.glob("*.toml")) if section(tomllib.loads(path.read_text())) not in text]
    sys.exit(f"docs/results.md differs from {', '.join(wrong)}; run bench/results.py --page" if wrong else 0)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--only", help="names of bench/results.toml, with commas between them")
    flags.add_argument("--quick", action="store_true")
    flags.add_argument("--page", action="store_true")
    flags.add_argument("--check", action="store_true")
    options = flags.parse_args()
    if options.check:
        check()
    if not options.page:
        results = tomllib.loads((ROOT / "bench/results.toml").read_text())["result"]
        names = options.only.split(",") if options.only else [result["name"] for result in results]
        if unknown := set(names) - {result["name"] for result in results}:
            sys.exit(f"not in bench/results.toml: {', '.join(sorted(unknown))}")
        for result in results:
            if result["name"] in names:
                print(f"measuring {result['name']}", flush=True)
                measure(result, options.quick)
    page()


if __name__ == "__main__":
    main()
