//! `pipemark history`: lists, shows, exports, imports and deletes measurements, and shows trials over time.

mod foreign;
pub mod lists;
mod trend;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ZonedDateTime};

use pipemark_console::{Destination, ExitError, Format, FormatOption, VerbResult, count, destination, exit, say};
use pipemark_model::{Document, neutral};
use pipemark_stats::diff;

use crate::cli::output::{DbOption, DetailOptions, render_document};
use crate::cli::read;
use crate::store::{Entry, Filter, History, Id};

/// The options of `history`.
#[derive(Debug, Clone, Args)]
#[command(disable_help_subcommand = true, subcommand_value_name = "WHAT")]
pub struct HistoryOptions {
    #[command(subcommand)]
    verb: Option<HistoryVerb>,
    #[command(flatten)]
    list: HistoryListOptions,
}

#[derive(Debug, Clone, Subcommand)]
enum HistoryVerb {
    /// List measurements, newest first (the default)
    List(HistoryListOptions),
    /// Print one measurement again [default: the newest]
    Show(ShowOptions),
    /// Write one measurement as JSON, as --json does [default: the newest]
    Export(HistoryExportOptions),
    /// Import JSON from pipemark or hyperfine, CSV, or time(1) logs
    Import(ImportOptions),
    /// Delete measurements
    Delete(DeleteOptions),
    /// Show one trial over time, with its changes
    Trend(trend::TrendOptions),
}

#[derive(Debug, Clone, Args)]
struct HistoryListOptions {
    #[command(flatten)]
    filter: FilterOptions,
    /// List the newest N; 0 lists all
    #[arg(long, value_name = "N", default_value_t = NEWEST, value_parser = count::<u32>(0, u32::MAX.into()))]
    limit: u32,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    db: DbOption,
}

/// The number of measurements in a list by default.
const NEWEST: u32 = 20;

/// Options that select measurements.
#[derive(Debug, Clone, Default, PartialEq, Args)]
struct FilterOptions {
    /// Only measurements of this suite or verb, such as bw
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// Only measurements with this label; * matches any characters, ? one
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Only measurements of the machine NAME; * and ? as in --label
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only measurements since a date, a time or an age: 2026-01-31, '2026-01-31 12:00', 7d
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
            trial: None,
        }
    }
}

#[derive(Debug, Clone, Args)]
struct ShowOptions {
    /// Run number or label
    #[arg(value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    detail: DetailOptions,
    #[command(flatten)]
    format: FormatOption,
    #[command(flatten)]
    db: DbOption,
}

#[derive(Debug, Clone, Args)]
struct HistoryExportOptions {
    /// Run number or label
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Write to FILE, atomically
    #[arg(long, short, value_name = "FILE|-", value_parser = destination, default_value = "-")]
    output: Destination,
    #[command(flatten)]
    db: DbOption,
}

#[derive(Debug, Clone, Args)]
struct ImportOptions {
    /// JSON that pipemark wrote; with --as, also hyperfine's JSON, CSV, or a time(1) log
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Parameters of the measurements, such as block=64k or total=1g; KEY alone reads the value from the file
    ///
    /// KEY is a column in CSV, a parameter in hyperfine's JSON, and in a time(1) log the line before each time.
    #[arg(long = "as", value_name = "KEY[=VALUE]")]
    settings: Vec<foreign::ImportSetting>,
    /// Label the measurements
    #[arg(long, value_name = "LABEL", requires = "settings")]
    label: Option<String>,
    #[command(flatten)]
    db: DbOption,
}

#[derive(Debug, Clone, Args)]
struct DeleteOptions {
    /// Run numbers
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Id>,
    /// Do not ask for confirmation; required if standard input is not a terminal
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    db: DbOption,
}

/// Runs the verb.
pub fn run(options: &HistoryOptions) -> VerbResult {
    let HistoryListOptions { filter, limit, format, db: _ } = &options.list;
    if options.verb.is_some() && (filter, *limit, format.format) != (&FilterOptions::default(), NEWEST, Format::Text) {
        return Err(ExitError::usage("only --db may come before the subcommand; write other options after it"));
    }
    match &options.verb {
        None => list(&options.list),
        Some(HistoryVerb::List(options)) => list(options),
        Some(HistoryVerb::Show(options)) => show(options),
        Some(HistoryVerb::Export(options)) => export(options),
        Some(HistoryVerb::Import(options)) => import(options),
        Some(HistoryVerb::Delete(options)) => delete(options),
        Some(HistoryVerb::Trend(options)) => trend::trend(options),
    }
}

/// Opens the history. If there is none, prints a message and returns `None`.
fn open_if_any(db: &DbOption) -> Result<Option<History>, ExitError> {
    let history = db.open()?;
    if history.is_none() {
        say("pipemark: the history is empty; measure with 'pipemark run'");
    }
    Ok(history)
}

/// Opens the history for a verb that needs one.
fn open_required(db: &DbOption) -> Result<History, ExitError> {
    db.open()?.ok_or_else(read::empty_history)
}

fn list(options: &HistoryListOptions) -> VerbResult {
    let filter = options.filter.filter(options.limit);
    let (entries, all) = match open_if_any(&options.db)? {
        Some(history) => (history.list(&filter)?, history.count()?),
        None => (Vec::new(), 0),
    };
    if entries.is_empty() && all > 0 {
        say(format_args!("pipemark: no run matches; the history has {all}"));
    }
    Ok(options.format.print(&lists::measurements(&entries, all), None)?)
}

