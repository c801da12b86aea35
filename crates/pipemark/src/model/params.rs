//! Everything that specifies a trial, each parameter under one key that flags, suites, output and stored records share.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoEnumIterator, IntoStaticStr};

use super::capacity::Capacity;
use super::entrant::{Language, Program};
use super::filter::{Feed, Filter};
use super::methods::{Content, LinkKind, Mode, PageKind, RecvMethod, SendMethod, Verify, WaitPolicy};
use super::place::Place;
use super::stage::Stages;
use super::units::{ByteSize, Delay, Nanos};
use super::value::{BadValue, bounded, word};

/// How much one run moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Volume {
    /// At least this many bytes per pair.
    Total(ByteSize),
    /// As much as arrives in this time.
    Time(Nanos),
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Volume::Total(size) => size.fmt(f),
            Volume::Time(time) => time.fmt(f),
        }
    }
}

/// The name of one parameter: the same word on the command line (`--read-block`), in suites (`read-block = "1k"`),
/// in `--baseline read-block=1k` and in table headings.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    EnumIter,
    EnumString,
    Display,
    IntoStaticStr,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Key {
    Mode,
    Link,
    Send,
    Recv,
    Wait,
    Pages,
    Place,
    Capacity,
    Buffer,
    Block,
    ReadBlock,
    Align,
    Pairs,
    Stage,
    Length,
    Content,
    Exit,
    ReadDelay,
    WriteDelay,
    Rate,
    Gap,
    Verify,
    Total,
    Time,
    Language,
    Program,
    Feed,
    Filter,
}

impl Key {
    /// The key called `text`.
    ///
    /// # Errors
    /// When there is none; the error lists all.
    pub fn named(text: &str) -> Result<Key, BadValue> {
        word("parameter", text)
    }
}

/// One fully specified experiment: what the ends do, where, with how much.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Params {
    /// What is measured.
    #[serde(default)]
    pub mode: Mode,
    /// The mechanism between source and sink.
    pub link: LinkKind,
    /// How the source sends.
    pub send: SendMethod,
    /// How the sink receives.
    pub recv: RecvMethod,
    /// What the ends do when they have to wait.
    pub wait: WaitPolicy,
    /// What the ends' buffers are made of.
    pub pages: PageKind,
    /// Which CPUs the ends may run on.
    pub place: Place,
    /// The pipe capacity asked for; what was granted is in each sample.
    pub capacity: Capacity,
    /// SO_SNDBUF and SO_RCVBUF asked for, where the link has them; `None` leaves the system's. What was granted is in each
    /// sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<ByteSize>,
    /// Bytes per call of the source.
    pub block: ByteSize,
    /// Bytes asked for per call of the sink; `None` means the same as `block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_block: Option<ByteSize>,
    /// Offset of both ends' buffers from the start of a page, in bytes.
    pub align: u32,
    /// How many pairs of source and sink run at once.
    pub pairs: u32,
    /// What passes the bytes on between source and sink, over and over until the chain is `length` long.
    #[serde(default)]
    pub stage: Stages,
    /// How many stages there are between source and sink.
    #[serde(default)]
    pub length: u32,
    /// What the bytes are.
    #[serde(default)]
    pub content: Content,
    /// The exit code that every stage has to end with, which is the proof of its result: 1 is grep's for no match.
    #[serde(default)]
    pub exit: u8,
    /// Mean busy work after each call of the sink, in nanoseconds.
    pub read_delay: Delay,
    /// Mean busy work before each call of the source, in nanoseconds.
    pub write_delay: Delay,
    /// Messages per second in latency mode, each timed from when it was due; `None` sends the next when the last is back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Pause between messages in latency mode, in nanoseconds.
    #[serde(default)]
    pub gap: Nanos,
    /// How much is proven about the bytes.
    pub verify: Verify,
    /// How much one run moves.
    pub volume: Volume,
    /// The language whose entrant streams the bytes; `None` for pipemark's own ends. Set together with `program`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Which of the entrant's programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Where lines come from, where a trial is of a filter of lines; set together with `filter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<Feed>,
    /// What transforms them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
}

