#!/usr/bin/env python3
"""Checks the verdicts of `pipemark why` on real pipelines with known bottlenecks.

    tests/real/run.py                   run every case whose programs are installed; print verdicts and totals
    tests/real/run.py --small           about sixteen short cases; with --strict, fail if too few are right
    tests/real/run.py --only 'gzip|xz'  cases whose family/name matches
    tests/real/run.py --json FILE       write the results as JSON ('-' is standard output)
    tests/real/run.py --list            list the cases and the requirements of each
    tests/real/run.py --packages        list missing Debian packages; --install installs them first
    tests/real/run.py --time            don't run pipemark: time each pipeline and its fix, alternating
    tests/real/run.py --time --update   the same, and write the medians into the cases' files
    tests/real/run.py --traces DIR      also keep a trace of what `why` saw of each case
    tests/real/run.py --replay DIR      judge by the traces in DIR, without running the cases; print verdicts that differ from
                                        DIR/verdicts.json and sentences that their tables don't imply, and with --strict
                                        fail if there are such sentences or if a right verdict isn't right any more
    tests/real/run.py --replay DIR --update  write DIR/verdicts.json anew

PIPEMARK names the binary (default: target/release/pipemark). Cases are in *.toml; README.md explains the fields."""

import argparse
import atexit
import ctypes
import datetime
import fcntl
import functools
import hashlib
import json
import math
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parent.parent / "implied"))

import why  # noqa: E402

REAL = Path(__file__).resolve().parent
ROOT = REAL.parent.parent
RESULTS = ["right", "half", "wrong", "none", "inconclusive", "skipped"]
LIMIT = 30  # seconds within which a timed pipeline must end
EXTRA = 25  # seconds after --for within which the verdict must appear
REQUIRED = {"name", "programs", "pipeline", "look", "truth", "right", "asks", "why"}
KNOWN = REQUIRED | {
    "set", "packages", "fix_packages", "fix_programs", "setup", "service", "ready", "reset", "shell", "small", "fix", "measure",
    "before", "after", "measured", "causes", "remedies", "wrong_remedies", "vain", "vain_after", "rate", "needs", "limit",
    "teardown",
}  # fmt: skip
CAUSES = {"root", "calls", "burst", "ends", "socket", "held", "cycle", "advice", "starts", "other"}


# The cases


def load():
    cases = []
    for file in sorted(REAL.glob("*.toml")):
        for case in tomllib.loads(file.read_text())["case"]:
            case["family"], case["file"] = file.stem, file
            check(case)
            cases.append(case)
    names = [case["name"] for case in cases]
    assert len(names) == len(set(names)), "two cases have the same name"
    return cases


def check(case):
    where = f"{case['file'].name}: {case.get('name')}"
    missing = REQUIRED - case.keys()
    unknown = case.keys() - KNOWN - {"family", "file"}
    assert not missing, f"{where}: missing {missing}"
    assert not unknown, f"{where}: unknown {unknown}"
    assert set(case["asks"]) <= CAUSES, f"{where}: asks"


def missing(case, timing):
    """The reason why a case can't run here, or None."""
    programs = list(case["programs"])
    names = list(case.get("packages", []))
    if timing:
        programs += case.get("fix_programs", [])
        names += case.get("fix_packages", [])
    absent = [program for program in programs if not shutil.which(program, path=environment(case, "/")["PATH"])]
    if absent:
        return f"no {', '.join(absent)} (packages: {' '.join(names)})"
    if not timing and "measured" not in case:
        return "not timed yet"
    for need in case.get("needs", []):
        if need == "root" and os.geteuid() != 0:
            return "needs root"
        if (
            need == "cgroup"
            and not os.access("/sys/fs/cgroup/cpu", os.W_OK)
            and not os.access("/sys/fs/cgroup/cgroup.procs", os.W_OK)
        ):
            return "needs a writable cgroup tree"
        if need == "locales" and not os.path.exists("/usr/share/i18n/locales/en_US"):
            return "no locale sources (package: locales)"
    return None


def packages(cases):
    """Debian packages of the programs that pipelines and their fixes need and that are missing."""
    absent = [case for case in cases if missing(case, True)]
    return sorted({name for case in absent for name in case.get("packages", []) + case.get("fix_packages", [])})


