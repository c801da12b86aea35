//! Options, display and exit codes of verdicts.

use pipemark_model::{Better, MAX_SPAN, neutral, signed_percent, spans_too_much};
use pipemark_show::Style;
use pipemark_stats::compare::Comparison;
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::ending::exit;

/// The exit code for this verdict if `--fail-on` names it.
pub fn verdict_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Worse => exit::WORSE,
        Verdict::Inconclusive => exit::INCONCLUSIVE,
        Verdict::Better => exit::BETTER,
        Verdict::Same => exit::SAME,
    }
}

/// Parses `5%` as 0.05.
pub fn threshold(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim).and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("'{}' is not a threshold; use a percentage from 0% to below 100%, such as 5%", neutral(text))),
    }
}

/// The criterion for the change given with --threshold; the default criterion for `None`.
pub fn criterion(threshold: Option<f64>, better: Better) -> Criterion {
    threshold.map_or_else(|| Criterion::new(better), |by| Criterion::with_threshold(better, by))
}

/// The text of the interval that decides the verdict. If there is no such interval, the interval of the runs. If there
/// are no intervals at all, the number of runs on each side.
pub fn interval(comparison: &Comparison) -> String {
    let runs = comparison.low.zip(comparison.high);
    match comparison.judged().or(runs).unzip() {
        (Some(low), Some(high)) if spans_too_much(1.0 + low, 1.0 + high) => format!("over {MAX_SPAN}× wide"),
        (Some(low), Some(high)) => format!("{} … {} %", signed_percent(low), signed_percent(high)),
        _ => format!("n={}/{}", comparison.base_runs, comparison.new_runs),
    }
}

/// The style of a verdict.
pub fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Better => Style::Success,
        Verdict::Worse => Style::Failure,
        Verdict::Same => Style::Plain,
        Verdict::Inconclusive => Style::Caution,
    }
}

/// A choice of `--fail-on` for comparisons of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOnCommand {
    /// A verdict.
    Verdict(Verdict),
    /// Too few runs or sessions for a verdict.
    NoVerdict,
}

impl FailOnCommand {
    /// All choices, in the order in which they decide the exit code.
    pub const ALL: [FailOnCommand; 5] = [
        FailOnCommand::Verdict(Verdict::Worse),
        FailOnCommand::NoVerdict,
        FailOnCommand::Verdict(Verdict::Inconclusive),
        FailOnCommand::Verdict(Verdict::Better),
        FailOnCommand::Verdict(Verdict::Same),
    ];

    /// The choice's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            FailOnCommand::Verdict(verdict) => verdict.name(),
            FailOnCommand::NoVerdict => "no-verdict",
        }
    }

    /// The choice's exit code.
    pub fn code(self) -> u8 {
        match self {
            FailOnCommand::Verdict(verdict) => verdict_code(verdict),
            FailOnCommand::NoVerdict => exit::NO_VERDICT,
        }
    }
}

/// Parses a choice of `--fail-on` for comparisons of commands.
///
/// # Errors
/// A message, if there is no such choice.
pub fn fail_on_command(text: &str) -> Result<FailOnCommand, String> {
    match text {
        "no-verdict" => Ok(FailOnCommand::NoVerdict),
        _ => named_verdict(text).map(FailOnCommand::Verdict),
    }
}

/// Parses a verdict's name. Earlier versions called inconclusive `cant-tell`.
fn named_verdict(text: &str) -> Result<Verdict, String> {
    let text = if text == "cant-tell" { Verdict::Inconclusive.name() } else { text };
    text.parse().map_err(|()| {
        format!("'{}' is not a verdict; use worse, no-verdict, inconclusive, better or same", neutral(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_verdicts_and_the_old_name_of_inconclusive_are_accepted() {
        assert_eq!(named_verdict("cant-tell"), Ok(Verdict::Inconclusive));
        assert_eq!(fail_on_command("no-verdict"), Ok(FailOnCommand::NoVerdict));
        assert!(Verdict::iter().all(|verdict| named_verdict(verdict.name()) == Ok(verdict)));
        assert!(named_verdict("slower").unwrap_err().contains("worse, no-verdict, inconclusive"));
    }

    #[test]
    fn thresholds_are_per_cent() {
        assert_eq!(threshold("5%"), Ok(0.05));
        assert_eq!(threshold("0.5 %"), Ok(0.005));
        for text in ["5", "0.05", "-1%", "100%", "NaN%", "inf%", "%", ""] {
            assert!(threshold(text).is_err(), "{text}");
        }
    }
}
