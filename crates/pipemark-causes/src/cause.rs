//! The causes for which a pipeline is slow or stuck, as a tree: small writes are small calls, and small calls are work of
//! a stage.

use pipemark_profile::WorkKind;
use serde::Deserialize;

use crate::report::VerdictKind;

/// A cause. Causes that come first are more specific, or affect more than one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Processes wait for each other in a cycle.
    Deadlock(CycleKind),
    /// The control group of stages is paused.
    Frozen,
    /// A tracer stops a stage at its calls.
    Traced,
    /// Another program stops and resumes a stage again and again.
    StopSignals,
    /// Several stages are stopped.
    Stopped,
    /// A CPU limit throttles the control group of a stage.
    CpuQuota,
    /// Other programs use the CPUs.
    CpusTaken,
    /// The stages need more CPUs than they may use.
    CpusShared,
    /// Several stages that run the same program use all CPUs.
    CopiesUseCpus,
    /// A stage can't be sampled.
    Unsampled,
    /// A stage waits for a process outside the pipeline that holds the other end of its pipe.
    Outside(PeerRole),
    /// As before, but that process can't be seen.
    UnseenInput,
    UnseenOutput,
    /// A stage keeps its output.
    Held(HeldKind),
    /// All stages wait, but not in a cycle.
    Idle,
    /// A stage limits its rate on purpose.
    RateLimit(Activity),
    /// A cause that one file declares as a whole; see `causes::DECLARED`.
    Declared(&'static CauseFacts),
    /// Small reads or writes.
    Calls(CallKind),
    /// A stage starts processes all the time.
    Starts,
    /// A pipe holds only two pages.
    TinyPipe,
    /// Bursts are larger than any pipe.
    Bursts,
    /// Bursts are larger than this pipe.
    SmallPipe,
    /// A stage waits for the other end of a socket.
    Peer(PeerRole),
    /// A stage does its work, or waits.
    Activity(Activity),
    /// A part of what a stage computes.
    Work(WorkKind),
    /// Either a stage or a pipe.
    StageOrPipe,
    /// Either of two stages: there are too few samples, or too much of their time is overhead.
    FewSamples,
    BusyAlike,
    /// Two stages need equally long.
    Balanced,
    /// Too few samples at the ends of a pipe.
    TooShort,
}

/// What a cause is called wherever it occurs.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CauseFacts {
    /// The cause in JSON. It names no program or host, and doesn't change with the wording of sentences.
    pub words: &'static str,
    /// A short reason in JSON.
    pub reason: &'static str,
    pub kind: VerdictKind,
    /// The names by which the table of remedies knows the cause; none if its remedies don't depend on the program.
    pub names: &'static [CauseName],
    pub part: PartOf,
}

/// Where the judge looks for a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartOf {
    /// It is a part of a stage's work. If it explains most of the work of the stage that gains most, it is preferred to
    /// what this stage is busy with.
    Work,
    /// It is a wait with a known reason. Of the stage that gains most, it comes before bursts, which look the same to
    /// its neighbours.
    Wait,
}

/// The kind of a cycle of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CycleKind {
    Fifos,
    FileLock,
    StandardError,
    OwnWriteEnd,
    Answers,
    WriteEnd,
    Other,
}

/// Why a stage keeps its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeldKind {
    /// It writes nothing before its input ends, and other stages work meanwhile.
    Storing,
    /// It writes nothing before its input ends, which it never does.
    WaitingForEnd,
    /// It writes whole blocks.
    Compressing,
    Probing,
    Filling,
    /// It writes full buffers.
    Buffering,
}

/// What a stage waits for from the other end of a socket or pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerRole {
    NameServer,
    ReceiverWindow,
    SendBuffer,
    NetworkOrReceiver,
    Receiver,
    NetworkOrSender,
    Sender,
}

/// Which calls are small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    ReadsAndWrites,
    Writes,
    OneByteReads,
    Reads,
}

/// What a stage is busy with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    Computing,
    WaitingForCpu,
    Disk,
    Network,
    Terminal,
    Sleep,
    Children,
    Lock,
    Stopped,
    Other,
    Hidden,
}

