//! Findings about a pipe's settings: block size, capacity, and page references in place of copies.

use serde_json::{Value, json};

use pipemark_model::{ByteSize, Capacity, Key, RecvMethod, SendMethod, Warning};

use crate::findings::contrast::Contrast;
use crate::findings::words::{bracketed, capacity, granted_capacity, methods, setting, size_ranges};
use crate::findings::{Candidate, MeasuredTrial, fastest};

/// The minimum number of measured sizes for reporting one as the best.
const MIN_SIZES: usize = 3;
/// The largest slowdown relative to the best that counts as equally good, as a fraction.
const MAX_SLOWDOWN: f64 = 0.05;

/// The best block size of trials that differ only in the block size. Also names the sizes that are equally good or
/// statistically tied.
pub(super) fn best_block<'a>(group: &[MeasuredTrial<'a>]) -> Option<Candidate> {
    let mut sweep = group.to_vec();
    sweep.sort_by_cached_key(|one| one.ends().block);
    let best = fastest(sweep.iter().copied()).filter(|_| sweep.len() >= MIN_SIZES)?;
    let against = |one: &MeasuredTrial<'a>| Contrast::throughput(best, *one);
    let within = |one: &MeasuredTrial| one.throughput() >= (1.0 - MAX_SLOWDOWN) * best.throughput();
    let slower = |one: &MeasuredTrial<'a>| against(one).is_some_and(|contrast| contrast.is_lower());
    let near: Vec<MeasuredTrial> = sweep.iter().filter(|one| within(one) || !slower(one)).copied().collect();
    let sizes = |all: &[MeasuredTrial]| all.iter().map(|one| one.ends().block).collect::<Vec<ByteSize>>();
    let (size, all) = (best.ends().block, sizes(&sweep));
    let (setting, rate) = (setting(best.job, &[Key::Block]), best.headline());
    let text = if near.len() == sweep.len() {
        let equal = |one: &MeasuredTrial<'a>| {
            one.ends().block == size || against(one).is_some_and(|contrast| contrast.adjusted.0 >= 1.0 - MAX_SLOWDOWN)
        };
        if !near.iter().all(equal) {
            return None;
        }
        let (from, to) = (all[0], all[all.len() - 1]);
        format!("Block size hardly matters from {from} to {to} for {setting}: all are within 5 % of {rate}.")
    } else if near.len() > sweep.len().div_ceil(2) {
        // If many sizes are statistically tied, none is reported as the best.
        return None;
    } else {
        let (close, tied): (Vec<MeasuredTrial>, Vec<MeasuredTrial>) = near.iter().copied().partition(within);
        let mut rest = match &close[..] {
            [_] if tied.is_empty() => "; no other size comes within 5 % of it".to_owned(),
            [_] => String::new(),
            _ => format!("; {} are within 5 % of it", size_ranges(&sizes(&close), &all)),
        };
        if !tied.is_empty() {
            let verb = if tied.len() == 1 { "is" } else { "are" };
            rest += &format!("; {} {verb} not proved slower", size_ranges(&sizes(&tied), &all));
        }
        format!("Blocks of {size} are best for {setting}: {rate}{rest}.")
    };
    let least = sweep.iter().map(|one| one.throughput()).fold(f64::INFINITY, f64::min);
    let figures: Value = sweep.iter().map(|one| one.evidence()).collect();
    let evidence = json!({ "best": size, "as_good": sizes(&near), "sweep": figures });
    Some(Candidate::new("best-block", (best.throughput() / least).ln(), text, evidence))
}

