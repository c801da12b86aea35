//! Two processes that end what this one leaves behind when it ends or is killed: whatever it started, however far down, and
//! what has a name in the system. Two, because one of them may be killed with it.
//!
//! Every process that comes of this one has a mark of its run in its environment, which is how it is found in /proc, be it in a
//! group or a session of its own. What clears its environment, or belongs to another user, is not found.

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

/// The word that makes this program a guard, or what starts two of them.
pub const GUARD_VERB: &str = "__guard";

/// The variable with the marks of all runs that a process comes of.
const MARK: &str = "PIPEMARK_RUN";

/// How long killed processes may take to end, and how long none has to be found: one may be just about to start.
const DEATH: Duration = Duration::from_secs(10);
const QUIET: Duration = Duration::from_millis(50);

/// The marks for the processes of this run, and where its guards read.
static GUARDED: OnceLock<(OsString, File)> = OnceLock::new();

/// Starts the guards. Without them a run goes as well, and only a kill of this process may leave something.
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
    // It ends at once, so that the guards are nobody's children here. Where it was killed before it had started both it is
    // started again: more than two do no harm.
    for _ in 0..3 {
        let mut starter = Child::start("guard", &mut command, ProcessGroup::Own)?;
        starter.wait(Instant::now() + DEATH, None).map_err(io::Error::other)?;
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

/// Marks what `command` starts.
pub(super) fn mark(command: &mut Command) {
    if let Some((marks, _)) = GUARDED.get() {
        command.env(MARK, marks);
    }
}

/// Has the guards remove what goes by this name, when this process has ended: a line for [`main`].
pub fn remember(name: &str) {
    if let Some((_, names)) = GUARDED.get() {
        let mut names = names;
        let _ = names.write_all(format!("{name}\n").as_bytes());
    }
}

/// Runs as a guard, with a descriptor of the guarded process as standard input and what is to be removed as output.
pub fn main(words: &[OsString], remove: impl Fn(&str)) -> u8 {
    match words {
        [_, _, mark] => start_two(mark).map_or(1, |()| 0),
        [_, _, mark, _] => guard(mark.as_encoded_bytes(), remove).map_or(1, |()| 0),
        _ => {
            eprintln!("pipemark: '{GUARD_VERB}' is for pipemark itself; try pipemark --help");
            2
        }
    }
}

fn start_two(mark: &OsString) -> io::Result<()> {
    for number in ["1", "2"] {
        // Whoever kills the processes of an outer run leaves the guards, who see to those of the inner.
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
    kill_all(mark, QUIET);
    text.lines().for_each(remove);
    Ok(())
}

/// Ends what is left of this run, as the guards would: they may have been killed.
pub fn end_all() {
    if let Some((marks, _)) = GUARDED.get()
        && let Some(own) = marks.as_encoded_bytes().rsplit(|&byte| byte == b' ').next()
    {
        kill_all(own, Duration::ZERO);
    }
}

/// Kills all processes with this mark until none has been found for so long.
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
        if (!found && last_found.elapsed() >= quiet) || begin.elapsed() > DEATH {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// All processes with this mark that haven't ended.
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
        // The number may have become another's in between.
        is_marked()?;
        Some(process)
    })
}
