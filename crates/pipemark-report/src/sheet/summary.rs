//! The main figures of a document, for the brief sheet and the report page.

use std::collections::HashMap;

use pipemark_model::{
    ColumnUnit, Document, Ends, Job, Key, LinkKind, Mode, Record, RecvMethod, SendMethod, Unit, Verify, WaitPolicy,
    counted, differing_keys, group_by_key, name, names,
};
use pipemark_show::{Cell, Style};
use pipemark_stats::records::ratio_of;

use crate::sheet::experiment::{MeasuredExperiment, agrees_with_medians, times, trials_by_experiment};
use crate::sheet::words::{interval, is_plain, ranked};

/// The settings of a job that differ from those of `plain`, or from the defaults if `plain` is `None`. They include the
/// verification level and the capacity, by which the job may differ from all tables on the screen.
fn differing_settings(job: &Job, plain: Option<&Job>) -> String {
    let default = Job::default();
    let keys = differing_keys(&[plain.unwrap_or(&default), job], &[]);
    let keys: Vec<Key> = keys.into_iter().filter(|key| !key.is_volume()).collect();
    name(job, &keys)
}

/// The unit in which a table shows a record's main figure.
pub(super) type UnitOf = fn(&MeasuredExperiment, &Record) -> ColumnUnit;

/// A main figure as a row of a table, and the trials that have it. Limits of this machine have none.
pub(super) struct SummaryRow<'a> {
    pub(super) cells: Vec<Cell>,
    pub(super) cited: Vec<&'a Record>,
}

impl SummaryRow<'_> {
    fn limit(what: &str, figure: String, details: &str) -> Self {
        let figure = Cell::shown(figure).style(Style::Heading);
        SummaryRow { cells: vec![Cell::shown(what), figure, Cell::shown(details)], cited: Vec::new() }
    }
}

