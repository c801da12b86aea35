#!/usr/bin/env python3
"""Runs the suite ipc-libraries, and writes docs/atlas.md from it.

    bench/atlas.py                 measure, then write the page
    bench/atlas.py DOCUMENT.json   write the page from a document that pipemark wrote"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/atlas.md"
PIPEMARK = Path(os.environ.get("PIPEMARK", ROOT / "target/release/pipemark"))
PLAIN = ["pipe", "unix-stream", "shm"]
SIZES = {64: "64 B", 4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB"}


def measure():
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "out.json")
        words = [PIPEMARK, "run", "ipc-libraries", "--no-save", "--quiet", "--json", out]
        subprocess.run(words, check=False, cwd=ROOT)
        return json.loads(out.read_text())


def three_digits(number):
    return f"{number:.{max(0, 2 - len(str(int(number))) + 1)}f}"


def rate(value):
    for unit, size in (("GiB/s", 1 << 30), ("MiB/s", 1 << 20)):
        if value >= size:
            return f"{three_digits(value / size)} {unit}"
    return f"{three_digits(value / 1024)} KiB/s"


def time(ns):
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{three_digits(ns / size)} {unit}"
    return f"{three_digits(ns)} ns"


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


class Results:
    def __init__(self, document):
        self.trials = [trial for trial in document["trials"] if not trial.get("reference")]

    def of(self, experiment, **params):
        for trial in self.trials:
            own = {"wait": "block", "writers": 1} | trial["params"]
            if trial["experiment"] == experiment and all(own.get(key) == value for key, value in params.items()):
                return trial if trial["status"] == "ok" else None
        return None

    def links(self, experiment):
        return list(dict.fromkeys(t["params"]["link"] for t in self.trials if t["experiment"] == experiment))

    def throughput(self, link, block):
        trial = self.of("library-throughput", link=link, block=block)
        return trial and trial["estimate"]["throughput"]["median"]

    def trip(self, link, block, figure="p50"):
        trial = self.of("library-latency", link=link, block=block)
        estimate = trial and trial["estimate"]["latency"].get(figure)
        return estimate and estimate["median"]

    def cpu_per_message(self, link, block):
        """CPU time of both ends and the broker per message of a stream, in nanoseconds."""
        trial = self.of("library-throughput", link=link, block=block)
        return trial and trial["estimate"]["cpu_seconds_per_gib"]["median"] * 1e9 * block / (1 << 30)

    def peak_memory(self, link):
        trial = self.of("library-throughput", link=link, block=65536)
        ends = [end for sample in (trial or {}).get("samples", []) for end in sample["sources"] + sample["sinks"]]
        peaks = [end["max_rss"] for end in ends if end.get("max_rss")]
        return f"{max(peaks) / (1 << 20):.0f} MiB" if peaks else "–"


def throughput_table(results):
    best = {size: max(results.throughput(link, size) or 0 for link in PLAIN) for size in SIZES}
    rows = []
    for link in results.links("library-throughput"):
        cells = []
        for size in SIZES:
            value = results.throughput(link, size)
            share = "" if link in PLAIN or not value else f" ({value / best[size] * 100:.2g} %)"
            cells.append(rate(value) + share if value else "–")
        rows.append([link, *cells, results.peak_memory(link)])
    return table(["link", *SIZES.values(), "peak memory"], rows)


def latency_table(results):
    rows = []
    for link in results.links("library-latency"):
        cells = []
        for size in (64, 65536):
            cells += [time(value) if (value := results.trip(link, size, figure)) else "–" for figure in ("p50", "p99")]
        cpu = results.cpu_per_message(link, 64)
        rows.append([link, *cells, time(cpu) if cpu else "–"])
    return table(["link", "64 B, median", "p99", "64 KiB, median", "p99", "CPU per message of 64 B"], rows)


def simple_table(results, experiment, head, cells):
    rows = []
    for trial in results.trials:
        if trial["experiment"] == experiment and trial["status"] == "ok":
            rows.append(cells(trial))
    return table(head, rows)


def trip_cells(trial):
    trips = trial["estimate"]["latency"]
    return [trial["params"]["link"], time(trips["p50"]["median"]), time(trips["p99"]["median"])]


def rate_cells(trial):
    params = trial["params"]
    size = params["block"]
    messages = trial["estimate"]["throughput"]["median"] / size
    return [params["link"], SIZES[size], str(params.get("writers", 1)), rate(messages * size), time(1e9 / messages)]


def findings(results):
    best = max(PLAIN, key=lambda link: results.throughput(link, 65536) or 0)
    libraries = [link for link in results.links("library-throughput") if link not in PLAIN]
    here = [link for link in libraries if results.throughput(link, 64)]
    fast = max(here, key=lambda link: results.throughput(link, 64))
    slow = min(here, key=lambda link: results.throughput(link, 64))
    trips = sorted((value, link) for link in libraries if (value := results.trip(link, 64)))
    pipe = results.trip("pipe", 64)
    large = max(here, key=lambda link: results.throughput(link, 1 << 20) or 0)
    return f"""1. **Small messages: batching decides.** With 64 B messages, the fastest library is {fast} ({rate(results.throughput(fast, 64))}), and
   the slowest {slow} ({rate(results.throughput(slow, 64))}); a pipe moves {rate(results.throughput("pipe", 64))}. Put several small
   messages into one before you change the library.
