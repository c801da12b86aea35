#!/usr/bin/env python3
"""Builds the entrants and checks that their answers are right.

    entrants/check.py [--only c,java] [--no-build]

Every program runs at sizes that are multiples of its block and at other sizes, with both patterns, several seeds, and
one byte inverted in transit. Its answer must equal the answer computed here. Then one end is killed in the middle of a
stream, and the other end must exit. An entrant whose tools are missing is skipped with the reason; with --only, that
is a failure.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from functools import cache
from pathlib import Path

ENTRANTS = Path(__file__).resolve().parent
BUILD = ENTRANTS.parent / "build" / "entrants"
FACTOR = 0x9E3779B97F4A7C15

# (bytes, block, pattern, seed, flip)
CASES = [
    (0, 1, "position", 0, None),
    (0, 65536, "document", 0, None),
    (1, 1, "position", 0, None),
    (1, 65536, "position", 7, None),
    (700, 1, "position", 3, None),
    (700, 1, "document", 0, None),
    (1000, 3, "position", 3, None),
    (1001, 5, "position", 3, 1000),
    (1000, 7, "position", 4294967295, None),
    (100, 8, "position", 3, None),
    (3333, 10, "position", 3, None),
    (3333, 13, "document", 3, None),
    (65536, 512, "position", 1, None),
    (300001, 512, "document", 1, None),
    (65535, 4096, "position", 1, None),
    (131072, 65536, "position", 1, None),
    (131073, 65536, "position", 2, None),
    (131079, 65536, "position", 2, None),
    (200003, 65536, "position", 2, None),
    (200003, 65536, "document", 2, None),
    (200003, 65537, "position", 2, None),
    (200003, 100001, "document", 2, None),
    (2097152, 1048576, "position", 1, None),
    (2097151, 1048576, "position", 1, None),
    # One inverted byte: in a stamp, in the middle, in the last block, at both ends, and past the end.
    (200003, 65536, "position", 2, 0),
    (200003, 65536, "position", 2, 65540),
    (200003, 65536, "position", 2, 100000),
    (200003, 65536, "document", 2, 100000),
    (200003, 65536, "position", 2, 200002),
    (200003, 65536, "document", 2, 200002),
    (200003, 65536, "position", 2, 200003),
    (2000, 2000, "position", 2, 1999),
]


@cache
def checksum(size, block, pattern, seed, flip):
    """The checksum as README.md defines it, byte by byte and word by word."""
    template, x = bytearray(), seed
    for i in range(block):
        x = (x * 1664525 + 1013904223) % 2**32
        template.append(x >> 24 if pattern == "position" else i % 256)
    value = 1 if pattern == "position" else 0
    for number, offset in enumerate(range(0, size, block)):
        data = bytearray(template)
        if pattern == "position":
            data[: min(8, block)] = number.to_bytes(8, "little")[:block]
        data = data[: size - offset]
        if flip is not None and 0 <= flip - offset < len(data):
            data[flip - offset] ^= 0xFF
        if pattern == "document":
            for byte in data:
                value ^= byte
            continue
        a = b = 0
        for i in range(0, len(data), 4):
            a = (a + int.from_bytes(data[i : i + 4], "little")) % 2**32
            b = (b + a) % 2**32
        value = (value * FACTOR + b * 2**32 + a) % 2**64
    return f"{value:016x}"


def version_of(tool):
    """The first of the tool's commands that runs, and its version. If none runs, None and the reason."""
    reasons = []
    for words in tool["try"]:
        try:
            done = subprocess.run(words + tool["version"], capture_output=True, text=True, timeout=60)
        except OSError as error:
            reasons.append(f"{words[0]}: {error.strerror}")
            continue
        found = re.search(r"\d+(\.\d+)+|\d+", done.stdout + done.stderr)
        if done.returncode != 0 or found is None:
            reasons.append(f"{' '.join(words)} gives no version")
            continue
        version = found.group()
        if reason := unfit(version, tool):
            reasons.append(reason)
        else:
            return words, version
    return None, f"{tool['name']} is missing ({'; '.join(reasons)}); {tool['install']}"


def unfit(version, limits):
    """Why a version isn't within limits; None if it is."""
    parts = [int(p) for p in version.split(".")]
    if parts < [int(p) for p in limits.get("at_least", "0").split(".")]:
        return f"version {version} is older than {limits['at_least']}"
    if "below" in limits and parts >= [int(p) for p in limits["below"].split(".")]:
        return f"version {version} must be below {limits['below']}"
    return None


