//! Tokio with one task per stage. Back-pressure comes only from the bounded queues between the tasks. Each
//! queue item is one line.
#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::{env, io};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// A line and the header before it.
type Transformed = (&'static str, String);

/// The number of lines that a queue holds before its sender waits.
const QUEUE: usize = 1024;

/// Runs on one thread per CPU, like the published program. With an argument N, runs on N threads.
fn main() -> io::Result<()> {
    let mut runtime = Builder::new_multi_thread();
    if let Some(threads) = env::args().nth(1) {
        runtime.worker_threads(threads.parse::<NonZeroUsize>().map_err(io::Error::other)?.get());
    }
    runtime.enable_all().build()?.block_on(run())
}

async fn run() -> io::Result<()> {
    let (to_transform, from_input) = channel(QUEUE);
    let (to_output, from_transform) = channel(QUEUE);
    let input = tokio::spawn(read(to_transform));
    let transform = tokio::spawn(transform(from_input, to_output));
    let output = tokio::spawn(write(from_transform));
    // Awaits the output task first. If that task fails, the other tasks stop because their queues close, and the
    // output's error is reported. Awaiting the input first could wait for a line that never arrives.
    output.await??;
    transform.await?;
    input.await?
}

async fn read(lines: Sender<String>) -> io::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = input.next_line().await? {
        if lines.send(line).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn transform(mut lines: Receiver<String>, transformed: Sender<Transformed>) {
    while let Some(line) = lines.recv().await {
        if transformed.send((header::header(&line), line)).await.is_err() {
            break;
        }
    }
}

async fn write(mut lines: Receiver<Transformed>) -> io::Result<()> {
    let mut output = BufWriter::new(tokio::io::stdout());
    while let Some((header, line)) = lines.recv().await {
        output.write_all(header.as_bytes()).await?;
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
    }
    output.flush().await
}
