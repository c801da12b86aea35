//! What a larger pipe is worth, and what a smaller one costs.

use serde_json::{Value, json};

use super::contrast::Contrast;
use super::words::{capacity, granted, setting};
use super::{Candidate, Measured, fastest};
use crate::model::{Capacity, Key, RecvMethod, SendMethod};

/// Each capacity against the default one, or the smallest where there is no default.
pub(super) fn worth(group: &[Measured]) -> Vec<Candidate> {
    let usual = group.iter().find(|one| one.ends().capacity == Capacity::DEFAULT);
    let Some(base) = usual.or_else(|| group.iter().min_by_key(|one| granted(**one))).copied() else {
        return Vec::new();
    };
    // What the kernel did not grant was not measured.
    let contrasts: Vec<Contrast> = group
        .iter()
        .filter(|other| other.ends().capacity != base.ends().capacity && granted(**other) != granted(base))
        .filter_map(|other| Contrast::throughput(base, *other))
        .collect();
    let by_speed = |one: &&Contrast, other: &&Contrast| one.new.speed().total_cmp(&other.new.speed());
    let gain = contrasts.iter().filter(|contrast| contrast.more()).max_by(by_speed);
    let loss = contrasts.iter().filter(|contrast| contrast.less()).min_by(by_speed);
    let setting = setting(base.job, &[Key::Capacity]);
    if gain.or(loss).is_none() && !contrasts.is_empty() && contrasts.iter().all(Contrast::same) {
        let mut all: Vec<Measured> = contrasts.iter().map(|contrast| contrast.new).chain([base]).collect();
        all.sort_by_key(|one| granted(*one));
        let (least, most) = (capacity(all[0]), capacity(all[all.len() - 1]));
        let text = format!("Capacity makes no difference from {least} to {most}, within 3 %: {setting}.");
        let capacities: Value = all.iter().map(|one| one.evidence()).collect();
        let best = fastest(all).map(|best| best.record.id.clone());
        return vec![Candidate::new("capacity", 0.0, text, json!({ "best": best, "capacities": capacities }))];
    }
    let candidate = |contrast: &Contrast| {
        let quota = contrast.new.ends().capacity == Capacity::QUOTA;
        let over_limit = if quota { ", all that a user over the system's limit gets," } else { "" };
        let effect = match contrast.more() {
            true => format!("gives {contrast} the throughput"),
            false => format!("cuts throughput to {}", contrast.percent()),
        };
        let (new, old) = (capacity(contrast.new), capacity(base));
        let text = format!("A capacity of {new}{over_limit} instead of {old} {effect}: {setting}.");
        // What to do comes before what to avoid, and first what a program can do that writes and reads.
        let ends = base.ends();
        let first = [contrast.more(), (ends.send, ends.recv) == (SendMethod::Write, RecvMethod::Read)];
        let rank = first.into_iter().fold(0.0, |rank, is| 2.0 * rank + f64::from(u8::from(is)));
        Candidate::new("capacity", 100.0 * rank + contrast.effect(), text, contrast.evidence())
    };
    gain.into_iter().chain(loss).map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use crate::model::Record;
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
        crate::findings::texts("capacity", &measured(figures, runs))
    }

    #[test]
    fn gain_and_loss_are_held_against_the_default() {
        let figures = [("quota", 8192, 0.84), ("1m", 1 << 20, 3.65), ("default", 65536, 2.4), ("256k", 1 << 18, 3.0)];
        let texts = texts(&figures, &STEADY);
        assert_eq!(
            texts,
            [
                "A capacity of 1 MiB instead of 64 KiB gives 1.52× (1.52–1.52) the throughput: write → read across two \
                 cores (blocks of 64 KiB).",
                "A capacity of 8 KiB, all that a user over the system's limit gets, instead of 64 KiB cuts throughput to \
                 35.0 % (35.0–35.0): write → read across two cores (blocks of 64 KiB).",
            ]
        );
    }

    #[test]
    fn without_a_default_the_smallest_is_the_measure() {
        let texts = texts(&[("1m", 1 << 20, 2.0), ("64k", 65536, 1.0)], &STEADY);
        assert!(texts.len() == 1 && texts[0].starts_with("A capacity of 1 MiB instead of 64 KiB gives 2.00×"));
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