/// Compares each capacity with the default, or with the smallest if there is no trial with the default.
pub(super) fn capacity_worth(group: &[MeasuredTrial]) -> Vec<Candidate> {
    let default = group.iter().find(|one| one.ends().capacity == Capacity::DEFAULT);
    let Some(base) = default.or_else(|| group.iter().min_by_key(|one| granted_capacity(**one))).copied() else {
        return Vec::new();
    };
    // A capacity that the kernel did not grant was not measured.
    let contrasts: Vec<Contrast> = group
        .iter()
        .filter(|other| {
            other.ends().capacity != base.ends().capacity && granted_capacity(**other) != granted_capacity(base)
        })
        .filter_map(|other| Contrast::throughput(base, *other))
        .collect();
    let by_speed = |one: &&Contrast, other: &&Contrast| one.new.speed().total_cmp(&other.new.speed());
    let gain = contrasts.iter().filter(|contrast| contrast.is_higher()).max_by(by_speed);
    let loss = contrasts.iter().filter(|contrast| contrast.is_lower()).min_by(by_speed);
    let setting = bracketed(&setting(base.job, &[Key::Capacity]));
    if gain.or(loss).is_none() && !contrasts.is_empty() && contrasts.iter().all(Contrast::is_equal) {
        let mut all: Vec<MeasuredTrial> = contrasts.iter().map(|contrast| contrast.new).chain([base]).collect();
        all.sort_by_cached_key(|one| granted_capacity(*one));
        let (least, most) = (capacity(all[0]), capacity(all[all.len() - 1]));
        let text = format!("Capacities from {least} to {most} make no difference within 3 % {setting}.");
        let capacities: Value = all.iter().map(|one| one.evidence()).collect();
        let best = fastest(all).map(|best| best.record.id.clone());
        return vec![Candidate::new("capacity", 0.0, text, json!({ "best": best, "capacities": capacities }))];
    }
    let candidate = |contrast: &Contrast| {
        let quota = contrast.new.ends().capacity == Capacity::QUOTA;
        let over_limit = if quota { " (the size of new pipes of a user over the limit)" } else { "" };
        let effect = match contrast.is_higher() {
            true => format!("gives {contrast} the throughput {setting}"),
            false => format!("cuts throughput {setting} to {}", contrast.percent()),
        };
        let (new, old) = (capacity(contrast.new), capacity(base));
        let text = format!("A capacity of {new}{over_limit} instead of {old} {effect}.");
        // Recommendations (a gain) come before warnings (a loss). Among either, findings about write and read come
        // first.
        let ends = base.ends();
        let first = [contrast.is_higher(), (ends.send, ends.recv) == (SendMethod::Write, RecvMethod::Read)];
        let rank = first.into_iter().fold(0.0, |rank, is| 2.0 * rank + f64::from(u8::from(is)));
        Candidate::new("capacity", 100.0 * rank + contrast.effect(), text, contrast.evidence())
    };
    gain.into_iter().chain(loss).map(candidate).collect()
}

/// The kinds of access by the reader: whether the bytes reached its memory, whether it read them, and the text that
/// says so. Moving a page reference doesn't read the page.
const READER_ACCESS: [(bool, bool, &str); 3] = [
    (false, false, "the bytes never reached the reader's memory"),
    (true, false, "the bytes reached the reader's memory, but were not checked"),
    (true, true, "the reader checked every byte"),
];

/// Compares the fastest method that makes fewer than two copies with write → read. There is one finding for each number
/// of copies and each kind of access by the reader.
pub(super) fn zero_copy(group: &[MeasuredTrial]) -> Vec<Candidate> {
    // Newly written data has its own rule.
    let group = || group.iter().copied().filter(|one| !one.ends().fresh());
    let plain = |one: &MeasuredTrial| (one.ends().send, one.ends().recv) == (SendMethod::Write, RecvMethod::Read);
    let base = group().filter(plain).min_by_key(|one| one.ends().pages);
    let at_level = |copies: u8, (arrived, seen, words): (bool, bool, &str)| {
        let level = group().map(|one| (one, one.ends())).filter(|(_, ends)| ends.work().copies == copies);
        let level =
            level.filter(|(_, ends)| (ends.recv.touches(), ends.touched()) == (arrived, seen)).map(|(one, _)| one);
        // tee sends one page repeatedly, which transfers no useful data.
        let (tee, moving): (Vec<MeasuredTrial>, Vec<MeasuredTrial>) =
            level.partition(|one| one.ends().send == SendMethod::Tee);
        let contrast = Contrast::throughput(base?, fastest(moving).or_else(|| fastest(tee))?)?;
        let text = format!(
            "{} with {} is {} as write → read ({} against {}) {}; {words}.",
            if copies == 0 { "Zero copy" } else { "One copy instead of two" },
            methods(contrast.new.ends()),
            contrast.as_fast().filter(|_| !contrast.is_equal())?,
            contrast.new.headline(),
            contrast.base.headline(),
            setting(contrast.base.job, &[Key::Send, Key::Pages]),
        );
        let evidence = contrast.evidence_with("touched", contrast.new.record.touched.into());
        Some(Candidate::new("zero-copy", contrast.effect(), text, evidence))
    };
    [0, 1]
        .into_iter()
        .flat_map(|copies| READER_ACCESS.into_iter().filter_map(move |seen| at_level(copies, seen)))
        .collect()
}

