//! Verdicts: how verbs are asked for them, and how they are shown and end a verb.

use pipemark_model::{Better, neutral, signed_percent};
use pipemark_show::Style;
use pipemark_stats::compare::Comparison;
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::ending::exit;

/// The code that `--fail-on` ends with for this verdict.
pub fn verdict_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Worse => exit::WORSE,
        Verdict::CantTell => exit::CANT_TELL,
        Verdict::Better => exit::BETTER,
        Verdict::Same => exit::SAME,
    }
}

/// `5%` as 0.05.
pub fn threshold(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim).and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("'{}' is not a threshold; use per cent from 0% to under 100%, such as 5%", neutral(text))),
    }
}

/// By what a change is judged.
pub fn criterion(threshold: Option<f64>, better: Better) -> Criterion {
    threshold.map_or_else(|| Criterion::new(better), |by| Criterion::with_threshold(better, by))
}

/// The interval of a change; without one the runs of both sides.
pub fn interval(comparison: &Comparison) -> String {
    match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => format!("{} … {} %", signed_percent(low), signed_percent(high)),
        _ => format!("n={}/{}", comparison.base_runs, comparison.new_runs),
    }
}

/// How a verdict looks.
pub fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Better => Style::Success,
        Verdict::Worse => Style::Failure,
        Verdict::Same => Style::Plain,
        Verdict::CantTell => Style::Caution,
    }
}

/// A verdict as it is read.
pub fn verdict_in_words(verdict: Verdict) -> &'static str {
    if verdict == Verdict::CantTell { "can't tell" } else { verdict.name() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_per_cent() {
        assert_eq!(threshold("5%"), Ok(0.05));
        assert_eq!(threshold("0.5 %"), Ok(0.005));
        for text in ["5", "0.05", "-1%", "100%", "NaN%", "inf%", "%", ""] {
            assert!(threshold(text).is_err(), "{text}");
        }
    }
}
