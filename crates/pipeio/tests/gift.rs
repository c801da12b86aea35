//! Memory that was given away arrives complete and never changes afterwards.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;

use pipeio::gift::{GiftWriter, Sent};
use pipeio::wait::{Direction, until_ready};
use pipeio::{Gift, Gifts, Pipe};

const MANY: usize = 128 << 10;

fn filled(gifts: &mut Gifts, len: usize, byte: u8) -> Gift {
    let mut gift = gifts.gift(len).unwrap();
    assert!(gift.iter().all(|&byte| byte == 0), "memory that was used before");
    gift.fill(byte);
    gift
}

/// Sends 40 MiB to readers that keep all of it in pipes until the end.
#[test]
fn pages_held_by_readers_never_change() {
    let mut gifts = Gifts::new();
    let kept: Vec<Pipe> = (1..=160)
        .map(|byte| {
            let link = Pipe::with_capacity(MANY * 2).unwrap();
            let kept = Pipe::with_capacity(MANY * 2).unwrap();
            // Send less if the pipes are smaller than requested.
            let len = (MANY * 2).min(link.capacity().unwrap()).min(kept.capacity().unwrap());
            filled(&mut gifts, len, byte).send(&link.writer).unwrap();
            let flags = rustix::pipe::SpliceFlags::NONBLOCK;
            while rustix::pipe::splice(&link.reader, None, &kept.writer, None, len, flags).is_ok_and(|moved| moved > 0)
            {
            }
            kept
        })
        .collect();
    for (mut kept, byte) in kept.into_iter().zip(1u8..) {
        drop(kept.writer);
        let mut bytes = Vec::new();
        kept.reader.read_to_end(&mut bytes).unwrap();
        assert!(!bytes.is_empty() && bytes.iter().all(|&got| got == byte), "gift {byte} changed");
    }
}

#[test]
fn gifts_held_by_readers_are_not_reused() {
    let mut gifts = Gifts::new();
    let kept: Vec<Gift> = (1..=40).map(|byte| filled(&mut gifts, 1 << 20, byte)).collect();
    for (gift, byte) in kept.iter().zip(1u8..) {
        assert!(gift.iter().all(|&got| got == byte), "gift {byte}");
    }
    drop(kept);
    assert_eq!(filled(&mut gifts, 20 << 20, 1).len(), 20 << 20);
    assert_eq!(gifts.gift(usize::MAX).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert_eq!(filled(&mut gifts, 0, 1).len(), 0);
}

#[test]
fn the_result_tells_whether_pages_were_taken() {
    let mut gifts = Gifts::new();
    let pipe = Pipe::with_capacity(MANY).unwrap();
    if pipe.capacity().unwrap() >= MANY {
        assert_eq!(filled(&mut gifts, MANY, 1).send(&pipe.writer).unwrap(), Sent::GivenAway);
    }
    let pipe = Pipe::new().unwrap();
    assert_eq!(filled(&mut gifts, 100, 1).send(&pipe.writer).unwrap(), Sent::Copied);
    let null = File::options().write(true).open("/dev/null").unwrap();
    assert_eq!(filled(&mut gifts, MANY, 1).send(null).unwrap(), Sent::Copied);
    let (near, mut far) = UnixStream::pair().unwrap();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).unwrap();
        bytes
    });
    assert_eq!(filled(&mut gifts, MANY, 7).send(near).unwrap(), Sent::Copied);
    assert!(reader.join().unwrap() == [7; MANY]);
}

/// On a read end, vmsplice(2) would write to the gift.
#[test]
fn a_read_end_is_refused() {
    let mut pipe = Pipe::new().unwrap();
    pipe.writer.write_all(&[9; 50_000]).unwrap();
    let unsent = filled(&mut Gifts::new(), MANY, 1).send(&pipe.reader).unwrap_err();
    assert_eq!(unsent.error.raw_os_error(), Some(9), "EBADF");
    assert!(unsent.gift.len() == MANY && unsent.gift.iter().all(|&byte| byte == 1));
}

#[test]
fn a_reader_that_is_gone_is_an_error() {
    let pipe = Pipe::new().unwrap();
    drop(pipe.reader);
    let unsent = filled(&mut Gifts::new(), MANY, 1).send(&pipe.writer).unwrap_err();
    assert_eq!((unsent.error.kind(), unsent.gift.len()), (ErrorKind::BrokenPipe, MANY));
}

/// A full pipe returns the unsent rest, and nothing is lost or sent twice.
#[test]
fn a_non_blocking_end_hands_back_the_rest() {
    let mut pipe = Pipe::new().unwrap();
    rustix::io::ioctl_fionbio(pipe.writer.as_fd(), true).unwrap();
    let mut gift = Gifts::new().gift(1_000_003).unwrap();
    for (at, byte) in gift.iter_mut().enumerate() {
        *byte = (at % 251) as u8;
    }
    let expected = gift.to_vec();
    // Nothing reads yet, and the gift is larger than the pipe.
    let mut unsent = gift.send(&pipe.writer).unwrap_err();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.reader.read_to_end(&mut bytes).unwrap();
        bytes
    });
    loop {
        assert_eq!(unsent.error.kind(), ErrorKind::WouldBlock);
        assert!(!unsent.gift.is_empty());
        until_ready(&pipe.writer, Direction::Out).unwrap();
        match unsent.gift.send(&pipe.writer) {
            Err(error) => unsent = error,
            Ok(_) => break,
        }
    }
    drop(pipe.writer);
    assert!(reader.join().unwrap() == expected);
}

/// Writes pieces of many lengths, to a blocking and to a non-blocking end.
#[test]
fn a_writer_gathers_and_sends_everything() {
    for nonblocking in [false, true] {
        let mut pipe = Pipe::new().unwrap();
        rustix::io::ioctl_fionbio(pipe.writer.as_fd(), nonblocking).unwrap();
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.reader.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let mut writer = GiftWriter::new(pipe.writer);
        let mut expected = Vec::new();
        for len in (0..400).map(|n| n * n % 9001) {
            let piece = vec![(len % 251) as u8; len];
            let mut rest = &piece[..];
            while !rest.is_empty() {
                match writer.write(rest) {
                    Ok(taken) => rest = &rest[taken..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        until_ready(writer.get_ref(), Direction::Out).unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            expected.extend(piece);
        }
        while let Err(error) = writer.flush() {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            until_ready(writer.get_ref(), Direction::Out).unwrap();
        }
        drop(writer);
        assert!(reader.join().unwrap() == expected, "non-blocking {nonblocking}");
    }
}
