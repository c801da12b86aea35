//! Whether a call copies bytes into a pipe or passes references to pages: the memory changes after the call, and the
//! pipe is read afterwards.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::{ptr, slice};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pwrite, read, write};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, pipe_with, splice, tee, vmsplice};

use crate::buffer::Pages;
use crate::send::{self, BlockContent, SendCall, SendOptions};
use crate::wait::Wait;

/// The number of bytes sent; at most a page.
const LEN: usize = 4096;
const BEFORE: [u8; LEN] = [b'a'; LEN];
const AFTER: [u8; LEN] = [b'b'; LEN];

/// A way into a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayIn {
    /// write(2).
    Write,
    /// io_uring, from a registered buffer.
    IoUring,
    /// vmsplice(2).
    Vmsplice,
    /// splice(2) from another pipe, which holds a page of a file.
    Splice,
}

/// Whether a reader sees what changed in the memory after the call had returned. If so, the call passed a reference;
/// otherwise it copied the bytes.
///
/// # Errors
/// If the kernel refuses a call, or the reader gets a mixture of both contents.
pub fn sees_later_change(entry: WayIn) -> io::Result<bool> {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    match entry {
        WayIn::Write => change_buffer(SendCall::Write, to)?,
        WayIn::IoUring => change_buffer(SendCall::IoUring, to)?,
        WayIn::Vmsplice => {
            let file = file()?;
            vmsplice_file(&file, &to)?;
            pwrite(&file, &AFTER, 0)?;
        }
        WayIn::Splice => {
            let file = file()?;
            let (first, into_first) = pipe_with(PipeFlags::CLOEXEC)?;
            let page = splice(&file, Some(&mut 0), &into_first, None, LEN, SpliceFlags::empty())?;
            whole(page)?;
            whole(splice(&first, None, &to, None, LEN, SpliceFlags::empty())?)?;
            pwrite(&file, &AFTER, 0)?;
        }
    }
    let mut seen = [0; LEN];
    whole(read(&from, &mut seen[..])?)?;
    // As patterns, these arrays would be compiled into a branch for each byte.
    if seen == BEFORE {
        Ok(false)
    } else if seen == AFTER {
        Ok(true)
    } else {
        Err(io::Error::other("the reader got a mixture of bytes"))
    }
}

/// Whether read(2) copies the bytes of a pipe: tee(2) duplicates the pipe's content, one pipe is read, and the reader's
/// memory changes. A copy leaves the other pipe's content as it was.
///
/// # Errors
/// If the kernel refuses a call.
pub fn read_copies() -> io::Result<bool> {
    let [(one, to_one), (other, to_other)] = [pipe_with(PipeFlags::CLOEXEC)?, pipe_with(PipeFlags::CLOEXEC)?];
    whole(write(&to_one, &BEFORE)?)?;
    whole(tee(&one, &to_other, LEN, SpliceFlags::empty())?)?;
    let (mut seen, mut rest) = ([0; LEN], [0; LEN]);
    whole(read(&one, &mut seen[..])?)?;
    let right = seen == BEFORE;
    std::hint::black_box(&mut seen).fill(AFTER[0]);
    whole(read(&other, &mut rest[..])?)?;
    Ok(right && rest == BEFORE)
}

/// Sends a block, then overwrites the memory that it was sent from.
fn change_buffer(call: SendCall, to: OwnedFd) -> io::Result<()> {
    let options =
        SendOptions { block: LEN, align: 0, pages: Pages::Base, wait: Wait::Block, content: BlockContent::Fresh };
    let mut sender = send::open(call, to, &options)?;
    sender.fresh(LEN)?.fill(BEFORE[0]);
    whole(sender.send(LEN)?.bytes)?;
    sender.fresh(LEN)?.fill(AFTER[0]);
    Ok(())
}

fn file() -> io::Result<OwnedFd> {
    let file = memfd_create("pipemark", MemfdFlags::CLOEXEC)?;
    pwrite(&file, &BEFORE, 0)?;
    Ok(file)
}

/// Gives the first page of `file` to the pipe, through a mapping.
fn vmsplice_file(file: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let start = unsafe { mmap(ptr::null_mut(), LEN, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
    // SAFETY: the mapping has LEN bytes, and the file doesn't change while this slice exists.
    let bytes = unsafe { slice::from_raw_parts(start.cast::<u8>(), LEN) };
    // SAFETY: `to` is a write end, so the kernel only takes references to the pages. The file changes later, but nothing
    // relies on the content: the caller compares what it reads.
    let given = unsafe { vmsplice(to.as_fd(), &[IoSliceRaw::from_slice(bytes)], SpliceFlags::empty()) };
    // SAFETY: `start` and LEN are the start and the length of a whole mapping, which only this function knows. `bytes`,
    // the only reference to its memory, isn't used any more. The pipe refers to the page, not to the mapping.
    unsafe { munmap(start, LEN) }?;
    whole(given?)
}

fn whole(bytes: usize) -> io::Result<()> {
    if bytes == LEN { Ok(()) } else { Err(io::Error::other(format!("{bytes} of {LEN} bytes were moved"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_copy_are_told_from_calls_that_pass_pages() {
        for (entry, expected) in [(WayIn::Write, false), (WayIn::Vmsplice, true), (WayIn::Splice, true)] {
            assert_eq!(sees_later_change(entry).unwrap(), expected, "{entry:?}");
        }
        assert!(read_copies().unwrap());
        match sees_later_change(WayIn::IoUring) {
            Ok(seen) => assert!(!seen, "io_uring copies"),
            Err(error) => eprintln!("skipped: no io_uring here: {error}"),
        }
    }
}
