//! Processes that stand between or instead of stages. pipemark starts itself with a hidden verb for them.
//!
//! - `tap` passes its input on and records it; `count` passes it on and counts it.
//! - `replay` writes a recording.
//! - `stand-in` writes the recorded output of a stage, and meanwhile discards as much input as the stage read.
//!
//! They open recordings through /proc, because a shell between this program and them may close descriptors.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice, tee};

use crate::typed::quote;

/// The hidden verb.
pub const PART_VERB: &str = "__tune-part";

/// The bytes that one call moves at most.
const BLOCK: usize = 1 << 20;
/// Shorter pauses of a source aren't recorded.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// A part of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipePart<'a> {
    /// Passes standard input on and records it in `data`. With `times`, also records when it came, and ends after
    /// `limit` bytes or `time`; otherwise goes on without recording.
    Tap { data: &'a str, limit: u64, times: Option<(&'a str, Duration)> },
    /// Passes standard input on, and writes the number of its bytes to `data` at the end.
    Count { data: &'a str },
    /// Writes a recording, at the times at which it came if they are given.
    Replay { data: &'a str, times: Option<&'a str> },
    /// Writes a recording, and discards up to `input` bytes of standard input at the same time.
    StandIn { data: &'a str, input: u64 },
}

impl PipePart<'_> {
    /// The command for the shell. `program` is the path of this program.
    pub fn command(&self, program: &str) -> String {
        let words = match self {
            PipePart::Tap { data, limit, times: None } => vec!["tap".to_owned(), (*data).to_owned(), limit.to_string()],
            PipePart::Tap { data, limit, times: Some((times, time)) } => {
                let time = time.as_millis().to_string();
                vec!["tap".to_owned(), (*data).to_owned(), limit.to_string(), (*times).to_owned(), time]
            }
            PipePart::Count { data } => vec!["count".to_owned(), (*data).to_owned()],
            PipePart::Replay { data, times } => {
                [Some("replay"), Some(data), *times].into_iter().flatten().map(str::to_owned).collect()
            }
            PipePart::StandIn { data, input } => vec!["stand-in".to_owned(), (*data).to_owned(), input.to_string()],
        };
        let words: Vec<String> =
            [program, PART_VERB].into_iter().map(str::to_owned).chain(words).map(|word| quote(&word)).collect();
        words.join(" ")
    }
}

/// Runs a part; returns the exit code. `words` are the words of the command line.
pub fn main(words: &[OsString]) -> u8 {
    let words: Option<Vec<&str>> = words.iter().skip(2).map(|word| word.to_str()).collect();
    let part = words.as_deref().and_then(parse);
    let Some(part) = part else {
        eprintln!("pipemark: '{PART_VERB}' is an internal verb; see 'pipemark --help'");
        return 2;
    };
    let done = match part {
        PipePart::Tap { data, limit, times } => tap(data, limit, times),
        PipePart::Count { data } => count(data),
        PipePart::Replay { data, times } => replay(data, times),
        PipePart::StandIn { data, input } => stand_in(data, input),
    };
    match done {
        Ok(()) => 0,
        // The reader has left, as head does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pipemark: {error}");
            1
        }
    }
}

fn parse<'a>(words: &[&'a str]) -> Option<PipePart<'a>> {
    match *words {
        ["tap", data, limit] => Some(PipePart::Tap { data, limit: limit.parse().ok()?, times: None }),
        ["tap", data, limit, times, time] => {
            let time = Duration::from_millis(time.parse().ok()?);
            Some(PipePart::Tap { data, limit: limit.parse().ok()?, times: Some((times, time)) })
        }
        ["count", data] => Some(PipePart::Count { data }),
        ["replay", data] => Some(PipePart::Replay { data, times: None }),
        ["replay", data, times] => Some(PipePart::Replay { data, times: Some(times) }),
        ["stand-in", data, input] => Some(PipePart::StandIn { data, input: input.parse().ok()? }),
        _ => None,
    }
}

