//! What a pause before each message costs: an idle CPU has to wake up, and caches have cooled down.

use serde_json::json;

use super::contrast::Contrast;
use super::words::{figures, headline, interval, times, told};
use super::{Found, Subject, groups};
use crate::model::{Job, Key, Nanos, Pace, RoundTrip};

/// Each gap against messages back to back.
pub(super) fn lengthens(subjects: &[Subject]) -> Vec<Found> {
    let closed: Vec<Subject> = subjects.iter().copied().filter(|subject| gap(*subject).is_some()).collect();
    groups(&closed, |s| s.gap = None).iter().filter_map(|group| of_group(group)).collect()
}

/// The pause before each message; `None` where messages have their times.
fn gap(subject: Subject) -> Option<Nanos> {
    match subject.job {
        Job::RoundTrip(RoundTrip { pace: Pace::Gap(gap), .. }) => Some(*gap),
        _ => None,
    }
}

fn of_group(group: &[Subject]) -> Option<Found> {
    let base = *group.iter().find(|subject| gap(**subject) == Some(Nanos(0)))?;
    let mut paused: Vec<(Subject, Contrast)> = group
        .iter()
        .filter(|subject| gap(**subject) != Some(Nanos(0)))
        // Speed the other way round is time.
        .filter_map(|subject| Some((*subject, Contrast::speed(*subject, base)?)))
        .filter(|(_, contrast)| contrast.more() || contrast.less() || contrast.same())
        .collect();
    paused.sort_by_key(|(subject, _)| gap(*subject));
    let effect = paused.iter().map(|(_, contrast)| contrast.effect()).reduce(f64::max)?;
    let clause = |(subject, contrast): &(Subject, Contrast)| {
        let gap = gap(*subject).unwrap_or_default();
        if contrast.same() {
            return format!("with {gap} between it takes as long, within 3 %");
        }
        format!(
            "with {gap} between it takes {}, {} {} as long",
            headline(*subject),
            times(contrast.ratio),
            interval(contrast)
        )
    };
    let clauses: Vec<String> = paused.iter().map(clause).collect();
    let text = format!(
        "A round trip takes {} back to back; {}: {}.",
        headline(base),
        clauses.join(", "),
        told(base.job, &[Key::Gap])
    );
    let evidence = json!({ "to": figures(base), "by_gap": paused.iter().map(|(subject, contrast)| json!({
        "gap_ns": gap(*subject), "of": figures(*subject), "time_ratio": contrast.evidence(),
    })).collect::<Vec<_>>() });
    Some(Found::new("gap", effect, text, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::conversations;
    use crate::stats::fixture::{STEADY, spoken};

    fn texts(records: &[Record]) -> Vec<String> {
        lengthens(&conversations(records)).into_iter().map(|found| found.finding.text).collect()
    }

    fn of(gap: &str, ns: f64, runs: &[f64]) -> Record {
        spoken(&[("link", "tcp"), ("block", "64"), ("gap", gap)], ns, runs)
    }

    #[test]
    fn each_gap_is_held_against_none() {
        assert_eq!(
            texts(&[of("1ms", 16_000.0, &STEADY), of("0", 4_000.0, &STEADY), of("100us", 4_000.0, &STEADY)]),
            [
                "A round trip takes 4.00 µs back to back; with 100 µs between it takes as long, within 3 %, with 1.00 ms between it \
                 takes 16.0 µs, 4.00 times (4.00 to 4.00) as long: tcp across two cores (messages of 64 B)."
            ]
        );
    }

    #[test]
    fn doubt_and_a_missing_base_are_silent() {
        assert_eq!(texts(&[of("1ms", 16_000.0, &STEADY), of("100us", 4_000.0, &STEADY)]), [""; 0]);
        assert_eq!(texts(&[of("0", 4_000.0, &STEADY), of("1ms", 4_120.0, &STEADY)]), [""; 0]);
        assert_eq!(texts(&[of("0", 4_000.0, &STEADY), of("1ms", 9_000.0, &STEADY[..4])]), [""; 0]);
        let paced = spoken(&[("link", "tcp"), ("block", "64"), ("rate", "1000")], 4_000.0, &STEADY);
        assert_eq!(texts(&[paced, of("1ms", 9_000.0, &STEADY)]), [""; 0]);
    }
}
