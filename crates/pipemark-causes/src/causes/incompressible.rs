//! A stage compresses data that doesn't get smaller, because it is compressed already or random.

use crate::cause::{Cause, CauseFacts, CauseName, PartOf};
use crate::declaration::Declaration;
use crate::figures::{PipelineFigures, percent};
use crate::hypothesis::{Hypothesis, Scene};
use crate::model::{busy, is_work_of_children};
use crate::programs;
use crate::report::{Quality, Remedy, VerdictKind};
use crate::stage_figures::StageFigures;

pub static CAUSE: Declaration = Declaration {
    facts: CauseFacts {
        words: "incompressible input",
        reason: "compressing in vain",
        kind: VerdictKind::Stage,
        names: &[CauseName::Incompressible],
        part: PartOf::Work,
    },
    assess,
    sentence,
    remedies,
};

/// Compressing in vain, a stage writes between these numbers of bytes for each that it reads: text becomes a third, a
/// program's code half. A stage that begins or ends while it is watched seems to write up to a fifth more than it does.
const RATIO: std::ops::RangeInclusive<f64> = 0.9..=1.25;
/// Programs that pass on their input unchanged.
const PASSES_ON: [&str; 6] = ["buffer", "cat", "dd", "mbuffer", "pv", "tee"];

/// How many bytes a stage writes for each that it reads; `None` unless it compresses in vain. If child processes do the
/// work, the stage's counts include what it exchanges with them.
fn ratio(stage: &StageFigures) -> Option<f64> {
    let read = stage.bytes_in_per_second.filter(|&read| read > 0.0)?;
    let ratio = stage.bytes_out_per_second? / read;
    (programs::compresses(&stage.words) && !is_work_of_children(stage) && RATIO.contains(&ratio)).then_some(ratio)
}

/// The stage whose compressed output a stage gets.
fn compressor_before<'f>(figures: &'f PipelineFigures, stage: &StageFigures) -> Option<&'f StageFigures> {
    let mut number = stage.number;
    // Processes may pass data in a circle.
    for _ in 0..figures.stages.len() {
        number = figures.pipes.iter().find(|pipe| pipe.to == number)?.from;
        let before = figures.stages.get(number.checked_sub(1)?)?;
        if programs::compresses(&before.words) {
            return Some(before);
        }
        if !PASSES_ON.iter().any(|name| programs::is_called(programs::program(&before.words), name)) {
            return None;
        }
    }
    None
}

fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let of_stage = |stage: &&StageFigures| {
        ratio(stage)?;
        let works = (stage.computing + stage.waiting_for_cpu) * stage.present;
        Some(Hypothesis {
            explains: (works / busy(stage).max(0.01)).min(1.0),
            gain: Some(scene.model.without_stage(stage)),
            ..Hypothesis::of_stage(Cause::Declared(&CAUSE.facts), stage.number, Quality::Measured)
        })
    };
    scene.model.order.iter().filter_map(of_stage).collect()
}

fn sentence(scene: &Scene, found: &Hypothesis) -> String {
    let (figures, stage) = (scene.figures, scene.stage(found));
    let own = figures.name_of(stage.number);
    let size = match ratio(stage) {
        Some(ratio) if ratio < 1.0 => format!("its output is {} of its input", percent(ratio)),
        _ => "its output is no smaller than its input".to_owned(),
    };
    match compressor_before(figures, stage) {
        Some(first) => {
            let first = figures.name_of(first.number);
            format!("{own} compresses what {first} has compressed: {size}.")
        }
        None => format!("{own} compresses in vain: {size}."),
    }
}

fn remedies(figures: &PipelineFigures, found: &Hypothesis) -> Vec<Remedy> {
    let stage = found.stage.and_then(|number| figures.stages.get(number - 1));
    let once = |stage: &StageFigures| {
        let names = [stage, compressor_before(figures, stage)?].map(|one| figures.name_of(one.number));
        Some(Remedy::new("compress-once", format!("compress once: leave out {}", names.join(" or ")), ""))
    };
    stage.and_then(once).into_iter().collect()
}
