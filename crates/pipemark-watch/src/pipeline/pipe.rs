//! A pipe between two stages of a watched pipeline.

use std::collections::VecDeque;
use std::time::Instant;

use pipemark_proc::process::PipeId;

/// A pipe from one stage to another.
#[derive(Debug, Clone)]
pub struct WatchedPipe {
    pub from: usize,
    pub to: usize,
    pub id: PipeId,
    pub capacity: Option<u64>,
    /// When the pipe appeared; `None` once its capacity has been read.
    pub unread_since: Option<Instant>,
    /// For the pipe's writer and its reader: the number of consecutive samples in which this end has waited.
    pub waiting: [u32; 2],
    /// For the pipe's writer and its reader: the number of time slices that this end had had when it last waited;
    /// `None` if that wasn't read.
    pub slices: [Option<u64>; 2],
    /// Which end was last found waiting: `true` for the writer, `false` for the reader.
    pub last: Option<bool>,
    /// The writer's waits for room, oldest first. For each wait: its length in samples, and how many of these samples
    /// have not yet been offset by waits of the reader.
    pub ahead: VecDeque<(u32, u32)>,
}

impl WatchedPipe {
    pub fn new(from: usize, to: usize, id: PipeId, since: Option<Instant>) -> WatchedPipe {
        WatchedPipe {
            from,
            to,
            id,
            capacity: None,
            unread_since: since,
            waiting: [0; 2],
            slices: [None; 2],
            last: None,
            ahead: VecDeque::new(),
        }
    }

    /// Records a sample in which the writer waits, after `before` samples of the same wait.
    pub fn record_wait(&mut self, before: u32) {
        const MAX_WAITS: usize = 1024;
        match self.ahead.back_mut() {
            Some((length, left)) if before > 0 => {
                *length += 1;
                *left += 1;
            }
            _ => self.ahead.push_back((1, 1)),
        }
        if self.ahead.len() > MAX_WAITS {
            self.ahead.pop_front();
        }
    }

    /// Offsets one sample of the writer's last wait that isn't fully offset yet. Returns the length of that wait in
    /// samples.
    pub fn absorb(&mut self) -> Option<u32> {
        let (length, left) = self.ahead.back_mut()?;
        let length = *length;
        *left -= 1;
        if *left == 0 {
            self.ahead.pop_back();
        }
        Some(length)
    }
}
