//! `pipemark sink`: the end of a pipeline. It counts the bytes that arrive, measures their rate and, if requested,
//! verifies them.

use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use std::{process, thread};

use clap::Args;
use pipeio_harness::buffer::{Bytes, Pages};
use pipeio_harness::recv::{self, ReceiveCall, Receiver};
use pipeio_harness::wait::Wait;
use pipemark_sys::own_descriptors;
use rustix::fs::FileType;

use pipemark_console::{
    ExitError, Format, FormatOption, Progress, VerbResult, WordChoice, catch_interrupts, exit, one_of,
};
use pipemark_model::{ByteSize, Nanos, Throughput, bounded, counted};
use pipemark_run::content::{Check, Payload};
use pipemark_show::{Cell, Column, Grid, Sheet, Style};

use crate::cli::r#gen;

/// The options of `sink`.
#[derive(Debug, Clone, Args)]
pub struct SinkOptions {
    /// Compare the bytes with those of 'pipemark gen CONTENT'
    #[arg(long, value_name = "CONTENT", value_parser = r#gen::content())]
    verify: Option<Payload>,
    /// Fail unless exactly SIZE bytes arrive
    #[arg(long, value_name = "SIZE")]
    total: Option<ByteSize>,
    /// Bytes per read; a larger packet of an O_DIRECT pipe is truncated
    #[arg(long, value_name = "SIZE", default_value = "128k", value_parser = |text: &str| bounded("block size", text, ByteSize(1), MAX_BLOCK))]
    block: ByteSize,
    /// How to receive bytes
    #[arg(long, value_name = "HOW", value_parser = one_of(&METHODS), default_value = "read")]
    recv: ReceiveCall,
    /// Print bytes and rate every TIME, such as 1s, laid out as by iperf3 but in bytes
    #[arg(long, value_name = "TIME", value_parser = |text: &str| bounded("interval", text, Nanos(10_000_000), Nanos(86_400_000_000_000)))]
    interval: Option<Nanos>,
    #[command(flatten)]
    format: FormatOption,
}

const METHODS: [WordChoice<ReceiveCall>; 2] = [
    ("read", ReceiveCall::Read, "read(2), which copies the bytes"),
    ("splice", ReceiveCall::Splice, "splice(2) to /dev/null: pages of a pipe are discarded unread"),
];

/// The time between two updates of the terminal's line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// The largest block. A larger one would only use memory.
const MAX_BLOCK: ByteSize = ByteSize(1 << 30);

/// Receives all of standard input, or what arrives until Ctrl-C.
pub fn run(options: &SinkOptions) -> VerbResult {
    if options.recv == ReceiveCall::Splice && options.verify.is_some() {
        return Err(ExitError::usage("--recv splice never reads the bytes, so it can't verify them; use --recv read"));
    }
    let interrupt = Arc::new(catch_interrupts()?);
    let count = Arc::new(Count { bytes: AtomicU64::new(0), start: OnceLock::new(), line: Mutex::new(SinkLine::new()) });
    let format = options.format.clone();
    let (seen, interrupted) = (count.clone(), interrupt.clone());
    let terminal = io::stderr().is_terminal();
    if let Some(interval) = options.interval {
        if format.format != Format::Text {
            return Err(ExitError::usage("--interval prints text only; omit --format"));
        }
        let count = count.clone();
        own_descriptors::spawn(move || count.print_intervals(interval.into())).map_err(no_thread)?;
    }
    let report_at_interrupt = move || {
        // A read that waits for bytes doesn't return on Ctrl-C, so this thread handles Ctrl-C.
        while !interrupted.requested_within(if terminal { UPDATE_INTERVAL } else { Duration::from_secs(3600) }) {
            seen.show();
        }
        let _first = seen.report();
        let _ = format.print(&sheet(&seen.arrived(None), format.format), None);
        process::exit(exit::INTERRUPTED.into());
    };
    own_descriptors::spawn(report_at_interrupt).map_err(no_thread)?;
    let stdin = io::stdin();
    let check = receive(stdin.as_fd(), options, &count)
        .map_err(|error| ExitError::failed(format_args!("cannot read standard input: {error}")))?;
    let mut first = count.report();
    if options.interval.is_some() {
        // The error is ignored: if the reader has left, printing the report fails too.
        let _ = count.print_interval(&mut first);
    }
    let fault = fault(check.as_ref(), count.bytes(), options);
    let arrived = count.arrived(check.map(|_| fault.is_none()));
    let printed = options.format.print(&sheet(&arrived, options.format.format), None);
    match fault {
        Some(fault) => Err(ExitError::with(exit::NOT_VERIFIED, fault)),
        // Ctrl-C also ends the source, which ends the input.
        None if interrupt.requested() => Err(ExitError::code(exit::INTERRUPTED)),
        None => Ok(printed?),
    }
}

