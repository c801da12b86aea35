//! The shell's start: the extra time that a command takes because a shell starts it. It is measured in the same rounds
//! as the commands, and subtracted from their times.

use pipemark_model::Estimate;
use pipemark_stats::estimate;

/// The minimum time that must be left of a command after the subtraction, as a share of the shell's start. If less is
/// left, nothing is subtracted, because the difference would be mostly error.
const MIN_SHARE: f64 = 0.5;

/// How the shell's start is treated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ShellStart {
    /// There is no shell, or its start is negligible, so it was not measured.
    NotMeasured,
    /// This start-up time was subtracted from every time of every command.
    Subtracted(Estimate),
    /// This start-up time was measured but not subtracted, because one command is too short for that.
    NotSubtracted(Estimate),
}

impl ShellStart {
    /// Decides how to treat the shell's start-up time. `starts` has one start-up time per round, and `commands` has all
    /// times of each command that ran. All times are in nanoseconds. A start-up time is a difference of two times, so
    /// noise can make it negative in some rounds.
    pub fn of(starts: &[f64], commands: &[Vec<f64>]) -> ShellStart {
        let Some(start) = estimate::from_runs(starts).filter(|start| start.low.is_some() && start.median > 0.0) else {
            return ShellStart::NotMeasured;
        };
        let high = start.high.unwrap_or(start.max);
        let long_enough = |times: &Vec<f64>| {
            let Some(time) = estimate::from_runs(times) else { return true };
            time.min > high && time.median - start.median >= MIN_SHARE * start.median
        };
        if commands.iter().all(long_enough) { ShellStart::Subtracted(start) } else { ShellStart::NotSubtracted(start) }
    }

    /// The time to subtract and the ends of its interval, in nanoseconds; `None` if nothing is subtracted.
    pub fn subtracted(&self) -> Option<[f64; 3]> {
        match self {
            ShellStart::Subtracted(start) => {
                Some([start.median, start.low.unwrap_or(start.min), start.high.unwrap_or(start.max)])
            }
            ShellStart::NotMeasured | ShellStart::NotSubtracted(_) => None,
        }
    }

    /// The estimate of a time after subtraction, with its interval widened by the error of the subtracted time.
    pub fn widened(&self, time: Estimate) -> Estimate {
        let Some([median, low, high]) = self.subtracted() else { return time };
        Estimate {
            low: time.low.map(|end| end - (high - median)),
            high: time.high.map(|end| end + (median - low)),
            ..time
        }
    }

    /// The measured start-up time of the shell; `None` if it was not measured.
    pub fn estimate(&self) -> Option<Estimate> {
        match self {
            ShellStart::NotMeasured => None,
            ShellStart::Subtracted(start) | ShellStart::NotSubtracted(start) => Some(*start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_start_is_subtracted_from_long_enough_runs() {
        let starts = [1.0, 1.02, 0.98, 1.01, 0.99, 1.0];
        let long = vec![5.0, 5.1, 4.9, 5.0, 5.0, 5.0];
        let taken = ShellStart::of(&starts, std::slice::from_ref(&long));
        assert!(matches!(taken.subtracted(), Some([median, low, high]) if low <= median && median <= high));
        let time = estimate::from_runs(&long).unwrap();
        let (wide, [median, low, high]) = (taken.widened(time), taken.subtracted().unwrap());
        let ends = (time.low.unwrap() - (high - median), time.high.unwrap() + (median - low));
        assert_eq!((wide.low.unwrap(), wide.high.unwrap()), ends, "the subtracted time has an error of its own");
        let short = vec![1.2, 1.3, 1.1, 1.2, 1.2, 1.2];
        let left = ShellStart::of(&starts, &[long.clone(), short]);
        assert!(
            matches!(left, ShellStart::NotSubtracted(_)) && left.subtracted().is_none(),
            "subtracted from all commands or from none"
        );
        assert_eq!(
            ShellStart::of(&starts[..3], &[long]),
            ShellStart::NotMeasured,
            "without an interval there is no error"
        );
    }

    #[test]
    fn a_noisy_start_has_a_wide_interval_and_a_negative_one_is_ignored() {
        let long = [vec![5.0, 5.1, 4.9, 5.0, 5.0, 5.0]];
        let noisy = ShellStart::of(&[1.0, 1.1, -0.2, 0.9, 1.0, 2.1], &long);
        assert!(matches!(noisy.subtracted(), Some([median, low, _]) if median > 0.8 && low < 0.5), "{noisy:?}");
        let negative = ShellStart::of(&[-0.2, 0.1, -0.3, -0.1, -0.2, 0.0], &long);
        assert_eq!(negative, ShellStart::NotMeasured, "a negative start would lengthen the commands");
    }
}
