//! The table of parameters: name, help, choices, default, and the kinds of job that have the parameter.
//!
//! Flags, help, suites, `--baseline`, table columns, CSV, JSON, its schema and completions are generated from the
//! table. To add a parameter, add a row here, a field in each kind of [`Job`](super::Job) that has it, and the code
//! that uses it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bad_value::BadValue;
use crate::capacity::{Capacity, SocketBuffer};
use crate::entrant::{Language, Program};
use crate::filter::{Feed, Filter};
use crate::kind::JobKind;
use crate::link::LinkKind;
use crate::methods::{Content, Mode, PageKind, Rate, RecvMethod, Rseq, SendMethod, Verify, WaitPolicy};
use crate::named;
use crate::place::Place;
use crate::stage::Stages;
use crate::units::{ByteSize, Delay, Nanos, Unit};
use crate::value::{Choice, Choices, bounded, whole, word};

/// The largest block, 1 GiB. One call moves at most 2 GiB, and each end allocates a buffer of the block's size.
pub const MAX_BLOCK: ByteSize = ByteSize(1 << 30);
/// The largest number of pairs that run in parallel.
pub const MAX_PAIRS: u32 = 256;
/// The largest number of writers on one pipe, and of readers of one link.
pub const MAX_WRITERS: u32 = 8;
/// The largest number of stages in a chain.
pub const MAX_LENGTH: u32 = 4096;

/// Default duration of a run.
pub const DEFAULT_TIME: Nanos = Nanos(250_000_000);

/// Kinds of job with pipemark's own source and sink.
const ENDS: &[JobKind] = &[JobKind::Stream, JobKind::RoundTrip, JobKind::Chain];
/// Plain streams only.
const STREAMS: &[JobKind] = &[JobKind::Stream];
/// Kinds of job that have a mode.
const MODES: &[JobKind] = &[JobKind::Stream, JobKind::RoundTrip, JobKind::Chain, JobKind::Lines];
/// Kinds of job that can send at a fixed rate.
const PACED: &[JobKind] = &[JobKind::RoundTrip, JobKind::Lines];
/// Round trips only.
const TRIPS: &[JobKind] = &[JobKind::RoundTrip];
/// Chains only.
const CHAINED: &[JobKind] = &[JobKind::Chain];
/// Chains, and programs that run a chain themselves.
const LENGTHS: &[JobKind] = &[JobKind::Chain, JobKind::Entrant];
/// Kinds of job with a block size: `ENDS` and entrants.
const BLOCKS: &[JobKind] = &[JobKind::Stream, JobKind::RoundTrip, JobKind::Chain, JobKind::Entrant];
/// All kinds of job.
const ALL: &[JobKind] = &[JobKind::Stream, JobKind::RoundTrip, JobKind::Chain, JobKind::Entrant, JobKind::Lines];

