//! Compares sessions by one figure each, and estimates the variance between sessions of one trial.
//!
//! All runs of a session share its state (memory layout, neighbours on the host), so runs can't show how another
//! session would differ. The model has one-way random effects (Searle, Casella and McCulloch, Variance Components,
//! 1992, chapter 3) on the logarithmic scale: a session's figure is the trial's true figure, plus an effect of the
//! session, plus the noise of its runs. The variance of a session's figure is estimated from sessions of one trial,
//! pooled within groups whose sessions should not differ. It is at least the variance due to the runs. If several
//! trials are compared, each variance is moved towards a prior (Smyth, 2004: moderated t), because a few sessions may
//! agree by chance.
//!
//! Consecutive sessions can share a state of the host, so their mean varies more than the mean of independent sessions.
//! The factor is estimated from the correlation of neighbouring sessions (Bartlett, 1946). The test is Student's t,
//! with a quantile for all comparisons together (Bonferroni).

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::compare::{CompareError, Comparison, POWER, Pairing, check};
use crate::estimate::{self, CONFIDENCE};
use crate::verdict::{Criterion, Verdict};

/// The minimum number of degrees of freedom (sessions minus groups) for a verdict, six sessions in two groups. If a
/// machine has two states that are equally likely, chance alone puts one group into one state and the other group into
/// the other in 3 % of cases; with five sessions, in 6 %.
pub const MIN_DEGREES_OF_FREEDOM: usize = 4;

/// The confidence of all verdicts of a family together. It is higher than the confidence of displayed intervals,
/// because a verdict may fail a build.
pub(crate) const JOINT_CONFIDENCE: f64 = 0.98;

/// The weight of the prior variance, as a number of sessions.
const PRIOR_WEIGHT: f64 = 4.0;

/// The minimum number of sessions in a series for estimating the correlation of neighbouring sessions.
const MIN_NEIGHBOURS: usize = 12;

/// The largest distance between sessions that count as neighbours.
const FARTHEST_NEIGHBOUR: usize = 5;

/// The figure of a session and the figure's variance due to the runs, both on the logarithmic scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Session {
    figure: f64,
    run_variance: f64,
}

impl Session {
    /// Creates a session from one figure per run; `None` without runs or if a figure isn't above zero.
    pub fn of(runs: &[f64]) -> Option<Session> {
        check(runs, runs, Pairing::None).ok()?;
        let logs: Vec<f64> = runs.iter().map(|run| run.ln()).collect();
        let run_variance = Spread::within([logs.as_slice()]).map_or(0.0, |spread| spread.variance / runs.len() as f64);
        Some(Session { figure: estimate::from_runs(runs)?.median.ln(), run_variance })
    }

    /// Creates a session for each list of runs; `None` if [`Session::of`] returns `None` for any list.
    pub fn all<S: AsRef<[f64]>>(sessions: &[S]) -> Option<Vec<Session>> {
        sessions.iter().map(|runs| Session::of(runs.as_ref())).collect()
    }

    /// The figure in the unit of the runs.
    pub fn figure(&self) -> f64 {
        self.figure.exp()
    }
}

/// The variance of figures that should be equal, and its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub variance: f64,
    pub df: usize,
}

impl Spread {
    /// The variance pooled within groups; `None` if no group has two figures.
    pub fn within<'a>(groups: impl IntoIterator<Item = &'a [f64]>) -> Option<Spread> {
        let (squares, df) = groups.into_iter().filter(|group| group.len() > 1).fold((0.0, 0), |sum, group| {
            let mean = mean(group);
            let squares: f64 = group.iter().map(|figure| (figure - mean).powi(2)).sum();
            (sum.0 + squares, sum.1 + group.len() - 1)
        });
        (df > 0).then(|| Spread { variance: squares / df as f64, df })
    }

    /// The prior variance, which is the mean of several variances; `None` with fewer than two.
    pub(crate) fn prior(spreads: &[Spread]) -> Option<f64> {
        let all: Vec<f64> = spreads.iter().map(|spread| spread.variance).collect();
        (all.len() > 1).then(|| mean(&all))
    }

    fn moderated(self, prior: Option<f64>) -> Spread {
        let df = self.df as f64;
        let towards = |prior: f64| (self.variance * df + prior * PRIOR_WEIGHT) / (df + PRIOR_WEIGHT);
        Spread { variance: prior.map_or(self.variance, towards), ..self }
    }
}

/// The sessions of both sides, and groups of other sessions from which the variance between sessions is estimated.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    pub base: Vec<Session>,
    pub new: Vec<Session>,
    pub others: Vec<Vec<Session>>,
}

/// Properties shared by all comparisons that are made together.
#[derive(Debug, Clone, Copy)]
pub struct JointComparisons {
    /// The number of comparisons.
    pub comparisons: usize,
    /// The prior variance; `None` if there are too few comparisons to estimate it.
    pub prior: Option<f64>,
}

impl JointComparisons {
    /// A single comparison.
    pub const SINGLE: JointComparisons = JointComparisons { comparisons: 1, prior: None };
}

impl Sessions {
    /// The variance between sessions; `None` if no group has two sessions.
    pub fn spread(&self) -> Option<Spread> {
        Spread::within(self.groups().iter().map(Vec::as_slice))
    }

    fn groups(&self) -> Vec<Vec<f64>> {
        self.others.iter().chain([&self.base, &self.new]).map(|group| figures(group)).collect()
    }

