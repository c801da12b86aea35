//! Blocking code from std in one loop, with std's default buffer sizes for stdin and BufWriter.
#![forbid(unsafe_code)]

use std::io::{self, BufRead, BufWriter, Write};

use shared::batches::{Batches, transform};
use shared::header::{header, spaces};
use shared::options::Options;

fn main() -> io::Result<()> {
    let output = BufWriter::new(io::stdout().lock());
    match Options::of_command_line()?.batch {
        true => by_batch(io::stdin().lock(), output),
        false => by_line(io::stdin().lock(), output),
    }
}

fn by_line(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let line = line?;
        output.write_all(header(spaces(&line)).as_bytes())?;
        output.write_all(line.as_bytes())?;
        output.write_all(b"\n")?;
    }
    output.flush()
}

fn by_batch(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut batches = Batches::default();
    loop {
        let buffer = input.fill_buf()?;
        let read = buffer.len();
        let batch = if read == 0 { batches.rest()? } else { batches.next(buffer)? };
        input.consume(read);
        if let Some(batch) = batch {
            output.write_all(&transform(&batch))?;
        }
        if read == 0 {
            return output.flush();
        }
    }
}
