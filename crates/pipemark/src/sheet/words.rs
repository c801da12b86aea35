//! What stands around the tables of a document, in words: the machine, how it was measured, what was proven, whether it is
//! complete, what marks mean.

use super::{Note, Style, counted, neutral};
use crate::model::{Document, Estimate, LinkKind, Nanos, Record, Status, Throughput, Verify};

/// The machine.
pub(super) fn host(document: &Document) -> Vec<String> {
    let host = &document.host;
    let kernel = neutral(host.kernel.split(" #").next().unwrap_or_default());
    let kernel = if kernel.starts_with("Linux") { kernel } else { format!("Linux {kernel}") };
    let underneath = match (&host.virtualization, host.virtualized) {
        (Some(name), true) => format!("virtualised ({name})"),
        (None, true) => "virtualised".to_owned(),
        (Some(name), false) => format!("in {name}"),
        (None, false) => "not virtualised".to_owned(),
    };
    vec![host.cpu.clone(), counted(usize::try_from(host.cpus).unwrap_or(usize::MAX), "CPU"), kernel, underneath]
}

/// How it was measured: order, seed, time, what was proven, and the limit that figures are compared with.
pub(super) fn method(document: &Document) -> Vec<String> {
    let rounds = document.trials.iter().flat_map(|r| &r.samples).map(|s| s.round as usize + 1).max().unwrap_or(0);
    let several = document.trials.iter().filter(|record| !record.samples.is_empty()).count() > 1;
    let order = if several { ", trials interleaved in an order drawn from" } else { "," };
    let mut parts = vec![
        format!("{}{order} seed {}", counted(rounds, "round"), document.seed),
        format!("{} in all", Nanos(document.elapsed_ns)),
        proof(document),
    ];
    parts.extend(memory_copy(document));
    parts
}

/// Copying within one process.
pub(super) fn memory_copy(document: &Document) -> Option<String> {
    let copy = document.memory_copy.as_ref()?;
    Some(format!("memory copy here {} {}", Throughput(copy.median), margin_or_runs(copy)))
}

/// What was proven about the bytes, by level.
fn proof(document: &Document) -> String {
    let ran: Vec<&Record> = document.trials.iter().filter(|record| !record.samples.is_empty()).collect();
    let levels = [
        (Verify::Full, "every byte compared"),
        (Verify::Xor, "byte counts and XOR checked"),
        (Verify::Count, "byte counts checked"),
        (Verify::None, "nothing checked"),
    ];
    let proven =
        |level| ran.iter().filter(|r| r.verify == level && (r.verified == Some(true) || level == Verify::None)).count();
    let levels = levels.into_iter().map(|(level, done)| (proven(level), done)).filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = levels.map(|(count, done)| format!("{done} in {}", counted(count, "trial"))).collect();
    let wrong = ran.iter().filter(|r| r.verified == Some(false)).count();
    if wrong > 0 {
        parts.push(format!("{} did not verify", counted(wrong, "trial")));
    }
    parts.join(", ")
}

/// Says that the measurement was cut short, where it was.
pub(super) fn partial(document: &Document) -> Option<String> {
    let unmeasured = document.trials.iter().filter(|record| record.estimate.is_none()).count();
    document.partial.then(|| match unmeasured {
        0 => "interrupted: partial. Every trial has figures, but from fewer runs than were planned.".to_owned(),
        _ => format!(
            "interrupted: partial. {unmeasured} of {} could not run or was not reached; the others may have had fewer runs \
             than were planned.",
            counted(document.trials.len(), "trial")
        ),
    })
}

/// What happened to the bytes at the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touched {
    /// Each was looked at.
    Read,
    /// They were in the sink's memory and not looked at.
    Copied,
    /// They never were in the sink's memory.
    Unseen,
}

impl Touched {
    /// What happened to the bytes of this trial.
    pub(super) fn of(record: &Record) -> Touched {
        let arrives = record.job.ends().is_none_or(|ends| ends.recv.touches()) && record.job.link() != LinkKind::Null;
        match (record.touched, arrives) {
            (true, _) => Touched::Read,
            (false, true) => Touched::Copied,
            (false, false) => Touched::Unseen,
        }
    }

    pub(super) fn mark(self) -> &'static str {
        match self {
            Touched::Read => "●",
            Touched::Copied => "◐",
            Touched::Unseen => "○",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Touched::Read => "the sink looked at every byte",
            Touched::Copied => "the bytes reached the sink's memory, and it did not look at them",
            Touched::Unseen => "the bytes never reached the sink's memory",
        }
    }
}

/// The legend of the marks that a document's tables use.
pub(super) fn legend(document: &Document) -> Vec<Note> {
    let measured = || document.trials.iter().filter(|record| record.estimate.is_some());
    let mut marks: Vec<Touched> = measured().filter(|record| record.job.lines().is_none()).map(Touched::of).collect();
    marks.sort_unstable();
    marks.dedup();
    let mut legend: Vec<Note> =
        marks.into_iter().map(|mark| Note::new(mark.mark(), Style::Plain, mark.meaning())).collect();
    if measured().any(|record| record.estimate.as_ref().is_some_and(|e| margin(e.headline()).is_none())) {
        let text = "too few runs for an interval: take such a figure as a hint";
        legend.push(Note::new("n=…", Style::Plain, text));
    }
    legend
}

/// How the record ended when it has no figures to show: `skipped: why`.
pub(super) fn missing(record: &Record) -> Option<String> {
    let why = |outcome: &str| match record.reason.as_deref().map(neutral).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{outcome}: {reason}"),
        None => outcome.to_owned(),
    };
    match record.status {
        // Data that did not verify has no speed.
        _ if record.verified == Some(false) => Some(why("did not verify")),
        Status::Skipped => Some(why("skipped")),
        Status::Failed => Some(why("failed")),
        Status::Ok if record.estimate.is_none() => Some(why("not measured")),
        Status::Ok => None,
    }
}

/// Whether it is measured and moves bytes from one process to another: what moves nothing is not ranked with what does.
pub(super) fn ranked(record: &Record) -> bool {
    record.job.link().transfers() && record.estimate.is_some() && missing(record).is_none()
}

/// Half the interval's width as a share of the median: the larger half, because a bootstrap interval is lopsided.
fn margin(estimate: &Estimate) -> Option<f64> {
    let (low, high) = (estimate.low?, estimate.high?);
    (estimate.median > 0.0).then(|| (high - estimate.median).max(estimate.median - low).max(0.0) / estimate.median)
}

/// A margin in per cent, rounded up, as ±0.0 % would promise too much; the number of runs where they are too few for one.
pub(super) fn margin_or_runs(estimate: &Estimate) -> String {
    let Some(share) = margin(estimate) else { return format!("n={}", estimate.runs) };
    // A tenth of a millionth of a per cent is the arithmetic's own.
    let percent = (share * 1000.0 - 1e-6).ceil().max(1.0) / 10.0;
    match percent {
        p if p < 10.0 => format!("±{p:.1} %"),
        p if p <= 999.0 => format!("±{:.0} %", p.ceil()),
        // How much more does not matter, and would make the column wide.
        _ => "±>999 %".to_owned(),
    }
}
