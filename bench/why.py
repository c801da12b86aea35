#!/usr/bin/env python3
"""Measures the promises on `pipemark why`: that it finds planted causes, costs little, and doesn't change pipelines.

    bench/why.py [--only WORD] [--held-out | --known] [--rounds N]
    bench/why.py --cases | --shares | --cost | --scale     # --shares and --cost continue where --budget stopped them
    nice -n 19 bench/why.py --short-pipelines 10000    # continues where it stopped; --fresh starts over

Prints a line for each wrong verdict, the confusion table, and the promises in the form of bench/run.py."""

import argparse
import collections
import hashlib
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import run
from run import PIPEMARK, ROOT, promise

STAGE = ROOT / "build/stage"
ACCESS = ("syscall", "wchan")


def stage(wait="read", work="cpu", micros=1000, block=16384, every=1):
    return f"{STAGE} {wait} {work} {micros} {block} {every}"


def line(*stages):
    return " | ".join([f"{stages[0]} </dev/zero", *stages[1:-1], f"{stages[-1]} >/dev/null"])


def planted(place, margin, count=3, wait="read", work="sleep", micros=8000, others=("read", "sleep")):
    """A pipeline in which one stage takes `margin` times as long as each of the others."""
    rest = stage(*others, micros / margin)
    cost = micros * 2 if wait == "threads" else micros
    stages = [stage(wait, work, round(cost)) if n == place else rest for n in range(1, count + 1)]
    return line(*stages), ("stage", place)


def cases():
    """Yields each case: name, kind of cause, whether it was held out while rules were chosen, pipeline, expected verdict."""
    for place in (1, 2, 3):
        for margin in (1.25, 2, 10):
            yield f"sleep {place} {margin}", "sleep", False, *planted(place, margin)
        yield f"cpu {place} 4", "computing", False, *planted(place, 4, work="cpu", micros=6000)
    yield "cpu 2 1.5", "computing", False, *planted(2, 1.5, work="cpu", micros=6000)
    yield "cpu 2 1.25 of 2", "computing", False, *planted(2, 1.25, 2, work="cpu", micros=6000)
    for wait in ("poll", "splice"):
        for margin in (1.5, 3):
            yield f"{wait} slow {margin}", wait, False, *planted(2, margin, wait=wait)
            yield f"{wait} around {margin}", wait, False, *planted(2, margin, others=(wait, "sleep"))
    yield "gzip of noise", "real tools", False, "head -c 1G /dev/urandom | gzip -9 | cat >/dev/null", ("stage", 2)
    yield "zcat before grep", "real tools", False, "zcat text.gz text.gz text.gz text.gz text.gz text.gz | grep -E '(a|b).*(c|d).*xyz.*(e|f)' | wc -l", (
        "stage",
        1,
    )
    yield "while read", "real tools", False, "cat text | while read x; do echo $x; done | cat >/dev/null", ("calls", 2)
    same = stage("read", "sleep", 4000)
    yield "balanced", "balanced", False, line(same, same), ("balanced", None)
    burst = stage("read", "sleep", 1000, 16384, 32)
    yield "bursts", "bursts", False, line(burst, burst), ("pipe", 1)
    # These cases were held out while the rules were chosen.
    for wait in ("select", "epoll", "uring", "threads"):
        for margin in (1.25, 3):
            yield f"{wait} slow {margin}", wait, True, *planted(2, margin, wait=wait)
            if wait != "threads":
                yield f"{wait} around {margin}", wait, True, *planted(2, margin, others=(wait, "sleep"))
    yield "disk", "disk", True, *planted(2, 10, work="sync", micros=2000, others=("read", "none"))
    yield "disk at the end", "disk", True, *planted(3, 10, work="sync", micros=2000, others=("read", "none"))
    yield "sort collects", "tools held out", True, "cat text text text text text text | sort | uniq -c | tail -1", (
        "stage",
        2,
    )
    yield "xz", "tools held out", True, "cat text text text | xz -6 | cat >/dev/null", ("stage", 2)
    yield "python", "tools held out", True, "cat text text text text | python3 -c 'import sys\nfor x in sys.stdin: y = x.split(); print(len(y))' | wc -l", (
        "stage",
        2,
    )
    yield "jq", "tools held out", True, "seq 10000000 | jq -c '{a: .}' | wc -l", ("stage", 2)
    yield "sed", "tools held out", True, "cat text text text text | sed -E 's/(a)(.*)(b)/\\3\\2\\1/' | wc -c", (
        "stage",
        2,
    )
    tee = f"{stage('read', 'none', 0)} </dev/zero | tee >({stage('read', 'sleep', 4000)} >/dev/null) | {stage('read', 'sleep', 1000)} >/dev/null"
    yield "branch of tee", "shapes", True, tee, ("command", "sleep 4000")
    yield "xargs", "shapes", True, "yes 0.02 | xargs -n1 -P2 sleep | cat", ("command", "xargs")
    paste = (
        f"paste <({stage('read', 'sleep', 4000)} </dev/zero) <({stage('read', 'sleep', 1000)} </dev/zero) >/dev/null"
    )
    yield "substitution", "shapes", True, paste, ("command", "sleep 4000")
    fifo = f"rm -f f; mkfifo f; ({stage('read', 'sleep', 2000)} </dev/zero >f & {stage('read', 'sleep', 4000)} <f >/dev/null)"
    yield "FIFO", "shapes", True, fifo, ("command", "sleep 4000")
    shared = stage("read", "cpu", 2000)
    yield "CPUs shared", "CPUs", True, line(*[f"taskset -c 0 {shared}"] * 3), ("cpu", None)
    yield "CPU limit", "CPUs", True, "LIMITED", ("throttled", None)


