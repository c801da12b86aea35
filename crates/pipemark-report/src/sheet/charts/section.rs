//! The experiments of several documents, each experiment once, with its trials of all runs.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use pipemark_model::{Document, Estimates, Finding, Job, Key, Record, differing, distinct, name, neutral};

use crate::sheet::words::time;

/// A trial that was measured and went well.
#[derive(Debug, Clone, Copy)]
pub(in crate::sheet) struct Trial<'a> {
    /// Which document it is of.
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

    /// The value of a parameter as people read it; the null link and the like have no other parameters than their own.
    pub(in crate::sheet) fn word(&self, key: Key) -> String {
        self.job().value(key).map_or_else(String::new, |value| neutral(&value.to_string()))
    }
}

/// An experiment.
#[derive(Debug)]
pub(in crate::sheet) struct Section<'a> {
    pub(in crate::sheet) name: &'a str,
    pub(in crate::sheet) title: String,
    pub(in crate::sheet) about: String,
    pub(in crate::sheet) across: Option<Key>,
    /// Whether round trips are measured.
    pub(in crate::sheet) latency: bool,
    /// The fewest parameters that tell its trials apart, the most important first.
    pub(in crate::sheet) keys: Vec<Key>,
    pub(in crate::sheet) trials: Vec<Trial<'a>>,
    /// The documents that have it.
    pub(in crate::sheet) runs: Vec<usize>,
}

impl<'a> Section<'a> {
    /// The experiments of all documents, in the order of the first that has them. A memory copy alone is no experiment: it
    /// is the limit that others are held against.
    pub(in crate::sheet) fn all(documents: &'a [Document]) -> Vec<Section<'a>> {
        let mut sections: Vec<Section> = Vec::new();
        for (run, document) in documents.iter().enumerate() {
            for about in &document.experiments {
                let records: Vec<&Record> = document.trials.iter().filter(|r| r.experiment == about.name).collect();
                if records.iter().all(|record| record.job.is_memory_copy()) {
                    continue;
                }
                let trials = records.iter().filter_map(|record| Trial::of(run, record));
                let title = neutral(if about.title.is_empty() { &about.name } else { &about.title });
                let known = sections.iter_mut().find(|known| known.name == about.name && known.title == title);
                if let Some(known) = known {
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
                    runs: vec![run],
                });
            }
        }
        for section in &mut sections {
            let jobs = section.trials.iter().map(|trial| &trial.record.job).filter(|job| !job.is_memory_copy());
            section.keys = differing(&distinct(jobs), &section.keys);
        }
        sections
    }

    /// A trial in words, by some of the parameters.
    pub(in crate::sheet) fn name_of(&self, trial: &Trial, keys: &[Key]) -> String {
        neutral(&name(trial.job(), keys))
    }

    /// Whether a finding is of its trials: all that its evidence names are among them.
    pub(in crate::sheet) fn has_found(&self, finding: &Finding) -> bool {
        let mut named = Vec::new();
        finding.evidence.values().for_each(|value| trials_in(value, &mut named));
        let has = |id: &&str| self.trials.iter().any(|trial| trial.record.id == **id);
        !named.is_empty() && named.iter().all(has)
    }

    /// The values of a parameter as numbers, where all trials have one.
    pub(in crate::sheet) fn numbers(&self, key: Key) -> Option<BTreeSet<u64>> {
        self.trials.iter().map(|trial| number(trial, key)).collect()
    }
}

/// The ids of the trials in some evidence.
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

/// A parameter as a number: bytes, nanoseconds or a count. Of a capacity it is what the kernel granted.
pub(in crate::sheet) fn number(trial: &Trial, key: Key) -> Option<u64> {
    match key {
        Key::Capacity => trial.record.samples.first()?.capacity_granted,
        _ => trial.job().value(key)?.number(),
    }
}

/// A name for each document by what differs between them: label, suite, host, kernel, processor, version, and the start
/// where nothing else does.
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
