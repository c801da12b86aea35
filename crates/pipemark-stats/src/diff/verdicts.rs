//! The verdicts of a comparison. Trials are paired, sessions of the history are added, and all pairs are judged
//! together.

use std::collections::BTreeMap;

use pipemark_model::{Better, Document, Job, Key, Mode, Record, Status, names};

use crate::compare::Comparison;
use crate::diff::change::{COMPARISON_SCHEMA, Change, ChangeGroup, Diff, Missing, Origin, Side};
use crate::diff::circumstances::{differences, disturbance_reason, granted_differences};
use crate::diff::matching::matches;
use crate::diff::series::PairFigures;
use crate::diff::trial_figures::{FiguresByRound, figures, reason_unmeasured};
use crate::diff::{DiffRefusal, SideInput};
use crate::estimate::median;
use crate::family::Family;
use crate::sessions::{JointComparisons, Spread};
use crate::verdict::{Criterion, Verdict};

impl Diff {
    /// Compares NEW with BASE. If both are parts of one measurement, they are compared round by round. `history`
    /// contains other sessions, from which the variation between sessions is estimated. Its sessions of other machines,
    /// methods or workloads are ignored.
    ///
    /// # Errors
    /// If the sides have different workloads or methods, if they have no trial in common, or if a figure is impossible.
    pub fn of(
        base: SideInput,
        new: SideInput,
        history: &[Document],
        criterion: &dyn Fn(Better) -> Criterion,
    ) -> Result<Diff, DiffRefusal> {
        check_alike(base, new)?;
        let same_sessions = std::ptr::eq(base.documents, new.documents);
        let matched = matches(base, new)?;
        let chosen: Vec<Key> = base.settings.iter().chain(new.settings).map(|setting| setting.key()).collect();
        let mut warnings = if same_sessions { Vec::new() } else { differences(base, new) };
        if same_sessions && base.documents.iter().any(|document| document.partial) {
            warnings.push("the measurement was interrupted before all of its runs were done".to_owned());
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
        let groups = if same_sessions { Vec::new() } else { groups(base, new, history) };
        for (one, other) in matched.pairs {
            let gaps = [(Side::Base, one), (Side::New, other)].into_iter();
            let gaps: Vec<Missing> =
                gaps.filter_map(|(side, record)| Some(missing_on(side, record, reason_unmeasured(record)?))).collect();
            if !gaps.is_empty() {
                missing.extend(gaps);
                continue;
            }
            warnings.extend(
                granted_differences(one, other, &chosen).into_iter().map(|what| format!("{}: {what}", one.job.id())),
            );
            let side =
                |side: Side, side_input: SideInput, record: &Record| -> Result<Vec<FiguresByRound>, DiffRefusal> {
                    let of =
                        |record| figures(record, &format!("{side} ({}), trial '{}'", side_input.name, record.job.id()));
                    side_input.documents.iter().filter_map(|document| find(document, record)).map(of).collect()
                };
            let series = PairFigures {
                base: side(Side::Base, base, one)?,
                new: side(Side::New, new, other)?,
                others: groups.iter().map(|group| figures_in_history(group, one, other)).collect(),
                same_sessions,
            };
            let pair = Pair { base: one, new: other, series };
            let group = (one.experiment.as_str(), one.job.mode());
            match measured.iter_mut().find(|(known, _)| *known == group) {
                Some((_, pairs)) => pairs.push(pair),
                None => measured.push((group, vec![pair])),
            }
        }
        let adjustment = Adjustment::of(measured.iter().flat_map(|(_, pairs)| pairs), measured.len());
        let withheld = if same_sessions { None } else { disturbance_reason(base, new) };
        let group = |((name, mode), pairs): ((&str, Mode), Vec<Pair>)| {
            let (_, better) = mode.figure();
            let titled = base
                .first()
                .experiments
                .iter()
                .find(|experiment| experiment.name == name && !experiment.title.is_empty());
            let mut group = ChangeGroup {
                experiment: name.to_owned(),
                title: titled.map_or(name, |experiment| &experiment.title).to_owned(),
                mode,
                better,
                changes: changes(&pairs, &chosen, &adjustment, criterion(better))?,
                mean: mean(&pairs, &adjustment, criterion(better)),
            };
            if let Some(reason) = &withheld {
                for change in &mut group.changes {
                    (change.comparison.verdict, change.why) = (Verdict::Inconclusive, Some(reason.clone()));
                }
                group.mean.iter_mut().for_each(|mean| mean.verdict = Verdict::Inconclusive);
            }
            Ok(group)
        };
        let limits = criterion(Better::Higher);
        Ok(Diff {
            schema: COMPARISON_SCHEMA.to_owned(),
            base: Origin::of(base),
            new: Origin::of(new),
            warnings,
            known_sessions: groups.iter().map(Vec::len).sum(),
            threshold: limits.threshold,
            same_within: limits.same_within,
            groups: measured.into_iter().map(group).collect::<Result<_, DiffRefusal>>()?,
            missing,
        })
    }
}

/// Refuses measurements of different workloads or methods.
fn check_alike(base: SideInput, new: SideInput) -> Result<(), DiffRefusal> {
    for other in base.documents.iter().chain(new.documents) {
        let (one, name) = (base.first(), new.name);
        if one.workload != other.workload {
            return Err(DiffRefusal(format!(
                "BASE ({}) measured workload version {} and NEW ({name}) version {}; measure both with one version of pipemark",
                base.name, one.workload, other.workload
            )));
        }
        if one.method != other.method {
            return Err(DiffRefusal(format!(
                "BASE ({}) was measured by method {} and NEW ({name}) by method {}: no verdict across methods; measure both with one version of pipemark",
                base.name, one.method, other.method
            )));
        }
    }
    Ok(())
}

/// A trial of BASE and its counterpart in NEW, with their figures.
struct Pair<'a> {
    base: &'a Record,
    new: &'a Record,
    series: PairFigures,
}

