#!/usr/bin/env python3
"""Measures the promises of pipemark. Each is a ratio of two alternating measurements.

    bench/run.py [--only WORD] [--rounds N]

Prints one line per promise: the median of the ratios, their range and the promised value. A promise is kept if the median meets
it. It is broken if the median's whole 95 % interval misses it (sign test; with fewer than six rounds, the whole range), and
otherwise unsure: use more rounds. Exits with 1 if a promise is broken.
Needs a quiet machine, and prints a note if other processes use the CPUs."""

import argparse
import json
import math
import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIPEMARK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/pipemark"
PAIR = ROOT / "build/pair"

BROKEN = []


def command(words, **options):
    """Runs a command to its end. If the command fails, the bench ends with the command's message."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
    return done


def requested(text):
    """The trials of a document that were asked for: not the reference, which is last."""
    return [trial for trial in json.loads(text)["trials"] if not trial.get("reference")]


def bw(*flags, time="200ms", before=()):
    """Throughput of a single run of one trial, in bytes per second."""
    done = command([*before, PIPEMARK, "bw", "--runs", "1", "--time", time, "--no-save", "--json", "-", *flags])
    trial = requested(done.stdout)[-1]
    if trial["status"] != "ok":
        sys.exit(f"bw {' '.join(flags)}: {trial['reason']}")
    return trial


def rate(*flags, **options):
    return bw(*flags, **options)["estimate"]["throughput"]["median"]


def round_trip(*flags, **options):
    return bw("--mode", "latency", *flags, **options)["estimate"]["latency"]["p50"]["median"]


def alternating(rounds, one, other):
    """The ratios one/other of `rounds` rounds. The order of the two is reversed in every second round."""
    ratios = []
    for n in range(rounds):
        if n % 2:
            below, above = other(), one()
        else:
            above, below = one(), other()
        ratios.append(above / below)
    return ratios


def interval(ratios, error):
    """The interval of the median at this error probability, by the sign test; unbounded if there are too few rounds."""
    ordered, n = sorted(ratios), len(ratios)
    below, tail = 0, 0.5**n
    while tail <= error / 2 and below < n // 2:
        below += 1
        tail += math.comb(n, below) * 0.5**n
    if below == 0:
        return 0.0, math.inf
    return ordered[below - 1], ordered[n - below]


def promise(name, ratios, least=None, most=None, unit="×"):
    median = statistics.median(ratios)
    # With fewer than six rounds, there is no such interval.
    low, high = interval(ratios, 0.05) if len(ratios) >= 6 else (min(ratios), max(ratios))
    kept = (least is None or median >= least) and (most is None or median <= most)
    broken = (least is not None and high < least) or (most is not None and low > most)
    wanted = " and ".join(
        text for text in (least is not None and f"at least {least}", most is not None and f"at most {most}") if text
    )
    wanted = wanted or "nothing promised"
    word = "kept  " if kept else "BROKEN" if broken else "unsure"
    print(f"{word}  {median:9.3f}{unit}  [{min(ratios):.3f} – {max(ratios):.3f}]  {name} ({wanted})", flush=True)
    if word == "BROKEN":
        BROKEN.append(name)
    # bench/results.py reads this file.
    if results := os.environ.get("PIPEMARK_RESULTS"):
        row = {
            "what": name,
            "promised": wanted,
            "unit": unit.strip(),
            "median": median,
            "low": min(ratios),
            "high": max(ratios),
        }
        with open(results, "a") as out:
            print(json.dumps({**row, "runs": len(ratios)}), file=out)


def pair(block, capacity, source, sink, milliseconds=200):
    words = [PAIR, block, capacity, source, sink, milliseconds]
    return float(command(words).stdout)


def against_c(rounds):
    """Checks that pipemark's write and read are as fast as those of a minimal pair of programs in C."""
    for block in (4096, 65536, 262144):
        for place, capacity in (("0:0", 0), ("0:1", 1 << 20)):
            source, sink = place.split(":")
            flags = ["--block", block, "--place", place]
            if capacity:
                flags += ["--capacity", capacity]
            ratios = alternating(rounds, lambda: rate(*map(str, flags)), lambda: pair(block, capacity, source, sink))
            what = f"write/read of {block} bytes on CPUs {place}, capacity {capacity or 65536}: pipemark / C pair"
            # pipemark may be faster than the pair of C programs.
            promise(what, ratios, least=0.97)


