//! `pipemark relay`: standard input to standard output as fast as the system can. A tool for pipelines, and a stage of
//! chains; it measures nothing.

use std::time::Instant;
use std::{io, process};

use clap::Args;
use pipeio::relay::{Capacity, Choice, End, Relay, Report};
use pipeio_harness::start::sigpipe_was_ignored;
use signal_hook::consts::SIGPIPE;

use pipemark_console::{Ending, Stop, check_stdout, one_of, say};
use pipemark_model::{BadValue, ByteSize, Nanos, Throughput, bounded};

/// What `relay` takes.
#[derive(Debug, Clone, Default, Args)]
pub struct RelayOptions {
    /// Capacity of the pipes on both sides: a size, or keep [default: 1m, or 256k in front of a file]
    #[arg(long, value_name = "SIZE|keep", value_parser = capacity)]
    capacity: Option<Capacity>,
    /// How bytes are moved
    #[arg(long, value_name = "HOW", value_parser = one_of(&METHODS), default_value = "fastest")]
    method: Choice,
    /// Print one line of statistics to standard error at the end
    #[arg(long)]
    stats: bool,
}

const METHODS: [pipemark_console::WordChoice<Choice>; 2] = [
    ("fastest", Choice::Fastest, "The fastest way between the two that the kernel permits"),
    ("read-write", Choice::ReadWrite, "Only read and write: every byte is copied"),
];

fn capacity(text: &str) -> Result<Capacity, BadValue> {
    match text {
        "keep" => Ok(Capacity::Keep),
        // F_SETPIPE_SZ takes an int.
        _ => bounded("capacity", text, ByteSize(1), ByteSize(1 << 30)).map(|size| Capacity::Set(size.as_usize())),
    }
}

/// Passes everything on.
pub fn run(options: &RelayOptions) -> Ending {
    check_stdout()?;
    let begin = Instant::now();
    let capacity = options.capacity.unwrap_or_default();
    // The descriptors, and not std's standard input and output: nothing is to be buffered.
    let report = Relay::new()
        .method(options.method)
        .capacity(capacity)
        .run(rustix::stdio::stdin(), rustix::stdio::stdout())
        .map_err(|error| Stop::failed(sentence(&error, capacity)))?;
    if options.stats {
        say(format_args!("pipemark relay: {}", summary(&report, Nanos::from(begin.elapsed()))));
    }
    if report.end == End::Output {
        // The signal would not end it, or is not wanted.
        if sigpipe_was_ignored() || process::id() == 1 {
            return Err(Stop::failed("standard input could not be passed to standard output: Broken pipe"));
        }
        // What becomes of a program that writes where nobody reads; the shell and pipefail know it from cat.
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
    Ok(())
}

fn sentence(error: &io::Error, capacity: Capacity) -> String {
    match (capacity, error.kind()) {
        (Capacity::Set(bytes), io::ErrorKind::PermissionDenied) => format!(
            "a pipe capacity of {} was refused: {error}; lower --capacity, or see /proc/sys/fs/pipe-max-size and pipe-user-pages-soft",
            ByteSize(bytes as u64)
        ),
        _ => format!("standard input could not be passed to standard output: {error}"),
    }
}

fn summary(report: &Report, elapsed: Nanos) -> String {
    let rate = Throughput(report.bytes as f64 / elapsed.seconds().max(1e-9));
    let mut text = format!("{} bytes in {elapsed}, {rate}, by {}, {} calls", report.bytes, report.method, report.calls);
    for (side, capacity) in ["in", "out"].into_iter().zip(report.capacities) {
        if let Some(bytes) = capacity {
            text.push_str(&format!(", {side} through a pipe of {}", ByteSize(bytes as u64)));
        }
    }
    for fallback in &report.fallbacks {
        match fallback.errno {
            Some(errno) => {
                let error = io::Error::from_raw_os_error(errno);
                text.push_str(&format!("; {} was refused: {error}", fallback.from));
            }
            None => text.push_str(&format!("; {} found nothing", fallback.from)),
        }
    }
    if report.end == End::Output {
        text.push_str("; the reader left early");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_sizes_or_keep() {
        assert_eq!(capacity("keep"), Ok(Capacity::Keep));
        assert_eq!(capacity("256k"), Ok(Capacity::Set(256 << 10)));
        for text in ["0", "2g", "much", ""] {
            assert!(capacity(text).is_err(), "{text}");
        }
    }
}
