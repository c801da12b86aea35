//! Tokio and futures streams in one task: the lines are a stream, the transform maps it, the output folds it.
#![forbid(unsafe_code)]

use std::io;

use futures::TryStreamExt;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio_stream::wrappers::LinesStream;

#[tokio::main]
async fn main() -> io::Result<()> {
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
