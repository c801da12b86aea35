//! Line filters: their feeds, names, and resource usage.

use serde::{Deserialize, Serialize};

use crate::value::word_enum;

word_enum! {
    /// Where the lines come from.
    pub enum Feed {
        /// yes(1) with lines of 8 bytes, for a fixed time.
        YesShort,
        /// yes(1) with lines of 48 bytes, for a fixed time.
        YesMiddle,
        /// yes(1) with lines of 285 bytes, for a fixed time.
        YesLong,
        /// The input and output of the report's throughput.sh: yes(1) with lines of 286 bytes, head(1), which passes on
        /// as many lines as fit into the total, and pv(1), which reads the filter's output.
        ThroughputSh,
        /// A web server's log in a file in memory.
        File,
        /// The same log, compressed with gzip and read through zcat(1).
        Zcat,
        /// pipemark's own lines of 64 bytes, --rate lines per second for a fixed time. Each line is timed until it
        /// leaves the filter.
        Timed,
    }
}

impl Feed {
    /// Whether the feed never ends by itself.
    pub fn endless(self) -> bool {
        matches!(self, Feed::YesShort | Feed::YesMiddle | Feed::YesLong | Feed::Timed)
    }

    /// Bytes per line, newline included; `None` if the lines differ in length.
    pub fn line_bytes(self) -> Option<u32> {
        match self {
            Feed::YesShort => Some(8),
            Feed::YesMiddle => Some(48),
            Feed::YesLong => Some(285),
            Feed::ThroughputSh => Some(286),
            Feed::Timed => Some(64),
            Feed::File | Feed::Zcat => None,
        }
    }
}

super::entrant::name_type!(
    Filter,
    "line filter; use lower-case letters, digits and hyphens, as in awk or lines-1",
    "the name of a line filter, such as awk or lines-1"
);

/// Resources used by the processes of a line pipeline, each from start to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineStats {
    /// The processes that write the lines; `None` if the filter reads a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<ProcessStats>,
    /// The filter.
    pub filter: ProcessStats,
    /// The process that reads the filter's output; `None` if the filter writes to /dev/null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<ProcessStats>,
}

impl PipelineStats {
    /// The sum over the processes. A counter is `None` if any process lacks it.
    pub fn sum(&self) -> ProcessStats {
        let others = [self.feed, self.reader];
        others.iter().flatten().fold(self.filter, |sum, other| sum.plus(other))
    }
}

/// Resources used by one process, including the threads and processes that it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessStats {
    /// User CPU time in nanoseconds.
    pub user_ns: u64,
    /// System CPU time in nanoseconds.
    pub sys_ns: u64,
    /// Context switches, voluntary or not.
    pub context_switches: u64,
    /// CPU time in nanoseconds of the threads named worker-N, at the end of the measured time; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_ns: Option<u64>,
    /// Page faults, with I/O or without.
    pub page_faults: u64,
    /// Moves to another CPU. This and the counters below are `None` if the machine or the kernel doesn't provide them.
    pub migrations: Option<u64>,
    /// CPU cycles.
    pub cycles: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// Branches.
    pub branches: Option<u64>,
    /// Mispredicted branches.
    pub branch_misses: Option<u64>,
    /// Cache misses: cache lines fetched from memory.
    #[serde(default)]
    pub cache_misses: Option<u64>,
    /// Cycles in which no instruction could be issued.
    #[serde(default)]
    pub stalled_frontend: Option<u64>,
    /// Cycles in which instructions waited for resources.
    #[serde(default)]
    pub stalled_backend: Option<u64>,
}

impl ProcessStats {
    /// CPU time in nanoseconds, which perf calls task-clock.
    pub fn task_clock_ns(&self) -> u64 {
        self.user_ns + self.sys_ns
    }

    /// The sum of both. A counter is `None` if either lacks it.
    pub fn plus(&self, other: &ProcessStats) -> ProcessStats {
        let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        ProcessStats {
            user_ns: self.user_ns + other.user_ns,
            sys_ns: self.sys_ns + other.sys_ns,
            worker_ns: self.worker_ns.or(other.worker_ns),
            context_switches: self.context_switches + other.context_switches,
            page_faults: self.page_faults + other.page_faults,
            migrations: both(self.migrations, other.migrations),
            cycles: both(self.cycles, other.cycles),
            instructions: both(self.instructions, other.instructions),
            branches: both(self.branches, other.branches),
            branch_misses: both(self.branch_misses, other.branch_misses),
            cache_misses: both(self.cache_misses, other.cache_misses),
            stalled_frontend: both(self.stalled_frontend, other.stalled_frontend),
            stalled_backend: both(self.stalled_backend, other.stalled_backend),
        }
    }
}
