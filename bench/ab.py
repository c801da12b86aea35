#!/usr/bin/env python3
"""Compares `pipemark ab` with hyperfine: how often each reports a difference between equal commands, and how often each finds a
real one.

    bench/ab.py pairs [--seconds S]     pairs of commands, equal or 2, 5 or 10 % slower, for S seconds
    bench/ab.py ci [--seconds S]        the job of docs/ci.md, equal and 10 % slower, with and without two busy loops
    bench/ab.py catch [--seconds S]     ab --catch 10% --budget 30s: equal commands, 5 and 10 % slower, with and without two busy loops
    bench/ab.py same [--seconds S]      equal commands of 5 ms to 2 s with ab's default budget: how often and how soon ab says "same"
    bench/ab.py start                   a command's time, measured alternately by ab and by a C program that starts it and waits

ab and hyperfine get the same time for a pair of commands (--budget, 1 s by default). If ab needs more for its ten rounds,
hyperfine gets as much; if ab needs less, hyperfine still gets the whole budget. hyperfine runs one command after the other, each
for half of the time. Welch's test at 5 % is applied to the times that hyperfine exports. Commands compute for about 5, 25 and
75 ms; `noisy` commands take 20 ms and a random addition of up to 30 %. A slower command makes more steps of the same loop.
Results are kept in build/ab as JSON lines. The next call continues there, unless --fresh is given. hyperfine must be in PATH.
"""

import argparse
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from relay import interval

ROOT = Path(__file__).resolve().parent.parent
PIPEMARK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/pipemark"
STATE = ROOT / "build/ab"
# Duration in milliseconds, and the largest random addition as a share of the duration.
KINDS = {"short": (5, 0), "middle": (25, 0), "long": (75, 0), "noisy": (20, 0.3)}
# Slowdowns of the second command in per cent. Two thirds of the pairs are equal.
SLOWDOWNS = [0, 2, 0, 0, 5, 0, 0, 10, 0]
# Cases of `catch`: slowdown in per cent, and whether two busy loops run. Of nine idle cases, four are equal and two are at the limit.
CATCH = [
    (0, False),
    (10, False),
    (0, True),
    (5, False),
    (0, False),
    (10, True),
    (0, False),
    (10, False),
    (0, False),
    (5, True),
]
# Length of the commands in the job of docs/ci.md, in milliseconds.
JOB = 10
# For `start`: the number of rounds, the runs of the C program and of ab per round and case, and the time after which no
# more rounds begin.
START_ROUNDS = 10
START_RUNS = 100
START_SECONDS = 170


def compiled(name):
    program = STATE / name
    if not program.exists():
        subprocess.run(["cc", "-O2", "-o", program, ROOT / f"bench/{name}.c"], check=True)
    return str(program)


def keep(result):
    with open(STATE / "results.jsonl", "a") as file:
        file.write(json.dumps(result) + "\n")


def steps_per_ms(spin):
    """The rate in the fastest of several runs, excluding startup."""

    def best(steps):
        times = []
        for _ in range(7):
            begin = time.perf_counter()
            subprocess.run([spin, str(steps)], check=True)
            times.append(time.perf_counter() - begin)
        return min(times)

    return 20_000_000 / (best(20_000_000) - best(0)) / 1000


def ab(commands, budget, more=(), shell="none"):
    words = [
        PIPEMARK,
        "ab",
        "--shell",
        shell,
        "--budget",
        f"{budget}s",
        "--json",
        "-",
        "--quiet",
        *more,
        "--",
        *commands,
    ]
    ended = subprocess.run(words, capture_output=True, text=True)
    return ended.returncode, json.loads(ended.stdout) if ended.stdout else None


def hyperfine(commands, runs):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = [
            "hyperfine",
            "-N",
            "--style",
            "none",
            "--warmup",
            "1",
            "--runs",
            str(runs),
            "--export-json",
            file.name,
            *commands,
        ]
        subprocess.run(words, check=True, capture_output=True)
        return [result["times"] for result in json.load(open(file.name))["results"]]


