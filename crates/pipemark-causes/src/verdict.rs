//! The verdict on a pipeline: the cause that the judge chose, as a sentence with remedies. Pure: no clock and no I/O.

use pipemark_model::counted;

use crate::advice::remedies_for;
use crate::causes;
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::judge;
use crate::model::Model;
use crate::pipe_figures::PipeFigures;
use crate::report::{HypothesisRecord, PipelineVerdict, Remedy, VerdictKind};
use crate::sentences::{asides, cause_words, text};

pub use crate::sentences::{name, percent};

/// The minimum number of samples for a verdict.
const MIN_SAMPLES: u32 = 20;
/// The most hypotheses that a report lists.
const MAX_HYPOTHESES: usize = 16;

impl PipelineVerdict {
    pub(crate) fn new(kind: VerdictKind, reason: &str, text: String) -> PipelineVerdict {
        let cause = reason.to_owned();
        PipelineVerdict { kind, reason: reason.to_owned(), cause, text, ..PipelineVerdict::default() }
    }

    /// A report that there is no verdict, with the reason.
    pub fn unknown(reason: &str, text: impl Into<String>) -> PipelineVerdict {
        PipelineVerdict::new(VerdictKind::Unknown, reason, text.into())
    }
}

/// The verdict that there were too few samples.
pub fn too_short(samples: u32) -> PipelineVerdict {
    let samples = counted(samples as usize, "sample");
    let text = format!("Too short for a verdict: {samples}; at least {MIN_SAMPLES} (0.2 s) are needed.");
    PipelineVerdict::unknown("short", text)
}

/// The verdict on a command that ended with this code. If a shell could not run the command, the verdict says so
/// instead of reporting too few samples.
pub fn of_failed(verdict: PipelineVerdict, code: i32) -> PipelineVerdict {
    let why = match code {
        2 => "a syntax error, if the shell reported one",
        126 => "not executable",
        127 => "command not found",
        _ => return verdict,
    };
    if !["short", "ended"].contains(&verdict.reason.as_str()) {
        return verdict;
    }
    let text = format!("The command failed with exit code {code} ({why}) before it could be sampled.");
    PipelineVerdict::unknown("failed", text)
}

/// The verdict on the figures of a period.
pub fn verdict(figures: &PipelineFigures) -> PipelineVerdict {
    if figures.stages.is_empty() {
        return PipelineVerdict::unknown("ended", "Nothing to sample: the pipeline had already ended.");
    }
    if figures.samples < MIN_SAMPLES {
        return too_short(figures.samples);
    }
    let scene = Scene { figures, model: Model::of(figures) };
    let all = causes::assess(&scene);
    if let Some(chosen) = judge::first_by_precedence(&scene, &all, true) {
        return of_hypothesis(&scene, &all, &chosen, "");
    }
    let parts = separate_pipelines(figures);
    if parts.len() < 2 {
        return of_pipeline(figures);
    }
    // Of several pipelines in a script, the one that existed longest determines the verdict.
    let present = |part: &[usize]| part.iter().map(|&number| figures.stages[number - 1].present).fold(0.0, f64::max);
    let only = |part: &[usize]| {
        let subset = figures.subset(part);
        let verdict = of_pipeline(&subset);
        // Back to the numbers of the whole.
        let stage = |number: Option<usize>| number.map(|number| part[number - 1]);
        let pipe = |number: usize| {
            let PipeFigures { from, to, .. } = subset.pipes[number - 1];
            let is_same = |pipe: &&PipeFigures| (pipe.from, pipe.to) == (part[from - 1], part[to - 1]);
            figures.pipes.iter().find(is_same).map(|pipe| pipe.number)
        };
        let verdict = PipelineVerdict {
            stage: stage(verdict.stage),
            next: stage(verdict.next),
            pipe: verdict.pipe.and_then(pipe),
            ..verdict
        };
        (present(part), verdict)
    };
    let each: Vec<(f64, PipelineVerdict)> = parts.iter().map(|part| only(part)).collect();
    let texts: Vec<&str> = each.iter().map(|(_, verdict)| verdict.text.as_str()).collect();
    let text = format!("{} separate pipelines. {}", parts.len(), texts.join(" "));
    let longest = each.iter().rev().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, verdict)| verdict.clone());
    longest.map_or_else(|| of_pipeline(figures), |verdict| PipelineVerdict { text, ..verdict })
}

