//! The map of an experiment that measures many pairs of CPUs: a row for each CPU of a writer, a column for each CPU of a
//! reader. Both are ordered by node, package, die, L3 cache, core and thread, so CPUs that share something are next to
//! each other. If there are too many CPUs, the rows and columns are groups of CPUs that share something. A second table
//! has the pairs by what their CPUs share.

use std::collections::{BTreeMap, BTreeSet};

use pipemark_model::{ColumnUnit, Cpu, CpuTopology, Estimate, Key, Place, Record, between, group_by_key};
use pipemark_show::{Cell, Column, Grid, Note, Row, RowGroup};
use pipemark_stats::estimate::from_runs;

use crate::cpu_groups::{SharedGroups, shared};
use crate::sheet::experiment::MeasuredExperiment;
use crate::sheet::matrix::{MISSING_FIGURE, headline};

/// The largest number of columns of a map on a page.
pub(super) const PAGE_COLUMNS: usize = 64;
/// The largest number of columns of a map on a screen of 80 columns.
pub(super) const SCREEN_COLUMNS: usize = 8;

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

/// What a row or a column of a map is for: a CPU, or the CPUs of a group, by their places in the order.
struct MapLine {
    heading: String,
    cpus: Vec<usize>,
}

/// A measured pair of CPUs, by their places in the order.
struct MappedPair<'a> {
    record: &'a Record,
    writer: usize,
    reader: usize,
    /// The smallest groups that have both CPUs, by their place in the list of groups; the length of the list if none has.
    level: usize,
}

/// The pairs with one set of other settings, and these settings as text.
type CpuMap<'a> = (String, Vec<MappedPair<'a>>);

/// The map of at most `most` columns, and the pairs by what their CPUs share. `None` if the experiment is no map, or if
/// there are more CPUs and nothing is known about their groups.
pub(super) fn grids(
    experiment: &MeasuredExperiment,
    topology: &[CpuTopology],
    most: usize,
) -> Option<(Vec<Grid>, Vec<Note>)> {
    if !is_map(experiment) {
        return None;
    }
    let pairs: BTreeSet<(Cpu, Cpu)> = experiment.records.iter().filter_map(|record| cpus(record)).collect();
    let all: BTreeSet<Cpu> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
    let order = ordered(&all, topology);
    let levels = shared(&order, topology);
    let (lines, groups) = lines(&order, &levels, most)?;
    let figures: Vec<_> = experiment.records.iter().filter_map(|record| headline(record)).collect();
    let (unit, _) = figures.first()?;
    let unit = unit.common(figures.iter().map(|(_, estimate)| estimate.median));
    let maps = maps(experiment, &order, &levels);
    let mut grids = vec![by_cpus(&maps, &lines, unit)];
    grids.extend((!levels.is_empty()).then(|| by_level(&maps, &levels, unit)));

    let what = match experiment.is_latency() {
        true => "median round trip in seconds (n, µ, m), begun by the CPU on the left",
        false => "bytes per second (K, M, G: KiB/s and so on)",
    };
    let mut notes = vec![Note::plain(match groups {
        Some(groups) => format!("{what}; medians of the pairs between groups of CPUs ({})", groups.name),
        None => format!("{what}; CPUs are ordered by node, package, die, L3 cache, core and thread"),
    })];
    let possible = all.len() * (all.len() - 1);
    if pairs.len() < possible {
        let text = "pairs were measured, evenly spread over what their CPUs share";
        notes.push(Note::plain(format!("{} of {possible} {text}", pairs.len())));
    }
    Some((grids, notes))
}

/// The rows and columns: the CPUs, or with more than `most` CPUs the smallest groups of which there are at most as many.
/// `None` if there are no such groups, and too many CPUs for a page.
fn lines<'l>(
    order: &[Cpu],
    levels: &'l [SharedGroups],
    most: usize,
) -> Option<(Vec<MapLine>, Option<&'l SharedGroups>)> {
    let Some(level) = levels.iter().find(|level| level.groups.len() <= most).filter(|_| order.len() > most) else {
        let line = |(at, cpu): (usize, &Cpu)| MapLine { heading: cpu.to_string(), cpus: vec![at] };
        return (order.len() <= PAGE_COLUMNS).then(|| (order.iter().enumerate().map(line).collect(), None));
    };
    let line = |group: &Vec<usize>| {
        let first = group.iter().map(|at| order[*at]).min().map_or_else(String::new, |cpu| cpu.to_string());
        MapLine { heading: format!("{first}…"), cpus: group.clone() }
    };
    Some((level.groups.iter().map(line).collect(), Some(level)))
}

