//! `pipemark report`: results as a page that can be mailed, or as charts in the terminal.

use std::collections::HashSet;

use clap::Args;

use pipemark_console::{Destination, ExitError, VerbResult, destination, say, terminal};
use pipemark_model::{Document, neutral};
use pipemark_report::sheet;

use crate::cli::output::{DbOption, page};
use crate::cli::read;

/// The most documents that one page can distinguish.
const MAX_FILES: usize = 12;

/// What `report` takes.
#[derive(Debug, Clone, Args)]
pub struct ReportOptions {
    /// Run numbers or labels of the history, or JSON files; - is standard input [default: the newest run]
    #[arg(value_name = "RUN|FILE")]
    files: Vec<String>,
    /// Write the page to FILE; '-' is standard output
    #[arg(long, short, value_name = "FILE|-", value_parser = destination, default_value = "report.html")]
    output: Destination,
    /// Draw the main charts in the terminal instead
    #[arg(long, conflicts_with = "output")]
    terminal: bool,
    #[command(flatten)]
    db: DbOption,
}

/// Writes the page, or draws the charts.
pub fn run(options: &ReportOptions) -> VerbResult {
    let documents = documents(&options.files, &options.db)?;
    if options.terminal {
        Destination::Stdout.write("charts", Ok(terminal().render(&sheet::main_charts(&documents))))?;
    } else {
        read::refuse_to_replace(&options.files, &[&options.output])?;
        options.output.write("report", page(&documents))?;
        if let Destination::File(_) = options.output {
            say(format_args!("wrote {}", options.output));
        }
    }
    Ok(())
}

fn documents(files: &[String], db: &DbOption) -> Result<Vec<Document>, ExitError> {
    if files.is_empty() {
        return Ok(vec![read::kept(None, db)?]);
    }
    if files.len() > MAX_FILES {
        let sentence = format_args!("{} files are too many for one page; name at most {MAX_FILES}", files.len());
        return Err(ExitError::usage(sentence));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = files.iter().find(|file| !seen.insert(*file)) {
        return Err(ExitError::usage(format_args!("'{}' is named twice; name each file once", neutral(twice))));
    }
    files.iter().map(|file| read::measurement(file, db)).collect()
}
