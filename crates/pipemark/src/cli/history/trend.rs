//! `pipemark history trend`: one trial over time. Each run is held against the one before it on the same machine, by the
//! test that holds two files against each other; what is drawn is the median with its interval.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use clap::Args;

use super::{FilterOptions, opened, printed, shown_time};
use crate::cli::keep::DbOption;
use crate::cli::output::FormatOption;
use crate::cli::{failure, usage};
use crate::model::{Document, Estimate, Job, Mode, Nanos, Record, Sample, Throughput, Value};
use crate::show::{Cell, Column, Grid, Room, Side, Style, neutral};
use crate::stats::compare::{Comparison, Pairing, compare};
use crate::stats::verdict::{Better, Criterion, Verdict};
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
    #[arg(long, value_name = "N", default_value_t = 30)]
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
    let (form, mut out) = (options.format.form(), io::stdout().lock());
    match trials.as_slice() {
        [] => {
            Ok(failure("no run in the history has measured such a trial; 'pipemark history trend' lists those it has"))
        }
        [trial] => {
            let points = points(&history, &trial.key, &history.runs_of(&trial.key, &filter).map_err(failed)?)?;
            printed(chart(&trial.key, &trial.job, &points).write(form, &mut out))
        }
        all if options.trial.is_empty() => printed(choice(all).write(form, &mut out)),
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
}

/// The trials there are.
fn choice(trials: &[KnownTrial]) -> Grid {
    let column = |name, heading, side, room| Column { name, heading, side, room };
    Grid {
        columns: vec![
            column("runs", "runs", Side::Right, Room::Needed),
            column("trial", "trial", Side::Left, Room::Elastic),
        ],
        rows: trials
            .iter()
            .map(|trial| vec![Cell::of(trial.runs.to_string(), trial.runs), Cell::text(&trial.key)])
            .collect(),
        notes: vec![
            "Choose one by parameters, such as block=64k send=write, or by its whole key in quotes.".to_owned(),
        ],
        ..Grid::default()
    }
}

/// What one run says about the trial.
struct Point {
    entry: Entry,
    estimate: Estimate,
    /// Against the run before it on the same machine.
    change: Option<Comparison>,
    /// What is not as it was in that run.
    differs: Vec<String>,
}

