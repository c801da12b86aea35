//! pipemark's own source and sink, and the link between them.

use crate::bad_value::{BadValue, refuse_if};
use crate::capacity::{Capacity, SocketBuffer};
use crate::job::Volume;
use crate::link::LinkKind;
use crate::methods::{Content, PageKind, RecvMethod, Rseq, SendMethod, Verify, WaitPolicy};
use crate::parameter::Settings;
use crate::place::Place;
use crate::units::{ByteSize, Delay};

macro_rules! ends {
    ($($(#[$doc:meta])+ $field:ident: $type:ty,)*) => {
        /// The source, the sink, the link between them, and the volume to move.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct Ends {
            $($(#[$doc])+ pub $field: $type,)*
            /// The requested size of socket buffers in bytes. `None` keeps the system's default. The granted size is in
            /// each sample.
            pub buffer: Option<ByteSize>,
            /// Bytes requested per call of the sink; `None` if equal to `block`.
            pub read_block: Option<ByteSize>,
            /// The volume that one run moves per pair.
            pub volume: Volume,
        }

        impl Ends {
            pub(super) fn new(settings: &Settings, volume: Volume) -> Result<Ends, BadValue> {
                let defaults = Settings::defaults();
                let mut ends = Ends {
                    $($field: settings.$field.or(defaults.$field).expect("each parameter of the ends has a default"),)*
                    buffer: settings.buffer.unwrap_or_default().0,
                    read_block: settings.read_block,
                    volume,
                };
                // A read block equal to the block is the default, so it is stored as `None`.
                ends.read_block = ends.read_block.filter(|size| *size != ends.block);
                ends.check()?;
                Ok(ends)
            }

            pub(super) fn settings(&self, others: Settings) -> Settings {
                Settings {
                    $($field: Some(self.$field),)*
                    buffer: self.buffer.map(|size| SocketBuffer(Some(size))),
                    read_block: self.read_block,
                    ..others
                }
            }
        }
    };
}

ends! {
    /// The mechanism between source and sink.
    link: LinkKind,
    /// The method by which the source sends.
    send: SendMethod,
    /// The method by which the sink receives.
    recv: RecvMethod,
    /// The method by which the ends wait.
    wait: WaitPolicy,
    /// The pages of the ends' buffers.
    pages: PageKind,
    /// The CPUs on which the ends may run.
    place: Place,
    /// The requested pipe capacity. The granted capacity is in each sample.
    capacity: Capacity,
    /// Bytes per call of the source.
    block: ByteSize,
    /// Offset of both ends' buffers from the start of a page, in bytes.
    align: u32,
    /// Number of pairs of source and sink that run in parallel.
    pairs: u32,
    /// Number of sources that write to one link.
    writers: u32,
    /// Number of sinks, each of which receives every block.
    readers: u32,
    /// The kind of bytes in the stream.
    content: Content,
    /// Mean busy time after each call of the sink.
    read_delay: Delay,
    /// Mean busy time before each call of the source.
    write_delay: Delay,
    /// The level of verification.
    verify: Verify,
    /// Whether the C library registers restartable sequences for the ends.
    rseq: Rseq,
}

/// The work done on each byte between source and sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work {
    /// Number of copies that the methods make: 2 with write(2) and read(2), 0 if only page references move. If the link
    /// copies anyway, as TCP on loopback does, the trial gets a warning.
    pub copies: u8,
    /// Whether the source writes the byte before sending it.
    pub written: bool,
    /// Whether the sink reads the byte.
    pub read: bool,
}

impl Ends {
    /// Bytes requested per call of the sink.
    pub fn read_block(&self) -> ByteSize {
        self.read_block.unwrap_or(self.block)
    }

    /// The name of the mechanism in tables and findings: the link, followed by methods other than write and read.
    /// Examples: `pipe`, `pipe vmsplice splice`, `shm in-place`.
    pub fn mechanism(&self) -> String {
        let mut words = vec![self.link.to_string()];
        if self.send != SendMethod::Write {
            words.push(self.send.to_string());
        }
        if self.recv != RecvMethod::Read && self.recv.to_string() != self.send.to_string() {
            words.push(self.recv.to_string());
        }
        words.join(" ")
    }

    /// Whether the sink reads the bytes. Moving a reference to a page doesn't read the page; receiving in place reads
    /// each byte.
    pub fn touched(&self) -> bool {
        self.recv.touches() && (self.verify.reads() || self.writers > 1 || self.readers > 1)
            || self.recv == RecvMethod::InPlace
    }

    /// Whether the source writes each byte anew before sending it. When sending in place, it always does.
    pub fn fresh(&self) -> bool {
        let fresh = self.verify == Verify::Full || self.writers > 1 || self.readers > 1;
        fresh && self.send.sends_fresh_data() || self.send == SendMethod::InPlace
    }

    /// The work done on each byte. Only jobs with equal work are comparable.
    pub fn work(&self) -> Work {
        let copies = match self.link {
            link if link.is_null() => 0,
            // process_vm_readv copies once, directly from the source's memory. A memory copy runs in one process.
            LinkKind::ProcessVm | LinkKind::MemoryCopy => 1,
            _ => u8::from(self.send.copies()) + u8::from(self.recv.copies()),
        };
        Work { copies, written: self.fresh(), read: self.touched() }
    }

    /// Refuses contradictory parameters, except contradictions that depend on the kind of job.
    fn check(&self) -> Result<(), BadValue> {
        let Ends { link, send, recv, verify, block, capacity, .. } = self;
        let reads = verify.reads();
        let all = |methods: Vec<&'static str>| methods.join(", ");
        if let Volume::Total(total) = self.volume {
            let words = "is larger than the total of";
            refuse_if!(block > &total, "block size {block} {words} {total}; raise --total or lower --block");
        }
        let senders = link.senders();
        let use_these = all(senders.iter().map(|method| method.name()).collect());
        refuse_if!(!senders.contains(send), "--send {send} does not work with --link {link}; use {use_these}");
        let receivers = link.receivers();
        let use_these = all(receivers.iter().map(|method| method.name()).collect());
        refuse_if!(!receivers.contains(recv), "--recv {recv} does not work with --link {link}; use {use_these}");
        refuse_if!(
            *capacity != Capacity::DEFAULT && !link.has_capacity(),
            "--capacity {capacity} is for pipes and rings, and --link {link} is neither; omit --capacity, or use --buffer for sockets"
        );
        let plain = (*link, *send, *recv, self.wait)
            == (LinkKind::Pipe, SendMethod::Write, RecvMethod::Read, WaitPolicy::Block);
        refuse_if!(
            self.writers > 1 && link.outside().is_none() && !(plain && self.pairs == 1 && !reads),
            "--writers {} needs a plain pipe, in which each byte identifies its writer; use --link pipe --send write --recv read --wait \
             block --pairs 1 --verify count",
            self.writers
        );
        refuse_if!(
            self.readers > 1 && (link.outside().is_none() || self.writers > 1),
            "--readers {} needs a link by other programs, such as zeromq, and one writer",
            self.readers
        );
        if link.outside().is_some() {
            let defaults = Settings::defaults();
            refuse_if!(
                (
                    Some(self.pairs),
                    Some(self.pages),
                    Some(self.align),
                    Some(self.rseq),
                    self.read_block,
                    Some(self.content)
                ) != (defaults.pairs, defaults.pages, defaults.align, defaults.rseq, None, defaults.content)
                    || self.read_delay != Delay::default()
                    || self.write_delay != Delay::default(),
                "--link {link} is made of other programs; omit --pairs, --pages, --align, --rseq, --read-block, --content and delays"
            );
            refuse_if!(*verify == Verify::Xor, "--verify xor is for pipemark's own links; use full or count");
            refuse_if!(
                matches!(self.volume, Volume::Total(_)),
                "--link {link} is measured for a fixed time; use --time in place of --total or --blocks"
            );
        }
        if let Some(size) = self.buffer {
            refuse_if!(
                !link.is_socket(),
                "--buffer {size} is for sockets, and --link {link} is not one; omit --buffer"
            );
        }
        refuse_if!(
            reads && !link.transfers() && link.outside().is_none(),
            "--link {link} moves no bytes that --verify {verify} could check; use --verify count"
        );
        refuse_if!(
            reads && self.content == Content::Text,
            "--verify {verify} is for the pattern, not for text; use --content pattern or --verify count"
        );
        refuse_if!(
            self.content == Content::Text && (*send == SendMethod::InPlace || *recv == RecvMethod::InPlace),
            "--send in-place and --recv in-place need the pattern; use --content pattern"
        );
        refuse_if!(
            reads && !recv.touches(),
            "--recv {recv} never reads the bytes, so --verify {verify} is impossible; use --verify count or another --recv"
        );
        refuse_if!(
            *send == SendMethod::Tee && *verify == Verify::Full,
            "--send tee sends the same page over and over, so --verify full is impossible; use --verify xor or another --send"
        );
        Ok(())
    }
}
