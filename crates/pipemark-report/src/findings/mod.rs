//! Sentences computed from records, each with the figures it rests on.
//!
//! A rule looks at groups of trials that differ in some parameters only, never at the names of suites, so any user's suite
//! gets the findings that its trials support. A rule says nothing where intervals leave the answer open, and these hold for
//! all comparisons of a document together, see [`Family`].

mod bounds;
mod chain;
pub mod claims;
mod contrast;
mod cost;
mod filters;
mod languages;
mod link;
mod measured;
mod pipes;
mod published;
mod recommended;
mod wakeups;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use pipemark_model::{Estimate, Finding, Job, Key, Record};
use pipemark_stats::family::Family;
use pipemark_stats::records::by_round;

use crate::findings::measured::{MeasuredTrial, fastest, groups, measured};

/// The most findings of one rule; a suite with many parameters would bury the reader.
const MOST_PER_RULE: usize = 4;

/// The help topic that explains what rules find whose names begin so; of others it is the method.
const TOPICS: [(&str, &[&str]); 3] = [
    ("wakeups", &["place", "wait", "gap", "round-trip", "tail", "call-cost", "message-cost"]),
    ("capacity", &["capacity"]),
    ("zero-copy", &["zero-copy", "fresh-data", "recommended"]),
];

fn topic(rule: &str) -> String {
    let found = TOPICS.iter().find(|(_, rules)| rules.iter().any(|begin| rule.starts_with(begin)));
    found.map_or("method", |(topic, _)| topic).to_owned()
}

/// What the records say, the most useful first: of each rule the largest effect, then of each the second. `memory_copy` is the machine's own limit, see [`pipemark_stats::records::memory_copy`].
pub fn findings(records: &[Record], memory_copy: Option<&Estimate>) -> Vec<Finding> {
    let of_chains: BTreeSet<&str> =
        records.iter().filter(|record| record.job.chain().is_some()).map(|record| record.experiment.as_str()).collect();
    // A chain of length 0 is there to compare the others of its experiment with, and no advice by itself.
    let (chained, plain): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|record| of_chains.contains(record.experiment.as_str()));
    let (chains, plain) = (measured(chained.iter().copied()), measured(plain.iter().copied()));
    let speeds: Vec<_> = chains.iter().chain(&plain).map(|one| by_round(&one.record.samples)).collect();
    // Nearly all that rules compare is of one experiment, and a run of several suites is no reason to doubt each of them more.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in chains.iter().chain(&plain) {
        *counts.entry(one.record.experiment.as_str()).or_default() += 1;
    }
    let pairs: usize = counts.values().map(|count| count * (count - 1) / 2).sum();
    let family = Family::of(&speeds).with(pairs.max(1) as f64);
    let [chains, plain] =
        [chains, plain].map(|all| all.into_iter().map(|one| MeasuredTrial { family, ..one }).collect::<Vec<_>>());
    let of = |kind: fn(&Job) -> bool| plain.iter().copied().filter(|one| kind(one.job)).collect::<Vec<_>>();
    let of_experiment =
        |name: &str| chains.iter().copied().filter(|one| one.record.experiment == name).collect::<Vec<_>>();
    let transfers = |job: &Job| job.ends().is_some_and(|ends| ends.link.transfers());
    // What programs of other languages and filters of lines do says nothing of pipemark's own senders and receivers.
    let entrants =
        groups(&of(|job| job.entrant().is_some_and(|own| own.verify.reads())), &[Key::Language, Key::Program]);
    let lines = groups(&of(|job| job.lines().is_some()), &[Key::Filter]);
    let (trips, streams): (Vec<MeasuredTrial>, Vec<MeasuredTrial>) =
        of(transfers).into_iter().partition(|one| one.job.is_round_trip());
    let (of_streams, of_trips) = (link::rivals(&streams), link::rivals(&trips));
    let links = |rivals: &[link::Rivals], rule: fn(&link::Rivals) -> Option<Candidate>| -> Vec<Candidate> {
        rivals.iter().filter_map(rule).collect()
    };

    let mut rules = languages::compare_languages(&entrants, records);
    rules.extend(filters::compare_filters(&lines, records));
    rules.extend([
        links(&of_streams, link::best),
        links(&of_trips, link::best),
        each(&streams, &[Key::Capacity], pipes::capacity_worth),
        each(&streams, &[Key::Block], pipes::best_block),
        each(&streams, &[Key::Place, Key::Block], wakeups::against_one_core),
        each(&streams, &[Key::Send, Key::Recv, Key::Pages], pipes::zero_copy),
        each(&streams, &[Key::Send, Key::Pages, Key::Capacity], pipes::fresh),
        wakeups::shortest_trip(&trips),
        each(&streams, &[Key::Wait], wakeups::against_blocking),
        each(&trips, &[Key::Wait], wakeups::against_blocking),
        links(&of_streams, link::shared_memory),
        links(&of_trips, link::shared_memory),
        links(&of_streams, link::crossover),
        links(&of_trips, link::crossover),
        recommended::settings(&streams),
        each(&trips, &[Key::Gap], wakeups::against_no_gap),
        each(&trips, &link::VARIES, wakeups::tail),
        // Only chains of one experiment move the same amount.
        of_chains.iter().flat_map(|name| each(&of_experiment(name), &[Key::Length], chain::cost)).collect(),
        links(&of_streams, cost::message_costs),
        links(&of_trips, cost::message_costs),
        cost::call_costs(&streams, &of_streams),
        bounds::memory_copy(&streams, memory_copy).into_iter().collect(),
        chain::published(&chains),
        published::against(&of(|job| !job.is_latency())),
        each(&[plain, chains].concat(), &[Key::Link, Key::Verify, Key::Capacity, Key::Block], bounds::harness),
    ]);
    for rule in &mut rules {
        rule.sort_by(|one, other| other.effect.total_cmp(&one.effect));
    }
    let nth =
        |place: usize| rules.iter().filter_map(move |rule| rule.get(place)).map(|candidate| candidate.finding.clone());
    (0..MOST_PER_RULE).flat_map(nth).collect()
}

/// A finding and how much it matters among those of its rule.
struct Candidate {
    effect: f64,
    finding: Finding,
}

impl Candidate {
    fn new(rule: &str, effect: f64, text: String, evidence: Json) -> Candidate {
        let Json::Object(evidence) = evidence else { unreachable!("evidence is written as an object") };
        Candidate { effect, finding: Finding { rule: rule.to_owned(), topic: topic(rule), text, evidence } }
    }
}

/// What a rule says of each group.
fn each<'a, T: IntoIterator<Item = Candidate>>(
    all: &[MeasuredTrial<'a>],
    varies: &[Key],
    rule: impl Fn(&[MeasuredTrial<'a>]) -> T,
) -> Vec<Candidate> {
    groups(all, varies).iter().flat_map(|group| rule(group)).collect()
}

#[cfg(test)]
fn found(rule: &str, records: &[Record]) -> Vec<Finding> {
    let limit = pipemark_stats::records::memory_copy(records);
    let mut all = findings(records, limit.as_ref());
    all.retain(|finding| finding.rule == rule);
    all
}

#[cfg(test)]
fn texts(rule: &str, records: &[Record]) -> Vec<String> {
    found(rule, records).into_iter().map(|finding| finding.text).collect()
}

#[cfg(test)]
mod tests;