impl Default for Params {
    /// A plain pipe: 64 KiB blocks by write and read, default capacity, two CPUs, a quarter of a second per run.
    fn default() -> Self {
        Params {
            mode: Mode::Throughput,
            link: LinkKind::Pipe,
            send: SendMethod::Write,
            recv: RecvMethod::Read,
            wait: WaitPolicy::Block,
            pages: PageKind::Base,
            place: Place::Cross,
            capacity: Capacity::DEFAULT,
            buffer: None,
            block: ByteSize(64 << 10),
            read_block: None,
            align: 0,
            pairs: 1,
            stage: Stages::default(),
            length: 0,
            content: Content::Pattern,
            exit: 0,
            read_delay: Delay::default(),
            write_delay: Delay::default(),
            rate: None,
            gap: Nanos(0),
            verify: Verify::Count,
            volume: Volume::Time(Nanos(250_000_000)),
            language: None,
            program: None,
            feed: None,
            filter: None,
        }
    }
}

/// The largest block: one call moves at most 2 GiB, and a buffer of that size at each end is the most a run may take.
pub const MAX_BLOCK: ByteSize = ByteSize(1 << 30);
/// The largest number of pairs that run at once.
pub const MAX_PAIRS: u32 = 256;
/// The longest chain.
pub const MAX_LENGTH: u32 = 4096;

/// A size in the largest unit that loses nothing, so that it reads back as the same number of bytes.
fn exact_size(size: ByteSize) -> String {
    let shown = size.to_string();
    if shown.parse() == Ok(size) { shown } else { format!("{} B", size.0) }
}

/// As [`exact_size`], for times.
fn exact_time(time: Nanos) -> String {
    let shown = time.to_string();
    if shown.parse() == Ok(time) { shown } else { format!("{} ns", time.0) }
}

impl Params {
    /// Sets the parameter called `key` from text.
    ///
    /// # Errors
    /// When the text is no value of this parameter; the sentence names what is.
    pub fn set(&mut self, key: Key, text: &str) -> Result<(), BadValue> {
        let text = text.trim();
        match key {
            Key::Mode => self.mode = word("mode", text)?,
            Key::Link => self.link = word("link", text)?,
            Key::Send => self.send = word("send method", text)?,
            Key::Recv => self.recv = word("receive method", text)?,
            Key::Wait => self.wait = word("wait policy", text)?,
            Key::Pages => self.pages = word("page kind", text)?,
            Key::Place => self.place = text.parse()?,
            Key::Capacity => self.capacity = text.parse()?,
            Key::Buffer => {
                self.buffer = match text {
                    "default" => None,
                    _ => Some(bounded("socket buffer", text, ByteSize(1), MAX_BLOCK)?),
                }
            }
            Key::Rate => {
                self.rate = match text {
                    "closed" => None,
                    _ => Some(bounded("rate", text, 1, 10_000_000)?),
                }
            }
            Key::Gap => self.gap = bounded("gap", text, Nanos(0), Nanos(10_000_000_000))?,
            Key::Block => self.block = bounded("block size", text, ByteSize(1), MAX_BLOCK)?,
            Key::ReadBlock => self.read_block = Some(bounded("read block size", text, ByteSize(1), MAX_BLOCK)?),
            Key::Align => {
                let offset = bounded("alignment offset", text, ByteSize(0), ByteSize(4095))?;
                self.align = u32::try_from(offset.0).expect("bounded above");
            }
            Key::Pairs => self.pairs = bounded("number of pairs", text, 1, MAX_PAIRS)?,
            Key::Stage => self.stage = text.parse()?,
            Key::Length => self.length = bounded("length of the chain", text, 0, MAX_LENGTH)?,
            Key::Content => self.content = word("kind of content", text)?,
            Key::Exit => self.exit = bounded("exit code", text, 0, 255)?,
            Key::ReadDelay => {
                self.read_delay = bounded("read delay", text, Delay(Nanos(0)), Delay(Nanos(10_000_000_000)))?
            }
            Key::WriteDelay => {
                self.write_delay = bounded("write delay", text, Delay(Nanos(0)), Delay(Nanos(10_000_000_000)))?
            }
            Key::Verify => self.verify = word("verification level", text)?,
            Key::Total => self.volume = Volume::Total(bounded("total", text, ByteSize(1), ByteSize(1 << 50))?),
            Key::Time => {
                self.volume = Volume::Time(bounded("time per run", text, Nanos(1_000_000), Nanos(3_600_000_000_000))?)
            }
            Key::Language => self.language = Some(text.parse()?),
            Key::Program => self.program = Some(word("program of an entrant", text)?),
            Key::Feed => self.feed = Some(word("feed of lines", text)?),
            Key::Filter => self.filter = Some(text.parse()?),
        }
        Ok(())
    }