/// The pairs of each other setting, such as each way to wait.
fn maps<'a>(experiment: &MeasuredExperiment<'a>, order: &[Cpu], levels: &[SharedGroups]) -> Vec<CpuMap<'a>> {
    let others: Vec<Key> = experiment.varying().into_iter().filter(|key| *key != Key::Place).collect();
    let caption = |record: &Record| {
        others.iter().map(|key| format!("{key} {}", record.shown(*key))).collect::<Vec<_>>().join(" · ")
    };
    let places: BTreeMap<Cpu, usize> = order.iter().enumerate().map(|(at, cpu)| (*cpu, at)).collect();
    let group_of = |level: &SharedGroups| {
        let mut group_of = vec![0; order.len()];
        for (nth, group) in level.groups.iter().enumerate() {
            group.iter().for_each(|at| group_of[*at] = nth);
        }
        group_of
    };
    let groups: Vec<Vec<usize>> = levels.iter().map(group_of).collect();
    let mapped = |record: &'a Record| {
        let (writer, reader) = cpus(record)?;
        let (writer, reader) = (*places.get(&writer)?, *places.get(&reader)?);
        let level = groups.iter().position(|group| group[writer] == group[reader]).unwrap_or(groups.len());
        Some((caption(record), MappedPair { record, writer, reader, level }))
    };
    group_by_key(experiment.records.iter().copied().filter_map(mapped))
}

/// The median of the pairs that are wanted, with its interval; `None` if none was measured.
fn median_of(pairs: &[MappedPair], is_wanted: impl Fn(&MappedPair) -> bool) -> Option<(usize, Estimate)> {
    let wanted = pairs.iter().filter(|pair| is_wanted(pair));
    let medians: Vec<f64> = wanted.filter_map(|pair| Some(headline(pair.record)?.1.median)).collect();
    Some((medians.len(), from_runs(&medians)?))
}

fn by_cpus(maps: &[CpuMap], lines: &[MapLine], unit: ColumnUnit) -> Grid {
    let cell = |pairs: &[MappedPair], writers: &MapLine, readers: &MapLine| {
        let is_of = |pair: &MappedPair| writers.cpus.contains(&pair.writer) && readers.cpus.contains(&pair.reader);
        match median_of(pairs, is_of) {
            Some((_, estimate)) => Cell::shown(unit.brief(estimate.median)),
            None if pairs.iter().any(is_of) => Cell::shown(MISSING_FIGURE),
            None => Cell::default(),
        }
    };
    let row = |pairs: &[MappedPair], line: &MapLine| {
        let cells = lines.iter().map(|reader| cell(pairs, line, reader));
        Row::from([Cell::shown(format!("CPU {}", line.heading))].into_iter().chain(cells).collect::<Vec<_>>())
    };
    let group = |(caption, pairs): &CpuMap| RowGroup::new(caption, lines.iter().map(|line| row(pairs, line)).collect());
    let headings = lines.iter().map(|line| Column::figures("", &line.heading));
    let columns = [Column::words("", "writer \\ reader")].into_iter().chain(headings).collect();
    Grid { labels: 1, columns, groups: maps.iter().map(group).collect() }
}

