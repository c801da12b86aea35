"""A standalone master with executors of one core on this machine, for tests and benches."""

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
    """The address of its master. Nothing of it is left afterwards."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pipemark-spark-")))
        environment = {
            **os.environ,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder),
        }

        def start(name, *words):
            log = folder / f"{name}.log"
            command = [
                BIN / "spark-class",
                f"org.apache.spark.deploy.{words[0]}",
                "--host",
                "127.0.0.1",
                "--webui-port",
                "0",
            ]
            with open(log, "wb") as file:
                process = subprocess.Popen([*command, *words[1:]], env=environment, stdout=file, stderr=file)
            # A worker that is told to end ends its executors.
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

        master = says(*start("master", "master.Master", "--port", "0"), r"spark://[\w.:]+")
        workers = [
            start(f"worker{n}", "worker.Worker", "--cores", "1", "--memory", "1g", master) for n in range(executors)
        ]
        for worker in workers:
            says(*worker, "Successfully registered")
        yield master


def submit(master, script, *words, conf=(), **options):
    """The process of a driver."""
    settings = [word for setting in conf for word in ("--conf", setting)]
    command = [BIN / "spark-submit", "--master", master, *settings, script, *words]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
