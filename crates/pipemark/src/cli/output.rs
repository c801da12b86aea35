//! Writes and saves documents, with the options that measuring verbs share.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::PathBufValueParser;
use serde_json::Value;

use pipemark_ab::baseline::SavedMeasurements;
use pipemark_console::{Destination, ExitError, ExportOptions, Format, JsonLines, Targets, destination, say, terminal};
use pipemark_model::{Document, METHOD, Nanos, SCHEMA, Stopped, WORKLOAD, neutral};
use pipemark_report::{export, sheet};
use pipemark_show::{Attachment, html};

use pipemark_tune::result::ExperimentResult;
use pipemark_watch::PipelineReport;

use crate::store::{Filter, History, Id};

/// A document of this program and this command line, without measurements.
pub fn empty_document() -> Document {
    Document {
        schema: SCHEMA.to_owned(),
        workload: WORKLOAD,
        method: METHOD,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: pipemark_sys::start::words().iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..Document::default()
    }
}

/// A document in a format.
///
/// # Errors
/// If one of its figures isn't a number.
pub fn document_as(format: Format, document: &Document) -> io::Result<String> {
    match format {
        Format::Text | Format::Markdown => format.of_sheet(&sheet::document(document), None),
        Format::Html => page(std::slice::from_ref(document)),
        Format::Csv => export::csv(document),
        Format::Json => export::json(document),
        Format::OpenMetrics => export::openmetrics(document),
        Format::Benchmark => export::benchmark_json(document),
        Format::CpuMap => export::cpu_map(document),
        Format::Hyperfine | Format::Bencher => unreachable!("exports of ab"),
    }
}

/// Where measurements go, and whether they are kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    #[command(flatten)]
    pub export: ExportOptions,
    /// Write estimates as OpenMetrics text, for example for node_exporter's textfile collector
    #[arg(long, value_name = "FILE|-", value_parser = destination, hide_short_help = true)]
    openmetrics: Option<Destination>,
    /// Write JSON for github-action-benchmark (customBiggerIsBetter), one figure per trial
    #[arg(long, value_name = "FILE|-", value_parser = destination, hide_short_help = true)]
    benchmark_json: Option<Destination>,
    /// Write a line of JSON as each run and each trial ends
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    json_lines: Option<Destination>,
    /// Where the map of CPUs goes; only some verbs have this flag.
    #[arg(skip)]
    pub cpu_map: Option<Destination>,
    #[command(flatten)]
    pub detail: DetailOptions,
    #[command(flatten)]
    pub keep: KeepOptions,
}

impl OutputOptions {
    /// The outputs and their formats.
    pub fn targets(&self) -> Targets<'_> {
        let mut targets = self.export.targets();
        targets.add(&[
            (&self.openmetrics, Format::OpenMetrics),
            (&self.benchmark_json, Format::Benchmark),
            (&self.cpu_map, Format::CpuMap),
        ]);
        targets.with_lines(self.json_lines.as_ref())
    }

    /// The destination for lines of JSON, opened.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn json_lines(&self) -> Result<Option<JsonLines>, ExitError> {
        self.json_lines.as_ref().map(JsonLines::open).transpose()
    }
}

/// How much of a document is printed as text.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DetailOptions {
    /// Print all tables, figures and findings instead of one screen
    #[arg(long)]
    all: bool,
    /// Print each claim of the suite's document with its answer, its range and the trials that decide it
    #[arg(long, conflicts_with = "all", hide_short_help = true)]
    claims: bool,
}

/// The option for the history file, for every verb that uses the history.
#[derive(Debug, Clone, Default, Args)]
pub struct DbOption {
    /// History file [default: pipemark/history.db in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, global = true, value_name = "FILE", value_parser = PathBufValueParser::new())]
    pub db: Option<PathBuf>,
}

impl DbOption {
    /// Opens the history for reading; `None` if there is no history at the default path yet.
    ///
    /// # Errors
    /// If it can't be read, or `--db` names a file that doesn't exist.
    pub fn open(&self) -> Result<Option<History>, ExitError> {
        let history = History::open(self.db.as_deref())?;
        match &self.db {
            Some(path) if history.is_none() => Err(ExitError::usage(format_args!(
                "there is no history {}; name an existing one, or create it with 'pipemark run --db FILE'",
                neutral(&path.to_string_lossy())
            ))),
            _ => Ok(history),
        }
    }
}

/// The options for saving a measurement.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "History")]
pub struct KeepOptions {
    /// Label for this measurement, such as before-upgrade
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub label: Option<String>,
    /// Do not save this measurement in the history
    #[arg(long)]
    no_save: bool,
    #[command(flatten)]
    db: DbOption,
}

/// The longest label in characters. Longer labels don't fit in a list.
const MAX_LABEL: usize = 200;

fn label(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0 => Err("the label is empty; omit --label".to_owned()),
        1..=MAX_LABEL => Ok(text.to_owned()),
        length => Err(format!("the label has {length} characters; use at most {MAX_LABEL}")),
    }
}

/// Saves the document. If the history can't be written, only a message is printed, so that the measurement isn't lost.
pub fn save_document(document: &Document, options: &KeepOptions) -> Option<Id> {
    let save = || -> Result<Id, ExitError> {
        let json = document_as(Format::Json, document)?;
        Ok(History::create(options.db.db.as_deref())?.save(document, &json)?)
    };
    let kept = (!options.no_save).then(save)?;
    kept.inspect_err(|error| say(format_args!("pipemark: this measurement was not saved in the history: {error}"))).ok()
}

