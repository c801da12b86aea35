#!/usr/bin/env python3
"""Prints the options in the manual of another program, one option a line with its names and values.

The tests of `dialect` read these lists: tests/peer_options.py PROGRAM VERSION [PAGE], such as `pv 1.11.0 docs/pv.1`.
Without PAGE, the manual that is installed is read.
"""

import os
import re
import subprocess
import sys

# An option begins in the column of the section's text: names and values, with commas between the names.
OPTION = re.compile(r"^ {1,7}(-{1,2}\w.*?)(?: {2,}\S.*)?$")


def options(text):
    for line in text.splitlines():
        if found := OPTION.match(line):
            # An optional value is a form of its own.
            yield re.sub(r"\.\.\.|[<>]|\[=.*?\]", "", found[1]).strip()


def main():
    program, version, *page = sys.argv[1:]
    environment = {**os.environ, "MANWIDTH": "200", "LC_ALL": "C", "MAN_KEEP_FORMATTING": ""}
    shown = subprocess.run(
        ["man", "-P", "cat", *(["-l", *page] if page else [program])],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    text = re.sub(".\x08", "", shown.stdout)
    print(f"# The options in the manual of {program} {version}, printed by tests/peer_options.py.")
    print(*dict.fromkeys(options(text)), sep="\n")


main()
