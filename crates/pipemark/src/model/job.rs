//! What a trial does: one of five kinds of job, each with the parameters that it has and no others.
//!
//! [`Settings`] are the flat form that flags, suites and documents use. Making a [`Job`] of them is the one place where
//! parameters that contradict each other are refused.

use serde::{Deserialize, Serialize};

use super::bad_value::BadValue;
use super::capacity::Capacity;
use super::entrant::{Language, Program};
use super::filter::{Feed, Filter};
use super::link::LinkKind;
use super::methods::{Content, Mode, PageKind, RecvMethod, Rseq, SendMethod, Verify, WaitPolicy};
use super::parameter::{Buffer, Key, Rate, Settings, Value};
use super::place::Place;
use super::stage::Stages;
use super::units::{ByteSize, Delay, Nanos};
use super::value::named;

/// How long a run measures where nothing else is said.
pub const USUAL_TIME: Nanos = Nanos(250_000_000);

/// How much one run moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Volume {
    /// At least this many bytes per pair.
    Total(ByteSize),
    /// As much as arrives in this time.
    Time(Nanos),
}

/// What a job is, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A stream one way, between two ends of ours.
    Stream,
    /// A block there and a block back, over and over.
    RoundTrip,
    /// A stream through other programs.
    Chain,
    /// A program of some language that streams by itself.
    Entrant,
    /// Lines of text through a filter.
    Lines,
}

named!(Kind: Stream RoundTrip Chain Entrant Lines);

/// One fully specified experiment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(into = "Flat", try_from = "Flat")]
pub enum Job {
    /// Bytes per second one way.
    Stream(Ends),
    /// Time per round trip.
    RoundTrip(RoundTrip),
    /// Bytes per second through stages.
    Chain(Chain),
    /// What a program of some language reaches.
    Entrant(Entrant),
    /// What a filter of lines reaches.
    Lines(Lines),
}

/// Refuses with a sentence where a condition holds.
macro_rules! refuse_if {
    ($condition:expr, $($sentence:tt)+) => {
        if $condition {
            return refuse(format!($($sentence)+));
        }
    };
}

macro_rules! ends {
    ($($(#[$doc:meta])+ $field:ident: $type:ty = $usual:expr,)*) => {
        /// The source and the sink, the link between them, and how much goes through it.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct Ends {
            $($(#[$doc])+ pub $field: $type,)*
            /// The socket buffers asked for; what was granted is in each sample.
            pub buffer: Option<ByteSize>,
            /// Bytes asked for per call of the sink; `None` is the same as `block`.
            pub read_block: Option<ByteSize>,
            /// How much one run moves.
            pub volume: Volume,
        }

        impl Ends {
            fn new(settings: &Settings, volume: Volume) -> Result<Ends, BadValue> {
                let mut ends = Ends {
                    $($field: settings.$field.unwrap_or($usual),)*
                    buffer: settings.buffer.unwrap_or_default().0,
                    read_block: settings.read_block,
                    volume,
                };
                // A read block equal to the block is no difference.
                ends.read_block = ends.read_block.filter(|size| *size != ends.block);
                ends.check()?;
                Ok(ends)
            }

            fn settings(&self, others: Settings) -> Settings {
                Settings {
                    $($field: Some(self.$field),)*
                    buffer: self.buffer.map(|size| Buffer(Some(size))),
                    read_block: self.read_block,
                    ..others
                }
            }
        }
    };
}

ends! {
    /// The mechanism between source and sink.
    link: LinkKind = LinkKind::Pipe,
    /// How the source sends.
    send: SendMethod = SendMethod::Write,
    /// How the sink receives.
    recv: RecvMethod = RecvMethod::Read,
    /// What the ends do when they have to wait.
    wait: WaitPolicy = WaitPolicy::Block,
    /// What the ends' buffers are made of.
    pages: PageKind = PageKind::Base,
    /// Which CPUs the ends may run on.
    place: Place = Place::Cross,
    /// The pipe capacity asked for; what was granted is in each sample.
    capacity: Capacity = Capacity::DEFAULT,
    /// Bytes per call of the source.
    block: ByteSize = ByteSize(64 << 10),
    /// Offset of both ends' buffers from the start of a page, in bytes.
    align: u32 = 0,
    /// How many pairs of source and sink run at once.
    pairs: u32 = 1,
    /// How many sources write to one sink's link.
    writers: u32 = 1,
    /// What the bytes are.
    content: Content = Content::Pattern,
    /// Mean busy work after each call of the sink.
    read_delay: Delay = Delay(Nanos(0)),
    /// Mean busy work before each call of the source.
    write_delay: Delay = Delay(Nanos(0)),
    /// How much is proven about the bytes.
    verify: Verify = Verify::Count,
    /// Whether the ends have restartable sequences.
    rseq: Rseq = Rseq::System,
}

/// What is done to each byte between source and sink, besides moving references to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work {
    /// How often it is copied: 2 by write(2) and read(2), 0 where only references move. A link that copies nevertheless,
    /// as TCP on loopback does, says so in a warning.
    pub copies: u8,
    /// Whether the source writes it anew before it is sent.
    pub written: bool,
    /// Whether the sink looks at it.
    pub read: bool,
}

/// When a round trip begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pace {
    /// So long after the last one ended; 0 is at once.
    Gap(Nanos),
    /// So many times per second, each timed from when it was due.
    Rate(u32),
}

/// A conversation between two ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoundTrip {
    /// The ends.
    pub ends: Ends,
    /// When a round trip begins.
    pub pace: Pace,
}

