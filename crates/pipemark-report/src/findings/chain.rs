//! Findings about chains: the cost of one more process (in time per GiB and in start time), the linearity of this cost,
//! and comparison with published chains.

use serde_json::{Value, json};

use pipemark_model::{
    GIB, Key, MAX_START, Sample, Statistic, Throughput, between, counted, group_by_key, three_digits, total_order,
};
use pipemark_stats::estimate::median;
use pipemark_stats::fit::{FittedLine, Linearity, MIN_POINTS, MIN_R_SQUARED, Weighting};

use crate::findings::measured::common_settings;
use crate::findings::words::{setting, time};
use crate::findings::{Candidate, MeasuredTrial};

/// The largest deviation from a straight line, as a fraction. pipe-speed calls a chain linear "give or take about 10
/// %".
const MAX_DEPARTURE: f64 = 0.1;

/// The largest ratio of the ends of a reported figure's interval.
const MAX_SPREAD: f64 = 2.0;

/// The measurement of a chain of one length.
struct ChainPoint<'a> {
    measured: MeasuredTrial<'a>,
    /// The number of stages; 0 for a plain stream in an experiment with chains.
    length: f64,
    /// Real time in seconds, as time(1) reports it. It includes the start of all processes.
    real: f64,
    /// The minimum real time in seconds of all runs.
    least_real: f64,
    /// Seconds from the start of the transfer to the last byte.
    flow: f64,
    bytes: f64,
}

