#!/usr/bin/env python3
"""Compares what `pipemark why` predicts with what `pipemark tune` measures, on pipelines drawn at random.

    bench/calibrate.py run DIR [--set generated|public] [--seed N] [--count N] [--minutes N] [--budget SECONDS]
    bench/calibrate.py table DIR [--each]
    bench/calibrate.py list [--set generated|public] [--seed N] [--count N]

`run` draws pipelines of real programs, with their inputs, sizes, locale and the load beside them. It scales each input so that the
pipeline takes about a second, records what `why` saw of an undisturbed run, and measures by `tune` how much faster the pipeline is
without each stage. Each pipeline becomes two files in DIR: NAME.json with the gains, NAME.trace for `why --replay`. A pipeline that
is there isn't run again, so an interrupted run goes on.

`table` concludes from the traces again and prints how often the stage with the largest gain is the one that `why` names, how often it
is the one with the most CPU time, as `top` would say, and how many of the gains lie in the predicted ranges. Pipelines in which no
stage without its work gains 10 % have no bottleneck to name and aren't counted.

PIPEMARK names the program (default: target/release/pipemark)."""

import argparse
import contextlib
import datetime
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIPEMARK = os.environ.get("PIPEMARK", str(ROOT / "target/release/pipemark"))
SHORTEST, TARGET, LONGEST = 0.3, 1.0, 2.0  # seconds that a pipeline may take, and should
LEAST_GAIN = 1.10  # below this, no stage holds the pipeline back
TIE = 1.05  # two gains within this factor are both the largest
ERROR = 0.05  # what one or two runs leave uncertain in a measured gain

# Inputs: how each is made from lines of a log.
WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which".split()


def line(draw, number):
    address = ".".join(str(draw.randrange(256)) for _ in range(4))
    words = " ".join(draw.choice(WORDS) for _ in range(draw.randrange(3, 12)))
    agent = draw.choice(["bot/1.0", "Mozilla/5.0", "curl/8.5", "Wget/1.21"])
    return f'{address} {number} GET /{draw.choice(WORDS)}/{draw.randrange(10**6)} {draw.choice([200, 200, 304, 404])} "{agent}" {words}'


def as_json(text):
    fields = text.split(" ")
    return json.dumps({"address": fields[0], "number": int(fields[1]), "path": fields[3], "status": int(fields[4])})


