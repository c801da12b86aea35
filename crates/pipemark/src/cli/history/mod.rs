//! `pipemark history`: what was measured before, listed, shown, exported, brought in, forgotten, and over time.

mod trend;

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

use super::keep::DbOption;
use super::output::{Format, FormatOption, destination, writer};
use super::parameters::count;
use super::{failure, usage};
use crate::export::Destination;
use crate::model::{Document, SCHEMA};
use crate::sheet::{self, Sheet, neutral};
use crate::store::{Filter, History, HistoryError, Id};

pub const EXAMPLES: &str = "\
EXAMPLES
  What was measured, the newest first; the last week's measurements of one suite:
      pipemark history
      pipemark history --suite quick --since 7d

  One of them again, as it was printed; as the JSON that --json would have written:
      pipemark history show 12
      pipemark history export 12 > quick.json

  How one trial went over time, and where it changed for certain:
      pipemark history trend block=64k send=write place=cross

Everything that run, bw and chain measure is kept, unless --no-save is given. --label gives it a name, --db another place.";

/// What `history` takes.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, subcommand_value_name = "WHAT")]
pub struct HistoryOptions {
    #[command(subcommand)]
    verb: Option<HistoryVerb>,
    #[command(flatten)]
    list: ListOptions,
}

#[derive(Debug, Clone, Subcommand)]
enum HistoryVerb {
    /// List measurements, the newest first (the default)
    List(ListOptions),
    /// Print one measurement again [default: the newest]
    Show(ShowOptions),
    /// Write one measurement as the JSON that --json writes [default: the newest]
    Export(ExportOptions),
    /// Take in measurements that --json or export wrote, here or elsewhere
    Import(ImportOptions),
    /// Forget measurements
    Delete(DeleteOptions),
    /// Show one trial over time, and where it changed for certain
    Trend(trend::TrendOptions),
}

#[derive(Debug, Clone, Args)]
struct ListOptions {
    #[command(flatten)]
    filter: FilterOptions,
    /// List the newest N; 0 lists all
    #[arg(long, value_name = "N", value_parser = count(0, u32::MAX), default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    db: DbOption,
}

/// Which measurements.
#[derive(Debug, Clone, Default, Args)]
struct FilterOptions {
    /// Only of this suite, or of this verb, such as bw
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// Only with this label; * and ? stand for any letters and one
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Only of the machine with this name; likewise
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only since a day, a time or so long ago, such as 2026-01-31, '2026-01-31 12:00' or 7d
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Timestamp>,
}

impl FilterOptions {
    fn filter(&self, limit: u32) -> Filter {
        Filter {
            suite: self.suite.clone(),
            label: self.label.clone(),
            host: self.host.clone(),
            since: self.since,
            limit: (limit > 0).then_some(limit),
        }
    }
}

#[derive(Debug, Clone, Args)]
struct ShowOptions {
    /// Its number in the list
    #[arg(value_name = "ID")]
    id: Option<Id>,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    db: DbOption,
}

#[derive(Debug, Clone, Args)]
struct ExportOptions {
    /// Its number in the list
    #[arg(value_name = "ID")]
    id: Option<Id>,
    /// Write it to FILE, whole or not at all
    #[arg(long, short, value_name = "FILE|-", value_parser = destination, default_value = "-")]
    output: Destination,
    #[command(flatten)]
    db: DbOption,
}

#[derive(Debug, Clone, Args)]
struct ImportOptions {
    /// Results as JSON
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    db: DbOption,
}

#[derive(Debug, Clone, Args)]
struct DeleteOptions {
    /// Their numbers in the list
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Id>,
    /// Do not ask; needed where standard input is no terminal
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    db: DbOption,
}

/// Does what was asked for.
pub fn run(options: &HistoryOptions) -> ExitCode {
    let outcome = match &options.verb {
        None => list(&options.list),
        Some(HistoryVerb::List(options)) => list(options),
        Some(HistoryVerb::Show(options)) => show(options),
        Some(HistoryVerb::Export(options)) => export(options),
        Some(HistoryVerb::Import(options)) => import(options),
        Some(HistoryVerb::Delete(options)) => delete(options),
        Some(HistoryVerb::Trend(options)) => trend::trend(options),
    };
    outcome.unwrap_or_else(failure)
}

/// The history; says so where there is none.
fn opened(db: &DbOption) -> Result<Option<History>, HistoryError> {
    let history = History::open(db.db.as_deref())?;
    if history.is_none() {
        eprintln!("pipemark: nothing was kept yet; 'pipemark run' measures and keeps what it measured");
    }
    Ok(history)
}

/// The history that has the run with this id, or the newest, and the id; an exit code where there is none.
fn found(db: &DbOption, id: Option<Id>) -> Result<Result<(History, Id), ExitCode>, String> {
    let Some(history) = opened(db).map_err(|error| error.to_string())? else { return Ok(Err(failure_quietly())) };
    let id = match id {
        Some(id) => Some(id),
        None => history.newest().map_err(|error| error.to_string())?,
    };
    match id {
        Some(id) => Ok(Ok((history, id))),
        None => Ok(Err(failure("the history is empty"))),
    }
}

/// What is wrong has been said.
fn failure_quietly() -> ExitCode {
    ExitCode::from(super::exit::FAILED)
}