def ceilings(rounds):
    """Checks that the limits that pipemark reports for copying, making and checking bytes equal those of loops in C."""

    def alone(end, block):
        trial = bw("--verify", "full", "--block", str(block), "--place", "0:1", time="20ms")
        return trial["samples"][0][end][0]["ceiling"]

    def by_hand(what, block):
        # Milliseconds that give as many batches of 0.25 ms as pipemark uses.
        return float(command([ROOT / "build/ceiling", what, block, 20 if what == "copy" else 2]).stdout)

    def copied(block):
        trial = json.loads(
            command(
                [
                    PIPEMARK,
                    "bw",
                    "--link",
                    "memory-copy",
                    "--block",
                    block,
                    "--runs",
                    "1",
                    "--time",
                    "20ms",
                    "--no-save",
                    "--json",
                    "-",
                ]
            ).stdout
        )["trials"][0]
        # As in the loops in C, the rate is per CPU time, because other processes may use the CPU too.
        return statistics.median(s["bytes"] * 1e9 / (s["user_ns"] + s["sys_ns"]) for s in trial["samples"])

    for block in (4096, 65536, 1 << 20):
        for what, ours in (
            ("copy", lambda: copied(block)),
            ("make", lambda: alone("sources", block)),
            ("check", lambda: alone("sinks", block)),
        ):
            ratios = alternating(rounds, ours, lambda: by_hand(what, block))
            promise(f"ceiling to {what} {block} bytes: pipemark / a loop in C", ratios, least=0.95, most=1.05)


def fresh(rounds):
    gift = "--send vmsplice --pages huge --block 128k --capacity 1m --verify full --place cross".split()
    plain = "--block 64k --capacity 1m --verify full --place cross".split()
    small = "--block 16k --capacity 1m --verify full --place cross".split()
    promise(
        "fresh data by vmsplice / by write at its best capacity, each byte newly written and checked",
        alternating(rounds, lambda: rate(*gift), lambda: max(rate(*plain), rate(*small))),
        least=1.3,
    )


def quick(_):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    with tempfile.NamedTemporaryFile() as out:
        command([PIPEMARK, "run", "quick", "--no-save", "--json", out.name, "--quiet"])
        wall = time.monotonic() - begin
        document = json.load(open(out.name))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    promise("duration of `pipemark run quick` / 35 s", [wall / 35], most=1.0)
    first = min(sample["started_ns"] for trial in document["trials"] for sample in trial["samples"])
    promise("time from the start of measuring to the first run / 50 ms", [first / 50e6], most=1.0)
    del before, after


