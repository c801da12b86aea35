//! What is known of guesses while they are tried.

use super::{MIN_ROUNDS, median};
use crate::guesses::Guess;
use crate::lab::Variant;
use crate::sandbox::Sandbox;

/// What the runs of guesses share.
pub struct GuessTrials {
    pub sandbox: Sandbox,
    /// The path by which stages that are pipemark find it in the sandbox.
    pub program: String,
    /// The pipeline as it is, in the sandbox.
    pub baseline: Variant,
    pub base_times: Vec<f64>,
    pub tried: usize,
    pub untried: usize,
    pub kept: Vec<KeptGuess>,
}

/// A guess that seemed to help.
pub struct KeptGuess {
    pub guess: Guess,
    pub variant: Variant,
    pub gain: f64,
    pub seconds: f64,
}

impl GuessTrials {
    /// The time of a confirming round of some guesses, in seconds.
    pub fn time_of_round(&self, kept: &[KeptGuess], overhead: f64) -> f64 {
        let guesses = kept.iter().map(|kept| kept.seconds + overhead);
        median(&self.base_times) + overhead + guesses.sum::<f64>()
    }

    /// The time that the fewest rounds of the best guess need, in seconds.
    pub fn time_to_confirm(&self, overhead: f64) -> f64 {
        let best = &self.kept[..self.kept.len().min(1)];
        if best.is_empty() { 0.0 } else { MIN_ROUNDS as f64 * self.time_of_round(best, overhead) }
    }
}
