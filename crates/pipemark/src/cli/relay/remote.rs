//! `relay --set PID limit=RATE`: changes the limit of a running relay.
//!
//! A relay with a limit has a file in memory (memfd_create(2)) that is only accessible through /proc/PID/fd, which the
//! kernel opens only for the process's own user. The directory /proc/PID is opened first. It refers to the same process
//! even if the PID is reused later.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use pipeio::relay::RelayHandle;
use rustix::fs::{CWD, Dir, MemfdFlags, Mode, OFlags, fstat, memfd_create, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use pipemark_console::{ExitError, say};

/// The name of the file, here and in /proc/PID/fd.
const NAME: &str = "pipemark-relay-limit";
const LINK: &[u8] = b"/memfd:pipemark-relay-limit (deleted)";

/// How often a relay checks for a new limit.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// How long `--set` waits for a relay that was started a moment ago.
const START_TIME: Duration = Duration::from_millis(200);

/// Lets `--set` change the limit of a handle from now on. If memfd_create(2) fails, prints a warning.
pub fn listen(handle: &RelayHandle) -> io::Result<()> {
    // The setting vm.memfd_noexec=2 requires NOEXEC_SEAL. Before Linux 6.3 that flag is unknown.
    let flags = MemfdFlags::CLOEXEC;
    let file = memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL).or_else(|_| memfd_create(NAME, flags));
    let (file, handle) = match file {
        Ok(file) => (File::from(file), handle.clone()),
        Err(errno) => {
            let error = io::Error::from(errno);
            say(format_args!("pipemark relay: --set can't change this limit, because memfd_create(2) failed: {error}"));
            return Ok(());
        }
    };
    thread::Builder::new().spawn(move || {
        let mut last = None;
        loop {
            thread::sleep(CHECK_INTERVAL);
            let mut message = [0; 16];
            if file.read_exact_at(&mut message, 0).is_ok() && last != Some(message) {
                if let Some(limit) = decode(message) {
                    handle.set_limit(Some(limit));
                }
                last = Some(message);
            }
        }
    })?;
    Ok(())
}

/// Encodes the limit and its complement, so that a half-written limit isn't valid.
fn encode(limit: NonZeroU64) -> [u8; 16] {
    let mut message = [0; 16];
    message[..8].copy_from_slice(&limit.get().to_ne_bytes());
    message[8..].copy_from_slice(&(!limit.get()).to_ne_bytes());
    message
}

fn decode(message: [u8; 16]) -> Option<NonZeroU64> {
    let [limit, complement] =
        [0, 8].map(|at| u64::from_ne_bytes(message[at..at + 8].try_into().expect("half of 16 bytes")));
    NonZeroU64::new(limit).filter(|limit| limit.get() == !complement)
}

/// Changes the limit of the relay with this process id.
pub fn set(pid: u32, limit: NonZeroU64) -> Result<(), ExitError> {
    let file = find(pid)?;
    let failed =
        |error: io::Error| ExitError::failed(format_args!("the limit of process {pid} can't be changed: {error}"));
    File::from(file).write_all_at(&encode(limit), 0).map_err(failed)
}