/// A stream through other programs; one of length 0 is a plain stream that belongs to a row of chains.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chain {
    /// The ends.
    pub ends: Ends,
    /// What passes the bytes on between them, over and over until the chain is `length` long.
    pub stage: Stages,
    /// How many stages there are.
    pub length: u32,
    /// The exit code that every stage has to end with, which is the proof of its result: 1 is grep's for no match.
    pub exit: u8,
}

/// A program of some language.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entrant {
    /// The language.
    pub language: Language,
    /// Which of its programs.
    pub program: Program,
    /// Free, or all of its processes on one CPU.
    pub place: Place,
    /// Bytes per call of its writer.
    pub block: ByteSize,
    /// Xor or full: an entrant always checks what arrives.
    pub verify: Verify,
    /// Bytes that it streams.
    pub total: ByteSize,
}

/// A filter of lines, as a shell starts it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lines {
    /// Where the lines come from.
    pub feed: Feed,
    /// What transforms them.
    pub filter: Filter,
    /// A time for a feed without an end, a total for the others.
    pub volume: Volume,
    /// Lines per second, of the feed that times them.
    pub rate: Option<u32>,
}

impl Ends {
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

    /// Whether the sink looks at the bytes: moving a page reference is not reading a page. In place, looking at them is all
    /// there is to receiving them.
    pub fn touched(&self) -> bool {
        self.recv.touches() && (self.verify.looks() || self.writers > 1) || self.recv == RecvMethod::InPlace
    }

    /// Whether each byte is written anew before it is sent. In place, writing them is all there is to sending them.
    pub fn fresh(&self) -> bool {
        let fresh = self.verify == Verify::Full || self.writers > 1;
        fresh && self.send.sends_fresh_data() || self.send == SendMethod::InPlace
    }

    /// What is done to each byte. Only those with the same work are alike.
    pub fn work(&self) -> Work {
        let copies = match self.link {
            LinkKind::Null => 0,
            // The sink copies out of the source's memory; a memory copy has no other end.
            LinkKind::ProcessVm | LinkKind::MemoryCopy => 1,
            _ => u8::from(self.send.copies()) + u8::from(self.recv.copies()),
        };
        Work { copies, written: self.fresh(), read: self.touched() }
    }

