//! An end of a run, in its own process: take what is to be done, get ready, warm up, run the window, run out, report.

mod copy;
mod latency;
mod meter;
mod sink;
mod source;
mod text;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use pipeio::send::Content;
use pipeio_harness::pattern::{Pattern, Rule};

use super::channel::{self, Assignment, Done, Reply, Role};
use super::child;
use super::control::Control;
use super::keeper;
use crate::link;
use crate::model::{Cpu, Ends, Job, Mode, Nanos, Pace, PageKind, Verify};

/// What every role works with.
struct End {
    assignment: Assignment,
    control: Control,
    pinned: Option<Vec<Cpu>>,
}

/// Runs as an end: the socket to the parent is standard input.
pub fn main() -> ExitCode {
    // The person's Ctrl-C is for the parent, which ends us when it has kept what was measured.
    let socket = rustix::stdio::stdin();
    let (assignment, descriptors) = match channel::receive::<Assignment>(socket) {
        Ok(Some(received)) => received,
        // The parent is gone.
        Ok(None) => return ExitCode::FAILURE,
        // Someone called the hidden verb by hand: what they typed on is no socket.
        Err(_) => {
            eprintln!("pipemark: '{}' is for pipemark itself; try pipemark --help", channel::END_VERB);
            return ExitCode::from(2);
        }
    };
    if assignment.role == Role::Keeper {
        return keeper::main(&assignment, socket);
    }
    // An end never outlives the one that started it: others of the run may never come.
    if !child::die_with(assignment.parent) {
        return ExitCode::FAILURE;
    }
    let role = assignment.role;
    let reply = catch_unwind(AssertUnwindSafe(|| take_part(assignment, descriptors)))
        .unwrap_or_else(|_| Err(io::Error::other("a bug in pipemark: the process panicked")));
    let reply = match reply {
        Ok(done) => Reply::Done(Box::new(done)),
        Err(error) => Reply::of(&error, &format!("the {} failed: ", role.name())),
    };
    match channel::send(socket, &reply, &[]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn take_part(assignment: Assignment, descriptors: Vec<OwnedFd>) -> io::Result<Done> {
    let mut descriptors = descriptors.into_iter();
    let missing = || io::Error::new(io::ErrorKind::InvalidData, "a descriptor is missing");
    let control = Control::open(descriptors.next().ok_or_else(missing)?)?;
    let pinned = assignment.pin.map(child::pin).transpose()?;
    let end = End { assignment, control, pinned };
    let mut handles = end.assignment.handles.iter().map(|wire| wire.handle(&mut descriptors));
    let mut next = || handles.next().unwrap_or(Err(io::ErrorKind::InvalidData.into()));
    let no_link = || io::Error::new(io::ErrorKind::InvalidData, "no link is named");
    let link = || end.assignment.job.ends().and_then(|ends| link::of(ends.link)).ok_or_else(no_link);
    match (end.assignment.role, end.assignment.job.mode()) {
        (Role::Source, Mode::Throughput) => source::run(&end, link()?, next()?),
        (Role::Sink, Mode::Throughput) => sink::run(&end, link()?, next()?),
        (Role::Source, Mode::Latency) => latency::ping(&end, link()?, next()?, next()?),
        (Role::Sink, Mode::Latency) => latency::pong(&end, link()?, next()?, next()?),
        (Role::Copy | Role::Keeper, _) => copy::run(&end),
    }
}

impl End {
    /// Only jobs with ends are given to ends.
    fn ends(&self) -> &Ends {
        self.assignment.job.ends().expect("a job with ends")
    }

    /// When messages are sent; at once where it is not a conversation.
    fn pace(&self) -> Pace {
        if let Job::RoundTrip(trip) = &self.assignment.job { trip.pace } else { Pace::Gap(Nanos(0)) }
    }

    /// Whether there are stages between source and sink.
    fn chained(&self) -> bool {
        self.assignment.job.chain().is_some()
    }

    /// What a stream of this pair consists of; `stream` tells one from another. Source and sink come to the same answer on
    /// their own.
    fn pattern(&self, stream: u64) -> Pattern {
        let ends = self.ends();
        let seed = self.assignment.seed.wrapping_add(u64::from(self.assignment.pair)).wrapping_add(stream);
        let rule = if ends.verify == Verify::Xor { Rule::Counting } else { Rule::Position { seed } };
        match link::content(ends) {
            Content::Fresh => Pattern::endless(rule),
            Content::Prepared => Pattern::repeating(rule, link::period(ends) as u64),
        }
    }
}

/// Bytes on huge pages, if any were asked for.
fn huge_bytes(ends: &Ends) -> Option<u64> {
    (ends.pages == PageKind::Huge).then(pipeio::memory::huge_bytes)
}

/// The capacity of the link, if it is a pipe.
fn capacity(link: BorrowedFd<'_>) -> Option<u64> {
    pipeio::pipe::capacity(link).ok().map(|bytes| bytes as u64)
}
