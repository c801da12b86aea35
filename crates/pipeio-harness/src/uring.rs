//! An io_uring for one operation at a time, used by the io_uring sender and receiver.

use std::io;

use io_uring::{IoUring, squeue};

use crate::wait::Wait;

pub(crate) struct Ring {
    ring: IoUring,
    wait: Wait,
    /// A call failed, so an operation that nobody waits for may still be in progress.
    broken: bool,
}

impl Ring {
    /// A ring with `buffer` registered as fixed buffer 0.
    ///
    /// # Errors
    /// `Unsupported` or `PermissionDenied` if io_uring can't be used.
    ///
    /// # Safety
    /// The buffer stays mapped until the ring is dropped.
    pub(crate) unsafe fn new(wait: Wait, buffer: &mut [u8]) -> io::Result<Ring> {
        let ring = IoUring::new(4)?;
        let vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: the vector describes a live buffer, which the caller promises to keep mapped.
        unsafe { ring.submitter().register_buffers(&[vector]) }?;
        Ok(Ring { ring, wait, broken: false })
    }

    /// Submits one operation, waits until it is complete, and returns its result. Submits it again if it was interrupted or
    /// refused with EAGAIN.
    ///
    /// # Safety
    /// The operation's memory and descriptor stay valid and untouched until this returns.
    pub(crate) unsafe fn run(&mut self, entry: &squeue::Entry, calls: &mut u32) -> io::Result<usize> {
        if self.broken {
            return Err(io::Error::other("this ring failed before; open another"));
        }
        loop {
            // SAFETY: the caller keeps the operation's memory until we return, which is after its completion. After a failed call
            // the operation may still be in progress, but the ring is then `broken`, and the registered buffer stays mapped.
            unsafe { self.ring.submission().push(entry) }
                .map_err(|_| io::Error::other("the submission queue is full"))?;
            // A spinning end doesn't sleep in the kernel, but has to enter it for completions to be delivered.
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
