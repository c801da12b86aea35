//! What `why` concludes from the first run, and whether the experiments confirm it.

use pipemark_causes::evidence::PipelineEvidence;
use pipemark_causes::report::GainRange;
use pipemark_causes::{PipelineReport, VerdictKind};

use crate::result::{ExperimentKind, PredictedGain, Prediction, TuneExperiment};

/// A cause is confirmed if removing its stage's work gains at least this share of the largest gain.
const NEAR_THE_LARGEST: f64 = 0.9;
/// A smaller gain confirms nothing.
const MIN_CONFIRMED: f64 = 1.05;

/// The report of `why` on a run; `None` if it found other stages than those that were typed, or too little.
pub fn report_on(evidence: &PipelineEvidence, stages: usize) -> Option<PipelineReport> {
    let report = PipelineReport::of(evidence);
    (report.verdict.kind != VerdictKind::Unknown && report.stages.len() == stages).then_some(report)
}

/// The predicted gain of removing the cause at each stage that has the largest gain.
pub fn predicted(report: &PipelineReport, stage: usize) -> Option<PredictedGain> {
    let causes = report.verdict.hypotheses.iter().filter(|found| found.stage == Some(stage));
    let gains = causes.filter_map(|found| found.gain);
    gains.max_by(|one, other| one.low.total_cmp(&other.low)).map(of_range)
}

fn of_range(range: GainRange) -> PredictedGain {
    PredictedGain { low: range.low, high: range.high }
}

/// The verdict, and what the experiments say about it.
pub fn judged(report: &PipelineReport, experiments: &[&TuneExperiment]) -> Prediction {
    let verdict = &report.verdict;
    let gain_of = |kind: ExperimentKind, stage: Option<usize>| {
        let found = experiments.iter().find(|one| one.kind == kind && one.stage == stage && one.failed.is_none());
        found.and_then(|one| one.gain)
    };
    let is_pipe = matches!(verdict.kind, VerdictKind::Pipe | VerdictKind::Burst);
    let stage = verdict.stage.filter(|_| !is_pipe);
    let measured = match stage {
        Some(stage) => gain_of(ExperimentKind::Without, Some(stage)),
        None if is_pipe => gain_of(ExperimentKind::Capacity, None),
        None => None,
    };
    let without = experiments.iter().filter(|one| one.kind == ExperimentKind::Without && one.failed.is_none());
    let largest = without.filter_map(|one| one.gain).fold(0.0, f64::max);
    Prediction {
        text: verdict.text.clone(),
        cause: verdict.cause.clone(),
        stage,
        predicted: verdict.gain.map(of_range),
        measured,
        confirmed: measured.map(|gain| gain >= MIN_CONFIRMED && gain >= NEAR_THE_LARGEST * largest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::blank;
    use pipemark_causes::PipelineVerdict;

    fn without(stage: usize, gain: f64) -> TuneExperiment {
        let experiment = blank(ExperimentKind::Without, "", String::new());
        TuneExperiment { stage: Some(stage), gain: Some(gain), ..experiment }
    }

    fn confirmed(named: usize, gains: &[f64]) -> Option<bool> {
        let verdict = PipelineVerdict { kind: VerdictKind::Stage, stage: Some(named), ..PipelineVerdict::default() };
        let report = PipelineReport { verdict, ..PipelineReport::of(&PipelineEvidence::default()) };
        let experiments: Vec<TuneExperiment> = gains.iter().zip(1..).map(|(gain, at)| without(at, *gain)).collect();
        judged(&report, &experiments.iter().collect::<Vec<_>>()).confirmed
    }

    #[test]
    fn a_verdict_is_confirmed_if_its_stage_costs_most() {
        assert_eq!(confirmed(1, &[2.0, 1.1]), Some(true));
        assert_eq!(confirmed(1, &[1.95, 2.0]), Some(true), "about equal");
        assert_eq!(confirmed(2, &[2.0, 1.1]), Some(false));
        assert_eq!(confirmed(1, &[1.01, 1.0]), Some(false), "no stage alone costs time");
        assert_eq!(confirmed(3, &[1.5, 1.0]), None, "not measured");
    }

    #[test]
    fn a_small_pipe_is_not_confirmed_if_a_stage_costs_more() {
        let verdict = PipelineVerdict { kind: VerdictKind::Pipe, ..PipelineVerdict::default() };
        let report = PipelineReport { verdict, ..PipelineReport::of(&PipelineEvidence::default()) };
        let capacity = blank(ExperimentKind::Capacity, "", String::new());
        let capacity = TuneExperiment { gain: Some(1.25), ..capacity };
        let judged = |gain: f64| judged(&report, &[&capacity, &without(4, gain)]).confirmed;
        assert_eq!((judged(2.02), judged(1.3)), (Some(false), Some(true)));
    }
}
