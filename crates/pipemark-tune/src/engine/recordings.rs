//! Checks that the pipeline writes the same again, and records what passes its pipes.

use std::time::Duration;

use pipemark_model::ByteSize;

use super::{EarlyEnd, Experimenter, NoResult};
use crate::lab::{NoRun, Variant, VariantRun, difference, hashed};
use crate::parts::PipePart;
use crate::recording::Recording;

impl Experimenter<'_, '_, '_> {
    /// Runs the pipeline again, with counters between its stages, and compares the outputs. Then records what passes
    /// the pipes.
    pub(super) fn check_steadiness(&mut self, first: &VariantRun) -> Result<(), EarlyEnd> {
        let stages = self.plan.runnable(&self.plan.pipeline).stages;
        let texts: Vec<String> = stages.iter().map(|stage| stage.text.clone()).collect();
        let failed =
            |error: std::io::Error| EarlyEnd::Stop(NoResult::Failed(format!("nothing can be recorded: {error}")));
        let files: Result<Vec<Recording>, _> = texts.iter().map(|_| Recording::new("pipemark-count")).collect();
        let files = files.map_err(failed)?;
        let paths: Vec<String> = files.iter().map(Recording::path).collect();
        let counted: Vec<String> =
            paths.iter().map(|data| PipePart::Count { data }.command(&self.plan.program)).collect();
        self.progress.show("second run: is the output the same?");
        let again = self.observe(&interleaved(&texts, &counted.iter().map(Some).collect::<Vec<_>>()))?;
        if let Some(again) = again {
            self.own_times.push(again.elapsed.as_secs_f64());
            if !again.output.has_same_content(&first.output) {
                return Err(EarlyEnd::Stop(NoResult::Unsteady(difference(first, &again))));
            }
            self.counts = files.iter().map(Recording::counted).collect();
        }
        self.record(&texts)
    }

    /// Runs stages, and returns the run; `None` if it failed. Its exit code is that of the last tap.
    pub(super) fn observe(&mut self, stages: &[String]) -> Result<Option<VariantRun>, EarlyEnd> {
        let variant = Variant::whole(stages.join(" | "));
        let limit = Duration::from_secs_f64(self.base_time() * 5.0 + 5.0);
        match self.lab.run(&variant, limit, hashed(true)) {
            Ok(run) => Ok(Some(run)),
            Err(NoRun::Interrupted) => Err(EarlyEnd::Interrupted),
            Err(NoRun::TooSlow | NoRun::OutOfTime | NoRun::Failed(_)) => Ok(None),
        }
    }

    /// Records the outputs of stages, the smallest first, as far as the memory allows.
    fn record(&mut self, texts: &[String]) -> Result<(), EarlyEnd> {
        let mut order: Vec<(u64, usize)> =
            self.counts.iter().enumerate().filter_map(|(at, count)| Some(((*count)?, at))).collect();
        order.sort_unstable();
        let mut left = self.plan.sample;
        let mut chosen: Vec<Option<(Recording, u64)>> = texts.iter().map(|_| None).collect();
        for (bytes, at) in order {
            if bytes > left {
                let name = &self.plan.pipeline.names()[at];
                self.notes.push(format!(
                    "the output of {} {name} ({}) wasn't recorded, so the pipeline wasn't run without it; use a larger --sample",
                    at + 1,
                    ByteSize(bytes)
                ));
                continue;
            }
            let Ok(recording) = Recording::new("pipemark-recording") else { break };
            left -= bytes;
            // A run may write a little more than the last one, if its reader leaves early.
            chosen[at] = Some((recording, bytes + (1 << 20)));
        }
        let taps: Vec<Option<String>> = chosen
            .iter()
            .map(|one| {
                let (recording, limit) = one.as_ref()?;
                let data = recording.path();
                Some(PipePart::Tap { data: &data, limit: *limit, times: None }.command(&self.plan.program))
            })
            .collect();
        if taps.iter().all(Option::is_none) {
            return Ok(());
        }
        self.progress.show("third run: records what passes the pipes");
        let run = self.observe(&interleaved(texts, &taps.iter().map(Option::as_ref).collect::<Vec<_>>()))?;
        let Some(run) = run else { return Ok(()) };
        if !run.output.has_same_content(&self.reference) {
            self.notes.push("no stage could be recorded, because the output changed meanwhile".to_owned());
            return Ok(());
        }
        for (at, one) in chosen.into_iter().enumerate() {
            self.recordings[at] = one.map(|(recording, _)| recording);
        }
        Ok(())
    }
}

/// The stages with a tap after each one that has one.
fn interleaved(stages: &[String], taps: &[Option<&String>]) -> Vec<String> {
    stages.iter().zip(taps).flat_map(|(stage, tap)| [Some(stage.clone()), tap.cloned()]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_stand_behind_their_stages() {
        let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let tap = "tap".to_owned();
        assert_eq!(
            interleaved(&texts(&["a", "b", "c"]), &[Some(&tap), None, Some(&tap)]),
            texts(&["a", "tap", "b", "c", "tap"])
        );
    }
}
