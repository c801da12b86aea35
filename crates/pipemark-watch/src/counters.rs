//! The kernel's counters of a pipeline, and what they grew by.

use std::time::Duration;

use pipemark_host::ControlGroups;

use crate::figures::{Counts, sum};
use crate::process;
use crate::sampler::{Subject, Watcher};

/// A clock tick in nanoseconds: USER_HZ is 100 wherever Linux runs.
const TICK: u64 = 10_000_000;

/// For so long a program may read its own libraries, which is not what it reads of the pipeline.
const LOADED: Duration = Duration::from_millis(15);

/// Sums over the processes of a stage.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    ticks: Option<u64>,
    reaped: u64,
    bytes: Option<(u64, u64)>,
    /// Nanoseconds.
    throttled: Option<u64>,
}

impl Watcher {
    /// Reads the counters and adds what they grew by; at the end of an `interval` ticks too are of the next from now on.
    pub(super) fn count(&mut self, interval: bool) {
        let nanoseconds = |groups: &ControlGroups| Some(groups.throttled_now()?.as_nanos() as u64);
        let throttled: Vec<_> = self.groups.iter().map(|(_, groups)| nanoseconds(groups)).collect();
        self.current.stages.resize(self.stages.len(), Counts::default());
        for (stage, counts) in self.stages.iter_mut().zip(&mut self.current.stages) {
            if !stage.alive {
                continue;
            }
            let mut now = Totals::default();
            let mut deltas = [0; 3];
            let (mut seen, mut young) = (false, false);
            for pid in &stage.pids {
                let Some(known) = self.known.get_mut(pid) else { continue };
                // What this process has started has no time from before. Starts are known to 10 ms only.
                let late = matches!(self.subject, Subject::Child(_)) || known.process.start > self.born_after;
                young |= late && stage.since.is_some_and(|since| since.elapsed() < LOADED);
                for thread in &mut known.threads {
                    if let Some(times) = thread.read_times() {
                        let Some(before) = thread.times.replace(times).or(late.then_some([0; 3])) else { continue };
                        (0..3).for_each(|nth| deltas[nth] += times[nth].saturating_sub(before[nth]));
                        seen = true;
                    }
                }
                if let Some(process) = known.read_stat() {
                    now.ticks = sum(now.ticks, Some(process.ticks));
                    now.reaped += process.reaped;
                }
                if let Some((read, wrote)) = known.read_bytes() {
                    let (sum_read, sum_wrote) = now.bytes.unwrap_or_default();
                    now.bytes = Some((sum_read + read, sum_wrote + wrote));
                }
            }
            now.throttled = stage.group.and_then(|place| throttled[place]);
            let before = stage.totals;
            stage.totals = Totals { ticks: if interval { now.ticks } else { before.ticks.or(now.ticks) }, ..now };
            let [run, waited, switches] = deltas;
            let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
            // Threads and children that came and went are in the ticks only, which are coarse.
            let ticks = grown(now.ticks, before.ticks).map(|ticks| ticks.saturating_sub(2) * TICK);
            let samples = counts.states.iter().sum::<u32>();
            let since = samples - counts.last;
            counts.last = samples;
            if seen || ticks.is_some() {
                counts.counted = samples;
                counts.run += run;
                counts.cpu = Some(counts.run.max(ticks.unwrap_or(0)));
                counts.cpu_wait = Some(counts.cpu_wait.unwrap_or(0) + waited);
            }
            // What children read to start is in the bytes of whoever reaps them.
            let reaped = now.reaped != before.reaped;
            let now_bytes = now.bytes.filter(|_| !reaped);
            if young {
                stage.totals.bytes = None;
            }
            let bytes = |of: fn((u64, u64)) -> u64| grown(now_bytes.map(of), before.bytes.map(of));
            counts.counted_bytes += if now_bytes.is_some() && before.bytes.is_some() { since } else { 0 };
            counts.read = sum(counts.read, bytes(|(read, _)| read));
            counts.wrote = sum(counts.wrote, bytes(|(_, wrote)| wrote));
            counts.changed |= reaped || std::mem::take(&mut stage.changed);
            counts.switches = sum(counts.switches, seen.then_some(switches));
            counts.throttled = sum(counts.throttled, grown(now.throttled, before.throttled));
            if stage.ins.is_empty() {
                stage.progress = stage.pids.iter().find_map(|&pid| process::progress(pid));
            }
        }
    }
}
