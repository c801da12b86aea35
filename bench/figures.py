#!/usr/bin/env python3
"""Writes the tables of measurements into the docs that show them.

    pipemark run lines --markdown lines.md --json lines.json
    pipemark run large-pipe --markdown large-pipe.md --json large-pipe.json
    bench/figures.py lines.md lines.json large-pipe.md large-pipe.json

On a page, each table stands between <!-- figures: SUITE / TITLE --> and <!-- end of figures -->. SUITE only informs the reader.
TITLE is the table's heading in the Markdown, or "Claims" for the answers to claims from all given measurements. Tables and
claims that weren't measured stay unchanged."""

import json
import re
import sys
import textwrap
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


def wrapped(text):
    """Wraps the text at 100 characters, except rows of tables."""
    lines = []
    for line in text.splitlines():
        indent = "  " if line.startswith("- ") else ""
        wrap = textwrap.TextWrapper(100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += [line] if line.startswith("|") or len(line) <= 100 else wrap.wrap(line)
    return "\n".join(lines) + "\n"


def provenance(document):
    """A line that says how, when and where a document was measured."""
    host, words = document["host"], iter(document["command"][1:])
    kept = []
    for word in words:
        if word in ("--markdown", "--json"):
            next(words)
        elif word not in ("--no-save", "--quiet"):
            kept.append(word)
    kernel = host["kernel"].split()[0].removeprefix("Linux")
    return (
        f"`pipemark {' '.join(kept)}`, {document['started'][:10]}, {host['cpu']}, {host['cpus']} CPUs, Linux {kernel}"
    )


def rows_by_claim(text):
    """The rows of a table of claims, as a dictionary by claim."""
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    return {row.split("|")[1].strip(): row for row in rows}


def join_tables(tables, kept):
    """Joins tables of claims under one heading. A measured claim replaces one that was not measured. Rows of `kept`, the earlier
    table, stay if no new table has the claim. Also returns whether any rows stay."""
    new = {}
    for claim, row in (pair for table in tables for pair in rows_by_claim(table).items()):
        if claim not in new or row.split("|")[2].strip() != "not measured here":
            new[claim] = row
    before = rows_by_claim(kept)
    rows = [new.pop(claim, row) for claim, row in before.items()] + list(new.values())
    stay = any(row in rows for row in before.values())
    lines = tables[0].splitlines()
    heading = [line for line in lines if line.startswith("|")][:2]
    below = [line for line in lines if line and not line.startswith("|")]
    return "\n".join(heading + rows + [""] + below) + "\n", stay


def main():
    found, claims, measured = {}, [], []
    pairs = list(zip(sys.argv[1::2], sys.argv[2::2]))
    for markdown, document in pairs:
        document = json.loads(Path(document).read_text())
        measured.append(provenance(document))
        for title, text in sections(Path(markdown).read_text()).items():
            if title == "Claims":
                claims.append(text)
            else:
                found[title] = wrapped(f"{text}\n({measured[-1]}.)")
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text()

        def renew(block):
            if block[2] == "Claims" and claims:
                table, stay = join_tables(claims, block[0])
                before = re.search(r"\n\(([^|]*?)\.\)\n<!-- end", block[0])
                others = f"; the others: {' '.join(before[1].split())}" if stay and before else ""
                source = wrapped(f"({'; '.join(measured)}{others}.)")
                return f"{block[1]}{table}\n{source}{block[3]}"
            if block[2] not in found:
                print(f"{page.name}: '{block[2]}' was not measured", file=sys.stderr)
                return block[0]
            return f"{block[1]}{found[block[2]]}{block[3]}"

        after = BLOCK.sub(renew, text)
        if after != text:
            page.write_text(after)
            print(page)


if __name__ == "__main__":
    main()
