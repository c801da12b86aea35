#!/usr/bin/env python3
"""Checks that sentences are implied by the rows that are shown beside them.

Reads lines of JSON from standard input, each with a document, and the text of its screen ("brief") and its page
("report"). Prints each sentence that isn't true, and at the end how many of each kind there were. Ends with 1 if one
wasn't true, or if a kind named on the command line didn't occur. With IMPLIED_KEEP, appends the cases to that file."""

import json
import os
import sys
from collections import Counter

import documents

counts, wrong = Counter(), 0
for text in sys.stdin:
    if "IMPLIED_KEEP" in os.environ:
        with open(os.environ["IMPLIED_KEEP"], "a", encoding="utf-8") as file:
            file.write(text)
    case = json.loads(text)
    for sentence in documents.check(case["document"], case.get("brief", ""), case.get("report", "")):
        counts[sentence.kind] += 1
        if sentence.faults:
            wrong += 1
            if wrong <= 20:
                print(f"{sentence.kind}: {sentence.text}")
                for fault in sentence.faults:
                    print(f"    {fault}")
print(", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())))
missing = [kind for kind in sys.argv[1:] if kind not in counts]
if missing:
    print(f"no sentence of these kinds: {', '.join(missing)}")
print(f"{sum(counts.values())} sentences, {wrong} not implied")
sys.exit(bool(wrong or missing))
