//! What is known of guesses while they are tried.

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
