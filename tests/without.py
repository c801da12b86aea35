#!/usr/bin/env python3
"""Runs a command whose system calls partly fail, as in containers and sandboxes.

usage: without.py EPERM|ENOSYS CALL[,CALL...] COMMAND...

For the command and all its descendants, a seccomp filter makes the named calls fail with the given error.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

# System call numbers on x86-64 and aarch64, the architectures that the tests run on.
NUMBERS = {
    "io_uring_setup": (425, 425),
    "landlock_create_ruleset": (444, 444),
    "memfd_create": (319, 279),
    "mknodat": (259, 33),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "process_vm_readv": (310, 270),
    "sched_setaffinity": (203, 122),
    "seccomp": (317, 277),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "splice": (275, 76),
    "tee": (276, 77),
    "vmsplice": (278, 75),
}
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7FFF0000, 0x00050000
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06


def instruction(code, yes, no, value):
    return struct.pack("HBBI", code, yes, no, value)


def program(error, numbers, architecture):
    """Classic BPF over struct seccomp_data: the call's number is at offset 0, the architecture at 4."""
    steps = [instruction(LOAD, 0, 0, 4), instruction(JUMP_IF_EQUAL, 0, len(numbers) + 1, architecture)]
    steps.append(instruction(LOAD, 0, 0, 0))
    for index, number in enumerate(numbers):
        steps.append(instruction(JUMP_IF_EQUAL, len(numbers) - index, 0, number))
    steps.append(instruction(RETURN, 0, 0, SECCOMP_RET_ALLOW))
    steps.append(instruction(RETURN, 0, 0, SECCOMP_RET_ERRNO | error))
    return b"".join(steps)


def main():
    column, architecture = ARCHITECTURES[platform.machine()]
    numbers = [NUMBERS[name][column] for name in sys.argv[2].split(",")]
    steps = program(getattr(errno, sys.argv[1]), numbers, architecture)
    code = ctypes.create_string_buffer(steps, len(steps))
    # struct sock_fprog: the number of instructions and their address.
    holder = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(holder))):
        if libc.prctl(arguments[0], *map(ctypes.c_ulong, arguments[1:]), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            sys.exit(f"without.py: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[3], sys.argv[3:])


main()
