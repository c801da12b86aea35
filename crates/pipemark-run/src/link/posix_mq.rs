//! A POSIX message queue. Its name is removed before the first byte is sent, and the descriptors keep the queue alive.

use std::io;
use std::path::Path;

use pipeio_harness::mq::posix;

use pipemark_model::Ends;

use crate::link::{BoxReceiver, BoxSender, Handle, Handles, Link, Naming, options};

pub struct PosixMq;

/// The requested number of messages that a queue holds: the default limit for unprivileged users.
const MESSAGES: usize = 10;

impl Link for PosixMq {
    fn naming(&self) -> Naming {
        Naming::Queue
    }

    fn connect(&self, params: &Ends, name: &Path) -> io::Result<Handles> {
        let limit = limit(params)?;
        let queue = posix::create(&queue_name(name), limit, MESSAGES.min(posix::limits()?.messages))?;
        posix::unlink(&queue_name(name))?;
        let ends = Handles::new(queue.try_clone()?, queue);
        Ok(Handles { message_limit: Some(limit as u64), ..ends })
    }

    fn remove(&self, name: &Path) {
        // An error is ignored, because the queue may already be gone.
        let _ = posix::unlink(&queue_name(name));
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        posix::sender(end.fd()?, &options::send(params), limit(params)?)
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        posix::receiver(end.fd()?, &options::recv(params), limit(params)?)
    }
}

/// The name of the queue. Queues have a separate namespace without directories.
fn queue_name(name: &Path) -> String {
    format!("/{}", super::unique(name))
}

/// The size of a queue's messages in bytes: the size of a block, or the system's limit if that is smaller.
fn limit(params: &Ends) -> io::Result<usize> {
    Ok(params.block.as_usize().min(posix::limits()?.message_bytes))
}
