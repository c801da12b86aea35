#!/usr/bin/env python3
"""The transform of `pipemark lines` on Spark, in each way that Spark offers: filter.py WAY, from a file on standard input to
standard output. --version starts Spark and prints its version.

The JVM and its executors run on this machine. `damage` reports what each way does to bytes that aren't clean text."""

import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext

PR_SET_CHILD_SUBREAPER = 36
HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "engines"), str(HERE.parents[1] / "engines/spark")]
HOSTILE = b"crlf \r\nlone\rcr \nbad \xff utf-8\nnul \0\n\nno end"


def ranges(context, source, output, pipemark):
    import line_job
    import lines

    with line_job.Job([source], output, ["lines"], pipemark=pipemark) as job:
        job.run(lines.on(context))


def jvm_pipe(context, source, output, pipemark):
    lines = context._jsc.sc().textFile(f"file://{source}", context.defaultParallelism).toJavaRDD()
    lines.pipe(f"{pipemark} lines").saveAsTextFile(output)


def python_pipe(context, source, output, pipemark):
    # Without checkCode, a failing filter would count as a filter with empty output.
    command = f"{shlex.quote(pipemark)} lines"
    context.textFile(f"file://{source}").pipe(command, checkCode=True).saveAsTextFile(output)


def sql(context, source, output, _):
    from pyspark.sql import SparkSession, functions

    line = functions.col("value")
    spaces = functions.length(line) - functions.length(functions.translate(line, " ", ""))
    number = functions.when(spaces > 6, ">6").otherwise(spaces.cast("string"))
    header = functions.concat(functions.lit("[spaces: "), number, functions.lit("]"), line)
    SparkSession(context).read.text(f"file://{source}").select(header).write.text(output)


def python_map(context, source, output, _):
    def transform(line):
        spaces = line.count(" ")
        return f"[spaces: {spaces if spaces <= 6 else '>6'}]{line}"

    context.textFile(f"file://{source}").map(transform).saveAsTextFile(output)


WAYS = {"ranges": ranges, "jvm-pipe": jvm_pipe, "python-pipe": python_pipe, "sql": sql, "map": python_map}


def parts(output):
    return sorted(path for path in Path(output).iterdir() if path.name.startswith("part-"))


@contextlib.contextmanager
def spark(master="local[*]"):
    conf = SparkConf().setMaster(master).setAppName("pipemark lines")
    for name, value in [("log.level", "ERROR"), ("ui.enabled", "false"), ("ui.showConsoleProgress", "false")]:
        conf.set(f"spark.{name}", value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    context = SparkContext(conf=conf)
    try:
        yield context
    finally:
        end(context)


def end(context):
    """Ends Spark so that the CPU time of its processes counts for this process. Only processes that this process waits for
    count. It inherits the Python workers once their daemon is killed; the daemon itself wouldn't wait for them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    proc = context._gateway.proc
    daemons = children(proc.pid)
    workers = [worker for daemon in daemons for worker in children(daemon)]
    for pid in [*daemons, *workers]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    context.stop()
    proc.stdin.close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def children(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, text=True)
    return [int(child) for child in found.stdout.split()]


def memory():
    """A temporary directory, in memory if possible."""
    return tempfile.TemporaryDirectory(prefix="pipemark-spark-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


def damage(context, pipemark):
    """The hostile bytes that each way alters, compared with the output of the filter without Spark."""
    found = {}
    with memory() as directory:
        source = Path(directory, "in")
        source.write_bytes(HOSTILE)
        whole = subprocess.run([pipemark, "lines", source], stdout=subprocess.PIPE, check=True).stdout
        kept = [b"\r\n", b"lone\rcr", b"\xff", b"\0", b"[spaces: 0]\n"]
        for way, run in WAYS.items():
            run(context, str(source), f"{directory}/{way}", pipemark)
            made = b"".join(path.read_bytes() for path in parts(f"{directory}/{way}"))
            missing = [piece for piece in kept if piece not in made]
            missing += [] if made.endswith(b"no end") else ["the end without newline"]
            found[way] = [] if made == whole else missing or ["other bytes"]
    return found


def main(way):
    if way == "--version":
        with spark() as context:
            print(f"Spark {context.version} of Python {sys.version.split()[0]}")
        return
    # The filter is the pipemark program that started this script.
    pipemark = os.environ.get("PIPEMARK") or os.readlink(f"/proc/{os.getppid()}/exe")
    with spark() as context:
        if way == "damage":
            for name, missing in damage(context, pipemark).items():
                print(f"{name:12} {'the same bytes' if not missing else f'changed: {missing}'}")
            return
        with memory() as directory:
            # Standard input may be a file without a name.
            WAYS[way](context, f"/proc/{os.getpid()}/fd/0", f"{directory}/out", pipemark)
            for path in parts(f"{directory}/out"):
                with open(path, "rb") as part:
                    shutil.copyfileobj(part, sys.stdout.buffer, 1 << 20)
            # Spark has read through other descriptors, but pipemark checks the offset of standard input.
            os.lseek(0, 0, os.SEEK_END)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in [*WAYS, "damage", "--version"]:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(WAYS)}|damage|--version; pyspark {pyspark.__version__}")
    main(sys.argv[1])