    /// The parameter called `key` as people read it; empty where it does not apply (`total` of a trial with a time).
    pub fn get(&self, key: Key) -> String {
        match key {
            Key::Mode => self.mode.to_string(),
            Key::Link => self.link.to_string(),
            Key::Send => self.send.to_string(),
            Key::Recv => self.recv.to_string(),
            Key::Wait => self.wait.to_string(),
            Key::Pages => self.pages.to_string(),
            Key::Place => self.place.to_string(),
            Key::Capacity => self.capacity.to_string(),
            Key::Buffer => self.buffer.map_or_else(|| "default".to_owned(), |size| size.to_string()),
            Key::Rate => self.rate.map_or_else(|| "closed".to_owned(), |rate| rate.to_string()),
            Key::Gap => self.gap.to_string(),
            Key::Block => self.block.to_string(),
            Key::ReadBlock => self.read_block().to_string(),
            Key::Align => self.align.to_string(),
            Key::Pairs => self.pairs.to_string(),
            Key::Stage => self.stage.to_string(),
            Key::Length => self.length.to_string(),
            Key::Content => self.content.to_string(),
            Key::Exit => self.exit.to_string(),
            Key::ReadDelay => self.read_delay.to_string(),
            Key::WriteDelay => self.write_delay.to_string(),
            Key::Verify => self.verify.to_string(),
            Key::Total => match self.volume {
                Volume::Total(size) => size.to_string(),
                Volume::Time(_) => String::new(),
            },
            Key::Time => match self.volume {
                Volume::Time(time) => time.to_string(),
                Volume::Total(_) => String::new(),
            },
            Key::Language => self.language.as_ref().map_or_else(String::new, Language::to_string),
            Key::Program => self.program.map_or_else(String::new, |program| program.to_string()),
            Key::Feed => self.feed.map_or_else(String::new, |feed| feed.to_string()),
            Key::Filter => self.filter.as_ref().map_or_else(String::new, Filter::to_string),
        }
    }

    /// The parameter called `key` as text that [`set`](Params::set) reads back as exactly this value, where [`get`](Params::get)
    /// may round; empty where it does not apply.
    pub fn exact(&self, key: Key) -> String {
        match (key, self.volume) {
            (Key::Capacity, _) => match self.capacity {
                Capacity::Named(name) => name.to_string(),
                Capacity::Bytes(size) => exact_size(size),
            },
            (Key::Buffer, _) => self.buffer.map_or_else(|| "default".to_owned(), exact_size),
            (Key::Gap, _) => exact_time(self.gap),
            (Key::Block, _) => exact_size(self.block),
            (Key::ReadBlock, _) => exact_size(self.read_block()),
            (Key::ReadDelay, _) => exact_time(self.read_delay.0),
            (Key::WriteDelay, _) => exact_time(self.write_delay.0),
            (Key::Total, Volume::Total(size)) => exact_size(size),
            (Key::Time, Volume::Time(time)) => exact_time(time),
            _ => self.get(key),
        }
    }

    /// Bytes asked for per call of the sink.
    pub fn read_block(&self) -> ByteSize {
        self.read_block.unwrap_or(self.block)
    }

    /// The link, and how bytes go in and out where that is not its plain way: `pipe`, `pipe vmsplice splice`,
    /// `shm in-place`. Tables and findings name a mechanism so.
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

    /// Whether the sink looks at the bytes: moving a page reference is not reading a page.
    pub fn touched(&self) -> bool {
        self.recv.touches() && matches!(self.verify, Verify::Xor | Verify::Full)
    }

    /// Whether there are stages between source and sink.
    pub fn chained(&self) -> bool {
        self.length > 0
    }

