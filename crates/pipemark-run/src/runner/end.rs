//! An end of a run, in a separate process. It receives its assignment, prepares, warms up, measures during the window,
//! drains the link and replies.

mod latency;
mod lines_source;
mod memory_copy;
mod meter;
mod sink;
mod source;
mod writers;

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use meter::SimulatedWork;
use pipeio_harness::pattern::{Pattern, Rule};
use pipeio_harness::send::BlockContent;

use pipemark_host::child;
use pipemark_model::{Cpu, Delay, EndStats, Ends, Job, PageKind, Verify};

use crate::link;
use crate::runner::channel::{self, Assignment, Done, EndRole, Reply};
use crate::runner::control::Control;
use crate::runner::keeper;
pub(super) use latency::{MAX_NS, summary};

/// The state that all roles use.
struct TrialEnd {
    assignment: Assignment,
    ends: Ends,
    control: Control,
    pinned: Option<Vec<Cpu>>,
}

/// The main function of an end. Standard input is the socket to the parent.
pub fn main() -> u8 {
    // The parent handles Ctrl-C: it saves the measurements, and then ends this process.
    let socket = rustix::stdio::stdin();
    let (assignment, descriptors) = match channel::receive::<Assignment>(socket) {
        Ok(Some(received)) => received,
        // The parent has closed the socket.
        Ok(None) => return 1,
        // A user called the hidden verb, so standard input isn't a socket.
        Err(_) => {
            eprintln!("pipemark: '{}' is an internal verb; see 'pipemark --help'", channel::END_VERB);
            return 2;
        }
    };
    if assignment.role == EndRole::Keeper {
        return keeper::main(&assignment, socket);
    }
    // An end dies with its parent. Otherwise it could wait forever at the barrier for another end that is gone.
    if !child::die_with_parent(assignment.parent) {
        return 1;
    }
    let role = assignment.role;
    let done = catch_unwind(AssertUnwindSafe(|| run_role(assignment, descriptors)))
        .unwrap_or_else(|_| Err(io::Error::other("a bug in pipemark: the process panicked")));
    let reply = match done {
        Ok(done) => Reply::Done(Box::new(done)),
        Err(error) => Reply::of(&error, &format!("the {} failed: ", role.name())),
    };
    channel::send(socket, &reply, &[]).map_or(1, |()| 0)
}

fn run_role(assignment: Assignment, descriptors: Vec<OwnedFd>) -> io::Result<Done> {
    let missing = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{what} is missing"));
    let mut descriptors = descriptors.into_iter();
    let control = Control::open(descriptors.next().ok_or_else(|| missing("the shared page"))?)?;
    let pinned = assignment.pin.map(child::pin).transpose()?;
    let ends = assignment.job.ends().ok_or_else(|| missing("the link"))?.clone();
    let mut handles = assignment.handles.clone().into_iter().map(|wire| wire.handle(&mut descriptors));
    let mut next = || handles.next().unwrap_or_else(|| Err(missing("an end of the link")));
    let end = TrialEnd { assignment, ends, control, pinned };
    let Some(link) = link::of(end.ends.link) else { return memory_copy::run(&end) };
    match (end.assignment.role, &end.assignment.job) {
        (EndRole::Source, Job::RoundTrip(trip)) => latency::run_requester(&end, trip.pace, link, next()?, next()?),
        (_, Job::RoundTrip(_)) => latency::run_responder(&end, link, next()?, next()?),
        (EndRole::Source, _) if end.ends.writers > 1 => writers::write(&end, next()?.fd()?),
        (_, _) if end.ends.writers > 1 => writers::read(&end, next()?.fd()?),
        (EndRole::Source, _) => source::run(&end, link, next()?),
        (_, _) => sink::run(&end, link, next()?),
    }
}

impl TrialEnd {
    /// Whether there are stages between source and sink. If so, the whole stream is measured, because stages may buffer
    /// bytes or change their number.
    fn chained(&self) -> bool {
        self.assignment.job.chain().is_some()
    }

    /// The content of stream number `stream` of this pair. Source and sink each compute it.
    fn pattern(&self, stream: u64) -> Pattern {
        let seed = self.assignment.seed.wrapping_add(u64::from(self.assignment.pair)).wrapping_add(stream);
        let rule = if self.ends.verify == Verify::Xor { Rule::Counting } else { Rule::Position { seed } };
        match link::content(&self.ends) {
            BlockContent::Fresh => Pattern::endless(rule),
            BlockContent::Prepared => Pattern::repeating(rule, link::period(&self.ends) as u64),
        }
    }

    /// The busy work of this end, with the mean time `mean`.
    fn busy(&self, mean: Delay) -> SimulatedWork {
        SimulatedWork::new(mean, self.assignment.seed ^ self.assignment.line as u64)
    }

    /// The statistics of this end that are known before its window. `ceiling` is its speed without the transfer, in
    /// bytes per second.
    fn stats(&self, ceiling: Option<f64>) -> EndStats {
        EndStats { pinned: self.pinned.clone(), ceiling, ..EndStats::default() }
    }

    /// Publishes this end's progress for the parent.
    #[inline]
    fn progress(&self, bytes: u64) {
        self.control.progress(self.assignment.line, bytes);
    }

    /// The number of bytes that this sink's source sends in the warm-up; `None` until it is known. In the page, a
    /// source's line precedes its sink's line.
    #[inline]
    fn warm_up(&self) -> Option<u64> {
        self.control.warm_up(self.assignment.line - 1)
    }

    /// The memory of this process on huge pages, in bytes; `None` if huge pages weren't requested.
    fn huge_bytes(&self) -> Option<u64> {
        (self.ends.pages == PageKind::Huge).then(pipeio_harness::buffer::huge_bytes)
    }
}

fn early_end_error() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the link ended before the run was over")
}

#[cfg(test)]
mod tests;