macro_rules! parameters {
    ($(
        $(#[doc = $help:literal])+ $(#[serde($serde:ident)])?
        $key:ident $field:ident: $type:ty [$name:literal, $unit:ident, $kinds:ident] = $default:expr, $read:expr;
    )*) => {
        /// The name of one parameter: the same word on the command line (`--read-block`), in suites
        /// (`read-block = "1k"`), in `--baseline read-block=1k` and in table headings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum Key {
            $($(#[doc = $help])+ $key,)*
        }

        named!(Key: $($key)*);

        /// One parameter with one value.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Value {
            $($(#[doc = $help])+ $key($type),)*
        }

        /// Values of some of the parameters, as given by flags, a suite or a document. Contradictory values are refused
        /// only when a job is made from them.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Settings {
            $(
                $(#[doc = $help])+
                $(#[serde($serde)])?
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl Key {
            /// The help text: a one-line summary, then the lines of a longer description.
            pub fn help(self) -> &'static [&'static str] {
                match self { $(Key::$key => &[$($help),+],)* }
            }

            /// The placeholder for a value in help: `SIZE`, `TIME`.
            pub fn value_name(self) -> &'static str {
                match self { $(Key::$key => $name,)* }
            }

            /// The unit of the parameter's values.
            pub fn unit(self) -> Unit {
                match self { $(Key::$key => Unit::$unit,)* }
            }

            /// The choices that the parameter accepts, each with its meaning. The parameter may accept other values
            /// too.
            pub fn choices(self) -> Vec<Choice> {
                match self { $(Key::$key => <$type as Choices>::choices(),)* }
            }

            /// The kinds of job that have the parameter.
            pub fn kinds(self) -> &'static [JobKind] {
                match self { $(Key::$key => $kinds,)* }
            }

            /// The default value; `None` if there is no default or the default depends on another parameter.
            pub fn default_value(self) -> Option<Value> {
                match self { $(Key::$key => { let default: Option<$type> = $default; default.map(Value::$key) })* }
            }

            /// The name of the JSON field. With the unit appended, it is the name of the CSV column.
            pub fn field(self) -> &'static str {
                match self { $(Key::$key => stringify!($field),)* }
            }
        }

        impl Value {
            /// Parses a value of the parameter `key`.
            ///
            /// # Errors
            /// If the text isn't a value of this parameter. The message lists the valid values.
            pub fn parse(key: Key, text: &str) -> Result<Value, BadValue> {
                let text = text.trim();
                match key {
                    $(Key::$key => {
                        let read: fn(&str) -> Result<$type, BadValue> = $read;
                        read(text).map(Value::$key)
                    })*
                }
            }

            /// The parameter that the value belongs to.
            pub fn key(&self) -> Key {
                match self { $(Value::$key(_) => Key::$key,)* }
            }

            /// The value in JSON.
            pub fn json(&self) -> serde_json::Value {
                match self { $(Value::$key(value) => serde_json::to_value(value).unwrap_or_default(),)* }
            }
        }

        impl fmt::Display for Value {
            /// Formats the value for people. Large sizes may be rounded: see [`Value::exact`].
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Value::$key(value) => value.fmt(f),)* }
            }
        }

        impl Settings {
            /// The defaults of all parameters.
            pub(super) fn defaults() -> Settings {
                Settings { $($field: $default,)* }
            }

            /// The value of a parameter; `None` if unset.
            pub fn get(&self, key: Key) -> Option<Value> {
                match key { $(Key::$key => self.$field.clone().map(Value::$key),)* }
            }

            /// Sets a parameter.
            pub fn set(&mut self, value: Value) {
                match value { $(Value::$key(value) => self.$field = Some(value),)* }
            }
        }
    };
}