def limited(directory):
    """A pipeline in a control group limited to 30 % of a CPU; None if the group can't be made."""
    for path, file, text in (
        ("/sys/fs/cgroup/pipemark-bench", "cpu.max", "30000 100000"),
        ("/sys/fs/cgroup/cpu/pipemark-bench", "cpu.cfs_quota_us", "30000"),
    ):
        try:
            os.makedirs(path, exist_ok=True)
            if not os.path.exists(f"{path}/cpu.stat"):
                os.rmdir(path)
                continue
            with open(f"{path}/{file}", "w") as limit:
                limit.write(text)
            return f"echo $BASHPID >{path}/cgroup.procs; {line(stage('read', 'cpu', 1000), stage('read', 'none', 0))}"
        except OSError:
            continue
    return None


def judge(report, wanted):
    """Compares the verdict with the expected one: right, wrong stage, or the verdict's kind."""
    kind, place = wanted
    found = report["verdict"]
    stages = report["stages"]
    if kind in ("stage", "command"):
        if found["kind"] != "stage":
            return found["kind"]
        chosen = stages[found["stage"] - 1]
        if kind == "command":
            return "right" if place in chosen["command"] else "wrong stage"
        return "right" if found["stage"] == place else "wrong stage"
    if kind == "pipe":
        right = found["kind"] == "pipe" and found["pipe"] == place
    else:
        right = found["kind"] == kind
    return "right" if right else "wrong stage" if found["kind"] == "stage" else found["kind"]


def clocks(directory):
    """Nanoseconds that each stage worked, waited for input and waited for room in the pipe, by the stage's own clock."""
    found = {}
    for file in pathlib.Path(directory).glob("clock-*"):
        *spent, since, doing = struct.unpack("3q2Q", file.read_bytes()[:40])
        spent[doing] += time.monotonic_ns() - since
        found[int(file.name.removeprefix("clock-"))] = spent
    return found


def simultaneous_reports(pipeline, directory, accesses, seconds):
    """Reports on a running pipeline over the same seconds, one report for each kind of access."""
    if pipeline == "LIMITED":
        pipeline = limited(directory)
        if pipeline is None:
            return None
    shell = subprocess.Popen(
        ["bash", "-c", pipeline + "; :"],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=dict(os.environ, STAGE_CLOCKS="1"),
    )
    try:
        time.sleep(0.4)
        words = [PIPEMARK, "why", str(shell.pid), "--for", f"{seconds}s", "--json", "-", "--access"]
        before = clocks(directory)
        watchers = [subprocess.Popen([*words, access], stdout=subprocess.PIPE, text=True) for access in accesses]
        texts = [watcher.communicate()[0] for watcher in watchers]
        reports, after = [json.loads(text) for text in texts], clocks(directory)
        for one in (one for report in reports for one in report["stages"] if one["pid"] in before):
            grown = [now - then for now, then in zip(after[one["pid"]], before[one["pid"]])]
            shares = zip((one["busy"], one["starved"], one["blocked"]), grown)
            one["off_own_clock"] = max(abs(share - spent / sum(grown)) for share, spent in shares)
        return reports
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()


