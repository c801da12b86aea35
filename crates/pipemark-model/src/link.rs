//! The table of links: their names and properties.

use crate::methods::{RecvMethod, SendMethod};
use crate::value::word_enum;

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
        word_enum! {
            /// The mechanism that connects two processes.
            pub enum LinkKind {
                $($(#[doc = $doc])* $link,)*
            }
        }

        impl LinkKind {
            const fn traits(self) -> &'static Traits {
                match self {
                    $(LinkKind::$link => &$is,)*
                }
            }
        }
    };
}
each_link!(kinds);

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