/// Saves the report of a watched pipeline.
pub fn save_watched_report(report: &PipelineReport) {
    let elapsed = Duration::from_secs_f64(report.seconds);
    let Ok(watched) = report.record() else { return };
    let document = Document {
        suite: "why".to_owned(),
        title: neutral(&report.pipeline),
        started: jiff::Timestamp::now().checked_sub(elapsed).unwrap_or_default().to_string(),
        elapsed_ns: Nanos::from(elapsed).0,
        host: pipemark_host::survey(),
        watched: Some(watched),
        ..empty_document()
    };
    save_pipeline(&document);
}

/// Saves the experiments on a pipeline.
pub fn save_experiments(result: &ExperimentResult) {
    let elapsed = Duration::from_secs_f64(result.seconds);
    let Ok(tuned) = result.record() else { return };
    let document = Document {
        suite: "tune".to_owned(),
        title: result.pipeline.clone(),
        started: jiff::Timestamp::now().checked_sub(elapsed).unwrap_or_default().to_string(),
        elapsed_ns: Nanos::from(elapsed).0,
        host: pipemark_host::survey(),
        tuned: Some(tuned),
        partial: result.interrupted,
        ..empty_document()
    };
    save_pipeline(&document);
}

/// The largest number of measurements with one name that commands are compared with.
const MAX_SAVED: u32 = 100;

/// The commands that `ab` saves in the history.
pub struct SavedCommands;

impl SavedMeasurements for SavedCommands {
    fn save(&self, db: Option<&Path>, document: Document) -> Option<String> {
        let keep = KeepOptions { db: DbOption { db: db.map(Path::to_owned) }, ..KeepOptions::default() };
        let document = Document {
            started: jiff::Timestamp::now().to_string(),
            suite: document.suite,
            title: document.title,
            label: document.label,
            host: document.host,
            commands: document.commands,
            ..empty_document()
        };
        save_document(&document, &keep).map(|id| id.to_string())
    }

    fn load(&self, db: Option<&Path>, name: &str) -> Result<Vec<Document>, ExitError> {
        let Some(history) = (DbOption { db: db.map(Path::to_owned) }).open()? else { return Ok(Vec::new()) };
        let label = Some(name.to_owned());
        let filter = Filter { suite: Some("ab".to_owned()), label, limit: Some(MAX_SAVED), ..Filter::default() };
        let mut documents = Vec::new();
        // A label in a filter is a pattern, and a name isn't.
        for entry in history.list(&filter)?.into_iter().rev().filter(|entry| entry.label.as_deref() == Some(name)) {
            documents.extend(history.document(entry.id)?);
        }
        Ok(documents)
    }
}

fn save_pipeline(document: &Document) {
    if let Some(id) = save_document(document, &KeepOptions::default()) {
        say(format_args!("recorded as run {id}; charts: 'pipemark report {id}'"));
    }
}

/// Renders a document. Text is limited to one screen unless `detail` asks for more. Other formats are always complete.
pub fn render_document(
    format: Format,
    detail: DetailOptions,
    document: &Document,
    kept: Option<Id>,
) -> io::Result<String> {
    if format != Format::Text || detail.all {
        return document_as(format, document);
    }
    if detail.claims {
        return Ok(terminal().render(&sheet::claims(document)));
    }
    // Rows that have no data because of Ctrl-C are removed.
    let mut document = document.clone();
    let all_trials = document.requested().count();
    document.trials.retain(|record| record.stopped != Some(Stopped::Interrupted) || !record.samples.is_empty());
    let reached = document.requested().count();
    if reached < all_trials {
        say(format_args!("interrupted after {reached} of {all_trials} trials; these are the figures so far"));
    }
    let has_claims = document.claims.iter().any(|claim| claim.answer.is_some());
    let pointers = match kept {
        Some(id) => {
            let claims = has_claims.then(|| format!("claims in full: pipemark history show {id} --claims"));
            let tables = format!("all tables: pipemark history show {id} --all");
            claims.into_iter().chain([tables, format!("page: pipemark report {id}")]).collect()
        }
        None if has_claims => vec!["claims in full: --claims".to_owned(), "all tables: --all".to_owned()],
        None => vec!["all tables: --all".to_owned()],
    };
    Ok(terminal().render(&sheet::brief(&document, &pointers)))
}

/// The report page of documents, with the documents embedded.
///
/// # Errors
/// If one of them can't be written as JSON or compressed.
pub fn page(documents: &[Document]) -> io::Result<String> {
    let labels = sheet::labels(documents);
    let attachment = |(index, document): (usize, &Document)| {
        let mut short = document.clone();
        short.trials.iter_mut().for_each(|record| record.samples.clear());
        io::Result::Ok(Attachment {
            file: format!("pipemark-{}.json", index + 1),
            label: if documents.len() > 1 { labels[index].clone() } else { String::new() },
            content: serde_json::to_vec(document)?,
            shorter: serde_json::to_vec(&round_figures(serde_json::to_value(&short)?))?,
        })
    };
    let attachments = documents.iter().enumerate().map(attachment).collect::<io::Result<Vec<_>>>()?;
    html(&sheet::report(documents), &attachments)
}

/// Rounds the figures in the JSON to six digits, which halves its size.
fn round_figures(json: Value) -> Value {
    match json {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().and_then(|figure| format!("{figure:.5e}").parse::<f64>().ok()).into()
        }
        Value::Array(values) => values.into_iter().map(round_figures).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, round_figures(value))).collect(),
        other => other,
    }
}
