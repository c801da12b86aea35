//! Streams from tokio and futures in one task: the lines are a stream, the transform is a map, the output is a fold.
#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::{env, io};

use futures::TryStreamExt;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::runtime::Builder;
use tokio_stream::wrappers::LinesStream;

/// Runs on one thread per CPU, like the published program. With an argument N, runs on N threads.
fn main() -> io::Result<()> {
    let mut runtime = Builder::new_multi_thread();
    if let Some(threads) = env::args().nth(1) {
        runtime.worker_threads(threads.parse::<NonZeroUsize>().map_err(io::Error::other)?.get());
    }
    runtime.enable_all().build()?.block_on(run())
}

async fn run() -> io::Result<()> {
    let lines = LinesStream::new(BufReader::new(tokio::io::stdin()).lines());
    let output = BufWriter::new(tokio::io::stdout());
    let mut output = lines
        .map_ok(|line| (header::header(&line), line))
        .try_fold(output, |mut output, (header, line)| async move {
            output.write_all(header.as_bytes()).await?;
            output.write_all(line.as_bytes()).await?;
            output.write_all(b"\n").await?;
            Ok(output)
        })
        .await?;
    output.flush().await
}
