//! The words that findings share: settings, ratios, places, and what the reader saw of the bytes.

use serde_json::{Value, json};

use super::Subject;
use super::contrast::Contrast;
use crate::model::{
    self, ByteSize, Capacity, Ends, Figure, Job, Key, Mode, Nanos, Throughput, WaitPolicy, phrase, placed, three_digits,
};

/// `write → read`.
pub(super) fn methods(ends: &Ends) -> String {
    format!("{} → {}", ends.send, ends.recv)
}

/// `write → read across two cores (blocks of 64 KiB, capacity 1 MiB)`: what was set, without the keys in `omit`. What
/// is as by default is left out, but for methods, place and block.
pub(super) fn setting(job: &Job, omit: &[Key]) -> String {
    let Some(ends) = job.ends() else { return job.id() };
    let settings = job.settings();
    let said = |key: Key| !omit.contains(&key);
    // What is as usual is not said.
    let unusual = |key: Key| settings.get(key).filter(|value| said(key) && key.usual().as_ref() != Some(value));
    let mut main = Vec::new();
    if said(Key::Send) && said(Key::Recv) {
        main.push(methods(ends));
    }
    if said(Key::Place) {
        main.push(placed(ends.place));
    }
    let mut details = Vec::new();
    let mut detail =
        |key: Key, words: &dyn Fn(&model::Value) -> String| details.extend(unusual(key).as_ref().map(words));
    detail(Key::Link, &model::Value::to_string);
    if said(Key::Block) {
        details.push(format!("{} of {}", pieces(job), ends.block));
        details.extend(ends.read_block.map(|size| format!("read by {size}")));
    }
    let mut detail =
        |key: Key, words: &dyn Fn(&model::Value) -> String| details.extend(unusual(key).as_ref().map(words));
    detail(Key::Capacity, &phrase);
    detail(Key::Buffer, &|size| format!("socket buffers {size}"));
    detail(Key::Pages, &phrase);
    detail(Key::Align, &|bytes| format!("{bytes} bytes off a page"));
    detail(Key::Wait, &|_| waiting(ends.wait).to_owned());
    detail(Key::Pairs, &phrase);
    if job.chain().is_some() {
        detail(Key::Stage, &|stage| format!("through '{stage}'"));
    }
    detail(Key::WriteDelay, &|time| format!("{time} of work per write"));
    detail(Key::ReadDelay, &|time| format!("{time} of work per read"));
    detail(Key::Rate, &|rate| format!("{rate} messages per second"));
    detail(Key::Gap, &|gap| format!("a gap of {gap} between"));
    if ends.verify.looks() {
        detail(Key::Verify, &phrase);
    }
    match (main.is_empty(), details.is_empty()) {
        (true, _) => details.join(", "),
        (false, true) => main.join(" "),
        (false, false) => format!("{} ({})", main.join(" "), details.join(", ")),
    }
}

/// What streams and conversations are made of.
pub(super) fn pieces(job: &Job) -> &'static str {
    match job.mode() {
        Mode::Throughput => "blocks",
        Mode::Latency => "messages",
    }
}

/// `across two cores (spinning)`: what several mechanisms have in common, without the size of a piece.
pub(super) fn situation(job: &Job) -> String {
    setting(job, &[Key::Link, Key::Send, Key::Block])
}

/// `shm in-place across two cores (messages of 8 B)`.
pub(super) fn told(job: &Job, omit: &[Key]) -> String {
    let omit = [&[Key::Link, Key::Send], omit].concat();
    format!("{} {}", job.ends().map(Ends::mechanism).unwrap_or_default(), setting(job, &omit)).trim_end().to_owned()
}

/// The first letter of a sentence.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Nanoseconds in the unit people use for them, below a microsecond with three digits.
pub(super) fn time(ns: f64) -> String {
    if ns < 1000.0 { format!("{} ns", three_digits(ns)) } else { Nanos(ns.round() as u64).to_string() }
}

/// What the trial is told by: `3.05 GiB/s`, or the median round trip `4.56 µs`.
pub(super) fn headline(subject: Subject) -> String {
    subject.round_trip().map_or_else(|| rate(subject), |trip| time(trip.median))
}

pub(super) fn waiting(wait: WaitPolicy) -> &'static str {
    match wait {
        WaitPolicy::Block => "blocking",
        WaitPolicy::Poll => "polling",
        WaitPolicy::Spin => "spinning",
    }
}

/// What the reader saw of the bytes; moving a page reference is not reading a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// Not even in its memory.
    Nothing,
    /// In its memory, not looked at.
    Arrived,
    /// Looked at.
    All,
}

