"""The line job without an engine: files are cut into ranges, each task runs `pipemark lines` on one range, and the output of
all tasks is committed at once or not at all. An engine only has to call `run` for each task, on any machine.

Each attempt of a task writes its own file, in a directory that the driver makes and removes. So attempts may be repeated,
run twice in parallel, die, or be late. Input and output must be on a file system that all machines share."""

import argparse
import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, replace

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
BLOCK = 1 << 18
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Failed(Exception):
    """A failed job or task. The text is a message for the user."""


@dataclass(frozen=True)
class Task:
    """One range of one file."""

    index: int
    source: str
    state: tuple  # inode, size and modification time of the file when it was cut
    low: int
    high: int
    command: tuple
    terminator: bytes
    attempts: str  # the directory for what attempts write
    adds_end: bool = False  # adds the terminator after a file's unterminated last line, if another file follows


@dataclass(frozen=True)
class Attempt:
    """The output of a task."""

    index: int
    name: str
    size: int


def run(task):
    """Filters the task's range into this attempt's file; returns an Attempt. Raises Failed, without leaving a file, if that
    fails."""
    name = f"{task.index:05}-{uuid.uuid4().hex}"
    path = os.path.join(task.attempts, name)
    try:
        with open_unchanged(task) as source, open(path, "xb", buffering=0) as output:
            start, end = lines_of(task, source.fileno())
            read, written = run_filter(task, source, output)
            size = os.fstat(output.fileno()).st_size
            if (read, written) != (end - start, size):
                raise Failed(
                    f"the filter read {read} of {end - start} bytes, and wrote {written}, of which {size} are there"
                )
            if task.adds_end:
                size += output.write(task.terminator)
            # A full disk on another machine may be reported only here.
            os.fsync(output.fileno())
        return Attempt(task.index, name, size)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        if isinstance(error, (Failed, OSError)):
            raise Failed(f"bytes {task.low} to {task.high} of {task.source}: {error}") from None
        raise


def count_lines(task):
    """The number of lines that start in the task's range, without an unterminated last line."""
    with open_unchanged(task) as source:
        at, end = lines_of(task, source.fileno())
        lines = 0
        while at < end and (block := os.pread(source.fileno(), min(BLOCK, end - at), at)):
            lines += block.count(task.terminator)
            at += len(block)
    return lines


@contextlib.contextmanager
def open_unchanged(task):
    """Opens the task's file. Raises Failed if it has changed since it was cut, when it is opened or when it is closed."""
    with open(task.source, "rb", buffering=0) as source:
        refuse_change(os.fstat(source.fileno()), task)
        yield source
        refuse_change(os.fstat(source.fileno()), task)


def file_state(stat):
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def refuse_change(stat, task):
    if file_state(stat) != task.state:
        raise Failed(f"{task.source} has changed since the job began")


def lines_of(task, source):
    """Start and end of the lines that start in the task's range."""
    start = line_start(task, source, task.low, task.high)
    return start, start if start == task.high else line_start(task, source, task.high, task.state[1])


def line_start(task, source, at, limit):
    """The start of the first line at or after `at`, but at most `limit`."""
    if at == 0:
        return 0
    at -= 1
    while at < limit and (block := os.pread(source, BLOCK, at)):
        if (found := block.find(task.terminator)) >= 0:
            return min(at + found + 1, limit)
        at += len(block)
    return limit


def run_filter(task, source, output):
    """Runs the filter; returns the bytes it reports as read and written. The filter doesn't outlive this process."""
    parent = os.getpid()

    def die_with_parent():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    # With -, another file among the words is refused, because --range accepts one file.
    command = [*task.command, "--stats", "--range", f"{task.low}:{task.high}", "-"]
    try:
        process = subprocess.Popen(
            command, stdin=source, stdout=output, stderr=subprocess.PIPE, preexec_fn=die_with_parent
        )
    except OSError as error:
        raise Failed(f"{command[0]} can't be run here: {error.strerror}; name where it is by --pipemark") from None
    with process:
        try:
            said = process.communicate()[1].decode(errors="replace")
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise Failed(f"{task.command[0]} ended with {process.returncode}: {said.strip()[-1000:]}")
    stats = re.search(r"^in: (\d+) bytes .*; out: (\d+) bytes ", said, re.MULTILINE)
    if not stats:
        raise Failed(f"{task.command[0]} ended early: it didn't say what it has read and written")
    return int(stats[1]), int(stats[2])