/// The points of the runs, which come newest first, oldest first.
fn points(history: &History, key: &str, runs: &[Entry]) -> Result<Vec<Point>, String> {
    let mut before: HashMap<(String, String), (Entry, Vec<f64>)> = HashMap::new();
    let mut points = Vec::new();
    for entry in runs.iter().rev() {
        let document = history.document(entry.id).map_err(|error| error.to_string())?;
        let Some((estimate, better, figures)) = document.as_ref().and_then(|document| figures(document, key)) else {
            continue;
        };
        let machine = (entry.host.clone(), entry.cpu.clone());
        let base = before.get(&machine);
        points.push(Point {
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

const LEGEND: &str = "Each run against the one before it on the same machine: better and worse are certain at 95 %, same \
                      is within 3 %.";

fn chart(key: &str, params: &Job, points: &[Point]) -> Grid {
    let column = |name, heading, side, room| Column { name, heading, side, room };
    let unit = |figure: f64| match params.mode() {
        Mode::Throughput => Throughput(figure).to_string(),
        // A round trip in nanoseconds: never negative, and far below 2^64.
        Mode::Latency => Nanos(figure.round() as u64).to_string(),
    };
    let ends =
        |estimate: &Estimate| (estimate.low.unwrap_or(estimate.median), estimate.high.unwrap_or(estimate.median));
    let most = points.iter().map(|point| ends(&point.estimate).1).fold(0.0, f64::max);
    let row = |point: &Point| {
        let Point { entry, estimate, change, differs } = point;
        let (low, high) = ends(estimate);
        let figure = |figure: Option<f64>| figure.map_or_else(Cell::none, |figure| Cell::of("", figure));
        let mut row = vec![
            Cell::of(shown_time(entry.started), entry.started.to_string()),
            Cell::of(entry.id.to_string(), entry.id.number()),
            entry.label.as_ref().map_or_else(Cell::none, Cell::text),
            Cell::of(unit(estimate.median), estimate.median),
            Cell::of(interval(estimate), estimate.runs),
            Cell::bar(low / most, high / most),
        ];
        row.extend(verdict(change.as_ref()));
        row.extend([
            Cell::of("", differs.clone()),
            figure(estimate.low),
            figure(estimate.high),
            Cell::text(if params.mode() == Mode::Latency { "ns" } else { "bytes/s" }),
            Cell::text(&entry.host),
            Cell::text(&entry.suite),
            Cell::text(&entry.kernel),
            Cell::text(&entry.version),
        ]);
        row
    };
    let news = points.iter().filter(|point| !point.differs.is_empty());
    let mut notes: Vec<String> = news
        .map(|point| format!("Run {} is the first with {}.", point.entry.id, point.differs.join(" and ")))
        .collect();
    notes.push(LEGEND.to_owned());
    let machines: BTreeSet<_> = points.iter().map(|point| (&point.entry.host, &point.entry.cpu)).collect();
    let several = machines.len() > 1;
    Grid {
        title: key.to_owned(),
        columns: vec![
            column("started", "when", Side::Left, Room::Needed),
            column("id", "id", Side::Right, Room::Needed),
            column("label", "label", Side::Left, Room::Elastic),
            column(
                "median",
                if params.mode() == Mode::Latency { "round trip" } else { "throughput" },
                Side::Right,
                Room::Needed,
            ),
            column("runs", "95 %", Side::Right, Room::Needed),
            column("bar", "from 0", Side::Left, Room::Rest),
            column("change", "change", Side::Right, Room::Needed),
            column("verdict", "", Side::Left, Room::Needed),
            column("change_low", "", Side::Right, Room::Needed),
            column("change_high", "", Side::Right, Room::Needed),
            column("differs", "", Side::Left, Room::Needed),
            column("low", "", Side::Right, Room::Needed),
            column("high", "", Side::Right, Room::Needed),
            column("unit", "", Side::Left, Room::Needed),
            column("host", if several { "host" } else { "" }, Side::Left, Room::Elastic),
            column("suite", "", Side::Left, Room::Needed),
            column("kernel", "", Side::Left, Room::Needed),
            column("version", "", Side::Left, Room::Needed),
        ],
        rows: points.iter().map(row).collect(),
        notes,
    }
}

/// How far the interval reaches, in per cent of the median.
fn interval(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            let reach = (high - estimate.median).max(estimate.median - low) / estimate.median * 100.0;
            format!("±{reach:.0} %")
        }
        _ => format!("n={}", estimate.runs),
    }
}

/// The cells change, verdict, change_low and change_high.
fn verdict(change: Option<&Comparison>) -> [Cell; 4] {
    let Some(Comparison { change, low, high, verdict, .. }) = change else {
        return [Cell::none(), Cell::none(), Cell::none(), Cell::none()];
    };
    let (word, name, style) = match verdict {
        Verdict::Better => ("better", "better", Style::Success),
        Verdict::Worse => ("worse", "worse", Style::Failure),
        Verdict::Same => ("same", "same", Style::Plain),
        Verdict::CantTell => ("can't tell", "cant-tell", Style::Aside),
    };
    let mut text = word.to_owned();
    if matches!(verdict, Verdict::Better | Verdict::Worse) {
        let _ = write!(text, " {:+.1} %", change * 100.0);
    }
    let figure = |figure: Option<f64>| figure.map_or_else(Cell::none, |figure| Cell::of("", figure));
    [Cell::of(text, *change).in_style(style), Cell::of("", name), figure(*low), figure(*high)]
}
