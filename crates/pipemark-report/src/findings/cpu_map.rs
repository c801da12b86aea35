//! The structure of a machine, from measurements of many pairs of CPUs: groups of CPUs that reach each other faster than
//! they reach the others, at each level, such as cores, L3 caches and packages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use pipemark_model::{Cpu, CpuTopology, Estimate, Key, Place, Unit, counted};
use pipemark_stats::clusters::{Distance, Level, Levels, levels};
use pipemark_stats::estimate;

use crate::cpu_groups::{Groups, SharedGroups, shared};
use crate::findings::words::setting;
use crate::findings::{Candidate, MeasuredTrial};

/// The least number of CPUs of which groups are sought.
const MIN_CPUS: usize = 4;
/// The least ratio of two distances that is reported as a difference.
const MIN_RATIO: f64 = 1.1;
/// The largest number of groups that are listed.
const MAX_LISTED: usize = 4;

/// The groups of CPUs, and the figures within and across groups. The groups are those that the figures show. If they
/// show none, such as with a sample of the pairs, the groups are those of `topology` that have different figures.
pub(super) fn structure(group: &[MeasuredTrial], topology: &[CpuTopology]) -> Option<Candidate> {
    let pinned = |one: &MeasuredTrial| match one.ends().place {
        Place::Pinned(writer, reader) if writer != reader => Some((writer, reader, 1.0 / one.speed())),
        _ => None,
    };
    let pairs: Vec<(Cpu, Cpu, f64)> = group.iter().filter_map(pinned).collect();
    let cpus: Vec<Cpu> =
        Vec::from_iter(BTreeSet::from_iter(pairs.iter().flat_map(|(writer, reader, _)| [*writer, *reader])));
    if cpus.len() < MIN_CPUS {
        return None;
    }
    let index = |cpu: &Cpu| cpus.binary_search(cpu).unwrap_or(0);
    let distances: Vec<Distance> =
        pairs.iter().map(|(writer, reader, distance)| (index(writer), index(reader), *distance)).collect();
    let shared = shared(&cpus, topology);
    let found = match levels(cpus.len(), &distances) {
        found if found.levels.is_empty() => distinct_levels(&shared, &distances),
        found => found,
    };
    let latency = group[0].job.is_latency();
    // A distance is the time of a round trip in seconds, or seconds per byte.
    let figure = |distances: &Vec<f64>| {
        let figures = distances.iter().map(|distance| if latency { distance * 1e9 } else { 1.0 / distance });
        estimate::from_runs(&figures.collect::<Vec<_>>())
    };
    let within: Vec<Estimate> = found.levels.iter().filter_map(|level| figure(&level.within)).collect();
    let across = figure(&found.across)?;
    if within.is_empty() || within.len() < found.levels.len() {
        return None;
    }
    let unit = if latency { Unit::Nanoseconds } else { Unit::BytesPerSecond };
    let shown = |figure: &Estimate| match figure.low.zip(figure.high) {
        Some((low, high)) => format!("{} ({}–{})", unit.show(figure.median), unit.show(low), unit.show(high)),
        None => unit.show(figure.median),
    };
    let name = |groups: &Groups| shared.iter().find(|own| own.groups == *groups).map(|own| own.name);
    let described: Vec<String> =
        found.levels.iter().map(|level| described(&level.groups, &cpus, name(&level.groups))).collect();
    let within_words: Vec<String> = match (&found.levels[..], &within[..]) {
        (_, [one]) => vec![format!("within a group {}", shown(one))],
        (levels, within) => {
            let words = |(nth, (level, figure)): (usize, (&Level, &Estimate))| {
                let begin = if nth == 0 { "within a group " } else { "" };
                format!("{begin}of {} {}", size_in_words(&level.groups), shown(figure))
            };
            levels.iter().zip(within).enumerate().map(words).collect()
        }
    };
    let text = format!(
        "{}: {}, across {}; {}.",
        described.join(", in "),
        within_words.join(", "),
        shown(&across),
        setting(group[0].job, &[Key::Place]),
    );
    let of_level = |(level, within): (&Level, &Estimate)| {
        let groups: Vec<String> = level.groups.iter().map(|group| in_ranges(&of(group, &cpus))).collect();
        json!({ "groups": groups, "named": name(&level.groups), "within": within })
    };
    let levels: Value = found.levels.iter().zip(&within).map(of_level).collect();
    let evidence = json!({ "levels": levels, "within": within[0], "across": across, "pairs": pairs.len() });
    let effect = (across.median / within[0].median).ln().abs().exp();
    Some(Candidate::new("place-groups", effect, text, evidence))
}

fn of(group: &[usize], cpus: &[Cpu]) -> Vec<Cpu> {
    group.iter().map(|at| cpus[*at]).collect()
}

/// The levels of known groups whose distances differ from those of the next level.
fn distinct_levels(shared: &[SharedGroups], distances: &[Distance]) -> Levels {
    let mut divisions: Vec<Groups> = shared.iter().map(|own| own.groups.clone()).collect();
    loop {
        let found = Levels::of(divisions.clone(), distances);
        let rings: Vec<Option<Estimate>> = found
            .levels
            .iter()
            .map(|level| &level.within)
            .chain([&found.across])
            .map(|distances| estimate::from_runs(distances))
            .collect();
        let is_distinct = |two: &[Option<Estimate>]| match two {
            [Some(near), Some(far)] => {
                near.high.zip(far.low).is_some_and(|(high, low)| high < low && far.median >= MIN_RATIO * near.median)
            }
            _ => false,
        };
        match rings.windows(2).position(|two| !is_distinct(two)) {
            Some(level) => drop(divisions.remove(level)),
            None => return found,
        }
    }
}

