//! A ring for one operation at a time, shared by the io_uring sender and receiver.

use std::io;

use io_uring::{IoUring, squeue};

use crate::wait::Wait;

pub(crate) struct Ring {
    ring: IoUring,
    wait: Wait,
    /// A call failed, so an operation may be under way that nobody waits for.
    broken: bool,
}

impl Ring {
    /// A ring with `buffer` registered as its fixed buffer 0.
    ///
    /// # Errors
    /// `Unsupported` or `PermissionDenied` where io_uring may not be used.
    ///
    /// # Safety
    /// The buffer must stay mapped until the ring is dropped.
    pub(crate) unsafe fn new(wait: Wait, buffer: &mut [u8]) -> io::Result<Ring> {
        let ring = IoUring::new(4)?;
        let vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: the vector describes a live buffer; that it stays is the caller's promise.
        unsafe { ring.submitter().register_buffers(&[vector]) }?;
        Ok(Ring { ring, wait, broken: false })
    }

    /// Submits one operation and waits until it is complete; returns its result. An interrupted or refused operation is
    /// submitted again.
    ///
    /// # Safety
    /// The operation's memory and descriptor must stay valid and untouched until this returns.
    pub(crate) unsafe fn run(&mut self, entry: &squeue::Entry, calls: &mut u32) -> io::Result<usize> {
        if self.broken {
            return Err(io::Error::other("this ring failed before; open another"));
        }
        loop {
            // SAFETY: the caller keeps the operation's memory until we return, and we return only after its completion.
            unsafe { self.ring.submission().push(entry) }
                .map_err(|_| io::Error::other("the submission queue is full"))?;
            // A spinning end does not sleep in the kernel, but has to enter it for the completion to be delivered.
            let wanted = usize::from(self.wait != Wait::Spin);
            let result = loop {
                *calls += 1;
                match self.ring.submit_and_wait(wanted) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.broken = true;
                        return Err(error);
                    }
                }
                if let Some(completion) = self.ring.completion().next() {
                    break completion.result();
                }
            };
            match result {
                moved @ 0.. => return Ok(moved.unsigned_abs() as usize),
                error if -error == libc::EINTR || -error == libc::EAGAIN => {}
                error => return Err(io::Error::from_raw_os_error(-error)),
            }
        }
    }
}