    /// Compares NEW with BASE; `None` if the variance between sessions is unknown.
    pub fn compare(&self, joint: JointComparisons, criterion: Criterion) -> Option<Comparison> {
        let spread = self.spread()?.moderated(joint.prior);
        let [base, new] = [&self.base, &self.new].map(|side| figures(side));
        let groups = self.groups();
        let share: f64 =
            [&base, &new].map(|side| variance_inflation(&groups, side.len()) / side.len() as f64).iter().sum();
        let run_variance =
            mean(&self.base.iter().chain(&self.new).map(|session| session.run_variance).collect::<Vec<_>>());
        let error = (spread.variance.max(run_variance) * share).sqrt();
        let comparison = judge(mean(&new) - mean(&base), error, spread.df, joint.comparisons, criterion);
        Some(Comparison { base_sessions: base.len(), new_sessions: new.len(), ..comparison })
    }
}

/// The variance of the mean of consecutive sessions, relative to the variance of the mean of as many independent
/// sessions; at least 1. The groups are in chronological order.
fn variance_inflation(groups: &[Vec<f64>], count: usize) -> f64 {
    let apart = 1..count.min(FARTHEST_NEIGHBOUR + 1);
    let mut squares = 0.0;
    let mut products = vec![0.0; apart.len()];
    for group in groups.iter().filter(|group| group.len() >= MIN_NEIGHBOURS) {
        let mean = mean(group);
        squares += group.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>();
        for (product, apart) in products.iter_mut().zip(apart.clone()) {
            *product +=
                group.iter().zip(&group[apart..]).map(|(one, other)| (one - mean) * (other - mean)).sum::<f64>();
        }
    }
    if squares == 0.0 {
        return 1.0;
    }
    let shared =
        products.iter().zip(apart).map(|(product, apart)| (1.0 - apart as f64 / count as f64) * product / squares);
    (1.0 + 2.0 * shared.sum::<f64>()).max(1.0)
}

/// Compares NEW with BASE where both sides were measured alternately in each session. `sessions` has one list per
/// session, with the ratio of each round.
///
/// # Errors
/// If there are fewer than two sessions, or a session has no rounds or a ratio that isn't a number above zero.
pub fn compare_interleaved(
    sessions: &[Vec<f64>],
    joint: JointComparisons,
    criterion: Criterion,
) -> Result<Comparison, CompareError> {
    for ratios in sessions {
        check(ratios, ratios, Pairing::Rounds)?;
    }
    let known = Session::all(sessions).ok_or_else(CompareError::no_runs)?;
    let ratios = figures(&known);
    let spread = Spread::within([ratios.as_slice()]).ok_or_else(CompareError::no_runs)?.moderated(joint.prior);
    let run_variance = mean(&known.iter().map(|session| session.run_variance).collect::<Vec<_>>());
    let error = (spread.variance.max(run_variance) / ratios.len() as f64).sqrt();
    let comparison = judge(mean(&ratios), error, spread.df, joint.comparisons, criterion);
    let (runs, sessions) = (sessions.iter().map(Vec::len).sum(), sessions.len());
    Ok(Comparison {
        base_runs: runs,
        new_runs: runs,
        base_sessions: sessions,
        new_sessions: sessions,
        pairing: Pairing::Rounds,
        ..comparison
    })
}

/// Judges a change by its standard error, both as logarithms.
fn judge(change: f64, error: f64, df: usize, comparisons: usize, criterion: Criterion) -> Comparison {
    let ends = |quantile: f64| ((change - quantile * error).exp_m1(), (change + quantile * error).exp_m1());
    let (low, high) = ends(two_sided_quantile(CONFIDENCE, df));
    let judged = ends(joint_quantile(df, comparisons));
    let known = df >= MIN_DEGREES_OF_FREEDOM;
    let p = match error > 0.0 {
        true => 2.0 * students_t(df).cdf(-(change / error).abs()),
        false => f64::from(change == 0.0),
    };
    Comparison {
        change: change.exp_m1(),
        low: Some(low),
        high: Some(high),
        judged_low: known.then_some(judged.0),
        judged_high: known.then_some(judged.1),
        smallest_change: known.then(|| smallest_change(error, df, comparisons, criterion)),
        p,
        verdict: if known { criterion.verdict(Some(judged)) } else { Verdict::Inconclusive },
        base_runs: 0,
        new_runs: 0,
        base_sessions: 0,
        new_sessions: 0,
        pairing: Pairing::Sessions,
    }
}

/// The smallest change that is detected in 9 of 10 cases, as a fraction. `error` is the standard error of the
/// logarithm.
pub fn smallest_change(error: f64, df: usize, comparisons: usize, criterion: Criterion) -> f64 {
    let seen = students_t(df).inverse_cdf(POWER);
    (criterion.threshold.ln_1p() + error * (joint_quantile(df, comparisons) + seen)).exp_m1()
}

/// The error rate that each comparison may have so that all comparisons together keep the level.
pub(super) fn level(comparisons: usize) -> f64 {
    (1.0 - JOINT_CONFIDENCE) / comparisons.max(1) as f64
}

fn joint_quantile(df: usize, comparisons: usize) -> f64 {
    two_sided_quantile(1.0 - level(comparisons), df)
}

/// The distance from 0 within which the fraction `inside` of the distribution lies.
fn two_sided_quantile(inside: f64, df: usize) -> f64 {
    -students_t(df).inverse_cdf((1.0 - inside) / 2.0)
}

fn students_t(df: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, df as f64).expect("df is positive")
}

pub(super) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

fn figures(sessions: &[Session]) -> Vec<f64> {
    sessions.iter().map(|session| session.figure).collect()
}