    /// Whether each byte is written anew before it is sent.
    pub fn fresh(&self) -> bool {
        self.verify == Verify::Full && self.send.sends_fresh_data()
    }

    /// The entrant that streams the bytes, if one does.
    pub fn entrant(&self) -> Option<(&Language, Program)> {
        self.language.as_ref().zip(self.program)
    }

    /// The filter of lines and its feed, if the trial is of one.
    pub fn lines(&self) -> Option<(Feed, &Filter)> {
        self.feed.zip(self.filter.as_ref())
    }

    /// A pipeline of lines is as a shell starts it: nothing but its feed, its filter and its volume can be chosen.
    fn check_lines(&self) -> Result<(), BadValue> {
        let (feed, filter) = match (self.feed, &self.filter) {
            (None, None) => return Ok(()),
            (Some(feed), Some(filter)) => (feed, filter),
            (None, Some(filter)) => {
                return Err(BadValue::new(format!("the filter {filter} needs lines; give a feed as well")));
            }
            (Some(feed), None) => {
                return Err(BadValue::new(format!("the feed {feed} needs a filter; give one as well")));
            }
        };
        if feed.endless() != matches!(self.volume, Volume::Time(_)) {
            let what =
                if feed.endless() { "never ends; give a time" } else { "is made as large as its total; give one" };
            return Err(BadValue::new(format!("the feed {feed} {what}")));
        }
        if self.place != Place::Free {
            return Err(BadValue::new(format!("the filter {filter} may have several threads; use place free")));
        }
        let open = [Key::Total, Key::Time, Key::Place, Key::Feed, Key::Filter];
        let own = Params::default();
        match Key::iter().find(|key| !open.contains(key) && self.exact(*key) != own.exact(*key)) {
            Some(key) => {
                Err(BadValue::new(format!("the filter {filter} does not take {key} {}; leave it out", self.get(key))))
            }
            None => Ok(()),
        }
    }

    /// What an entrant's contract leaves open is the block, the total and the pattern; the rest is its own business.
    fn check_entrant(&self) -> Result<(), BadValue> {
        let (language, program) = match (&self.language, self.program) {
            (None, None) => return Ok(()),
            (Some(language), Some(program)) => (language, program),
            (None, Some(_)) => return Err(BadValue::new("a program belongs to a language; give a language as well")),
            (Some(language), None) => {
                return Err(BadValue::new(format!(
                    "{language} has two programs; give program idiomatic or tuned as well"
                )));
            }
        };
        let refuse = |what: &str| Err(BadValue::new(format!("the entrant {language} {program} {what}")));
        if !matches!(self.volume, Volume::Total(_)) {
            return refuse("streams a total and not for a time; give a total");
        }
        if !matches!(self.verify, Verify::Xor | Verify::Full) {
            return refuse(
                "always checks what arrives; use verify full for the pattern 'position', or xor for 'document'",
            );
        }
        if !matches!(self.place, Place::Free | Place::Same) {
            return refuse("starts its own processes, so they cannot be placed one by one; use place free or same");
        }
        let open = [Key::Block, Key::Total, Key::Time, Key::Verify, Key::Place, Key::Language, Key::Program];
        let own = Params { block: self.block, ..Params::default() };
        match Key::iter().find(|key| !open.contains(key) && self.exact(*key) != own.exact(*key)) {
            Some(key) => refuse(&format!("does not take {key} {}; leave it out", self.get(key))),
            None => Ok(()),
        }
    }

