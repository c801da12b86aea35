//! `pipemark history trend`: trials over time, and their lasting changes. A series has the runs of one machine and one
//! method. Each run counts as a session.

use std::collections::BTreeMap;

use clap::Args;

use crate::cli::history::lists;
use pipemark_console::verdict::{criterion, threshold, verdict_code};
use pipemark_console::{ExitError, FormatOption, VerbResult, count, say};
use pipemark_model::{Better, Document, Sample, Settings, Value, neutral};
use pipemark_stats::changes::change_points;
use pipemark_stats::diff::disturbances;
use pipemark_stats::sessions::Session;
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::cli::history::lists::TrendPoint;
use crate::cli::history::{FilterOptions, open_if_any, open_required};
use crate::cli::output::DbOption;
use crate::store::{Entry, Filter, KnownTrial};

/// The options of `trend`.
#[derive(Debug, Clone, Args)]
pub(super) struct TrendOptions {
    /// A trial, by parameters or by its whole key; if several match, the one with defaults for all other parameters is
    /// shown [default: list all trials]
    #[arg(value_name = "KEY=VALUE|TRIAL")]
    trial: Vec<String>,
    #[command(flatten)]
    filter: FilterOptions,
    /// Use only the newest N runs; 0 uses all runs
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = count::<u32>(0, u32::MAX.into()))]
    limit: u32,
    /// Smallest change that counts, such as 5%
    #[arg(long, value_name = "PERCENT", value_parser = threshold)]
    threshold: Option<f64>,
    /// Exit with code 10 (worse) or 13 (better) if the latest change of at least one trial has this verdict
    #[arg(long, value_name = "VERDICT,…", value_delimiter = ',', value_parser = verdict)]
    fail_on: Vec<Verdict>,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    db: DbOption,
}

pub(super) fn trend(options: &TrendOptions) -> VerbResult {
    let wanted = TrendRequest::of(&options.trial)?;
    let history = match options.trial.as_slice() {
        // Listing all trials of an empty history is no error.
        [] => match open_if_any(&options.db)? {
            Some(history) => history,
            None => return Ok(()),
        },
        _ => open_required(&options.db)?,
    };
    let filter = options.filter.filter(options.limit);
    let trials = wanted.resolve(history.trials(&filter)?);
    let one = match trials.as_slice() {
        [] if options.trial.is_empty() => {
            say("pipemark: no runs match");
            return Ok(());
        }
        [] => {
            return Err(ExitError::usage(
                "no run in the history has this trial; 'pipemark history trend' lists all trials",
            ));
        }
        [one] => Some(one.key.clone()),
        _ if options.trial.is_empty() => None,
        several => {
            let listed: String = several.iter().take(8).map(|trial| format!("\n  {}", neutral(&trial.key))).collect();
            let more = if several.len() > 8 { "\n  …" } else { "" };
            let count = several.len();
            return Err(ExitError::usage(format_args!(
                "{count} trials match; give more parameters, or one of these keys in quotes:{listed}{more}"
            )));
        }
    };
    let mut runs = Vec::new();
    for entry in history.list(&Filter { trial: one.clone(), ..filter })?.into_iter().rev() {
        if let Some(document) = history.document(entry.id)? {
            runs.push((entry, document));
        }
    }
    let criterion = |better| criterion(options.threshold, better);
    let found: Vec<(KnownTrial, Vec<TrendPoint>)> =
        trials.iter().map(|trial| (trial.clone(), points(&trial.key, &runs, trials.len(), &criterion))).collect();
    let sheet = match (found.as_slice(), one) {
        ([(trial, points)], Some(_)) if !options.trial.is_empty() => {
            lists::trend(&trial.key, trial.job.mode().figure().0, points)
        }
        _ => lists::trials(&found),
    };
    options.format.print(&sheet, None)?;
    let newest = |points: &[TrendPoint]| points.iter().rev().find_map(|point| Some(point.change?.verdict));
    let newest: Vec<Verdict> = found.iter().filter_map(|(_, points)| newest(points)).collect();
    match [Verdict::Worse, Verdict::Better].into_iter().find(|of| options.fail_on.contains(of) && newest.contains(of)) {
        Some(verdict) => Err(ExitError::code(verdict_code(verdict))),
        None => Ok(()),
    }
}

fn verdict(text: &str) -> Result<Verdict, String> {
    let verdict = text.parse().ok().filter(|verdict| matches!(verdict, Verdict::Worse | Verdict::Better));
    verdict.ok_or_else(|| format!("'{}' is not a verdict on a trend; use worse or better", neutral(text)))
}

/// The trial that the user requested.
enum TrendRequest {
    Key(String),
    Params(Vec<Value>),
}