/// The main figures: the default pipe, the best trial with write and read, the best verified trial, the rate per hop of
/// the longest chain, and the memory copy within one process. Each figure is in the unit of its table, given by
/// `unit_of`.
pub(super) fn summary(document: &Document, unit_of: UnitOf) -> Vec<SummaryRow<'_>> {
    // Nothing is known of the pipes that other tools measured.
    if document.is_imported() {
        return Vec::new();
    }
    let trials = trials_by_experiment(document);
    let shown = |record: &Record, figure: f64| {
        let about = document.experiments.iter().find(|experiment| experiment.name == record.experiment);
        let experiment = about.and_then(|about| MeasuredExperiment::of(document, about, &trials));
        match experiment {
            Some(experiment) if experiment.is_latency() == record.job.is_latency() => {
                unit_of(&experiment, record).show(figure)
            }
            _ => record.job.mode().figure().0.show(figure),
        }
    };
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
    // A chain of length 0 with a source command is that command alone, writing to /dev/null: there is no pipe.
    let has_no_pipe = |job: &Job| matches!(job, Job::Chain(chain) if chain.source.is_some());
    let is_single = |job: &Job| job.chain().is_none() && !has_no_pipe(job);
    let copied = best(&|record| ends(record, SendMethod::Write) && is_single(&record.job));
    let new = |record: &Record| record.job.ends().is_some_and(|ends| ends.work().written);
    let checked = best(&|record| record.verify == Verify::Full && record.touched && new(record));
    let mut rows = Vec::new();
    let mut listed: Vec<&str> = Vec::new();
    let mut row = |what: &str, figure: String, details: String, cited| {
        let figure = Cell::shown(figure).style(Style::Heading);
        rows.push(SummaryRow { cells: vec![Cell::shown(what), figure, Cell::shown(details)], cited });
    };
    for (what, record) in
        [("default pipe", plain), ("best with write and read", copied), ("best, each byte new and checked", checked)]
    {
        let Some(record) = record.filter(|record| !listed.contains(&record.id.as_str())) else { continue };
        listed.push(&record.id);
        let mut cited = vec![record];
        let throughput = record.estimate.as_ref().expect("ranked, so it is measured").throughput();
        let settings = differing_settings(&record.job, plain.map(|plain| &plain.job));
        let details = match plain {
            Some(plain) if plain.id != record.id => {
                // No table shows the ratio of trials with different experiments, volumes or verification levels.
                let beside = |other: &&&Record| {
                    other.experiment == record.experiment
                        && other.verify == record.verify
                        && other.job.volume().is_equivalent(record.job.volume())
                        && is_plain(&other.job)
                };
                let base = streams.iter().find(beside).filter(|base| base.id != record.id);
                let ratio = base.and_then(|base| Some((*base, ratio_of(&record.samples, &base.samples)?)));
                cited.extend(ratio.iter().map(|(base, _)| *base));
                let ratio = ratio.map(|(base, ratio)| {
                    // If the ratio doesn't agree with the figures beside it, a sign marks it as a ratio within rounds.
                    let agrees = agrees_with_medians(&ratio, speed(record), speed(base));
                    let within = (!agrees).then(|| "within rounds".to_owned());
                    let (what, own) = match base.id == plain.id {
                        true => ("default", None),
                        false => ("default with the same --verify", Some(shown(base, speed(base)))),
                    };
                    let details = Vec::from_iter([own, within].into_iter().flatten()).join(", ");
                    let name = if details.is_empty() { what.to_owned() } else { format!("{what} ({details})") };
                    match times(&ratio).as_str() {
                        "tied" => format!("tied with {name}: "),
                        times => format!("{times} {name}: "),
                    }
                });
                format!("{}{settings}", ratio.unwrap_or_default())
            }
            Some(_) => format!("({})", interval(throughput, |end| shown(record, end))),
            None => settings,
        };
        row(what, shown(record, throughput.median), details, cited);
    }
    if let Some((longest, [figure, details])) = per_hop(&streams) {
        let what = format!("transfer per hop, {}", counted(length(&longest) as usize, "stage"));
        row(&what, figure, details, vec![longest]);
    }
    let trips = document.trials.iter().filter(|record| ranked(record) && record.job.is_round_trip());
    let trip = |record: &&Record| record.estimate.as_ref().and_then(|estimates| estimates.round_trip()).copied();
    let trips = trips
        .filter(|record| record.job.wait() == WaitPolicy::Block)
        .filter_map(|record| Some((record, trip(&record)?)));
    if let Some((record, time)) = trips.min_by(|one, other| one.1.median.total_cmp(&other.1.median)) {
        let details = names(&[&record.job], &[Key::Mode]).concat();
        row("shortest round trip", shown(record, time.median), details, vec![record]);
    }
    // On a busy machine, spinning trials may be slower than sleeping ones. Such a trial isn't an upper bound.
    let kind = |record: &Record| (record.job.place(), record.job.ends().map(Ends::work));
    let fastest: Vec<_> = group_by_key(streams.iter().map(|record| (kind(record), speed(record))));
    let fastest = fastest.into_iter().map(|(kind, speeds)| (kind, speeds.into_iter().fold(0.0, f64::max)));
    let fastest: HashMap<_, f64> = fastest.collect();
    let bounds = |bound: &&&Record| bound.job.is_two_copies() && speed(bound) >= fastest[&kind(bound)];
    if let (Some(record), false) = (streams.iter().find(bounds), rows.is_empty()) {
        let (what, figure) = ("shared-memory limit (2 copies)", shown(record, speed(record)));
        rows.push(SummaryRow::limit(what, figure, "upper bound (busy-waiting)"));
    }
    if let (Some(copy), false) = (&document.memory_copy, rows.is_empty()) {
        let figure = Unit::BytesPerSecond.show(copy.median);
        rows.push(SummaryRow::limit("memory copy, 64 KiB, one core", figure, ""));
    }
    rows
}

