//! Sentences computed from records, each with the figures it rests on.
//!
//! A rule looks at groups of trials that differ in some parameters only, never at the names of suites, so any user's suite
//! gets the findings that its trials support. A rule says nothing where intervals leave the answer open.

mod block;
mod capacity;
mod chain;

mod contrast;
mod copying;
mod cost;
mod filters;
pub mod gains;
mod gap;
mod harness;
mod languages;
mod link;
mod memory_copy;
mod place;
mod published;
mod recommended;
mod roundtrip;
mod wait;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use strum::IntoEnumIterator;

use crate::model::{Ends, Estimate, Estimates, Figure, Finding, Job, Key, Record, Status, Value};

/// The most findings of one rule; a suite with many parameters would bury the reader.
const MOST_PER_RULE: usize = 4;

/// What the records say, the most telling rules first and the largest effects first within a rule; the settings to use
/// here come last. `memory_copy` is the machine's own limit, see [`crate::stats::records::memory_copy`].
pub fn findings(records: &[Record], memory_copy: Option<&Estimate>) -> Vec<Finding> {
    let of_chains: BTreeSet<&str> =
        records.iter().filter(|record| record.job.chain().is_some()).map(|record| record.experiment.as_str()).collect();
    // A chain of none is measured to be compared with the others of its experiment, and is no advice on its own.
    let (chained, plain): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|record| of_chains.contains(record.experiment.as_str()));
    let of = |kind: fn(&Job) -> bool| measured(plain.iter().copied().filter(|record| kind(&record.job)));
    let transfers = |job: &Job| job.ends().is_some_and(|ends| ends.link.transfers());
    // What programs of other languages and filters of lines do says nothing of pipemark's own senders and receivers.
    let entrants = groups(&of(|job| job.entrant().is_some()), &[Key::Language, Key::Program]);
    let lines = groups(&of(|job| job.lines().is_some()), &[Key::Filter]);
    let (trips, streams): (Vec<Measured>, Vec<Measured>) =
        of(|_| true).into_iter().filter(|one| transfers(one.job)).partition(|one| one.job.is_round_trip());
    let chains = measured(chained.iter().copied());
    let (of_streams, of_trips) = (link::rivals(&streams), link::rivals(&trips));
    let links = |rivals: &[link::Rivals], rule: fn(&link::Rivals) -> Option<Candidate>| -> Vec<Candidate> {
        rivals.iter().filter_map(rule).collect()
    };

    let mut rules = languages::of_entrants(&entrants, records);
    rules.extend(filters::of_lines(&lines));
    rules.extend([
        links(&of_streams, link::best),
        links(&of_streams, link::crossover),
        links(&of_streams, link::shared_memory),
        links(&of_streams, cost::of_links),
        roundtrip::shortest(&trips),
        links(&of_trips, link::best),
        links(&of_trips, link::crossover),
        links(&of_trips, link::shared_memory),
        links(&of_trips, cost::of_links),
        each(&trips, &[Key::Wait], wait::against_blocking),
        each(&trips, &[Key::Gap], gap::against_none),
        each(&trips, &link::VARIES, roundtrip::tail),
        each(&streams, &[Key::Send, Key::Recv, Key::Pages], copying::zero_copy),
        each(&streams, &[Key::Send, Key::Pages, Key::Capacity], copying::fresh),
        each(&streams, &[Key::Capacity], capacity::worth),
        each(&streams, &[Key::Place, Key::Block], place::against_one_core),
        each(&streams, &[Key::Block], block::best),
        cost::of_calls(&streams, &of_streams),
        each(&streams, &[Key::Wait], wait::against_blocking),
        memory_copy::share(&streams, memory_copy).into_iter().collect(),
        each(&measured(records), &[Key::Link, Key::Verify, Key::Capacity, Key::Block], harness::share),
        each(&chains, &[Key::Length], chain::cost),
        chain::published(&chains),
        published::against(&of(|job| !job.is_round_trip())),
        recommended::settings(&streams),
    ]);
    let most_telling = |mut rule: Vec<Candidate>| {
        rule.sort_by(|one, other| other.effect.total_cmp(&one.effect));
        rule.into_iter().take(MOST_PER_RULE).map(|candidate| candidate.finding)
    };
    rules.into_iter().flat_map(most_telling).collect()
}

