//! Where results go and in which format, and how they are kept: the options that verbs share.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;

use clap::builder::PathBufValueParser;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::console::{say, say_error};
use super::{Ending, Stop, exit};
use crate::export::{self, Destination, OutputError};
use crate::model::{Document, Stopped};
use crate::render::{self, Attachment, Characters, Colour, Terminal};
use crate::sheet::{self, Sheet};
use crate::store::{History, Id};

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    #[value(alias = "table")]
    Text,
    /// GitHub's Markdown
    Markdown,
    /// A page
    Html,
    /// A heading and a line for each row
    Csv,
    /// One line with everything
    Json,
    /// A gauge for each estimate; an export only, like the next
    #[value(skip)]
    OpenMetrics,
    /// A figure for each trial
    #[value(skip)]
    Benchmark,
}

impl Format {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Markdown => "Markdown",
            Format::Html => "page",
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::OpenMetrics => "OpenMetrics",
            Format::Benchmark => "benchmark JSON",
        }
    }

    /// A sheet in this format. `json` is the record that it was made of; without, JSON has the rows of its tables.
    pub fn of_sheet(self, sheet: &Sheet, json: Option<&str>) -> io::Result<String> {
        match self {
            Format::Text => Ok(terminal().render(sheet)),
            Format::Markdown => Ok(render::markdown(sheet)),
            Format::Html => render::html(sheet, &[]),
            Format::Csv => export::sheet_as_csv(sheet),
            Format::Json => Ok(json.map_or_else(|| export::sheet_as_json(sheet), export::json_line)),
            Format::OpenMetrics | Format::Benchmark => unreachable!("exports of documents"),
        }
    }

    /// A measurement in this format.
    pub fn of_document(self, document: &Document) -> io::Result<String> {
        match self {
            Format::Text | Format::Markdown => self.of_sheet(&sheet::document(document), None),
            Format::Html => page(std::slice::from_ref(document)),
            Format::Csv => export::csv(document),
            Format::Json => export::json(document),
            Format::OpenMetrics => export::openmetrics(document),
            Format::Benchmark => export::benchmark_json(document),
        }
    }
}

/// How results are printed: for every verb that prints any.
#[derive(Debug, Clone, Default, Args)]
pub struct FormatOption {
    /// How to print results
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: Format,
}

impl FormatOption {
    /// Prints a sheet, as [`Format::of_sheet`] has it.
    ///
    /// # Errors
    /// When standard output takes no more.
    pub fn print(&self, sheet: &Sheet, json: Option<&str>) -> Result<(), OutputError> {
        Destination::Stdout.write(self.format.name(), self.format.of_sheet(sheet, json))
    }
}

/// The terminal that standard output is; elsewhere COLUMNS columns, or 80.
pub fn terminal() -> Terminal {
    terminal_of(&io::stdout())
}

/// The terminal that a stream is, likewise.
pub fn terminal_of(stream: &(impl AsFd + IsTerminal)) -> Terminal {
    let columns = rustix::termios::tcgetwinsize(stream).map(|size| usize::from(size.ws_col));
    let asked = || set("COLUMNS")?.parse().ok();
    // NO_COLOR is set to anything: no-color.org.
    let coloured = stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|kind| kind != "dumb");
    // The first of these that is set decides (locale(7)); where none is, as in containers, terminals know UTF-8.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).map(|locale| locale.to_ascii_lowercase());
    let unicode = locale.is_none_or(|locale| locale.contains("utf-8") || locale.contains("utf8"));
    Terminal {
        width: columns.ok().or_else(asked).filter(|&columns| columns > 0).unwrap_or(80),
        colour: if coloured { Colour::Always } else { Colour::Never },
        characters: if unicode { Characters::Unicode } else { Characters::Ascii },
    }
}

