//! The figures of a trial on both sides, by session, and their comparison.

use std::collections::BTreeMap;

use pipemark_model::{Estimate, counted};

use crate::compare::{Comparison, MAX_FACTOR_TO_DECIDE, Pairing, compare, geometric_means};
use crate::diff::trial_figures::FiguresByRound;
use crate::family::Family;
use crate::sessions::{JointComparisons, MIN_DEGREES_OF_FREEDOM, Session, Sessions, Spread, compare_interleaved};
use crate::verdict::{Criterion, Verdict};

/// The minimum number of rounds that are compared as pairs: see [`crate::compare`].
const MIN_ROUNDS: usize = 6;

/// The figures of both sides, by session.
#[derive(Debug, Default)]
pub(super) struct PairFigures {
    pub base: Vec<FiguresByRound>,
    pub new: Vec<FiguresByRound>,
    /// Sessions of the history, in groups. The sessions of one group should not differ.
    pub others: Vec<Vec<FiguresByRound>>,
    /// Whether both sides were measured in the same sessions.
    pub same_sessions: bool,
}

impl PairFigures {
    /// The geometric mean of the trials in each round; `None` if a trial wasn't measured in all sessions.
    pub fn mean(trials: &[&PairFigures]) -> Option<PairFigures> {
        let same_sessions = trials.first()?.same_sessions;
        let sides = |side: fn(&PairFigures) -> &Vec<FiguresByRound>| -> Option<Vec<FiguresByRound>> {
            let sessions = side(trials[0]).len();
            // The numbers of sessions differ if a trial wasn't measured in all of them.
            if trials.iter().any(|series| side(series).len() != sessions) {
                return None;
            }
            (0..sessions).map(|at| means(&trials.iter().map(|series| &side(series)[at]).collect::<Vec<_>>())).collect()
        };
        let mut mean = PairFigures {
            base: sides(|series| &series.base)?,
            new: sides(|series| &series.new)?,
            others: Vec::new(),
            same_sessions,
        };
        // The history is used only if every trial was measured in all of its sessions.
        if trials.iter().all(|series| series.others.iter().map(Vec::len).eq(trials[0].others.iter().map(Vec::len))) {
            let group = |at: usize| -> Option<Vec<FiguresByRound>> {
                let session = |n| means(&trials.iter().map(|series| &series.others[at][n]).collect::<Vec<_>>());
                (0..trials[0].others[at].len()).map(session).collect()
            };
            mean.others = (0..trials[0].others.len()).filter_map(group).collect();
        }
        Some(mean)
    }

    /// The figures of BASE and NEW in the rounds that both sides have, session by session. Empty if the sides were
    /// measured in different sessions.
    pub fn rounds(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        if !self.same_sessions {
            return Vec::new();
        }
        let both = self.base.iter().zip(&self.new).map(|(base, new)| {
            let mut both = common_rounds(&[base, new]).into_iter();
            (both.next().unwrap_or_default(), both.next().unwrap_or_default())
        });
        both.filter(|(base, _)| self.base.len() > 1 && !base.is_empty() || base.len() >= MIN_ROUNDS).collect()
    }

    /// The ratios of NEW to BASE in the rounds of [`PairFigures::rounds`], session by session.
    pub fn ratios(&self) -> Vec<Vec<f64>> {
        let ratios = |(base, new): (Vec<f64>, Vec<f64>)| base.iter().zip(new).map(|(base, new)| new / base).collect();
        self.rounds().into_iter().map(ratios).collect()
    }

    pub fn runs(side: &[FiguresByRound]) -> Vec<f64> {
        side.iter().flat_map(FiguresByRound::values).copied().collect()
    }

    fn sessions(&self) -> Sessions {
        let of = |side: &[FiguresByRound]| {
            side.iter().filter_map(|f| Session::of(&f.values().copied().collect::<Vec<_>>())).collect()
        };
        Sessions {
            base: of(&self.base),
            new: of(&self.new),
            others: self.others.iter().map(|group| of(group)).collect(),
        }
    }

    /// The message for too few sessions: how many there are, and how many would give a verdict.
    fn too_few(&self) -> String {
        match (self.base.len(), self.new.len()) {
            (1, 1) => "1 session each: no verdict; use ab, or --sessions 5".to_owned(),
            (base, new) => format!("{} against {new}: no verdict; use --sessions 5", counted(base, "session")),
        }
    }

    /// The variance between sessions; `None` if it is unknown.
    pub fn spread(&self) -> Option<Spread> {
        match self.ratios() {
            ratios if ratios.is_empty() => self.sessions().spread(),
            ratios => {
                let figures: Vec<f64> = Session::all(&ratios)?.iter().map(|session| session.figure().ln()).collect();
                Spread::within([figures.as_slice()])
            }
        }
    }

