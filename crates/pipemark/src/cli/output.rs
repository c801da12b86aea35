//! Where results go and in which format: the options that verbs share.

use std::collections::HashSet;
use std::io::{self, IsTerminal};

use clap::{Args, ValueEnum};

use super::keep::KeepOptions;
use crate::export::{self, Destination, OutputError};
use crate::model::Document;
use crate::render::{self, Attachment, Characters, Colour, Terminal};
use crate::sheet::{self, Sheet};
use crate::store::Id;

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

/// The terminal that standard output is, or 80 columns.
pub fn terminal() -> Terminal {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
    // NO_COLOR is set to anything: no-color.org.
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let coloured = io::stdout().is_terminal() && !unwanted;
    Terminal {
        width: columns.ok().filter(|&columns| columns > 0).unwrap_or(80),
        colour: if coloured { Colour::Always } else { Colour::Never },
        characters: Characters::Unicode,
    }
}

/// Where results go besides what is printed: for verbs that measure or compare.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct ExportOptions {
    /// Write everything as JSON to FILE, or to standard output for '-'
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub json: Option<Destination>,
    /// Write one line per trial as CSV
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub csv: Option<Destination>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub markdown: Option<Destination>,
    #[command(flatten)]
    pub format: FormatOption,
    /// Print neither tables nor progress; errors and what goes to FILE or '-' stay
    #[arg(long, short)]
    pub quiet: bool,
}

impl ExportOptions {
    /// What is to be written where, besides what is printed.
    pub fn exports(&self) -> impl Iterator<Item = (&Destination, Format)> {
        let wanted = [(&self.json, Format::Json), (&self.csv, Format::Csv), (&self.markdown, Format::Markdown)];
        wanted.into_iter().filter_map(|(destination, format)| Some((destination.as_ref()?, format)))
    }

    /// The format in which results are printed, if they are: not where an export takes standard output.
    pub fn printed(&self) -> Option<Format> {
        let taken = self.exports().any(|(destination, _)| *destination == Destination::Stdout);
        let unwanted = self.quiet && self.format.format == Format::Text;
        (!taken && !unwanted).then_some(self.format.format)
    }

    /// Writes a sheet wherever it is wanted, as [`Format::of_sheet`] has it.
    ///
    /// # Errors
    /// When one of them can't be written.
    pub fn write(&self, sheet: &Sheet, json: &str) -> Result<(), OutputError> {
        let printed = self.printed().map(|format| (&Destination::Stdout, format));
        for (destination, format) in self.exports().chain(printed) {
            destination.write(format.name(), format.of_sheet(sheet, Some(json)))?;
        }
        Ok(())
    }

    /// Asked before anything is measured.
    ///
    /// # Errors
    /// A sentence, when two exports, of these and `others`, would be written into each other.
    pub fn check<'a>(&'a self, others: impl IntoIterator<Item = &'a Destination>) -> Result<(), String> {
        let mut seen = HashSet::new();
        let all = || self.exports().map(|(destination, _)| destination);
        let others: Vec<&Destination> = others.into_iter().collect();
        let twice = all().chain(others.iter().copied()).find(|destination| !seen.insert(*destination));
        let taken = seen.contains(&Destination::Stdout);
        match twice {
            None if taken && self.format.format != Format::Text => {
                Err("--format and an export to '-' both want standard output; leave one of them out".to_owned())
            }
            None => Ok(()),
            Some(Destination::Stdout) => {
                Err("two exports want standard output ('-'); write one of them to a file".to_owned())
            }
            Some(Destination::File(file)) => {
                Err(format!("two exports want the file '{}'; give each its own", file.display()))
            }
        }
    }
}

/// Where measurements go.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    #[command(flatten)]
    pub export: ExportOptions,
    /// Write the estimates as OpenMetrics text, such as for node_exporter's textfile collector
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub openmetrics: Option<Destination>,
    /// Write one figure per trial as github-action-benchmark reads it (customBiggerIsBetter)
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub benchmark_json: Option<Destination>,
    /// Print all tables with all figures and findings, not the one screen of the most telling
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub keep: KeepOptions,
}

/// A way to write a document: what it is called, and the text.
pub type Writer = (&'static str, fn(&Document) -> io::Result<String>);

impl OutputOptions {
    /// Whether tables and progress are unwanted.
    pub fn quiet(&self) -> bool {
        self.export.quiet
    }

    /// What is to be written where, besides what is printed.
    pub fn exports(&self) -> Vec<(&Destination, Writer)> {
        let own = self.export.exports().map(|(destination, format)| (destination, writer(format)));
        let others: [(&Option<Destination>, Writer); 2] = [
            (&self.openmetrics, ("OpenMetrics", export::openmetrics)),
            (&self.benchmark_json, ("benchmark JSON", export::benchmark_json)),
        ];
        let others = others.into_iter().filter_map(|(destination, writer)| Some((destination.as_ref()?, writer)));
        own.chain(others).collect()
    }

    /// The format in which results are printed, if they are.
    pub fn printed(&self) -> Option<Format> {
        let taken =
            [&self.openmetrics, &self.benchmark_json].into_iter().flatten().any(|to| *to == Destination::Stdout);
        self.export.printed().filter(|_| !taken)
    }

    /// As [`ExportOptions::check`].
    pub fn check(&self) -> Result<(), String> {
        self.export.check(self.openmetrics.iter().chain(&self.benchmark_json))
    }
}

/// How a document is written in a format.
pub fn writer(format: Format) -> Writer {
    let write: fn(&Document) -> io::Result<String> = match format {
        Format::Text => |document| Ok(terminal().render(&sheet::document(document))),
        Format::Markdown => |document| Ok(render::markdown(&sheet::document(document))),
        Format::Html => |document| page(std::slice::from_ref(document)),
        Format::Csv => export::csv,
        Format::Json => export::json,
    };
    (format.name(), write)
}

/// A document as it is printed: as text one screen of it, unless all was asked for.
pub fn printed(format: Format, all: bool, document: &Document, kept: Option<Id>) -> io::Result<String> {
    if format != Format::Text || all {
        return writer(format).1(document);
    }
    let pointers = match kept {
        Some(id) => {
            vec![format!("all tables: pipemark history show {id} --all"), format!("page: pipemark report {id}")]
        }
        None => vec!["all tables: --all".to_owned()],
    };
    Ok(terminal().render(&sheet::brief(document, &pointers)))
}

/// The report of documents as a page that carries them.
///
/// # Errors
/// When one of them can't be written as JSON, or packed.
pub fn page(documents: &[Document]) -> io::Result<String> {
    let attachment = |(index, document): (usize, &Document)| {
        let mut short = document.clone();
        short.trials.iter_mut().for_each(|record| record.samples.clear());
        io::Result::Ok(Attachment {
            file: format!("pipemark-{}.json", index + 1),
            label: if documents.len() > 1 { format!("{}. {}", index + 1, document.suite) } else { String::new() },
            content: serde_json::to_vec(document)?,
            shorter: serde_json::to_vec(&short)?,
        })
    };
    let attachments = documents.iter().enumerate().map(attachment).collect::<io::Result<Vec<_>>>()?;
    render::html(&sheet::report(documents), &attachments)
}

/// A file, or `-`.
pub fn destination(text: &str) -> Result<Destination, String> {
    if text.is_empty() {
        return Err("an empty file name; use a file, or - for standard output".to_owned());
    }
    let Ok(destination) = text.parse();
    Ok(destination)
}