    /// What contradicts what, whatever the kind of job.
    fn check(&self) -> Result<(), BadValue> {
        let Ends { link, send, recv, verify, block, capacity, .. } = self;
        let looks = verify.looks();
        let all = |methods: Vec<&'static str>| methods.join(", ");
        if let Volume::Total(total) = self.volume {
            let words = "is larger than the total of";
            refuse_if!(block > &total, "block size {block} {words} {total}; raise --total or lower --block");
        }
        let senders = link.senders();
        let use_these = all(senders.iter().map(|method| method.name()).collect());
        refuse_if!(!senders.contains(send), "--send {send} does not go with --link {link}; use {use_these}");
        let receivers = link.receivers();
        let use_these = all(receivers.iter().map(|method| method.name()).collect());
        refuse_if!(!receivers.contains(recv), "--recv {recv} does not go with --link {link}; use {use_these}");
        refuse_if!(
            *capacity != Capacity::DEFAULT && !link.has_capacity(),
            "--capacity {capacity} is of pipes and rings, and --link {link} is neither; leave it out, or use --buffer for sockets"
        );
        let plain = (*link, *send, *recv, self.wait)
            == (LinkKind::Pipe, SendMethod::Write, RecvMethod::Read, WaitPolicy::Block);
        refuse_if!(
            self.writers > 1 && !(plain && self.pairs == 1 && !looks),
            "--writers {} share one pipe, and say in each byte whose it is; use --link pipe --send write --recv read --wait \
             block --pairs 1 --verify count",
            self.writers
        );
        if let Some(size) = self.buffer {
            refuse_if!(!link.is_socket(), "--buffer {size} is of sockets, and --link {link} is none; leave it out");
        }
        refuse_if!(
            looks && !link.transfers(),
            "--link {link} moves no bytes that --verify {verify} could see; use --verify count"
        );
        refuse_if!(
            looks && self.content == Content::Text,
            "--verify {verify} is for the pattern, not for text; use --content pattern or --verify count"
        );
        refuse_if!(
            self.content == Content::Text && (*send == SendMethod::InPlace || *recv == RecvMethod::InPlace),
            "blocks made or read in place are written and compared as a pattern; use --content pattern"
        );
        refuse_if!(
            looks && !recv.touches(),
            "--recv {recv} never sees the bytes, so --verify {verify} is impossible; use --verify count or another receive method"
        );
        refuse_if!(
            *send == SendMethod::Tee && *verify == Verify::Full,
            "--send tee sends the same page over and over, so --verify full is impossible; use --verify xor or another send method"
        );
        Ok(())
    }
}

impl RoundTrip {
    fn check(&self) -> Result<(), BadValue> {
        let Ends { link, send, recv, verify, .. } = self.ends;
        refuse_if!(
            !recv.touches() || send == SendMethod::Tee,
            "a round trip has to be read to be answered; use another --send or --recv with --mode latency"
        );
        refuse_if!(
            link == LinkKind::MemoryCopy,
            "--link memory-copy has no other end to wait for; use --mode throughput"
        );
        refuse_if!(verify == Verify::Xor, "--verify xor is for streams; use count or full with --mode latency");
        Ok(())
    }
}

impl Chain {
    fn check(&self) -> Result<(), BadValue> {
        refuse_if!(
            self.length > 0 && (self.ends.link != LinkKind::Pipe || self.ends.pairs != 1),
            "a chain passes one stream through pipes; with --length use --link pipe and --pairs 1"
        );
        refuse_if!(
            self.exit != 0 && self.length == 0,
            "--exit is what the stages of a chain have to end with; use --length as well"
        );
        Ok(())
    }
}

