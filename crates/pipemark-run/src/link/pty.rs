//! A pseudo-terminal in raw mode, which passes bytes unchanged. The source has the terminal side, because bytes written
//! there can still be read after that side is closed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use pipeio_harness::recv::{Received, Receiver};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use pipemark_model::Ends;

use crate::link::{BoxReceiver, Handle, Handles, Link, stream};

pub struct Pty;

impl Link for Pty {
    fn connect(&self, _: &Ends, _: &Path) -> io::Result<Handles> {
        let (source, sink) = pair().map_err(|error| {
            let what = format!(
                "cannot open a pseudo-terminal: {error}; mount on /dev/pts a devpts file system that this user can use, and see /proc/sys/kernel/pty/max"
            );
            io::Error::new(io::ErrorKind::Unsupported, what)
        })?;
        let mut raw = tcgetattr(&source)?;
        raw.make_raw();
        tcsetattr(&source, OptionalActions::Now, &raw)?;
        Ok(Handles::new(source, sink))
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        Ok(Box::new(Master(stream::receiver(end, params)?)))
    }
}

/// The terminal side, then the master side.
fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let other = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&other)?;
    unlockpt(&other)?;
    let name = ptsname(&other, Vec::new())?;
    let terminal = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((terminal, other))
}

/// A receiver that turns EIO into the end of the stream. Reading fails with EIO once the terminal side is closed.
struct Master(BoxReceiver);

impl Receiver for Master {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
        match self.0.recv() {
            Err(error) if error.raw_os_error() == Some(EIO) => Ok(Received { bytes: 0, calls: 1, data: None }),
            other => other,
        }
    }
}
