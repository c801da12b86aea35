#!/usr/bin/env python3
"""Measures what `pipemark why` costs at the size of a machine: many processes, threads, descriptors and pipes.

    bench/why_sizes.py [--only WORD] [--skip WORD] [--last] [--table FILE]

As root, raises kernel.pid_max and the limits on processes and descriptors for the time of the measurement; otherwise
omits large sizes. Prints the promises in the form of bench/run.py; --table writes the table of
docs/why.md."""

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

# Name, command, sizes, and the process that is sampled (a program's name).
PIPELINES = [
    ("children of one parent on a pipe", "{many} children {n} | cat", (100, 400, 1600, 9300), "cat"),
    ("threads of a stage", "yes | {many} threads {n} | cat", (300, 1250, 5000), "cat"),
    ("descriptors of a stage", "yes | {many} descriptors {n} | cat", (8000, 60_000, 500_000), "cat"),
    ("children on as many inherited pipes", "{many} pipes {n} | cat", (75, 150, 300), "cat"),
    ("workers of a prefork server", "{many} prefork {n} | cat", (25, 100, 400), "cat"),
    ("processes at once by xargs", "yes 0.2 | xargs -n 1 -P {n} sleep | cat", (25, 100), "cat"),
    ("stages", "yes | " + "{stages}" + " cat", (10, 50, 200), "yes"),
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


def is_chosen(options, what):
    return (not options.only or options.only in what) and not (options.skip and options.skip in what)


def chosen_sizes(options, sizes):
    sizes = [size for size in sizes if size <= options.largest]
    return sizes[-1:] if options.last else sizes


def row(rows, what, size, pid):
    """Measures one size. Returns the CPU time of the first scan, in seconds."""
    report, cpu = measure(pid)
    later = (cpu - report["first_scan"]) / 10 * 100
    most = 1 if len(report["stages"]) <= 10 else 2
    promise(f"{what}, {size:,}: own CPU after the first scan, counted from outside", [later], most=most, unit=" %")
    rows.append(
        f"| {what} | {size:,} | {report['first_scan']:.2f} s | {later:.2f} % | {most} % |"
        f" {report['samples_per_second']:.0f} |"
    )
    print(
        f"    {len(report['stages'])} stages, {report['samples']} samples, by its own count"
        f" {report['own_cpu'] * 100:.2f} %: {report['verdict']['text']}",
        flush=True,
    )
    return report["first_scan"]


def growth(what, sizes, times):
    """Promises that the time grows at most linearly: that each unit more costs as much at the end as at the beginning.
    Times that differ by little say nothing."""
    if len(sizes) < 3 or times[-1] - times[0] < 0.1:
        return
    slopes = [(times[at] - times[at - 1]) / (sizes[at] - sizes[at - 1]) for at in range(1, len(sizes))]
    if slopes[0] > 0:
        promise(
            f"{what}: time for each one more, at the largest size against the smallest",
            [slopes[-1] / slopes[0]],
            most=1.5,
        )


def plain():
    """The seconds that a plain loop in C takes to read the states and descriptors of all processes. The kernel's part of it
    grows faster than the number of processes."""
    return min(float(run.command([MANY, "read", "1"]).stdout) for _ in range(3))


def against_plain(what, times, loops, most):
    """Promises that the time is at most this multiple of a plain loop's, and grows no faster. Times that differ by little
    say nothing."""
    if len(times) >= 3 and times[-1] - times[0] >= 0.1:
        ratios = [time / loop for time, loop in zip(times, loops)]
        promise(f"{what}: time as a multiple of a plain loop, at the largest size", ratios[-1:], most=most)
        promise(f"{what}: that multiple, at the largest size against the next", [ratios[-1] / ratios[-2]], most=1.5)


def pipelines(options, rows):
    for what, command, sizes, name in PIPELINES:
        if not is_chosen(options, what):
            continue
        sizes = chosen_sizes(options, sizes)
        scans, loops = [], []
        for size in sizes:
            stages = "cat | " * max(size - 2, 0)
            shell = start(command.format(many=MANY, n=size, stages=stages))
            try:
                time.sleep(1.5 + size / 20_000)
                pid = session(shell, name)
                if pid is None:
                    sys.exit(f"{what}: no {name} runs")
                scans.append(row(rows, what, size, pid))
                loops.append(plain())
            finally:
                stop(shell)
        # Each of the children inherits the pipes of all.
        counts = [size * size for size in sizes] if "inherited" in what else sizes
        if what.startswith("children of one"):
            # The processes of a pipeline are read with their threads and files.
            against_plain(what, scans, loops, most=4)
        else:
            growth(what, counts, scans)


def wait_for_other(seconds=10):
    """Samples a command that waits for a process outside it. Returns the report and the CPU seconds of pipemark."""
    fifo = ROOT / "build/many.fifo"
    used = []
    for sampled in (False, True):
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)
        holder = start(f"exec 9<>{fifo}; exec sleep 600")
        time.sleep(0.2)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = f"cat {fifo} | cat"
        command = [PIPEMARK, "why", "--json", "-", text] if sampled else ["bash", "-c", text]
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        time.sleep(seconds if sampled else 0.5)
        # Without the holder, the command ends.
        os.killpg(holder.pid, signal.SIGKILL)
        printed, _ = waiting.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        holder.wait()
    fifo.unlink()
    # The command alone uses CPU time too.
    return json.loads(printed), used[1] - used[0]