fn find(pid: u32) -> Result<OwnedFd, ExitError> {
    let failed = |errno: Errno| match errno {
        Errno::NOENT | Errno::SRCH => ExitError::usage(format_args!("there is no process {pid}")),
        _ => ExitError::failed(format_args!("process {pid} can't be read: {}", io::Error::from(errno))),
    };
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let process = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty()).map_err(failed)?;
    let begin = Instant::now();
    loop {
        // The owner and the command line of other users' processes are readable too.
        let owner = fstat(&process).map_err(failed)?.st_uid;
        let words = words(&process).map_err(failed)?;
        if owner != geteuid().as_raw() {
            return Err(ExitError::failed(format_args!(
                "process {pid} belongs to another user ({owner}); only that user can change the limit"
            )));
        }
        let descriptors = openat(&process, "fd", flags, Mode::empty()).map_err(failed)?;
        for entry in Dir::read_from(&descriptors).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(link) = readlinkat(&descriptors, entry.file_name(), Vec::new()) else { continue };
            if link.as_bytes() == LINK {
                return openat(&descriptors, entry.file_name(), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                    .map_err(failed);
            }
        }
        let (reason, may_follow) = why_without_file(&words);
        if !may_follow || begin.elapsed() >= START_TIME {
            return Err(ExitError::failed(format_args!("process {pid} {reason}")));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Why a process with this command line has no file for its limit, and whether the file may follow: the process may be
/// a shell that is about to start the relay, or a relay that hasn't created its file yet.
fn why_without_file(words: &[Vec<u8>]) -> (String, bool) {
    let name = words.first().map(|word| Path::new(OsStr::from_bytes(word)).file_name().unwrap_or_default());
    let is_relay = name.is_some_and(|name| name == "pipemark") && words.get(1).is_some_and(|verb| verb == b"relay");
    // `--limit RATE` or `--limit=RATE`.
    let has_limit = words.iter().any(|word| word.starts_with(b"--limit"));
    match (is_relay, has_limit) {
        (true, true) => ("is a relay whose limit can't be changed: memfd_create(2) failed".to_owned(), true),
        (true, false) => ("is a relay without a limit; start it with --limit to change it later".to_owned(), false),
        (false, _) => (format!("is not a relay ({})", description(name)), true),
    }
}

fn description(name: Option<&OsStr>) -> String {
    name.filter(|name| !name.is_empty()).map_or_else(
        || "it has no command line".to_owned(),
        |name| format!("it is {}", pipemark_model::neutral(&name.to_string_lossy())),
    )
}

/// The command line of a process.
fn words(process: impl AsFd) -> Result<Vec<Vec<u8>>, Errno> {
    let file = openat(process, "cmdline", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = vec![0; 4096];
    let read = rustix::io::read(&file, &mut bytes)?;
    Ok(bytes[..read].split(|&byte| byte == 0).map(<[u8]>::to_vec).collect())
}

/// Reads `PID limit=RATE`.
pub fn parse(words: &[String]) -> Result<(u32, NonZeroU64), ExitError> {
    let [pid, setting] = words else { return Err(ExitError::usage("--set takes a PID and limit=RATE")) };
    let number = pid.parse().ok().filter(|&pid: &u32| pid > 0 && i32::try_from(pid).is_ok());
    let number = number.ok_or_else(|| ExitError::usage(format_args!("--set: '{pid}' is not a PID")))?;
    let rate = setting.strip_prefix("limit=").ok_or_else(|| {
        ExitError::usage(format_args!("--set: '{setting}' is not a setting; use limit=RATE, such as limit=20m"))
    })?;
    let rate = super::rate(rate).map_err(|error| ExitError::usage(format_args!("--set: {error}")))?;
    Ok((number, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_whole_or_none() {
        let limit = NonZeroU64::new(20 << 20).unwrap();
        let message = encode(limit);
        assert_eq!(decode(message), Some(limit));
        for at in 0..16 {
            let mut torn = message;
            torn[at] ^= 1;
            assert_eq!(decode(torn), None);
        }
        assert_eq!(decode([0; 16]), None);
        assert_eq!(decode([255; 16]), None);
    }

    #[test]
    fn a_relay_may_create_its_file_later() {
        let why = |line: &str| {
            why_without_file(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<Vec<u8>>>())
        };
        for (line, expected, may_follow) in [
            ("/bin/bash -c x", "is not a relay (it is bash)", true),
            ("", "is not a relay (it has no command line)", true),
            ("/usr/bin/pipemark relay --limit 1m", "whose limit can't be changed", true),
            ("pipemark relay --buffer 1m --limit=1m", "whose limit can't be changed", true),
            ("pipemark relay --buffer 1m", "is a relay without a limit", false),
        ] {
            let (reason, follows) = why(line);
            assert!(reason.contains(expected) && follows == may_follow, "{line}: {reason}");
        }
    }

    #[test]
    fn set_takes_a_process_and_a_limit() {
        let parse =
            |pid: &str, setting: &str| parse(&[pid.to_owned(), setting.to_owned()]).map_err(|stop| stop.to_string());
        assert_eq!(parse("12", "limit=20m"), Ok((12, NonZeroU64::new(20 << 20).unwrap())));
        for (pid, setting, expected) in [
            ("0", "limit=1m", "not a PID"),
            ("-3", "limit=1m", "not a PID"),
            ("4294967296", "limit=1m", "not a PID"),
            ("12", "rate=1m", "is not a setting"),
            ("12", "limit=0", "out of range"),
            ("12", "limit=99999999t", "fits 64 bits"),
            ("12", "limit=", "not a size"),
        ] {
            let error = parse(pid, setting).unwrap_err();
            assert!(error.contains(expected), "{pid} {setting}: {error}");
        }
    }
}
