//! `pipemark relay`: copies standard input to standard output as fast as the system can. It is a tool for pipelines
//! and a stage of chains, and measures nothing.

mod display;
mod files;
mod remote;

use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

use clap::Args;
use pipeio::relay::{CapacityChange, End, MemoryBuffer, MethodChoice, Relay, RelayHandle, RelayReport};
use pipemark_sys::own_descriptors;
use pipemark_sys::signals::{interrupted_by, is_ignored, set_on_signal};
use pipemark_sys::start::sigpipe_was_ignored;
use rustix::fs::{FileType, fstat};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
};
use signal_hook::iterator::Signals;

use pipemark_console::{ExitError, VerbResult, check_stdout, count, one_of, say};
use pipemark_model::{BadValue, ByteSize, Nanos, Throughput, bounded, counted};

use display::{Display, DisplayOptions, ProgressForm, REPORT_TIME};
use files::{Files, rest_of_file};

/// The options of `relay`.
#[derive(Debug, Clone, Default, Args)]
pub struct RelayOptions {
    /// Pass on these files, one after the other, instead of standard input; '-' is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Set the capacity of the pipes on both sides; 'keep' leaves it unchanged [default: 1m, or 256k if the output is a
    /// file]
    #[arg(long, value_name = "SIZE|keep", value_parser = capacity)]
    capacity: Option<CapacityChange>,
    /// How to move bytes
    #[arg(long, value_name = "HOW", value_parser = one_of(&METHODS), default_value = "fastest")]
    method: MethodChoice,
    /// Print a line of statistics to standard error at the end
    #[arg(long)]
    stats: bool,
    /// Buffer up to SIZE bytes in memory, so that input and output can pause independently
    #[arg(long, value_name = "SIZE", value_parser = buffer, help_heading = "Buffer")]
    buffer: Option<ByteSize>,
    /// Start writing when the buffer is PERCENT full; wait for that level again whenever the buffer runs empty
    /// [default: 0]
    ///
    /// Writing also starts when the input ends, or when no input arrives for 1 to 2 s.
    #[arg(long, value_name = "PERCENT", value_parser = count::<u8>(0, 100), requires = "buffer", help_heading = "Buffer")]
    start_at: Option<u8>,
    /// Once the buffer is full, read again only when it is at most PERCENT full [default: 100]
    #[arg(long, value_name = "PERCENT", value_parser = count::<u8>(0, 100), requires = "buffer", help_heading = "Buffer")]
    stop_at: Option<u8>,
    /// Show elapsed time, bytes delivered, rate and time left: one line on a terminal, otherwise a line per interval
    ///
    /// Several relays on one terminal keep a line each. The other options of this group imply --progress.
    #[arg(long, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", value_parser = one_of(&FORMS), help_heading = "Progress")]
    progress: Option<ProgressForm>,
    /// Update progress every TIME [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = interval, help_heading = "Progress")]
    interval: Option<Nanos>,
    /// Begin lines of progress with NAME
    #[arg(long, value_name = "NAME", help_heading = "Progress")]
    name: Option<String>,
    /// Expected number of bytes, or of lines with --lines, for the bar, percentage and time left [default: the rest of
    /// the input, if it is a file]
    #[arg(long, value_name = "SIZE", help_heading = "Progress")]
    size: Option<ByteSize>,
    /// Count lines, or with =null the texts that end with a null byte; every byte is then copied
    #[arg(long, value_name = "END", num_args = 0..=1, require_equals = true, default_missing_value = "newline", value_parser = one_of(&LINE_ENDS), help_heading = "Progress")]
    lines: Option<u8>,
    /// Average rates, and the rate for the time left, over TIME [default: the last interval; for the time left, ten
    /// intervals]
    #[arg(long, value_name = "TIME", value_parser = interval, help_heading = "Progress")]
    average: Option<Nanos>,
    /// Show progress, and count its time, only from the first byte on
    #[arg(long, help_heading = "Progress")]
    wait: bool,
    /// Pass at most RATE bytes per second, such as 20m
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Rate")]
    limit: Option<NonZeroU64>,
    /// Change the limit of the running relay PID, which must have been started with --limit
    #[arg(long, num_args = 2, value_names = ["PID", "limit=RATE"], exclusive = true, help_heading = "Rate")]
    set: Vec<String>,
}

