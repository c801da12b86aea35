//! System V message queues (sysvipc(7)). A queue has a number, belongs to no process and exists until it is removed.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use crate::recv::{self, Receiver};
use crate::send::{self, Sender};
use crate::wait::Wait;

use super::setting;
use crate::message::{Channel, MessageReceiver, MessageSender};
use crate::result_of;

/// The limits of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SysvLimits {
    /// Bytes per message: /proc/sys/kernel/msgmax, 8192 unless changed.
    pub message_bytes: usize,
    /// Bytes in a queue: /proc/sys/kernel/msgmnb, 16384 unless changed.
    pub queue_bytes: usize,
}

/// The limits of this system.
///
/// # Errors
/// If the kernel has no System V message queues, or /proc is missing.
pub fn limits() -> io::Result<SysvLimits> {
    Ok(SysvLimits {
        message_bytes: setting("/proc/sys/kernel/msgmax")?,
        queue_bytes: setting("/proc/sys/kernel/msgmnb")?,
    })
}

/// Creates a queue that no other user may use, and returns its number. If the creator is killed before it has passed
/// the number on, the queue can still be found by its key and removed. A queue with the key 0 can't be found.
///
/// # Errors
/// `AlreadyExists` for a key in use; `QuotaExceeded` if the system has as many queues as /proc/sys/kernel/msgmni
/// allows; another error if the kernel has no such queues.
pub fn create(key: i32) -> io::Result<i32> {
    // SAFETY: the call has no pointers.
    result_of(unsafe { libc::msgget(key, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) }).map_err(|error| {
        let (kind, why) = match error.raw_os_error() {
            Some(libc::ENOSPC) => {
                let why =
                    "the limit of /proc/sys/kernel/msgmni is reached; remove queues (ipcs -q lists them) or raise the limit";
                (io::ErrorKind::QuotaExceeded, why.to_owned())
            }
            _ => (error.kind(), error.to_string()),
        };
        io::Error::new(kind, format!("cannot make a System V message queue: {why}"))
    })
}

/// The number of the queue with this key.
///
/// # Errors
/// If there is no such queue, or it belongs to another user.
pub fn find(key: i32) -> io::Result<i32> {
    // SAFETY: the call has no pointers.
    result_of(unsafe { libc::msgget(key, 0) })
}

/// Removes a queue and the messages in it. Senders and receivers that wait for the queue then fail.
///
/// # Errors
/// If there is no such queue, or it belongs to another user.
pub fn remove(id: i32) -> io::Result<()> {
    // SAFETY: IPC_RMID doesn't use the pointer.
    result_of(unsafe { libc::msgctl(id, libc::IPC_RMID, ptr::null_mut()) }).map(drop)
}

/// The maximum message size of the queue, in bytes: the system's limit, or the queue's capacity if that is less.
///
/// # Errors
/// If there is no such queue, or /proc is missing.
pub fn message_size(id: i32) -> io::Result<usize> {
    let mut status = MaybeUninit::<libc::msqid_ds>::zeroed();
    // SAFETY: the pointer points to a writable msqid_ds.
    result_of(unsafe { libc::msgctl(id, libc::IPC_STAT, status.as_mut_ptr()) })?;
    // SAFETY: every field is an integer, for which zero and what the kernel wrote are both valid.
    let status = unsafe { status.assume_init() };
    Ok(limits()?.message_bytes.min(usize::try_from(status.msg_qbytes).unwrap_or(usize::MAX)))
}

/// Creates a sender for the queue `id`. It splits blocks into messages of at most [`message_size`] bytes. A queue can't
/// be polled: an end with a polling wait policy tries once without waiting, then waits in the call.
///
/// # Errors
/// If there is no such queue, or the memory can't be allocated. Sending fails with `BrokenPipe` if the queue was
/// removed.
pub fn sender(id: i32, options: &send::SendOptions) -> io::Result<Box<dyn Sender + Send>> {
    let queue = SysvQueue { id, wait: options.wait };
    Ok(Box::new(MessageSender::new(queue, options, message_size(id)?)?))
}

/// Creates a receiver for the queue `id`. It waits like [`sender`].
///
/// # Errors
/// If there is no such queue, or the memory can't be allocated. Receiving fails with `BrokenPipe` if the queue was
/// removed.
pub fn receiver(id: i32, options: &recv::RecvOptions) -> io::Result<Box<dyn Receiver + Send>> {
    let queue = SysvQueue { id, wait: options.wait };
    Ok(Box::new(MessageReceiver::new(queue, options, message_size(id)?)?))
}

/// The type that each message starts with. Any number above 0 would do.
const TYPE: libc::c_long = 1;

struct SysvQueue {
    id: i32,
    wait: Wait,
}

impl SysvQueue {
    /// Repeats `call`, with the flags that the wait policy requires, until it returns something other than "try again".
    fn retry<T: PartialOrd + Default>(&self, calls: &mut u32, mut call: impl FnMut(libc::c_int) -> T) -> io::Result<T> {
        let mut flags = if self.wait.sleeps() { 0 } else { libc::IPC_NOWAIT };
        loop {
            *calls += 1;
            let error = match result_of(call(flags)) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOMSG) if self.wait == Wait::Spin => std::hint::spin_loop(),
                Some(libc::EAGAIN | libc::ENOMSG) => flags = 0,
                Some(libc::EIDRM | libc::EINVAL) => {
                    return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the message queue was removed"));
                }
                _ => return Err(error),
            }
        }
    }
}

impl Channel for SysvQueue {
    const LEAD: usize = size_of::<libc::c_long>();

    fn put(&self, message: &mut [u8], calls: &mut u32) -> io::Result<()> {
        message[..Self::LEAD].copy_from_slice(&TYPE.to_ne_bytes());
        let (start, len) = (message.as_ptr().cast(), message.len() - Self::LEAD);
        // SAFETY: the pointer points to a type and `len` bytes after it, and the call only reads them. The kernel
        // requires no alignment.
        self.retry(calls, |flags| unsafe { libc::msgsnd(self.id, start, len, flags) }).map(drop)
    }

    fn take(&self, buffer: &mut [u8], calls: &mut u32) -> io::Result<usize> {
        let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len() - Self::LEAD);
        // SAFETY: the pointer points to room for a type and `len` bytes after it, which is borrowed exclusively. The
        // kernel requires no alignment.
        let received = self.retry(calls, |flags| unsafe { libc::msgrcv(self.id, start, len, 0, flags) });
        received.map(isize::unsigned_abs)
    }
}
