//! From a pipe: many bytes move as pages, few are read and written, and a fast writer of little is read in the manner that
//! turns out to be fastest.
//!
//! A writer of 8 KiB or of single lines wakes this process at every write, if it waits for each. That can cost both more than
//! the bytes do: a pause lets the pipe fill meanwhile. Or it can be the fastest there is: on two CPUs, writer and reader in step
//! use the same two pages again and again, where a pipe that fills takes new ones. Only trying tells which.

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

/// How long it is watched how fast the bytes go in one manner: this time, or so many moves, the second number with pauses.
const WINDOW: Duration = Duration::from_millis(1);
const MOVES: [u32; 2] = [64, 6];

/// The fewest and the most windows before the other manners are tried for one each.
const STAY: [u32; 2] = [64, 1024];

/// How much faster it has to be in a manner that takes more CPU time.
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
            many = moved >= MANY;
            match pace.after(moved, Instant::now()) {
                Manner::Pause => {
                    self.let_gather();
                    thread::sleep(PAUSE);
                    many = true;
                }
                Manner::Look => self.let_gather(),
                Manner::Sleep => {}
            }
        }
    }
}

/// What to do before more is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Let the pipe fill.
    Pause,
    /// Ask at once, and sleep if there is nothing. The pipe's lock keeps reader and writer in step.
    Sleep,
    /// Look for more for a while before sleeping.
    Look,
}

/// What takes less CPU time comes first.
const MANNERS: &[Manner] = &[Manner::Pause, Manner::Sleep, Manner::Look];

/// Decides in which manner a fast writer of little is read: each is tried for a window, and what is fastest goes on for a while.
struct Pace {
    /// Those that there are: without room in the pipes there are no pauses.
    manners: &'static [Manner],
    last: Instant,
    paused: bool,
    in_a_row: u32,
    /// When the window began, and what has been moved since.
    begin: Instant,
    bytes: usize,
    moves: u32,
    /// The manner of this window, and the fastest by what is known.
    manner: Manner,
    best: Manner,
    /// The speeds that were seen, in bytes a second, by manner.
    speeds: [f64; MANNERS.len()],
    untried: &'static [Manner],
    /// Windows left before the others are tried again, and how many there will be after that.
    left: u32,
    stay: u32,
}

impl Pace {
    fn new(room: bool) -> Pace {
        let now = Instant::now();
        let manners = if room { MANNERS } else { &MANNERS[1..] };
        Pace {
            manners,
            last: now,
            paused: false,
            in_a_row: 0,
            begin: now,
            bytes: 0,
            moves: 0,
            manner: manners[0],
            best: manners[0],
            speeds: [0.0; MANNERS.len()],
            untried: &manners[1..],
            left: 0,
            stay: STAY[0],
        }
    }

    /// Takes note of a move, after which everything has been passed on, and says what to do next.
    fn after(&mut self, moved: usize, now: Instant) -> Manner {
        let quick = now - std::mem::replace(&mut self.last, now) < PAUSE;
        self.bytes += moved;
        self.moves += 1;
        if !std::mem::take(&mut self.paused) && moved < MANY {
            self.in_a_row = if quick { IN_A_ROW.min(self.in_a_row + 1) } else { 0 };
        }
        if self.in_a_row < IN_A_ROW {
            self.begin_window(now);
        } else if now - self.begin >= WINDOW || self.moves >= MOVES[usize::from(self.manner == Manner::Pause)] {
            self.end_window(now);
        }
        if moved >= MANY || self.in_a_row < IN_A_ROW {
            return Manner::Look;
        }
        self.paused = self.manner == Manner::Pause;
        self.manner
    }

    fn begin_window(&mut self, now: Instant) {
        (self.begin, self.bytes, self.moves) = (now, 0, 0);
    }

    fn end_window(&mut self, now: Instant) {
        let seen = self.bytes as f64 / (now - self.begin).as_secs_f64();
        let speed = &mut self.speeds[self.manner as usize];
        *speed = if *speed == 0.0 { seen } else { (*speed + seen) / 2.0 };
        self.begin_window(now);
        if self.left > 0 {
            self.left -= 1;
            if self.left > 0 {
                return;
            }
            self.untried = self.manners;
        }
        while let Some((&manner, rest)) = self.untried.split_first() {
            self.untried = rest;
            if manner != self.manner {
                self.manner = manner;
                return;
            }
        }
        self.choose();
    }

    fn choose(&mut self) {
        let fastest = self.speeds.iter().copied().fold(0.0, f64::max);
        let good = |manner: &Manner| self.speeds[*manner as usize] * GAIN >= fastest;
        let best = self.manners.iter().copied().find(good).unwrap_or(Manner::Look);
        self.stay = if best == self.best { STAY[1].min(self.stay * 4) } else { STAY[0] };
        (self.best, self.manner, self.left) = (best, best, self.stay);
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
            paused = pace.after(if paused { gathered } else { moved }, now) == Manner::Pause;
            count += u32::from(paused);
        }
        (count, (pause * count).as_secs_f64() / (now - begin).as_secs_f64())
    }

    /// The share of 100,000 moves of 8,000 bytes after which the process asks at once, where they then take so long, and so
    /// long after it has looked.
    fn asked_at_once(room: bool, asked: Duration, looked: Duration) -> f64 {
        let mut pace = Pace::new(room);
        let (mut now, mut manner, mut count) = (pace.last, Manner::Look, 0);
        for _ in 0..100_000 {
            now += match manner {
                Manner::Pause => PAUSE * 2,
                Manner::Sleep => asked,
                Manner::Look => looked,
            };
            manner = pace.after(8000, now);
            count += u32::from(manner == Manner::Sleep);
        }
        f64::from(count) / 100_000.0
    }

    #[test]
    fn what_is_fastest_goes_on() {
        let [short, long] = [1, 2].map(Duration::from_micros);
        for room in [false, true] {
            let [faster, slower, equal] =
                [(short, long), (long, short), (short, short)].map(|(a, b)| asked_at_once(room, a, b));
            assert!(faster > 0.95 && slower < 0.05 && equal > 0.95, "{faster} {slower} {equal}");
        }
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
