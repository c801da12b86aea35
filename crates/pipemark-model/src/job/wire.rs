//! The JSON format of a job.

use serde::{Deserialize, Serialize};

use crate::bad_value::BadValue;
use crate::job::{Job, Volume};
use crate::link::LinkKind;
use crate::parameter::Settings;

/// A job in JSON: its settings, with the volume in one field.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Job"))]
pub struct Flat {
    #[serde(flatten)]
    settings: Settings,
    /// How much one run moves.
    volume: Volume,
}

impl From<Job> for Flat {
    fn from(job: Job) -> Flat {
        Flat { settings: job.settings(), volume: job.volume() }
    }
}

impl TryFrom<Flat> for Job {
    type Error = BadValue;

    fn try_from(Flat { mut settings, volume }: Flat) -> Result<Job, BadValue> {
        settings.set(volume.into());
        // Documents of older versions may set a capacity or a buffer for links that have none.
        let link = settings.link.unwrap_or(LinkKind::Pipe);
        settings.capacity = settings.capacity.filter(|_| link.has_capacity());
        settings.buffer = settings.buffer.filter(|_| link.is_socket());
        Job::try_from(settings)
    }
}
