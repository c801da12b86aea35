#!/usr/bin/env python3
"""Fails if a text uses a phrase that tests/prose.toml replaces, or if a line of documentation is too long."""

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

RULES = tomllib.loads((Path(__file__).parent / "prose.toml").read_text())
BREAK = r"(?:[\s\\]|//[/!]?|^#)+"  # Phrases are found across line ends too, also in comments and strings.
PHRASES = [
    (re.compile(rf"\b{BREAK.join(map(re.escape, p.split()))}\b", re.I), p, new) for p, new in RULES["phrases"].items()
]


def matches(path, patterns):
    return any(fnmatch(path, pattern) for pattern in patterns)


def problems(path, text):
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)
    for regex, phrase, better in PHRASES if not matches(path, RULES["pending"]) else []:
        for match in regex.finditer(prose) if not matches(path, RULES["allowed"].get(phrase, [])) else []:
            yield prose.count("\n", 0, match.start()) + 1, f"'{phrase}': write {better}"
    limit = next((width for pattern, width in RULES["widths"].items() if fnmatch(path, pattern)), None)
    for number, line in enumerate(prose.splitlines(), 1) if limit and not matches(path, RULES["long"]) else []:
        if len(line) > limit and not line.startswith(("|", "[", "<!--")):
            yield number, f"{len(line)} characters; the limit is {limit}"


files = sys.argv[1:] or subprocess.check_output(["git", "ls-files", *RULES["files"]], text=True).split()
found = [f"{f}:{n}: {what}" for f in files if Path(f).is_file() for n, what in problems(f, Path(f).read_text())]
sys.exit("\n".join(found) or 0)
