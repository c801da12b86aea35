//! The requested capacity of a pipe or a ring, and of a socket's buffers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bad_value::BadValue;
use crate::units::ByteSize;
use crate::value::word_enum;

/// The capacity requested with F_SETPIPE_SZ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Capacity {
    /// A word instead of a number.
    Named(NamedCapacity),
    /// This many bytes; the kernel rounds up to a power-of-two number of pages.
    Bytes(ByteSize),
}

word_enum! {
    /// Capacities that the kernel chooses.
    pub enum NamedCapacity {
        /// The capacity that pipe(2) gives: 64 KiB since Linux 2.6.11.
        Default,
        /// The capacity that an unprivileged user gets once over /proc/sys/fs/pipe-user-pages-soft: two pages since
        /// Linux 5.14.
        Quota,
    }
}

impl NamedCapacity {
    /// The capacity in pages.
    pub fn pages(self) -> u64 {
        match self {
            NamedCapacity::Default => 16,
            // 1 page before Linux 5.14.
            NamedCapacity::Quota => 2,
        }
    }
}

impl Capacity {
    /// The capacity that pipe(2) gives, 64 KiB since Linux 2.6.11.
    pub const DEFAULT: Capacity = Capacity::Named(NamedCapacity::Default);
    /// The capacity of a new pipe once its user is over the per-user limit.
    pub const QUOTA: Capacity = Capacity::Named(NamedCapacity::Quota);
}

impl FromStr for Capacity {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(name) = text.parse() {
            return Ok(Capacity::Named(name));
        }
        match text.parse::<ByteSize>() {
            // F_SETPIPE_SZ takes an int, so the largest power of two is 1 GiB.
            Ok(ByteSize(bytes)) if (1..=1 << 30).contains(&bytes) => Ok(Capacity::Bytes(ByteSize(bytes))),
            Ok(size) => {
                Err(BadValue::new(format!("capacity {size} is out of range; use 1 byte to 1 GiB, default or quota")))
            }
            Err(_) => {
                Err(BadValue::new(format!("'{text}' is not a capacity; use default, quota or a size such as 64k")))
            }
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Capacity::Named(name) => name.fmt(f),
            Capacity::Bytes(size) => size.fmt(f),
        }
    }
}

/// The requested SO_SNDBUF and SO_RCVBUF; `None` keeps the system's default. The size granted is in each sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct SocketBuffer(pub Option<ByteSize>);

impl fmt::Display for SocketBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(size) => size.fmt(f),
            None => f.pad("default"),
        }
    }
}
