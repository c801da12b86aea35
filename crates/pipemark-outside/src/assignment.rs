//! What an end is told before a run, as lines of text.

use std::fmt::Write;
use std::time::Duration;

use pipemark_entrants::contract;
use pipemark_entrants::{Boundaries, RunnableLink};
use pipemark_host::child::Interrupt;
use pipemark_model::{Cpu, WaitPolicy};

use crate::run_directory::RunDirectory;

/// The option that makes the sender's reference code damage the stream, so that a test can show that the damage is
/// found. Every link has it.
const FAULT: &str = "fault";

/// When round trips start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// After this time since the last reply, in nanoseconds.
    Gap(u64),
    /// N round trips per second.
    Rate(u32),
}

/// The settings of a run.
pub struct RunSettings<'a> {
    /// Bytes of a block.
    pub block: u64,
    /// Whether each block has content of its own. Otherwise one block is sent repeatedly.
    pub fresh: bool,
    /// Whether the receiver compares every byte. Otherwise it compares those before the window.
    pub check: bool,
    /// The pace of round trips; `None` for a stream.
    pub round_trips: Option<Pace>,
    /// How the ends wait.
    pub wait: WaitPolicy,
    /// The length of the window.
    pub time: Duration,
    /// The number of senders.
    pub senders: u32,
    /// The number of receivers.
    pub receivers: u32,
    /// The CPUs of senders and of receivers; `None` leaves the choice to the scheduler.
    pub cpus: Option<(Cpu, Cpu)>,
    /// The seed of the content.
    pub seed: u64,
    /// The time limit of the run.
    pub limit: Duration,
    /// The user's interrupt, which ends the run.
    pub interrupt: &'a Interrupt,
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndName {
    pub sender: bool,
    pub index: u32,
}

impl EndName {
    pub(crate) fn role(self) -> &'static str {
        if self.sender { "sender" } else { "receiver" }
    }
}

impl std::fmt::Display for EndName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.role(), self.index)
    }
}

/// The assignment of an end. `progress` is the file in which it counts its bytes, and the offset of the count.
pub(crate) fn text(
    end: EndName,
    link: &RunnableLink,
    settings: &RunSettings<'_>,
    run: &RunDirectory,
    progress: (&str, usize),
) -> String {
    let choice = |whether: bool, yes: &'static str, no: &'static str| if whether { yes } else { no };
    let mut lines = format!("contract {}\n", contract::VERSION);
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(lines, "{key} {value}");
    };
    line("role", &end.role());
    line("index", &end.index);
    line("senders", &settings.senders);
    line("receivers", &settings.receivers);
    line("mode", &choice(settings.round_trips.is_some(), "round-trips", "stream"));
    line("block", &settings.block);
    line("seed", &settings.seed);
    line("content", &choice(settings.fresh, "fresh", "repeated"));
    line("check", &choice(settings.check, "all", "before-the-window"));
    line("boundaries", &choice(link.file.boundaries == Boundaries::Kept, "kept", "lost"));
    line("transfer", &choice(link.link.is_null(), "none", "bytes"));
    line("wait", &settings.wait);
    match settings.round_trips {
        Some(Pace::Rate(rate)) => line("interval", &(1_000_000_000_000 / u64::from(rate.max(1)))),
        Some(Pace::Gap(gap)) => line("gap", &gap),
        None => {}
    }
    // A program of one end is placed before it starts.
    if let (Some((source, sink)), true) = (settings.cpus, link.commands.contains_key("both")) {
        line("cpu", if end.sender { &source } else { &sink });
    }
    line("directory", &run.0.display());
    line("name", &run.name());
    for (option, value) in &link.options {
        match value.split_once('-') {
            Some((kind, at)) if option == FAULT && end.sender => line("fault", &format_args!("{kind} {at}")),
            _ => line("option", &format_args!("{option} {value}")),
        }
    }
    line("progress", &format_args!("{} {}", progress.0, progress.1));
    lines.push('\n');
    lines
}