2. **Round trips: threads and brokers cost more than copies.** A round trip of 64 B takes {time(pipe)} over a pipe,
   {time(trips[0][0])} with {trips[0][1]}, and {time(trips[-1][0])} with {trips[-1][1]}.
3. **Large messages: the plain way is hard to beat.** With 1 MiB, {large} reaches {rate(results.throughput(large, 1 << 20))}; the best
   plain way with 64 KiB, {best}, reaches {rate(results.throughput(best, 65536))}."""


def page(document):
    host, results = document["host"], Results(document)
    skipped = [t for t in results.trials if t["status"] != "ok" and t["params"]["block"] in (64, 4096)]
    reasons = dict.fromkeys(f"- {t['params']['link']}: {t['reason']}" for t in skipped)
    text = f"""# Libraries beside plain ways

`make results` writes this page from `pipemark run ipc-libraries`. These figures are of
{document["started"][:10]}, {host["cpu"]}, {host["cpus"]} CPUs, Linux {host["kernel"].split()[0]}, sender and receiver on different
CPUs. Every message was newly written, and every byte checked: none was lost or reordered. Both ends
sleep while they wait, except in the table of polling. Medians of at least five runs;
`pipemark run ipc-libraries` also prints the intervals. [outside-links.md](outside-links.md) describes how
libraries are measured, and each directory of `links` cites the documentation that it follows.

## Findings

{findings(results)}

## Throughput by message size

The percentage is relative to the fastest of pipe, unix-stream and shm at the same size. Peak memory is
that of the larger end with 64 KiB messages.

{throughput_table(results)}

## Round trips

Back to back. CPU time per message is of a stream, at both ends and the broker together.

{latency_table(results)}

## Polling

Both ends keep a CPU busy, so these figures must not be compared with those above.

{simple_table(results, "polling", ["link", "64 B, median", "p99"], trip_cells)}

## Several senders

{simple_table(results, "fan-in", ["link", "size", "senders", "throughput", "time per message"], rate_cells)}

## What the reference code costs

The loop of each language without a transfer: no link of that language can be faster.

{simple_table(results, "reference-code", ["link", "size", "senders", "throughput", "time per message"], rate_cells)}
"""
    if reasons:
        text += "\n## Not measured\n\n" + "\n".join(reasons) + "\n"
    return text


def main():
    document = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else measure()
    PAGE.write_text(page(document))


if __name__ == "__main__":
    main()
