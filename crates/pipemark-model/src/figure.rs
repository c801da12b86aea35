//! The one table of figures: what each is called, its unit, which way is better, and how it is taken from a run.
//!
//! Estimates, table columns, CSV, JSON, its schema, OpenMetrics and the axes of charts come from here. A new figure is one
//! row and its use.

use crate::sample::Sample;
use crate::units::{Better, GIB, Unit};

macro_rules! figures {
    ($(
        $(#[doc = $help:literal])+
        $figure:ident [$($path:literal).+, $column:literal, $heading:literal, $unit:ident, $better:ident]
            = $sample:expr;
    )*) => {
        /// One quantity that is estimated for each trial that has it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Figure {
            $($(#[doc = $help])+ $figure,)*
        }

        impl Figure {
            /// All of them.
            pub fn iter() -> impl Iterator<Item = Figure> {
                [$(Figure::$figure),*].into_iter()
            }

            /// What it is, in a sentence.
            pub fn help(self) -> String {
                match self { $(Figure::$figure => [$($help.trim()),+].join(" "),)* }
            }

            /// Where it stands in a trial's `estimate` in JSON.
            pub fn path(self) -> &'static [&'static str] {
                match self { $(Figure::$figure => &[$($path),+],)* }
            }

            /// The name of its column in CSV; `_low`, `_high`, `_min` and `_max` follow for the rest of the estimate.
            pub fn column(self) -> &'static str {
                match self { $(Figure::$figure => $column,)* }
            }

            /// Its heading in a table.
            pub fn heading(self) -> &'static str {
                match self { $(Figure::$figure => $heading,)* }
            }

            /// Its unit.
            pub fn unit(self) -> Unit {
                match self { $(Figure::$figure => Unit::$unit,)* }
            }

            /// Which way is better.
            pub fn better(self) -> Better {
                match self { $(Figure::$figure => Better::$better,)* }
            }

            /// It in one run; `None` where that run has none. The ratio is between trials, so no run has it.
            pub fn of_sample(self, sample: &Sample) -> Option<f64> {
                match self {
                    $(Figure::$figure => {
                        let figure: fn(&Sample) -> Option<f64> = $sample;
                        figure(sample)
                    })*
                }
            }
        }
    };
}

fn whole(count: u64) -> Option<f64> {
    Some(count as f64)
}

