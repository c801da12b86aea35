//! What stands above the tables, in words: the machine, how it was measured, what was proven, whether it is complete.

use crate::model::{Document, Nanos, Record, Throughput, Verify};

use super::experiment::{margin, margin_percent};
use super::text::{counted, neutral};

/// The machine in a line.
pub(super) fn host(document: &Document) -> Vec<String> {
    let host = &document.host;
    let kernel = neutral(host.kernel.split(" #").next().unwrap_or_default());
    let kernel = if kernel.starts_with("Linux") { kernel } else { format!("Linux {kernel}") };
    let underneath = match (&host.virtualization, host.virtualized) {
        (Some(name), true) => format!("virtualised ({})", neutral(name)),
        (None, true) => "virtualised".to_owned(),
        (Some(name), false) => format!("in {}", neutral(name)),
        (None, false) => "not virtualised".to_owned(),
    };
    vec![neutral(&host.cpu), counted(usize::try_from(host.cpus).unwrap_or(usize::MAX), "CPU"), kernel, underneath]
}

/// How it was measured: order, seed, time, what was proven, and the limit that figures are held against.
pub(super) fn method(document: &Document) -> Vec<String> {
    let rounds = document.trials.iter().flat_map(|r| &r.samples).map(|s| s.round as usize + 1).max().unwrap_or(0);
    let several = document.trials.iter().filter(|record| !record.samples.is_empty()).count() > 1;
    let order = if several { ", trials interleaved in an order drawn from" } else { "," };
    let mut parts = vec![
        format!("{}{order} seed {}", counted(rounds, "round"), document.seed),
        format!("{} in all", Nanos(document.elapsed_ns)),
        proof(document),
    ];
    if let Some(copy) = &document.memory_copy {
        let margin =
            margin(copy).map_or_else(|| format!("n={}", copy.runs), |share| format!("±{} %", margin_percent(share)));
        parts.push(format!("memory copy {} {margin}", Throughput(copy.median)));
    }
    parts
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
    let mut parts = Vec::new();
    for (level, done) in levels {
        let count =
            ran.iter().filter(|r| r.verify == level && (r.verified == Some(true) || level == Verify::None)).count();
        if count > 0 {
            parts.push(format!("{done} in {}", counted(count, "trial")));
        }
    }
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
