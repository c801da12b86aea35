//! The destinations and formats of results: options that several verbs share.

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
    /// Text for people to read
    #[default]
    #[value(alias = "table")]
    Text,
    /// GitHub's Markdown
    Markdown,
    /// A web page
    Html,
    /// A header line, then a line for each row
    Csv,
    /// All results, on one line
    Json,
    /// OpenMetrics, with a gauge for each estimate. This format and the following ones are only for exports.
    #[value(skip)]
    OpenMetrics,
    /// JSON with a figure for each trial
    #[value(skip)]
    Benchmark,
    /// A matrix of CPUs, as CSV without headings
    #[value(skip)]
    CpuMap,
    /// JSON as hyperfine writes it
    #[value(skip)]
    Hyperfine,
    /// JSON as Bencher reads it
    #[value(skip)]
    Bencher,
}

impl Format {
    /// The format's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Markdown => "Markdown",
            Format::Html => "page",
            Format::Csv => "CSV",
            Format::Json => "JSON",
            Format::OpenMetrics => "OpenMetrics",
            Format::Benchmark => "benchmark JSON",
            Format::CpuMap => "map of CPUs",
            Format::Hyperfine => "hyperfine's JSON",
            Format::Bencher => "Bencher's JSON",
        }
    }

    /// Renders a sheet in this format. `json` is the record that the sheet was made from. If `json` is `None`, the JSON
    /// format has the rows of the sheet's tables.
    pub fn of_sheet(self, sheet: &Sheet, json: Option<&str>) -> io::Result<String> {
        match self {
            Format::Text => Ok(terminal().render(sheet)),
            Format::Markdown => Ok(markdown(sheet)),
            Format::Html => html(sheet, &[]),
            Format::Csv => sheet_as_csv(sheet),
            Format::Json => Ok(json.map_or_else(|| sheet_as_json(sheet), json_line)),
            Format::OpenMetrics | Format::Benchmark | Format::CpuMap | Format::Hyperfine | Format::Bencher => {
                unreachable!("sheets have no such format")
            }
        }
    }
}

/// The option for the format in which results are printed, for every verb that prints results.
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
    let asked = || env_var("COLUMNS")?.parse().ok();
    // Any value of NO_COLOR except an empty one disables colours: no-color.org.
    let coloured =
        stream.is_terminal() && env_var("NO_COLOR").is_none() && env_var("TERM").is_none_or(|kind| kind != "dumb");
    // The first of these variables that is set decides (locale(7)). If none is set, as in containers, assume that the
    // terminal supports UTF-8.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(env_var).map(|locale| locale.to_ascii_lowercase());
    let unicode = locale.is_none_or(|locale| locale.contains("utf-8") || locale.contains("utf8"));
    Terminal {
        width: columns.ok().or_else(asked).filter(|&columns| columns > 0).unwrap_or(80),
        colour: if coloured { Colour::Always } else { Colour::Never },
        characters: if unicode { Characters::Unicode } else { Characters::Ascii },
    }
}

/// The value of an environment variable; `None` if it is unset or empty.
fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The options of verbs that measure or compare, for exports. Exports are written in addition to what is printed.
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
    /// The destinations of all exports with their formats.
    pub fn targets(&self) -> Targets<'_> {
        let mut targets =
            Targets { exports: Vec::new(), format: self.format.format, quiet: self.quiet, stdout_taken: false };
        targets.add(&[(&self.json, Format::Json), (&self.csv, Format::Csv), (&self.markdown, Format::Markdown)]);
        targets
    }

    /// Prints a sheet. Writes no exports.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn print(&self, sheet: &Sheet) -> Result<(), OutputError> {
        self.format.print(sheet, None)
    }

    /// Writes a sheet to all targets. `json` is the record that the sheet was made from.
    ///
    /// # Errors
    /// If one of the targets cannot be written. A message has then already been printed.
    pub fn write(&self, sheet: &Sheet, json: &str) -> VerbResult {
        self.targets().write(|format| format.of_sheet(sheet, Some(json)))
    }
}

/// The formats to write and their destinations. Exports come first, then the printed format.
pub struct Targets<'a> {
    exports: Vec<(&'a Destination, Format)>,
    format: Format,
    quiet: bool,
    /// Whether JSON lines are written to standard output during the measurement.
    stdout_taken: bool,
}

impl<'a> Targets<'a> {
    /// Adds the exports that have a destination. Skips the others.
    pub fn add(&mut self, exports: &[(&'a Option<Destination>, Format)]) {
        self.exports.extend(exports.iter().filter_map(|(destination, format)| Some((destination.as_ref()?, *format))));
    }

    /// Marks standard output as taken if `lines` are written there during the measurement.
    pub fn with_lines(mut self, lines: Option<&Destination>) -> Targets<'a> {
        self.stdout_taken = lines == Some(&Destination::Stdout);
        self
    }

    /// The destinations of the exports.
    pub fn destinations(&self) -> Vec<&'a Destination> {
        self.exports.iter().map(|(destination, _)| *destination).collect()
    }

    /// The format printed on standard output; `None` with --quiet or if another output uses standard output.
    pub fn printed(&self) -> Option<Format> {
        let taken =
            self.stdout_taken || self.exports.iter().any(|(destination, _)| **destination == Destination::Stdout);
        let unwanted = self.quiet && self.format == Format::Text;
        (!taken && !unwanted).then_some(self.format)
    }

    /// All formats and destinations. The printed format comes last.
    fn all(&self) -> impl Iterator<Item = (&'a Destination, Format)> {
        let printed = self.printed().map(|format| (&Destination::Stdout, format));
        self.exports.iter().copied().chain(printed)
    }

    /// Checks before the measurement that no two exports have the same destination.
    ///
    /// # Errors
    /// A message, if two exports have the same destination.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        if self.stdout_taken {
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
            Some((file, _)) => Err(format!("two exports write to the file '{file}'; give each export its own file")),
        }
    }

    /// Checks, before several sessions are measured, that each format can represent several sessions.
    ///
    /// # Errors
    /// A message, if a format cannot.
    pub fn check_sessions(&self) -> Result<(), String> {
        let mut forms = self.all().map(|(_, form)| form);
        match forms.find(|form| !matches!(form, Format::Json | Format::Text)) {
            None => Ok(()),
            Some(form) => Err(format!(
                "{} can hold only one session; with --sessions, use --json, or 'pipemark history show' for each session",
                form.name()
            )),
        }
    }

    /// Checks before the measurement that the files can be written.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn check_files(&self) -> Result<(), OutputError> {
        self.all().try_for_each(|(destination, format)| destination.check(format.name()))
    }

    /// Writes each target; `content` renders a format. After a failure, reports it and writes the other targets.
    ///
    /// # Errors
    /// If one of the targets cannot be written.
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

/// Parses a file name, or `-` for standard output.
pub fn destination(text: &str) -> Result<Destination, String> {
    if text.is_empty() {
        return Err("the file name is empty; use a file, or - for standard output".to_owned());
    }
    let Ok(destination) = text.parse();
    Ok(destination)
}
