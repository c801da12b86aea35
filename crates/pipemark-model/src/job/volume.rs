//! The volume that one run moves.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bad_value::{BadValue, refuse};
use crate::parameter::{DEFAULT_TIME, Settings, Value};
use crate::units::{ByteSize, Nanos, bytes_in_words};

/// How much one run moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Volume {
    /// At least this many bytes per pair.
    Total(ByteSize),
    /// As much as arrives in this time.
    Time(Nanos),
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Volume::Total(total) => f.pad(&bytes_in_words(total.0)),
            Volume::Time(time) => time.fmt(f),
        }
    }
}

/// The largest difference between two totals that count as equal, as a fraction. Totals differ slightly because they
/// are rounded to whole blocks.
const MAX_DIFFERENCE: f64 = 0.05;

impl Volume {
    /// Whether two volumes count as equal: equal times, or totals that differ by at most 5 %.
    pub fn is_equivalent(self, other: Volume) -> bool {
        match (self, other) {
            (Volume::Time(one), Volume::Time(other)) => one == other,
            (Volume::Total(one), Volume::Total(other)) => {
                one.0.abs_diff(other.0) as f64 <= one.0.max(other.0) as f64 * MAX_DIFFERENCE
            }
            _ => false,
        }
    }

    /// The volume in the settings, or the default time if they have none.
    pub(super) fn new(settings: &Settings) -> Result<Volume, BadValue> {
        let blocks = settings.blocks.map(|blocks| settings.total_of(blocks));
        Ok(match (settings.total.or(blocks), settings.time) {
            _ if settings.total.is_some() && blocks.is_some() => {
                return refuse("a run has a total or a number of blocks, not both; omit one");
            }
            (Some(_), Some(_)) => return refuse("a run has a total or a time, not both; omit one"),
            (Some(total), None) => Volume::Total(total),
            (None, time) => Volume::Time(time.unwrap_or(DEFAULT_TIME)),
        })
    }
}

impl From<Volume> for Value {
    fn from(volume: Volume) -> Value {
        match volume {
            Volume::Total(total) => Value::Total(total),
            Volume::Time(time) => Value::Time(time),
        }
    }
}