impl<'a> ChainPoint<'a> {
    fn of(measured: MeasuredTrial<'a>) -> Option<ChainPoint<'a>> {
        let samples = &measured.record.samples;
        let middle = |figure: fn(&Sample) -> u64| {
            median(&samples.iter().map(|sample| figure(sample) as f64).collect::<Vec<_>>())
        };
        let length = measured.job.chain().map_or(0, |chain| chain.length);
        let (real, flow) = (middle(Sample::real)? / 1e9, middle(|sample| sample.ns)? / 1e9);
        let least_real = samples.iter().map(Sample::real).min()? as f64 / 1e9;
        let bytes = middle(|sample| sample.bytes)?;
        Some(ChainPoint { measured, length: f64::from(length), real, least_real, flow, bytes })
    }

    /// Bytes per second that all stages together pass on while data flows.
    fn per_hop(&self) -> f64 {
        self.length * self.bytes / self.flow
    }

    /// The rate per hop as text, with its interval if that is narrow enough.
    fn per_hop_in_words(&self) -> String {
        let estimate = self.measured.record.estimate.as_ref().map(|estimates| estimates.throughput());
        let length = self.length;
        let stages = counted(length as usize, "stage");
        match estimate.and_then(|estimate| Some((estimate.median, estimate.low?, estimate.high?))) {
            Some((median, low, high)) if low > 0.0 && high <= MAX_SPREAD * low => {
                let hop = |rate: f64| Throughput(length * rate).to_string();
                format!("Transfer per hop at {stages}: {} ({})", hop(median), between(&hop(low), &hop(high)))
            }
            _ => format!("Transfer per hop at {stages}: too noisy to give"),
        }
    }
}

fn column<T>(points: &[T], figure: impl Fn(&T) -> f64) -> Vec<f64> {
    points.iter().map(figure).collect()
}

fn stage(measured: MeasuredTrial) -> String {
    measured.record.shown(Key::Stage)
}

/// The cost of one more stage, from chains that differ only in their length.
pub(super) fn cost(group: &[MeasuredTrial]) -> Option<Candidate> {
    let mut points: Vec<ChainPoint> = group.iter().filter_map(|one| ChainPoint::of(*one)).collect();
    points.sort_by_cached_key(|one| total_order(one.length));
    if points.len() < MIN_POINTS || points.iter().any(|point| point.flow <= 0.0 || point.bytes <= 0.0) {
        return None;
    }
    let lengths = column(&points, |point| point.length);
    let flow = column(&points, |point| point.flow / (point.bytes / GIB));
    let alike = points.iter().all(|point| point.measured.job.volume().is_equivalent(points[0].measured.job.volume()));
    // If the chains have different volumes, real time is computed for 1 GiB: the start time plus the transfer time of 1
    // GiB.
    let real_of = |point: &ChainPoint| match alike {
        true => point.real,
        false => point.real - point.flow + point.flow / (point.bytes / GIB),
    };
    let per_volume = if alike { "" } else { " for 1 GiB" };
    let real = column(&points, real_of);
    let starting = column(&points, |point| point.real - point.flow);
    // Real time is used, as in pipe-speed. Long chains compete for CPUs and short ones don't, so the linear part may
    // begin at a longer chain.
    let departure =
        |from: usize| Linearity::of(&lengths[from..], &real[from..], MAX_DEPARTURE).map(|line| line.departure);
    let begin = (0..=points.len() - MIN_POINTS).find(|&begin| departure(begin) == Some(None));
    let fitted = begin.unwrap_or(0);
    let per_gib = FittedLine::fit(&lengths[fitted..], &flow[fitted..], Weighting::Relative)?;
    let of_real = FittedLine::fit(&lengths[fitted..], &real[fitted..], Weighting::Relative)?;
    let to_start = FittedLine::fit(&lengths, &starting, Weighting::Equal)?;
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let seconds = |seconds: f64| time(seconds.max(0.0) * 1e9);
    let fits = |line: &FittedLine| line.r_squared >= MIN_R_SQUARED;
    // A cost whose interval includes zero, or spans more than a factor of two, is not reported.
    let cost = |line: &FittedLine| match (line.slope.low, line.slope.high) {
        _ if !fits(line) => None,
        (Some(low), Some(high)) if low > 0.0 && high <= MAX_SPREAD * low => {
            Some(format!("{} ({})", seconds(line.slope.value), between(&seconds(low), &seconds(high))))
        }
        _ => None,
    };
    let per_stage = match [cost(&per_gib), cost(&to_start)] {
        [None, None] => "the cost of an additional stage is inconclusive".to_owned(),
        [Some(flow), None] => format!("each additional stage costs {flow} per GiB"),
        [None, Some(start)] => {
            format!("the cost per GiB of an additional stage is inconclusive. To start and end one takes {start}")
        }
        [Some(flow), Some(start)] => {
            format!("each additional stage costs {flow} per GiB. To start and end one takes {start}")
        }
    };
    let r_squared = if fits(&of_real) { format!(" (R² {:.4})", of_real.r_squared) } else { String::new() };
    let shape = match (begin, departure(0).flatten()) {
        (Some(0), _) => format!("Real time{per_volume} is within 10 % of a straight line for all lengths{r_squared}"),
        (Some(_), _) => format!(
            "Over this range, real time{per_volume} is within 10 % of a straight line{r_squared}, but not for shorter chains"
        ),
        (None, Some(departure)) => format!(
            "Real time{per_volume} is not linear: {} stages take {:.2} times as long as the line through the shorter chains gives",
            departure.x,
            1.0 + departure.excess
        ),
        (None, None) => {
            format!("Real time{per_volume} is not linear: no three lengths in a row are within 10 % of a straight line")
        }
    };
    // Twice as many stages take twice as long only if the line meets zero. pipe-speed's claims ask for the same: the same
    // time per stage at both ends of the range, to within 10 %.
    let shortest = lengths[fitted..].iter().copied().find(|length| *length > 0.0)?;
    let per_stage_at = |length: f64| of_real.at(length) / length;
    let is_proportional = (per_stage_at(last.length) / per_stage_at(shortest) - 1.0).abs() <= MAX_DEPARTURE;
    let proportional = match begin {
        Some(_) if is_proportional => ", and proportional to the number of stages".to_owned(),
        Some(_) => format!(
            ", but not proportional to the number of stages: the line is at {} s for none",
            three_digits(of_real.intercept.value)
        ),
        None => String::new(),
    };
    // With a command as the source, there is no method of sending and receiving.
    let mut omitted = vec![Key::Length, Key::Stage];
    omitted.extend(first.measured.job.chain().filter(|chain| chain.source.is_some()).map(|_| Key::Send));
    let text = format!(
        "'{}', {}: from {} to {} stages, {per_stage}. {shape}{proportional}. {}.",
        stage(first.measured),
        setting(first.measured.job, &omitted),
        points[fitted].length,
        last.length,
        last.per_hop_in_words(),
    );
    let chain = |point: &ChainPoint| {
        json!({
            "trial": point.measured.record.id, "experiment": point.measured.record.experiment,
            "length": point.length, "real_seconds": point.real, "flow_seconds": point.flow, "per_hop": point.per_hop(),
        })
    };
    let evidence = json!({
        "stage": stage(first.measured), "seconds_per_gib_and_stage": per_gib.slope,
        "seconds_to_start_a_stage": to_start.slope, "flow_per_gib": per_gib, "real": of_real,
        "straight_from": begin.map(|begin| points[begin].length), "proportional": begin.map(|_| is_proportional),
        "residuals_seconds": column(&points, |point| real_of(point) - of_real.at(point.length)),
        "chains": points.iter().map(chain).collect::<Value>(),
    });
    Some(Candidate::new("chain-cost", last.length, text, evidence))
}

/// Compares published chains with measured ones: the lines fitted to both, and the bytes per second that a stage passes
/// on.
pub(super) fn published<'a>(chains: &[MeasuredTrial<'a>]) -> Vec<Candidate> {
    let beside = |one: &MeasuredTrial<'a>| {
        let published = one.record.published.as_ref().filter(|published| published.throughput > 0.0)?;
        let key = (&one.record.experiment, &published.source, stage(*one), common_settings(one, &[Key::Length]));
        Some((key, (ChainPoint::of(*one)?, published.throughput)))
    };
    let mut sources = group_by_key(chains.iter().filter_map(beside));
    sources.sort_by(|one, other| (one.0.0, one.0.1, &one.0.2).cmp(&(other.0.0, other.0.1, &other.0.2)));
    sources.into_iter().filter_map(|((_, source, stage, _), points)| of_source(source, &stage, points)).collect()
}

