//! Spinning and polling against blocking: what they gain, and the CPU time they take for it.

use super::contrast::Contrast;
use super::words::{figures, interval, setting, times, told, waiting};
use super::{Found, Subject, groups};
use crate::model::{Figure, Key, Mode, WaitPolicy, three_digits};

/// Each other wait policy against blocking, always with its cost: a spinning end takes a whole CPU.
pub(super) fn spinning(subjects: &[Subject]) -> Vec<Found> {
    groups(subjects, |s| s.wait = None)
        .iter()
        .flat_map(|group| {
            let base = group.iter().find(|subject| subject.ends().wait == WaitPolicy::Block).copied();
            group.iter().filter_map(move |other| against(base?, *other))
        })
        .collect()
}

fn against(base: Subject, other: Subject) -> Option<Found> {
    if other.ends().wait == WaitPolicy::Block {
        return None;
    }
    let speed = Contrast::speed(base, other)?;
    let (moves, much) = match other.job.mode() {
        Mode::Throughput => ("moves", "as much"),
        Mode::Latency => ("answers", "as fast"),
    };
    let gain = match (speed.more(), speed.less(), speed.same()) {
        (true, ..) => format!("{moves} {} {much} {}", times(speed.ratio), interval(&speed)),
        (_, true, _) => format!("{moves} only {} {much} {}", times(speed.ratio), interval(&speed)),
        (.., true) => "gains nothing, within 3 %,".to_owned(),
        _ => return None,
    };
    let (cost, per) = match other.job.mode() {
        Mode::Throughput => (Contrast::cpu_time(base, other), "GiB"),
        Mode::Latency => (Contrast::cpu_time_of_messages(base, other), "million messages"),
    };
    let spent = |subject: Subject| {
        let seconds = subject.estimates.get(Figure::CpuSecondsPerMillion).map(|seconds| seconds.median);
        three_digits(seconds.unwrap_or_else(|| subject.cpu_seconds_per_gib()))
    };
    let seconds = format!("{} s per {per} instead of {} s", spent(other), spent(base));
    let cost_words = match &cost {
        Some(cost) if cost.more() || cost.less() => {
            format!("for {} {} the CPU time, {seconds}", times(cost.ratio), interval(cost))
        }
        Some(cost) if cost.same() => format!("for the same CPU time, {seconds}"),
        _ => format!("in a CPU time of {seconds}"),
    };
    let word = match other.ends().wait {
        WaitPolicy::Poll => "Polling",
        _ => "Spinning",
    };
    let setting = match base.job.mode() {
        Mode::Throughput => setting(base.job, &[Key::Wait]),
        Mode::Latency => told(base.job, &[Key::Wait]),
    };
    let text = format!("{word} instead of {} {gain} {cost_words}: {setting}.", waiting(base.ends().wait));
    let mut evidence = speed.evidence();
    evidence["cpu_time_ratio"] = cost.map_or(serde_json::Value::Null, |cost| cost.evidence());
    evidence["of"] = figures(other);
    evidence["to"] = figures(base);
    Some(Found::new("wait", speed.effect(), text, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::findings::{conversations, streams};
    use crate::stats::fixture::{STEADY, outcome, spoken};
    use crate::stats::records::records;

    /// Spinning at `figure` GiB/s with two busy CPUs, blocking at 1 GiB/s with `idle` of that time unused.
    fn texts(wait: &str, figure: f64, idle: u64, runs: &[f64]) -> Vec<String> {
        let mut blocking = outcome("e", &[], 1.0, runs);
        blocking.samples.iter_mut().for_each(|sample| sample.sys_ns -= idle);
        let records = records(vec![blocking, outcome("e", &[("wait", wait)], figure, runs)]);
        spinning(&streams(&records)).into_iter().map(|found| found.finding.text).collect()
    }

    #[test]
    fn gain_and_cost_are_told_together() {
        assert_eq!(
            texts("spin", 1.25, 1_000_000_000, &STEADY),
            [
                "Spinning instead of blocking moves 1.25 times as much (1.25 to 1.25) for 1.60 times (1.60 to 1.60) the CPU time, \
              1.60 s per GiB instead of 1.00 s: write → read across two cores (blocks of 64 KiB)."
            ]
        );
        assert!(texts("poll", 0.5, 0, &STEADY)[0].starts_with("Polling instead of blocking moves only 0.50 times"));
        assert!(texts("spin", 1.0, 0, &STEADY)[0].contains("gains nothing, within 3 %, for the same CPU time"));
    }

    #[test]
    fn round_trips_are_told_with_their_cost() {
        let link = ("link", "shm");
        let records = [
            spoken(&[link, ("block", "64")], 4_000.0, &STEADY),
            spoken(&[link, ("block", "64"), ("wait", "spin")], 200.0, &STEADY),
        ];
        let found: Vec<String> =
            spinning(&conversations(&records)).into_iter().map(|found| found.finding.text).collect();
        assert_eq!(
            found,
            [
                "Spinning instead of blocking answers 20.0 times as fast (20.0 to 20.0) for 0.05 times (0.05 to 0.05) the CPU \
                 time, 0.20 s per million messages instead of 4.00 s: shm across two cores (messages of 64 B)."
            ]
        );
    }

    #[test]
    fn doubt_is_silent() {
        assert_eq!(texts("spin", 1.03, 0, &STEADY), [""; 0]);
        assert_eq!(texts("spin", 2.0, 0, &STEADY[..4]), [""; 0]);
        assert_eq!(texts("block", 2.0, 0, &STEADY), [""; 0]);
    }
}
