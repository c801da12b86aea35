//! A program in another language that is source and sink itself.

use crate::bad_value::{BadValue, refuse};
use crate::entrant::{Language, Program};
use crate::job::Volume;
use crate::methods::Verify;
use crate::parameter::Settings;
use crate::place::Place;
use crate::units::ByteSize;

/// A program in another language.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entrant {
    /// The language.
    pub language: Language,
    /// Which of the language's programs to run.
    pub program: Program,
    /// Free, or same: all processes on one CPU.
    pub place: Place,
    /// Bytes per call of the program's writer.
    pub block: ByteSize,
    /// Full for the pattern 'position', xor for 'document', none for third-party benchmarks.
    pub verify: Verify,
    /// Total bytes to stream.
    pub total: ByteSize,
    /// The number of stages of the pipeline that the program runs; 0 for programs that stream from process to process.
    pub length: u32,
}

impl Entrant {
    /// Makes an entrant from settings. The contract of entrants lets the caller choose only the block, the total, the
    /// pattern and the placement.
    pub(super) fn new(settings: Settings, volume: Volume) -> Result<Entrant, BadValue> {
        let (Some(language), Some(program)) = (settings.language, settings.program) else {
            unreachable!("settings of an entrant have a language and a program")
        };
        let refuse = |what: &str| refuse(format!("the entrant {language} {program} {what}"));
        let Volume::Total(total) = volume else {
            return refuse("streams a fixed number of bytes, so it cannot run for a fixed time; give a total");
        };
        let verify = settings.verify.unwrap_or(Verify::Count);
        if verify == Verify::Count {
            return refuse(
                "checks everything or nothing; set verify to full for the pattern 'position', to xor for 'document', or to none for other benchmarks",
            );
        }
        let place = settings.place.unwrap_or(Place::Cross);
        if !matches!(place, Place::Free | Place::Same) {
            return refuse("starts its own processes, so they cannot be placed one by one; use place free or same");
        }
        let block = settings.block.unwrap_or(ByteSize(64 << 10));
        if block > total {
            return refuse(&format!(
                "cannot send blocks of {block} with a total of {total}; raise total or lower block"
            ));
        }
        let length = settings.length.unwrap_or(0);
        if length > 0 && verify != Verify::None {
            return refuse("streams from one process to another, so it has no length; omit length");
        }
        Ok(Entrant { language, program, place, block, verify, total, length })
    }
}
