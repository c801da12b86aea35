//! Block size: where throughput is best, and what a call and a byte cost.

use serde_json::json;

use super::contrast::Contrast;
use super::words::{figures, rate, setting};
use super::{Found, Subject, fastest, groups};
use crate::model::{ByteSize, Key, Nanos, three_digits};
use crate::stats::fit::{Coefficient, Line, Weighting};

/// The fewest sizes of which one can be called the best.
const FEWEST_SIZES: usize = 3;
/// The fewest sizes from which two costs are told: with three, one stray makes a line.
const FEWEST_FITTED: usize = 4;
/// The share of the time that calls have to take at the smallest size, and bytes at the largest: a sweep that never
/// comes to where a cost matters cannot tell it.
const LEAST_SHARE: f64 = 0.1;
/// As good as the best: at most this much slower.
const NEARLY: f64 = 0.05;
/// The share of variance a line has to explain.
const LEAST_R_SQUARED: f64 = 0.95;
/// How far a size may lie off the line, as a fraction of what the line says.
const MOST_EXCESS: f64 = 0.3;

/// Subjects that differ in nothing but their block size, the smallest first.
fn sweeps<'a>(subjects: &[Subject<'a>], fewest: usize) -> Vec<Vec<Subject<'a>>> {
    let mut sweeps = groups(subjects, |params| params.block = ByteSize(0));
    sweeps.retain(|sweep| sweep.len() >= fewest);
    sweeps.iter_mut().for_each(|sweep| sweep.sort_by_key(|subject| subject.params.block));
    sweeps
}

/// The best block size of each sweep, and the sizes next to it that are as good.
pub(super) fn best(subjects: &[Subject]) -> Vec<Found> {
    sweeps(subjects, FEWEST_SIZES).iter().filter_map(|sweep| best_of(sweep)).collect()
}

fn best_of(sweep: &[Subject]) -> Option<Found> {
    let best = fastest(sweep.iter().copied())?;
    let peak = sweep.iter().position(|subject| subject.params.block == best.params.block)?;
    let within = |subject: &Subject| subject.throughput() >= (1.0 - NEARLY) * best.throughput();
    // A size belongs to the range unless it is slower for certain, so what ends the range is no accident.
    let slower = |subject: &Subject| Contrast::throughput(best, *subject).is_some_and(|contrast| contrast.less());
    let inside = |subject: &&Subject| within(subject) || !slower(subject);
    let first = peak - sweep[..peak].iter().rev().take_while(inside).count();
    let last = peak + sweep[peak + 1..].iter().take_while(inside).count();
    let range = &sweep[first..=last];
    let (from, to) = (range[0].params.block, range[range.len() - 1].params.block);
    let setting = setting(best.params, &[Key::Block]);
    let evidence = json!({
        "best": best.params.block, "from": from, "to": to, "sweep": sweep.iter().copied().map(figures).collect::<Vec<_>>(),
    });
    let least = sweep.iter().map(|subject| subject.throughput()).fold(f64::INFINITY, f64::min);
    let effect = (best.throughput() / least).ln();

    if range.len() == sweep.len() {
        let equal = |subject: &Subject| {
            subject.params.block == best.params.block
                || Contrast::throughput(best, *subject).is_some_and(|contrast| contrast.low >= 1.0 - NEARLY)
        };
        return range.iter().all(equal).then(|| {
            let text = format!(
                "Block size hardly matters from {from} to {to} for {setting}: all are within 5 % of {}.",
                rate(best)
            );
            Found::new("best-block", effect, text, evidence)
        });
    }
    let rest = match range {
        [_] => "no other size comes within 5 % of it".to_owned(),
        _ if range.iter().all(within) => format!("{from} to {to} are within 5 % of it"),
        _ => format!("{from} to {to} are within 5 % of it or cannot be told from it"),
    };
    let text = format!("Blocks of {} are best for {setting}: {}; {rest}.", best.params.block, rate(best));
    Some(Found::new("best-block", effect, text, evidence))
}

/// What a call costs and what a byte costs, for each sweep whose time per block is a straight line of the block size.
pub(super) fn cost(subjects: &[Subject]) -> Vec<Found> {
    sweeps(subjects, FEWEST_FITTED).iter().filter_map(|sweep| cost_of(sweep)).collect()
}

