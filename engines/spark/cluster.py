"""A standalone Spark master with single-core executors on this machine, for tests and benchmarks."""

import contextlib
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pyspark

BIN = Path(pyspark.__file__).parent / "bin"


@contextlib.contextmanager
def cluster(executors=2):
    """Starts a cluster and yields its master's address; afterwards ends and removes everything."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipemark-spark-")))
        environment = {**os.environ, "SPARK_DAEMON_MEMORY": "256m", "SPARK_WORKER_DIR": str(directory)}

        def start(host, name, *words):
            log = directory / f"{host}.log"
            command = [
                BIN / "spark-class",
                f"org.apache.spark.deploy.{name}",
                "--host",
                host,
                "--webui-port",
                "0",
                *words,
            ]
            with open(log, "wb") as file:
                process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
            # On SIGTERM a worker ends its executors.
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process, log

        def says(process, log, words):
            deadline = time.monotonic() + 60
            while not (found := re.search(words, log.read_text())):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{log.name}: {log.read_text()[-1000:]}")
                time.sleep(0.05)
            return found[0]

        # Separate addresses, because Spark doesn't speculate on a task's own host.
        master = says(*start("127.0.0.1", "master.Master", "--port", "0"), r"spark://[\w.:]+")
        flags = ("--cores", "1", "--memory", "1g", master)
        workers = [start(f"127.0.0.{n + 2}", "worker.Worker", *flags) for n in range(executors)]
        for worker in workers:
            says(*worker, "Successfully registered")
        yield master


def executors():
    """The process ids of the executors."""
    found = subprocess.run(["pgrep", "-f", "[C]oarseGrainedExecutorBackend"], stdout=subprocess.PIPE, text=True)
    return [int(pid) for pid in found.stdout.split()]


def submit(master, script, *words, conf=(), **options):
    """Starts a driver; returns its process."""
    settings = [word for setting in ["spark.log.level=WARN", *conf] for word in ("--conf", setting)]
    command = [BIN / "spark-submit", "--master", master, *settings, script, *words]
    return subprocess.Popen(command, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, **options)
