#!/usr/bin/env python3
"""Measures what `pipemark why` costs at the size of a machine: many processes, threads, descriptors and pipes.

    bench/why_sizes.py [--only WORD] [--table FILE]

Needs root, which raises kernel.pid_max and the limits on processes and descriptors for the time of the measurement.
Prints the promises in the form of bench/run.py; --table writes the table of docs/why.md."""

import argparse
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import run
from run import PIPEMARK, ROOT, promise

MANY = ROOT / "build/many"
PID_MAX = pathlib.Path("/proc/sys/kernel/pid_max")

# Name, command, sizes, the process that is sampled (a program's name), and the ceiling in percent of one CPU.
PIPELINES = [
    ("children of one parent on a pipe", "{many} children {n} | cat", (100, 400, 1600, 9300), "cat", 2),
    ("threads of a stage", "yes | {many} threads {n} | cat", (300, 1250, 5000), "cat", 1),
    ("descriptors of a stage", "yes | {many} descriptors {n} | cat", (8000, 60_000, 500_000), "cat", 1),
    ("children on as many inherited pipes", "{many} pipes {n} | cat", (75, 150, 300), "cat", 2),
    ("workers of a prefork server", "{many} prefork {n} | cat", (25, 100, 400), "cat", 2),
    ("processes at once by xargs", "yes 0.2 | xargs -n 1 -P {n} sleep | cat", (25, 100), "cat", 2),
    ("stages", "yes | " + "{stages}" + " cat", (10, 50, 200), "yes", 2),
]
PROCESSES = (1000, 5000, 20_000, 50_000)


def start(command):
    """Starts a command in a session of its own."""
    return subprocess.Popen(
        ["bash", "-c", command + "; :"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop(shell):
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()


def session(shell, name):
    """The first process of a session that has this name."""
    for entry in sorted((entry for entry in os.listdir("/proc") if entry.isdigit()), key=int):
        try:
            stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        words = stat.rpartition(")")[2].split()
        if int(words[3]) == shell.pid and stat.split("(", 1)[1].rpartition(")")[0] == name:
            return int(entry)
    return None


def measure(pid, seconds=10):
    """Samples a process. Returns the report and the CPU seconds used in all, counted from outside."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run.command([PIPEMARK, "why", pid, "--for", f"{seconds}s", "--json", "-"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(rows, what, size, name, pid, most):
    report, cpu = measure(pid)
    later = (cpu - report["first_scan"]) / 10 * 100
    promise(f"{what}, {size:,}: own CPU after the first scan, counted from outside", [later], most=most, unit=" %")
    verdict = report["verdict"]
    rows.append(
        f"| {what} | {size:,} | {report['first_scan']:.2f} s | {later:.2f} % | {report['samples_per_second']:.0f} |"
    )
    print(f"    {len(report['stages'])} stages, {report['samples']} samples: {verdict['text']}", flush=True)


def pipelines(options, rows):
    for what, command, sizes, name, most in PIPELINES:
        if options.only and options.only not in what:
            continue
        for size in sizes:
            stages = "cat | " * max(size - 2, 0)
            shell = start(command.format(many=MANY, n=size, stages=stages))
            try:
                time.sleep(1.5 + size / 20_000)
                pid = session(shell, name)
                if pid is None:
                    sys.exit(f"{what}: no {name} runs")
                row(rows, what, size, name, pid, 1 if what == "stages" and size <= 10 else most)
            finally:
                stop(shell)


def processes(options, rows):
    if options.only and options.only not in "processes on the machine":
        return
    lists = []
    for size in PROCESSES:
        sleepers = subprocess.Popen([MANY, "sleepers", str(size)], stdout=subprocess.PIPE, start_new_session=True)
        shell = start("yes | cat | cat")
        try:
            sleepers.stdout.readline()
            times = []
            for _ in range(3):
                begin = time.monotonic()
                run.command([PIPEMARK, "why"])
                times.append(time.monotonic() - begin)
            lists.append(sorted(times)[1])
            if size == PROCESSES[-1]:
                promise(f"list among {size:,} processes", times, most=3, unit=" s")
            row(rows, "processes on the machine", size, "cat", session(shell, "yes"), 1)
            rows[-1] += f" list {lists[-1]:.2f} s"
        finally:
            stop(shell)
            os.killpg(sleepers.pid, signal.SIGKILL)
            sleepers.wait()
            time.sleep(1)
    growth = (lists[-1] / lists[0]) / (PROCESSES[-1] / PROCESSES[0])
    promise("list: growth of the time against growth of the number of processes", [growth], most=1.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", help="cases with this word")
    parser.add_argument("--table", metavar="FILE", help="write the rows of the table")
    options = parser.parse_args()
    MANY.parent.mkdir(exist_ok=True)
    run.command(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", MANY, ROOT / "bench/many.c"])
    before = PID_MAX.read_text()
    limits = [resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE]
    try:
        PID_MAX.write_text("200000")
        for limit in limits:
            resource.setrlimit(limit, (1 << 20, 1 << 20))
    except (OSError, ValueError) as error:
        sys.exit(f"cannot raise the limits ({error}); run this as root")
    rows = []
    try:
        pipelines(options, rows)
        processes(options, rows)
    finally:
        PID_MAX.write_text(before)
    if options.table:
        pathlib.Path(options.table).write_text("\n".join(rows) + "\n")
    print("\n".join(rows))
    sys.exit(1 if run.BROKEN else 0)


if __name__ == "__main__":
    main()
