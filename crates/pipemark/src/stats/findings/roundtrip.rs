//! Round trips: the shortest there is here, and how much longer the slowest of a hundred take.

use serde_json::json;

use super::contrast::Contrast;
use super::words::{figures, time, times, told};
use super::{Found, Subject, groups};
use crate::model::{Estimate, Figure, Key, Sample, WaitPolicy, three_digits};

/// A slowest hundredth that takes less than so many times the median is no tail to speak of.
const TAIL: f64 = 1.5;

/// The shortest round trip of each wait policy, back to back, always with its CPU time: by the high end of the interval,
/// so that no wild figure makes the claim.
pub(super) fn shortest(subjects: &[Subject]) -> Vec<Found> {
    [WaitPolicy::Block, WaitPolicy::Poll, WaitPolicy::Spin]
        .into_iter()
        .filter_map(|wait| {
            let of_policy: Vec<Subject> =
                subjects.iter().copied().filter(|s| s.ends().wait == wait && s.back_to_back()).collect();
            shortest_of(&of_policy)
        })
        .collect()
}

fn shortest_of(subjects: &[Subject]) -> Option<Found> {
    let high = |subject: &Subject| subject.round_trip().and_then(|trip| trip.high).unwrap_or(f64::INFINITY);
    let best = subjects.iter().copied().min_by(|one, other| high(one).total_cmp(&high(other)))?;
    let slower = |other: &Subject| Contrast::speed(*other, best).is_some_and(|contrast| contrast.more());
    if !subjects.iter().any(slower) {
        return None;
    }
    let trip = best.round_trip()?;
    let cpu = best.estimates.get(Figure::CpuSecondsPerMillion)?;
    let ends = match best.ends().wait {
        WaitPolicy::Block => "block",
        WaitPolicy::Poll => "poll",
        WaitPolicy::Spin => "spin",
    };
    let text = format!(
        "The shortest round trip of ends that {ends} takes {} ({} to {}) and {} s of CPU time per million messages: {}.",
        time(trip.median),
        time(trip.low?),
        time(trip.high?),
        three_digits(cpu.median),
        told(best.job, &[Key::Wait]),
    );
    Some(Found::new("round-trip", 1.0, text, json!({ "of": figures(best), "round_trips": subjects.len() })))
}

/// How many times the median the 99th percentile is, by run.
struct Tail<'a> {
    subject: Subject<'a>,
    ratio: Estimate,
    low: f64,
    high: f64,
}