/// A cause as a row of the table of remedies names it: a cause, or a group of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum CauseName {
    #[serde(rename = "computing")]
    Computing,
    #[serde(rename = "incompressible input")]
    Incompressible,
    #[serde(rename = "sleeping")]
    Sleeping,
    #[serde(rename = "waiting")]
    Waiting,
    #[serde(rename = "waiting for the disk")]
    Disk,
    #[serde(rename = "waiting for the network")]
    Network,
    #[serde(rename = "waiting for its children")]
    Children,
    #[serde(rename = "waiting for something else")]
    Other,
    #[serde(rename = "waiting for a file lock")]
    FileLock,
    #[serde(rename = "rate limit")]
    RateLimit,
    #[serde(rename = "small")]
    SmallCalls,
    #[serde(rename = "small writes")]
    SmallWrites,
    #[serde(rename = "small reads")]
    SmallReads,
    #[serde(rename = "small reads and writes")]
    SmallReadsAndWrites,
    #[serde(rename = "reads of one byte")]
    OneByteReads,
    #[serde(rename = "starting")]
    Starts,
    #[serde(rename = "output buffered")]
    Buffering,
    #[serde(rename = "waiting for the end")]
    WaitingForEnd,
    #[serde(rename = "collecting a block")]
    Compressing,
    #[serde(rename = "storing all input")]
    Storing,
    #[serde(rename = "probing its input")]
    Probing,
    #[serde(rename = "filling its buffer")]
    Filling,
    #[serde(rename = "pipe too small")]
    SmallPipe,
    #[serde(rename = "bursts")]
    Bursts,
    #[serde(rename = "peer")]
    Peer,
    #[serde(rename = "peer: name server")]
    NameServer,
}

impl CauseName {
    /// Whether it is a cause by small reads or writes.
    pub fn is_of_calls(self) -> bool {
        matches!(
            self,
            CauseName::SmallCalls
                | CauseName::SmallWrites
                | CauseName::SmallReads
                | CauseName::SmallReadsAndWrites
                | CauseName::OneByteReads
        )
    }
}

impl Activity {
    /// The reason in JSON and in sentences.
    pub fn words(self) -> &'static str {
        match self {
            Activity::Computing => "computing",
            Activity::WaitingForCpu => "waiting for a CPU",
            Activity::Disk => "waiting for the disk",
            Activity::Network => "waiting for the network",
            Activity::Terminal => "waiting for the terminal",
            Activity::Sleep => "sleeping",
            Activity::Children => "waiting for its children",
            Activity::Lock => "waiting for a lock",
            Activity::Stopped => "stopped",
            Activity::Other => "waiting for something else",
            Activity::Hidden => "hidden",
        }
    }
}

impl CycleKind {
    pub fn words(self) -> &'static str {
        match self {
            CycleKind::Fifos => "deadlock: FIFOs opened in a circle",
            CycleKind::FileLock => "deadlock: file lock",
            CycleKind::StandardError => "deadlock: stderr unread",
            CycleKind::OwnWriteEnd | CycleKind::WriteEnd => "deadlock: write end open",
            CycleKind::Answers => "deadlock: each waits for the other's output",
            CycleKind::Other => "deadlock: cycle of waits",
        }
    }
}

impl PeerRole {
    fn words(self) -> &'static str {
        match self {
            PeerRole::NameServer => "peer: name server",
            PeerRole::ReceiverWindow => "peer: receiver window",
            PeerRole::SendBuffer => "peer: send buffer",
            PeerRole::NetworkOrReceiver => "peer: network or receiver",
            PeerRole::Receiver => "peer: receiver",
            PeerRole::NetworkOrSender => "peer: network or sender",
            PeerRole::Sender => "peer: sender",
        }
    }
}

impl Cause {
    /// The kind of the verdict.
    pub fn kind(self) -> VerdictKind {
        match self {
            Cause::Deadlock(_) => VerdictKind::Deadlock,
            Cause::Frozen | Cause::Traced | Cause::Stopped => VerdictKind::Stage,
            Cause::StopSignals | Cause::CpuQuota => VerdictKind::Throttled,
            Cause::CpusTaken | Cause::CpusShared | Cause::CopiesUseCpus => VerdictKind::Cpu,
            Cause::Unsampled | Cause::UnseenInput | Cause::UnseenOutput | Cause::Idle | Cause::TooShort => {
                VerdictKind::Unknown
            }
            Cause::Outside(_) | Cause::Peer(_) => VerdictKind::Peer,
            Cause::Held(_) => VerdictKind::Held,
            Cause::RateLimit(_) | Cause::Activity(_) | Cause::Work(_) => VerdictKind::Stage,
            Cause::Declared(facts) => facts.kind,
            Cause::Calls(_) => VerdictKind::Calls,
            Cause::Starts => VerdictKind::Starts,
            Cause::TinyPipe | Cause::SmallPipe => VerdictKind::Pipe,
            Cause::Bursts => VerdictKind::Burst,
            Cause::StageOrPipe | Cause::FewSamples | Cause::BusyAlike => VerdictKind::Inconclusive,
            Cause::Balanced => VerdictKind::Balanced,
        }
    }

