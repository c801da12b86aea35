//! Warnings from a trial's samples. They report that the trial isn't as requested, or that its figures are noisy.
//!
//! Warnings about facts that samples don't contain, such as refused huge pages, are in the outcome's notes.

use std::collections::{BTreeMap, BTreeSet};

use pipemark_model::{
    self, ByteSize, Capacity, Cpu, Delay, EndStats, Estimates, Figure, Latency, NamedCapacity, Outcome, Place,
    RecvMethod, Sample, SendMethod, Stopped, Warning,
};

use crate::drift::Drift;
use crate::estimate::median;
use crate::outliers::outliers;
use crate::regimes::regimes;

/// The largest deviation or drift without a warning, as a fraction. It equals the half width at which an interval
/// counts as narrow (±3 %).
const TOLERANCE: f64 = 0.03;

/// From this fraction of an end's own limit on, the throughput gets a warning.
const NEAR_CEILING: f64 = 0.9;

/// From this fraction of an end's own limit on, either the throughput or the limit must be wrong.
const ABOVE_CEILING: f64 = 1.05;

/// The largest share of time that the harness may use without a warning, in per cent.
const HARNESS_PERCENT: f64 = 10.0;

/// All warnings from a trial's samples.
pub(super) fn warnings_of(outcome: &Outcome, estimates: Option<&Estimates>, page_size: u64) -> Vec<Warning> {
    let (job, samples) = (&outcome.trial.job, &outcome.samples);
    let mut warnings = Vec::new();
    let ends = job.ends();
    warnings.extend(ends.and_then(|ends| capacity_differs(ends, samples, page_size)));
    warnings.extend(capacity_changed(samples));
    warnings.extend(unexpected_cpus(samples));
    if let Some(estimates) = estimates {
        // In round trips the ends wait for each other, so an end's own limit doesn't limit the trial.
        if let Some(ends) = ends.filter(|_| !job.is_round_trip()) {
            warnings.extend(near_ceiling(ends, samples));
        }
        if let Some(harness) = estimates.get(Figure::Harness).filter(|share| share.median > HARNESS_PERCENT) {
            warnings.push(Warning::Harness { percent: harness.median });
        }
        warnings.extend(missed_rate_warning(samples));
        warnings.extend(held_lines_warning(samples));
        if let Some(ends) = ends.filter(|_| !job.is_round_trip()) {
            warnings.extend(regimes(samples, ends.block.0));
        }
        let headline = estimates.headline();
        let figures: Vec<f64> = samples.iter().map(Sample::headline).collect();
        let far = outliers(&figures)
            .into_iter()
            .filter(|&run| (figures[run] / headline.median - 1.0).abs() > TOLERANCE)
            .count();
        if far > 0 {
            warnings.push(Warning::Outliers { count: far as u32, runs: headline.runs });
        }
        if let Some(drift) = Drift::of(&figures).filter(|drift| drift.exceeds(TOLERANCE)) {
            warnings.push(Warning::Drift { change: drift.change });
        }
        if let (Some(low), Some(high)) = (headline.low, headline.high) {
            let relative = (headline.median - low).max(high - headline.median) / headline.median;
            if relative > TOLERANCE && outcome.stopped != Some(Stopped::Narrow) {
                warnings.push(Warning::Wide { relative });
            }
        }
    }
    warnings
}

/// A warning if a filter held back lines, so that their times are unknown.
fn held_lines_warning(samples: &[Sample]) -> Option<Warning> {
    let lines = samples.iter().filter_map(|sample| sample.latency.as_ref());
    let lines: Vec<&Latency> = lines.filter(|lines| lines.mostly_buffered() && !lines.missed_rate()).collect();
    let held = lines.iter().filter_map(|lines| lines.held).sum();
    let all = held + lines.iter().map(|lines| lines.round_trips).sum::<u64>();
    (held > 0).then_some(Warning::Held { held, lines: all })
}

/// A warning if a run did not reach its fixed rate.
fn missed_rate_warning(samples: &[Sample]) -> Option<Warning> {
    let trips: Vec<&Latency> = samples.iter().filter_map(|sample| sample.latency.as_ref()).collect();
    let late = trips.iter().filter(|trips| trips.missed_rate()).count();
    let (sent, due) = (
        trips.iter().map(|trips| trips.round_trips + trips.held.unwrap_or(0)).sum(),
        trips.iter().filter_map(|trips| trips.due).sum(),
    );
    (late > 0).then_some(Warning::Behind { sent, due })
}

