//! The variants: what is tried, in which order.

use std::collections::BTreeSet;

use rustix::thread::{CpuSet, sched_getaffinity};

use pipemark_causes::PipeRecord;
use pipemark_model::{ByteSize, Capacity, total_order};

use super::{CLEAR_GAIN, Experimenter, HARMLESS, MIN_GAIN, MIN_GAIN_OF_PIPES, PipelineSource, blank};
use crate::lab::Variant;
use crate::parts::PipePart;
use crate::recording::Recording;
use crate::result::{ExperimentKind, TuneExperiment};
use crate::rewrites::{Locale, Rewrite, rewrites};
use crate::typed::{TypedPipeline, quote};

/// Between the names of changes that are made together.
const TOGETHER: &str = " + ";
/// The number of changes that run again, if they helped in their first run.
const SCREENED_AGAIN: usize = 3;
/// A stage with at least this share of the largest gain may be the bottleneck.
const NEAR_THE_LARGEST: f64 = 0.8;

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
            changes: changes.clone(),
            command: Some(command),
            same_output: Some(true),
            ..blank(kind, id, changes.join(TOGETHER))
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
            let mut measured = self.screen_remedies(&current, &mut tried);
            measured.sort_by_cached_key(|one| total_order(-one.0));
            let best = measured.first().filter(|best| best.0 > self.best.gain * MIN_GAIN).cloned();
            // If stages are equally slow, each change alone gains nothing, and all of them together do.
            let least = if best.is_some() { MIN_GAIN } else { HARMLESS };
            let mut together: Vec<Rewrite> = Vec::new();
            for (_, rewrite) in measured.iter().filter(|(gain, _)| *gain > self.best.gain * least) {
                if !together.iter().any(|other| other.overlaps(rewrite)) {
                    together.push(rewrite.clone());
                }
            }
            let mut next = best.map(|(gain, rewrite)| (rewrite.apply(&current), gain, vec![rewrite.text]));
            if together.len() > 1 {
                together.sort_by_key(|rewrite| std::cmp::Reverse(rewrite.first));
                let combined = together.iter().fold(current.clone(), |pipeline, rewrite| rewrite.apply(&pipeline));
                let texts: Vec<String> = together.iter().rev().map(|rewrite| rewrite.text.clone()).collect();
                let before = next.as_ref().map_or(self.best.gain, |next| next.1);
                if let Some(gain) = self.screen_change("together", None, &combined, &texts)
                    && gain > before * MIN_GAIN
                {
                    next = Some((combined, gain, texts));
                }
            }
            let Some(next) = next else { return };
            self.adopt(next.0, next.1, next.2);
        }
    }

    /// Screens each remedy that applies to a pipeline and wasn't tried before, in the order of the expected gain. Returns
    /// the gains.
    fn screen_remedies(&mut self, current: &TypedPipeline, tried: &mut BTreeSet<[String; 3]>) -> Vec<(f64, Rewrite)> {
        let mut found = rewrites(current, &self.plan.setting);
        let is_recorded = matches!(self.plan.source, PipelineSource::Recorded(_));
        found.retain(|rewrite| !(is_recorded && rewrite.first == 0));
        found.sort_by(|one, other| {
            let [one, other] = [one, other].map(|rewrite| self.expected_gain(current, rewrite));
            other.total_cmp(&one)
        });
        let is_first = self.best.changes.is_empty();
        // A stage whose work costs nothing beside the slowest one can't gain.
        let most = found.iter().map(|rewrite| self.expected_gain(current, rewrite)).fold(0.0, f64::max);
        let is_clear = is_first && most >= CLEAR_GAIN;
        let is_skipped = |rewrite: &Rewrite| {
            is_clear && self.expected_gain(current, rewrite) < MIN_GAIN
                || self.is_hopeless(current, rewrite)
                || !is_first && self.is_cheap(current, rewrite)
        };
        let (skipped, found): (Vec<Rewrite>, Vec<Rewrite>) = found.into_iter().partition(is_skipped);
        if is_first && !skipped.is_empty() {
            let texts: Vec<String> = skipped.into_iter().map(|rewrite| rewrite.text).collect();
            let texts = texts.join("; ");
            self.notes.push(format!("not tried, because their stages cost less than 5 % of the time: {texts}"));
        }
        let mut measured = Vec::new();
        for rewrite in found {
            let before = current.stages[rewrite.first].text.trim().to_owned();
            if !tried.insert([rewrite.id.clone(), before, rewrite.with.join("|")]) {
                continue;
            }
            let changed = rewrite.apply(current);
            // With other changes, it may become a pipeline that was tried.
            let command = changed.to_paste();
            if self.trials.iter().any(|trial| command.is_some() && trial.experiment.command == command) {
                continue;
            }
            if !is_first && !self.has_room() {
                let seconds = self.cost();
                let best = self.best.changes.join(TOGETHER);
                self.leave_untried(format!("other changes together with {best}"), seconds);
                break;
            }
            let stage = is_first.then_some(rewrite.first + 1);
            let text = std::slice::from_ref(&rewrite.text);
            let Some(gain) = self.screen_change(&rewrite.id, stage, &changed, text) else {
                self.try_with_other_output(current, &rewrite);
                continue;
            };
            measured.push((gain, rewrite, self.trials.len() - 1));
        }
        // A second run, because the first may have been disturbed.
        measured.sort_by_cached_key(|one| total_order(-one.0));
        let least = self.best.gain * MIN_GAIN;
        for (gain, _, trial) in measured.iter_mut().take(SCREENED_AGAIN).filter(|one| one.0 > least) {
            *gain = self.screen_again(*trial);
        }
        measured.into_iter().map(|(gain, rewrite, _)| (gain, rewrite)).collect()
    }

    /// Judges a change whose output differed: if its output becomes the same by the command that the rewrite names, the
    /// change may be proposed, but isn't combined with others.
    fn try_with_other_output(&mut self, current: &TypedPipeline, rewrite: &Rewrite) {
        let Some((compare, changes)) = rewrite.compare.as_ref().zip(rewrite.changes.as_ref()) else { return };
        let Some(at) = self.trials.len().checked_sub(1) else { return };
        let is_slow = self.trials[at].experiment.gain.is_none_or(|gain| gain < MIN_GAIN);
        if is_slow || self.trials[at].experiment.same_output != Some(false) || !self.has_room() {
            return;
        }
        let mut output_of = |pipeline: &TypedPipeline| {
            let texts = [self.plan.runnable(pipeline).text(), compare.clone()];
            Some(self.observe(&texts).ok()??.output)
        };
        let outputs = [output_of(current), output_of(&rewrite.apply(current))];
        let experiment = &mut self.trials[at].experiment;
        if let [Some(old), Some(new)] = outputs
            && old.has_same_content(&new)
        {
            experiment.difference = Some(format!("{changes}; after '{compare}' it is the same"));
            experiment.failed = None;
        }
    }

    /// The places of the stages as typed that a rewrite changes.
    fn places(&self, current: &TypedPipeline, rewrite: &Rewrite) -> Vec<usize> {
        let typed = &self.plan.pipeline.stages;
        let changed = current.stages[rewrite.first..=rewrite.last].iter();
        changed.filter_map(|stage| typed.iter().position(|one| one.text.trim() == stage.text.trim())).collect()
    }

    /// Whether all stages that a rewrite changes are too cheap to be worth measuring.
    fn is_hopeless(&self, current: &TypedPipeline, rewrite: &Rewrite) -> bool {
        let places = self.places(current, rewrite);
        places.len() > rewrite.last - rewrite.first && places.into_iter().all(|place| self.bounds[place].is_some())
    }

    /// Whether all stages that a rewrite changes took so little time alone that the pipeline, as fast as it is by now,
    /// can't gain from the rewrite.
    fn is_cheap(&self, current: &TypedPipeline, rewrite: &Rewrite) -> bool {
        let places = self.places(current, rewrite);
        let times: Option<f64> = places.iter().map(|place| self.of_stage(ExperimentKind::Alone, *place)?.seconds).sum();
        let now = self.base_time() / self.best.gain;
        places.len() > rewrite.last - rewrite.first && times.is_some_and(|own| own < now * (1.0 - 1.0 / MIN_GAIN))
    }

    /// The gain of the pipeline without the work of the stages that a rewrite changes, as far as it was measured.
    fn expected_gain(&self, current: &TypedPipeline, rewrite: &Rewrite) -> f64 {
        let without = |place: usize| self.of_stage(ExperimentKind::Without, place)?.gain;
        // A gain below 1 is noise.
        self.places(current, rewrite).into_iter().filter_map(without).map(|gain| gain.max(1.0)).product()
    }

    /// Replays the output of each stage instead of running it.
    pub(super) fn try_without(&mut self) {
        let stages = self.plan.runnable(&self.plan.pipeline).stages;
        let names = self.plan.pipeline.names();
        for at in 0..stages.len() {
            if self.bounds[at].is_some() {
                continue;
            }
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
        // A second run of the two largest gains, which decide the bottleneck, if it isn't clear.
        let is_measured = |at: &usize| {
            let experiment = &self.trials[*at].experiment;
            experiment.kind == ExperimentKind::Without && experiment.failed.is_none()
        };
        let gain = |at: &usize| self.trials[*at].experiment.gain.unwrap_or(0.0);
        let mut largest: Vec<usize> = (0..self.trials.len()).filter(is_measured).collect();
        largest.sort_by_cached_key(|one| total_order(-gain(one)));
        largest.retain(|at| gain(at) >= MIN_GAIN);
        if let [first, second, ..] = largest[..]
            && gain(&second) > gain(&first) * NEAR_THE_LARGEST
        {
            self.screen_again(first);
            self.screen_again(second);
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

    /// Runs the pipeline with larger pipes; if that helps, also with some that are only a little larger.
    pub(super) fn try_capacities(&mut self) {
        let stages = self.plan.runnable(&self.plan.pipeline).stages;
        if stages.len() < 2 {
            return;
        }
        let texts: Vec<String> = stages.iter().map(|stage| stage.text.clone()).collect();
        for (id, bytes) in [("capacity-1m", 1 << 20), ("capacity-256k", 1 << 18)] {
            let size = ByteSize(bytes);
            let experiment = TuneExperiment {
                same_output: Some(true),
                ..blank(ExperimentKind::Capacity, id, format!("pipes of {size}"))
            };
            let capacity = Some(Capacity::Bytes(size));
            let gain = self.screen(experiment, Variant { stages: texts.clone(), capacity, cpus: None }, Vec::new());
            if gain.is_none_or(|gain| gain < MIN_GAIN_OF_PIPES) {
                return;
            }
        }
    }

    /// Whether larger pipes helped.
    fn larger_pipes_help(&self) -> bool {
        let mut trials = self.trials.iter().map(|trial| &trial.experiment);
        trials.any(|one| one.kind == ExperimentKind::Capacity && one.gain.is_some_and(|gain| gain >= MIN_GAIN_OF_PIPES))
    }

    /// Tries a relay with a large pipe, if larger pipes helped, and one with a buffer, at each pipe of the best pipeline
    /// whose ends wait in turn.
    pub(super) fn try_buffers(&mut self) {
        if self.best.pipeline.stages.len() < 2 || self.report.is_none() && !self.larger_pipes_help() {
            return;
        }
        let skipped = if self.larger_pipes_help() { 0 } else { 1 };
        const RELAYS: [(&str, &str, &str); 2] = [
            ("relay-capacity", "relay --capacity 1m", "a pipe of 1 MiB"),
            ("relay-buffer", "relay --buffer 64m", "a buffer of 64 MiB"),
        ];
        // A shell may not find this program by its name.
        let own = match std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok()) {
            Some(path) if !(self.plan.setting.is_installed)("pipemark") => quote(&path),
            _ => "pipemark".to_owned(),
        };
        // From the last pipe on, so that the places of the others don't change.
        for at in self.pipes_with_bursts().into_iter().rev() {
            for (id, relay, what) in &RELAYS[skipped..] {
                let relay = format!("{own} {relay}");
                let current = self.best.pipeline.clone();
                let Some(from) = current.stages.get(at).filter(|_| at + 1 < current.stages.len()).cloned() else {
                    continue;
                };
                let names = current.names();
                let changed = current.replaced(at, at, &[from.text.trim().to_owned(), relay]);
                let text = format!("{what} between {} and {}", names[at], names[at + 1]);
                if !self.has_room() {
                    let seconds = self.cost();
                    self.leave_untried(text, seconds);
                    continue;
                }
                if let Some(gain) = self.screen_change(id, None, &changed, std::slice::from_ref(&text))
                    && gain > self.best.gain * MIN_GAIN_OF_PIPES
                {
                    self.adopt(changed, gain, vec![text]);
                    break;
                }
            }
        }
    }

    /// The pipes at which both ends wait in turn, each by the place of its writer: at most two.
    fn pipes_with_bursts(&self) -> Vec<usize> {
        const MIN_WAITS: f64 = 0.1;
        const MOST: usize = 2;
        let stages = &self.best.pipeline.stages;
        let Some(report) = &self.report else { return (0..stages.len() - 1).take(MOST).collect() };
        let waits = |pipe: &PipeRecord| pipe.writer_waits.min(pipe.reader_waits);
        let mut pipes: Vec<&PipeRecord> =
            report.pipes.iter().filter(|pipe| pipe.to == pipe.from + 1 && waits(pipe) >= MIN_WAITS).collect();
        pipes.sort_by_cached_key(|one| total_order(-waits(one)));
        let typed = &self.plan.pipeline.stages;
        let place = |pipe: &PipeRecord| {
            let writer = typed.get(pipe.from.checked_sub(1)?)?.text.trim();
            stages.iter().position(|stage| stage.text.trim() == writer)
        };
        let mut places: Vec<usize> = pipes.into_iter().take(MOST).filter_map(place).collect();
        places.sort_unstable();
        places
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