impl Pair<'_> {
    /// Whether both trials are the memory copy, which is measured as a reference.
    fn is_reference(&self) -> bool {
        self.base.job.is_memory_copy() && self.new.job.is_memory_copy()
    }
}

/// The trial in `document` with the same experiment and parameters as `like`; `None` if it wasn't measured there.
fn find<'a>(document: &'a Document, like: &Record) -> Option<&'a Record> {
    let same = |record: &&Record| record.experiment == like.experiment && record.job == like.job;
    document.trials.iter().find(same).filter(|record| reason_unmeasured(record).is_none())
}

/// Sessions of the history with the same machine, method and workload, grouped by kernel, version and label.
fn groups<'a>(base: SideInput, new: SideInput, history: &'a [Document]) -> Vec<Vec<&'a Document>> {
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

/// The figures of a trial in each session of `group`: of `one` or `other`, whichever the session measured. Damaged
/// sessions are ignored.
fn figures_in_history(group: &[&Document], one: &Record, other: &Record) -> Vec<FiguresByRound> {
    let record = |document: &&Document| {
        let record = document.trials.iter().find(|record| record.job == one.job || record.job == other.job)?;
        (record.status == Status::Ok && reason_unmeasured(record).is_none()).then(|| figures(record, "").ok()).flatten()
    };
    group.iter().filter_map(record).collect()
}

/// Adjusts the comparisons of a document for their number.
struct Adjustment {
    family: Family,
    joint: JointComparisons,
}

impl Adjustment {
    fn of<'a>(pairs: impl Iterator<Item = &'a Pair<'a>>, groups: usize) -> Adjustment {
        let pairs: Vec<&Pair> = pairs.filter(|pair| !pair.is_reference()).collect();
        let spreads: Vec<Spread> = pairs.iter().filter_map(|pair| pair.series.spread()).collect();
        let ratios: Vec<Vec<f64>> = pairs.iter().flat_map(|pair| pair.series.ratios()).collect();
        // The mean of a group counts as a comparison.
        let comparisons = pairs.len() + if pairs.len() > groups { groups } else { 0 };
        Adjustment {
            family: Family::of_ratios(&ratios),
            joint: JointComparisons { comparisons, prior: Spread::prior(&spreads) },
        }
    }
}

fn changes(
    pairs: &[Pair],
    chosen: &[Key],
    adjustment: &Adjustment,
    criterion: Criterion,
) -> Result<Vec<Change>, DiffRefusal> {
    let jobs: Vec<&Job> = pairs.iter().map(|pair| &pair.base.job).collect();
    let names = names(&jobs, chosen);
    let change = |(pair, name): (&Pair, String)| {
        let (base, new) = (PairFigures::runs(&pair.series.base), PairFigures::runs(&pair.series.new));
        let compared = pair.series.compare(&adjustment.family, adjustment.joint, criterion);
        let (comparison, why) =
            compared.map_err(|error| DiffRefusal(format!("trial '{}': {error}", pair.base.job.id())))?;
        let medians = [&base, &new].map(|runs| median(runs).expect("the comparison succeeded, so there are runs"));
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
            typical: typical_pair(medians, &runs, comparison.change),
            comparison,
            why,
        })
    };
    pairs.iter().zip(names).map(change).collect()
}

/// The pair of runs whose ratio is nearest to the change. Among equally near pairs, the pair nearest to the medians.
/// `None` if the ratio of the medians agrees with the change.
fn typical_pair(medians: [f64; 2], runs: &[(f64, f64)], change: f64) -> Option<(f64, f64)> {
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

/// Compares the geometric means of the trials.
fn mean(pairs: &[Pair], adjustment: &Adjustment, criterion: Criterion) -> Option<Comparison> {
    let series: Vec<&PairFigures> = pairs.iter().filter(|pair| !pair.is_reference()).map(|pair| &pair.series).collect();
    if series.len() < 2 {
        return None;
    }
    // The prior is estimated from single trials and doesn't hold for their mean.
    let joint = JointComparisons { prior: None, ..adjustment.joint };
    Some(PairFigures::mean(&series)?.compare(&adjustment.family, joint, criterion).ok()?.0)
}
