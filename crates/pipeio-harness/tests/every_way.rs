//! Combines every sender with every receiver, wait policy and page kind: the bytes that arrive are the bytes sent.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::thread;

use pipeio::pipe::{Pipe, set_capacity};
use pipeio_harness::buffer::{Bytes, Pages};
use pipeio_harness::recv::ReceiveCall as Recv;
use pipeio_harness::send::{BlockContent, SendCall as Send};
use pipeio_harness::wait::Wait;
use pipeio_harness::{recv, send};

const SENDERS: [Send; 7] =
    [Send::Write, Send::Vmsplice, Send::VmspliceGift, Send::Sendfile, Send::Splice, Send::Tee, Send::IoUring];
const RECEIVERS: [Recv; 4] = [Recv::Read, Recv::Splice, Recv::Vmsplice, Recv::IoUring];

/// A byte that depends on its position. The bytes have no period of a page or a block.
fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

struct Trial {
    send: Send,
    recv: Recv,
    wait: Wait,
    pages: Pages,
    content: BlockContent,
    block: usize,
    read_block: usize,
    align: usize,
    capacity: usize,
}

impl Trial {
    /// Moves `total` bytes in whole blocks, and compares each block that the receiver sees.
    fn run(&self, total: usize) {
        let what = format!(
            "{:?} to {:?}, {:?}, {:?}, {:?}, block {}",
            self.send, self.recv, self.wait, self.pages, self.content, self.block
        );
        let pipe = Pipe::new().unwrap();
        set_capacity(&pipe.writer, self.capacity).unwrap();
        let options = send::SendOptions {
            block: self.block,
            align: self.align,
            pages: self.pages,
            wait: self.wait,
            content: self.content,
        };
        let mut sender = send::open(self.send, pipe.writer, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
        let period = match self.content {
            BlockContent::Fresh => u64::MAX,
            BlockContent::Prepared => send::period(self.send, self.block) as u64,
        };
        let options =
            recv::RecvOptions { block: self.read_block, align: self.align, pages: self.pages, wait: self.wait };
        let blocks = total.div_ceil(self.block);
        let (block, content, method) = (self.block, self.content, self.recv);
        let source = thread::spawn(move || {
            let fill = |position: u64, bytes: &mut [u8]| {
                for (i, byte) in bytes.iter_mut().enumerate() {
                    *byte = byte_at(position + i as u64);
                }
            };
            if content == BlockContent::Prepared {
                sender.prepare(&mut |position, bytes| fill(position, bytes)).unwrap();
            }
            let mut bytes = vec![0; block];
            for i in 0..blocks {
                if content == BlockContent::Fresh {
                    fill((i * block) as u64, &mut bytes);
                    sender.fresh(block).unwrap().copy_from(&bytes);
                }
                assert_eq!(sender.send(block).unwrap().bytes, block);
            }
        });
        let mut receiver = recv::open(method, pipe.reader, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
        let mut position = 0u64;
        loop {
            let received = receiver.recv().unwrap();
            if received.bytes == 0 {
                break;
            }
            for (i, &byte) in received.data.and_then(Bytes::as_slice).unwrap_or_default().iter().enumerate() {
                let at = position + i as u64;
                assert_eq!(byte, byte_at(at % period), "{what}: byte {at}");
            }
            position += received.bytes as u64;
        }
        assert_eq!(position, (blocks * block) as u64, "{what}");
        source.join().unwrap();
    }
}

#[test]
fn every_sender_works_with_every_receiver() {
    for send in SENDERS {
        for recv in RECEIVERS {
            for wait in [Wait::Block, Wait::Poll] {
                for pages in [Pages::Base, Pages::Huge] {
                    Trial {
                        send,
                        recv,
                        wait,
                        pages,
                        content: BlockContent::Prepared,
                        block: 20480,
                        read_block: 12000,
                        align: 0,
                        capacity: 65536,
                    }
                    .run(1 << 20);
                }
            }
        }
    }
}

#[test]
fn several_blocks_move_in_one_call() {
    const BLOCK: usize = 4096;
    for send in SENDERS {
        for recv in RECEIVERS {
            let pipe = Pipe::new().unwrap();
            let mut sender = send::open(send, pipe.writer, &options(BLOCK, BlockContent::Prepared)).unwrap();
            sender.prepare(&mut |_, bytes| bytes.fill(b'x')).unwrap();
            let options = recv::RecvOptions { block: BLOCK, align: 0, pages: Pages::Base, wait: Wait::Block };
            let mut receiver = recv::open(recv, pipe.reader, &options).unwrap();
            assert_eq!(sender.send_blocks(BLOCK, 6).unwrap().bytes, 6 * BLOCK);
            drop(sender);
            let what = format!("{send:?} {recv:?}");
            let by_number = receiver.recv_blocks(2, usize::MAX).unwrap();
            assert_eq!((by_number.blocks, by_number.bytes, by_number.ended), (2, 2 * BLOCK, false), "{what}");
            let by_bytes = receiver.recv_blocks(16, BLOCK + 1).unwrap();
            assert_eq!((by_bytes.blocks, by_bytes.bytes, by_bytes.ended), (2, 2 * BLOCK, false), "{what}");
            let rest = receiver.recv_blocks(16, usize::MAX).unwrap();
            assert_eq!((rest.blocks, rest.bytes, rest.ended), (2, 2 * BLOCK, true), "{what}");
            assert!(rest.calls >= 3, "{what}");
        }
    }
}

#[test]
fn splice_reaches_a_socket_through_a_pipe() {
    for (wait, block) in [(Wait::Block, 1), (Wait::Poll, 5000), (Wait::Block, 65536), (Wait::Spin, 300_001)] {
        let (source, mut sink) = UnixStream::pair().unwrap();
        let options = send::SendOptions { block, align: 0, pages: Pages::Base, wait, content: BlockContent::Prepared };
        let mut sender = send::open(Send::Splice, source, &options).unwrap();
        let fill = |position: u64, bytes: &mut [u8]| {
            (position..).zip(bytes).for_each(|(at, byte)| *byte = byte_at(at));
        };
        sender.prepare(&mut { fill }).unwrap();
        let (period, total) = (send::period(Send::Splice, block), 20 * block);
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            sink.read_to_end(&mut bytes).unwrap();
            bytes
        });
        for _ in 0..20 {
            let moved = sender.send(block).unwrap();
            // A call to the pipe, and another to the socket.
            assert!(moved.bytes == block && moved.calls >= 2, "{moved:?}");
        }
        drop(sender);
        let expected: Vec<u8> = (0..total).map(|at| byte_at((at % period) as u64)).collect();
        assert!(reader.join().unwrap() == expected, "{wait:?}, block {block}");
    }
}