fn no_thread(error: io::Error) -> ExitError {
    ExitError::failed(format_args!("a thread could not be started: {error}"))
}

/// The bytes that have arrived so far, shared by two threads.
struct Count {
    bytes: AtomicU64,
    /// When the first byte arrived.
    start: OnceLock<Instant>,
    /// The line with the current throughput, on a terminal. The thread that prints the final report keeps it locked.
    line: Mutex<SinkLine>,
}

/// The output printed so far.
struct SinkLine {
    progress: Progress,
    /// The end of the last printed interval, as time since the first byte, and the bytes that arrived until then.
    until: Duration,
    bytes: u64,
}

impl SinkLine {
    fn new() -> SinkLine {
        SinkLine { progress: Progress::new(false), until: Duration::ZERO, bytes: 0 }
    }
}

impl Count {
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn arrived(&self, verified: Option<bool>) -> Arrived {
        let elapsed = self.start.get().map_or(Duration::ZERO, Instant::elapsed);
        Arrived { bytes: self.bytes(), elapsed, verified }
    }

    fn show(&self) {
        if let (Some(start), Ok(mut line)) = (self.start.get(), self.line.lock()) {
            let rate = Throughput(self.bytes() as f64 / start.elapsed().as_secs_f64());
            line.progress.show(&format!("{} {rate}", ByteSize(self.bytes())));
        }
    }

    /// Prints the bytes of each interval since the first byte, until the process ends or nobody reads the output.
    fn print_intervals(&self, interval: Duration) {
        let start = wait_for(interval, || self.start.get().copied());
        for tick in 1u32.. {
            thread::sleep((start + interval * tick).saturating_duration_since(Instant::now()));
            // The thread that prints the final report keeps the lock until the process ends.
            let Ok(mut line) = self.line.lock() else { return };
            line.progress.clear();
            if self.print_interval(&mut line).is_err() {
                return;
            }
        }
    }

    /// Prints the bytes since the last line, with the time they took. On a busy machine this time is slightly more than
    /// an interval.
    fn print_interval(&self, line: &mut SinkLine) -> io::Result<()> {
        let (Some(start), bytes) = (self.start.get(), self.bytes()) else { return Ok(()) };
        let until = start.elapsed();
        let heading = if line.until.is_zero() { INTERVAL_HEADING } else { "" };
        let printed = writeln!(io::stdout(), "{heading}{}", interval_line(line.until, until, bytes - line.bytes));
        (line.until, line.bytes) = (until, bytes);
        printed
    }

    /// Clears the line and locks it for the final report.
    fn report(&self) -> MutexGuard<'_, SinkLine> {
        let mut line = self.line.lock().expect("whoever holds it doesn't panic");
        line.progress.clear();
        line
    }
}

/// Calls `value` ten times per interval until it returns a value.
fn wait_for<T>(interval: Duration, mut value: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(value) = value() {
            return value;
        }
        thread::sleep(interval / 10);
    }
}

/// The line above the first interval, as printed by iperf3.
const INTERVAL_HEADING: &str = "Interval            Transfer          Rate\n";

/// A line such as `  1.00-2.00   sec    512 MiB     512 MiB/s`, with the columns of iperf3 except the first, the ID.
fn interval_line(from: Duration, to: Duration, bytes: u64) -> String {
    let rate = Throughput(bytes as f64 / (to - from).as_secs_f64().max(1e-9));
    let interval = format!("{:6.2}-{:<6.2} sec", from.as_secs_f64(), to.as_secs_f64());
    format!("{interval}  {:>9}  {:>12}", ByteSize(bytes).to_string(), rate.to_string())
}

/// The bytes that arrived, and the time since the first byte.
struct Arrived {
    bytes: u64,
    elapsed: Duration,
    verified: Option<bool>,
}