const METHODS: [pipemark_console::WordChoice<MethodChoice>; 2] = [
    ("fastest", MethodChoice::Fastest, "The fastest method that the kernel permits for this input and output"),
    ("read-write", MethodChoice::ReadWrite, "Only read(2) and write(2): every byte is copied"),
];

const FORMS: [pipemark_console::WordChoice<ProgressForm>; 2] = [
    ("text", ProgressForm::Text, "Text for people to read"),
    ("json", ProgressForm::Json, "One JSON object per line; units: bytes, nanoseconds, bytes per second"),
];

const LINE_ENDS: [pipemark_console::WordChoice<u8>; 2] =
    [("newline", b'\n', "Lines, which end with a newline"), ("null", 0, "Texts that end with a null byte")];

fn capacity(text: &str) -> Result<CapacityChange, BadValue> {
    match text {
        "keep" => Ok(CapacityChange::Keep),
        // The argument of F_SETPIPE_SZ is an int, so 1 GiB is the largest capacity.
        _ => bounded("capacity", text, ByteSize(1), ByteSize(1 << 30)).map(|size| CapacityChange::Set(size.as_usize())),
    }
}

fn buffer(text: &str) -> Result<ByteSize, BadValue> {
    bounded("buffer", text, ByteSize(1), ByteSize(1 << 46))
}

fn interval(text: &str) -> Result<Nanos, BadValue> {
    bounded("interval", text, Nanos(10_000_000), Nanos(86_400_000_000_000))
}

fn rate(text: &str) -> Result<NonZeroU64, BadValue> {
    let bytes = bounded("rate", text.strip_suffix("/s").unwrap_or(text), ByteSize(1), ByteSize(u64::MAX))?;
    Ok(NonZeroU64::new(bytes.0).expect("one at least"))
}

