//! A line filter in a pipeline, started as by a shell.

use crate::bad_value::{BadValue, refuse};
use crate::filter::{Feed, Filter};
use crate::job::Volume;
use crate::parameter::Settings;
use crate::place::Place;

/// A line filter in a pipeline, started as by a shell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinesJob {
    /// The source of the lines.
    pub feed: Feed,
    /// The filter that transforms them.
    pub filter: Filter,
    /// A time for an endless feed, a total for other feeds.
    pub volume: Volume,
    /// Lines per second; `None` for all feeds except [`Feed::Timed`].
    pub rate: Option<u32>,
}

impl LinesJob {
    /// Makes a line job from settings. Only the feed, the filter, the volume and the rate can be chosen. Everything
    /// else is as in a pipeline started by a shell.
    pub(super) fn new(settings: Settings, volume: Volume) -> Result<LinesJob, BadValue> {
        let (Some(feed), Some(filter)) = (settings.feed, settings.filter) else {
            unreachable!("settings of a line job have a feed and a filter")
        };
        match (feed.endless(), volume) {
            (true, Volume::Total(_)) => return refuse(format!("the feed {feed} never ends; give a time")),
            (false, Volume::Time(_)) => {
                return refuse(format!(
                    "the feed {feed} has a fixed size, so it cannot run for a fixed time; give a total"
                ));
            }
            _ => {}
        }
        if settings.place != Some(Place::Free) {
            return refuse(format!("the filter {filter} may have several threads; use place free"));
        }
        let rate = settings.rate.unwrap_or_default().0;
        match (feed == Feed::Timed, rate) {
            (true, None) => return refuse("the feed \"timed\" has no default rate; give a rate"),
            (false, Some(_)) => return refuse(format!("the feed {feed} has no rate; use the feed \"timed\"")),
            _ => {}
        }
        Ok(LinesJob { feed, filter, volume, rate })
    }
}
