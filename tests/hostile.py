#!/usr/bin/env python3
"""Runs `pipemark lines`, `pipemark relay` and some other verbs in hostile surroundings: signals, limits, odd descriptors, files
that change, other users.

    tests/hostile.py PIPEMARK [WORD...]     all cases, or those with one of the words in their name

Each case must output the right bytes, or a message with exit code 1, and must never panic or hang. Prints the cases that fail,
and exits with 1 if there are any. Each line that begins with 'skip' names a case that can't run here, and why."""

import contextlib
import fcntl
import os
import pty
import random
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
PIPEMARK, only = shutil.which(sys.argv[1]), sys.argv[2:]
if PIPEMARK is None:
    sys.exit(f"{sys.argv[1]} is not a program")
PIPEMARK = os.path.abspath(PIPEMARK)
DIRECTORY = tempfile.mkdtemp(prefix="pipemark-hostile-")
LIMIT = 20
PIPE = subprocess.PIPE
TRIED, FAILED = [], []


def text(lines, longest=60):
    chance = random.Random(1)
    return b"".join(b"%d %s\n" % (n, b"x" * chance.randrange(longest)) for n in range(lines))


TEXT = text(40000)


def make_file(name, data=b""):
    name = os.path.join(DIRECTORY, name)
    with open(name, "wb") as file:
        file.write(data)
    return name


def start(words, stdin, stdout=PIPE):
    return subprocess.Popen([PIPEMARK] + words, stdin=stdin, stdout=stdout, stderr=PIPE)


def ended(p, feed=None, t=LIMIT):
    """Waits for the end of a process, and kills it at the time limit. Returns exit code (or HANG), output and messages."""
    try:
        o, e = p.communicate(feed, timeout=t)
    except subprocess.TimeoutExpired:
        p.kill()
        return "HANG", *p.communicate()
    return p.returncode, o, e


def run(words, stdin=None, stdout=PIPE, pre=None, feed=None, t=LIMIT, stderr=PIPE, program=(PIPEMARK,), cwd=None):
    """Runs the program to its end. Returns exit code (or HANG), output and messages."""
    if feed is not None:
        stdin = PIPE
    p = subprocess.Popen([*program, *words], stdin=stdin, stdout=stdout, stderr=stderr, preexec_fn=pre, cwd=cwd)
    return ended(p, feed, t)


def first_bytes(p, count):
    """The first bytes that a process outputs within the time limit."""
    got, end = b"", time.monotonic() + LIMIT
    while len(got) < count and select.select([p.stdout], [], [], max(0, end - time.monotonic()))[0]:
        more = os.read(p.stdout.fileno(), count - len(got))
        if not more:
            break
        got += more
    return got


