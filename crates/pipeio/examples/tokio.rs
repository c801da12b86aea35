//! Gifts in an async program: the runtime waits for room in the pipe, and what had none is sent again. A copy that may
//! take long runs on a thread of its own, for that is where the kernel's fast ways wait.

use std::io::{self, ErrorKind};
use std::time::Duration;

use pipeio::{Gift, Gifts, Pipe};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Sends a gift to a pipe, and lets other tasks go on while that is full.
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
        // Makes the descriptor non-blocking.
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
