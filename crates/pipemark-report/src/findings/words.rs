//! Text used only in findings: settings, sizes and lists.

use pipemark_model::{ByteSize, Capacity, Ends, Job, Key, Unit, Value, WaitPolicy, Work, phrase, placement_phrase};

use crate::findings::MeasuredTrial;

/// The settings shown in brackets, in this order.
const DETAILS: [Key; 16] = {
    use Key::*;
    [
        Link, Block, ReadBlock, Capacity, Buffer, Pages, Align, Wait, Pairs, Writers, Readers, Stage, WriteDelay,
        ReadDelay, Rate, Gap,
    ]
};

/// The settings of a job as text, without the keys in `omit`: `write → read across two cores (blocks of 64 KiB,
/// capacity 1 MiB)`. Defaults are omitted, except for methods, place and block.
pub(super) fn setting(job: &Job, omit: &[Key]) -> String {
    let Some(ends) = job.ends() else { return job.id() };
    let settings = job.settings();
    let is_named = |key: &Key| !omit.contains(key);
    let mut main = Vec::new();
    if is_named(&Key::Send) && is_named(&Key::Recv) {
        main.push(format!("{} → {}", ends.send, ends.recv));
    }
    if is_named(&Key::Place) {
        main.push(placement_phrase(ends.place));
    }
    let verify = ends.verify.reads().then_some(Key::Verify);
    let words = |key: Key| {
        let value =
            settings.get(key).filter(|value| key == Key::Block || key.default_value().as_ref() != Some(value))?;
        Some(match value {
            Value::Stage(_) if job.chain().is_none() => return None,
            Value::ReadBlock(_) if !is_named(&Key::Block) => return None,
            Value::Block(size) => format!("{} of {size}", pieces(job)),
            Value::ReadBlock(size) => format!("read by {size}"),
            Value::Buffer(size) => format!("socket buffers {size}"),
            Value::Align(bytes) => format!("{bytes} bytes off a page boundary"),
            Value::Wait(wait) => waiting(wait).to_owned(),
            Value::Stage(stage) => format!("through '{stage}'"),
            Value::WriteDelay(time) => format!("{time} of work per write"),
            Value::ReadDelay(time) => format!("{time} of work per read"),
            Value::Rate(rate) => format!("{rate} messages per second"),
            Value::Gap(gap) => format!("a pause of {gap} between messages"),
            value => phrase(&value),
        })
    };
    let details: Vec<String> = DETAILS.into_iter().chain(verify).filter(is_named).filter_map(words).collect();
    match (main.is_empty(), details.is_empty()) {
        (true, _) => details.join(", "),
        (false, true) => main.join(" "),
        (false, false) => format!("{} ({})", main.join(" "), details.join(", ")),
    }
}

/// The text of [`setting`] or [`trial`] in brackets: `(write → read across two cores, blocks of 64 KiB)`.
pub(super) fn bracketed(setting: &str) -> String {
    match setting.strip_suffix(')').and_then(|rest| rest.split_once(" (")) {
        Some((main, details)) => format!("({main}, {details})"),
        None => format!("({setting})"),
    }
}

/// The settings of a job as text, without the link, the methods and the block size: `across two cores (spinning)`.
pub(super) fn situation(job: &Job) -> String {
    setting(job, &[Key::Link, Key::Send, Key::Block])
}

/// Like [`setting`] for a stream. For round trips: `shm in-place across two cores (messages of 8 B)`.
pub(super) fn trial(job: &Job, omit: &[Key]) -> String {
    match job.ends() {
        Some(ends) if job.is_round_trip() => {
            let setting = setting(job, &[&[Key::Link, Key::Send], omit].concat());
            format!("{} {setting}", ends.mechanism()).trim_end().to_owned()
        }
        _ => setting(job, omit),
    }
}

/// The noun for the pieces of a job: `blocks` of a stream, or `messages` of a round trip.
pub(super) fn pieces(job: &Job) -> &'static str {
    if job.is_round_trip() { "messages" } else { "blocks" }
}

/// Formats nanoseconds in the most readable unit.
pub(super) fn time(ns: f64) -> String {
    Unit::Nanoseconds.show(ns)
}

pub(super) fn waiting(wait: WaitPolicy) -> &'static str {
    match wait {
        WaitPolicy::Block => "blocking",
        WaitPolicy::Poll => "polling",
        WaitPolicy::Spin => "spinning",
    }
}

