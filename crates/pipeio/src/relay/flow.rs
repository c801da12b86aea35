//! From a pipe: many bytes move as pages, few are read and written, and a fast writer of little is left alone for a moment.
//!
//! A writer of 8 KiB or of single lines wakes this process at every write, if it waits for each. That costs both more than
//! the bytes do. Once everything that came has been passed on, and more comes at once again and again, a pause lets the pipe
//! fill meanwhile. Where the writer waits for a writer of its own on a CPU that both share, pauses make it slower, and only
//! trying tells.

use std::thread;
use std::time::{Duration, Instant};

use rustix::param::page_size;
use rustix::pipe::splice;

use super::{BLOCK, BUFFER, MOST, Method, Passage, Stop, private_pipe};
use crate::memory::{Pages, Region};

/// What is worth a move of pages. Less is copied, for pages with little in them take as much room in a pipe as full ones.
const MANY: usize = 32 << 10;

/// A pipe that holds less than this is full before a pause is over.
const ROOM: usize = 256 << 10;

/// How long a pause is. The system adds about as much.
const PAUSE: Duration = Duration::from_micros(50);

/// How often in a row more has to come within a pause's time before one is made.
const IN_A_ROW: u32 = 4;

/// How long it is watched how fast the bytes go with pauses, and without.
const WINDOW: Duration = Duration::from_millis(1);

/// The fewest and the most windows before the other way is tried for one.
const STAY: [u32; 2] = [8, 128];

/// How much faster it has to be without pauses: they save the writer's and this process's CPU time.
const GAIN: f64 = 1.05;

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
            self.let_gather();
            many = pace.after(moved) || moved >= MANY;
        }
    }
}

/// Decides when to pause: while a writer of little is fast, in turns with no pauses, and then as it goes faster.
struct Pace {
    allowed: bool,
    last: Instant,
    paused: bool,
    in_a_row: u32,
    /// When the window began, and what has been moved since.
    begin: Instant,
    bytes: usize,
    /// Whether pauses are made in this window.
    pauses: bool,
    /// What pays by what is known, and the speeds that were seen, in bytes a second: without pauses, with them.
    pays: bool,
    speeds: [f64; 2],
    /// Windows left before the other way is tried, and how many there will be after that.
    left: u32,
    stay: u32,
}

impl Pace {
    fn new(allowed: bool) -> Pace {
        let now = Instant::now();
        Pace {
            allowed,
            last: now,
            paused: false,
            in_a_row: 0,
            begin: now,
            bytes: 0,
            pauses: true,
            pays: true,
            speeds: [0.0; 2],
            left: 1,
            stay: STAY[0],
        }
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
        self.bytes += moved;
        if !std::mem::take(&mut self.paused) && moved < MANY {
            self.in_a_row = if quick { IN_A_ROW.min(self.in_a_row + 1) } else { 0 };
        }
        if self.in_a_row < IN_A_ROW {
            (self.begin, self.bytes) = (now, 0);
        } else if now - self.begin >= WINDOW {
            self.end_window(now);
        }
        self.paused = self.pauses && moved < MANY && self.in_a_row == IN_A_ROW;
        self.paused
    }

    fn end_window(&mut self, now: Instant) {
        let seen = self.bytes as f64 / (now - self.begin).as_secs_f64();
        let speed = &mut self.speeds[usize::from(self.pauses)];
        *speed = if *speed == 0.0 { seen } else { (*speed + seen) / 2.0 };
        (self.begin, self.bytes) = (now, 0);
        if self.pauses != self.pays {
            let before = std::mem::replace(&mut self.pays, self.speeds[1] * GAIN >= self.speeds[0]);
            self.stay = if self.pays == before { STAY[1].min(self.stay * 2) } else { STAY[0] };
            self.left = self.stay;
        } else {
            self.left -= 1;
        }
        self.pauses = self.pays != (self.left == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many moves, each so long after the one before, are followed by a pause, and what share of the time the
    /// pauses take. A move brings `moved` bytes, or `gathered` after a pause.
    fn pauses(moves: u32, apart: Duration, moved: usize, gathered: usize) -> (u32, f64) {
        let mut pace = Pace::new(true);
        let (begin, pause) = (pace.last, PAUSE * 2);
        let (mut now, mut paused, mut count) = (begin, false, 0);
        for _ in 0..moves {
            now += if paused { apart + pause } else { apart };
            paused = pace.is_time(if paused { gathered } else { moved }, now);
            count += u32::from(paused);
        }
        (count, (pause * count).as_secs_f64() / (now - begin).as_secs_f64())
    }

    #[test]
    fn a_fast_writer_of_little_is_left_alone() {
        let (_, share) = pauses(100_000, PAUSE / 10, 80, 4000);
        assert!(share > 0.9, "{share}");
    }

    #[test]
    fn what_comes_now_and_then_is_not_waited_for() {
        assert_eq!(pauses(1000, PAUSE * 2, 80, 4000).0, 0);
    }

    #[test]
    fn large_moves_are_not_waited_for() {
        assert_eq!(pauses(1000, PAUSE / 10, MANY, MANY).0, 0);
    }

    #[test]
    fn a_writer_that_pauses_make_slower_is_hardly_ever_left_alone() {
        let (held_up, _) = pauses(100_000, PAUSE / 10, 8000, 16_000);
        assert!((1..100).contains(&held_up), "{held_up}");
    }

    #[test]
    fn a_request_that_waits_for_its_answer_is_hardly_ever_held_up() {
        let (held_up, _) = pauses(100_000, PAUSE / 10, 80, 80);
        assert!((1..100).contains(&held_up), "{held_up}");
    }
}