    /// The cause in JSON, without names of programs or hosts. It doesn't change with the wording of sentences.
    pub fn words(self) -> &'static str {
        match self {
            Cause::Deadlock(kind) => kind.words(),
            Cause::Frozen => "frozen control group",
            Cause::Traced => "traced",
            Cause::StopSignals => "CPU limit by stop signals",
            Cause::Stopped => "stopped",
            Cause::CpuQuota => "CPU limit of a cgroup",
            Cause::CpusTaken => "CPUs are taken by other programs",
            Cause::CpusShared | Cause::CopiesUseCpus => "CPUs are shared",
            Cause::Unsampled => "hidden",
            Cause::UnseenInput => "input",
            Cause::UnseenOutput => "output",
            Cause::Idle => "idle",
            Cause::TooShort => "short",
            Cause::Outside(role) | Cause::Peer(role) => role.words(),
            Cause::Held(HeldKind::Storing) => "storing all input before writing",
            Cause::Held(HeldKind::WaitingForEnd) => "waiting for the end of its input",
            Cause::Held(HeldKind::Compressing) => "collecting a block to compress",
            Cause::Held(HeldKind::Probing) => "probing its input",
            Cause::Held(HeldKind::Filling) => "filling its buffer",
            Cause::Held(HeldKind::Buffering) => "output buffered (held)",
            Cause::RateLimit(_) => "rate limit on purpose",
            Cause::Declared(facts) => facts.words,
            Cause::Calls(CallKind::ReadsAndWrites) => "small reads and writes",
            Cause::Calls(CallKind::Writes) => "small writes",
            Cause::Calls(CallKind::OneByteReads) => "reads of one byte",
            Cause::Calls(CallKind::Reads) => "small reads",
            Cause::Starts => "starting processes",
            Cause::TinyPipe => "pipe too small: two pages",
            Cause::Bursts => "bursts larger than a pipe",
            Cause::SmallPipe => "pipe too small for bursts",
            Cause::Activity(work) => work.words(),
            Cause::Work(kind) => kind.phrase(),
            Cause::StageOrPipe => "stage or pipe",
            Cause::FewSamples => "too few samples",
            Cause::BusyAlike => "busy alike",
            Cause::Balanced => "balanced",
        }
    }

    /// A short reason in JSON, where it differs from the cause.
    pub fn reason(self) -> &'static str {
        match self {
            Cause::Deadlock(_) => "deadlock",
            Cause::Frozen => "frozen",
            Cause::StopSignals => "stopped repeatedly",
            Cause::CpuQuota => "CPU limit",
            Cause::Outside(_) => "waiting for the other end of a pipe",
            Cause::Peer(PeerRole::NameServer) => "waiting for a name server",
            Cause::Peer(_) => "waiting for the other end of a socket",
            Cause::Held(HeldKind::Storing) => "storing all input",
            Cause::Held(HeldKind::Buffering) => "output buffered",
            Cause::RateLimit(work) => work.words(),
            Cause::Declared(facts) => facts.reason,
            Cause::TinyPipe => "small pipe",
            Cause::Bursts | Cause::SmallPipe => "bursts",
            other => other.words(),
        }
    }

    /// The names by which the table of remedies knows the cause: its own, and those of the groups that it belongs to.
    pub fn names(self) -> &'static [CauseName] {
        match self {
            Cause::Activity(Activity::Computing) => &[CauseName::Computing],
            Cause::Activity(Activity::Sleep) => &[CauseName::Sleeping],
            Cause::Activity(Activity::Disk) => &[CauseName::Disk, CauseName::Waiting],
            Cause::Activity(Activity::Network) => &[CauseName::Network, CauseName::Waiting],
            Cause::Activity(Activity::Children) => &[CauseName::Children, CauseName::Waiting],
            Cause::Activity(Activity::Other) => &[CauseName::Other, CauseName::Waiting],
            Cause::Activity(Activity::WaitingForCpu | Activity::Terminal | Activity::Lock) => &[CauseName::Waiting],
            Cause::Declared(facts) => facts.names,
            Cause::RateLimit(_) => &[CauseName::RateLimit],
            Cause::Calls(CallKind::Writes) => &[CauseName::SmallWrites, CauseName::SmallCalls],
            Cause::Calls(CallKind::Reads) => &[CauseName::SmallReads, CauseName::SmallCalls],
            Cause::Calls(CallKind::OneByteReads) => &[CauseName::OneByteReads],
            Cause::Calls(CallKind::ReadsAndWrites) => {
                &[CauseName::SmallReadsAndWrites, CauseName::SmallReads, CauseName::SmallCalls]
            }
            Cause::Starts => &[CauseName::Starts],
            Cause::Held(HeldKind::Buffering) => &[CauseName::Buffering],
            Cause::Held(HeldKind::WaitingForEnd) => &[CauseName::WaitingForEnd],
            Cause::Held(HeldKind::Compressing) => &[CauseName::Compressing],
            Cause::Held(HeldKind::Storing) => &[CauseName::Storing],
            Cause::Held(HeldKind::Probing) => &[CauseName::Probing],
            Cause::Held(HeldKind::Filling) => &[CauseName::Filling],
            Cause::TinyPipe | Cause::SmallPipe => &[CauseName::SmallPipe],
            Cause::Bursts => &[CauseName::Bursts],
            Cause::Peer(PeerRole::NameServer) => &[CauseName::NameServer, CauseName::Peer],
            Cause::Peer(_) | Cause::Outside(_) => &[CauseName::Peer],
            // Their remedies don't depend on the program.
            Cause::Deadlock(_)
            | Cause::Frozen
            | Cause::Traced
            | Cause::StopSignals
            | Cause::Stopped
            | Cause::CpuQuota
            | Cause::CpusTaken
            | Cause::CpusShared
            | Cause::CopiesUseCpus
            | Cause::Unsampled
            | Cause::UnseenInput
            | Cause::UnseenOutput
            | Cause::Idle
            | Cause::Activity(Activity::Stopped | Activity::Hidden)
            | Cause::Work(_)
            | Cause::StageOrPipe
            | Cause::FewSamples
            | Cause::BusyAlike
            | Cause::Balanced
            | Cause::TooShort => &[],
        }
    }
}