/// Runs the relay.
pub fn run(options: &RelayOptions) -> VerbResult {
    if !options.set.is_empty() {
        let (pid, limit) = remote::parse(&options.set)?;
        return remote::set(pid, limit);
    }
    check_stdout()?;
    let files = Files::open(&options.files)?;
    let begin = Instant::now();
    let mut relay =
        Relay::new().method(options.method).capacity(set_capacity_or_largest(options.capacity.unwrap_or_default()));
    if let Some(size) = options.buffer {
        let buffer = MemoryBuffer::new(size.as_usize()).start_at(options.start_at.unwrap_or(0));
        relay = relay.buffer(buffer.stop_at(options.stop_at.unwrap_or(100)));
    }
    // The descriptors are used instead of std's standard input and output, which buffer.
    let (input, output) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let handle = match options.lines {
        Some(end) => RelayHandle::counting_lines(end),
        None if options.needs_counts() => RelayHandle::new(),
        None => RelayHandle::only_stops(),
    };
    let display = prepare(options, files.size, &handle).map_err(|error| {
        ExitError::failed(format_args!("--buffer, --progress or --limit could not be set up: {error}"))
    })?;
    let passing = files.pass_on()?;
    let outcome = relay.run_with(input, output, &handle);
    if let (Some(signal), true) = (interrupted_by(), handle.is_stopped()) {
        end_by_signal(signal, &handle, &display);
    }
    if handle.is_stopped() {
        // The thread for signals ends the process.
        loop {
            thread::park();
        }
    }
    match (taken(&display), &outcome) {
        (Some(display), Ok(report)) if report.end == End::Input => display.finish(),
        (display, _) => drop(display),
    }
    if outcome.is_err() {
        report_undelivered(handle.buffered());
    }
    let report = outcome.map_err(|error| ExitError::failed(sentence(&error, options.buffer.is_some())))?;
    if report.end == End::Input {
        passing.check()?;
    }
    if options.stats {
        say(format_args!("pipemark relay: {}", summary(&report, Nanos::from(begin.elapsed()))));
    }
    if report.end == End::Output {
        // Without these options, relay ends without a message, like cat.
        if options.needs_counts() || sigpipe_was_ignored() {
            report_undelivered(report.undelivered);
        }
        // The process continues here if SIGPIPE is ignored, or if it is process 1, which SIGPIPE doesn't end.
        if sigpipe_was_ignored() || process::id() == 1 {
            return Err(ExitError::failed("standard input could not be passed to standard output: Broken pipe"));
        }
        // The relay ends by SIGPIPE like cat when its reader has left, because shells and pipefail recognize that.
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
    Ok(())
}

impl RelayOptions {
    /// Whether bytes are counted while the relay runs: for a buffer, progress or a limit.
    fn needs_counts(&self) -> bool {
        self.buffer.is_some() || self.progress_form().is_some() || self.limit.is_some()
    }

    /// `None` if no progress is shown.
    fn progress_form(&self) -> Option<ProgressForm> {
        let implied = self.interval.is_some()
            || self.name.is_some()
            || self.size.is_some()
            || self.lines.is_some()
            || self.average.is_some()
            || self.wait;
        self.progress.or(implied.then_some(ProgressForm::Text))
    }
}

/// The display, which the main thread or the thread for signals takes and ends.
type SharedDisplay = Arc<Mutex<Option<Display>>>;

fn taken(display: &SharedDisplay) -> Option<Display> {
    display.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Starts the threads for signals, `--set` and progress.
fn prepare(options: &RelayOptions, size: Option<u64>, handle: &RelayHandle) -> io::Result<SharedDisplay> {
    let display = SharedDisplay::default();
    if options.buffer.is_some() {
        report_signals(handle, &display)?;
    } else if options.needs_counts() || !is_file(rustix::stdio::stdin()) {
        // A file keeps the bytes that were read from it, so a signal may end the process at once.
        let handle: &'static RelayHandle = Box::leak(Box::new(handle.clone()));
        set_on_signal(&SIGNALS, handle.stop_flag())?;
    }
    if options.limit.is_some() {
        handle.set_limit(options.limit);
        remote::listen(handle)?;
    }
    let Some(form) = options.progress_form() else { return Ok(display) };
    let interval = options.interval.map_or(Duration::from_secs(1), Duration::from);
    let bytes = || size.or_else(|| rest_of_file(rustix::stdio::stdin())).filter(|_| options.lines.is_none());
    let size = options.size.map(|size| size.0).or_else(bytes);
    let buffer = options.buffer.map(|size| MemoryBuffer::new(size.as_usize()).size() as u64);
    let name = options.name.as_deref().map(pipemark_model::neutral);
    let (average, wait) = (options.average.map(Duration::from), options.wait);
    let started = Display::start(handle, DisplayOptions { name, form, interval, average, wait, size, buffer })?;
    *display.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
    Ok(display)
}

/// The signals before which the relay reports the bytes that it has read but not written: those that end a process unless it
/// catches them, and aren't errors of its own.
const SIGNALS: [i32; 10] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU];

/// Whether the input is a file or a block device.
fn is_file(input: impl AsFd) -> bool {
    let kind = fstat(input).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::RegularFile | FileType::BlockDevice))
}

/// Starts the thread that ends a relay with a buffer when a signal arrives.
fn report_signals(handle: &RelayHandle, display: &SharedDisplay) -> io::Result<()> {
    // Ignored signals stay ignored.
    let mut signals = Signals::new(SIGNALS.into_iter().filter(|signal| !is_ignored(*signal)))?;
    let (handle, display) = (handle.clone(), display.clone());
    own_descriptors::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            handle.stop();
            end_by_signal(signal, &handle, &display);
        }
    })
}

