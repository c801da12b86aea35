//! A stream through stages, which are other programs.

use crate::bad_value::{BadValue, refuse_if};
use crate::job::{Ends, Volume};
use crate::link::LinkKind;
use crate::methods::Verify;
use crate::parameter::Settings;
use crate::stage::Stages;

/// A stream through stages, which are other programs. A chain of length 0 is a plain stream, for comparison with longer
/// chains.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chain {
    /// pipemark's own source and sink, and their links.
    pub ends: Ends,
    /// The commands between the ends, repeated until the chain has `length` stages.
    pub stage: Stages,
    /// Number of stages, 0 or more.
    pub length: u32,
    /// A command that writes the bytes in place of pipemark's source. The last process then writes to /dev/null. `None`
    /// if pipemark's own source and sink are used.
    pub source: Option<Stages>,
    /// The exit code expected of every stage, such as 1 for a grep without a match.
    pub exit: u8,
}

impl Chain {
    pub(super) fn new(settings: Settings, volume: Volume) -> Result<Chain, BadValue> {
        let ends = match &settings.source {
            Some(source) => {
                let with_verify = Settings { verify: settings.verify.or(Some(Verify::None)), ..settings.clone() };
                let ends = Ends::new(&with_verify, volume)?;
                let plain = Ends::new(&Settings { verify: Some(Verify::None), ..Settings::default() }, volume)?;
                let plain = Ends { place: ends.place, capacity: ends.capacity, pairs: ends.pairs, ..plain };
                refuse_if!(
                    ends != plain || source.count() > 1,
                    "--source is one command in place of pipemark's source and sink; omit --send, --recv, --block, --verify and the other options of the source and sink"
                );
                refuse_if!(
                    !matches!(volume, Volume::Total(_)),
                    "--source writes a fixed number of bytes; use --total, not --time"
                );
                ends
            }
            None => Ends::new(&settings, volume)?,
        };
        let chain = Chain {
            ends,
            stage: settings.stage.unwrap_or_default(),
            length: settings.length.unwrap_or_default(),
            source: settings.source,
            exit: settings.exit.unwrap_or_default(),
        };
        refuse_if!(
            chain.length > 0 && (chain.ends.link != LinkKind::Pipe || chain.ends.pairs != 1),
            "a chain passes one stream through pipes; with --length use --link pipe and --pairs 1"
        );
        refuse_if!(
            chain.exit != 0 && chain.length == 0,
            "--exit is the expected exit code of a chain's stages; use it with --length"
        );
        Ok(chain)
    }
}
