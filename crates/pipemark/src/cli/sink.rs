//! `pipemark sink`: the missing end of a pipeline, which counts, measures and, if asked, checks what arrives.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use pipeio::memory::Pages;
use pipeio::recv::{self, Method, Receiver};
use pipeio::wait::Wait;
use rustix::fs::FileType;

use super::output::{Format, FormatOption};
use super::{Ending, Stop, exit, r#gen};
use crate::content::{Check, Payload};
use crate::model::{ByteSize, Nanos, Throughput};
use crate::sheet::{Cell, Column, Grid, Sheet, Style};

/// What `sink` takes.
#[derive(Debug, Clone, Args)]
pub struct SinkOptions {
    /// Compare with what 'pipemark gen CONTENT' writes
    #[arg(long, value_name = "CONTENT", value_parser = r#gen::content())]
    verify: Option<Payload>,
    /// Fail unless SIZE bytes arrive
    #[arg(long, value_name = "SIZE")]
    total: Option<ByteSize>,
    /// Bytes to ask for with one call
    #[arg(long, value_name = "SIZE", default_value = "128k", value_parser = block)]
    block: ByteSize,
    /// How to receive
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    recv: Recv,
    #[command(flatten)]
    format: FormatOption,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Recv {
    /// read(2): the bytes are copied to memory of the sink
    #[default]
    Read,
    /// splice(2) to /dev/null: a pipe's pages are dropped, nobody sees the bytes
    Splice,
}

/// A larger block would only take memory.
const LARGEST_BLOCK: u64 = 1 << 30;

fn block(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse().map_err(|error: crate::model::BadValue| error.to_string())?;
    if !(1..=LARGEST_BLOCK).contains(&size.0) {
        return Err(format!("a block has from 1 byte to {}", ByteSize(LARGEST_BLOCK)));
    }
    Ok(size)
}

/// Takes all of standard input.
pub fn run(options: &SinkOptions) -> Ending {
    if options.recv == Recv::Splice && options.verify.is_some() {
        return Err(Stop::usage("--recv splice never sees the bytes, so it can't verify them; use --recv read"));
    }
    let stdin = io::stdin();
    let arrived = receive(stdin.as_fd(), options)
        .map_err(|error| Stop::failed(format_args!("standard input can't be read: {error}")))?;
    let said = options.format.print(&sheet(&arrived, options.format.format), None);
    match fault(&arrived, options) {
        Some(fault) => Err(Stop::with(exit::NOT_VERIFIED, fault)),
        None => Ok(said?),
    }
}

/// What arrived, and in which time since the first byte.
struct Arrived {
    bytes: u64,
    elapsed: Duration,
    check: Option<Check>,
}

fn receive(input: BorrowedFd<'_>, options: &SinkOptions) -> io::Result<Arrived> {
    let mut receiver = receiver(input, options)?;
    let mut arrived = Arrived { bytes: 0, elapsed: Duration::ZERO, check: options.verify.as_ref().map(Check::new) };
    let mut progress = Progress::new();
    let mut start = None;
    loop {
        let received = receiver.recv()?;
        let start = *start.get_or_insert_with(Instant::now);
        if received.bytes == 0 {
            arrived.elapsed = start.elapsed();
            progress.clear();
            return Ok(arrived);
        }
        arrived.bytes += received.bytes as u64;
        if let (Some(check), Some(bytes)) = (&mut arrived.check, received.data) {
            check.compare(bytes);
        }
        progress.show(arrived.bytes, start);
    }
}

fn receiver(input: BorrowedFd<'_>, options: &SinkOptions) -> io::Result<Box<dyn Receiver + Send>> {
    let method = match options.recv {
        Recv::Read => Method::Read,
        Recv::Splice => {
            let kind = FileType::from_raw_mode(rustix::fs::fstat(input)?.st_mode);
            if kind != FileType::Fifo {
                return Err(io::Error::other(
                    "--recv splice takes pages from a pipe, and this is none; use --recv read",
                ));
            }
            Method::Splice
        }
    };
    let options = recv::Options { block: options.block.as_usize(), align: 0, pages: Pages::Base, wait: Wait::Shared };
    recv::open(method, input.try_clone_to_owned()?, &options)
}

/// What is wrong with what arrived: a sentence.
fn fault(arrived: &Arrived, options: &SinkOptions) -> Option<String> {
    if let Some(fault) = arrived.check.as_ref().and_then(Check::fault) {
        return Some(fault.to_owned());
    }
    let ByteSize(expected) = options.total?;
    (arrived.bytes != expected).then(|| format!("{} bytes arrived, {expected} were expected", arrived.bytes))
}

/// A sentence at a terminal, elsewhere a row.
fn sheet(arrived: &Arrived, format: Format) -> Sheet {
    let mut sheet = Sheet::default();
    if format == Format::Text {
        sheet.text(Style::Plain, [sentence(arrived)]);
        return sheet;
    }
    let ns = Nanos::from(arrived.elapsed);
    let rate = arrived.bytes as f64 / ns.seconds().max(1e-9);
    let verified = arrived.check.as_ref().map(|check| check.fault().is_none());
    let row = vec![
        Cell::of(arrived.bytes.to_string(), arrived.bytes),
        Cell::of(ns.0.to_string(), ns.0),
        Cell::of(rate.to_string(), rate),
        Cell::of(verified.map_or_else(String::new, |verified| verified.to_string()), verified),
    ];
    let columns = ["bytes", "ns", "throughput", "verified"].map(|name| Column::figures(name, name)).to_vec();
    sheet.grid(Grid::new(columns, vec![row]));
    sheet
}

fn sentence(arrived: &Arrived) -> String {
    let bytes = arrived.bytes;
    let size = ByteSize(bytes);
    let seconds = arrived.elapsed.as_secs_f64();
    let verified = if arrived.check.as_ref().is_some_and(|check| check.fault().is_none()) { ", verified" } else { "" };
    if bytes == 0 {
        return "no bytes".to_owned();
    }
    let rate = Throughput(bytes as f64 / seconds.max(1e-9));
    format!("{rate} ({bytes} bytes, {size}, in {}){verified}", Nanos::from(arrived.elapsed))
}

/// The throughput until now, on a terminal.
struct Progress {
    terminal: bool,
    calls: u32,
    shown: Option<Instant>,
}

impl Progress {
    /// Calls between two looks at the clock, which at a few bytes a call still is a matter of milliseconds.
    const STRIDE: u32 = 64;
    const EVERY: Duration = Duration::from_millis(500);

    fn new() -> Progress {
        Progress { terminal: io::stderr().is_terminal(), calls: 0, shown: None }
    }

    fn show(&mut self, bytes: u64, start: Instant) {
        self.calls = self.calls.wrapping_add(1);
        if !self.terminal || !self.calls.is_multiple_of(Self::STRIDE) {
            return;
        }
        if self.shown.unwrap_or(start).elapsed() >= Self::EVERY {
            let rate = Throughput(bytes as f64 / start.elapsed().as_secs_f64());
            eprint!("\r\x1b[K{} {rate}", ByteSize(bytes));
            self.shown = Some(Instant::now());
        }
    }

    fn clear(&mut self) {
        if self.shown.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
