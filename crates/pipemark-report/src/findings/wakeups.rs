//! Findings about the cost of wakeups: one core against two, blocking against spinning, pauses between messages, and
//! round trips.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use pipemark_model::{
    ByteSize, Estimate, Figure, Job, Key, MessagePace, Nanos, Place, RoundTrip, Sample, WaitPolicy, capitalised,
    three_digits,
};
use pipemark_stats::estimate;

use crate::findings::contrast::{Contrast, by_size, evidence_by_block, widest};
use crate::findings::measured::sizes;
use crate::findings::words::{bracketed, setting, time, trial, waiting, work_in_words};
use crate::findings::{Candidate, MeasuredTrial, fastest};

/// Compares each pair of CPUs with a single CPU, at all block sizes measured both ways.
pub(super) fn against_one_core(group: &[MeasuredTrial]) -> Vec<Candidate> {
    let places = BTreeSet::from_iter(group.iter().map(|one| one.ends().place));
    let on_one = |place: &Place| match place {
        Place::Pinned(writer, reader) => writer == reader,
        place => *place == Place::Same,
    };
    let (one, two): (Vec<Place>, Vec<Place>) = places.into_iter().partition(on_one);
    let Some(one) = one.first() else { return Vec::new() };
    two.iter().filter(|two| **two != Place::Free).filter_map(|two| by_place(group, *one, *two)).collect()
}

fn by_place(group: &[MeasuredTrial], one: Place, two: Place) -> Option<Candidate> {
    let at = |place: Place, block: ByteSize| {
        group.iter().find(|measured| measured.ends().place == place && measured.ends().block == block).copied()
    };
    let blocks = sizes(group);
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

/// Compares each of the other wait policies with blocking. The CPU time is always reported, because spinning keeps a
/// whole CPU busy.
pub(super) fn against_blocking(group: &[MeasuredTrial]) -> Vec<Candidate> {
    let (blocking, others): (Vec<MeasuredTrial>, Vec<MeasuredTrial>) =
        group.iter().partition(|one| one.ends().wait == WaitPolicy::Block);
    blocking.first().map_or_else(Vec::new, |base| others.iter().filter_map(|other| by_wait(*base, *other)).collect())
}

fn by_wait(base: MeasuredTrial, other: MeasuredTrial) -> Option<Candidate> {
    let speed = Contrast::speed(base, other)?;
    let cost = Contrast::of(other.cost(), base, other);
    let cost_words = match &cost {
        Some(cost) if cost.is_equal() => "the same within 3 %".to_owned(),
        Some(cost) if cost.is_higher() || cost.is_lower() => cost.to_string(),
        _ => "inconclusive".to_owned(),
    };
    let seconds = |one: MeasuredTrial| one.estimates.get(one.cost()).map(|seconds| three_digits(seconds.median));
    let text = format!(
        "{} instead of blocking is {}; CPU time: {cost_words}, {} s per {} instead of {} s {}.",
        capitalised(waiting(other.ends().wait)),
        if speed.is_equal() { "equally fast (within 3 %)".to_owned() } else { speed.as_fast()? },
        seconds(other)?,
        if other.job.is_round_trip() { "million messages" } else { "GiB" },
        seconds(base)?,
        bracketed(&trial(base.job, &[Key::Wait])),
    );
    let evidence = speed.evidence_with("cpu_time_ratio", cost.map_or(Value::Null, |cost| cost.evidence()));
    Some(Candidate::new("wait", speed.effect(), text, evidence))
}

/// The pause before each message; `None` for messages at a fixed rate.
pub(super) fn gap(one: &MeasuredTrial) -> Option<Nanos> {
    match one.job {
        Job::RoundTrip(RoundTrip { pace: MessagePace::Gap(gap), .. }) => Some(*gap),
        _ => None,
    }
}

/// Compares each gap with back-to-back messages.
pub(super) fn against_no_gap(group: &[MeasuredTrial]) -> Option<Candidate> {
    let base = *group.iter().find(|one| gap(one) == Some(Nanos(0)))?;
    let paused = group.iter().filter(|one| gap(one).is_some_and(|gap| gap > Nanos(0)));
    let mut contrasts: Vec<Contrast> = paused.filter_map(|one| Contrast::of(Figure::P50, base, *one)).collect();
    contrasts.retain(|contrast| contrast.is_higher() || contrast.is_lower() || contrast.is_equal());
    contrasts.sort_by_cached_key(|contrast| gap(&contrast.new));
    let clause = |contrast: &Contrast| {
        let pause = gap(&contrast.new).unwrap_or_default();
        match contrast.is_equal() {
            true => format!("after a pause of {pause}, it takes as long (within 3 %)"),
            false => format!("after a pause of {pause}, it takes {}, {contrast} as long", contrast.new.headline()),
        }
    };
    let clauses: Vec<String> = contrasts.iter().map(clause).collect();
    let text = format!(
        "A round trip takes {} back to back {}; {}.",
        base.headline(),
        bracketed(&trial(base.job, &[Key::Gap])),
        clauses.join("; ")
    );
    let by_gap: Value =
        contrasts.iter().map(|contrast| contrast.evidence_with("gap_ns", json!(gap(&contrast.new)))).collect();
    Some(Candidate::new("gap", widest(&contrasts)?.effect(), text, json!({ "by_gap": by_gap })))
}

/// The minimum reported ratio of the 99th percentile to the median.
const MIN_TAIL_RATIO: f64 = 1.5;

/// The shortest back-to-back round trip of each wait policy, with its CPU time and the work done on the bytes.
pub(super) fn shortest_trip(trips: &[MeasuredTrial]) -> Vec<Candidate> {
    let of_policy = |wait: WaitPolicy| {
        let back_to_back = |one: &MeasuredTrial| one.ends().wait == wait && gap(one) == Some(Nanos(0));
        let trips: Vec<MeasuredTrial> = trips.iter().copied().filter(back_to_back).collect();
        let best = fastest(trips.iter().copied())?;
        let slower = |other: &MeasuredTrial| Contrast::speed(*other, best).is_some_and(|contrast| contrast.is_higher());
        if !trips.iter().any(slower) {
            return None;
        }
        let trip = best.estimates.headline();
        let text = format!(
            "If both ends {wait}, {}, {}, has the shortest round trip: {} ({}–{}), with {} s of CPU time per million messages.",
            trial(best.job, &[Key::Wait]),
            work_in_words(best.ends().work()),
            best.headline(),
            time(trip.low?),
            time(trip.high?),
            three_digits(best.estimates.get(best.cost())?.median),
        );
        Some(Candidate::new("round-trip", 1.0, text, json!({ "of": best.evidence(), "round_trips": trips.len() })))
    };
    [WaitPolicy::Block, WaitPolicy::Poll, WaitPolicy::Spin].into_iter().filter_map(of_policy).collect()
}

/// The ratio of the 99th percentile to the median, computed for each run.
struct Tail<'a> {
    trip: MeasuredTrial<'a>,
    ratio: Estimate,
    /// The interval of the ratio, adjusted for all comparisons.
    adjusted: (f64, f64),
}