def wait_until_idle(p):
    """Waits until a process sleeps or has ended."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with open(f"/proc/{p.pid}/stat") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] in "SZ":
                return
        time.sleep(0.01)


def tcp():
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        return near, server.accept()[0]


def check(name, ok, *what):
    TRIED.append(name)
    if not ok:
        print("BAD  ", name, *(repr(w)[:300] for w in what), flush=True)
        FAILED.append(name)


def failed_with_message(r):
    """Whether a result of `run` has a message and exit code 1."""
    return r[0] == 1 and r[2] is not None and len(r[2]) > 10 and b"panicked" not in r[2]


def succeeded(r, want):
    return r[0] == 0 and r[1] == want and b"panicked" not in (r[2] or b"")


def ended_well(r):
    """Whether a verb succeeded, or ended with a sentence and an exit code of its own (125: why itself failed)."""
    return r[0] in (0, 1, 125) and b"panicked" not in r[2] and (r[0] == 0 or b"pipemark" in r[2])


def skipped(name, why):
    print(f"skip  {name}: {why}", flush=True)


cases = []


def case(f):
    cases.append(f)
    return f


FILTERS = (["lines", "identity"], ["relay"], ["lines", "identity", "--threads", "3"])


@case
def stop_cont():
    for w in FILTERS:
        p = start(w, PIPE)
        stop = threading.Event()

        def signal_storm():
            while not stop.is_set():
                for s in (signal.SIGWINCH, signal.SIGSTOP, signal.SIGCONT, signal.SIGURG, signal.SIGCHLD):
                    try:
                        p.send_signal(s)
                    except ProcessLookupError:
                        return
                time.sleep(0.0005)

        def feed():
            for i in range(0, len(TEXT), 7000):
                p.stdin.write(TEXT[i : i + 7000])
                p.stdin.flush()
                (i % 70000 == 0) and time.sleep(0.002)
            p.stdin.close()

        a = threading.Thread(target=signal_storm)
        b = threading.Thread(target=feed)
        a.start()
        b.start()
        o = p.stdout.read()
        stop.set()
        a.join()
        b.join()
        p.send_signal(signal.SIGCONT)
        c = p.wait(LIMIT)
        e = p.stderr.read()
        check(f"stop/cont storm {w}", c == 0 and o == TEXT, c, len(o), e)


@case
def dev_full():
    f = make_file("a", TEXT)
    for w in (
        ["lines"],
        ["lines", "upper"],
        ["lines", "--threads", "3"],
        ["lines", "--send", "give-away"],
        ["relay"],
        ["relay", "--method", "read-write"],
    ):
        for src in ("file", "pipe"):
            with open("/dev/full", "wb") as out:
                r = run(w, stdin=open(f, "rb"), stdout=out) if src == "file" else run(w, feed=TEXT, stdout=out)
            check(f"/dev/full {src} {w}", failed_with_message(r), *r)


@case
def stderr_full():
    for w in FILTERS:
        with open("/dev/full", "wb") as err, open("/dev/full", "wb") as out:
            r = run(w + ["--stats"], feed=TEXT, stdout=out, stderr=err)
        check(f"stderr full too {w}", r[0] == 1, *r)
        with open("/dev/full", "wb") as err:
            r = run(w + ["--stats"], feed=TEXT, stderr=err)
        check(f"stderr full, stats {w}", r[0] in (0, 1) and r[1] == TEXT, r[0])
        r = run(w + ["--stats"], feed=TEXT, stderr=None, pre=lambda: os.close(2))
        check(f"stderr closed {w}", r[0] in (0, 1) and r[1] == TEXT, r[0])


@case
def all_closed():
    for w in FILTERS:
        r = run(w, stdin=None, stdout=None, stderr=PIPE, pre=lambda: (os.close(0), os.close(1)))
        check(f"stdin and stdout closed {w}", failed_with_message(r), *r)


@case
def few_fds():
    f = make_file("a", TEXT)
    for w in FILTERS:
        for n in (4, 5, 6, 7, 8):
            r = run(w, stdin=open(f, "rb"), pre=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            check(f"nofile {n} file {w}", succeeded(r, TEXT) or failed_with_message(r), r[0], r[2])
            r = run(w, feed=TEXT, pre=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            check(f"nofile {n} pipe {w}", succeeded(r, TEXT) or failed_with_message(r), r[0], r[2])


@case
def limits():
    f = make_file("a", TEXT)
    for w in FILTERS + (["lines", "identity", "--send", "give-away"],):
        for lim, v in (
            ("DATA", 1 << 20),
            ("DATA", 1 << 16),
            ("MEMLOCK", 0),
            ("NPROC", 0),
            ("SIGPENDING", 0),
            ("CORE", 0),
            ("AS", 48 << 20),
        ):

            def pre(lim=lim, v=v):
                resource.setrlimit(getattr(resource, "RLIMIT_" + lim), (v, v))

            for src in ("file", "pipe"):
                try:
                    r = run(w, stdin=open(f, "rb"), pre=pre) if src == "file" else run(w, feed=TEXT, pre=pre)
                except Exception as x:
                    skipped(f"{lim} {v} {src} {w}", x)
                    continue
                check(
                    f"{lim} {v} {src} {w}",
                    succeeded(r, TEXT)
                    or failed_with_message(r)
                    or (r[0] in (127, -11, -9) and lim in ("AS", "STACK", "DATA") and not r[1]),
                    r[0],
                    r[2],
                )


@case
def fsize():
    for w in FILTERS:
        for sig in ("dfl", "ign"):

            def pre():
                if sig == "ign":
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                else:
                    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
                resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

            p = make_file("out")
            with open(p, "wb") as out:
                r = run(w, feed=TEXT, stdout=out, pre=pre)
            got = open(p, "rb").read()
            check(
                f"fsize {sig} {w}",
                (failed_with_message(r) or r[0] == -signal.SIGXFSZ) and TEXT.startswith(got) and len(got) == 100_000,
                r[0],
                r[2],
                len(got),
            )


@case
def unusual_inputs():
    for w in FILTERS:
        fd = os.open(DIRECTORY, os.O_RDONLY)
        r = run(w, stdin=fd)
        check(f"directory {w}", failed_with_message(r), *r)
        os.close(fd)
        fd = os.open(make_file("x"), os.O_WRONLY)
        r = run(w, stdin=fd)
        check(f"write-only {w}", failed_with_message(r), *r)
        os.close(fd)
        fd = os.open(make_file("x", b"a\n"), os.O_PATH)
        r = run(w, stdin=fd)
        check(f"O_PATH in {w}", failed_with_message(r), *r)
        r = run(w, feed=b"a\n", stdout=fd)
        check(f"O_PATH out {w}", failed_with_message(r), *r)
        os.close(fd)
        e = select.epoll()
        r = run(w, stdin=e.fileno())
        check(f"epoll in {w}", failed_with_message(r), *r)
        r = run(w, feed=b"a\n", stdout=e.fileno())
        check(f"epoll out {w}", failed_with_message(r), *r)
        fd = os.eventfd(0)
        r = run(w, feed=b"abcdefg\n", stdout=fd)
        check(f"eventfd out {w}", r[0] in (0, 1) and b"panick" not in r[2], *r)
        os.close(fd)
        r = run(w, feed=b"abcdef\n", stdout=os.open(DIRECTORY, os.O_RDONLY))
        check(f"directory out {w}", failed_with_message(r), *r)
        fd = os.open("/proc/self/mem", os.O_RDONLY)
        r = run(w, stdin=fd)
        check(f"/proc/self/mem {w}", failed_with_message(r), *r)
        fd = os.open("/proc/self/maps", os.O_RDONLY)
        r = run(w, stdin=fd)
        check(f"/proc/self/maps {w}", r[0] == 0 and r[1].count(b"\n") > 5, *r)
        fd = os.open("/proc/cpuinfo", os.O_RDONLY)
        r = run(w, stdin=fd)
        check(
            f"/proc/cpuinfo {w}",
            r[0] == 0 and r[1] == open("/proc/cpuinfo", "rb").read() or len(r[1]) > 1000,
            r[0],
            len(r[1]),
        )
        fd = os.open("/sys/kernel/mm/transparent_hugepage/enabled", os.O_RDONLY)
        r = run(w, stdin=fd)
        check(f"/sys file {w}", r[0] == 0 and b"never" in r[1], *r)
        fd = os.open("/proc/sys/kernel/hostname", os.O_RDONLY)
        r = run(w, stdin=fd)
        check(f"/proc/sys file {w}", r[0] == 0 and r[1], *r)


@case
def sealed():
    for w in FILTERS:
        for s in (fcntl.F_SEAL_WRITE, fcntl.F_SEAL_GROW):
            fd = os.memfd_create("s", os.MFD_ALLOW_SEALING)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, s)
            r = run(w, feed=TEXT, stdout=fd)
            check(f"sealed {s} {w}", failed_with_message(r), *r)
            os.close(fd)


@case
def tiny_pipes():
    for w in FILTERS + (
        ["lines", "identity", "--send", "give-away"],
        ["relay", "--capacity", "keep"],
        ["relay", "--method", "read-write"],
    ):
        r1, w1 = os.pipe()
        r2, w2 = os.pipe()
        for f in (w1, w2):
            fcntl.fcntl(f, 1031, 4096)
        p = start(w, r1, w2)
        os.close(r1)
        os.close(w2)

        def feed():
            with os.fdopen(w1, "wb", 0) as f:
                i = 0
                while i < len(TEXT):
                    i += f.write(TEXT[i : i + random.choice((1, 100, 5000, 40000))])

        t = threading.Thread(target=feed)
        t.start()
        got = os.fdopen(r2, "rb").read()
        t.join()
        check(f"pipes of a page {w}", p.wait() == 0 and got == TEXT, len(got), p.stderr.read())


@case
def nonblock_toggled():
    for w in FILTERS:
        r1, w1 = os.pipe()
        r2, w2 = os.pipe()
        p = start(w, r1, w2)
        stop = threading.Event()

        def toggle():
            on = False
            while not stop.is_set():
                for f in (r1, w2):
                    os.set_blocking(f, on)
                on = not on
                time.sleep(0.0003)
            for f in (r1, w2):
                os.close(f)

        def feed():
            with os.fdopen(w1, "wb", 0) as f:
                i = 0
                n = 0
                while i < len(TEXT):
                    i += f.write(TEXT[i : i + 5000])
                    n += 1
                    if n % 20 == 0:
                        time.sleep(0.001)

        ts = [threading.Thread(target=x) for x in (toggle, feed)]
        [t.start() for t in ts]
        out = []

        def read():
            while True:
                b = os.read(r2, 3000)
                if not b:
                    break
                out.append(b)

        # The socket holds less than all of the bytes, so the test reads while it writes.
        rt = threading.Thread(target=read)
        rt.start()
        ts[1].join()
        time.sleep(0.3)
        stop.set()
        ts[0].join()
        rt.join(LIMIT)
        c = p.wait(LIMIT)
        check(f"nonblock toggled {w}", c == 0 and b"".join(out) == TEXT, c, len(b"".join(out)), p.stderr.read())


@case
def ptys():
    for w in FILTERS:
        m, s = pty.openpty()
        p = start(w, s)
        os.close(s)
        os.write(m, b"hello\n")
        l = os.read(p.stdout.fileno(), 100)
        os.close(m)  # hang up
        c, o, e = ended(p)
        check(f"terminal hung up {w}", l == b"hello\n" and c in (1, 0, -1), l, c, e)
        m, s = pty.openpty()
        os.close(m)
        r = run(w, feed=b"a\n" * 10, stdout=s)
        check(f"terminal gone as output {w}", failed_with_message(r), *r)
        r = run(w, stdin=s)
        check(f"terminal gone as input {w}", r[0] in (0, 1) and b"panick" not in r[2], *r)
        os.close(s)
        m2, s2 = pty.openpty()
        p = subprocess.Popen([PIPEMARK] + w, stdin=s2, stdout=PIPE, stderr=PIPE, start_new_session=True)
        os.write(m2, b"a\nb\n\x04\x04")
        c, o, e = ended(p)
        check(f"^D on a terminal {w}", c == 0 and o == b"a\nb\n", c, o, e)
        for f in (m2, s2):
            os.close(f)


@case
def deleted():
    for w in FILTERS:
        f = make_file("gone", TEXT)
        h = open(f, "rb")
        os.unlink(f)
        r = run(w, stdin=h)
        check(f"deleted file {w}", succeeded(r, TEXT), r[0], r[2])
        h = open(make_file("past", TEXT), "rb")
        h.seek(10**12)
        r = run(w, stdin=h)
        check(f"position behind the end {w}", succeeded(r, b""), *r)


@case
def truncated():
    big = text(400000)
    for w in FILTERS + (
        ["lines", "identity", "--threads", "4", "--batch", "64K"],
        ["lines", "identity", "--batch", "4K"],
    ):
        for i in range(6):
            f = make_file("t", big)
            h = open(f, "rb")
            p = start(w, h)
            a = os.read(p.stdout.fileno(), 1000 * (1 + i * 200))
            os.truncate(f, random.choice((0, 5, 100_003, len(big) // 2)))
            if i % 2:
                open(f, "ab").write(b"more\n" * 1000)
            c, o, e = ended(p)
            check(f"truncated while read {w} {i}", c == 0, c, len(a + o), e)


@case
def growing():
    for w in FILTERS + (["lines", "identity", "--threads", "4", "--batch", "64K"],):
        f = make_file("g", TEXT)
        h = open(f, "rb")
        p = start(w, h)
        a = os.read(p.stdout.fileno(), 1000)
        open(f, "ab").write(TEXT)
        o, e = p.communicate(timeout=LIMIT)
        got = a + o
        check(
            f"grows while read {w}",
            p.returncode == 0 and (TEXT + TEXT).startswith(got) and len(got) >= len(TEXT),
            p.returncode,
            len(got) / len(TEXT),
            e,
        )


@case
def sparse():
    f = make_file("s")
    os.truncate(f, 1 << 42)
    for w in (
        ["lines", "--max-line", "1M"],
        ["lines", "--max-line", "1M", "--threads", "4"],
        ["lines", "--max-line", "1"],
        ["lines", "--range", str((1 << 42) - 5) + ":"],
        ["lines", "-z", "--range", str((1 << 42) - 5) + ":"],
    ):
        r = run(w, stdin=open(f, "rb"), t=60)
        check(f"4 TiB of holes {w}", (failed_with_message(r) if "--max-line" in w else r[0] in (0, 1)), *r)
    os.unlink(f)
    f = make_file("e", TEXT)
    for rg in (
        str(2**63 - 1) + ":",
        str(2**64 - 1) + ":",
        "0:" + str(2**64 - 1),
        f"0:{2**63}",
        f"{2**63}:{2**63+5}",
        f"{2**64-2}:{2**64-1}",
    ):
        for th in ("1", "3"):
            r = run(["lines", "identity", "--range", rg, "--threads", th], stdin=open(f, "rb"))
            check(f"range {rg} {th}", succeeded(r, TEXT if rg[0] == "0" else b"") or r[0] == 2, *r)


@case
def arguments():
    for w in (
        ["--batch", "1E"],
        ["--batch", "1"],
        ["--batch", str(2**64 - 1)],
        ["--batch", str(2**63)],
        ["--max-line", "0"],
        ["--max-line", str(2**64 - 1)],
        ["--threads", "100000"],
        ["--threads", "0"],
        ["--threads", str(2**64 - 1)],
        ["number", "--start", str(2**64 - 1)],
        ["number", "--start", str(2**64 - 2)],
        ["number", "--start", "0"],
        ["field", str(2**64 - 1)],
        ["field", "1", "--delimiter", "\n"],
        ["identity", "--range", "5:3"],
        ["identity", "--batch", "1", "--threads", "2"],
    ):
        for src in ("file", "pipe"):
            data = TEXT[:20000]
            r = (
                run(["lines"] + w, stdin=open(make_file("a", data), "rb"), t=30)
                if src == "file"
                else run(["lines"] + w, feed=data, t=30)
            )
            check(
                f"arguments {w} {src}",
                r[0] in (0, 1, 2) and b"panick" not in r[2] and (r[0] == 0 or len(r[2]) > 10),
                r[0],
                r[1][:60],
                r[2],
            )


@case
def timeouts():
    for w in FILTERS:
        for side in ("in", "out"):
            a, b = socket.socketpair()
            tv = struct.pack("ll", 0, 50000)
            b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, tv)
            b.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, tv)
            if side == "in":
                p = start(w, b.fileno())
                b.close()
                time.sleep(0.3)
                a.sendall(b"x\n")
                time.sleep(0.2)
                a.sendall(b"y\n")
                a.shutdown(socket.SHUT_WR)
                r = ended(p)
                check(f"SO_RCVTIMEO {w}", succeeded(r, b"x\ny\n"), *r)
            else:
                p = start(w, PIPE, b.fileno())
                b.close()

                def feed():
                    try:
                        p.stdin.write(TEXT)
                        p.stdin.close()
                    except BrokenPipeError:
                        pass

                t = threading.Thread(target=feed)
                t.start()
                time.sleep(0.4)
                got = b""
                a.settimeout(LIMIT)
                try:
                    while True:
                        x = a.recv(100000)
                        if not x:
                            break
                        got += x
                except OSError:
                    pass
                p.kill() if p.poll() is None and len(got) < len(TEXT) else None
                t.join()
                c = p.wait()
                check(f"SO_SNDTIMEO {w}", c == 0 and got == TEXT, c, len(got), p.stderr.read())


@case
def sockets():
    for w in FILTERS:
        s = socket.socket()
        s.bind(("127.0.0.1", 0))
        s.listen()
        r = run(w, stdin=s.fileno())
        check(f"listening socket in {w}", failed_with_message(r), *r)
        r = run(w, feed=b"a\n", stdout=s.fileno())
        check(f"listening socket out {w}", failed_with_message(r) or r[0] in (0, -13), *r)
        s.close()
        s = socket.socket()
        r = run(w, stdin=s.fileno())
        check(f"unconnected in {w}", failed_with_message(r) or r[0] == 0, *r)
        r = run(w, feed=b"a\n", stdout=s.fileno())
        check(f"unconnected out {w}", failed_with_message(r) or r[0] in (0, -13), *r)
        s.close()
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        r = run(w, feed=b"a\n", stdout=s.fileno())
        check(f"unconnected dgram out {w}", failed_with_message(r), *r)
        # A connection reset by the peer.
        c, q = tcp()
        p = start(w, q.fileno())
        q.close()
        c.sendall(b"one\n")
        x = os.read(p.stdout.fileno(), 100)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        r = ended(p)
        check(f"reset {w}", x == b"one\n" and r[0] == 1 and b"reset" in r[2], x, *r)
        # Descriptors and urgent data sent along with bytes.
        a, b = socket.socketpair()
        p = start(w, b.fileno())
        b.close()
        for i in range(50):
            socket.send_fds(a, [b"line\n"], [0])
        got = first_bytes(p, 250)
        n = len(os.listdir(f"/proc/{p.pid}/fd"))
        a.close()
        r = ended(p)
        check(f"descriptors sent along {w}", succeeded(r, b"") and got == b"line\n" * 50 and n < 12, n, got, *r)
        c, q = tcp()
        p = start(w, q.fileno())
        q.close()
        c.sendall(b"one\n")
        c.send(b"!", socket.MSG_OOB)
        c.sendall(b"two\n")
        c.close()
        r = ended(p)
        check(f"urgent data {w}", succeeded(r, b"one\ntwo\n"), *r)
        # An echo: one socket for both directions.
        a, b = socket.socketpair()
        p = start(w, b.fileno(), b.fileno())
        b.close()
        got = b""
        a.settimeout(LIMIT)
        for i in range(100):
            a.sendall(b"ping %d\n" % i)
            got = b""
            while not got.endswith(b"\n"):
                got += a.recv(100)
        a.shutdown(socket.SHUT_WR)
        rest = a.recv(10)
        c = p.wait(LIMIT)
        check(f"echo {w}", got == b"ping 99\n" and rest == b"" and c == 0, c, got, rest, p.stderr.read())


@case
def low_watermarks():
    for w in FILTERS:

        c, q = tcp()
        q.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1000)
        q.setblocking(False)
        p = start(w, q.fileno())
        q.close()
        c.sendall(b"one\n")
        time.sleep(0.2)
        c.sendall(b"two\n")
        c.shutdown(socket.SHUT_WR)
        r = ended(p)
        check(f"SO_RCVLOWAT {w}", succeeded(r, b"one\ntwo\n"), *r)


@case
def packets():
    for w in (
        *FILTERS,
        ["lines", "identity", "--batch", "100"],
        ["lines", "identity", "--batch", "100", "--threads", "3"],
    ):
        r1, w1 = os.pipe2(os.O_DIRECT)
        data = b"".join(b"%06d%s\n" % (i, b"Y" * 600) for i in range(600))
        p = start(w, r1)
        os.close(r1)

        def feed():
            for i in range(0, len(data), 3500):
                os.write(w1, data[i : i + 3500])
            os.close(w1)

        t = threading.Thread(target=feed)
        t.start()
        o, e = p.communicate(timeout=LIMIT)
        t.join()
        check(f"packet pipe {w}", p.returncode == 0 and o == data, p.returncode, len(o), len(data), e)


@case
def file_onto_itself():
    for w in FILTERS:
        r1, w1 = os.pipe()
        os.write(w1, b"round\n")
        p = start(w, r1, w1)
        time.sleep(0.1)
        st = open(f"/proc/{p.pid}/stat").read().rsplit(")", 1)[1].split()[0]
        p.terminate()
        c, o, e = ended(p)
        check(f"a pipe into itself {w}", c in (-15, 1, 130, 143), c, st, e)
        os.close(r1)
        os.close(w1)


@case
def append_together():
    for w in FILTERS:
        f = make_file("app")
        hs = []
        for k in range(3):
            s = make_file(f"in{k}", b"".join(b"%d:%d:%s\n" % (k, i, b"z" * (i % 90)) for i in range(30000)))
            hs.append(start(w, open(s, "rb"), open(f, "ab")))
        cs = [h.wait(LIMIT) for h in hs]
        got = open(f, "rb").read().splitlines()
        want = sorted(l for k in range(3) for l in open(os.path.join(DIRECTORY, f"in{k}"), "rb").read().splitlines())
        check(
            f"three append to one file {w}",
            cs == [0, 0, 0] and (sorted(got) == want or w[0] == "relay"),
            cs,
            len(got),
            len(want),
            [h.stderr.read() for h in hs],
        )


@case
def reader_dies_while_full():
    for w in FILTERS:
        for nb in (True, False):
            r2, w2 = os.pipe()
            os.set_blocking(w2, not nb)
            p = start(w, open("/dev/zero", "rb") if w == ["relay"] else open(make_file("a", TEXT * 3), "rb"), w2)
            os.close(w2)
            wait_until_idle(p)
            os.close(r2)
            c, o, e = ended(p)
            check(f"reader dies when full, nonblocking {nb} {w}", c in (0, -13, 141), c, e)


def has_file(pid, name):
    """Whether a process has a file open whose name contains `name`."""
    directory = f"/proc/{pid}/fd"
    try:
        return any(name in os.readlink(os.path.join(directory, fd)) for fd in os.listdir(directory))
    except FileNotFoundError:
        # A file was closed since the directory was listed.
        return False


@case
def limits_changed_at_the_same_time():
    for words in (["relay", "--limit", "1"], ["relay", "--limit", "1", "--buffer", "1m"]):
        p = start(words, PIPE)
        end = time.monotonic() + LIMIT
        # The relay accepts changes once it has this file.
        while time.monotonic() < end and not has_file(p.pid, "relay-limit"):
            time.sleep(0.01)
        sets = [
            subprocess.Popen([PIPEMARK, "relay", "--set", str(p.pid), f"limit={n}m"], stderr=PIPE)
            for n in range(1, 17)
        ]
        ended = [(s.communicate(timeout=LIMIT)[1], s.returncode) for s in sets]
        check(f"limits changed at the same time {words}", all(r == (b"", 0) for r in ended), ended)
        changed = run(["relay", "--set", str(p.pid), "limit=1g"])
        o, e = p.communicate(TEXT, timeout=LIMIT)
        check(f"bytes after these changes {words}", changed[0] == p.returncode == 0 and o == TEXT, changed, e)


@case
def fifo():
    f = os.path.join(DIRECTORY, "fifo")
    if not os.path.exists(f):
        os.mkfifo(f)
    for w in (["lines", f], ["lines", "identity", f]):
        p = start(w, None)
        wait_until_idle(p)
        p.terminate()
        r = ended(p)
        check(f"fifo without writer {w}", r[0] in (-15, 130), *r)
    for w in FILTERS:
        fd = os.open(f, os.O_RDWR)
        p = start(w, fd)
        os.write(fd, b"hi\n")
        x = first_bytes(p, 3)
        p.terminate()
        r = ended(p)
        check(f"fifo read-write {w}", x == b"hi\n" and r[0] != "HANG", x, *r)
        os.close(fd)
        fd = os.open(f, os.O_RDONLY | os.O_NONBLOCK)
        r = run(w, stdin=fd)
        check(f"fifo never opened for writing {w}", r[0] in (0,), *r)
        os.close(fd)


@case
def no_proc():
    if os.geteuid() != 0:
        return skipped("without /proc", "needs root")
    for w in FILTERS:
        f = make_file("np", TEXT)
        r = subprocess.run(
            ["unshare", "-m", "sh", "-c", f'umount -l /proc && exec "$@" < {f}', "sh", PIPEMARK] + w,
            capture_output=True,
            timeout=LIMIT,
        )
        check(f"without /proc {w}", r.returncode == 0 and r.stdout == TEXT, r.returncode, len(r.stdout), r.stderr)
        r = subprocess.run(
            ["unshare", "-m", "sh", "-c", f'umount -l /proc && cat {f} | "$@"', "sh", PIPEMARK] + w,
            capture_output=True,
            timeout=LIMIT,
        )
        check(
            f"without /proc, pipe {w}", r.returncode == 0 and r.stdout == TEXT, r.returncode, len(r.stdout), r.stderr
        )


@case
def huge_line():
    big = b"q" * (40 << 20) + b"\nend\n"
    for w in FILTERS + (["lines", "upper"], ["lines", "--threads", "2", "identity"]):
        for src in ("file", "pipe"):
            r = run(w, stdin=open(make_file("big", big), "rb")) if src == "file" else run(w, feed=big)
            check(f"40 MiB line {src} {w}", succeeded(r, big.upper() if "upper" in w else big), r[0], len(r[1]), r[2])


@case
def slow_byte_reader():
    for w in FILTERS:
        p = subprocess.Popen([PIPEMARK] + w, stdin=PIPE, stdout=PIPE, stderr=PIPE, bufsize=0)
        d = TEXT[:150_000]

        def feed():
            p.stdin.write(d)
            p.stdin.close()

        t = threading.Thread(target=feed)
        t.start()
        got = bytearray()
        while True:
            b = os.read(p.stdout.fileno(), 1 if len(got) < 20000 else 4097)
            if not b:
                break
            got += b
        t.join()
        check(f"read by single bytes {w}", p.wait() == 0 and got == d, len(got))


@case
def inherited():
    for w in FILTERS:

        def pre():
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)

        p = subprocess.Popen(
            [PIPEMARK] + w,
            stdin=open("/dev/zero" if w == ["relay"] else make_file("a", TEXT * 5), "rb"),
            stdout=PIPE,
            stderr=PIPE,
            preexec_fn=pre,
        )
        os.read(p.stdout.fileno(), 10)
        p.stdout.close()
        p.stdout = None
        c, o, e = ended(p)
        check(f"all signals blocked, reader leaves {w}", c in (0, -13, 1, 141), c, e)

        def pre2():
            os.umask(0o777)
            os.chroot("/var/empty") if os.path.isdir("/var/empty") else None

        r = subprocess.run(["env", "-i", PIPEMARK] + w, input=TEXT, capture_output=True)
        check(f"no environment {w}", r.returncode == 0 and r.stdout == TEXT, r.returncode, r.stderr)
        r = run(w, feed=TEXT, pre=lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)))
        check(f"SCHED_IDLE {w}", succeeded(r, TEXT), r[0])


VERBS = FILTERS + (["relay", "--buffer", "1m"], ["relay", "--limit", "1g"], ["relay", "--progress", "json"])


@case
def event_descriptors():
    # Descriptors other than pipes, files and sockets are tested with one thread and with several.
    for w in FILTERS:
        # A counter that reads as eight newlines. An eventfd has no end, and lines writes only whole lines before the end.
        counter = os.eventfd(0)
        os.eventfd_write(counter, 0x0A0A0A0A0A0A0A0A)
        p = start(w, counter)
        got = first_bytes(p, 8)
        p.kill()
        check(f"eventfd {w}", got == b"\n" * 8, got, *ended(p))
        os.close(counter)
        epoll = select.epoll()
        r = run(w, stdin=epoll.fileno())
        check(f"epoll {w}", failed_with_message(r), *r)
        epoll.close()


def vsock_pair():
    """Both ends of an AF_VSOCK connection."""
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as server:
        # CID 1 is this machine, if the module vsock_loopback is loaded.
        server.bind((1, socket.VMADDR_PORT_ANY))
        server.listen()
        near = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
        near.settimeout(LIMIT)
        near.connect((1, server.getsockname()[1]))
        near.settimeout(None)
        return near, server.accept()[0]


@case
def vsock():
    try:
        vsock_pair()
    except OSError as error:
        return skipped("AF_VSOCK", error)
    for w in VERBS:
        near, far = vsock_pair()
        feeder = threading.Thread(target=lambda: (far.sendall(TEXT[:50000]), far.shutdown(socket.SHUT_WR)))
        feeder.start()
        r = run(w, stdin=near.fileno())
        feeder.join()
        check(f"AF_VSOCK as input {w}", r[0] == 0 and r[1] == TEXT[:50000], r[0], r[2])
        near, far = vsock_pair()
        p = start(w, PIPE, near.fileno())
        near.close()
        feeder = threading.Thread(target=lambda: (p.stdin.write(TEXT), p.stdin.close()))
        feeder.start()
        far.settimeout(LIMIT)
        with far.makefile("rb") as reader:
            got = reader.read()
        feeder.join()
        c = p.wait(LIMIT)
        check(f"AF_VSOCK as output {w}", c == 0 and got == TEXT, c, len(got), p.stderr.read())


@case
def netlink():
    for w in FILTERS:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
            link.setblocking(False)
            r = run(w, stdin=link.fileno(), t=1)
            check(f"netlink as input {w}", r[0] in ("HANG", 1) and b"panicked" not in r[2], *r)
            r = run(w, feed=b"x\n", stdout=link.fileno())
            check(f"netlink as output {w}", failed_with_message(r) or r[0] == 0, *r)


@case
def fuse():
    tool = next((name for name in ("bindfs", "sshfs", "fuse2fs", "squashfuse") if shutil.which(name)), None)
    if tool != "bindfs" or not os.path.exists("/dev/fuse"):
        return skipped("FUSE", "no bindfs or no /dev/fuse")
    inner, outer = os.path.join(DIRECTORY, "inner"), os.path.join(DIRECTORY, "outer")
    os.mkdir(inner)
    os.mkdir(outer)
    if subprocess.run(["bindfs", inner, outer], capture_output=True).returncode:
        return skipped("FUSE", "bindfs can't mount here")
    try:
        with open(os.path.join(outer, "text"), "wb") as file:
            file.write(TEXT)
        for w in VERBS:
            r = run(w, stdin=open(os.path.join(outer, "text"), "rb"))
            check(f"from FUSE {w}", succeeded(r, TEXT), r[0], r[2])
            with open(os.path.join(outer, "out"), "wb") as file:
                r = run(w, feed=TEXT, stdout=file)
            check(f"to FUSE {w}", r[0] == 0 and open(os.path.join(inner, "out"), "rb").read() == TEXT, r[0], r[2])
    finally:
        subprocess.run(["umount", outer], capture_output=True)


def as_user(number):
    os.setgroups([])
    os.setgid(number)
    os.setuid(number)


@contextlib.contextmanager
def public_copies(*programs):
    """Copies of programs that every user may run, in a directory of their own."""
    public = tempfile.mkdtemp(prefix="pipemark-hostile-public-", dir="/var/tmp")
    try:
        copies = [shutil.copy(program, public) for program in programs]
        for path in (public, *copies):
            os.chmod(path, 0o755)
        yield copies
    finally:
        shutil.rmtree(public)


# Short calls of verbs that start processes of their own.
AB = ["ab", "--runs", "2", "--", "seq 9 | cat", "--", "seq 9"]
MEASURE = ["--runs", "1", "--quiet", "--no-save"]
CHAIN = ["chain", "--length", "2", "--total", "256k", *MEASURE]
BW = ["bw", "--time", "2ms", "--place", "free", *MEASURE]


@case
def few_processes():
    if os.getuid() != 0:
        return skipped("RLIMIT_NPROC as another user", "needs root")
    with public_copies(PIPEMARK) as program:
        for w in (*VERBS, ["sink"]):
            for limit in (1, 2, 20):

                def pre():
                    resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
                    # Not nobody, because processes of parallel tests may be nobody's.
                    as_user(65533)

                r = run(w, feed=TEXT, pre=pre, program=program, cwd="/")
                r = (*r[:2], b"".join(l for l in r[2].splitlines(True) if not l.startswith(b"{")))
                well = succeeded(r, TEXT) or failed_with_message(r) if w in VERBS else ended_well(r)
                check(f"NPROC {limit} {w}", well, r[0], r[2])
        # `limit` is 20. A smaller one would refuse the next call while guards of the last one remain.
        for w in (AB, CHAIN, BW):
            r = run(w, pre=pre, program=program, cwd="/")
            check(f"NPROC {limit} {w}", ended_well(r), *r)


@case
def setuid_stage():
    if os.getuid() != 0 or not shutil.which("setpriv"):
        return skipped("setuid stages", "needs root and setpriv")
    # A relay next to a process of another user must work without that process's /proc files.
    for w in VERBS:
        near = subprocess.Popen(["setpriv", "--reuid=65534", "--clear-groups", "cat"], stdin=PIPE, stdout=PIPE)
        feeder = threading.Thread(target=lambda: (near.stdin.write(TEXT), near.stdin.close()))
        feeder.start()
        r = run(w, stdin=near.stdout)
        feeder.join()
        near.wait()
        check(f"behind another user's cat {w}", r[0] == 0 and r[1] == TEXT, r[0], r[2][:200])
    # A user can't read the /proc files of a stage that runs as root, and may not end it.
    with public_copies(PIPEMARK, shutil.which("cat")) as (program, cat):
        os.chmod(cat, 0o4755)
        pipeline = f"(sleep 0.3; seq 9) | {cat} | tail -1"
        r = run(["why", pipeline], pre=lambda: as_user(65534), program=[program], cwd="/")
        check("why beside root's cat", r[:2] == (0, b"9\n") and b"panicked" not in r[2], *r)
        r = run(
            ["ab", "--runs", "1", "--warmup", "0", "--", pipeline],
            pre=lambda: as_user(65534),
            program=[program],
            cwd="/",
        )
        check("ab beside root's cat", r[0] == 0 and b"wrote 2 bytes" in r[1], *r)


@case
def time_namespace():
    probe = ["unshare", "--time", "--monotonic", "100000", "--boottime", "100000", "--fork", "true"]
    if not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        return skipped("time namespace", "unshare --time is refused here")
    for w in VERBS:
        r = subprocess.run(probe[:-1] + [PIPEMARK] + w, input=TEXT, capture_output=True, timeout=LIMIT)
        check(
            f"clocks that are 28 hours ahead {w}", r.returncode == 0 and r.stdout == TEXT, r.returncode, r.stderr[:200]
        )
    for w in (AB, CHAIN, BW):
        r = run(w, program=[*probe[:-1], PIPEMARK])
        check(f"clocks that are 28 hours ahead {w}", r[0] == 0 and b"panicked" not in r[2], *r)


@case
def little_memory():
    for w in VERBS + (["relay", "--buffer", "1g"],):
        for mib in (16, 64):
            # The program's own size is added to the limit, because an unoptimized build alone may exceed 16 MiB.
            size = (mib << 20) + os.path.getsize(PIPEMARK)
            r = run(w, feed=TEXT, pre=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
            loaded = r[0] != 127 and b"shared libraries" not in r[2]
            check(
                f"RLIMIT_AS {mib} MiB {w}",
                not loaded or (r[0] == 0 and r[1] == TEXT) or failed_with_message(r),
                r[0],
                r[2][:200],
            )
    for w in (
        ["list"],
        ["list", "machine"],
        ["relay", "--help"],
        ["history"],
        ["--completions", "bash"],
        ["list", "quick"],
    ):
        r = run(w, pre=lambda: resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20)))
        check(f"RLIMIT_AS 64 MiB {w}", r[0] in (0, 1) and b"panicked" not in r[2], r[0], r[2][:200])


@contextlib.contextmanager
def memory_group(size):
    """A control group with this much memory: the file that takes its processes, or None if no group can be made."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = os.path.join(root, f"pipemark-hostile-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            # Where the group has no such file, it can't be created.
            with open(os.path.join(group, limit), "r+") as file:
                file.write(str(size))
        except OSError:
            os.rmdir(group)
            continue
        try:
            yield os.path.join(group, "cgroup.procs")
        finally:
            # The guards of the last call end a moment after it.
            end = time.monotonic() + LIMIT
            while os.path.exists(group) and time.monotonic() < end:
                with contextlib.suppress(OSError):
                    os.rmdir(group)
                time.sleep(0.01)
        return
    yield None


