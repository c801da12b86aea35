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
BREAKS = re.compile(BREAK)


def matches(path, patterns):
    return any(fnmatch(path, pattern) for pattern in patterns)


def occurrences(phrase, prose):
    return re.finditer(rf"\b{BREAK.join(map(re.escape, phrase.split()))}\b", prose, re.I)


def problems(path, text):
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S)
    # Searching for a plain string takes a tenth of the time, and most phrases don't occur.
    joined = BREAKS.sub(" ", prose).lower()
    for phrase, better in RULES["phrases"].items() if not matches(path, RULES["pending"]) else []:
        if phrase.lower() in joined and not matches(path, RULES["allowed"].get(phrase, [])):
            for match in occurrences(phrase, prose):
                yield prose.count("\n", 0, match.start()) + 1, f"'{phrase}': write {better}"
    limit = next((width for pattern, width in RULES["widths"].items() if fnmatch(path, pattern)), None)
    for number, line in enumerate(prose.splitlines(), 1) if limit and not matches(path, RULES["long"]) else []:
        if len(line) > limit and not line.startswith(("|", "[", "<!--")):
            yield number, f"{len(line)} characters; the limit is {limit}"


files = sys.argv[1:] or subprocess.check_output(["git", "ls-files", *RULES["files"]], text=True).split()
found = [f"{f}:{n}: {what}" for f in files if Path(f).is_file() for n, what in problems(f, Path(f).read_text())]
sys.exit("\n".join(found) or 0)
