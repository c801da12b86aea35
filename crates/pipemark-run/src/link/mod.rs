//! The links between two processes: one file each, behind one trait.
//!
//! A link is made in the parent, before either end exists. Its two handles are sent to the ends,
//! which open them as a sender and a receiver. Runs, clocks and figures are not used here.
//!
//! A new link needs a file here, declared below, with an `impl Link`, and one row in the table of `model/link.rs`: its
//! name, its file, how bytes are sent and received, and its kind of kernel object.

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

/// The handle with which one end opens a link.
#[derive(Debug)]
pub enum Handle {
    /// A descriptor.
    Fd(OwnedFd),
    /// A System V queue, which has a number but no descriptor.
    Queue(i32),
    /// No handle.
    Nothing,
}

impl Handle {
    /// The descriptor of the link.
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

/// Both ends of a link, and the limits that the kernel granted.
#[derive(Debug)]
pub struct Handles {
    /// The end that is written to.
    pub source: Handle,
    /// The end that is read from.
    pub sink: Handle,
    /// The largest message in bytes, if limited.
    pub message_limit: Option<u64>,
    /// Send and receive buffer of a socket, in bytes.
    pub buffers: Option<(u64, u64)>,
}

impl Handles {
    fn new(source: OwnedFd, sink: OwnedFd) -> Handles {
        Handles { source: Handle::Fd(source), sink: Handle::Fd(sink), message_limit: None, buffers: None }
    }
}

/// The kind of name that a link has in the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// None: the parent can make it.
    Unnamed,
    /// A file. As with a queue, a keeper makes and removes it, so that nothing remains whichever process is killed.
    File,
    /// A message queue, in a separate namespace without folders.
    Queue,
}

/// A kind of link.
pub trait Link: Sync {
    /// The kind of name that `connect` makes, which may have to be removed.
    fn naming(&self) -> Naming {
        Naming::Unnamed
    }

    /// Makes the link. `name` is a path that nothing else uses. For a file its folder exists and
    /// only this user may enter it; what is created there is removed before this returns.
    ///
    /// # Errors
    /// [`not_here`], with a sentence, where the mechanism isn't available.
    fn connect(&self, params: &Ends, name: &Path) -> io::Result<Handles>;

    /// Removes what outlived `connect` under this name, or what a killed `connect` left.
    fn remove(&self, _name: &Path) {}

    /// Whether the ends only write to a descriptor and read from one, unless other methods are
    /// requested. Their concrete types are then available: see [`stream`].
    fn is_plain(&self) -> bool {
        false
    }

    /// Opens the source's end; by default the end of a stream.
    ///
    /// # Errors
    /// When the method can't be used here or there is no memory for it.
    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        stream::sender(end, params)
    }

    /// Opens the sink's end; by default the end of a stream.
    ///
    /// # Errors
    /// When the method can't be used here or there is no memory for it.
    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        stream::receiver(end, params)
    }
}

/// Whether a link or an end can't be made because this system lacks it, forbids it or has no room
/// for it: a reason to skip, not a failure.
pub fn not_here(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, Unsupported};
    matches!(error.kind(), Unsupported | PermissionDenied | QuotaExceeded)
}

/// The unique part of a link's name: the name of its folder.
fn unique(name: &Path) -> String {
    name.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
}

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $link:ident($($file:ident)?): $is:ident,)*) => {
        /// The link called `kind`; `None` for a copy within one process, which is no link.
        pub fn of(kind: LinkKind) -> Option<&'static dyn Link> {
            match kind {
                $(LinkKind::$link => None$(.or(Some(&$file::$link)))?,)*
            }
        }
    };
}
each_link!(mechanisms);

/// Converts the model's types to the library's.
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