/// A variable of the environment that is not empty.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where results go besides what is printed: for verbs that measure or compare.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct ExportOptions {
    /// Write everything as JSON to FILE, or to standard output for '-'
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    json: Option<Destination>,
    /// Write one line per trial as CSV
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    csv: Option<Destination>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    markdown: Option<Destination>,
    #[command(flatten)]
    format: FormatOption,
    /// Print no tables and no progress, only errors and what goes to FILE or '-'
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where measurements go, and whether they are kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    #[command(flatten)]
    pub export: ExportOptions,
    /// Write the estimates as OpenMetrics text, such as for node_exporter's textfile collector
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    openmetrics: Option<Destination>,
    /// Write one figure per trial as github-action-benchmark reads it (customBiggerIsBetter)
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    benchmark_json: Option<Destination>,
    /// Print every table, figure and finding instead of one screen
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub keep: KeepOptions,
}

impl ExportOptions {
    /// What is to be written where.
    pub fn targets(&self) -> Targets<'_> {
        let mut targets = Targets { exports: Vec::new(), format: self.format.format, quiet: self.quiet };
        targets.add(&[(&self.json, Format::Json), (&self.csv, Format::Csv), (&self.markdown, Format::Markdown)]);
        targets
    }

    /// Writes a sheet wherever it is wanted. `json` is the record that it was made of.
    ///
    /// # Errors
    /// When one of them can't be written, which is said.
    pub fn write(&self, sheet: &Sheet, json: &str) -> Ending {
        self.targets().write(|format| format.of_sheet(sheet, Some(json)))
    }
}

impl OutputOptions {
    /// What is to be written where.
    pub fn targets(&self) -> Targets<'_> {
        let mut targets = self.export.targets();
        targets.add(&[(&self.openmetrics, Format::OpenMetrics), (&self.benchmark_json, Format::Benchmark)]);
        targets
    }
}

/// What is to be written where, in order: the exports, and what is printed.
pub struct Targets<'a> {
    exports: Vec<(&'a Destination, Format)>,
    format: Format,
    quiet: bool,
}

impl<'a> Targets<'a> {
    fn add(&mut self, exports: &[(&'a Option<Destination>, Format)]) {
        self.exports.extend(exports.iter().filter_map(|(destination, format)| Some((destination.as_ref()?, *format))));
    }

    /// Where the exports go.
    pub fn destinations(&self) -> Vec<&'a Destination> {
        self.exports.iter().map(|(destination, _)| *destination).collect()
    }

    /// The format in which results are printed, if they are: not where an export takes standard output.
    pub fn printed(&self) -> Option<Format> {
        let taken = self.exports.iter().any(|(destination, _)| **destination == Destination::Stdout);
        let unwanted = self.quiet && self.format == Format::Text;
        (!taken && !unwanted).then_some(self.format)
    }

    /// All of them, what is printed last.
    fn all(&self) -> impl Iterator<Item = (&'a Destination, Format)> {
        let printed = self.printed().map(|format| (&Destination::Stdout, format));
        self.exports.iter().copied().chain(printed)
    }

    /// Asked before anything is measured: whether two exports would be written into each other.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        match self.exports.iter().find(|(destination, _)| !seen.insert(*destination)) {
            None if seen.contains(&Destination::Stdout) && self.format != Format::Text => {
                Err("--format and an export to '-' both want standard output; leave one of them out".to_owned())
            }
            None => Ok(()),
            Some((Destination::Stdout, _)) => {
                Err("two exports want standard output ('-'); write one of them to a file".to_owned())
            }
            Some((file, _)) => Err(format!("two exports want the file '{file}'; give each its own")),
        }
    }

    /// Asked before several sessions are measured: whether each form can hold them.
    ///
    /// # Errors
    /// A sentence.
    pub fn check_sessions(&self) -> Result<(), String> {
        let mut forms = self.all().map(|(_, form)| form);
        match forms.find(|form| !matches!(form, Format::Json | Format::Text)) {
            None => Ok(()),
            Some(form) => Err(format!(
                "{} holds one session, and --sessions makes several; use --json, or 'pipemark history show' for each",
                form.name()
            )),
        }
    }

    /// Asked before anything is measured: whether the files can be written.
    ///
    /// # Errors
    /// When one can't.
    pub fn check_files(&self) -> Result<(), OutputError> {
        self.all().try_for_each(|(destination, format)| destination.check(format.name()))
    }

    /// Writes what `content` makes in each format. What can't be written is said, and the others are written all the same.
    ///
    /// # Errors
    /// When one of them can't be written.
    pub fn write(&self, content: impl Fn(Format) -> io::Result<String>) -> Ending {
        let mut ending = Ok(());
        for (destination, format) in self.all() {
            if let Err(error) = destination.write(format.name(), content(format)) {
                say_error(error);
                ending = Err(Stop::code(exit::FAILED));
            }
        }
        ending
    }
}

