#!/usr/bin/env python3
"""Fails if a page of build/book links to a page, an anchor or a file that doesn't exist."""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "build/book"
TARGET = re.compile(r'(?:href|src)="([^"]+)"')
ANCHOR = re.compile(r'\bid="([^"]+)"')
# 404.html is shown for any address, so its links are relative to the book's root, where it stands.
BASE = re.compile(r"<base [^>]*>")


def source_of(file):
    """The source file that a link out of the book refers to, as if the book were in docs/."""
    outside = ROOT / Path(os.path.relpath(file, BOOK.parent))
    markdown = outside.with_suffix(".md")
    return markdown if outside.suffix == ".html" and markdown.is_file() else outside


def main():
    pages = {
        path: BASE.sub("", path.read_text())
        for path in BOOK.rglob("*.html")
        if path.name not in ("print.html", "toc.html")
    }
    anchors = {path: set(ANCHOR.findall(text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for link in set(TARGET.findall(text)):
            target, anchor = map(unquote, urldefrag(link))
            if re.match(r"[a-z]+:|//", link):
                continue
            file = (path.parent / target).resolve() if target else path
            if BOOK not in file.parents:
                file = source_of(file)
            if not file.is_file():
                broken.append(f"{path.relative_to(BOOK)}: {link}")
            elif anchor and file in anchors and anchor not in anchors[file]:
                broken.append(f"{path.relative_to(BOOK)}: {link}: no such anchor")
    sys.exit("\n".join(sorted(broken)) or 0)


if __name__ == "__main__":
    main()