fn by_level(maps: &[CpuMap], levels: &[SharedGroups], unit: ColumnUnit) -> Grid {
    let row = |pairs: &[MappedPair], at: usize| {
        let (count, estimate) = median_of(pairs, |pair| pair.level == at)?;
        let name = match (levels.get(at), levels.last()) {
            (Some(level), _) => level.of_one.to_owned(),
            (None, last) => format!("different {}", last.map_or("CPUs", |last| last.name)),
        };
        let interval = estimate.low.zip(estimate.high).map(|(low, high)| between(&unit.show(low), &unit.show(high)));
        let cells = [name, count.to_string(), unit.show(estimate.median), interval.unwrap_or_default()];
        Some(Row::from(cells.map(Cell::shown).to_vec()))
    };
    let group = |(caption, pairs): &CpuMap| {
        RowGroup::new(caption, (0..=levels.len()).filter_map(|at| row(pairs, at)).collect())
    };
    let columns = vec![
        Column::words("", "the CPUs share"),
        Column::figures("", "pairs"),
        Column::figures("", "median"),
        Column::figures("", "95 % interval"),
    ];
    Grid { labels: 1, columns, groups: maps.iter().map(group).collect() }
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Document, Experiment, Host};
    use pipemark_show::{Characters, Colour, Sheet, Terminal};
    use pipemark_stats::fixture::{STEADY, outcome, records};

    use super::*;
    use crate::cpu_groups::tests::machine;
    use crate::sheet::fixture::of_records;
    use crate::sheet::{brief, document};

    /// A map of every nth pair of a machine: 4 GiB/s between the threads of a core, 2 in an L3 cache, 1 elsewhere.
    fn measured(topology: Vec<CpuTopology>, nth: usize) -> Document {
        let pairs = topology.iter().flat_map(|one| topology.iter().map(move |other| (one, other)));
        let outcomes = pairs.filter(|(one, other)| one.cpu != other.cpu).step_by(nth).map(|(one, other)| {
            let speed = match () {
                () if one.core == other.core => 4.0,
                () if one.l3 == other.l3 => 2.0,
                () => 1.0,
            };
            outcome("map", &[("place", &format!("{}:{}", one.cpu, other.cpu))], speed, &STEADY)
        });
        let records = records(outcomes.collect());
        let about = Experiment {
            name: "map".to_owned(),
            title: "Throughput".to_owned(),
            about: String::new(),
            varies: vec![Key::Place],
            across: Some(Key::Place),
            headline: false,
            gains: None,
            known: Vec::new(),
        };
        Document { experiments: vec![about], host: Host { topology, ..Host::default() }, ..of_records(records) }
    }

    fn shown(sheet: &Sheet) -> String {
        Terminal { width: 80, colour: Colour::Never, characters: Characters::Unicode }.render(sheet)
    }

    /// The words of the line that begins with these words.
    fn line<'t>(text: &'t str, begin: &str) -> Vec<&'t str> {
        let words: Vec<&str> = begin.split_whitespace().collect();
        let all = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        all.into_iter().find(|line| line.starts_with(&words)).unwrap_or_else(|| panic!("no line {begin}: {text}"))
    }

    #[test]
    fn each_pair_has_a_cell_and_cpus_that_share_something_are_neighbours() {
        let map = measured(machine(1, 2, 2), 1);
        let text = shown(&brief(&map, &[]));
        let order = ["0", "4", "1", "5", "2", "6", "3", "7"];
        let is_heading = |line: &str| line.split_whitespace().collect::<Vec<_>>().ends_with(&order);
        assert!(text.lines().any(is_heading), "{text}");
        assert_eq!(
            line(&text, "CPU 4")[2..],
            ["4.00G", "2.00G", "2.00G", "1.00G", "1.00G", "1.00G", "1.00G"],
            "{text}"
        );
        assert_eq!(line(&text, "one core")[2..], ["8", "4.00", "GiB/s", "4.00–4.00", "GiB/s"], "{text}");
        assert_eq!(line(&text, "one L3 cache")[3..5], ["16", "2.00"], "{text}");
        assert_eq!(line(&text, "different L3 caches")[3..5], ["32", "1.00"], "{text}");
        assert!(!text.contains("were measured, evenly"), "{text}");
    }

    #[test]
    fn a_large_machine_has_a_map_of_groups() {
        // 576 CPUs, and a sample of their pairs.
        let map = measured(machine(4, 2, 36), 1009);
        let text = shown(&brief(&map, &[]));
        assert!(text.lines().count() <= 45 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(line(&text, "CPU 0…")[2..5], ["2.00G", "1.00G", "1.00G"], "eight L3 caches: {text}");
        assert!(text.contains("pairs were measured, evenly spread"), "{text}");
        for kind in ["one L3 cache", "one package", "different packages"] {
            line(&text, kind);
        }
        let whole = shown(&document(&map));
        assert!(whole.contains("CPU 36…"), "{whole}");
    }
}
