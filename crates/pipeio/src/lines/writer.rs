//! Writes outputs to a descriptor.

use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{IoSliceRaw, SpliceFlags};

use super::error::Error;
use super::fault;
use super::output::Output;
use crate::gift::WORTH_GIVING;
use crate::pipe::Access;
use crate::wait::{Direction, until_ready};

/// The maximum number of pieces that the kernel accepts in one call (IOV_MAX in limits.h).
const PIECES: usize = 1024;

/// The longest message in bytes after an output has first refused a message as too long. Each further refusal halves
/// the limit.
const MAX_MESSAGE: usize = 64 << 10;
/// The shortest limit to which refusals reduce the length of messages, in bytes.
const MIN_MESSAGE: usize = 512;

/// How output reaches a pipe. Any other output is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputMethod {
    /// write(2): the kernel copies.
    #[default]
    Write,
    /// vmsplice(2): the pipe refers to the engine's pages. The engine drops these pages and never writes to them again,
    /// so a reader may pass them on or keep them for any time. Outputs smaller than 32 KiB are written with write(2);
    /// so are all outputs if the kernel refuses vmsplice(2).
    GiveAway,
}

/// Whether the output still has readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    Present,
    Gone,
}

#[derive(Debug)]
pub(super) struct Writer<'fd> {
    output: BorrowedFd<'fd>,
    /// A private duplicate of `output`, for giving memory away; `None` if memory is not given away. No other code can
    /// replace the duplicate with a pipe's read end. From a read end, vmsplice(2) would write to our memory.
    own: Option<OwnedFd>,
    kind: FileType,
    send: OutputMethod,
    /// The maximum number of bytes passed in one call. It is limited because a socket that carries messages refuses
    /// long messages.
    most: usize,
    pub(super) bytes: u64,
    pub(super) given_away: u64,
    pub(super) writes: u64,
}

impl<'fd> Writer<'fd> {
    pub(super) fn new(output: BorrowedFd<'fd>, send: OutputMethod) -> Result<Self, Error> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(output).map_err(|e| Error::Write(e.into()))?.st_mode);
        let own = if kind == FileType::Fifo && send == OutputMethod::GiveAway {
            fcntl_dupfd_cloexec(output, 0).ok()
        } else {
            None
        };
        // If the descriptor isn't for writing, write(2) reports the error.
        let can_take = match &own {
            Some(own) => !Access::of(own.as_fd()).map_err(Error::Write)?.reads_only,
            None => false,
        };
        let send = if can_take { send } else { OutputMethod::Write };
        Ok(Self { output, own, kind, send, most: usize::MAX, bytes: 0, given_away: 0, writes: 0 })
    }

    /// Whether a write never waits for another process.
    pub(super) fn never_waits(&self) -> bool {
        matches!(self.kind, FileType::RegularFile | FileType::CharacterDevice)
    }

    /// Once this many bytes are held back, they are written even if there is more to read. A smaller number means more
    /// calls, and during each call the input's writer may get ahead. With a larger number, bytes for a pipe leave the
    /// caches before they are written. On two CPUs, `yes | lines | sink` with 16 KiB was 1.2 times as fast as with
    /// 8 KiB, and 1.4 times as fast as with 64 KiB.
    pub(super) fn hold_limit(&self) -> usize {
        match (self.kind, self.send) {
            (FileType::Fifo, OutputMethod::Write) => 16 << 10,
            _ => 256 << 10,
        }
    }

    /// Writes all of `output`, and makes its memory ready for the next output.
    pub(super) fn write(&mut self, output: &mut Output<'_>) -> Result<Readers, Error> {
        let given = match (self.send, output.as_slice()) {
            (OutputMethod::GiveAway, Some(bytes)) if bytes.len() >= WORTH_GIVING => self.give_away(bytes)?,
            _ => GiftOutcome::Refused,
        };
        match given {
            GiftOutcome::All => {
                output.give_away()?;
                Ok(Readers::Present)
            }
            GiftOutcome::ReadersGone => Ok(Readers::Gone),
            GiftOutcome::Refused => {
                let readers = match output.as_slice() {
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
        // Removes empty pieces: an empty output has one.
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            self.writes += 1;
            let written = fault::point().and_then(|()| match pieces {
                // write(2) takes 0.1 µs less than writev(2) with a list of one piece.
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
                Err(Errno::MSGSIZE) if self.most > MIN_MESSAGE => {
                    self.most = (self.most / 2).min(MAX_MESSAGE);
                }
                Err(error) => return Err(Error::Write(error.into())),
            }
        }
        Ok(Readers::Present)
    }

    fn give_away(&mut self, bytes: &[u8]) -> Result<GiftOutcome, Error> {
        let mut given = 0;
        let Some(own) = &self.own else { return Ok(GiftOutcome::Refused) };
        while given < bytes.len() {
            let rest = [IoSliceRaw::from_slice(&bytes[given..])];
            self.writes += 1;
            // SAFETY: the bytes are readable, and vmsplice only reads them, because the descriptor is not read-only.
            // The pipe's references outlive this call, but the bytes that a reader sees through them don't change:
            // `Output::give_away` ensures that nothing writes to these bytes again.
            let call = || unsafe { rustix::pipe::vmsplice(own, &rest, SpliceFlags::empty()) };
            match fault::point().and_then(|()| call()) {
                Ok(some) => {
                    given += some;
                    self.bytes += some as u64;
                    self.given_away += some as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => until_ready(self.output, Direction::Out).map_err(Error::Write)?,
                Err(Errno::PIPE) => return Ok(GiftOutcome::ReadersGone),
                Err(Errno::PERM | Errno::NOSYS | Errno::INVAL) if given == 0 => {
                    self.send = OutputMethod::Write;
                    return Ok(GiftOutcome::Refused);
                }
                Err(error) => return Err(Error::Write(error.into())),
            }
        }
        Ok(GiftOutcome::All)
    }
}

enum GiftOutcome {
    All,
    /// Nothing was given away: the bytes must be written.
    Refused,
    ReadersGone,
}
