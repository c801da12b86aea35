#!/usr/bin/env python3
"""Processes of another user try to make `pipemark why` accuse pipelines of waits that they don't have, or other
processes of causing them.

    tests/lies.py PIPEMARK [CASES]

Makes CASES combinations of a pipeline and of such processes (all of them without CASES), each the same in every call,
and counts false accusations. Then checks that true accusations are made. Needs root, to become the other user and to
mount file systems in a mount namespace of its own."""

import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

# The user nobody.
OTHER = 65534

# A stage between others. `descriptor` is a file that others may lock.
STAGE = """
import fcntl, os, signal, sys, time
file = open(sys.argv[1], "r+")
def blocks():
    while block := os.read(0, 65536):
        while block: block = block[os.write(1, block):]
        yield
"""

# Pipelines, none of which waits for a lock or another process. {py} runs Python on STAGE and more; {file} is the file.
PIPELINES = {
    "sleeps": "yes | {py} 'for _ in blocks(): time.sleep(0.02)' {file} | cat",
    "computes": "yes | {py} 'for _ in blocks(): sum(range(200000))' {file} | cat",
    "source sleeps": "{py} 'while True: os.write(1, b\"x\" * 99); time.sleep(0.02)' {file} | cat | cat",
    "sink sleeps": "yes | cat | {py} 'while os.read(0, 4096): time.sleep(0.02)' {file}",
    # Each looks like a process that waits for itself, but a timer or a signal will end the wait.
    # One that handles errors of its own code, as runtimes do, isn't a runtime for that.
    "alarm": "yes | {py} 'import faulthandler; faulthandler.enable(); signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(0, 0.4, 0.4)\n"
    "own = os.pipe()\nwhile True: os.read(own[0], 1)' {file} | cat",
    "handler": "yes | {py} 'signal.signal(signal.SIGUSR1, lambda *_: None)\nown = os.pipe()\nos.read(own[0], 1)' {file} | cat",
    # The writer has locked the file and waits for its reader, which has the file open and sleeps.
    "locks and waits": "{py} 'fcntl.flock(file, fcntl.LOCK_SH)\nwhile True: os.write(1, b\"x\" * 65536)' {file}"
    " | {py} 'while os.read(0, 4096): time.sleep(0.02)' {file}",
}

# Processes of the other user, in Python. `file` is the pipeline's file, `twin` one with the same inode number on
# another file system.
LIARS = {
    "flock": "fcntl.flock(open(file, 'r+'), fcntl.LOCK_SH if shared else fcntl.LOCK_EX)",
    "fcntl": "fcntl.lockf(open(file, 'r+'), fcntl.LOCK_EX)",
    "open file lock": "fcntl.fcntl(open(file, 'r+'), fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))",
    "twin": "fcntl.flock(open(twin, 'r+'), fcntl.LOCK_EX)",
    "waits for twin": "fcntl.flock(open(twin, 'r+'), fcntl.LOCK_EX)",
    "named cat": "open('/proc/self/comm', 'w').write('cat')",
    "named flock": "open('/proc/self/comm', 'w').write('flock')",
    "listens": "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
}
PRELUDE = "import ctypes, fcntl, os, signal, socket, struct, sys, time; file, twin, shared = sys.argv[1], sys.argv[2], sys.argv[3] == '1'; "
# Files that the process opened stay open, because the garbage collector doesn't run.
PRELUDE += "keep = []; real = open; open = lambda *a: keep.append(real(*a)) or keep[-1]; "


def become_other():
    os.setgroups([])
    os.setgid(OTHER)
    os.setuid(OTHER)


