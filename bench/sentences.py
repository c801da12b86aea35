#!/usr/bin/env python3
"""Draws computed sentences at random from the outputs of all verbs on this machine, and recomputes each from its table.

    bench/sentences.py [--pipemark PROGRAM] [--count 60] [--seed N] [--verb NAME]

Runs the verbs once, with short budgets (about three minutes). Draws equally many of each verb, as far as there are. Prints each sentence that is drawn, and why it isn't true
if it isn't. Ends with 1 if one isn't true. The checks are in tests/implied, which shares no code with the program."""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "implied"))

import documents  # noqa: E402
import verbs  # noqa: E402
import why as why_sentences  # noqa: E402

options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
options.add_argument("--pipemark", default=os.path.join(ROOT, "target", "release", "pipemark"))
options.add_argument("--count", type=int, default=60)
options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
options.add_argument("--verb", help="only this verb")
options = options.parse_args()

scratch = tempfile.TemporaryDirectory()
ENVIRONMENT = {**os.environ, "XDG_DATA_HOME": scratch.name, "LC_ALL": "C.UTF-8", "COLUMNS": "120"}


def run(*words, json_to=None):
    """The text that a call prints, and the JSON that it writes."""
    path = json_to or os.path.join(scratch.name, "result.json")
    if os.path.exists(path):
        os.remove(path)
    done = subprocess.run(
        [options.pipemark, *words, "--json", path],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=240,
        check=False,
    )
    if not os.path.exists(path):
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    # The standard output of `why` is the pipeline's.
    return done.stderr if words[0] == "why" else done.stdout, result


def of_document(*words):
    path = os.path.join(scratch.name, "document.json")
    text, document = run(*words, json_to=path)
    call = [options.pipemark, "report", path, "--terminal"]
    page = subprocess.run(call, capture_output=True, text=True, env=ENVIRONMENT, check=False).stdout
    found = documents.check(document, text, page) + verbs.of_claims(document, text)
    for sentence in found:
        sentence.verb = words[0]
    return found


def text_file():
    path = os.path.join(scratch.name, "words.txt")
    with open(path, "w", encoding="utf-8") as file:
        dice = random.Random(7)
        for _ in range(400_000):
            file.write(" ".join(str(dice.randrange(1000)) for _ in range(6)) + "\n")
    subprocess.run(["gzip", "-kf", path], check=True)
    return path


def all_sentences():
    """The sentences of each verb."""
    words = text_file()
    short = ["--budget", "2s"]
    sizes = "64,256,1k,4k,16k,64k,256k,1m"
    yield "bw", lambda: of_document("bw", "--block", sizes, "--place", "same,cross", *short)
    yield "bw", lambda: of_document("bw", "--capacity", "quota,default,256k,1m", "--wait", "block,spin", *short)
    yield "bw", lambda: of_document("bw", "--link", "pipe,tcp,shm,unix-stream", "--block", "64,4k,64k,1m", *short)
    yield "bw", lambda: of_document("bw", "--send", "write,vmsplice", "--recv", "read,splice", *short)
    yield "latency", lambda: of_document("latency", "--link", "pipe,tcp,shm", "--gap", "0,1ms", *short)
    yield "run", lambda: of_document("run", "quick", "--budget", "8s")
    yield "run", lambda: of_document("run", "block-size", "--scale", "0.05", "--budget", "5s")
    yield "run", lambda: of_document("run", "ipc", "--scale", "0.05", "--budget", "5s")
    yield "chain", lambda: of_document("chain", "--length", "1,2,4,8", *short)
    yield "ab", lambda: ab("cat {0}", "sort {0}", words)
    yield "ab", lambda: ab("gzip -1c {0}", "gzip -1c {0}", words)
    yield "ab", lambda: ab("gzip -1c {0}", "gzip -3c {0}", words, "gzip -6c {0}")
    yield "ab", lambda: ab("true", "cat /dev/null", words)
    yield "ab", lambda: catch("sort {0}", "sort {0} {0}", words)
    yield "ab", lambda: catch("sort {0}", "sort {0}", words)
    yield "compare", lambda: compare("--block", "4k,64k")
    yield "compare", lambda: compare("--link", "pipe,shm")
    for pipeline in PIPELINES:
        yield "why", lambda pipeline=pipeline: why(pipeline.format(words))
    yield "tune", lambda: tune(f"zcat {words}.gz | sort | uniq -c")
    yield "tune", lambda: tune(f"cat {words} | grep -v 99 | gzip -6")
    yield "tune", lambda: tune(f"cat {words} | cut -d' ' -f1 | sort -n | uniq | wc -l")
    yield "relay", lambda: of_bytes("relay", ["--stats"], words)
    yield "relay", lambda: of_bytes("relay", ["--stats", "--method", "read-write"], words)
    yield "lines", lambda: of_bytes("lines", ["upper", "--stats"], words)
    yield "sink", lambda: of_bytes("sink", [], words)


