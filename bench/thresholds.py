#!/usr/bin/env python3
"""Measures how much the verdicts of `why` depend on each of its numbers.

    bench/thresholds.py                vary each number; print how many recorded verdicts change
    bench/thresholds.py --json FILE    also write the counts
    bench/thresholds.py --comments     also write them into the comment of each number

Each `const` of the causes, the model, the judge and the figures is varied alone, by the factors below, in a copy of the crate
under build/, where it is a variable. All pipelines recorded in tests/real/traces are then judged again. A verdict is kept if its
kind, its stage or pipe, and its cause are the same. Only the pipelines whose verdict is right now count (verdicts.json). That
none changes shows that none hangs on the exact number, or that no recorded pipeline needs it.

CARGO_TARGET_DIR, if set, is where the copy is built."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "crates/pipemark-causes/src"
COPY = ROOT / "build/thresholds"
TRACES = ROOT / "tests/real/traces"
FILES = [
    *sorted(CRATE.glob("causes/*.rs")),
    *(CRATE / f"{name}.rs" for name in ("figures", "judge", "model", "phases", "seen_stage")),
]
FACTORS = [0.5, 0.8, 1.25, 2.0]
CONSTANT = re.compile(r"^( *)((?:pub )?)const (\w+): (f64|u32|u64) = ([^;]+);", re.M)

VARIED = """//! Numbers that a program varies.
use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub struct Varied<T: 'static> { pub name: &'static str, pub value: T, set: Mutex<Option<&'static T>>, known: AtomicBool }
pub static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
pub static NOW: Mutex<Option<(String, f64)>> = Mutex::new(None);

impl<T> Varied<T> {
    pub const fn new(name: &'static str, value: T) -> Varied<T> {
        Varied { name, value, set: Mutex::new(None), known: AtomicBool::new(false) }
    }
}

pub trait Scale { fn scale(&self, factor: f64) -> Self; }
impl Scale for f64 { fn scale(&self, factor: f64) -> f64 { self * factor } }
impl Scale for u32 { fn scale(&self, factor: f64) -> u32 { (f64::from(*self) * factor).round() as u32 } }
impl Scale for u64 { fn scale(&self, factor: f64) -> u64 { (*self as f64 * factor).round() as u64 } }

impl<T: Scale> Deref for Varied<T> {
    type Target = T;
    fn deref(&self) -> &T {
        if !self.known.swap(true, Relaxed) {
            NAMES.lock().unwrap().push(self.name);
        }
        let now = NOW.lock().unwrap();
        match &*now {
            Some((name, factor)) if name == self.name => {
                let mut set = self.set.lock().unwrap();
                let value: &'static T = Box::leak(Box::new(self.value.scale(*factor)));
                *set = Some(value);
                value
            }
            _ => &self.value,
        }
    }
}
"""

PROGRAM = """//! Judges all recordings with each number varied.
use pipemark_causes::{PipelineEvidence, PipelineReport, trace, varied};

fn judged(all: &[(String, PipelineEvidence)]) -> Vec<String> {
    let of = |evidence: &PipelineEvidence| {
        let verdict = PipelineReport::of(evidence).verdict;
        format!("{:?} {:?} {:?} {}", verdict.kind, verdict.stage, verdict.pipe, verdict.cause)
    };
    all.iter().map(|(_, evidence)| of(evidence)).collect()
}