figures! {
    /// Bytes per second that reached the sinks.
    Throughput["throughput", "throughput", "throughput", BytesPerSecond, Higher] = |sample| Some(sample.throughput());
    /// CPU seconds of all ends per GiB.
    CpuSecondsPerGib["cpu_seconds_per_gib", "cpu_seconds_per_gib", "CPU s/GiB", SecondsPerGib, Lower] =
        |sample| Some(sample.cpu_seconds_per_gib());
    /// How many times as fast as the baseline in the same round, where there is a baseline: throughput over the baseline's, or
    /// of round trips the baseline's median over this one's. Above 1 is faster in both.
    Ratio["ratio", "ratio", "ratio", Ratio, Higher] = |_| None;
    /// Nanoseconds from before the first process was started until the last was gone: what time(1) calls real.
    Real["real_ns", "real_ns", "real time", Nanoseconds, Lower] = |sample| whole(sample.real());
    /// The same of a chain for each GiB: what chains that move different volumes are compared by.
    RealPerGib["real_ns_per_gib", "real_ns_per_gib", "real /GiB", Nanoseconds, Lower] = |sample| {
        sample.stages.first().map(|_| sample.real() as f64 / (sample.bytes.max(1) as f64 / GIB))
    };
    /// User CPU time of a chain's processes in nanoseconds.
    UserTime["user_time_ns", "user_time_ns", "user", Nanoseconds, Lower] =
        |sample| sample.stages.first().and_then(|_| whole(sample.user_ns));
    /// System CPU time of a chain's processes in nanoseconds.
    SystemTime["system_time_ns", "system_time_ns", "system", Nanoseconds, Lower] =
        |sample| sample.stages.first().and_then(|_| whole(sample.sys_ns));
    /// The share of a chain's CPU time that the kernel took, in per cent.
    SystemShare["system_percent", "system_percent", "system %", Percent, Neither] = |sample| {
        sample.stages.first().map(|_| 100.0 * sample.sys_ns as f64 / (sample.user_ns + sample.sys_ns).max(1) as f64)
    };
    /// Bytes per second that a chain's stages pass on together, by real time: bytes times stages over the time in which the
    /// processes started, worked and ended.
    PerHop["per_hop", "per_hop", "per hop, real", BytesPerSecond, Higher] = |sample| {
        let passed = sample.bytes as f64 * sample.stages.len() as f64 * 1e9;
        sample.stages.first().map(|_| passed / sample.real() as f64)
    };
    /// CPU time in nanoseconds that a source takes for each of its calls.
    CallTime["call_ns", "call_ns", "CPU per call", Nanoseconds, Lower] = |sample| {
        let source = sample.sources.first().filter(|source| source.calls > 0)?;
        Some((source.user_ns + source.sys_ns) as f64 / source.calls as f64)
    };
    /// CPU time in nanoseconds that a source takes for each byte.
    ByteTime["byte_ns", "byte_ns", "CPU per byte", Nanoseconds, Lower] = |sample| {
        let source = sample.sources.first().filter(|source| source.bytes > 0)?;
        Some((source.user_ns + source.sys_ns) as f64 / source.bytes as f64)
    };
    /// Pipe capacity in bytes that the kernel granted.
    Granted["granted", "granted", "capacity", Bytes, Neither] = |sample| sample.capacity_granted.and_then(whole);
    /// Of several writers on one pipe, the share of their records, in per cent, that bytes of others cut.
    Interleaved["interleaved_percent", "interleaved_percent", "interleaved", Percent, Lower] =
        |sample| sample.interleaved_percent;
    /// Nanoseconds of the measured window.
    Elapsed["elapsed_ns", "elapsed_ns", "time", Nanoseconds, Lower] = |sample| whole(sample.ns);
    /// Calls that the sources made.
    Calls["calls", "calls", "calls", Count, Lower] = |sample| {
        sample.sources.first().and_then(|_| whole(sample.sources.iter().map(|source| source.calls).sum()))
    };
    /// Context switches of all processes per MiB moved, voluntary and not.
    SwitchesPerMib["switches_per_mib", "switches_per_mib", "switches /MiB", PerMib, Lower] =
        |sample| {
            let switches = (sample.voluntary_switches + sample.involuntary_switches) as f64;
            Some(switches / (sample.bytes as f64 / (1u64 << 20) as f64))
        };
    /// The share of the time that the harness itself took: counting, and looking at the clock. Above 10 % a figure says as
    /// much of pipemark as of the link.
    Harness["harness_percent", "harness_percent", "harness %", Percent, Neither] = |sample| sample.harness_percent();
    /// Of an entrant, the time outside of its clock in nanoseconds: starting, getting ready and ending.
    StartUp["start_up_ns", "start_up_ns", "start and end", Nanoseconds, Lower] =
        |sample| sample.entrant.as_ref().and_then(|_| whole(sample.wall_ns.saturating_sub(sample.ns)));
    /// Of an entrant, the most memory that its largest process had resident, in bytes.
    MaxRss["max_rss", "max_rss", "peak memory", Bytes, Lower] =
        |sample| sample.entrant.as_ref()?.max_rss.and_then(whole);
    /// CPU seconds per GiB of a filter of lines alone, without what feeds it.
    FilterCpu["counters"."filter_cpu_seconds_per_gib", "filter_cpu_seconds_per_gib", "filter s/GiB", SecondsPerGib,
        Lower] = |sample| Some(sample.pipeline?.filter.task_clock_ns() as f64 / 1e9 / (sample.bytes as f64 / GIB));
    /// CPU time in nanoseconds of all processes of a pipeline of lines.
    TaskClock["counters"."task_clock_ns", "task_clock_ns", "task-clock", Nanoseconds, Lower] =
        |sample| whole(sample.pipeline?.sum().task_clock_ns());
    /// CPU time over elapsed time: how many CPUs a pipeline of lines used, or a chain.
    Cpus["counters"."cpus", "cpus", "CPUs used", Count, Neither] = |sample| match &sample.pipeline {
        Some(pipeline) => Some(pipeline.sum().task_clock_ns() as f64 / sample.ns as f64),
        None => sample.stages.first().map(|_| (sample.user_ns + sample.sys_ns) as f64 / sample.real() as f64),
    };
    /// Context switches of a pipeline of lines.
    ContextSwitches["counters"."context_switches", "context_switches", "context switches", Count, Lower] =
        |sample| whole(sample.pipeline?.sum().context_switches);
    /// Moves to another CPU of a pipeline of lines.
    Migrations["counters"."migrations", "migrations", "migrations", Count, Lower] =
        |sample| sample.pipeline?.sum().migrations.and_then(whole);
    /// Page faults of a pipeline of lines.
    PageFaults["counters"."page_faults", "page_faults", "page faults", Count, Lower] =
        |sample| whole(sample.pipeline?.sum().page_faults);
    /// CPU cycles of a pipeline of lines.
    Cycles["counters"."cycles", "cycles", "cycles", Count, Lower] =
        |sample| sample.pipeline?.sum().cycles.and_then(whole);
    /// Instructions of a pipeline of lines.
    Instructions["counters"."instructions", "instructions", "instructions", Count, Lower] =
        |sample| sample.pipeline?.sum().instructions.and_then(whole);
    /// Branches predicted wrongly, of a pipeline of lines.
    BranchMisses["counters"."branch_misses", "branch_misses", "branch misses", Count, Lower] =
        |sample| sample.pipeline?.sum().branch_misses.and_then(whole);
    /// Cache lines that had to come from memory, of a pipeline of lines.
    CacheMisses["counters"."cache_misses", "cache_misses", "cache misses", Count, Lower] =
        |sample| sample.pipeline?.sum().cache_misses.and_then(whole);
    /// Instructions per cycle of a pipeline of lines.
    Ipc["counters"."ipc", "ipc", "insn/cycle", Count, Higher] = |sample| {
        let all = sample.pipeline?.sum();
        Some(all.instructions? as f64 / all.cycles? as f64)
    };
    /// Cycles of a pipeline of lines per nanosecond of its CPU time: GHz.
    Ghz["counters"."ghz", "ghz", "GHz", Count, Neither] = |sample| {
        let all = sample.pipeline?.sum();
        Some(all.cycles? as f64 / all.task_clock_ns() as f64)
    };
    /// The share of cycles, in per cent, in which a pipeline of lines could begin no instruction.
    StalledFrontend["counters"."stalled_frontend_percent", "stalled_frontend_percent", "stalled, front", Percent, Lower] =
        |sample| {
            let all = sample.pipeline?.sum();
            Some(100.0 * all.stalled_frontend? as f64 / all.cycles? as f64)
        };
    /// The share of cycles, in per cent, in which instructions of a pipeline of lines waited for what they need.
    StalledBackend["counters"."stalled_backend_percent", "stalled_backend_percent", "stalled, back", Percent, Lower] =
        |sample| {
            let all = sample.pipeline?.sum();
            Some(100.0 * all.stalled_backend? as f64 / all.cycles? as f64)
        };
    /// Cycles in which a pipeline of lines could begin no instruction.
    StalledFrontendCycles["counters"."stalled_frontend", "stalled_frontend", "stalled cycles, front", Count, Lower] =
        |sample| sample.pipeline?.sum().stalled_frontend.and_then(whole);
    /// Cycles in which instructions of a pipeline of lines waited for what they need.
    StalledBackendCycles["counters"."stalled_backend", "stalled_backend", "stalled cycles, back", Count, Lower] =
        |sample| sample.pipeline?.sum().stalled_backend.and_then(whole);
    /// Of the two kinds of stalled cycles the more, for each instruction of a pipeline of lines, as perf stat has it.
    StalledPerInstruction["counters"."stalled_per_instruction", "stalled_per_instruction", "stalled/insn", Count, Lower] =
        |sample| {
            let all = sample.pipeline?.sum();
            Some(all.stalled_frontend?.max(all.stalled_backend?) as f64 / all.instructions? as f64)
        };
    /// Branches of a pipeline of lines.
    Branches["counters"."branches", "branches", "branches", Count, Neither] =
        |sample| sample.pipeline?.sum().branches.and_then(whole);
    /// The share of branches, in per cent, that a pipeline of lines predicted wrongly.
    BranchMissShare["counters"."branch_miss_percent", "branch_miss_percent", "of all branches", Percent, Lower] = |sample| {
        let all = sample.pipeline?.sum();
        Some(100.0 * all.branch_misses? as f64 / all.branches? as f64)
    };
    /// Context switches of a pipeline of lines for each second of its CPU time, as the other rates of perf stat.
    ContextSwitchRate["counters"."context_switches_per_second", "context_switches_per_second", "switches /s", PerSecond,
        Lower] = |sample| per_second(sample, Some(sample.pipeline?.sum().context_switches));
    /// Moves to another CPU for each second of CPU time.
    MigrationRate["counters"."migrations_per_second", "migrations_per_second", "migrations /s", PerSecond, Lower] =
        |sample| per_second(sample, sample.pipeline?.sum().migrations);
    /// Page faults for each second of CPU time.
    PageFaultRate["counters"."page_faults_per_second", "page_faults_per_second", "page faults /s", PerSecond, Lower] =
        |sample| per_second(sample, Some(sample.pipeline?.sum().page_faults));
    /// Branches for each second of CPU time.
    BranchRate["counters"."branches_per_second", "branches_per_second", "branches /s", PerSecond, Neither] =
        |sample| per_second(sample, sample.pipeline?.sum().branches);
    /// The median round trip of a run, in nanoseconds.
    P50["latency"."p50", "p50_ns", "round trip median", Nanoseconds, Lower] =
        |sample| whole(sample.sound_latency()?.p50);
    /// The 90th percentile of a run's round trips in nanoseconds; not there, as those below, where a run had too few round
    /// trips to tell.
    P90["latency"."p90", "p90_ns", "p90", Nanoseconds, Lower] =
        |sample| sample.sound_latency()?.p90.and_then(whole);
    /// The 99th percentile.
    P99["latency"."p99", "p99_ns", "p99", Nanoseconds, Lower] =
        |sample| sample.sound_latency()?.p99.and_then(whole);
    /// The 99.9th percentile.
    P999["latency"."p999", "p999_ns", "p99.9", Nanoseconds, Lower] =
        |sample| sample.sound_latency()?.p999.and_then(whole);
    /// The slowest round trip of a run.
    Slowest["latency"."max", "max_ns", "max", Nanoseconds, Lower] = |sample| whole(sample.sound_latency()?.max);
    /// Of lines at a fixed rate, how many the filter held back until more of them or none would come.
    Held["latency"."held", "held", "lines held", Count, Lower] = |sample| sample.latency.as_ref()?.held.and_then(whole);
    /// Round trips per second, or lines.
    RoundTripsPerSecond["latency"."round_trips_per_second", "round_trips_per_second", "trips /s", PerSecond, Higher] =
        |sample| Some(sample.latency.as_ref()?.round_trips as f64 * 1e9 / sample.ns as f64);
    /// CPU seconds of both ends per million messages, of which a round trip is two, or of a filter per million lines.
    CpuSecondsPerMillion["latency"."cpu_seconds_per_million", "cpu_seconds_per_million", "CPU s / M msgs",
        SecondsPerMillion, Lower] = |sample| {
        let ways = if sample.pipeline.is_some() { 1.0 } else { 2.0 };
        let messages = ways * sample.latency.as_ref()?.round_trips as f64;
        Some((sample.user_ns + sample.sys_ns) as f64 / 1e9 / messages * 1e6)
    };
}

/// A counter of a pipeline of lines for each second of its CPU time.
fn per_second(sample: &Sample, count: Option<u64>) -> Option<f64> {
    let rate = count? as f64 * 1e9 / sample.pipeline?.sum().task_clock_ns() as f64;
    rate.is_finite().then_some(rate)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn columns_have_names_of_their_own() {
        let mut seen = HashSet::new();
        for figure in Figure::iter() {
            assert!(seen.insert(figure.column()), "{figure:?}");
            assert!(seen.insert(figure.path().last().unwrap()) || figure.column() == *figure.path().last().unwrap());
        }
    }
}
