#!/usr/bin/env python3
"""Draws what a terminal shows: reads docs/why.txt, which a command printed, and writes docs/why.svg."""

import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
WIDTH, HEIGHT, MARGIN = 8.43, 19, 16
COLOURS = {"busy": "#e0af68", "plain": "#c0caf5", "dim": "#7a88b8", "prompt": "#9ece6a", "head": "#7aa2f7"}


def colour(number, line, lines):
    if line.startswith("$"):
        return COLOURS["prompt"]
    if line.startswith(("why ·", "stage ")):
        return COLOURS["head"]
    if line.startswith("  └") and "◀" not in line:
        return COLOURS["dim"]
    # What it comes to stands below the table, and below notes on it, which end with an empty line.
    above = max(i for i, text in enumerate(lines) if not text or text[0].isdigit() or text.startswith("  └"))
    return COLOURS["busy" if "◀" in line or number > above else "plain"]


def svg(lines):
    width = 2 * MARGIN + WIDTH * max(map(len, lines))
    height = 2 * MARGIN + HEIGHT * len(lines)
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + HEIGHT * (n + 0.75):.0f}" fill="{colour(n, line, lines)}"'
        f' textLength="{WIDTH * len(line):.0f}" xml:space="preserve">{escape(line)}</text>'
        for n, line in enumerate(lines)
        if line
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
            ' font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
            "<title>What pipemark why prints</title>",
            '<rect width="100%" height="100%" rx="8" fill="#1a1b26"/>',
            *rows,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    text = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "why.txt"
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "why.svg"
    target.write_text(svg(text.read_text().splitlines()))