def start_liar(kind, file, twin, shared):
    code = PRELUDE + LIARS[kind] + "\nprint(flush=True)\ntime.sleep(600)"
    liar = subprocess.Popen(
        ["python3", "-c", code, file, twin, "1" if shared else "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=become_other,
        start_new_session=True,
    )
    # One that waits for a lock of another says nothing.
    if not kind.startswith("waits"):
        liar.stdout.readline()
    return liar


def start_pipeline(command, holder):
    """Starts a pipeline. With `holder`, a process of the other user inherits its pipes."""
    if holder:
        command = command.replace("| cat", f"| (setpriv --reuid {OTHER} --clear-groups sleep 600 & exec cat)", 1)
    # The shell stays, as that of a user does.
    return subprocess.Popen(
        ["bash", "-c", command + "; :"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def why(pipemark, pid):
    done = subprocess.run([pipemark, "why", str(pid), "--for", "1s", "--json", "-"], capture_output=True, text=True)
    if not done.stdout:
        return None, done.stderr
    return json.loads(done.stdout), done.stderr


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def accusation(report, liars):
    """What a report says that isn't so; None if nothing."""
    verdict = report["verdict"]
    said = " ".join([verdict["text"], *report["notes"], *verdict["advice"]])
    for pid in liars:
        if f"PID {pid})" in said:
            return f"names a liar: {said}"
    for word in ("lock on", "file lock", "Deadlock", "outside this pipeline"):
        if word in said:
            return said
    if verdict["kind"] in ("deadlock", "peer"):
        return f"{verdict['kind']}: {said}"
    return None


def python(directory):
    """The beginning of a command that runs Python on STAGE and one more piece of code."""
    runner = directory / "run.py"
    runner.write_text("import sys\ncode, sys.argv[1:] = sys.argv[1], sys.argv[2:]\n" f"exec({STAGE!r} + code)\n")
    return f"python3 {runner}"


def one_case(pipemark, py, directory, number, case):
    pipeline, kinds, holder = case
    file, twin = directory / f"a/{number}", directory / f"b/{number}"
    shared = pipeline == "locks and waits"
    liars = [
        start_liar(kind, str(file), str(twin), shared)
        for kind in kinds
        if not (shared and kind != "flock" and "lock" in kind)
    ]
    shell = start_pipeline(PIPELINES[pipeline].format(py=py, file=file), holder)
    try:
        time.sleep(0.5)
        # On a busy machine, a report may have too few samples to accuse anybody.
        for _ in range(3):
            report, said = why(pipemark, shell.pid)
            if report is None:
                return f"no report: {said}"
            found = accusation(report, [liar.pid for liar in liars])
            if found or report["samples"] >= 20:
                return found
        return f"too few samples ({report['samples']})"
    finally:
        kill(shell)
        for liar in liars:
            kill(liar)


def cases(count):
    """Combinations of a pipeline, up to three liars, and whether one of them inherits the pipeline's pipes."""
    kinds = [*itertools.combinations(LIARS, 1), *itertools.combinations(LIARS, 2)]
    every = list(itertools.product(PIPELINES, kinds, (False, True)))
    random.Random(1).shuffle(every)
    return every[: count or len(every)]


def same_inodes(directory, count):
    """Makes two file systems whose files have the same inode numbers, pairwise. Returns whether they have."""
    for name in "ab":
        place = directory / name
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        for number in range(count):
            (place / str(number)).touch()
            (place / str(number)).chmod(0o666)
        place.chmod(0o777)
    return all(os.stat(directory / f"a/{n}").st_ino == os.stat(directory / f"b/{n}").st_ino for n in range(count))


def true_accusations(pipemark, directory):
    """Yields what isn't said of stages that do wait for a lock."""
    file = directory / "a/0"
    holders = {
        "flock": [f"exec flock --no-fork {file} sleep 600"],
        "descriptor of a subshell": [f"(flock 9; sleep 600) 9>>{file}"],
        "inherited descriptor": [f"exec 9>>{file}; flock 9; exec sleep 600"],
    }
    for name, [command] in holders.items():
        holder = subprocess.Popen(["bash", "-c", command], preexec_fn=become_other, start_new_session=True)
        time.sleep(0.5)
        shell = start_pipeline(f"yes | flock {file} cat | cat", False)
        try:
            time.sleep(0.5)
            # On a busy machine, a report may have too few samples, or the search for the holder too little time.
            for _ in range(3):
                report, said = why(pipemark, shell.pid)
                text = report["verdict"]["text"] if report else said
                named = [word.partition(")")[0] for word in text.split("(PID ")[1:]]
                alive = [pid for pid in named if os.path.exists(f"/proc/{pid}") and os.getpgid(int(pid)) == holder.pid]
                if f"for a lock on {file}" in text and alive:
                    break
            else:
                yield f"{name}: {text}"
        finally:
            kill(shell)
            kill(holder)


def main():
    pipemark, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if os.geteuid() != 0:
        print("skip  lies of another user: needs root")
        return
    if not os.environ.get("LIES_INSIDE"):
        os.environ["LIES_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "python3", *sys.argv])
    chosen = cases(count)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        py = python(directory)
        if not same_inodes(directory, len(chosen) + 1):
            sys.exit("the two file systems have different inode numbers, so the lie would not work")
        false = 0
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(one_case, pipemark, py, directory, n + 1, case) for n, case in enumerate(chosen)]
            for case, job in zip(chosen, jobs):
                if found := job.result():
                    false += 1
                    print(f"{case}: {found}")
        missing = list(true_accusations(pipemark, directory))
        for one in missing:
            print(f"not said: {one}")
        for place in "ab":
            # A process of another user may be about to leave.
            subprocess.run(["umount", "--lazy", directory / place], check=True)
    print(f"{len(chosen)} cases, {false} false accusations, {len(missing)} true ones missing")
    sys.exit(1 if false or missing or not chosen else 0)


if __name__ == "__main__":
    main()
