//! Random runs from known distributions, for tests.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::changes::random_below;

/// Distributions of a run's figure, all with a typical value of 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Normal, with a standard deviation of 1.5 %.
    Quiet,
    /// Skewed: the inverse of times that have a minimum and a long tail.
    Skewed,
    /// Like `Quiet`, but one run in ten loses up to 30 %.
    Outliers,
    /// Two modes, 10 % apart and equally likely.
    TwoModes,
    /// One run in five is in a mode that is four times as fast.
    RareMode,
    /// Lognormal, with a standard deviation of 20 %.
    Loud,
    /// Rounded to whole numbers, so that there are many ties.
    Coarse,
}

pub const ALL: [Noise; 7] =
    [Noise::Quiet, Noise::Skewed, Noise::Outliers, Noise::TwoModes, Noise::RareMode, Noise::Loud, Noise::Coarse];

pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    pub fn figure(&mut self, noise: Noise) -> f64 {
        100.0
            * match noise {
                Noise::Quiet => (0.015 * self.normal()).exp(),
                Noise::Skewed => 1.0 / (1.0 + 0.03 * (0.8 * self.normal()).exp()),
                Noise::Outliers => {
                    let lost = if random_below(&mut self.0, 10) == 0 { 0.3 * self.uniform() } else { 0.0 };
                    (0.015 * self.normal()).exp() * (1.0 - lost)
                }
                Noise::TwoModes => (0.005 * self.normal()).exp() * [1.0, 1.1][random_below(&mut self.0, 2)],
                Noise::RareMode => {
                    (0.015 * self.normal()).exp() * if random_below(&mut self.0, 5) == 0 { 4.0 } else { 1.0 }
                }
                Noise::Loud => (0.2 * self.normal()).exp(),
                Noise::Coarse => (0.015 * self.normal()).exp().mul_add(100.0, 0.0).round() / 100.0,
            }
    }

    pub fn runs(&mut self, noise: Noise, runs: usize) -> Vec<f64> {
        (0..runs).map(|_| self.figure(noise)).collect()
    }

    /// Runs with 5 % noise, in which successive runs have this correlation.
    pub fn correlated_runs(&mut self, correlation: f64, runs: usize) -> Vec<f64> {
        let mut state = self.normal();
        let mut next = || {
            state = correlation * state + (1.0 - correlation * correlation).sqrt() * self.normal();
            100.0 * (0.05 * state).exp()
        };
        (0..runs).map(|_| next()).collect()
    }
}