fn cost_of(sweep: &[Subject]) -> Option<Found> {
    let sizes: Vec<f64> = sweep.iter().map(|subject| subject.params.block.0 as f64).collect();
    let times: Vec<f64> = sweep.iter().zip(&sizes).map(|(subject, size)| size * 1e9 / subject.throughput()).collect();
    // The longest start of the sweep that is straight: the largest blocks may outgrow a cache or the pipe.
    let (line, sizes) = (FEWEST_FITTED..=sizes.len()).rev().find_map(|points| {
        let (sizes, times) = (&sizes[..points], &times[..points]);
        let line = Line::fit(sizes, times, Weighting::Relative)?;
        let near = sizes.iter().zip(times).all(|(size, time)| line.excess(*size, *time).abs() <= MOST_EXCESS);
        let calls = line.intercept.value / line.at(sizes[0]);
        let bytes = 1.0 - line.intercept.value / line.at(sizes[points - 1]);
        let told = calls >= LEAST_SHARE && bytes >= LEAST_SHARE && certain(&line.intercept) && certain(&line.slope);
        (near && told && line.r_squared >= LEAST_R_SQUARED).then_some((line, sizes))
    })?;
    let (call, byte) = (line.intercept.value, line.slope.value);
    let (per, unit) = if byte * 1024.0 >= 10.0 { (1024.0, "KiB") } else { (1024.0 * 1024.0, "MiB") };
    let subject = sweep[0];
    let (from, to) = (subject.params.block, sweep[sizes.len() - 1].params.block);
    let even = ByteSize(two_digits(call / byte));
    let text = format!(
        "Each block costs about {} ({} to {}) for the calls and {} ({} to {}) per {unit} with {}, by a line from {from} to \
         {to} with R² {}; below about {even} the calls cost more than the bytes.",
        time(call),
        time(line.intercept.low?),
        time(line.intercept.high?),
        time(byte * per),
        time(line.slope.low? * per),
        time(line.slope.high? * per),
        setting(subject.params, &[Key::Block]),
        r_squared(line.r_squared),
    );
    let evidence = json!({
        "ns_per_call": line.intercept, "ns_per_byte": line.slope, "r_squared": line.r_squared, "points": line.points,
        "from": from, "to": to, "even_at": even,
    });
    Some(Found::new("call-cost", line.r_squared, text, evidence))
}

fn certain(coefficient: &Coefficient) -> bool {
    coefficient.low.is_some_and(|low| low > 0.0)
}

/// What a fit can tell of where two costs are equal.
fn two_digits(value: f64) -> u64 {
    let unit = 10f64.powf(value.max(10.0).log10().floor() - 1.0);
    ((value / unit).round() * unit) as u64
}

/// R² cut, not rounded: 0.9996 is not 1.
fn r_squared(value: f64) -> String {
    format!("{:.3}", (value * 1000.0).floor() / 1000.0)
}

