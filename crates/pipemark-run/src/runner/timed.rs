//! Writes lines at a fixed rate through a filter, and measures how long the filter takes to output each. A filter that
//! waits for more input before it writes delays the lines.
//!
//! A line contains its number and its start time, so the reader of the output knows both and verifies each byte. The
//! start time of a line is when the line was due, so that a filter that reads slowly gets no advantage. If the writer
//! woke up later, the start time is the time of its wake-up. Lines that the filter outputs only after its input has
//! ended count as held back and aren't timed, because with more input they would have waited longer.

use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pipemark_sys::usage::monotonic_ns;
use rustix::pipe::{PipeFlags, pipe_with};

use pipemark_entrants::{FilterTask, quoted};
use pipemark_host::child::error::{RunError, explained};
use pipemark_host::child::{Begin, Child, wait_readable};
use pipemark_model::{Filter, Latency, Nanos, PipelineStats, Sample};

use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::hardware_counters::process_stats;
use crate::runner::{end, proof};

/// The length of a line in bytes, newline included.
const LINE_BYTES: usize = 64;

/// Number of lines that aren't timed. The second follows once the filter has read the first. The others follow at a
/// fixed interval.
const WARM_UP_LINES: u64 = 16;
const WARM_UP_PAUSE: Duration = Duration::from_millis(1);

/// The time after the last write in which the filter may output the remaining lines.
const GRACE: Duration = Duration::from_millis(50);

/// A line has 0 to `SPACES - 1` spaces: its number modulo `SPACES`.
const SPACES: u64 = 9;

/// Makes one run.
///
/// # Errors
/// If the run failed or an output line was wrong.
pub fn run(
    (filter, does, words): (&Filter, FilterTask, &[String]),
    (rate, time): (u32, Nanos),
    conditions: &Conditions<'_>,
) -> Result<RunResult, RunError> {
    if does == FilterTask::Count {
        return Err(RunError::NotHere(format!("{filter} outputs no lines to time")));
    }
    let started = |error: io::Error| RunError::Failed(format!("{filter} could not be started: {}", explained(&error)));
    let begin = Instant::now();
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| started(error.into()));
    let ((input, to), (from, output)) = (pipe()?, pipe()?);
    let mut child =
        Child::start_foreign(filter.as_str(), words, (input, output), None, Begin::AtOnce).map_err(started)?;
    let deadline = begin + conditions.limit;
    let (stop, closed_ns) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
    let mut arrivals = ArrivalTimes::new(does)?;
    let (read, written) = thread::scope(|scope| {
        let write_lines = || write(to, rate, time, &stop, &closed_ns);
        let writer = thread::Builder::new().spawn_scoped(scope, write_lines)?;
        let read = arrivals.read(&from, &closed_ns, deadline, conditions);
        if read.is_err() {
            // Killing the filter unblocks its writer.
            stop.store(true, Ordering::Relaxed);
            child.kill();
        }
        Ok((read, writer.join().expect("the writer of lines does not panic")))
    })
    .map_err(started)?;
    read?;
    child.wait(deadline.max(Instant::now() + Duration::from_secs(1)), Some(conditions.interrupt))?;
    let usage = child.succeeded()?;
    let written = written.map_err(|error| RunError::Failed(format!("the lines could not be written: {error}")))?;
    if arrivals.next != written.lines + WARM_UP_LINES {
        let (came, went) = (arrivals.next, written.lines + WARM_UP_LINES);
        return Err(RunError::Unverified(format!("{filter} wrote {came} of {went} lines")));
    }
    let due = (f64::from(rate) * written.ns as f64 / 1e9).round() as u64;
    let latency = Latency { held: Some(arrivals.held), ..end::summary(&arrivals.times, Some(due)).map_err(started)? };
    let sample = Sample {
        bytes: written.lines * LINE_BYTES as u64,
        ns: written.ns,
        wall_ns: Nanos::from(begin.elapsed()).0,
        user_ns: usage.user_ns,
        sys_ns: usage.sys_ns,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        latency: Some(latency),
        pipeline: Some(PipelineStats { filter: process_stats(&usage), feed: None, reader: None }),
        ..Sample::default()
    };
    Ok(RunResult { sample, notes: Vec::new() })
}

/// The lines written during the window.
struct SentLines {
    lines: u64,
    ns: u64,
}

/// Writes each line when it is due, until the window is over. Then waits for [`GRACE`], in which the filter may output
/// the last lines, and ends the filter's input.
fn write(to: OwnedFd, rate: u32, time: Nanos, stop: &AtomicBool, closed_ns: &AtomicU64) -> io::Result<SentLines> {
    // By default the kernel may wake a sleeper 50 µs late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut to = std::fs::File::from(to);
    let mut number = 0;
    while number < WARM_UP_LINES && !stop.load(Ordering::Relaxed) {
        to.write_all(&line(number, monotonic_ns()))?;
        number += 1;
        thread::sleep(WARM_UP_PAUSE);
        while number == 1 && rustix::io::ioctl_fionread(&to)? > 0 && !stop.load(Ordering::Relaxed) {
            thread::sleep(WARM_UP_PAUSE);
        }
    }
    let interval = 1e9 / f64::from(rate);
    // The window is long enough for at least one line, even in a run that is scaled down to a very short time.
    let window = time.0.max(interval.ceil() as u64);
    let begin = monotonic_ns();
    let (mut lines, mut woke) = (0, begin);
    while !stop.load(Ordering::Relaxed) {
        let due = begin + ((lines + 1) as f64 * interval) as u64;
        let now = monotonic_ns();
        if due.max(now) > begin + window {
            break;
        }
        if now < due {
            thread::sleep(Duration::from_nanos(due - now));
            woke = monotonic_ns();
        }
        to.write_all(&line(number, due.max(woke)))?;
        (number, lines) = (number + 1, lines + 1);
    }
    thread::sleep(GRACE);
    closed_ns.store(monotonic_ns(), Ordering::Relaxed);
    Ok(SentLines { lines, ns: window })
}