    /// Returns the comparison, adjusted for the number of comparisons, and the reason if there is no verdict. `family`
    /// adjusts comparisons within a single session, which are made by rounds.
    pub fn compare(
        &self,
        family: &Family,
        joint: JointComparisons,
        criterion: Criterion,
    ) -> Result<(Comparison, Option<String>), String> {
        let ratios = self.ratios();
        let (base, new) = (PairFigures::runs(&self.base), PairFigures::runs(&self.new));
        let by_session = match ratios.len() {
            0 => self.sessions().compare(joint, criterion),
            1 => None,
            _ => Some(compare_interleaved(&ratios, joint, criterion).map_err(|error| error.to_string())?),
        };
        if let Some(mut comparison) = by_session {
            if ratios.is_empty() {
                (comparison.base_runs, comparison.new_runs) = (base.len(), new.len());
            }
            let known = self.spread().map_or(0, |spread| spread.df);
            let why = (comparison.verdict == Verdict::Inconclusive).then(|| match known {
                0..MIN_DEGREES_OF_FREEDOM => self.too_few(),
                _ => too_noisy(&comparison, criterion, "--sessions", self.base.len().max(self.new.len())),
            });
            return Ok((comparison, why));
        }
        let compared = match self.rounds().pop() {
            Some((base, new)) => compare(&base, &new, Pairing::Rounds, criterion),
            None => compare(&base, &new, Pairing::None, criterion),
        };
        let comparison = compared.map_err(|error| error.to_string())?;
        // A session's state affects both sides equally only if both sides were measured in that session. Otherwise, the
        // variation between sessions is unknown.
        let ratio = if self.same_sessions { estimate(&comparison) } else { None };
        let surely = ratio.and_then(|ratio| family.interval(&ratio));
        let comparison = comparison.with_judged_interval(surely.map(|(low, high)| (low - 1.0, high - 1.0)), criterion);
        let why = match (comparison.verdict, comparison.pairing) {
            (Verdict::Inconclusive, _) if base.len().min(new.len()) < 4 => {
                "too few runs: no verdict; use --runs 10".to_owned()
            }
            (Verdict::Inconclusive, _) if self.same_sessions => {
                too_noisy(&comparison, criterion, "--runs", comparison.base_runs)
            }
            (Verdict::Inconclusive, _) => self.too_few(),
            _ => return Ok((comparison, None)),
        };
        Ok((comparison, Some(why)))
    }
}

/// The message for an inconclusive comparison: the smallest detectable change, and what would give a verdict.
fn too_noisy(comparison: &Comparison, criterion: Criterion, flag: &str, had: usize) -> String {
    if let Some(few) = comparison.too_few_runs(had).filter(|_| flag == "--runs") {
        return format!("inconclusive; {few}");
    }
    let advice = match comparison.factor_to_decide(criterion) {
        Some(times) if times > MAX_FACTOR_TO_DECIDE => "; too noisy to decide".to_owned(),
        Some(times) => format!("; use {flag} {}", (had as f64 * times).ceil()),
        None if comparison.judged().is_some() => {
            "; the change is too close to the threshold; use another --threshold".to_owned()
        }
        None => format!("; use more {flag}"),
    };
    let smallest = comparison.smallest_change_text().map_or_else(String::new, |text| format!("; {text}"));
    format!("inconclusive{smallest}{advice}")
}

fn estimate(comparison: &Comparison) -> Option<Estimate> {
    let (median, low, high) = (1.0 + comparison.change, 1.0 + comparison.low?, 1.0 + comparison.high?);
    let runs = u32::try_from(comparison.base_runs).ok()?;
    Some(Estimate { median, low: Some(low), high: Some(high), min: low, max: high, runs })
}

/// The figures of the rounds that all elements of `all` have in common, one list for each element.
fn common_rounds(all: &[&FiguresByRound]) -> Vec<Vec<f64>> {
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    let rounds: Vec<&u32> = first.keys().filter(|round| others.iter().all(|other| other.contains_key(round))).collect();
    all.iter().map(|figures| rounds.iter().map(|round| figures[round]).collect()).collect()
}

/// The geometric mean of each round that all elements of `all` have in common; `None` if there is no such round.
fn means(all: &[&FiguresByRound]) -> Option<FiguresByRound> {
    let means = geometric_means(&common_rounds(all)).ok()?;
    let rounds = all[0].keys().filter(|round| all.iter().all(|other| other.contains_key(round)));
    Some(BTreeMap::from_iter(rounds.copied().zip(means)))
}