class Job:
    """Makes a directory whose parts, concatenated, equal the output of `pipemark lines` on the files."""

    def __init__(self, inputs, output, words, split=256 << 20, pipemark="pipemark", threads=1):
        self.output = os.path.abspath(output)
        self.refuse_existing()
        parent, name = os.path.split(self.output)
        self.directory = os.path.join(parent, f".{name}.{uuid.uuid4().hex}.partial")
        self.attempts = os.path.join(self.directory, "attempts")
        self.is_numbered = "number" in words
        command = [pipemark, *words]
        if not any(word.startswith("--threads") for word in words):
            command += ["--threads", str(threads)]
        terminator = b"\0" if {"-z", "--zero-terminated"} & set(words) else b"\n"
        files = [(source, os.stat(source)) for source in sources(inputs)]
        if not files:
            raise Failed("there is no file to read")
        self.tasks = []
        for source, stat in files:
            if self.tasks and lacks_end(self.tasks[-1]):
                self.tasks[-1] = replace(self.tasks[-1], adds_end=True)
            for low in range(0, max(stat.st_size, 1), split):
                high = min(low + split, stat.st_size)
                place = (len(self.tasks), source, file_state(stat), low, high)
                self.tasks.append(Task(*place, tuple(command), terminator, self.attempts))

    def __enter__(self):
        try:
            os.mkdir(self.directory)
        except OSError as error:
            raise Failed(f"{self.output} can't be made: {error.strerror}") from None
        os.mkdir(self.attempts)
        return self

    def __exit__(self, *_):
        # Renamed first, so that late attempts can't add files while it is emptied.
        with contextlib.suppress(OSError):
            os.rename(self.attempts, self.attempts + ".over")
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, each):
        """Runs the job. `each(function, tasks)` calls the function for each task on the engine, and returns the results."""
        if self.is_numbered:
            self.number(each(count_lines, self.tasks))
        self.commit(each(run, self.tasks))

    def number(self, counts):
        """Sets each task's first line number from the line counts of the tasks before it in its file."""
        start = 1
        for task, lines in zip(list(self.tasks), counts):
            start = 1 if task.low == 0 else start
            self.tasks[task.index] = replace(task, command=(*task.command, "--start", str(start)))
            start += lines

    def commit(self, attempts):
        """Moves one attempt of each task to the output; if one is missing, moves nothing."""
        attempts = {attempt.index: attempt for attempt in attempts}
        for task in self.tasks:
            attempt = attempts.get(task.index)
            if not attempt or os.stat(os.path.join(self.attempts, attempt.name)).st_size != attempt.size:
                raise Failed(f"what task {task.index} has made isn't there any more, so nothing is committed")
        for task in {task.source: task for task in self.tasks}.values():
            refuse_change(os.stat(task.source), task)
        whole = os.path.join(self.directory, "whole")
        os.mkdir(whole)
        for task in self.tasks:
            os.rename(
                os.path.join(self.attempts, attempts[task.index].name), os.path.join(whole, f"part-{task.index:05}")
            )
        self.refuse_existing()
        os.rename(whole, self.output)

    def refuse_existing(self):
        if os.path.lexists(self.output):
            raise Failed(f"{self.output} is there already; remove it, or name another")


def sources(inputs):
    """The input files; a directory stands for its files in order of name, without hidden ones."""
    for path in map(os.path.abspath, inputs):
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith((".", "_")))
            yield from sources(os.path.join(path, name) for name in names)
        elif os.path.isfile(path):
            yield path
        else:
            raise Failed(f"{path} {'is no file' if os.path.exists(path) else 'is not there'}")


def lacks_end(task):
    """Whether the last line of a task's file is unterminated."""
    with open(task.source, "rb", buffering=0) as file:
        length = task.state[1]
        return length > 0 and os.pread(file.fileno(), 1, length - 1) != task.terminator


def parse_size(text):
    if not (found := re.fullmatch(r"([1-9]\d*)([kmgt]?)", text.lower())):
        raise ValueError
    return int(found[1]) * UNITS[found[2]]


def main(description, start):
    """The main function of a driver. `start` gets an ExitStack for clean-up, and returns a function like `each` of `Job.run`."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    own, words = words[:at], words[at + 1 :] or ["lines", "spaces"]
    usage = "%(prog)s [OPTIONS] IN... OUT -- lines [TRANSFORM] [FLAGS]"
    parser = argparse.ArgumentParser(usage=usage, description=description)
    parser.add_argument("inputs", nargs="+", metavar="IN", help="a file, or a directory of files")
    parser.add_argument("output", metavar="OUT", help="the directory to make, of parts whose names are in order")
    parser.add_argument(
        "--split", type=parse_size, default="256m", metavar="SIZE", help="bytes for a task [default: 256m]"
    )
    parser.add_argument("--pipemark", default="pipemark", metavar="FILE", help="the program, where workers find it")
    options = parser.parse_args(own)
    if words[0] != "lines":
        parser.error("behind -- there have to be the words of a filter, such as: lines spaces")
    if taken := {word.split("=")[0] for word in words} & {"--range", "--start", "--stats"}:
        parser.error(f"the job says {', '.join(sorted(taken))} itself")
    # Clean up on SIGTERM too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with contextlib.ExitStack() as stack:
            job = Job(options.inputs, options.output, words, options.split, options.pipemark)
            stack.enter_context(job)
            job.run(start(stack))
    except KeyboardInterrupt:
        # Other threads may wait for filters, which end with this process.
        os._exit(128 + signal.SIGINT)
    except (Failed, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
