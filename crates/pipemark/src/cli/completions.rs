//! `pipemark completions`, and man pages for `make install`: what a shell and man(1) have to know, made from the command line's
//! own description. `make install` puts them where they are looked for.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use pipemark_console::{Ending, Stop, check_stdout};

use crate::cli::Cli;

/// What `completions` takes.
#[derive(Debug, Clone, Args)]
pub struct CompletionsOptions {
    /// For which shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Writes the completions to standard output.
pub fn completions(options: &CompletionsOptions) -> Ending {
    check_stdout()?;
    // Generated in memory first: clap_complete panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "pipemark", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Writes a page for the program and one for each verb into an existing folder. The program's own ends with its licence and, where
/// `Cargo.toml` names one, its repository.
pub fn man(folder: &Path) -> Ending {
    let failed = |error| Stop::failed(format_args!("cannot write man pages to {}: {error}", folder.display()));
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    let mut end = format!(".SH LICENSE\n{}\n", env!("CARGO_PKG_LICENSE"));
    let repository = env!("CARGO_PKG_REPOSITORY");
    if !repository.is_empty() {
        end += &format!(".SH \"REPORTING BUGS\"\n{repository}\n");
    }
    let page = OpenOptions::new().append(true).open(folder.join("pipemark.1"));
    page.and_then(|mut page| page.write_all(end.as_bytes())).map_err(failed)
}
