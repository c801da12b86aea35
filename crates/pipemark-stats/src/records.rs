//! Creates records from outcomes: estimates, ratios within rounds, names and warnings.

use std::collections::BTreeMap;

use pipemark_model::{self, ByteSize, Estimate, Estimates, Figure, Job, Outcome, Record, Sample, Status};

use crate::estimate;
use crate::warnings::warnings_of;

/// The reason given for a trial that ran but has no figure.
const NO_THROUGHPUT: &str =
    "no bytes arrived in one of the runs, so there is no throughput; raise --time or lower --block";

/// Creates one record per outcome, in the order of the outcomes.
///
/// Only trials that succeeded get figures, because the time of a wrong result means nothing. `page_size` is the page
/// size, in bytes, of the machine that ran the trials. A pipe's default capacity depends on it.
pub fn records(outcomes: Vec<Outcome>, page_size: u64) -> Vec<Record> {
    let names = names(&outcomes);
    let ratios: Vec<Option<Estimate>> = outcomes.iter().map(|outcome| ratio(outcome, &outcomes)).collect();
    outcomes
        .into_iter()
        .zip(names)
        .zip(ratios)
        .map(|((outcome, name), ratio)| {
            let mut estimate = measured(&outcome).then(|| estimates(&outcome.samples)).flatten();
            if let (Some(estimate), Some(ratio)) = (&mut estimate, ratio) {
                estimate.set(Figure::Ratio, ratio);
            }
            let mut warnings = outcome.notes.clone();
            warnings.extend(warnings_of(&outcome, estimate.as_ref(), page_size));
            let idle = measured(&outcome) && estimate.is_none() && !outcome.samples.is_empty();
            let Outcome { trial, mut status, mut reason, verified, samples, stopped, .. } = outcome;
            if idle {
                status = Status::Failed;
                reason.get_or_insert_with(|| NO_THROUGHPUT.to_owned());
            }
            Record {
                name,
                verify: trial.job.verify(),
                touched: trial.job.touched(),
                copies: trial.job.ends().map(|ends| ends.work().copies),
                written: trial.job.ends().map(|ends| ends.work().written),
                id: trial.id,
                experiment: trial.experiment,
                reference: false,
                job: trial.job,
                status,
                reason,
                verified,
                samples,
                estimate,
                stopped,
                warnings,
                baseline: trial.baseline,
                published: trial.published,
            }
        })
        .collect()
}

/// The speed of copying blocks of 64 KiB within one process, in bytes per second: the best trial that measured it, or
/// `None`. Smaller blocks have a higher limit, because they stay in a nearer cache.
pub fn memory_copy(records: &[Record]) -> Option<Estimate> {
    records
        .iter()
        .filter(|record| record.job.is_memory_copy() && record.status == Status::Ok)
        .filter(|record| record.job.block() == Some(ByteSize(64 << 10)))
        .filter_map(|record| record.estimate.as_ref())
        .map(|estimate| *estimate.throughput())
        .max_by(|one, other| one.median.total_cmp(&other.median))
}

fn measured(outcome: &Outcome) -> bool {
    outcome.status == Status::Ok && outcome.verified != Some(false)
}

/// The estimates of all figures. `None` if a run moved no bytes or took no time, because such a run has no CPU time per
/// GiB and no ratio to another run. Omitting such a run would make the trial look better than it is. A figure missing
/// from one run is not estimated.
fn estimates(samples: &[Sample]) -> Option<Estimates> {
    let of = |figure: Figure| {
        let figures: Vec<f64> = samples.iter().map(|sample| figure.of_sample(sample)).collect::<Option<_>>()?;
        Some((figure, estimate::from_runs(&figures)?))
    };
    Estimates::new(Figure::iter().filter_map(of))
}

