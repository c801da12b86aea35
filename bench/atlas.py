#!/usr/bin/env python3
"""Runs the suite ipc-libraries, and writes docs/atlas.md from it.

bench/atlas.py                 measure, then write the page
bench/atlas.py DOCUMENT.json   write the page from a document that pipemark wrote
bench/atlas.py --no-figures    write the page without a measurement"""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import tomllib
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


def share(ratio):
    """A percentage with two digits, and without decimals from ten on."""
    return f"{ratio * 100:.2g} %" if ratio < 0.1 else f"{ratio * 100:.0f} %"


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
            own = {"wait": "block", "writers": 1, "readers": 1} | trial["params"]
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

    def wrong(self, link):
        """How many of the link's trials had blocks that were lost, wrong or out of order."""
        trials = [t for t in self.trials if t["params"]["link"] == link and t["status"] != "skipped"]
        return f"{sum(t.get('verified') is False for t in trials)} of {len(trials)} trials"

    def peak_memory(self, link):
        trial = self.of("library-throughput", link=link, block=65536)
        samples = (trial or {}).get("samples", [])
        ends = [end for sample in samples for end in [*sample["sources"], *sample["sinks"], sample.get("broker", {})]]
        peaks = [end["max_rss"] for end in ends if end.get("max_rss")]
        return f"{max(peaks) / (1 << 20):.0f} MiB" if peaks else "–"


def cpu_table(results):
    rows = []
    for link in results.links("library-throughput"):
        cells = [time(value) if (value := results.cpu_per_message(link, size)) else "–" for size in SIZES]
        rows.append([link, *cells])
    return table(["link", *SIZES.values()], rows)


def throughput_table(results):
    best = {size: max(results.throughput(link, size) or 0 for link in PLAIN) for size in SIZES}
    rows = []
    for link in results.links("library-throughput"):
        cells = []
        for size in SIZES:
            value = results.throughput(link, size)
            beside = "" if link in PLAIN or not value else f" ({share(value / best[size])})"
            cells.append(rate(value) + beside if value else "–")
        rows.append([link, *cells, results.wrong(link), results.peak_memory(link)])
    return table(["link", *SIZES.values(), "lost, wrong or reordered", "peak memory"], rows)


def latency_table(results):
    rows = []
    best = {
        size: min((trip for link in PLAIN if (trip := results.trip(link, size))), default=0) for size in (64, 65536)
    }
    for link in results.links("library-latency"):
        cells = []
        for size in (64, 65536):
            trips = {figure: results.trip(link, size, figure) for figure in ("p50", "p99")}
            cells += [time(value) if value else "–" for value in trips.values()]
            if trips["p50"] and link not in PLAIN and best[size]:
                cells[-2] += f" ({trips['p50'] / best[size]:.2g}×)"
        rows.append([link, *cells])
    return table(["link", "64 B, median", "p99", "64 KiB, median", "p99"], rows)


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
    ends = f"{params.get('writers', 1)} → {params.get('readers', 1)}"
    return [params["link"], SIZES[size], ends, rate(messages * size), time(1e9 / messages)]


def findings(results):
    """What a reader can act on, computed from the figures."""
    libraries = [link for link in results.links("library-throughput") if link not in PLAIN]
    texts = []

    def ranked(figure, links):
        return sorted((value, link) for link in links if (value := figure(link)))

    socket = results.throughput("unix-stream", 65536)
    found = ranked(lambda link: results.throughput(link, 65536), libraries)
    faster = [link for value, link in reversed(found) if value > socket]
    few = f"only {' and '.join(faster)} move" if faster else "no library moves"
    texts.append(
        f"With messages of 64 KiB, {few} more bytes than a UNIX stream socket ({rate(socket)}): "
        f"{len(found) - len(faster)} of {len(found)} rows move less, the least {rate(found[0][0])} ({found[0][1]})."
    )
    (plain, way), *_ = ranked(lambda link: results.trip(link, 64), PLAIN)
    (best, fastest), (second, _), *_, (most, slowest) = ranked(lambda link: results.trip(link, 64), libraries)
    texts.append(
        f"A round trip of 64 B takes {time(plain)} with {way}, the fastest plain way, and {best / plain:.2g} times that with "
        f"{fastest}. With all other libraries it takes {second / plain:.2g} to {most / plain:.2g} times as long, the "
        f"longest with {slowest}."
    )
    (least, cheapest), *_, (most, dearest) = ranked(lambda link: results.cpu_per_message(link, 4096), libraries)
    texts.append(
        f"A message of 4 KiB costs {time(least)} of CPU time with {cheapest} and {time(most)} with {dearest}, "
        f"{most / least:.2g} times as much; with a pipe it costs {time(results.cpu_per_message('pipe', 4096))}."
    )
    return "\n".join(
        textwrap.fill(f"{nth}. {text}", 104, subsequent_indent="   ", break_on_hyphens=False)
        for nth, text in enumerate(texts, 1)
    )


