//! The columns a table of one experiment may have.

use crate::model::Key;

use super::text::Side;

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// A parameter that differs between the trials of the experiment.
    Param(Key),
    /// The name, where trials differ in nothing that has a column.
    Name,
    /// Median throughput.
    Throughput,
    /// Half the interval's width, in per cent of the median.
    Margin,
    /// The interval's ends.
    Interval,
    /// Median time from before the first process was started until the last was gone, of chains.
    Real,
    /// That time as published, for as many bytes.
    PublishedReal,
    /// What a stage passed on per second, times the stages, of chains.
    PerHop,
    /// How many runs there were.
    Runs,
    /// Whether the sink looked at the bytes.
    Touched,
    /// Letters of the footnotes that belong to the row.
    Flags,
    /// How many times as fast as the baseline.
    Ratio,
    /// The interval of that.
    RatioInterval,
    /// Throughput in per cent of the memory-copy limit.
    OfCopy,
    /// CPU seconds per GiB.
    Cpu,
    /// Context switches per MiB, of chains.
    Switches,
    /// Of an entrant, the time that its own clock took.
    Inside,
    /// Of an entrant, the time besides that.
    StartUp,
    /// Of an entrant, its largest process's peak.
    Memory,
    /// CPU seconds per GiB of a filter of lines alone.
    FilterCpu,
    /// CPU time of a pipeline of lines, as perf calls it.
    TaskClock,
    /// How many CPUs that is.
    Cpus,
    /// Its context switches.
    AllSwitches,
    /// Its moves to other CPUs.
    Migrations,
    /// Its page faults.
    Faults,
    /// Its CPU cycles.
    Cycles,
    /// Its instructions.
    Instructions,
    /// Its wrongly predicted branches.
    BranchMisses,
    /// What others measured on other hardware.
    Published,
    /// Median round trip.
    P50,
    /// Its 90th percentile.
    P90,
    /// Its 99th percentile.
    P99,
    /// Its 99.9th percentile.
    P999,
    /// The slowest round trip.
    Slowest,
    /// Round trips per second.
    Trips,
    /// CPU seconds per million messages.
    CpuPerMillion,
    /// Throughput as a bar, in a length that the layout decides.
    Bar,
}

impl Column {
    /// Its two heading lines.
    pub(super) fn heading(self) -> [String; 2] {
        let words = |upper: &str, lower: &str| [upper.to_owned(), lower.to_owned()];
        match self {
            Column::Param(key) => words("", key.into()),
            Column::Name => words("", "trial"),
            Column::Throughput => words("", "throughput"),
            Column::Margin => words("", "95 %"),
            Column::Interval => words("95 %", "interval"),
            Column::Real => words("real", "time"),
            Column::PublishedReal => words("real,", "elsewhere"),
            Column::PerHop => words("per", "hop"),
            Column::Runs => words("", "runs"),
            Column::P50 => words("round trip", "median"),
            Column::P90 => words("", "p90"),
            Column::P99 => words("", "p99"),
            Column::P999 => words("", "p99.9"),
            Column::Slowest => words("", "max"),
            Column::Trips => words("trips", "/s"),
            Column::CpuPerMillion => words("CPU s /", "M msgs"),
            Column::Touched | Column::Flags | Column::Bar => words("", ""),
            Column::Ratio => words("", "ratio"),
            Column::RatioInterval => words("ratio's", "interval"),
            Column::OfCopy => words("% of", "copy"),
            Column::Cpu => words("CPU", "s/GiB"),
            Column::Switches => words("switches", "/MiB"),
            Column::Inside => words("time", "inside"),
            Column::StartUp => words("start", "and end"),
            Column::Memory => words("peak", "memory"),
            Column::FilterCpu => words("filter", "s/GiB"),
            Column::TaskClock => words("task-", "clock"),
            Column::Cpus => words("CPUs", "used"),
            Column::AllSwitches => words("context", "switches"),
            Column::Migrations => words("migra-", "tions"),
            Column::Faults => words("page", "faults"),
            Column::Cycles => words("", "cycles"),
            Column::Instructions => words("instruc-", "tions"),
            Column::BranchMisses => words("branch", "misses"),
            Column::Published => words("published,", "elsewhere"),
        }
    }

    /// Words keep left, figures keep right.
    pub(super) fn side(self) -> Side {
        match self {
            Column::Param(
                Key::Mode
                | Key::Link
                | Key::Send
                | Key::Recv
                | Key::Wait
                | Key::Pages
                | Key::Place
                | Key::Verify
                | Key::Language
                | Key::Program
                | Key::Feed
                | Key::Filter,
            )
            | Column::Name
            | Column::Touched
            | Column::Flags
            | Column::Bar => Side::Left,
            _ => Side::Right,
        }
    }
}
