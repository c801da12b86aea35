//! What one run measured.

use serde::{Deserialize, Serialize};

use crate::entrant::EntrantStats;
use crate::filter::PipelineStats;
use crate::place::Cpu;
use crate::units::GIB;

/// What one run of a trial measured, over all of its pairs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Which round of the interleaved schedule this run belongs to, from 0. Ratios are taken within a round.
    pub round: u32,
    /// When the run began, nanoseconds after the measurement's start.
    pub started_ns: u64,
    /// Bytes that arrived at the sinks in the measured window.
    pub bytes: u64,
    /// From release to the last of these bytes at the sink; for several pairs the time in which `bytes` would have
    /// arrived at the summed rate.
    pub ns: u64,
    /// From before the first process was started until the last was reaped.
    pub wall_ns: u64,
    /// Of ends of ours, as time(1) would have it of the same programs: from before the first process was started until all were,
    /// then from release to the last byte, and until the last stage was reaped. What pipemark does between these, to start all
    /// at once and to check the bytes, is omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_ns: Option<u64>,
    /// User CPU time of all ends in the window, and of all stages from start to end.
    pub user_ns: u64,
    /// System CPU time, likewise.
    pub sys_ns: u64,
    /// Times an end or a stage gave up its CPU to wait.
    pub voluntary_switches: u64,
    /// Times an end or a stage was made to give up its CPU.
    pub involuntary_switches: u64,
    /// Pipe capacity in bytes that the kernel granted, read back before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_granted: Option<u64>,
    /// Pipe capacity in bytes after the run: an end may have changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_after: Option<u64>,
    /// Send buffer in bytes as the kernel granted it (it doubles what is asked for), for sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u64>,
    /// Receive buffer in bytes as the kernel granted it, for sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recv_buffer: Option<u64>,
    /// The most bytes one message of this link takes, where there is a limit; larger blocks are split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_limit: Option<u64>,
    /// Of several writers on one pipe, how many of their records the bytes of others cut, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaved_percent: Option<f64>,
    /// Round trips, in latency mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Each stage between source and sink, from the source on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageStats>,
    /// Each source, in the order of the pairs.
    pub sources: Vec<EndStats>,
    /// Each sink, in the order of the pairs.
    pub sinks: Vec<EndStats>,
    /// The window in pieces, sampled from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Pieces>,
    /// What is known of an entrant, which has neither sources nor sinks of ours. Its `ns` is its own clock's, its CPU
    /// time and switches are those of all its processes from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrant: Option<EntrantStats>,
    /// What the processes of a pipeline of lines used, which has neither sources nor sinks of ours. Its `bytes` are those
    /// that went into the filter, its `ns` is from before its programs began until the filter had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineStats>,
}

impl Sample {
    /// Real time in nanoseconds; in samples of before it holds pipemark's own gate and checks.
    pub fn real(&self) -> u64 {
        self.real_ns.unwrap_or(self.wall_ns)
    }

    /// Bytes per second that reached the sinks.
    pub fn throughput(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.ns as f64
    }

    /// CPU seconds of all ends per GiB moved.
    pub fn cpu_seconds_per_gib(&self) -> f64 {
        (self.user_ns + self.sys_ns) as f64 / 1e9 / (self.bytes as f64 / GIB)
    }

    /// The figure that says whether more runs are needed: the median round trip in latency mode, throughput otherwise.
    pub fn headline(&self) -> f64 {
        self.sound_latency().map_or_else(|| self.throughput(), |latency| latency.p50 as f64)
    }

    /// How fast it was, more being faster in either mode: throughput, or in latency mode the round trips per second that
    /// the median round trip would make back to back.
    pub fn speed(&self) -> f64 {
        self.sound_latency().map_or_else(|| self.throughput(), |latency| 1e9 / latency.p50 as f64)
    }

    /// The round trips, where their times say something.
    pub fn sound_latency(&self) -> Option<&Latency> {
        self.latency.as_ref().filter(|latency| !latency.behind() && !latency.held_back())
    }

    /// The share of the time, in per cent, that the ends' own loops took around the calls: of the end that it took most of,
    /// or of both where they alternate. `None` in samples of earlier versions.
    pub fn harness_percent(&self) -> Option<f64> {
        let share = |end: &EndStats| Some(100.0 * end.own_ns? as f64 / end.ns.max(1) as f64);
        let pair = |(source, sink): (&EndStats, &EndStats)| {
            let (source_share, sink_share) = (share(source)?, share(sink)?);
            let one_cpu = matches!((&source.pinned, &sink.pinned), (Some(one), Some(other)) if one == other);
            Some(if one_cpu || self.latency.is_some() {
                source_share + sink_share
            } else {
                source_share.max(sink_share)
            })
        };
        self.sources.iter().zip(&self.sinks).filter_map(pair).reduce(f64::max)
    }

