"""Starts a program that gets ERROR from the system calls called NAMES: refused.py ERROR NAME,NAME… PROGRAM WORD…

A seccomp filter, as containers have one. It is inherited and cannot be taken off again."""

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"socket": 41, "socketpair": 53, "msgget": 68, "mknodat": 259, "mq_open": 240, "process_vm_readv": 310},
    "aarch64": {"socket": 198, "socketpair": 199, "msgget": 186, "mknodat": 33, "mq_open": 180, "process_vm_readv": 270},
}
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


def main():
    error, names, words = getattr(errno, sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
    numbers = [NUMBERS[platform.machine()][name] for name in names]
    # The number of the call is the first word; jumps go over so many instructions.
    program = [(LOAD_WORD, 0, 0, 0)]
    program += [(JUMP_IF_EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL | error)]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    text = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("HL", len(program), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_ulong
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, number(1), number(0), number(0), number(0)) == 0
    if libc.prctl(PR_SET_SECCOMP, number(SECCOMP_MODE_FILTER), ctypes.c_char_p(head), number(0), number(0)) != 0:
        sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
    os.execv(words[0], words)


main()
