//! What the CPU counts of a command and all that comes of it, where that is allowed: perf_event_open(2).

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// The events, in the order of the figures.
const EVENTS: [Hardware; 3] = [Hardware::INSTRUCTIONS, Hardware::CPU_CYCLES, Hardware::CACHE_MISSES];

/// Counters that are handed on to whatever this thread starts, and count from the first instruction of its program. This thread
/// itself never begins one, so it is not counted.
pub struct HardwareCounters([Option<Counter>; EVENTS.len()]);

impl HardwareCounters {
    /// Before the command is started, by the thread that starts it.
    pub fn new() -> HardwareCounters {
        HardwareCounters(EVENTS.map(counter))
    }

    /// After all of it has ended. None where the machine has no such counter, or this user may not have it.
    pub fn read(self) -> [Option<f64>; EVENTS.len()] {
        self.0.map(|counter| {
            let read = counter?.read_count_and_time().ok()?;
            // Scaled to the whole time where counters shared the hardware.
            (read.time_running > 0).then(|| read.count as f64 * (read.time_enabled as f64 / read.time_running as f64))
        })
    }
}

fn counter(event: Hardware) -> Option<Counter> {
    let builder = || {
        let mut builder = Builder::new(event);
        builder.observe_self().any_cpu().inherit(true).enable_on_exec(true).exclude_hv(true);
        builder
    };
    // Not everyone may have the kernel's part counted.
    builder().exclude_kernel(false).build().or_else(|_| builder().exclude_kernel(true).build()).ok()
}
