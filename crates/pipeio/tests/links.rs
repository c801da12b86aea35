//! Every link that is not a pipe: what arrives is what was sent, at sizes around every boundary, with every wait policy.

use std::io::{self, ErrorKind};
use std::thread;

use pipeio::memory::Pages;
use pipeio::pattern::{Checker, Pattern, Rule};
use pipeio::recv::Receiver;
use pipeio::ring::{self, Access};
use pipeio::send::{Content, Sender};
use pipeio::wait::Wait;
use pipeio::{recv, send};

const RULE: Rule = Rule::Position { seed: 0x0123_4567_89ab_cdef };
const WAITS: [Wait; 3] = [Wait::Block, Wait::Poll, Wait::Spin];
const CONTENTS: [Content; 2] = [Content::Prepared, Content::Fresh];

fn send_options(block: usize, wait: Wait, content: Content) -> send::Options {
    send::Options { block, align: 0, pages: Pages::Base, wait, content }
}

fn recv_options(block: usize, wait: Wait) -> recv::Options {
    recv::Options { block, align: 0, pages: Pages::Base, wait }
}

/// Sends `blocks` blocks and the beginning of one more, says that this was all, and returns how many bytes it was.
fn send_all(mut sender: Box<dyn Sender + Send>, block: usize, content: Content, blocks: usize) -> io::Result<u64> {
    let pattern = pattern(content, block);
    if content == Content::Prepared {
        sender.prepare(&mut |position, bytes| pattern.fill(position, bytes))?;
    }
    let mut position = 0;
    for len in std::iter::repeat_n(block, blocks).chain([block.div_ceil(3)]) {
        if content == Content::Fresh {
            pattern.fill(position, sender.fresh(len)?);
        }
        assert_eq!(sender.send(len)?.bytes, len);
        position += len as u64;
    }
    sender.finish()?;
    Ok(position)
}

fn pattern(content: Content, block: usize) -> Pattern {
    match content {
        Content::Prepared => Pattern::repeating(RULE, block as u64),
        Content::Fresh => Pattern::endless(RULE),
    }
}

/// Receives until the end and compares every byte; returns how many came.
fn receive_all(mut receiver: Box<dyn Receiver + Send>, pattern: Pattern, block: usize, what: &str) -> u64 {
    let mut checker = Checker::new(pattern);
    let mut received = 0;
    loop {
        let piece = receiver.recv().unwrap_or_else(|error| panic!("{what}: {error}"));
        if piece.bytes == 0 {
            break;
        }
        assert!(piece.bytes <= block, "{what}: {} bytes in a block of {block}", piece.bytes);
        let data = piece.data.expect("the bytes are in memory");
        assert_eq!(data.len(), piece.bytes, "{what}");
        checker.check(data);
        received += piece.bytes as u64;
    }
    assert_eq!(receiver.recv().unwrap().bytes, 0, "{what}: the end is not the end");
    assert!(checker.fault().is_none(), "{what}: {}", checker.fault().unwrap());
    received
}

/// Moves `blocks` blocks from a sender to a receiver in another thread.
fn carry(
    what: &str,
    block: usize,
    read_block: usize,
    content: Content,
    blocks: usize,
    ends: (Box<dyn Sender + Send>, Box<dyn Receiver + Send>),
) {
    let what = format!("{what}, {content:?}, block {block}, read block {read_block}");
    let (sender, receiver) = ends;
    thread::scope(|scope| {
        let source = scope.spawn(|| send_all(sender, block, content, blocks));
        let received = receive_all(receiver, pattern(content, block), read_block, &what);
        assert_eq!(source.join().unwrap().unwrap(), received, "{what}");
    });
}

/// How many blocks of a size move a few hundred kilobytes, at least three.
fn enough(block: usize) -> usize {
    (300_000 / block).clamp(3, 3000)
}