    /// What makes these parameters impossible anywhere, if anything does. What is impossible only here is a skip.
    ///
    /// # Errors
    /// The contradiction, as a sentence that says which options to change.
    pub fn check(&self) -> Result<(), BadValue> {
        self.check_entrant()?;
        self.check_lines()?;
        if let Volume::Total(total) = self.volume
            && self.block > total
        {
            return Err(BadValue::new(format!(
                "block size {} is larger than the total of {total}; raise --total or lower --block",
                self.block
            )));
        }
        let words = |methods: Vec<String>| methods.join(", ");
        if !self.link.senders().contains(&self.send) {
            let all = words(self.link.senders().iter().map(ToString::to_string).collect());
            return Err(BadValue::new(format!(
                "--send {} does not go with --link {}; use {all}",
                self.send, self.link
            )));
        }
        if !self.link.receivers().contains(&self.recv) {
            let all = words(self.link.receivers().iter().map(ToString::to_string).collect());
            return Err(BadValue::new(format!(
                "--recv {} does not go with --link {}; use {all}",
                self.recv, self.link
            )));
        }
        if !self.link.transfers() && matches!(self.verify, Verify::Xor | Verify::Full) {
            return Err(BadValue::new(format!(
                "--link {} moves no bytes that --verify {} could see; use --verify count",
                self.link, self.verify
            )));
        }
        if self.mode == Mode::Latency && (!self.recv.touches() || self.send == SendMethod::Tee) {
            return Err(BadValue::new(
                "a round trip has to be read to be answered; use another --send or --recv with --mode latency",
            ));
        }
        if self.mode == Mode::Latency && self.link == LinkKind::MemoryCopy {
            return Err(BadValue::new("--link memory-copy has no other end to wait for; use --mode throughput"));
        }
        if self.mode == Mode::Latency && self.verify == Verify::Xor {
            return Err(BadValue::new("--verify xor is for streams; use count or full with --mode latency"));
        }
        if self.mode == Mode::Throughput && (self.rate.is_some() || self.gap != Nanos(0)) {
            return Err(BadValue::new("--rate and --gap pace messages; use them with --mode latency"));
        }
        if self.rate.is_some() && self.gap != Nanos(0) {
            return Err(BadValue::new("--rate already says when the next message is due; leave out --gap"));
        }
        if self.chained() && (self.link != LinkKind::Pipe || self.mode != Mode::Throughput || self.pairs != 1) {
            return Err(BadValue::new(
                "a chain passes one stream through pipes; with --length use --link pipe, --mode throughput and --pairs 1",
            ));
        }
        if self.content == Content::Text && matches!(self.verify, Verify::Xor | Verify::Full) {
            return Err(BadValue::new(format!(
                "--verify {} is for the pattern, not for text; use --content pattern or --verify count",
                self.verify
            )));
        }
        if self.exit != 0 && !self.chained() {
            return Err(BadValue::new("--exit is what the stages of a chain have to end with; use --length as well"));
        }
        if !self.recv.touches() && matches!(self.verify, Verify::Xor | Verify::Full) {
            return Err(BadValue::new(format!(
                "--recv {} never sees the bytes, so --verify {} is impossible; use --verify count or another receive method",
                self.recv, self.verify
            )));
        }
        if self.send == SendMethod::Tee && self.verify == Verify::Full {
            return Err(BadValue::new(
                "--send tee sends the same page over and over, so --verify full is impossible; use --verify xor or another send method",
            ));
        }
        Ok(())
    }