/// Compares page references with copies for data that is newly written and verified, each at its best capacity.
pub(super) fn fresh(group: &[MeasuredTrial]) -> Option<Candidate> {
    let fresh = |copying: bool| {
        fastest(group.iter().copied().filter(|one| one.ends().fresh() && one.ends().send.copies() == copying))
    };
    let contrast = Contrast::throughput(fresh(true)?, fresh(false)?)?;
    let at = |one: MeasuredTrial| format!("{} at capacity {}", one.headline(), capacity(one));
    // If a figure is near the limit of the source or sink alone, it understates the link's speed.
    let warnings = |one: MeasuredTrial| one.record.warnings.iter().any(|w| matches!(w, Warning::NearCeiling { .. }));
    let ceiling = match warnings(contrast.new) || warnings(contrast.base) {
        true => "; writing and checking the bytes takes so long that the pipe itself may be faster",
        false => "",
    };
    let text = format!(
        "Fresh data, each byte newly written and checked by the reader: {} is {} as {} ({}{} against {}), {}{ceiling}.",
        methods(contrast.new.ends()),
        contrast.as_fast()?,
        methods(contrast.base.ends()),
        if contrast.is_equal() { "within 3 %; " } else { "" },
        at(contrast.new),
        at(contrast.base),
        setting(contrast.base.job, &[Key::Send, Key::Pages, Key::Capacity, Key::Verify]),
    );
    Some(Candidate::new("fresh-data", contrast.effect(), text, contrast.evidence()))
}

#[cfg(test)]
mod tests {
    mod best_block {
        use pipemark_model::Record;
        use pipemark_stats::fixture::{STEADY, record};

        use crate::findings::texts;

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

        /// A size that isn't adjacent to the best one can be equally good too.
        #[test]
        fn sizes_far_from_the_best_are_considered() {
            let figures = [("1k", 2.98), ("4k", 2.0), ("64k", 3.0), ("1m", 2.5)];
            let text = &texts("best-block", &sweep(&figures, &STEADY))[0];
            assert!(text.ends_with("3.00 GiB/s; 1 KiB and 64 KiB are within 5 % of it."), "{text}");
        }

        #[test]
        fn noise_widens_the_range_or_prevents_the_finding() {
            let noisy = [1.0, 1.15, 0.85, 1.1, 0.9, 1.2, 0.8];
            let mut records = sweep(&[("4k", 0.7), ("64k", 3.0)], &STEADY);
            records.extend(sweep(&[("1m", 2.7)], &noisy));
            let text = &texts("best-block", &records)[0];
            assert!(text.ends_with("3.00 GiB/s; 1 MiB is not proved slower."), "{text}");
            // If each size has noise of its own, nothing is reported.
            let turned = |by: usize| [&noisy[by..], &noisy[..by]].concat();
            let mut records = sweep(&[("4k", 2.8)], &turned(1));
            records.extend(sweep(&[("64k", 3.0)], &turned(3)));
            records.extend(sweep(&[("1m", 2.7)], &turned(5)));
            assert_eq!(texts("best-block", &records), [""; 0]);
        }

        /// Two thirds of the best aren't within 5 % of it, however noisy they are.
        #[test]
        fn a_noisy_size_is_not_called_near() {
            let noisy = [1.0, 1.35, 0.65, 1.3, 0.7, 1.4, 0.6];
            let mut records = sweep(&[("64", 0.05), ("1k", 0.6), ("64k", 3.01)], &STEADY);
            records.extend(sweep(&[("16k", 2.038)], &noisy));
            let text = &texts("best-block", &records)[0];
            assert!(text.ends_with("3.01 GiB/s; 16 KiB is not proved slower."), "{text}");
        }

