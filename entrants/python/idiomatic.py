"""Streams through a pipe in idiomatic Python: subprocess and its file objects."""

import fcntl
import json
import subprocess
import sys
import time

from stream import Checksum, Source, arguments, report


def child(options):
    checksum = Checksum(options)
    print("ready", flush=True)
    while block := sys.stdin.buffer.read(options.block):
        checksum.add(block)
    print(json.dumps({"bytes": checksum.bytes, "checksum": f"{checksum.value:016x}"}))


def parent(options):
    source = Source(options)
    command = [sys.executable, __file__, "--child", *sys.argv[1:]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdout.readline() != b"ready\n":
            raise SystemExit("the child ended before it was ready")
        start = time.monotonic_ns()
        for block in source:
            process.stdin.write(block)
        process.stdin.flush()
        capacity = fcntl.fcntl(process.stdin, fcntl.F_GETPIPE_SZ)
        process.stdin.close()
        line = process.stdout.readline()
        ns = time.monotonic_ns() - start
    if process.returncode != 0:
        raise SystemExit(f"the child failed with status {process.returncode}")
    report(options, json.loads(line) | {"capacity": capacity}, ns)


if __name__ == "__main__":
    options = arguments()
    child(options) if options.child else parent(options)
