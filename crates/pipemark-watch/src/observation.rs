//! Observes a command that another part of the program runs, without a screen.

use std::time::{Duration, Instant};

use pipemark_causes::PipelineEvidence;

use crate::{ProcFile, SamplingOptions, Subject, Timeline, Watcher};

/// Samples a command that this program started, and its descendants. `ended` waits until a moment, and returns whether
/// the command has ended by then.
pub fn observe(pid: u32, mut ended: impl FnMut(Instant) -> bool) -> PipelineEvidence {
    let period = Duration::from_millis(10);
    let options =
        SamplingOptions { touch: true, access: ProcFile::Syscall, profile: false, keeps_stacks: false, period };
    let mut watcher = Watcher::new(Subject::Child(pid), options);
    let mut timeline = Timeline::default();
    while !ended(Instant::now() + watcher.pause()) {
        watcher.sample();
        if watcher.is_interval_over() {
            timeline.add(watcher.close_interval());
        }
    }
    timeline.add(watcher.close_interval());
    watcher.evidence(timeline)
}
