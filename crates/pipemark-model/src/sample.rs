//! The measurements of one run.

use serde::{Deserialize, Serialize};

use crate::entrant::EntrantStats;
use crate::filter::PipelineStats;
use crate::place::Cpu;
use crate::units::GIB;

/// What one run of a trial measured, over all pairs of source and sink.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// The round of the interleaved schedule that this run belongs to, counted from 0. Each ratio compares two runs of
    /// the same round.
    pub round: u32,
    /// When the run began, in nanoseconds since the start of the measurement.
    pub started_ns: u64,
    /// Bytes that arrived at the sinks in the measured window.
    pub bytes: u64,
    /// Nanoseconds from the start of the window until the last of these bytes reached the sink. With several pairs, it
    /// is the time that `bytes` take at the sum of the pairs' rates.
    pub ns: u64,
    /// Nanoseconds from before the first process was started until the last was reaped.
    pub wall_ns: u64,
    /// Real time of pipemark's own ends in nanoseconds, as time(1) would report it for the same programs. It is the sum
    /// of three parts: starting all processes, from the start of the transfer to the last byte, and from the last byte
    /// until the last stage is reaped. pipemark's own work between the parts, such as checking the bytes, is excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_ns: Option<u64>,
    /// User CPU time in nanoseconds: of all ends and a broker in the window, and of all stages from start to end.
    pub user_ns: u64,
    /// System CPU time in nanoseconds, of the same processes.
    pub sys_ns: u64,
    /// Number of times that a source, sink or stage gave up its CPU to wait.
    pub voluntary_switches: u64,
    /// Number of times that a source, sink or stage was preempted.
    pub involuntary_switches: u64,
    /// Pipe capacity in bytes granted by the kernel, read back before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_granted: Option<u64>,
    /// Pipe capacity in bytes after the run: a process with the pipe open may have changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_after: Option<u64>,
    /// Send buffer of a socket in bytes, as granted: the kernel doubles the requested size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<u64>,
    /// Receive buffer of a socket in bytes, as granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recv_buffer: Option<u64>,
    /// The maximum message size of this link, in bytes, if it has a limit; larger blocks are split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_limit: Option<u64>,
    /// With several writers on one pipe: share of records split by another writer's bytes, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaved_percent: Option<f64>,
    /// Round trips, in latency mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Each stage, in order from source to sink.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageStats>,
    /// The process between the ends of a link by other programs, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<BrokerStats>,
    /// Each source, in the order of the pairs.
    pub sources: Vec<EndStats>,
    /// Each sink, in the order of the pairs.
    pub sinks: Vec<EndStats>,
    /// The window divided into pieces, sampled by the parent process of source and sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Pieces>,
    /// Results that only an entrant has. An entrant's sample has no `sources` and `sinks`. Its `ns` is measured by the
    /// entrant itself, and CPU time and switches cover all of the entrant's processes from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrant: Option<EntrantStats>,
    /// Resources used by the processes of a line pipeline. The sample of a line pipeline has no `sources` and `sinks`.
    /// Its `bytes` went into the filter, and its `ns` is from before the programs were started until the filter ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineStats>,
}

impl Sample {
    /// Real time in nanoseconds. In samples of earlier versions it includes pipemark's own start barrier and checks.
    pub fn real(&self) -> u64 {
        self.real_ns.unwrap_or(self.wall_ns)
    }

    /// Bytes per second that arrived at the sinks.
    pub fn throughput(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.ns as f64
    }

    /// CPU seconds of sources, sinks and stages per GiB moved.
    pub fn cpu_seconds_per_gib(&self) -> f64 {
        (self.user_ns + self.sys_ns) as f64 / 1e9 / (self.bytes as f64 / GIB)
    }

    /// The figure whose interval decides whether more runs are needed: the median round trip in nanoseconds in latency
    /// mode, otherwise throughput in bytes per second.
    pub fn headline(&self) -> f64 {
        self.valid_latency().map_or_else(|| self.throughput(), |latency| latency.p50 as f64)
    }

    /// The speed: throughput in bytes per second or, in latency mode, the inverse of the median round trip, per second.
    /// In both modes, higher is better.
    pub fn speed(&self) -> f64 {
        self.valid_latency().map_or_else(|| self.throughput(), |latency| 1e9 / latency.p50 as f64)
    }

    /// The round trips; `None` if there are none, the requested rate was missed, or lines were held back.
    pub fn valid_latency(&self) -> Option<&Latency> {
        self.latency.as_ref().filter(|latency| !latency.missed_rate() && !latency.mostly_buffered())
    }

