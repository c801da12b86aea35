//! `pipemark gen`: the source of a pipeline, on standard output.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use std::{io, thread};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use pipeio_harness::buffer::Pages;
use pipeio_harness::send::{self, SendCall, Sender};
use pipeio_harness::wait::{Direction, Wait};
use rustix::fs::FileType;

use pipemark_console::{ExitError, VerbResult, check_stdout};
use pipemark_model::{ByteSize, bounded};
use pipemark_run::content::{Payload, PayloadStream};

/// The options of `gen`.
#[derive(Debug, Clone, Args)]
pub struct GenOptions {
    /// Content to write; a size, such as 300m, means line:y --total 300m
    #[arg(value_name = "CONTENT", default_value = "line:y", value_parser = content_or_size())]
    content: ContentOrSize,
    /// Write SIZE bytes; the last line of a log is adjusted to end there [default: until the reader exits]
    #[arg(long, value_name = "SIZE")]
    total: Option<ByteSize>,
    /// Write at most SIZE bytes per second, in pieces of about 10 ms [default: unlimited]
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| bounded("rate", text, ByteSize(1), ByteSize(u64::MAX)))]
    rate: Option<ByteSize>,
}

/// What the first argument names.
#[derive(Debug, Clone)]
enum ContentOrSize {
    Content(Payload),
    /// A number of bytes of the default content.
    Size(ByteSize),
}

fn content_or_size() -> impl TypedValueParser<Value = ContentOrSize> {
    OsStringValueParser::new().try_map(|word| match word.to_str().map(str::parse) {
        Some(Ok(size)) => Ok(ContentOrSize::Size(size)),
        _ => Payload::parse(word).map(ContentOrSize::Content),
    })
}

/// Parses a content. A line may contain any bytes.
pub fn content() -> impl TypedValueParser<Value = Payload> {
    OsStringValueParser::new().try_map(Payload::parse)
}

/// Writes the content.
pub fn run(options: &GenOptions) -> VerbResult {
    check_stdout()?;
    let (content, total) = match (options.content.clone(), options.total) {
        (ContentOrSize::Content(content), total) => (content, total),
        (ContentOrSize::Size(size), None) => (Payload::Line(b"y".to_vec()), Some(size)),
        (ContentOrSize::Size(size), Some(_)) => {
            return Err(ExitError::usage(format_args!("both '{size}' and --total give the number of bytes; omit one")));
        }
    };
    let total = total.map_or(u64::MAX, |total| total.0);
    let stdout = io::stdout();
    let written = generate(stdout.as_fd(), content.stream_of(total), total, options.rate);
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => error.into(),
        _ => ExitError::failed(format_args!("cannot write to standard output: {error}")),
    })
}

fn generate(output: BorrowedFd<'_>, mut stream: PayloadStream, total: u64, rate: Option<ByteSize>) -> io::Result<()> {
    let mut left = total;
    if rate.is_none()
        && let Some(mut sender) = repeating_sender(output, &stream)?
    {
        let block = stream.repeated().map_or(0, <[u8]>::len);
        return send_repeated(sender.as_mut(), block, left);
    }
    let start = Instant::now();
    while left > 0 {
        let limit = rate.map_or(u64::MAX, |rate| wait_until_due(rate, start, total - left)).min(left);
        let piece = stream.next(usize::try_from(limit).unwrap_or(usize::MAX));
        write_all(output, piece)?;
        left -= piece.len() as u64;
    }
    Ok(())
}

/// A sender of repeated bytes, which passes the same pages to the pipe again and again. The pages never change, so a
/// reader may keep them for any length of time. `None` if the output or the kernel doesn't support this.
fn repeating_sender(output: BorrowedFd<'_>, stream: &PayloadStream) -> io::Result<Option<Box<dyn Sender + Send>>> {
    let Some(repeated) = stream.repeated() else { return Ok(None) };
    let stat = rustix::fs::fstat(output)?;
    let granted = pipeio_harness::probe::vmsplice().is_ok();
    if FileType::from_raw_mode(stat.st_mode) != FileType::Fifo || !granted {
        return Ok(None);
    }
    let options = send::SendOptions {
        block: repeated.len(),
        align: 0,
        pages: Pages::Base,
        wait: Wait::Shared,
        content: send::BlockContent::Prepared,
    };
    let mut sender = send::open(SendCall::Vmsplice, output.try_clone_to_owned()?, &options)?;
    sender.prepare(&mut |position, bytes| {
        let start = position as usize;
        bytes.copy_from_slice(&repeated[start..start + bytes.len()]);
    })?;
    Ok(Some(sender))
}

fn send_repeated(sender: &mut dyn Sender, block: usize, mut left: u64) -> io::Result<()> {
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(block);
        sender.send(len)?;
        left -= len as u64;
    }
    Ok(())
}

fn write_all(output: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    let mut calls = 0;
    while !bytes.is_empty() {
        match Wait::Poll.retry(output, Direction::Out, &mut calls, || rustix::io::write(output, bytes))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            some => bytes = &bytes[some..],
        }
    }
    Ok(())
}

/// Waits until the piece that follows `sent` bytes is due at the steady rate. Returns the number of bytes in the piece.
/// After a slow reader has caused a delay, pieces are due at once until the sender has caught up.
fn wait_until_due(ByteSize(rate): ByteSize, start: Instant, sent: u64) -> u64 {
    let piece = (rate / 100).max(1);
    let due = Duration::from_secs_f64((sent + piece) as f64 / rate as f64);
    thread::sleep(due.saturating_sub(start.elapsed()));
    piece
}
