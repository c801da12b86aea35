//! From a pipe: many bytes move as pages, few are read and written, and a fast writer of little is left alone for a moment.
//!
//! A writer of 8 KiB or of single lines wakes this process at every write, if it waits for each. That costs both more than
//! the bytes do. Once everything that came has been passed on, and more comes at once again and again, a pause lets the pipe
//! fill meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use rustix::param::page_size;
use rustix::pipe::splice;

use super::{BLOCK, BUFFER, MOST, Method, Passage, Stop, private_pipe};
use crate::memory::{Pages, Region};

/// What is worth a move of pages. Less is copied, for pages with little in them take as much room in a pipe as full ones.
pub(super) const MANY: usize = 32 << 10;

/// A pipe that holds less than this is full before a pause is over.
const ROOM: usize = 256 << 10;

/// How long a pause is. The system adds about as much.
const PAUSE: Duration = Duration::from_micros(50);

/// How often in a row more has to come within a pause's time before one is made.
const IN_A_ROW: u32 = 4;

/// The fewest and the most moves without a pause after one that brought nothing.
const PATIENCE: [u32; 2] = [16, 4096];

impl Passage<'_> {
    /// Passes on what comes out of a pipe, by `method` where that pays. Says by which way it went.
    pub(super) fn pass_pipe(&mut self, method: Method) -> Result<Method, Stop> {
        let between = if method == Method::SpliceThroughPipe { Some(private_pipe()?) } else { None };
        let mut buffer = Region::new(BUFFER, Pages::Base)?;
        let mut pace = Pace::new(self.capacities.iter().flatten().all(|&room| room >= ROOM));
        let (mut many, mut packets, mut used) = (false, true, Method::ReadWrite);
        loop {
            let moved = if many && !packets {
                used = method;
                match &between {
                    Some(between) => self.pass_through(between)?,
                    None => self.between(|input, output| splice(input, None, output, None, MOST, BLOCK))?,
                }
            } else {
                let got = self.read(self.input, buffer.bytes_mut()).map_err(Stop::Failed)?;
                self.write_all(&buffer.bytes()[..got]).map_err(Stop::Failed)?;
                // A packet is a page at most. Moved into another pipe it would stay one, whose rest is lost to a reader of
                // less.
                packets &= got <= page_size();
                got
            };
            if moved == 0 {
                return Ok(used);
            }
            self.let_gather(moved);
            many = pace.after(moved) || moved >= MANY;
        }
    }
}

/// Decides when to pause.
struct Pace {
    allowed: bool,
    last: Instant,
    /// Bytes of the last move that had no pause before it.
    usual: usize,
    in_a_row: u32,
    paused: bool,
    /// Moves to make before the next pause, and how many after the next one that brings nothing.
    wait: u32,
    patience: u32,
}

impl Pace {
    fn new(allowed: bool) -> Pace {
        let patience = PATIENCE[0];
        Pace { allowed, last: Instant::now(), usual: 0, in_a_row: 0, paused: false, wait: 0, patience }
    }

    /// Takes note of a move, and pauses if that pays. Everything has been passed on by now.
    fn after(&mut self, moved: usize) -> bool {
        if !self.allowed || !self.is_time(moved, Instant::now()) {
            return false;
        }
        thread::sleep(PAUSE);
        true
    }

    fn is_time(&mut self, moved: usize, now: Instant) -> bool {
        let quick = now - std::mem::replace(&mut self.last, now) < PAUSE;
        if std::mem::take(&mut self.paused) {
            // Requests that wait for their answers come one by one, however long they are waited for.
            if moved < self.usual.saturating_mul(2) {
                self.wait = self.patience;
                self.patience = PATIENCE[1].min(self.patience * 2);
            } else {
                self.patience = PATIENCE[0];
            }
        } else if moved < MANY {
            self.in_a_row = if quick { IN_A_ROW.min(self.in_a_row + 1) } else { 0 };
            self.usual = moved;
        }
        self.wait = self.wait.saturating_sub(1);
        self.paused = moved < MANY && self.in_a_row == IN_A_ROW && self.wait == 0;
        self.paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many moves of `moved` bytes, each so long after the one before, are followed by a pause; those after a
    /// pause bring `gathered`.
    fn pauses(moves: u32, apart: Duration, moved: usize, gathered: usize) -> u32 {
        let mut pace = Pace::new(true);
        let (mut now, mut paused, mut count) = (pace.last, false, 0);
        for _ in 0..moves {
            now += apart;
            paused = pace.is_time(if paused { gathered } else { moved }, now);
            count += u32::from(paused);
        }
        count
    }

    #[test]
    fn a_fast_writer_of_little_is_left_alone() {
        assert!(pauses(1000, PAUSE / 10, 80, 4000) > 990);
    }

    #[test]
    fn what_comes_now_and_then_is_not_waited_for() {
        assert_eq!(pauses(1000, PAUSE * 2, 80, 4000), 0);
    }

    #[test]
    fn large_moves_are_not_waited_for() {
        assert_eq!(pauses(1000, PAUSE / 10, MANY, MANY), 0);
    }

    #[test]
    fn a_request_that_waits_for_its_answer_is_hardly_ever_held_up() {
        let held_up = pauses(100_000, PAUSE / 10, 80, 80);
        assert!((1..50).contains(&held_up), "{held_up}");
    }
}
