//! The costs per call or message and per byte, from a straight line fitted to time as a function of size.

use serde_json::{Map, Value, json};

use pipemark_model::{ByteSize, Key, total_order};
use pipemark_stats::fit::{Coefficient, FittedLine, MIN_R_SQUARED, Weighting};

use crate::findings::link::Rivals;
use crate::findings::measured::{common_settings, first_findings, groups};
use crate::findings::words::{setting, situation, time};
use crate::findings::{Candidate, MeasuredTrial};

/// The minimum number of sizes for a fit of the two costs. With three sizes, one outlier determines the line.
const MIN_FITTED: usize = 4;
/// The minimum share of time that calls must take at the smallest size, and bytes at the largest. If a cost has a
/// smaller share at all sizes, the fit doesn't determine it.
const MIN_SHARE: f64 = 0.1;
/// The largest deviation of a size from the line, as a fraction of the line's value.
const MAX_EXCESS: f64 = 0.3;

/// The two costs of a block or message in nanoseconds: the fixed cost and the cost per byte.
struct Cost {
    line: FittedLine,
    from: ByteSize,
    to: ByteSize,
}

impl Cost {
    /// The cost from trials that differ only in size, smallest first. The time of a block is the mean time between two
    /// blocks. The time of a message is half a round trip.
    fn of(sweep: &[MeasuredTrial]) -> Option<Cost> {
        let point = |one: &MeasuredTrial| {
            let size = one.ends().block.0 as f64;
            let trip = one.estimates.round_trip();
            (size, trip.map_or_else(|| size * 1e9 / one.throughput(), |trip| trip.median / 2.0))
        };
        let (sizes, times): (Vec<f64>, Vec<f64>) = sweep.iter().map(point).unzip();
        // The fit uses the longest straight part that begins at the smallest size. Larger blocks may exceed a cache or
        // the link's capacity.
        let straight = |points: usize| {
            let (sizes, times) = (&sizes[..points], &times[..points]);
            let line = FittedLine::fit(sizes, times, Weighting::Relative)?;
            let near =
                sizes.iter().zip(times).all(|(size, time)| line.relative_residual(*size, *time).abs() <= MAX_EXCESS);
            let calls = line.intercept.value / line.at(sizes[0]);
            let bytes = 1.0 - line.intercept.value / line.at(sizes[points - 1]);
            let certain = |cost: &Coefficient| cost.low.is_some_and(|low| low > 0.0);
            let sure = near && certain(&line.intercept) && certain(&line.slope) && line.r_squared >= MIN_R_SQUARED;
            let (from, to) = (sweep[0].ends().block, sweep[points - 1].ends().block);
            (sure && calls >= MIN_SHARE && bytes >= MIN_SHARE).then_some(Cost { line, from, to })
        };
        (MIN_FITTED..=sizes.len()).rev().find_map(straight)
    }

    /// The size at which the bytes of a block cost as much as the call. It is rounded to two digits, the precision of a
    /// fit. `None` if the size is outside the range of fitted sizes.
    fn break_even_block(&self) -> Option<ByteSize> {
        let size = self.line.intercept.value / self.line.slope.value;
        let unit = 10f64.powf(size.max(10.0).log10().floor() - 1.0);
        let size = ByteSize(((size / unit).round() * unit) as u64);
        (self.from..=self.to).contains(&size).then_some(size)
    }

    /// The unit of the cost per byte: its number of bytes, and its name.
    fn unit(&self) -> (f64, &'static str) {
        if self.line.slope.value * 1024.0 >= 10.0 { (1024.0, "KiB") } else { (1024.0 * 1024.0, "MiB") }
    }

    /// R² as text, truncated so that 0.9996 isn't shown as 1.
    fn r_squared(&self) -> String {
        format!("R² {:.3}", (self.line.r_squared * 1000.0).floor() / 1000.0)
    }

    fn evidence(&self) -> Value {
        json!({
            "ns_per_call": self.line.intercept, "ns_per_byte": self.line.slope, "r_squared": self.line.r_squared,
            "points": self.line.points, "from": self.from, "to": self.to, "even_at": self.break_even_block(),
        })
    }
}

