#!/usr/bin/env python3
"""Prints the lines of code of each crate and its modules; fails if a crate has more than 7,000.

Blank lines, comments and test code are not counted. Test code is files under tests/, examples/ and benches/, modules and items
behind #[cfg(test)], and attributes for tests. Build scripts and the bodies of macros are counted.
"""

import collections
import pathlib
import re
import signal
import subprocess
import sys

MOST = 7000
ROOT = pathlib.Path(__file__).resolve().parent.parent
TEST = re.compile(r"\s*#\[cfg\(test\)\]")
TEST_ATTRIBUTE = re.compile(r"\s*#\[cfg_attr\(test,")
MODULE = re.compile(r"\s*(?:pub(?:\([a-z]+\))? )?mod (\w+);")


def code(lines):
    """The lines of code, and the names of modules in other files that are for tests only."""
    kept, modules = [], []
    lines = iter(lines)
    for line in lines:
        if not TEST.match(line):
            if line.strip() and not line.lstrip().startswith("//") and not TEST_ATTRIBUTE.match(line):
                kept.append(line)
            continue
        # As rustfmt formats it, an item ends with a closing bracket at its own indentation or, without a body, with a
        # semicolon. Inside a body, a string of several lines may have a semicolon there too.
        indentation = line[: len(line) - len(line.lstrip())]
        has_body = False
        for item in lines:
            if found := MODULE.match(item):
                modules.append(found[1])
            has_body |= item.endswith("{")
            if re.match(rf"{indentation}[}})\]]", item) and not item.endswith("{"):
                break
            if not has_body and re.match(rf"{indentation}\S", item) and item.endswith((";", "{}")):
                break
    return kept, modules


def main():
    files = subprocess.run(["git", "ls-files", "crates/*.rs"], cwd=ROOT, check=True, capture_output=True, text=True)
    paths = [pathlib.Path(name) for name in files.stdout.split()]
    paths = [path for path in paths if not {"tests", "examples", "benches"} & set(path.parts[2:3])]
    found, tests = {}, set()
    for path in paths:
        found[path], modules = code((ROOT / path).read_text().splitlines())
        directory = path.parent if path.stem in ("mod", "lib", "main") else path.parent / path.stem
        tests.update(directory / name for name in modules)
    count = collections.Counter()
    for path, lines in found.items():
        if any(parent in tests for parent in (path.with_suffix(""), *path.parents)):
            continue
        inner = path.parts[3:] if path.parts[2] == "src" else path.parts[2:]
        module = pathlib.Path(inner[0]).stem if inner else ""
        count[f"{path.parts[1]}/{module}"] += len(lines)
    crates = collections.Counter()
    for module, lines in count.items():
        crates[module.split("/")[0]] += lines
    for crate, lines in crates.most_common():
        print(f"{lines:7} {crate}")
        own = [(name.split("/", 1)[1], size) for name, size in count.items() if name.startswith(crate + "/")]
        for module, size in sorted(own, key=lambda one: (-one[1], one[0])):
            print(f"{size:15} {module}")
    print(f"{count.total():7} in all")
    large = [crate for crate, lines in crates.items() if lines > MOST]
    if large:
        sys.exit(f"more than {MOST} lines of code: {', '.join(large)}")


signal.signal(signal.SIGPIPE, signal.SIG_DFL)
main()
