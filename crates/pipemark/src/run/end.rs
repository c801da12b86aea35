//! An end of a run, in its own process: take the job, get ready, warm up, run the window, run out, report.

mod copy;
mod meter;
mod sink;
mod source;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use pipeio::memory::Pages;
use pipeio::pattern::{Pattern, Rule};
use pipeio::send::Content;
use pipeio::wait::Wait;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::control::Control;
use super::job::{self, Done, Job, Report, Role};
use crate::model::{Cpu, PageKind, Params, SendMethod, Verify, WaitPolicy};

/// What every role works with.
struct End {
    job: Job,
    control: Control,
    pinned: Option<Vec<Cpu>>,
}

/// Runs as an end: the socket to the parent is standard input.
pub fn main() -> ExitCode {
    // An end never outlives the one that started it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The person's Ctrl-C is for the parent, which ends us when it has kept what was measured.
    let socket = rustix::stdio::stdin();
    let (job, descriptors) = match job::receive::<Job>(socket) {
        Ok(Some(received)) => received,
        // The parent is gone, or someone called the hidden verb by hand.
        Ok(None) | Err(_) => {
            eprintln!("pipemark: '{}' is for pipemark itself; try pipemark --help", job::END_VERB);
            return ExitCode::from(2);
        }
    };
    let role = job.role;
    let report = catch_unwind(AssertUnwindSafe(|| take_part(job, descriptors)))
        .unwrap_or_else(|_| Err(io::Error::other("a bug in pipemark: the process panicked")));
    let report = match report {
        Ok(done) => Report::Done(Box::new(done)),
        Err(error) => Report::Failed(format!("the {} failed: {error}", role.name())),
    };
    match job::send(socket, &report, &[]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn take_part(job: Job, descriptors: Vec<OwnedFd>) -> io::Result<Done> {
    let mut descriptors = descriptors.into_iter();
    let mut next = || {
        descriptors
            .next()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a descriptor is missing from the job"))
    };
    let control = Control::open(next()?)?;
    let pinned = job.pin.map(pin).transpose()?;
    let end = End { job, control, pinned };
    match end.job.role {
        Role::Source => source::run(&end, next()?),
        Role::Sink => sink::run(&end, next()?),
        Role::Copy => copy::run(&end),
    }
}

/// Binds this process to one CPU and makes sure that it is.
pub(super) fn pin(cpu: Cpu) -> io::Result<Vec<Cpu>> {
    let mut wanted = CpuSet::new();
    wanted.set(usize::from(cpu.0));
    sched_setaffinity(None, &wanted)
        .map_err(|error| io::Error::new(io::Error::from(error).kind(), format!("CPU {cpu} cannot be used: {error}")))?;
    let got = sched_getaffinity(None)?;
    if got.count() != 1 || !got.is_set(usize::from(cpu.0)) {
        return Err(io::Error::other(format!("CPU {cpu} was asked for and not given")));
    }
    Ok(vec![cpu])
}

impl End {
    fn params(&self) -> &Params {
        &self.job.params
    }

    /// What this pair's stream consists of. Source and sink come to the same answer on their own.
    fn pattern(&self) -> Pattern {
        let params = self.params();
        let seed = self.job.seed.wrapping_add(u64::from(self.job.pair));
        let rule = if params.verify == Verify::Xor { Rule::Counting } else { Rule::Position { seed } };
        match content(params) {
            Content::Fresh => Pattern::endless(rule),
            Content::Prepared => {
                let period = pipeio::send::period(send_method(params.send), params.block.as_usize());
                Pattern::repeating(rule, period as u64)
            }
        }
    }
}

fn content(params: &Params) -> Content {
    if params.fresh() { Content::Fresh } else { Content::Prepared }
}

fn send_method(method: SendMethod) -> pipeio::send::Method {
    match method {
        SendMethod::Write => pipeio::send::Method::Write,
        SendMethod::Vmsplice => pipeio::send::Method::Vmsplice,
        SendMethod::VmspliceGift => pipeio::send::Method::VmspliceGift,
        SendMethod::Sendfile => pipeio::send::Method::Sendfile,
        SendMethod::Splice => pipeio::send::Method::Splice,
        SendMethod::Tee => pipeio::send::Method::Tee,
        SendMethod::IoUring => pipeio::send::Method::IoUring,
    }
}

fn wait(policy: WaitPolicy) -> Wait {
    match policy {
        WaitPolicy::Block => Wait::Block,
        WaitPolicy::Poll => Wait::Poll,
        WaitPolicy::Spin => Wait::Spin,
    }
}

fn pages(kind: PageKind) -> Pages {
    match kind {
        PageKind::Base => Pages::Base,
        PageKind::Huge => Pages::Huge,
    }
}

/// Bytes on huge pages, if any were asked for.
fn huge_bytes(params: &Params) -> Option<u64> {
    (params.pages == PageKind::Huge).then(pipeio::memory::huge_bytes)
}

/// The capacity of the link, if it is a pipe.
fn capacity(link: BorrowedFd<'_>) -> Option<u64> {
    pipeio::pipe::capacity(link).ok().map(|bytes| bytes as u64)
}
