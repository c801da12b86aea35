//! Findings: sentences computed from records, each with its evidence.
//!
//! A rule reads groups of trials that differ only in certain parameters. A rule never reads the names of suites, so any
//! user's suite gets the findings that its trials support. A rule reports nothing if the intervals leave its question
//! open. The intervals are adjusted for all comparisons of a document, see [`Family`].

mod bounds;
mod chain;
mod contrast;
mod cost;
mod cpu_map;
mod filters;
mod imported;
mod languages;
mod link;
mod measured;
mod pipes;
mod published;
mod recommended;
mod wakeups;
mod words;

pub use imported::imported;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use pipemark_model::{CpuTopology, Estimate, Finding, Job, Key, Record, distinct, group_by_key, total_order};
use pipemark_stats::family::Family;
use pipemark_stats::records::speeds_by_round;

use crate::findings::measured::{
    MeasuredTrial, common_settings, fastest, first_findings, groups, measured_trials, parts,
};

/// The largest number of findings of one rule. Without this limit, a suite with many parameters could give dozens.
const MAX_PER_RULE: usize = 4;

/// Help topics, each with the prefixes of the names of its rules. Other rules have the topic `method`.
const TOPICS: [(&str, &[&str]); 3] = [
    ("wakeups", &["place", "wait", "gap", "round-trip", "tail", "call-cost", "message-cost"]),
    ("capacity", &["capacity"]),
    ("zero-copy", &["zero-copy", "fresh-data", "recommended"]),
];

fn topic(rule: &str) -> String {
    let found = TOPICS.iter().find(|(_, rules)| rules.iter().any(|begin| rule.starts_with(begin)));
    found.map_or("method", |(topic, _)| topic).to_owned()
}

/// Findings from the records, most useful first: the largest effect of each rule, then the second largest of each.
/// `memory_copy` is the machine's memory-copy limit, see [`pipemark_stats::records::memory_copy`], and `topology` has
/// what its CPUs share.
pub fn findings(records: &[Record], memory_copy: Option<&Estimate>, topology: &[CpuTopology]) -> Vec<Finding> {
    let of_chains: BTreeSet<&str> =
        records.iter().filter(|record| record.job.chain().is_some()).map(|record| record.experiment.as_str()).collect();
    // A chain of length 0 is a stream. In an experiment with chains, it is only a base for them, so it gets no findings
    // of its own.
    let may_be_chain = |job: &Job| !job.is_latency() && job.lines().is_none() && job.entrant().is_none();
    let (chained, plain): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|record| of_chains.contains(record.experiment.as_str()) && may_be_chain(&record.job));
    let (chains, plain) = (measured_trials(chained.iter().copied()), measured_trials(plain.iter().copied()));
    let speeds: Vec<_> = chains.iter().chain(&plain).map(|one| speeds_by_round(&one.record.samples)).collect();
    // Only pairs within one experiment are counted, because nearly all comparisons are of such pairs. So running
    // several suites together does not widen the intervals.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in chains.iter().chain(&plain) {
        *counts.entry(one.record.experiment.as_str()).or_default() += 1;
    }
    let pairs: usize = counts.values().map(|count| count * (count - 1) / 2).sum();
    let family = Family::of(&speeds).with(pairs.max(1) as f64);
    let [chains, plain] =
        [chains, plain].map(|all| all.into_iter().map(|one| MeasuredTrial { family, ..one }).collect::<Vec<_>>());
    let of = |kind: fn(&Job) -> bool| plain.iter().copied().filter(|one| kind(one.job)).collect::<Vec<_>>();
    let transfers = |job: &Job| job.ends().is_some_and(|ends| ends.link.transfers());
    // Entrants and line filters have no pipemark senders and receivers.
    let entrants = of(|job| job.entrant().is_some_and(|entrant| entrant.verify.reads()));
    let entrants = groups_of_parts(&entrants, &[Key::Language, Key::Program]);
    let lines = groups_of_parts(&of(|job| job.lines().is_some()), &[Key::Filter]);
    let (trips, streams): (Vec<MeasuredTrial>, Vec<MeasuredTrial>) =
        of(transfers).into_iter().partition(|one| one.job.is_round_trip());
    let (stream_parts, trip_parts) = (parts(&streams), parts(&trips));
    let (of_streams, of_trips) = (link::rivals(&stream_parts), link::rivals(&trip_parts));

    let mut rules = languages::compare_languages(&entrants, records);
    rules.extend(filters::compare_filters(&lines, records));
    rules.extend([
        // The cost of a call and of a byte explains the table of block sizes.
        cost::call_costs(&stream_parts, &of_streams),
        link::each_situation(&of_streams, link::best),
        link::each_situation(&of_trips, link::best),
        each(&stream_parts, &[Key::Capacity], pipes::capacity_worth),
        each(&stream_parts, &[Key::Block], pipes::best_block),
        each(&stream_parts, &[Key::Place, Key::Block], wakeups::against_one_core),
        each(&stream_parts, &[Key::Send, Key::Recv, Key::Pages], pipes::zero_copy),
        each(&stream_parts, &[Key::Send, Key::Pages, Key::Capacity], pipes::fresh),
        wakeups::shortest_trip(&trips),
        each(&stream_parts, &[Key::Place], |group| cpu_map::structure(group, topology)),
        each(&trip_parts, &[Key::Place], |group| cpu_map::structure(group, topology)),
        each(&stream_parts, &[Key::Wait], wakeups::against_blocking),
        each(&trip_parts, &[Key::Wait], wakeups::against_blocking),
        link::each_situation(&of_streams, link::shared_memory),
        link::each_situation(&of_trips, link::shared_memory),
        link::each_situation(&of_streams, link::crossover),
        link::each_situation(&of_trips, link::crossover),
        recommended::settings(&stream_parts),
        each(&trip_parts, &[Key::Gap], wakeups::against_no_gap),
        each(&trip_parts, &link::VARIES, wakeups::tail),
        chain_groups(&chains).iter().filter_map(|group| chain::cost(group)).collect(),
        link::each_situation(&of_streams, cost::message_costs),
        link::each_situation(&of_trips, cost::message_costs),
        bounds::memory_copy(&streams, memory_copy).into_iter().collect(),
        chain::published(&chains),
        published::against(&of(|job| !job.is_latency() && job.entrant().is_none_or(|entrant| entrant.verify.reads()))),
        each(&parts(&[plain, chains].concat()), &[Key::Link, Key::Capacity, Key::Block], bounds::harness),
    ]);
    for rule in &mut rules {
        rule.sort_by_cached_key(|one| total_order(-one.effect));
    }
    let nth =
        |place: usize| rules.iter().filter_map(move |rule| rule.get(place)).map(|candidate| candidate.finding.clone());
    (0..MAX_PER_RULE).flat_map(nth).collect()
}

