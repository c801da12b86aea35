//! Samples a run from the parent: the progress of the ends on the shared page, and the kernel's counters. Sampling adds
//! no work to the loops of the ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use pipemark_sys::usage::monotonic_ns;

use pipemark_model::Pieces;

use crate::runner::channel::EndRole;
use crate::runner::control::Control;
use crate::runner::end_process::EndProcess;

/// The largest number of samples kept. When it is exceeded, every second sample is dropped.
const MAX_SNAPSHOTS: usize = 600;

/// The largest number of ends whose kernel counters are read. Reading the counters of more ends would take a noticeable
/// share of CPU time.
const MAX_ENDS: usize = 8;

/// The counters at one moment, counted from the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CounterSnapshot {
    ns: u64,
    bytes: u64,
    switches: u64,
    /// CPU time in nanoseconds, of sources and of sinks.
    cpu_ns: [u64; 2],
    /// Time in which the ends waited for a CPU, in nanoseconds.
    waiting_ns: u64,
}

/// The progress of a run between two samples, for observers.
#[derive(Debug, Clone, Copy)]
pub struct IntervalProgress {
    /// The beginning of the interval, in nanoseconds from the beginning of the window.
    pub from_ns: u64,
    /// The end of the interval, in nanoseconds from the beginning of the window.
    pub to_ns: u64,
    /// Number of bytes that arrived.
    pub bytes: u64,
    /// Number of context switches of all ends; `None` if unknown.
    pub switches: Option<u64>,
}

/// Samples a run's counters at intervals.
pub struct Sampler {
    interval: Duration,
    /// The time of the next sample.
    pub next: Instant,
    /// For each end: its line in the shared page, whether it counts arriving bytes, its side (0 source, 1 sink), its
    /// schedstat file.
    ends: Vec<(usize, bool, usize, Option<File>)>,
    snapshots: Vec<CounterSnapshot>,
    last: Option<CounterSnapshot>,
    seen: usize,
    /// Of every `stride` samples, one is kept.
    stride: usize,
}

impl Sampler {
    /// A sampler of these ends. With `round_trips`, the source counts the bytes that arrived.
    pub fn new(processes: &[EndProcess], round_trips: bool, interval: Duration) -> Sampler {
        let few = processes.len() <= MAX_ENDS;
        let end = |process: &EndProcess| {
            let file = few.then(|| File::open(format!("/proc/{}/schedstat", process.pid())).ok()).flatten();
            let source = process.role == EndRole::Source;
            (process.line, source == round_trips, usize::from(!source), file)
        };
        let ends = processes.iter().map(end).collect();
        Sampler {
            interval,
            next: Instant::now() + interval,
            ends,
            snapshots: Vec::new(),
            last: None,
            seen: 0,
            stride: 1,
        }
    }

