//! The table of figures. Each row has a figure's names, its unit, whether higher or lower is better, and its
//! computation from a run.
//!
//! Estimates, table columns, CSV, JSON and its schema, OpenMetrics and the axes of charts are generated from the table.
//! To add a figure, add a row here and the code that uses the figure.

use crate::sample::Sample;
use crate::units::{Better, GIB, Unit};

macro_rules! figures {
    ($(
        $(#[doc = $help:literal])+
        $figure:ident [$($path:literal).+, $column:literal, $heading:literal, $unit:ident, $better:ident]
            = $sample:expr;
    )*) => {
        /// A quantity estimated for each trial that it applies to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Figure {
            $($(#[doc = $help])+ $figure,)*
        }

        impl Figure {
            /// All figures.
            pub fn iter() -> impl Iterator<Item = Figure> {
                [$(Figure::$figure),*].into_iter()
            }

            /// The figure's description.
            pub fn help(self) -> String {
                match self { $(Figure::$figure => [$($help.trim()),+].join(" "),)* }
            }

            /// The path of the figure within a trial's `estimate` in JSON.
            pub fn path(self) -> &'static [&'static str] {
                match self { $(Figure::$figure => &[$($path),+],)* }
            }

            /// The CSV column of the median. The columns of the estimate's other parts are named by appending `_low`,
            /// `_high`, `_min` and `_max`.
            pub fn column(self) -> &'static str {
                match self { $(Figure::$figure => $column,)* }
            }

            /// The heading in tables.
            pub fn heading(self) -> &'static str {
                match self { $(Figure::$figure => $heading,)* }
            }

            /// The figure's unit.
            pub fn unit(self) -> Unit {
                match self { $(Figure::$figure => Unit::$unit,)* }
            }

            /// Whether higher or lower is better.
            pub fn better(self) -> Better {
                match self { $(Figure::$figure => Better::$better,)* }
            }

            /// The figure's value in one run; `None` if the figure doesn't apply to the run. [`Figure::Ratio`] compares
            /// two trials, so it is `None` for every run.
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
    /// CPU seconds of sources, sinks, stages and a broker per GiB.
    CpuSecondsPerGib["cpu_seconds_per_gib", "cpu_seconds_per_gib", "CPU s/GiB", SecondsPerGib, Lower] =
        |sample| Some(sample.cpu_seconds_per_gib());
    /// Speed relative to the baseline in the same round, if there is a baseline. For throughput, it is this trial's
    /// divided by the baseline's; for round trips, the baseline's median divided by this trial's. Above 1 means faster
    /// than the baseline.
    Ratio["ratio", "ratio", "ratio", Ratio, Higher] = |_| None;
    /// Nanoseconds from before the first process starts until the last has ended, which time(1) calls real.
    Real["real_ns", "real_ns", "real time", Nanoseconds, Lower] = |sample| whole(sample.real());
    /// Real time of a chain per GiB in nanoseconds, to compare chains that move different volumes.
    RealPerGib["real_ns_per_gib", "real_ns_per_gib", "real /GiB", Nanoseconds, Lower] = |sample| {
        sample.stages.first().map(|_| sample.real() as f64 / (sample.bytes.max(1) as f64 / GIB))
    };
    /// User CPU time of a chain's processes in nanoseconds.
    UserTime["user_time_ns", "user_time_ns", "user", Nanoseconds, Lower] =
        |sample| sample.stages.first().and_then(|_| whole(sample.user_ns));
    /// System CPU time of a chain's processes in nanoseconds.
    SystemTime["system_time_ns", "system_time_ns", "system", Nanoseconds, Lower] =
        |sample| sample.stages.first().and_then(|_| whole(sample.sys_ns));
    /// Share of a chain's CPU time spent in the kernel, in per cent.
    SystemShare["system_percent", "system_percent", "system %", Percent, Neither] = |sample| {
        sample.stages.first().map(|_| 100.0 * sample.sys_ns as f64 / (sample.user_ns + sample.sys_ns).max(1) as f64)
    };
    /// Bytes per second passed on by all stages of a chain together: bytes times stages, divided by real time. Real
    /// time includes starting and ending the processes.
    PerHop["per_hop", "per_hop", "real per hop", BytesPerSecond, Higher] = |sample| {
        let passed = sample.bytes as f64 * sample.stages.len() as f64 * 1e9;
        sample.stages.first().map(|_| passed / sample.real() as f64)
    };
    /// CPU time of a source per call, in nanoseconds.
    CallTime["call_ns", "call_ns", "CPU per call", Nanoseconds, Lower] = |sample| {
        let source = sample.sources.first().filter(|source| source.calls > 0)?;
        Some((source.user_ns + source.sys_ns) as f64 / source.calls as f64)
    };
    /// CPU time of a source per byte, in nanoseconds.
    ByteTime["byte_ns", "byte_ns", "CPU per byte", Nanoseconds, Lower] = |sample| {
        let source = sample.sources.first().filter(|source| source.bytes > 0)?;
        Some((source.user_ns + source.sys_ns) as f64 / source.bytes as f64)
    };
    /// Pipe capacity granted by the kernel, in bytes.
    Granted["granted", "granted", "capacity", Bytes, Neither] = |sample| sample.capacity_granted.and_then(whole);
    /// With several writers on one pipe: share of records split by another writer's bytes, in per cent.
    Interleaved["interleaved_percent", "interleaved_percent", "interleaved", Percent, Lower] =
        |sample| sample.interleaved_percent;
    /// Length of the measured window in nanoseconds.
    Elapsed["elapsed_ns", "elapsed_ns", "time", Nanoseconds, Lower] = |sample| whole(sample.ns);
    /// Calls made by the sources.
    Calls["calls", "calls", "calls", Count, Lower] = |sample| {
        sample.sources.first().and_then(|_| whole(sample.sources.iter().map(|source| source.calls).sum()))
    };
    /// Context switches of all processes per MiB moved, voluntary and involuntary.
    SwitchesPerMib["switches_per_mib", "switches_per_mib", "switches /MiB", PerMib, Lower] =
        |sample| {
            let switches = (sample.voluntary_switches + sample.involuntary_switches) as f64;
            Some(switches / (sample.bytes as f64 / (1u64 << 20) as f64))
        };
    /// Share of the time spent in pipemark's own code (counting, reading the clock), in per cent. Above 10 %, figures
    /// measure pipemark as well as the link.
    Harness["harness_percent", "harness_percent", "harness %", Percent, Neither] = |sample| sample.harness_percent();
    /// Time that an entrant (a program in another language) spends outside the time it measures, in nanoseconds:
    /// starting, preparing and ending.
    StartUp["start_up_ns", "start_up_ns", "start and end", Nanoseconds, Lower] =
        |sample| sample.entrant.as_ref().and_then(|_| whole(sample.wall_ns.saturating_sub(sample.ns)));
    /// Peak resident memory of the largest process of an entrant, or of a link by other programs, in bytes.
    MaxRss["max_rss", "max_rss", "peak memory", Bytes, Lower] =
        |sample| {
            let broker = sample.broker.and_then(|broker| broker.max_rss);
            let of_ends = || sample.ends().filter_map(|end| end.max_rss).chain(broker).max();
            sample.entrant.as_ref().and_then(|entrant| entrant.max_rss).or_else(of_ends).and_then(whole)
        };
    /// CPU seconds per GiB of a line filter alone, without the process that feeds it.
    FilterCpu["counters"."filter_cpu_seconds_per_gib", "filter_cpu_seconds_per_gib", "filter s/GiB", SecondsPerGib,
        Lower] = |sample| Some(sample.pipeline?.filter.task_clock_ns() as f64 / 1e9 / (sample.bytes as f64 / GIB));
    /// Share of a line filter's CPU time spent in its scheduler's worker threads, in per cent.
    Workers["counters"."worker_percent", "worker_percent", "workers %", Percent, Neither] = |sample| {
        let filter = sample.pipeline?.filter;
        Some(100.0 * filter.worker_ns? as f64 / filter.task_clock_ns().max(1) as f64)
    };
    /// CPU time of all processes of a line pipeline, in nanoseconds.
    TaskClock["counters"."task_clock_ns", "task_clock_ns", "task-clock", Nanoseconds, Lower] =
        |sample| whole(sample.pipeline?.sum().task_clock_ns());
    /// Number of CPUs used by a line pipeline or a chain: CPU time divided by elapsed time.
    Cpus["counters"."cpus", "cpus", "CPUs used", Count, Neither] = |sample| match &sample.pipeline {
        Some(pipeline) => Some(pipeline.sum().task_clock_ns() as f64 / sample.ns as f64),
        None => sample.stages.first().map(|_| (sample.user_ns + sample.sys_ns) as f64 / sample.real() as f64),
    };
    /// Context switches of a line pipeline.
    ContextSwitches["counters"."context_switches", "context_switches", "context switches", Count, Lower] =
        |sample| whole(sample.pipeline?.sum().context_switches);
    /// Moves of a line pipeline's processes to another CPU.
    Migrations["counters"."migrations", "migrations", "migrations", Count, Lower] =
        |sample| sample.pipeline?.sum().migrations.and_then(whole);
    /// Page faults of a line pipeline.
    PageFaults["counters"."page_faults", "page_faults", "page faults", Count, Lower] =
        |sample| whole(sample.pipeline?.sum().page_faults);
    /// CPU cycles of a line pipeline.
    Cycles["counters"."cycles", "cycles", "cycles", Count, Lower] =
        |sample| sample.pipeline?.sum().cycles.and_then(whole);
    /// Instructions of a line pipeline.
    Instructions["counters"."instructions", "instructions", "instructions", Count, Lower] =
        |sample| sample.pipeline?.sum().instructions.and_then(whole);
    /// Mispredicted branches of a line pipeline.
    BranchMisses["counters"."branch_misses", "branch_misses", "branch misses", Count, Lower] =
        |sample| sample.pipeline?.sum().branch_misses.and_then(whole);
    /// Cache misses of a line pipeline: cache lines fetched from memory.
    CacheMisses["counters"."cache_misses", "cache_misses", "cache misses", Count, Lower] =
        |sample| sample.pipeline?.sum().cache_misses.and_then(whole);
    /// Instructions per cycle of a line pipeline.
    Ipc["counters"."ipc", "ipc", "insn/cycle", Count, Higher] = |sample| {
        let all = sample.pipeline?.sum();
        Some(all.instructions? as f64 / all.cycles? as f64)
    };
    /// Clock rate in GHz: cycles of a line pipeline per nanosecond of its CPU time.
    Ghz["counters"."ghz", "ghz", "GHz", Count, Neither] = |sample| {
        let all = sample.pipeline?.sum();
        Some(all.cycles? as f64 / all.task_clock_ns() as f64)
    };
    /// Share of a line pipeline's cycles in which no instruction could be issued, in per cent.
    StalledFrontend["counters"."stalled_frontend_percent", "stalled_frontend_percent", "stalled, front", Percent, Lower] =
        |sample| {
            let all = sample.pipeline?.sum();
            Some(100.0 * all.stalled_frontend? as f64 / all.cycles? as f64)
        };
    /// Share of a line pipeline's cycles in which instructions waited for resources, in per cent.
    StalledBackend["counters"."stalled_backend_percent", "stalled_backend_percent", "stalled, back", Percent, Lower] =
        |sample| {
            let all = sample.pipeline?.sum();
            Some(100.0 * all.stalled_backend? as f64 / all.cycles? as f64)
        };
    /// Cycles in which a line pipeline could issue no instruction.
    StalledFrontendCycles["counters"."stalled_frontend", "stalled_frontend", "stalled cycles, front", Count, Lower] =
        |sample| sample.pipeline?.sum().stalled_frontend.and_then(whole);
    /// Cycles in which instructions of a line pipeline waited for resources.
    StalledBackendCycles["counters"."stalled_backend", "stalled_backend", "stalled cycles, back", Count, Lower] =
        |sample| sample.pipeline?.sum().stalled_backend.and_then(whole);
    /// Stalled cycles of a line pipeline per instruction: those of the frontend or of the backend, whichever are more,
    /// as in perf stat.
    StalledPerInstruction["counters"."stalled_per_instruction", "stalled_per_instruction", "stalled/insn", Count, Lower] =
        |sample| {
            let all = sample.pipeline?.sum();
            Some(all.stalled_frontend?.max(all.stalled_backend?) as f64 / all.instructions? as f64)
        };
    /// Branches of a line pipeline.
    Branches["counters"."branches", "branches", "branches", Count, Neither] =
        |sample| sample.pipeline?.sum().branches.and_then(whole);
    /// Share of a line pipeline's branches that were mispredicted, in per cent.
    BranchMissShare["counters"."branch_miss_percent", "branch_miss_percent", "of all branches", Percent, Lower] = |sample| {
        let all = sample.pipeline?.sum();
        Some(100.0 * all.branch_misses? as f64 / all.branches? as f64)
    };
    /// Context switches of a line pipeline per second of its CPU time, as in perf stat.
    ContextSwitchRate["counters"."context_switches_per_second", "context_switches_per_second", "switches /s", PerSecond,
        Lower] = |sample| per_second(sample, Some(sample.pipeline?.sum().context_switches));
    /// Moves to another CPU of a line pipeline's processes, per second of its CPU time.
    MigrationRate["counters"."migrations_per_second", "migrations_per_second", "migrations /s", PerSecond, Lower] =
        |sample| per_second(sample, sample.pipeline?.sum().migrations);
    /// Page faults of a line pipeline per second of its CPU time.
    PageFaultRate["counters"."page_faults_per_second", "page_faults_per_second", "page faults /s", PerSecond, Lower] =
        |sample| per_second(sample, Some(sample.pipeline?.sum().page_faults));
    /// Branches of a line pipeline per second of its CPU time.
    BranchRate["counters"."branches_per_second", "branches_per_second", "branches /s", PerSecond, Neither] =
        |sample| per_second(sample, sample.pipeline?.sum().branches);
    /// Median round trip of a run, in nanoseconds.
    P50["latency"."p50", "p50_ns", "round trip median", Nanoseconds, Lower] =
        |sample| whole(sample.valid_latency()?.p50);
    /// 90th percentile of a run's round trips, in nanoseconds. This and the higher percentiles are omitted if a run had
    /// too few round trips.
    P90["latency"."p90", "p90_ns", "p90", Nanoseconds, Lower] =
        |sample| sample.valid_latency()?.p90.and_then(whole);
    /// 99th percentile of a run's round trips, in nanoseconds.
    P99["latency"."p99", "p99_ns", "p99", Nanoseconds, Lower] =
        |sample| sample.valid_latency()?.p99.and_then(whole);
    /// 99.9th percentile of a run's round trips, in nanoseconds.
    P999["latency"."p999", "p999_ns", "p99.9", Nanoseconds, Lower] =
        |sample| sample.valid_latency()?.p999.and_then(whole);
    /// Slowest round trip of a run, in nanoseconds.
    Slowest["latency"."max", "max_ns", "max", Nanoseconds, Lower] = |sample| whole(sample.valid_latency()?.max);
    /// With lines at a fixed rate: number of lines that the filter held back until more input arrived or the input
    /// ended.
    Held["latency"."held", "held", "lines held", Count, Lower] = |sample| sample.latency.as_ref()?.held.and_then(whole);
    /// Round trips or lines per second.
    RoundTripsPerSecond["latency"."round_trips_per_second", "round_trips_per_second", "trips /s", PerSecond, Higher] =
        |sample| Some(sample.latency.as_ref()?.round_trips as f64 * 1e9 / sample.ns as f64);
    /// CPU seconds of source and sink per million messages (two per round trip), or of a filter per million lines.
    CpuSecondsPerMillion["latency"."cpu_seconds_per_million", "cpu_seconds_per_million", "CPU s / M msgs",
        SecondsPerMillion, Lower] = |sample| {
        let ways = if sample.pipeline.is_some() { 1.0 } else { 2.0 };
        let messages = ways * sample.latency.as_ref()?.round_trips as f64;
        Some((sample.user_ns + sample.sys_ns) as f64 / 1e9 / messages * 1e6)
    };
}

/// A counter of a line pipeline per second of CPU time; `None` if the counter is missing.
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