/// A line with its number, its start time, spaces, and padding. The number determines how many spaces there are.
fn line(number: u64, ns: u64) -> [u8; LINE_BYTES] {
    let mut line = [b'x'; LINE_BYTES];
    line[..16].copy_from_slice(&hex(number));
    line[16..32].copy_from_slice(&hex(ns));
    line[32..32 + (number % SPACES) as usize].fill(b' ');
    line[LINE_BYTES - 1] = b'\n';
    line
}

fn hex(number: u64) -> [u8; 16] {
    std::array::from_fn(|digit| b"0123456789abcdef"[(number >> (60 - 4 * digit)) as usize & 15])
}

/// The output of the filter so far.
struct ArrivalTimes {
    /// The prefix of a line, indexed by the line's number of spaces.
    headers: Vec<Vec<u8>>,
    /// The number of the next expected line.
    next: u64,
    times: Histogram<u64>,
    held: u64,
}

impl ArrivalTimes {
    fn new(does: FilterTask) -> Result<ArrivalTimes, RunError> {
        let header = |spaces: u64| match does {
            FilterTask::Transform => {
                let mut header = proof::expected(&line(spaces, 0));
                header.truncate(header.len() - LINE_BYTES);
                header
            }
            _ => Vec::new(),
        };
        let times =
            Histogram::new_with_bounds(1, end::MAX_NS, 3).map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(ArrivalTimes { headers: (0..SPACES).map(header).collect(), next: 0, times, held: 0 })
    }

    /// Reads to the end of the output.
    fn read(
        &mut self,
        from: &OwnedFd,
        closed_ns: &AtomicU64,
        deadline: Instant,
        conditions: &Conditions<'_>,
    ) -> Result<(), RunError> {
        let mut buffer = vec![0; 256 << 10];
        let mut filled = 0;
        loop {
            if wait_readable(&[from.as_fd()], deadline, Some(conditions.interrupt))?.is_none() {
                let limit = conditions.limit;
                return Err(RunError::Failed(format!("the run was aborted at its limit of {limit:?}")));
            }
            let read = rustix::io::read(from, &mut buffer[filled..]);
            let now = monotonic_ns();
            let read = read.map_err(|error| RunError::Failed(format!("the lines could not be read: {error}")))?;
            filled += read;
            let held = now >= closed_ns.load(Ordering::Relaxed);
            let mut rest = &buffer[..filled];
            while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                self.arrived(&rest[..=end], now, held)?;
                rest = &rest[end + 1..];
            }
            if read == 0 || rest.len() > buffer.len() / 2 {
                let begun =
                    format!("the last line is incomplete: '{}'", quoted(&String::from_utf8_lossy(rest), LINE_BYTES));
                return if rest.is_empty() { Ok(()) } else { Err(RunError::Unverified(begun)) };
            }
            let start = filled - rest.len();
            buffer.copy_within(start..filled, 0);
            filled -= start;
        }
    }

    fn arrived(&mut self, whole: &[u8], now: u64, held: bool) -> Result<(), RunError> {
        let header = &self.headers[(self.next % SPACES) as usize];
        let time = whole
            .get(header.len() + 16..header.len() + 32)
            .and_then(|hex| u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let as_sent = time.filter(|ns| whole.strip_prefix(&header[..]) == Some(&line(self.next, *ns)));
        let Some(ns) = as_sent else {
            let shown = quoted(String::from_utf8_lossy(whole).trim_end(), 2 * LINE_BYTES);
            return Err(RunError::Unverified(format!("line {} came out as '{shown}'", self.next + 1)));
        };
        self.next += 1;
        match held {
            _ if self.next <= WARM_UP_LINES => {}
            true => self.held += 1,
            false => self.times.saturating_record(now.saturating_sub(ns).max(1)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_any_wrong_byte_is_refused() {
        let whole = |number: u64| [b"[spaces: 0]".as_slice(), &line(number, 5)].concat();
        let arrived = |whole: &[u8]| ArrivalTimes::new(FilterTask::Transform).unwrap().arrived(whole, 9, false);
        assert!(arrived(&whole(0)).is_ok());
        assert!(arrived(&whole(9)).is_err(), "a line is missing");
        assert!(arrived(&line(0, 5)).is_err(), "the line was not transformed");
        assert!(arrived(b"\n").is_err() && arrived(&[0xff; 90]).is_err());
        let mut changed = whole(0);
        changed[60] ^= 1;
        assert!(arrived(&changed).is_err());
        assert!(ArrivalTimes::new(FilterTask::Copy).unwrap().arrived(&line(0, 5), 9, false).is_ok());
    }

    #[test]
    fn only_lines_before_the_end_are_timed() {
        let mut arrivals = ArrivalTimes::new(FilterTask::Copy).unwrap();
        for number in 0..WARM_UP_LINES + 3 {
            arrivals.arrived(&line(number, 1000), 3000, number == WARM_UP_LINES + 2).unwrap();
        }
        assert_eq!((arrivals.times.len(), arrivals.times.max(), arrivals.held), (2, 2000, 1));
    }
}
