//! Verdicts from the interval of a change.

use serde::{Deserialize, Serialize};

use pipemark_model::{Better, named};

/// The sizes from which a change counts as a difference or as `same`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Criterion {
    /// Whether higher or lower is better.
    pub better: Better,
    /// The verdict is `better` or `worse` if the whole interval is beyond this change, a fraction (0.05: 5 %).
    pub threshold: f64,
    /// Otherwise, the verdict is `same` if the whole interval is within this change on both sides, a fraction.
    pub same_within: f64,
}

impl Criterion {
    /// The default criterion: an interval entirely beyond 0.5 % is a difference, and an interval entirely within 3 %
    /// counts as `same`. The 3 % is also the half width at which an estimate's interval counts as narrow.
    pub fn new(better: Better) -> Criterion {
        Criterion { better, threshold: 0.005, same_within: 0.03 }
    }

    /// A criterion with one threshold: an interval entirely beyond it is a difference, and an interval entirely within
    /// it counts as `same`.
    pub fn with_threshold(better: Better, threshold: f64) -> Criterion {
        Criterion { better, threshold, same_within: threshold }
    }

    /// The verdict for the interval of a change, whose ends are fractions. Without an interval, the verdict is
    /// inconclusive.
    pub fn verdict(&self, interval: Option<(f64, f64)>) -> Verdict {
        let Some((low, high)) = interval else {
            return Verdict::Inconclusive;
        };
        let (higher, lower) = match self.better {
            Better::Lower => (Verdict::Worse, Verdict::Better),
            Better::Higher | Better::Neither => (Verdict::Better, Verdict::Worse),
        };
        if low > self.threshold {
            higher
        } else if high < -self.threshold {
            lower
        } else if low >= -self.same_within && high <= self.same_within {
            Verdict::Same
        } else {
            Verdict::Inconclusive
        }
    }
}

/// The verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// NEW is better: the whole interval is beyond the threshold.
    Better,
    /// NEW is worse: the whole interval is beyond the threshold.
    Worse,
    /// Any difference is too small to matter.
    Same,
    /// The interval is too wide, or lies across the threshold. More runs may help. Documents of earlier versions have
    /// `cant-tell`.
    #[serde(alias = "cant-tell")]
    Inconclusive,
}

named!(Verdict: Better Worse Same Inconclusive);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_follows_interval_threshold_and_direction() {
        let five = Criterion::with_threshold(Better::Higher, 0.05);
        let lower = Criterion::with_threshold(Better::Lower, 0.05);
        for (interval, higher_is_better, lower_is_better) in [
            ((0.06, 0.10), Verdict::Better, Verdict::Worse),
            ((-0.10, -0.06), Verdict::Worse, Verdict::Better),
            ((-0.10, -0.04), Verdict::Inconclusive, Verdict::Inconclusive),
            ((-0.04, 0.05), Verdict::Same, Verdict::Same),
            ((0.01, 0.06), Verdict::Inconclusive, Verdict::Inconclusive),
        ] {
            assert_eq!(five.verdict(Some(interval)), higher_is_better, "{interval:?}");
            assert_eq!(lower.verdict(Some(interval)), lower_is_better, "{interval:?}");
        }
        assert_eq!(five.verdict(None), Verdict::Inconclusive);
        let read = |text| serde_json::from_str::<Verdict>(text).unwrap();
        assert_eq!([read("\"cant-tell\""), read("\"inconclusive\"")], [Verdict::Inconclusive; 2]);
        assert_eq!(Criterion::new(Better::Higher).verdict(Some((0.004, 0.02))), Verdict::Same);
        assert_eq!(Criterion::new(Better::Higher).verdict(Some((0.006, 0.02))), Verdict::Better);
    }
}
