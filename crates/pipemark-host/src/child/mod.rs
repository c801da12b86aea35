//! Child processes: starts them, waits for them and reaps them.
//!
//! [`Child::start`] starts a command in a [`ProcessGroup`]: this program itself ([`ourselves`]) or any other.
//! [`Child::start_foreign`] starts a foreign program (not pipemark) that never outlives pipemark, on one CPU if
//! requested, and keeps the beginning of its standard error. The program can be held before its first instruction, so
//! that counters and clocks start there ([`Child::wait_until_held`], [`Child::release`]).
//!
//! [`Child::wait`] waits until a deadline and reaps the child. [`wait_for_first`] waits for the first of several
//! children to end, without reaping it. [`wait_readable`] waits for sockets and pipes. All three return when the user
//! interrupts. A dropped child is killed with its process group and reaped.

mod descendants;
pub mod error;
pub mod guard;
pub mod interrupt;
pub mod prepared;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use interrupt::wait_failed;
use pipemark_sys::reap::{self, Reap};
use pipemark_sys::usage::{Usage, WaitMode, reap};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group, pidfd_open,
    set_parent_process_death_signal, waitid,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use pipemark_model::Cpu;

pub use descendants::kill_with_descendants;
pub use error::RunError;
pub use interrupt::{Interrupt, wait_readable};
pub use prepared::PreparedChild;

/// The hidden verb that makes this program execute a foreign program.
pub const STAGE_VERB: &str = "__stage";

/// The number of bytes kept of a foreign program's standard error. Further writes fail. So the program can't fill the
/// memory, and never has to wait until pipemark reads.
const MAX_STDERR: usize = 4096;

/// The process group of a child.
#[derive(Debug, Clone, Copy)]
pub enum ProcessGroup<'a> {
    /// A new process group. Ctrl-C doesn't reach the child, and the processes that the child starts are killed with it.
    Own,
    /// The group of another child, which was started with [`ProcessGroup::Own`].
    Of(&'a Child),
    /// The parent's process group.
    Inherited,
}

/// When a foreign program starts to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Immediately.
    AtOnce,
    /// When [`Child::release`] is called.
    Held,
}

/// The command-line argument for [`Begin::Held`].
const HELD: &str = "held";

/// A started process. The kernel doesn't reuse its pid until it is reaped.
#[derive(Debug)]
pub struct Child {
    name: String,
    pid: Pid,
    leads_group: bool,
    stderr: Option<OwnedFd>,
    end: Option<(ExitStatus, Usage)>,
}

/// A command that starts this program again with a hidden verb.
pub fn ourselves(verb: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("pipemark").arg(verb);
    command
}

/// A command that starts a foreign program. The caller adds the foreign program and its arguments. The command starts
/// this program again. That process makes sure that it dies with its parent, binds itself to the CPU, waits if `begin`
/// is [`Begin::Held`], and then executes the foreign program: see [`exec_program`].
pub fn foreign(cpu: Option<Cpu>, begin: Begin) -> Command {
    let mut command = ourselves(STAGE_VERB);
    command
        .arg(getpid().to_string())
        .arg(cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()))
        .arg(if begin == Begin::Held { HELD } else { "at-once" });
    command
}

impl Child {
    /// Starts a process, called `name` in messages.
    ///
    /// # Errors
    /// If no process or memory is available.
    pub fn start(name: impl Into<String>, command: &mut Command, group: ProcessGroup<'_>) -> io::Result<Child> {
        match group {
            ProcessGroup::Own => command.process_group(0),
            ProcessGroup::Of(leader) => command.process_group(leader.pid.as_raw_nonzero().get()),
            ProcessGroup::Inherited => command,
        };
        guard::mark(command);
        let pid = Pid::from_child(&command.spawn()?);
        Ok(Child { name: name.into(), pid, leads_group: matches!(group, ProcessGroup::Own), stderr: None, end: None })
    }

    /// Starts the command `words`, called `name` in messages, with these standard streams and in a new process group.
    /// If the command does not exist, this succeeds and the child exits with code 127.
    ///
    /// # Errors
    /// If no process, descriptor or memory is available.
    pub fn start_foreign(
        name: impl Into<String>,
        words: &[String],
        (input, output): (OwnedFd, OwnedFd),
        cpu: Option<Cpu>,
        begin: Begin,
    ) -> io::Result<Child> {
        let mut command = foreign(cpu, begin);
        command.args(words).stdin(input).stdout(output);
        Child::start_keeping_stderr(name, &mut command)
    }

    /// Starts a process, called `name` in messages, in a new process group. Keeps the beginning of its standard error
    /// for messages.
    ///
    /// # Errors
    /// If no process, descriptor or memory is available.
    pub fn start_keeping_stderr(name: impl Into<String>, command: &mut Command) -> io::Result<Child> {
        // The seal keeps the file at this size.
        let stderr = memfd_create("stderr", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&stderr, MAX_STDERR as u64)?;
        fcntl_add_seals(&stderr, SealFlags::GROW | SealFlags::SHRINK)?;
        command.stderr(stderr.try_clone()?);
        let mut child = Child::start(name, command, ProcessGroup::Own)?;
        child.stderr = Some(stderr);
        Ok(child)
    }