@case
def each_verb_with_64_mib():
    suite = make_file(
        "suite.toml",
        b'name = "tiny"\ntitle = "Tiny"\n[[experiment]]\nname = "e"\ntitle = "E"\n'
        b'params = { total = "64k", place = "free" }\n',
    )
    document = os.path.join(DIRECTORY, "document.json")
    r = run([*BW, "--block", "4k,64k", "--json", document])
    check("a document", r[0] == 0, *r)
    # Long enough to be sampled.
    pipeline = "(sleep 0.3; seq 9) | cat"
    verbs = (
        ["why", pipeline],
        ["watch", pipeline],
        ["tune", "--live", pipeline],
        ["tune", "--budget", "2s", pipeline],
        AB,
        ["run", suite, *MEASURE],
        BW,
        ["latency", "--time", "2ms", "--place", "free", *MEASURE],
        CHAIN,
        ["compare", document, document],
        ["report", document, "-o", "-"],
        ["report", document, "--terminal"],
        ["gen", "log", "--total", "100k"],
        ["sink"],
    )
    size = 64 << 20
    # An unoptimized program alone may be that large.
    space = size + os.path.getsize(PIPEMARK)
    with memory_group(size) as group:
        limits = {"RLIMIT_AS": lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space))}
        if group:

            def enter():
                with open(group, "w") as file:
                    file.write(str(os.getpid()))

            limits["control group"] = enter
            for w in VERBS:
                r = run(w, feed=TEXT, pre=enter)
                check(f"64 MiB by control group {w}", r[0] == 0 and r[1] == TEXT, r[0], r[2][:200])
        else:
            skipped("64 MiB by a control group", "none can be made here")
        for name, pre in limits.items():
            for w in verbs:
                r = run(w, feed=TEXT, pre=pre)
                loaded = r[0] != 127 and b"shared libraries" not in r[2]
                check(f"64 MiB by {name} {w}", not loaded or ended_well(r), *r)


