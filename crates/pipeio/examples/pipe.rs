//! Reads a child's output through a pipe of 1 MiB, and prints how many bytes the pipe holds after 0.1 s.

use std::io::{self, Read};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use pipeio::Pipe;

fn main() -> io::Result<()> {
    let pipe = Pipe::with_capacity(1 << 20)?;
    println!("capacity: {} bytes", pipe.capacity()?);
    // `Command` owns the parent's copy of the write end and closes it, so the pipe ends when the child does.
    let Pipe { mut reader, writer } = pipe;
    let mut child = Command::new("seq").arg("1000000").stdout(writer).spawn()?;
    sleep(Duration::from_millis(100));
    println!("in the pipe after 0.1 s: {} bytes", pipeio::pipe::fill(&reader)?);
    let read = io::copy(&mut reader.by_ref(), &mut io::sink())?;
    println!("read: {read} bytes");
    child.wait()?;
    Ok(())
}
