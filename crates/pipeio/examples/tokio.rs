//! Gifts in an async program: the runtime waits for room in the pipe, and the unsent rest of a gift is sent again.
//! `copy` runs on a separate thread, because it blocks while it waits for its descriptors.

use std::io::{self, ErrorKind};
use std::time::Duration;

use pipeio::{Gift, Gifts, Pipe};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Sends a gift to a pipe; other tasks run while the pipe is full.
async fn send(mut gift: Gift, to: &Sender) -> io::Result<()> {
    loop {
        to.writable().await?;
        let mut rest = None;
        let sent = to.try_io(|| {
            gift.send(to).map_err(|unsent| {
                rest = Some(unsent.gift);
                unsent.error
            })
        });
        match (sent, rest) {
            (Err(error), Some(unsent)) if error.kind() == ErrorKind::WouldBlock => gift = unsent,
            (sent, _) => return sent.map(drop),
        }
    }
}

fn main() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let read = runtime.block_on(async {
        let (first, second) = (Pipe::new()?, Pipe::new()?);
        // Also makes the descriptor non-blocking.
        let source = Sender::from_owned_fd(first.writer.into())?;
        let relay = tokio::task::spawn_blocking(move || pipeio::copy(first.reader, second.writer));
        let sink = tokio::spawn(async move {
            let mut sink = Receiver::from_owned_fd(second.reader.into())?;
            let (mut read, mut block) = (0, vec![0; 64 << 10]);
            loop {
                match sink.read(&mut block).await? {
                    0 => return io::Result::Ok(read),
                    got => read += got,
                }
            }
        });
        let mut gifts = Gifts::new();
        for block in 0..64 {
            let mut gift = gifts.gift(256 << 10)?;
            gift.fill(block);
            send(gift, &source).await?;
        }
        drop(source);
        println!("passed on by {}", relay.await??.method);
        sink.await?
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    println!("{read} bytes");
    assert_eq!(read, 64 * (256 << 10));
    Ok(())
}
