//! What arrived at the socket that a stage waits for.

use std::time::Instant;

/// What a TCP socket has received since the stage's last write. The kernel doesn't count bytes that a stage gets by recv
/// calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketArrivals {
    /// When the stage stopped writing.
    since: Option<Instant>,
    /// Bytes that the socket had received at the first reading after `since`, and at the last one.
    first: u64,
    last: u64,
    /// The number of readings since then that found more bytes than the one before.
    pub increases: u32,
    /// Bytes at the first of all readings, and the number of all readings that found more bytes.
    first_ever: u64,
    pub all_increases: u32,
}

impl SocketArrivals {
    /// Updates the arrivals with the number of bytes that the socket has received and that the stage has read.
    pub fn note(&mut self, silent_since: Option<Instant>, received: u64) {
        if *self == SocketArrivals::default() {
            (self.first_ever, self.last) = (received, received);
        }
        self.all_increases += u32::from(received > self.last);
        if self.since != silent_since || self.since.is_none() {
            (self.since, self.first, self.last, self.increases) = (silent_since, received, received, 0);
        }
        self.increases += u32::from(received > self.last);
        self.last = received.max(self.last);
    }

    /// The bytes received since the first reading.
    pub fn all_bytes(&self) -> u64 {
        self.last - self.first_ever
    }

    /// The bytes received since the stage's last write.
    pub fn bytes(&self) -> u64 {
        self.last - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_before_the_last_write_does_not_count() {
        let (write, later) = (Some(Instant::now()), Some(Instant::now() + std::time::Duration::from_secs(1)));
        let mut arrived = SocketArrivals::default();
        let mut note = |since, received| {
            arrived.note(since, received);
            (arrived.increases, arrived.bytes())
        };
        assert_eq!(note(write, 5000), (0, 0));
        assert_eq!((note(write, 5021), note(write, 5021), note(write, 5063)), ((1, 21), (1, 21), (2, 63)));
        assert_eq!((note(later, 5084), note(later, 5090)), ((0, 0), (1, 6)));
        assert_eq!((note(None, 6000), note(None, 7000)), ((0, 0), (0, 0)), "no write is known");
        assert_eq!((arrived.all_increases, arrived.all_bytes()), (6, 2000));
    }
}
