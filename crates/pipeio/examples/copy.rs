//! Copies standard input to standard output, like `cat`: `yes | head -c 1G | copy | wc -c`.

use std::io::{stdin, stdout};

fn main() -> std::io::Result<()> {
    let report = pipeio::copy(stdin(), stdout())?;
    eprintln!("{} bytes by {}, {} calls", report.bytes, report.method, report.calls);
    for tried in report.fallbacks {
        eprintln!("{} was refused", tried.from);
    }
    Ok(())
}
