//! How much one run moves.

use serde::{Deserialize, Serialize};

use crate::bad_value::{BadValue, refuse};
use crate::parameter::{DEFAULT_TIME, Settings, Value};
use crate::units::{ByteSize, Nanos};

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

impl Volume {
    /// The settings' volume, or the default time.
    pub(super) fn new(settings: &Settings) -> Result<Volume, BadValue> {
        let blocks = settings.blocks.map(|blocks| settings.total_of(blocks));
        Ok(match (settings.total.or(blocks), settings.time) {
            _ if settings.total.is_some() && blocks.is_some() => {
                return refuse("a run has a total or a number of blocks, not both; leave out one");
            }
            (Some(_), Some(_)) => return refuse("a run has a total or a time, not both; leave out one"),
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
