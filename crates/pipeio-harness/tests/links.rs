//! Links that are not pipes: the bytes that arrive are those sent, at sizes around every boundary, with every wait
//! policy.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread;

use pipeio_harness::buffer::Pages;
use pipeio_harness::message;
use pipeio_harness::mq;
use pipeio_harness::pattern::{Checker, Pattern, Rule};
use pipeio_harness::recv::Receiver;
use pipeio_harness::ring::{self, RingAccess};
use pipeio_harness::send::{BlockContent, Sender};
use pipeio_harness::wait::Wait;
use pipeio_harness::{recv, send};
use pipeio_harness::{vm, zerocopy};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

const RULE: Rule = Rule::Position { seed: 0x0123_4567_89ab_cdef };
const WAITS: [Wait; 3] = [Wait::Block, Wait::Poll, Wait::Spin];
const CONTENTS: [BlockContent; 2] = [BlockContent::Prepared, BlockContent::Fresh];

fn send_options(block: usize, wait: Wait, content: BlockContent) -> send::SendOptions {
    send::SendOptions { block, align: 0, pages: Pages::Base, wait, content }
}

fn recv_options(block: usize, wait: Wait) -> recv::RecvOptions {
    recv::RecvOptions { block, align: 0, pages: Pages::Base, wait }
}

/// Sends `blocks` blocks and the beginning of another block, marks the end, and returns the number of bytes sent.
fn send_all(mut sender: Box<dyn Sender + Send>, block: usize, content: BlockContent, blocks: usize) -> io::Result<u64> {
    let pattern = pattern(content, block);
    if content == BlockContent::Prepared {
        sender.prepare(&mut |position, bytes| pattern.fill(position, bytes))?;
    }
    let mut position = 0;
    for len in std::iter::repeat_n(block, blocks).chain([block.div_ceil(3)]) {
        if content == BlockContent::Fresh {
            pattern.fill(position, sender.fresh(len)?);
        }
        assert_eq!(sender.send(len)?.bytes, len);
        position += len as u64;
    }
    sender.finish()?;
    Ok(position)
}

fn pattern(content: BlockContent, block: usize) -> Pattern {
    match content {
        BlockContent::Prepared => Pattern::repeating(RULE, block as u64),
        BlockContent::Fresh => Pattern::endless(RULE),
    }
}

/// Receives until the end, compares every byte, and returns the number of bytes received.
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

/// Moves `blocks` blocks from a sender to a receiver that runs in another thread.
fn move_blocks(
    what: &str,
    block: usize,
    read_block: usize,
    content: BlockContent,
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

/// The number of blocks of this size that make a few hundred kilobytes, but at least three.
fn enough_blocks(block: usize) -> usize {
    (300_000 / block).clamp(3, 3000)
}

fn ring_ends(
    bytes: usize,
    slot: usize,
    accesses: (RingAccess, RingAccess),
    (block, read_block): (usize, usize),
    (wait, content): (Wait, BlockContent),
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

const ACCESSES: [(RingAccess, RingAccess); 4] = [
    (RingAccess::Copy, RingAccess::Copy),
    (RingAccess::InPlace, RingAccess::InPlace),
    (RingAccess::Copy, RingAccess::InPlace),
    (RingAccess::InPlace, RingAccess::Copy),
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
                        move_blocks(&what, block, read_block, content, enough_blocks(block), ends);
                    }
                }
            }
        }
    }
}

#[test]
fn spinning_ends_of_a_ring_move_all_bytes() {
    for accesses in ACCESSES {
        for block in [1, 4096, 65537] {
            let ends = ring_ends(1 << 20, block, accesses, (block, block), (Wait::Spin, BlockContent::Fresh));
            move_blocks(
                &format!("ring {accesses:?}, spinning"),
                block,
                block,
                BlockContent::Fresh,
                enough_blocks(block),
                ends,
            );
        }
    }
}

