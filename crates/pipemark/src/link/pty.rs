//! A pseudo-terminal in raw mode: bytes pass unchanged. The source has the terminal's side, because what is written there
//! can still be read when it has been closed.

use std::io;
use std::path::Path;

use pipeio::recv::{Received, Receiver};
use pipeio::send::Sender;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::{Ends, Handle, Link, stream};
use crate::model::Params;

pub struct Pty;

impl Link for Pty {
    fn connect(&self, _: &Params, _: &Path) -> io::Result<Ends> {
        let sink = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&sink)?;
        unlockpt(&sink)?;
        let name = ptsname(&sink, Vec::new())?;
        let source = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let mut raw = tcgetattr(&source)?;
        raw.make_raw();
        tcsetattr(&source, OptionalActions::Now, &raw)?;
        Ok(Ends::new(source, sink))
    }

    fn sender(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Sender + Send>> {
        stream::sender(end, params)
    }

    fn receiver(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Receiver + Send>> {
        Ok(Box::new(Master(stream::receiver(end, params)?)))
    }
}

/// Reading from a pseudo-terminal whose other side is closed is an error (EIO), where other links see the end.
struct Master(Box<dyn Receiver + Send>);

impl Receiver for Master {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
        match self.0.recv() {
            Err(error) if error.raw_os_error() == Some(EIO) => Ok(Received { bytes: 0, calls: 1, data: None }),
            other => other,
        }
    }
}
