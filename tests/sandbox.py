#!/usr/bin/env python3
"""Tries to change what is outside of a sandbox, and prints each attempt that the kernel didn't refuse.

usage: sandbox.py FILE VICTIM TCP UDP UNIX ABSTRACT

FILE exists, and VICTIM is a process. TCP and UDP are ports at 127.0.0.1, UNIX is the path and ABSTRACT the abstract name of a
socket. Another line says whether the forked child that wanted to outlive the run has left the process group."""

import ctypes
import errno
import fcntl
import os
import platform
import signal
import socket
import sys
import time

file, victim, tcp, udp, unix, abstract = sys.argv[1:]
victim, tcp, udp = int(victim), int(tcp), int(udp)
libc = ctypes.CDLL(None, use_errno=True)
# The last one is that of a file system without unnamed files.
REFUSED = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP}
# System calls by their numbers on x86-64 and aarch64.
NUMBERS = {"ptrace": (101, 117), "io_uring_setup": (425, 425), "memfd_create": (319, 279), "shmget": (29, 194), "keyctl": (250, 219),
           "process_vm_writev": (311, 271), "pidfd_open": (434, 434), "bpf": (321, 280), "mount": (165, 40), "unshare": (272, 97),
           "setns": (308, 268), "fchmodat2": (452, 452), "setxattrat": (463, 463), "reboot": (169, 142)}  # fmt: skip


def attempt(name, act):
    try:
        act()
    except OSError as error:
        if error.errno not in REFUSED:
            print(f"{name}: {error}")
    else:
        print(name)


def call(name, *arguments):
    number = NUMBERS[name][platform.machine() == "aarch64"]
    if libc.syscall(number, *map(ctypes.c_long, arguments)) == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def connected(family, kind, address):
    sender = socket.socket(family, kind)
    sender.connect(address)
    sender.send(b"from the sandbox")


def open_file(flags):
    os.close(os.open(file, flags))


directory = os.path.dirname(file)
readable = os.open(file, os.O_RDONLY)
attempt("write", lambda: open_file(os.O_WRONLY))
attempt("append", lambda: open_file(os.O_WRONLY | os.O_APPEND))
attempt("truncate at open", lambda: open_file(os.O_RDONLY | os.O_TRUNC))
attempt("truncate", lambda: os.truncate(file, 0))
attempt("create", lambda: open(file + ".new", "w").close())
attempt("unnamed file", lambda: os.open(directory, os.O_TMPFILE | os.O_WRONLY))
attempt("unlink", lambda: os.unlink(file))
attempt("rename", lambda: os.rename(file, file + ".new"))
attempt("link", lambda: os.link(file, file + ".new"))
attempt("mkdir", lambda: os.mkdir(file + ".new"))
attempt("mkfifo", lambda: os.mkfifo(file + ".new"))
attempt("chmod", lambda: os.chmod(file, 0o777))
attempt("fchmod", lambda: os.fchmod(readable, 0o777))
attempt("chown", lambda: os.chown(file, 1, 1))
attempt("utime", lambda: os.utime(file, (1, 1)))
attempt("futime", lambda: os.utime(readable, (1, 1)))
attempt("setxattr", lambda: os.setxattr(file, "user.pipemark", b"x"))
attempt("chattr", lambda: fcntl.ioctl(readable, 0x40086602, bytes(8)))
attempt("lock", lambda: fcntl.flock(readable, fcntl.LOCK_SH))
attempt("lease", lambda: fcntl.fcntl(readable, fcntl.F_SETLEASE, fcntl.F_RDLCK))
attempt("TCP", lambda: connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)))
attempt("UDP", lambda: connected(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp)))
attempt("Unix socket", lambda: connected(socket.AF_UNIX, socket.SOCK_STREAM, unix))
attempt("abstract socket", lambda: connected(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract))
attempt("socket pair", lambda: socket.socketpair())
attempt("signal", lambda: os.kill(victim, signal.SIGKILL))
attempt("signal to the parent", lambda: os.kill(os.getppid(), signal.SIGKILL))
attempt("stop", lambda: os.kill(victim, signal.SIGSTOP))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, victim, 10))
attempt("affinity", lambda: os.sched_setaffinity(victim, {0}))
attempt("memory", lambda: open(f"/proc/{victim}/mem", "r+b").close())
attempt("terminal input", lambda: fcntl.ioctl(0, 0x5412, b"x"))
for name, arguments in {
    "ptrace": (16, victim, 0, 0),
    "process_vm_writev": (victim, 0, 0, 0, 0, 0),
    "pidfd_open": (victim, 0),
}.items():
    attempt(name, lambda name=name, arguments=arguments: call(name, *arguments))
for name in [
    "io_uring_setup",
    "memfd_create",
    "shmget",
    "keyctl",
    "bpf",
    "mount",
    "unshare",
    "setns",
    "fchmodat2",
    "setxattrat",
    "reboot",
]:
    attempt(name, lambda name=name: call(name, 0, 0, 0, 0, 0))
# A child that leaves the process group would outlive the run.
if os.fork() == 0:
    attempt("session", os.setsid)
    attempt("process group", lambda: os.setpgid(0, 0))
    sys.stdout.flush()
    os.close(1)
    os.close(2)
    time.sleep(600)