parameters! {
    /// throughput: a one-way stream; latency: round trips of one block
    Mode mode: Mode ["WHAT", Word, MODES] = Some(Mode::Throughput), |text| word("mode", text);
    /// Mechanism between writer and reader
    Link link: LinkKind ["LINK", Word, ENDS] = Some(LinkKind::Pipe), |text| text.parse();
    /// How the writer sends
    ///
    /// write works with every link, in-place with shm, and zerocopy with tcp. sendfile, splice and io-uring work with
    /// pipes and stream sockets. The other methods work with pipes only.
    Send send: SendMethod ["HOW", Word, ENDS] = Some(SendMethod::Write), |text| word("send method", text);
    /// How the reader receives
    ///
    /// splice moves the pages to /dev/null unread. It shows the rate at which a pipe can pass on pages, not the rate at
    /// which a reader can use bytes.
    Recv recv: RecvMethod ["HOW", Word, ENDS] = Some(RecvMethod::Read), |text| word("receive method", text);
    /// How writer and reader wait
    ///
    /// spin keeps a whole CPU busy, so spinning and blocking trials are never ranked together.
    Wait wait: WaitPolicy ["HOW", Word, ENDS] = Some(WaitPolicy::Block), |text| word("wait policy", text);
    /// Page size of the buffers
    Pages pages: PageKind ["KIND", Word, ENDS] = Some(PageKind::Base), |text| word("page kind", text);
    /// CPUs: free, same, cross, or WRITER:READER such as 0:1
    ///
    /// bw and latency also accept all: every pair of CPUs in both directions, shown as a map.
    Place place: Place ["CPUS", Word, ALL] = Some(Place::Cross), |text| text.parse();
    /// Pipe capacity: default, quota, or a size
    ///
    /// quota is the size once a user is over the per-user limit (/proc/sys/fs/pipe-user-pages-soft): 8 KiB on current
    /// kernels.
    Capacity capacity: Capacity ["SIZE", Bytes, ENDS] = Some(Capacity::DEFAULT), |text| text.parse();
    /// Socket send and receive buffers: default, or a size
    Buffer buffer: SocketBuffer ["SIZE", Bytes, ENDS] = Some(SocketBuffer(None)), |text| match text {
        "default" => Ok(SocketBuffer(None)),
        _ => bounded("socket buffer", text, ByteSize(1), MAX_BLOCK).map(|size| SocketBuffer(Some(size))),
    };
    /// Bytes per call of the writer
    Block block: ByteSize ["SIZE", Bytes, BLOCKS] = Some(ByteSize(64 << 10)),
        |text| bounded("block size", text, ByteSize(1), MAX_BLOCK);
    /// Bytes per call of the reader
    ReadBlock read_block: ByteSize ["SIZE", Bytes, ENDS] = None,
        |text| bounded("read block size", text, ByteSize(1), MAX_BLOCK);
    /// Offset of the buffers from a page boundary, in bytes
    Align align: u32 ["BYTES", Bytes, ENDS] = Some(0), |text| {
        bounded("alignment offset", text, ByteSize(0), ByteSize(4095)).map(|offset| offset.0 as u32)
    };
    /// Number of writer and reader pairs that run at once
    Pairs pairs: u32 ["N", Count, ENDS] = Some(1), |text| whole("number of pairs", text, 1, MAX_PAIRS);
    /// Number of writers on one pipe; split records are counted
    Writers writers: u32 ["N", Count, STREAMS] = Some(1), |text| whole("number of writers", text, 1, MAX_WRITERS);
    /// Number of readers, each of which receives every block (links by other programs)
    Readers readers: u32 ["N", Count, STREAMS] = Some(1), |text| whole("number of readers", text, 1, MAX_WRITERS);
    /// Command of each stage, with its arguments; 'relay' means pipemark's own relay
    ///
    /// 'a | b' alternates a and b. No shell is used; write sh -c '…' for shell syntax.
    Stage stage: Stages ["COMMAND", Word, CHAINED] = Some(Stages::default()), |text| text.parse();
    /// Number of stages between source and sink
    Length length: u32 ["N", Count, LENGTHS] = Some(0), |text| whole("length of the chain", text, 0, MAX_LENGTH);
    /// Command that writes {total} bytes, in place of pipemark's own source and sink
    ///
    /// The last stage (with --length 0, the command itself) then writes to /dev/null, and real time is that of the same
    /// pipeline in a shell. No byte is checked.
    Source source: Stages ["COMMAND", Word, CHAINED] = None, |text| text.parse();
    /// Content of the stream: pattern, or text for stages that work on lines
    Content content: Content ["WHAT", Word, ENDS] = Some(Content::Pattern), |text| word("kind of content", text);
    /// Expected exit code of every stage, such as 1 for a grep without a match
    Exit exit: u8 ["CODE", Count, CHAINED] = Some(0), |text| whole("exit code", text, 0, 255);
    /// Busy time of the reader after each call, in microseconds by default: random, 0.5 to 1.5 times the value
    ReadDelay read_delay: Delay ["DELAY", Nanoseconds, ENDS] = Some(Delay(Nanos(0))),
        |text| bounded("read delay", text, Delay(Nanos(0)), Delay(Nanos(10_000_000_000)));
    /// Busy time of the writer before each call, in microseconds by default: random, 0.5 to 1.5 times the value
    WriteDelay write_delay: Delay ["DELAY", Nanoseconds, ENDS] = Some(Delay(Nanos(0))),
        |text| bounded("write delay", text, Delay(Nanos(0)), Delay(Nanos(10_000_000_000)));
    /// Messages per second, each timed from when it is due; closed: send each message after the reply to the previous
    /// one
    Rate rate: Rate ["N", Count, PACED] = Some(Rate(None)), |text| match text {
        "closed" => Ok(Rate(None)),
        _ => whole("rate", text, 1, 10_000_000).map(|rate| Rate(Some(rate))),
    };
    /// Pause between messages, such as 0,100us,1ms
    ///
    /// Without a pause, both ends stay awake; after a pause, a round trip can take several times as long.
    Gap gap: Nanos ["TIME", Nanoseconds, TRIPS] = Some(Nanos(0)),
        |text| bounded("gap", text, Nanos(0), Nanos(10_000_000_000));
    /// How to check the bytes
    ///
    /// none: no check; for stages of a chain that change the bytes or their number. count: the number of bytes. xor:
    /// their number and XOR. full: the source generates each byte, and the sink compares it. xor and full need a --recv
    /// that reads the bytes; latency has no xor.
    Verify verify: Verify ["LEVEL", Word, BLOCKS] = Some(Verify::Count), |text| word("verification level", text);
    /// Restartable sequences (rseq) of writer and reader: system (the system's default) or off
    ///
    /// The C library registers rseq for each thread; off makes each context switch slightly cheaper.
    Rseq rseq: Rseq ["WHAT", Word, ENDS] = Some(Rseq::System), |text| word("choice of restartable sequences", text);
    /// Bytes per run and pair
    #[serde(skip)]
    Total total: ByteSize ["SIZE", Bytes, ALL] = None, |text| bounded("total", text, ByteSize(1), ByteSize(1 << 50));
    /// Blocks per run and pair, in place of --total
    #[serde(skip)]
    Blocks blocks: u32 ["N", Count, ENDS] = None, |text| whole("number of blocks", text, 1, u32::MAX);
    /// Time per run, such as 200ms
    #[serde(skip)]
    Time time: Nanos ["TIME", Nanoseconds, ALL] = None,
        |text| bounded("time per run", text, Nanos(1_000_000), Nanos(3_600_000_000_000));
    /// The language of the program (entrant) that streams the bytes
    Language language: Language ["NAME", Word, ENTRANTS] = None, |text| text.parse();
    /// Which of the language's programs to run
    Program program: Program ["NAME", Word, ENTRANTS] = None, |text| word("program of an entrant", text);
    /// Where the lines come from
    Feed feed: Feed ["NAME", Word, LINES] = None, |text| word("feed of lines", text);
    /// The program that transforms the lines
    Filter filter: Filter ["NAME", Word, LINES] = None, |text| text.parse();
}

