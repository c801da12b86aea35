//! A System V message queue. It exists until it is removed. Only this user may open it (mode 0600).

use std::io;
use std::path::Path;

use pipeio_harness::mq::sysv;

use pipemark_model::Ends;

use crate::link::{BoxReceiver, BoxSender, Handle, Handles, Link, Naming, options};

pub struct SysvMq;

impl Link for SysvMq {
    fn naming(&self) -> Naming {
        Naming::Queue
    }

    fn connect(&self, _: &Ends, name: &Path) -> io::Result<Handles> {
        let id = sysv::create(key(name))?;
        let limit = sysv::message_size(id)? as u64;
        Ok(Handles { source: Handle::Queue(id), sink: Handle::Queue(id), message_limit: Some(limit), buffers: None })
    }

    fn remove(&self, name: &Path) {
        // An error is ignored, because the queue may already be gone.
        let _ = sysv::find(key(name)).and_then(sysv::remove);
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        sysv::sender(queue(&end)?, &options::send(params))
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        sysv::receiver(queue(&end)?, &options::recv(params))
    }
}

/// A key unique to the queue. With this key, the queue is found even if its keeper was killed before it sent the
/// queue's identifier.
fn key(name: &Path) -> i32 {
    let text = super::unique(name);
    let digits = text.len().saturating_sub(7);
    // The set bit keeps the key from being 0, which is IPC_PRIVATE.
    i32::from_str_radix(text.get(digits..).unwrap_or_default(), 16).unwrap_or(0) | 1 << 29
}

fn queue(end: &Handle) -> io::Result<i32> {
    match end {
        Handle::Queue(id) => Ok(*id),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a System V queue needs an identifier, but this end has none",
        )),
    }
}