@case
def watch_resized():
    sleeper = subprocess.Popen("yes | cat >/dev/null", shell=True, start_new_session=True)
    try:
        pid, master = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(PIPEMARK, [PIPEMARK, "watch", str(sleeper.pid)])
        chance, seen, end = random.Random(2), b"", time.monotonic() + 60
        # The terminal has no size yet.
        while b"quit" not in seen and time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 65536)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            size = struct.pack("HHHH", chance.choice([1, 2, 5, 24, 200]), chance.choice([1, 7, 80, 500]), 0, 0)
            fcntl.ioctl(master, 0x5414, size)
            while select.select([master], [], [], 0.01)[0]:
                try:
                    seen += os.read(master, 65536)
                except OSError:
                    break
        os.write(master, b"q")
        code, end = None, time.monotonic() + LIMIT
        while code is None and time.monotonic() < end:
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                code = os.waitstatus_to_exitcode(status)
            elif select.select([master], [], [], 0.05)[0]:
                try:
                    seen += os.read(master, 65536)
                except OSError:
                    # The program has closed the terminal and is about to end.
                    time.sleep(0.01)
        if code is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        drawn = b"quit" in seen and b"panicked" not in seen
        check("watch while its terminal is resized", code is not None and drawn, code, seen[-300:])
        os.close(master)
    finally:
        os.killpg(sleeper.pid, signal.SIGKILL)
        sleeper.wait()