/// A finding, with its importance among the findings of its rule.
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

/// Chains of one experiment that differ in length. Each chain may have its own volume, because the findings are about
/// time per byte and start time. If several lengths occur with several volumes, each volume is a separate group.
fn chain_groups<'a>(chains: &[MeasuredTrial<'a>]) -> Vec<Vec<MeasuredTrial<'a>>> {
    let varies = [Key::Length];
    let of_experiment = group_by_key(chains.iter().map(|one| (&one.record.experiment, *one)));
    let all = of_experiment.into_iter().flat_map(|(_, chains)| groups(&chains, &varies));
    let length = |one: &MeasuredTrial| one.job.value(Key::Length);
    all.flat_map(|group| match distinct(group.iter().map(length)).len() == group.len() {
        true => vec![group],
        false => parts(&group),
    })
    .collect()
}

/// The groups of each part. A part has one experiment and one volume.
fn groups_of_parts<'a>(all: &[MeasuredTrial<'a>], varies: &[Key]) -> Vec<Vec<Vec<MeasuredTrial<'a>>>> {
    parts(all).iter().map(|part| groups(part, varies)).collect()
}

/// Applies a rule to the groups of each part.
fn each<'a, T: IntoIterator<Item = Candidate>>(
    parts: &[Vec<MeasuredTrial<'a>>],
    varies: &[Key],
    rule: impl Fn(&[MeasuredTrial<'a>]) -> T,
) -> Vec<Candidate> {
    let groups = parts.iter().flat_map(|part| groups(part, varies));
    first_findings(groups, |group| common_settings(&group[0], varies), |group| rule(group))
}

#[cfg(test)]
fn findings_of_rule(rule: &str, records: &[Record]) -> Vec<Finding> {
    let limit = pipemark_stats::records::memory_copy(records);
    let mut all = findings(records, limit.as_ref(), &[]);
    all.retain(|finding| finding.rule == rule);
    all
}

#[cfg(test)]
fn texts(rule: &str, records: &[Record]) -> Vec<String> {
    findings_of_rule(rule, records).into_iter().map(|finding| finding.text).collect()
}

#[cfg(test)]
mod tests;