#[test]
fn ends_of_a_ring_that_wait_differently_still_wake_each_other() {
    for waits in [(Wait::Spin, Wait::Block), (Wait::Block, Wait::Spin), (Wait::Poll, Wait::Block)] {
        let fd = ring::create(128, 64).unwrap();
        let other = fd.try_clone().unwrap();
        let sender = ring::sender(fd, &send_options(64, waits.0, BlockContent::Fresh), RingAccess::InPlace).unwrap();
        let receiver = ring::receiver(other, &recv_options(64, waits.1), RingAccess::InPlace).unwrap();
        move_blocks(&format!("ring {waits:?}"), 64, 64, BlockContent::Fresh, 20_000, (sender, receiver));
    }
}

#[test]
fn a_ring_takes_blocks_larger_than_itself_by_copy_only() {
    let ends =
        ring_ends(1000, 100, (RingAccess::Copy, RingAccess::Copy), (12_345, 7000), (Wait::Block, BlockContent::Fresh));
    move_blocks("small ring", 12_345, 7000, BlockContent::Fresh, 20, ends);
    let fd = ring::create(1000, 100).unwrap();
    let refused = ring::sender(fd, &send_options(1001, Wait::Block, BlockContent::Fresh), RingAccess::InPlace);
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidInput);
}

#[test]
fn fresh_blocks_of_changing_length_run_over_the_end_of_a_ring() {
    let (mut sender, receiver) =
        ring_ends(1000, 100, (RingAccess::InPlace, RingAccess::InPlace), (100, 64), (Wait::Block, BlockContent::Fresh));
    let pattern = pattern(BlockContent::Fresh, 100);
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
    let (mut sender, mut receiver) = ring_ends(
        1 << 16,
        64,
        (RingAccess::InPlace, RingAccess::InPlace),
        (64, 64),
        (Wait::Block, BlockContent::Fresh),
    );
    for _ in 0..5000 {
        sender.fresh(64).unwrap().fill(7);
        assert_eq!(sender.send(64).unwrap().calls, 0);
        let received = receiver.recv().unwrap();
        assert_eq!((received.bytes, received.calls), (64, 0));
    }
}