/// A warning if the granted capacity differs from the requested one. The kernel may round the capacity up, refuse it,
/// or silently grant less to a user over the limit.
fn capacity_differs(ends: &pipemark_model::Ends, samples: &[Sample], page_size: u64) -> Option<Warning> {
    let [default, quota] = [NamedCapacity::Default, NamedCapacity::Quota].map(|name| name.pages() * page_size);
    let granted = samples.iter().filter_map(|sample| sample.capacity_granted);
    let (asked, granted) = match ends.capacity {
        Capacity::Bytes(ByteSize(asked)) => (asked, granted.into_iter().find(|&granted| granted != asked)?),
        Capacity::DEFAULT => (default, granted.into_iter().find(|&granted| granted < default)?),
        Capacity::Named(_) => (quota, granted.into_iter().find(|&granted| granted > quota)?),
    };
    Some(Warning::CapacityDiffers { asked, granted })
}

fn capacity_changed(samples: &[Sample]) -> Option<Warning> {
    samples
        .iter()
        .filter_map(|sample| sample.capacity_granted.zip(sample.capacity_after))
        .find(|(before, after)| before != after)
        .map(|(before, after)| Warning::CapacityChanged { before, after })
}

/// One warning for each CPU on which an end ran although the CPU wasn't allowed.
fn unexpected_cpus(samples: &[Sample]) -> Vec<Warning> {
    let pinned = samples.iter().flat_map(Sample::ends).filter_map(|end| Some((end, end.pinned.as_ref()?)));
    let elsewhere = pinned.flat_map(|(end, pinned)| end.cpus.iter().filter(|cpu| !pinned.contains(cpu)));
    BTreeSet::from_iter(elsewhere).into_iter().map(|cpu| Warning::Misplaced { cpu: cpu.0 }).collect()
}

/// Warnings about ends that need 90 % or more of their CPU to generate or check bytes at the measured throughput, and
/// about runs faster than an end's own limit.
///
/// At a rate `r`, an end with the limit (ceiling) `c` needs the share `r / c` of its CPU. The shares of ends on one CPU
/// add up, so two ends with the limits `a` and `b` on one CPU have the joint limit `1 / (1/a + 1/b)`. Each run is
/// judged by its busiest CPU, and the trial by the median of its runs. Ends that are not pinned to one CPU are assumed
/// to have separate CPUs.
fn near_ceiling(ends: &pipemark_model::Ends, samples: &[Sample]) -> Vec<Warning> {
    // For each side and each run: the share that the run needs of its busiest CPU, and the throughput at which that CPU
    // would be fully busy.
    let mut runs: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples {
        let sides =
            sample.sources.iter().map(|end| (end, "source")).chain(sample.sinks.iter().map(|end| (end, "sink")));
        let mut cpus: BTreeMap<(Option<Cpu>, usize), (f64, &str)> = BTreeMap::new();
        for (index, (end, side)) in sides.enumerate() {
            let Some(share) = share_of_cpu(end) else { continue };
            let cpu = match (end.pinned.as_deref(), ends.place) {
                (Some([cpu]), _) => (Some(*cpu), 0),
                (_, Place::Same) => (None, 0),
                _ => (None, 1 + index),
            };
            let (sum, whose) = cpus.entry(cpu).or_insert((0.0, side));
            *sum += share;
            if *whose != side {
                *whose = "source and sink";
            }
        }
        let mut busiest: BTreeMap<&str, f64> = BTreeMap::new();
        for (share, whose) in cpus.into_values() {
            let most = busiest.entry(whose).or_insert(share);
            *most = most.max(share);
        }
        for (whose, share) in busiest {
            runs.entry(whose).or_default().push((share, sample.throughput() / share));
        }
    }
    let warning = |(end, runs): (&str, Vec<(f64, f64)>)| {
        let (shares, ceilings): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
        let (end, ceiling) = (end.to_owned(), median(&ceilings)?);
        let above = shares.iter().filter(|share| **share >= ABOVE_CEILING).count() as u32;
        match median(&shares)? {
            _ if above > 0 => Some(Warning::AboveCeiling { end, ceiling, above, runs: shares.len() as u32 }),
            share if share >= NEAR_CEILING => {
                let own_work = has_own_work(ends, &end);
                Some(Warning::NearCeiling { end, ceiling, own_work })
            }
            _ => None,
        }
    };
    runs.into_iter().filter_map(warning).collect()
}