/// The groups as text: `2 groups of 8 CPUs (0–7; 8–15), the L3 caches`.
fn described(groups: &Groups, cpus: &[Cpu], name: Option<&str>) -> String {
    let mut listed: Vec<String> = groups.iter().take(MAX_LISTED).map(|group| in_ranges(&of(group, cpus))).collect();
    listed.extend((groups.len() > MAX_LISTED).then(|| "…".to_owned()));
    let name = name.map_or_else(String::new, |name| format!(", the {name}"));
    format!("{} of {} ({}){name}", counted(groups.len(), "group"), size_in_words(groups), listed.join("; "))
}

/// The number of CPUs in a group: `8 CPUs`, `2 to 3 CPUs`.
fn size_in_words(groups: &Groups) -> String {
    let sizes = BTreeSet::from_iter(groups.iter().map(Vec::len));
    match (sizes.first(), sizes.last()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} CPUs"),
        (Some(size), _) => counted(*size, "CPU"),
        _ => String::new(),
    }
}

/// CPU numbers as text: `0–7, 16`.
fn in_ranges(cpus: &[Cpu]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu.0 => *last = cpu.0,
            _ => ranges.push((cpu.0, cpu.0)),
        }
    }
    let range = |(first, last): (u16, u16)| if first == last { first.to_string() } else { format!("{first}–{last}") };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use pipemark_model::{CpuTopology, Record};
    use pipemark_stats::fixture::{STEADY, outcome, records};

    use crate::cpu_groups::tests::machine;
    use crate::findings::findings;

    /// Records of all pairs of `count` CPUs, or of every nth pair, with the speed that `of` gives.
    fn map(count: u32, nth: usize, of: impl Fn(u32, u32) -> f64) -> Vec<Record> {
        let pairs = (0..count).flat_map(|writer| (0..count).map(move |reader| (writer, reader)));
        let pairs = pairs.filter(|(writer, reader)| writer != reader).step_by(nth);
        let outcome = |(writer, reader): (u32, u32)| {
            outcome("map", &[("place", &format!("{writer}:{reader}"))], of(writer, reader), &STEADY)
        };
        records(pairs.map(outcome).collect())
    }

    fn sentences(records: &[Record], topology: &[CpuTopology]) -> Vec<String> {
        let all = findings(records, None, topology).into_iter();
        all.filter(|finding| finding.rule == "place-groups").map(|finding| finding.text).collect()
    }

    #[test]
    fn two_groups_are_named_with_their_figures() {
        let found = sentences(&map(8, 1, |one, other| if one / 4 == other / 4 { 2.0 } else { 1.0 }), &[]);
        assert!(
            found[0].starts_with(
                "2 groups of 4 CPUs (0–3; 4–7): within a group 2.00 GiB/s (2.00 GiB/s–2.00 GiB/s), across 1.00 GiB/s"
            ),
            "{found:?}"
        );
        assert!(sentences(&map(4, 1, |_, _| 1.0), &[]).is_empty());
        assert!(sentences(&map(3, 1, |one, _| f64::from(one + 1)), &[]).is_empty(), "too few CPUs");
    }

    #[test]
    fn groups_are_named_by_what_their_cpus_share() {
        // Two packages of four cores with two threads each: 0 and 8 are the threads of a core.
        let speed = |one: u32, other: u32| match (one % 8, other % 8) {
            (one, other) if one == other => 8.0,
            (one, other) if one / 4 == other / 4 => 2.0,
            _ => 1.0,
        };
        let found = sentences(&map(16, 1, speed), &machine(2, 1, 4));
        assert!(
            found[0].starts_with(
                "8 groups of 2 CPUs (0, 8; 1, 9; 2, 10; 3, 11; …), the cores, in 2 groups of 8 CPUs (0–3, 8–11; 4–7, \
                 12–15), the L3 caches: within a group of 2 CPUs 8.00 GiB/s (8.00 GiB/s–8.00 GiB/s), of 8 CPUs 2.00 GiB/s"
            ),
            "{found:?}"
        );
        assert!(found[0].contains(", across 1.00 GiB/s"), "{found:?}");
    }

    #[test]
    fn a_sample_shows_the_groups_that_the_topology_has() {
        // In every 37th pair, most CPUs meet few others.
        let speed = |one: u32, other: u32| {
            let scatter = 1.0 + 0.01 * f64::from((one * 7 + other * 13) % 10);
            scatter * if one % 32 / 16 == other % 32 / 16 { 2.0 } else { 1.0 }
        };
        let found = sentences(&map(64, 37, speed), &machine(2, 2, 8));
        assert!(
            found[0].starts_with("2 groups of 32 CPUs (0–15, 32–47; 16–31, 48–63), the packages: within a group 2."),
            "{found:?}"
        );
        assert!(sentences(&map(64, 37, |_, _| 1.0), &machine(2, 2, 8)).is_empty(), "no difference, no groups");
    }
}
