//! A filter of lines, as a shell starts it.

use crate::bad_value::{BadValue, refuse};
use crate::filter::{Feed, Filter};
use crate::job::Volume;
use crate::parameter::Settings;
use crate::place::Place;

/// A filter of lines, as a shell starts it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinesJob {
    /// Where the lines come from.
    pub feed: Feed,
    /// What transforms them.
    pub filter: Filter,
    /// A time for a feed without an end, a total for the others.
    pub volume: Volume,
    /// Lines per second, of the feed that times them.
    pub rate: Option<u32>,
}

impl LinesJob {
    /// A pipeline of lines is as a shell starts it: nothing but its feed, its filter and its volume can be chosen.
    pub(super) fn new(settings: Settings, volume: Volume) -> Result<LinesJob, BadValue> {
        let (Some(feed), Some(filter)) = (settings.feed, settings.filter) else {
            unreachable!("it is what makes the settings those of a filter")
        };
        match (feed.endless(), volume) {
            (true, Volume::Total(_)) => return refuse(format!("the feed {feed} never ends; give a time")),
            (false, Volume::Time(_)) => {
                return refuse(format!("the feed {feed} is made as large as its total; give one"));
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