class SavedResults:
    """Results of earlier calls with the same binary."""

    def __init__(self, name, fresh):
        self.file = STAGE.parent / name
        program = hashlib.sha256(PIPEMARK.read_bytes()).hexdigest()
        before = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.found = before if before.get("program") == program and not fresh else {"program": program}

    def write(self):
        self.file.write_text(json.dumps(self.found))


def confusion(options, directory):
    # Two watchers would take CPU time from the pipeline. So for shares there is only one watcher, and it watches longer than
    # a verdict needs.
    accesses, seconds = (ACCESS[:1], 5) if options.shares else (ACCESS, 2)
    tables = {access: collections.defaultdict(collections.Counter) for access in accesses}
    # All cases take too long for one call on a shared machine, so earlier results of the same binary are reused.
    kept = SavedResults("why-shares.json", options.fresh)
    off, off_clocks = (kept.found.setdefault(what, {}) if options.shares else {} for what in ("counters", "clocks"))
    end = time.monotonic() + options.budget
    if options.only and not any(options.only in case[0] for case in cases()):
        sys.exit(f"--only {options.only}: no such case")
    for name, kind, held_out, pipeline, wanted in cases():
        if options.shares and (name in off or time.monotonic() > end):
            continue
        if (
            options.only
            and options.only not in name
            or options.held_out
            and not held_out
            or options.known
            and held_out
        ):
            continue
        for _ in range(options.rounds):
            reports = simultaneous_reports(pipeline, directory, accesses, seconds)
            if reports is None:
                print(f"skipped: {name}: can't be set up here")
                break
            for access, report in zip(accesses, reports):
                found = judge(report, wanted)
                tables[access][(held_out, kind)][found] += 1
                if found != "right":
                    print(f"{access}: {name}: {found}: {report['verdict']['text']}")
                    if options.verbose:
                        for one in report["stages"]:
                            print(
                                "   ",
                                {
                                    key: value if not isinstance(value, float) else round(value, 2)
                                    for key, value in one.items()
                                    if value and key != "command"
                                },
                            )
                # Errors of samples before their correction by counters, in single-threaded stages.
                errors = [one["sampling_error"] for one in report["stages"] if one["sampling_error"] is not None]
                by_clock = [one["off_own_clock"] for one in report["stages"] if "off_own_clock" in one]
                if access == "syscall":
                    off.setdefault(name, []).extend(errors)
                    off_clocks.setdefault(name, []).extend(by_clock)
                    if options.shares:
                        kept.write()
                        before, shown = (
                            ", ".join(f"{error * 100:.1f}" for error in each) for each in (errors, by_clock)
                        )
                        print(
                            f"{name}: samples {before} points off the counters, shares {shown} off the stages' clocks"
                        )
                    if (
                        errors
                        and max(errors) > 0.05
                        and not any("samples are rough" in note for note in report["notes"])
                    ):
                        sys.exit(
                            f"{name}: samples are off by {max(errors) * 100:.1f} points, but the report has no note on that"
                        )
    for access, table in tables.items():
        total = collections.Counter()
        print(f"\n{access:24} right  wrong stage  otherwise")
        for (held_out, kind), found in sorted(table.items()):
            total += found
            other = {name: count for name, count in found.items() if name not in ("right", "wrong stage")}
            label = kind + (" (held out)" if held_out else "")
            print(
                f"{label:24} {found['right']:5}  {found['wrong stage']:11}  {', '.join(f'{n} {c}' for n, c in other.items())}"
            )
        runs = sum(total.values())
        if runs:
            promise(
                f"{access}: right, of {runs} runs",
                [total["right"] / runs * 100],
                least=95 if access == "syscall" else 90,
                unit=" %",
            )
            if access == "syscall":
                promise("wrong stage", [total["wrong stage"] / runs * 100], most=1, unit=" %")
    # Displayed shares are corrected by the kernel's counters, so only the stages' own clocks can check them.
    for each, what in (
        (off, "samples against counters, before correction"),
        (off_clocks, "shares against the stages' own clocks"),
    ):
        stages = sorted(error for errors in each.values() for error in errors)
        if stages:
            promise(
                f"{what}: points off at p90 of {len(stages)} stages",
                [stages[len(stages) * 9 // 10] * 100],
                most=5,
                unit=" ",
            )
            worst = [max(errors) for errors in each.values() if errors]
            within = sum(error <= 0.05 for error in worst) / len(worst) * 100
            promise(f"{what}: cases with all stages within 5 points, of {len(worst)}", [within], least=90, unit=" %")


def own_cost(options, directory):
    """Measures the CPU use of `why` itself, and the time that it adds to the pipeline."""
    watched = [
        (f"{count} stages", line(*[stage("read", "sleep", 1000)] * count), most)
        for count, most in ((5, 1), (10, 1), (100, 2))
    ]
    if shutil.which("parallel"):
        watched.append(("GNU parallel", "yes | parallel --pipe --block 2M wc -l >/dev/null", 2))
    for what, pipeline, most in watched:
        shell = subprocess.Popen(["bash", "-c", pipeline + "; :"], cwd=directory, start_new_session=True)
        try:
            time.sleep(0.4)
            done = run.command([PIPEMARK, "why", shell.pid, "--for", "10s", "--json", "-"])
            report = json.loads(done.stdout)
            name = f"own CPU with {what} at {report['samples_per_second']:.0f} samples/s"
            promise(name, [report["own_cpu"] * 100], most=most, unit=" %")
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()

    def cost(words):
        """CPU seconds and real seconds of the pipeline, without pipemark's own."""
        pipeline = "head -c 1G /dev/zero | tr a b | wc -c"
        timed = f"TIMEFORMAT='%U %S %R'; time {{ {pipeline} >/dev/null; }}"
        done = subprocess.run([*words, timed], capture_output=True, text=True, check=True)
        user, system, real = map(float, done.stderr.strip().splitlines()[0].split())
        return user + system, real

    def pair(turned):
        with_it, without = [PIPEMARK, "why", "--json", os.devnull, "--", "bash", "-c"], ["bash", "-c"]
        below = cost(without) if turned else None
        above = cost(with_it)
        return above, below or cost(without)

    # The cost varies by 6 % between pairs, so the mean needs many pairs. Pairs from earlier calls with the same binary
    # are reused.
    kept = SavedResults("why-cost.json", options.fresh)
    pairs = kept.found.setdefault("pairs", [])
    end = time.monotonic() + options.budget
    while time.monotonic() < end or len(pairs) < 2:
        pairs.append(pair(len(pairs) % 2))
        kept.write()
    for place, what, most in ((0, "CPU time", 1.02), (1, "real time", None)):
        logs = [math.log(with_it[place] / without[place]) for with_it, without in pairs]
        centre, half = statistics.mean(logs), 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
        low, mean, high = (math.exp(centre + step * half) for step in (-1, 0, 1))
        name = f"{what} of the pipeline, with why / without: upper end of {mean:.3f} ({low:.3f} to {high:.3f}), {len(pairs)} pairs"
        promise(name, [high], most=most)


def scale(directory):
    """Measures how long it takes to find many stages, and the sampling rate with many stages."""
    many = " | ".join(["cat /dev/zero"] + ["cat"] * 198 + [f"{stage('read', 'sleep', 4000)} >/dev/null"])
    threads = "python3 -c 'import threading, time\nfor _ in range(2000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\ntime.sleep(60)'"
    for name, pipeline, kind in (
        ("200 stages", many, ("stage", 200)),
        ("2,000 threads", f"yes | ({threads}) | cat", None),
    ):
        shell = subprocess.Popen(
            ["bash", "-c", pipeline + "; :"], cwd=directory, start_new_session=True, stdout=subprocess.DEVNULL
        )
        try:
            time.sleep(3)
            processes = sum(entry.isdigit() for entry in os.listdir("/proc"))
            seconds = []
            for _ in range(9):
                begin = time.monotonic()
                # The pipeline is too short for a verdict, so `why` exits with an error.
                subprocess.run(
                    [PIPEMARK, "why", str(shell.pid), "--for", "1ms"],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                between = time.monotonic()
                subprocess.run([PIPEMARK, "--version"], stdout=subprocess.DEVNULL, check=True)
                seconds.append(between - begin - (time.monotonic() - between))
            seconds.sort()
            promise(
                f"{name}, {processes} processes: found in, per 100 processes",
                [seconds[4] * 1e5 / processes],
                most=50,
                unit=" ms",
            )
            begin = time.monotonic()
            report = json.loads(run.command([PIPEMARK, "why", shell.pid, "--json", "-"]).stdout)
            promise(f"{name}: first verdict after", [time.monotonic() - begin], most=2.5, unit=" s")
            found = judge(report, kind) if kind else report["verdict"]["kind"]
            print(
                f"{name}: {report['samples_per_second']:.0f} samples/s, {report['own_cpu'] * 100:.0f} % of a CPU: {found}"
            )
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


def short_pipelines(count, directory, kept=None):
    """Compares exit codes and outputs of short pipelines with and without `why`. The file `kept` has the number compared earlier."""
    shapes = [
        "seq 1000 | grep 7 | wc -l",
        "yes | head -2",
        "true | false",
        "seq 100000 | head -1; echo ${PIPESTATUS[@]}",
        "set -o pipefail; yes | head -1 >/dev/null",
        "seq 200 | sort -r | uniq | tail -1; exit 3",
        "cat /etc/passwd | tee >(cat >/dev/null) | md5sum",
        "kill -TERM $$",
    ]
    environment = dict(os.environ, SHELL="/bin/bash")
    before, different = json.loads(kept.read_text()) if kept and kept.exists() else (0, 0)
    expected = {}
    begin = time.monotonic()
    for n in range(before, count):
        shape = shapes[n % len(shapes)]
        if shape not in expected:
            done = subprocess.run(["bash", "-c", shape], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            expected[shape] = (done.returncode, done.stdout)
        words = [PIPEMARK, "why", shape]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=directory)
        if (done.returncode, done.stdout) != expected[shape]:
            different += 1
            print(f"{shape}: {done.returncode} {done.stdout[:80]!r} instead of {expected[shape]}")
        if kept and n % 50 == 49:
            kept.write_text(json.dumps((n + 1, different)))
    name = f"{count} short pipelines, {count - before} of them now in {time.monotonic() - begin:.0f} s: different"
    promise(name, [different], most=0, unit=" ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", help="cases with this word")
    parser.add_argument("--held-out", action="store_true", help="only kinds that were held out")
    parser.add_argument("--known", action="store_true", help="only kinds that were not held out")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--cases", action="store_true", help="only the planted cases")
    parser.add_argument(
        "--shares",
        action="store_true",
        help="only check shares, five seconds for each case; continues earlier calls",
    )
    parser.add_argument("--cost", action="store_true", help="only measure the cost of why")
    parser.add_argument(
        "--short-pipelines",
        type=int,
        metavar="N",
        help="only compare short pipelines with and without why, until N were compared in all calls",
    )
    parser.add_argument(
        "--budget", type=float, default=90, metavar="SECONDS", help="time for pairs with and without why, or for cases"
    )
    parser.add_argument("--fresh", action="store_true", help="discard earlier results")
    parser.add_argument("--scale", action="store_true", help="only measure 200 stages and 2,000 threads")
    options = parser.parse_args()
    STAGE.parent.mkdir(exist_ok=True)
    subprocess.run(["cc", "-O2", "-pthread", "-o", STAGE, ROOT / "bench/stage.c"], check=True)
    with tempfile.TemporaryDirectory() as directory:
        if options.short_pipelines:
            kept = STAGE.parent / "short-pipelines.json"
            if options.fresh:
                kept.unlink(missing_ok=True)
            short_pipelines(options.short_pipelines, directory, kept)
        elif options.scale:
            scale(directory)
        elif options.cost:
            own_cost(options, directory)
        else:
            subprocess.run(
                "head -c 30000000 /dev/urandom | base64 >text; gzip -1 -k text", shell=True, cwd=directory, check=True
            )
            confusion(options, directory)
            if not (options.cases or options.shares):
                own_cost(options, directory)
                scale(directory)
                short_pipelines(500, directory)
    sys.exit(1 if run.BROKEN else 0)


if __name__ == "__main__":
    main()
