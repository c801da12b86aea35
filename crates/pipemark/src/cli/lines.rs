//! `pipemark lines`: passes lines of files or standard input through a transform to standard output, at the speed of
//! the pipe.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use pipeio::lines::transforms::{Field, Identity, Length, Number, Spaces, Upper};
use pipeio::lines::{Ended, Engine, Error, LinesReport, OutputMethod, Simd};
use pipeio::relay::{self, CapacityChange, Relay};
use pipemark_sys::usage::Usage;

use pipemark_console::{ExitError, VerbResult, WordChoice, check_stdout, one_of, say};
use pipemark_model::{ByteSize, Nanos, Throughput, bounded, counted, did_you_mean};

/// The options of `lines`.
#[derive(Debug, Clone, Args)]
#[command(
    subcommand_value_name = "TRANSFORM",
    subcommand_help_heading = "Transforms",
    disable_help_subcommand = true,
    override_usage = "pipemark lines [OPTIONS] [TRANSFORM] [FILE]..."
)]
pub struct LinesOptions {
    #[command(subcommand)]
    transform: Option<TransformName>,
    #[command(flatten)]
    files: InputFiles,
    /// Use at most N threads; auto: up to four for a file, one for anything else
    #[arg(long, value_name = "N|auto", default_value = "auto", global = true)]
    threads: Threads,
    /// Bytes per read, at least one page from a pipe [default: 512k from a file, 256k from a pipe on one CPU, otherwise
    /// up to 64k]
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| bounded("batch", text, ByteSize(1), MAX_BATCH), global = true)]
    batch: Option<ByteSize>,
    /// Transform only the lines that start in this range of bytes of a file; LOW or HIGH may be omitted
    #[arg(long, value_name = "LOW:HIGH", value_parser = range, global = true)]
    range: Option<Range<u64>>,
    /// Lines end with NUL, not newline
    #[arg(long, short = 'z', global = true)]
    zero_terminated: bool,
    /// Fail on a line longer than SIZE, which also limits the memory for one line
    #[arg(long, value_name = "SIZE", default_value = "1g", global = true)]
    max_line: ByteSize,
    /// How to write output to a pipe
    #[arg(long, value_name = "HOW", value_parser = one_of(&SENDS), default_value = "write", global = true)]
    send: OutputMethod,
    /// Instruction set used to search for line ends and fields
    #[arg(long, value_name = "WHICH", value_parser = one_of(&INSTRUCTIONS), default_value = "best", global = true)]
    simd: Instructions,
    /// Print statistics to standard error at the end
    #[arg(long, global = true)]
    stats: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    Best,
    Portable,
}

const INSTRUCTIONS: [WordChoice<Instructions>; 2] = [
    ("best", Instructions::Best, "The widest vector instructions of this CPU"),
    ("portable", Instructions::Portable, "Vector instructions that every CPU has; slower, same output"),
];

/// The files to read.
#[derive(Debug, Clone, Default, Args)]
struct InputFiles {
    /// Files to read in this order; - is standard input [default: -]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum TransformName {
    /// Prefix each line with its number of spaces, as [spaces: N] or [spaces: >6] (the default transform)
    Spaces(InputFiles),
    /// Prefix each line with its number and a tab
    Number {
        /// Number of the first line
        #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=1 << 62))]
        start: u64,
        #[command(flatten)]
        files: InputFiles,
    },
    /// Replace each line with its length in bytes
    Length(InputFiles),
    /// Convert the letters a-z to upper case; leave other bytes unchanged
    Upper(InputFiles),
    /// Copy each line unchanged
    Identity(InputFiles),
    /// Replace each line with its N-th field, counted from 1; the result is empty if there is no such field
    Field {
        /// Number of the field, counted from 1
        #[arg(value_name = "N", value_parser = field)]
        number: NonZeroUsize,
        /// Byte between fields [default: tab]
        #[arg(long, short, value_name = "C", default_value = "\t", hide_default_value = true, value_parser = delimiter)]
        delimiter: u8,
        #[command(flatten)]
        files: InputFiles,
    },
}

const SENDS: [WordChoice<OutputMethod>; 2] = [
    ("write", OutputMethod::Write, "write(2), which copies the bytes"),
    (
        "give-away",
        OutputMethod::GiveAway,
        "vmsplice(2), which gives pages to the pipe without copying; it is faster only with some pipes and readers",
    ),
];

#[derive(Debug, Clone, Copy)]
enum Threads {
    Auto,
    Exactly(NonZeroUsize),
}

