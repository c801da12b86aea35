//! Shell completions and man pages, generated from the description of the command line. `make install` installs them.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use clap_complete::Shell;

use pipemark_console::{ExitError, VerbResult, check_stdout};

use crate::cli::command;

/// Writes a shell's completions to standard output.
pub fn completions(shell: Shell) -> VerbResult {
    check_stdout()?;
    // The script is generated in memory first, because clap_complete panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "pipemark", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Writes a man page for the program and one for each verb into an existing directory. The program's page ends with its
/// licence and, if `Cargo.toml` names one, its repository.
pub fn man(directory: &Path) -> VerbResult {
    let failed = |error| ExitError::failed(format_args!("cannot write man pages to {}: {error}", directory.display()));
    clap_mangen::generate_to(command(), directory).map_err(failed)?;
    let mut end = format!(".SH LICENSE\n{}\n", env!("CARGO_PKG_LICENSE"));
    let repository = env!("CARGO_PKG_REPOSITORY");
    if !repository.is_empty() {
        end += &format!(".SH \"REPORTING BUGS\"\n{repository}\n");
    }
    let page = OpenOptions::new().append(true).open(directory.join("pipemark.1"));
    page.and_then(|mut page| page.write_all(end.as_bytes())).map_err(failed)
}
