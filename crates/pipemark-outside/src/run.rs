//! One run of an outside link.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use pipeio_harness::shared::Shared;
use pipemark_sys::usage::monotonic_ns;

use pipemark_entrants::{FirstEnd, RunnableLink};
use pipemark_host::child::{RunError, wait_readable};
use pipemark_model::{BrokerStats, Cpu, counted};

use crate::assignment::{self, EndName, RunSettings};
use crate::processes::{EndChannel, LinkProcess, RunningBroker};
use crate::report::EndReport;
use crate::run_directory::RunDirectory;

/// For how long bytes flow before the window begins: between ends with one CPU each, and others.
const RUN_IN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(80));

/// How long programs may take to end after they have reported.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an error waits for the death of another program, which may be its cause.
const CAUSE_TIMEOUT: Duration = Duration::from_millis(100);

/// The result of a run.
#[derive(Debug, Clone)]
pub struct LinkRun {
    /// The reports of the senders, then those of the receivers.
    pub ends: Vec<EndReport>,
    /// The resources that the broker used; `None` without a broker.
    pub broker: Option<BrokerStats>,
    /// The time until all programs were ready.
    pub started: Duration,
}

/// Makes one run.
///
/// # Errors
/// If the run failed. No process, file or shared memory of the run remains.
pub fn run(link: &RunnableLink, settings: &RunSettings<'_>) -> Result<LinkRun, RunError> {
    let begin = Instant::now();
    let mut run = RunInProgress::prepare(link, settings)?;
    let outcome = run.start(link, settings).and_then(|()| {
        let started = begin.elapsed();
        run.measure(link, settings).map(|()| started)
    });
    let started = match outcome {
        Ok(started) => started,
        Err(RunError::Failed(reason)) => return Err(RunError::Failed(run.cause(reason))),
        Err(other) => return Err(other),
    };
    for channel in &mut run.channels {
        channel.send("finish\n").map_err(RunError::failed("an end is gone"))?;
    }
    let deadline = Instant::now() + EXIT_TIMEOUT;
    run.programs.iter_mut().try_for_each(|program| program.finish(deadline))?;
    let pinned = |sender: bool| settings.cpus.map(|(source, sink)| if sender { source } else { sink });
    let reports = run.channels.iter().map(|channel| {
        let sender = channel.end.sender;
        channel.lines.report(sender, settings.block, pinned(sender)).map_err(|why| channel.failed(&why))
    });
    let ends = reports.collect::<Result<Vec<EndReport>, RunError>>()?;
    Ok(LinkRun { ends, broker: run.broker.as_ref().map(RunningBroker::used), started })
}

/// A run in progress. Dropping it ends all programs, then removes what they named.
struct RunInProgress {
    programs: Vec<LinkProcess>,
    broker: Option<RunningBroker>,
    channels: Vec<EndChannel>,
    /// The number of bytes that each end has moved.
    progress: Shared,
    /// The ends open the page by this descriptor, so it stays open.
    _page: OwnedFd,
    deadline: Instant,
    directory: RunDirectory,
}

impl RunInProgress {
    /// Makes the pipes to the ends, and writes their assignments into them.
    fn prepare(link: &RunnableLink, settings: &RunSettings<'_>) -> Result<RunInProgress, RunError> {
        let failed = RunError::failed::<io::Error>("the run could not be prepared");
        let prepare = || {
            let directory = RunDirectory::create()?;
            let senders = (0..settings.senders).map(|index| EndName { sender: true, index });
            let receivers = (0..settings.receivers).map(|index| EndName { sender: false, index });
            let (page, progress) = Shared::create((settings.senders + settings.receivers) as usize)?;
            let file = format!("/proc/{}/fd/{}", std::process::id(), page.as_raw_fd());
            let mut channels = Vec::new();
            for (nth, end) in senders.chain(receivers).enumerate() {
                let mut channel = EndChannel::create(end, &directory)?;
                // The first counter of a cache line follows its gate, in eight bytes.
                channel.send(&assignment::text(end, link, settings, &directory, (&file, 64 * nth + 8)))?;
                channels.push(channel);
            }
            Ok((directory, page, progress, channels))
        };
        let (directory, page, progress, channels) = prepare().map_err(failed)?;
        let deadline = Instant::now() + settings.limit;
        Ok(RunInProgress { programs: Vec::new(), broker: None, channels, progress, _page: page, deadline, directory })
    }

    /// Starts the broker, the first end and the other end, each when the one before is there. Then waits until all ends
    /// are ready.
    fn start(&mut self, link: &RunnableLink, settings: &RunSettings<'_>) -> Result<(), RunError> {
        if let (Some(broker), Some(words)) = (&link.file.broker, link.commands.get("broker")) {
            // A broker of ends with a CPU each may use both.
            let cpu = settings.cpus.and_then(|(source, sink)| (source == sink).then_some(source));
            let program = LinkProcess::start("broker", words, &self.directory.0, &self.directory, None, cpu)?;
            self.broker = Some(RunningBroker::start(program, &broker.ready, &self.directory)?);
        }
        if let Some(words) = link.commands.get("both") {
            let cpu = settings.cpus.and_then(|(source, sink)| (source == sink).then_some(source));
            self.start_program("program of both ends", words, link, None, cpu)?;
        } else {
            let sender_first = link.file.first == FirstEnd::Sender;
            for sender in [sender_first, !sender_first] {
                let words = link.commands.get(if sender { "sender" } else { "receiver" });
                let words = words.ok_or_else(|| RunError::Failed("the link has no such program".to_owned()))?;
                let cpu = settings.cpus.map(|(source, sink)| if sender { source } else { sink });
                let ends: Vec<EndName> =
                    self.channels.iter().map(|channel| channel.end).filter(|end| end.sender == sender).collect();
                for end in ends {
                    self.start_program(&end.to_string(), words, link, Some(end), cpu)?;
                }
                self.wait_until(settings, |channel| channel.end.sender != sender || channel.lines.bound)?;
            }
        }
        self.wait_until(settings, |channel| channel.lines.ready)
    }