    /// The process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The name used in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The exit status, and the resources used by the process and by the children that it waited for. `None` until the
    /// process is reaped.
    pub fn end(&self) -> Option<(ExitStatus, Usage)> {
        self.end
    }

    /// Describes how the process failed: how it ended, followed by its standard error, as in `ended with exit code 2:
    /// no such option`. `wanted` is the exit code of success.
    pub fn describe_end(&self, wanted: u8) -> String {
        let how = match self.end.map(|(status, _)| (status, status.code())) {
            None => "has not ended".to_owned(),
            Some((_, Some(0))) if wanted == 0 => "ended before its input did".to_owned(),
            Some((_, Some(code))) if wanted != 0 => format!("ended with exit code {code} instead of {wanted}"),
            Some((status, _)) => describe_status(status),
        };
        let stderr = self.stderr_text();
        if stderr.is_empty() { how } else { format!("{how}: {stderr}") }
    }

    /// The resources used by the process, if the process's exit code was 0.
    ///
    /// # Errors
    /// How the process ended, if it failed.
    pub fn succeeded(&self) -> Result<Usage, RunError> {
        match self.end {
            Some((status, usage)) if status.success() => Ok(usage),
            _ => Err(RunError::Failed(format!("{} {}", self.name, self.describe_end(0)))),
        }
    }

    /// The standard error of the process, on one line.
    fn stderr_text(&self) -> String {
        let mut bytes = [0; MAX_STDERR];
        let file = self.stderr.as_ref().and_then(|stderr| stderr.try_clone().ok()).map(File::from);
        let got = file.and_then(|file| file.read_at(&mut bytes, 0).ok()).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..got]);
        text.trim_matches(|c: char| c == '\0' || c.is_whitespace()).replace('\n', "; ")
    }

    /// A descriptor that becomes readable when the process ends. The descriptor is not kept open, because a chain may
    /// have more stages than there are descriptors.
    ///
    /// # Errors
    /// If no descriptor is available.
    pub fn pidfd(&self) -> io::Result<OwnedFd> {
        Ok(pidfd_open(self.pid, PidfdFlags::empty())?)
    }

    /// Waits for the process to end, until the deadline at most. If it has ended, kills the rest of its group and reaps
    /// it. Returns whether it has ended.
    ///
    /// # Errors
    /// If the user interrupts, or the wait fails.
    pub fn wait(&mut self, deadline: Instant, interrupt: Option<&Interrupt>) -> Result<bool, RunError> {
        if wait_for_first([&*self], deadline, interrupt)?.is_some() {
            self.end_now().map_err(wait_failed)?;
        }
        Ok(self.end.is_some())
    }

    /// Waits until a child started with [`Begin::Held`] is ready to execute its program.
    ///
    /// # Errors
    /// If the child is not ready by the deadline, or the user interrupts.
    pub fn wait_until_held(&self, deadline: Instant, interrupt: &Interrupt) -> Result<(), RunError> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.pid), options) {
                Ok(Some(status)) if status.stopped() => return Ok(()),
                Ok(None) | Err(Errno::INTR) if Instant::now() < deadline => {}
                _ => return Err(RunError::Failed(format!("{} did not become ready", self.name))),
            }
            // No descriptor reports a stopped process, so check again shortly.
            wait_readable(&[], Instant::now() + Duration::from_micros(200), Some(interrupt))?;
        }
    }

    /// Lets a held child execute its program.
    pub fn release(&self) {
        let _ = kill_process(self.pid, Signal::CONT);
    }

    /// Kills the process and its group, without reaping the process.
    pub fn kill(&self) {
        if self.end.is_none() {
            let _ = match self.leads_group {
                true => kill_process_group(self.pid, Signal::KILL),
                false => kill_process(self.pid, Signal::KILL),
            };
        }
    }

    /// Kills the process and its group, unless the process has been reaped, and reaps it.
    ///
    /// # Errors
    /// None are known, because the process is a child of this process.
    pub fn end_now(&mut self) -> io::Result<()> {
        if self.end.is_none() {
            // Kill before reaping. Afterwards the pid, which is also the group's id, may belong to another process.
            self.kill();
            self.end = reap(self.pid, WaitMode::Block)?;
        }
        Ok(())
    }

    /// Reaps a child of this process that has ended: this [`Child`] or any other.
    ///
    /// # Errors
    /// None are known besides the outcomes of [`Reap`].
    pub fn reap_this_or_any(&mut self) -> io::Result<Reap> {
        let found = reap::reap()?;
        if let Reap::Ended(reaped) = &found
            && Pid::from_raw(reaped.pid.cast_signed()) == Some(self.pid)
        {
            self.end = Some((reaped.status, reaped.usage));
        }
        Ok(found)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.end_now();
    }
}

/// How a process ended, as a clause to be placed after its name.
pub fn describe_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(9)) => "was killed (SIGKILL) by a user, or because memory ran out".to_owned(),
        (None, Some(31)) => "was killed by a system-call filter (SIGSYS)".to_owned(),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => format!("ended ({status})"),
    }
}

