//! All that a program needs to copy faster with the crate `pipeio`.

use std::fs::File;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let copied = match std::env::args_os().nth(1) {
        Some(path) => File::open(path).and_then(|file| pipeio::copy(file, io::stdout())),
        None => pipeio::copy(io::stdin(), io::stdout()),
    };
    match copied {
        Ok(report) => eprintln!("{} bytes by {}", report.bytes, report.method),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
