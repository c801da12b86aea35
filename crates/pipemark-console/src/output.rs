//! Where results go and in which format: the options that verbs share.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use clap::{Args, ValueEnum};

use pipemark_show::{Characters, Colour, Sheet, Terminal, html, json_line, markdown, sheet_as_csv, sheet_as_json};

use crate::destination::{Destination, OutputError};
use crate::ending::{ExitError, VerbResult, exit, say_error};

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    #[value(alias = "table")]
    Text,
    /// GitHub's Markdown
    Markdown,
    /// A web page
    Html,
    /// A heading line, then a line for each row
    Csv,
    /// All results, on one line
    Json,
    /// A gauge for each estimate; an export only, like the next
    #[value(skip)]
    OpenMetrics,
    /// A figure for each trial
    #[value(skip)]
    Benchmark,
    /// As hyperfine writes it
    #[value(skip)]
    Hyperfine,
    /// As Bencher reads it
    #[value(skip)]
    Bencher,
}

impl Format {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Markdown => "Markdown",
            Format::Html => "page",
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::OpenMetrics => "OpenMetrics",
            Format::Benchmark => "benchmark JSON",
            Format::Hyperfine => "hyperfine's JSON",
            Format::Bencher => "Bencher's JSON",
        }
    }

    /// A sheet in this format. `json` is the record that it was made from; without it, JSON has the rows of the sheet's
    /// tables.
    pub fn of_sheet(self, sheet: &Sheet, json: Option<&str>) -> io::Result<String> {
        match self {
            Format::Text => Ok(terminal().render(sheet)),
            Format::Markdown => Ok(markdown(sheet)),
            Format::Html => html(sheet, &[]),
            Format::Csv => sheet_as_csv(sheet),
            Format::Json => Ok(json.map_or_else(|| sheet_as_json(sheet), json_line)),
            Format::OpenMetrics | Format::Benchmark | Format::Hyperfine | Format::Bencher => {
                unreachable!("sheets have no such format")
            }
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
    /// Prints a sheet: see [`Format::of_sheet`].
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn print(&self, sheet: &Sheet, json: Option<&str>) -> Result<(), OutputError> {
        Destination::Stdout.write(self.format.name(), self.format.of_sheet(sheet, json))
    }
}

/// The properties of the terminal at standard output: see [`terminal_of`].
pub fn terminal() -> Terminal {
    terminal_of(&io::stdout())
}

/// The properties of the terminal at a stream. Without a terminal, the width is COLUMNS, or 80.
pub fn terminal_of(stream: &(impl AsFd + IsTerminal)) -> Terminal {
    let columns = rustix::termios::tcgetwinsize(stream).map(|size| usize::from(size.ws_col));
    let asked = || set("COLUMNS")?.parse().ok();
    // NO_COLOR may have any value: no-color.org.
    let coloured = stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|kind| kind != "dumb");
    // The first of these that is set decides (locale(7)). If none is, as in containers, terminals support UTF-8.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).map(|locale| locale.to_ascii_lowercase());
    let unicode = locale.is_none_or(|locale| locale.contains("utf-8") || locale.contains("utf8"));
    Terminal {
        width: columns.ok().or_else(asked).filter(|&columns| columns > 0).unwrap_or(80),
        colour: if coloured { Colour::Always } else { Colour::Never },
        characters: if unicode { Characters::Unicode } else { Characters::Ascii },
    }
}

/// The value of an environment variable, unless it is empty.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where results go in addition to standard output: for verbs that measure or compare.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct ExportOptions {
    /// Write all results as JSON to FILE; '-' is standard output
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    json: Option<Destination>,
    /// Write the results as CSV
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    csv: Option<Destination>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    markdown: Option<Destination>,
    #[command(flatten)]
    format: FormatOption,
    /// Print no tables and no progress, only errors and exports
    #[arg(long, short)]
    pub quiet: bool,
}

impl ExportOptions {
    /// The formats to write, and where.
    pub fn targets(&self) -> Targets<'_> {
        let mut targets = Targets { exports: Vec::new(), format: self.format.format, quiet: self.quiet, taken: false };
        targets.add(&[(&self.json, Format::Json), (&self.csv, Format::Csv), (&self.markdown, Format::Markdown)]);
        targets
    }

    /// Prints a sheet, and nothing else.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn print(&self, sheet: &Sheet) -> Result<(), OutputError> {
        self.format.print(sheet, None)
    }

    /// Writes a sheet to all targets. `json` is the record that it was made from.
    ///
    /// # Errors
    /// If one of them cannot be written; that is already reported.
    pub fn write(&self, sheet: &Sheet, json: &str) -> VerbResult {
        self.targets().write(|format| format.of_sheet(sheet, Some(json)))
    }
}

