//! The stages of a chain: started between the links, watched, ended with the run, each named should it fail.
//!
//! A stage is a foreign program, which knows nothing of us. So this program is started in its place, arranges that it dies
//! with the run, where it runs and when, and then becomes the stage. The processes of a pipeline of lines are started in
//! the same way.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pipeio_harness::usage::{Patience, Usage, reap};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group, pidfd_open,
    set_parent_process_death_signal, waitid,
};

use super::interrupt::Interrupt;
use super::pair::{RunError, Setting};
use crate::link::{Ends, Handle};
use crate::model::{Cpu, Params, Stage, StageStats};

/// The word that makes this program a stage.
pub const STAGE_VERB: &str = "__stage";

/// How much is kept of what a stage says on standard error. What it writes beyond is refused, so that no stage fills the
/// memory, and none waits for us to read.
const STDERR: usize = 4096;

/// How long after the failure of an end the stage behind it may take to be gone.
const MOMENT: Duration = Duration::from_millis(200);

/// Becomes the stage that `words` (the hidden verb, the parent's number, the CPU or -, when, and the command) say. Returns only
/// if the stage is this program itself, with the words that it is to be called by, or if it failed.
///
/// # Errors
/// The exit code, when the stage could not be started; the reason is on standard error by then.
pub fn become_stage(words: &[OsString]) -> Result<Vec<OsString>, ExitCode> {
    let text = |nth: usize| words.get(nth).and_then(|word| word.to_str());
    let (Some(parent), Some(cpu), Some(begin), [_, _, _, _, _, program, arguments @ ..]) =
        (text(2).and_then(|word| word.parse().ok()).and_then(Pid::from_raw), text(3), text(4), words)
    else {
        eprintln!("pipemark: '{STAGE_VERB}' is for pipemark itself; try pipemark --help");
        return Err(ExitCode::from(2));
    };
    // A stage never outlives the run. If that was gone before this call, nobody would send the signal.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != Some(parent) {
        return Err(ExitCode::FAILURE);
    }
    if let Ok(cpu) = cpu.parse()
        && let Err(error) = super::end::pin(Cpu(cpu))
    {
        eprintln!("{error}");
        return Err(ExitCode::FAILURE);
    }
    if begin == HELD {
        let _ = kill_process(getpid(), Signal::STOP);
    }
    if program == "relay" {
        return Ok(["pipemark".into(), program.clone()].into_iter().chain(arguments.iter().cloned()).collect());
    }
    let error = Command::new(program).args(arguments).exec();
    eprintln!("could not be started: {error}");
    // As a shell has it: not found, or found and not to be run.
    Err(ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }))
}

/// When a program begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// As soon as it can.
    AtOnce,
    /// When its stopped process is sent SIGCONT.
    Held,
}

/// The word of [`Begin::Held`].
const HELD: &str = "held";

/// The command that starts this program in the place of a stage, whose words are the arguments to add.
pub(super) fn command(cpu: Option<Cpu>, begin: Begin) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("pipemark")
        .arg(STAGE_VERB)
        .arg(getpid().to_string())
        .arg(cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()))
        .arg(if begin == Begin::Held { HELD } else { "at-once" });
    command
}

/// A running stage. Its number stays its own until it is reaped; dropping it ends it and what it started.
pub(super) struct Running {
    name: String,
    pid: Pid,
    stderr: OwnedFd,
    end: Option<(ExitStatus, Usage)>,
}

/// The stages of a run, from the source on. Dropping them ends them.
#[derive(Default)]
pub struct Stages {
    list: Vec<Running>,
    /// The code that each has to end with.
    exit: u8,
}

impl Stages {
    /// Starts a chain that reads from `first`; `link` makes each of the links behind a stage. Returns the stages and the
    /// last link's end. The CPUs take turns, so that each link joins two of them.
    ///
    /// # Errors
    /// When there is no process, descriptor or memory to be had, or the person asks to stop meanwhile. That a command does
    /// not exist shows in its end.
    pub fn start(
        params: &Params,
        first: Handle,
        setting: &Setting<'_>,
        mut link: impl FnMut() -> Result<Ends, RunError>,
    ) -> Result<(Stages, Handle), RunError> {
        let mut stages = Stages { list: Vec::new(), exit: params.exit };
        let mut last = first;
        for position in 0..params.length as usize {
            if setting.interrupt.requested() {
                return Err(RunError::Interrupted);
            }
            let next = link()?;
            let (Handle::Fd(input), Handle::Fd(output)) = (last, next.source) else {
                return Err(RunError::Failed("a chain needs links with descriptors".to_owned()));
            };
            let cpu = setting.cpus.map(|(source, sink)| if position % 2 == 0 { sink } else { source });
            let stage = params.stage.at(position);
            stages.add(stage, input, output, cpu).map_err(|error| {
                RunError::Failed(format!(
                    "stage {} of {} ({stage}) could not be started: {error}",
                    position + 1,
                    params.length
                ))
            })?;
            last = next.sink;
        }
        Ok((stages, last))
    }

    fn add(&mut self, stage: &Stage, input: OwnedFd, output: OwnedFd, cpu: Option<Cpu>) -> io::Result<()> {
        self.list.push(Running::start(stage.to_string(), stage.words(), (input, output), cpu, Begin::AtOnce)?);
        Ok(())
    }