/// Waits until the deadline for the first of `children` to end. Returns its index; `None` at the deadline. The child is
/// not reaped.
///
/// # Errors
/// If the user interrupts, or the wait fails.
pub fn wait_for_first<'c>(
    children: impl IntoIterator<Item = &'c Child>,
    deadline: Instant,
    interrupt: Option<&Interrupt>,
) -> Result<Option<usize>, RunError> {
    let mut pidfds = Vec::new();
    for (place, child) in children.into_iter().enumerate() {
        if child.end.is_some() {
            return Ok(Some(place));
        }
        pidfds.push(child.pidfd().map_err(wait_failed)?);
    }
    wait_readable(&pidfds.iter().map(AsFd::as_fd).collect::<Vec<_>>(), deadline, interrupt)
}

/// Called in the child. Executes the command at the end of `words`. These are: this program, the hidden verb, the
/// parent's pid, the CPU or `-`, when to begin, and the command. Returns only on failure, or if the command is
/// pipemark's relay. In that case, it returns the relay's words.
///
/// # Errors
/// The exit code, if the program could not be started. The reason is already on standard error.
pub fn exec_program(words: &[OsString]) -> Result<Vec<OsString>, u8> {
    let text = |nth: usize| words.get(nth).and_then(|word| word.to_str());
    let (Some(parent), Some(cpu), Some(begin), [_, _, _, _, _, program, arguments @ ..]) =
        (text(2).and_then(|word| word.parse().ok()), text(3), text(4), words)
    else {
        eprintln!("pipemark: '{STAGE_VERB}' is an internal verb; see 'pipemark --help'");
        return Err(2);
    };
    if !die_with_parent(parent) {
        return Err(1);
    }
    if let Ok(cpu) = cpu.parse()
        && let Err(error) = pin(Cpu(cpu))
    {
        let _ = writeln!(std::io::stderr(), "{error}");
        return Err(1);
    }
    if begin == HELD {
        let _ = kill_process(getpid(), Signal::STOP);
    }
    if program == "relay" {
        return Ok(["pipemark".into(), program.clone()].into_iter().chain(arguments.iter().cloned()).collect());
    }
    let error = Command::new(program).args(arguments).exec();
    let _ = writeln!(std::io::stderr(), "could not be started: {error}");
    // The shell's exit codes: 127 if the command is not found, 126 if it cannot be run.
    Err(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Called in the child. Makes the kernel kill this process when its parent ends. Returns whether the parent still
/// exists. If the parent ended before this call, the kernel sends no signal.
pub fn die_with_parent(parent: u32) -> bool {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    getppid().is_some_and(|pid| pid.as_raw_nonzero().get().cast_unsigned() == parent)
}

/// Binds this process to `cpu` and checks that the kernel has done so. Returns a list with `cpu` only.
pub fn pin(cpu: Cpu) -> io::Result<Vec<Cpu>> {
    let mut wanted = CpuSet::new();
    wanted.set(usize::from(cpu.0));
    sched_setaffinity(None, &wanted)
        .map_err(|error| io::Error::new(io::Error::from(error).kind(), format!("CPU {cpu} cannot be used: {error}")))?;
    let got = sched_getaffinity(None)?;
    if got.count() != 1 || !got.is_set(usize::from(cpu.0)) {
        return Err(io::Error::other(format!("CPU {cpu} was requested but not granted")));
    }
    Ok(vec![cpu])
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn a_child_is_waited_for_until_the_deadline_and_no_longer() {
        let mut child = Child::start("sh", &mut shell("sleep 60"), ProcessGroup::Own).unwrap();
        assert_eq!(child.wait(Instant::now() + Duration::from_millis(20), None), Ok(false));
        child.kill();
        assert_eq!(child.wait(soon(), None), Ok(true));
        assert!(child.describe_end(0).starts_with("was killed (SIGKILL)"), "{}", child.describe_end(0));
    }

    #[test]
    fn a_child_s_process_group_is_killed_with_it() {
        let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let mut command = shell("sleep 60 & exit 3");
        let mut child = Child::start("sh", command.stdout(theirs), ProcessGroup::Own).unwrap();
        drop(command);
        assert_eq!(child.wait(soon(), None), Ok(true));
        assert_eq!(child.describe_end(0), "ended with exit code 3");
        // The reader sees the end of the file once no process has the write end open.
        assert_eq!(wait_readable(&[ours.as_fd()], soon(), None), Ok(Some(0)));
    }

    #[test]
    fn the_first_to_end_is_returned_without_being_reaped() {
        let mut children =
            ["sleep 60", "exit 0"].map(|script| Child::start(script, &mut shell(script), ProcessGroup::Own).unwrap());
        assert_eq!(wait_for_first(&children, soon(), None), Ok(Some(1)));
        assert!(children[1].end().is_none());
        assert_eq!(children[1].wait(soon(), None), Ok(true));
        assert!(children[1].end().is_some_and(|(status, _)| status.success()));
    }
}
