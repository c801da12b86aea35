//! Tokio with a single task: a line is awaited, then its write is awaited.
#![forbid(unsafe_code)]

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut output = tokio::io::stdout();
    while let Some(line) = lines.next_line().await? {
        let line = format!("{}{line}\n", header::header(&line));
        output.write_all(line.as_bytes()).await?;
    }
    output.flush().await
}