    /// Waits until all have ended, as they do when their input has.
    ///
    /// # Errors
    /// The first stage that did not end well, or did not end in time.
    pub fn finish(&mut self, deadline: Instant, interrupt: &Interrupt) -> Result<Vec<StageStats>, RunError> {
        let count = self.list.len();
        for position in 0..count {
            let stage = &mut self.list[position];
            if !stage.wait(deadline, interrupt)? {
                let name = stage.called(position, count);
                return Err(RunError::Failed(format!(
                    "{name} had not ended when the run reached its limit, though its input had; raise --limit if it only needs longer"
                )));
            }
        }
        match self.culprit(|status| status.code() != Some(i32::from(self.exit))) {
            Some(sentence) => Err(RunError::Failed(sentence)),
            None => {
                Ok(self.list.iter().filter_map(|stage| stage.end.as_ref().map(|(_, usage)| stats(usage))).collect())
            }
        }
    }

    /// An end that fails, because its link broke, may have a stage behind it that did so first: then that is the reason.
    pub fn reason_behind(&mut self, reason: String) -> String {
        let until = Instant::now() + MOMENT;
        while !self.list.is_empty() {
            for stage in self.list.iter_mut().filter(|stage| stage.end.is_none()) {
                let _ = stage.reap(Patience::Look);
            }
            // Those before it die of the pipe that it broke, or go on if they do not write.
            if let Some(sentence) = self.culprit(|status| status.signal() != Some(Signal::PIPE.as_raw())) {
                return format!("{sentence}; {reason}");
            }
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        reason
    }

    /// The first stage that ended in such a way, in a sentence.
    fn culprit(&self, guilty: impl Fn(ExitStatus) -> bool) -> Option<String> {
        let ended =
            self.list.iter().enumerate().filter_map(|(position, stage)| Some((position, stage, stage.end.as_ref()?.0)));
        let (position, stage, status) = ended.into_iter().find(|&(_, _, status)| guilty(status))?;
        Some(format!("{} {}", stage.called(position, self.list.len()), stage.how(status, self.exit)))
    }
}

fn stats(usage: &Usage) -> StageStats {
    StageStats {
        user_ns: usage.user_ns,
        sys_ns: usage.sys_ns,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
    }
}

impl Running {
    /// Starts `words`, which people know as `name`, with these standard streams.
    pub(super) fn start(
        name: String,
        words: &[String],
        (input, output): (OwnedFd, OwnedFd),
        cpu: Option<Cpu>,
        begin: Begin,
    ) -> io::Result<Running> {
        // Sealed at its size, it takes so many bytes and no more.
        let stderr = memfd_create("stderr", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&stderr, STDERR as u64)?;
        fcntl_add_seals(&stderr, SealFlags::GROW | SealFlags::SHRINK)?;
        let child = command(cpu, begin)
            .args(words)
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(stderr.try_clone()?))
            // A group of its own: Ctrl-C is for the parent, and what the stage starts ends with it.
            .process_group(0)
            .spawn()?;
        Ok(Running { name, pid: Pid::from_child(&child), stderr, end: None })
    }

    /// Its process.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// What people know it as.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How it ended and what it used, once it has been waited for.
    pub(super) fn end(&self) -> Option<(ExitStatus, Usage)> {
        self.end
    }

    /// `ended with exit code 2: what it said`, where `wanted` was another.
    pub(super) fn how(&self, status: ExitStatus, wanted: u8) -> String {
        let how = match (status.code(), status.signal()) {
            (Some(0), _) if wanted == 0 => "ended before its input did".to_owned(),
            (Some(code), _) if wanted != 0 => format!("ended with exit code {code} instead of {wanted}"),
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => format!("ended ({status})"),
        };
        let said = self.said();
        if said.is_empty() { how } else { format!("{how}: {said}") }
    }

    fn called(&self, position: usize, count: usize) -> String {
        format!("stage {} of {count} ({})", position + 1, self.name)
    }

    /// Waits for the end and takes it; false if it did not come in time.
    pub(super) fn wait(&mut self, deadline: Instant, interrupt: &Interrupt) -> Result<bool, RunError> {
        let failed = |error: io::Error| RunError::Failed(format!("a stage could not be waited for: {error}"));
        if self.end.is_some() {
            return Ok(true);
        }
        let process = pidfd_open(self.pid, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            let mut fds = [PollFd::new(interrupt, PollFlags::IN), PollFd::new(&process, PollFlags::IN)];
            match poll(&mut fds, Some(&left)) {
                Ok(0) => return Ok(false),
                Ok(_) if !fds[0].revents().is_empty() => return Err(RunError::Interrupted),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        self.reap(Patience::Wait).map_err(failed)?;
        Ok(true)
    }

    /// Takes the end, if it has come or is waited for. What the stage started and left behind goes with it.
    fn reap(&mut self, patience: Patience) -> io::Result<()> {
        let look = if patience == Patience::Look { WaitIdOptions::NOHANG } else { WaitIdOptions::empty() };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | look;
        if retry_on_intr(|| waitid(WaitId::Pid(self.pid), options))?.is_none() {
            return Ok(());
        }
        // Before it is reaped: then its number, which is its group's as well, may belong to another.
        let _ = kill_process_group(self.pid, Signal::KILL);
        if let Some(end) = reap(self.pid, patience)? {
            self.end = Some(end);
        }
        Ok(())
    }

    /// What it said on standard error, on one line.
    fn said(&self) -> String {
        let mut bytes = [0; STDERR];
        let file = self.stderr.as_fd().try_clone_to_owned().map(File::from);
        let got = file.and_then(|file| file.read_at(&mut bytes, 0)).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..got]);
        text.trim_matches(|c: char| c == '\0' || c.is_whitespace()).replace('\n', "; ")
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        // All at once, and only then wait: each that dies would make its neighbours work once more.
        for stage in self.list.iter().filter(|stage| stage.end.is_none()) {
            let _ = kill_process_group(stage.pid, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.end.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = reap(self.pid, Patience::Wait);
        }
    }
}
