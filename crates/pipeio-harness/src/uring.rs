//! An io_uring for one operation at a time, used by the io_uring sender and receiver.

use std::io;
use std::time::Duration;

use io_uring::{IoUring, squeue, types};

use crate::wait::Wait;

pub(crate) struct Ring {
    ring: IoUring,
    wait: Wait,
    /// Whether a call has failed: the submission queue may then hold an operation that nothing waits for.
    broken: bool,
}

impl Ring {
    /// Creates a ring with `buffer` registered as fixed buffer 0.
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

    /// Submits one operation, waits until it is complete, and returns its result. Submits the operation again if it was
    /// interrupted or refused with EAGAIN. Whatever this function returns, no operation is in progress afterwards.
    ///
    /// # Safety
    /// The operation's memory and descriptor stay valid and untouched until this returns.
    pub(crate) unsafe fn run(&mut self, entry: &squeue::Entry, calls: &mut u32) -> io::Result<usize> {
        if self.broken {
            return Err(io::Error::other("a call on this io_uring has failed before; open another"));
        }
        loop {
            // SAFETY: the caller keeps the operation's memory until we return. We return after the operation has
            // completed, or when the kernel has not taken it out of the queue. In the second case the ring is `broken`,
            // and the kernel never reads the queue again.
            unsafe { self.ring.submission().push(entry) }
                .map_err(|_| io::Error::other("the submission queue is full"))?;
            // A spinning end doesn't sleep in the kernel, but has to enter the kernel so that completions are
            // delivered.
            let wanted = usize::from(self.wait != Wait::Spin);
            let result = loop {
                *calls = calls.saturating_add(1);
                match self.ring.submit_and_wait(wanted) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.broken = true;
                        self.cancel_and_wait();
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

    /// Cancels the operation if the kernel has taken it out of the submission queue, and waits until the operation is
    /// complete. Doesn't use the call that failed. If the kernel refuses to cancel, waits until the process at the
    /// pipe's other end completes the operation.
    fn cancel_and_wait(&mut self) {
        if !self.ring.submission().is_empty() {
            return;
        }
        while self.ring.completion().next().is_none() {
            // The kernel completes a thread's operations when the thread returns from a system call, such as this one
            // or the pause.
            let _ = self.ring.submitter().register_sync_cancel(None, types::CancelBuilder::any());
            std::thread::sleep(PAUSE);
        }
    }
}

/// The time between two attempts to end an operation.
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    use io_uring::opcode;

    use super::*;

    #[test]
    fn an_operation_in_progress_is_ended_before_its_memory_is_free() {
        let mut buffer = [0; 8];
        // SAFETY: the ring is dropped before the buffer.
        let ring = unsafe { Ring::new(Wait::Block, &mut buffer) };
        let Ok(mut ring) = ring else { return eprintln!("skipped: no io_uring here") };
        let (mut reader, mut writer) = io::pipe().unwrap();
        // Leave a read of an empty pipe in progress, as a failed wait does.
        let read =
            opcode::ReadFixed::new(types::Fd(reader.as_raw_fd()), buffer.as_mut_ptr(), 8, 0).offset(u64::MAX).build();
        // SAFETY: the buffer is not used before `cancel_and_wait` returns.
        unsafe { ring.ring.submission().push(&read) }.unwrap();
        ring.ring.submit().unwrap();
        ring.cancel_and_wait();
        // The cancelled read must not take bytes that are written now.
        writer.write_all(b"x").unwrap();
        drop(writer);
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        assert_eq!((byte, buffer), (*b"x", [0; 8]));
        // An operation that the kernel has not taken needs no wait. SAFETY: the buffer is not used before
        // `cancel_and_wait` returns, and the kernel never takes this operation.
        unsafe { ring.ring.submission().push(&read) }.unwrap();
        ring.cancel_and_wait();
    }
}
