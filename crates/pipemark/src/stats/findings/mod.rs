//! Sentences computed from records, each with the figures it rests on.
//!
//! The rules look at what varies between records, never at the names of suites, so any user's suite gets the findings
//! that its trials support. A rule says nothing where intervals leave the answer open.

mod block;
mod capacity;
mod chain;
mod contrast;
mod copying;
mod cost;
mod filters;
mod gains;
mod gap;
mod harness;
mod languages;
mod limit;
mod link;
mod place;
mod published;
mod recommended;
mod rivals;
mod roundtrip;
mod wait;
mod words;

pub use gains::answers;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::{Ends, Estimate, Estimates, Finding, Job, Mode, Nanos, Pace, Record, Settings, Status};

/// The most findings of one rule; a suite with many parameters would bury the reader.
const MOST_PER_RULE: usize = 4;

/// What the records say, the most telling rules first and the largest effects first within a rule; the settings to use
/// here come last. `memory_copy` is the machine's own limit, see [`super::records::memory_copy`].
pub fn findings(records: &[Record], memory_copy: Option<&Estimate>) -> Vec<Finding> {
    // A chain of none is measured to be held against the others of its experiment, and is no advice on its own.
    let (chains, plain) = chains_apart(records);
    let chained = streams(chains.iter().copied());
    // What programs of other languages do says nothing of pipemark's own senders and receivers.
    let (foreign, own): (Vec<&Record>, Vec<&Record>) =
        plain.iter().copied().partition(|record| record.job.entrant().is_some());
    let entrants = streams(foreign);
    // Nor does what filters of lines do.
    let (of_lines, own): (Vec<&Record>, Vec<&Record>) =
        own.into_iter().partition(|record| record.job.lines().is_some());
    let of_lines = streams(of_lines);
    let (streams, conversations) = (streams(own.iter().copied()), conversations(own));
    let rules = [
        link::best(&streams),
        link::crossing(&streams),
        link::shared_memory(&streams),
        cost::of_messages(&streams),
        roundtrip::shortest(&conversations),
        link::best(&conversations),
        link::crossing(&conversations),
        link::shared_memory(&conversations),
        cost::of_messages(&conversations),
        wait::spinning(&conversations),
        gap::lengthens(&conversations),
        roundtrip::tail(&conversations),
        copying::zero_copy(&streams),
        copying::fresh(&streams),
        capacity::worth(&streams),
        place::same_against_cross(&streams),
        block::best(&streams),
        cost::of_calls(&streams),
        wait::spinning(&streams),
        limit::memory_copy(&streams, memory_copy),
        harness::share(records),
        chain::cost(&chained),
        chain::published(&chains),
        published::against(plain.iter().copied()),
        recommended::settings(&streams),
    ];
    languages::of_entrants(&entrants, records)
        .into_iter()
        .chain(filters::of_lines(&of_lines))
        .chain(rules)
        .flat_map(|mut found| {
            found.sort_by(|one, other| other.effect.total_cmp(&one.effect));
            found.into_iter().take(MOST_PER_RULE).map(|found| found.finding)
        })
        .collect()
}

/// The records of experiments with chains, and the others.
fn chains_apart(records: &[Record]) -> (Vec<&Record>, Vec<&Record>) {
    let chained: BTreeSet<&str> =
        records.iter().filter(|record| record.job.chain().is_some()).map(|record| record.experiment.as_str()).collect();
    records.iter().partition(|record| chained.contains(record.experiment.as_str()))
}

/// A finding and how much it matters among those of its rule.
struct Found {
    effect: f64,
    finding: Finding,
}

impl Found {
    fn new(rule: &str, effect: f64, text: String, evidence: Value) -> Found {
        let Value::Object(evidence) = evidence else { unreachable!("evidence is written as an object") };
        Found { effect, finding: Finding { rule: rule.to_owned(), text, evidence } }
    }
}