/// Parses a range of bytes in a file.
fn range(text: &str) -> Result<Range<u64>, String> {
    let (low, high) = text.split_once(':').ok_or("a range is LOW:HIGH, such as 0:64m, 64m:128m or 128m:")?;
    let side = |text: &str, default| match text {
        "" => Ok(default),
        _ => text.parse().map(|ByteSize(bytes)| bytes).map_err(|error: pipemark_model::BadValue| error.to_string()),
    };
    let (low, high) = (side(low, 0)?, side(high, u64::MAX)?);
    if low > high {
        return Err(format!(
            "the range ends at {high}, before its start at {low}; use LOW:HIGH with HIGH at least LOW"
        ));
    }
    Ok(low..high)
}

/// The largest number of threads. More threads would only use memory.
const MAX_THREADS: usize = 256;

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Threads::Auto);
        }
        text.parse()
            .ok()
            .filter(|threads: &NonZeroUsize| threads.get() <= MAX_THREADS)
            .map(Threads::Exactly)
            .ok_or_else(|| format!("'{text}' is not a number of threads; use auto, or 1 to {MAX_THREADS}"))
    }
}

/// The largest batch. Larger batches aren't faster, and each thread has memory for two batches.
const MAX_BATCH: ByteSize = ByteSize(64 << 20);

fn field(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("'{text}' is not the number of a field; use 1 or more"))
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        b"\\t" => Ok(b'\t'),
        b"\\0" => Ok(0),
        _ => Err(format!("'{text}' is not a delimiter; use one byte, \\t for tab or \\0 for NUL")),
    }
}

/// Transforms the files, or standard input, to standard output.
pub fn run(options: &LinesOptions) -> VerbResult {
    check_stdout()?;
    if options.simd == Instructions::Portable {
        Simd::use_portable();
    }
    let start = (Instant::now(), Usage::now());
    let mut files = match &options.transform {
        None => options.files.clone(),
        Some(
            TransformName::Spaces(files)
            | TransformName::Length(files)
            | TransformName::Upper(files)
            | TransformName::Identity(files)
            | TransformName::Number { files, .. }
            | TransformName::Field { files, .. },
        ) => files.clone(),
    };
    if files.files.is_empty() {
        files.files.push("-".into());
    }
    if options.range.is_some() && files.files.len() > 1 {
        let names: Vec<_> = files.files.iter().map(|file| file.display().to_string()).collect();
        return Err(ExitError::usage(format_args!(
            "--range works on a single file; run it once for each of {}",
            names.join(", ")
        )));
    }
    let mut all: Option<LinesReport> = None;
    for (index, path) in files.files.iter().enumerate() {
        let report = match path.to_str() {
            Some("-") => transform(options, io::stdin().as_fd()).map_err(|error| exit_error(&error, None))?,
            _ => {
                let file = File::open(path).map_err(|error| not_opened(path, &error))?;
                let report = transform(options, file.as_fd()).map_err(|error| exit_error(&error, Some(path)))?;
                if index + 1 < files.files.len() && report.ended == Ended::Input {
                    end_last_line(&file, options)?;
                }
                report
            }
        };
        all = Some(all.map_or(report, |all| add(all, report)));
        if report.ended != Ended::Input {
            break;
        }
    }
    if let Some(report) = all.filter(|_| options.stats) {
        say(statistics(&report, start.0.elapsed(), &Usage::now().since(&start.1)));
    }
    Ok(())
}

fn exit_error(error: &Error, path: Option<&Path>) -> ExitError {
    let name = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
    match error {
        Error::LineTooLong { .. } => ExitError::failed(format_args!("{name}{error}; raise --max-line to accept it")),
        Error::RangeOfNoFile => {
            ExitError::failed(format_args!("{name}{error}; write it to a file first, or omit --range"))
        }
        _ => ExitError::failed(format_args!("{name}{error}")),
    }
}

/// The error for a file that can't be opened. The name of a missing file may be a misspelt transform.
fn not_opened(path: &Path, error: &io::Error) -> ExitError {
    let name = path.display();
    let bare = path.to_str().filter(|name| !name.contains(['/', '.']));
    match bare.filter(|_| error.kind() == io::ErrorKind::NotFound) {
        Some(word) => {
            let names = ["spaces", "number", "length", "upper", "identity", "field"];
            if names.contains(&word) {
                return ExitError::usage(format_args!("'{word}' is a transform; write it before the files"));
            }
            let hint = did_you_mean(word, names);
            ExitError::usage(format_args!("'{name}' is neither a file nor a transform ({}){hint}", names.join(", ")))
        }
        None if error.kind() == io::ErrorKind::NotFound => ExitError::usage(format_args!("there is no file {name}")),
        None => ExitError::failed(format_args!("{name} can't be read: {error}")),
    }
}

