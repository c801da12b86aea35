//! One core against two.

use serde_json::json;

use super::contrast::{Contrast, by_size, evidence_by_block, widest};
use super::words::setting;
use super::{Candidate, Measured};
use crate::model::{ByteSize, Key, Place, capitalised};

/// Ends on each two CPUs against ends on one, over all block sizes for which both were measured.
pub(super) fn against_one_core(group: &[Measured]) -> Vec<Candidate> {
    let mut places: Vec<Place> = group.iter().map(|one| one.ends().place).collect();
    places.sort();
    places.dedup();
    let on_one = |place: &Place| match place {
        Place::Pinned(writer, reader) => writer == reader,
        place => *place == Place::Same,
    };
    let (one, two): (Vec<Place>, Vec<Place>) = places.into_iter().partition(on_one);
    let Some(one) = one.first() else { return Vec::new() };
    two.iter().filter(|two| **two != Place::Free).filter_map(|two| against(group, *one, *two)).collect()
}

fn against(group: &[Measured], one: Place, two: Place) -> Option<Candidate> {
    let at = |place: Place, block: ByteSize| {
        group.iter().find(|measured| measured.ends().place == place && measured.ends().block == block).copied()
    };
    let mut blocks: Vec<ByteSize> = group.iter().map(|measured| measured.ends().block).collect();
    blocks.sort();
    blocks.dedup();
    let contrast = |block: &ByteSize| Contrast::throughput(at(one, *block)?, at(two, *block)?);
    let contrasts: Vec<Contrast> = blocks.iter().filter_map(contrast).collect();
    let text = format!(
        "{} against {}, {}: {}.",
        capitalised(&cores(two)),
        cores(one),
        setting(contrasts.first()?.base.job, &[Key::Place, Key::Block]),
        by_size(&contrasts, &blocks, "blocks")?
    );
    let evidence = json!({ "by_block": evidence_by_block(&contrasts) });
    Some(Candidate::new("place", widest(&contrasts)?.effect(), text, evidence))
}

fn cores(place: Place) -> String {
    match place {
        Place::Same => "one core".to_owned(),
        Place::Cross | Place::Free => "two cores".to_owned(),
        Place::Pinned(writer, reader) if writer == reader => format!("CPU {writer} alone"),
        Place::Pinned(writer, reader) => format!("CPUs {writer} and {reader}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Record;
    use crate::stats::fixture::{STEADY, record};

    /// Figures by block on one core and across two.
    fn texts(figures: &[(&str, f64, f64)], two: &str, runs: &[f64]) -> Vec<String> {
        let records: Vec<Record> = figures
            .iter()
            .flat_map(|(block, alone, both)| {
                let at = |place, figure| record("e", &[("place", place), ("block", block)], figure, runs);
                [at("same", *alone), at(two, *both)]
            })
            .collect();
        crate::findings::texts("place", &records)
    }

    #[test]
    fn who_wins_where_is_told() {
        assert_eq!(
            texts(&[("64", 0.18, 0.1), ("1k", 1.2, 1.0), ("64k", 2.0, 2.0), ("1m", 2.0, 2.8)], "cross", &STEADY),
            [
                "Two cores against one core, write → read: slower with blocks of 64 B to 1 KiB, down to 0.56× (0.56–0.56) at 64 B; \
                 faster with blocks of 1 MiB, 1.40× (1.40–1.40)."
            ]
        );
        assert_eq!(
            texts(&[("64k", 2.0, 3.0)], "0:1", &STEADY),
            ["CPUs 0 and 1 against one core, write → read: faster with blocks of 64 KiB, 1.50× (1.50–1.50)."]
        );
        assert_eq!(
            texts(&[("4k", 2.0, 1.0), ("64k", 2.0, 1.9)], "cross", &STEADY),
            [
                "Two cores against one core, write → read: slower with blocks of 4 KiB to 64 KiB, down to 0.50× (0.50–0.50) at 4 KiB."
            ]
        );
    }

    #[test]
    fn sizes_that_may_be_farther_are_named() {
        let at = |place, block, figure, runs: &[f64]| record("e", &[("place", place), ("block", block)], figure, runs);
        let records = [
            at("same", "4k", 2.0, &STEADY),
            at("cross", "4k", 1.0, &STEADY),
            at("same", "64k", 2.0, &STEADY),
            at("cross", "64k", 0.5, &[0.2, 1.0, 8.0, 1.2, 0.3, 5.0, 0.5]),
        ];
        assert_eq!(
            crate::findings::texts("place", &records),
            [
                "Two cores against one core, write → read: slower with blocks of 4 KiB, 0.50× (0.50–0.50); can't tell with blocks of 64 KiB."
            ]
        );
    }

    #[test]
    fn no_difference_is_said_and_doubt_is_not() {
        assert_eq!(
            texts(&[("64k", 2.0, 2.0)], "cross", &STEADY),
            ["Two cores against one core, write → read: as fast (within 3 %) with blocks of 64 KiB."]
        );
        assert_eq!(texts(&[("64k", 2.0, 3.0)], "cross", &STEADY[..3]), [""; 0]);
        assert_eq!(texts(&[("64k", 2.0, 2.06)], "cross", &STEADY), [""; 0]);
        assert_eq!(texts(&[("64k", 2.0, 3.0)], "free", &STEADY), [""; 0]);
    }
}