/// Nanoseconds in the unit people use for them, below a microsecond with three digits.
fn time(ns: f64) -> String {
    if ns < 1000.0 { format!("{} ns", three_digits(ns)) } else { Nanos(ns.round() as u64).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::subjects;
    use crate::stats::fixture::{GIB, STEADY, record};

    fn sweep(figures: &[(&str, f64)], runs: &[f64]) -> Vec<Record> {
        figures.iter().map(|(block, figure)| record("e", &[("block", block)], *figure, runs)).collect()
    }

    fn texts(rule: fn(&[Subject]) -> Vec<Found>, records: &[Record]) -> Vec<String> {
        rule(&subjects(records)).into_iter().map(|found| found.finding.text).collect()
    }

    #[test]
    fn the_best_size_and_its_equals_are_found() {
        let figures = [("1m", 2.6), ("256", 0.06), ("4k", 0.7), ("64k", 2.95), ("256k", 3.05)];
        assert_eq!(
            texts(best, &sweep(&figures, &STEADY)),
            [
                "Blocks of 256 KiB are best for write → read across two cores: 3.05 GiB/s; 64 KiB to 256 KiB are within 5 % of it."
            ]
        );
        let figures = [("4k", 0.7), ("64k", 3.0), ("1m", 2.5)];
        assert_eq!(
            texts(best, &sweep(&figures, &STEADY)),
            [
                "Blocks of 64 KiB are best for write → read across two cores: 3.00 GiB/s; no other size comes within 5 % of it."
            ]
        );
    }

    #[test]
    fn the_range_is_contiguous() {
        let figures = [("1k", 2.98), ("4k", 2.0), ("64k", 3.0), ("1m", 2.5)];
        let found = &best(&subjects(&sweep(&figures, &STEADY)))[0].finding;
        assert_eq!((found.evidence["from"].as_u64(), found.evidence["to"].as_u64()), (Some(65536), Some(65536)));
    }

    #[test]
    fn noise_widens_the_range_or_silences() {
        let noisy = [1.0, 1.15, 0.85, 1.1, 0.9, 1.2, 0.8];
        let mut records = sweep(&[("4k", 0.7), ("64k", 3.0)], &STEADY);
        records.extend(sweep(&[("1m", 2.7)], &noisy));
        let text = &texts(best, &records)[0];
        assert!(text.ends_with("64 KiB to 1 MiB are within 5 % of it or cannot be told from it."), "{text}");
        // Each with a noise of its own: nothing to say.
        let turned = |by: usize| [&noisy[by..], &noisy[..by]].concat();
        let mut records = sweep(&[("4k", 2.8)], &turned(1));
        records.extend(sweep(&[("64k", 3.0)], &turned(3)));
        records.extend(sweep(&[("1m", 2.7)], &turned(5)));
        assert_eq!(texts(best, &records), [""; 0]);
    }

    #[test]
    fn too_few_runs_or_sizes_say_nothing() {
        assert_eq!(texts(best, &sweep(&[("4k", 0.7), ("64k", 3.0), ("1m", 2.5)], &STEADY[..3])), [""; 0]);
        assert_eq!(texts(best, &sweep(&[("4k", 0.7), ("64k", 3.0)], &STEADY)), [""; 0]);
    }

    #[test]
    fn sizes_that_do_not_matter_are_said_not_to() {
        let found = texts(best, &sweep(&[("4k", 3.0), ("64k", 3.01), ("1m", 2.99)], &STEADY));
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
        let found = texts(best, &records);
        assert_eq!(found.len(), 4);
        assert!(
            found.iter().any(|text| text.starts_with("Blocks of 4 KiB are best for vmsplice → read on one core: 6.00"))
        );
    }

    /// 700 ns per call and 0.3 ns per byte, off by the given fractions.
    fn line(noise: &[f64], runs: &[f64]) -> Vec<Record> {
        let sizes = [64.0f64, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0];
        let figures = sizes.iter().zip(noise.iter().cycle()).map(|(size, noise)| {
            let throughput = size * 1e9 / ((700.0 + 0.3 * size) * noise) / GIB;
            record("e", &[("block", &size.to_string())], throughput, runs)
        });
        figures.collect()
    }

    #[test]
    fn a_call_and_a_byte_have_their_cost() {
        let found = &cost(&subjects(&line(&[1.0, 1.01, 0.99], &STEADY)))[0].finding;
        let value = |name: &str| found.evidence[name]["value"].as_f64().unwrap();
        assert!((value("ns_per_call") / 700.0 - 1.0).abs() < 0.02 && (value("ns_per_byte") / 0.3 - 1.0).abs() < 0.02);
        assert_eq!(
            found.text,
            "Each block costs about 701 ns (690 ns to 712 ns) for the calls and 307 ns (303 ns to 311 ns) per KiB with write → \
             read across two cores, by a line from 64 B to 256 KiB with R² 0.999; below about 2300 B the calls cost more than \
             the bytes."
        );
    }

    #[test]
    fn what_is_no_line_has_no_cost() {
        assert_eq!(texts(cost, &line(&[1.0, 2.0, 0.5, 1.7], &STEADY)), [""; 0]);
        let flat: Vec<Record> = sweep(&[("64", 3.0), ("1k", 3.0), ("4k", 3.0), ("64k", 3.0)], &STEADY);
        assert_eq!(texts(cost, &flat), [""; 0], "no cost per call");
    }

    #[test]
    fn a_bend_at_large_blocks_ends_the_line() {
        let mut records = line(&[1.0, 1.01, 0.99], &STEADY);
        records.push(record("e", &[("block", "1m")], 0.5, &STEADY));
        let found = &cost(&subjects(&records))[0].finding;
        assert_eq!(found.evidence["to"], 262144);
    }
}