/// The numbers of the stages of each pipeline. There is one pipeline, unless several were requested or a script runs
/// several.
fn separate_pipelines(figures: &PipelineFigures) -> Vec<Vec<usize>> {
    // What seem to be separate pipelines may be joined by a hidden process.
    if figures.stages.iter().any(|stage| stage.hidden) {
        return Vec::new();
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for stage in &figures.stages {
        parts.push(vec![stage.number]);
    }
    for pipe in &figures.pipes {
        let (joined, apart): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.contains(&pipe.from) || part.contains(&pipe.to));
        parts = apart;
        parts.push(joined.concat());
    }
    // A stage without a pipe isn't a pipeline.
    parts.retain(|part| part.len() > 1);
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts.sort_by_key(|part| part.iter().min().copied());
    parts
}

/// The verdict on one pipeline.
fn of_pipeline(figures: &PipelineFigures) -> PipelineVerdict {
    let scene = Scene { figures, model: Model::of(figures) };
    let all = causes::assess(&scene);
    let chosen = judge::first_by_precedence(&scene, &all, false).unwrap_or_else(|| judge::by_gain(&scene, &all));
    let asides = asides(figures, chosen.stage);
    of_hypothesis(&scene, &all, &chosen, &asides)
}

/// The verdict that a hypothesis makes, with its remedies.
fn of_hypothesis(scene: &Scene, all: &[Hypothesis], chosen: &Hypothesis, asides: &str) -> PipelineVerdict {
    let remedies = remedies_for(chosen, scene.figures);
    let sentence = |remedy: &Remedy| match remedy.command.as_str() {
        "" => remedy.text.clone(),
        command => format!("{}: {command}", remedy.text),
    };
    PipelineVerdict {
        kind: chosen.cause.kind(),
        stage: chosen.stage,
        pipe: chosen.pipe,
        reason: chosen.cause.reason().to_owned(),
        text: text(scene, chosen) + asides,
        bound: chosen.bound,
        next: chosen.next,
        cause: cause_words(scene.figures, chosen),
        sure: chosen.sure,
        gain: chosen.gain,
        quality: Some(chosen.quality),
        hypotheses: records(scene, all, chosen),
        advice: remedies.iter().map(sentence).collect(),
        remedies,
    }
}

/// The hypotheses as the report lists them: the chosen one first, then by gain.
fn records(scene: &Scene, all: &[Hypothesis], chosen: &Hypothesis) -> Vec<HypothesisRecord> {
    let low = |found: &Hypothesis| found.gain.map_or(f64::INFINITY, |gain| gain.low);
    let mut others: Vec<&Hypothesis> = all.iter().filter(|found| *found != chosen).collect();
    others.sort_by(|a, b| low(b).total_cmp(&low(a)).then(a.cause.cmp(&b.cause)));
    // Several stages may pay for the small calls of one.
    let mut known = vec![(chosen.cause, chosen.stage, chosen.pipe)];
    others.retain(|found| {
        let own = (found.cause, found.stage, found.pipe);
        let is_new = !known.contains(&own);
        known.push(own);
        is_new
    });
    others.truncate(MAX_HYPOTHESES - 1);
    let record = |found: &Hypothesis, why_not: Option<&str>| HypothesisRecord {
        cause: cause_words(scene.figures, found),
        stage: found.stage,
        pipe: found.pipe,
        gain: found.gain,
        explains: found.explains,
        quality: found.quality,
        text: text(scene, found),
        why_not: why_not.map(str::to_owned),
    };
    let mut records = vec![record(chosen, None)];
    records.extend(others.into_iter().map(|found| record(found, Some(judge::why_not(scene, chosen, found)))));
    records
}

#[cfg(test)]
pub(crate) mod tests;
