//! Counters of perf_event_open(2) for a process that has not started yet and for its descendants. Any counter may be
//! missing: many virtual machines have no cycle counters, and not every user may observe the kernel.

use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Counter};
use rustix::process::Pid;

use pipemark_model::ProcessStats;
use pipemark_sys::usage::{Usage, scaled_count};

/// Converts the usage of a process to the model's type, without hardware counters.
pub fn process_stats(usage: &Usage) -> ProcessStats {
    ProcessStats {
        user_ns: usage.user_ns,
        sys_ns: usage.sys_ns,
        context_switches: usage.voluntary_switches + usage.involuntary_switches,
        page_faults: usage.minor_faults + usage.major_faults,
        ..ProcessStats::default()
    }
}

/// The counters of one process: migrations, cycles, instructions, branches, mispredicted branches, cache misses, and
/// two counters of stalled cycles. A counter is `None` if it is missing.
pub struct CounterSet([Option<Counter>; 8]);

impl CounterSet {
    /// Creates counters that start when `process` executes its next program.
    pub fn of(process: Pid) -> CounterSet {
        let of = |event: Hardware| counter(event, process);
        CounterSet([
            counter(Software::CPU_MIGRATIONS, process),
            of(Hardware::CPU_CYCLES),
            of(Hardware::INSTRUCTIONS),
            of(Hardware::BRANCH_INSTRUCTIONS),
            of(Hardware::BRANCH_MISSES),
            of(Hardware::CACHE_MISSES),
            of(Hardware::STALLED_CYCLES_FRONTEND),
            of(Hardware::STALLED_CYCLES_BACKEND),
        ])
    }

    /// Adds the counts to `stats`.
    pub fn into_stats(self, stats: ProcessStats) -> ProcessStats {
        let mut counts = self.0.into_iter().map(count);
        // The order is that of the counters in `of`.
        let mut next = || counts.next().flatten();
        ProcessStats {
            migrations: next(),
            cycles: next(),
            instructions: next(),
            branches: next(),
            branch_misses: next(),
            cache_misses: next(),
            stalled_frontend: next(),
            stalled_backend: next(),
            ..stats
        }
    }
}

/// A counter of events in user space and in the kernel. The kernel's work is part of a pipeline's cost, and migrations
/// happen in the kernel. `None` if counting kernel events isn't permitted (/proc/sys/kernel/perf_event_paranoid),
/// because a count without these events isn't comparable with published counts.
fn counter(event: impl Event, process: Pid) -> Option<Counter> {
    Builder::new(event)
        .observe_pid(process.as_raw_nonzero().get())
        .any_cpu()
        .inherit(true)
        .enable_on_exec(true)
        .exclude_kernel(false)
        .exclude_hv(true)
        .build()
        .ok()
}

/// The count, scaled to the whole time; `None` if the counter is missing.
fn count(counter: Option<Counter>) -> Option<u64> {
    let read = counter?.read_count_and_time().ok()?;
    scaled_count(read.count, read.time_enabled, read.time_running).map(|count| count.round() as u64)
}
