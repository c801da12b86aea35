#!/usr/bin/env python3
"""The line job on Dask: engines/dask/lines.py IN... OUT -- lines spaces

Runs on this machine's CPUs, or on the cluster whose scheduler DASK_SCHEDULER names (tcp://HOST:8786). The parts of OUT,
concatenated, equal the output of `pipemark lines` on the files. See docs/scale.md."""

import os
import sys
from pathlib import Path

import dask

sys.path.append(str(Path(__file__).resolve().parents[1]))
import line_job  # noqa: E402


def start(stack):
    scheduler = "threads"
    if address := os.environ.get("DASK_SCHEDULER"):
        from dask.distributed import Client

        scheduler = stack.enter_context(Client(address))
        scheduler.upload_file(line_job.__file__)
    return lambda function, tasks: dask.compute(*map(dask.delayed(function, pure=False), tasks), scheduler=scheduler)


if __name__ == "__main__":
    line_job.main(__doc__, start)
