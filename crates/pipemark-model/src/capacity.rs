//! How much a pipe, or the buffers of a socket, are asked to hold.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bad_value::BadValue;
use crate::units::ByteSize;
use crate::value::word_enum;

/// What F_SETPIPE_SZ is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Capacity {
    /// A word instead of a number.
    Named(NamedCapacity),
    /// This many bytes; the kernel rounds up to a power of two of pages.
    Bytes(ByteSize),
}

word_enum! {
    /// Capacities that are a policy of the kernel, not a number.
    pub enum NamedCapacity {
        /// What pipe(2) gives: 64 KiB on Linux since 2.6.11.
        Default,
        /// What an unprivileged user gets once over /proc/sys/fs/pipe-user-pages-soft: two pages, since Linux 5.14.
        Quota,
    }
}

impl Capacity {
    /// What pipe(2) gives.
    pub const DEFAULT: Capacity = Capacity::Named(NamedCapacity::Default);
    /// What is left to a user over the page limit.
    pub const QUOTA: Capacity = Capacity::Named(NamedCapacity::Quota);
}

impl FromStr for Capacity {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(name) = text.parse() {
            return Ok(Capacity::Named(name));
        }
        match text.parse::<ByteSize>() {
            // F_SETPIPE_SZ takes an int.
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

/// SO_SNDBUF and SO_RCVBUF asked for; `None` leaves the system's. What was granted is in each sample.
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
