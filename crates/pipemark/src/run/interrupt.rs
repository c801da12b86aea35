//! Ctrl-C and SIGTERM as a descriptor to wait on.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::child;

/// Becomes readable, and stays so, when the person asks to stop.
pub struct Interrupt(UnixStream);

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP for the rest of the process.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn catch() -> io::Result<Interrupt> {
        let (ours, theirs) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, theirs.try_clone()?)?;
        }
        Ok(Interrupt(ours))
    }

    /// From now on Ctrl-C and the like end the program with `code` a second later, whatever it is doing: what is left to
    /// do is to write, and a FIFO or a terminal may make a writer wait for ever. Signals that came before do not count.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn end_the_program_with(self, code: u8) -> io::Result<()> {
        const GRACE: Duration = Duration::from_secs(1);
        let Interrupt(mut signals) = self;
        signals.set_nonblocking(true)?;
        while matches!(signals.read(&mut [0; 64]), Ok(1..)) {}
        signals.set_nonblocking(false)?;
        thread::Builder::new().spawn(move || {
            if signals.read_exact(&mut [0]).is_ok() {
                thread::sleep(GRACE);
                std::process::exit(code.into());
            }
        })?;
        Ok(())
    }

    /// Whether that has happened.
    pub fn requested(&self) -> bool {
        child::wait_readable(&[], Instant::now(), Some(self)).is_err()
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