impl Seen {
    pub fn of(ends: &Ends) -> Seen {
        match (ends.recv.touches(), ends.touched()) {
            (false, _) => Seen::Nothing,
            (true, false) => Seen::Arrived,
            (true, true) => Seen::All,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Seen::Nothing => "the bytes never reached the reader's memory",
            Seen::Arrived => "the bytes reached the reader's memory, and it did not look at them",
            Seen::All => "the reader looked at every byte",
        }
    }
}

/// The capacity that the kernel granted, or where that is not known the one asked for.
pub(super) fn granted(subject: Subject) -> Option<u64> {
    let asked = match subject.ends().capacity {
        Capacity::Bytes(ByteSize(bytes)) => Some(bytes),
        Capacity::Named(_) => None,
    };
    subject.record.samples.iter().find_map(|sample| sample.capacity_granted).or(asked)
}

/// `1 MiB`, or `default` where its size is not known.
pub(super) fn capacity(subject: Subject) -> String {
    granted(subject).map_or_else(|| subject.ends().capacity.to_string(), |bytes| ByteSize(bytes).to_string())
}

/// `1.52 times`.
pub(super) fn times(ratio: f64) -> String {
    format!("{} times", three_digits(ratio))
}

/// `(1.48 to 1.55)`.
pub(super) fn interval(contrast: &Contrast) -> String {
    format!("({} to {})", three_digits(contrast.low), three_digits(contrast.high))
}

/// `3.05 GiB/s`.
pub(super) fn rate(subject: Subject) -> String {
    Throughput(subject.throughput()).to_string()
}

/// `64 B and 1 KiB to 64 KiB`: those of `all` (ascending) that are in `some`, neighbours drawn together.
pub(super) fn spans(some: &[ByteSize], all: &[ByteSize]) -> String {
    let mut spans: Vec<(ByteSize, ByteSize)> = Vec::new();
    let mut before = false;
    for size in all {
        let inside = some.contains(size);
        match spans.last_mut() {
            Some(span) if inside && before => span.1 = *size,
            _ if inside => spans.push((*size, *size)),
            _ => {}
        }
        before = inside;
    }
    let words = |(first, last): (ByteSize, ByteSize)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    let spans: Vec<String> = spans.into_iter().map(words).collect();
    match spans.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => spans.join(""),
    }
}

/// A trial's figures, as evidence.
pub(super) fn figures(subject: Subject) -> Value {
    match subject.round_trip() {
        Some(trip) => json!({
            "trial": subject.record.id,
            "p50": trip,
            "cpu_seconds_per_million": subject.estimates.get(Figure::CpuSecondsPerMillion),
        }),
        None => json!({
            "trial": subject.record.id,
            "throughput": subject.estimates.throughput(),
            "cpu_seconds_per_gib": subject.estimates.cpu_seconds_per_gib(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixture::record;

    #[test]
    fn settings_are_told_by_what_is_not_usual() {
        let words = |params: &[(&str, &str)], omit: &[Key]| setting(&record("e", params, 1.0, &[1.0]).job, omit);
        assert_eq!(words(&[], &[]), "write → read across two cores (blocks of 64 KiB)");
        assert_eq!(words(&[], &[Key::Block]), "write → read across two cores");
        assert_eq!(words(&[], &[Key::Block, Key::Place, Key::Send]), "");
        assert_eq!(
            words(&[("wait", "spin"), ("pages", "huge"), ("capacity", "1m"), ("place", "3:3")], &[]),
            "write → read on CPU 3 (blocks of 64 KiB, capacity 1 MiB, huge pages, spinning)"
        );
        let spoken = [("mode", "latency"), ("link", "tcp"), ("gap", "1ms"), ("buffer", "64k")];
        assert_eq!(
            words(&spoken, &[]),
            "write → read across two cores (tcp, messages of 64 KiB, socket buffers 64 KiB, a gap of 1.00 ms between)"
        );
        let ring = record("e", &[("link", "shm"), ("send", "in-place"), ("recv", "in-place")], 1.0, &[1.0]);
        assert_eq!(told(&ring.job, &[]), "shm in-place across two cores (blocks of 64 KiB)");
        assert_eq!(situation(&ring.job), "across two cores");
    }

    #[test]
    fn neighbours_are_drawn_together() {
        let all = [64, 256, 1024, 4096, 16384].map(ByteSize);
        let some = |indices: &[usize]| indices.iter().map(|&i| all[i]).collect::<Vec<_>>();
        assert_eq!(spans(&some(&[0, 2, 3, 4]), &all), "64 B and 1 KiB to 16 KiB");
        assert_eq!(spans(&some(&[1]), &all), "256 B");
        assert_eq!(spans(&[], &all), "");
    }
}
