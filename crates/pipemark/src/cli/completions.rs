//! Shell completions and man pages, generated from the description of the command line. `make install` installs them.

use std::io::{self, Write};
use std::path::Path;

use clap_complete::Shell;

use pipemark_console::{Ending, Stop, check_stdout};

use crate::cli::command;

/// Writes a shell's completions to standard output.
pub fn completions(shell: Shell) -> Ending {
    check_stdout()?;
    // Generated in memory first: clap_complete panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "pipemark", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Writes a page for the program and one for each verb into an existing folder.
pub fn man(folder: &Path) -> Ending {
    let failed = |error| Stop::failed(format_args!("cannot write man pages to {}: {error}", folder.display()));
    clap_mangen::generate_to(command(), folder).map_err(failed)
}