/// The speed of each round, by the round's number. Rounds in which no bytes arrived are omitted.
pub fn speeds_by_round(samples: &[Sample]) -> BTreeMap<u32, f64> {
    let speeds = samples.iter().map(|sample| (sample.round, sample.speed()));
    BTreeMap::from_iter(speeds.filter(|(_, speed)| speed.is_finite() && *speed > 0.0))
}

/// Whether both of two programs, if they are any, check their bytes in the same way. Comparing a block with the expected
/// one takes less time than summing its words.
pub fn checks_alike(one: &[Sample], other: &[Sample]) -> bool {
    let compares = |samples: &[Sample]| samples.first().and_then(|sample| Some(sample.entrant.as_ref()?.compares));
    match (compares(one), compares(other)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// The trial's speed relative to its baseline, from the rounds in which both were measured. `None` for the baseline
/// itself, if one of the two trials is a stream and the other has round trips, and if the two do different work.
fn ratio(outcome: &Outcome, all: &[Outcome]) -> Option<Estimate> {
    let trial = &outcome.trial;
    let wanted = trial.baseline.as_ref().filter(|baseline| **baseline != trial.id)?;
    let baseline = all.iter().find(|other| other.trial.id == *wanted && other.trial.experiment == trial.experiment)?;
    if !measured(outcome) || !measured(baseline) || trial.job.mode() != baseline.trial.job.mode() {
        return None;
    }
    if !checks_alike(&outcome.samples, &baseline.samples) {
        return None;
    }
    ratio_of(&outcome.samples, &baseline.samples)
}

/// The factor by which `samples` are faster than `base`, from the rounds in which both were measured. `None` if there
/// are no such rounds.
pub fn ratio_of(samples: &[Sample], base: &[Sample]) -> Option<Estimate> {
    estimate::from_runs(&ratios(samples, base, |sample| Some(sample.speed())))
}

/// The ratios of a figure of `samples` to that of `base`, for each round in which both have the figure.
pub fn ratios(samples: &[Sample], base: &[Sample], figure: impl Fn(&Sample) -> Option<f64>) -> Vec<f64> {
    let base = BTreeMap::from_iter(base.iter().filter_map(|sample| Some((sample.round, figure(sample)?))));
    let ratios = samples.iter().filter_map(|sample| Some(figure(sample)? / base.get(&sample.round)?));
    ratios.filter(|ratio| ratio.is_normal() && *ratio > 0.0).collect()
}

/// Whether a ratio that was computed within rounds is the ratio of the medians shown beside it, within 2 %. If not, texts
/// say what it is of.
pub fn ratio_agrees(within_rounds: f64, of_medians: f64) -> bool {
    (within_rounds / of_medians - 1.0).abs() <= 0.02
}

/// Names each trial by the parameters in which it differs from the other trials of its experiment.
fn names(outcomes: &[Outcome]) -> Vec<String> {
    let mut experiments: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, Outcome { trial, .. }) in outcomes.iter().enumerate() {
        experiments.entry(&trial.experiment).or_default().push(index);
    }
    let mut all = vec![String::new(); outcomes.len()];
    for places in experiments.values() {
        let jobs: Vec<&Job> = places.iter().map(|index| &outcomes[*index].trial.job).collect();
        for (index, name) in places.iter().zip(pipemark_model::names(&jobs, &[])) {
            all[*index] = name;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use pipemark_model::{Published, Warning};

    use super::*;
    use crate::fixture::{GIB, STEADY, outcome, record_of, records, round_trip_outcome, warning_kinds};

    #[test]
    fn estimates_come_from_the_runs_and_quiet_runs_have_no_warning() {
        let record = record_of(outcome("e", &[("capacity", "64k")], 2.0, &STEADY));
        let estimate = record.estimate.clone().unwrap();
        assert!((estimate.throughput().median / GIB - 2.0).abs() < 1e-4);
        // Two CPUs were busy all the time, at 2 GiB/s.
        assert!((estimate.cpu_seconds_per_gib().median - 1.0).abs() < 0.02);
        assert_eq!((estimate.throughput().runs, estimate.ratio(), record.touched), (7, None, false));
        assert_eq!(warning_kinds(&record), [""; 0]);
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let mut base = outcome("e", &[("send", "write")], 1.0, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut new = outcome("e", &[("send", "vmsplice")], 1.0, &[3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
        let elsewhere = outcome("other", &[("send", "write")], 100.0, &STEADY);
        for trial in [&mut base.trial, &mut new.trial] {
            trial.baseline = Some(elsewhere.trial.id.clone());
        }
        // The rounds of a trial may be in any order, and one trial may lack some.
        new.samples.reverse();
        new.samples.pop();
        let records = records(vec![elsewhere, base, new]);
        let ratio = records[2].estimate.as_ref().unwrap().ratio().unwrap();
        assert!((ratio.min - 3.0).abs() < 1e-6 && (ratio.max - 3.0).abs() < 1e-6, "{ratio:?}");
        assert_eq!(ratio.runs, 5);
        assert_eq!(records[1].estimate.as_ref().unwrap().ratio(), None, "the baseline has no ratio to itself");
    }

    #[test]
    fn wrong_answers_and_idle_runs_have_no_figures() {
        let mut wrong = outcome("e", &[], 1.0, &STEADY);
        wrong.verified = Some(false);
        assert_eq!(record_of(wrong).estimate, None);
        let mut failed = outcome("e", &[], 1.0, &STEADY);
        failed.status = Status::Failed;
        assert_eq!(record_of(failed).estimate, None);
        let mut idle = outcome("e", &[], 1.0, &STEADY);
        idle.samples[3].bytes = 0;
        let idle = record_of(idle);
        assert_eq!((idle.estimate, idle.status, idle.reason.as_deref()), (None, Status::Failed, Some(NO_THROUGHPUT)));
    }

    #[test]
    fn round_trips_have_percentiles_that_all_runs_support() {
        let mut round_trip_record = round_trip_outcome("e", &[], 5_000.0, &STEADY);
        let estimates = |outcome: &Outcome| record_of(outcome.clone()).estimate.unwrap();
        let all = estimates(&round_trip_record);
        let median = |figure| all.get(figure).unwrap().median;
        let near = |figure, expected: f64| (median(figure) / expected - 1.0).abs() < 1e-4;
        assert!(near(Figure::P50, 5_000.0) && near(Figure::P99, 10_000.0), "{all:?}");
        // A round trip has two messages, and two CPUs were busy all the time.
        assert!((median(Figure::CpuSecondsPerMillion) / 5.0 - 1.0).abs() < 0.01, "{all:?}");
        assert!((median(Figure::RoundTripsPerSecond) / 200_000.0 - 1.0).abs() < 0.01, "{all:?}");
        round_trip_record.samples[2].latency.as_mut().unwrap().p99 = None;
        let some = estimates(&round_trip_record);
        assert!(some.get(Figure::P99).is_none() && some.get(Figure::P90).is_some());
    }

    #[test]
    fn a_shorter_round_trip_is_a_higher_ratio() {
        let base = round_trip_outcome("e", &[("gap", "0")], 4_000.0, &STEADY);
        let mut slower = round_trip_outcome("e", &[("gap", "1ms")], 16_000.0, &STEADY);
        let mut stream = outcome("e", &[], 1.0, &STEADY);
        for other in [&mut slower, &mut stream] {
            other.trial.baseline = Some(base.trial.id.clone());
        }
        let records = records(vec![base, slower, stream]);
        let ratio = records[1].estimate.as_ref().unwrap().ratio().unwrap();
        assert!((ratio.median - 0.25).abs() < 1e-3, "{ratio:?}");
        assert_eq!(records[2].estimate.as_ref().unwrap().ratio(), None, "a stream has no ratio to round trips");
    }

    #[test]
    fn names_omit_common_parameters() {
        let named = |trials: &[&[(&str, &str)]]| -> Vec<String> {
            let outcomes = trials.iter().map(|params| outcome("e", params, 1.0, &STEADY)).collect();
            records(outcomes).into_iter().map(|record| record.name).collect()
        };
        assert_eq!(named(&[&[("block", "64")]]), ["pipe, write → read, 2 cores, 64 B blocks"]);
        assert_eq!(
            named(&[&[("block", "64"), ("total", "1g")], &[("block", "1k"), ("total", "2g")]]),
            ["64 B blocks", "1 KiB blocks"]
        );
        assert_eq!(named(&[&[("total", "1g")], &[("total", "2g")]]), ["1 GiB per run", "2 GiB per run"]);
        assert_eq!(
            named(&[&[], &[("send", "vmsplice"), ("recv", "splice"), ("pages", "huge")]]),
            ["write → read", "vmsplice → splice, huge pages"]
        );
        assert_eq!(named(&[&[("wait", "spin")], &[("capacity", "1m")]])[1], "capacity 1 MiB");
    }

    #[test]
    fn notes_come_first() {
        let mut noted = outcome("e", &[], 1.0, &[1.0, 1.02, 1.03, 1.06, 1.08, 1.1, 1.12]);
        noted.notes.push(Warning::NoHugePages { reason: "never".to_owned() });
        assert_eq!(warning_kinds(&record_of(noted)), ["no-huge-pages", "drift", "wide"]);
    }

    #[test]
    fn the_memory_copy_limit_is_the_best_that_was_measured() {
        let all = records(vec![
            outcome("copy", &[("link", "memory-copy"), ("block", "64k")], 9.0, &STEADY),
            outcome("copy", &[("link", "memory-copy"), ("block", "1m")], 7.0, &STEADY),
            outcome("e", &[("send", "tee")], 60.0, &STEADY),
        ]);
        assert_eq!(all[0].name, "memory copy, 64 KiB blocks");
        assert_eq!(memory_copy(&all), Some(all[0].estimate.as_ref().unwrap().throughput().to_owned()));
        assert_eq!(memory_copy(&all[2..]), None);
    }

    #[test]
    fn a_record_keeps_the_planned_trial() {
        let mut planned = outcome("e", &[("verify", "full")], 1.0, &STEADY);
        planned.trial.published =
            Some(Published { throughput: 1.0, source: "a paper".to_owned(), relative: false, ..Published::default() });
        planned.verified = Some(true);
        let record = record_of(planned.clone());
        assert_eq!((record.id, record.job), (planned.trial.id, planned.trial.job));
        assert_eq!((record.published, record.samples), (planned.trial.published, planned.samples));
        assert!(record.touched && record.verified == Some(true));
    }

    proptest! {
        #[test]
        fn odd_samples_cause_no_panic_or_nonsense(
            bytes in prop::collection::vec((0..u64::MAX, 0..u64::MAX, 0u32..9), 0..9),
            ceiling in prop::option::of(prop::num::f64::ANY),
        ) {
            let mut odd = outcome("e", &[("place", "same")], 1.0, &vec![1.0; bytes.len()]);
            for (sample, (bytes, ns, round)) in odd.samples.iter_mut().zip(bytes) {
                (sample.bytes, sample.ns, sample.round) = (bytes, ns, round);
                (sample.sources[0].bytes, sample.sources[0].ns, sample.sources[0].ceiling) = (bytes, ns, ceiling);
            }
            let mut other = outcome("e", &[("place", "cross")], 1.0, &STEADY);
            other.trial.baseline = Some(odd.trial.id.clone());
            for record in records(vec![odd, other]) {
                // Figures that are not finite would become null, which cannot be read back.
                let text = serde_json::to_string(&record).unwrap();
                prop_assert!(serde_json::from_str::<Record>(&text).is_ok(), "{text}");
            }
        }
    }
}
