//! What a pause before each message costs: an idle CPU has to wake up, and caches have cooled down.

use serde_json::{Value, json};

use super::contrast::{Contrast, widest};
use super::words::trial;
use super::{Candidate, Measured};
use crate::model::{Figure, Job, Key, Nanos, Pace, RoundTrip};

/// The pause before each message; `None` where messages have their times.
pub(super) fn gap(one: &Measured) -> Option<Nanos> {
    match one.job {
        Job::RoundTrip(RoundTrip { pace: Pace::Gap(gap), .. }) => Some(*gap),
        _ => None,
    }
}

/// Each gap against messages back to back.
pub(super) fn against_none(group: &[Measured]) -> Option<Candidate> {
    let base = *group.iter().find(|one| gap(one) == Some(Nanos(0)))?;
    let paused = group.iter().filter(|one| gap(one).is_some_and(|gap| gap > Nanos(0)));
    let mut contrasts: Vec<Contrast> = paused.filter_map(|one| Contrast::of(Figure::P50, base, *one)).collect();
    contrasts.retain(|contrast| contrast.more() || contrast.less() || contrast.same());
    contrasts.sort_by_key(|contrast| gap(&contrast.new));
    let clause = |contrast: &Contrast| {
        let pause = gap(&contrast.new).unwrap_or_default();
        match contrast.same() {
            true => format!("with {pause} between it takes as long, within 3 %"),
            false => format!("with {pause} between it takes {}, {contrast} as long", contrast.new.headline()),
        }
    };
    let clauses: Vec<String> = contrasts.iter().map(clause).collect();
    let text = format!(
        "A round trip takes {} back to back; {}: {}.",
        base.headline(),
        clauses.join(", "),
        trial(base.job, &[Key::Gap])
    );
    let by_gap: Value = contrasts.iter().map(|own| own.evidence_with("gap_ns", json!(gap(&own.new)))).collect();
    Some(Candidate::new("gap", widest(&contrasts)?.effect(), text, json!({ "by_gap": by_gap })))
}

#[cfg(test)]
mod tests {
    use crate::model::Record;
    use crate::stats::fixture::{STEADY, spoken};

    fn texts(records: &[Record]) -> Vec<String> {
        crate::findings::texts("gap", records)
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
                 takes 16.0 µs, 4.00× (4.00–4.00) as long: tcp across two cores (messages of 64 B)."
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