PIPELINES = [
    "zcat {0}.gz | grep -v 7 | sort | uniq -c",
    "cat {0} {0} | gzip -9 | wc -c",
    "dd if={0} bs=1 count=2000000 status=none | cat | wc -c",
    'cat {0} | while read -r line; do echo "$line"; done | head -20000 | wc -l',
    "sed s/1/2/ {0} {0} | tr 5 6 | md5sum",
    "awk '{{print $1}}' {0} | sort -n | uniq | wc -l",
]


def ab(one, other, words, *more):
    commands = [command.format(words) for command in (one, other, *more)]
    text, result = run("ab", *commands, "--ignore-output", "--runs", "12")
    return verbs.of_ab(result, text)


def catch(one, other, words):
    commands = [command.format(words) for command in (one, other)]
    text, result = run("ab", "--catch", "30%", "--budget", "12s", "--ignore-output", "--", *commands)
    return verbs.of_ab(result, text)


def of_bytes(verb, words, path):
    with open(path, "rb") as file:
        call = [options.pipemark, verb, *words]
        done = subprocess.run(call, stdin=file, capture_output=True, env=ENVIRONMENT, timeout=60, check=True)
    return verbs.of_bytes(verb, (done.stderr if words else done.stdout).decode())


def compare(*words):
    paths = [os.path.join(scratch.name, name) for name in ("base.json", "new.json")]
    for path in paths:
        run("bw", *words, "--budget", "3s", json_to=path)
    text, result = run("compare", *paths)
    return verbs.of_compare(result, text)


def why(pipeline):
    text, result = run("why", pipeline)
    return why_sentences.of_why(result, text)


def tune(pipeline):
    text, result = run("tune", pipeline, "--budget", "12s")
    return verbs.of_tune(result, text)


found, failed = [], False
for verb, sentences in all_sentences():
    if options.verb in (None, verb):
        try:
            own = sentences()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(error, file=sys.stderr, flush=True)
            failed = True
            continue
        print(f"{verb}: {len(own)} sentences", file=sys.stderr, flush=True)
        found += own
dice = random.Random(options.seed)
shuffled = dice.sample(found, len(found))
# The first of each verb, then the second of each, and so on.
before = collections.Counter()
order = {}
for sentence in shuffled:
    order[id(sentence)] = before[sentence.verb]
    before[sentence.verb] += 1
drawn = sorted(shuffled, key=lambda sentence: order[id(sentence)])[: options.count]
for sentence in drawn:
    print(f"{'true ' if not sentence.faults else 'FALSE'} {sentence.verb} ({sentence.kind}): {sentence.text}")
    for fault in sentence.faults:
        print(f"      {fault}")
true = sum(not sentence.faults for sentence in drawn)
wrong = [one for one in found if one.faults and one not in drawn]
for sentence in wrong:
    print(f"not drawn, FALSE {sentence.verb} ({sentence.kind}): {sentence.text}\n      {'; '.join(sentence.faults)}")
print(
    f"{true} of {len(drawn)} sentences are true (of {len(found)} in all, {len(wrong)} others aren't; --seed {options.seed})"
)
sys.exit(failed or true < len(drawn))