/// The capacity in bytes granted by the kernel, or the requested one; `None` if unknown.
pub(super) fn granted_capacity(measured: MeasuredTrial) -> Option<u64> {
    let asked = match measured.ends().capacity {
        Capacity::Bytes(ByteSize(bytes)) => Some(bytes),
        Capacity::Named(_) => None,
    };
    measured.record.samples.iter().find_map(|sample| sample.capacity_granted).or(asked)
}

/// The capacity as text: `1 MiB`, or `default` if its size is unknown.
pub(super) fn capacity(measured: MeasuredTrial) -> String {
    granted_capacity(measured).map_or_else(|| measured.ends().capacity.to_string(), |bytes| ByteSize(bytes).to_string())
}

/// The methods as text: `vmsplice → splice from huge pages`.
pub(super) fn methods(ends: &Ends) -> String {
    let pages = if ends.pages == pipemark_model::PageKind::Huge { " from huge pages" } else { "" };
    format!("{} → {}{pages}", ends.send, ends.recv)
}

/// The work done on each byte as text: `copied once, newly written and read`.
pub(super) fn work_in_words(work: Work) -> String {
    let copies = ["not copied", "copied once", "copied twice"][usize::from(work.copies.min(2))];
    let rest = match (work.written, work.read) {
        (false, false) => "",
        (true, false) => ", newly written",
        (false, true) => ", read",
        (true, true) => ", newly written and read",
    };
    format!("{copies}{rest}")
}

/// Joins words to a list: `a, b and c`.
pub(super) fn join_list(words: &[String]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// The sizes of `some` as text. Sizes that are adjacent in `all` (ascending) are joined into ranges: `64 B and 1 KiB to
/// 64 KiB`.
pub(super) fn size_ranges(some: &[ByteSize], all: &[ByteSize]) -> String {
    let neighbours = all.chunk_by(|one, other| some.contains(one) == some.contains(other));
    let size_ranges = neighbours.filter(|span| some.contains(&span[0])).map(|span| match span {
        [one] => one.to_string(),
        _ => format!("{} to {}", span[0], span[span.len() - 1]),
    });
    join_list(&size_ranges.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use pipemark_stats::fixture::record;

    use super::*;

    #[test]
    fn settings_are_named_by_non_default_values() {
        let words = |params: &[(&str, &str)], omit: &[Key]| setting(&record("e", params, 1.0, &[1.0]).job, omit);
        assert_eq!(words(&[], &[]), "write → read across two cores (blocks of 64 KiB)");
        assert_eq!(words(&[], &[Key::Block]), "write → read across two cores");
        assert_eq!(bracketed(&words(&[], &[])), "(write → read across two cores, blocks of 64 KiB)");
        assert_eq!(bracketed(&words(&[], &[Key::Block])), "(write → read across two cores)");
        assert_eq!(words(&[], &[Key::Block, Key::Place, Key::Send]), "");
        assert_eq!(
            words(&[("wait", "spin"), ("pages", "huge"), ("capacity", "1m"), ("place", "3:3")], &[]),
            "write → read on CPU 3 (blocks of 64 KiB, capacity 1 MiB, huge pages, spinning)"
        );
        let round_trip_record = [("mode", "latency"), ("link", "tcp"), ("gap", "1ms"), ("buffer", "64k")];
        assert_eq!(
            words(&round_trip_record, &[]),
            "write → read across two cores (tcp, messages of 64 KiB, socket buffers 64 KiB, a pause of 1.00 ms between messages)"
        );
        let ring = record("e", &[("link", "shm"), ("send", "in-place"), ("recv", "in-place")], 1.0, &[1.0]);
        assert_eq!(
            trial(&pipemark_stats::fixture::round_trip_record(&[("link", "tcp")], 1.0, &[1.0]).job, &[]),
            "tcp across two cores (messages of 64 KiB)"
        );
        assert_eq!(situation(&ring.job), "across two cores");
    }

    #[test]
    fn neighbouring_sizes_become_ranges() {
        let all = [64, 256, 1024, 4096, 16384].map(ByteSize);
        let some = |indices: &[usize]| indices.iter().map(|&i| all[i]).collect::<Vec<_>>();
        assert_eq!(size_ranges(&some(&[0, 2, 3, 4]), &all), "64 B and 1 KiB to 16 KiB");
        assert_eq!(size_ranges(&some(&[1]), &all), "256 B");
        assert_eq!(size_ranges(&[], &all), "");
    }
}