def make_inputs(directory, names, size):
    draw = random.Random(1)
    block = [line(draw, number) for number in range(40000)]
    text = "\n".join(block) + "\n"
    for name in names:
        stem, *suffix = name.split(".")
        own = text
        if stem == "events":
            own = "\n".join(map(as_json, block)) + "\n"
        elif stem == "table":
            own = "\n".join(",".join(one.split(" ")[:5]) for one in block) + "\n"
        data = own.encode()
        data = data * (size // len(data) + 1)
        data = data[: data.rfind(b"\n", 0, size) + 1]
        plain = directory / f"{stem}.{suffix[0]}"
        plain.write_bytes(data)
        pack = {"gz": "gzip -kf", "zst": "zstd -qkf", "xz": "xz -0kf", "bz2": "bzip2 -1kf", "lz4": "lz4 -qkf"}
        for packed in suffix[1:]:
            subprocess.run([*pack[packed].split(), plain], check=True, stdout=subprocess.DEVNULL)


# Stages: what they read and write, and their forms.
SOURCES = {
    "log": ["cat log.txt", "zcat log.txt.gz", "zstd -dc log.txt.zst", "xz -dc log.txt.xz", "bzip2 -dc log.txt.bz2",
            "lz4 -dc log.txt.lz4", "pigz -dc log.txt.gz", "sed '' log.txt", "tac log.txt", "awk 1 log.txt"],
    "csv": ["cat table.csv", "zcat table.csv.gz", "zstd -dc table.csv.zst"],
    "json": ["cat events.json", "zcat events.json.gz"],
}  # fmt: skip
FILTERS = {
    "any": ["grep -v bot", "grep -i THE", "grep -E '(on|of|in)[0-9 ]'", "grep -F 40", "sed 's/o/0/g'", "sed -E 's/[0-9]+/N/g'",
            "tr a-z A-Z", "tr -s ' '", "cat", "rev", "fold -w 60", "nl", "awk 'length > 40'", "mawk '{print NR, $0}'",
            "gawk '{$1 = $1} 1'", "perl -ne 'print if /[02468]/'", "perl -pe 's/e/E/g'", "sort", "sort -u", "sort -k2", "sort -n",
            "tac", "uniq -c", "expand", "iconv -f UTF-8 -t UTF-16LE | iconv -f UTF-16LE -t UTF-8", "paste - -",
            "python3 -c 'import sys\nfor line in sys.stdin: sys.stdout.write(line.lower())'",
            "awk '{count[$1]++} END {for (one in count) print count[one], one}'", "tee copy.txt", "pv -q", "head -c 30M"],
    "log": ["cut -d' ' -f1,4", "cut -c1-40", "awk '{print $4, $1}'", "awk '$5 == 200'", "perl -lane 'print $F[3]'"],
    "csv": ["cut -d, -f2", "awk -F, '{sum += $2; print sum}'", "sort -t, -k4", "tr , '\t'"],
    "json": ["jq -c 'select(.status == 200)'", "jq -r .path", "python3 -c 'import json, sys\nfor line in sys.stdin: print(json.loads(line)[\"path\"])'"],
}  # fmt: skip
SINKS = ["wc -l", "wc -c", "md5sum", "sha256sum", "tail -n 1", "gzip -1 | wc -c", "gzip | wc -c", "zstd -q | wc -c", "xz -0 | wc -c",
         "bzip2 | wc -c", "lz4 -q | wc -c", "pigz | wc -c", "base64 | wc -c", "sort | uniq -c | sort -rn | head -n 5", "cksum",
         "od -An -tx1 | wc -l", "sort | tail -n 1", "openssl enc -aes-128-cbc -k secret -pbkdf2 | wc -c", "tee copy.txt | wc -l",
         "b2sum", "cat >/dev/null"]  # fmt: skip
SURROUNDINGS = ["alone", "alone", "alone", "alone", "busy", "one CPU"]
LOCALES = ["C", "C.UTF-8", "C.UTF-8"]
CHANGES_FORM = (
    "jq -r",
    "python3",
    "perl -lane",
    "awk '{print",
    "awk '{count",
    "cut",
    "tr -s",
    "fold",
    "paste",
    "gawk",
)

# One-liners as they stand in books and suites of shell benchmarks.
PUBLIC = {
    "word-frequencies": "cat log.txt | tr -cs A-Za-z '\\n' | tr A-Z a-z | sort | uniq -c | sort -rn | sed 10q",
    "top-n": "cat log.txt | tr -cs A-Za-z '\\n' | tr A-Z a-z | sort | uniq -c | sort -rn | sed 100q",
    "sort-sort": "cat log.txt | tr A-Z a-z | sort | sort -r",
    "nfa-regex": "cat log.txt | tr A-Z a-z | grep '\\(.\\).*\\1\\(.\\).*\\2\\(.\\).*\\3\\(.\\).*\\4'",
    "spell": "cat log.txt | iconv -f utf-8 -t ascii//translit | col -bx | tr -cs A-Za-z '\\n' | tr A-Z a-z | tr -d '[:punct:]' | sort | uniq",
    "longest-lines": "cat log.txt | awk '{print length, $0}' | sort -rn | head -n 10 | cut -d' ' -f2-",
    "top-addresses": "zcat log.txt.gz | grep -v bot | cut -d' ' -f1 | sort | uniq -c | sort -rn | head",
    "status-codes": "awk '{print $5}' log.txt | sort | uniq -c | sort -rn",
    "not-found": "grep ' 404 ' log.txt | awk '{print $4}' | sort | uniq -c | sort -rn | head -n 20",
    "requests-per-agent": "zcat log.txt.gz | awk -F'\"' '{print $2}' | sort | uniq -c | sort -n",
    "json-paths": "cat events.json | jq -r .path | sort | uniq -c | sort -rn | head",
    "json-to-csv": "cat events.json | jq -r '[.address, .path, .status] | @csv' | gzip >out.gz",
    "backup": "tar cf - log.txt table.csv | gzip | tee copy.tgz | md5sum",
    "backup-zstd": "tar cf - log.txt table.csv | zstd -q | sha256sum",
    "recompress": "zcat log.txt.gz | zstd -q | wc -c",
    "recompress-xz": "xz -dc log.txt.xz | gzip | wc -c",
    "column-sum": "cut -d, -f2 table.csv | awk '{sum += $1} END {print sum}'",
    "join-keys": "cut -d, -f1 table.csv | sort | uniq -d | wc -l",
    "histogram": "cut -d' ' -f5 log.txt | sort -n | uniq -c",
    "bi-grams": "cat log.txt | tr -cs A-Za-z '\\n' | paste - - | sort | uniq -c | sort -rn | head",
    "rotate-case": "cat log.txt | tr 'A-Za-z' 'N-ZA-Mn-za-m' | rev | md5sum",
    "anonymize": "zcat log.txt.gz | sed -E 's/^[0-9.]+/0.0.0.0/' | gzip | wc -c",
    "sample": "zcat log.txt.gz | perl -ne 'print if $. % 100 == 0' | tail -n 5",
    "encrypt": "cat log.txt | gzip | openssl enc -aes-256-cbc -k secret -pbkdf2 | wc -c",
    "line-numbers": "nl log.txt | grep bot | sed -E 's/ +/ /g' | tail -n 3",
    "shuffle-free": "sort -k3 log.txt | awk '!seen[$4]++' | wc -l",
    "reverse": "tac log.txt | head -n 200000 | sort | md5sum",
    "escape": "cat log.txt | sed 's/&/\\&amp;/g; s/</\\&lt;/g' | gzip -9 | wc -c",
    "dedupe": "zstd -dc log.txt.zst | sort -u | wc -l",
    "while-read": "head -n 60000 log.txt | while read -r address rest; do echo \"$address\"; done | sort | uniq -c | wc -l",
    "python-filter": "zcat log.txt.gz | python3 -c 'import sys\nfor line in sys.stdin:\n  if \"bot\" not in line: print(line.split()[0])' | sort | uniq | wc -l",
    "base64-mail": "gzip -c log.txt | base64 | wc -c",
    "hex": "cat log.txt | xxd -p | tr -d '\\n' | md5sum",
    "strings": "gzip -1c log.txt | strings | wc -l",
    "awk-group": "awk '{bytes[$1] += length} END {for (one in bytes) print bytes[one], one}' log.txt | sort -rn | head",
    "fold-count": "fold -w 1 log.txt | sort | uniq -c | sort -rn | head -n 5",
    "diff-sorted": "sort log.txt | cut -d' ' -f1 | uniq | comm -12 - /dev/null | wc -l",
    "csv-filter": "zcat table.csv.gz | awk -F, '$5 == 404' | cut -d, -f1,4 | sort -u | wc -l",
    "split-hash": "cat log.txt | tee copy.txt | sha256sum | cut -c1-16",
    "dd": "cat log.txt | dd bs=512 status=none | md5sum",
}  # fmt: skip


def generated(seed, number):
    """The pipeline with this number: its name, text, locale and surroundings."""
    draw = random.Random(f"{seed}/{number}")
    form = draw.choice(["log", "log", "log", "csv", "json"])
    stages = [draw.choice(SOURCES[form])]
    for _ in range(draw.choice([0, 1, 1, 2, 2, 3])):
        own = FILTERS[form] * 3 if form != "any" else []
        stage = draw.choice(FILTERS["any"] + own)
        stages.append(stage)
        if stage.startswith(CHANGES_FORM):
            form = "any"
    stages.append(draw.choice(SINKS))
    return {
        "name": f"generated-{seed}-{number:04}",
        "pipeline": " | ".join(stages),
        "locale": draw.choice(LOCALES),
        "surroundings": draw.choice(SURROUNDINGS),
    }


def public(seed, number):
    names = list(PUBLIC)
    draw = random.Random(f"{seed}/public/{number}")
    name = names[number % len(names)]
    return {
        "name": f"public-{seed}-{number:04}-{name}",
        "pipeline": PUBLIC[name],
        "locale": draw.choice(LOCALES),
        "surroundings": draw.choice(SURROUNDINGS),
    }


def inputs_of(pipeline):
    """The inputs that a pipeline reads, each with all of its forms."""
    found = []
    for stem, suffix in [("log", "txt"), ("table", "csv"), ("events", "json")]:
        forms = [packed for packed in ("gz", "zst", "xz", "bz2", "lz4") if f"{stem}.{suffix}.{packed}" in pipeline]
        if f"{stem}.{suffix}" in pipeline:
            found.append(".".join([stem, suffix, *forms]))
    return found


# Measuring


@contextlib.contextmanager
def beside(surroundings):
    """Runs a busy loop beside, if it is asked for."""
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"]) if surroundings == "busy" else None
    try:
        yield ["taskset", "-c", "0"] if surroundings == "one CPU" else []
    finally:
        if busy:
            busy.kill()
            busy.wait()


def seconds_of(case, prefix, directory, environment):
    begin = time.monotonic()
    words = [*prefix, "bash", "-c", case["pipeline"]]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(words, cwd=directory, env=environment, timeout=60, **quiet)
    return time.monotonic() - begin


def measure(case, budget, into):
    """Measures one pipeline. Returns the reason why it isn't kept, or None."""
    programs = [part.split()[0] for part in case["pipeline"].split(" | ")]
    absent = [one for one in programs if one not in ("while",) and not shutil.which(one)]
    if absent:
        return f"no {', '.join(absent)}"
    environment = os.environ | {"LC_ALL": case["locale"], "SHELL": "/bin/bash"}
    with tempfile.TemporaryDirectory() as name, beside(case["surroundings"]) as prefix:
        directory = Path(name)
        size = 8 << 20
        for _ in range(4):
            make_inputs(directory, inputs_of(case["pipeline"]), size)
            seconds = seconds_of(case, prefix, directory, environment)
            if SHORTEST * 2 <= seconds <= LONGEST * 0.9 or size == 512 << 20 and seconds >= SHORTEST:
                break
            size = min(512 << 20, max(1 << 16, int(size * TARGET / max(seconds, 0.01))))
        else:
            if not SHORTEST <= seconds <= LONGEST:
                return f"it takes {seconds:.2f} s"
        run = {
            "cwd": directory,
            "env": environment,
            "stdin": subprocess.DEVNULL,
            "capture_output": True,
            "timeout": 600,
        }
        trace = into / f"{case['name']}.trace"
        why = subprocess.run(
            [*prefix, PIPEMARK, "why", "--trace", trace, "--json", directory / "why.json", case["pipeline"]], **run
        )
        if not trace.exists():
            return f"no trace: {why.stderr.decode(errors='replace').strip()[-100:]}"
        found = directory / "tune.json"
        tune = [*prefix, PIPEMARK, "tune", "--yes", "--budget", f"{budget}s", "--json", found, case["pipeline"]]
        done = subprocess.run(tune, **run)
        if not found.exists() or not found.stat().st_size:
            trace.unlink()
            return f"no gains: {done.stderr.decode(errors='replace').strip()[-100:]}"
        result = json.loads(found.read_text())
        kept = {"time": result["time"]["median"], "size": size, "version": result["version"], "runs": result["runs"]}
        kept["stages"] = [stage["command"] for stage in result["stages"]]
        kept["gains"] = [
            {key: one[key] for key in ("kind", "stage", "id", "gain", "low", "high", "runs")}
            for one in result["experiments"]
            if one["gain"] is not None
        ]
        kept["machine"] = f"{os.cpu_count()} CPUs, Linux {platform.release()}"
        kept["date"] = datetime.date.today().isoformat()
        (into / f"{case['name']}.json").write_text(json.dumps(case | kept, indent=1) + "\n")
    return None


def run(options):
    into = Path(options.directory)
    into.mkdir(parents=True, exist_ok=True)
    draw = {"generated": generated, "public": public}[options.set]
    end = time.monotonic() + options.minutes * 60
    kept, number = 0, 0
    while kept < options.count and time.monotonic() < end:
        case = draw(options.seed, number)
        number += 1
        if options.set == "public" and number > len(PUBLIC):
            break
        if (into / f"{case['name']}.json").exists():
            kept += 1
            continue
        try:
            reason = measure(case, options.budget, into)
        except subprocess.TimeoutExpired:
            reason = "it takes too long"
        kept += reason is None
        print(f"{case['name']} ({case['surroundings']}): {case['pipeline']!r}: {reason or 'kept'}", flush=True)


# The tables


def conclude(path):
    """What `why` concludes from a trace."""
    words = [PIPEMARK, "why", "--json", "-", "--replay", path]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    text = done.stdout.decode()
    return json.loads(text) if text.startswith("{") else None


def judge(case, report):
    """How the report of `why` agrees with the measured gains; None if no stage holds the pipeline back."""
    gains = {one["stage"]: one["gain"] for one in case["gains"] if one["kind"] == "without"}
    verdict = report["verdict"]
    whole = len(gains) == len(case["stages"]) and len(report["stages"]) == len(case["stages"])
    if not whole or max(gains.values()) < LEAST_GAIN:
        return None
    largest = max(gains.values())
    best = {stage for stage, gain in gains.items() if gain * TIE >= largest}
    order = [
        one["stage"]
        for one in sorted(verdict["hypotheses"], key=lambda one: one["why_not"] is not None)
        if one["stage"]
    ]
    named = list(dict.fromkeys([verdict["stage"], *order]))
    cpu = max(report["stages"], key=lambda stage: stage["cpu"] or 0)["number"]
    ranges = []
    for stage, gain in gains.items():
        own = [one["gain"] for one in verdict["hypotheses"] if one["stage"] == stage and one["gain"]]
        if own:
            widest = max(own, key=lambda one: one["low"])
            low, high = widest["low"], widest["high"] or float("inf")
            ranges.append((low, high, low * (1 - ERROR) <= gain <= high * (1 + ERROR), gain, stage))
    return {
        "first": verdict["stage"] in best,
        "two": bool(best & set(named[:2])),
        "top": cpu in best,
        "sure": verdict["sure"] == "sure",
        "proved wrong": verdict["quality"] == "proved" and verdict["stage"] not in best,
        "ranges": ranges,
        "best": sorted(best),
        "largest": largest,
        "stage": verdict["stage"],
    }


def share(values):
    values = list(values)
    return f"{sum(values)} of {len(values)} ({sum(values) / len(values):.0%})" if values else "none"


def table(options):
    cases, without = [], 0
    for path in sorted(Path(options.directory).glob("*.json")):
        case = json.loads(path.read_text())
        report = conclude(path.with_suffix(".trace"))
        judged = report and judge(case, report)
        if not judged:
            without += 1
            continue
        cases.append((case, judged))
        if options.each:
            mark = "right" if judged["first"] else "WRONG"
            print(f"{mark} {case['name']} ({case['surroundings']}, {case['locale']}): {case['pipeline']!r}")
            print(
                f"    named {judged['stage']}{'' if judged['sure'] else ' (unsure)'}, best {judged['best']} {judged['largest']:.2f}"
            )
            for low, high, inside, gain, stage in judged["ranges"]:
                print(
                    f"    stage {stage}: predicted {low:.2f} to {high:.2f}, measured {gain:.2f}{'' if inside else ' OUTSIDE'}"
                )
    every = [judged for _, judged in cases]
    print(
        f"pipelines: {len(cases)}; {without} more without a stage that gains {LEAST_GAIN - 1:.0%}, or without all gains"
    )
    print(f"the stage with the largest gain is named first:   {share(one['first'] for one in every)}")
    print(f"it is among the first two:                        {share(one['two'] for one in every)}")
    print(f"it has the most CPU time, as top shows it:        {share(one['top'] for one in every)}")
    print(f"right when sure:                                  {share(one['first'] for one in every if one['sure'])}")
    print(f"unsure:                                           {share(not one['sure'] for one in every)}")
    print(f"wrong with quality proved:                        {sum(one['proved wrong'] for one in every)}")
    ranges = [one for judged in every for one in judged["ranges"]]
    print(f"measured gains within the predicted range:        {share(inside for _, _, inside, _, _ in ranges)}")
    widths = [high / low for low, high, *_ in ranges if high != float("inf")]
    if widths:
        print(f"ends of a range apart, median:                    {statistics.median(widths):.2f} times")
    print(f"ranges without an upper end:                      {share(high == float('inf') for _, high, *_ in ranges)}")
    for surroundings in dict.fromkeys(SURROUNDINGS):
        own = [judged["first"] for case, judged in cases if case["surroundings"] == surroundings]
        print(f"named first, {surroundings}:{' ' * (36 - len(surroundings))} {share(own)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("run", "table", "list"):
        verb = verbs.add_parser(name)
        if name != "list":
            verb.add_argument("directory")
        if name == "table":
            verb.add_argument("--each", action="store_true")
        else:
            verb.add_argument("--set", choices=["generated", "public"], default="generated")
            verb.add_argument("--seed", type=int, default=1)
            verb.add_argument("--count", type=int, default=40)
        if name == "run":
            verb.add_argument("--minutes", type=float, default=1e6)
            verb.add_argument("--budget", type=float, default=20)
    options = parser.parse_args()
    if options.verb == "list":
        draw = {"generated": generated, "public": public}[options.set]
        for number in range(min(options.count, len(PUBLIC) if options.set == "public" else options.count)):
            case = draw(options.seed, number)
            print(f"{case['name']} ({case['surroundings']}, {case['locale']}): {case['pipeline']!r}")
    else:
        {"run": run, "table": table}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