fn ring_ends(
    bytes: usize,
    slot: usize,
    accesses: (Access, Access),
    (block, read_block): (usize, usize),
    (wait, content): (Wait, Content),
) -> (Box<dyn Sender + Send>, Box<dyn Receiver + Send>) {
    let fd = ring::create(bytes, slot).unwrap();
    let capacity = ring::capacity(&fd).unwrap();
    assert!(capacity >= bytes && capacity >= 2 * slot && capacity.is_multiple_of(slot));
    let other = fd.try_clone().unwrap();
    (
        ring::sender(fd, &send_options(block, wait, content), accesses.0).unwrap(),
        ring::receiver(other, &recv_options(read_block, wait), accesses.1).unwrap(),
    )
}

const ACCESSES: [(Access, Access); 4] = [
    (Access::Copy, Access::Copy),
    (Access::InPlace, Access::InPlace),
    (Access::Copy, Access::InPlace),
    (Access::InPlace, Access::Copy),
];

#[test]
fn a_ring_carries_blocks_of_every_size() {
    for accesses in ACCESSES {
        for content in CONTENTS {
            for block in [1, 7, 8, 63, 64, 65, 4095, 4096, 4097, 65536, 100_001usize] {
                for read_block in [block, block.div_ceil(2) + 1, 3 * block] {
                    for wait in [Wait::Block, Wait::Poll] {
                        let what = format!("ring {accesses:?}, {wait:?}");
                        let ends = ring_ends(20_000, block, accesses, (block, read_block), (wait, content));
                        carry(&what, block, read_block, content, enough(block), ends);
                    }
                }
            }
        }
    }
}

#[test]
fn spinning_ends_of_a_ring() {
    for accesses in ACCESSES {
        for block in [1, 4096, 65537] {
            let ends = ring_ends(1 << 20, block, accesses, (block, block), (Wait::Spin, Content::Fresh));
            carry(&format!("ring {accesses:?}, spinning"), block, block, Content::Fresh, enough(block), ends);
        }
    }
}

#[test]
fn ends_of_a_ring_that_wait_differently_still_wake_each_other() {
    for waits in [(Wait::Spin, Wait::Block), (Wait::Block, Wait::Spin), (Wait::Poll, Wait::Block)] {
        let fd = ring::create(128, 64).unwrap();
        let other = fd.try_clone().unwrap();
        let sender = ring::sender(fd, &send_options(64, waits.0, Content::Fresh), Access::InPlace).unwrap();
        let receiver = ring::receiver(other, &recv_options(64, waits.1), Access::InPlace).unwrap();
        carry(&format!("ring {waits:?}"), 64, 64, Content::Fresh, 20_000, (sender, receiver));
    }
}

#[test]
fn a_ring_takes_blocks_larger_than_itself_by_copy_only() {
    let ends = ring_ends(1000, 100, (Access::Copy, Access::Copy), (12_345, 7000), (Wait::Block, Content::Fresh));
    carry("small ring", 12_345, 7000, Content::Fresh, 20, ends);
    let fd = ring::create(1000, 100).unwrap();
    let refused = ring::sender(fd, &send_options(1001, Wait::Block, Content::Fresh), Access::InPlace);
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidInput);
}

#[test]
fn fresh_blocks_of_changing_length_run_over_the_end_of_a_ring() {
    let (mut sender, receiver) =
        ring_ends(1000, 100, (Access::InPlace, Access::InPlace), (100, 64), (Wait::Block, Content::Fresh));
    let pattern = pattern(Content::Fresh, 100);
    thread::scope(|scope| {
        let received = scope.spawn(|| receive_all(receiver, pattern, 64, "changing lengths"));
        let mut position = 0;
        for i in 0..5000 {
            let len = i * 37 % 100 + 1;
            pattern.fill(position, sender.fresh(len).unwrap());
            sender.send(len).unwrap();
            position += len as u64;
        }
        drop(sender);
        assert_eq!(received.join().unwrap(), position);
    });
}

