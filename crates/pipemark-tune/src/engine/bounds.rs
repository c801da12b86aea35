//! Which stages can't be worth measuring: the most that the pipeline could gain without a stage follows from times that
//! are known already. Pure.

use super::{Experimenter, MIN_GAIN, PLENTY};
use crate::result::ExperimentKind;

/// For each stage, the most that the pipeline could gain without its work. `times` are the stages' own times, `whole` that
/// of the pipeline.
///
/// Without its work, a stage no longer takes its own time. If it read all its input before it wrote, what comes before it
/// and what comes after it then run at the same time, which saves the shorter of both.
pub fn bounds(times: &[f64], whole: f64) -> Vec<f64> {
    let bound = |at: usize| {
        let [before, after] = [&times[..at], &times[at + 1..]].map(|part| part.iter().sum::<f64>());
        let saved = times[at] + before.min(after);
        if saved < whole { whole / (whole - saved) } else { f64::INFINITY }
    };
    (0..times.len()).map(bound).collect()
}

impl Experimenter<'_, '_, '_> {
    /// Finds the stages without which the pipeline can't gain anything. A stage's own time is that of the stage alone, or
    /// its CPU time in the first run if that is longer, because calls at a pipe may cost more there. If the budget has
    /// room for `fitting` runs, and these are plenty, all stages are measured.
    pub(super) fn find_bounds(&mut self, fitting: f64) {
        let Some(report) = self.report.as_ref().filter(|_| fitting < PLENTY) else { return };
        let first = self.own_times[0];
        let time = |at: usize| {
            let alone = self.of_stage(ExperimentKind::Alone, at)?;
            let figures = report.stages.get(at)?;
            let cpu = figures.cpu? + figures.cpu_wait? + figures.cpu_of_children.unwrap_or(0.0);
            Some(alone.seconds?.max(cpu * first))
        };
        let Some(times) = (0..self.bounds.len()).map(time).collect::<Option<Vec<f64>>>() else { return };
        let whole = self.base_time();
        self.bounds =
            bounds(&times, whole).into_iter().map(|bound| Some(bound).filter(|bound| *bound < MIN_GAIN)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn a_stage_that_takes_no_time_gains_nothing() {
        let found = bounds(&[0.6, 0.9, 0.003, 0.002], 1.5);
        assert!(found[0] > 1.6 && found[1] > 2.0 && found[2..].iter().all(|bound| *bound < 1.01), "{found:?}");
    }

    #[test]
    fn what_separates_two_slow_parts_is_measured() {
        let found = bounds(&[0.7, 0.01, 0.7], 1.4);
        assert!(found[1] > 2.0, "sponge in the middle: {found:?}");
        assert_eq!(bounds(&[1.0], 1.0), [f64::INFINITY]);
    }
}