    /// Reads the counters, and passes the change since the last call to `watch`. Does nothing before the run is
    /// released.
    pub fn sample(&mut self, control: &Control, watch: &mut dyn FnMut(IntervalProgress)) {
        self.next = (self.next + self.interval).max(Instant::now() + self.interval / 2);
        if control.barriers_passed() < 2 {
            return;
        }
        let mut snapshot = CounterSnapshot { ns: monotonic_ns(), ..CounterSnapshot::default() };
        for (line, arrives, side, file) in &self.ends {
            snapshot.bytes += if *arrives { control.bytes(*line) } else { 0 };
            if let Some([cpu_ns, waiting_ns, slices]) = file.as_ref().and_then(statistics) {
                snapshot.switches += slices;
                snapshot.cpu_ns[*side] += cpu_ns;
                snapshot.waiting_ns += waiting_ns;
            }
        }
        if let (Some(begun), Some(last)) = (control.begun_at(), self.last)
            && last.ns >= begun
        {
            let switches = (snapshot.cpu_ns != [0, 0]).then(|| snapshot.switches.saturating_sub(last.switches));
            let (from_ns, to_ns) = (last.ns - begun, snapshot.ns - begun);
            watch(IntervalProgress { from_ns, to_ns, bytes: snapshot.bytes.saturating_sub(last.bytes), switches });
        }
        self.last = Some(snapshot);
        if self.seen.is_multiple_of(self.stride) {
            self.snapshots.push(snapshot);
        }
        self.seen += 1;
        if self.snapshots.len() > MAX_SNAPSHOTS {
            let mut place = 0;
            self.snapshots.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The pieces between samples that lie entirely in the window of `ns` nanoseconds from `begun_ns`. `None` if there
    /// are none.
    pub fn pieces(&self, begun_ns: u64, ns: u64) -> Option<Pieces> {
        let within = |snapshot: &&CounterSnapshot| (begun_ns..=begun_ns + ns).contains(&snapshot.ns);
        let snapshots: Vec<&CounterSnapshot> = self.snapshots.iter().filter(within).collect();
        let between = |of: fn(&CounterSnapshot) -> u64| -> Vec<u64> {
            snapshots.windows(2).map(|pair| of(pair[1]).saturating_sub(of(pair[0]))).collect()
        };
        let known = snapshots.iter().any(|snapshot| snapshot.cpu_ns != [0, 0]);
        let if_known = |of: fn(&CounterSnapshot) -> u64| if known { between(of) } else { Vec::new() };
        (snapshots.len() > 1).then(|| Pieces {
            ns: between(|snapshot| snapshot.ns),
            bytes: between(|snapshot| snapshot.bytes),
            switches: if_known(|snapshot| snapshot.switches),
            source_ns: if_known(|snapshot| snapshot.cpu_ns[0]),
            sink_ns: if_known(|snapshot| snapshot.cpu_ns[1]),
            waiting_ns: if_known(|snapshot| snapshot.waiting_ns),
        })
    }
}

/// The three numbers of /proc/PID/schedstat: time on a CPU and time waiting for a CPU, both in nanoseconds, and the
/// number of time slices.
fn statistics(file: &File) -> Option<[u64; 3]> {
    let mut text = [0; 96];
    let length = file.read_at(&mut text, 0).ok()?;
    let mut numbers = std::str::from_utf8(&text[..length]).ok()?.split_whitespace().map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(snapshots: Vec<CounterSnapshot>) -> Sampler {
        let (interval, next) = (Duration::from_millis(10), Instant::now());
        Sampler { interval, next, ends: Vec::new(), snapshots, last: None, seen: 0, stride: 1 }
    }

    #[test]
    fn pieces_lie_wholly_in_the_window() {
        let snapshot = |ns: u64| CounterSnapshot {
            ns,
            bytes: 10 * ns,
            switches: ns / 10,
            cpu_ns: [ns / 2, ns / 4],
            waiting_ns: ns / 5,
        };
        let pieces = sampler((0..10).map(|n| snapshot(100 * n)).collect()).pieces(250, 350).unwrap();
        assert_eq!((pieces.ns, pieces.bytes), (vec![100; 3], vec![1000; 3]));
        assert_eq!((pieces.switches, pieces.source_ns, pieces.sink_ns), (vec![10; 3], vec![50; 3], vec![25; 3]));
        assert_eq!(pieces.waiting_ns, vec![20; 3]);
        assert_eq!(sampler(vec![snapshot(100)]).pieces(0, 1000), None);
    }

    #[test]
    fn a_long_run_keeps_a_limited_number_of_samples() {
        let (_page, control) = Control::create(1).unwrap();
        (1..=2).for_each(|nth| drop(control.wait_at_barrier(nth)));
        control.report_flow(1);
        let mut sampler = sampler(Vec::new());
        let mut calls = 0;
        (0..5000).for_each(|_| sampler.sample(&control, &mut |_| calls += 1));
        assert!((MAX_SNAPSHOTS / 2..=MAX_SNAPSHOTS).contains(&sampler.snapshots.len()), "{}", sampler.snapshots.len());
        assert_eq!(calls, 4999, "the observer gets every sample");
    }
}
