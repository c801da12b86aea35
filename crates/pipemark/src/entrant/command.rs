//! Running a tool to its end, within a time and with its output kept: for versions and builds, not for measuring.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// Runs `words` in `folder` with both outputs going to `output`.
///
/// # Errors
/// When it cannot be started, or has not ended within `limit`: then it is killed with all its processes.
pub(super) fn run(words: &[String], folder: &Path, output: &File, limit: Duration) -> io::Result<ExitStatus> {
    let [program, arguments @ ..] = words else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0)
        .spawn()?;
    let ended = wait(&child, limit);
    if !matches!(ended, Ok(true)) {
        // The group has the child's id, which is not given away before the child is reaped.
        let _ = kill_process_group(pid(&child), Signal::KILL);
    }
    let status = child.wait()?;
    match ended? {
        true => Ok(status),
        false => Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {limit:?}"))),
    }
}

/// Whether the child ended within the limit; it is left to be reaped.
fn wait(child: &Child, limit: Duration) -> io::Result<bool> {
    let watch: OwnedFd = pidfd_open(pid(child), PidfdFlags::empty())?;
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    // A signal that interrupts starts the time anew; those we get end this program.
    rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&limit)))
        .map(|ready| ready > 0)
        .map_err(io::Error::from)
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}
