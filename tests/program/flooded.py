"""Starts a program in a network where stranger processes connect to every port that opens: flooded.py FILE PROGRAM WORD…

Must run in its own network namespace (unshare -n), in which it reduces the number of ports. Each stranger appends a byte to FILE
at its first connection. Exits with 77 if it isn't permitted to change the network."""

import fcntl
import os
import socket
import struct
import subprocess
import sys

FIRST, LAST = 40000, 40031
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def stranger(file, guarded):
    came = False
    while os.getppid() == guarded:
        for port in range(FIRST, LAST + 1):
            with socket.socket() as us:
                us.settimeout(0.1)
                try:
                    us.connect(("127.0.0.1", port))
                    us.sendall(b"U" * 1000)
                except OSError:
                    continue
            if not came:
                came = True
                with open(file, "ab") as told:
                    told.write(b"!")


def main():
    if sys.argv[1] == "stranger":
        stranger(sys.argv[2], int(sys.argv[3]))
        return
    try:
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
        for name, value in (("ip_local_port_range", f"{FIRST} {LAST}"), ("tcp_max_tw_buckets", "0")):
            with open("/proc/sys/net/ipv4/" + name, "w") as setting:
                setting.write(value)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(77)
    for _ in range(2):
        words = [sys.executable, __file__, "stranger", sys.argv[1], str(os.getpid())]
        # The processes get no mark of the test, because they don't belong to the program.
        subprocess.Popen(words, env={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.execv(sys.argv[2], sys.argv[2:])


main()
