//! The headline figures of a document, for the brief form and the page.

use pipemark_model::{
    Document, Ends, Job, Key, LinkKind, Mode, Record, RecvMethod, SendMethod, Unit, Verify, WaitPolicy, differing,
    name, names,
};
use pipemark_show::{Cell, Style};
use pipemark_stats::records::ratio_of;

use crate::sheet::experiment::{agrees_with_medians, interval, times};
use crate::sheet::words::{is_plain, ranked};

/// A job described by its differences from `plain`; without `plain`, by its main parameters.
fn differing_settings(job: &Job, plain: Option<&Job>) -> String {
    let Some(plain) = plain else { return names(&[job], &[Key::Link]).concat() };
    let keys = differing(&[plain, job], &[]);
    let keys: Vec<Key> = keys.into_iter().filter(|key| !key.is_volume() && *key != Key::Verify).collect();
    name(job, &keys)
}

/// The headline figures: the default pipe, the best with write and read, the best verified one, and a copy within one
/// process.
pub(super) fn summary(document: &Document) -> Vec<Vec<Cell>> {
    let is_stream = |record: &&Record| ranked(record) && record.job.mode() == Mode::Throughput;
    let streams: Vec<&Record> = document.trials.iter().filter(is_stream).collect();
    let plain = streams.iter().copied().find(|record| is_plain(&record.job));
    let speed = |record: &Record| record.estimate.as_ref().map_or(0.0, |estimates| estimates.throughput().median);
    let best = |of: &dyn Fn(&Record) -> bool| {
        let candidates = streams.iter().copied().filter(|record| record.job.wait() == WaitPolicy::Block && of(record));
        candidates.max_by(|one, other| speed(one).total_cmp(&speed(other)))
    };
    let ends = |record: &Record, send: SendMethod| {
        record
            .job
            .ends()
            .is_some_and(|ends| ends.link == LinkKind::Pipe && ends.send == send && ends.recv == RecvMethod::Read)
    };
    let copied = best(&|record| ends(record, SendMethod::Write) && record.job.chain().is_none());
    let new = |record: &Record| record.job.ends().is_some_and(|ends| ends.work().written);
    let checked = best(&|record| record.verify == Verify::Full && record.touched && new(record));
    let mut rows = Vec::new();
    let mut listed: Vec<&str> = Vec::new();
    let mut row = |what: &str, figure: String, details: String| {
        rows.push(vec![Cell::shown(what), Cell::shown(figure).style(Style::Heading), Cell::shown(details)]);
    };
    for (what, record) in
        [("default pipe", plain), ("best pipe, write and read", copied), ("best, each byte new and checked", checked)]
    {
        let Some(record) = record.filter(|record| !listed.contains(&record.id.as_str())) else { continue };
        listed.push(&record.id);
        let throughput = record.estimate.as_ref().expect("ranked, so it is measured").throughput();
        let settings = differing_settings(&record.job, plain.map(|plain| &plain.job));
        let details = match plain {
            Some(plain) if plain.id != record.id => {
                // No table shows the ratio between different experiments, volumes or levels of verification.
                let beside = |other: &&&Record| {
                    other.experiment == record.experiment
                        && other.verify == record.verify
                        && other.job.volume().is_like(record.job.volume())
                        && is_plain(&other.job)
                };
                let base = streams.iter().find(beside).filter(|base| base.id != record.id);
                let ratio = base.and_then(|base| Some((*base, ratio_of(&record.samples, &base.samples)?)));
                let ratio = ratio.map(|(base, ratio)| {
                    // The ratio must agree with the figures beside it, or be labelled as a ratio of the same round.
                    let round =
                        if agrees_with_medians(&ratio, speed(record), speed(base)) { "" } else { " of the same round" };
                    let name = match base.id == plain.id {
                        true => format!("default{round}"),
                        false => {
                            format!("default{round}, checked alike ({})", Unit::BytesPerSecond.show(speed(base)))
                        }
                    };
                    match times(&ratio).as_str() {
                        "tied" => format!("tied with {name}: "),
                        times => format!("{times} {name}: "),
                    }
                });
                format!("{}{settings}", ratio.unwrap_or_default())
            }
            Some(_) => format!("({})", interval(throughput, |end| Unit::BytesPerSecond.show(end))),
            None => settings,
        };
        row(what, Unit::BytesPerSecond.show(throughput.median), details);
    }
    let trips = document.trials.iter().filter(|record| ranked(record) && record.job.is_round_trip());
    let trip = |record: &&Record| record.estimate.as_ref().and_then(|estimates| estimates.round_trip()).copied();
    let trips = trips
        .filter(|record| record.job.wait() == WaitPolicy::Block)
        .filter_map(|record| Some((record, trip(&record)?)));
    if let Some((record, time)) = trips.min_by(|one, other| one.1.median.total_cmp(&other.1.median)) {
        row("shortest round trip", Unit::Nanoseconds.show(time.median), names(&[&record.job], &[Key::Mode]).concat());
    }
    let figure = |speed: f64| Cell::shown(Unit::BytesPerSecond.show(speed)).style(Style::Heading);
    // On a busy machine, spinning ends are slower than sleeping ones, and no upper bound.
    let bounds = |bound: &&&Record| {
        let mut beside = streams.iter().filter(|record| {
            record.job.place() == bound.job.place()
                && record.job.ends().map(Ends::work) == bound.job.ends().map(Ends::work)
        });
        bound.job.is_two_copies() && beside.all(|record| speed(record) <= speed(bound))
    };
    if let (Some(record), false) = (streams.iter().find(bounds), rows.is_empty()) {
        let details = "upper bound (busy-waiting)";
        rows.push(vec![Cell::shown("shared-memory limit (2 copies)"), figure(speed(record)), Cell::shown(details)]);
    }
    if let (Some(copy), false) = (&document.memory_copy, rows.is_empty()) {
        rows.push(vec![Cell::shown("memory copy, 64 KiB, one core"), figure(copy.median), Cell::default()]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use pipemark_model::Warning;
    use pipemark_stats::fixture::{STEADY, record};

    use super::*;
    use crate::sheet::fixture;

    #[test]
    fn prepared_bytes_do_not_count_as_new() {
        let of = |send, speed| record("e", &[("send", send), ("verify", "full")], speed, &STEADY);
        let mut document = Document { trials: vec![of("write", 1.5), of("sendfile", 3.0)], ..Document::default() };
        let checked = |document: &Document| summary(document).iter().map(|row| row[1].text.clone()).collect::<Vec<_>>();
        assert_eq!(checked(&document), ["1.50 GiB/s"]);
        // A trial faster than its own end can be isn't listed either.
        let above = Warning::AboveCeiling { end: "sink".to_owned(), ceiling: 1e6, above: 7, runs: 7 };
        document.trials[0].warnings.push(above);
        assert_eq!(checked(&document), [""; 0]);
    }

    #[test]
    fn a_ratio_that_the_medians_contradict_names_its_round() {
        let mut document = fixture::quick();
        let by_round = |document: &Document| summary(document)[1][2].text.contains("of the same round");
        assert!(!by_round(&document));
        let base = |record: &Record| record.experiment == "capacity" && is_plain(&record.job);
        let base = document.trials.iter().position(base).unwrap();
        document.trials[base].estimate = document.trials[1].estimate.clone();
        assert!(by_round(&document), "{:?}", summary(&document)[1]);
    }

    #[test]
    fn two_copies_that_are_slower_than_a_pipe_bound_nothing() {
        let mut document = fixture::quick();
        let bounds_memory =
            |document: &Document| summary(document).iter().any(|row| row[0].text.starts_with("shared-memory limit"));
        assert!(bounds_memory(&document));
        let pipe = document.trials.iter().position(|record| record.job.place().to_string() == "cross").unwrap();
        document.trials[pipe].estimate = document.trials.last().unwrap().estimate.clone();
        let bound = document.trials.len() - 1;
        document.trials[bound].estimate = document.trials[1].estimate.clone();
        assert!(!bounds_memory(&document));
    }
}
