#!/usr/bin/env python3
"""Writes the tables of a measurement into the docs that show them.

    pipemark run lines large-pipe --markdown run.md --json run.json
    bench/figures.py run.md run.json

A page has each table between <!-- figures: SUITE / TITLE --> and <!-- end of figures -->. SUITE is for the reader, TITLE is
the table's heading in run.md ("Claims" for answers to claims). Tables that weren't measured stay as they are."""

import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- figures: [^\n]*? / ([^\n]*?) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def sections(markdown):
    """The text below each heading, up to the next heading of its level or above."""
    found = {}
    lines = markdown.splitlines()
    for at, line in enumerate(lines):
        if heading := re.match(r"(#+) (.*)", line):
            level = len(heading[1])
            rest = lines[at + 1 :]
            end = next((n for n, l in enumerate(rest) if re.match(rf"#{{1,{level}}} ", l)), len(rest))
            title = heading[2].replace("\\", "")
            found[title] = "\n".join(rest[:end]).strip() + "\n"
    return found


def main():
    markdown, document = Path(sys.argv[1]).read_text(), json.loads(Path(sys.argv[2]).read_text())
    host = document["host"]
    where = f"{document['started'][:10]}, {host['cpu']}, {host['cpus']} CPUs, Linux {host['kernel'].split()[0].removeprefix('Linux')}"
    found = sections(markdown)
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text()

        def renewed(block):
            if block[2] not in found:
                print(f"{page.name}: '{block[2]}' was not measured", file=sys.stderr)
                return block[0]
            return f"{block[1]}{found[block[2]]}\n({where}.)\n{block[3]}"

        after = BLOCK.sub(renewed, text)
        if after != text:
            page.write_text(after)
            print(page)


if __name__ == "__main__":
    main()
