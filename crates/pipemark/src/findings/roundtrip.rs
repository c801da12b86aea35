//! Round trips: the shortest there is here, and how much longer the slowest of a hundred take.

use serde_json::{Value, json};

use super::contrast::Contrast;
use super::gap::gap;
use super::words::{time, trial, work_in_words};
use super::{Candidate, Measured, fastest};
use crate::model::{Estimate, Figure, Key, Nanos, Sample, WaitPolicy, three_digits};

/// A slowest hundredth that takes less than so many times the median is no tail to speak of.
const TAIL: f64 = 1.5;

/// The shortest round trip of each wait policy, back to back, always with its CPU time and what is done to the bytes.
pub(super) fn shortest(trips: &[Measured]) -> Vec<Candidate> {
    let of_policy = |wait: WaitPolicy| {
        let back_to_back = |one: &Measured| one.ends().wait == wait && gap(one) == Some(Nanos(0));
        let trips: Vec<Measured> = trips.iter().copied().filter(back_to_back).collect();
        let best = fastest(trips.iter().copied())?;
        let slower = |other: &Measured| Contrast::speed(*other, best).is_some_and(|contrast| contrast.more());
        if !trips.iter().any(slower) {
            return None;
        }
        let trip = best.estimates.headline();
        let text = format!(
            "The shortest round trip of ends that {wait} takes {} ({}–{}) and {} s of CPU time per million messages: {}, {}.",
            best.headline(),
            time(trip.low?),
            time(trip.high?),
            three_digits(best.estimates.get(best.cost())?.median),
            trial(best.job, &[Key::Wait]),
            work_in_words(best.ends().work()),
        );
        Some(Candidate::new("round-trip", 1.0, text, json!({ "of": best.evidence(), "round_trips": trips.len() })))
    };
    [WaitPolicy::Block, WaitPolicy::Poll, WaitPolicy::Spin].into_iter().filter_map(of_policy).collect()
}

/// How many times the median the 99th percentile is, by run.
struct Tail<'a> {
    trip: Measured<'a>,
    ratio: Estimate,
    /// What holds together with all other comparisons.
    sure: (f64, f64),
}

impl<'a> Tail<'a> {
    /// `None` where a run had too few round trips to tell, or there are too few runs.
    fn of(trip: Measured<'a>) -> Option<Tail<'a>> {
        let of_run = |sample: &Sample| Some(Figure::P99.of_sample(sample)? / Figure::P50.of_sample(sample)?);
        let ratios: Option<Vec<f64>> = trip.record.samples.iter().map(of_run).collect();
        let ratio = Estimate::of(&ratios?)?;
        Some(Tail { trip, ratio, sure: trip.family.interval(&ratio)? })
    }

    fn words(&self) -> String {
        let Estimate { median, low, high, .. } = self.ratio;
        let [ratio, low, high] = [Some(median), low, high].map(|figure| figure.map_or_else(String::new, three_digits));
        let p99 = self.trip.estimates.get(Figure::P99).map_or_else(String::new, |p99| time(p99.median));
        let (median, trial) = (self.trip.headline(), trial(self.trip.job, &[]));
        format!("{ratio}× ({low}–{high}) the median by {trial} (p99 {p99}, median {median})")
    }

    fn evidence(&self) -> Value {
        json!({ "of": self.trip.evidence(), "p99_to_p50": self.ratio })
    }
}

/// The longest tail and the shortest of each situation, where they can be told apart.
pub(super) fn tail(group: &[Measured]) -> Option<Candidate> {
    let tails: Vec<Tail> = group.iter().filter_map(|trip| Tail::of(*trip)).collect();
    let longest =
        tails.iter().max_by(|one, other| one.sure.0.total_cmp(&other.sure.0)).filter(|tail| tail.sure.0 >= TAIL)?;
    let shortest = tails.iter().min_by(|one, other| one.sure.1.total_cmp(&other.sure.1))?;
    let mut text = format!("Of a hundred round trips the slowest takes at least {}", longest.words());
    let mut evidence = json!({ "longest": longest.evidence() });
    if shortest.sure.1 < longest.sure.0 {
        text.push_str(&format!(", but only {}", shortest.words()));
        evidence["shortest"] = shortest.evidence();
    }
    Some(Candidate::new("tail", longest.ratio.median.ln(), text + ".", evidence))
}

#[cfg(test)]
mod tests {
    use crate::findings::texts;
    use crate::model::Record;
    use crate::stats::fixture::{STEADY, spoken};

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
            texts("round-trip", &records),
            [
                "The shortest round trip of ends that block takes 4.00 µs (3.99 µs–4.01 µs) and 4.00 s of CPU time per million \
                 messages: pipe across two cores (messages of 8 B), copied twice.",
                "The shortest round trip of ends that spin takes 200 ns (199 ns–200 ns) and 0.20 s of CPU time per million \
                 messages: shm across two cores (messages of 8 B), copied twice.",
            ]
        );
    }

    #[test]
    fn the_shortest_of_equals_or_of_few_runs_is_none() {
        let of = |link: &str, ns: f64, runs: &[f64]| spoken(&[("link", link)], ns, runs);
        assert_eq!(texts("round-trip", &[of("pipe", 4_000.0, &STEADY)]), [""; 0]);
        assert_eq!(texts("round-trip", &[of("pipe", 4_000.0, &STEADY), of("fifo", 4_000.0, &STEADY)]), [""; 0]);
        let few = &STEADY[..4];
        assert_eq!(texts("round-trip", &[of("pipe", 4_000.0, few), of("fifo", 9_000.0, few)]), [""; 0]);
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
            texts("tail", &[with_tail("pipe", 2), with_tail("tcp", 12)]),
            [
                "Of a hundred round trips the slowest takes at least 12.0× (12.0–12.0) the median by tcp across two cores \
                 (messages of 64 KiB) (p99 8.00 µs, median 4.00 µs), but only 2.00× (2.00–2.00) the median by pipe across \
                 two cores (messages of 64 KiB) (p99 8.00 µs, median 4.00 µs)."
            ]
        );
        assert!(!texts("tail", &[with_tail("pipe", 2), with_tail("tcp", 2)])[0].contains("but only"));
    }

    #[test]
    fn no_tail_is_told_of_what_has_none_or_cannot_tell() {
        assert_eq!(texts("tail", &[with_tail("pipe", 1)]), [""; 0]);
        let mut unsupported = with_tail("pipe", 9);
        unsupported.samples[0].latency.as_mut().unwrap().p99 = None;
        assert_eq!(texts("tail", &[unsupported]), [""; 0]);
        let mut few = with_tail("pipe", 9);
        few.samples.truncate(4);
        assert_eq!(texts("tail", &[few]), [""; 0]);
    }
}
