//! Tokio with a single task, which awaits each line and then the writes of that line.
#![forbid(unsafe_code)]

use std::num::NonZeroUsize;
use std::{env, io};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::runtime::Builder;

/// Runs on the main thread, like the published program. With an argument N, runs on a scheduler with N threads; with
/// `all`, on one thread per CPU.
fn main() -> io::Result<()> {
    let mut runtime = match env::args().nth(1).as_deref() {
        None => Builder::new_current_thread(),
        Some("all") => Builder::new_multi_thread(),
        Some(threads) => {
            let mut runtime = Builder::new_multi_thread();
            runtime.worker_threads(threads.parse::<NonZeroUsize>().map_err(io::Error::other)?.get());
            runtime
        }
    };
    runtime.enable_all().build()?.block_on(run())
}

async fn run() -> io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut output = BufWriter::new(tokio::io::stdout());
    while let Some(line) = lines.next_line().await? {
        output.write_all(header::header(&line).as_bytes()).await?;
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
    }
    output.flush().await
}