fn show(options: &ShowOptions) -> VerbResult {
    let history = open_required(&options.db)?;
    let id = read::run_id(&history, options.run.as_deref())?;
    let document = history.document(id)?.ok_or_else(|| read::unknown_run(id))?;
    let format = options.format.format;
    Ok(Destination::Stdout.write(format.name(), render_document(format, options.detail, &document, Some(id)))?)
}

fn export(options: &HistoryExportOptions) -> VerbResult {
    let history = open_required(&options.db)?;
    let id = read::run_id(&history, options.run.as_deref())?;
    let json = history.json(id)?.ok_or_else(|| read::unknown_run(id))?;
    Ok(options.output.write("JSON", Ok(json))?)
}

fn import(options: &ImportOptions) -> VerbResult {
    // All files are read before any is saved.
    let read = |path: &PathBuf| match options.settings.is_empty() {
        true => read::documents_of_file(&path.to_string_lossy()).map_err(ExitError::usage),
        false => read_foreign(&path.to_string_lossy(), options).map_err(ExitError::usage),
    };
    let documents = options.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    for (path, sessions) in options.files.iter().zip(&documents) {
        for (document, _) in sessions {
            let name = neutral(&path.to_string_lossy());
            diff::check(document).map_err(|fault| ExitError::usage(format_args!("{name}: {fault}")))?;
            Entry::of(document).map_err(|error| ExitError::usage(format_args!("{name}: {error}")))?;
        }
    }
    let mut history = History::create(options.db.db.as_deref())?;
    let mut out = io::stdout().lock();
    for (path, sessions) in options.files.iter().zip(&documents) {
        for (document, json) in sessions {
            let id = history.save(document, json)?;
            // The other documents are saved even if nobody reads the output.
            let _ = writeln!(out, "{} is run {id} of the history", neutral(&path.to_string_lossy()));
        }
    }
    Ok(())
}

/// Reads a file of another tool as `--as` describes it.
fn read_foreign(name: &str, options: &ImportOptions) -> Result<Vec<(Document, String)>, String> {
    let text = read::file_text(name, foreign::MAX_BYTES)?;
    let document =
        foreign::read(name, &text, &options.settings).map_err(|error| format!("{}: {error}", neutral(name)))?;
    let document = Document { label: options.label.clone(), ..document };
    let json = serde_json::to_string(&document).map_err(|error| error.to_string())?;
    Ok(vec![(document, json)])
}

fn delete(options: &DeleteOptions) -> VerbResult {
    let mut history = open_required(&options.db)?;
    if !options.yes && !io::stdin().is_terminal() {
        return Err(ExitError::usage("standard input is not a terminal, so nothing was deleted; use --yes"));
    }
    if !options.yes && !confirmed(&history, &options.ids)? {
        say("nothing was deleted");
        return Err(ExitError::code(exit::FAILED));
    }
    match history.delete(&options.ids)? {
        None => Ok(()),
        Some(unknown) => Err(ExitError::usage(format_args!("there is no run {unknown}, so nothing was deleted"))),
    }
}

fn confirmed(history: &History, ids: &[Id]) -> Result<bool, ExitError> {
    let entries = ids.iter().filter_map(|&id| history.entry(id).transpose()).collect::<Result<Vec<_>, _>>()?;
    let table = Format::Text.of_sheet(&lists::measurements(&entries, entries.len()), None)?;
    write!(io::stderr(), "{table}Delete permanently? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Parses a local day or time, a time stamp, or a span before now.
fn since(text: &str) -> Result<Timestamp, String> {
    let here = |time: DateTime| time.to_zoned_datetime(TimeZone::system()).map(|zoned| zoned.timestamp()).ok();
    let day = || text.parse::<Date>().ok().map(|date| date.at(0, 0, 0, 0)).and_then(here);
    let time = || text.parse::<DateTime>().ok().and_then(here);
    // Days and months have no fixed length, so they are counted back from now.
    let ago = || text.parse::<Span>().ok().and_then(|span| ZonedDateTime::now().checked_sub(span.abs()).ok());
    text.parse()
        .ok()
        // A plain date would also parse as a time, so text without a colon is read as a day.
        .or_else(|| if text.contains(':') { time() } else { day() })
        .or_else(|| ago().map(|zoned| zoned.timestamp()))
        .ok_or_else(|| {
            format!("'{}' is not a time; use 2026-01-31, '2026-01-31 12:00', or an age such as 7d", neutral(text))
        })
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;

    use super::*;

    #[test]
    fn times_are_days_hours_stamps_and_spans() {
        let midnight = "2026-01-31".parse::<Date>().unwrap().to_zoned_datetime(TimeZone::system()).unwrap().timestamp();
        assert_eq!(since("2026-01-31"), Ok(midnight));
        assert_eq!(since("2026-01-31 12:30"), Ok(midnight + 12.hours().minutes(30)));
        assert_eq!(since("2026-01-31T00:00:00Z"), Ok("2026-01-31T00:00:00Z".parse().unwrap()));
        let week = Timestamp::now().duration_since(since("7d").unwrap()).as_hours();
        assert!((166..=169).contains(&week), "{week} hours");
        for text in ["", "yesterday", "7", "2026-13-01", "99999999y"] {
            assert!(since(text).is_err(), "{text}");
        }
    }
}
