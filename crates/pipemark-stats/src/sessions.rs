//! Sessions against each other: one figure of each session, and how much sessions of one trial differ.
//!
//! A session has a state of its own (where memory lies, who else is on the host) that is in all of its runs, so runs can't
//! say how another session would differ. The model is the one of random effects in one way (Searle, Casella and McCulloch,
//! Variance Components, 1992, chapter 3) on the scale of logarithms: a figure is that of the trial, plus what its session
//! has as a whole, plus what its runs leave open. The variance of a session's figure is taken from sessions of one trial,
//! pooled within groups that should not differ, and is never less than what the runs alone leave open. Where several
//! trials are compared, each variance is moved towards a prior (Smyth, 2004: a moderated t), as a few sessions that
//! happen to agree say little. Sessions that follow each other can share a state of the host, so the mean of several
//! varies more than their number promises: by how much is estimated from the correlation of neighbours (Bartlett, 1946).
//! Student's t does the rest, with a quantile for all comparisons together (Bonferroni).

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::compare::{CompareError, Comparison, POWER, Pairing, check};
use crate::estimate::{self, CONFIDENCE};
use crate::verdict::{Criterion, Verdict};

/// A verdict needs a spread from this many sessions more than there are groups: of two equally likely states, fewer
/// have met only one in over 3 % of cases.
pub const FEWEST_FREEDOM: usize = 4;

/// How sure all verdicts of a family are together. More than the intervals that are shown: a verdict may fail a build.
pub(crate) const SURE: f64 = 0.98;

/// The prior variance of a document weighs as much as this number of sessions.
const PRIOR_WEIGHT: f64 = 4.0;

/// The correlation of neighbours is taken from series of at least this length, ...
const FEWEST_NEIGHBOURS: usize = 12;

/// ... and between sessions that are at most so far apart.
const FARTHEST_NEIGHBOUR: usize = 5;

/// The figure of a session, and the variance that its runs leave open; as logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Session {
    figure: f64,
    open: f64,
}

impl Session {
    /// Of one figure above zero per run; `None` of nothing, and where one is not above zero.
    pub fn of(runs: &[f64]) -> Option<Session> {
        check(runs, runs, Pairing::None).ok()?;
        let logs: Vec<f64> = runs.iter().map(|run| run.ln()).collect();
        let open = Spread::within([logs.as_slice()]).map_or(0.0, |spread| spread.variance / runs.len() as f64);
        Some(Session { figure: estimate::from_runs(runs)?.median.ln(), open })
    }

    /// Of all, where all have one.
    pub fn all<S: AsRef<[f64]>>(sessions: &[S]) -> Option<Vec<Session>> {
        sessions.iter().map(|runs| Session::of(runs.as_ref())).collect()
    }

    /// Above zero, as the runs had it.
    pub fn figure(&self) -> f64 {
        self.figure.exp()
    }
}

/// How much figures vary that should not, and from how many more of them than groups it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub variance: f64,
    pub freedom: usize,
}

impl Spread {
    /// Pooled within groups; `None` where no group has two.
    pub fn within<'a>(groups: impl IntoIterator<Item = &'a [f64]>) -> Option<Spread> {
        let (squares, freedom) = groups.into_iter().filter(|group| group.len() > 1).fold((0.0, 0), |sum, group| {
            let mean = mean(group);
            let squares: f64 = group.iter().map(|figure| (figure - mean).powi(2)).sum();
            (sum.0 + squares, sum.1 + group.len() - 1)
        });
        (freedom > 0).then(|| Spread { variance: squares / freedom as f64, freedom })
    }

    /// The prior variance where there are several: their mean.
    pub fn prior(spreads: &[Spread]) -> Option<f64> {
        let all: Vec<f64> = spreads.iter().map(|spread| spread.variance).collect();
        (all.len() > 1).then(|| mean(&all))
    }

    fn moderated(self, prior: Option<f64>) -> Spread {
        let freedom = self.freedom as f64;
        let towards = |prior: f64| (self.variance * freedom + prior * PRIOR_WEIGHT) / (freedom + PRIOR_WEIGHT);
        Spread { variance: prior.map_or(self.variance, towards), ..self }
    }
}

/// The sessions of the two sides, and of groups that say how much sessions of the trial differ.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    pub base: Vec<Session>,
    pub new: Vec<Session>,
    pub others: Vec<Vec<Session>>,
}

/// What comparisons that are made together have in common.
#[derive(Debug, Clone, Copy)]
pub struct Together {
    /// How many there are.
    pub comparisons: usize,
    /// The variance that is prior in them.
    pub prior: Option<f64>,
}

impl Together {
    /// One comparison by itself.
    pub const ALONE: Together = Together { comparisons: 1, prior: None };
}

