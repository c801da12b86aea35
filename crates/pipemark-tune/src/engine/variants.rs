//! The variants: what is tried, in which order.

use std::collections::BTreeSet;

use rustix::thread::{CpuSet, sched_getaffinity};

use pipemark_model::{ByteSize, Capacity};

use super::{Experimenter, MIN_GAIN, MIN_GAIN_OF_PIPES, PipelineSource, blank};
use crate::lab::Variant;
use crate::parts::PipePart;
use crate::recording::Recording;
use crate::result::{ExperimentKind, TuneExperiment};
use crate::rewrites::{Locale, Rewrite, rewrites};
use crate::typed::TypedPipeline;

impl Experimenter<'_, '_, '_> {
    /// Screens a pipeline to paste that adds `changes` to those of the best one. Returns its gain.
    fn screen_change(
        &mut self,
        id: &str,
        stage: Option<usize>,
        pipeline: &TypedPipeline,
        changes: &[String],
    ) -> Option<f64> {
        // What can't be pasted exactly isn't tried.
        let command = pipeline.to_paste()?;
        let kind = if stage.is_some() { ExperimentKind::Remedy } else { ExperimentKind::Combination };
        let changes = [self.best.changes.as_slice(), changes].concat();
        let experiment = TuneExperiment {
            stage,
            command: Some(command),
            same_output: Some(true),
            ..blank(kind, id, changes.join("; "))
        };
        let variant = Variant::whole(self.plan.runnable(pipeline).text());
        self.screen(experiment, variant, changes)
    }

    /// Takes a pipeline as the best so far.
    fn adopt(&mut self, pipeline: TypedPipeline, gain: f64, changes: Vec<String>) {
        (self.best.pipeline, self.best.gain) = (pipeline, gain);
        self.best.changes.extend(changes);
    }

    /// Tries each remedy, then the best ones together, as long as new ones are found.
    pub(super) fn try_remedies(&mut self) {
        let mut tried = BTreeSet::new();
        loop {
            let current = self.best.pipeline.clone();
            let applied = self.best.changes.clone();
            let mut found: Vec<(f64, Rewrite)> = Vec::new();
            for rewrite in rewrites(&current, &self.plan.setting) {
                let before = current.stages[rewrite.first].text.trim().to_owned();
                let replaces_recording = matches!(self.plan.source, PipelineSource::Recorded(_)) && rewrite.first == 0;
                if replaces_recording || !tried.insert((rewrite.id.clone(), before, rewrite.with.clone())) {
                    continue;
                }
                let changed = rewrite.apply(&current);
                let stage = applied.is_empty().then_some(rewrite.first + 1);
                if let Some(gain) =
                    self.screen_change(&rewrite.id, stage, &changed, std::slice::from_ref(&rewrite.text))
                    && gain > self.best.gain * MIN_GAIN
                {
                    found.push((gain, rewrite));
                }
            }
            found.sort_by(|one, other| other.0.total_cmp(&one.0));
            let Some((best_gain, best)) = found.first().cloned() else { return };
            // All that don't change the same stages, together.
            let mut together: Vec<Rewrite> = Vec::new();
            for (_, rewrite) in &found {
                if !together.iter().any(|other| other.overlaps(rewrite)) {
                    together.push(rewrite.clone());
                }
            }
            let mut next = (best.apply(&current), best_gain, vec![best.text.clone()]);
            if together.len() > 1 {
                together.sort_by_key(|rewrite| std::cmp::Reverse(rewrite.first));
                let combined = together.iter().fold(current.clone(), |pipeline, rewrite| rewrite.apply(&pipeline));
                let texts: Vec<String> = together.iter().rev().map(|rewrite| rewrite.text.clone()).collect();
                if let Some(gain) = self.screen_change("together", None, &combined, &texts)
                    && gain > best_gain * MIN_GAIN
                {
                    next = (combined, gain, texts);
                }
            }
            self.adopt(next.0, next.1, next.2);
        }
    }

    /// Replays the output of each stage instead of running it.
    pub(super) fn try_without(&mut self) {
        let stages = self.plan.runnable(&self.plan.pipeline).stages;
        let names = self.plan.pipeline.names();
        for at in 0..stages.len() {
            let Some(data) = self.recordings[at].as_ref().map(Recording::path) else { continue };
            let input = at.checked_sub(1).and_then(|before| self.counts[before]);
            let part = match (at, input) {
                (0, _) => PipePart::Replay { data: &data, times: None },
                (_, Some(input)) => PipePart::StandIn { data: &data, input },
                (_, None) => continue,
            };
            let mut texts: Vec<String> = stages.iter().map(|stage| stage.text.clone()).collect();
            texts[at] = part.command(&self.plan.program);
            let text = format!("without the work of {} {}", at + 1, names[at]);
            let experiment = TuneExperiment {
                stage: Some(at + 1),
                same_output: Some(true),
                ..blank(ExperimentKind::Without, &format!("without-{}", at + 1), text)
            };
            self.screen(experiment, Variant::whole(texts.join(" | ")), Vec::new());
        }
    }

    /// Runs each stage with its recorded input.
    pub(super) fn try_alone(&mut self) {
        let stages = self.plan.runnable(&self.plan.pipeline).stages;
        let names = self.plan.pipeline.names();
        for at in 0..stages.len() {
            let source = match at.checked_sub(1).map(|before| self.recordings[before].as_ref()) {
                None => None,
                Some(None) => continue,
                Some(Some(recording)) => {
                    let data = recording.path();
                    Some(PipePart::Replay { data: &data, times: None }.command(&self.plan.program))
                }
            };
            let texts: Vec<String> = source.into_iter().chain([stages[at].text.clone()]).collect();
            let text = format!("{} {} alone", at + 1, names[at]);
            let experiment = TuneExperiment {
                stage: Some(at + 1),
                ..blank(ExperimentKind::Alone, &format!("alone-{}", at + 1), text)
            };
            self.screen(experiment, Variant::whole(texts.join(" | ")), Vec::new());
        }
    }

    /// Runs the pipeline with larger pipes. If that helps, tries a relay with a large pipe, and one with a buffer, at
    /// each pipe of the best pipeline.
    pub(super) fn try_pipes(&mut self) {
        let stages = self.plan.runnable(&self.plan.pipeline).stages;
        if stages.len() < 2 {
            return;
        }
        let texts: Vec<String> = stages.iter().map(|stage| stage.text.clone()).collect();
        let experiment = TuneExperiment {
            same_output: Some(true),
            ..blank(ExperimentKind::Capacity, "capacity-1m", "pipes of 1 MiB".to_owned())
        };
        let capacity = Some(Capacity::Bytes(ByteSize(1 << 20)));
        let gain = self.screen(experiment, Variant { stages: texts, capacity, cpus: None }, Vec::new());
        if gain.is_none_or(|gain| gain < MIN_GAIN_OF_PIPES) {
            return;
        }
        const RELAYS: [(&str, &str, &str); 2] = [
            ("relay-capacity", "pipemark relay --capacity 1m", "a pipe of 1 MiB"),
            ("relay-buffer", "pipemark relay --buffer 64m", "a buffer of 64 MiB"),
        ];
        for at in 0..self.best.pipeline.stages.len() - 1 {
            for (id, relay, what) in RELAYS {
                let current = self.best.pipeline.clone();
                let from = current.stages[at].clone();
                let names = current.names();
                let changed = current.replaced(at, at, &[from.text.trim().to_owned(), relay.to_owned()]);
                let text = format!("{what} between {} and {}", names[at], names[at + 1]);
                if let Some(gain) = self.screen_change(id, None, &changed, std::slice::from_ref(&text))
                    && gain > self.best.gain * MIN_GAIN_OF_PIPES
                {
                    self.adopt(changed, gain, vec![text]);
                    break;
                }
            }
        }
    }

    /// Runs the pipeline with LC_ALL=C, which shows what the locale costs.
    pub(super) fn try_locale(&mut self) {
        if self.plan.setting.locale == Locale::Bytes {
            return;
        }
        let text = format!("LC_ALL=C\nexport LC_ALL\n{}", self.baseline.stages[0]);
        let experiment = TuneExperiment {
            same_output: Some(true),
            ..blank(ExperimentKind::Locale, "locale", "LC_ALL=C for all stages".to_owned())
        };
        self.screen(experiment, Variant::whole(text), Vec::new());
    }

    pub(super) fn try_one_cpu(&mut self) {
        let Ok(all) = sched_getaffinity(None) else { return };
        if all.count() < 2 {
            return;
        }
        let mut one = CpuSet::new();
        if let Some(first) = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)) {
            one.set(first);
        }
        let experiment = TuneExperiment {
            same_output: Some(true),
            ..blank(ExperimentKind::Cpus, "one-cpu", "on one CPU".to_owned())
        };
        self.screen(experiment, Variant { cpus: Some(one), ..self.baseline.clone() }, Vec::new());
    }
}
