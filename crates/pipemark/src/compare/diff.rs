//! The comparison as a whole: what `pipemark compare --json` writes and what the tables show.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::circumstances::{differences, granted};
use super::figures::{Figures, figures, unmeasured};
use super::matching::{is_reference, matches};
use super::{Party, Refusal};
use crate::model::{Better, Job, Key, Mode, Record, names};
use crate::stats::compare::{Comparison, Pairing, compare, geometric_means};
use crate::stats::estimate::median;
use crate::stats::verdict::{Criterion, Verdict};

/// The version of the form of [`Diff`]; bumped when a field changes its meaning.
pub const COMPARISON_SCHEMA: &str = "pipemark-compare/1";

/// The fewest rounds that are compared as rounds; see [`crate::stats::compare`].
const FEWEST_ROUNDS: usize = 6;

/// NEW against BASE, trial by trial and experiment by experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diff {
    /// Always [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// Where the figures of BASE are from.
    pub base: Origin,
    /// Where the figures of NEW are from.
    pub new: Origin,
    /// What else differs between the two, and what disturbed one of them.
    pub warnings: Vec<String>,
    /// Better or worse is a change whose whole interval is past this, a fraction.
    pub threshold: f64,
    /// The same is what is neither, with the whole interval within this, a fraction.
    pub same_within: f64,
    /// The experiments, in the order of BASE; one that has trials of throughput and of latency is two.
    pub groups: Vec<Group>,
    /// Trials of one side only, and those that were not measured on both.
    pub missing: Vec<Missing>,
}

/// Where figures are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Origin {
    /// The file.
    pub file: String,
    /// The parameters that its trials were chosen by, as KEY=VALUE.
    pub chosen: Vec<String>,
    /// What it was called by --label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The suite or verb that measured.
    pub suite: String,
    /// When, RFC 3339.
    pub started: String,
    /// The version of pipemark that measured.
    pub version: String,
    /// The kernel.
    pub kernel: String,
}

/// The trials of an experiment that were measured on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Group {
    /// The experiment's name.
    pub experiment: String,
    /// Its heading.
    pub title: String,
    /// What was measured: bytes per second for throughput, the median round trip in nanoseconds for latency.
    pub mode: Mode,
    /// Which way is better.
    pub better: Better,
    /// Each trial.
    pub changes: Vec<Change>,
    /// The geometric mean of all of them; absent for fewer than two, and where they share no rounds.
    pub mean: Option<Comparison>,
}

/// One trial of NEW against its counterpart of BASE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// The trial in words, without what all of the experiment share and without what was chosen.
    pub name: String,
    /// Id of the trial of BASE.
    pub base_id: String,
    /// Id of the trial of NEW: another one only where parameters were chosen.
    pub new_id: String,
    /// Median of the runs of BASE.
    pub base: f64,
    /// Median of the runs of NEW.
    pub new: f64,
    /// Whether it is a copy within one process: what the machine can do, and no verdict on pipes.
    pub reference: bool,
    /// One run of BASE and one of NEW whose ratio is the change; given where that of the medians is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<(f64, f64)>,
    /// The change.
    pub comparison: Comparison,
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// What is held against.
    Base,
    /// What is judged.
    New,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Base => "BASE",
            Side::New => "NEW",
        })
    }
}

/// A trial that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Missing {
    /// The side that it is missing on.
    pub side: Side,
    /// Its experiment.
    pub experiment: String,
    /// Its id, on the side that it is known from.
    pub id: String,
    /// Why.
    pub reason: String,
}