    /// Share of the time that source or sink spent in its own loop outside the calls, in per cent. It is the larger of
    /// the two shares, or their sum if source and sink alternate (on one CPU, or in round trips). `None` in samples of
    /// earlier versions.
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

    /// All sources, then all sinks.
    pub fn ends(&self) -> impl Iterator<Item = &EndStats> {
        self.sources.iter().chain(&self.sinks)
    }
}

/// Counts for each piece of the window, summed over all pairs. The lists have the same length, at most 600.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pieces {
    /// The length of each piece in nanoseconds.
    pub ns: Vec<u64>,
    /// Bytes that arrived.
    pub bytes: Vec<u64>,
    /// Context switches of sources and sinks. This and the lists below are empty if the kernel doesn't report them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<u64>,
    /// CPU time of the sources in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_ns: Vec<u64>,
    /// CPU time of the sinks in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sink_ns: Vec<u64>,
    /// Time in which sources and sinks were runnable but waited for a CPU, in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_ns: Vec<u64>,
}

/// The round trips of one run, or the times of lines through a filter, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Number of round trips or lines.
    pub round_trips: u64,
    /// The fastest.
    pub min: u64,
    /// Half were at most this.
    pub p50: u64,
    /// 90 % were at most this. This and the percentiles below are `None` with too few round trips.
    pub p90: Option<u64>,
    /// 99 % were at most this.
    pub p99: Option<u64>,
    /// 99.9 % were at most this.
    pub p999: Option<u64>,
    /// The slowest.
    pub max: u64,
    /// At a fixed rate: the number of messages due in the window. `due` - `round_trips` - `held` messages were not
    /// sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Lines that the filter held back at the end of the window, until more input arrived or the input ended. The other
    /// figures exclude these lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// The whole distribution: an HDR histogram with three significant digits, V2 with DEFLATE, in base 64.
    pub histogram: String,
}

impl Latency {
    /// Whether the requested rate was missed: less than 99 % of the messages due were sent. Round-trip times then grow
    /// with the length of the run and don't characterise the link.
    pub fn missed_rate(&self) -> bool {
        self.due.is_some_and(|due| ((self.round_trips + self.held.unwrap_or(0)) as f64) < 0.99 * due as f64)
    }

    /// Whether the filter held back more lines than came out. Most times are then unknown.
    pub fn mostly_buffered(&self) -> bool {
        self.held.is_some_and(|held| held > self.round_trips)
    }
}

/// Resources used by one stage (a process and the children it waited for), from start to end.
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
    /// Adds the resources of another stage.
    pub fn add(&mut self, other: &StageStats) {
        self.user_ns += other.user_ns;
        self.sys_ns += other.sys_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// Resources used by the process between the ends of a link by other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrokerStats {
    /// CPU time of all its threads in the measured window, in nanoseconds. `user_ns` of the sample includes it.
    pub cpu_ns: u64,
    /// Peak resident memory in bytes; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss: Option<u64>,
}

/// Counts of one end (a source or sink process), in the measured window and in total.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndStats {
    /// Bytes in the window.
    pub bytes: u64,
    /// Length of the window at this end, in nanoseconds.
    pub ns: u64,
    /// System calls in the window that moved bytes or tried to.
    pub calls: u64,
    /// Mean bytes per call in the window; `None` if no call was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_call: Option<f64>,
    /// Bytes from start to end of the process, including those before and after the window. The counts of source and
    /// sink must agree.
    pub bytes_in_all: u64,
    /// User CPU time in the window, in nanoseconds.
    pub user_ns: u64,
    /// System CPU time in the window, in nanoseconds.
    pub sys_ns: u64,
    /// Voluntary context switches in the window.
    pub voluntary_switches: u64,
    /// Involuntary context switches in the window.
    pub involuntary_switches: u64,
    /// Page faults served without I/O in the window.
    pub minor_faults: u64,
    /// Page faults that needed I/O in the window.
    pub major_faults: u64,
    /// Moves from one CPU to another in the window; `None` if the kernel doesn't report them.
    pub migrations: Option<u64>,
    /// The CPUs that the process was allowed to run on, if it was pinned.
    pub pinned: Option<Vec<Cpu>>,
    /// The CPUs on which the process was running when it was sampled in the window, in ascending order.
    pub cpus: Vec<Cpu>,
    /// Nanoseconds of the window spent in pipemark's loop outside the calls: counting, reading the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<u64>,
    /// Bytes per second that this end could write or check if the transfer took no time; `None` if it does neither.
    pub ceiling: Option<f64>,
    /// Peak resident memory of the process in bytes, for links by other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss: Option<u64>,
    /// XOR of all bytes, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor: Option<u8>,
}
