//! `pipemark report`: results as a single HTML file, or as charts in the terminal.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use clap::Args;

use pipemark_console::{Destination, ExitError, VerbResult, destination, say, terminal};
use pipemark_model::{Document, neutral};
use pipemark_report::sheet;
use pipemark_stats::diff;

use crate::cli::output::{DbOption, page};
use crate::cli::read;

/// The maximum number of documents on one page. More documents could not be distinguished.
const MAX_FILES: usize = 12;

/// The options of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportOptions {
    /// Run numbers or labels of the history, or JSON files; - is standard input [default: the newest run]
    #[arg(value_name = "RUN|FILE")]
    files: Vec<String>,
    /// Write the page to FILE; '-' is standard output [default: report.html, unless another program's file has that
    /// name]
    #[arg(long, short, value_name = "FILE|-", value_parser = destination)]
    output: Option<Destination>,
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
        let output = options.output.clone().map_or_else(default_page, Ok)?;
        read::refuse_to_replace(&options.files, &[&output])?;
        output.write("report", page(&documents))?;
        if let Destination::File(_) = output {
            say(format_args!("wrote {output}"));
        }
    }
    Ok(())
}

/// The file to write if the user names none. Only an earlier report is replaced.
fn default_page() -> Result<Destination, ExitError> {
    let path = Path::new("report.html");
    match fs::symlink_metadata(path) {
        Ok(metadata) if !(metadata.is_file() && is_report(path)) => {
            Err(ExitError::usage("report.html exists and isn't a report of pipemark; name another file with --output"))
        }
        _ => Ok(Destination::File(path.to_owned())),
    }
}

/// Whether pipemark wrote the page at `path`.
fn is_report(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(GENERATOR)
}

/// The number of bytes at the start of a page that are searched for the name of the program that wrote the page.
const HEAD: u64 = 64 << 10;
const GENERATOR: &str = "<meta name=\"generator\" content=\"pipemark ";

fn documents(files: &[String], db: &DbOption) -> Result<Vec<Document>, ExitError> {
    if files.is_empty() {
        return Ok(vec![read::saved_document(None, db)?]);
    }
    if files.len() > MAX_FILES {
        let sentence = format_args!("{} files are too many for one page; name at most {MAX_FILES}", files.len());
        return Err(ExitError::usage(sentence));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = files.iter().find(|file| !seen.insert(*file)) {
        return Err(ExitError::usage(format_args!("'{}' is named twice; name each file once", neutral(twice))));
    }
    let measurement = |file: &String| {
        let document = read::measurement(file, db)?;
        let name = neutral(file);
        diff::check(&document).map_err(|fault| ExitError::usage(format_args!("{name}: {fault}")))?;
        Ok(document)
    };
    files.iter().map(measurement).collect()
}
