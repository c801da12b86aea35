//! Hardware events of a command and all of its descendants, if permitted: perf_event_open(2).

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

use pipemark_sys::usage::scaled_count;

/// The events, in the order of the figures.
const EVENTS: [Hardware; 3] = [Hardware::INSTRUCTIONS, Hardware::CPU_CYCLES, Hardware::CACHE_MISSES];

/// Counters that child processes of this thread inherit, and that count from the first instruction of the child's
/// program. This thread executes no other program, so its own events are not counted.
pub struct HardwareCounters([Option<Counter>; EVENTS.len()]);

impl HardwareCounters {
    /// Starts the counters. Call this before starting the command, in the thread that starts it.
    pub fn new() -> HardwareCounters {
        HardwareCounters(EVENTS.map(counter))
    }

    /// The counts, to be read after all processes of the command have exited. A count is `None` if the machine doesn't
    /// have the counter or this user may not use it.
    pub fn read(self) -> [Option<f64>; EVENTS.len()] {
        self.0.map(|counter| {
            let read = counter?.read_count_and_time().ok()?;
            scaled_count(read.count, read.time_enabled, read.time_running)
        })
    }
}

fn counter(event: Hardware) -> Option<Counter> {
    let builder = || {
        let mut builder = Builder::new(event);
        builder.observe_self().any_cpu().inherit(true).enable_on_exec(true).exclude_hv(true);
        builder
    };
    // Counting kernel events may not be permitted.
    builder().exclude_kernel(false).build().or_else(|_| builder().exclude_kernel(true).build()).ok()
}
