//! Tokio and futures streams in one task: the lines are a stream, the transform maps it, the output folds it.
#![forbid(unsafe_code)]

use std::io;

use futures::TryStreamExt;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_stream::wrappers::LinesStream;

#[tokio::main]
async fn main() -> io::Result<()> {
    let lines = LinesStream::new(BufReader::new(tokio::io::stdin()).lines());
    let mut output = lines
        .map_ok(|line| format!("{}{line}\n", header::header(&line)))
        .try_fold(tokio::io::stdout(), |mut output, line| async move {
            output.write_all(line.as_bytes()).await?;
            Ok(output)
        })
        .await?;
    output.flush().await
}
