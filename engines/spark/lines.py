#!/usr/bin/env python3
"""The line job on Apache Spark: spark-submit engines/spark/lines.py IN... OUT -- lines spaces

Each task streams a range of a file through `pipemark lines` into a file; no line passes through Python or the JVM. The
parts of OUT, concatenated, equal the output of `pipemark lines` on the files. See docs/scale.md."""

import contextlib
import gc
import os
import re
import socket
import sys
import zipimport
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext

sys.path.append(str(Path(__file__).resolve().parents[1]))
import line_job  # noqa: E402

# An executor's JVM only starts tasks, which is fastest with the quick compiler alone.
JAVA = "spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1"


def without_delays(function):
    """Calls `function` with each task of a partition, and avoids two delays of Spark:

    - The JVM sends the tasks after a header, and Nagle's algorithm delays them until the header is acknowledged, which
      the kernel delays for 40 ms. The header has been read by now, so this function has it acknowledged at once.
    - The worker reads pyspark's archive again and collects garbage among all objects: 0.1 s of CPU time. Neither is
      needed, because the archive doesn't change and the existing objects stay.
    """

    def acknowledge():
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                connection = socket.socket(fileno=descriptor)
                try:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                finally:
                    connection.detach()

    def call(tasks):
        acknowledge()
        zipimport.zipimporter.invalidate_caches = lambda importer: None
        if not gc.get_freeze_count():
            gc.freeze()
        return map(function, tasks)

    return call


def start(stack):
    # Without this, a SparkConf lacks the settings of spark-submit.
    SparkContext._ensure_initialized()
    context = SparkContext(appName="pipemark lines", conf=SparkConf().setIfMissing(*JAVA))
    stack.callback(context.stop)
    return executor_map(context)


def executor_map(context):
    """Returns a function that calls another function for each task, on the executors."""
    context.addPyFile(line_job.__file__)

    def each(function, tasks, partitions=None):
        try:
            return (
                context.parallelize(tasks, partitions or len(tasks)).mapPartitions(without_delays(function)).collect()
            )
        except Py4JJavaError as error:
            # The last attempt's message, extracted from the JVM's text.
            said = re.findall(r"line_job\.Failed: (.*)", str(error.java_exception))
            raise line_job.Failed(said[-1] if said else str(error.java_exception)) from None

    return each


if __name__ == "__main__":
    line_job.main(__doc__, start)