impl Sessions {
    /// How much sessions differ; `None` where there are never two to compare.
    pub fn spread(&self) -> Option<Spread> {
        Spread::within(self.groups().iter().map(Vec::as_slice))
    }

    fn groups(&self) -> Vec<Vec<f64>> {
        self.others.iter().chain([&self.base, &self.new]).map(|group| figures(group)).collect()
    }

    /// NEW against BASE; `None` where nothing is known of how much sessions differ.
    pub fn compare(&self, together: Together, criterion: Criterion) -> Option<Comparison> {
        let spread = self.spread()?.moderated(together.prior);
        let [base, new] = [&self.base, &self.new].map(|side| figures(side));
        let groups = self.groups();
        let share: f64 =
            [&base, &new].map(|side| neighbours_share(&groups, side.len()) / side.len() as f64).iter().sum();
        let open = mean(&self.base.iter().chain(&self.new).map(|session| session.open).collect::<Vec<_>>());
        let error = (spread.variance.max(open) * share).sqrt();
        let comparison = judge(mean(&new) - mean(&base), error, spread.freedom, together.comparisons, criterion);
        Some(Comparison { base_sessions: base.len(), new_sessions: new.len(), ..comparison })
    }
}

/// How many times as much the mean of consecutive sessions varies as that of as many independent ones; never
/// less than once. The groups are in the order of time.
fn neighbours_share(groups: &[Vec<f64>], count: usize) -> f64 {
    let apart = 1..count.min(FARTHEST_NEIGHBOUR + 1);
    let mut squares = 0.0;
    let mut products = vec![0.0; apart.len()];
    for group in groups.iter().filter(|group| group.len() >= FEWEST_NEIGHBOURS) {
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

/// NEW against BASE where both alternated in each session: of each session the ratios of its rounds.
///
/// # Errors
/// When there are fewer than two sessions, or one has no rounds or figures that have no ratio.
pub fn compare_in_turns(
    sessions: &[Vec<f64>],
    together: Together,
    criterion: Criterion,
) -> Result<Comparison, CompareError> {
    for ratios in sessions {
        check(ratios, ratios, Pairing::Rounds)?;
    }
    let known = Session::all(sessions).ok_or_else(CompareError::no_runs)?;
    let ratios = figures(&known);
    let spread = Spread::within([ratios.as_slice()]).ok_or_else(CompareError::no_runs)?.moderated(together.prior);
    let open = mean(&known.iter().map(|session| session.open).collect::<Vec<_>>());
    let error = (spread.variance.max(open) / ratios.len() as f64).sqrt();
    let comparison = judge(mean(&ratios), error, spread.freedom, together.comparisons, criterion);
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

/// A change with its standard error, as logarithms.
fn judge(change: f64, error: f64, freedom: usize, comparisons: usize, criterion: Criterion) -> Comparison {
    let ends = |quantile: f64| ((change - quantile * error).exp_m1(), (change + quantile * error).exp_m1());
    let (low, high) = ends(quantile(CONFIDENCE, freedom));
    let judged = ends(sure_quantile(freedom, comparisons));
    let known = freedom >= FEWEST_FREEDOM;
    let p = match error > 0.0 {
        true => 2.0 * student(freedom).cdf(-(change / error).abs()),
        false => f64::from(change == 0.0),
    };
    Comparison {
        change: change.exp_m1(),
        low: Some(low),
        high: Some(high),
        judged_low: known.then_some(judged.0),
        judged_high: known.then_some(judged.1),
        smallest_change: known.then(|| smallest_change(error, freedom, comparisons, criterion)),
        p,
        verdict: if known { criterion.verdict(Some(judged)) } else { Verdict::Inconclusive },
        base_runs: 0,
        new_runs: 0,
        base_sessions: 0,
        new_sessions: 0,
        pairing: Pairing::Sessions,
    }
}

/// The change that is seen in 9 of 10 cases.
pub fn smallest_change(error: f64, freedom: usize, comparisons: usize, criterion: Criterion) -> f64 {
    let seen = student(freedom).inverse_cdf(POWER);
    (criterion.threshold.ln_1p() + error * (sure_quantile(freedom, comparisons) + seen)).exp_m1()
}

/// The error rate of one of several comparisons, for all together to keep the level.
pub(super) fn level(comparisons: usize) -> f64 {
    (1.0 - SURE) / comparisons.max(1) as f64
}

fn sure_quantile(freedom: usize, comparisons: usize) -> f64 {
    quantile(1.0 - level(comparisons), freedom)
}

/// So far from 0 on either side lies the share `inside`.
fn quantile(inside: f64, freedom: usize) -> f64 {
    -student(freedom).inverse_cdf((1.0 - inside) / 2.0)
}

fn student(freedom: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom as f64).expect("there is freedom")
}

pub(super) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

fn figures(sessions: &[Session]) -> Vec<f64> {
    sessions.iter().map(|session| session.figure).collect()
}
