//! Shared by both programs: the options, the bytes to send, and the parent's half of the job.
//! The child reads and sums in each program's own way. See ../../README.md.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin};
use std::time::Instant;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Multiplies the checksum before each block's sums are added to it.
pub const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    Position,
    Document,
}

impl Pattern {
    /// The checksum of no bytes.
    pub fn start(self) -> u64 {
        match self {
            Self::Position => 1,
            Self::Document => 0,
        }
    }
}

pub enum Role {
    Parent,
    Child,
}

pub struct Options {
    pub role: Role,
    pub bytes: u64,
    pub block: usize,
    pub pattern: Pattern,
    pub seed: u32,
    pub flip: Option<u64>,
}

impl Options {
    pub fn from_args() -> Result<Self> {
        let mut options = Self {
            role: Role::Parent,
            bytes: 0,
            block: 0,
            pattern: Pattern::Position,
            seed: 0,
            flip: None,
        };
        let mut has_bytes = false;
        let mut args = std::env::args().skip(1);
        while let Some(name) = args.next() {
            if name == "--child" {
                options.role = Role::Child;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            let wrong = |error| format!("{name} {value}: {error}");
            match (name.as_str(), value.as_str()) {
                ("--bytes", _) => {
                    options.bytes = value.parse().map_err(wrong)?;
                    has_bytes = true;
                }
                ("--block", _) => options.block = value.parse().map_err(wrong)?,
                ("--pattern", "position") => options.pattern = Pattern::Position,
                ("--pattern", "document") => options.pattern = Pattern::Document,
                ("--seed", _) => options.seed = value.parse().map_err(wrong)?,
                ("--flip", _) => options.flip = Some(value.parse().map_err(wrong)?),
                _ => return Err(format!("{name} {value} is not known").into()),
            }
        }
        if !has_bytes || options.block == 0 {
            return Err("--bytes and a --block of at least 1 are needed".into());
        }
        Ok(options)
    }
}

/// The blocks in the order in which they are sent.
struct Source<'a> {
    options: &'a Options,
    block: Vec<u8>,
    /// The byte to restore before the next block.
    flipped: Option<usize>,
}

impl<'a> Source<'a> {
    fn new(options: &'a Options) -> Self {
        let mut x = options.seed;
        let block = (0..options.block)
            .map(|i| {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                match options.pattern {
                    Pattern::Position => (x >> 24) as u8,
                    Pattern::Document => i as u8,
                }
            })
            .collect();
        Self {
            options,
            block,
            flipped: None,
        }
    }

    /// The block that starts at this offset.
    fn block(&mut self, offset: u64) -> &[u8] {
        let length = self
            .options
            .block
            .min((self.options.bytes - offset) as usize);
        if let Some(index) = self.flipped.take() {
            self.block[index] ^= 0xff;
        }
        let block = &mut self.block[..length];
        if self.options.pattern == Pattern::Position {
            let number = (offset / self.options.block as u64).to_le_bytes();
            let stamp = number.len().min(length);
            block[..stamp].copy_from_slice(&number[..stamp]);
        }
        let flip = self.options.flip.and_then(|flip| flip.checked_sub(offset));
        if let Some(index) = flip.map(|i| i as usize).filter(|i| *i < length) {
            block[index] ^= 0xff;
            self.flipped = Some(index);
        }
        block
    }
}

/// The child's result, which it writes to its standard output after the line `ready`.
pub struct Answer {
    pub bytes: u64,
    pub checksum: u64,
    /// In bytes; `None` if unknown.
    pub capacity: Option<u64>,
}

impl Answer {
    pub fn send(&self) -> io::Result<()> {
        let capacity = self.capacity.map_or("null".into(), |c| c.to_string());
        println!("{} {:016x} {capacity}", self.bytes, self.checksum);
        io::stdout().flush()
    }
}

/// Tells the parent that the child is ready for bytes.
pub fn say_ready() -> io::Result<()> {
    println!("ready");
    io::stdout().flush()
}

/// Reads until the block is full or the stream ends. Returns the number of bytes.
pub fn fill(input: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < block.len() {
        match input.read(&mut block[have..])? {
            0 => break,
            n => have += n,
        }
    }
    Ok(have)
}

/// Streams the bytes to the child and prints the result line that the contract requires.
pub fn stream_to(mut child: Child, options: &Options) -> Result<()> {
    let mut data: ChildStdin = child.stdin.take().ok_or("the child has no input")?;
    let mut back = BufReader::new(child.stdout.take().ok_or("the child has no output")?);
    let mut source = Source::new(options);
    let mut line = String::new();
    back.read_line(&mut line)?;
    if line != "ready\n" {
        return Err("the child ended before it was ready".into());
    }

    let start = Instant::now();
    let mut offset = 0;
    while offset < options.bytes {
        let block = source.block(offset);
        data.write_all(block)?;
        offset += block.len() as u64;
    }
    drop(data);
    line.clear();
    back.read_line(&mut line)?;
    let ns = start.elapsed().as_nanos();

    let status = child.wait()?;
    let [bytes, checksum, capacity] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(format!("the child gave no answer and ended with {status}").into());
    };
    if !status.success() {
        return Err(format!("the child ended with {status}").into());
    }
    println!(
        r#"{{"language":"Rust","runtime":"{}","bytes":{bytes},"ns":{ns},"checksum":"{checksum}","capacity":{capacity}}}"#,
        env!("RUNTIME")
    );
    Ok(())
}