INTRODUCTION = """# Libraries beside plain ways

How fast libraries for communication between processes move messages, beside a plain pipe, socket and
shared memory. `bench/atlas.py` measures and writes this page, as a part of `make results`; `make links`
installs the libraries. `pipemark run ipc-libraries` prints the same figures with their intervals, in ten
minutes. [outside-links.md](outside-links.md) describes how libraries are measured.
"""

METHOD = """
These figures are of {day}, {cpu}, {cpus} CPUs, Linux {kernel}, sender and receiver on different CPUs.
Every message was newly written, and every byte compared. Both ends sleep while they wait, except in the
table of polling. Figures are medians of at least five runs.
"""

NO_FIGURES = """
This copy of the page has no figures: they must be measured on a machine with nothing else running.
"""

# Links for which there are no programs in the directory links.
ABSENT = """
vsock has no link yet. Two processes on one machine need the kernel's `vsock_loopback`, which cloud kernels
often lack.
"""


def library_table():
    rows = []
    for file in sorted((ROOT / "links").glob("*/link.toml")):
        link = tomllib.loads(file.read_text())
        if not file.parent.name.startswith(("pipe-", "null-")):
            options = [f"{key}={value}" for key, values in link.get("option", {}).items() for value in values[1:]]
            sources = [
                source if "://" not in source else f"<{source}>" for source in link["documentation"].split(", ")
            ]
            rows.append([file.parent.name, link["about"], ", ".join(options) or "–", ", ".join(sources)])
    return table(["link", "what it is", "other options", "its use follows"], rows)


def sections(document):
    """The headings and texts of the figures."""
    results = Results(document)
    skipped = [t for t in results.trials if t["status"] == "skipped" and t["params"]["block"] in (64, 4096)]
    reasons = dict.fromkeys(f"- {t['params']['link']}: {t['reason']}" for t in skipped)
    ends = ["link", "size", "senders → receivers", "throughput", "time per message"]
    texts = {
        "Findings": findings(results),
        "Throughput by message size": "The percentage is relative to the fastest of pipe, unix-stream and shm at the "
        "same size. Peak memory is that\nof the largest process with 64 KiB messages.\n\n" + throughput_table(results),
        "CPU time per message": "Of both ends and the broker together.\n\n" + cpu_table(results),
        "Round trips": "Back to back. The factor is relative to the fastest of pipe, unix-stream and shm.\n\n"
        + latency_table(results),
        "Polling": "Both ends keep a CPU busy, so these figures must not be compared with those above.\n\n"
        + simple_table(results, "polling", ["link", "64 B, median", "p99"], trip_cells),
        "Several senders": simple_table(results, "fan-in", ends, rate_cells),
        "Several receivers": "Each receives every message; the throughput is of all together.\n\n"
        + simple_table(results, "fan-out", ends, rate_cells),
        "What the reference code costs": "The loop of each language without a transfer: no link of that language can "
        "be faster.\n\n" + simple_table(results, "reference-code", ends, rate_cells),
    }
    if reasons:
        texts["Not measured here"] = "\n".join(reasons)
    return texts


def page(document):
    text = INTRODUCTION
    if document:
        host = document["host"]
        kernel = host["kernel"].split()[0]
        method = METHOD.format(day=document["started"][:10], cpu=host["cpu"], cpus=host["cpus"], kernel=kernel)
        text += f"\n{textwrap.fill(method.strip(), 104)}\n"
    else:
        text += NO_FIGURES
    for heading, content in (sections(document) if document else {}).items():
        text += f"\n## {heading}\n\n{content}\n"
    return text + f"\n## The libraries\n\n{library_table()}\n" + ABSENT


def main():
    match sys.argv[1:]:
        case ["--no-figures"]:
            document = None
        case [file]:
            document = json.loads(Path(file).read_text())
        case _:
            document = measure()
    PAGE.write_text(page(document))


if __name__ == "__main__":
    main()