/// A finding and how much it matters among those of its rule.
struct Candidate {
    effect: f64,
    finding: Finding,
}

impl Candidate {
    fn new(rule: &str, effect: f64, text: String, evidence: Json) -> Candidate {
        let Json::Object(evidence) = evidence else { unreachable!("evidence is written as an object") };
        Candidate { effect, finding: Finding { rule: rule.to_owned(), text, evidence } }
    }
}

/// A record that was measured, and its estimates.
#[derive(Debug, Clone, Copy)]
struct Measured<'a> {
    record: &'a Record,
    job: &'a Job,
    estimates: &'a Estimates,
}

impl<'a> Measured<'a> {
    fn of(record: &'a Record) -> Option<Measured<'a>> {
        let estimates = record.estimate.as_ref()?;
        let sound = |estimate: &Estimate| estimate.median.is_finite() && estimate.median > 0.0;
        let sound = sound(estimates.throughput()) && sound(estimates.headline());
        let consistent = record.job.is_round_trip() == estimates.round_trip().is_some();
        (record.status == Status::Ok && record.verified != Some(false) && sound && consistent).then_some(Measured {
            record,
            job: &record.job,
            estimates,
        })
    }

    /// The ends; every rule but those of entrants and filters gets only what has some.
    fn ends(self) -> &'a Ends {
        self.job.ends().expect("what this rule is about has ends")
    }

    /// Median throughput in bytes per second.
    fn throughput(self) -> f64 {
        self.estimates.throughput().median
    }

    /// Median speed, more being faster: bytes per second, or the round trips per second of the median round trip.
    fn speed(self) -> f64 {
        self.estimates.round_trip().map_or(self.throughput(), |trip| 1e9 / trip.median)
    }

    /// The figure it is told by: `3.05 GiB/s`, or the median round trip `4.56 µs`.
    fn headline(self) -> String {
        self.estimates.headline_figure().unit().show(self.estimates.headline().median)
    }

    /// The CPU time that it is told with.
    fn cost(self) -> Figure {
        if self.job.is_round_trip() { Figure::CpuSecondsPerMillion } else { Figure::CpuSecondsPerGib }
    }

    fn evidence(self) -> Json {
        let mut evidence = json!({ "trial": self.record.id });
        for figure in [self.estimates.headline_figure(), self.cost()] {
            evidence[figure.path()[figure.path().len() - 1]] = json!(self.estimates.get(figure));
        }
        evidence
    }
}

/// What was measured. Of trials that differ in nothing but how much a run moves, or that several experiments share, the one
/// with the most runs.
fn measured<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Measured<'a>> {
    let all: Vec<Measured> = records.into_iter().filter_map(Measured::of).collect();
    let most_runs = |group: Vec<Measured<'a>>| group.into_iter().rev().max_by_key(|one| one.estimates.headline().runs);
    groups(&all, &[]).into_iter().filter_map(most_runs).collect()
}

/// Those that differ only in the parameters of `varies` and in how much a run moves, in the order of the first of each group.
fn groups<'a>(all: &[Measured<'a>], varies: &[Key]) -> Vec<Vec<Measured<'a>>> {
    let mut groups: Vec<Vec<Measured>> = Vec::new();
    let mut index: BTreeMap<Vec<Option<Value>>, usize> = BTreeMap::new();
    let fixed: Vec<Key> = Key::iter().filter(|key| !key.is_volume() && !varies.contains(key)).collect();
    for one in all {
        let settings = one.job.settings();
        let place = *index.entry(fixed.iter().map(|key| settings.get(*key)).collect()).or_insert(groups.len());
        groups.resize_with(groups.len().max(place + 1), Vec::new);
        groups[place].push(*one);
    }
    groups
}