/// A record that was measured, and its estimates.
#[derive(Clone, Copy)]
struct Subject<'a> {
    record: &'a Record,
    job: &'a Job,
    estimates: &'a Estimates,
}

impl<'a> Subject<'a> {
    fn of(record: &'a Record) -> Option<Subject<'a>> {
        let estimates = record.estimate.as_ref()?;
        let throughput = estimates.throughput();
        let sound = throughput.median.is_finite() && throughput.median > 0.0;
        (record.status == Status::Ok && record.verified != Some(false) && sound).then_some(Subject {
            record,
            job: &record.job,
            estimates,
        })
    }

    /// The ends; every rule but those of entrants and filters is asked for subjects that have some.
    fn ends(self) -> &'a Ends {
        self.job.ends().expect("subjects of this rule have ends")
    }

    /// Whether each round trip follows the last at once; so with streams.
    fn back_to_back(self) -> bool {
        !matches!(self.job, Job::RoundTrip(trip) if trip.pace != Pace::Gap(Nanos(0)))
    }

    /// Median throughput in bytes per second.
    fn throughput(self) -> f64 {
        self.estimates.throughput().median
    }

    /// The median round trip; `None` of a stream.
    fn round_trip(self) -> Option<&'a Estimate> {
        self.estimates.round_trip()
    }

    /// Median speed, more being faster: bytes per second, or the round trips per second of the median round trip.
    fn speed(self) -> f64 {
        self.round_trip().map_or(self.throughput(), |trip| 1e9 / trip.median)
    }

    fn cpu_seconds_per_gib(self) -> f64 {
        self.estimates.cpu_seconds_per_gib().median
    }
}

/// What was measured in `mode`. Of trials that differ in nothing but how much a run moves, or that several experiments
/// share, the one with the most runs.
fn subjects<'a>(records: impl IntoIterator<Item = &'a Record>, mode: Mode) -> Vec<Subject<'a>> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut seen: BTreeMap<Settings, usize> = BTreeMap::new();
    for subject in records.into_iter().filter_map(Subject::of).filter(|subject| subject.job.mode() == mode) {
        let index = *seen.entry(without_volume(subject.job)).or_insert(subjects.len());
        match subjects.get_mut(index) {
            Some(known) if known.estimates.throughput().runs < subject.estimates.throughput().runs => *known = subject,
            Some(_) => {}
            None => subjects.push(subject),
        }
    }
    subjects
}

/// Streams from one process to another.
fn streams<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Subject<'a>> {
    let mut streams = subjects(records, Mode::Throughput);
    streams.retain(|subject| subject.job.link().transfers());
    streams
}

/// Round trips between two processes.
fn conversations<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Subject<'a>> {
    let mut conversations = subjects(records, Mode::Latency);
    let sound = |trip: &Estimate| trip.median.is_finite() && trip.median > 0.0;
    conversations.retain(|subject| subject.job.link().transfers() && subject.round_trip().is_some_and(sound));
    conversations
}

fn without_volume(job: &Job) -> Settings {
    Settings { total: None, time: None, ..job.settings() }
}

/// Subjects that differ only in what `level` makes equal, in the order of the first of each group.
fn groups<'a>(subjects: &[Subject<'a>], level: impl Fn(&mut Settings)) -> Vec<Vec<Subject<'a>>> {
    let mut groups: Vec<Vec<Subject>> = Vec::new();
    let mut index: BTreeMap<Settings, usize> = BTreeMap::new();
    for subject in subjects {
        let mut key = without_volume(subject.job);
        level(&mut key);
        let place = *index.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(*subject),
            None => groups.push(vec![*subject]),
        }
    }
    groups
}

/// The fastest by its median.
fn fastest<'a>(subjects: impl IntoIterator<Item = Subject<'a>>) -> Option<Subject<'a>> {
    subjects.into_iter().max_by(|one, other| one.speed().total_cmp(&other.speed()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Key, Value};
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