/// The costs per call and per byte, for each sweep whose time per block is linear in the block size. Links measured
/// together with other links under the same conditions are reported by [`message_costs`] instead.
pub(super) fn call_costs(parts: &[Vec<MeasuredTrial>], rivals: &[Rivals]) -> Vec<Candidate> {
    let has_rivals = |sweep: &[MeasuredTrial]| {
        let sweeps = rivals.iter().flat_map(|rivals| rivals.names.iter().flat_map(|name| rivals.sweep(name)));
        sweeps.into_iter().any(|one| sweep.iter().any(|other| std::ptr::eq(other.record, one.record)))
    };
    let mut sweeps: Vec<Vec<MeasuredTrial>> = parts.iter().flat_map(|part| groups(part, &[Key::Block])).collect();
    sweeps.retain(|sweep| !has_rivals(sweep));
    sweeps.iter_mut().for_each(|sweep| sweep.sort_by_cached_key(|one| one.ends().block));
    first_findings(&sweeps, |sweep| common_settings(&sweep[0], &[Key::Block]), |sweep| call_cost(sweep))
}

fn call_cost(sweep: &[MeasuredTrial]) -> Option<Candidate> {
    let cost = Cost::of(sweep)?;
    let (per, unit) = cost.unit();
    let words = |cost: Coefficient, by: f64| {
        Some(format!("{} ({}–{})", time(cost.value * by), time(cost.low? * by), time(cost.high? * by)))
    };
    let ends = sweep[0].ends();
    let calls = match ends.read_block {
        None if ends.link.is_pipe() || ends.link.is_socket() => format!("one {} and one {}", ends.send, ends.recv),
        _ => "the calls".to_owned(),
    };
    let even = cost
        .break_even_block()
        .map_or_else(String::new, |size| format!("; below about {size}, the calls cost more than the bytes"));
    let text = format!(
        "Each block costs about {} for {calls}, plus {} per {unit}, with {} (linear fit from {} to {}, {}){even}.",
        words(cost.line.intercept, 1.0)?,
        words(cost.line.slope, per)?,
        setting(sweep[0].job, &[Key::Block]),
        cost.from,
        cost.to,
        cost.r_squared(),
    );
    let mut evidence = cost.evidence();
    let fitted = sweep.iter().filter(|one| one.ends().block <= cost.to);
    evidence["sweep"] = fitted.map(|one| one.evidence()).collect();
    Some(Candidate::new("call-cost", cost.line.r_squared, text, evidence))
}

/// The cost of a message over each of several links.
pub(super) fn message_costs(rivals: &Rivals) -> Option<Candidate> {
    let cost = |name: &String| Some((name.clone(), Cost::of(&rivals.sweep(name))?));
    let mut costs: Vec<(String, Cost)> = rivals.names.iter().filter_map(cost).collect();
    costs.sort_by_cached_key(|(_, cost)| total_order(cost.line.intercept.value));
    if costs.len() < 2 {
        return None;
    }
    let clause = |(name, cost): &(String, Cost)| {
        let (per, unit) = cost.unit();
        let until = if Some(&cost.to) == rivals.sizes.last() { String::new() } else { format!(" up to {}", cost.to) };
        let (call, bytes) = (time(cost.line.intercept.value), time(cost.line.slope.value * per));
        format!(
            "{} {call} + {bytes} per {unit} ({}{until})",
            rivals.name_with_work(name, &rivals.names),
            cost.r_squared()
        )
    };
    let what = if rivals.job().is_round_trip() { "Cost of a message (half a round trip)" } else { "Cost of a block" };
    let clauses: Vec<String> = costs.iter().map(clause).collect();
    let situation = situation(rivals.job());
    let text = format!("{what} {situation}, fixed cost + cost by size: {}.", clauses.join("; "));
    let by_link: Map<String, Value> = costs.iter().map(|(name, cost)| (name.clone(), cost.evidence())).collect();
    Some(Candidate::new("message-cost", costs.len() as f64, text, json!({ "by_link": by_link })))
}

#[cfg(test)]
mod tests {
    use pipemark_model::Record;
    use pipemark_stats::fixture::{GIB, STEADY, record, round_trip_record};

    use crate::findings::findings_of_rule;

    const NOISE: [f64; 3] = [1.0, 1.01, 0.99];
    const SIZES: [f64; 7] = [64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0];

    fn texts(records: &[Record]) -> Vec<String> {
        crate::findings::texts("call-cost", records)
    }

