//! The structure of a machine, from measurements of many pairs of CPUs: groups of CPUs that reach each other faster than
//! they reach the others.

use std::collections::BTreeSet;

use serde_json::json;

use pipemark_model::{Cpu, Key, Place, Unit, counted};
use pipemark_stats::clusters::clusters;
use pipemark_stats::estimate;

use crate::findings::words::setting;
use crate::findings::{Candidate, MeasuredTrial};

/// The least number of CPUs of which groups are sought.
const MIN_CPUS: usize = 4;

/// The groups of CPUs, and the figures within a group and across groups.
pub(super) fn structure(group: &[MeasuredTrial]) -> Option<Candidate> {
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
    let distances: Vec<(usize, usize, f64)> =
        pairs.iter().map(|(writer, reader, distance)| (index(writer), index(reader), *distance)).collect();
    let found = clusters(cpus.len(), &distances)?;
    let latency = group[0].job.is_latency();
    // A distance is the time of a round trip in seconds, or seconds per byte.
    let figures = |distances: &[f64]| {
        let figures: Vec<f64> =
            distances.iter().map(|distance| if latency { distance * 1e9 } else { 1.0 / distance }).collect();
        estimate::from_runs(&figures)
    };
    let (within, across) = (figures(&found.within)?, figures(&found.across)?);
    let unit = if latency { Unit::Nanoseconds } else { Unit::BytesPerSecond };
    let shown = |figure: pipemark_model::Estimate| match figure.low.zip(figure.high) {
        Some((low, high)) => format!("{} ({}–{})", unit.show(figure.median), unit.show(low), unit.show(high)),
        None => unit.show(figure.median),
    };
    let groups: Vec<String> =
        found.groups.iter().map(|group| in_ranges(&group.iter().map(|at| cpus[*at]).collect::<Vec<_>>())).collect();
    let sizes = BTreeSet::from_iter(found.groups.iter().map(Vec::len));
    let of = match (sizes.len(), sizes.first()) {
        (1, Some(size)) => format!("{} of {}", counted(groups.len(), "group"), counted(*size, "CPU")),
        _ => format!("{} of CPUs", counted(groups.len(), "group")),
    };
    let text = format!(
        "{of} ({}): within a group {}, across {}; {}.",
        groups.join("; "),
        shown(within),
        shown(across),
        setting(group[0].job, &[Key::Place]),
    );
    let evidence = json!({ "groups": groups, "within": within, "across": across, "pairs": pairs.len() });
    let effect = (across.median / within.median).ln().abs().exp();
    Some(Candidate::new("place-groups", effect, text, evidence))
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
    use pipemark_stats::fixture::{STEADY, outcome, records};

    use crate::findings::texts;

    #[test]
    fn two_groups_are_named_with_their_figures() {
        let pairs = (0..8u32).flat_map(|writer| (0..8u32).map(move |reader| (writer, reader)));
        let outcomes = pairs.filter(|(writer, reader)| writer != reader).map(|(writer, reader)| {
            let speed = if writer / 4 == reader / 4 { 2.0 } else { 1.0 };
            outcome("map", &[("place", &format!("{writer}:{reader}"))], speed, &STEADY)
        });
        let found = texts("place-groups", &records(outcomes.collect()));
        assert!(
            found[0].starts_with(
                "2 groups of 4 CPUs (0–3; 4–7): within a group 2.00 GiB/s (2.00 GiB/s–2.00 GiB/s), across 1.00 GiB/s"
            ),
            "{found:?}"
        );
        let equal = [(0, 1), (1, 0), (2, 3), (3, 2), (0, 2), (1, 3)];
        let equal =
            equal.map(|(writer, reader)| outcome("map", &[("place", &format!("{writer}:{reader}"))], 1.0, &STEADY));
        assert!(texts("place-groups", &records(equal.into())).is_empty());
    }
}
