//! Tokio with one task per stage. Back-pressure comes only from the bounded queues between the tasks. Each
//! queue item is one line, or one batch of lines.
#![forbid(unsafe_code)]

use std::io;

use shared::batches::{Batches, transform};
use shared::header::{header, spaces};
use shared::options::{Options, Workers, thread_names};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// A line and the header before it.
type Transformed = (&'static str, String);

/// The number of items that a queue holds before its sender waits, as in the published program.
const QUEUE: usize = 2048;

/// Runs on one thread per CPU, like the published program, or on the number of threads that the options give.
fn main() -> io::Result<()> {
    let options = Options::of_command_line()?;
    let workers = options.workers.unwrap_or(Workers::PerCpu).count();
    let runtime =
        Builder::new_multi_thread().worker_threads(workers).thread_name_fn(thread_names(workers)).enable_all().build()?;
    runtime.block_on(async { if options.batch { by_batch().await } else { by_line().await } })
}

async fn by_line() -> io::Result<()> {
    let (to_transform, from_input) = channel(QUEUE);
    let (to_output, from_transform) = channel(QUEUE);
    let input = tokio::spawn(read_lines(to_transform));
    let transform = tokio::spawn(transform_lines(from_input, to_output));
    let output = tokio::spawn(write_lines(from_transform));
    // Awaits the output task first. If that task fails, the other tasks stop because their queues close, and the
    // output's error is reported. Awaiting the input first could wait for a line that never arrives.
    output.await??;
    transform.await?;
    input.await?
}

async fn read_lines(lines: Sender<String>) -> io::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = input.next_line().await? {
        if lines.send(line).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn transform_lines(mut lines: Receiver<String>, transformed: Sender<Transformed>) {
    while let Some(line) = lines.recv().await {
        if transformed.send((header(spaces(&line)), line)).await.is_err() {
            break;
        }
    }
}

async fn write_lines(mut lines: Receiver<Transformed>) -> io::Result<()> {
    let mut output = BufWriter::new(tokio::io::stdout());
    while let Some((header, line)) = lines.recv().await {
        output.write_all(header.as_bytes()).await?;
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
    }
    output.flush().await
}

async fn by_batch() -> io::Result<()> {
    let (to_transform, from_input) = channel(QUEUE);
    let (to_output, from_transform) = channel(QUEUE);
    let input = tokio::spawn(read_batches(to_transform));
    let transform = tokio::spawn(transform_batches(from_input, to_output));
    let output = tokio::spawn(write_batches(from_transform));
    output.await??;
    transform.await?;
    input.await?
}

async fn read_batches(to: Sender<String>) -> io::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut batches = Batches::default();
    loop {
        let buffer = input.fill_buf().await?;
        let read = buffer.len();
        let batch = if read == 0 { batches.rest()? } else { batches.next(buffer)? };
        input.consume(read);
        let is_closed = match batch {
            Some(batch) => to.send(batch).await.is_err(),
            None => false,
        };
        if read == 0 || is_closed {
            return Ok(());
        }
    }
}

async fn transform_batches(mut batches: Receiver<String>, transformed: Sender<Vec<u8>>) {
    while let Some(batch) = batches.recv().await {
        if transformed.send(transform(&batch)).await.is_err() {
            break;
        }
    }
}

async fn write_batches(mut batches: Receiver<Vec<u8>>) -> io::Result<()> {
    let mut output = BufWriter::new(tokio::io::stdout());
    while let Some(batch) = batches.recv().await {
        output.write_all(&batch).await?;
    }
    output.flush().await
}
