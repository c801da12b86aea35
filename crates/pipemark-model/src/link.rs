//! The table of links: their names and properties.

use std::fmt;
use std::str::FromStr;

use crate::bad_value::BadValue;
use crate::methods::{RecvMethod, SendMethod};
use crate::outside_link::OutsideLink;
use crate::value::{Choice, Choices, kebab_case, serde_as_text};

/// Passes the table of links to a macro. Each row has the link's name, then (in parentheses) the module in
/// `pipemark-run`'s `link` that implements the link, then the link's properties. A memory copy within one process has
/// no module.
#[macro_export]
macro_rules! each_link {
    ($use:ident) => {
        $use! {
            /// an anonymous pipe between two processes
            Pipe(pipe): PIPE,
            /// a named pipe
            Fifo(fifo): PIPE,
            /// a pair of UNIX stream sockets
            Socketpair(socketpair): STREAM_SOCKET,
            /// a UNIX stream socket with bind, connect and accept
            UnixStream(unix_stream): STREAM_SOCKET,
            /// a pair of UNIX sockets that preserve message boundaries and order
            UnixSeqpacket(unix_seqpacket): MESSAGE_SOCKET,
            /// a pair of UNIX datagram sockets
            UnixDgram(unix_dgram): MESSAGE_SOCKET,
            /// TCP over the loopback device
            Tcp(tcp): TCP,
            /// a System V message queue
            SysvMq(sysv_mq): PLAIN,
            /// a POSIX message queue
            PosixMq(posix_mq): PLAIN,
            /// a ring in shared memory (a memfd)
            Shm(shm): RING,
            /// process_vm_readv(2): the sink copies from the source's memory
            ProcessVm(process_vm): PLAIN,
            /// a pseudo-terminal in raw mode
            Pty(pty): PLAIN,
            /// no transfer: the cost of the harness itself
            Null(null): NO_TRANSFER,
            /// one core copies blocks in memory, for comparison
            MemoryCopy(): NO_TRANSFER,
        }
    };
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $link:ident($($file:ident)?): $is:ident,)*) => {
        /// The mechanism that connects two processes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum LinkKind {
            $($(#[doc = $doc])* $link,)*
            /// A link by programs other than pipemark.
            Outside(OutsideLink),
        }

        impl LinkKind {
            /// pipemark's own links, in order.
            pub fn iter() -> impl DoubleEndedIterator<Item = LinkKind> + ExactSizeIterator + Clone {
                [$(LinkKind::$link),*].into_iter()
            }

            /// The link's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(LinkKind::$link => {
                        const NAME: ([u8; 32], usize) = kebab_case(stringify!($link).as_bytes());
                        const WORD: Result<&str, std::str::Utf8Error> = str::from_utf8(NAME.0.split_at(NAME.1).0);
                        WORD.expect("names of variants are ASCII")
                    })*
                    LinkKind::Outside(outside) => outside.as_str(),
                }
            }

            fn traits(self) -> &'static Traits {
                match self {
                    $(LinkKind::$link => &$is,)*
                    LinkKind::Outside(outside) if outside.is_null() => &NO_TRANSFER,
                    LinkKind::Outside(_) => &PLAIN,
                }
            }
        }

        impl Choices for LinkKind {
            fn choices() -> Vec<Choice> {
                let about = [$(concat!($($doc),+)),*].map(|about| about.trim().trim_end_matches('.'));
                LinkKind::iter().map(LinkKind::name).zip(about).collect()
            }
        }
    };
}
each_link!(kinds);

#[expect(clippy::derivable_impls, reason = "the variants come from a table, in which none can be marked")]
impl Default for LinkKind {
    fn default() -> Self {
        LinkKind::Pipe
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LinkKind {
    type Err = BadValue;

    /// A name that isn't one of pipemark's own links is that of an outside link. Whether there is such a link is
    /// checked where its description is read.
    fn from_str(text: &str) -> Result<LinkKind, BadValue> {
        match LinkKind::iter().find(|link| link.name() == text) {
            Some(link) => Ok(link),
            None => text.parse().map(LinkKind::Outside),
        }
    }
}

serde_as_text!(LinkKind, "a link, such as pipe, or zeromq:transport=tcp for a link by other programs");

/// The properties of a link. `write` and `read` also stand for a link's own calls, such as send, msgsnd or a copy into
/// the ring.
struct Traits {
    senders: &'static [SendMethod],
    receivers: &'static [RecvMethod],
    /// Whether the kernel treats the link as a pipe.
    is_pipe: bool,
    /// Whether the link has socket buffers.
    is_socket: bool,
    /// Whether the link's capacity can be chosen.
    has_capacity: bool,
    /// Whether bytes move from one process to another.
    transfers: bool,
}

const PLAIN: Traits = Traits {
    senders: &[SendMethod::Write],
    receivers: &[RecvMethod::Read],
    is_pipe: false,
    is_socket: false,
    has_capacity: false,
    transfers: true,
};
const NO_TRANSFER: Traits = Traits { transfers: false, ..PLAIN };
const PIPE: Traits = {
    use SendMethod::{IoUring, Sendfile, Splice, Tee, Vmsplice, VmspliceGift, Write};
    Traits {
        senders: &[Write, Vmsplice, VmspliceGift, Sendfile, Splice, Tee, IoUring],
        receivers: &[RecvMethod::Read, RecvMethod::Splice, RecvMethod::Vmsplice, RecvMethod::IoUring],
        is_pipe: true,
        has_capacity: true,
        ..PLAIN
    }
};
const MESSAGE_SOCKET: Traits = Traits { is_socket: true, ..PLAIN };
const STREAM_SOCKET: Traits = Traits {
    senders: &[SendMethod::Write, SendMethod::Sendfile, SendMethod::Splice, SendMethod::IoUring],
    receivers: &[RecvMethod::Read, RecvMethod::IoUring],
    ..MESSAGE_SOCKET
};
const TCP: Traits = {
    use SendMethod::{IoUring, Sendfile, Splice, Write, Zerocopy};
    Traits { senders: &[Write, Sendfile, Splice, IoUring, Zerocopy], ..STREAM_SOCKET }
};
const RING: Traits = Traits {
    senders: &[SendMethod::Write, SendMethod::InPlace],
    receivers: &[RecvMethod::Read, RecvMethod::InPlace],
    has_capacity: true,
    ..PLAIN
};

impl LinkKind {
    /// The outside link, if it is one.
    pub fn outside(self) -> Option<OutsideLink> {
        if let LinkKind::Outside(outside) = self { Some(outside) } else { None }
    }

    /// Whether the link measures the cost of the harness itself.
    pub fn is_null(self) -> bool {
        self == LinkKind::Null || self.outside().is_some_and(OutsideLink::is_null)
    }

    /// The send methods that this link supports.
    pub fn senders(self) -> &'static [SendMethod] {
        self.traits().senders
    }

    /// The receive methods that this link supports.
    pub fn receivers(self) -> &'static [RecvMethod] {
        self.traits().receivers
    }

    /// Whether the kernel treats the link as a pipe.
    pub fn is_pipe(self) -> bool {
        self.traits().is_pipe
    }

    /// Whether the link's capacity can be chosen. It can for pipes and rings.
    pub fn has_capacity(self) -> bool {
        self.traits().has_capacity
    }

    /// Whether the link has socket buffers.
    pub fn is_socket(self) -> bool {
        self.traits().is_socket
    }

    /// Whether bytes move from one process to another. Links for which this is false serve as references.
    pub fn transfers(self) -> bool {
        self.traits().transfers
    }
}
