//! The experiments of several documents, each experiment once, with its trials of all runs.

use std::collections::{BTreeSet, HashSet};

use strum::IntoEnumIterator;

use crate::model::{Document, Estimates, Job, Key, Place, Record, Status, WaitPolicy};
use crate::sheet::neutral;

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
        let good = record.status == Status::Ok && record.verified != Some(false);
        record.estimate.as_ref().filter(|_| good).map(|estimates| Trial { run, record, estimates })
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
                    latency: records.iter().all(|record| record.job.is_round_trip()),
                    keys: about.varies.clone(),
                    trials: trials.collect(),
                    runs: vec![run],
                });
            }
        }
        for section in &mut sections {
            section.keys = section.telling_keys();
        }
        sections
    }

    /// `keys` as given by the suite, then all others; without those that tell nothing apart which the others do not.
    fn telling_keys(&self) -> Vec<Key> {
        let mut keys = self.keys.clone();
        keys.extend(Key::iter().filter(|key| !self.keys.contains(key)));
        let value = |trial: &Trial, key: Key| trial.job().value(key);
        keys.retain(|key| {
            let values: HashSet<_> = self.trials.iter().map(|trial| value(trial, *key)).collect();
            values.len() > 1
        });
        let apart = |keys: &[Key]| -> usize {
            let all = self.trials.iter();
            all.map(|trial| keys.iter().map(|key| value(trial, *key)).collect::<Vec<_>>()).collect::<HashSet<_>>().len()
        };
        let all = apart(&keys);
        // How much is moved follows from what is moved more often than the other way round.
        let minor = |key: &Key| matches!(key, Key::Total | Key::Time | Key::Verify | Key::ReadBlock);
        let mut order: Vec<Key> = keys.iter().copied().rev().collect();
        order.sort_by_key(|key| !minor(key));
        for key in order {
            let fewer: Vec<Key> = keys.iter().copied().filter(|other| *other != key).collect();
            if apart(&fewer) == all {
                keys = fewer;
            }
        }
        keys
    }

    /// What tells a trial from the others, in words, by `keys` alone.
    pub(in crate::sheet) fn name_of(&self, trial: &Trial, keys: &[Key]) -> String {
        let job = trial.job();
        let both = keys.contains(&Key::Send) && keys.contains(&Key::Recv);
        let mut words = Vec::new();
        for key in keys {
            let word = trial.word(*key);
            words.push(match key {
                _ if word.is_empty() => continue,
                // What is usual goes without saying.
                Key::Pages if job.value(*key) == key.usual() => continue,
                Key::Wait if job.wait() == WaitPolicy::Block => continue,
                Key::Recv if both => continue,
                Key::Send if both => format!("{word} → {}", trial.word(Key::Recv)),
                Key::Place => match job.place() {
                    Place::Same => "one CPU".to_owned(),
                    Place::Cross => "two cores".to_owned(),
                    Place::Free => "any CPUs".to_owned(),
                    Place::Pinned(writer, reader) => format!("CPUs {writer} and {reader}"),
                },
                Key::Wait if job.wait() == WaitPolicy::Spin => "spinning".to_owned(),
                Key::Link
                | Key::Send
                | Key::Recv
                | Key::Stage
                | Key::Language
                | Key::Program
                | Key::Feed
                | Key::Filter
                | Key::Mode => word,
                Key::Pages => format!("{word} pages"),
                Key::Length => format!("{word} stages"),
                _ => format!("{} {word}", key.to_string().replace('-', " ")),
            });
        }
        match words.is_empty() && !keys.is_empty() {
            // All of it is usual, in an experiment where others are not.
            true => keys.iter().map(|key| trial.word(*key)).collect::<Vec<_>>().join(", "),
            false => words.join(", "),
        }
    }

    /// The values of a parameter as numbers, where all trials have one.
    pub(in crate::sheet) fn numbers(&self, key: Key) -> Option<BTreeSet<u64>> {
        self.trials.iter().map(|trial| number(trial, key)).collect()
    }
}

/// A parameter as a number: bytes, nanoseconds or a count. Of a capacity it is what the kernel granted.
pub(in crate::sheet) fn number(trial: &Trial, key: Key) -> Option<u64> {
    match key {
        Key::Capacity => trial.record.samples.first()?.capacity_granted,
        _ => trial.job().value(key)?.number(),
    }
}

/// A name for each document by what differs between them: label, suite, host, version, start.
pub(in crate::sheet) fn labels(documents: &[Document]) -> Vec<String> {
    let aspects: [fn(&Document) -> String; 5] = [
        |document| document.label.clone().unwrap_or_default(),
        |document| document.suite.clone(),
        |document| document.host.name.clone(),
        |document| format!("pipemark {}", document.version),
        |document| document.started.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect(),
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
        false => names.iter().enumerate().map(|(n, name)| format!("{}. {name}", n + 1).trim().to_owned()).collect(),
    }
}