impl Job {
    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Job::Stream(_) => Kind::Stream,
            Job::RoundTrip(_) => Kind::RoundTrip,
            Job::Chain(_) => Kind::Chain,
            Job::Entrant(_) => Kind::Entrant,
            Job::Lines(_) => Kind::Lines,
        }
    }

    /// The ends, where they are ours.
    pub fn ends(&self) -> Option<&Ends> {
        match self {
            Job::Stream(ends) => Some(ends),
            Job::RoundTrip(trip) => Some(&trip.ends),
            Job::Chain(chain) => Some(&chain.ends),
            Job::Entrant(_) | Job::Lines(_) => None,
        }
    }

    /// The chain, where bytes go through stages.
    pub fn chain(&self) -> Option<&Chain> {
        match self {
            Job::Chain(chain) if chain.length > 0 => Some(chain),
            _ => None,
        }
    }

    /// The entrant, if it is one.
    pub fn entrant(&self) -> Option<&Entrant> {
        if let Job::Entrant(entrant) = self { Some(entrant) } else { None }
    }

    /// The filter of lines, if it is one.
    pub fn lines(&self) -> Option<&Lines> {
        if let Job::Lines(lines) = self { Some(lines) } else { None }
    }

    /// The mechanism; entrants and filters use plain pipes.
    pub fn link(&self) -> LinkKind {
        self.ends().map_or(LinkKind::Pipe, |ends| ends.link)
    }

    /// What it is measured by.
    pub fn mode(&self) -> Mode {
        match self {
            Job::RoundTrip(_) | Job::Lines(Lines { rate: Some(_), .. }) => Mode::Latency,
            _ => Mode::Throughput,
        }
    }

    /// Whether it is told by times, of round trips or of lines, and not by throughput.
    pub fn is_latency(&self) -> bool {
        self.mode() == Mode::Latency
    }

    /// Whether it is a conversation between two ends of ours.
    pub fn is_round_trip(&self) -> bool {
        self.kind() == Kind::RoundTrip
    }

    /// Whether it is the copy within one process that others are compared with.
    pub fn is_memory_copy(&self) -> bool {
        self.link() == LinkKind::MemoryCopy
    }

    /// Whether it copies into shared memory and out of it while both ends spin: no link that copies twice can be faster with
    /// these blocks and this room, on these CPUs.
    pub fn is_two_copies(&self) -> bool {
        let two_copies = (LinkKind::Shm, SendMethod::Write, RecvMethod::Read, WaitPolicy::Spin);
        matches!(self, Job::Stream(_))
            && self.ends().map(|own| (own.link, own.send, own.recv, own.wait)) == Some(two_copies)
    }

    /// Which CPUs its processes may run on.
    pub fn place(&self) -> Place {
        match self {
            Job::Entrant(entrant) => entrant.place,
            Job::Lines(_) => Place::Free,
            _ => self.ends().map_or(Place::Free, |ends| ends.place),
        }
    }

    /// How much is proven about the bytes.
    pub fn verify(&self) -> Verify {
        match self {
            Job::Entrant(entrant) => entrant.verify,
            _ => self.ends().map_or(Verify::Count, |ends| ends.verify),
        }
    }

    /// What an end does when it has to wait.
    pub fn wait(&self) -> WaitPolicy {
        self.ends().map_or(WaitPolicy::Block, |ends| ends.wait)
    }

    /// Bytes per call of what writes, where that is known.
    pub fn block(&self) -> Option<ByteSize> {
        match self {
            Job::Entrant(entrant) => Some(entrant.block),
            _ => self.ends().map(|ends| ends.block),
        }
    }

    /// How much one run moves.
    pub fn volume(&self) -> Volume {
        match self {
            Job::Entrant(entrant) => Volume::Total(entrant.total),
            Job::Lines(lines) => lines.volume,
            _ => self.ends().map_or(Volume::Time(USUAL_TIME), |ends| ends.volume),
        }
    }

    /// Whether the sink looks at the bytes.
    pub fn touched(&self) -> bool {
        match self {
            Job::Entrant(_) => true,
            _ => self.ends().is_some_and(Ends::touched),
        }
    }

    /// All its parameters.
    pub fn settings(&self) -> Settings {
        Settings::from(self)
    }

    /// The parameter called `key` as it takes effect: what the job has, or what is usual.
    pub fn value(&self, key: Key) -> Option<Value> {
        self.settings().effective(key)
    }

    /// See [`Settings::id`].
    pub fn id(&self) -> String {
        self.settings().id()
    }
}

impl Default for Job {
    /// A plain pipe: 64 KiB blocks by write and read, default capacity, two CPUs, a quarter of a second per run.
    fn default() -> Self {
        Job::try_from(Settings::default()).expect("what is usual does not contradict itself")
    }
}

impl TryFrom<Settings> for Job {
    type Error = BadValue;

    /// # Errors
    /// The contradiction, as a sentence that says which options to change. What is impossible only on this machine is no
    /// contradiction.
    fn try_from(settings: Settings) -> Result<Job, BadValue> {
        let kind = kind_of(&settings)?;
        for key in Key::iter().filter(|key| !key.kinds().contains(&kind)) {
            if let Some(value) = settings.get(key).filter(|value| key.usual().as_ref() != Some(value)) {
                return refuse(misplaced(kind, &settings, &value));
            }
        }
        let blocks = settings.blocks.map(|blocks| settings.total_of(blocks));
        let volume = match (settings.total.or(blocks), settings.time) {
            _ if settings.total.is_some() && blocks.is_some() => {
                return refuse("a run has a total or a number of blocks, not both; leave out one");
            }
            (Some(_), Some(_)) => return refuse("a run has a total or a time, not both; leave out one"),
            (Some(total), None) => Volume::Total(total),
            (None, time) => Volume::Time(time.unwrap_or(USUAL_TIME)),
        };
        Ok(match kind {
            Kind::Stream => Job::Stream(Ends::new(&settings, volume)?),
            Kind::RoundTrip => {
                let pace = match (settings.rate.unwrap_or_default().0, settings.gap.unwrap_or_default()) {
                    (Some(rate), Nanos(0)) => Pace::Rate(rate),
                    (None, gap) => Pace::Gap(gap),
                    _ => return refuse("--rate already says when the next message is due; leave out --gap"),
                };
                let trip = RoundTrip { ends: Ends::new(&settings, volume)?, pace };
                trip.check()?;
                Job::RoundTrip(trip)
            }
            Kind::Chain => {
                let chain = Chain {
                    ends: Ends::new(&settings, volume)?,
                    stage: settings.stage.unwrap_or_default(),
                    length: settings.length.unwrap_or_default(),
                    exit: settings.exit.unwrap_or_default(),
                };
                chain.check()?;
                Job::Chain(chain)
            }
            Kind::Entrant => Job::Entrant(entrant(settings, volume)?),
            Kind::Lines => Job::Lines(lines(settings, volume)?),
        })
    }
}