def own_cost(_):
    """Reads the parent process's memory and CPU time from /proc while it measures."""
    process = subprocess.Popen(
        [PIPEMARK, "bw", "--runs", "5", "--time", "1s", "--no-save", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    memory = cpu = 0
    ticks = os.sysconf("SC_CLK_TCK")
    begin = time.monotonic()
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            stat = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError, IndexError):
            break
        peak = [line for line in status.splitlines() if line.startswith("VmHWM")]
        memory = max(memory, int(peak[0].split()[1]) * 1024 if peak else 0)
        cpu = max(cpu, (int(stat[11]) + int(stat[12])) / ticks)
        time.sleep(0.05)
    process.wait()
    promise("memory of the parent / 64 MiB", [memory / (64 << 20)], most=1.0)
    promise("CPU time of the parent over the time measured", [cpu / (time.monotonic() - begin)], most=0.01)


def ten_thousand_runs(db):
    """Makes a history with ten thousand copies of one run."""
    command([PIPEMARK, "bw", "--runs", "5", "--time", "20ms", "--quiet", "--db", db])
    with sqlite3.connect(db) as database:
        database.executescript("""
            CREATE TEMPORARY TABLE number AS
                WITH RECURSIVE number (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number WHERE n < 10000)
                SELECT n FROM number;
            INSERT INTO run SELECT n, started + n, suite, title, 'nightly-' || n, host, kernel, cpu, version, trials,
                measured, outcome, headline FROM run, number;
            INSERT INTO document SELECT n, json FROM document, number;
            INSERT INTO measured SELECT trial, n FROM measured, number;
            """)
    database.close()


def history(rounds):
    """Times the list of ten thousand runs: of all, and of the newest twenty."""
    with tempfile.TemporaryDirectory() as directory:
        db = Path(directory) / "history.db"
        ten_thousand_runs(db)

        def seconds(*words):
            begin = time.monotonic()
            lines = command([PIPEMARK, "history", "--db", db, *words]).stdout.count("\n")
            assert lines >= 20
            return time.monotonic() - begin

        for what, words in [("all of 10,000 runs", ["--limit", "0"]), ("the newest of 10,000 runs", [])]:
            promise(f"listing {what} / 100 ms", [seconds(*words) / 0.1 for _ in range(rounds)], most=1.0)


def links(rounds):
    same = "--verify full --place cross --wait spin --capacity 1m".split()
    place = "--link shm --send in-place --recv in-place".split()
    promise(
        "shared memory in place / write and read over a pipe, 64 KiB, 1 MiB of room, both spin, each byte newly written and checked",
        alternating(rounds, lambda: rate(*place, *same), lambda: rate(*same)),
        least=2,
    )
    spin = "--wait spin --place cross --block 8".split()
    promise(
        "round trip of 8 bytes through shared memory / through a pipe, both spin, across two cores",
        alternating(rounds, lambda: round_trip("--link", "shm", *spin), lambda: round_trip(*spin)),
        most=0.5,
    )
    promise(
        "a 64 KiB block through the null link / by write and read",
        alternating(rounds, lambda: 1 / rate("--link", "null"), lambda: 1 / rate()),
        most=0.005,
    )


def perf_sched(rounds):
    """Compares round trips per second with `perf bench sched pipe`, on one CPU, where both only wait for the scheduler."""

    def perf():
        try:
            done = command(["taskset", "-c", "0", "perf", "bench", "-f", "simple", "sched", "pipe", "-l", "100000"])
        except FileNotFoundError:
            return None
        return 100000 / float(done.stdout.split()[-1])

    if perf() is None:
        print("skipped  `perf bench sched pipe`: perf is not installed (Debian's linux-perf)")
        return

    def ours():
        return bw("--mode", "latency", "--block", "4", "--place", "0:0", time="500ms")["estimate"]["latency"][
            "round_trips_per_second"
        ]["median"]

    promise(
        "round trips per second through a pipe / perf bench sched pipe, on one CPU",
        alternating(rounds, ours, perf),
        least=0.98,
    )


def sampling_cost(rounds):
    """Measures the cost of sampling a run from outside in the worst case: blocks of 64 B, with the sampler on the same CPU."""
    small = ["--block", "64", "--place", "0:0"]
    one = {"before": ["taskset", "-c", "0"], "time": "500ms"}
    promise(
        "64 B blocks, sampled every 10 ms / never, all on one CPU",
        alternating(rounds, lambda: rate(*small, **one), lambda: rate(*small, "--interval", "1min", **one)),
        least=0.995,
    )


def windows(rounds):
    """Checks that windows of 20 ms and of 1 s agree within 3 % in rows that aren't bimodal, for nine interleaved trials."""
    trials = "--block 64,4k,64k --place same,cross,free --no-save --json -".split()
    measured = {}
    for _ in range(rounds):
        for time, runs in (("20ms", 12), ("1s", 1)):
            done = command([PIPEMARK, "bw", *trials, "--time", time, "--runs", runs])
            for trial in json.loads(done.stdout)["trials"]:
                if trial["params"]["link"] != "memory-copy":
                    measured.setdefault(trial["name"], {}).setdefault(time, []).append(trial)
    for name, both in measured.items():
        told = lambda trial: any(warning["kind"] == "regimes" for warning in trial["warnings"])
        speeds = lambda rows: [s["bytes"] / s["ns"] for trial in rows for s in trial["samples"]]
        rows = [trial for own in both.values() for trial in own]
        silent = [[trial for trial in both[time] if not told(trial)] for time in ("20ms", "1s")]
        text = f"{sum(map(told, rows))} of {len(rows)} rows are bimodal; all of them {ratio_of(*map(speeds, both.values()))[1]:.3f}"
        if min(map(len, silent)) < 3:
            print(f"noted   windows of 20 ms / of 1 s, {name}: {text}", flush=True)
            continue
        low, ratio, high = ratio_of(*map(speeds, silent))
        if 0.97 <= ratio <= 1.03:
            word = "kept  "
        else:
            word = "BROKEN" if low > 1.03 or high < 0.97 else "unsure"
        if word == "BROKEN":
            BROKEN.append(name)
        print(
            f"{word}  {ratio:9.3f}×  [{low:.3f} – {high:.3f}]  windows of 20 ms / of 1 s, {name}: {text}", flush=True
        )


def ratio_of(one, other):
    """The ratio of the estimates of two lists of figures, with its 95 % bootstrap interval."""
    dice = random.Random(1)

    def estimate(figures):
        logs = [math.log(figure) for figure in figures]
        return statistics.median((a + b) / 2 for at, a in enumerate(logs) for b in logs[at:])

    drawn = sorted(
        estimate(dice.choices(one, k=len(one))) - estimate(dice.choices(other, k=len(other))) for _ in range(400)
    )
    return [math.exp(x) for x in (drawn[10], estimate(one) - estimate(other), drawn[-11])]


def main(checks, about):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", help="only checks whose name contains WORD")
    parser.add_argument("--rounds", type=int, default=9, help="rounds per ratio [default: 9]")
    options = parser.parse_args()
    if not any((options.only or "") in check.__name__ for check in checks):
        sys.exit(f"--only {options.only}: no such check; use {', '.join(check.__name__ for check in checks)}")
    load = os.getloadavg()[0]
    if load > 0.5:
        print(
            f"note: the load average is {load:.2f}; the figures mean little unless the machine is idle",
            file=sys.stderr,
        )
    for check in checks:
        if not options.only or options.only in check.__name__:
            check(options.rounds)
    if BROKEN:
        sys.exit(f"{len(BROKEN)} of the promises broken")


if __name__ == "__main__":
    main([against_c, ceilings, fresh, quick, own_cost, history, links, perf_sched, sampling_cost, windows], __doc__)