/// Compares measured chains of `stage` with the published chains of `source`. Each measured chain is paired with its
/// published throughput.
fn of_source(source: &str, stage: &str, mut points: Vec<(ChainPoint, f64)>) -> Option<Candidate> {
    // Runs that consist mostly of start time don't show the rate.
    points.retain(|(point, _)| point.real - point.flow <= MAX_START * point.real);
    points.sort_by_cached_key(|one| total_order(one.0.length));
    if points.len() < MIN_POINTS {
        return None;
    }
    let lengths = column(&points, |(point, _)| point.length);
    let theirs = column(&points, |(_, throughput)| GIB / throughput);
    // Our times are the same statistic as the published ones.
    let published = points[0].0.measured.record.published.as_ref();
    let in_least = published.is_some_and(|figure| figure.statistic == Some(Statistic::Least));
    let real = |point: &ChainPoint| if in_least { point.least_real } else { point.real };
    let ours = column(&points, |(point, _)| real(point) / (point.bytes / GIB));
    let line = |times: &[f64]| {
        let line = FittedLine::fit(&lengths, times, Weighting::Relative)?;
        (line.slope.value > 0.0 && line.r_squared >= MIN_R_SQUARED).then_some(line)
    };
    let (their_line, our_line) = (line(&theirs)?, line(&ours)?);
    let hops: Vec<f64> =
        points.iter().map(|(point, throughput)| point.length * throughput).filter(|&hop| hop > 0.0).collect();
    let least_hop = hops.iter().copied().fold(f64::INFINITY, f64::min);
    let most_hop = hops.iter().copied().fold(0.0, f64::max);
    let straight = Linearity::of(&lengths, &theirs, MAX_DEPARTURE).is_some_and(|line| line.departure.is_none());
    let text = format!(
        "Published (other hardware): each stage costs {} s per GiB, start included. Here{}: {} s per GiB with {stage}, \
         {}× as fast. Source: {source}.",
        three_digits(their_line.slope.value),
        if in_least { ", from the shortest times" } else { "" },
        three_digits(our_line.slope.value),
        three_digits(their_line.slope.value / our_line.slope.value),
    );
    let chain = |(point, throughput): &(ChainPoint, f64)| {
        let published = point.measured.record.published.as_ref();
        json!({
            "trial": point.measured.record.id, "experiment": point.measured.record.experiment,
            "length": point.length, "published": published.map(|figure| figure.shown()), "published_throughput": throughput,
            "published_bytes": published.and_then(|figure| figure.total), "real_seconds": real(point), "bytes": point.bytes,
        })
    };
    let chains: Value = points.iter().map(chain).collect();
    let times = their_line.slope.value / our_line.slope.value;
    let evidence = json!({
        "source": source, "published": their_line, "measured": our_line, "times_as_fast": times, "chains": chains,
        "published_is_linear": straight, "published_per_hop": [least_hop, most_hop],
    });
    Some(Candidate::new("chain-published", points.len() as f64, text, evidence))
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Outcome, Published};
    use pipemark_stats::fixture::records;
    use pipemark_stats::fixture::{STEADY, outcome};

    use super::*;
    use crate::findings::findings;

    /// The shortest times in pipe-speed.log in seconds, for 1.05 GB. Each is preceded by the number of stages.
    const PIPE_SPEED: [(u32, f64); 12] = [
        (0, 0.141),
        (1, 0.455),
        (2, 0.671),
        (4, 1.204),
        (8, 2.768),
        (16, 6.215),
        (32, 12.527),
        (64, 25.405),
        (128, 52.642),
        (256, 110.066),
        (512, 216.976),
        (1024, 405.044),
    ];

    /// A chain with `flow` seconds of transfer and `start` additional seconds for its processes.
    fn chain(length: u32, flow: f64, start: f64) -> Outcome {
        let mut outcome = outcome("chain", &[("length", &length.to_string())], 1.0, &STEADY);
        for sample in &mut outcome.samples {
            sample.bytes = 1_050_000_000;
            sample.ns = (flow * 1e9) as u64;
            sample.wall_ns = ((flow + start) * 1e9) as u64;
        }
        outcome
    }

    fn finding(outcomes: Vec<Outcome>, rule: &str) -> pipemark_model::Finding {
        findings(&records(outcomes), None, &[]).into_iter().find(|finding| finding.rule == rule).expect("a finding")
    }

    #[test]
    fn a_straight_chain_has_two_costs() {
        let gib = 1_050_000_000.0 / GIB;
        let all = (0..8).map(|power| if power == 0 { 0 } else { 1 << power });
        let outcomes = all.map(|n| chain(n, gib * (0.2 + 0.4 * f64::from(n)), 0.01 + 0.002 * f64::from(n))).collect();
        let finding = finding(outcomes, "chain-cost");
        assert!(
            finding.text.contains("from 2 to 128 stages, each additional stage costs 400 ms (")
                && finding
                    .text
                    .contains("Real time is within 10 % of a straight line for all lengths (R² 1.0000), but not "),
            "{}",
            finding.text
        );
        let slope = |name: &str| finding.evidence[name]["value"].as_f64().unwrap();
        assert!((slope("seconds_per_gib_and_stage") - 0.4).abs() < 1e-6);
        assert!((slope("seconds_to_start_a_stage") - 0.002).abs() < 1e-6);
    }

    /// The real times of a run of pipe-speed: the line through them is far below zero without stages, so 8 times as many
    /// stages take 14 times as long.
    #[test]
    fn a_straight_line_that_misses_zero_is_not_proportional() {
        let text = |real: [(u32, f64); 4]| {
            finding(real.map(|(length, seconds)| chain(length, seconds, 0.0)).to_vec(), "chain-cost").text
        };
        let bent = text([(128, 20.1), (256, 55.4), (512, 128.0), (1024, 278.0)]);
        assert!(
            bent.contains("of a straight line for all lengths (R² 0.9")
                && bent.contains(", but not proportional to the number of stages: the line is at -1"),
            "{bent}"
        );
        let published = text([(128, 52.642), (256, 110.066), (512, 216.976), (1024, 405.044)]);
        assert!(
            published.contains("for all lengths (R² 0.99")
                && published.contains("), and proportional to the number of"),
            "{published}"
        );
    }

    #[test]
    fn a_cost_whose_interval_holds_zero_is_inconclusive() {
        let noise = [0.0, 3.0, -2.0, 4.0, -3.0, 2.0];
        let lengths = [0, 1, 2, 4, 8, 16].into_iter().zip(noise);
        let outcomes = lengths.map(|(n, noise)| chain(n, 5.0 + 0.05 * f64::from(n) + noise, 0.01)).collect();
        let text = finding(outcomes, "chain-cost").text;
        assert!(text.contains("of an additional stage is inconclusive"), "{text}");
        assert_eq!(text.matches("Transfer per hop").count(), 1, "{text}");
    }

    #[test]
    fn a_bend_is_reported() {
        let seconds = |n: u32| if n <= 4 { 0.1 + 0.1 * f64::from(n) } else { 0.4 * f64::from(n) - 1.0 };
        let outcomes = [0, 1, 2, 4, 8, 16, 32, 64, 128].map(|n| chain(n, seconds(n), 0.001)).to_vec();
        let text = finding(outcomes, "chain-cost").text;
        assert!(
            text.contains(": from 4 to 128 stages, ") && text.contains("Over this range, real time is within 10 % of"),
            "{text}"
        );
        let outcomes = [1, 2, 4, 8, 16, 32].map(|n| chain(n, f64::from(n * n), 0.001)).to_vec();
        let text = finding(outcomes, "chain-cost").text;
        assert!(text.contains("Real time is not linear"), "{text}");
    }

    #[test]
    fn the_published_table_gives_the_published_conclusion() {
        let outcomes = PIPE_SPEED.map(|(length, seconds)| {
            let mut outcome = chain(length, seconds / 2.0, 0.0);
            let published = Published {
                throughput: 1.05e9 / seconds,
                source: "pipe-speed".to_owned(),
                relative: false,
                ..Published::default()
            };
            outcome.trial.published = Some(published);
            outcome
        });
        let finding = finding(outcomes.to_vec(), "chain-published");
        // The published rates per hop are 2.308 GB/s for a chain of one stage and 3.488 GB/s for four stages.
        let per_hop = |end: usize| finding.evidence["published_per_hop"][end].as_f64().unwrap();
        assert!((per_hop(0) / 2.308e9 - 1.0).abs() < 1e-3 && (per_hop(1) / 3.488e9 - 1.0).abs() < 1e-3);
        assert!(finding.text.contains("2.00× as fast"), "{}", finding.text);
        assert_eq!(finding.evidence["published_is_linear"], false);
    }

    #[test]
    fn only_chains_that_differ_in_length_are_compared_with_published_ones() {
        let published = |params: &[(&str, &str)], seconds: f64| {
            let mut outcome = outcome("chain", params, 1.0, &STEADY);
            outcome.samples = chain(1, seconds, 0.0).samples;
            let (throughput, source) = (1.05e9 / seconds, "pipe-speed".to_owned());
            outcome.trial.published = Some(Published { throughput, source, ..Published::default() });
            outcome
        };
        let chains = [16, 32, 64].map(|length: u32| published(&[("length", &length.to_string())], f64::from(length)));
        for other in [&[][..], &[("length", "8"), ("place", "same")], &[("length", "8"), ("capacity", "1m")]] {
            let all = [chains.to_vec(), vec![published(other, 8.0)]].concat();
            let evidence = finding(all, "chain-published").evidence;
            assert_eq!(evidence["chains"].as_array().map(Vec::len), Some(3), "{other:?}");
        }
    }

    #[test]
    fn published_least_times_are_compared_with_the_least_times() {
        let text = |statistic| {
            let outcomes = PIPE_SPEED.map(|(length, seconds)| {
                let mut outcome = chain(length, seconds, 0.0);
                outcome.samples[3].wall_ns /= 2;
                outcome.samples[3].ns /= 2;
                let throughput = 1.05e9 / seconds;
                outcome.trial.published = Some(Published { throughput, statistic, ..Published::default() });
                outcome
            });
            finding(outcomes.to_vec(), "chain-published").text
        };
        let least = text(Some(Statistic::Least));
        assert!(least.contains("Here, from the shortest times: ") && least.contains("2.00× as fast"), "{least}");
        let median = text(Some(Statistic::Mean));
        assert!(!median.contains("least") && median.contains("1.00× as fast"), "{median}");
    }
}