fn refuse<T>(sentence: impl Into<String>) -> Result<T, BadValue> {
    Err(BadValue::new(sentence))
}

/// What the settings are of: only one kind has each of some parameters.
fn kind_of(settings: &Settings) -> Result<Kind, BadValue> {
    let chained = settings.length.is_some_and(|length| length > 0)
        || settings.exit.is_some_and(|exit| exit != 0)
        || settings.stage.as_ref().is_some_and(|stage| *stage != Stages::default());
    match settings {
        Settings { language: Some(_), program: Some(_), .. } => Ok(Kind::Entrant),
        Settings { language: Some(language), .. } => {
            refuse(format!("{language} has two programs; give program idiomatic or tuned as well"))
        }
        Settings { program: Some(_), .. } => refuse("a program belongs to a language; give a language as well"),
        Settings { feed: Some(_), filter: Some(_), .. } => Ok(Kind::Lines),
        Settings { filter: Some(filter), .. } => {
            refuse(format!("the filter {filter} needs lines; give a feed as well"))
        }
        Settings { feed: Some(feed), .. } => refuse(format!("the feed {feed} needs a filter; give one as well")),
        Settings { mode: Some(Mode::Latency), .. } if chained => {
            refuse("a chain passes a stream on; use --mode throughput with --length")
        }
        Settings { mode: Some(Mode::Latency), .. } => Ok(Kind::RoundTrip),
        _ if chained => Ok(Kind::Chain),
        _ => Ok(Kind::Stream),
    }
}

/// Why a parameter that this kind of job does not have can't be given.
fn misplaced(kind: Kind, settings: &Settings, value: &Value) -> String {
    let key = value.key();
    let leave_out = |who: String| format!("{who} does not take {key} {value}; leave it out");
    match (kind, &settings.language, settings.program, &settings.filter) {
        (Kind::Entrant, Some(language), Some(program), _) => leave_out(format!("the entrant {language} {program}")),
        (Kind::Lines, _, _, Some(filter)) => leave_out(format!("the filter {filter}")),
        _ if matches!(key, Key::Rate | Key::Gap) => {
            "--rate and --gap pace messages; use them with --mode latency".to_owned()
        }
        _ => leave_out(format!("a {}", kind.name().replace('-', " "))),
    }
}

/// What an entrant's contract leaves open is the block, the total and the pattern; the rest is its own business.
fn entrant(settings: Settings, volume: Volume) -> Result<Entrant, BadValue> {
    let (Some(language), Some(program)) = (settings.language, settings.program) else {
        unreachable!("it is what makes the settings those of an entrant")
    };
    let refuse = |what: &str| refuse(format!("the entrant {language} {program} {what}"));
    let Volume::Total(total) = volume else {
        return refuse("streams a total and not for a time; give a total");
    };
    let verify = settings.verify.unwrap_or(Verify::Count);
    if verify == Verify::Count {
        return refuse(
            "checks all that arrives or nothing; use verify full for the pattern 'position', xor for 'document', or none for a \
             benchmark of others",
        );
    }
    let place = settings.place.unwrap_or(Place::Cross);
    if !matches!(place, Place::Free | Place::Same) {
        return refuse("starts its own processes, so they cannot be placed one by one; use place free or same");
    }
    let block = settings.block.unwrap_or(ByteSize(64 << 10));
    if block > total {
        return refuse(&format!("cannot send blocks of {block} of a total of {total}; raise total or lower block"));
    }
    Ok(Entrant { language, program, place, block, verify, total })
}