/// Entrants only.
const ENTRANTS: &[JobKind] = &[JobKind::Entrant];
/// Line filters only.
const LINES: &[JobKind] = &[JobKind::Lines];

impl Key {
    /// Finds the parameter called `text`.
    ///
    /// # Errors
    /// If there is no such parameter. The message lists all parameters.
    pub fn named(text: &str) -> Result<Key, BadValue> {
        word("parameter", text)
    }

    /// Whether the parameter sets the volume of a run.
    pub fn is_volume(self) -> bool {
        matches!(self, Key::Total | Key::Blocks | Key::Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: Key, text: &str) -> Value {
        Value::parse(key, text).unwrap_or_else(|error| panic!("{key}={text}: {error}"))
    }

    #[test]
    fn every_value_reads_back_as_it_is_shown() {
        for (key, text) in [
            (Key::Send, "vmsplice-gift"),
            (Key::Recv, "io-uring"),
            (Key::Place, "0:1"),
            (Key::Capacity, "1 MiB"),
            (Key::Capacity, "quota"),
            (Key::Buffer, "default"),
            (Key::Rate, "closed"),
            (Key::Block, "256 B"),
            (Key::ReadBlock, "1 KiB"),
            (Key::ReadDelay, "500 µs"),
            (Key::Total, "1 GiB"),
            (Key::Time, "100 ms"),
            (Key::Pairs, "4"),
            (Key::Writers, "4"),
            (Key::Readers, "4"),
        ] {
            assert_eq!(value(key, text).to_string(), text);
            assert_eq!(value(key, text).exact(), text);
        }
    }

    #[test]
    fn exact_values_do_not_round() {
        for (key, one, other) in [
            (Key::Total, "1664000000", "1664000001"),
            (Key::Time, "100000001ns", "100ms"),
            (Key::Capacity, "1000001", "1000002"),
            (Key::Buffer, "1000001", "1000002"),
            (Key::ReadBlock, "1000001", "1000002"),
            (Key::ReadDelay, "1000001ns", "1000002ns"),
        ] {
            let (one, other) = (value(key, one), value(key, other));
            assert_ne!(one.exact(), other.exact(), "{key}");
            assert_eq!(value(key, &one.exact()), one, "{key}");
        }
    }

    #[test]
    fn errors_name_the_valid_values() {
        for (key, text, word) in [
            (Key::Block, "0", "out of range"),
            (Key::Block, "2g", "1 GiB"),
            (Key::Send, "wriite", "vmsplice"),
            (Key::Place, "0:9999", "placement"),
            (Key::Place, "0:-1", "placement"),
            (Key::Pairs, "0", "256"),
            (Key::Writers, "9", "8"),
            (Key::Readers, "9", "8"),
            (Key::Pairs, "x", "whole number"),
            (Key::Pairs, "-1", "whole number"),
            (Key::Exit, "300", "whole number"),
            (Key::Time, "0s", "out of range"),
            (Key::Capacity, "0", "out of range"),
        ] {
            let error = Value::parse(key, text).unwrap_err().to_string();
            assert!(error.contains(word), "{key}={text}: {error}");
        }
    }

    #[test]
    fn every_listed_choice_is_accepted() {
        for key in Key::iter() {
            for (word, about) in key.choices() {
                assert!(about.len() > 4, "{key}={word} has no meaning");
                assert_eq!(value(key, word).to_string(), word, "{key}");
            }
            assert!(key.help()[0].len() > 4 && !key.kinds().is_empty(), "{key}");
        }
        let has = |key: Key, word: &str| key.choices().iter().any(|(own, _)| *own == word);
        assert!(has(Key::Send, "vmsplice") && has(Key::Capacity, "quota"));
    }
}