@case
def uninterruptible():
    # vfork(2) keeps the parent in state D until the child ends. Here the parent is the reader.
    if not shutil.which("cc"):
        return skipped("D state", "no cc")
    source, program = make_file(
        "d.c",
        b"#include <unistd.h>\nint main(void){ if(vfork()==0){ sleep(2); _exit(0);} char b[65536]; ssize_t n; while((n=read(0,b,sizeof b))>0) write(1,b,n); return 0; }\n",
    ), os.path.join(DIRECTORY, "d")
    if subprocess.run(["cc", "-w", "-o", program, source], capture_output=True).returncode:
        return skipped("D state", "cc can't build here")
    for w in VERBS:
        first = start(w, PIPE)
        second = subprocess.Popen([program], stdin=first.stdout, stdout=PIPE)
        first.stdout.close()
        feeder = threading.Thread(target=lambda: (first.stdin.write(TEXT), first.stdin.close()))
        feeder.start()
        o = second.stdout.read()
        feeder.join()
        check(f"a reader in D state {w}", o == TEXT and first.wait(LIMIT) == 0, len(o))
        second.wait()


chosen = [c for c in cases if not only or any(word in c.__name__ for word in only)]
if unknown := [word for word in only if not any(word in c.__name__ for c in cases)]:
    shutil.rmtree(DIRECTORY)
    sys.exit(f"no such case: {' '.join(unknown)}")
# All cases are repeated until the number of tries is reached.
MIN_TRIES = int(os.environ.get("PIPEMARK_TRIES", "1"))
try:
    while True:
        for c in chosen:
            try:
                c()
            except Exception:
                traceback.print_exc()
                FAILED.append(c.__name__)
        if len(TRIED) >= MIN_TRIES or not TRIED:
            break
finally:
    shutil.rmtree(DIRECTORY)
print(len(TRIED), "tries,", len(FAILED), "of them bad")
# A run that tried nothing has shown nothing.
sys.exit(1 if FAILED or not TRIED else 0)
