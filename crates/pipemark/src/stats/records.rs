//! From what was run to what is stored: estimates, ratios within rounds, names, and warnings.

use std::collections::BTreeMap;

use strum::IntoEnumIterator;

use super::warnings::warnings_of;
use crate::model::{
    CounterEstimates, Estimate, Estimates, Key, Latency, LatencyEstimates, LinkKind, Outcome, Params, PipelineStats,
    Record, Sample, Status,
};

/// Why a trial that ran has no figure.
const IDLE: &str =
    "no byte arrived in one of the runs, so there is no throughput to tell; raise --time or lower --block";

/// One record per outcome, in their order.
///
/// Figures are made only of trials that ended well: a wrong answer is not timed.
pub fn records(outcomes: Vec<Outcome>) -> Vec<Record> {
    let names = names(&outcomes);
    let ratios: Vec<Option<Estimate>> = outcomes.iter().map(|outcome| ratio(outcome, &outcomes)).collect();
    outcomes
        .into_iter()
        .zip(names)
        .zip(ratios)
        .map(|((outcome, name), ratio)| {
            let estimate =
                measured(&outcome).then(|| estimates(&outcome.samples)).flatten().map(|e| Estimates { ratio, ..e });
            let mut warnings = outcome.notes.clone();
            warnings.extend(warnings_of(&outcome, estimate.as_ref()));
            let idle = measured(&outcome) && estimate.is_none() && !outcome.samples.is_empty();
            let Outcome { trial, mut status, mut reason, verified, samples, stopped, .. } = outcome;
            if idle {
                status = Status::Failed;
                reason.get_or_insert_with(|| IDLE.to_owned());
            }
            Record {
                name,
                verify: trial.params.verify,
                touched: trial.params.touched(),
                id: trial.id,
                experiment: trial.experiment,
                params: trial.params,
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

/// Copying within one process, in bytes per second: the best of the trials that measured it.
pub fn memory_copy(records: &[Record]) -> Option<Estimate> {
    records
        .iter()
        .filter(|record| record.params.link == LinkKind::MemoryCopy && record.status == Status::Ok)
        .filter_map(|record| record.estimate.as_ref())
        .map(|estimate| estimate.throughput)
        .max_by(|one, other| one.median.total_cmp(&other.median))
}

fn measured(outcome: &Outcome) -> bool {
    outcome.status == Status::Ok && outcome.verified != Some(false)
}

/// `None` when a run moved nothing or took no time: such a run has no CPU time per GiB and no ratio to another, and to
/// leave it out would make the others look better than they are.
fn estimates(samples: &[Sample]) -> Option<Estimates> {
    let of = |figure: fn(&Sample) -> f64| Estimate::of(&samples.iter().map(figure).collect::<Vec<_>>());
    Some(Estimates {
        throughput: of(Sample::throughput)?,
        cpu_seconds_per_gib: of(Sample::cpu_seconds_per_gib)?,
        ratio: None,
        real_ns: of(|sample| sample.wall_ns as f64),
        switches_per_mib: of(Sample::switches_per_mib),
        start_up_ns: of_entrant(samples, |sample| Some(sample.start_up_ns())),
        max_rss: of_entrant(samples, |sample| sample.entrant.as_ref()?.max_rss),
        counters: counters(samples),
        latency: latency(samples),
    })
}

fn latency(samples: &[Sample]) -> Option<LatencyEstimates> {
    let trips: Vec<(&Sample, &Latency)> =
        samples.iter().map(|sample| Some((sample, sample.latency.as_ref()?))).collect::<Option<_>>()?;
    // A percentile that one run could not tell is told by none.
    let of = |figure: &dyn Fn(&Sample, &Latency) -> Option<f64>| {
        let figures: Option<Vec<f64>> = trips.iter().map(|(sample, latency)| figure(sample, latency)).collect();
        Estimate::of(&figures?)
    };
    let whole = |ns: u64| Some(ns as f64);
    let messages = |latency: &Latency| 2.0 * latency.round_trips as f64;
    Some(LatencyEstimates {
        p50: of(&|_, latency| whole(latency.p50))?,
        p90: of(&|_, latency| latency.p90.and_then(whole)),
        p99: of(&|_, latency| latency.p99.and_then(whole)),
        p999: of(&|_, latency| latency.p999.and_then(whole)),
        max: of(&|_, latency| whole(latency.max))?,
        round_trips_per_second: of(&|sample, latency| Some(latency.round_trips as f64 * 1e9 / sample.ns as f64))?,
        cpu_seconds_per_million: of(&|sample, latency| {
            Some((sample.user_ns + sample.sys_ns) as f64 / 1e9 / messages(latency) * 1e6)
        })?,
    })
}

fn counters(samples: &[Sample]) -> Option<CounterEstimates> {
    let all: Vec<(&Sample, PipelineStats)> =
        samples.iter().map(|sample| Some((sample, sample.pipeline?))).collect::<Option<_>>()?;
    // A counter that one run did not have is no counter.
    let of = |figure: &dyn Fn(&Sample, &PipelineStats) -> Option<f64>| {
        let figures: Option<Vec<f64>> = all.iter().map(|(sample, stats)| figure(sample, stats)).collect();
        Estimate::of(&figures?)
    };
    let whole = |count: u64| Some(count as f64);
    Some(CounterEstimates {
        task_clock_ns: of(&|_, stats| whole(stats.sum().task_clock_ns()))?,
        cpus: of(&|sample, stats| Some(stats.sum().task_clock_ns() as f64 / sample.ns as f64))?,
        context_switches: of(&|_, stats| whole(stats.sum().context_switches))?,
        migrations: of(&|_, stats| stats.sum().migrations.and_then(whole)),
        page_faults: of(&|_, stats| whole(stats.sum().page_faults))?,
        cycles: of(&|_, stats| stats.sum().cycles.and_then(whole)),
        instructions: of(&|_, stats| stats.sum().instructions.and_then(whole)),
        branch_misses: of(&|_, stats| stats.sum().branch_misses.and_then(whole)),
        filter_cpu_seconds_per_gib: of(&|sample, stats| {
            Some(stats.filter.task_clock_ns() as f64 / 1e9 / (sample.bytes as f64 / (1u64 << 30) as f64))
        })?,
    })
}

/// A figure that only entrants have, where every run has it.
fn of_entrant(samples: &[Sample], figure: impl Fn(&Sample) -> Option<u64>) -> Option<Estimate> {
    let figures: Option<Vec<f64>> =
        samples.iter().map(|sample| sample.entrant.as_ref().and_then(|_| figure(sample)).map(|n| n as f64)).collect();
    Estimate::of(&figures?)
}

/// The speed of each round; rounds in which nothing arrived have none to compare.
fn by_round(samples: &[Sample]) -> BTreeMap<u32, f64> {
    samples
        .iter()
        .map(|sample| (sample.round, sample.speed()))
        .filter(|(_, speed)| speed.is_finite() && *speed > 0.0)
        .collect()
}

/// Speed over that of the baseline, of the rounds in which both were measured. The baseline has none to itself, and a
/// stream has none to a conversation.
fn ratio(outcome: &Outcome, all: &[Outcome]) -> Option<Estimate> {
    let trial = &outcome.trial;
    let wanted = trial.baseline.as_ref().filter(|baseline| **baseline != trial.id)?;
    let baseline = all.iter().find(|other| other.trial.id == *wanted && other.trial.experiment == trial.experiment)?;
    if !measured(outcome) || !measured(baseline) || trial.params.mode != baseline.trial.params.mode {
        return None;
    }
    let base = by_round(&baseline.samples);
    let ratios: Vec<f64> =
        by_round(&outcome.samples).into_iter().filter_map(|(round, figure)| Some(figure / base.get(&round)?)).collect();
    Estimate::of(&ratios)
}

/// Each trial's parameters in words, without those that all trials of its experiment share.
fn names(outcomes: &[Outcome]) -> Vec<String> {
    let mut experiments: BTreeMap<&str, Vec<&Params>> = BTreeMap::new();
    for Outcome { trial, .. } in outcomes {
        experiments.entry(&trial.experiment).or_default().push(&trial.params);
    }
    let varying: BTreeMap<&str, Vec<Key>> =
        experiments.into_iter().map(|(experiment, all)| (experiment, keys_that_differ(&all))).collect();
    outcomes.iter().map(|Outcome { trial, .. }| in_words(&trial.params, &varying[trial.experiment.as_str()])).collect()
}

/// Each trial in words, by what tells it from the others; `without` is told elsewhere.
pub fn told_apart(all: &[&Params], without: &[Key]) -> Vec<String> {
    let mut keys = keys_that_differ(all);
    keys.retain(|key| !without.contains(key));
    all.iter().map(|params| in_words(params, &keys)).collect()
}

/// The parameters that tell trials apart. How much a run moves is one of them only where nothing else does, because
/// suites give small blocks a smaller total, and a single trial is told by the four that matter most.
fn keys_that_differ(all: &[&Params]) -> Vec<Key> {
    let differ = |keys: &[Key], one: &Params, other: &Params| keys.iter().any(|key| one.get(*key) != other.get(*key));
    let keys: Vec<Key> = Key::iter()
        .filter(|key| *key != Key::ReadBlock || all.iter().any(|params| params.read_block.is_some()))
        .filter(|key| all.iter().any(|params| differ(&[*key], all[0], params)))
        .collect();
    let without_volume: Vec<Key> = keys.iter().copied().filter(|key| !matches!(key, Key::Total | Key::Time)).collect();
    let mut told: Vec<Vec<String>> =
        all.iter().map(|params| without_volume.iter().map(|key| params.get(*key)).collect()).collect();
    told.sort_unstable();
    told.dedup();
    match (keys.is_empty(), told.len() == all.len()) {
        (true, _) => vec![Key::Link, Key::Send, Key::Recv, Key::Place, Key::Block],
        (false, true) => without_volume,
        (false, false) => keys,
    }
}

fn in_words(params: &Params, keys: &[Key]) -> String {
    if params.link == LinkKind::MemoryCopy {
        return if keys.contains(&Key::Block) {
            format!("memory copy, {} blocks", params.block)
        } else {
            "memory copy".to_owned()
        };
    }
    let both_methods = keys.contains(&Key::Send) && keys.contains(&Key::Recv);
    let words = keys.iter().filter_map(|key| {
        let value = params.get(*key);
        match key {
            Key::Send if both_methods => Some(format!("{value} → {}", params.recv)),
            Key::Recv if both_methods => None,
            Key::Language | Key::Program | Key::Feed | Key::Filter if value.is_empty() => None,
            Key::Feed => Some(format!("fed by {value}")),
            Key::Link | Key::Place | Key::Language | Key::Program | Key::Filter => Some(value),
            Key::Block => Some(format!("{value} blocks")),
            Key::Pages => Some(format!("{value} pages")),
            Key::Length if params.length == 1 => Some("1 stage".to_owned()),
            Key::Length => Some(format!("{value} stages")),
            Key::Stage => Some(value),
            Key::Pairs if params.pairs == 1 => Some("1 pair".to_owned()),
            Key::Pairs => Some(format!("{value} pairs")),
            Key::Total | Key::Time if value.is_empty() => None,
            Key::Total | Key::Time => Some(format!("{value} per run")),
            _ => Some(format!("{} {value}", key.to_string().replace('-', " "))),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Published, Warning};
    use crate::stats::fixture::{GIB, STEADY, conversation, kinds, one, outcome};

    #[test]
    fn estimates_are_of_the_runs_and_quiet_runs_have_no_warning() {
        let record = one(outcome("e", &[("capacity", "64k")], 2.0, &STEADY));
        let estimate = record.estimate.clone().unwrap();
        assert!((estimate.throughput.median / GIB - 2.0).abs() < 1e-6);
        // Two CPUs, busy all the time, at 2 GiB/s.
        assert!((estimate.cpu_seconds_per_gib.median - 1.0).abs() < 0.02);
        assert_eq!((estimate.throughput.runs, estimate.ratio, record.touched), (7, None, false));
        assert_eq!(kinds(&record), [""; 0]);
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let mut base = outcome("e", &[("send", "write")], 1.0, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut new = outcome("e", &[("send", "vmsplice")], 1.0, &[3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
        let elsewhere = outcome("other", &[("send", "write")], 100.0, &STEADY);
        for trial in [&mut base.trial, &mut new.trial] {
            trial.baseline = Some(elsewhere.trial.id.clone());
        }
        // Rounds come in any order, and one side may lack some.
        new.samples.reverse();
        new.samples.pop();
        let records = records(vec![elsewhere, base, new]);
        let ratio = records[2].estimate.as_ref().unwrap().ratio.unwrap();
        assert!((ratio.min - 3.0).abs() < 1e-6 && (ratio.max - 3.0).abs() < 1e-6, "{ratio:?}");
        assert_eq!(ratio.runs, 5);
        assert_eq!(records[1].estimate.as_ref().unwrap().ratio, None, "the baseline has no ratio to itself");
    }

    #[test]
    fn wrong_answers_and_idle_runs_have_no_figures() {
        let mut wrong = outcome("e", &[], 1.0, &STEADY);
        wrong.verified = Some(false);
        assert_eq!(one(wrong).estimate, None);
        let mut failed = outcome("e", &[], 1.0, &STEADY);
        failed.status = Status::Failed;
        assert_eq!(one(failed).estimate, None);
        let mut idle = outcome("e", &[], 1.0, &STEADY);
        idle.samples[3].bytes = 0;
        let idle = one(idle);
        assert_eq!((idle.estimate, idle.status, idle.reason.as_deref()), (None, Status::Failed, Some(IDLE)));
    }

    #[test]
    fn round_trips_have_percentiles_that_all_runs_can_tell() {
        let mut spoken = conversation("e", &[], 5_000.0, &STEADY);
        let tell = |outcome: &Outcome| one(outcome.clone()).estimate.unwrap().latency.unwrap();
        let latency = tell(&spoken);
        assert_eq!(latency.p50.median, 5_000.0);
        assert_eq!(latency.p99.unwrap().median, 10_000.0);
        // Two messages a trip, two CPUs busy all the time.
        assert!((latency.cpu_seconds_per_million.median / 5.0 - 1.0).abs() < 0.01, "{latency:?}");
        assert!((latency.round_trips_per_second.median / 200_000.0 - 1.0).abs() < 0.01, "{latency:?}");
        spoken.samples[2].latency.as_mut().unwrap().p99 = None;
        let latency = tell(&spoken);
        assert!(latency.p99.is_none() && latency.p90.is_some());
    }

    #[test]
    fn a_shorter_round_trip_is_a_higher_ratio() {
        let base = conversation("e", &[("gap", "0")], 4_000.0, &STEADY);
        let mut slower = conversation("e", &[("gap", "1ms")], 16_000.0, &STEADY);
        let mut stream = outcome("e", &[], 1.0, &STEADY);
        for other in [&mut slower, &mut stream] {
            other.trial.baseline = Some(base.trial.id.clone());
        }
        let records = records(vec![base, slower, stream]);
        let ratio = records[1].estimate.as_ref().unwrap().ratio.unwrap();
        assert!((ratio.median - 0.25).abs() < 1e-3, "{ratio:?}");
        assert_eq!(records[2].estimate.as_ref().unwrap().ratio, None, "a stream has no ratio to a conversation");
    }

    #[test]
    fn names_leave_out_what_all_share() {
        let named = |trials: &[&[(&str, &str)]]| -> Vec<String> {
            let outcomes = trials.iter().map(|params| outcome("e", params, 1.0, &STEADY)).collect();
            records(outcomes).into_iter().map(|record| record.name).collect()
        };
        assert_eq!(named(&[&[("block", "64")]]), ["pipe, write → read, cross, 64 B blocks"]);
        assert_eq!(
            named(&[&[("block", "64"), ("total", "1g")], &[("block", "1k"), ("total", "2g")]]),
            ["64 B blocks", "1 KiB blocks"]
        );
        assert_eq!(named(&[&[("total", "1g")], &[("total", "2g")]]), ["1 GiB per run", "2 GiB per run"]);
        assert_eq!(
            named(&[&[], &[("send", "vmsplice"), ("recv", "splice"), ("pages", "huge")]]),
            ["write → read, base pages", "vmsplice → splice, huge pages"]
        );
        assert_eq!(named(&[&[("wait", "spin")], &[("capacity", "1m")]])[1], "wait block, capacity 1 MiB");
    }

    #[test]
    fn notes_come_first() {
        let mut noted = outcome("e", &[], 1.0, &[1.0, 1.02, 1.03, 1.06, 1.08, 1.1, 1.12]);
        noted.notes.push(Warning::NoHugePages { reason: "never".to_owned() });
        assert_eq!(kinds(&one(noted)), ["no-huge-pages", "drift", "wide"]);
    }

    #[test]
    fn the_memory_copy_limit_is_the_best_that_was_measured() {
        let all = records(vec![
            outcome("copy", &[("link", "memory-copy"), ("block", "64k")], 9.0, &STEADY),
            outcome("copy", &[("link", "memory-copy"), ("block", "1m")], 7.0, &STEADY),
            outcome("e", &[("send", "tee")], 60.0, &STEADY),
        ]);
        assert_eq!(all[0].name, "memory copy, 64 KiB blocks");
        assert_eq!(memory_copy(&all), Some(all[0].estimate.as_ref().unwrap().throughput));
        assert_eq!(memory_copy(&all[2..]), None);
    }

    #[test]
    fn what_was_planned_is_kept() {
        let mut planned = outcome("e", &[("verify", "full")], 1.0, &STEADY);
        planned.trial.published = Some(Published { throughput: 1.0, source: "a paper".to_owned(), relative: false });
        planned.verified = Some(true);
        let record = one(planned.clone());
        assert_eq!((record.id, record.params), (planned.trial.id, planned.trial.params));
        assert_eq!((record.published, record.samples), (planned.trial.published, planned.samples));
        assert!(record.touched && record.verified == Some(true));
    }

    proptest! {
        #[test]
        fn odd_samples_make_neither_panic_nor_nonsense(
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
                // Figures that are no numbers become null, which does not read back.
                let text = serde_json::to_string(&record).unwrap();
                prop_assert!(serde_json::from_str::<Record>(&text).is_ok(), "{text}");
            }
        }
    }
}