/// Whether `end` (source, sink, or both) does work that a lighter verification doesn't reduce: a delay, or writing and
/// reading each byte in place.
fn has_own_work(ends: &pipemark_model::Ends, end: &str) -> bool {
    let (is_source, is_sink) = (end != "sink", end != "source");
    let delayed = is_source && ends.write_delay != Delay::default() || is_sink && ends.read_delay != Delay::default();
    let in_place = is_source && ends.send == SendMethod::InPlace || is_sink && ends.recv == RecvMethod::InPlace;
    delayed || in_place || !ends.verify.reads()
}

fn share_of_cpu(end: &EndStats) -> Option<f64> {
    let rate = end.bytes as f64 * 1e9 / end.ns as f64;
    let share = rate / end.ceiling?;
    (share.is_finite() && share > 0.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{GIB, STEADY, outcome, record_of, round_trip_outcome, warning_kinds};

    #[test]
    fn noise_in_latency_mode_is_that_of_the_round_trips() {
        let drifting = [1.0, 1.02, 1.03, 1.06, 1.08, 1.1, 1.12];
        // With a gap between round trips, their drift leaves the throughput steady.
        let mut round_trip_record = round_trip_outcome("e", &[("gap", "1ms")], 5_000.0, &drifting);
        round_trip_record.samples.iter_mut().for_each(|sample| sample.bytes = 1 << 20);
        assert_eq!(warning_kinds(&record_of(round_trip_record.clone())), ["drift", "wide"]);
        let steady = round_trip_outcome("e", &[("gap", "1ms")], 5_000.0, &STEADY);
        for (sample, steady) in round_trip_record.samples.iter_mut().zip(steady.samples) {
            (sample.bytes, sample.latency) = (sample.bytes << (sample.round % 3), steady.latency);
        }
        assert_eq!(warning_kinds(&record_of(round_trip_record)), [""; 0]);
    }

    #[test]
    fn an_end_that_waits_for_answers_has_no_ceiling() {
        let mut round_trip_record = round_trip_outcome("e", &[], 5_000.0, &STEADY);
        round_trip_record.samples.iter_mut().for_each(|sample| sample.sources[0].ceiling = Some(1.0));
        assert_eq!(warning_kinds(&record_of(round_trip_record)), [""; 0]);
    }

    #[test]
    fn noise_is_named() {
        let drifting = [1.0, 1.02, 1.03, 1.06, 1.08, 1.1, 1.12];
        assert_eq!(warning_kinds(&record_of(outcome("e", &[], 1.0, &drifting))), ["drift", "wide"]);
        let mut narrow = outcome("e", &[], 1.0, &drifting);
        narrow.stopped = Some(Stopped::Narrow);
        assert_eq!(warning_kinds(&record_of(narrow)), ["drift"]);
        let one_off = [1.0, 1.001, 0.999, 1.0, 1.001, 0.8, 1.0, 1.002, 0.998, 1.0, 1.001, 0.999];
        let record = record_of(outcome("e", &[], 1.0, &one_off));
        assert_eq!(record.warnings, [Warning::Outliers { count: 1, runs: 12 }]);
        let hardly_off = [1.0, 1.0001, 0.9999, 1.0, 1.0001, 0.99, 1.0, 1.0002, 0.9998];
        assert_eq!(warning_kinds(&record_of(outcome("e", &[], 1.0, &hardly_off))), [""; 0]);
    }

    #[test]
    fn capacities_other_than_requested_are_named() {
        let granted_with = |page_size: u64, asked: &str, before: u64, after: u64| {
            let mut outcome = outcome("e", &[("capacity", asked)], 1.0, &STEADY);
            for sample in &mut outcome.samples {
                (sample.capacity_granted, sample.capacity_after) = (Some(before), Some(after));
            }
            crate::records::records(vec![outcome], page_size).remove(0).warnings
        };
        let granted = |asked: &str, before: u64, after: u64| granted_with(4096, asked, before, after);
        assert_eq!(granted("default", 65536, 65536), []);
        assert_eq!(granted_with(64 << 10, "default", 1 << 20, 1 << 20), []);
        assert_eq!(granted_with(64 << 10, "quota", 128 << 10, 128 << 10), []);
        let small = Warning::CapacityDiffers { asked: 1 << 20, granted: 128 << 10 };
        assert_eq!(granted_with(64 << 10, "default", 128 << 10, 128 << 10), [small]);
        assert_eq!(granted("default", 8192, 8192), [Warning::CapacityDiffers { asked: 65536, granted: 8192 }]);
        assert_eq!(granted("1m", 65536, 65536), [Warning::CapacityDiffers { asked: 1 << 20, granted: 65536 }]);
        assert_eq!(granted("quota", 8192, 8192), []);
        assert_eq!(granted("quota", 65536, 65536), [Warning::CapacityDiffers { asked: 8192, granted: 65536 }]);
        assert_eq!(granted("64k", 65536, 1 << 20), [Warning::CapacityChanged { before: 65536, after: 1 << 20 }]);
    }

    #[test]
    fn an_end_on_a_foreign_cpu_is_named_once() {
        let mut strayed = outcome("e", &[], 1.0, &STEADY);
        for sample in &mut strayed.samples {
            sample.sinks[0].pinned = Some(vec![Cpu(1)]);
            sample.sinks[0].cpus = vec![Cpu(0), Cpu(1)];
        }
        assert_eq!(record_of(strayed).warnings, [Warning::Misplaced { cpu: 0 }]);
    }

    /// The warnings at 2 GiB/s, if the limits of the ends are `source` and `sink` GiB/s.
    fn with_ceilings(place: &str, source: Option<f64>, sink: Option<f64>) -> Vec<Warning> {
        let mut outcome = outcome("e", &[("place", place)], 2.0, &[1.0; 7]);
        for sample in &mut outcome.samples {
            sample.sources[0].ceiling = source.map(|figure| figure * GIB);
            sample.sinks[0].ceiling = sink.map(|figure| figure * GIB);
        }
        record_of(outcome).warnings
    }

    #[test]
    fn figures_near_what_an_end_can_do_are_flagged() {
        let ends = |warnings: Vec<Warning>| -> Vec<(String, f64)> {
            let read = |warning| match warning {
                Warning::NearCeiling { end, ceiling, .. } => (end, (ceiling / GIB * 1000.0).round() / 1000.0),
                other => panic!("{other:?}"),
            };
            warnings.into_iter().map(read).collect()
        };
        assert_eq!(ends(with_ceilings("cross", Some(2.3), Some(2.3))), []);
        assert_eq!(ends(with_ceilings("cross", Some(9.0), Some(2.2))), [("sink".to_owned(), 2.2)]);
        assert_eq!(ends(with_ceilings("cross", Some(2.1), None)), [("source".to_owned(), 2.1)]);
        // On one CPU the times add up: 1 / (1/4 + 1/4.4) = 2.095.
        assert_eq!(ends(with_ceilings("same", Some(4.0), Some(4.4))), [("source and sink".to_owned(), 2.095)]);
        assert_eq!(ends(with_ceilings("cross", Some(4.0), Some(4.4))), []);
        assert_eq!(ends(with_ceilings("same", Some(4.0), Some(9.0))), []);
    }

    #[test]
    fn a_lighter_verification_is_advised_only_if_it_helps() {
        let advises = |params: &[(&str, &str)]| {
            let mut outcome = outcome("e", params, 2.0, &[1.0; 7]);
            outcome.samples.iter_mut().for_each(|sample| sample.sinks[0].ceiling = Some(2.2 * GIB));
            let warnings = record_of(outcome).warnings;
            let [warning @ Warning::NearCeiling { .. }] = &warnings[..] else { panic!("{warnings:?}") };
            warning.to_string().ends_with("; use a lighter --verify")
        };
        assert!(advises(&[("verify", "full")]));
        assert!(advises(&[("verify", "full"), ("write-delay", "1us")]), "the sink has no delay");
        for own in [&[("verify", "none")][..], &[("verify", "full"), ("read-delay", "1us")]] {
            assert!(!advises(own), "{own:?}");
        }
    }

    #[test]
    fn a_figure_above_a_ceiling_is_a_measurement_error() {
        let warnings = with_ceilings("cross", Some(1.5), None);
        assert!(matches!(&warnings[..], [Warning::AboveCeiling { end, .. }] if end == "source"), "{warnings:?}");
        assert!(warnings[0].to_string().contains("ignore this row"), "{warnings:?}");
    }

    #[test]
    fn single_runs_above_a_ceiling_are_counted() {
        let mut outcome = outcome("e", &[("place", "cross")], 2.0, &[1.0; 7]);
        for (nth, sample) in outcome.samples.iter_mut().enumerate() {
            sample.sinks[0].ceiling = Some(if nth < 2 { 1.8 } else { 9.0 } * GIB);
        }
        let [warning] = &record_of(outcome).warnings[..] else { panic!() };
        assert!(matches!(warning, Warning::AboveCeiling { above: 2, runs: 7, .. }), "{warning:?}");
        assert!(warning.to_string().starts_with("2 of 7 runs are faster than the sink alone can be"), "{warning}");
    }

    #[test]
    fn a_large_share_of_the_harness_is_named() {
        let mut outcome = outcome("e", &[], 1.0, &STEADY);
        for sample in &mut outcome.samples {
            for end in sample.sources.iter_mut().chain(&mut sample.sinks) {
                end.own_ns = Some(end.ns / 20);
            }
        }
        assert_eq!(warning_kinds(&record_of(outcome.clone())), [""; 0]);
        outcome.samples.iter_mut().for_each(|sample| sample.sinks[0].own_ns = Some(sample.sinks[0].ns / 5));
        let warnings = record_of(outcome).warnings;
        assert!(
            matches!(&warnings[..], [Warning::Harness { percent }] if (percent - 20.0).abs() < 0.1),
            "{warnings:?}"
        );
    }

    #[test]
    fn a_rate_that_is_not_reached_has_no_percentiles() {
        let mut round_trip_record = round_trip_outcome("e", &[("rate", "200000")], 5_000.0, &STEADY);
        let trips = |outcome: &mut Outcome, sent: u64| {
            for latency in outcome.samples.iter_mut().filter_map(|sample| sample.latency.as_mut()) {
                (latency.round_trips, latency.due) = (sent, Some(1000));
            }
        };
        trips(&mut round_trip_record, 990);
        let record = record_of(round_trip_record.clone());
        assert_eq!(warning_kinds(&record), [""; 0]);
        assert!(record.estimate.unwrap().round_trip().is_some());
        trips(&mut round_trip_record, 989);
        let record = record_of(round_trip_record);
        let runs = STEADY.len() as u64;
        assert!(
            record.warnings.contains(&Warning::Behind { sent: 989 * runs, due: 1000 * runs }),
            "{:?}",
            record.warnings
        );
        let estimates = record.estimate.unwrap();
        assert!(estimates.round_trip().is_none() && estimates.get(Figure::Slowest).is_none());
        assert!(estimates.get(Figure::RoundTripsPerSecond).is_some(), "what was reached");
    }

    #[test]
    fn buffered_lines_have_no_times() {
        let mut round_trip_record = round_trip_outcome("e", &[("rate", "1000")], 5_000.0, &STEADY);
        let held = |outcome: &mut Outcome, out: u64, held: u64| {
            for latency in outcome.samples.iter_mut().filter_map(|sample| sample.latency.as_mut()) {
                (latency.round_trips, latency.held, latency.due) = (out, Some(held), Some(1000));
            }
        };
        held(&mut round_trip_record, 500, 500);
        assert_eq!(
            warning_kinds(&record_of(round_trip_record.clone())),
            [""; 0],
            "as many came out as were held, and all were sent"
        );
        held(&mut round_trip_record, 499, 501);
        let (record, runs) = (record_of(round_trip_record), STEADY.len() as u64);
        assert!(
            record.warnings.contains(&Warning::Held { held: 501 * runs, lines: 1000 * runs }),
            "{:?}",
            record.warnings
        );
        assert!(record.estimate.unwrap().round_trip().is_none());
    }

    #[test]
    fn two_sources_on_one_cpu_share_it() {
        let mut pairs = outcome("e", &[("pairs", "2")], 2.0, &[1.0; 7]);
        for sample in &mut pairs.samples {
            sample.bytes *= 2;
            for (ends, cpu) in [(&mut sample.sources, 0), (&mut sample.sinks, 1)] {
                ends[0].pinned = Some(vec![Cpu(cpu)]);
                ends[0].cpus = vec![Cpu(cpu)];
                ends[0].ceiling = Some(4.2 * GIB);
                ends.push(ends[0].clone());
            }
            sample.sinks[1].ceiling = None;
        }
        let warnings = record_of(pairs).warnings;
        let [Warning::NearCeiling { end, ceiling, .. }] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(end == "source" && (ceiling / GIB - 4.2).abs() < 1e-6, "{warnings:?}");
    }
}