/// Writes the terminator that the last line of a file lacks, if another file follows.
fn end_last_line(file: &File, options: &LinesOptions) -> Result<(), ExitError> {
    let end = if options.zero_terminated { 0 } else { b'\n' };
    let mut last = [end];
    let length = file.metadata()?.len();
    // Only a regular file has a length.
    if length > 0 && file.read_at(&mut last, length - 1).is_ok() && last[0] != end {
        // The byte is written through a relay, because std's standard output doesn't wait if the descriptor is
        // non-blocking.
        let (reader, mut writer) = io::pipe()?;
        writer.write_all(&[end])?;
        drop(writer);
        let relay = Relay::new().method(relay::MethodChoice::ReadWrite).capacity(CapacityChange::Keep);
        relay.run(reader, rustix::stdio::stdout())?;
    }
    Ok(())
}

/// Adds up the reports of two files.
fn add(mut all: LinesReport, report: LinesReport) -> LinesReport {
    all.ended = report.ended;
    all.bytes_in += report.bytes_in;
    all.bytes_out += report.bytes_out;
    all.given_away += report.given_away;
    all.reads += report.reads;
    all.writes += report.writes;
    all.threads = all.threads.max(report.threads);
    all
}

/// Lets the stack grow now: once threads have used all memory that a limit allows, growing it would end the program with
/// SIGSEGV.
#[inline(never)]
fn grow_stack() {
    std::hint::black_box([0_u8; 256 << 10]);
}

fn transform(options: &LinesOptions, input: BorrowedFd<'_>) -> Result<LinesReport, Error> {
    let threads = match options.threads {
        Threads::Auto => Engine::suggested_threads(input)?,
        Threads::Exactly(threads) => threads,
    };
    if threads.get() > 1 {
        grow_stack();
    }
    let mut engine = Engine::new()
        .terminator(if options.zero_terminated { 0 } else { b'\n' })
        .max_line(options.max_line.as_usize())
        .send(options.send);
    if let Some(range) = &options.range {
        engine = engine.range(range.clone());
    }
    if let Some(batch) = options.batch.and_then(|batch| NonZeroUsize::new(batch.as_usize())) {
        engine = engine.batch(batch);
    }
    match &options.transform {
        None | Some(TransformName::Spaces(_)) => engine.run_parallel(input, io::stdout(), Spaces::new(), threads),
        Some(TransformName::Number { start, .. }) => {
            engine.first_line(*start).run_parallel(input, io::stdout(), Number::default(), threads)
        }
        Some(TransformName::Length(_)) => engine.run_parallel(input, io::stdout(), Length, threads),
        Some(TransformName::Upper(_)) => engine.run_parallel(input, io::stdout(), Upper, threads),
        Some(TransformName::Identity(_)) => engine.run_parallel(input, io::stdout(), Identity, threads),
        Some(TransformName::Field { number, delimiter, .. }) => {
            engine.run_parallel(input, io::stdout(), Field::new(*number, *delimiter), threads)
        }
    }
}

/// The text of `--stats`.
fn statistics(report: &LinesReport, elapsed: Duration, usage: &Usage) -> String {
    let average = |bytes: u64, calls: u64| ByteSize(bytes.checked_div(calls).unwrap_or(0));
    let calls = |count: u64, noun: &str| counted(count as usize, noun);
    let bytes = format!(
        "in: {} bytes in {} of {} on average; out: {} bytes in {}, {} without a copy (vmsplice)",
        report.bytes_in,
        calls(report.reads, "read"),
        average(report.bytes_in, report.reads),
        report.bytes_out,
        calls(report.writes, "write"),
        ByteSize(report.given_away),
    );
    let time = format!(
        "time: {}, {} of input; CPU: {} user, {} system; threads: {}; context switches: {} voluntary, {} involuntary",
        Nanos::from(elapsed),
        Throughput(report.bytes_in as f64 / elapsed.as_secs_f64()),
        Nanos(usage.user_ns),
        Nanos(usage.sys_ns),
        report.threads,
        usage.voluntary_switches,
        usage.involuntary_switches,
    );
    let end = match report.ended {
        Ended::Input => "ended: at the end of its input",
        Ended::ReadersGone => "ended: the reader of the output exited",
        Ended::Stopped => "ended: the transform needed no more input",
    };
    [&bytes, &time, end].join("\n")
}