    /// A short stable text that tells these parameters from all others: equal parameters have equal ids in every version
    /// with the same schema, so stored runs can be matched.
    pub fn id(&self) -> String {
        let default = Params::default();
        let mut id =
            format!("{} {}-{} {} {} {}", self.link, self.send, self.recv, self.block.0, self.place, self.verify);
        for key in Key::iter() {
            let named = matches!(key, Key::Link | Key::Send | Key::Recv | Key::Block | Key::Place | Key::Verify);
            // A read block equal to the block is the default, however it was written.
            let value = self.exact(key);
            let usual = if key == Key::ReadBlock { self.exact(Key::Block) } else { default.exact(key) };
            if !named && value != usual && !value.is_empty() {
                id.push_str(&format!(" {key}={}", value.replace(' ', "")));
            }
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_reads_back_as_it_is_shown() {
        let mut params = Params::default();
        for (key, text) in [
            (Key::Send, "vmsplice-gift"),
            (Key::Recv, "io-uring"),
            (Key::Place, "0:1"),
            (Key::Capacity, "1 MiB"),
            (Key::Capacity, "quota"),
            (Key::Block, "256 B"),
            (Key::ReadBlock, "1 KiB"),
            (Key::ReadDelay, "500 µs"),
            (Key::Total, "1 GiB"),
            (Key::Time, "100 ms"),
            (Key::Pairs, "4"),
        ] {
            params.set(key, text).unwrap();
            assert_eq!(params.get(key), text);
        }
    }

    #[test]
    fn nonsense_is_named() {
        let mut params = Params::default();
        for (key, text, word) in [
            (Key::Block, "0", "out of range"),
            (Key::Block, "2g", "1 GiB"),
            (Key::Send, "wriite", "vmsplice"),
            (Key::Place, "0:9999", "placement"),
            (Key::Place, "0:-1", "placement"),
            (Key::Pairs, "0", "256"),
            (Key::Time, "0s", "out of range"),
            (Key::Capacity, "0", "out of range"),
        ] {
            let error = params.set(key, text).unwrap_err().to_string();
            assert!(error.contains(word), "{key}={text}: {error}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        let params = |pairs: &[(Key, &str)]| {
            let mut params = Params::default();
            for (key, text) in pairs {
                params.set(*key, text).unwrap();
            }
            params
        };
        assert!(params(&[(Key::Recv, "splice"), (Key::Verify, "full")]).check().is_err());
        assert!(params(&[(Key::Send, "tee"), (Key::Verify, "full")]).check().is_err());
        assert!(params(&[(Key::Block, "1m"), (Key::Total, "64k")]).check().is_err());
        assert!(params(&[(Key::Recv, "splice"), (Key::Verify, "count")]).check().is_ok());
    }

    #[test]
    fn an_entrant_takes_what_its_contract_says() {
        let error = |pairs: &[(&str, &str)]| {
            let mut params = Params { place: Place::Free, verify: Verify::Full, ..Params::default() };
            for (key, text) in [("total", "1m"), ("language", "c"), ("program", "tuned")].iter().chain(pairs) {
                params.set(Key::named(key).unwrap(), text).unwrap();
            }
            params.check().err().map(|error| error.to_string())
        };
        assert_eq!(error(&[]), None);
        assert_eq!(error(&[("verify", "xor"), ("place", "same"), ("block", "512")]), None);
        for (key, text, words) in [
            ("time", "1s", "streams a total"),
            ("verify", "count", "always checks"),
            ("place", "cross", "free or same"),
            ("capacity", "1m", "does not take capacity 1 MiB"),
            ("read-block", "1k", "does not take read-block"),
            ("send", "vmsplice", "does not take send"),
        ] {
            let error = error(&[(key, text)]).expect(key);
            assert!(error.contains(words), "{error}");
        }
        let alone = Params { program: Some(Program::Tuned), ..Params::default() };
        assert!(alone.check().is_err());
        for text in ["", "C", "../c", "-c", "c c"] {
            assert!(Params::default().set(Key::Language, text).is_err(), "{text}");
        }
    }

    #[test]
    fn ids_tell_parameters_apart() {
        let plain = Params::default();
        let mut other = plain.clone();
        other.set(Key::ReadBlock, "64k").unwrap();
        assert_eq!(plain.id(), other.id(), "a read block equal to the block is no difference");
        other.set(Key::Capacity, "1m").unwrap();
        assert_ne!(plain.id(), other.id());
        assert_eq!(other.id(), "pipe write-read 65536 cross count capacity=1MiB");
    }

    #[test]
    fn ids_do_not_round() {
        let with = |key, text| {
            let mut params = Params::default();
            params.set(key, text).unwrap();
            params.id()
        };
        for (key, one, other) in [
            (Key::Total, "1664000000", "1664000001"),
            (Key::Time, "100000001ns", "100ms"),
            (Key::Capacity, "1000001", "1000002"),
            (Key::ReadBlock, "1000001", "1000002"),
            (Key::ReadDelay, "1000001ns", "1000002ns"),
        ] {
            assert_ne!(with(key, one), with(key, other), "{key}");
        }
    }

    #[test]
    fn json_is_plain_numbers_and_words() {
        let json = serde_json::to_value(Params::default()).unwrap();
        assert_eq!(json["block"], 65536);
        assert_eq!(json["capacity"], "default");
        assert_eq!(json["place"], "cross");
        assert_eq!(serde_json::from_value::<Params>(json).unwrap(), Params::default());
    }
}
