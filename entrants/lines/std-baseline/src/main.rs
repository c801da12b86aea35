//! Blocking code from std in one loop. The only buffers are those std gives stdin and stdout; the latter hands every
//! line to the kernel by itself.
#![forbid(unsafe_code)]

use std::io::{self, BufRead, Write};

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        writeln!(output, "{}{line}", header::header(&line))?;
    }
    output.flush()
}
