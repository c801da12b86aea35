//! Chains: what one more process costs, in time for each GiB and in time to start; how straight that is; and published
//! chains beside ours.

use std::collections::BTreeMap;

use serde_json::json;

use super::words::{setting, times};
use super::{Found, Subject, groups};
use crate::model::{Key, Nanos, Record, Sample, Throughput, three_digits};
use crate::stats::estimate::median;
use crate::stats::fit::{FEWEST_POINTS, Line, Linearity, Weighting};

/// "Give or take about 10 %" is what the document on pipe speed calls linear.
const STRAIGHT: f64 = 0.1;
const GIB: f64 = (1u64 << 30) as f64;

/// One length of a chain.
struct Point<'a> {
    subject: Subject<'a>,
    length: f64,
    /// Seconds with the start of all processes: what time(1) calls real.
    real: f64,
    /// Seconds from the release of the source to the last byte.
    flow: f64,
    bytes: f64,
}

impl<'a> Point<'a> {
    fn of(subject: Subject<'a>) -> Option<Point<'a>> {
        let samples = &subject.record.samples;
        let middle = |figure: fn(&Sample) -> f64| median(&samples.iter().map(figure).collect::<Vec<_>>());
        Some(Point {
            subject,
            length: f64::from(length(subject)),
            real: middle(|sample| sample.wall_ns as f64 / 1e9)?,
            flow: middle(|sample| sample.ns as f64 / 1e9)?,
            bytes: middle(|sample| sample.bytes as f64)?,
        })
    }

    /// Bytes per second that all stages together passed on, over the time that bytes flowed.
    fn per_hop(&self) -> f64 {
        self.length * self.bytes / self.flow
    }
}

/// How many stages there are: none in a plain stream that is measured beside chains.
fn length(subject: Subject) -> u32 {
    subject.job.chain().map_or(0, |chain| chain.length)
}

fn stage(subject: Subject) -> String {
    subject.job.value(Key::Stage).map_or_else(String::new, |stage| stage.to_string())
}

/// Chains that differ in nothing but their length, from short to long.
fn series<'a>(subjects: &[Subject<'a>]) -> Vec<Vec<Point<'a>>> {
    groups(subjects, |s| s.length = None)
        .into_iter()
        .map(|group| {
            let mut points: Vec<Point> = group.into_iter().filter_map(Point::of).collect();
            points.sort_by(|one, other| one.length.total_cmp(&other.length));
            points
        })
        .filter(|points| {
            points.len() >= FEWEST_POINTS && points.iter().all(|point| point.flow > 0.0 && point.bytes > 0.0)
        })
        .collect()
}

/// What one more stage costs.
pub(super) fn cost(subjects: &[Subject]) -> Vec<Found> {
    series(subjects).iter().filter_map(|points| of_series(points)).collect()
}