def beta_fraction(a, b, x):
    """Lentz's continued fraction of the incomplete beta function (Numerical Recipes, 6.4)."""
    tiny, c, d = 1e-300, 1.0, 1 / (1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return result


def incomplete_beta(a, b, x):
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1 - front * beta_fraction(b, a, 1 - x) / b


def welch(one, other):
    """The two-sided p-value of Welch's test."""
    parts = [statistics.variance(times) / len(times) for times in (one, other)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return 1.0
    t = (statistics.mean(one) - statistics.mean(other)) / error
    freedom = sum(parts) ** 2 / sum(part**2 / (len(times) - 1) for part, times in zip(parts, (one, other)))
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def pairs(options):
    spin = compiled("spin")
    rate = steps_per_ms(spin)
    end = time.monotonic() + options.seconds
    done = sum(1 for one in results() if one["what"] == "pair")
    cases = list(itertools.product(SLOWDOWNS, KINDS))
    while time.monotonic() < end:
        percent, kind = cases[done % len(cases)]
        ms, spread = KINDS[kind]
        steps = [round(rate * ms), round(rate * ms * (1 + percent / 100))]
        commands = [f"{spin} {count} {spread}" for count in steps]
        begin = time.monotonic()
        _, result = ab(commands, options.budget)
        took = time.monotonic() - begin
        figure = result["commands"][1]["figures"]["time"]
        median = result["commands"][0]["figures"]["time"]["estimate"]["median"] / 1e9
        begin = time.monotonic()
        p = welch(*hyperfine(commands, max(5, int(max(options.budget, took) / 2 / median))))
        keep(
            {
                "what": "pair",
                "kind": kind,
                "percent": percent,
                "verdict": figure["verdict"],
                "p": p,
                "ab_seconds": took,
                "hyperfine_seconds": time.monotonic() - begin,
                "change": figure["comparison"]["change"],
            }
        )
        done += 1


def ci(options):
    spin = compiled("spin")
    rate = steps_per_ms(spin)
    end = time.monotonic() + options.seconds
    done = sum(1 for one in results() if one["what"] == "ci")
    cases = list(itertools.product([0, 10, 0], [False, True]))
    while time.monotonic() < end:
        percent, busy = cases[done % len(cases)]
        loops = [subprocess.Popen([spin, "1e15"]) for _ in range(2 if busy else 0)]
        try:
            begin = time.monotonic()
            commands = [f"{spin} {round(rate * JOB * (1 + more / 100))}" for more in (0, percent)]
            code, result = ab(commands, 120, ["--sessions", "10", "--threshold", "3%", "--fail-on", "worse"])
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        verdict = result["commands"][1]["figures"]["time"]["verdict"]
        keep(
            {
                "what": "ci",
                "percent": percent,
                "busy": busy,
                "code": code,
                "verdict": verdict,
                "seconds": time.monotonic() - begin,
            }
        )
        done += 1


def catch(options):
    """Commands compute for 10 ms."""
    spin = compiled("spin")
    rate = steps_per_ms(spin)
    end = time.monotonic() + options.seconds
    done = sum(1 for one in results() if one["what"] == "catch")
    while time.monotonic() < end:
        percent, busy = CATCH[done % len(CATCH)]
        loops = [subprocess.Popen([spin, "1e15"]) for _ in range(2 if busy else 0)]
        try:
            begin = time.monotonic()
            commands = [f"{spin} {round(rate * JOB * (1 + more / 100))}" for more in (0, percent)]
            code, result = ab(commands, 30, ["--catch", "10%"])
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        keep(
            {
                "what": "catch",
                "percent": percent,
                "busy": busy,
                "code": code,
                "catch": result["catch"],
                "sessions": result["sessions"],
                "change": (result["commands"][1]["figures"]["time"]["comparison"] or {}).get("change"),
                "seconds": time.monotonic() - begin,
            }
        )
        done += 1


def same(options):
    spin = compiled("spin")
    rate = steps_per_ms(spin)
    end = time.monotonic() + options.seconds
    for ms in itertools.cycle([5, 20, 100, 400, 2000]):
        if time.monotonic() > end:
            return
        begin = time.monotonic()
        _, result = ab([f"{spin} {round(rate * ms)}"] * 2, 60)
        verdict = result["commands"][1]["figures"]["time"]["verdict"]
        keep({"what": "same", "ms": ms, "verdict": verdict, "seconds": time.monotonic() - begin})


def plain_ns(words):
    command = [compiled("start"), str(START_RUNS), *words]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ab_ns(words, shell):
    _, result = ab([" ".join(words)], 60, ["--runs", str(START_RUNS)], shell)
    return result["commands"][0]["figures"]["time"]["estimate"]["median"]


def start(_):
    spin = compiled("spin")
    rate = steps_per_ms(spin)
    begin = time.monotonic()
    cases = list(itertools.product(("none", "sh"), (0, 1, 5, 20)))
    ratios = {case: [] for case in cases}
    # The C program and ab alternate often, so that a change of the machine's speed affects both.
    for round_number in range(START_ROUNDS):
        if time.monotonic() - begin > START_SECONDS:
            break
        for shell, ms in cases:
            words = [spin, str(round(rate * ms))]
            if round_number % 2:
                expected, measured = plain_ns(words), ab_ns(words, shell)
            else:
                measured, expected = ab_ns(words, shell), plain_ns(words)
            ratios[shell, ms].append(measured / expected)
    for (shell, ms), own in ratios.items():
        low, high = interval(own, 0.05)
        keep(
            {
                "what": "start",
                "ms": ms,
                "shell": shell,
                "rounds": len(own),
                "ratio": statistics.median(own),
                "low": low,
                "high": high,
            }
        )
    report(None)


def results():
    path = STATE / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def upper(wrong, count):
    """Clopper and Pearson's upper 95 % bound, one-sided."""
    low, high = wrong / max(count, 1), 1.0
    for _ in range(60):
        middle = (low + high) / 2
        at_most = sum(math.comb(count, k) * middle**k * (1 - middle) ** (count - k) for k in range(wrong + 1))
        low, high = (middle, high) if at_most > 0.05 else (low, middle)
    return high


def report(_):
    all_pairs = [one for one in results() if one["what"] == "pair"]
    differs = lambda one: one["verdict"] in ("better", "worse")
    equal = [one for one in all_pairs if one["percent"] == 0]
    if equal:
        false = sum(differs(one) for one in equal)
        welch_false = sum(one["p"] < 0.05 for one in equal)
        # The level at which Welch's test has as many false positives as ab.
        level = sorted(one["p"] for one in equal)[false]
        print(
            f"equal pairs: {len(equal)}; called different: ab {false} (at most {upper(false, len(equal)):.1%}), "
            f"hyperfine with Welch {welch_false} (at most {upper(welch_false, len(equal)):.1%})"
        )
        print(
            "| slower by | command | pairs | ab | Welch at 5 % | Welch at ab's false rate |\n|---|---|---|---|---|---|"
        )
        for percent, kind in itertools.product([0, 2, 5, 10], KINDS):
            own = [one for one in all_pairs if (one["percent"], one["kind"]) == (percent, kind)]
            if own:
                found = (
                    sum(map(differs, own)),
                    sum(one["p"] < 0.05 for one in own),
                    sum(one["p"] < level for one in own),
                )
                print(f"| {percent} % | {kind} | {len(own)} | {found[0]} | {found[1]} | {found[2]} |")
        planted = [one for one in all_pairs if one["percent"]]
        print(
            f"planted, all together: ab {sum(map(differs, planted))} of {len(planted)}, "
            f"Welch {sum(one['p'] < 0.05 for one in planted)}, at ab's false rate {sum(one['p'] < level for one in planted)}"
        )
        same = [one for one in equal if one["kind"] != "noisy"]
        print(
            f"equal and quiet, called same: {sum(one['verdict'] == 'same' for one in same)} of {len(same)}; a pair took "
            f"ab {statistics.median(one['ab_seconds'] for one in all_pairs):.1f} s, "
            f"hyperfine {statistics.median(one['hyperfine_seconds'] for one in all_pairs):.1f} s"
        )
    for percent, busy in itertools.product([0, 10], [False, True]):
        own = [one for one in results() if one["what"] == "ci" and (one["percent"], one["busy"]) == (percent, busy)]
        if own:
            words = {
                word: sum(one["verdict"] == word for one in own)
                for word in ("better", "worse", "same", "inconclusive")
            }
            print(
                f"job, {percent} % slower{', two busy loops' if busy else ''}: red {sum(one['code'] == 10 for one in own)} of "
                f"{len(own)}, {words}, {max(one['seconds'] for one in own):.0f} s at most"
            )
    for percent, busy in sorted(set(CATCH)):
        own = [one for one in results() if one["what"] == "catch" and (one["percent"], one["busy"]) == (percent, busy)]
        if own:
            red = [one for one in own if one["code"] == 10]
            others = sum(one["catch"]["by"] != "time" for one in red)
            print(
                f"catch 10 %, {percent} % slower{', two busy loops' if busy else ''}: of {len(own)}: red {len(red)} ({others} by "
                f"other figures than time), green {sum(one['code'] == 0 for one in own)}, undecided "
                f"{sum(one['code'] == 12 for one in own)}; {statistics.median(one['seconds'] for one in own):.1f} s, "
                f"at most {max(one['seconds'] for one in own):.1f} s"
            )
    for ms in sorted({one["ms"] for one in results() if one["what"] == "same"}):
        own = [one for one in results() if one["what"] == "same" and one["ms"] == ms]
        print(
            f"equal commands of {ms} ms: same {sum(one['verdict'] == 'same' for one in own)} of {len(own)}, "
            f"after {statistics.median(one['seconds'] for one in own):.1f} s"
        )
    for one in results():
        if one["what"] == "start":
            print(
                f"start, --shell {one['shell']}, {one['ms']} ms of computing: {one['ratio']:.3f} ({one['low']:.3f} to "
                f"{one['high']:.3f}) times what a C program that waits sees, {one['rounds']} rounds"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pairs", "ci", "catch", "same", "start", "report"])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--budget", type=float, default=1)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir(parents=True, exist_ok=True)
    if options.what == "pairs" and not shutil.which("hyperfine"):
        sys.exit("hyperfine is not on PATH: cargo install hyperfine")
    globals()[options.what](options)


if __name__ == "__main__":
    main()
