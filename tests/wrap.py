#!/usr/bin/env python3
"""Wraps paragraphs and list items of Markdown files at 100 columns if they have a line longer than 120."""

import re
import sys
import textwrap
from pathlib import Path

ITEM = re.compile(r"( *)([-*]|\d+\.) ")
FIXED = ("|", "#", "```", "<", "!", "[", "    ")


def wrapped(lines):
    item = ITEM.match(lines[0])
    first = item[0] if item else ""
    text = " ".join([lines[0][len(first) :], *map(str.strip, lines[1:])])
    options = {"break_long_words": False, "break_on_hyphens": False}
    out = textwrap.wrap(text, 100, initial_indent=first, subsequent_indent=" " * len(first), **options)
    # A wrapped line must not begin with characters that start a list item, a heading or a quotation.
    begins = any(re.match(r"\s*([-*+>#]|\d+\.)\s", line) for line in out[1:])
    return lines if begins else out


def wrap(text):
    done, block, code = [], [], False
    for line in [*text.splitlines(), ""]:
        fixed = code or not line.strip() or line.startswith(FIXED)
        if block and (fixed or ITEM.match(line)):
            done += wrapped(block) if max(map(len, block)) > 120 else block
            block = []
        code ^= line.startswith("```")
        if fixed or line.startswith("```"):
            done.append(line)
        else:
            block.append(line)
    return "\n".join(done[:-1]) + "\n"


for name in sys.argv[1:]:
    Path(name).write_text(wrap(Path(name).read_text()))
