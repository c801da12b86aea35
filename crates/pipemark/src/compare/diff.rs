//! The comparison as a whole: what `pipemark compare --json` writes and what the tables show.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::circumstances::{differences, disturbed, granted};
use super::figures::{Figures, figures, unmeasured};
use super::matching::{is_reference, matches};
use super::series::Series;
use super::{Party, Refusal};
use crate::model::{Better, Document, Job, Key, Mode, Record, Status, names};
use crate::stats::compare::Comparison;
use crate::stats::estimate::median;
use crate::stats::family::Family;
use crate::stats::sessions::{Spread, Together};
use crate::stats::verdict::{Criterion, Verdict};

/// The version of the form of [`Diff`]; bumped when a field changes its meaning.
pub const COMPARISON_SCHEMA: &str = "pipemark-compare/1";

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
    /// How many sessions of the history were asked how much sessions differ, besides those that are compared.
    #[serde(default)]
    pub known_sessions: usize,
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
    /// When, RFC 3339; of several sessions the first.
    pub started: String,
    /// How many sessions.
    #[serde(default)]
    pub sessions: usize,
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
    /// Where it can't be told: why, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
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
    /// Compares. One measurement with itself (parts of it chosen on each side) is compared round by round. `history` are
    /// other sessions, which say how much sessions of a trial differ; those that measured otherwise are left out.
    ///
    /// # Errors
    /// A sentence, when the two are of different workloads or methods, have nothing in common, or hold figures that cannot be.
    pub fn of(
        base: Party,
        new: Party,
        history: &[Document],
        criterion: &dyn Fn(Better) -> Criterion,
    ) -> Result<Diff, Refusal> {
        alike(base, new)?;
        let together = std::ptr::eq(base.documents, new.documents);
        let matched = matches(base, new)?;
        let chosen: Vec<Key> = base.settings.iter().chain(new.settings).map(|setting| setting.key()).collect();
        let mut warnings = if together { Vec::new() } else { differences(base, new) };
        if together && base.documents.iter().any(|document| document.partial) {
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
        let groups = if together { Vec::new() } else { groups(base, new, history) };
        for (one, other) in matched.pairs {
            let gaps = [(Side::Base, one), (Side::New, other)].into_iter();
            let gaps: Vec<Missing> =
                gaps.filter_map(|(side, record)| Some(missing_on(side, record, unmeasured(record)?))).collect();
            if !gaps.is_empty() {
                missing.extend(gaps);
                continue;
            }
            warnings.extend(granted(one, other, &chosen).into_iter().map(|what| format!("{}: {what}", one.job.id())));
            let side = |side: Side, party: Party, record: &Record| -> Result<Vec<Figures>, Refusal> {
                let of = |record| figures(record, &format!("{side} ({}), trial '{}'", party.name, record.job.id()));
                party.documents.iter().filter_map(|document| find(document, record)).map(of).collect()
            };
            let series = Series {
                base: side(Side::Base, base, one)?,
                new: side(Side::New, new, other)?,
                others: groups.iter().map(|group| of_history(group, one, other)).collect(),
                together,
            };
            let pair = Pair { base: one, new: other, series };
            let group = (one.experiment.as_str(), one.job.mode());
            match measured.iter_mut().find(|(known, _)| *known == group) {
                Some((_, pairs)) => pairs.push(pair),
                None => measured.push((group, vec![pair])),
            }
        }
        let judged = Judged::of(measured.iter().flat_map(|(_, pairs)| pairs), measured.len());
        let withheld = if together { None } else { disturbed(base, new) };
        let group = |((name, mode), pairs): ((&str, Mode), Vec<Pair>)| {
            let (_, better) = mode.figure();
            let titled = base.first().experiments.iter().find(|own| own.name == name && !own.title.is_empty());
            let mut group = Group {
                experiment: name.to_owned(),
                title: titled.map_or(name, |own| &own.title).to_owned(),
                mode,
                better,
                changes: changes(&pairs, &chosen, &judged, criterion(better))?,
                mean: mean(&pairs, &judged, criterion(better)),
            };
            if let Some(reason) = &withheld {
                for change in &mut group.changes {
                    (change.comparison.verdict, change.why) = (Verdict::CantTell, Some(reason.clone()));
                }
                group.mean.iter_mut().for_each(|mean| mean.verdict = Verdict::CantTell);
            }
            Ok(group)
        };
        let usual = criterion(Better::Higher);
        Ok(Diff {
            schema: COMPARISON_SCHEMA.to_owned(),
            base: Origin::of(base),
            new: Origin::of(new),
            warnings,
            known_sessions: groups.iter().map(Vec::len).sum(),
            threshold: usual.threshold,
            same_within: usual.same_within,
            groups: measured.into_iter().map(group).collect::<Result<_, Refusal>>()?,
            missing,
        })
    }

    /// All trials that have a verdict which counts.
    pub fn counted(&self) -> impl Iterator<Item = &Change> {
        self.groups.iter().flat_map(|group| &group.changes).filter(|change| !change.reference)
    }

    /// Their verdicts.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.counted().map(|change| change.comparison.verdict)
    }

    /// How many trials have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts().filter(|other| *other == verdict).count()
    }
}

impl Origin {
    fn of(party: Party) -> Origin {
        let document = party.first();
        Origin {
            file: party.name.to_owned(),
            chosen: party.settings.iter().map(|setting| format!("{}={}", setting.key(), setting)).collect(),
            label: document.label.clone(),
            suite: document.suite.clone(),
            started: document.started.clone(),
            sessions: party.documents.len(),
            version: document.version.clone(),
            kernel: document.host.kernel.clone(),
        }
    }
}

