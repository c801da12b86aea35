//! What a larger pipe is worth, and what a smaller one costs.

use serde_json::json;

use super::contrast::Contrast;
use super::words::{capacity, figures, granted, interval, setting, times};
use super::{Found, Subject, fastest, groups};
use crate::model::{Capacity, Key};

/// Each capacity against the default one, or the smallest where there is no default.
pub(super) fn worth(subjects: &[Subject]) -> Vec<Found> {
    groups(subjects, |s| s.capacity = None).iter().flat_map(|group| worth_of(group)).collect()
}

fn worth_of(group: &[Subject]) -> Vec<Found> {
    let usual = group.iter().find(|subject| subject.ends().capacity == Capacity::DEFAULT);
    let Some(base) = usual.or_else(|| group.iter().min_by_key(|subject| granted(**subject))).copied() else {
        return Vec::new();
    };
    // What the kernel did not grant was not measured.
    let others: Vec<(Subject, Contrast)> = group
        .iter()
        .filter(|other| other.ends().capacity != base.ends().capacity && granted(**other) != granted(base))
        .filter_map(|other| Some((*other, Contrast::throughput(base, *other)?)))
        .collect();
    let found = |(other, contrast): &(Subject, Contrast), words: &str| {
        let over_limit = if other.ends().capacity == Capacity::QUOTA {
            ", all that a user over the system's limit gets,"
        } else {
            ""
        };
        let text = format!(
            "A capacity of {}{over_limit} instead of {} {words} {} the throughput {}: {}.",
            capacity(*other),
            capacity(base),
            times(contrast.ratio),
            interval(contrast),
            setting(base.job, &[Key::Capacity]),
        );
        let mut evidence = contrast.evidence();
        evidence["of"] = figures(*other);
        evidence["to"] = figures(base);
        Found::new("capacity", contrast.effect(), text, evidence)
    };
    let pick = |wanted: fn(&Contrast) -> bool, fast: bool| {
        let those = others.iter().filter(|(_, contrast)| wanted(contrast));
        let key = |(subject, _): &&(Subject, Contrast)| subject.throughput();
        match fast {
            true => those.max_by(|one, other| key(one).total_cmp(&key(other))),
            false => those.min_by(|one, other| key(one).total_cmp(&key(other))),
        }
    };
    let gain = pick(Contrast::more, true).map(|other| found(other, "gives"));
    let loss = pick(Contrast::less, false).map(|other| found(other, "leaves"));
    let mut all: Vec<Found> = gain.into_iter().chain(loss).collect();
    if all.is_empty() && !others.is_empty() && others.iter().all(|(_, contrast)| contrast.same()) {
        let mut sizes: Vec<Subject> = others.iter().map(|(other, _)| *other).chain([base]).collect();
        sizes.sort_by_key(|subject| granted(*subject));
        let best = fastest(sizes.iter().copied()).unwrap_or(base);
        let text = format!(
            "Capacity makes no difference from {} to {}, within 3 %: {}.",
            capacity(sizes[0]),
            capacity(sizes[sizes.len() - 1]),
            setting(base.job, &[Key::Capacity]),
        );
        let evidence =
            json!({ "best": best.record.id, "capacities": sizes.iter().copied().map(figures).collect::<Vec<_>>() });
        all.push(Found::new("capacity", 0.0, text, evidence));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::streams;
    use crate::stats::fixture::{STEADY, outcome};
    use crate::stats::records::records;

    fn measured(figures: &[(&str, u64, f64)], runs: &[f64]) -> Vec<Record> {
        let outcomes = figures.iter().map(|(asked, granted, figure)| {
            let mut outcome = outcome("e", &[("capacity", asked)], *figure, runs);
            outcome.samples.iter_mut().for_each(|sample| sample.capacity_granted = Some(*granted));
            outcome
        });
        records(outcomes.collect())
    }

    fn texts(figures: &[(&str, u64, f64)], runs: &[f64]) -> Vec<String> {
        worth(&streams(&measured(figures, runs))).into_iter().map(|found| found.finding.text).collect()
    }

    #[test]
    fn gain_and_loss_are_held_against_the_default() {
        let figures = [("quota", 8192, 0.84), ("1m", 1 << 20, 3.65), ("default", 65536, 2.4), ("256k", 1 << 18, 3.0)];
        let texts = texts(&figures, &STEADY);
        assert_eq!(
            texts,
            [
                "A capacity of 1 MiB instead of 64 KiB gives 1.52 times the throughput (1.52 to 1.52): write → read across two \
                 cores (blocks of 64 KiB).",
                "A capacity of 8 KiB, all that a user over the system's limit gets, instead of 64 KiB leaves 0.35 times the \
                 throughput (0.35 to 0.35): write → read across two cores (blocks of 64 KiB).",
            ]
        );
    }

    #[test]
    fn without_a_default_the_smallest_is_the_measure() {
        let texts = texts(&[("1m", 1 << 20, 2.0), ("64k", 65536, 1.0)], &STEADY);
        assert!(texts.len() == 1 && texts[0].starts_with("A capacity of 1 MiB instead of 64 KiB gives 2.00 times"));
    }

    #[test]
    fn no_difference_is_said_when_certain() {
        let equal = [("default", 65536, 2.4), ("1m", 1 << 20, 2.41)];
        assert!(texts(&equal, &STEADY)[0].starts_with("Capacity makes no difference from 64 KiB to 1 MiB"));
        assert_eq!(texts(&equal, &STEADY[..4]), [""; 0]);
    }

    #[test]
    fn what_was_not_granted_is_not_compared() {
        assert_eq!(texts(&[("default", 65536, 2.4), ("1m", 65536, 3.4)], &STEADY), [""; 0]);
    }
}
