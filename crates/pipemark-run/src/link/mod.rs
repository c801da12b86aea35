//! The links between two processes, one file each, with a common trait.
//!
//! A link is made before either end exists: by the parent, or by the keeper if it has a name in the system. Its two
//! handles are sent to the ends, which open them as a sender and a receiver. This module uses no runs, clocks or figures.
//!
//! A new link needs a file here, declared below, with an `impl Link`. It also needs a row in the table of
//! `pipemark-model`'s `link.rs` with its name, file and kind.

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

/// The handle with which an end opens a link.
#[derive(Debug)]
pub enum Handle {
    /// A descriptor.
    Fd(OwnedFd),
    /// A System V queue, which has an identifier but no descriptor.
    Queue(i32),
    /// No handle.
    Nothing,
}

impl Handle {
    /// The link's descriptor.
    ///
    /// # Errors
    /// If the link has none.
    pub fn fd(self) -> io::Result<OwnedFd> {
        match self {
            Handle::Fd(fd) => Ok(fd),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "this link's handle is a descriptor")),
        }
    }
}

/// Both ends of a link, and the limits that the kernel granted.
#[derive(Debug)]
pub struct Handles {
    /// The end that is written to.
    pub source: Handle,
    /// The end that is read from.
    pub sink: Handle,
    /// The largest message in bytes; `None` if messages aren't limited.
    pub message_limit: Option<u64>,
    /// The granted sizes of a socket's send and receive buffer in bytes; `None` for other links.
    pub buffers: Option<(u64, u64)>,
}

impl Handles {
    fn new(source: OwnedFd, sink: OwnedFd) -> Handles {
        Handles { source: Handle::Fd(source), sink: Handle::Fd(sink), message_limit: None, buffers: None }
    }
}

/// The kind of name that a link has in the system, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// No name. The parent can make the link.
    Unnamed,
    /// A file. A keeper makes and removes the file, so that nothing remains whichever process is killed.
    File,
    /// A message queue, whose names are in a separate namespace without directories. A keeper makes and removes the
    /// queue.
    Queue,
}

/// A kind of link.
pub trait Link: Sync {
    /// The kind of name that `connect` makes, if any. Such a name may have to be removed.
    fn naming(&self) -> Naming {
        Naming::Unnamed
    }

    /// Makes the link. `name` is a path that nothing else uses. The directory of `name` exists for links of
    /// [`Naming::File`], and only this user may enter it. A file created there is removed before `connect` returns.
    ///
    /// # Errors
    /// [`not_here`], with a sentence, if the link isn't available here.
    fn connect(&self, params: &Ends, name: &Path) -> io::Result<Handles>;

    /// Removes an object of this name that outlived `connect`, or that a killed `connect` left.
    fn remove(&self, _name: &Path) {}

    /// Whether the ends only write to a descriptor and read from one, unless other methods are requested. The concrete
    /// types of such ends are available: see [`stream`].
    fn is_plain(&self) -> bool {
        false
    }

    /// Opens the source's end. The default opens the end of a stream.
    ///
    /// # Errors
    /// If the method can't be used here, or there is not enough memory.
    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        stream::sender(end, params)
    }

    /// Opens the sink's end. The default opens the end of a stream.
    ///
    /// # Errors
    /// If the method can't be used here, or there is not enough memory.
    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        stream::receiver(end, params)
    }
}

/// Whether the error means that this system lacks a link or a method, forbids it or has no room for it. The trial is
/// then skipped instead of failing.
pub fn not_here(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, Unsupported};
    matches!(error.kind(), Unsupported | PermissionDenied | QuotaExceeded)
}

/// The unique part of a link's name, which is the name of its directory.
fn unique(name: &Path) -> String {
    name.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $link:ident($($file:ident)?): $is:ident,)*) => {
        /// The implementation of `kind`; `None` for a memory copy within one process, which is not a link.
        pub fn of(kind: LinkKind) -> Option<&'static dyn Link> {
            match kind {
                $(LinkKind::$link => None$(.or(Some(&$file::$link)))?,)*
                LinkKind::Outside(_) => None,
            }
        }
    };
}
each_link!(mechanisms);

/// Converts the model's types to the library's.
mod options {
    use pipeio_harness::buffer::Pages;
    use pipeio_harness::recv;
    use pipeio_harness::send::{self, BlockContent};
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

    pub fn content(params: &Ends) -> BlockContent {
        if params.fresh() { BlockContent::Fresh } else { BlockContent::Prepared }
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
