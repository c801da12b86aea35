//! What can be done about a verdict, where it follows from what is known.

use pipemark_model::ByteSize;

use crate::figures::PipelineFigures;
use crate::report::{PipeFigures, PipelineVerdict, StageFigures, VerdictKind};
use crate::verdict::{ALSO, BOTH_WAIT, BUSY, STOPPED, bursting, gain, name, percent};

/// Programs that do more at once if asked, and how.
const PARALLEL: [(&[&str], &str, &str); 8] = [
    (&["xz"], "-T", "xz -T0 compresses with all CPUs"),
    (&["zstd"], "-T", "zstd -T0 compresses with all CPUs"),
    (&["gzip"], "", "pigz compresses with all CPUs and writes the same format"),
    (&["bzip2"], "", "lbzip2 works with all CPUs on the same format"),
    (&["sort"], "--parallel", "sort --parallel=N sorts with N threads, and -S SIZE gives it more memory"),
    (
        &["jq", "sed", "awk", "gawk", "mawk", "perl"],
        "",
        "where lines don't depend on each other, 'parallel --pipe' shares them among several of it",
    ),
    (&["zcat", "gunzip"], "", "gzip unpacks with one CPU only; zstd and lz4 unpack several times as fast"),
    (&["cat"], "", "leave cat out where it only passes on, or use 'pipemark relay'"),
];

/// Programs that compare text by the rules of a language.
const COLLATING: [&str; 6] = ["sort", "grep", "uniq", "join", "comm", "sed"];

fn unpacks(stage: &StageFigures) -> bool {
    let mut words = stage.command.split_ascii_whitespace().skip(1);
    words.any(|word| {
        word == "--decompress" || (word.starts_with('-') && !word.starts_with("--") && word[1..].contains('d'))
    })
}

fn for_stage(stage: &StageFigures, reason: &str, found: &mut Vec<String>) {
    if reason == "computing" {
        // gzip -d is gunzip.
        let name = if stage.name == "gzip" && unpacks(stage) { "gunzip" } else { stage.name.as_str() };
        for (names, has, text) in PARALLEL {
            let has = !has.is_empty() && stage.command.contains(has);
            let compresses = ["xz", "zstd", "bzip2"].contains(&name);
            if names.contains(&name) && !has && !(compresses && unpacks(stage)) {
                found.push(text.to_owned());
            }
        }
        if COLLATING.contains(&stage.name.as_str()) && collates(stage.pid) {
            found.push(format!("LC_ALL=C {} compares bytes, which is faster where that will do", stage.name));
        }
    }
    if stage.waiting_for_cpu > ALSO {
        let text = "other programs, or stages on the same CPUs, take its time: place it on a CPU of its own (taskset)";
        found.push(text.to_owned());
    }
}

/// Whether a process runs in a language with rules of its own.
fn collates(pid: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let value = |name: &str| {
        let mut all = environment.split(|&byte| byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
        all.find_map(|one| one.strip_prefix(name)?.strip_prefix('=')).filter(|value| !value.is_empty())
    };
    let language = value("LC_ALL").or_else(|| value("LC_COLLATE")).or_else(|| value("LANG"));
    language.is_some_and(|language| !["C", "POSIX", "C.UTF-8"].contains(&language))
}

/// A pipe that is large already doesn't get better by that.
fn can_grow(pipe: &PipeFigures) -> bool {
    pipe.capacity.is_none_or(|capacity| capacity < 1 << 20)
}

fn at_most(bound: Option<f64>) -> String {
    bound.map(|bound| format!(", {bound:.1} times as fast at most")).unwrap_or_default()
}

/// Sentences, the best first.
pub fn advice(verdict: &PipelineVerdict, figures: &PipelineFigures) -> Vec<String> {
    let mut found = Vec::new();
    let stage = verdict.stage.and_then(|number| figures.stages.get(number - 1));
    let pipe = verdict.pipe.and_then(|number| figures.pipes.get(number - 1));
    match verdict.kind {
        VerdictKind::Stage if verdict.reason == "stopped" => {
            let is_stopped = |one: &&StageFigures| one.stopped > STOPPED || Some(one.number) == verdict.stage;
            let pids: Vec<String> = figures.stages.iter().filter(is_stopped).map(|one| one.pid.to_string()).collect();
            found.push(format!("'kill -CONT {}', or 'fg' in its shell, lets it go on", pids.join(" ")));
        }
        VerdictKind::Stage => {
            if let Some(stage) = stage {
                for_stage(stage, &verdict.reason, &mut found);
                if let Some((pipe, _)) = bursting(figures)
                    && stage.busy < BUSY
                    && can_grow(pipe)
                {
                    found.push(format!(
                        "a larger pipe from {} to {} may help too{}: its writer waits for room {} of the time, its reader for \
                         data {}, and 'pipemark tune' tries it while it runs",
                        name(figures, pipe.from),
                        name(figures, pipe.to),
                        at_most(gain(figures, pipe, stage)),
                        percent(pipe.writer_waits),
                        percent(pipe.reader_waits)
                    ));
                }
            }
        }
        VerdictKind::Pipe if pipe.is_none_or(can_grow) => {
            let most = at_most(verdict.bound);
            found.push(format!(
                "a larger pipe lets both work at once{most}: 'pipemark tune' tries it while it runs, 'pipemark relay --capacity 1m' between the two keeps it"
            ));
        }
        VerdictKind::Cpu => {
            let bound =
                figures.stages.iter().map(|stage| stage.cpus.len()).filter(|&count| count > 0).min().unwrap_or(0);
            let all = std::thread::available_parallelism().map_or(0, usize::from);
            found.push(if bound < all {
                format!("some stages are bound to {bound} of {all} CPUs (taskset, cpuset): let them use the others too")
            } else {
                "more CPUs, or fewer threads of other stages, would help".to_owned()
            });
        }
        VerdictKind::Throttled => found.push("raise the limit of the control group (cpu.max)".to_owned()),
        VerdictKind::Pipe | VerdictKind::Balanced | VerdictKind::Unknown => {}
    }
    let page = rustix::param::page_size() as u64;
    let small = |pipe: &&PipeFigures| {
        pipe.capacity.is_some_and(|capacity| capacity <= 2 * page)
            && pipe.writer_waits.min(pipe.reader_waits) >= BOTH_WAIT
    };
    if let Some(pipe) = figures.pipes.iter().find(small) {
        found.push(format!(
            "the pipe from {} to {} has {}, not the usual {}: a program made it so, or this user's pipes have reached \
             /proc/sys/fs/pipe-user-pages-soft",
            name(figures, pipe.from),
            name(figures, pipe.to),
            ByteSize(pipe.capacity.unwrap_or(0)),
            ByteSize(16 * page)
        ));
    }
    found
}
