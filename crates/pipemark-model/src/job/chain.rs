//! A stream through other programs.

use crate::bad_value::{BadValue, refuse_if};
use crate::job::{Ends, Volume};
use crate::link::LinkKind;
use crate::parameter::Settings;
use crate::stage::Stages;

/// A stream through other programs; one of length 0 is a plain stream that belongs to a row of chains.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Chain {
    /// The ends.
    pub ends: Ends,
    /// What passes the bytes on between them, over and over until the chain is `length` long.
    pub stage: Stages,
    /// How many stages there are.
    pub length: u32,
    /// The exit code that every stage has to end with, which is the proof of its result: 1 is grep's for no match.
    pub exit: u8,
}

impl Chain {
    pub(super) fn new(settings: Settings, volume: Volume) -> Result<Chain, BadValue> {
        let chain = Chain {
            ends: Ends::new(&settings, volume)?,
            stage: settings.stage.unwrap_or_default(),
            length: settings.length.unwrap_or_default(),
            exit: settings.exit.unwrap_or_default(),
        };
        refuse_if!(
            chain.length > 0 && (chain.ends.link != LinkKind::Pipe || chain.ends.pairs != 1),
            "a chain passes one stream through pipes; with --length use --link pipe and --pairs 1"
        );
        refuse_if!(
            chain.exit != 0 && chain.length == 0,
            "--exit is what the stages of a chain have to end with; use --length as well"
        );
        Ok(chain)
    }
}
