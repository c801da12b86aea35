//! Guards: two processes that clean up after this process when it ends or is killed. They kill all of its descendants,
//! and remove every file and queue that it named in the system. There are two guards, because one of them may be killed
//! together with this process.
//!
//! Every descendant of this process has a mark of the run in its environment. The guards find descendants in /proc by
//! this mark, even in a process group or a session of their own. Processes that clear their environment or belong to
//! another user are not found.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use crate::child::{Child, ProcessGroup, ourselves};

/// The hidden verb that starts a guard, or the process that starts both guards.
pub const GUARD_VERB: &str = "__guard";

/// The environment variable with the marks of all runs that a process belongs to.
const MARK: &str = "PIPEMARK_RUN";

/// The time limit for killed processes to end.
const MAX_TIME_TO_DIE: Duration = Duration::from_secs(10);
/// The cleanup is complete once no marked process has been found for this time. Without this wait, a process that is
/// just starting could be missed.
const QUIET_TIME: Duration = Duration::from_millis(50);

/// The first word of a directory in the list of names that the guards remove; the rest is its path.
pub const DIRECTORY: &str = "directory";

/// The value of [`MARK`] for this run's processes, and the file from which the guards read the names to remove.
static GUARDED: OnceLock<(OsString, File)> = OnceLock::new();

/// Starts the guards. If this fails, runs still work, but killing this process may leave processes or files behind.
pub fn start() {
    let _ = try_start();
}

fn try_start() -> io::Result<()> {
    let mut random = [0u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let mark = format!("{:032x}", u128::from_le_bytes(random));
    let names = File::from(memfd_create("names", MemfdFlags::CLOEXEC)?);
    let mut command = ourselves(GUARD_VERB);
    command
        .arg(&mark)
        .stdin(pidfd_open(getpid(), PidfdFlags::empty())?)
        .stdout(names.try_clone()?)
        .stderr(Stdio::null());
    // The starter ends at once, so that the guards are not children of this process. A starter that was killed before
    // it had started both guards is started again. More than two guards do no harm.
    for _ in 0..3 {
        let mut starter = Child::start("guard", &mut command, ProcessGroup::Own)?;
        starter.wait(Instant::now() + MAX_TIME_TO_DIE, None).map_err(io::Error::other)?;
        if starter.end().is_some_and(|(status, _)| status.success()) {
            break;
        }
    }
    let mut marks = std::env::var_os(MARK).unwrap_or_default();
    marks.push(" ");
    marks.push(mark);
    let _ = GUARDED.set((marks, names));
    Ok(())
}

/// Adds this run's mark to the environment of `command`, and so to all processes that `command` starts.
pub(super) fn mark(command: &mut Command) {
    if let Some((marks, _)) = GUARDED.get() {
        command.env(MARK, marks);
    }
}

/// Adds `name` to the names that the guards remove once this process has ended, by calling the `remove` of [`main`].
/// `name` must not contain a newline.
pub fn remember(name: &str) {
    if let Some((_, names)) = GUARDED.get() {
        let mut names = names;
        let _ = names.write_all(format!("{name}\n").as_bytes());
    }
}

/// Runs as a guard. Standard input is a pidfd of the guarded process, and standard output the file of names to remove.
pub fn main(words: &[OsString], remove: impl Fn(&str)) -> u8 {
    match words {
        [_, _, mark] => start_two(mark).map_or(1, |()| 0),
        [_, _, mark, _] => guard(mark.as_encoded_bytes(), remove).map_or(1, |()| 0),
        _ => {
            eprintln!("pipemark: '{GUARD_VERB}' is an internal verb; see 'pipemark --help'");
            2
        }
    }
}

fn start_two(mark: &OsString) -> io::Result<()> {
    for number in ["1", "2"] {
        // The guards don't have the outer run's mark. So they survive when the outer run's processes are killed, and
        // can clean up the inner run.
        ourselves(GUARD_VERB).args([mark, &number.into()]).env_remove(MARK).process_group(0).spawn()?;
    }
    Ok(())
}

fn guard(mark: &[u8], remove: impl Fn(&str)) -> io::Result<()> {
    let mut guarded = [PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN)];
    while let Err(error) = poll(&mut guarded, None) {
        if error != Errno::INTR {
            return Err(error.into());
        }
    }
    let names = File::from(rustix::io::dup(rustix::stdio::stdout())?);
    let mut text = vec![0; usize::try_from(names.metadata()?.len()).unwrap_or(0)];
    names.read_exact_at(&mut text, 0)?;
    let text = String::from_utf8_lossy(&text);
    kill_all(mark, QUIET_TIME);
    text.lines().for_each(remove);
    Ok(())
}

/// Kills the remaining processes of this run, as the guards do, in case the guards have been killed.
pub fn kill_remaining() {
    if let Some((marks, _)) = GUARDED.get()
        && let Some(own) = marks.as_encoded_bytes().rsplit(|&byte| byte == b' ').next()
    {
        kill_all(own, Duration::ZERO);
    }
}

/// Kills all processes with this mark until none has been found for `quiet`, or for at most 10 seconds.
fn kill_all(mark: &[u8], quiet: Duration) {
    let begin = Instant::now();
    let mut last_found = begin;
    loop {
        let mut found = false;
        for process in marked(mark) {
            let _ = pidfd_send_signal(process, Signal::KILL);
            found = true;
            last_found = Instant::now();
        }
        if (!found && last_found.elapsed() >= quiet) || begin.elapsed() > MAX_TIME_TO_DIE {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Pidfds of all processes with this mark that haven't ended.
fn marked(mark: &[u8]) -> impl Iterator<Item = OwnedFd> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).filter_map(move |pid| {
        let is_marked = || {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let variables = environment.split(|&byte| byte == 0);
            let marks = variables.filter_map(|variable| variable.strip_prefix(MARK.as_bytes())).next()?;
            marks.split(|&byte| byte == b' ').any(|one| one == mark).then_some(())
        };
        is_marked()?;
        let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // The pid may have been reused between reading the environment and opening the pidfd, so the mark is read
        // again.
        is_marked()?;
        Some(process)
    })
}
