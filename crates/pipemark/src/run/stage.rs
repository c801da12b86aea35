//! One stage of a person's pipeline: a shell that dies with the program that started it.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// The hidden verb: `pipemark __stage PARENT COMMAND`.
pub const STAGE_VERB: &str = "__stage";

/// The command that starts a stage.
pub(super) fn command(text: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(STAGE_VERB).arg(getpid().as_raw_nonzero().to_string()).arg(text);
    command
}

/// Becomes the shell. The signal that ends it with its parent stays over the exec.
pub fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(2).collect();
    let [parent, text] = words.as_slice() else {
        eprintln!("pipemark: '{STAGE_VERB}' is for pipemark itself; try pipemark --help");
        return ExitCode::from(2);
    };
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // A parent that died before the signal was asked for sends none.
    let alive = getppid().is_some_and(|now| parent.to_str() == Some(now.as_raw_nonzero().to_string().as_str()));
    if !alive {
        return ExitCode::FAILURE;
    }
    let error = Command::new("/bin/sh").arg("-c").arg(text).exec();
    eprintln!("pipemark: /bin/sh could not be started: {error}");
    ExitCode::from(127)
}