impl Diff {
    /// Compares. One measurement with itself (parts of it chosen on each side) is compared round by round.
    ///
    /// # Errors
    /// A sentence, when the two are of different workloads or methods, have nothing in common, or hold figures that cannot be.
    pub fn of(base: Party, new: Party, criterion: &dyn Fn(Better) -> Criterion) -> Result<Diff, Refusal> {
        let (one, other) = (base.document.workload, new.document.workload);
        if one != other {
            return Err(Refusal(format!(
                "BASE ({}) measured version {one} of the workload and NEW ({}) version {other}, which is other work; \
                 measure both with one version of pipemark",
                base.name, new.name
            )));
        }
        if base.document.method != new.document.method {
            return Err(Refusal(format!(
                "BASE ({}) was measured by method {} and NEW ({}) by method {}, which times other things: there is no \
                 verdict across methods; measure both with one version of pipemark",
                base.name, base.document.method, new.name, new.document.method
            )));
        }
        let together = std::ptr::eq(base.document, new.document);
        let matched = matches(base, new)?;
        let chosen: Vec<Key> = base.settings.iter().chain(new.settings).map(|setting| setting.key()).collect();
        let mut warnings = if together { Vec::new() } else { differences(base, new) };
        if together && base.document.partial {
            warnings.push("the measurement was interrupted before all of its runs were made".to_owned());
        }
        let missing_on = |side, record: &Record, reason| Missing {
            side,
            experiment: record.experiment.clone(),
            id: record.job.id(),
            reason,
        };
        let alone = matched.alone.iter().map(|(side, record)| {
            let other = if *side == Side::Base { Side::New } else { Side::Base };
            missing_on(other, record, format!("only {side} has it"))
        });
        let mut missing: Vec<Missing> = alone.collect();
        let mut measured: Vec<((&str, Mode), Vec<Pair>)> = Vec::new();
        for (one, other) in matched.pairs {
            let gaps = [(Side::Base, one), (Side::New, other)].into_iter();
            let gaps: Vec<Missing> =
                gaps.filter_map(|(side, record)| Some(missing_on(side, record, unmeasured(record)?))).collect();
            if !gaps.is_empty() {
                missing.extend(gaps);
                continue;
            }
            warnings.extend(granted(one, other, &chosen).into_iter().map(|what| format!("{}: {what}", one.job.id())));
            let pair = Pair {
                base: one,
                new: other,
                base_figures: figures(one, &format!("BASE ({}), trial '{}'", base.name, one.job.id()))?,
                new_figures: figures(other, &format!("NEW ({}), trial '{}'", new.name, other.job.id()))?,
            };
            let group = (one.experiment.as_str(), one.job.mode());
            match measured.iter_mut().find(|(known, _)| *known == group) {
                Some((_, pairs)) => pairs.push(pair),
                None => measured.push((group, vec![pair])),
            }
        }
        let group = |((name, mode), pairs): ((&str, Mode), Vec<Pair>)| {
            let better = if mode == Mode::Throughput { Better::Higher } else { Better::Lower };
            let titled = base.document.experiments.iter().find(|own| own.name == name && !own.title.is_empty());
            Ok(Group {
                experiment: name.to_owned(),
                title: titled.map_or(name, |own| &own.title).to_owned(),
                mode,
                better,
                changes: changes(&pairs, &chosen, together, criterion(better))?,
                mean: mean(&pairs, together, criterion(better)),
            })
        };
        let usual = criterion(Better::Higher);
        Ok(Diff {
            schema: COMPARISON_SCHEMA.to_owned(),
            base: Origin::of(base),
            new: Origin::of(new),
            warnings,
            threshold: usual.threshold,
            same_within: usual.same_within,
            groups: measured.into_iter().map(group).collect::<Result<_, Refusal>>()?,
            missing,
        })
    }

    /// All trials that have a verdict which counts.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let changes = self.groups.iter().flat_map(|group| &group.changes);
        changes.filter(|change| !change.reference).map(|change| change.comparison.verdict)
    }

    /// How many trials have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts().filter(|other| *other == verdict).count()
    }
}

impl Origin {
    fn of(party: Party) -> Origin {
        let document = party.document;
        Origin {
            file: party.name.to_owned(),
            chosen: party.settings.iter().map(|setting| format!("{}={}", setting.key(), setting)).collect(),
            label: document.label.clone(),
            suite: document.suite.clone(),
            started: document.started.clone(),
            version: document.version.clone(),
            kernel: document.host.kernel.clone(),
        }
    }
}

/// Two trials with their figures.
struct Pair<'a> {
    base: &'a Record,
    new: &'a Record,
    base_figures: Figures,
    new_figures: Figures,
}