#[test]
fn a_ring_makes_no_system_call_when_nobody_has_to_wait() {
    let (mut sender, mut receiver) =
        ring_ends(1 << 16, 64, (Access::InPlace, Access::InPlace), (64, 64), (Wait::Block, Content::Fresh));
    for _ in 0..5000 {
        sender.fresh(64).unwrap().fill(7);
        assert_eq!(sender.send(64).unwrap().calls, 0);
        let received = receiver.recv().unwrap();
        assert_eq!((received.bytes, received.calls), (64, 0));
    }
}

#[test]
fn a_ring_tells_each_end_that_the_other_left() {
    for access in [Access::Copy, Access::InPlace] {
        for wait in WAITS {
            let (mut sender, receiver) = ring_ends(1000, 100, (access, access), (100, 100), (wait, Content::Fresh));
            // Whatever the sender waits for or does when it happens.
            let reader = thread::spawn(move || {
                let mut receiver = receiver;
                receiver.recv().unwrap();
            });
            let error = loop {
                if let Err(error) = sender.fresh(100).map(|bytes| bytes.fill(1)).and_then(|()| sender.send(100)) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            reader.join().unwrap();

            let (sender, mut receiver) = ring_ends(1000, 100, (access, access), (100, 100), (wait, Content::Fresh));
            thread::scope(|scope| {
                scope.spawn(|| drop(sender));
                assert_eq!(receiver.recv().unwrap().bytes, 0);
            });
        }
    }
}

#[test]
fn an_end_of_a_ring_can_be_taken_once() {
    let fd = ring::create(1000, 100).unwrap();
    let send = || ring::sender(fd.try_clone().unwrap(), &send_options(100, Wait::Block, Content::Fresh), Access::Copy);
    let recv = || ring::receiver(fd.try_clone().unwrap(), &recv_options(100, Wait::Block), Access::Copy);
    let _ends = (send().unwrap(), recv().unwrap());
    assert_eq!(send().err().unwrap().kind(), ErrorKind::AddrInUse);
    assert_eq!(recv().err().unwrap().kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_ring_that_lies_is_an_error() {
    for access in [Access::Copy, Access::InPlace] {
        // The positions are the first words of the first and third line of 64 bytes.
        for position in [1u64 << 40, u64::MAX, 1001] {
            let fd = ring::create(1000, 100).unwrap();
            let mut receiver =
                ring::receiver(fd.try_clone().unwrap(), &recv_options(100, Wait::Block), access).unwrap();
            rustix::io::pwrite(&fd, &position.to_le_bytes(), 8).unwrap();
            assert_eq!(receiver.recv().unwrap_err().kind(), ErrorKind::InvalidData);

            let fd = ring::create(1000, 100).unwrap();
            let options = send_options(100, Wait::Block, Content::Fresh);
            let mut sender = ring::sender(fd.try_clone().unwrap(), &options, access).unwrap();
            rustix::io::pwrite(&fd, &position.to_le_bytes(), 2 * 64 + 8).unwrap();
            let error = loop {
                if let Err(error) = sender.fresh(100).map(|bytes| bytes.fill(1)).and_then(|()| sender.send(100)) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::InvalidData);
        }
    }
}

#[test]
fn what_is_no_ring_is_refused() {
    let options = recv_options(1, Wait::Block);
    let file = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let (lines, _shared) = pipeio::shared::Shared::create(1024).unwrap();
    for fd in [file, lines] {
        assert_eq!(ring::receiver(fd, &options, Access::Copy).err().unwrap().kind(), ErrorKind::InvalidInput);
    }
    assert!(ring::create(100, 0).is_err());
    assert!(ring::create(usize::MAX, 1).is_err());
    assert!(ring::create(1, usize::MAX).is_err());
    // A capacity larger than the memory.
    let fd = ring::create(1000, 100).unwrap();
    rustix::io::pwrite(&fd, &(1u64 << 40).to_le_bytes(), 8 * 64 + 16).unwrap();
    assert_eq!(ring::receiver(fd, &options, Access::Copy).err().unwrap().kind(), ErrorKind::InvalidInput);
}
