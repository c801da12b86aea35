//! The text around the tables of a document: the machine, the method, the verification, whether the measurement is
//! complete, and why a record has no figures.

use pipemark_model::{
    Document, Estimate, Job, Key, MAX_SPAN, Nanos, Record, Status, Throughput, Unit, Verify, between, counted, neutral,
    spans_too_much,
};

/// The machine: a list of facts as text.
pub(super) fn host(document: &Document) -> Vec<String> {
    let host = &document.host;
    let kernel = neutral(host.kernel.split(" #").next().unwrap_or_default());
    if host.cpu.is_empty() && kernel.is_empty() {
        return Vec::new();
    }
    let kernel = if kernel.starts_with("Linux") { kernel } else { format!("Linux {kernel}") };
    let underneath = match (&host.virtualization, host.virtualized) {
        (Some(name), true) => format!("virtualised ({name})"),
        (None, true) => "virtualised".to_owned(),
        (Some(name), false) => format!("in {name}"),
        (None, false) => "not virtualised".to_owned(),
    };
    vec![host.cpu.clone(), counted(usize::try_from(host.cpus).unwrap_or(usize::MAX), "CPU"), kernel, underneath]
}

/// The machine in brief, without filler words: `vm · AMD EPYC, 2 CPUs · Linux 6.18 · KVM`.
pub(super) fn machine(document: &Document) -> Vec<String> {
    let host = &document.host;
    let cpu = ["(R)", "(TM)", " Processor", " CPU"].iter().fold(host.cpu.clone(), |cpu, noise| cpu.replace(noise, ""));
    let kernel = host.kernel.split([' ', '-']).next().unwrap_or_default();
    if cpu.is_empty() && kernel.is_empty() {
        return vec![host.name.clone()];
    }
    let cpus = counted(usize::try_from(host.cpus).unwrap_or(usize::MAX), "CPU");
    let mut words = vec![host.name.clone(), format!("{cpu}, {cpus}"), format!("Linux {kernel}")];
    words.extend(host.virtualization.clone());
    words
}

/// The start of a measurement, to the second: `2026-01-31 12:00:00`.
pub(super) fn time(started: &str) -> String {
    started.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// Whether the job is a default pipe: default capacity, write and read with 64 KiB blocks, two cores.
pub(super) fn is_plain(job: &Job) -> bool {
    let plain = Job::default().settings();
    let keys = Key::iter().filter(|key| !key.is_volume() && *key != Key::Verify);
    keys.filter(|key| *key != Key::Mode).all(|key| job.value(key) == plain.effective(key)) && !job.is_round_trip()
}

/// The method: order, seed, time, verification, and the memory-copy limit that figures are compared with.
pub(super) fn method(document: &Document) -> Vec<String> {
    if document.is_imported() {
        return vec!["measured by another tool: only what its file says is shown".to_owned()];
    }
    let rounds = document.trials.iter().flat_map(|r| &r.samples).map(|s| s.round as usize + 1).max().unwrap_or(0);
    let several = document.trials.iter().filter(|record| !record.samples.is_empty()).count() > 1;
    let order = if several { ", trials interleaved in an order drawn from" } else { "," };
    let mut parts = vec![
        format!("{}{order} seed {}", counted(rounds, "round"), document.seed),
        format!("{} in all", Nanos(document.elapsed_ns)),
        verification(document),
    ];
    parts.extend(memory_copy(document));
    parts
}

/// The throughput of the memory copy within one process, as text; `None` if it wasn't measured.
pub(super) fn memory_copy(document: &Document) -> Option<String> {
    let copy = document.memory_copy.as_ref()?;
    let ends = interval(copy, |end| Unit::BytesPerSecond.show(end));
    Some(format!("memory copy {} ({ends})", Throughput(copy.median)))
}

/// The number of trials at each level of verification.
fn verification(document: &Document) -> String {
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

/// A sentence if the measurement was interrupted; otherwise `None`.
pub(super) fn partial(document: &Document) -> Option<String> {
    let unmeasured = document.requested().filter(|record| record.estimate.is_none()).count();
    let fewest = document.requested().map(|record| record.samples.len()).min().unwrap_or(0);
    document.partial.then(|| match unmeasured {
        0 => format!("interrupted: fewer runs than planned, at least {fewest} of each trial."),
        _ => format!(
            "interrupted: {unmeasured} of {} not measured; the others may have fewer runs than planned.",
            counted(document.requested().count(), "trial")
        ),
    })
}

/// The reason why a record has no figures: `skipped: why`. `None` if it has figures.
pub(super) fn missing(record: &Record) -> Option<String> {
    let why = |outcome: &str| match record.reason.as_deref().map(neutral).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{outcome}: {reason}"),
        None => outcome.to_owned(),
    };
    match record.status {
        // A trial whose data failed verification has no throughput. If the record has a reason, the reason already says
        // that verification failed.
        _ if record.verified == Some(false) => {
            let said = record.reason.as_deref().is_some_and(|reason| reason.contains("did not verify"));
            Some(if said { why("failed") } else { why("did not verify") })
        }
        Status::Skipped => Some(why("skipped")),
        Status::Failed => Some(why("failed")),
        Status::Ok if record.estimate.is_none() => Some(why("not measured")),
        Status::Ok => None,
    }
}

/// Whether the record's figure is usable and the trial moves bytes between processes. Trials that move no bytes aren't
/// ranked with those that do.
pub(super) fn ranked(record: &Record) -> bool {
    record.job.link().transfers() && record.measured().is_some() && missing(record).is_none()
}

/// Both ends of the interval, or `n=` and the number of runs if there are too few for an interval. The ends of an
/// interval that says nothing aren't shown.
pub(super) fn interval(estimate: &Estimate, show: impl Fn(f64) -> String) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) if spans_too_much(low, high) => format!("over {MAX_SPAN}× wide"),
        (Some(low), Some(high)) => between(&show(low), &show(high)),
        _ => format!("n={}", estimate.runs),
    }
}
