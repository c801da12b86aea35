//! Tokio with a single task, which awaits each line and then the writes of that line.
#![forbid(unsafe_code)]

use std::io;

use shared::batches::{Batches, transform};
use shared::header::{header, spaces};
use shared::options::{Options, Workers, thread_names};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::runtime::Builder;

/// Like the published program, runs its task on a scheduler with one thread per CPU. The options choose another number
/// of threads, or the main thread.
fn main() -> io::Result<()> {
    let options = Options::of_command_line()?;
    let workers = if options.main_thread { 0 } else { options.workers.unwrap_or(Workers::PerCpu).count() };
    let mut runtime = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    if workers > 0 {
        runtime.worker_threads(workers);
    }
    let runtime = runtime.thread_name_fn(thread_names(workers)).enable_all().build()?;
    // The future of block_on runs on the main thread. Only a spawned task is run by the worker threads.
    runtime.block_on(async {
        let task = if options.batch { tokio::spawn(by_batch()) } else { tokio::spawn(by_line()) };
        task.await?
    })
}

async fn by_line() -> io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut output = BufWriter::new(tokio::io::stdout());
    while let Some(line) = lines.next_line().await? {
        output.write_all(header(spaces(&line)).as_bytes()).await?;
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
    }
    output.flush().await
}

async fn by_batch() -> io::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut output = BufWriter::new(tokio::io::stdout());
    let mut batches = Batches::default();
    loop {
        let buffer = input.fill_buf().await?;
        let read = buffer.len();
        let batch = if read == 0 { batches.rest()? } else { batches.next(buffer)? };
        input.consume(read);
        if let Some(batch) = batch {
            output.write_all(&transform(&batch)).await?;
        }
        if read == 0 {
            return output.flush().await;
        }
    }
}
