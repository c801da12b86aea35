//! Where results go: the options that all verbs which measure share.

use std::collections::HashSet;

use clap::{Args, ValueEnum};

use super::keep::KeepOptions;
use super::measure::{colour, terminal_width};
use crate::show::{BenchmarkJson, Csv, Destination, Form, Format, Json, Markdown, OpenMetrics, Table};

/// Where results go besides the table.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Write everything as JSON to FILE, or to standard output for '-'
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub json: Option<Destination>,
    /// Write one line per trial as CSV
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub csv: Option<Destination>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub markdown: Option<Destination>,
    /// Write the estimates as OpenMetrics text, such as for node_exporter's textfile collector
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub openmetrics: Option<Destination>,
    /// Write one figure per trial as github-action-benchmark reads it (customBiggerIsBetter)
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub benchmark_json: Option<Destination>,
    #[command(flatten)]
    pub format: FormatOption,
    /// Print neither tables nor progress; errors and what goes to FILE or '-' stay
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub keep: KeepOptions,
}

/// How results are printed: for every verb that prints any.
#[derive(Debug, Clone, Default, Args)]
pub struct FormatOption {
    /// How to print results
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: FormatName,
}

/// The choices of `--format`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// For people
    #[default]
    Table,
    /// GitHub's Markdown
    Markdown,
    /// A heading and a line for each row
    Csv,
    /// One line with everything
    Json,
}

impl FormatOption {
    /// The form, fit for this terminal.
    pub fn form(&self) -> Form {
        match self.format {
            FormatName::Table => Form::Table(Table { width: terminal_width(), colour: colour() }),
            FormatName::Markdown => Form::Markdown,
            FormatName::Csv => Form::Csv,
            FormatName::Json => Form::Json,
        }
    }
}

pub fn destination(text: &str) -> Result<Destination, String> {
    if text.is_empty() {
        return Err("an empty file name; use a file, or - for standard output".to_owned());
    }
    let Ok(destination) = text.parse();
    Ok(destination)
}

impl OutputOptions {
    /// What is to be written where, besides what is printed.
    pub fn exports(&self) -> impl Iterator<Item = (&Destination, &dyn Format)> {
        let wanted: [(&Option<Destination>, &dyn Format); 5] = [
            (&self.json, &Json),
            (&self.csv, &Csv),
            (&self.markdown, &Markdown),
            (&self.openmetrics, &OpenMetrics),
            (&self.benchmark_json, &BenchmarkJson),
        ];
        wanted.into_iter().filter_map(|(destination, format)| Some((destination.as_ref()?, format)))
    }

    /// Whether an export takes standard output, so that tables have no place there.
    pub fn takes_stdout(&self) -> bool {
        self.exports().any(|(destination, _)| *destination == Destination::Stdout)
    }

    /// Asked before anything is measured.
    ///
    /// # Errors
    /// A sentence, when two exports would be written into each other.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        match self.exports().find(|(destination, _)| !seen.insert(*destination)) {
            None if self.takes_stdout() && self.format.format != FormatName::Table => {
                Err("--format and an export to '-' both want standard output; leave one of them out".to_owned())
            }
            None => Ok(()),
            Some((Destination::Stdout, _)) => {
                Err("two exports want standard output ('-'); write one of them to a file".to_owned())
            }
            Some((Destination::File(file), _)) => {
                Err(format!("two exports want the file '{}'; give each its own", file.display()))
            }
        }
    }
}