/// The runs of the rounds that all have, one list for each.
fn in_common(all: &[&Figures]) -> Vec<Vec<f64>> {
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    let rounds: Vec<&u32> = first.keys().filter(|round| others.iter().all(|other| other.contains_key(round))).collect();
    all.iter().map(|figures| rounds.iter().map(|round| figures[round]).collect()).collect()
}

fn changes(pairs: &[Pair], chosen: &[Key], together: bool, criterion: Criterion) -> Result<Vec<Change>, Refusal> {
    let jobs: Vec<&Job> = pairs.iter().map(|pair| &pair.base.job).collect();
    let names = names(&jobs, chosen);
    let change = |(pair, name): (&Pair, String)| {
        let all = |figures: &Figures| figures.values().copied().collect::<Vec<f64>>();
        let (base, new) = (all(&pair.base_figures), all(&pair.new_figures));
        let rounds = in_common(&[&pair.base_figures, &pair.new_figures]);
        let by_round = together && rounds[0].len() >= FEWEST_ROUNDS;
        let comparison = match by_round {
            true => compare(&rounds[0], &rounds[1], Pairing::Rounds, criterion),
            false => compare(&base, &new, Pairing::None, criterion),
        };
        let comparison = comparison.map_err(|error| Refusal(format!("trial '{}': {error}", pair.base.job.id())))?;
        let medians = [&base, &new].map(|runs| median(runs).expect("compared, so there are runs"));
        let runs: Vec<(f64, f64)> = match by_round {
            true => rounds[0].iter().copied().zip(rounds[1].iter().copied()).collect(),
            false => base.iter().flat_map(|base| new.iter().map(move |new| (*base, *new))).collect(),
        };
        Ok(Change {
            name,
            base_id: pair.base.job.id(),
            new_id: pair.new.job.id(),
            base: medians[0],
            new: medians[1],
            reference: is_reference(pair.base) && is_reference(pair.new),
            typical: typical(medians, &runs, comparison.change),
            comparison,
        })
    };
    pairs.iter().zip(names).map(change).collect()
}

/// The pair of runs whose ratio is nearest to the change, and of equals the one nearest to the medians; `None` where the
/// medians say the same.
fn typical(medians: [f64; 2], runs: &[(f64, f64)], change: f64) -> Option<(f64, f64)> {
    let off = |base: f64, new: f64| ((new / base).ln() - change.ln_1p()).abs();
    let rounded = |off: f64| (off * 400.0).round() as u64;
    let far = |(base, new): (f64, f64)| (base / medians[0]).ln().abs() + (new / medians[1]).ln().abs();
    if rounded(off(medians[0], medians[1])) == 0 {
        return None;
    }
    let order = |pair: &(f64, f64)| (rounded(off(pair.0, pair.1)), far(*pair));
    runs.iter().copied().min_by(|one, other| {
        let (one, other) = (order(one), order(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    })
}

/// The geometric mean of the trials in each round, BASE against NEW.
fn mean(pairs: &[Pair], together: bool, criterion: Criterion) -> Option<Comparison> {
    let pairs: Vec<&Pair> = pairs.iter().filter(|pair| !is_reference(pair.base) || !is_reference(pair.new)).collect();
    if pairs.len() < 2 {
        return None;
    }
    let base: Vec<&Figures> = pairs.iter().map(|pair| &pair.base_figures).collect();
    let new: Vec<&Figures> = pairs.iter().map(|pair| &pair.new_figures).collect();
    // In one measurement the rounds of both sides are the same ones.
    let both = in_common(&[base.as_slice(), new.as_slice()].concat());
    let (base, new, pairing) = if together && both[0].len() >= FEWEST_ROUNDS {
        (both[..pairs.len()].to_vec(), both[pairs.len()..].to_vec(), Pairing::Rounds)
    } else {
        (in_common(&base), in_common(&new), Pairing::None)
    };
    compare(&geometric_means(&base).ok()?, &geometric_means(&new).ok()?, pairing, criterion).ok()
}
