//! `pipemark history trend`: one trial over time. Each run is held against the one before it on the same machine, by the
//! test that holds two files against each other; what is drawn is the median with its interval.

use std::collections::HashMap;

use clap::Args;
use strum::IntoEnumIterator;

use super::{FilterOptions, present};
use crate::cli::output::{DbOption, FormatOption};
use crate::cli::parameters::count;
use crate::cli::{Ending, Stop};
use crate::model::{Better, Document, Estimate, Job, Key, METHOD, Mode, Record, Sample, Settings, Unit, Value};
use crate::sheet::{self, TrendPoint, neutral};
use crate::stats::compare::{Pairing, compare};
use crate::stats::verdict::Criterion;
use crate::store::{Entry, Filter, History, KnownTrial};

/// What `trend` takes.
#[derive(Debug, Clone, Args)]
pub(super) struct TrendOptions {
    /// Which trial: by parameters, others being as by default if several have these, or by its whole key; lists trials without
    #[arg(value_name = "KEY=VALUE|TRIAL")]
    trial: Vec<String>,
    #[command(flatten)]
    filter: FilterOptions,
    /// Show the newest N of its runs; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = count::<u32>(0, u32::MAX.into()))]
    limit: u32,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    db: DbOption,
}

pub(super) fn trend(options: &TrendOptions) -> Ending {
    let wanted = Wanted::of(&options.trial)?;
    let history = present(&options.db)?;
    let filter = options.filter.filter(options.limit);
    let trials = wanted.of_all(history.trials(&filter)?);
    match trials.as_slice() {
        [] => Err(Stop::failed(
            "no run in the history has measured such a trial; 'pipemark history trend' lists those it has",
        )),
        [trial] => {
            let points =
                points(&history, &trial.key, &history.list(&Filter { trial: Some(trial.key.clone()), ..filter })?)?;
            let unit = if trial.job.is_round_trip() { Unit::Nanoseconds } else { Unit::BytesPerSecond };
            Ok(options.format.print(&sheet::trend(&trial.key, unit, &points), None)?)
        }
        all if options.trial.is_empty() => Ok(options.format.print(&sheet::trials(all), None)?),
        several => {
            let listed: String = several.iter().take(8).map(|trial| format!("\n  {}", neutral(&trial.key))).collect();
            let more = if several.len() > 8 { "\n  …" } else { "" };
            let count = several.len();
            Err(Stop::usage(format_args!(
                "{count} trials are like that; say more, or quote one of them:{listed}{more}"
            )))
        }
    }
}

/// Which trial was asked for.
enum Wanted {
    Key(String),
    Params(Vec<Value>),
}

impl Wanted {
    /// A trial's key has blanks in it, and a parameter has none.
    fn of(words: &[String]) -> Result<Wanted, String> {
        match words {
            [word] if word.contains(' ') => Ok(Wanted::Key(word.clone())),
            _ => {
                let settings = words.iter().map(|word| Value::parse_pair(word)).collect::<Result<_, _>>();
                settings.map(Wanted::Params).map_err(|error| error.to_string())
            }
        }
    }

    /// Those of the trials that were asked for. What is not named is as by default, where that leaves any.
    fn of_all(&self, mut trials: Vec<KnownTrial>) -> Vec<KnownTrial> {
        match self {
            Wanted::Key(key) => trials.retain(|trial| trial.key == *key),
            Wanted::Params(values) => {
                trials.retain(|trial| values.iter().all(|value| trial.job.settings().has(value)));
                let asked = Settings::of(values.iter().cloned());
                // How much a run moves is no part of what is compared.
                let plain = |trial: &&KnownTrial| {
                    let own = trial.job.settings();
                    let mut others = Key::iter().filter(|key| !key.is_volume());
                    others.all(|key| own.effective(key) == asked.effective(key))
                };
                let usual: Vec<KnownTrial> = trials.iter().filter(plain).cloned().collect();
                if !values.is_empty() && !usual.is_empty() {
                    return usual;
                }
            }
        }
        trials
    }
}

/// The points of the runs, which come newest first, oldest first.
fn points(history: &History, key: &str, runs: &[Entry]) -> Result<Vec<TrendPoint>, Stop> {
    let mut before: HashMap<(String, String), (Entry, Vec<f64>, u32)> = HashMap::new();
    let mut points = Vec::new();
    for entry in runs.iter().rev() {
        let document = history.document(entry.id)?;
        let Some((estimate, better, figures)) = document.as_ref().and_then(|document| figures(document, key)) else {
            continue;
        };
        let machine = (entry.host.clone(), entry.cpu.clone());
        let method = document.as_ref().map_or(METHOD, |document| document.method);
        let base = before.get(&machine);
        // There is no verdict across methods.
        let alike = base.filter(|(_, _, of_base)| *of_base == method);
        let mut differs = base.map(|(base, _, _)| differences(base, entry)).unwrap_or_default();
        if base.is_some() && alike.is_none() {
            differs.push(format!("method {method}"));
        }
        points.push(TrendPoint {
            entry: entry.clone(),
            estimate,
            // What cannot be compared has no change to show.
            change: alike.and_then(|(_, base, _)| compare(base, &figures, Pairing::None, Criterion::new(better)).ok()),
            differs,
        });
        before.insert(machine, (entry.clone(), figures, method));
    }
    Ok(points)
}

/// The headline of a trial: its estimate, which way is better, and each run's own figure.
fn figures(document: &Document, key: &str) -> Option<(Estimate, Better, Vec<f64>)> {
    let measured = |record: &&Record| record.id == key && record.estimate.is_some();
    let record = document.trials.iter().find(measured)?;
    let estimate = *record.estimate.as_ref()?.headline();
    Some((estimate, better(&record.job), record.samples.iter().map(Sample::headline).collect()))
}

fn better(params: &Job) -> Better {
    match params.mode() {
        Mode::Throughput => Better::Higher,
        Mode::Latency => Better::Lower,
    }
}

fn differences(base: &Entry, new: &Entry) -> Vec<String> {
    let release = |entry: &Entry| entry.kernel.split(" #").next().unwrap_or_default().to_owned();
    let mut differences = Vec::new();
    if base.kernel != new.kernel {
        differences.push(format!("kernel {}", release(new)));
    }
    if base.version != new.version {
        differences.push(format!("pipemark {}", new.version));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(words: &str) -> KnownTrial {
        let values = words.split_whitespace().map(|word| Value::parse_pair(word).unwrap());
        let job = Job::try_from(Settings::of(values)).unwrap();
        KnownTrial { key: job.id(), job, runs: 1 }
    }

    #[test]
    fn what_is_not_named_is_as_by_default() {
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
            Wanted::of(&words).unwrap().of_all(all.to_vec())
        };
        assert_eq!(found("block=64k send=write place=cross"), [plain]);
        assert_eq!(found("link=socketpair"), [all[3].clone()]);
        assert_eq!(found("place=same"), [all[4].clone()], "where only one has it, all else is as it is");
        assert_eq!(found("").len(), all.len());
    }
}
