//! The work of a trial: one of five kinds of job, each with only the parameters that apply to it.

mod chain;
mod conversion;
mod ends;
mod entrant;
mod lines;
mod round_trip;
mod volume;
mod wire;

use serde::{Deserialize, Serialize};

use crate::kind::JobKind;
use crate::link::LinkKind;
use crate::methods::{Mode, RecvMethod, SendMethod, Verify, WaitPolicy};
use crate::parameter::{DEFAULT_TIME, Key, Settings, Value};
use crate::place::Place;
use crate::units::ByteSize;
pub use chain::Chain;
pub use ends::{Ends, Work};
pub use entrant::Entrant;
pub use lines::LinesJob;
pub use round_trip::{MessagePace, RoundTrip};
pub use volume::Volume;

/// One fully specified job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "wire::Flat", try_from = "wire::Flat")]
pub enum Job {
    /// A one-way stream: bytes per second.
    Stream(Ends),
    /// Round trips: time per round trip.
    RoundTrip(RoundTrip),
    /// A stream through stages: bytes per second.
    Chain(Chain),
    /// A program in another language that is source and sink itself.
    Entrant(Entrant),
    /// A line filter.
    Lines(LinesJob),
}

impl Job {
    /// The kind of the job.
    pub fn kind(&self) -> JobKind {
        match self {
            Job::Stream(_) => JobKind::Stream,
            Job::RoundTrip(_) => JobKind::RoundTrip,
            Job::Chain(_) => JobKind::Chain,
            Job::Entrant(_) => JobKind::Entrant,
            Job::Lines(_) => JobKind::Lines,
        }
    }

    /// pipemark's own source and sink; `None` if the job doesn't use them.
    pub fn ends(&self) -> Option<&Ends> {
        match self {
            Job::Stream(ends) => Some(ends),
            Job::RoundTrip(trip) => Some(&trip.ends),
            Job::Chain(chain) => Some(&chain.ends),
            Job::Entrant(_) | Job::Lines(_) => None,
        }
    }

    /// The chain; `None` if the job has no stages.
    pub fn chain(&self) -> Option<&Chain> {
        match self {
            Job::Chain(chain) if chain.length > 0 => Some(chain),
            _ => None,
        }
    }

    /// The entrant; `None` for other kinds of job.
    pub fn entrant(&self) -> Option<&Entrant> {
        if let Job::Entrant(entrant) = self { Some(entrant) } else { None }
    }

    /// The line filter; `None` for other kinds of job.
    pub fn lines(&self) -> Option<&LinesJob> {
        if let Job::Lines(lines) = self { Some(lines) } else { None }
    }

    /// The link. Entrants and filters use anonymous pipes.
    pub fn link(&self) -> LinkKind {
        self.ends().map_or(LinkKind::Pipe, |ends| ends.link)
    }

    /// Latency for round trips and timed lines, throughput for other jobs.
    pub fn mode(&self) -> Mode {
        match self {
            Job::RoundTrip(_) | Job::Lines(LinesJob { rate: Some(_), .. }) => Mode::Latency,
            _ => Mode::Throughput,
        }
    }

    /// Whether the main figure is a time (of round trips or of lines) instead of throughput.
    pub fn is_latency(&self) -> bool {
        self.mode() == Mode::Latency
    }

    /// Whether the job is round trips between pipemark's own ends.
    pub fn is_round_trip(&self) -> bool {
        self.kind() == JobKind::RoundTrip
    }

    /// Whether the job is the memory copy within one process that throughput is compared with.
    pub fn is_memory_copy(&self) -> bool {
        self.link() == LinkKind::MemoryCopy
    }

    /// Whether the job copies into and out of shared memory while both ends spin. No link that copies twice can be
    /// faster with the same blocks, capacity and CPUs.
    pub fn is_two_copies(&self) -> bool {
        let two_copies = (LinkKind::Shm, SendMethod::Write, RecvMethod::Read, WaitPolicy::Spin);
        matches!(self, Job::Stream(_))
            && self.ends().map(|ends| (ends.link, ends.send, ends.recv, ends.wait)) == Some(two_copies)
    }

    /// The CPUs on which the job's processes may run.
    pub fn place(&self) -> Place {
        match self {
            Job::Entrant(entrant) => entrant.place,
            Job::Lines(_) => Place::Free,
            _ => self.ends().map_or(Place::Free, |ends| ends.place),
        }
    }

    /// The level of verification.
    pub fn verify(&self) -> Verify {
        match self {
            Job::Entrant(entrant) => entrant.verify,
            _ => self.ends().map_or(Verify::Count, |ends| ends.verify),
        }
    }

    /// The wait policy of the ends.
    pub fn wait(&self) -> WaitPolicy {
        self.ends().map_or(WaitPolicy::Block, |ends| ends.wait)
    }

    /// Bytes per call of the writer; `None` if unknown.
    pub fn block(&self) -> Option<ByteSize> {
        match self {
            Job::Entrant(entrant) => Some(entrant.block),
            _ => self.ends().map(|ends| ends.block),
        }
    }

    /// The volume that one run moves.
    pub fn volume(&self) -> Volume {
        match self {
            Job::Entrant(entrant) => Volume::Total(entrant.total),
            Job::Lines(lines) => lines.volume,
            _ => self.ends().map_or(Volume::Time(DEFAULT_TIME), |ends| ends.volume),
        }
    }

    /// Whether the sink reads the bytes.
    pub fn touched(&self) -> bool {
        match self {
            // A program that doesn't follow the contract might not read the bytes.
            Job::Entrant(own) => own.verify.reads(),
            _ => self.ends().is_some_and(Ends::touched),
        }
    }

    /// The job's parameters as settings.
    pub fn settings(&self) -> Settings {
        Settings::from(self)
    }

    /// The value of the parameter `key` in this job, or its default. `None` if the parameter doesn't apply.
    pub fn value(&self, key: Key) -> Option<Value> {
        self.settings().effective(key)
    }

    /// The id of the settings, see [`Settings::id`].
    pub fn id(&self) -> String {
        self.settings().id()
    }
}

impl Default for Job {
    /// The default job: a pipe of default capacity with write, read and 64 KiB blocks, on two CPUs, a quarter of a
    /// second per run.
    fn default() -> Self {
        Job::try_from(Settings::default()).expect("defaults do not contradict each other")
    }
}

#[cfg(test)]
mod tests;