#[test]
fn spinning_ends_move_the_same_bytes() {
    for send in SENDERS {
        for recv in RECEIVERS {
            Trial {
                send,
                recv,
                wait: Wait::Spin,
                pages: Pages::Base,
                content: BlockContent::Prepared,
                block: 65536,
                read_block: 65536,
                align: 0,
                capacity: 65536,
            }
            .run(1 << 17);
        }
    }
}

#[test]
fn fresh_content_survives_memory_being_reused() {
    reuse_memory(&[(100_001, 24), (777, 3)]);
}

#[test]
#[ignore = "long"]
fn long_fresh_content_survives_memory_being_reused() {
    reuse_memory(&[(1 << 20, 0), (777, 0)]);
}

fn reuse_memory(blocks: &[(usize, usize)]) {
    for send in [Send::Write, Send::Vmsplice, Send::VmspliceGift, Send::IoUring] {
        for recv in [Recv::Read, Recv::Vmsplice] {
            for pages in [Pages::Base, Pages::Huge] {
                for &(block, align) in blocks {
                    Trial {
                        send,
                        recv,
                        wait: Wait::Block,
                        pages,
                        content: BlockContent::Fresh,
                        block,
                        read_block: 1 << 16,
                        align,
                        capacity: 1 << 20,
                    }
                    .run(if block < 1000 { 1 << 20 } else { 20 << 20 });
                }
            }
        }
    }
}

#[test]
fn odd_blocks_move_through_small_pipes() {
    for send in SENDERS {
        for block in [1, 2, 255, 4095, 4096, 8192] {
            Trial {
                send,
                recv: Recv::Read,
                wait: Wait::Block,
                pages: Pages::Base,
                content: BlockContent::Prepared,
                block,
                read_block: 100,
                align: 0,
                capacity: 4096,
            }
            .run(20_000);
        }
    }
}

