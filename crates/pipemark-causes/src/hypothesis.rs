//! What a cause claims: where it is, how much of its place's time it explains, and how much faster the pipeline would be
//! without it.

use crate::cause::Cause;
use crate::figures::PipelineFigures;
use crate::model::Model;
use crate::report::{Certainty, GainRange, Quality};
use crate::stage_figures::StageFigures;

/// What causes are assessed from.
pub struct Scene<'f> {
    pub figures: &'f PipelineFigures,
    pub model: Model<'f>,
}

impl<'f> Scene<'f> {
    /// The stage that is named for a claim.
    ///
    /// # Panics
    /// When the claim is about no stage.
    pub fn stage(&self, found: &Hypothesis) -> &'f StageFigures {
        &self.figures.stages[found.stage.expect("a claim about a stage") - 1]
    }
}

/// A claim that a cause limits the pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Hypothesis {
    pub cause: Cause,
    /// The stage whose time the cause takes, and the stage that is named for it: the writer of small pieces, not the
    /// reader that suffers from them.
    pub payer: Option<usize>,
    pub stage: Option<usize>,
    pub pipe: Option<usize>,
    /// The stage that is the bottleneck without this one.
    pub next: Option<usize>,
    /// The share of the place's time that the cause explains, from 0 to 1.
    pub explains: f64,
    /// `None` if nothing moves, so that it isn't a matter of speed, or if it can't be told.
    pub gain: Option<GainRange>,
    pub quality: Quality,
    pub sure: Certainty,
    /// The largest speed-up that a sentence may promise; `None` if it isn't known well enough.
    pub bound: Option<f64>,
}

impl Hypothesis {
    /// A claim about the whole pipeline.
    pub fn of_whole(cause: Cause, quality: Quality) -> Hypothesis {
        Hypothesis {
            cause,
            payer: None,
            stage: None,
            pipe: None,
            next: None,
            explains: 1.0,
            gain: None,
            quality,
            sure: Certainty::Sure,
            bound: None,
        }
    }

    /// A claim about a stage.
    pub fn of_stage(cause: Cause, stage: usize, quality: Quality) -> Hypothesis {
        Hypothesis { payer: Some(stage), stage: Some(stage), ..Hypothesis::of_whole(cause, quality) }
    }

    /// A claim about a pipe.
    pub fn of_pipe(cause: Cause, pipe: usize, quality: Quality) -> Hypothesis {
        Hypothesis { pipe: Some(pipe), ..Hypothesis::of_whole(cause, quality) }
    }
}
