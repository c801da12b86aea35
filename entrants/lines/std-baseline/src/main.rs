//! Blocking code from std in one loop, with std's default buffer sizes for stdin and BufWriter.
#![forbid(unsafe_code)]

use std::io::{self, BufRead, BufWriter, Write};

fn main() -> io::Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        output.write_all(header::header(&line).as_bytes())?;
        output.write_all(line.as_bytes())?;
        output.write_all(b"\n")?;
    }
    output.flush()
}