#[test]
fn pages_given_away_stay_as_they_were_when_spliced_onwards() {
    let link = Pipe::new().unwrap();
    let options = send::SendOptions {
        block: 4096,
        align: 0,
        pages: Pages::Base,
        wait: Wait::Block,
        content: BlockContent::Fresh,
    };
    let mut sender = send::open(Send::Vmsplice, link.writer, &options).unwrap();
    // A second pipe takes over the pages, so that the sender sees only its own empty pipe.
    let kept = Pipe::new().unwrap();
    for value in 0..16 {
        sender.fresh(4096).unwrap().fill(value);
        sender.send(4096).unwrap();
        rustix::pipe::splice(&link.reader, None, &kept.writer, None, 4096, rustix::pipe::SpliceFlags::empty()).unwrap();
    }
    // The sender uses its memory several times.
    let discard = thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while rustix::io::read(&link.reader, &mut buffer).unwrap() > 0 {}
    });
    for _ in 0..10_000 {
        sender.fresh(4096).unwrap().fill(0xff);
        sender.send(4096).unwrap();
    }
    drop(sender);
    discard.join().unwrap();
    for value in 0..16 {
        let mut page = [0; 4096];
        assert_eq!(rustix::io::read(&kept.reader, &mut page).unwrap(), 4096);
        assert!(page.iter().all(|&byte| byte == value), "page {value} was overwritten while in flight");
    }
}

#[test]
fn an_early_end_of_the_reader_is_a_broken_pipe() {
    for method in SENDERS {
        let pipe = Pipe::new().unwrap();
        let options = send::SendOptions {
            block: 4096,
            align: 0,
            pages: Pages::Base,
            wait: Wait::Block,
            content: BlockContent::Prepared,
        };
        let mut sender = send::open(method, pipe.writer, &options).unwrap();
        sender.prepare(&mut |_, bytes| bytes.fill(1)).unwrap();
        drop(pipe.reader);
        assert_eq!(sender.send(4096).unwrap_err().kind(), std::io::ErrorKind::BrokenPipe, "{method:?}");
    }
}

/// Preparing content again would change bytes in flight, or wait forever for room in a full store.
#[test]
fn content_in_flight_is_not_prepared_again() {
    for method in [Send::Vmsplice, Send::VmspliceGift, Send::Sendfile, Send::Splice, Send::Tee] {
        for sent in [false, true] {
            let pipe = Pipe::new().unwrap();
            let options = options(4096, BlockContent::Prepared);
            let mut sender = send::open(method, pipe.writer, &options).unwrap();
            sender.prepare(&mut |_, bytes| bytes.fill(1)).unwrap();
            if sent {
                sender.send(4096).unwrap();
            }
            let again = sender.prepare(&mut |_, bytes| bytes.fill(2));
            assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::InvalidInput, "{method:?}");
        }
    }
}

/// At the wrong end, vmsplice(2) moves bytes in the other direction: into memory that a sender passed only for reading,
/// or out of a receiver's memory, which is then reused.
#[test]
fn the_wrong_end_of_a_pipe_is_refused() {
    for method in [Send::Vmsplice, Send::VmspliceGift] {
        let pipe = Pipe::new().unwrap();
        assert!(send::open(method, pipe.reader, &options(4096, BlockContent::Prepared)).is_err());
    }
    let pipe = Pipe::new().unwrap();
    assert!(recv::open(Recv::Vmsplice, pipe.writer, &RECV).is_err());
}

/// Reading a block of 0 bytes would look like the end of the input. Writing blocks of 0 bytes would never end.
#[test]
fn a_block_of_no_bytes_is_refused() {
    let empty = || Pipe::new().unwrap();
    let (no_send, no_recv) = (options(0, BlockContent::Prepared), recv::RecvOptions { block: 0, ..RECV });
    for method in SENDERS {
        assert!(send::open(method, empty().writer, &no_send).is_err(), "{method:?}");
    }
    for method in RECEIVERS {
        assert!(recv::open(method, empty().reader, &no_recv).is_err(), "{method:?}");
    }
    assert!(send::write(empty().writer.into(), &no_send).is_err());
    assert!(recv::read(empty().reader.into(), &no_recv).is_err());
}

const RECV: recv::RecvOptions = recv::RecvOptions { block: 4096, align: 0, pages: Pages::Base, wait: Wait::Block };

fn options(block: usize, content: BlockContent) -> send::SendOptions {
    send::SendOptions { block, align: 0, pages: Pages::Base, wait: Wait::Block, content }
}
