//! A suite's claims about its trials. A claim has a figure, the trials that the claim is about, and the trials that
//! those are compared with.

use std::collections::HashSet;
use std::ops::Range;

use pipemark_model::written::Refusal;
use pipemark_model::{Claim, Experiment, Figure, Settings, Trial, Value, did_you_mean};

/// A claim before its trials are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimDesign {
    /// The claim, still without its trials.
    pub claim: Claim,
    /// The settings that select the trials. Each entry is one selection.
    pub of: Vec<Vec<Value>>,
    /// The settings in which the compared trials differ; `None` without a comparison.
    pub to: Option<Vec<Value>>,
    /// The same for each entry of `of`, if the entries are compared with different trials.
    pub to_each: Vec<Vec<Value>>,
    /// The position of the claim in the suite's text in bytes, for errors.
    pub at: Range<usize>,
}

/// The value of `figure` if there is no difference: 0 per cent for a gain, 1 for a ratio. `None` for a figure that
/// isn't compared.
pub(crate) fn no_difference(figure: &str, compared: bool) -> Result<Option<f64>, String> {
    let known = || Figure::iter().map(Figure::column).chain(["gain", "ratio", "spread", "copies"]);
    match figure {
        "gain" => Ok(Some(0.0)),
        "ratio" => Ok(Some(1.0)),
        word if known().any(|known| known == word) => Ok(compared.then_some(1.0)),
        word => {
            let hint = did_you_mean(word, known());
            Err(format!("'{word}' is not a figure; use gain, ratio, spread, copies or a column of the CSV{hint}"))
        }
    }
}

/// Multiplies the difference between `figure` and `neutral` by `times`. The difference is relative to the smaller of
/// the two numbers, so half of a loss to 50 % is a loss to 67 %.
pub(crate) fn scaled(neutral: f64, figure: f64, times: f64) -> f64 {
    let ratio = if neutral == 0.0 { 1.0 + figure / 100.0 } else { figure };
    let scaled = if ratio >= 1.0 { 1.0 + (ratio - 1.0) * times } else { 1.0 / (1.0 + (1.0 / ratio - 1.0) * times) };
    if neutral == 0.0 { (scaled - 1.0) * 100.0 } else { scaled }
}

/// The claims, each with the experiments that answer it.
pub fn resolve(designs: &[ClaimDesign], experiments: &[Experiment], trials: &[Trial]) -> Result<Vec<Claim>, Refusal> {
    let mut ids = HashSet::new();
    let claim = |design: &ClaimDesign| -> Result<Claim, Refusal> {
        let refuse = |sentence: &str| {
            Err(Refusal::new(format!("claim '{}': {sentence}", design.claim.id), Some(design.at.clone())))
        };
        if !ids.insert(design.claim.id.clone()) {
            return refuse("this name is used twice; rename one");
        }
        if let Some(name) =
            design.claim.experiments.iter().find(|name| experiments.iter().all(|experiment| experiment.name != **name))
        {
            return refuse(&format!("there is no experiment '{name}'"));
        }
        let settings = |values: &Vec<Value>| Settings::of(values.iter().cloned());
        let mut claim = Claim {
            of: design.of.iter().map(settings).collect(),
            to: design.to.as_ref().map(settings),
            to_each: design.to_each.iter().map(settings).collect(),
            ..design.claim.clone()
        };
        if claim.open.is_some() || claim.shown_by.is_some() {
            return Ok(claim);
        }
        if claim.experiments.is_empty() {
            claim.experiments = experiments.iter().map(|experiment| experiment.name.clone()).collect();
        }
        let asked = |trial: &&Trial| claim.covers(&trial.experiment, &trial.job);
        let compared = |trial: &Trial| match claim.is_compared() {
            _ if no_difference(&claim.figure, claim.is_compared()) == Ok(None) => true,
            false => trial.baseline.is_some(),
            true => trials
                .iter()
                .any(|other| other.experiment == trial.experiment && claim.has_base(&trial.job, &other.job)),
        };
        for of in &claim.of {
            let one = Claim { of: vec![of.clone()], ..claim.clone() };
            if !trials.iter().any(|trial| one.covers(&trial.experiment, &trial.job)) {
                return refuse("an entry of 'of' matches no trial");
            }
        }
        match trials.iter().filter(asked).any(compared) {
            true => Ok(claim),
            false => refuse("none of the matching trials has a baseline to compare with"),
        }
    };
    designs.iter().map(claim).collect()
}