#[test]
fn each_end_of_a_ring_learns_that_the_other_left() {
    for access in [RingAccess::Copy, RingAccess::InPlace] {
        for wait in WAITS {
            let (mut sender, receiver) =
                ring_ends(1000, 100, (access, access), (100, 100), (wait, BlockContent::Fresh));
            // The receiver may leave at any time, while the sender waits or while it works.
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

            let (sender, mut receiver) =
                ring_ends(1000, 100, (access, access), (100, 100), (wait, BlockContent::Fresh));
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
    let send = || {
        ring::sender(fd.try_clone().unwrap(), &send_options(100, Wait::Block, BlockContent::Fresh), RingAccess::Copy)
    };
    let recv = || ring::receiver(fd.try_clone().unwrap(), &recv_options(100, Wait::Block), RingAccess::Copy);
    let _ends = (send().unwrap(), recv().unwrap());
    assert_eq!(send().err().unwrap().kind(), ErrorKind::AddrInUse);
    assert_eq!(recv().err().unwrap().kind(), ErrorKind::AddrInUse);
}

#[test]
fn positions_outside_a_ring_are_an_error() {
    for access in [RingAccess::Copy, RingAccess::InPlace] {
        // The positions are the first words of the lines 0 and 2, which have 64 bytes.
        for position in [1u64 << 40, u64::MAX, 1001] {
            let fd = ring::create(1000, 100).unwrap();
            let mut receiver =
                ring::receiver(fd.try_clone().unwrap(), &recv_options(100, Wait::Block), access).unwrap();
            rustix::io::pwrite(&fd, &position.to_le_bytes(), 8).unwrap();
            assert_eq!(receiver.recv().unwrap_err().kind(), ErrorKind::InvalidData);

            let fd = ring::create(1000, 100).unwrap();
            let options = send_options(100, Wait::Block, BlockContent::Fresh);
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
fn a_mapping_that_is_not_a_ring_is_refused() {
    let options = recv_options(1, Wait::Block);
    let file = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let (lines, _shared) = pipeio_harness::shared::Shared::create(1024).unwrap();
    for fd in [file, lines] {
        assert_eq!(ring::receiver(fd, &options, RingAccess::Copy).err().unwrap().kind(), ErrorKind::InvalidInput);
    }
    assert!(ring::create(100, 0).is_err());
    assert!(ring::create(usize::MAX, 1).is_err());
    assert!(ring::create(1, usize::MAX).is_err());
    // A capacity larger than the memory.
    let fd = ring::create(1000, 100).unwrap();
    rustix::io::pwrite(&fd, &(1u64 << 40).to_le_bytes(), 8 * 64 + 16).unwrap();
    assert_eq!(ring::receiver(fd, &options, RingAccess::Copy).err().unwrap().kind(), ErrorKind::InvalidInput);
}

/// Message sizes around a limit, and sizes that aren't powers of two.
fn sizes_around(limit: usize) -> [usize; 8] {
    [1, 7, limit - 1, limit, limit + 1, 2 * limit, 2 * limit + 1, 9 * limit + 5]
}

fn socket_pair(kind: SocketType) -> (OwnedFd, OwnedFd) {
    rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap()
}

#[test]
fn sockets_for_messages_carry_blocks_of_every_size() {
    for kind in [SocketType::DGRAM, SocketType::SEQPACKET] {
        for wait in WAITS {
            for content in CONTENTS {
                for block in sizes_around(4096) {
                    for read_block in [block, block.div_ceil(3), 5000] {
                        let (near, far) = socket_pair(kind);
                        let sender = message::sender(near, &send_options(block, wait, content), 4096).unwrap();
                        let receiver = message::receiver(far, &recv_options(read_block, wait), 4096).unwrap();
                        let what = format!("{kind:?}, {wait:?}");
                        move_blocks(
                            &what,
                            block,
                            read_block,
                            content,
                            enough_blocks(block).min(20),
                            (sender, receiver),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_socket_carries_messages_up_to_its_limit_and_refuses_larger_ones() {
    for kind in [SocketType::DGRAM, SocketType::SEQPACKET] {
        let (near, far) = socket_pair(kind);
        let limit = message::limit(&near).unwrap();
        let options = send_options(limit + 1, Wait::Block, BlockContent::Fresh);
        let sender = message::sender(near.try_clone().unwrap(), &options, limit).unwrap();
        let receiver = message::receiver(far, &recv_options(limit, Wait::Block), limit).unwrap();
        move_blocks(&format!("{kind:?}"), limit + 1, limit, BlockContent::Fresh, 3, (sender, receiver));

        let (near, _far) = socket_pair(kind);
        let mut sender = message::sender(near, &options, limit + 1).unwrap();
        let error = sender.send(limit + 1).unwrap_err();
        assert!(error.to_string().contains(&limit.to_string()), "{error}");
    }
}

#[test]
fn a_truncated_message_is_an_error() {
    let (near, far) = socket_pair(SocketType::SEQPACKET);
    let mut sender = message::sender(near, &send_options(100, Wait::Block, BlockContent::Fresh), 100).unwrap();
    let mut receiver = message::receiver(far, &recv_options(200, Wait::Block), 99).unwrap();
    sender.send(100).unwrap();
    assert_eq!(receiver.recv().unwrap_err().kind(), ErrorKind::InvalidData);
}

#[test]
fn a_closed_peer_is_detected_where_the_kernel_reports_it() {
    for kind in [SocketType::DGRAM, SocketType::SEQPACKET] {
        let (near, far) = socket_pair(kind);
        drop(far);
        let mut sender = message::sender(near, &send_options(8, Wait::Block, BlockContent::Fresh), 8).unwrap();
        assert_eq!(sender.send(8).unwrap_err().kind(), ErrorKind::BrokenPipe, "{kind:?}");
    }
    // Messages still arrive after their sender has left without reading the messages sent to it.
    let (near, far) = socket_pair(SocketType::SEQPACKET);
    rustix::net::send(&far, b"unread", rustix::net::SendFlags::empty()).unwrap();
    let mut sender = message::sender(near, &send_options(8, Wait::Block, BlockContent::Fresh), 8).unwrap();
    let mut receiver = message::receiver(far, &recv_options(8, Wait::Block), 8).unwrap();
    sender.send(8).unwrap();
    drop(sender);
    assert_eq!(receiver.recv().unwrap().bytes, 8);
    assert_eq!(receiver.recv().unwrap().bytes, 0);
}

#[test]
fn stream_sockets_are_refused_for_messages() {
    let (near, _far) = socket_pair(SocketType::STREAM);
    assert!(message::receiver(near, &recv_options(8, Wait::Block), 8).is_err());
}

/// A POSIX queue whose name is removed at once. No other test uses that name.
fn posix_queue(message: usize) -> OwnedFd {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("/pipeio-test-{}-{number}", std::process::id());
    let fd = mq::posix::create(&name, message, 4).unwrap();
    assert_eq!(mq::posix::create(&name, message, 4).unwrap_err().kind(), ErrorKind::AlreadyExists);
    mq::posix::unlink(&name).unwrap();
    assert_eq!(mq::posix::unlink(&name).unwrap_err().kind(), ErrorKind::NotFound, "{name} is still there");
    fd
}

#[test]
fn posix_queues_carry_blocks_of_every_size() {
    if let Err(error) = mq::posix::limits() {
        return eprintln!("skipped: {error}");
    }
    for limit in [100, 4096] {
        for wait in WAITS {
            for content in CONTENTS {
                for block in sizes_around(limit) {
                    for read_block in [block, block.div_ceil(3), limit + 1] {
                        let fd = posix_queue(limit);
                        assert_eq!(mq::posix::message_size(&fd).unwrap(), limit);
                        let other = fd.try_clone().unwrap();
                        let options = send_options(block, wait, content);
                        let sender = mq::posix::sender(fd, &options, limit).unwrap();
                        let receiver = mq::posix::receiver(other, &recv_options(read_block, wait), limit).unwrap();
                        let what = format!("POSIX queue of {limit}, {wait:?}");
                        move_blocks(
                            &what,
                            block,
                            read_block,
                            content,
                            enough_blocks(block).min(20),
                            (sender, receiver),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_error_for_a_posix_queue_above_the_limits_names_its_size() {
    let Ok(limits) = mq::posix::limits() else { return };
    let error = mq::posix::create("/pipeio-test-large", 1 << 30, limits.messages).unwrap_err().to_string();
    assert!(error.contains("1073741824 bytes"), "{error}");
    assert!(mq::posix::create("/pipeio/test", 8, 8).is_err());
}

#[test]
fn system_v_queues_carry_blocks_of_every_size() {
    let limits = match mq::sysv::limits() {
        Ok(limits) => limits,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    for wait in WAITS {
        for content in CONTENTS {
            for block in sizes_around(limits.message_bytes) {
                for read_block in [block, block.div_ceil(3), limits.message_bytes + 1] {
                    let id = mq::sysv::create(0).unwrap();
                    let limit = mq::sysv::message_size(id).unwrap();
                    assert!(limit <= limits.message_bytes && limit <= limits.queue_bytes);
                    let sender = mq::sysv::sender(id, &send_options(block, wait, content)).unwrap();
                    let receiver = mq::sysv::receiver(id, &recv_options(read_block, wait)).unwrap();
                    let what = format!("System V queue, {wait:?}");
                    move_blocks(&what, block, read_block, content, enough_blocks(block).min(20), (sender, receiver));
                    mq::sysv::remove(id).unwrap();
                    assert!(mq::sysv::message_size(id).is_err(), "the queue is still there");
                }
            }
        }
    }
}

#[test]
fn ends_that_wait_on_a_removed_system_v_queue_fail() {
    if mq::sysv::limits().is_err() {
        return;
    }
    for wait in WAITS {
        let id = mq::sysv::create(0).unwrap();
        let mut sender = mq::sysv::sender(id, &send_options(8192, wait, BlockContent::Fresh)).unwrap();
        let full = thread::spawn(move || {
            loop {
                if let Err(error) = sender.send(8192) {
                    break error.kind();
                }
            }
        });
        thread::sleep(std::time::Duration::from_millis(20));
        mq::sysv::remove(id).unwrap();
        assert_eq!(full.join().unwrap(), ErrorKind::BrokenPipe);

        let id = mq::sysv::create(0).unwrap();
        let mut receiver = mq::sysv::receiver(id, &recv_options(8192, wait)).unwrap();
        let empty = thread::spawn(move || receiver.recv().unwrap_err().kind());
        thread::sleep(std::time::Duration::from_millis(20));
        mq::sysv::remove(id).unwrap();
        assert_eq!(empty.join().unwrap(), ErrorKind::BrokenPipe);
    }
}

#[test]
fn private_memory_is_read_in_blocks_of_every_size() {
    if let Err(error) = pipeio_harness::probe::process_vm_readv() {
        return eprintln!("skipped: {error}");
    }
    for wait in WAITS {
        for content in CONTENTS {
            for block in [1usize, 7, 4095, 4096, 4097, 65536, 100_001, 3 << 20] {
                for read_block in [block, block.div_ceil(2) + 1, 2 * block] {
                    let fd = vm::create().unwrap();
                    let other = fd.try_clone().unwrap();
                    let sender = vm::sender(fd, &send_options(block, wait, content)).unwrap();
                    let receiver = vm::receiver(other, &recv_options(read_block, wait)).unwrap();
                    let blocks = (3 * vm::RING_BYTES / block).clamp(3, 500);
                    move_blocks(&format!("vm, {wait:?}"), block, read_block, content, blocks, (sender, receiver));
                }
            }
        }
    }
}

#[test]
fn private_memory_freed_before_it_was_read_is_an_error() {
    if pipeio_harness::probe::process_vm_readv().is_err() {
        return;
    }
    let fd = vm::create().unwrap();
    let mut receiver = vm::receiver(fd.try_clone().unwrap(), &recv_options(100, Wait::Block)).unwrap();
    let mut sender = vm::sender(fd, &send_options(100, Wait::Block, BlockContent::Fresh)).unwrap();
    for _ in 0..2 {
        sender.fresh(100).unwrap().fill(1);
        sender.send(100).unwrap();
    }
    assert_eq!(receiver.recv().unwrap().bytes, 100);
    drop(sender);
    assert_eq!(receiver.recv().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_sender_of_private_memory_learns_that_its_receiver_left() {
    let fd = vm::create().unwrap();
    let receiver = vm::receiver(fd.try_clone().unwrap(), &recv_options(100, Wait::Block)).unwrap();
    let mut sender = vm::sender(fd, &send_options(100, Wait::Block, BlockContent::Fresh)).unwrap();
    sender.send(100).unwrap();
    drop(receiver);
    assert_eq!(sender.send(100).unwrap_err().kind(), ErrorKind::BrokenPipe);
    sender.finish().unwrap();
}

#[test]
#[ignore = "soak: it waits for ten seconds"]
fn soak_a_sender_of_private_memory_does_not_wait_for_ever_for_a_receiver() {
    let fd = vm::create().unwrap();
    let mut sender = vm::sender(fd, &send_options(100, Wait::Block, BlockContent::Fresh)).unwrap();
    assert_eq!(sender.send(100).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn an_invalid_link_for_private_memory_is_refused() {
    let (lines, _shared) = pipeio_harness::shared::Shared::create(1).unwrap();
    assert!(vm::receiver(lines, &recv_options(1, Wait::Block)).is_err());
    let fd = vm::create().unwrap();
    let _receiver = vm::receiver(fd.try_clone().unwrap(), &recv_options(1, Wait::Block)).unwrap();
    assert!(vm::receiver(fd, &recv_options(1, Wait::Block)).is_err(), "a second receiver");
}

const CHILD_BLOCK: usize = 5000;
const CHILD_BLOCKS: usize = 2000;

/// Runs [`child`] in a separate process, with the link as its standard input.
fn spawn(role: &str, link: impl AsFd) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "links::child", "--ignored", "--nocapture"])
        .env("PIPEIO_TEST_ROLE", role)
        .stdin(Stdio::from(link.as_fd().try_clone_to_owned().unwrap()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the other process of other tests"]
fn child() {
    let Ok(role) = std::env::var("PIPEIO_TEST_ROLE") else { return };
    let link = io::stdin().as_fd().try_clone_to_owned().unwrap();
    let recv_options = recv_options(3000, Wait::Block);
    let send_options = send_options(CHILD_BLOCK, Wait::Block, BlockContent::Fresh);
    let pattern = pattern(BlockContent::Fresh, CHILD_BLOCK);
    let received = |receiver| {
        let bytes = receive_all(receiver, pattern, 3000, &role);
        assert_eq!(bytes, (CHILD_BLOCK * CHILD_BLOCKS + CHILD_BLOCK.div_ceil(3)) as u64);
    };
    match role.as_str() {
        "ring copy" => received(ring::receiver(link, &recv_options, RingAccess::Copy).unwrap()),
        "ring in place" => received(ring::receiver(link, &recv_options, RingAccess::InPlace).unwrap()),
        "vm" => received(vm::receiver(link, &recv_options).unwrap()),
        "vm sender" => {
            let mut sender = vm::sender(link, &send_options).unwrap();
            for _ in 0..2 {
                sender.send(CHILD_BLOCK).unwrap();
            }
            io::stdout().write_all(b"sent\n").unwrap();
            // The child sleeps until the parent kills it. The limit is for a test that fails.
            thread::sleep(std::time::Duration::from_secs(30));
        }
        _ => panic!("{role}"),
    }
}

#[test]
fn rings_reach_another_process() {
    for (role, access) in [("ring copy", RingAccess::Copy), ("ring in place", RingAccess::InPlace)] {
        let fd = ring::create(1 << 16, CHILD_BLOCK).unwrap();
        let mut child = spawn(role, &fd);
        let sender = ring::sender(fd, &send_options(CHILD_BLOCK, Wait::Block, BlockContent::Fresh), access).unwrap();
        send_all(sender, CHILD_BLOCK, BlockContent::Fresh, CHILD_BLOCKS).unwrap();
        assert!(child.wait().unwrap().success(), "{role}");
    }
}

#[test]
fn private_memory_is_read_by_another_process() {
    if pipeio_harness::probe::process_vm_readv().is_err() {
        return;
    }
    let fd = vm::create().unwrap();
    let mut child = spawn("vm", &fd);
    let sender = vm::sender(fd, &send_options(CHILD_BLOCK, Wait::Block, BlockContent::Fresh)).unwrap();
    send_all(sender, CHILD_BLOCK, BlockContent::Fresh, CHILD_BLOCKS).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_killed_sender_of_private_memory_is_an_error_and_not_a_wrong_block() {
    if pipeio_harness::probe::process_vm_readv().is_err() {
        return;
    }
    let fd = vm::create().unwrap();
    let mut receiver = vm::receiver(fd.try_clone().unwrap(), &recv_options(CHILD_BLOCK, Wait::Block)).unwrap();
    let mut child = spawn("vm sender", &fd);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("sent")));
    assert_eq!(receiver.recv().unwrap().bytes, CHILD_BLOCK);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(receiver.recv().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

fn tcp_pair() -> (OwnedFd, OwnedFd) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, peer) = listener.accept().unwrap();
    assert_eq!(peer, near.local_addr().unwrap());
    (near.into(), far.into())
}

#[test]
fn zero_copy_sends_carry_blocks_of_every_size() {
    for wait in WAITS {
        for content in CONTENTS {
            for block in [1usize, 7, 4095, 4096, 4097, 65536, 100_001, 3 << 20] {
                let (near, far) = tcp_pair();
                let sender = match zerocopy::sender(near, &send_options(block, wait, content)) {
                    Ok(sender) => sender,
                    Err(error) if error.kind() == ErrorKind::Unsupported => return eprintln!("skipped: {error}"),
                    Err(error) => panic!("{error}"),
                };
                let read_block = block.div_ceil(2) + 1;
                let receiver = recv::open(recv::ReceiveCall::Read, far, &recv_options(read_block, wait)).unwrap();
                // Several times the size of the memory for fresh blocks.
                let blocks = ((12 << 20) / block).clamp(3, 2000);
                move_blocks(&format!("zero copy, {wait:?}"), block, read_block, content, blocks, (sender, receiver));
            }
        }
    }
}

#[test]
fn memory_of_zero_copy_sends_is_not_reused_while_the_receiver_is_slow() {
    let (near, far) = tcp_pair();
    let block = 1 << 20;
    // More than the memory for fresh blocks, if this process may request such a buffer; otherwise more than the socket
    // accepts.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size_force(&near, 16 << 20);
    let Ok(sender) = zerocopy::sender(near, &send_options(block, Wait::Block, BlockContent::Fresh)) else { return };
    let receiver = recv::open(recv::ReceiveCall::Read, far, &recv_options(block, Wait::Block)).unwrap();
    let pattern = pattern(BlockContent::Fresh, block);
    thread::scope(|scope| {
        let source = scope.spawn(|| send_all(sender, block, BlockContent::Fresh, 40));
        thread::sleep(std::time::Duration::from_millis(200));
        let received = receive_all(receiver, pattern, block, "slow receiver");
        assert_eq!(source.join().unwrap().unwrap(), received);
    });
}

#[test]
fn zero_copy_reports_that_loopback_copies() {
    let (near, far) = tcp_pair();
    let Ok(mut sender) = zerocopy::sender(near, &send_options(65536, Wait::Block, BlockContent::Fresh)) else { return };
    assert_eq!(sender.note(), None);
    let mut receiver = recv::open(recv::ReceiveCall::Read, far, &recv_options(65536, Wait::Block)).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || while receiver.recv().unwrap().bytes > 0 {});
        // More sends than can be in flight, so completions must be collected.
        for _ in 0..200 {
            sender.fresh(65536).unwrap().fill(1);
            sender.send(65536).unwrap();
        }
        sender.finish().unwrap();
        assert!(sender.note().unwrap().contains("copied"));
        drop(sender);
    });
}

#[test]
fn a_zero_copy_sender_learns_that_its_receiver_left() {
    for wait in WAITS {
        let (near, far) = tcp_pair();
        let Ok(mut sender) = zerocopy::sender(near, &send_options(65536, wait, BlockContent::Fresh)) else { return };
        let reader = thread::spawn(move || {
            let mut receiver = recv::open(recv::ReceiveCall::Read, far, &recv_options(4096, Wait::Block)).unwrap();
            receiver.recv().unwrap();
        });
        let error = loop {
            if let Err(error) = sender.fresh(65536).map(|bytes| bytes.fill(1)).and_then(|()| sender.send(65536)) {
                break error.kind();
            }
        };
        assert!([ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error), "{error}");
        reader.join().unwrap();
    }
}

#[test]
fn sockets_without_zero_copy_are_unsupported() {
    let (near, _far) = socket_pair(SocketType::STREAM);
    let refused = zerocopy::sender(near, &send_options(8, Wait::Block, BlockContent::Fresh));
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::Unsupported);
}

/// Blocks in a ring are never lent as slices, because any process with the descriptor can write to them.
#[test]
fn shared_memory_is_not_exposed_as_a_slice() {
    let fd = ring::create(1000, 100).unwrap();
    let both = |fd: &OwnedFd| (fd.try_clone().unwrap(), fd.try_clone().unwrap());
    let (near, far) = both(&fd);
    let mut sender =
        ring::sender(near, &send_options(100, Wait::Block, BlockContent::Fresh), RingAccess::InPlace).unwrap();
    let mut receiver = ring::receiver(far, &recv_options(100, Wait::Block), RingAccess::InPlace).unwrap();
    sender.fresh(100).unwrap().fill(1);
    sender.send(100).unwrap();
    let data = receiver.recv().unwrap().data.unwrap();
    assert!(data.as_slice().is_none());
    assert_eq!(data.get(99), 1);
    rustix::io::pwrite(&fd, &[2; 100], rustix::param::page_size() as u64).unwrap();
    assert_eq!(data.get(99), 2, "it lies where it can be written to");
}

#[test]
fn content_in_flight_is_not_prepared_again() {
    let fd = ring::create(1000, 100).unwrap();
    let mut senders =
        vec![ring::sender(fd, &send_options(100, Wait::Block, BlockContent::Prepared), RingAccess::InPlace).unwrap()];
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    senders.push(zerocopy::sender(stream.into(), &send_options(100, Wait::Block, BlockContent::Prepared)).unwrap());
    for mut sender in senders {
        sender.prepare(&mut |_, bytes| bytes.fill(1)).unwrap();
        assert_eq!(sender.prepare(&mut |_, bytes| bytes.fill(2)).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