impl<'a> Tail<'a> {
    /// `None` where a run had too few round trips to tell, or there are too few runs.
    fn of(subject: Subject<'a>) -> Option<Tail<'a>> {
        let of_run = |sample: &Sample| {
            let latency = sample.latency.as_ref()?;
            Some(latency.p99? as f64 / latency.p50 as f64)
        };
        let ratios: Option<Vec<f64>> = subject.record.samples.iter().map(of_run).collect();
        let ratio = Estimate::of(&ratios?)?;
        Some(Tail { subject, ratio, low: ratio.low?, high: ratio.high? })
    }

    fn words(&self) -> String {
        let trip = self.subject.round_trip().expect("a conversation");
        let p99 = self.subject.estimates.get(Figure::P99).map_or_else(String::new, |p99| time(p99.median));
        format!(
            "{} ({} to {}) the median by {} (p99 {p99}, median {})",
            times(self.ratio.median),
            three_digits(self.low),
            three_digits(self.high),
            told(self.subject.job, &[]),
            time(trip.median),
        )
    }

    fn evidence(&self) -> serde_json::Value {
        json!({ "of": figures(self.subject), "p99_to_p50": self.ratio })
    }
}

/// The longest tail and the shortest of each situation, where they can be told apart.
pub(super) fn tail(subjects: &[Subject]) -> Vec<Found> {
    groups(subjects, |s| {
        (s.link, s.send, s.recv, s.block) = (None, None, None, None);
    })
    .iter()
    .filter_map(|group| tail_of(group))
    .collect()
}

fn tail_of(group: &[Subject]) -> Option<Found> {
    let tails: Vec<Tail> = group.iter().filter_map(|subject| Tail::of(*subject)).collect();
    let longest = tails.iter().max_by(|one, other| one.low.total_cmp(&other.low)).filter(|tail| tail.low >= TAIL)?;
    let shortest = tails.iter().min_by(|one, other| one.high.total_cmp(&other.high))?;
    let mut text = format!("Of a hundred round trips the slowest takes at least {}", longest.words());
    let mut evidence = json!({ "longest": longest.evidence() });
    if shortest.high < longest.low {
        text.push_str(&format!(", but only {}", shortest.words()));
        evidence["shortest"] = shortest.evidence();
    }
    Some(Found::new("tail", longest.ratio.median.ln(), text + ".", evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::conversations;
    use crate::stats::fixture::{STEADY, spoken};

    fn texts(rule: fn(&[Subject]) -> Vec<Found>, records: &[Record]) -> Vec<String> {
        rule(&conversations(records)).into_iter().map(|found| found.finding.text).collect()
    }

    #[test]
    fn each_wait_policy_has_its_shortest() {
        let records = [
            spoken(&[("link", "pipe"), ("block", "8")], 4_000.0, &STEADY),
            spoken(&[("link", "tcp"), ("block", "8")], 12_000.0, &STEADY),
            spoken(&[("link", "pipe"), ("block", "8"), ("gap", "1ms")], 3_000.0, &STEADY),
            spoken(&[("link", "shm"), ("block", "8"), ("wait", "spin")], 200.0, &STEADY),
            spoken(&[("link", "pipe"), ("block", "8"), ("wait", "spin")], 900.0, &STEADY),
        ];
        assert_eq!(
            texts(shortest, &records),
            [
                "The shortest round trip of ends that block takes 4.00 µs (3.98 µs to 4.02 µs) and 4.00 s of CPU time per million \
                 messages: pipe across two cores (messages of 8 B).",
                "The shortest round trip of ends that spin takes 200 ns (199 ns to 201 ns) and 0.20 s of CPU time per million \
                 messages: shm across two cores (messages of 8 B).",
            ]
        );
    }

    #[test]
    fn the_shortest_of_equals_or_of_few_runs_is_none() {
        let of = |link: &str, ns: f64, runs: &[f64]| spoken(&[("link", link)], ns, runs);
        assert_eq!(texts(shortest, &[of("pipe", 4_000.0, &STEADY)]), [""; 0]);
        assert_eq!(texts(shortest, &[of("pipe", 4_000.0, &STEADY), of("fifo", 4_000.0, &STEADY)]), [""; 0]);
        let few = &STEADY[..4];
        assert_eq!(texts(shortest, &[of("pipe", 4_000.0, few), of("fifo", 9_000.0, few)]), [""; 0]);
    }

    fn with_tail(link: &str, times: u64) -> Record {
        let mut record = spoken(&[("link", link)], 4_000.0, &STEADY);
        for latency in record.samples.iter_mut().filter_map(|sample| sample.latency.as_mut()) {
            latency.p99 = Some(latency.p50 * times);
        }
        record
    }

    #[test]
    fn the_longest_tail_is_told_beside_the_shortest() {
        assert_eq!(
            texts(tail, &[with_tail("pipe", 2), with_tail("tcp", 12)]),
            [
                "Of a hundred round trips the slowest takes at least 12.0 times (12.0 to 12.0) the median by tcp across two cores \
                 (messages of 64 KiB) (p99 8.00 µs, median 4.00 µs), but only 2.00 times (2.00 to 2.00) the median by pipe across \
                 two cores (messages of 64 KiB) (p99 8.00 µs, median 4.00 µs)."
            ]
        );
        assert!(!texts(tail, &[with_tail("pipe", 2), with_tail("tcp", 2)])[0].contains("but only"));
    }

    #[test]
    fn no_tail_is_told_of_what_has_none_or_cannot_tell() {
        assert_eq!(texts(tail, &[with_tail("pipe", 1)]), [""; 0]);
        let mut unsupported = with_tail("pipe", 9);
        unsupported.samples[0].latency.as_mut().unwrap().p99 = None;
        assert_eq!(texts(tail, &[unsupported]), [""; 0]);
        let mut few = with_tail("pipe", 9);
        few.samples.truncate(4);
        assert_eq!(texts(tail, &[few]), [""; 0]);
    }
}
