//! How many runs there will be, and how long they take. Pure.

use pipemark_model::counted;
use pipemark_stats::sequential::LOOKS;

/// The number of rounds of a confirmation: those of the first look.
pub const MIN_ROUNDS: usize = LOOKS[0];
/// During the screening, the pipeline as it is runs again after this many runs.
pub const BASELINE_EVERY: usize = 5;

/// What there is to try.
#[derive(Debug, Clone, Copy, Default)]
pub struct Workload {
    pub stages: usize,
    /// Changes that keep the output.
    pub changes: usize,
    pub guesses: usize,
    /// Other settings of the whole pipeline: capacity, locale, CPUs.
    pub settings: usize,
}

/// The runs after the first, and the time of all: at least and at most, as far as both can be known before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    pub runs: [f64; 2],
    pub seconds: [f64; 2],
}

/// Runs of one kind.
struct PlannedRuns {
    runs: f64,
    /// The time of each, as a share of the pipeline's.
    share: f64,
}

/// Runs without a stage, and of changes that help, are shorter than the pipeline.
const SHORTER: f64 = 0.8;
/// All stages alone take about this many times as long as the pipeline, together.
const ALONE: f64 = 1.5;
/// The rounds after which most candidates are decided, if there are any: those of the second look.
const ROUNDS: f64 = 8.0;

impl Workload {
    /// The least and the most that there is to do after the first run.
    fn parts(self, is_most: bool) -> Vec<PlannedRuns> {
        // Changes and guesses about stages that cost nothing are skipped.
        let tried = |count: usize| if is_most { count as f64 } else { (count as f64 / 3.0).ceil() };
        let [stages, settings] = [self.stages, self.settings].map(|count| count as f64);
        let screened = tried(self.changes) + tried(self.guesses) + stages + settings;
        let mut parts = vec![
            PlannedRuns { runs: 3.0, share: 1.0 },
            PlannedRuns { runs: stages, share: ALONE / stages.max(1.0) },
            PlannedRuns { runs: stages, share: SHORTER },
            PlannedRuns { runs: settings + 1.0, share: 1.0 },
            PlannedRuns { runs: tried(self.changes) + tried(self.guesses), share: 1.0 },
            PlannedRuns { runs: screened / BASELINE_EVERY as f64, share: 1.0 },
        ];
        if is_most {
            // Second runs, buffers, and changes together; then rounds of four, and of two with guesses.
            parts.push(PlannedRuns { runs: 10.0, share: SHORTER });
            parts.push(PlannedRuns { runs: ROUNDS * 4.0, share: SHORTER });
            let guessed = if self.guesses > 0 { ROUNDS * 2.0 } else { 0.0 };
            parts.push(PlannedRuns { runs: guessed, share: SHORTER });
        }
        parts
    }

    /// The forecast for a pipeline of `time` seconds, whose runs each take `overhead` more, after `elapsed` seconds.
    pub fn forecast(self, time: f64, overhead: f64, elapsed: f64, budget: f64) -> Forecast {
        let [least, most] = [false, true].map(|is_most| {
            let mut total = (0.0, elapsed);
            for part in self.parts(is_most) {
                let each = (part.share * time + overhead).max(1e-4);
                let runs = part.runs.min(((budget - total.1) / each).max(0.0));
                total = (total.0 + runs, total.1 + runs * each);
            }
            total
        });
        Forecast { runs: [least.0, most.0], seconds: [least.1, most.1] }
    }

    /// Whether a budget with room for this many runs has none for an experiment of each kind. What can be pasted then
    /// counts most, and comes first.
    pub fn is_too_much_for(self, runs: f64) -> bool {
        runs < (2 * MIN_ROUNDS + self.stages + 4) as f64
    }
}

impl Forecast {
    /// The numbers of runs as words: with the first run.
    pub fn text(&self) -> String {
        let [least, most] = self.runs.map(|runs| runs + 1.0);
        match least > 0.8 * most {
            true => format!("about {}", counted(most.round() as usize, "run")),
            false => format!("{least:.0} to {most:.0} runs"),
        }
    }

    /// The expected time as words, if it is clearly shorter than the budget.
    pub fn time_text(&self, budget: f64) -> Option<String> {
        let [least, most] = self.seconds;
        (least < 0.8 * budget).then(|| match most > 0.95 * budget {
            true => format!("at least {least:.0} s"),
            false => format!("probably {least:.0} to {most:.0} s"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTING: Workload = Workload { stages: 7, changes: 11, guesses: 14, settings: 2 };

    #[test]
    fn a_short_pipeline_ends_before_the_budget() {
        let found = COUNTING.forecast(0.1, 0.02, 0.1, 60.0);
        let texts = (found.text(), found.time_text(60.0));
        assert_eq!(texts, ("34 to 111 runs".to_owned(), Some("probably 3 to 11 s".to_owned())));
    }

    #[test]
    fn a_long_pipeline_uses_the_budget() {
        let found = COUNTING.forecast(1.5, 0.1, 1.6, 60.0);
        assert_eq!(
            (found.text(), found.time_text(60.0)),
            ("34 to 44 runs".to_owned(), Some("at least 43 s".to_owned()))
        );
        assert!(found.seconds[1] <= 60.0);
        let long = COUNTING.forecast(20.0, 0.1, 20.0, 600.0);
        assert_eq!((long.text(), long.time_text(600.0)), ("about 37 runs".to_owned(), None));
    }

    #[test]
    fn nothing_is_forecast_beyond_a_budget_that_is_spent() {
        let found = COUNTING.forecast(3.0, 0.0, 3.0, 2.0);
        assert_eq!(found.text(), "about 1 run");
    }

    #[test]
    fn changes_come_first_if_few_runs_fit() {
        assert!(COUNTING.is_too_much_for(20.0) && !COUNTING.is_too_much_for(26.0));
    }
}