impl<'a> Tail<'a> {
    /// The tail of a trial; `None` if a run had too few round trips, or there are too few runs.
    fn of(trip: MeasuredTrial<'a>) -> Option<Tail<'a>> {
        let of_run = |sample: &Sample| Some(Figure::P99.of_sample(sample)? / Figure::P50.of_sample(sample)?);
        let ratios: Option<Vec<f64>> = trip.record.samples.iter().map(of_run).collect();
        let ratio = estimate::from_runs(&ratios?)?;
        Some(Tail { trip, ratio, adjusted: trip.family.interval(&ratio)? })
    }

    /// The ratio as text. `of` says of what, and precedes the trial.
    fn words(&self, of: &str) -> String {
        let Estimate { median, low, high, .. } = self.ratio;
        let [ratio, low, high] = [Some(median), low, high].map(|figure| figure.map_or_else(String::new, three_digits));
        let p99 = self.trip.estimates.get(Figure::P99).map_or_else(String::new, |p99| time(p99.median));
        let (median, trial) = (self.trip.headline(), trial(self.trip.job, &[]));
        format!("{ratio}× ({low}–{high}){of} with {trial} (p99 {p99}, median {median})")
    }

    fn evidence(&self) -> Value {
        json!({ "of": self.trip.evidence(), "p99_to_p50": self.ratio })
    }
}

/// Compares the longest tail with the shortest, if they differ significantly.
pub(super) fn tail(group: &[MeasuredTrial]) -> Option<Candidate> {
    let tails: Vec<Tail> = group.iter().filter_map(|trip| Tail::of(*trip)).collect();
    let longest = tails
        .iter()
        .max_by(|one, other| one.adjusted.0.total_cmp(&other.adjusted.0))
        .filter(|tail| tail.adjusted.0 >= MIN_TAIL_RATIO)?;
    let shortest = tails.iter().min_by(|one, other| one.adjusted.1.total_cmp(&other.adjusted.1))?;
    let mut text = format!("The 99th percentile is {}", longest.words(" the median"));
    let mut evidence = json!({ "longest": longest.evidence() });
    if shortest.adjusted.1 < longest.adjusted.0 {
        text.push_str(&format!(", and {}", shortest.words("")));
        evidence["shortest"] = shortest.evidence();
    }
    Some(Candidate::new("tail", longest.ratio.median.ln(), text + ".", evidence))
}

#[cfg(test)]
mod tests {
    mod place {
        use pipemark_model::Record;
        use pipemark_stats::fixture::{STEADY, record};