    /// Trials that take `call` ns per call and `byte` ns per byte. `noise` has the relative error of each trial.
    fn line_of(way: &[(&str, &str)], call: f64, byte: f64, noise: &[f64]) -> Vec<Record> {
        let figures = SIZES.iter().zip(noise.iter().cycle()).map(|(size, noise)| {
            let throughput = size * 1e9 / ((call + byte * size) * noise) / GIB;
            record("e", &[way, &[("block", &*size.to_string())]].concat(), throughput, &STEADY)
        });
        figures.collect()
    }

    fn line(noise: &[f64]) -> Vec<Record> {
        line_of(&[], 700.0, 0.3, noise)
    }

    #[test]
    fn the_cost_per_call_and_per_byte_is_fitted() {
        let found = &findings_of_rule("call-cost", &line(&NOISE))[0];
        let value = |name: &str| found.evidence[name]["value"].as_f64().unwrap();
        assert!((value("ns_per_call") / 700.0 - 1.0).abs() < 0.02 && (value("ns_per_byte") / 0.3 - 1.0).abs() < 0.02);
        assert_eq!(
            found.text,
            "Each block costs about 701 ns (690 ns–712 ns) for one write and one read, plus 307 ns (303 ns–311 ns) per KiB, with write \
             → read across two cores (linear fit from 64 B to 256 KiB, R² 0.999); below about 2300 B, the calls cost more than \
             the bytes."
        );
    }

    /// A size outside the fitted range isn't reported.
    #[test]
    fn sizes_outside_the_fit_are_not_reported() {
        let fitted = |largest: usize| texts(&line(&NOISE)[..largest])[0].clone();
        assert!(fitted(5).contains("from 64 B to 16 KiB") && fitted(5).contains("below about 2300 B"), "{}", fitted(5));
        assert!(fitted(4).contains("from 64 B to 4 KiB") && fitted(4).contains("below about"), "{}", fitted(4));
        let costly = line_of(&[], 2300.0, 0.3, &NOISE);
        let text = &texts(&costly[..4])[0];
        assert!(text.contains("from 64 B to 4 KiB") && !text.contains("below"), "{text}");
    }

    #[test]
    fn without_a_linear_fit_there_is_no_cost() {
        assert_eq!(texts(&line(&[1.0, 2.0, 0.5, 1.7])), [""; 0]);
        let at = |block| record("e", &[("block", block)], 3.0, &STEADY);
        let flat: Vec<Record> = ["64", "1k", "4k", "64k"].map(at).into();
        assert_eq!(texts(&flat), [""; 0], "no cost per call");
    }

    #[test]
    fn a_bend_at_large_blocks_ends_the_line() {
        let mut records = line(&NOISE);
        records.push(record("e", &[("block", "1m")], 0.5, &STEADY));
        let found = &findings_of_rule("call-cost", &records)[0];
        assert_eq!(found.evidence["to"], 262144);
    }

    #[test]
    fn links_with_equal_settings_share_a_finding() {
        let mut records = line(&NOISE);
        assert!(findings_of_rule("message-cost", &records).is_empty(), "one link");
        records.extend(line_of(&[("link", "shm")], 90.0, 0.008, &[1.0]));
        records.extend(line_of(&[("link", "tcp")], 90.0, 0.0, &NOISE));
        let found = findings_of_rule("message-cost", &records);
        assert_eq!(
            found[0].text,
            "Cost of a block across two cores, fixed cost + cost by size: shm 90.0 ns + 8.39 µs per MiB (R² 1.000); pipe 701 ns + \
             307 ns per KiB (R² 0.999)."
        );
        assert!((found[0].evidence["by_link"]["shm"]["ns_per_call"]["value"].as_f64().unwrap() - 90.0).abs() < 0.1);
        assert_eq!(texts(&records), [""; 0], "no link is reported twice");
    }

    #[test]
    fn a_message_is_half_a_round_trip() {
        let trips = |link: &str, call: f64| -> Vec<Record> {
            let at = |size: &f64| {
                round_trip_record(&[("link", link), ("block", &size.to_string())], 2.0 * (call + 0.3 * size), &STEADY)
            };
            SIZES.iter().map(at).collect()
        };
        let records = [trips("pipe", 2_000.0), trips("tcp", 9_000.0)].concat();
        let text = &findings_of_rule("message-cost", &records)[0].text;
        assert!(
            text.starts_with(
                "Cost of a message (half a round trip) across two cores, fixed cost + cost by size: pipe 2.00 µs + 307 ns per KiB"
            ),
            "{text}"
        );
    }
}
