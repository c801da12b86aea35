//! Where results go: the options that all verbs which measure share.

use std::collections::HashSet;

use clap::Args;

use crate::show::Destination;

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
    /// Print neither tables nor progress; errors and what goes to FILE or '-' stay
    #[arg(long, short)]
    pub quiet: bool,
}

pub fn destination(text: &str) -> Result<Destination, String> {
    if text.is_empty() {
        return Err("an empty file name; use a file, or - for standard output".to_owned());
    }
    let Ok(destination) = text.parse();
    Ok(destination)
}

impl OutputOptions {
    fn destinations(&self) -> impl Iterator<Item = &Destination> {
        [&self.json, &self.csv, &self.markdown].into_iter().flatten()
    }

    /// Whether an export takes standard output, so that tables have no place there.
    pub fn takes_stdout(&self) -> bool {
        self.destinations().any(|destination| *destination == Destination::Stdout)
    }

    /// Asked before anything is measured.
    ///
    /// # Errors
    /// A sentence, when two exports would be written into each other.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = HashSet::new();
        match self.destinations().find(|destination| !seen.insert(*destination)) {
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