        /// If many sizes are tied, none is reported as the best.
        #[test]
        fn one_of_many_that_are_tied_is_not_the_best() {
            let all = [("256", 0.1), ("1k", 2.98), ("4k", 2.99), ("64k", 3.0), ("1m", 2.97)];
            assert_eq!(texts("best-block", &sweep(&all, &STEADY)), [""; 0]);
            assert_eq!(texts("best-block", &sweep(&all[..4], &STEADY)), [""; 0]);
            assert_eq!(texts("best-block", &sweep(&all[..3], &STEADY)).len(), 1);
        }

        #[test]
        fn too_few_runs_or_sizes_give_no_finding() {
            assert_eq!(texts("best-block", &sweep(&[("4k", 0.7), ("64k", 3.0), ("1m", 2.5)], &STEADY[..3])), [""; 0]);
            assert_eq!(texts("best-block", &sweep(&[("4k", 0.7), ("64k", 3.0)], &STEADY)), [""; 0]);
        }

        #[test]
        fn irrelevant_block_sizes_are_reported() {
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
                found
                    .iter()
                    .any(|text| text.starts_with("Blocks of 4 KiB are best for vmsplice → read on one core: 6.00"))
            );
        }
    }

    mod capacity {
        use pipemark_model::Record;
        use pipemark_stats::fixture::records;
        use pipemark_stats::fixture::{STEADY, outcome};

        fn measured_records(figures: &[(&str, u64, f64)], runs: &[f64]) -> Vec<Record> {
            let outcomes = figures.iter().map(|(asked, granted_capacity, figure)| {
                let mut outcome = outcome("e", &[("capacity", asked)], *figure, runs);
                outcome.samples.iter_mut().for_each(|sample| sample.capacity_granted = Some(*granted_capacity));
                outcome
            });
            records(outcomes.collect())
        }

        fn texts(figures: &[(&str, u64, f64)], runs: &[f64]) -> Vec<String> {
            crate::findings::texts("capacity", &measured_records(figures, runs))
        }

        #[test]
        fn gain_and_loss_are_relative_to_the_default() {
            let figures =
                [("quota", 8192, 0.84), ("1m", 1 << 20, 3.65), ("default", 65536, 2.4), ("256k", 1 << 18, 3.0)];
            let texts = texts(&figures, &STEADY);
            assert_eq!(
                texts,
                [
                    "A capacity of 1 MiB instead of 64 KiB gives 1.52× (1.52–1.52) the throughput (write → read across two \
                     cores, blocks of 64 KiB).",
                    "A capacity of 8 KiB (the size of new pipes of a user over the limit) instead of 64 KiB cuts throughput \
                     (write → read across two cores, blocks of 64 KiB) to 35.0 % (35.0–35.0).",
                ]
            );
        }

        #[test]
        fn without_a_default_the_smallest_is_the_base() {
            let texts = texts(&[("1m", 1 << 20, 2.0), ("64k", 65536, 1.0)], &STEADY);
            assert!(texts.len() == 1 && texts[0].starts_with("A capacity of 1 MiB instead of 64 KiB gives 2.00×"));
        }

        #[test]
        fn equality_is_reported_unless_inconclusive() {
            let equal = [("default", 65536, 2.4), ("1m", 1 << 20, 2.41)];
            assert!(texts(&equal, &STEADY)[0].starts_with("Capacities from 64 KiB to 1 MiB make no difference"));
            assert_eq!(texts(&equal, &STEADY[..4]), [""; 0]);
        }

        #[test]
        fn capacities_that_were_not_granted_are_not_compared() {
            assert_eq!(texts(&[("default", 65536, 2.4), ("1m", 65536, 3.4)], &STEADY), [""; 0]);
        }
    }

    mod zero_copy {
        use pipemark_model::Record;
        use pipemark_stats::fixture::{STEADY, record};

        use super::super::*;
        use crate::findings::texts;

        fn pipe_trial(send: &str, recv: &str, rest: &[(&str, &str)], figure: f64) -> Record {
            record("e", &[&[("send", send), ("recv", recv)], rest].concat(), figure, &STEADY)
        }

        #[test]
        fn each_figure_says_what_the_reader_saw() {
            let records = [
                pipe_trial("write", "read", &[], 2.0),
                pipe_trial("io-uring", "io-uring", &[], 9.0),
                pipe_trial("vmsplice", "splice", &[], 40.0),
                pipe_trial("vmsplice", "splice", &[("pages", "huge")], 50.0),
                pipe_trial("tee", "splice", &[], 70.0),
                pipe_trial("vmsplice", "splice", &[("wait", "spin")], 90.0),
                pipe_trial("vmsplice", "read", &[], 3.0),
                pipe_trial("splice", "read", &[], 1.0),
            ];
            assert_eq!(
                texts("zero-copy", &records),
                [
                    "Zero copy with vmsplice → splice from huge pages is 25.0× (25.0–25.0) as fast as write → read (50.0 GiB/s \
                     against 2.00 GiB/s) across two cores (blocks of 64 KiB); the bytes never reached the reader's memory.",
                    "One copy instead of two with vmsplice → read is 1.50× (1.50–1.50) as fast as write → read (3.00 GiB/s against 2.00 \
                     GiB/s) across two cores (blocks of 64 KiB); the bytes reached the reader's memory, but were not checked.",
                ]
            );
        }

        /// vmsplice copies bytes out of a pipe, so vmsplice → vmsplice copies once.
        #[test]
        fn one_copy_is_not_called_zero_copy() {
            let records = [pipe_trial("write", "read", &[], 2.0), pipe_trial("vmsplice", "vmsplice", &[], 3.0)];
            let text = &texts("zero-copy", &records)[0];
            assert!(text.starts_with("One copy instead of two with vmsplice → vmsplice is 1.50×"), "{text}");
        }

        #[test]
        fn verifying_readers_are_distinguished_from_others() {
            let xor = [("verify", "xor")];
            let text =
                &texts("zero-copy", &[pipe_trial("write", "read", &xor, 2.0), pipe_trial("splice", "read", &xor, 3.0)])
                    [0];
            assert!(text.ends_with("; the reader checked every byte."), "{text}");
        }

        #[test]
        fn spinning_is_not_compared_with_blocking() {
            let records =
                [pipe_trial("write", "read", &[], 2.0), pipe_trial("vmsplice", "splice", &[("wait", "spin")], 90.0)];
            assert_eq!(texts("zero-copy", &records), [""; 0]);
        }

        #[test]
        fn a_loss_is_reported_unless_inconclusive() {
            let plain = pipe_trial("write", "read", &[], 2.0);
            let text = &texts("zero-copy", &[plain.clone(), pipe_trial("vmsplice", "read", &[], 1.0)])[0];
            assert!(text.contains("is only 0.50×"), "{text}");
            assert_eq!(texts("zero-copy", &[plain.clone(), pipe_trial("vmsplice", "read", &[], 2.02)]), [""; 0]);
            let few = record("e", &[("send", "vmsplice")], 9.0, &STEADY[..3]);
            assert_eq!(texts("zero-copy", &[plain, few]), [""; 0]);
        }

        #[test]
        fn fresh_data_is_compared_at_the_best_capacity_of_each() {
            let full = |send: &str, capacity: &str, figure: f64| {
                pipe_trial(send, "read", &[("verify", "full"), ("capacity", capacity)], figure)
            };
            let mut records = [
                full("write", "64k", 2.5),
                full("write", "1m", 2.0),
                full("vmsplice", "64k", 2.4),
                full("vmsplice", "1m", 4.0),
            ];
            assert_eq!(texts("zero-copy", &records), [""; 0]);
            assert_eq!(
                texts("fresh-data", &records),
                [
                    "Fresh data, each byte newly written and checked by the reader: vmsplice → read is 1.60× (1.60–1.60) \
                  as fast as write → read (4.00 GiB/s at capacity 1 MiB against 2.50 GiB/s at capacity 64 KiB), across two cores \
                  (blocks of 64 KiB)."
                ]
            );
            records[3].warnings.push(Warning::NearCeiling { end: "sink".to_owned(), ceiling: 4.1e9, own_work: false });
            assert!(texts("fresh-data", &records)[0].ends_with("the pipe itself may be faster."));
            assert_eq!(texts("fresh-data", &records[..2]), [""; 0]);
        }
    }
}