/// Whether the two were measured alike.
fn alike(base: Party, new: Party) -> Result<(), Refusal> {
    for other in base.documents.iter().chain(new.documents) {
        let (one, name) = (base.first(), new.name);
        if one.workload != other.workload {
            return Err(Refusal(format!(
                "BASE ({}) measured version {} of the workload and NEW ({name}) version {}, which is other work; \
                 measure both with one version of pipemark",
                base.name, one.workload, other.workload
            )));
        }
        if one.method != other.method {
            return Err(Refusal(format!(
                "BASE ({}) was measured by method {} and NEW ({name}) by method {}, which times other things: there is no \
                 verdict across methods; measure both with one version of pipemark",
                base.name, one.method, other.method
            )));
        }
    }
    Ok(())
}

/// Two trials with their figures.
struct Pair<'a> {
    base: &'a Record,
    new: &'a Record,
    series: Series,
}

impl Pair<'_> {
    fn is_reference(&self) -> bool {
        is_reference(self.base) && is_reference(self.new)
    }
}

/// The trial like this one, if it was measured there.
fn find<'a>(document: &'a Document, like: &Record) -> Option<&'a Record> {
    let same = |record: &&Record| record.experiment == like.experiment && record.job == like.job;
    document.trials.iter().find(same).filter(|record| unmeasured(record).is_none())
}

/// Sessions of the history of the same machine, method and work, in groups of one kernel, version and label.
fn groups<'a>(base: Party, new: Party, history: &'a [Document]) -> Vec<Vec<&'a Document>> {
    let sides = || base.documents.iter().chain(new.documents);
    let machine = |document: &Document| (document.host.name.clone(), document.host.cpu.clone());
    let counts = |other: &&Document| {
        let alike = |one: &Document| {
            machine(one) == machine(other) && (one.workload, one.method) == (other.workload, other.method)
        };
        sides().any(alike) && !sides().any(|one| one.started == other.started)
    };
    let mut groups: BTreeMap<_, Vec<&Document>> = BTreeMap::new();
    for document in history.iter().filter(counts) {
        let key = (machine(document), &document.host.kernel, &document.version, &document.label);
        groups.entry(key).or_default().push(document);
    }
    groups.into_values().collect()
}

/// The figures of either trial in sessions of the history; damaged ones are left out.
fn of_history(group: &[&Document], one: &Record, other: &Record) -> Vec<Figures> {
    let record = |document: &&Document| {
        let own = document.trials.iter().find(|record| record.job == one.job || record.job == other.job)?;
        (own.status == Status::Ok && unmeasured(own).is_none()).then(|| figures(own, "").ok()).flatten()
    };
    group.iter().filter_map(record).collect()
}

/// What all comparisons of a document have in common.
struct Judged {
    family: Family,
    together: Together,
}

impl Judged {
    fn of<'a>(pairs: impl Iterator<Item = &'a Pair<'a>>, groups: usize) -> Judged {
        let pairs: Vec<&Pair> = pairs.filter(|pair| !pair.is_reference()).collect();
        let spreads: Vec<Spread> = pairs.iter().filter_map(|pair| pair.series.spread()).collect();
        let ratios: Vec<Vec<f64>> = pairs.iter().flat_map(|pair| pair.series.ratios()).collect();
        // A mean is one comparison more.
        let comparisons = pairs.len() + if pairs.len() > groups { groups } else { 0 };
        Judged {
            family: Family::of_ratios(&ratios),
            together: Together { comparisons, usual: Spread::usual(&spreads) },
        }
    }
}

fn changes(pairs: &[Pair], chosen: &[Key], judged: &Judged, criterion: Criterion) -> Result<Vec<Change>, Refusal> {
    let jobs: Vec<&Job> = pairs.iter().map(|pair| &pair.base.job).collect();
    let names = names(&jobs, chosen);
    let change = |(pair, name): (&Pair, String)| {
        let (base, new) = (Series::runs(&pair.series.base), Series::runs(&pair.series.new));
        let compared = pair.series.compare(&judged.family, judged.together, criterion);
        let (comparison, why) =
            compared.map_err(|error| Refusal(format!("trial '{}': {error}", pair.base.job.id())))?;
        let medians = [&base, &new].map(|runs| median(runs).expect("compared, so there are runs"));
        let rounds = pair.series.rounds();
        let runs: Vec<(f64, f64)> = match rounds.is_empty() {
            false => rounds.into_iter().flat_map(|(base, new)| base.into_iter().zip(new)).collect(),
            true => base.iter().flat_map(|base| new.iter().map(move |new| (*base, *new))).collect(),
        };
        Ok(Change {
            name,
            base_id: pair.base.job.id(),
            new_id: pair.new.job.id(),
            base: medians[0],
            new: medians[1],
            reference: pair.is_reference(),
            typical: typical(medians, &runs, comparison.change),
            comparison,
            why,
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
fn mean(pairs: &[Pair], judged: &Judged, criterion: Criterion) -> Option<Comparison> {
    let series: Vec<&Series> = pairs.iter().filter(|pair| !pair.is_reference()).map(|pair| &pair.series).collect();
    if series.len() < 2 {
        return None;
    }
    // What is usual in single trials is not in their mean.
    let together = Together { usual: None, ..judged.together };
    Some(Series::mean(&series)?.compare(&judged.family, together, criterion).ok()?.0)
}