/// All causes but those of one file, each kind once.
#[cfg(test)]
pub(crate) fn all_causes() -> Vec<Cause> {
    let works = [
        Activity::Computing,
        Activity::WaitingForCpu,
        Activity::Disk,
        Activity::Network,
        Activity::Terminal,
        Activity::Sleep,
        Activity::Children,
        Activity::Lock,
        Activity::Stopped,
        Activity::Other,
        Activity::Hidden,
    ];
    let cycles = [
        CycleKind::Fifos,
        CycleKind::FileLock,
        CycleKind::StandardError,
        CycleKind::OwnWriteEnd,
        CycleKind::Answers,
        CycleKind::WriteEnd,
        CycleKind::Other,
    ];
    let held = [
        HeldKind::Storing,
        HeldKind::WaitingForEnd,
        HeldKind::Compressing,
        HeldKind::Probing,
        HeldKind::Filling,
        HeldKind::Buffering,
    ];
    let peers = [
        PeerRole::NameServer,
        PeerRole::ReceiverWindow,
        PeerRole::SendBuffer,
        PeerRole::NetworkOrReceiver,
        PeerRole::Receiver,
        PeerRole::NetworkOrSender,
        PeerRole::Sender,
    ];
    let calls = [CallKind::ReadsAndWrites, CallKind::Writes, CallKind::OneByteReads, CallKind::Reads];
    let mut all = vec![
        Cause::Frozen,
        Cause::Traced,
        Cause::StopSignals,
        Cause::Stopped,
        Cause::CpuQuota,
        Cause::CpusTaken,
        Cause::CpusShared,
        Cause::CopiesUseCpus,
        Cause::Unsampled,
        Cause::UnseenInput,
        Cause::UnseenOutput,
        Cause::Idle,
        Cause::RateLimit(Activity::Sleep),
        Cause::Starts,
        Cause::TinyPipe,
        Cause::Bursts,
        Cause::SmallPipe,
        Cause::StageOrPipe,
        Cause::FewSamples,
        Cause::BusyAlike,
        Cause::Balanced,
        Cause::TooShort,
    ];
    all.extend(works.map(Cause::Activity));
    all.push(Cause::Work(WorkKind::Compression));
    all.extend(cycles.map(Cause::Deadlock));
    all.extend(held.map(Cause::Held));
    all.extend(peers.map(Cause::Peer));
    all.extend(peers.map(Cause::Outside));
    all.extend(calls.map(Cause::Calls));
    all
}