fn no_such_run(id: Id) -> ExitCode {
    usage(format_args!("there is no run {id}; 'pipemark history --limit 0' lists all"))
}

fn list(options: &ListOptions) -> Result<ExitCode, String> {
    let failed = |error: HistoryError| error.to_string();
    let filter = options.filter.filter(options.limit);
    let (entries, all) = match opened(&options.db).map_err(failed)? {
        Some(history) => (history.list(&filter).map_err(failed)?, history.count().map_err(failed)?),
        None => (Vec::new(), 0),
    };
    printed(&options.format, &sheet::measurements(&entries, all as usize))
}

fn show(options: &ShowOptions) -> Result<ExitCode, String> {
    let (history, id) = match found(&options.db, options.id)? {
        Ok(found) => found,
        Err(code) => return Ok(code),
    };
    let Some(document) = history.document(id).map_err(|error| error.to_string())? else { return Ok(no_such_run(id)) };
    let (name, write) = writer(options.format.format);
    Destination::Stdout.write(name, write(&document)).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn export(options: &ExportOptions) -> Result<ExitCode, String> {
    let (history, id) = match found(&options.db, options.id)? {
        Ok(found) => found,
        Err(code) => return Ok(code),
    };
    let Some(json) = history.json(id).map_err(|error| error.to_string())? else { return Ok(no_such_run(id)) };
    options.output.write("JSON", Ok(json)).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// No document of 10,000 trials comes near this.
const LARGEST: u64 = 512 << 20;

fn import(options: &ImportOptions) -> Result<ExitCode, String> {
    // Everything is read before anything is kept.
    let documents = options.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut history = History::create(options.db.db.as_deref()).map_err(|error| error.to_string())?;
    let mut out = io::stdout().lock();
    for (path, (document, json)) in options.files.iter().zip(&documents) {
        let id = history.save(document, json).map_err(|error| error.to_string())?;
        let said = writeln!(out, "{} is run {id}", neutral(&path.to_string_lossy()));
        // Who does not listen gets the rest kept all the same.
        let _ = said;
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &PathBuf) -> Result<(Document, String), String> {
    let name = neutral(&path.to_string_lossy());
    let failed = |error: io::Error| format!("cannot read {name}: {error}");
    let mut json = String::new();
    File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut json)).map_err(failed)?;
    if json.len() as u64 > LARGEST {
        return Err(format!("{name} is larger than {} MiB, the limit for a result", LARGEST >> 20));
    }
    let document: Document = serde_json::from_str(&json)
        .map_err(|error| format!("{name} is no result of pipemark: {error}; use what --json wrote"))?;
    if document.schema != SCHEMA {
        let (schema, version) = (neutral(&document.schema), env!("CARGO_PKG_VERSION"));
        return Err(format!("{name} has the schema '{schema}' and pipemark {version} reads '{SCHEMA}'"));
    }
    Ok((document, json))
}

fn delete(options: &DeleteOptions) -> Result<ExitCode, String> {
    let Some(mut history) = opened(&options.db).map_err(|error| error.to_string())? else {
        return Ok(failure_quietly());
    };
    if !options.yes && !io::stdin().is_terminal() {
        return Ok(usage("nobody can be asked here, as standard input is no terminal; nothing was deleted: add --yes"));
    }
    if !options.yes && !confirmed(&history, &options.ids)? {
        eprintln!("nothing was deleted");
        return Ok(failure_quietly());
    }
    match history.delete(&options.ids).map_err(|error| error.to_string())? {
        None => Ok(ExitCode::SUCCESS),
        Some(unknown) => Ok(usage(format_args!("there is no run {unknown}, so nothing was deleted"))),
    }
}

fn confirmed(history: &History, ids: &[Id]) -> Result<bool, String> {
    let entries = ids.iter().filter_map(|&id| history.entry(id).transpose());
    let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let list = Format::Text.of_sheet(&sheet::measurements(&entries, entries.len()), None);
    eprint!("{}", list.map_err(|error| error.to_string())?);
    eprint!("Delete for good? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A day or time here, a time stamp, or how long ago.
fn since(text: &str) -> Result<Timestamp, String> {
    let here = |time: DateTime| time.to_zoned(TimeZone::system()).map(|zoned| zoned.timestamp()).ok();
    let day = || text.parse::<Date>().ok().map(|date| date.at(0, 0, 0, 0)).and_then(here);
    let time = || text.parse::<DateTime>().ok().and_then(here);
    // Days and months count from now; they have no fixed length.
    let ago = || text.parse::<Span>().ok().and_then(|span| Zoned::now().checked_sub(span.abs()).ok());
    text.parse()
        .ok()
        // A date with a time of day is one too, so plain dates come first.
        .or_else(|| if text.contains(':') { time() } else { day() })
        .or_else(|| ago().map(|zoned| zoned.timestamp()))
        .ok_or_else(|| {
            format!("'{}' is no time; use 2026-01-31, '2026-01-31 12:00', or how long ago, such as 7d", neutral(text))
        })
}

/// Prints a sheet, which ends a verb.
fn printed(format: &FormatOption, sheet: &Sheet) -> Result<ExitCode, String> {
    format.print(sheet, None).map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
}