impl TrendRequest {
    /// Parses the request. A trial's key contains blanks; a parameter contains none.
    fn of(words: &[String]) -> Result<TrendRequest, String> {
        match words {
            [word] if word.contains(' ') => Ok(TrendRequest::Key(word.clone())),
            _ => {
                let settings = words.iter().map(|word| Value::parse_pair(word)).collect::<Result<_, _>>();
                settings.map(TrendRequest::Params).map_err(|error| error.to_string())
            }
        }
    }

    /// The trials that match the request. Parameters not named in it have their defaults, if there is such a trial.
    fn resolve(&self, mut trials: Vec<KnownTrial>) -> Vec<KnownTrial> {
        match self {
            TrendRequest::Key(key) => trials.retain(|trial| trial.key == *key),
            TrendRequest::Params(values) => {
                trials.retain(|trial| values.iter().all(|value| trial.job.settings().has(value)));
                let asked = Settings::of(values.iter().cloned());
                let otherwise_default = trials.iter().filter(|trial| trial.job.settings().equals_except_volume(&asked));
                let otherwise_default: Vec<KnownTrial> = otherwise_default.cloned().collect();
                if !values.is_empty() && !otherwise_default.is_empty() {
                    return otherwise_default;
                }
            }
        }
        trials
    }
}

/// The runs that measured a trial, oldest first, with the changes of each series. `trials` is the number of trials
/// judged together.
fn points(
    key: &str,
    runs: &[(Entry, Document)],
    trials: usize,
    criterion: &dyn Fn(Better) -> Criterion,
) -> Vec<TrendPoint> {
    let mut points: Vec<TrendPoint> = Vec::new();
    let mut series: BTreeMap<_, (Vec<usize>, Vec<Session>, &Document)> = BTreeMap::new();
    let mut judged = Better::Higher;
    for (entry, document) in runs {
        let Some(record) = document.trials.iter().find(|record| record.id == key) else { continue };
        let Some(estimate) = record.estimate.as_ref() else { continue };
        let figures: Vec<f64> = record.samples.iter().map(Sample::headline).collect();
        // A run that can't be compared isn't part of the series.
        let Some(session) = Session::of(&figures) else { continue };
        judged = record.job.mode().figure().1;
        // Runs by different methods aren't compared, so they form separate series.
        let of = (&entry.host, &entry.cpu, document.workload, document.method);
        let (at, sessions, before) = series.entry(of).or_insert_with(|| (Vec::new(), Vec::new(), document));
        points.push(TrendPoint {
            entry: entry.clone(),
            estimate: *estimate.headline(),
            change: None,
            before: at.last().map(|last| points[*last].entry.id),
            differs: differences(before, document),
            series: 0,
        });
        at.push(points.len() - 1);
        sessions.push(session);
        *before = document;
    }
    let count = trials * series.len();
    for (at, sessions, _) in series.into_values() {
        for point in change_points(&sessions, count, criterion(judged)) {
            points[at[point.first]].change = Some(point.change);
        }
        at.iter().for_each(|&index| points[index].series = at.len());
    }
    points
}

/// The changes: kernel, version of pipemark, load, and CPU time taken by the hypervisor or a limit.
fn differences(base: &Document, new: &Document) -> Vec<String> {
    let mut differences = Vec::new();
    if base.host.kernel != new.host.kernel {
        differences.push(format!("kernel {}", new.host.kernel.split(" #").next().unwrap_or_default()));
    }
    if base.version != new.version {
        differences.push(format!("pipemark {}", new.version));
    }
    differences.extend(disturbances(base, new));
    differences
}

#[cfg(test)]
mod tests {
    use pipemark_model::Job;

    use super::*;

    fn known(words: &str) -> KnownTrial {
        let values = words.split_whitespace().map(|word| Value::parse_pair(word).unwrap());
        let job = Job::try_from(Settings::of(values)).unwrap();
        KnownTrial { key: job.id(), job, runs: 1 }
    }

    #[test]
    fn unnamed_parameters_have_their_defaults() {
        let plain = known("block=64k send=write place=cross time=100ms");
        let all = [
            plain.clone(),
            known("block=64k send=write place=cross capacity=1m time=100ms"),
            known("block=64k send=write place=cross recv=splice time=100ms"),
            known("block=64k place=cross link=socketpair time=100ms"),
            known("block=64k capacity=256k place=same time=100ms"),
        ];
        let found = |words: &str| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            TrendRequest::of(&words).unwrap().resolve(all.to_vec())
        };
        assert_eq!(found("block=64k send=write place=cross"), [plain]);
        assert_eq!(found("link=socketpair"), [all[3].clone()]);
        assert_eq!(
            found("place=same"),
            [all[4].clone()],
            "if a single trial matches, its other parameters need not be defaults"
        );
        assert_eq!(found("").len(), all.len());
    }
}