/// A pipeline of lines is as a shell starts it: nothing but its feed, its filter and its volume can be chosen.
fn lines(settings: Settings, volume: Volume) -> Result<Lines, BadValue> {
    let (Some(feed), Some(filter)) = (settings.feed, settings.filter) else {
        unreachable!("it is what makes the settings those of a filter")
    };
    match (feed.endless(), volume) {
        (true, Volume::Total(_)) => return refuse(format!("the feed {feed} never ends; give a time")),
        (false, Volume::Time(_)) => {
            return refuse(format!("the feed {feed} is made as large as its total; give one"));
        }
        _ => {}
    }
    if settings.place != Some(Place::Free) {
        return refuse(format!("the filter {filter} may have several threads; use place free"));
    }
    let rate = settings.rate.unwrap_or_default().0;
    match (feed == Feed::Timed, rate) {
        (true, None) => return refuse("the feed timed writes so many lines per second; give a rate"),
        (false, Some(_)) => return refuse(format!("the feed {feed} has no rate; use the feed timed")),
        _ => {}
    }
    Ok(Lines { feed, filter, volume, rate })
}

impl From<&Job> for Settings {
    fn from(job: &Job) -> Settings {
        let mut settings = Settings { mode: Some(job.mode()), place: Some(job.place()), ..Settings::default() };
        match job.volume() {
            Volume::Total(total) => settings.total = Some(total),
            Volume::Time(time) => settings.time = Some(time),
        }
        if let Some(ends) = job.ends() {
            settings = ends.settings(settings);
        }
        match job {
            Job::Stream(_) => {}
            Job::RoundTrip(trip) => match trip.pace {
                Pace::Gap(gap) => settings.gap = Some(gap),
                Pace::Rate(rate) => settings.rate = Some(Rate(Some(rate))),
            },
            Job::Chain(chain) => {
                settings.stage = Some(chain.stage.clone());
                settings.length = Some(chain.length);
                settings.exit = Some(chain.exit);
            }
            Job::Entrant(entrant) => {
                settings.language = Some(entrant.language.clone());
                settings.program = Some(entrant.program);
                settings.block = Some(entrant.block);
                settings.verify = Some(entrant.verify);
            }
            Job::Lines(lines) => {
                settings.feed = Some(lines.feed);
                settings.filter = Some(lines.filter.clone());
                settings.rate = lines.rate.map(|rate| Rate(Some(rate)));
            }
        }
        settings
    }
}

/// A job in JSON: its settings, with the volume in one field.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Job"))]
struct Flat {
    #[serde(flatten)]
    settings: Settings,
    /// How much one run moves.
    volume: Volume,
}

impl From<Job> for Flat {
    fn from(job: Job) -> Flat {
        Flat { settings: job.settings(), volume: job.volume() }
    }
}

impl TryFrom<Flat> for Job {
    type Error = BadValue;

