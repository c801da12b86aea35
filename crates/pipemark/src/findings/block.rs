//! Block size: where throughput is best.

use serde_json::{Value, json};

use super::contrast::Contrast;
use super::words::{setting, spans};
use super::{Candidate, Measured, fastest};
use crate::model::{ByteSize, Key};

/// The fewest sizes of which one can be called the best.
const FEWEST_SIZES: usize = 3;
/// As good as the best: at most this much slower.
const NEARLY: f64 = 0.05;

/// The best block size of those that differ in nothing else, and the sizes that are as good or can't be told from it.
pub(super) fn best<'a>(group: &[Measured<'a>]) -> Option<Candidate> {
    let mut sweep = group.to_vec();
    sweep.sort_by_key(|one| one.ends().block);
    let best = fastest(sweep.iter().copied()).filter(|_| sweep.len() >= FEWEST_SIZES)?;
    let against = |one: &Measured<'a>| Contrast::throughput(best, *one);
    let within = |one: &Measured| one.throughput() >= (1.0 - NEARLY) * best.throughput();
    let slower = |one: &Measured<'a>| against(one).is_some_and(|contrast| contrast.less());
    let near: Vec<Measured> = sweep.iter().filter(|one| within(one) || !slower(one)).copied().collect();
    let sizes = |all: &[Measured]| all.iter().map(|one| one.ends().block).collect::<Vec<ByteSize>>();
    let (size, all) = (best.ends().block, sizes(&sweep));
    let (setting, rate) = (setting(best.job, &[Key::Block]), best.headline());
    let text = if near.len() == sweep.len() {
        let equal = |one: &Measured<'a>| {
            one.ends().block == size || against(one).is_some_and(|contrast| contrast.sure.0 >= 1.0 - NEARLY)
        };
        if !near.iter().all(equal) {
            return None;
        }
        let (from, to) = (all[0], all[all.len() - 1]);
        format!("Block size hardly matters from {from} to {to} for {setting}: all are within 5 % of {rate}.")
    } else if near.len() > sweep.len().div_ceil(2) {
        // One of many that can't be told apart is not the best.
        return None;
    } else {
        let those = spans(&sizes(&near), &all);
        let rest = match &near[..] {
            [_] => "no other size comes within 5 % of it".to_owned(),
            _ if near.iter().all(within) => format!("{those} are within 5 % of it"),
            _ => format!("{those} are within 5 % of it or can't be told from it"),
        };
        format!("Blocks of {size} are best for {setting}: {rate}; {rest}.")
    };
    let least = sweep.iter().map(|one| one.throughput()).fold(f64::INFINITY, f64::min);
    let figures: Value = sweep.iter().map(|one| one.evidence()).collect();
    let evidence = json!({ "best": size, "as_good": sizes(&near), "sweep": figures });
    Some(Candidate::new("best-block", (best.throughput() / least).ln(), text, evidence))
}

#[cfg(test)]
mod tests {
    use crate::findings::texts;
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

    /// A size that is not next to the best one was not looked at: "no other size comes within 5 %" beside one that did.
    #[test]
    fn sizes_far_from_the_best_one_are_looked_at() {
        let figures = [("1k", 2.98), ("4k", 2.0), ("64k", 3.0), ("1m", 2.5)];
        let text = &texts("best-block", &sweep(&figures, &STEADY))[0];
        assert!(text.ends_with("3.00 GiB/s; 1 KiB and 64 KiB are within 5 % of it."), "{text}");
    }

    #[test]
    fn noise_widens_the_range_or_silences() {
        let noisy = [1.0, 1.15, 0.85, 1.1, 0.9, 1.2, 0.8];
        let mut records = sweep(&[("4k", 0.7), ("64k", 3.0)], &STEADY);
        records.extend(sweep(&[("1m", 2.7)], &noisy));
        let text = &texts("best-block", &records)[0];
        assert!(text.ends_with("64 KiB to 1 MiB are within 5 % of it or can't be told from it."), "{text}");
        // Each with a noise of its own: nothing to say.
        let turned = |by: usize| [&noisy[by..], &noisy[..by]].concat();
        let mut records = sweep(&[("4k", 2.8)], &turned(1));
        records.extend(sweep(&[("64k", 3.0)], &turned(3)));
        records.extend(sweep(&[("1m", 2.7)], &turned(5)));
        assert_eq!(texts("best-block", &records), [""; 0]);
    }

    /// "Blocks of 4 KiB are best: 64 B and 1 KiB to 1 MiB are tied with it" of nine sizes.
    #[test]
    fn one_of_many_that_are_tied_is_not_the_best() {
        let all = [("256", 0.1), ("1k", 2.98), ("4k", 2.99), ("64k", 3.0), ("1m", 2.97)];
        assert_eq!(texts("best-block", &sweep(&all, &STEADY)), [""; 0]);
        assert_eq!(texts("best-block", &sweep(&all[..4], &STEADY)), [""; 0]);
        assert_eq!(texts("best-block", &sweep(&all[..3], &STEADY)).len(), 1);
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