        /// The findings' texts. `figures` has block sizes, each with the figures on one core and across two cores.
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
        fn faster_and_slower_block_sizes_are_joined_into_ranges() {
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
        fn inconclusive_sizes_with_a_larger_ratio_are_named() {
            let at =
                |place, block, figure, runs: &[f64]| record("e", &[("place", place), ("block", block)], figure, runs);
            let records = [
                at("same", "4k", 2.0, &STEADY),
                at("cross", "4k", 1.0, &STEADY),
                at("same", "64k", 2.0, &STEADY),
                at("cross", "64k", 0.5, &[0.2, 1.0, 8.0, 1.2, 0.3, 5.0, 0.5]),
            ];
            assert_eq!(
                crate::findings::texts("place", &records),
                [
                    "Two cores against one core, write → read: slower with blocks of 4 KiB, 0.50× (0.50–0.50); inconclusive with blocks of 64 KiB."
                ]
            );
        }

        #[test]
        fn equality_is_reported_unless_inconclusive() {
            assert_eq!(
                texts(&[("64k", 2.0, 2.0)], "cross", &STEADY),
                ["Two cores against one core, write → read: equally fast (within 3 %) with blocks of 64 KiB."]
            );
            assert_eq!(texts(&[("64k", 2.0, 3.0)], "cross", &STEADY[..3]), [""; 0]);
            assert_eq!(texts(&[("64k", 2.0, 2.06)], "cross", &STEADY), [""; 0]);
            assert_eq!(texts(&[("64k", 2.0, 3.0)], "free", &STEADY), [""; 0]);
        }
    }

    mod wait {
        use pipemark_stats::fixture::records;
        use pipemark_stats::fixture::{STEADY, outcome, round_trip_record};

        /// The findings' texts for spinning at `figure` GiB/s with two busy CPUs, and blocking at 1 GiB/s with `idle`
        /// of the CPU time unused.
        fn texts(wait: &str, figure: f64, idle: u64, runs: &[f64]) -> Vec<String> {
            let mut blocking = outcome("e", &[], 1.0, runs);
            blocking.samples.iter_mut().for_each(|sample| sample.sys_ns -= idle);
            let records = records(vec![blocking, outcome("e", &[("wait", wait)], figure, runs)]);
            crate::findings::texts("wait", &records)
        }

        #[test]
        fn gain_and_cost_share_a_finding() {
            assert_eq!(
                texts("spin", 1.25, 1_000_000_000, &STEADY),
                ["Spinning instead of blocking is 1.25× (1.25–1.25) as fast; CPU time: 1.60× (1.60–1.60), \
                  1.60 s per GiB instead of 1.00 s (write → read across two cores, blocks of 64 KiB)."]
            );
            assert!(texts("poll", 0.5, 0, &STEADY)[0].starts_with("Polling instead of blocking is only 0.50×"));
            assert!(
                texts("spin", 1.0, 0, &STEADY)[0]
                    .contains("is equally fast (within 3 %); CPU time: the same within 3 %")
            );
        }

        #[test]
        fn round_trips_are_reported_with_their_cpu_cost() {
            let link = ("link", "shm");
            let records = [
                round_trip_record(&[link, ("block", "64")], 4_000.0, &STEADY),
                round_trip_record(&[link, ("block", "64"), ("wait", "spin")], 200.0, &STEADY),
            ];
            let found = crate::findings::texts("wait", &records);
            assert_eq!(
                found,
                ["Spinning instead of blocking is 20.0× (20.0–20.0) as fast; CPU time: 0.05× (0.05–0.05), \
                     0.20 s per million messages instead of 4.00 s (shm across two cores, messages of 64 B)."]
            );
        }

        #[test]
        fn inconclusive_waits_give_no_finding() {
            assert_eq!(texts("spin", 1.03, 0, &STEADY), [""; 0]);
            assert_eq!(texts("spin", 2.0, 0, &STEADY[..4]), [""; 0]);
            assert_eq!(texts("block", 2.0, 0, &STEADY), [""; 0]);
        }
    }

    mod gap {
        use pipemark_model::Record;
        use pipemark_stats::fixture::{STEADY, round_trip_record};

        fn texts(records: &[Record]) -> Vec<String> {
            crate::findings::texts("gap", records)
        }

        fn of(gap: &str, ns: f64, runs: &[f64]) -> Record {
            round_trip_record(&[("link", "tcp"), ("block", "64"), ("gap", gap)], ns, runs)
        }