/// Which history: for every verb that has to do with it.
#[derive(Debug, Clone, Default, Args)]
pub struct DbOption {
    /// The history's file [default: $XDG_DATA_HOME/pipemark/history.db, or in ~/.local/share]
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new())]
    pub db: Option<PathBuf>,
}

/// Whether and how a measurement is kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "History")]
pub struct KeepOptions {
    /// What to call this measurement, such as before-upgrade; lists and charts show it
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub label: Option<String>,
    /// Do not keep this measurement in the history
    #[arg(long)]
    no_save: bool,
    #[command(flatten)]
    db: DbOption,
}

/// Longer ones fit no list.
const LONGEST_LABEL: usize = 200;

fn label(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0 => Err("an empty label; leave --label out".to_owned()),
        1..=LONGEST_LABEL => Ok(text.to_owned()),
        length => Err(format!("a label of {length} characters; use at most {LONGEST_LABEL}")),
    }
}

/// Keeps the document. A measurement is not lost because its history cannot be written: that is a sentence, no failure.
pub fn keep(document: &Document, options: &KeepOptions) -> Option<Id> {
    let save = || -> Result<Id, Stop> {
        let json = Format::Json.of_document(document)?;
        Ok(History::create(options.db.db.as_deref())?.save(document, &json)?)
    };
    let kept = (!options.no_save).then(save)?;
    kept.inspect_err(|error| say(format_args!("pipemark: this measurement is not kept in the history: {error}"))).ok()
}

/// A document as it is printed: as text one screen of it, unless all was asked for.
pub fn printed(format: Format, all: bool, document: &Document, kept: Option<Id>) -> io::Result<String> {
    if format != Format::Text || all {
        return format.of_document(document);
    }
    // Ctrl-C leaves rows that have nothing in them.
    let mut document = document.clone();
    let all_trials = document.trials.len();
    document.trials.retain(|record| record.stopped != Some(Stopped::Interrupted) || !record.samples.is_empty());
    if document.trials.len() < all_trials {
        let reached = document.trials.len();
        say(format_args!("interrupted: {reached} of {all_trials} trials were measured; these are the figures so far"));
    }
    let pointers = match kept {
        Some(id) => {
            vec![format!("all tables: pipemark history show {id} --all"), format!("page: pipemark report {id}")]
        }
        None => vec!["all tables: --all".to_owned()],
    };
    Ok(terminal().render(&sheet::brief(&document, &pointers)))
}

/// The report of documents as a page that carries them.
///
/// # Errors
/// When one of them can't be written as JSON, or packed.
pub fn page(documents: &[Document]) -> io::Result<String> {
    let labels = sheet::labels(documents);
    let attachment = |(index, document): (usize, &Document)| {
        let mut short = document.clone();
        short.trials.iter_mut().for_each(|record| record.samples.clear());
        io::Result::Ok(Attachment {
            file: format!("pipemark-{}.json", index + 1),
            label: if documents.len() > 1 { labels[index].clone() } else { String::new() },
            content: serde_json::to_vec(document)?,
            shorter: serde_json::to_vec(&rounded(serde_json::to_value(&short)?))?,
        })
    };
    let attachments = documents.iter().enumerate().map(attachment).collect::<io::Result<Vec<_>>>()?;
    render::html(&sheet::report(documents), &attachments)
}

/// With figures of six digits, which take half of the space.
fn rounded(json: Value) -> Value {
    match json {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().and_then(|figure| format!("{figure:.5e}").parse::<f64>().ok()).into()
        }
        Value::Array(values) => values.into_iter().map(rounded).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, rounded(value))).collect(),
        other => other,
    }
}

/// A file, or `-`.
pub fn destination(text: &str) -> Result<Destination, String> {
    if text.is_empty() {
        return Err("an empty file name; use a file, or - for standard output".to_owned());
    }
    let Ok(destination) = text.parse();
    Ok(destination)
}
