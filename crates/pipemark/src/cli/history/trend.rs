//! `pipemark history trend`: one trial over time. Each run is held against the one before it on the same machine, by the
//! test that holds two files against each other; what is drawn is the median with its interval.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Args;
use strum::IntoEnumIterator;

use super::{FilterOptions, opened, printed};
use crate::cli::keep::DbOption;
use crate::cli::output::FormatOption;
use crate::cli::parameters::count;
use crate::cli::{failure, usage};
use crate::model::{Document, Estimate, Job, Key, Mode, Record, Sample, Settings, Unit, Value};
use crate::sheet::{self, TrendPoint, neutral};
use crate::stats::compare::{Pairing, compare};
use crate::stats::verdict::{Better, Criterion};
use crate::store::{Entry, History, HistoryError, KnownTrial};

/// What `trend` takes.
#[derive(Debug, Clone, Args)]
pub(super) struct TrendOptions {
    /// Which trial: parameters that only one has, or its whole key; without, the trials there are
    #[arg(value_name = "KEY=VALUE|TRIAL")]
    trial: Vec<String>,
    #[command(flatten)]
    filter: FilterOptions,
    /// Show the newest N of its runs; 0 shows all
    #[arg(long, value_name = "N", value_parser = count(0, u32::MAX), default_value_t = 30)]
    limit: u32,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    db: DbOption,
}

pub(super) fn trend(options: &TrendOptions) -> Result<ExitCode, String> {
    let failed = |error: HistoryError| error.to_string();
    let wanted = match Wanted::of(&options.trial) {
        Ok(wanted) => wanted,
        Err(sentence) => return Ok(usage(sentence)),
    };
    let Some(history) = opened(&options.db).map_err(failed)? else { return Ok(super::failure_quietly()) };
    let filter = options.filter.filter(options.limit);
    let mut trials = history.trials(&filter).map_err(failed)?;
    trials.retain(|trial| wanted.is(trial));
    if trials.len() > 1 {
        // What is not named means its default, where that tells one from the others.
        let plain: Vec<_> = trials.iter().filter(|trial| wanted.names_all_of(trial)).cloned().collect();
        trials = if plain.is_empty() { trials } else { plain };
    }
    match trials.as_slice() {
        [] => {
            Ok(failure("no run in the history has measured such a trial; 'pipemark history trend' lists those it has"))
        }
        [trial] => {
            let points = points(&history, &trial.key, &history.runs_of(&trial.key, &filter).map_err(failed)?)?;
            let unit = if trial.job.is_round_trip() { Unit::Nanoseconds } else { Unit::BytesPerSecond };
            printed(&options.format, &sheet::trend(&trial.key, unit, &points))
        }
        all if options.trial.is_empty() => printed(&options.format, &sheet::trials(all)),
        several => {
            let listed: Vec<String> =
                several.iter().take(8).map(|trial| format!("\n  {}", neutral(&trial.key))).collect();
            let more = if several.len() > 8 { "\n  …" } else { "" };
            let count = several.len();
            Ok(usage(format!("{count} trials are like that; say more, or quote one of them:{}{more}", listed.concat())))
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

    fn is(&self, trial: &KnownTrial) -> bool {
        match self {
            Wanted::Key(key) => trial.key == *key,
            Wanted::Params(settings) => {
                let own = trial.job.settings();
                settings.iter().all(|value| own.has(value))
            }
        }
    }

    /// Whether all else about the trial is as it usually is, but for how much it moves.
    fn names_all_of(&self, trial: &KnownTrial) -> bool {
        let Wanted::Params(values) = self else { return false };
        let (own, asked) = (trial.job.settings(), Settings::of(values.iter().cloned()));
        !values.is_empty()
            && Key::iter().filter(|key| !key.is_volume()).all(|key| own.effective(key) == asked.effective(key))
    }
}

/// The points of the runs, which come newest first, oldest first.
fn points(history: &History, key: &str, runs: &[Entry]) -> Result<Vec<TrendPoint>, String> {
    let mut before: HashMap<(String, String), (Entry, Vec<f64>)> = HashMap::new();
    let mut points = Vec::new();
    for entry in runs.iter().rev() {
        let document = history.document(entry.id).map_err(|error| error.to_string())?;
        let Some((estimate, better, figures)) = document.as_ref().and_then(|document| figures(document, key)) else {
            continue;
        };
        let machine = (entry.host.clone(), entry.cpu.clone());
        let base = before.get(&machine);
        points.push(TrendPoint {
            entry: entry.clone(),
            estimate,
            // What cannot be compared has no change to show.
            change: base.and_then(|(_, base)| compare(base, &figures, Pairing::None, Criterion::new(better)).ok()),
            differs: base.map(|(base, _)| differences(base, entry)).unwrap_or_default(),
        });
        before.insert(machine, (entry.clone(), figures));
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
