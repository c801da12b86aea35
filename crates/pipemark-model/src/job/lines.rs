//! A line filter, as a shell starts it.

use crate::bad_value::{BadValue, refuse};
use crate::filter::{Feed, Filter};
use crate::job::Volume;
use crate::parameter::Settings;
use crate::place::Place;

/// A line filter, as a shell starts it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinesJob {
    /// Where the lines come from.
    pub feed: Feed,
    /// The filter that transforms them.
    pub filter: Filter,
    /// A time for an endless feed, a total for the others.
    pub volume: Volume,
    /// Lines per second, for [`Feed::Timed`] only.
    pub rate: Option<u32>,
}

impl LinesJob {
    /// Only the feed, the filter, the volume and the rate can be chosen; the rest is as a shell starts a pipeline.
    pub(super) fn new(settings: Settings, volume: Volume) -> Result<LinesJob, BadValue> {
        let (Some(feed), Some(filter)) = (settings.feed, settings.filter) else {
            unreachable!("it is what makes the settings those of a filter")
        };
        match (feed.endless(), volume) {
            (true, Volume::Total(_)) => return refuse(format!("the feed {feed} never ends; give a time")),
            (false, Volume::Time(_)) => {
                return refuse(format!("the feed {feed} has the size of its total; give a total"));
            }
            _ => {}
        }
        if settings.place != Some(Place::Free) {
            return refuse(format!("the filter {filter} may have several threads; use place free"));
        }
        let rate = settings.rate.unwrap_or_default().0;
        match (feed == Feed::Timed, rate) {
            (true, None) => return refuse("the feed timed has no default rate; give a rate"),
            (false, Some(_)) => return refuse(format!("the feed {feed} has no rate; use the feed timed")),
            _ => {}
        }
        Ok(LinesJob { feed, filter, volume, rate })
    }
}
