//! The experiments of several documents, merged by name, with their trials from all runs.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use pipemark_model::{Document, Estimates, Finding, Job, Key, Record, differing_keys, distinct, name, neutral};

use crate::sheet::experiment::trials_by_experiment;
use crate::sheet::words::time;

/// A trial that was measured without failing.
#[derive(Debug, Clone, Copy)]
pub(in crate::sheet) struct Trial<'a> {
    /// The index of the trial's document.
    pub(in crate::sheet) run: usize,
    pub(in crate::sheet) record: &'a Record,
    pub(in crate::sheet) estimates: &'a Estimates,
}

impl<'a> Trial<'a> {
    fn of(run: usize, record: &'a Record) -> Option<Trial<'a>> {
        record.measured().map(|estimates| Trial { run, record, estimates })
    }

    pub(in crate::sheet) fn job(&self) -> &'a Job {
        &self.record.job
    }

    /// A parameter's value as text; empty if the trial doesn't have the parameter.
    pub(in crate::sheet) fn word(&self, key: Key) -> String {
        self.job().value(key).map_or_else(String::new, |value| neutral(&value.to_string()))
    }
}

/// An experiment with its trials from all documents.
#[derive(Debug)]
pub(in crate::sheet) struct Section<'a> {
    pub(in crate::sheet) name: &'a str,
    pub(in crate::sheet) title: String,
    pub(in crate::sheet) about: String,
    pub(in crate::sheet) across: Option<Key>,
    /// Whether the trials measure round trips.
    pub(in crate::sheet) latency: bool,
    /// The smallest set of parameters that distinguishes the trials, the most important first.
    pub(in crate::sheet) keys: Vec<Key>,
    pub(in crate::sheet) trials: Vec<Trial<'a>>,
    /// The ids of the trials.
    ids: HashSet<&'a str>,
    /// The indices of the documents that contain the experiment.
    pub(in crate::sheet) runs: Vec<usize>,
}

impl<'a> Section<'a> {
    /// The experiments of all documents, in order of first appearance. An experiment with only the memory copy is
    /// omitted, because the memory copy is drawn as the limit of other trials.
    pub(in crate::sheet) fn all(documents: &'a [Document]) -> Vec<Section<'a>> {
        let mut sections: Vec<Section> = Vec::new();
        let mut places: HashMap<(&str, String), usize> = HashMap::new();
        for (run, document) in documents.iter().enumerate() {
            let by_experiment = trials_by_experiment(document);
            for about in &document.experiments {
                let records = by_experiment.get(about.name.as_str()).map_or(&[][..], Vec::as_slice);
                if records.iter().all(|record| record.job.is_memory_copy()) {
                    continue;
                }
                let trials = records.iter().filter_map(|record| Trial::of(run, record));
                let title = neutral(if about.title.is_empty() { &about.name } else { &about.title });
                let place = *places.entry((about.name.as_str(), title.clone())).or_insert(sections.len());
                if let Some(known) = sections.get_mut(place) {
                    known.trials.extend(trials);
                    known.runs.push(run);
                    continue;
                }
                sections.push(Section {
                    name: &about.name,
                    title,
                    about: neutral(&about.about),
                    across: about.across,
                    latency: records.iter().all(|record| record.job.is_latency()),
                    keys: about.varies.clone(),
                    trials: trials.collect(),
                    ids: HashSet::new(),
                    runs: vec![run],
                });
            }
        }
        for section in &mut sections {
            let jobs = section.trials.iter().map(|trial| &trial.record.job).filter(|job| !job.is_memory_copy());
            section.keys = differing_keys(&distinct(jobs), &section.keys);
            section.ids = section.trials.iter().map(|trial| trial.record.id.as_str()).collect();
        }
        sections
    }

    /// The name of a trial, made from the parameters in `keys`.
    pub(in crate::sheet) fn name_of(&self, trial: &Trial, keys: &[Key]) -> String {
        neutral(&name(trial.job(), keys))
    }

    /// Whether a finding is about the section's trials: all trials in the finding's evidence must be in the section.
    pub(in crate::sheet) fn concerns(&self, finding: &Finding) -> bool {
        let mut named = Vec::new();
        finding.evidence.values().for_each(|value| trials_in(value, &mut named));
        !named.is_empty() && named.iter().all(|id| self.ids.contains(id))
    }

    /// The numeric values of a parameter; `None` if a trial has no numeric value.
    pub(in crate::sheet) fn numbers(&self, key: Key) -> Option<BTreeSet<u64>> {
        self.trials.iter().map(|trial| number(trial, key)).collect()
    }
}

/// Collects the ids of the trials in a finding's evidence.
fn trials_in<'a>(evidence: &'a Value, ids: &mut Vec<&'a str>) {
    match evidence {
        Value::Object(fields) => {
            ids.extend(fields.get("trial").and_then(Value::as_str));
            fields.values().for_each(|value| trials_in(value, ids));
        }
        Value::Array(values) => values.iter().for_each(|value| trials_in(value, ids)),
        _ => {}
    }
}

/// A parameter's value as a number of bytes, nanoseconds or a count; `None` for a word. For a capacity, the granted
/// one.
pub(in crate::sheet) fn number(trial: &Trial, key: Key) -> Option<u64> {
    match key {
        Key::Capacity => trial.record.samples.first()?.capacity_granted,
        _ => trial.job().value(key)?.number(),
    }
}

/// A name for each document, made from as many differing properties as distinguish the documents, in this order: label,
/// suite, host, kernel, processor, version, start.
pub fn labels(documents: &[Document]) -> Vec<String> {
    let aspects: [fn(&Document) -> String; 7] = [
        |document| document.label.clone().unwrap_or_else(|| document.suite.clone()),
        |document| document.suite.clone(),
        |document| document.host.name.clone(),
        |document| format!("Linux {}", document.host.kernel.split(" #").next().unwrap_or_default()),
        |document| document.host.cpu.clone(),
        |document| format!("pipemark {}", document.version),
        |document| time(&document.started),
    ];
    let differs = |aspect: &fn(&Document) -> String| documents.iter().map(aspect).collect::<HashSet<_>>().len() > 1;
    let mut chosen: Vec<fn(&Document) -> String> = Vec::new();
    let named = |chosen: &[fn(&Document) -> String], document: &Document| {
        let words: Vec<String> =
            chosen.iter().map(|aspect| neutral(&aspect(document))).filter(|word| !word.is_empty()).collect();
        words.join(", ")
    };
    for aspect in aspects.iter().filter(|aspect| differs(aspect)) {
        let names: HashSet<String> = documents.iter().map(|document| named(&chosen, document)).collect();
        if names.len() < documents.len() {
            chosen.push(*aspect);
        }
    }
    let names: Vec<String> = documents.iter().map(|document| named(&chosen, document)).collect();
    let unique = names.iter().collect::<HashSet<_>>().len() == names.len();
    match unique && names.iter().all(|name| !name.is_empty()) {
        true => names,
        false => names
            .iter()
            .enumerate()
            .map(|(n, name)| if name.is_empty() { format!("run {}", n + 1) } else { format!("{}. {name}", n + 1) })
            .collect(),
    }
}

/// As many of the first `groups` as a chart shows, and a note about the omitted ones. The most important groups must
/// come first.
pub(super) fn truncate_with_note<T>(mut groups: Vec<T>, most: usize, what: &str) -> (Vec<T>, String) {
    let all = groups.len();
    if all <= most {
        return (groups, String::new());
    }
    groups.truncate(most);
    (groups, format!("The chart shows {most} of {all} {what}; the table shows all."))
}
