//! POSIX message queues (mq_overview(7)). On Linux a queue is a file, and its descriptor can be inherited, passed on
//! and polled like any other. The descriptor stays valid after the queue's name was removed.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::recv::{self, Receiver};
use crate::send::{self, Sender};
use crate::wait::{Direction, Wait};

use super::setting;
use crate::message::{Channel, MessageReceiver, MessageSender};
use crate::{errno_of, result_of};

/// The limits of one queue for an unprivileged user. RLIMIT_MSGQUEUE also limits the memory of all of a user's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PosixLimits {
    /// Bytes per message: /proc/sys/fs/mqueue/msgsize_max, 8192 unless changed.
    pub message_bytes: usize,
    /// Messages in a queue: /proc/sys/fs/mqueue/msg_max, 10 unless changed.
    pub messages: usize,
}

/// The limits of this system.
///
/// # Errors
/// If the kernel has no POSIX message queues, or /proc is missing.
pub fn limits() -> io::Result<PosixLimits> {
    Ok(PosixLimits {
        message_bytes: setting("/proc/sys/fs/mqueue/msgsize_max")?,
        messages: setting("/proc/sys/fs/mqueue/msg_max")?,
    })
}

fn name_of(name: &str) -> io::Result<CString> {
    CString::new(name).map_err(|_| crate::invalid("a queue's name can't contain a zero byte"))
}

/// Creates a queue for `messages` messages of up to `max_message` bytes. No other user may open it. `name` must begin
/// with a slash and contain no other. Unlink the name as soon as no process needs it; the descriptor stays valid.
///
/// # Errors
/// `AlreadyExists` for a name in use; `InvalidInput` beyond [`limits`]; `QuotaExceeded` if the user's queues would
/// exceed RLIMIT_MSGQUEUE, or the system has too many queues; another error if the kernel has no such queues.
pub fn create(name: &str, max_message: usize, messages: usize) -> io::Result<OwnedFd> {
    let path = name_of(name)?;
    // SAFETY: every field of mq_attr is an integer, for which zero is valid.
    let mut wanted: libc::mq_attr = unsafe { MaybeUninit::zeroed().assume_init() };
    wanted.mq_maxmsg = messages.try_into().unwrap_or(libc::c_long::MAX);
    wanted.mq_msgsize = max_message.try_into().unwrap_or(libc::c_long::MAX);
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    let mode: libc::mode_t = 0o600;
    // SAFETY: the name ends in a zero byte. O_CREAT needs a mode and a pointer to attributes, which live during the
    // call.
    let queue = unsafe { libc::mq_open(path.as_ptr(), flags, mode, ptr::from_ref(&wanted)) };
    let queue = result_of(queue).map_err(|error| {
        let (kind, why) = match error.raw_os_error() {
            Some(libc::EINVAL) => {
                let limits = limits().map_or_else(
                    |_| "this system's limits".to_owned(),
                    |l| format!("{} messages of {} bytes", l.messages, l.message_bytes),
                );
                (error.kind(), format!("a queue has at most {limits} (/proc/sys/fs/mqueue), and a name like /name"))
            }
            Some(libc::EMFILE) => {
                let why = "the user's queues would exceed their memory limit; raise the limit with ulimit -q";
                (io::ErrorKind::QuotaExceeded, why.to_owned())
            }
            Some(libc::ENOSPC) => {
                let why = "the limit of /proc/sys/fs/mqueue/queues_max is reached; remove queues or raise the limit";
                (io::ErrorKind::QuotaExceeded, why.to_owned())
            }
            _ => (error.kind(), error.to_string()),
        };
        let what = format!("cannot make message queue {name} for {messages} messages of {max_message} bytes: {why}");
        io::Error::new(kind, what)
    })?;
    // SAFETY: mq_open has just returned the queue, a queue is a descriptor on Linux, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(queue) })
}

/// Removes the queue's name. The queue exists until its last descriptor is closed.
///
/// # Errors
/// If there is no queue of this name, or it belongs to another user.
pub fn unlink(name: &str) -> io::Result<()> {
    let path = name_of(name)?;
    // SAFETY: the name ends in a zero byte.
    result_of(unsafe { libc::mq_unlink(path.as_ptr()) }).map(drop)
}

/// The maximum message size of the queue `fd`, in bytes.
///
/// # Errors
/// If `fd` is not a message queue.
pub fn message_size(fd: impl AsFd) -> io::Result<usize> {
    let mut attributes = MaybeUninit::<libc::mq_attr>::zeroed();
    // SAFETY: the descriptor is open, and the pointer points to a writable mq_attr.
    result_of(unsafe { libc::mq_getattr(fd.as_fd().as_raw_fd(), attributes.as_mut_ptr()) })?;
    // SAFETY: every field is an integer, for which zero and what the kernel wrote are both valid.
    let attributes = unsafe { attributes.assume_init() };
    usize::try_from(attributes.mq_msgsize).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Creates a sender for the queue `fd`. Messages have at most `max_message` bytes, or the queue's own limit
/// ([`message_size`]) if that is less. Two ends that share an open file description also share O_NONBLOCK: if one end
/// polls or spins, the other can't block, and polls too.
///
/// # Errors
/// If `fd` is not a message queue, `max_message` is 0, or the memory can't be allocated.
pub fn sender(fd: OwnedFd, options: &send::SendOptions, max_message: usize) -> io::Result<Box<dyn Sender + Send>> {
    let limit = max_message.min(message_size(&fd)?);
    Ok(Box::new(MessageSender::new(PosixQueue::new(fd, options.wait)?, options, limit)?))
}

/// Creates a receiver for the queue `fd`, with room for messages of `max_message` bytes. If the queue's own limit is
/// larger, there is room for that, because mq_receive(3) requires it.
///
/// # Errors
/// If `fd` is not a message queue, or the memory can't be allocated.
pub fn receiver(fd: OwnedFd, options: &recv::RecvOptions, max_message: usize) -> io::Result<Box<dyn Receiver + Send>> {
    let limit = max_message.max(message_size(&fd)?);
    Ok(Box::new(MessageReceiver::new(PosixQueue::new(fd, options.wait)?, options, limit)?))
}

struct PosixQueue {
    fd: OwnedFd,
    wait: Wait,
}

impl PosixQueue {
    fn new(fd: OwnedFd, wait: Wait) -> io::Result<PosixQueue> {
        wait.configure(&fd)?;
        Ok(PosixQueue { fd, wait })
    }
}

impl Channel for PosixQueue {
    const LEAD: usize = 0;

    fn put(&self, message: &mut [u8], calls: &mut u32) -> io::Result<()> {
        let sent = self.wait.retry(self.fd.as_fd(), Direction::Out, calls, || {
            // SAFETY: the pointer and length are those of a live slice, which is only read.
            errno_of(unsafe { libc::mq_send(self.fd.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) })
        });
        sent.map(drop)
    }

    fn take(&self, buffer: &mut [u8], calls: &mut u32) -> io::Result<usize> {
        let received = self.wait.retry(self.fd.as_fd(), Direction::In, calls, || {
            let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
            // SAFETY: the pointer and length are those of a slice that is borrowed exclusively. The pointer for the
            // priority may be null.
            errno_of(unsafe { libc::mq_receive(self.fd.as_raw_fd(), start, len, ptr::null_mut()) })
        });
        received.map(isize::unsigned_abs)
    }
}