    fn start_program(
        &mut self,
        name: &str,
        words: &[String],
        link: &RunnableLink,
        role: Option<EndName>,
        cpu: Option<Cpu>,
    ) -> Result<(), RunError> {
        self.programs.push(LinkProcess::start(name, words, &link.directory, &self.directory, role, cpu)?);
        Ok(())
    }

    /// Tells the ends when the window begins and ends, and waits for their reports.
    fn measure(&mut self, link: &RunnableLink, settings: &RunSettings<'_>) -> Result<(), RunError> {
        let apart = settings.cpus.is_some_and(|(source, sink)| source != sink);
        let run_in = if apart { RUN_IN.0 } else { RUN_IN.1 };
        let run_in = run_in.max(link.file.warm_up_time().unwrap_or_default());
        let from = monotonic_ns() + u64::try_from(run_in.as_nanos()).unwrap_or(u64::MAX);
        let until = from.saturating_add(u64::try_from(settings.time.as_nanos()).unwrap_or(u64::MAX));
        for channel in &mut self.channels {
            channel.send(&format!("go {from} {until}\n")).map_err(RunError::failed("an end is gone"))?;
        }
        if self.broker.is_some() {
            for wait in [run_in, settings.time] {
                self.wait_at_most(settings, Instant::now() + wait, |channel| channel.lines.ended)?;
                self.broker.as_mut().into_iter().for_each(RunningBroker::note);
            }
        }
        self.wait_until(settings, |channel| channel.lines.ended)
    }

    /// Waits until all ends are `done`.
    fn wait_until(&mut self, settings: &RunSettings<'_>, done: impl Fn(&EndChannel) -> bool) -> Result<(), RunError> {
        match self.wait_at_most(settings, self.deadline, done)? {
            true => Ok(()),
            false => Err(RunError::Failed(self.describe_hang(settings.limit))),
        }
    }

    /// Waits until all ends are `done`, or until `deadline`. Returns whether they are.
    fn wait_at_most(
        &mut self,
        settings: &RunSettings<'_>,
        deadline: Instant,
        done: impl Fn(&EndChannel) -> bool,
    ) -> Result<bool, RunError> {
        while !self.channels.iter().all(&done) {
            let speaking: Vec<usize> =
                (0..self.channels.len()).filter(|&nth| self.channels[nth].readable().is_some()).collect();
            let channels = speaking.iter().filter_map(|&nth| self.channels[nth].readable());
            let running = self.programs.iter().filter(|program| !program.is_reaped()).chain(self.broker());
            let fds: Vec<BorrowedFd<'_>> = channels.chain(running.map(LinkProcess::pidfd)).collect();
            match wait_readable(&fds, deadline.min(self.deadline), Some(settings.interrupt))? {
                None => return Ok(false),
                Some(nth) if nth < speaking.len() => self.channels[speaking[nth]].read()?,
                Some(_) => self.check_ended_programs()?,
            }
        }
        Ok(true)
    }

    fn broker(&self) -> Option<&LinkProcess> {
        self.broker.as_ref().map(|broker| &broker.program)
    }

    /// Reaps programs that have ended.
    ///
    /// # Errors
    /// If one ended before its ends had reported.
    fn check_ended_programs(&mut self) -> Result<(), RunError> {
        if let Some(broker) = &mut self.broker
            && broker.program.has_ended()
        {
            return Err(RunError::Failed(broker.program.describe_end()));
        }
        for program in &mut self.programs {
            if !program.is_reaped() && program.has_ended() {
                let role = program.role;
                let own = self.channels.iter_mut().filter(|channel| role.is_none_or(|role| role == channel.end));
                for channel in own {
                    channel.read()?;
                    if !channel.lines.ended {
                        return Err(RunError::Failed(program.describe_end()));
                    }
                }
            }
        }
        Ok(())
    }

    /// The cause of a failure: if a program was killed, the others fail shortly before or afterwards.
    fn cause(&mut self, reason: String) -> String {
        let until = Instant::now() + CAUSE_TIMEOUT;
        while Instant::now() < until {
            let all = self.broker.iter_mut().map(|broker| &mut broker.program).chain(&mut self.programs);
            for program in all {
                if program.has_ended() && program.was_killed() {
                    return program.describe_end();
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        reason
    }

    fn describe_hang(&self, limit: Duration) -> String {
        let phase = if self.channels.iter().all(|channel| channel.lines.ready) { "measuring" } else { "getting ready" };
        let mut text = format!("the run was aborted at its limit of {limit:?} while {phase}");
        for (nth, channel) in self.channels.iter().enumerate().filter(|(_, channel)| !channel.lines.ended).take(8) {
            let bytes = usize::try_from(self.progress[nth].words[0].load(Relaxed)).unwrap_or(usize::MAX);
            let state = match (channel.lines.ready, phase) {
                (false, _) => "was not ready".to_owned(),
                (true, _) => format!("had moved {}", counted(bytes, "byte")),
            };
            text.push_str(&format!("; the {} {state}", channel.end));
        }
        text.push_str("; raise --limit if it needs longer");
        text
    }
}