/// Ends the display, reports the bytes that were read but not written, and ends the process by the signal.
fn end_by_signal(signal: i32, handle: &RelayHandle, display: &SharedDisplay) {
    let (printed, wait) = channel();
    let (stopped, display) = (handle.clone(), display.clone());
    let print = move || {
        drop(taken(&display));
        // Counted only now, because a call that waited for its peer may have continued after the stop.
        report_undelivered(stopped.buffered());
        let _ = printed.send(());
    };
    match thread::Builder::new().spawn(print) {
        Ok(_) => drop(wait.recv_timeout(REPORT_TIME)),
        Err(_) => report_undelivered(handle.buffered()),
    }
    // A signal's default action doesn't end process 1, and `emulate_default_handler` would then abort.
    if process::id() == 1 {
        process::exit(128 + signal);
    }
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

fn report_undelivered(bytes: u64) {
    if bytes > 0 {
        let verb = if bytes == 1 { "was" } else { "were" };
        say(format_args!("pipemark relay: {} {verb} read but not delivered", counted(bytes as usize, "byte")));
    }
}

/// Sets the capacity, and returns the capacity to continue with. If the system refuses it, prints a message and makes
/// the pipes as large as allowed, because stopping a running pipeline would be worse.
fn set_capacity_or_largest(capacity: CapacityChange) -> CapacityChange {
    let CapacityChange::Set(bytes) = capacity else { return capacity };
    let ends = [rustix::stdio::stdin(), rustix::stdio::stdout()];
    let mut last_sentence = String::new();
    for pipe in ends {
        let refused = pipeio::pipe::capacity(pipe).is_ok().then(|| pipeio::pipe::set_capacity(pipe, bytes).err());
        // The pipe holds more bytes than this capacity, so it keeps its old capacity. That is no refusal.
        let refused = refused.flatten().filter(|error| error.kind() != io::ErrorKind::ResourceBusy);
        if let Some(error) = refused {
            let largest = fs::read_to_string("/proc/sys/fs/pipe-max-size").unwrap_or_default();
            let largest = largest.trim().parse().map_or(0, |largest: usize| largest.min(bytes));
            let granted = || pipeio::pipe::capacity(pipe).unwrap_or(0);
            // The pipe may already be larger, if a privileged process has enlarged it.
            if largest > granted() {
                let _ = pipeio::pipe::set_capacity(pipe, largest);
            }
            let sentence = format!(
                "pipemark: a pipe capacity of {} was refused: {error}; continuing with {} (see /proc/sys/fs/pipe-max-size and pipe-user-pages-soft)",
                ByteSize(bytes as u64),
                ByteSize(granted() as u64),
            );
            // The same message for both sides is printed once.
            if sentence != last_sentence {
                say(&sentence);
                last_sentence = sentence;
            }
        }
    }
    CapacityChange::Keep
}

fn sentence(error: &io::Error, has_buffer: bool) -> String {
    match error.kind() {
        io::ErrorKind::OutOfMemory if has_buffer => {
            format!("no memory for the buffer: {error}; use a smaller --buffer")
        }
        _ => format!("standard input could not be passed to standard output: {error}"),
    }
}

fn summary(report: &RelayReport, elapsed: Nanos) -> String {
    let rate = Throughput(report.bytes as f64 / elapsed.seconds().max(1e-9));
    let [bytes, calls] = [(report.bytes, "byte"), (report.calls, "call")].map(|(n, noun)| counted(n as usize, noun));
    let mut text = format!("{bytes} in {elapsed}, {rate}, by {}, {calls}", report.method);
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
            None => text.push_str(&format!("; {} reported an early end of the input", fallback.from)),
        }
    }
    if report.end == End::Output {
        text.push_str("; the reader exited early");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_sizes_or_keep() {
        assert_eq!(capacity("keep"), Ok(CapacityChange::Keep));
        assert_eq!(capacity("256k"), Ok(CapacityChange::Set(256 << 10)));
        for text in ["0", "2g", "much", ""] {
            assert!(capacity(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_sizes_a_second() {
        assert_eq!(rate("20m").map(NonZeroU64::get), Ok(20 << 20));
        assert_eq!(rate("1k/s").map(NonZeroU64::get), Ok(1024));
        assert_eq!(rate("18446744073709551615").map(NonZeroU64::get), Ok(u64::MAX));
        for text in ["0", "18446744073709551616", "-1", "fast", "", "/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_smaller_buffer_is_advised_only_if_there_is_one() {
        let error = io::Error::from(io::ErrorKind::OutOfMemory);
        assert!(sentence(&error, true).ends_with("use a smaller --buffer"));
        assert!(!sentence(&error, false).contains("buffer"));
    }
}
