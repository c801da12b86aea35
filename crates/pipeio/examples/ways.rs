//! The programs that bench/copying.py compares. `ways std|tokio|pipeio` copies standard input to standard output with
//! `std::io::copy`, `tokio::io::copy` or `pipeio::copy`. `ways write|gift BLOCK` generates 512 MiB in blocks of BLOCK
//! bytes and sends them to a pipe, with `write` or as gifts.

use std::fs::File;
use std::io::{self, Write, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// The descriptor's type, as named by its link in /proc/self/fd: `pipe`, `socket` or the path of a file.
fn kind(fd: &OwnedFd) -> io::Result<String> {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    Ok(link.to_string_lossy().split(':').next().unwrap_or_default().to_owned())
}

fn reader(fd: OwnedFd) -> io::Result<Box<dyn AsyncRead + Unpin>> {
    Ok(match &*kind(&fd)? {
        "pipe" => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        "socket" => Box::new(UnixStream::from_std(nonblocking(fd)?)?),
        _ => Box::new(tokio::fs::File::from_std(File::from(fd))),
    })
}

fn writer(fd: OwnedFd) -> io::Result<Box<dyn AsyncWrite + Unpin>> {
    Ok(match &*kind(&fd)? {
        "pipe" => Box::new(pipe::Sender::from_owned_fd(fd)?),
        "socket" => Box::new(UnixStream::from_std(nonblocking(fd)?)?),
        _ => Box::new(tokio::fs::File::from_std(File::from(fd))),
    })
}

fn nonblocking(fd: OwnedFd) -> io::Result<std::os::unix::net::UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

const TOTAL: usize = 512 << 20;

/// Fills each block with new bytes and sends it, like a program that generates data. Returns the number of bytes sent.
fn make(to: OwnedFd, gifts: bool, block: usize) -> io::Result<u64> {
    let mut source = pipeio::Gifts::new();
    let mut buffer = vec![0; block];
    let mut to = File::from(to);
    for number in 0..TOTAL / block {
        if gifts {
            let mut gift = source.gift(block)?;
            gift.fill(number as u8);
            gift.send(&to)?;
        } else {
            buffer.fill(number as u8);
            to.write_all(&buffer)?;
        }
    }
    Ok((TOTAL / block * block) as u64)
}

fn main() -> io::Result<()> {
    let block = || {
        std::env::args()
            .nth(2)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| io::Error::other("expected the block size in bytes"))
    };
    let (from, to) = (stdin().as_fd().try_clone_to_owned()?, stdout().as_fd().try_clone_to_owned()?);
    let bytes = match std::env::args().nth(1).as_deref() {
        Some("std") => io::copy(&mut File::from(from), &mut File::from(to))?,
        Some("tokio") => tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
            let mut to = writer(to)?;
            let bytes = tokio::io::copy(&mut reader(from)?, &mut to).await?;
            tokio::io::AsyncWriteExt::flush(&mut to).await?;
            io::Result::Ok(bytes)
        })?,
        Some("pipeio") => pipeio::copy(from, to)?.bytes,
        Some("write") => make(to, false, block()?)?,
        Some("gift") => make(to, true, block()?)?,
        _ => {
            return Err(io::Error::other(
                "usage: ways std|tokio|pipeio <INPUT >OUTPUT, or ways write|gift BLOCK >PIPE",
            ));
        }
    };
    eprintln!("{bytes} bytes");
    Ok(())
}
