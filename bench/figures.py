#!/usr/bin/env python3
"""Writes the tables of measurements into the docs that show them.

    pipemark run lines --markdown lines.md --json lines.json
    pipemark run large-pipe --markdown large-pipe.md --json large-pipe.json
    bench/figures.py lines.md lines.json large-pipe.md large-pipe.json

On a page, each table stands between <!-- figures: SUITE / TITLE --> and <!-- end of figures -->. TITLE is the table's heading in
the Markdown, or "Claims" for the answers to claims from all given measurements. With the title "Findings", the block has those
findings of the suite that begin with one of the texts after a colon, as in <!-- figures: pipe-speed / Findings: One more -->.

Between <!-- answers: CLAIM, CLAIM --> and <!-- end -->, on one line, stand the answers to these claims with our figures, from the
page's table of claims. What wasn't measured stays unchanged."""

import json
import re
import sys
import textwrap
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- figures: ([^\n]*?) / ([^\n]*?) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
ANSWERS = re.compile(r"(<!-- answers: ([^\n]*?) -->)[^\n]*?(<!-- end -->)")


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


def findings(block, found):
    """The findings of a suite that begin with one of the block's texts; None if the suite wasn't measured."""
    suite, title = block[2], block[3]
    text = found.get(f"{suite} / Findings")
    if text is None:
        return None
    begins = tuple(f"- {begin.strip()}" for begin in title.partition(":")[2].split(";"))
    *all_lines, source = text.splitlines()
    return wrapped("\n".join(line for line in all_lines if line.startswith(begins)) + f"\n\n{source}")


def answers(text):
    """The page with its short answers, computed from its table of claims."""
    rows = {claim: [cell.strip() for cell in row.split(" | ")] for claim, row in rows_by_claim(text).items()}

    def short(match):
        parts = []
        for claim in match[2].split(", "):
            if claim not in rows:
                sys.exit(f"the page has no claim {claim}")
            answer, here = rows[claim][1], rows[claim][-1].rstrip(" |")
            figure = here if answer.startswith("not") else here.split(";")[0]
            parts.append(f"*{claim}* {'is ' if answer.startswith(('inconclusive', 'not')) else ''}{answer}: {figure}")
        return f"{match[1]}{'<br>'.join(parts)}{match[3]}"

    return ANSWERS.sub(short, text)


def join_tables(tables, kept):
    """Joins tables of claims under one heading. A measured claim replaces one that was not measured. Rows of `kept`, the earlier
    table, stay if no new table has the claim. Also returns whether any rows stay."""
    new = {}
    for claim, row in (pair for table in tables for pair in rows_by_claim(table).items()):
        if claim not in new or row.split("|")[2].strip() != "not measured":
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
        all_sections = sections(Path(markdown).read_text())
        suite = next(iter(all_sections)).partition(":")[0]
        for title, text in all_sections.items():
            if title == "Claims":
                claims.append(text)
            elif title == "Findings":
                found[f"{suite} / Findings"] = f"{text}({measured[-1]}.)"
            else:
                found[title] = wrapped(f"{text}\n({measured[-1]}.)")
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text()

        def renew(block):
            title = block[3]
            if title == "Claims" and claims:
                table, stay = join_tables(claims, block[0])
                before = re.search(r"\n\(([^|]*?)\.\)\n<!-- end", block[0])
                # The sources of rows that stay, except those that are also sources of new rows.
                earlier = " ".join(before[1].split()).replace("the others: ", "").split("; ") if before else []
                others = [source for source in earlier if source not in measured]
                others = f"; the others: {'; '.join(others)}" if stay and others else ""
                source = wrapped(f"({'; '.join(measured)}{others}.)")
                return f"{block[1]}{table}\n{source}{block[4]}"
            new = findings(block, found) if title.startswith("Findings") else found.get(title)
            if new is None:
                print(f"{page.name}: '{title}' was not measured", file=sys.stderr)
                return block[0]
            return f"{block[1]}{new}{block[4]}"

        after = answers(BLOCK.sub(renew, text))
        if after != text:
            page.write_text(after)
            print(page)


if __name__ == "__main__":
    main()