fn of_series(points: &[Point]) -> Option<Found> {
    let column = |figure: fn(&Point) -> f64| points.iter().map(figure).collect::<Vec<f64>>();
    let lengths = column(|point| point.length);
    let flow = column(|point| point.flow / (point.bytes / GIB));
    let real = column(|point| point.real);
    let starting = column(|point| point.real - point.flow);
    // Real time, as the document has it. Short chains share CPUs that longer ones have to queue for: the straight part
    // may begin later.
    let begin = (0..=points.len() - FEWEST_POINTS)
        .find(|&begin| straight(&lengths[begin..], &real[begin..]).is_some_and(|line| line.departure.is_none()));
    let fitted = begin.unwrap_or(0);
    let per_gib = Line::fit(&lengths[fitted..], &flow[fitted..], Weighting::Relative)?;
    let of_real = Line::fit(&lengths[fitted..], &real[fitted..], Weighting::Relative)?;
    let to_start = Line::fit(&lengths, &starting, Weighting::Equal)?;
    let (first, last) = (points.first()?, points.last()?);
    let stage = stage(first.subject);
    let seconds = |seconds: f64| Nanos((seconds.max(0.0) * 1e9) as u64).to_string();
    let within = format!("{} to {}", points[fitted].length, last.length);
    let shape = match (begin, straight(&lengths, &real).and_then(|line| line.departure)) {
        (Some(0), _) => format!("Solidly linear: real time is within 10 % of one line from {within} stages"),
        (Some(_), _) => format!(
            "Linear from {within} stages within 10 %; real time of shorter chains is off that line by up to {:.0} %",
            points[..fitted].iter().map(|point| of_real.excess(point.length, point.real).abs()).fold(0.0, f64::max)
                * 100.0
        ),
        (None, Some(departure)) => format!(
            "Not linear: the line through the shorter chains is left at {} stages, by {:+.0} %",
            departure.x,
            departure.excess * 100.0
        ),
        (None, None) => "Not linear: no three lengths in a row are within 10 % of one line".to_owned(),
    };
    let hops: Vec<&Point> = points.iter().filter(|point| point.length > 0.0).collect();
    let per_hop = hops
        .iter()
        .map(|point| format!("{} at {}", Throughput(point.per_hop()), point.length))
        .collect::<Vec<_>>()
        .join(", ");
    let low_high = match (per_gib.slope.low, per_gib.slope.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", seconds(low), seconds(high)),
        _ => String::new(),
    };
    let text = format!(
        "One more '{stage}', {}: {}{low_high} per GiB and {} to start. {shape} (R² {:.4}). Per hop: {per_hop}.",
        setting(first.subject.job, &[Key::Length, Key::Stage]),
        seconds(per_gib.slope.value),
        seconds(to_start.slope.value),
        of_real.r_squared,
    );
    let evidence = json!({
        "stage": stage,
        "seconds_per_gib_and_stage": per_gib.slope,
        "seconds_to_start_a_stage": to_start.slope,
        "flow_per_gib": per_gib,
        "real": of_real,
        "straight_from": begin.map(|begin| points[begin].length),
        "residuals_seconds": of_real.residuals(&lengths, &real),
        "chains": points.iter().map(|point| json!({
            "trial": point.subject.record.id, "length": point.length, "real_seconds": point.real,
            "flow_seconds": point.flow, "per_hop": point.per_hop(),
        })).collect::<Vec<_>>(),
    });
    Some(Found::new("chain-cost", last.length, text, evidence))
}

fn straight(lengths: &[f64], real: &[f64]) -> Option<Linearity> {
    Linearity::of(lengths, real, STRAIGHT)
}

/// Chains of one stage with figures of one source: the measured point, and the published throughput.
type Sources<'a> = BTreeMap<(&'a str, &'a str, String), Vec<(Point<'a>, f64)>>;

