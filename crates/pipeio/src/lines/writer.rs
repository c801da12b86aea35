//! From outputs to a descriptor.

use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{IoSliceRaw, SpliceFlags};

use super::error::Error;
use super::fault;
use super::output::Output;
use crate::pipe::Access;
use crate::wait::{Direction, until_ready};

/// The kernel takes no more pieces with one call (IOV_MAX in limits.h).
const PIECES: usize = 1024;

/// Less than this is copied: a pipe has a slot for each page, and a page lent costs a fault to replace.
const WORTH_GIVING: usize = 32 << 10;

/// What a message has at most where the output has no room for all in one, and below what it isn't tried.
const MOST_OF_A_MESSAGE: usize = 64 << 10;
const LEAST_MESSAGE: usize = 512;

/// How output reaches a pipe. Anything else than a pipe is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendMethod {
    /// write(2): the kernel copies.
    #[default]
    Write,
    /// vmsplice(2): the pipe refers to the engine's pages, which the engine then never writes to again but drops, so
    /// that the reader may pass them on as it likes and as late as it likes. Where the kernel refuses, write(2).
    GiveAway,
}

/// Whether there's still someone to write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    Present,
    Gone,
}

#[derive(Debug)]
pub(super) struct Writer<'fd> {
    output: BorrowedFd<'fd>,
    /// What memory is given away through: nobody can put a pipe's read end in its place, from which vmsplice(2) would read
    /// into our memory.
    own: Option<OwnedFd>,
    kind: FileType,
    send: SendMethod,
    /// Bytes that a call takes at most: a socket that keeps messages apart has no room for any length.
    most: usize,
    pub(super) bytes: u64,
    pub(super) given_away: u64,
    pub(super) writes: u64,
}

impl<'fd> Writer<'fd> {
    pub(super) fn new(output: BorrowedFd<'fd>, send: SendMethod) -> Result<Self, Error> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(output).map_err(|e| Error::Write(e.into()))?.st_mode);
        let own = if kind == FileType::Fifo && send == SendMethod::GiveAway {
            fcntl_dupfd_cloexec(output, 0).ok()
        } else {
            None
        };
        // What isn't for writing is left to write(2) to refuse.
        let can_take = match &own {
            Some(own) => !Access::of(own.as_fd()).map_err(Error::Write)?.reads_only,
            None => false,
        };
        let send = if can_take { send } else { SendMethod::Write };
        Ok(Self { output, own, kind, send, most: usize::MAX, bytes: 0, given_away: 0, writes: 0 })
    }

    /// Whether a write never waits for a reader.
    pub(super) fn never_waits(&self) -> bool {
        matches!(self.kind, FileType::RegularFile | FileType::CharacterDevice)
    }

    /// Bytes of output from which on it is written although there is more to read. Less makes more calls, each of which
    /// may let the writer of the input go ahead. But what waits to go into a pipe leaves the caches meanwhile: of
    /// `yes | lines | sink` on two CPUs, 16 KiB carried 1.2 times as much as 8 KiB and 1.4 times as much as 64 KiB.
    pub(super) fn hold(&self) -> usize {
        match (self.kind, self.send) {
            (FileType::Fifo, SendMethod::Write) => 16 << 10,
            _ => 256 << 10,
        }
    }

    /// Writes all of it, and leaves its memory ready for the next.
    pub(super) fn write(&mut self, output: &mut Output<'_>) -> Result<Readers, Error> {
        let given = match (self.send, output.unlent()) {
            (SendMethod::GiveAway, Some(bytes)) if bytes.len() >= WORTH_GIVING => self.give_away(bytes)?,
            _ => Given::Refused,
        };
        match given {
            Given::All => {
                output.give_away()?;
                Ok(Readers::Present)
            }
            Given::ReadersGone => Ok(Readers::Gone),
            Given::Refused => {
                let readers = match output.unlent() {
                    Some(bytes) => self.copy(&mut [IoSlice::new(bytes)])?,
                    None => {
                        let pieces = output.pieces();
                        self.copy(&mut pieces.map_err(|_| Error::Memory(ErrorKind::OutOfMemory.into()))?)?
                    }
                };
                output.reuse();
                Ok(readers)
            }
        }
    }

    fn copy(&mut self, mut pieces: &mut [IoSlice<'_>]) -> Result<Readers, Error> {
        // Drops empty pieces, of which an empty output has one.
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            self.writes += 1;
            let written = fault::point().and_then(|()| match pieces {
                // A call for one piece takes 0.1 µs less than one for a list of one.
                [piece, rest @ ..] if rest.is_empty() || self.most < usize::MAX => {
                    rustix::io::write(self.output, &piece[..piece.len().min(self.most)])
                }
                _ => rustix::io::writev(self.output, &pieces[..pieces.len().min(PIECES)]),
            });
            match written {
                Ok(0) => return Err(Error::Write(ErrorKind::WriteZero.into())),
                Ok(written) => {
                    self.bytes += written as u64;
                    IoSlice::advance_slices(&mut pieces, written);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => until_ready(self.output, Direction::Out).map_err(Error::Write)?,
                Err(Errno::PIPE) => return Ok(Readers::Gone),
                Err(Errno::MSGSIZE) if self.most > LEAST_MESSAGE => {
                    self.most = (self.most / 2).min(MOST_OF_A_MESSAGE);
                }
                Err(error) => return Err(Error::Write(error.into())),
            }
        }
        Ok(Readers::Present)
    }

    fn give_away(&mut self, bytes: &[u8]) -> Result<Given, Error> {
        let mut given = 0;
        let Some(own) = &self.own else { return Ok(Given::Refused) };
        while given < bytes.len() {
            let rest = [IoSliceRaw::from_slice(&bytes[given..])];
            self.writes += 1;
            // SAFETY: the bytes are readable, and the descriptor is not one for reading only. The pipe's references outlive this call, but what a reader sees through
            // them is not changed: `Output::give_away` makes sure that the bytes are never written to again.
            let call = || unsafe { rustix::pipe::vmsplice(own, &rest, SpliceFlags::empty()) };
            match fault::point().and_then(|()| call()) {
                Ok(some) => {
                    given += some;
                    self.bytes += some as u64;
                    self.given_away += some as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => until_ready(self.output, Direction::Out).map_err(Error::Write)?,
                Err(Errno::PIPE) => return Ok(Given::ReadersGone),
                Err(Errno::PERM | Errno::NOSYS | Errno::INVAL) if given == 0 => {
                    self.send = SendMethod::Write;
                    return Ok(Given::Refused);
                }
                Err(error) => return Err(Error::Write(error.into())),
            }
        }
        Ok(Given::All)
    }
}

enum Given {
    All,
    /// Nothing was given away, and it isn't tried again.
    Refused,
    ReadersGone,
}
