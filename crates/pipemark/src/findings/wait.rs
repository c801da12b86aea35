//! Spinning and polling against blocking: what they gain, and the CPU time they take for it.

use serde_json::Value;

use super::contrast::Contrast;
use super::words::{trial, waiting};
use super::{Candidate, Measured};
use crate::model::{Key, WaitPolicy, capitalised, three_digits};

/// Each other wait policy against blocking, always with its cost: a spinning end takes a whole CPU.
pub(super) fn against_blocking(group: &[Measured]) -> Vec<Candidate> {
    let (blocking, others): (Vec<Measured>, Vec<Measured>) =
        group.iter().partition(|one| one.ends().wait == WaitPolicy::Block);
    blocking.first().map_or_else(Vec::new, |base| others.iter().filter_map(|other| against(*base, *other)).collect())
}

fn against(base: Measured, other: Measured) -> Option<Candidate> {
    let speed = Contrast::speed(base, other)?;
    let cost = Contrast::of(other.cost(), base, other);
    let cost_words = match &cost {
        Some(cost) if cost.same() => "the same within 3 %".to_owned(),
        Some(cost) if cost.more() || cost.less() => cost.to_string(),
        _ => "can't tell".to_owned(),
    };
    let seconds = |one: Measured| one.estimates.get(one.cost()).map(|seconds| three_digits(seconds.median));
    let text = format!(
        "{} instead of blocking is {}; CPU time: {cost_words}, {} s per {} instead of {} s: {}.",
        capitalised(waiting(other.ends().wait)),
        speed.as_fast()?,
        seconds(other)?,
        if other.job.is_round_trip() { "million messages" } else { "GiB" },
        seconds(base)?,
        trial(base.job, &[Key::Wait]),
    );
    let evidence = speed.evidence_with("cpu_time_ratio", cost.map_or(Value::Null, |cost| cost.evidence()));
    Some(Candidate::new("wait", speed.effect(), text, evidence))
}

#[cfg(test)]
mod tests {
    use crate::stats::fixture::{STEADY, outcome, spoken};
    use crate::stats::records::records;

    /// Spinning at `figure` GiB/s with two busy CPUs, blocking at 1 GiB/s with `idle` of that time unused.
    fn texts(wait: &str, figure: f64, idle: u64, runs: &[f64]) -> Vec<String> {
        let mut blocking = outcome("e", &[], 1.0, runs);
        blocking.samples.iter_mut().for_each(|sample| sample.sys_ns -= idle);
        let records = records(vec![blocking, outcome("e", &[("wait", wait)], figure, runs)]);
        crate::findings::texts("wait", &records)
    }

    #[test]
    fn gain_and_cost_are_told_together() {
        assert_eq!(
            texts("spin", 1.25, 1_000_000_000, &STEADY),
            ["Spinning instead of blocking is 1.25× (1.25–1.25) as fast; CPU time: 1.60× (1.60–1.60), \
              1.60 s per GiB instead of 1.00 s: write → read across two cores (blocks of 64 KiB)."]
        );
        assert!(texts("poll", 0.5, 0, &STEADY)[0].starts_with("Polling instead of blocking is only 0.50×"));
        assert!(texts("spin", 1.0, 0, &STEADY)[0].contains("is as fast (within 3 %); CPU time: the same within 3 %"));
    }

    #[test]
    fn round_trips_are_told_with_their_cost() {
        let link = ("link", "shm");
        let records = [
            spoken(&[link, ("block", "64")], 4_000.0, &STEADY),
            spoken(&[link, ("block", "64"), ("wait", "spin")], 200.0, &STEADY),
        ];
        let found = crate::findings::texts("wait", &records);
        assert_eq!(
            found,
            ["Spinning instead of blocking is 20.0× (20.0–20.0) as fast; CPU time: 0.05× (0.05–0.05), \
                 0.20 s per million messages instead of 4.00 s: shm across two cores (messages of 64 B)."]
        );
    }

    #[test]
    fn doubt_is_silent() {
        assert_eq!(texts("spin", 1.03, 0, &STEADY), [""; 0]);
        assert_eq!(texts("spin", 2.0, 0, &STEADY[..4]), [""; 0]);
        assert_eq!(texts("block", 2.0, 0, &STEADY), [""; 0]);
    }
}