/// What a rule says of each group.
fn each<'a, T: IntoIterator<Item = Candidate>>(
    all: &[Measured<'a>],
    varies: &[Key],
    rule: impl Fn(&[Measured<'a>]) -> T,
) -> Vec<Candidate> {
    groups(all, varies).iter().flat_map(|group| rule(group)).collect()
}

/// The fastest by its median.
fn fastest<'a>(all: impl IntoIterator<Item = Measured<'a>>) -> Option<Measured<'a>> {
    all.into_iter().max_by(|one, other| one.speed().total_cmp(&other.speed()))
}

#[cfg(test)]
fn found(rule: &str, records: &[Record]) -> Vec<Finding> {
    let limit = crate::stats::records::memory_copy(records);
    let mut all = findings(records, limit.as_ref());
    all.retain(|finding| finding.rule == rule);
    all
}

#[cfg(test)]
fn texts(rule: &str, records: &[Record]) -> Vec<String> {
    found(rule, records).into_iter().map(|finding| finding.text).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::Settings;
    use crate::stats::fixture::{STEADY, conversation, outcome, record};
    use crate::stats::records::{memory_copy, records};
    use crate::stats::simulations::{Dice, Noise};

    #[test]
    fn nothing_has_no_findings() {
        assert_eq!(findings(&[], None), []);
        assert_eq!(findings(&[record("e", &[], 1.0, &STEADY)], None), []);
    }

    #[test]
    fn rules_do_not_bury_the_reader_and_advice_comes_last() {
        let mut all = Vec::new();
        for align in 0..20 {
            for (capacity, throughput) in [("64k", 1.0), ("1m", 2.0 + f64::from(align))] {
                let params = [("align", &*align.to_string()), ("capacity", capacity)];
                all.push(record("e", &params, throughput, &STEADY));
            }
        }
        let findings = findings(&all, None);
        let of_capacity: Vec<f64> =
            findings.iter().filter(|f| f.rule == "capacity").map(|f| f.evidence["ratio"].as_f64().unwrap()).collect();
        assert_eq!(of_capacity.len(), MOST_PER_RULE);
        assert!(of_capacity.is_sorted_by(|one, other| one > other), "{of_capacity:?}");
        assert_eq!(findings.last().unwrap().rule, "recommended");
    }

    #[test]
    fn what_went_wrong_is_no_evidence() {
        let mut slow = outcome("e", &[("capacity", "64k")], 1.0, &STEADY);
        let fast = outcome("e", &[("capacity", "1m")], 2.0, &STEADY);
        let found = |outcomes| findings(&records(outcomes), None).len();
        assert!(found(vec![slow.clone(), fast.clone()]) > 0);
        slow.verified = Some(false);
        assert_eq!(found(vec![slow.clone(), fast.clone()]), 0);
        (slow.verified, slow.status) = (None, Status::Skipped);
        assert_eq!(found(vec![slow, fast]), 0);
    }

    /// Any value of any parameter, any number of runs, figures from nothing to absurd.
    fn any_record() -> impl Strategy<Value = Record> {
        let choices: Vec<(&str, &[&str])> = vec![
            ("mode", &["throughput", "throughput", "latency"]),
            ("link", &["pipe", "pipe", "shm", "tcp", "memory-copy", "null"]),
            ("gap", &["0", "0", "1ms"]),
            ("send", &["write", "vmsplice", "tee", "splice"]),
            ("recv", &["read", "splice", "vmsplice"]),
            ("wait", &["block", "spin", "poll"]),
            ("pages", &["base", "huge"]),
            ("place", &["same", "cross", "free", "0:1", "1:1"]),
            ("capacity", &["default", "quota", "64k", "1m"]),
            ("block", &["1", "64", "4k", "64k", "1g"]),
            ("verify", &["none", "count", "full"]),
        ];
        let params: Vec<_> = choices
            .into_iter()
            .map(|(key, values)| prop::sample::select(values).prop_map(move |value| (key, value)))
            .collect();
        let runs = prop_oneof![
            4 => prop::collection::vec(0.9..1.1f64, 0..9),
            1 => prop::collection::vec(0.0..1e9f64, 0..9),
        ];
        let status = prop::sample::select(vec![Status::Ok, Status::Ok, Status::Ok, Status::Failed, Status::Skipped]);
        (params, 0.0..100.0f64, runs, status, prop::option::of(0.0..1e12f64)).prop_filter_map(
            "parameters that contradict each other",
            |(params, throughput, runs, status, published)| {
                let values = params.iter().map(|(key, text)| Value::parse(Key::named(key).unwrap(), text).unwrap());
                Job::try_from(Settings::of(values)).ok()?;
                let spoken = params.contains(&("mode", "latency"));
                let mut outcome = match spoken {
                    true => conversation("e", &params, throughput * 1e4, &runs),
                    false => outcome("e", &params, throughput, &runs),
                };
                outcome.status = status;
                outcome.trial.published = published.map(|throughput| crate::model::Published {
                    throughput,
                    source: "a paper".to_owned(),
                    relative: false,
                });
                Some(records(vec![outcome]).remove(0))
            },
        )
    }

    proptest! {
        #[test]
        fn odd_records_make_neither_panic_nor_nonsense(all in prop::collection::vec(any_record(), 0..60)) {
            for finding in findings(&all, memory_copy(&all).as_ref()) {
                prop_assert!(!finding.evidence.is_empty() && finding.text.ends_with('.'), "{finding:?}");
                prop_assert!(!finding.text.contains("NaN") && !finding.text.contains("inf "), "{}", finding.text);
            }
        }
    }

    /// What moves nothing and what only answers would win every ranking of streams.
    #[test]
    fn what_is_no_stream_is_in_no_rule_of_streams() {
        let mut all = vec![record("e", &[("block", "4k")], 1.0, &STEADY), record("e", &[], 2.0, &STEADY)];
        let before = findings(&all, None);
        assert!(before.iter().any(|finding| finding.rule == "recommended"), "{before:?}");
        for (place, block) in [("cross", "4k"), ("cross", "64k"), ("same", "4k")] {
            let params = [("place", place), ("block", block)];
            all.push(record("e", &[&params[..], &[("link", "null")]].concat(), 1e3, &STEADY));
            all.push(record("e", &[&params[..], &[("link", "memory-copy")]].concat(), 90.0, &STEADY));
            all.extend(records(vec![conversation("e", &params, 4_000.0, &STEADY)]));
        }
        let own = ["harness", "round-trip", "tail"];
        let mut after = findings(&all, None);
        after.retain(|finding| !own.contains(&finding.rule.as_str()));
        assert_eq!(after, before);
    }

    /// One thing under sixteen names, of which the fastest is picked to be told from the others: mostly nothing is told.
    #[test]
    fn noise_alone_is_seldom_a_finding_and_a_difference_is_one() {
        let told = |noise: Noise, gain: f64, rule: &str| {
            let mut dice = Dice::new(15);
            let documents = 200;
            let hits = (0..documents).filter(|_| {
                let sizes = ["64k", "128k", "256k", "512k"];
                let all: Vec<Record> = (0..16)
                    .map(|trial| {
                        let params = [("block", sizes[trial % 4]), ("capacity", sizes[trial / 4])];
                        let by = if trial % 4 == 3 || trial / 4 == 3 { gain } else { 1.0 };
                        record("e", &params, by / 100.0, &dice.runs(noise, 8))
                    })
                    .collect();
                let tells = |finding: &Finding| {
                    finding.rule == rule && !finding.text.contains("hardly") && !finding.text.contains("no difference")
                };
                findings(&all, None).iter().any(tells)
            });
            hits.count() as f64 / f64::from(documents)
        };
        for rule in ["capacity", "best-block", "recommended", "call-cost"] {
            let share = told(Noise::Quiet, 1.0, rule);
            assert!(share <= 0.02, "{rule}: {share}");
        }
        for rule in ["capacity", "best-block", "recommended"] {
            let share = told(Noise::Quiet, 1.15, rule);
            assert!(share >= 0.98, "{rule}: {share}");
        }
    }
}