    /// Source and sink ends, all of them.
    pub fn ends(&self) -> impl Iterator<Item = &EndStats> {
        self.sources.iter().chain(&self.sinks)
    }
}

/// What happened in each piece of a window, over all pairs: lists of the same length, at most 600 long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pieces {
    /// The length of each piece in nanoseconds.
    pub ns: Vec<u64>,
    /// Bytes that arrived.
    pub bytes: Vec<u64>,
    /// Context switches of sources and sinks; empty, as those below, where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<u64>,
    /// CPU time of the sources in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_ns: Vec<u64>,
    /// CPU time of the sinks in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sink_ns: Vec<u64>,
    /// Time in which sources and sinks could have run and others had the CPU, in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_ns: Vec<u64>,
}

/// The round trips of one run in nanoseconds, or the times of lines on their way through a filter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// How many there were.
    pub round_trips: u64,
    /// The fastest.
    pub min: u64,
    /// Half were at most this.
    pub p50: u64,
    /// 90 % were at most this; `None` here and below where there were too few round trips to tell.
    pub p90: Option<u64>,
    /// 99 % were at most this.
    pub p99: Option<u64>,
    /// 99.9 % were at most this.
    pub p999: Option<u64>,
    /// The slowest.
    pub max: u64,
    /// Messages that were due in the window, where they were sent at a fixed rate; those beyond `round_trips` were not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Lines that the filter held back at the end of the window, until more of them or none would come; no part of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// The whole distribution: an HDR histogram with three significant digits, V2 with DEFLATE, in base 64.
    pub histogram: String,
}

impl Latency {
    /// Whether the rate that was asked for was not reached: less than 99 % of what was due was sent. The times of what was
    /// sent then say how long the run was, and nothing of the link.
    pub fn behind(&self) -> bool {
        self.due.is_some_and(|due| ((self.round_trips + self.held.unwrap_or(0)) as f64) < 0.99 * due as f64)
    }

    /// Whether more lines were held back than came out, so that the times are not known.
    pub fn held_back(&self) -> bool {
        self.held.is_some_and(|held| held > self.round_trips)
    }
}

/// What one stage (a process, with those it started and waited for) used from its start to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageStats {
    /// User CPU time in nanoseconds.
    pub user_ns: u64,
    /// System CPU time in nanoseconds.
    pub sys_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl StageStats {
    /// Adds what others used.
    pub fn add(&mut self, other: &StageStats) {
        self.user_ns += other.user_ns;
        self.sys_ns += other.sys_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// What one end (a process) did in the measured window, and in all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndStats {
    /// Bytes in the window.
    pub bytes: u64,
    /// Length of the window at this end, in nanoseconds from the release.
    pub ns: u64,
    /// System calls that moved, or tried to move, bytes in the window.
    pub calls: u64,
    /// Mean bytes per call in the window; `None` where no call was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_call: Option<f64>,
    /// Bytes from start to end of the process, warm-up and run-out included: these have to agree at both ends.
    pub bytes_in_all: u64,
    /// User CPU time in the window.
    pub user_ns: u64,
    /// System CPU time in the window.
    pub sys_ns: u64,
    /// Voluntary context switches in the window.
    pub voluntary_switches: u64,
    /// Involuntary context switches in the window.
    pub involuntary_switches: u64,
    /// Page faults served without I/O in the window.
    pub minor_faults: u64,
    /// Page faults that needed I/O in the window.
    pub major_faults: u64,
    /// Moves from one CPU to another in the window; `None` where the kernel does not tell.
    pub migrations: Option<u64>,
    /// The CPUs it was allowed to run on, if it was pinned.
    pub pinned: Option<Vec<Cpu>>,
    /// The CPUs it was seen on, sampled through the window, in ascending order.
    pub cpus: Vec<Cpu>,
    /// Nanoseconds of the window that went into the loop around the calls: counting, looking at the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// Bytes per second this end could make or check if the transfer cost nothing; `None` where it does neither.
    pub ceiling: Option<f64>,
    /// XOR of all bytes, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor: Option<u8>,
}