    fn try_from(Flat { mut settings, volume }: Flat) -> Result<Job, BadValue> {
        settings.set(match volume {
            Volume::Total(total) => Value::Total(total),
            Volume::Time(time) => Value::Time(time),
        });
        // Older versions took a capacity for any link, and buffers too.
        let link = settings.link.unwrap_or(LinkKind::Pipe);
        settings.capacity = settings.capacity.filter(|_| link.has_capacity());
        settings.buffer = settings.buffer.filter(|_| link.is_socket());
        Job::try_from(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job from words such as `recv=splice verify=full`.
    fn job(words: &str) -> Result<Job, String> {
        let values = words.split_whitespace().map(|word| Value::parse_pair(word).unwrap());
        Job::try_from(Settings::of(values)).map_err(|error| error.to_string())
    }

    #[test]
    fn contradictions_are_named() {
        for (words, sentence) in [
            ("recv=splice verify=full", "never sees the bytes"),
            ("send=tee verify=full", "over and over"),
            ("block=1m total=64k", "larger than the total"),
            ("total=1m time=1s", "not both"),
            ("send=in-place", "does not go with --link pipe; use write, vmsplice"),
            ("link=tcp capacity=1m", "is of pipes and rings"),
            ("link=pipe buffer=1m", "is of sockets"),
            ("link=null verify=full", "moves no bytes"),
            ("content=text verify=full", "not for text"),
            ("gap=1ms", "pace messages"),
            ("mode=latency gap=1ms rate=5", "leave out --gap"),
            ("mode=latency recv=splice", "has to be read"),
            ("mode=latency verify=xor", "for streams"),
            ("mode=latency length=2", "passes a stream on"),
            ("length=2 pairs=2", "--pairs 1"),
            ("writers=2 link=fifo", "--link pipe"),
            ("writers=2 verify=full", "--verify count"),
            ("writers=2 length=1", "writers"),
            ("exit=1", "use --length"),
            ("feed=file", "needs a filter"),
            ("feed=file filter=sed place=free", "give one"),
            ("feed=yes-long filter=sed total=1m place=free", "give a time"),
            ("feed=yes-long filter=sed", "use place free"),
            ("feed=yes-long filter=sed place=free block=1k", "the filter sed does not take block 1 KiB"),
            ("feed=timed filter=sed place=free", "give a rate"),
            ("feed=yes-long filter=sed place=free rate=10", "use the feed timed"),
        ] {
            let error = job(words).expect_err(words);
            assert!(error.contains(sentence), "{words}: {error}");
        }
        assert!(job("recv=splice verify=count").is_ok());
    }

    #[test]
    fn an_entrant_takes_what_its_contract_says() {
        let with = |words: &str| {
            let values = "total=1m language=c program=tuned place=free verify=full".split_whitespace();
            let values = values.chain(words.split_whitespace()).map(|word| Value::parse_pair(word).unwrap());
            Job::try_from(Settings::of(values)).map_err(|error| error.to_string())
        };
        assert_eq!(with("verify=xor place=same block=512").unwrap().kind(), Kind::Entrant);
        for (words, sentence) in [
            ("verify=count", "checks all that arrives or nothing"),
            ("place=cross", "free or same"),
            ("capacity=1m", "does not take capacity 1 MiB"),
            ("read-block=1k", "does not take read-block"),
            ("send=vmsplice", "does not take send"),
        ] {
            let error = with(words).expect_err(words);
            assert!(error.contains(sentence), "{error}");
        }
        assert!(job("program=tuned").unwrap_err().contains("give a language"));
        assert!(job("language=c").unwrap_err().contains("idiomatic or tuned"));
        for text in ["", "C", "../c", "-c", "c c"] {
            assert!(Value::parse(Key::Language, text).is_err(), "{text}");
        }
    }

    #[test]
    fn ids_tell_jobs_apart() {
        let plain = job("").unwrap();
        assert_eq!(plain, Job::default());
        assert_eq!(plain.id(), job("read-block=64k").unwrap().id(), "a read block equal to the block is no difference");
        assert_eq!(job("read-block=64k capacity=1m").unwrap().id(), "pipe write-read 65536 cross count capacity=1MiB");
        assert_eq!(
            job("feed=yes-long filter=sed place=free time=1s").unwrap().id(),
            "pipe write-read 65536 free count time=1.00s feed=yes-long filter=sed"
        );
        assert_eq!(
            job("mode=latency gap=1ms block=8").unwrap().id(),
            "pipe write-read 8 cross count mode=latency gap=1.00ms"
        );
    }

    #[test]
    fn every_kind_survives_json_and_settings() {
        for words in [
            "",
            "read-block=1k total=1m buffer=default",
            "link=tcp buffer=1m pairs=3",
            "mode=latency rate=100",
            "mode=latency gap=1ms",
            "stage=relay length=3 exit=1",
            "stage=relay length=0",
            "total=1m language=c program=tuned place=free verify=full",
            "feed=yes-long filter=sed place=free",
            "feed=timed filter=sed place=free rate=10",
        ] {
            let job = job(words).unwrap_or_else(|error| panic!("{words}: {error}"));
            assert_eq!(Job::try_from(job.settings()).unwrap(), job, "{words}");
            let json = serde_json::to_string(&job).unwrap();
            assert_eq!(serde_json::from_str::<Job>(&json).unwrap(), job, "{json}");
        }
    }

    #[test]
    fn json_is_plain_numbers_and_words() {
        let json = serde_json::to_value(Job::default()).unwrap();
        assert_eq!(json["block"], 65536);
        assert_eq!(json["capacity"], "default");
        assert_eq!(json["place"], "cross");
        assert_eq!(json["volume"]["time"], 250_000_000);
        assert_eq!(json["total"], serde_json::Value::Null);
    }
}