/// Published chains beside ours: both fits, and what a stage passes on per second.
pub(super) fn published(records: &[&Record]) -> Vec<Found> {
    let mut sources = Sources::new();
    for subject in records.iter().filter_map(|record| Subject::of(record)) {
        if let Some(published) = subject.record.published.as_ref().filter(|p| p.throughput > 0.0) {
            let key = (subject.record.experiment.as_str(), published.source.as_str(), stage(subject));
            sources.entry(key).or_default().extend(Point::of(subject).map(|point| (point, published.throughput)));
        }
    }
    sources
        .into_iter()
        .filter_map(|((_, source, stage), mut points)| {
            points.sort_by(|one, other| one.0.length.total_cmp(&other.0.length));
            let lengths: Vec<f64> = points.iter().map(|(point, _)| point.length).collect();
            let theirs: Vec<f64> = points.iter().map(|(_, throughput)| GIB / throughput).collect();
            let ours: Vec<f64> = points.iter().map(|(point, _)| point.real / (point.bytes / GIB)).collect();
            if points.len() < FEWEST_POINTS || points.iter().all(|(point, _)| point.length == 0.0) {
                return None;
            }
            let fit = |seconds: &[f64]| Line::fit(&lengths, seconds, Weighting::Relative);
            let (their_line, our_line) = (fit(&theirs)?, fit(&ours)?);
            let hops: Vec<f64> = points.iter().map(|(point, throughput)| point.length * throughput).filter(|&hop| hop > 0.0).collect();
            let least = hops.iter().copied().fold(f64::INFINITY, f64::min);
            let most = hops.iter().copied().fold(0.0, f64::max);
            let straight = match straight(&lengths, &theirs).map(|line| line.departure) {
                Some(None) => "within 10 % of one line",
                _ => "not within 10 % of one line",
            };
            let text = format!(
                "Published, from other hardware ({source}): {} s per GiB and stage, start included (R² {:.4}, {straight}), {} to {} per hop; here {} s with {stage} (R² {:.4}), {} as fast.",
                three_digits(their_line.slope.value),
                their_line.r_squared,
                Throughput(least),
                Throughput(most),
                three_digits(our_line.slope.value),
                our_line.r_squared,
                times(their_line.slope.value / our_line.slope.value),
            );
            let evidence = json!({
                "source": source, "published": their_line, "measured": our_line,
                "chains": points.iter().map(|(point, throughput)| json!({
                    "length": point.length, "published_seconds": point.bytes / throughput, "real_seconds": point.real,
                })).collect::<Vec<_>>(),
            });
            (our_line.slope.value > 0.0 && their_line.slope.value > 0.0)
                .then(|| Found::new("chain-published", points.len() as f64, text, evidence))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Outcome, Published};
    use crate::stats::findings::findings;
    use crate::stats::fixture::{STEADY, outcome};
    use crate::stats::records::records;

    /// pipe-speed.log's minima in seconds for 1.05 GB.
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

    /// A chain whose bytes flow for `flow` seconds and whose processes took `start` more.
    fn chain(length: u32, flow: f64, start: f64) -> Outcome {
        let mut outcome = outcome("chain", &[("length", &length.to_string())], 1.0, &STEADY);
        for sample in &mut outcome.samples {
            sample.bytes = 1_050_000_000;
            sample.ns = (flow * 1e9) as u64;
            sample.wall_ns = ((flow + start) * 1e9) as u64;
        }
        outcome
    }

    fn told(outcomes: Vec<Outcome>, rule: &str) -> crate::model::Finding {
        findings(&records(outcomes), None).into_iter().find(|finding| finding.rule == rule).expect("a finding")
    }

    #[test]
    fn a_straight_chain_has_two_costs() {
        let gib = 1_050_000_000.0 / GIB;
        let all = (0..8).map(|power| if power == 0 { 0 } else { 1 << power });
        let outcomes = all.map(|n| chain(n, gib * (0.2 + 0.4 * f64::from(n)), 0.01 + 0.002 * f64::from(n))).collect();
        let finding = told(outcomes, "chain-cost");
        assert!(finding.text.contains("Solidly linear") && finding.text.contains("400 ms"), "{}", finding.text);
        let slope = |name: &str| finding.evidence[name]["value"].as_f64().unwrap();
        assert!((slope("seconds_per_gib_and_stage") - 0.4).abs() < 1e-6);
        assert!((slope("seconds_to_start_a_stage") - 0.002).abs() < 1e-6);
    }

    #[test]
    fn a_bend_is_told() {
        let seconds = |n: u32| if n <= 4 { 0.1 + 0.1 * f64::from(n) } else { 0.4 * f64::from(n) - 1.0 };
        let outcomes = [0, 1, 2, 4, 8, 16, 32, 64, 128].map(|n| chain(n, seconds(n), 0.001)).to_vec();
        let text = told(outcomes, "chain-cost").text;
        assert!(text.contains("Linear from 4 to 128 stages"), "{text}");
        let outcomes = [1, 2, 4, 8, 16, 32].map(|n| chain(n, f64::from(n * n), 0.001)).to_vec();
        let text = told(outcomes, "chain-cost").text;
        assert!(text.contains("Not linear"), "{text}");
    }

    #[test]
    fn the_document_s_own_table_is_read_as_it_is() {
        let outcomes = PIPE_SPEED.map(|(length, seconds)| {
            let mut outcome = chain(length, seconds / 2.0, 0.0);
            let published =
                Published { throughput: 1.05e9 / seconds, source: "pipe-speed".to_owned(), relative: false };
            outcome.trial.published = Some(published);
            outcome
        });
        let finding = told(outcomes.to_vec(), "chain-published");
        // 2.308 GB/s for a chain of one, as the document says; 3.488 for four.
        assert!(finding.text.contains("2.15 GiB/s to 3.25 GiB/s per hop"), "{}", finding.text);
        assert!(finding.text.contains("2.00 times as fast"), "{}", finding.text);
        assert!(finding.text.contains("not within 10 % of one line"), "{}", finding.text);
    }
}