/// The formats to write, and where, in order: the exports, then what is printed.
pub struct Targets<'a> {
    exports: Vec<(&'a Destination, Format)>,
    format: Format,
    quiet: bool,
    /// Whether JSON lines are written to standard output during the measurement.
    taken: bool,
}

impl<'a> Targets<'a> {
    /// Adds the exports that have a destination.
    pub fn add(&mut self, exports: &[(&'a Option<Destination>, Format)]) {
        self.exports.extend(exports.iter().filter_map(|(destination, format)| Some((destination.as_ref()?, *format))));
    }

    /// Marks standard output as taken if `lines` are written there during the measurement.
    pub fn with_lines(mut self, lines: Option<&Destination>) -> Targets<'a> {
        self.taken = lines == Some(&Destination::Stdout);
        self
    }

    /// The destinations of the exports.
    pub fn destinations(&self) -> Vec<&'a Destination> {
        self.exports.iter().map(|(destination, _)| *destination).collect()
    }

    /// The format in which results are printed; `None` if they are not, because of --quiet or because standard output
    /// is taken.
    pub fn printed(&self) -> Option<Format> {
        let taken = self.taken || self.exports.iter().any(|(destination, _)| **destination == Destination::Stdout);
        let unwanted = self.quiet && self.format == Format::Text;
        (!taken && !unwanted).then_some(self.format)
    }

    /// All formats and destinations; what is printed comes last.
    fn all(&self) -> impl Iterator<Item = (&'a Destination, Format)> {
        let printed = self.printed().map(|format| (&Destination::Stdout, format));
        self.exports.iter().copied().chain(printed)
    }

    /// Checks, before anything is measured, that no two exports have the same destination.
    ///
    /// # Errors
    /// A message, if the check fails.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        if self.taken {
            seen.insert(&Destination::Stdout);
        }
        match self.exports.iter().find(|(destination, _)| !seen.insert(*destination)) {
            None if seen.contains(&Destination::Stdout) && self.format != Format::Text => {
                Err("--format and an export to '-' both write to standard output; omit one".to_owned())
            }
            None => Ok(()),
            Some((Destination::Stdout, _)) => {
                Err("two exports write to standard output ('-'); write one of them to a file".to_owned())
            }
            Some((file, _)) => Err(format!("two exports write to the file '{file}'; give each its own")),
        }
    }

    /// Checks, before several sessions are measured, that each format can hold them.
    ///
    /// # Errors
    /// A message, if the check fails.
    pub fn check_sessions(&self) -> Result<(), String> {
        let mut forms = self.all().map(|(_, form)| form);
        match forms.find(|form| !matches!(form, Format::Json | Format::Text)) {
            None => Ok(()),
            Some(form) => Err(format!(
                "{} holds a single session; with --sessions, use --json, or 'pipemark history show' for each",
                form.name()
            )),
        }
    }

    /// Checks, before anything is measured, that the files can be written.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn check_files(&self) -> Result<(), OutputError> {
        self.all().try_for_each(|(destination, format)| destination.check(format.name()))
    }

    /// Writes the `content` of each format. Failures are reported, and the other formats are still written.
    ///
    /// # Errors
    /// If one of them cannot be written.
    pub fn write(&self, content: impl Fn(Format) -> io::Result<String>) -> VerbResult {
        let written: Vec<Result<(), OutputError>> =
            self.all().map(|(destination, format)| destination.write(format.name(), content(format))).collect();
        let others = if written.iter().any(Result::is_ok) { ". Other outputs are complete" } else { "" };
        let mut ending = Ok(());
        for error in written.into_iter().filter_map(Result::err) {
            say_error(format_args!("{error}{others}"));
            ending = Err(ExitError::code(exit::FAILED));
        }
        ending
    }
}

/// Parses a file name or `-`.
pub fn destination(text: &str) -> Result<Destination, String> {
    if text.is_empty() {
        return Err("the file name is empty; use a file, or - for standard output".to_owned());
    }
    let Ok(destination) = text.parse();
    Ok(destination)
}