def install(cases):
    """Installs missing packages one by one, because a distribution may lack some."""
    names = packages(cases)
    if not names:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"not installed (needs root and apt-get): {' '.join(names)}", file=sys.stderr)
        return
    quiet = {"stdout": subprocess.DEVNULL, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
    subprocess.run(["apt-get", "update", "-q"], **quiet)
    for name in names:
        subprocess.run(["apt-get", "install", "-qy", "--no-install-recommends", name], **quiet)


def environment(case, directory):
    toolchains = ["/usr/local/go/bin", os.path.expanduser("~/.cargo/bin"), "/usr/lib/postgresql/15/bin"]
    # Variables such as PYTHONUNBUFFERED would change a pipeline, so results would depend on the user's environment.
    kept = {
        name: os.environ[name]
        for name in ("HOME", "USER", "RUSTUP_HOME", "CARGO_HOME", "JAVA_HOME")
        if name in os.environ
    }
    return kept | {
        "PATH": ":".join(
            ["/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *toolchains, os.environ["PATH"]]
        ),
        "LANG": "C.UTF-8",
        "SHELL": shell(case),
        "REAL": str(REAL),
        "TMPDIR": str(directory),
        "REAL_CACHE": cache(),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@functools.cache
def cache():
    """A directory for data.py's output, removed when this process ends."""
    directory = tempfile.mkdtemp(prefix="real-cache-", dir=os.environ.get("REAL_TMP"))
    atexit.register(shutil.rmtree, directory, True)
    return directory


def shell(case):
    return shutil.which(case.get("shell", "sh"), path="/bin:/usr/bin")


# Processes


def adopt_orphans():
    """Makes this process the parent of its orphaned descendants, so that it can find and end them all."""
    if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) != 0:
        sys.exit("tests/real/run.py: can't become a subreaper")


def descendants():
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found, todo = [], [os.getpid()]
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def end_descendants():
    deadline = time.monotonic() + 10
    first = True
    while time.monotonic() < deadline:
        left = descendants()
        for pid in left:
            for number in (signal.SIGTERM, signal.SIGCONT) if first else (signal.SIGKILL,):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
        if not left:
            return
        time.sleep(0.3 if first else 0.05)
        first = False
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
    sys.exit(f"tests/real/run.py: processes that can't be ended: {descendants()}")


class CaseDirectory:
    """A case's temporary directory, with its data. As a context manager it also runs the case's services."""

    def __init__(self, case):
        self.case = case
        self.directory = tempfile.mkdtemp(prefix="real-", dir=os.environ.get("REAL_TMP"))
        atexit.register(shutil.rmtree, self.directory, True)
        os.chmod(self.directory, 0o755)
        self.environment = environment(self.case, self.directory)
        self.run("set -e\n" + self.case.get("setup", ""), 180)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        for command in self.case.get("service", []):
            with open(Path(self.directory, "service.log"), "ab") as log:
                subprocess.Popen(
                    [shell(self.case), "-c", command], cwd=self.directory, env=self.environment,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
        deadline = time.monotonic() + 30
        while "ready" in self.case and not self.ready():
            if time.monotonic() > deadline:
                raise Failure(
                    "its service isn't ready after 30 s: " + Path(self.directory, "service.log").read_text()[-500:]
                )
            time.sleep(0.1)

    def ready(self):
        return self.call(self.case["ready"], 20).returncode == 0

    def call(self, command, limit):
        return subprocess.run(
            [shell(self.case), "-c", command], cwd=self.directory, env=self.environment, timeout=limit,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, command, limit):
        done = self.call(command, limit)
        if done.returncode:
            raise Failure(f"setup failed ({done.returncode}): {done.stdout.decode(errors='replace')[-500:]}")

    def __exit__(self, *_):
        end_descendants()
        if "teardown" in self.case:
            self.call(self.case["teardown"], 20)
        shutil.rmtree(self.directory, ignore_errors=True)


class Failure(Exception):
    pass


# Timing


def time_commands(case, place, runs, turn):
    """Times the pipeline, its fix and the vain remedy. Returns medians, all times, and whether the outputs are equal."""
    commands = {"before": case["pipeline"], "after": case.get("fix"), "vain_after": case.get("vain")}
    commands = {key: command for key, command in commands.items() if command}
    found = {key: [] for key in commands}
    outputs = set()
    for _ in range(runs):
        for key, command in commands.items():
            if found[key] and math.isinf(found[key][0]):
                found[key].append(math.inf)  # a command that never ends is run only once
                continue
            turn.take()
            if "reset" in case:
                place.run(case["reset"], 30)
            seconds, output = time_once(case, command, place)
            if output is None:
                end_descendants()
                place.start()
            found[key].append(seconds)
            if key != "vain_after":
                outputs.add(output)
    return {key: statistics.median(values) for key, values in found.items()}, found, len(outputs) == 1


class BreakableLock:
    """A lock held while pipelines are timed, for at most about three minutes without a break."""

    def __init__(self, path):
        self.path, self.file, self.begin = path, None, 0

    def take(self):
        if self.file and time.monotonic() - self.begin > 160:
            self.give()
            time.sleep(0.2)
        if self.path and not self.file:
            self.file = open(self.path, "a")
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.begin = time.monotonic()

    def give(self):
        if self.file:
            self.file.close()
            self.file = None


def time_once(case, command, place):
    """Seconds until the end or, with measure = "first", until the first byte of output; infinity if that exceeds the limit."""
    limit = case.get("limit", LIMIT)
    begin = time.monotonic()
    process = subprocess.Popen(
        [shell(case), "-c", command] if isinstance(command, str) else command, cwd=place.directory, env=place.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(Path(place.directory, "errors"), "wb"),
        start_new_session=True,
    )  # fmt: skip
    digest = hashlib.sha1()
    while True:
        left = begin + limit - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            return math.inf, None
        block = os.read(process.stdout.fileno(), 1 << 20)
        if block and case.get("measure") == "first":
            return time.monotonic() - begin, None
        if not block:
            break
        digest.update(block)
    process.wait(limit)
    seconds = time.monotonic() - begin
    if process.returncode not in (0, -signal.SIGPIPE, 141):
        errors = Path(place.directory, "errors").read_text(errors="replace")[-400:]
        raise Failure(f"exit code {process.returncode} of: {command}\n{errors}")
    return seconds, digest.hexdigest()


def update(case, medians):
    """Replaces the medians in the case's file."""
    text = case["file"].read_text()
    begin = text.index(f'name = "{case["name"]}"')
    end = text.find("\n[[case]]", begin)
    end = len(text) if end < 0 else end
    block = text[begin:end]
    today = datetime.date.today().isoformat()
    for key, value in {**{key: f"{value:.2f}" for key, value in medians.items()}, "measured": today}.items():
        line = f"{key} = {value}"
        block, count = re.subn(rf"^{key} = .*$", line, block, flags=re.M)
        if not count:
            block = re.sub(r"^right = ", line + "\nright = ", block, count=1, flags=re.M)
    case["file"].write_text(text[:begin] + block + text[end:])


# Judging


def run_why(case, binary, place, look, trace=None):
    """Runs `why` on a case; returns its JSON, or None and the reason."""
    with place:
        if "reset" in case:
            place.run(case["reset"], 30)
        report = Path(place.directory, "why.json")
        report.unlink(missing_ok=True)
        pipeline = case["pipeline"]
        what = [pipeline] if isinstance(pipeline, str) else ["--", *pipeline]
        with open(Path(place.directory, "said"), "wb") as said, open(os.devnull, "wb") as sink:
            process = subprocess.Popen(
                [binary, "why", "--json", str(report), *(["--trace", trace] if trace else []), "--for", f"{look}s", *what],
                cwd=place.directory,
                env=place.environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=said, start_new_session=True,
            )  # fmt: skip
            deadline = time.monotonic() + look + EXTRA
            answer = None
            while answer is None and time.monotonic() < deadline:
                ended = process.poll() is not None
                answer = read_json(report)
                if ended:
                    break
                time.sleep(0.05)
        if answer is None:
            last = Path(place.directory, "said").read_text(errors="replace").strip().splitlines()[-1:]
            return None, f"no JSON: {' '.join(last) or 'no message'}"
        return answer, None


def read_json(file):
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def judge(case, answer):
    """Compares a report with the truth. Returns one of RESULTS, and a text that says what is wrong."""
    verdict = answer["verdict"]
    stages = {stage["number"]: stage for stage in answer["stages"]}
    kind = verdict["kind"]
    if kind in ("unknown", "none"):
        return "none", verdict.get("text", "")
    if kind == "inconclusive" or verdict.get("sure") == "unsure":
        return "inconclusive", verdict.get("text", "")
    amiss = []
    places = [right for right in case["right"] if place_matches(right, verdict, stages, answer)]
    if not any(right["kind"] == kind for right in places):
        # A verdict of a kind without a stage, such as `balanced`, names no place, so it can't be partly right.
        named = any("stage" in right or "pipe" in right for right in places)
        if named and kind not in ("balanced", "cpu"):
            return "half", f"kind {kind} instead of {' or '.join(sorted({right['kind'] for right in places}))}"
        return "wrong", f"{kind} {place_name(verdict, stages, answer)}"
    if not all_rates_true(case, answer, stages):
        amiss.append("rate")
    words = case.get("causes", [])
    cause = verdict.get("cause")
    if cause is not None and words and not any(word.lower() in str(cause).lower() for word in words):
        amiss.append(f"cause {cause!r}")
    remedies = verdict.get("remedies")
    if remedies is not None:
        ids = [remedy["id"] for remedy in remedies]
        wanted = case.get("remedies", [])
        if wanted and not any(has_id_word(word, one) for word in wanted for one in ids):
            amiss.append(f"remedies {' '.join(ids) or 'none'} instead of {' or '.join(wanted)}")
        bad = [one for one in ids if any(has_id_word(word, one) for word in case.get("wrong_remedies", []))]
        if bad:
            amiss.append(f"advises {' '.join(bad)}, which does not help")
    bound = verdict.get("bound")
    gain = measured_gain(case)
    if bound is not None and gain is not None and case.get("measure") != "first" and gain > bound * 1.15:
        amiss.append(f"bound {bound:.2f} exceeded by the fix ({gain:.2f})")
    return ("half", "; ".join(amiss)) if amiss else ("right", "")


def place_matches(right, verdict, stages, answer):
    """Whether a verdict names the stage or pipe of this accepted verdict. An accepted verdict without either accepts any place."""
    if "stage" in right:
        names = right["stage"] if isinstance(right["stage"], list) else [right["stage"]]
        stage = stages.get(verdict.get("stage"))
        if stage is None or program_name(stage["name"]) not in names:
            return False
        if "number" in right and verdict["stage"] != right["number"]:
            return False
    if "pipe" in right:
        ends = pipe_ends(verdict, stages, answer)
        if ends is None or any(one != "*" and one != other for one, other in zip(right["pipe"], ends)):
            return False
    return True


def program_name(name):
    return name.split()[0].rpartition("/")[2] if name.strip() else name


def pipe_ends(verdict, stages, answer):
    for pipe in answer["pipes"]:
        if pipe["number"] == verdict.get("pipe"):
            return [program_name(stages[pipe[end]]["name"]) if pipe[end] in stages else "?" for end in ("from", "to")]
    return None


def place_name(verdict, stages, answer):
    if verdict.get("stage") in stages:
        return program_name(stages[verdict["stage"]]["name"])
    ends = pipe_ends(verdict, stages, answer)
    return "→".join(ends) if ends else ""


def has_id_word(word, one):
    return f"-{word}-" in f"-{one}-".lower()


def all_rates_true(case, answer, stages):
    """Whether all displayed rates are within 10 % of the known rate. A dash counts as right."""
    rate = case.get("rate")
    if rate is None:
        return True
    shown = [
        pipe.get("bytes_per_second")
        for pipe in answer["pipes"]
        if pipe["from"] in stages and program_name(stages[pipe["from"]]["name"]) == rate["from"]
    ]
    return all(one is None or abs(one / (1 << 20) / rate["mib"] - 1) <= 0.1 for one in shown)


def measured_gain(case):
    before, after = case.get("before", math.nan), case.get("after", math.nan)
    return before / after if math.isfinite(before) and math.isfinite(after) and after > 0 else None


# Modes of this script


def run_cases(cases, binary, small, lock, kept, traces=None):
    rows = []
    turn = BreakableLock(lock)
    for case, place in prepared(cases, turn, False):
        row = {
            "family": case["family"],
            "case": case["name"],
            "set": case.get("set", 1),
            "asks": case["asks"],
            "truth": case["truth"],
        }
        if isinstance(place, str):
            row |= {"result": "skipped", "detail": place.removeprefix("skipped: ")}
        else:
            turn.take()
            row |= run_case(case, binary, place, case["small"] if small else case["look"], kept, traces)
        rows.append(row)
        show(row)
    turn.give()
    return rows


def run_case(case, binary, place, look, kept, traces):
    try:
        trace = os.path.join(traces, f"{case['name']}.trace") if traces else None
        answer, failure = run_why(case, binary, place, look, trace)
        if answer and kept:
            Path(kept, f"{case['name']}.json").write_text(json.dumps(answer, indent=1, ensure_ascii=False))
    except (Failure, subprocess.TimeoutExpired) as problem:
        return {"result": "skipped", "detail": str(problem)}
    if answer is None:
        return {"result": "none", "detail": failure}
    return judged(case, answer)


def judged(case, answer):
    """The part of a case's row that says what the verdict is and whether it is right."""
    result, detail = judge(case, answer)
    verdict = answer["verdict"]
    stages = {stage["number"]: stage for stage in answer["stages"]}
    said = {
        "kind": verdict["kind"],
        "at": place_name(verdict, stages, answer),
        "cause": verdict.get("cause", verdict.get("reason")),
        "remedies": [remedy["id"] for remedy in verdict.get("remedies", [])],
        "bound": verdict.get("bound"),
        "gain": verdict.get("gain"),
        "text": verdict["text"],
    }
    return {"result": result, "detail": detail, "said": said}


def replay_cases(cases, binary, directory):
    """Judges the verdicts on recorded traces. A case may have several: NAME.trace, NAME.busy.trace."""
    rows = []
    for case in cases:
        for trace in sorted(Path(directory).glob(f"{case['name']}.*trace")) or [None]:
            row = {key: case.get(key, 1) for key in ("family", "set", "asks", "truth")} | {"case": case["name"]}
            if trace is None:
                row |= {"result": "skipped", "detail": "no trace"}
            else:
                row["case"] = trace.name.removesuffix(".trace")
                with tempfile.TemporaryDirectory() as scratch:
                    file = Path(scratch, "report.json")
                    call = [binary, "why", "--replay", trace, "--json", file]
                    done = subprocess.run(call, capture_output=True, text=True)
                    report = None if done.returncode else json.loads(file.read_text())
                if report is None:
                    row |= {"result": "none", "detail": done.stderr.strip()}
                else:
                    sentences = why.of_why(report, done.stdout)
                    row |= judged(case, report) | {
                        "sentences": len(sentences),
                        "untrue": [f"{one.text}: {'; '.join(one.faults)}" for one in sentences if one.faults],
                    }
            rows.append(row)
    return rows


def expectation(row):
    """What verdicts.json keeps of a row."""
    said = row.get("said", {})
    gain = said.get("gain")
    ends = [round(end, 1) if end else None for end in (gain["low"], gain["high"])] if gain else None
    return {key: said.get(key) for key in ("kind", "at", "cause", "remedies")} | {
        "result": row["result"],
        "gain": ends,
    }


def compare_replays(rows, file, write, strict):
    """Prints the verdicts that changed, and the sentences that their tables don't imply. Returns 1 with strict, if there
    are such sentences or if a verdict that was right isn't any more."""
    now = {row["case"]: expectation(row) for row in rows if row["result"] != "skipped"}
    before = json.loads(file.read_text()) if file.exists() else {}
    lost = 0
    for name in sorted(now.keys() | before.keys()):
        old, new = before.get(name), now.get(name)
        if old != new:
            lost += bool(old and old["result"] == "right" and (not new or new["result"] != "right"))
            print(f"{name}:\n  was {json.dumps(old, ensure_ascii=False)}\n  is  {json.dumps(new, ensure_ascii=False)}")
    if write:
        lines = [f"{json.dumps(name)}: {json.dumps(now[name], ensure_ascii=False)}" for name in sorted(now)]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    untrue = [f"{row['case']}: {one}" for row in rows for one in row.get("untrue", [])]
    print(*untrue, sep="\n", end="\n" if untrue else "")
    print(f"{sum(row.get('sentences', 0) for row in rows)} sentences, {len(untrue)} not implied", file=sys.stderr)
    print(ranges(rows), file=sys.stderr)
    return int(strict and (lost > 0 or bool(untrue)))


def ranges(rows):
    """How many verdicts have a range of gains, and how the measured gains of the fixes compare with them."""
    cases = {case["name"]: case for case in load()}
    still = ("deadlock", "held", "unknown", None)
    moving = [row for row in rows if row["result"] != "skipped" and row.get("said", {}).get("kind") not in still]
    judged = [row for row in moving if row["said"]["cause"] not in ("frozen control group", "stopped")]
    known = [row for row in judged if row["said"].get("gain")]
    above, below = [], []
    timed = 0
    for row in known:
        case, gain = cases[row["case"].split(".")[0]], row["said"]["gain"]
        measured = measured_gain(case)
        if row["result"] != "right" or measured is None or case.get("measure") == "first":
            continue
        timed += 1
        if gain["high"] and measured > gain["high"] * 1.15:
            above.append(f"{row['case']} ({measured:.1f} > {gain['high']:.1f})")
        if measured < gain["low"] / 1.15:
            below.append(row["case"])
    return (
        f"{len(known)} of {len(judged)} verdicts on pipelines that move data have a range of gains; of {timed} right ones whose fix was timed, the fix gains "
        f"more than the range in {len(above)}, less than it in {len(below)} (a fix may remove a part of the cause)\n"
        f"more: {', '.join(above)}"
    )


def show(row):
    truth = row["truth"]
    said = row.get("said", {})
    print(
        f"{row['result']:12} {row['family'] + '/' + row['case']:34.34} "
        f"{truth['kind'] + ' ' + truth.get('stage', ''):22.22} "
        f"{(said.get('kind') or '–') + ' ' + (said.get('at') or ''):22.22} {row['detail'][:90]}",
        file=sys.stderr,
        flush=True,
    )


def totals(rows):
    judged = [row for row in rows if row["result"] != "skipped"]
    lines = [f"{len(judged)} judged: " + ", ".join(f"{count(judged, one)} {one}" for one in RESULTS[:-1])]
    lines[0] += f"; {count(rows, 'skipped')} skipped"
    for what in ("set", "asks", "family"):
        lines.append("")
        names = sorted({one for row in rows for one in (row[what] if what == "asks" else [row[what]])})
        for name in names:
            part = [row for row in rows if name in (row[what] if what == "asks" else [row[what]])]
            lines.append(
                f"{what + ' ' if what == 'set' else ''}{name:<14} {len(part):3}  "
                + "  ".join(f"{one} {count(part, one)}" for one in RESULTS if count(part, one))
            )
    return "\n".join(lines)


def count(rows, result):
    return sum(row["result"] == result for row in rows)


def time_cases(cases, runs, lock, write):
    broken = 0
    turn = BreakableLock(lock)
    for case, place in prepared(cases, turn, True):
        label = f"{case['family']}/{case['name']}"
        try:
            if isinstance(place, str):
                raise Failure(place)
            turn.take()
            with place:
                medians, found, same = time_commands(case, place, runs, turn)
        except (Failure, subprocess.TimeoutExpired) as problem:
            print(f"{label}: {problem}", flush=True)
            broken = 1
            continue
        shown = "  ".join(
            f"{key} {value:.2f} ({' '.join(f'{one:.2f}' for one in found[key])})" for key, value in medians.items()
        )
        note = "" if same or case.get("measure") == "first" or math.inf in medians.values() else "  outputs differ"
        print(f"{label}: {shown}{note}", flush=True)
        if write:
            update(case, medians)
    turn.give()
    return broken


def prepared(cases, turn, timing):
    """Yields each case with its directory, or the reason why it has none. The lock isn't held while data is made."""
    for some in (cases[i : i + 30] for i in range(0, len(cases), 30)):
        turn.give()
        yield from zip(some, [prepare(case, timing) for case in some])


def prepare(case, timing):
    """Makes the directory of a case. Returns the directory, or the reason why it can't be made."""
    reason = missing(case, timing)
    if reason:
        return f"skipped: {reason}"
    try:
        return CaseDirectory(case)
    except (Failure, subprocess.TimeoutExpired) as problem:
        return str(problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", metavar="REGEX", default="", help="only cases whose family/name matches this regular expression"
    )
    parser.add_argument("--set", type=int, default=0, metavar="N", help="only cases of this set: 1 to 14")
    parser.add_argument("--small", action="store_true", help="only short cases with few requirements")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="run cases that aren't right again; fail if more than a quarter still aren't right",
    )
    parser.add_argument("--json", metavar="FILE", help="write all rows and counts to FILE as JSON")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--packages", action="store_true", help="print the missing packages and stop")
    parser.add_argument("--install", action="store_true", help="install missing packages first, if that is allowed")
    parser.add_argument("--time", action="store_true", help="time each pipeline and its fix, without running pipemark")
    parser.add_argument(
        "--update",
        action="store_true",
        help="with --time: write the medians into the files; with --replay: write verdicts.json",
    )
    parser.add_argument("--new", action="store_true", help="with --time: only cases that have no times yet")
    parser.add_argument("--runs", type=int, default=3, help="with --time: runs of each command [3]")
    parser.add_argument("--lock", metavar="FILE", help="hold this lock file while a pipeline runs")
    parser.add_argument("--traces", metavar="DIR", help="write a trace of each case to this directory")
    parser.add_argument("--replay", metavar="DIR", help="judge by the traces in this directory")
    parser.add_argument("--reports", metavar="DIR", help="write the whole JSON of each case to this directory")
    options = parser.parse_args()
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cases = [
        case
        for case in load()
        if re.search(options.only, f"{case['family']}/{case['name']}")
        and (case.get("small") or not options.small)
        and options.set in (0, case.get("set", 1))
    ]
    if not cases:
        sys.exit("tests/real/run.py: no case matches")
    if options.new:
        cases = [case for case in cases if "measured" not in case]
        first = os.environ.get("REAL_FIRST", "").split()
        cases.sort(key=lambda case: first.index(case["name"]) if case["name"] in first else 99)
    if options.list:
        for case in cases:
            print(f"{case['family']}/{case['name']}: {' '.join(case['asks'])}: {missing(case, False) or 'here'}")
        return 0
    if options.packages:
        print("\n".join(packages(cases)))
        return 0
    if options.install:
        install(cases)
    if options.time:
        return time_cases(cases, options.runs, options.lock, options.update)
    binary = os.path.abspath(os.environ.get("PIPEMARK", ROOT / "target/release/pipemark"))
    if not os.access(binary, os.X_OK):
        sys.exit(f"tests/real/run.py: no binary {binary}: build it, or set PIPEMARK")
    if options.reports:
        os.makedirs(options.reports, exist_ok=True)
    if options.traces:
        os.makedirs(options.traces, exist_ok=True)
        options.traces = os.path.abspath(options.traces)
    if options.replay:
        rows = replay_cases(cases, binary, options.replay)
        for row in rows:
            if row["result"] not in ("right", "skipped"):
                show(row)
        print(totals(rows).splitlines()[0], file=sys.stderr)
        if options.json:
            Path(options.json).write_text(json.dumps({"cases": rows}, indent=1, ensure_ascii=False) + "\n")
        return compare_replays(rows, Path(options.replay, "verdicts.json"), options.update, options.strict)
    rows = run_cases(cases, binary, options.small, options.lock, options.reports, options.traces)
    if options.strict:
        # Even a short burst of another program can change a verdict.
        missed = {row["case"] for row in rows if row["result"] not in ("right", "skipped")}
        again = [case for case in cases if case["name"] in missed]
        rows = [row for row in rows if row["case"] not in missed]
        rows += run_cases(again, binary, options.small, options.lock, options.reports)
    print("\n" + totals(rows), file=sys.stderr)
    if options.json:
        counts = {one: count(rows, one) for one in RESULTS}
        output = json.dumps({"counts": counts, "cases": rows}, indent=1, ensure_ascii=False)
        if options.json == "-":
            print(output)
        else:
            Path(options.json).write_text(output + "\n")
    judged = len(rows) - count(rows, "skipped")
    return int(options.strict and count(rows, "right") < judged * 3 / 4)


if __name__ == "__main__":
    sys.exit(main())
