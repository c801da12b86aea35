#!/usr/bin/env python3
"""Becomes user 65534, creates pipes until a new pipe gets no more than two pages, and holds the pipes until its input ends."""

import fcntl
import os
import sys

F_SETPIPE_SZ, F_GETPIPE_SZ = 1031, 1032
MANY = 400

os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
pipes = []
try:
    while len(pipes) < MANY:
        pipes.append(os.pipe())
        if fcntl.fcntl(pipes[-1][0], F_GETPIPE_SZ) <= 2 * os.sysconf("SC_PAGE_SIZE"):
            break
        try:
            fcntl.fcntl(pipes[-1][0], F_SETPIPE_SZ, 1 << 20)
        except PermissionError:
            pass  # at its maximum; smaller pipes use up the rest
except OSError as error:
    print(f"take_pipes.py: {error}", file=sys.stderr)
print("taken", flush=True)
sys.stdin.read()