/// The number of stages; 0 if the trial isn't a chain.
fn length(record: &&Record) -> u32 {
    record.job.chain().map_or(0, |chain| chain.length)
}

/// The longest chain, with the bytes per second that all its stages together pass on. `None` without chains.
fn per_hop<'a>(streams: &[&'a Record]) -> Option<(&'a Record, [String; 2])> {
    // `rev` makes `max_by_key` return the first of several chains of the same length: the one that the others are
    // compared with.
    let longest = streams.iter().copied().rev().max_by_key(length).filter(|record| length(record) > 0)?;
    let (stages, throughput) = (f64::from(length(&longest)), longest.estimate.as_ref()?.throughput());
    let rate = |throughput: f64| Unit::BytesPerSecond.show(stages * throughput);
    let (figure, why) = match (throughput.low, throughput.high) {
        (Some(low), Some(high)) if high <= 2.0 * low => {
            (rate(throughput.median), format!("({})", interval(throughput, rate)))
        }
        (Some(_), _) => ("inconclusive".to_owned(), "interval wider than a factor of two".to_owned()),
        _ => ("inconclusive".to_owned(), "too few runs for an interval".to_owned()),
    };
    let stage = |record: &&Record| record.job.value(Key::Stage);
    let several = streams.iter().any(|other| length(other) > 0 && stage(other) != stage(&longest));
    let details = if several { format!("{why}, {}", longest.shown(Key::Stage)) } else { why };
    Some((longest, [figure, details]))
}

#[cfg(test)]
mod tests {
    use pipemark_model::Warning;
    use pipemark_stats::fixture::{STEADY, record};

    use super::*;
    use crate::sheet::fixture;

    fn of(document: &Document) -> Vec<Vec<Cell>> {
        let rows = summary(document, |experiment, record| experiment.unit(record));
        rows.into_iter().map(|row| row.cells).collect()
    }

    #[test]
    fn prepared_bytes_do_not_count_as_new() {
        let with = |send, speed| record("e", &[("send", send), ("verify", "full")], speed, &STEADY);
        let mut document = Document { trials: vec![with("write", 1.5), with("sendfile", 3.0)], ..Document::default() };
        let checked = |document: &Document| of(document).iter().map(|row| row[1].text.clone()).collect::<Vec<_>>();
        assert_eq!(checked(&document), ["1.50 GiB/s"]);
        // A trial that is faster than the limit of its own sink isn't listed either.
        let above = Warning::AboveCeiling { end: "sink".to_owned(), ceiling: 1e6, above: 7, runs: 7 };
        document.trials[0].warnings.push(above);
        assert_eq!(checked(&document), [""; 0]);
    }

    #[test]
    fn a_ratio_that_contradicts_the_medians_is_labelled_as_within_rounds() {
        let mut document = fixture::quick();
        let by_round = |document: &Document| of(document)[1][2].text.contains("within rounds)");
        assert!(!by_round(&document));
        let base = |record: &Record| record.experiment == "capacity" && is_plain(&record.job);
        let base = document.trials.iter().position(base).unwrap();
        document.trials[base].estimate = document.trials[1].estimate.clone();
        assert!(by_round(&document), "{:?}", of(&document)[1]);
    }

    #[test]
    fn two_copies_that_are_slower_than_a_pipe_are_no_bound() {
        let mut document = fixture::quick();
        let bounds_memory =
            |document: &Document| of(document).iter().any(|row| row[0].text.starts_with("shared-memory limit"));
        assert!(bounds_memory(&document));
        let pipe = document.trials.iter().position(|record| record.job.place().to_string() == "cross").unwrap();
        document.trials[pipe].estimate = document.trials.last().unwrap().estimate.clone();
        let bound = document.trials.len() - 1;
        document.trials[bound].estimate = document.trials[1].estimate.clone();
        assert!(!bounds_memory(&document));
    }
}