fn append(path: &str) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Waits until standard input has bytes or ended, until the deadline.
fn wait_for_input(deadline: Option<Instant>) -> io::Result<bool> {
    let input = stdin();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn tap(data: &str, limit: u64, times: Option<(&str, Duration)>) -> io::Result<()> {
    let mut recording = Some(append(data)?);
    let mut entries = times.map(|(path, _)| append(path)).transpose()?;
    let begun = Instant::now();
    let deadline = times.map(|(_, time)| begun + time);
    let mut recorded = 0u64;
    let mut last: Option<Duration> = None;
    loop {
        if deadline.is_some() && !wait_for_input(deadline)? {
            return Ok(());
        }
        let room = usize::try_from(limit.saturating_sub(recorded)).unwrap_or(BLOCK).min(BLOCK);
        if room == 0 && entries.is_some() {
            return Ok(());
        }
        let Some(file) = recording.as_ref().filter(|_| room > 0) else {
            // The recording is full and of no use. An empty one says so.
            if let Some(file) = recording.take() {
                file.set_len(0)?;
            }
            match splice(stdin(), None, stdout(), None, BLOCK, SpliceFlags::MOVE) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
        };
        let count = match tee(stdin(), stdout(), room, SpliceFlags::empty()) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(entries) = &mut entries {
            let now = begun.elapsed();
            if last.is_none_or(|last| now >= last + MIN_PAUSE) {
                let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
                entries.write_all(&[recorded.to_le_bytes(), nanoseconds.to_le_bytes()].concat())?;
                last = Some(now);
            }
        }
        let mut left = count;
        while left > 0 {
            match splice(stdin(), None, file, None, left, SpliceFlags::MOVE) {
                Ok(moved) => left -= moved,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        recorded += count as u64;
    }
}

fn count(data: &str) -> io::Result<()> {
    let mut total = 0u64;
    let done = loop {
        match splice(stdin(), None, stdout(), None, BLOCK, SpliceFlags::MOVE) {
            Ok(0) => break Ok(()),
            Ok(count) => total += count as u64,
            Err(Errno::INTR) => {}
            Err(error) => break Err(io::Error::from(error)),
        }
    };
    append(data)?.write_all(&total.to_le_bytes())?;
    done
}

/// The times of a recording: offsets with the nanoseconds at which the byte at the offset came.
fn read_times(path: &str) -> io::Result<Vec<(u64, Duration)>> {
    let bytes = std::fs::read(path)?;
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    Ok(bytes.chunks_exact(16).map(|entry| (number(&entry[..8]), Duration::from_nanos(number(&entry[8..])))).collect())
}

fn replay(data: &str, times: Option<&str>) -> io::Result<()> {
    let file = File::open(data)?;
    let length = file.metadata()?.len();
    let times = times.map(read_times).transpose()?.unwrap_or_default();
    let begun = Instant::now();
    let mut at = 0u64;
    for (nth, (_, when)) in times.iter().enumerate() {
        if let Some(pause) = when.checked_sub(begun.elapsed()).filter(|pause| !pause.is_zero()) {
            thread::sleep(pause);
        }
        let end = times.get(nth + 1).map_or(length, |next| next.0);
        at = write_part(&file, at, end)?;
    }
    write_part(&file, at, length)?;
    Ok(())
}

/// Writes the bytes of a file from `at` to `end` to standard output.
fn write_part(file: &File, mut at: u64, end: u64) -> io::Result<u64> {
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(BLOCK).min(BLOCK);
        match splice(file, Some(&mut at), stdout(), None, most, SpliceFlags::MOVE) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(at)
}

fn stand_in(data: &str, input: u64) -> io::Result<()> {
    let file = File::open(data)?;
    let length = file.metadata()?.len();
    let writer = thread::Builder::new().spawn(move || write_part(&file, 0, length))?;
    let nowhere = File::options().write(true).open("/dev/null")?;
    discard(&nowhere, input)?;
    let done = writer.join().map_err(|_| io::Error::other("the stand-in ended early"))?;
    done.map(|_| ())
}

fn discard(nowhere: &impl AsFd, mut left: u64) -> io::Result<()> {
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        match splice(stdin(), None, nowhere, None, most, SpliceFlags::MOVE) {
            Ok(0) => break,
            Ok(count) => left -= count as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