fn main() {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let factors: Vec<f64> = paths.remove(0).split(',').map(|one| one.parse().unwrap()).collect();
    let read = |path: &String| (path.clone(), trace::read(&mut std::fs::File::open(path).unwrap()).unwrap());
    let all: Vec<_> = paths.iter().map(read).collect();
    let now = judged(&all);
    let names = varied::NAMES.lock().unwrap().clone();
    for name in names {
        for &factor in &factors {
            *varied::NOW.lock().unwrap() = Some((name.to_owned(), factor));
            let changed = judged(&all).iter().zip(&now).filter(|(one, other)| one != other).count();
            println!("{name}\\t{factor}\\t{changed}");
        }
    }
}
"""


def copy_with_variables():
    """A copy of the workspace in which the numbers are variables."""
    shutil.rmtree(COPY, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name.startswith(("crates/", "Cargo", ".cargo", "docs/")) and (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, COPY / name)
    source = COPY / "crates/pipemark-causes/src"
    shared = {}
    for file in FILES:
        for _, public, name, *_ in CONSTANT.findall(file.read_text()):
            if public:
                shared[name] = file
    for file in [path for path in source.rglob("*.rs") if path.name != "tests.rs"]:
        original = CRATE / file.relative_to(source)
        text = file.read_text()
        head, marker, tests = text.partition("#[cfg(test)]")
        if original in FILES:
            own = {name for *_, name, _, _ in CONSTANT.findall(head)}
        else:
            own = set()
        imported = {
            name
            for name in shared
            for line in re.findall(r"^use [^;]*;", head, re.M)
            if re.search(rf"\b{name}\b", line)
        }
        lines = []
        in_use = False
        for line in head.splitlines(keepends=True):
            in_use = in_use or line.lstrip().startswith(("use ", "pub use "))
            found = CONSTANT.match(line)
            if found and original in FILES:
                indent, public, name, kind, value = found.groups()
                label = f"{original.relative_to(CRATE)} {name}"
                line = f'{indent}{public}static {name}: crate::varied::Varied<{kind}> = crate::varied::Varied::new("{label}", {value});\n'
            elif not in_use and not line.lstrip().startswith("//"):
                for name in own | imported:
                    line = re.sub(rf"(?<![\w:`]){name}\b", f"(*{name})", line)
            if in_use and ";" in line:
                in_use = False
            lines.append(line)
        file.write_text("".join(lines) + marker + tests)
    library = source / "lib.rs"
    library.write_text(library.read_text() + "\npub mod varied;\n")
    (source / "varied.rs").write_text(VARIED)
    examples = COPY / "crates/pipemark-causes/examples"
    examples.mkdir(exist_ok=True)
    (examples / "thresholds.rs").write_text(PROGRAM)


def measure():
    """For each number, how many right verdicts change at each factor."""
    copy_with_variables()
    verdicts = json.loads((TRACES / "verdicts.json").read_text())
    right = [name for name, row in verdicts.items() if (row if isinstance(row, str) else row["result"]) == "right"]
    traces = [str(path) for path in sorted(TRACES.glob("*.trace")) if path.stem in right]
    fast = ["--config", "profile.dev.package.pipemark-causes.opt-level=2"]
    build = ["cargo", *fast, "build", "--locked", "-p", "pipemark-causes", "--example", "thresholds"]
    environment = os.environ | {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
    subprocess.run(build, cwd=COPY, check=True, env=environment)
    program = Path(environment["CARGO_TARGET_DIR"], "debug/examples/thresholds")
    run = subprocess.run([program, ",".join(map(str, FACTORS)), *traces], capture_output=True, text=True, check=True)
    changed = {}
    for line in run.stdout.splitlines():
        name, factor, count = line.split("\t")
        changed.setdefault(name, {})[float(factor)] = int(count)
    return changed, len(traces)


def comment(counts, verdicts):
    """The source of a number, as its comment has it."""
    if not counts:
        return "No recorded verdict depends on it (bench/thresholds.py)."
    changes = [f"by {factor:g} it changes {count}" for factor, count in sorted(counts.items()) if count]
    if not changes:
        changes = [f"by {FACTORS[0]:g} to {FACTORS[-1]:g} it changes none"]
    return f"Multiplied {', '.join(changes)} of {verdicts} recorded verdicts (bench/thresholds.py)."


def write_comments(changed, verdicts):
    for file in FILES:
        label = lambda name: f"{file.relative_to(CRATE)} {name}"
        text = re.sub(r"^ *///.*\(bench/thresholds\.py\)\.\n", "", file.read_text(), flags=re.M)

        def with_source(found):
            return f"{found[1]}/// {comment(changed.get(label(found[3])), verdicts)}\n{found[0]}"

        file.write_text(CONSTANT.sub(with_source, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the counts")
    parser.add_argument("--comments", action="store_true", help="write the counts into the comments")
    options = parser.parse_args()
    changed, count = measure()
    if options.comments:
        write_comments(changed, count)
    if options.json:
        Path(options.json).write_text(json.dumps({"verdicts": count, "changed": changed}, indent=1) + "\n")
    print(f"{count} right verdicts; how many change if a number is multiplied")
    print(f"{'':44}" + "".join(f"{factor:>7g}" for factor in FACTORS))
    for name, counts in sorted(changed.items()):
        print(f"{name:44}" + "".join(f"{counts[factor]:>7}" for factor in FACTORS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
