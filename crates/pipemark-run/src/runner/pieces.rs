//! Samples a run from outside: the ends' progress on the shared page, and the kernel's counters. It
//! costs the ends' loops nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use pipeio_harness::usage::monotonic_ns;

use pipemark_model::Pieces;

use crate::runner::channel::EndRole;
use crate::runner::control::Control;
use crate::runner::end_process::EndProcess;

/// The most samples kept. Beyond that, every second one is dropped.
const MOST: usize = 600;

/// With more ends than this the kernel's counters aren't read: reading them would take a noticeable share of the time.
const MOST_ENDS: usize = 8;

/// Counters at one moment, counted from the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Look {
    ns: u64,
    bytes: u64,
    switches: u64,
    /// CPU time of sources and sinks.
    cpu_ns: [u64; 2],
    /// Time in which the ends waited for a CPU.
    waiting_ns: u64,
}

/// The progress between two samples, for observers.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    /// Its begin and end, in nanoseconds from the beginning of the window.
    pub from_ns: u64,
    /// See `from_ns`.
    pub to_ns: u64,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Context switches of all ends, if known.
    pub switches: Option<u64>,
}

/// Reads a run's counters at intervals.
pub struct Sampler {
    interval: Duration,
    /// The time of the next sample.
    pub next: Instant,
    /// Of each end: its line of the shared page, whether its byte count is of arrivals, its side, its schedstat file.
    ends: Vec<(usize, bool, usize, Option<File>)>,
    looks: Vec<Look>,
    last: Option<Look>,
    seen: usize,
    /// One sample in this many is kept.
    stride: usize,
}

impl Sampler {
    /// Samples these ends. In a round trip the source counts the bytes that arrived.
    pub fn new(processes: &[EndProcess], conversation: bool, interval: Duration) -> Sampler {
        let few = processes.len() <= MOST_ENDS;
        let end = |process: &EndProcess| {
            let file = few.then(|| File::open(format!("/proc/{}/schedstat", process.pid())).ok()).flatten();
            let source = process.role == EndRole::Source;
            (process.line, source == conversation, usize::from(!source), file)
        };
        let ends = processes.iter().map(end).collect();
        Sampler { interval, next: Instant::now() + interval, ends, looks: Vec::new(), last: None, seen: 0, stride: 1 }
    }

    /// Reads the counters and passes their change since the last call to `watch`; does nothing before the run is
    /// released.
    pub fn look(&mut self, control: &Control, watch: &mut dyn FnMut(Passed)) {
        self.next = (self.next + self.interval).max(Instant::now() + self.interval / 2);
        if control.met() < 2 {
            return;
        }
        let mut look = Look { ns: monotonic_ns(), ..Look::default() };
        for (line, arrives, side, file) in &self.ends {
            look.bytes += if *arrives { control.bytes(*line) } else { 0 };
            if let Some([cpu_ns, waiting_ns, slices]) = file.as_ref().and_then(statistics) {
                look.switches += slices;
                look.cpu_ns[*side] += cpu_ns;
                look.waiting_ns += waiting_ns;
            }
        }
        if let (Some(begun), Some(last)) = (control.begun_at(), self.last)
            && last.ns >= begun
        {
            let switches = (look.cpu_ns != [0, 0]).then(|| look.switches.saturating_sub(last.switches));
            let (from_ns, to_ns) = (last.ns - begun, look.ns - begun);
            watch(Passed { from_ns, to_ns, bytes: look.bytes.saturating_sub(last.bytes), switches });
        }
        self.last = Some(look);
        if self.seen.is_multiple_of(self.stride) {
            self.looks.push(look);
        }
        self.seen += 1;
        if self.looks.len() > MOST {
            let mut place = 0;
            self.looks.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The intervals between samples that lie entirely in the window of `ns` from `begun_ns`.
    pub fn pieces(&self, begun_ns: u64, ns: u64) -> Option<Pieces> {
        let within = |look: &&Look| (begun_ns..=begun_ns + ns).contains(&look.ns);
        let looks: Vec<&Look> = self.looks.iter().filter(within).collect();
        let between = |of: fn(&Look) -> u64| -> Vec<u64> {
            looks.windows(2).map(|pair| of(pair[1]).saturating_sub(of(pair[0]))).collect()
        };
        let known = looks.iter().any(|look| look.cpu_ns != [0, 0]);
        let if_known = |of: fn(&Look) -> u64| if known { between(of) } else { Vec::new() };
        (looks.len() > 1).then(|| Pieces {
            ns: between(|look| look.ns),
            bytes: between(|look| look.bytes),
            switches: if_known(|look| look.switches),
            source_ns: if_known(|look| look.cpu_ns[0]),
            sink_ns: if_known(|look| look.cpu_ns[1]),
            waiting_ns: if_known(|look| look.waiting_ns),
        })
    }
}

/// Time on a CPU, time waiting for one, and the number of time slices: /proc/PID/schedstat.
fn statistics(file: &File) -> Option<[u64; 3]> {
    let mut text = [0; 96];
    let length = file.read_at(&mut text, 0).ok()?;
    let mut numbers = std::str::from_utf8(&text[..length]).ok()?.split_whitespace().map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(looks: Vec<Look>) -> Sampler {
        let (interval, next) = (Duration::from_millis(10), Instant::now());
        Sampler { interval, next, ends: Vec::new(), looks, last: None, seen: 0, stride: 1 }
    }

    #[test]
    fn pieces_lie_wholly_in_the_window() {
        let look =
            |ns: u64| Look { ns, bytes: 10 * ns, switches: ns / 10, cpu_ns: [ns / 2, ns / 4], waiting_ns: ns / 5 };
        let pieces = sampler((0..10).map(|n| look(100 * n)).collect()).pieces(250, 350).unwrap();
        assert_eq!((pieces.ns, pieces.bytes), (vec![100; 3], vec![1000; 3]));
        assert_eq!((pieces.switches, pieces.source_ns, pieces.sink_ns), (vec![10; 3], vec![50; 3], vec![25; 3]));
        assert_eq!(pieces.waiting_ns, vec![20; 3]);
        assert_eq!(sampler(vec![look(100)]).pieces(0, 1000), None);
    }

    #[test]
    fn a_long_run_has_no_more_pieces_than_are_kept() {
        let (_page, control) = Control::create(1).unwrap();
        (1..=2).for_each(|nth| drop(control.meet(nth)));
        control.flows(1);
        let mut sampler = sampler(Vec::new());
        let mut told = 0;
        (0..5000).for_each(|_| sampler.look(&control, &mut |_| told += 1));
        assert!((MOST / 2..=MOST).contains(&sampler.looks.len()), "{}", sampler.looks.len());
        assert_eq!(told, 4999, "whoever watches sees all");
    }
}
