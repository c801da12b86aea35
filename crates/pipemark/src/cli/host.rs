//! `pipemark host`: what matters about this machine.

use std::process::ExitCode;

use clap::Args;

use super::output::Destination;

/// What `host` takes.
#[derive(Debug, Clone, Args)]
pub struct HostOptions {
    /// Write it as JSON to FILE, or to standard output for '-'
    #[arg(long, value_name = "FILE|-")]
    json: Option<Destination>,
}

/// Placeholder until the probes of `host` are joined.
pub fn run(options: &HostOptions) -> ExitCode {
    println!("{:?}", options.json);
    ExitCode::SUCCESS
}
