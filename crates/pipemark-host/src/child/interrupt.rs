//! Delivers Ctrl-C, SIGTERM and SIGHUP through a descriptor, and waits for other descriptors until one of these signals
//! arrives.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::child::error::RunError;

/// A socket that becomes readable, and stays readable, when the user asks pipemark to stop.
pub struct Interrupt(UnixStream);

impl Interrupt {
    /// Catches SIGINT, SIGTERM and SIGHUP until this process ends.
    ///
    /// # Errors
    /// If no descriptor is available.
    pub fn catch() -> io::Result<Interrupt> {
        let (ours, theirs) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, theirs.try_clone()?)?;
        }
        Ok(Interrupt(ours))
    }

    /// Makes these signals end the program with exit code `code` one second after they arrive. Call this before writing
    /// results, because writing to a FIFO or a terminal may block forever. Earlier signals don't count.
    ///
    /// # Errors
    /// If no thread is available.
    pub fn end_the_program_with(self, code: u8) -> io::Result<()> {
        const GRACE: Duration = Duration::from_secs(1);
        self.forget()?;
        let Interrupt(mut signals) = self;
        thread::Builder::new().spawn(move || {
            if signals.read_exact(&mut [0]).is_ok() {
                thread::sleep(GRACE);
                std::process::exit(code.into());
            }
        })?;
        Ok(())
    }

    /// Discards earlier signals, so that only a new one ends the next step.
    ///
    /// # Errors
    /// None are known.
    pub fn forget(&self) -> io::Result<()> {
        let mut signals = &self.0;
        signals.set_nonblocking(true)?;
        while matches!(signals.read(&mut [0; 64]), Ok(1..)) {}
        signals.set_nonblocking(false)
    }

    /// Whether the user has asked pipemark to stop.
    pub fn requested(&self) -> bool {
        self.requested_within(Duration::ZERO)
    }

    /// Waits up to `time` for the user to ask pipemark to stop. Returns whether the user asked.
    pub fn requested_within(&self, time: Duration) -> bool {
        wait_readable(&[], Instant::now() + time, Some(self)).is_err()
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until the deadline for the first of `fds` to become readable or to end. Returns its index; `None` at the
/// deadline.
///
/// # Errors
/// If the user interrupts, even if a descriptor is readable, or if the wait fails.
pub fn wait_readable(
    fds: &[BorrowedFd<'_>],
    deadline: Instant,
    interrupt: Option<&Interrupt>,
) -> Result<Option<usize>, RunError> {
    let all = fds.iter().copied().chain(interrupt.map(AsFd::as_fd));
    let mut polled: Vec<PollFd<'_>> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        match poll(&mut polled, Some(&left)) {
            Ok(0) => return Ok(None),
            Ok(_) if polled[fds.len()..].iter().any(|fd| !fd.revents().is_empty()) => {
                return Err(RunError::Interrupted);
            }
            Ok(_) => return Ok(polled.iter().position(|fd| !fd.revents().is_empty())),
            Err(Errno::INTR) => {}
            Err(error) => return Err(wait_failed(error.into())),
        }
    }
}

pub(super) fn wait_failed(error: io::Error) -> RunError {
    RunError::Failed(format!("cannot watch the processes: {error}"))
}