        #[test]
        fn each_gap_is_compared_with_no_gap() {
            assert_eq!(
                texts(&[of("1ms", 16_000.0, &STEADY), of("0", 4_000.0, &STEADY), of("100us", 4_000.0, &STEADY)]),
                [
                    "A round trip takes 4.00 µs back to back (tcp across two cores, messages of 64 B); after a pause of 100 µs, it takes as long (within 3 %); after a pause of 1.00 ms, it takes 16.0 µs, 4.00× (4.00–4.00) as long."
                ]
            );
        }

        #[test]
        fn inconclusive_or_missing_bases_give_no_finding() {
            assert_eq!(texts(&[of("1ms", 16_000.0, &STEADY), of("100us", 4_000.0, &STEADY)]), [""; 0]);
            assert_eq!(texts(&[of("0", 4_000.0, &STEADY), of("1ms", 4_120.0, &STEADY)]), [""; 0]);
            assert_eq!(texts(&[of("0", 4_000.0, &STEADY), of("1ms", 9_000.0, &STEADY[..4])]), [""; 0]);
            let paced = round_trip_record(&[("link", "tcp"), ("block", "64"), ("rate", "1000")], 4_000.0, &STEADY);
            assert_eq!(texts(&[paced, of("1ms", 9_000.0, &STEADY)]), [""; 0]);
        }
    }

    mod round_trip {
        use pipemark_model::Record;
        use pipemark_stats::fixture::{STEADY, round_trip_record};

        use crate::findings::texts;

        #[test]
        fn each_wait_policy_has_its_shortest() {
            let records = [
                round_trip_record(&[("link", "pipe"), ("block", "8")], 4_000.0, &STEADY),
                round_trip_record(&[("link", "tcp"), ("block", "8")], 12_000.0, &STEADY),
                round_trip_record(&[("link", "pipe"), ("block", "8"), ("gap", "1ms")], 3_000.0, &STEADY),
                round_trip_record(&[("link", "shm"), ("block", "8"), ("wait", "spin")], 200.0, &STEADY),
                round_trip_record(&[("link", "pipe"), ("block", "8"), ("wait", "spin")], 900.0, &STEADY),
            ];
            assert_eq!(
                texts("round-trip", &records),
                [
                    "If both ends block, pipe across two cores (messages of 8 B), copied twice, has the shortest round trip: \
                     4.00 µs (3.99 µs–4.01 µs), with 4.00 s of CPU time per million messages.",
                    "If both ends spin, shm across two cores (messages of 8 B), copied twice, has the shortest round trip: \
                     200 ns (199 ns–200 ns), with 0.20 s of CPU time per million messages.",
                ]
            );
        }

        #[test]
        fn no_shortest_trip_is_reported_if_tied_or_with_few_runs() {
            let of = |link: &str, ns: f64, runs: &[f64]| round_trip_record(&[("link", link)], ns, runs);
            assert_eq!(texts("round-trip", &[of("pipe", 4_000.0, &STEADY)]), [""; 0]);
            assert_eq!(texts("round-trip", &[of("pipe", 4_000.0, &STEADY), of("fifo", 4_000.0, &STEADY)]), [""; 0]);
            let few = &STEADY[..4];
            assert_eq!(texts("round-trip", &[of("pipe", 4_000.0, few), of("fifo", 9_000.0, few)]), [""; 0]);
        }

        fn with_tail(link: &str, times: u64) -> Record {
            let mut record = round_trip_record(&[("link", link)], 4_000.0, &STEADY);
            for latency in record.samples.iter_mut().filter_map(|sample| sample.latency.as_mut()) {
                latency.p99 = Some(latency.p50 * times);
            }
            record
        }

        #[test]
        fn the_longest_and_shortest_tails_are_reported() {
            assert_eq!(
                texts("tail", &[with_tail("pipe", 2), with_tail("tcp", 12)]),
                [
                    "The 99th percentile is 12.0× (12.0–12.0) the median with tcp across two cores (messages of 64 KiB) (p99 \
                     8.00 µs, median 4.00 µs), and 2.00× (2.00–2.00) with pipe across two cores (messages of 64 KiB) (p99 \
                     8.00 µs, median 4.00 µs)."
                ]
            );
            assert!(!texts("tail", &[with_tail("pipe", 2), with_tail("tcp", 2)])[0].contains(", and "));
        }

        #[test]
        fn no_tail_is_reported_if_absent_or_inconclusive() {
            assert_eq!(texts("tail", &[with_tail("pipe", 1)]), [""; 0]);
            let mut unsupported = with_tail("pipe", 9);
            unsupported.samples[0].latency.as_mut().unwrap().p99 = None;
            assert_eq!(texts("tail", &[unsupported]), [""; 0]);
            let mut few = with_tail("pipe", 9);
            few.samples.truncate(4);
            assert_eq!(texts("tail", &[few]), [""; 0]);
        }
    }
}
