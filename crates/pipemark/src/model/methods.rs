//! The choices a trial is made of besides its link: sender, receiver, wait policy, page kind and how much is proven.

use super::value::word_enum;

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
