//! The map of an experiment that measures many pairs of CPUs: a row for each CPU of a writer, a column for each CPU of a
//! reader. Both are ordered by node, package, die, L3 cache, core and thread, so CPUs that share something are next to
//! each other.

use std::collections::BTreeSet;

use pipemark_model::{Cpu, CpuTopology, Key, Place, Record, group_by_key};
use pipemark_show::{Cell, Column, Grid, Note, Row, RowGroup};

use crate::sheet::experiment::MeasuredExperiment;
use crate::sheet::matrix::{MISSING_FIGURE, headline};

/// The largest number of CPUs in a row of the map. More don't fit on a page.
const MAX_CPUS: usize = 64;

/// The two CPUs of a record; `None` if its ends aren't pinned.
fn cpus(record: &Record) -> Option<(Cpu, Cpu)> {
    match record.job.place() {
        Place::Pinned(writer, reader) => Some((writer, reader)),
        _ => None,
    }
}

/// Whether an experiment is a map of CPUs.
pub(super) fn is_map(experiment: &MeasuredExperiment) -> bool {
    experiment.about.across == Some(Key::Place) && experiment.records.iter().all(|record| cpus(record).is_some())
}

/// The CPUs in the order of the map.
pub(super) fn ordered(cpus: &BTreeSet<Cpu>, topology: &[CpuTopology]) -> Vec<Cpu> {
    let place = |cpu: &Cpu| topology.iter().find(|own| own.cpu == *cpu).map(CpuTopology::position);
    let mut ordered: Vec<Cpu> = cpus.iter().copied().collect();
    ordered.sort_by_key(|cpu| (place(cpu), *cpu));
    ordered
}

/// The map, and the notes below it; `None` if the experiment is no map of at most [`MAX_CPUS`] CPUs.
pub(super) fn grid(experiment: &MeasuredExperiment, topology: &[CpuTopology]) -> Option<(Grid, Vec<Note>)> {
    if !is_map(experiment) {
        return None;
    }
    let all: BTreeSet<Cpu> =
        experiment.records.iter().filter_map(|record| cpus(record)).flat_map(|(one, other)| [one, other]).collect();
    let order = ordered(&all, topology);
    if order.len() > MAX_CPUS {
        return None;
    }
    let figures: Vec<_> = experiment.records.iter().filter_map(|record| headline(record)).collect();
    let (unit, _) = figures.first()?;
    let unit = unit.common(figures.iter().map(|(_, estimate)| estimate.median));
    let cell = |records: &[&Record], writer: Cpu, reader: Cpu| match records
        .iter()
        .find(|record| cpus(record) == Some((writer, reader)))
    {
        None => Cell::default(),
        Some(record) => match headline(record) {
            Some((_, estimate)) => Cell::shown(unit.brief(estimate.median)),
            None => Cell::shown(MISSING_FIGURE),
        },
    };
    let row = |records: &[&Record], writer: &Cpu| {
        let cells = order.iter().map(|reader| cell(records, *writer, *reader));
        Row::from([Cell::shown(format!("CPU {writer}"))].into_iter().chain(cells).collect::<Vec<_>>())
    };
    // The map of each other setting, such as each way to wait, follows the one before.
    let others: Vec<Key> = experiment.varying().into_iter().filter(|key| *key != Key::Place).collect();
    let caption = |record: &Record| {
        others.iter().map(|key| format!("{key} {}", record.shown(*key))).collect::<Vec<_>>().join(" · ")
    };
    let maps = group_by_key(experiment.records.iter().map(|record| (caption(record), *record)));
    let group = |(caption, records): &(String, Vec<&Record>)| {
        RowGroup::new(caption, order.iter().map(|writer| row(records, writer)).collect())
    };
    let groups = maps.iter().map(group).collect();
    let headings = order.iter().map(|cpu| Column::figures("", &cpu.to_string()));
    let columns = [Column::words("", "writer \\ reader")].into_iter().chain(headings).collect();
    let what = match experiment.is_latency() {
        true => "median round trip in seconds (n, µ, m), begun by the CPU on the left",
        false => "bytes per second (K, M, G: KiB/s and so on)",
    };
    let note = format!("{what}; CPUs are ordered by node, package, die, L3 cache, core and thread");
    Some((Grid { labels: 1, columns, groups }, vec![Note::plain(note)]))
}
