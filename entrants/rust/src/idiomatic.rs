//! Streams through a pipe in idiomatic Rust: `std::process` and iterators.

mod stream;

use std::env;
use std::io;
use std::process::{Command, Stdio};

use stream::{Answer, FACTOR, Options, Pattern, Result, Role};

fn add_word_sums(checksum: u64, block: &[u8]) -> u64 {
    let (mut a, mut b) = (0u32, 0u32);
    let (words, rest) = block.as_chunks();
    for word in words {
        a = a.wrapping_add(u32::from_le_bytes(*word));
        b = b.wrapping_add(a);
    }
    if !rest.is_empty() {
        let mut word = [0; 4];
        word[..rest.len()].copy_from_slice(rest);
        a = a.wrapping_add(u32::from_le_bytes(word));
        b = b.wrapping_add(a);
    }
    let sums = u64::from(b) << 32 | u64::from(a);
    checksum.wrapping_mul(FACTOR).wrapping_add(sums)
}

fn add_byte_xor(checksum: u64, block: &[u8]) -> u64 {
    checksum ^ u64::from(block.iter().fold(0, |x, byte| x ^ byte))
}

fn child(options: &Options) -> Result<()> {
    let mut input = io::stdin().lock();
    let mut block = vec![0; options.block];
    let mut answer = Answer {
        bytes: 0,
        checksum: options.pattern.start(),
        capacity: None,
    };
    stream::say_ready()?;
    loop {
        let length = stream::fill(&mut input, &mut block)?;
        if length == 0 {
            break;
        }
        answer.bytes += length as u64;
        answer.checksum = match options.pattern {
            Pattern::Position => add_word_sums(answer.checksum, &block[..length]),
            Pattern::Document => add_byte_xor(answer.checksum, &block[..length]),
        };
    }
    answer.send()?;
    Ok(())
}

fn main() -> Result<()> {
    let options = Options::from_args()?;
    match options.role {
        Role::Child => child(&options),
        Role::Parent => {
            let process = Command::new(env::current_exe()?)
                .args(env::args_os().skip(1))
                .arg("--child")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            stream::stream_to(process, &options)
        }
    }
}
