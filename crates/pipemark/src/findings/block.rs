//! Block size: where throughput is best.

use serde_json::{Value, json};

use super::contrast::Contrast;
use super::words::setting;
use super::{Candidate, Measured, fastest};
use crate::model::Key;

/// The fewest sizes of which one can be called the best.
const FEWEST_SIZES: usize = 3;
/// As good as the best: at most this much slower.
const NEARLY: f64 = 0.05;

/// The best block size of those that differ in nothing else, and the sizes next to it that are as good.
pub(super) fn best(group: &[Measured]) -> Option<Candidate> {
    let mut sweep = group.to_vec();
    sweep.sort_by_key(|one| one.ends().block);
    let best = fastest(sweep.iter().copied()).filter(|_| sweep.len() >= FEWEST_SIZES)?;
    let peak = sweep.iter().position(|one| one.ends().block == best.ends().block)?;
    let within = |one: &Measured| one.throughput() >= (1.0 - NEARLY) * best.throughput();
    // A size belongs to the range unless it is slower for certain, so what ends the range is no accident.
    let slower = |one: &Measured| Contrast::throughput(best, *one).is_some_and(|contrast| contrast.less());
    let inside = |one: &&Measured| within(one) || !slower(one);
    let first = peak - sweep[..peak].iter().rev().take_while(inside).count();
    let last = peak + sweep[peak + 1..].iter().take_while(inside).count();
    let range = &sweep[first..=last];
    let (size, from, to) = (best.ends().block, sweep[first].ends().block, sweep[last].ends().block);
    let (setting, rate) = (setting(best.job, &[Key::Block]), best.headline());
    let text = if range.len() == sweep.len() {
        let equal = |one: &Measured| {
            one.ends().block == size
                || Contrast::throughput(best, *one).is_some_and(|contrast| contrast.low >= 1.0 - NEARLY)
        };
        if !range.iter().all(equal) {
            return None;
        }
        format!("Block size hardly matters from {from} to {to} for {setting}: all are within 5 % of {rate}.")
    } else {
        let rest = match range {
            [_] => "no other size comes within 5 % of it".to_owned(),
            _ if range.iter().all(within) => format!("{from} to {to} are within 5 % of it"),
            _ => format!("{from} to {to} are within 5 % of it or tied with it"),
        };
        format!("Blocks of {size} are best for {setting}: {rate}; {rest}.")
    };
    let least = sweep.iter().map(|one| one.throughput()).fold(f64::INFINITY, f64::min);
    let figures: Value = sweep.iter().map(|one| one.evidence()).collect();
    let evidence = json!({ "best": size, "from": from, "to": to, "sweep": figures });
    Some(Candidate::new("best-block", (best.throughput() / least).ln(), text, evidence))
}

#[cfg(test)]
mod tests {
    use crate::findings::{found, texts};
    use crate::model::Record;
    use crate::stats::fixture::{STEADY, record};

    fn sweep(figures: &[(&str, f64)], runs: &[f64]) -> Vec<Record> {
        figures.iter().map(|(block, figure)| record("e", &[("block", block)], *figure, runs)).collect()
    }

    #[test]
    fn the_best_size_and_its_equals_are_found() {
        let figures = [("1m", 2.6), ("256", 0.06), ("4k", 0.7), ("64k", 2.95), ("256k", 3.05)];
        assert_eq!(
            texts("best-block", &sweep(&figures, &STEADY)),
            [
                "Blocks of 256 KiB are best for write → read across two cores: 3.05 GiB/s; 64 KiB to 256 KiB are within 5 % of it."
            ]
        );
        let figures = [("4k", 0.7), ("64k", 3.0), ("1m", 2.5)];
        assert_eq!(
            texts("best-block", &sweep(&figures, &STEADY)),
            [
                "Blocks of 64 KiB are best for write → read across two cores: 3.00 GiB/s; no other size comes within 5 % of it."
            ]
        );
    }

    #[test]
    fn the_range_is_contiguous() {
        let figures = [("1k", 2.98), ("4k", 2.0), ("64k", 3.0), ("1m", 2.5)];
        let found = &found("best-block", &sweep(&figures, &STEADY))[0];
        assert_eq!((found.evidence["from"].as_u64(), found.evidence["to"].as_u64()), (Some(65536), Some(65536)));
    }

    #[test]
    fn noise_widens_the_range_or_silences() {
        let noisy = [1.0, 1.15, 0.85, 1.1, 0.9, 1.2, 0.8];
        let mut records = sweep(&[("4k", 0.7), ("64k", 3.0)], &STEADY);
        records.extend(sweep(&[("1m", 2.7)], &noisy));
        let text = &texts("best-block", &records)[0];
        assert!(text.ends_with("64 KiB to 1 MiB are within 5 % of it or tied with it."), "{text}");
        // Each with a noise of its own: nothing to say.
        let turned = |by: usize| [&noisy[by..], &noisy[..by]].concat();
        let mut records = sweep(&[("4k", 2.8)], &turned(1));
        records.extend(sweep(&[("64k", 3.0)], &turned(3)));
        records.extend(sweep(&[("1m", 2.7)], &turned(5)));
        assert_eq!(texts("best-block", &records), [""; 0]);
    }

    #[test]
    fn too_few_runs_or_sizes_say_nothing() {
        assert_eq!(texts("best-block", &sweep(&[("4k", 0.7), ("64k", 3.0), ("1m", 2.5)], &STEADY[..3])), [""; 0]);
        assert_eq!(texts("best-block", &sweep(&[("4k", 0.7), ("64k", 3.0)], &STEADY)), [""; 0]);
    }

    #[test]
    fn sizes_that_do_not_matter_are_said_not_to() {
        let found = texts("best-block", &sweep(&[("4k", 3.0), ("64k", 3.01), ("1m", 2.99)], &STEADY));
        assert_eq!(
            found,
            [
                "Block size hardly matters from 4 KiB to 1 MiB for write → read across two cores: all are within 5 % of 3.01 GiB/s."
            ]
        );
    }

    #[test]
    fn each_placement_and_method_is_a_sweep_of_its_own() {
        let mut records = Vec::new();
        for (place, peak) in [("same", "4k"), ("cross", "64k")] {
            for (send, by) in [("write", 1.0), ("vmsplice", 2.0)] {
                for block in ["64", "4k", "64k"] {
                    let figure = if block == peak { 3.0 } else { 1.0 };
                    records.push(record(
                        "e",
                        &[("place", place), ("send", send), ("block", block)],
                        by * figure,
                        &STEADY,
                    ));
                }
            }
        }
        let found = texts("best-block", &records);
        assert_eq!(found.len(), 4);
        assert!(
            found.iter().any(|text| text.starts_with("Blocks of 4 KiB are best for vmsplice → read on one core: 6.00"))
        );
    }
}
