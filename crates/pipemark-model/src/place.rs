//! Placement: the CPUs on which the ends of a trial may run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bad_value::BadValue;

/// A logical CPU by its number in /sys/devices/system/cpu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Cpu(pub u16);

impl Cpu {
    /// One more than the largest CPU number: the size of the CPU sets of glibc and rustix.
    pub const LIMIT: u16 = 1024;
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The CPUs on which source and sink run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Any CPUs, chosen by the scheduler.
    Free,
    /// The first allowed CPU, for both ends.
    Same,
    /// The first two allowed CPUs on different cores of one package; failing that, on different packages; failing that,
    /// on one core.
    Cross,
    /// The writer's CPU, then the reader's.
    Pinned(Cpu, Cpu),
}

impl FromStr for Place {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "free" => return Ok(Place::Free),
            "same" => return Ok(Place::Same),
            "cross" => return Ok(Place::Cross),
            _ => {}
        }
        let cpu = |part: &str| part.parse().ok().filter(|&n| n < Cpu::LIMIT).map(Cpu);
        text.split_once(':').and_then(|(writer, reader)| Some(Place::Pinned(cpu(writer)?, cpu(reader)?))).ok_or_else(
            || {
                BadValue::new(format!(
                    "'{text}' is not a placement; use free, same, cross, or two CPU numbers WRITER:READER such as 0:1"
                ))
            },
        )
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Free => f.pad("free"),
            Place::Same => f.pad("same"),
            Place::Cross => f.pad("cross"),
            Place::Pinned(writer, reader) => f.pad(&format!("{writer}:{reader}")),
        }
    }
}

super::value::serde_as_text!(Place, "free, same, cross, or WRITER:READER");