def processes(options, rows):
    if not is_chosen(options, "processes on the machine"):
        return
    sizes = chosen_sizes(options, PROCESSES)
    lists, scans, loops = [], [], []
    for size in sizes:
        sleepers = subprocess.Popen([MANY, "sleepers", str(size)], stdout=subprocess.PIPE, start_new_session=True)
        # The list and the first scan are timed with a pipeline that leaves the CPUs free.
        shell = start("sleep 600 | cat | cat")
        try:
            sleepers.stdout.readline()
            pid = session(shell, "sleep")
            times = []
            for _ in range(3):
                begin = time.monotonic()
                listed = run.command([PIPEMARK, "why", "--json", "-"])
                times.append(time.monotonic() - begin)
            if str(pid) not in listed.stdout:
                sys.exit("the list of pipelines lacks one")
            lists.append(sorted(times)[1])
            loops.append(plain())
            if size == PROCESSES[-1]:
                promise(f"list among {size:,} processes", times, most=3, unit=" s")
            scans.append(sorted(measure(pid, 1)[0]["first_scan"] for _ in range(3))[1])
            stop(shell)
            shell = start("yes | cat | cat")
            time.sleep(0.5)
            row(rows, "processes on the machine", size, session(shell, "yes"))
            rows[-1] += f" the list of pipelines takes {lists[-1]:.2f} s, the first scan {scans[-1]:.2f} s |"
            # The first stage waits for a process that isn't part of the command, which is searched for.
            report, cpu = wait_for_other()
            later = (cpu - report["first_scan"]) / 10 * 100
            promise(f"a command that waits for another process, among {size:,}", [later], most=1, unit=" %")
            print(
                f"    {report['samples']} samples, by its own count {report['own_cpu'] * 100:.2f} %:"
                f" {report['verdict']['text']}",
                flush=True,
            )
        finally:
            stop(shell)
            os.killpg(sleepers.pid, signal.SIGKILL)
            sleepers.wait()
            time.sleep(1)
    against_plain("list of pipelines", lists, loops, most=2)
    against_plain("processes on the machine", scans, loops, most=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", help="only cases with this word")
    parser.add_argument("--skip", metavar="WORD", help="no cases with this word")
    parser.add_argument("--last", action="store_true", help="only the largest size of each case")
    parser.add_argument("--table", metavar="FILE", help="write the rows of the table")
    options = parser.parse_args()
    MANY.parent.mkdir(exist_ok=True)
    run.command(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", MANY, ROOT / "bench/many.c"])
    for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE):
        hard = resource.getrlimit(limit)[1]
        try:
            resource.setrlimit(limit, (1 << 20, 1 << 20))
        except (OSError, ValueError):
            resource.setrlimit(limit, (hard, hard))
    before = PID_MAX.read_text()
    options.largest = 1 << 20
    rows = []
    try:
        PID_MAX.write_text("200000")
    except OSError as error:
        options.largest = 1600
        print(f"kernel.pid_max stays ({error.strerror}); larger sizes than {options.largest:,} are omitted")
    try:
        pipelines(options, rows)
        processes(options, rows)
    finally:
        if options.largest > 1600:
            PID_MAX.write_text(before)
    if not rows:
        sys.exit("nothing was measured")
    if options.table:
        pathlib.Path(options.table).write_text("\n".join(rows) + "\n")
    print("\n".join(rows))
    sys.exit(1 if run.BROKEN else 0)


if __name__ == "__main__":
    main()
