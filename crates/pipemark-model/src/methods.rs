//! The enums of a trial's parameters, except the link: send and receive methods, wait policy, pages, mode, content,
//! verification.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{Better, Unit};
use crate::value::word_enum;

word_enum! {
    /// How the source hands bytes to the link.
    pub enum SendMethod {
        /// write(2): the kernel copies the block
        Write,
        /// vmsplice(2): the pipe refers to the block's pages, without a copy
        Vmsplice,
        /// vmsplice(2) with SPLICE_F_GIFT: the pages are given to the kernel
        VmspliceGift,
        /// sendfile(2) from a file in memory (memfd)
        Sendfile,
        /// splice(2) from a file in memory (memfd); to a socket, it goes through a pipe
        Splice,
        /// tee(2) from a full pipe: sends the same pages repeatedly
        Tee,
        /// io_uring writes from registered buffers
        IoUring,
        /// writes each byte directly where the sink reads it (shared memory)
        InPlace,
        /// send(2) with MSG_ZEROCOPY (TCP)
        Zerocopy,
    }
}

impl SendMethod {
    /// Whether the bytes are copied into the link.
    pub fn copies(self) -> bool {
        matches!(self, SendMethod::Write | SendMethod::IoUring)
    }

    /// Whether the source can write every byte anew. Other methods send the same bytes repeatedly.
    pub fn sends_fresh_data(self) -> bool {
        !matches!(self, SendMethod::Sendfile | SendMethod::Splice | SendMethod::Tee)
    }
}

word_enum! {
    /// How the sink receives bytes from the link.
    pub enum RecvMethod {
        /// read(2): the kernel copies into the sink's buffer
        Read,
        /// splice(2) to /dev/null: pages are discarded unread
        Splice,
        /// vmsplice(2) from the pipe to memory: the kernel copies, as with read
        Vmsplice,
        /// io_uring reads into registered buffers
        IoUring,
        /// reads each byte directly where the source wrote it (shared memory)
        InPlace,
    }
}

impl RecvMethod {
    /// Whether the bytes reach the sink's memory, where they can be verified.
    pub fn touches(self) -> bool {
        self != RecvMethod::Splice
    }

    /// Whether the bytes are copied out of the link.
    pub fn copies(self) -> bool {
        !matches!(self, RecvMethod::Splice | RecvMethod::InPlace)
    }
}

word_enum! {
    /// What source and sink do when the link is full or empty. Spinning and blocking trials are never ranked together,
    /// because spinning keeps a whole CPU busy.
    pub enum WaitPolicy {
        /// the call sleeps in the kernel
        Block,
        /// nonblocking calls; poll(2) waits
        Poll,
        /// nonblocking calls in a loop; keeps a whole CPU busy
        Spin,
    }
}

word_enum! {
    /// The kind of pages in the buffers of source and sink.
    pub enum PageKind {
        /// the system's default pages
        Base,
        /// transparent huge pages, requested with MADV_HUGEPAGE
        Huge,
    }
}

word_enum! {
    /// Whether the C library registers restartable sequences (rseq(2)) for source and sink.
    pub enum Rseq {
        /// The system's default.
        System,
        /// Not registered: each context switch is slightly cheaper.
        Off,
    }
}

word_enum! {
    /// What a trial measures.
    pub enum Mode {
        /// a one-way stream: bytes per second
        Throughput,
        /// a block sent and returned, repeatedly: time per round trip
        Latency,
    }
}

impl Mode {
    /// The unit of the mode's main figure, and whether higher or lower is better.
    pub fn figure(self) -> (Unit, Better) {
        match self {
            Mode::Throughput => (Unit::BytesPerSecond, Better::Higher),
            Mode::Latency => (Unit::Nanoseconds, Better::Lower),
        }
    }
}

word_enum! {
    /// The kind of bytes in the stream.
    pub enum Content {
        /// a pattern that shows whether each byte is at its position
        Pattern,
        /// lines of lower-case words, on average 64 bytes per line
        Text,
    }
}

word_enum! {
    /// How the bytes that arrive are checked. docs/method.md says what each level cannot detect.
    pub enum Verify {
        /// bytes are counted at both ends; a difference is not an error
        None,
        /// the counts of both ends must agree
        Count,
        /// like count, and the XOR of all bytes must be right
        Xor,
        /// every byte is newly written, and compared with the expected byte
        Full,
    }
}

impl Verify {
    /// Whether the sink reads each byte at this level.
    pub fn reads(self) -> bool {
        matches!(self, Verify::Xor | Verify::Full)
    }
}

/// Messages per second, each timed from when it is due. With `None`, each message is sent after the reply to the last
/// one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Rate(pub Option<u32>);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => rate.fmt(f),
            None => f.pad("closed"),
        }
    }
}