/// Receives everything, and returns the check of the bytes; `None` if not requested.
fn receive(input: BorrowedFd<'_>, options: &SinkOptions, count: &Count) -> io::Result<Option<Check>> {
    let mut receiver = receiver(input, options)?;
    let total = options.total.map_or(u64::MAX, |total| total.0);
    let mut check = options.verify.as_ref().map(|content| Check::new(content, total));
    loop {
        let received = receiver.recv()?;
        if received.bytes == 0 {
            return Ok(check);
        }
        count.start.get_or_init(Instant::now);
        // A plain store is enough, because only this thread writes the counter.
        count.bytes.store(count.bytes() + received.bytes as u64, Ordering::Relaxed);
        if let (Some(check), Some(bytes)) = (&mut check, received.data.and_then(Bytes::as_slice)) {
            check.compare(bytes);
        }
    }
}

fn receiver(input: BorrowedFd<'_>, options: &SinkOptions) -> io::Result<Box<dyn Receiver + Send>> {
    let method = options.recv;
    if method == ReceiveCall::Splice && FileType::from_raw_mode(rustix::fs::fstat(input)?.st_mode) != FileType::Fifo {
        return Err(io::Error::other("--recv splice needs a pipe, and standard input is not one; use --recv read"));
    }
    let options =
        recv::RecvOptions { block: options.block.as_usize(), align: 0, pages: Pages::Base, wait: Wait::Shared };
    recv::open(method, input.try_clone_to_owned()?, &options)
}

/// The fault in the bytes that arrived, as a sentence; `None` if there is none.
fn fault(check: Option<&Check>, bytes: u64, options: &SinkOptions) -> Option<String> {
    let wrong = check.and_then(Check::fault).map(str::to_owned);
    let expected = options.total.filter(|expected| expected.0 != bytes);
    let number =
        expected.map(|expected| format!("{} arrived; {} were expected", counted(bytes as usize, "byte"), expected.0));
    // The last line of a log is adjusted to its size, so logs of different sizes have different last lines.
    match &options.verify {
        Some(Payload::Log { .. }) if options.total.is_none() => {
            wrong.map(|wrong| format!("{wrong}; to verify a log, give sink the same --total as gen"))
        }
        Some(Payload::Log { .. }) => number.or(wrong),
        _ => wrong.or(number),
    }
}

/// The result: a sentence as text, a row in other formats.
fn sheet(arrived: &Arrived, format: Format) -> Sheet {
    if format == Format::Text {
        let mut sheet = Sheet::default();
        sheet.text(Style::Plain, [sentence(arrived)]);
        return sheet;
    }
    let ns = Nanos::from(arrived.elapsed);
    let rate = arrived.bytes as f64 / ns.seconds().max(1e-9);
    let verified = arrived.verified;
    let row = vec![
        Cell::of(arrived.bytes.to_string(), arrived.bytes),
        Cell::of(ns.0.to_string(), ns.0),
        Cell::of(rate.to_string(), rate),
        Cell::of(verified.map_or_else(String::new, |verified| verified.to_string()), verified),
    ];
    let columns = ["bytes", "ns", "throughput", "verified"].map(|name| Column::figures(name, name)).to_vec();
    Sheet::of(Grid::new(columns, vec![row]), [])
}

fn sentence(arrived: &Arrived) -> String {
    let Arrived { bytes, elapsed, verified } = *arrived;
    if bytes == 0 {
        return "no bytes".to_owned();
    }
    let rate = Throughput(bytes as f64 / elapsed.as_secs_f64().max(1e-9));
    let verified = if verified == Some(true) { ", verified" } else { "" };
    let count = counted(bytes as usize, "byte");
    format!("{rate} ({count}, {}, in {}){verified}", ByteSize(bytes), Nanos::from(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_the_columns_of_iperf3() {
        let line = |from, to, bytes| interval_line(Duration::from_millis(from), Duration::from_millis(to), bytes);
        assert_eq!(line(0, 1000, 512 << 20), "  0.00-1.00   sec    512 MiB     512 MiB/s");
        assert_eq!(line(9500, 10_000, 0).split_whitespace().next(), Some("9.50-10.00"));
        assert_eq!(INTERVAL_HEADING.trim_end().len(), line(0, 1000, 1).len());
    }
}
