//! Streams from tokio and futures in one task: the lines are a stream of futures, of which up to 128 are pending.
#![forbid(unsafe_code)]

use std::io;
use std::pin::pin;

use futures::{StreamExt, TryStreamExt, stream};
use shared::batches::{Batches, transform};
use shared::header::{header, spaces};
use shared::options::{Options, Workers, thread_names};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter, Stdin};
use tokio::runtime::Builder;
use tokio_stream::wrappers::LinesStream;

/// The largest number of pending futures, as in the published program.
const PENDING: usize = 128;

/// Without options, the stream is polled on the main thread, as in the published program; its worker threads have
/// nothing to do. With a number of workers, the stream is a task of the scheduler.
fn main() -> io::Result<()> {
    let options = Options::of_command_line()?;
    let workers = options.workers.unwrap_or(Workers::PerCpu).count();
    let runtime =
        Builder::new_multi_thread().worker_threads(workers).thread_name_fn(thread_names(workers)).enable_all().build()?;
    runtime.block_on(async {
        match (options.workers, options.batch) {
            (None, true) => by_batch().await,
            (None, false) => by_line().await,
            (Some(_), true) => tokio::spawn(by_batch()).await?,
            (Some(_), false) => tokio::spawn(by_line()).await?,
        }
    })
}

/// The published program counts the spaces in the stream, and again before it writes the line.
async fn by_line() -> io::Result<()> {
    let lines = LinesStream::new(BufReader::new(tokio::io::stdin()).lines());
    let counted = lines.map(|line| async move { line.map(|line| (spaces(&line), line)) });
    let mut counted = pin!(counted.buffer_unordered(PENDING));
    let mut output = BufWriter::new(tokio::io::stdout());
    while let Some((count, line)) = counted.try_next().await? {
        std::hint::black_box(count);
        output.write_all(header(spaces(&line)).as_bytes()).await?;
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
    }
    output.flush().await
}

async fn by_batch() -> io::Result<()> {
    let counted = read_batches().map(|batch| async move {
        batch.map(|batch| {
            let count: usize = batch.lines().map(spaces).sum();
            (count, batch)
        })
    });
    let mut counted = pin!(counted.buffer_unordered(PENDING));
    let mut output = BufWriter::new(tokio::io::stdout());
    while let Some((count, batch)) = counted.try_next().await? {
        std::hint::black_box(count);
        output.write_all(&transform(&batch)).await?;
    }
    output.flush().await
}

/// The batches of standard input.
fn read_batches() -> impl futures::Stream<Item = io::Result<String>> {
    let state = (BufReader::new(tokio::io::stdin()), Batches::default(), false);
    stream::try_unfold(state, |(mut input, mut batches, ended): (BufReader<Stdin>, Batches, bool)| async move {
        if ended {
            return Ok(None);
        }
        loop {
            let buffer = input.fill_buf().await?;
            let read = buffer.len();
            let batch = if read == 0 { batches.rest()? } else { batches.next(buffer)? };
            input.consume(read);
            match batch {
                Some(batch) => return Ok(Some((batch, (input, batches, read == 0)))),
                None if read == 0 => return Ok(None),
                None => {}
            }
        }
    })
}
