//! The choices a trial is made of: link, sender, receiver, wait policy, page kind and how much is proven.

use super::value::word_enum;

word_enum! {
    /// The mechanism between two neighbours.
    pub enum LinkKind {
        /// An anonymous pipe, pipe(2).
        Pipe,
        /// A named pipe, mkfifo(3); its name is gone before the first byte.
        Fifo,
        /// A UNIX stream socket pair, socketpair(2).
        Socketpair,
        /// A UNIX stream socket that was bound, connected and accepted.
        UnixStream,
        /// A UNIX socket pair that keeps messages apart and in order.
        UnixSeqpacket,
        /// A UNIX datagram socket pair.
        UnixDgram,
        /// TCP over the loopback device.
        Tcp,
        /// A System V message queue.
        SysvMq,
        /// A POSIX message queue.
        PosixMq,
        /// A single-producer single-consumer ring in shared memory (a memfd).
        Shm,
        /// process_vm_readv(2): the sink copies straight out of the source's memory.
        ProcessVm,
        /// A pseudo-terminal in raw mode.
        Pty,
        /// No transfer at all: what the harness itself costs.
        Null,
        /// No other process at all: one core copies block to block. The memory-copy limit other figures are held against.
        MemoryCopy,
    }
}

word_enum! {
    /// How the source hands bytes to the link.
    pub enum SendMethod {
        /// write(2): the kernel copies the block.
        Write,
        /// vmsplice(2): the kernel takes references to the pages of the block.
        Vmsplice,
        /// vmsplice(2) with SPLICE_F_GIFT.
        VmspliceGift,
        /// sendfile(2) from a memfd.
        Sendfile,
        /// splice(2) from a memfd.
        Splice,
        /// tee(2) from a filled pipe: the same pages over and over.
        Tee,
        /// io_uring write with registered buffers.
        IoUring,
        /// Produced where the sink will read it: shared memory only.
        InPlace,
        /// send(2) with MSG_ZEROCOPY: TCP only.
        Zerocopy,
    }
}

impl LinkKind {
    /// How bytes can be handed to this link. `write` stands for its plain way: send, msgsnd, a copy into the ring.
    pub fn senders(self) -> &'static [SendMethod] {
        use SendMethod::{InPlace, IoUring, Sendfile, Splice, Tee, Vmsplice, VmspliceGift, Write, Zerocopy};
        match self {
            LinkKind::Pipe | LinkKind::Fifo => &[Write, Vmsplice, VmspliceGift, Sendfile, Splice, Tee, IoUring],
            LinkKind::Socketpair | LinkKind::UnixStream => &[Write, Sendfile, IoUring],
            LinkKind::Tcp => &[Write, Sendfile, IoUring, Zerocopy],
            LinkKind::Shm => &[Write, InPlace],
            _ => &[Write],
        }
    }

    /// How bytes can be taken from this link. `read` stands for its plain way.
    pub fn receivers(self) -> &'static [RecvMethod] {
        use RecvMethod::{InPlace, IoUring, Read, Splice, Vmsplice};
        match self {
            LinkKind::Pipe | LinkKind::Fifo => &[Read, Splice, Vmsplice, IoUring],
            LinkKind::Socketpair | LinkKind::UnixStream | LinkKind::Tcp => &[Read, IoUring],
            LinkKind::Shm => &[Read, InPlace],
            _ => &[Read],
        }
    }

    /// Whether it is a pipe to the kernel, with a capacity.
    pub fn is_pipe(self) -> bool {
        matches!(self, LinkKind::Pipe | LinkKind::Fifo)
    }

    /// Whether its capacity can be chosen: that of a pipe, or of a ring.
    pub fn has_capacity(self) -> bool {
        self.is_pipe() || self == LinkKind::Shm
    }

    /// Whether it has socket buffers.
    pub fn is_socket(self) -> bool {
        use LinkKind::{Socketpair, Tcp, UnixDgram, UnixSeqpacket, UnixStream};
        matches!(self, Socketpair | UnixStream | UnixSeqpacket | UnixDgram | Tcp)
    }

    /// Whether bytes go from one process to another; the others are there to compare with.
    pub fn transfers(self) -> bool {
        !matches!(self, LinkKind::Null | LinkKind::MemoryCopy)
    }
}

impl SendMethod {
    /// Whether the kernel copies the bytes (true) or only moves references to pages (false).
    pub fn copies(self) -> bool {
        matches!(self, SendMethod::Write | SendMethod::IoUring)
    }

    /// Whether the source can write every byte anew. The others send what was prepared, again and again.
    pub fn sends_fresh_data(self) -> bool {
        !matches!(self, SendMethod::Sendfile | SendMethod::Splice | SendMethod::Tee)
    }
}

word_enum! {
    /// How the sink takes bytes from the link.
    pub enum RecvMethod {
        /// read(2): the kernel copies into the sink's buffer.
        Read,
        /// splice(2) to /dev/null: page references are dropped, no byte is touched.
        Splice,
        /// vmsplice(2) from the pipe to user memory: the kernel copies, as read does.
        Vmsplice,
        /// io_uring read with registered buffers.
        IoUring,
        /// Looked at where the source produced it: shared memory only.
        InPlace,
    }
}

impl RecvMethod {
    /// Whether the bytes end up in the sink's memory, where they can be checked.
    pub fn touches(self) -> bool {
        self != RecvMethod::Splice
    }
}

word_enum! {
    /// What an end does when the link is full or empty. Spinning and blocking trials are never ranked together:
    /// a spinning end costs a whole CPU.
    pub enum WaitPolicy {
        /// The call sleeps in the kernel.
        Block,
        /// Non-blocking calls, and poll(2) when they would block.
        Poll,
        /// Non-blocking calls, tried again at once.
        Spin,
    }
}

word_enum! {
    /// The pages that the ends' buffers are made of.
    pub enum PageKind {
        /// The system's base pages, 4 KiB on x86-64.
        Base,
        /// Transparent huge pages, 2 MiB on x86-64, asked for with MADV_HUGEPAGE.
        Huge,
    }
}

word_enum! {
    /// What a trial measures.
    #[derive(Default)]
    pub enum Mode {
        /// A stream one way: bytes per second.
        #[default]
        Throughput,
        /// A block there and a block back, over and over: time per round trip.
        Latency,
    }
}

word_enum! {
    /// What the bytes are.
    #[derive(Default)]
    pub enum Content {
        /// A pattern in which every byte can be told to be in its place.
        #[default]
        Pattern,
        /// Lines of lower-case words, 64 bytes long on average, for stages that work on text.
        Text,
    }
}

word_enum! {
    /// How much is proven about the bytes that arrived. What each level cannot see is in docs/method.md.
    pub enum Verify {
        /// Bytes are counted at both ends, the counts are recorded, a difference is not an error.
        None,
        /// Both ends' counts have to agree.
        Count,
        /// As `count`, and the XOR of all bytes has to be that of the repeating pattern 0..255.
        Xor,
        /// Every byte is written anew by the source and compared by the sink with what belongs at its position.
        Full,
    }
}

impl Verify {
    /// Whether the sink looks at each byte.
    pub fn looks(self) -> bool {
        matches!(self, Verify::Xor | Verify::Full)
    }
}
