//! The mechanisms that join two neighbours, one file each behind one trait.
//!
//! A link is made in the parent, before either end exists; its two handles travel to the ends, which open them as a sender
//! and a receiver. Nothing here knows about runs, clocks or figures.
//!
//! A new link is one file here, declared below, with an `impl Link`; and one row in the table of `model/link.rs`, which says
//! its name, its file, how bytes go in and out of it, and what it is to the kernel.

mod fifo;
mod null;
mod pipe;
mod posix_mq;
mod process_vm;
mod pty;
mod shm;
mod socketpair;
pub mod stream;
mod sysv_mq;
mod tcp;
mod unix_dgram;
mod unix_seqpacket;
mod unix_stream;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use pipeio_harness::recv::Receiver;
use pipeio_harness::send::Sender;

use pipemark_model::{Ends, LinkKind, each_link};

pub type BoxSender = Box<dyn Sender + Send>;
pub type BoxReceiver = Box<dyn Receiver + Send>;

/// What one end needs to open a link.
#[derive(Debug)]
pub enum Handle {
    /// A descriptor.
    Fd(OwnedFd),
    /// A System V queue, which has a number instead.
    Queue(i32),
    /// Nothing.
    Nothing,
}

impl Handle {
    /// The descriptor of a link that has one.
    ///
    /// # Errors
    /// When it has none.
    pub fn fd(self) -> io::Result<OwnedFd> {
        match self {
            Handle::Fd(fd) => Ok(fd),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "this link's handle is a descriptor")),
        }
    }
}

/// Both ends of a link, and what the kernel granted.
#[derive(Debug)]
pub struct Handles {
    /// Where bytes go in.
    pub source: Handle,
    /// Where they come out.
    pub sink: Handle,
    /// The most bytes of one message, where there is a limit.
    pub message_limit: Option<u64>,
    /// Send and receive buffer in bytes, of sockets.
    pub buffers: Option<(u64, u64)>,
}

impl Handles {
    fn new(source: OwnedFd, sink: OwnedFd) -> Handles {
        Handles { source: Handle::Fd(source), sink: Handle::Fd(sink), message_limit: None, buffers: None }
    }
}

/// What has to be named in the system to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Nothing: it can be made by the parent itself.
    Unnamed,
    /// A file. As with a queue, a keeper makes it and removes it, so that nothing remains whoever is killed when.
    File,
    /// A message queue, in a namespace of its own that has no folders.
    Queue,
}

/// A mechanism.
pub trait Link: Sync {
    /// Whether making it leaves something that has to be removed.
    fn naming(&self) -> Naming {
        Naming::Unnamed
    }

    /// Makes the link. `name` is a path that nothing else uses. For a file its folder exists, and only this user may enter
    /// it; what was put there is removed again before this returns.
    ///
    /// # Errors
    /// One that is [`not_here`], with a sentence, where the mechanism is not to be had here.
    fn connect(&self, params: &Ends, name: &Path) -> io::Result<Handles>;

    /// Removes what has outlived `connect` under this name, or what it left when it was killed half-way.
    fn remove(&self, _name: &Path) {}

    /// Whether writing to a descriptor and reading from one is all that its ends do, unless other methods are asked for. Then
    /// they can be had by their types: see [`stream`].
    fn is_plain(&self) -> bool {
        false
    }

    /// Opens the source's end; by default that of a stream.
    ///
    /// # Errors
    /// When the method cannot be used here or its memory cannot be had.
    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        stream::sender(end, params)
    }

    /// Opens the sink's end, likewise.
    ///
    /// # Errors
    /// When the method cannot be used here or its memory cannot be had.
    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        stream::receiver(end, params)
    }
}

/// Whether a link or an end cannot be made because this system does not have, allow or afford it: a reason to skip, not a
/// failure.
pub fn not_here(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, Unsupported};
    matches!(error.kind(), Unsupported | PermissionDenied | QuotaExceeded)
}

/// The part of a link's name that no other link has: its folder's.
fn unique(name: &Path) -> String {
    name.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $link:ident($($file:ident)?): $is:ident,)*) => {
        /// The mechanism called `kind`; `None` for a copy within one process, which is no link.
        pub fn of(kind: LinkKind) -> Option<&'static dyn Link> {
            match kind {
                $(LinkKind::$link => None$(.or(Some(&$file::$link)))?,)*
            }
        }
    };
}
each_link!(mechanisms);

/// The words of the model in the library's.
mod options {
    use pipeio_harness::buffer::Pages;
    use pipeio_harness::recv;
    use pipeio_harness::send::{self, Content};
    use pipeio_harness::wait::Wait;

    use pipemark_model::{Ends, PageKind, WaitPolicy};

    pub fn wait(policy: WaitPolicy) -> Wait {
        match policy {
            WaitPolicy::Block => Wait::Block,
            WaitPolicy::Poll => Wait::Poll,
            WaitPolicy::Spin => Wait::Spin,
        }
    }

    pub fn pages(kind: PageKind) -> Pages {
        match kind {
            PageKind::Base => Pages::Base,
            PageKind::Huge => Pages::Huge,
        }
    }

    pub fn content(params: &Ends) -> Content {
        if params.fresh() { Content::Fresh } else { Content::Prepared }
    }

    pub fn send(params: &Ends) -> send::SendOptions {
        send::SendOptions {
            block: params.block.as_usize(),
            align: params.align as usize,
            pages: pages(params.pages),
            wait: wait(params.wait),
            content: content(params),
        }
    }

    pub fn recv(params: &Ends) -> recv::RecvOptions {
        recv::RecvOptions {
            block: params.read_block().as_usize(),
            align: params.align as usize,
            pages: pages(params.pages),
            wait: wait(params.wait),
        }
    }
}

pub use options::{content, pages};
pub use stream::period;