def variant(entrant, program, versions):
    """The first variant of a program that is for these versions of the tools."""
    for one in [entrant[program], *entrant.get(f"{program}_else", [])]:
        if not any(unfit(versions[tool], limits) for tool, limits in one.get("with", {}).items()):
            return one
    return None


def expand(words, tools, out):
    """Substitutes tools and the output directory in a command; a tool may be more than one word."""
    command = []
    for word in words:
        if word in tools:
            command += tools[word]
        else:
            command.append(word.replace("{out}", str(out)))
    return command


def descendants(pid):
    """The processes below this one, parents before children."""
    below = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in path.read_text().split():
                below += [int(child), *descendants(child)]
        except OSError:
            continue
    return below


def ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def what_outlives(command, directory, victim):
    """Kills the parent or the child in the middle of a stream. Returns the other process's fault, or None if it exits."""
    command = command + ["--bytes", str(1 << 50), "--block", "65536"]
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    below = []
    try:
        if not within(20, lambda: descendants(process.pid)):
            return "it starts no child"
        time.sleep(0.5)
        below = descendants(process.pid)
        os.kill(process.pid if victim == "parent" else below[-1], signal.SIGKILL)
        if not within(20, lambda: process.poll() is not None):
            return "the parent waits for ever"
        if not within(20, lambda: all(ended(pid) for pid in below)):
            return "the child outlives its parent"
        if process.returncode == 0 or process.stdout.read():
            return "it claims to have ended well"
        return None
    finally:
        for pid in [process.pid, *below, *descendants(process.pid)]:
            if not ended(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def check(directory, build):
    """Returns the number of correct cases and a list of failures."""
    entrant = tomllib.loads((directory / "entrant.toml").read_text())
    if "prints" in entrant["idiomatic"]:
        return 0, [], "a benchmark of others, which keeps no contract"
    tools, versions = {}, {}
    for tool in entrant["tools"]:
        words, version = version_of(tool)
        if words is None:
            return 0, [], version
        tools["{" + tool["name"] + "}"], versions[tool["name"]] = words, version
    programs = {program: variant(entrant, program, versions) for program in ["idiomatic", "tuned"]}
    programs = {program: found for program, found in programs.items() if found}
    out = BUILD / directory.name
    if build:
        out.mkdir(parents=True, exist_ok=True)
        builds = [words for found in programs.values() for words in found.get("build", [])]
        for words in entrant["build"]["commands"] + builds:
            command = expand(words, tools, out)
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
            if done.returncode != 0:
                return 0, [f"build: {' '.join(command)}\n{done.stdout}{done.stderr}"], None
    right, wrong = 0, []
    for program, found in programs.items():
        for case in CASES:
            size, block, pattern, seed, flip = case
            command = expand(found["run"], tools, out)
            command += ["--bytes", str(size), "--block", str(block), "--pattern", pattern, "--seed", str(seed)]
            if flip is not None:
                command += ["--flip", str(flip)]
            try:
                done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
            except subprocess.TimeoutExpired:
                wrong.append(f"{program} {case}: no answer within 60 s")
                continue
            try:
                lines = done.stdout.splitlines()
                answer = json.loads(lines[0])
                want = {"bytes": size, "checksum": checksum(*case)}
                got = {key: answer[key] for key in want}
                assert len(lines) == 1, f"{len(lines)} lines"
                assert done.returncode == 0, f"status {done.returncode}"
                assert got == want, f"{got} instead of {want}"
                assert answer["ns"] > 0 and answer["language"] == entrant["name"] and answer["runtime"], answer
                assert answer["capacity"] is None or answer["capacity"] > 0, answer
                right += 1
            except Exception as error:
                wrong.append(f"{program} {case}: {error!r} {done.stderr.strip()[:200]}")
        for victim in ["parent", "child"]:
            command = expand(found["run"], tools, out)
            if reason := what_outlives(command, directory, victim):
                wrong.append(f"{program}, {victim} killed: {reason}")
            else:
                right += 1
    return right, wrong, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--no-build", action="store_true")
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    directories = [f.parent for f in sorted(ENTRANTS.glob("*/entrant.toml")) if not only or f.parent.name in only]
    failed = len(directories) < len(only)
    for directory in directories:
        right, wrong, skipped = check(directory, not arguments.no_build)
        if skipped:
            print(f"{directory.name}: skipped: {skipped}")
            failed |= bool(only)
            continue
        print(f"{directory.name}: {right} right, {len(wrong)} wrong")
        for reason in wrong[:5]:
            print(f"  {reason}")
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
