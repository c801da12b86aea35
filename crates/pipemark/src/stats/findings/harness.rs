//! The harness's own cost: what is left of a pipe's time when nothing is transferred.

use serde_json::json;

use super::contrast::Contrast;
use super::words::{figures, situation, time};
use super::{Found, Subject, groups, subjects};
use crate::model::{Capacity, LinkKind, Mode, Record, RecvMethod, SendMethod, three_digits};

/// The null link against a pipe by write and read, in the same situation, for streams and for round trips.
pub(super) fn share(records: &[Record]) -> Vec<Found> {
    let held = |subject: Subject| {
        let Some(ends) = subject.job.ends() else { return false };
        let plain = (ends.send, ends.recv) == (SendMethod::Write, RecvMethod::Read);
        let closed = subject.back_to_back();
        plain && closed && matches!(ends.link, LinkKind::Null | LinkKind::Pipe)
    };
    [Mode::Throughput, Mode::Latency]
        .into_iter()
        .flat_map(|mode| {
            let mut subjects = subjects(records, mode);
            subjects.retain(|subject| held(*subject) && subject.job.is_round_trip() == (mode == Mode::Latency));
            groups(&subjects, |s| {
                (s.link, s.verify, s.capacity, s.block) = (None, None, None, None);
            })
        })
        .filter_map(|group| of_group(&group))
        .collect()
}

struct Share<'a> {
    null: Subject<'a>,
    pipe: Subject<'a>,
    /// The null link's time over the pipe's.
    contrast: Contrast,
}

fn of_group(group: &[Subject]) -> Option<Found> {
    let mut shares: Vec<Share> = group
        .iter()
        .filter(|subject| subject.ends().link == LinkKind::Null)
        .filter_map(|null| {
            let pipes = group.iter().filter(|s| s.ends().link == LinkKind::Pipe && s.ends().block == null.ends().block);
            // Nothing can be proven of bytes that do not move, so the nearest to it is taken.
            let unlike = |pipe: &&Subject| {
                let differs = pipe.ends().verify != null.ends().verify;
                (differs, pipe.ends().verify, pipe.ends().capacity != Capacity::DEFAULT)
            };
            let pipe = *pipes.min_by_key(unlike)?;
            let contrast = Contrast::speed(*null, pipe).filter(Contrast::less)?;
            Some(Share { null: *null, pipe, contrast })
        })
        .collect();
    shares.sort_by_key(|share| share.null.ends().block);
    let (first, last) = (shares.first()?, shares.last()?);
    let (piece, pipes) = match first.null.job.mode() {
        Mode::Throughput => ("block", "of what a pipe takes for it"),
        Mode::Latency => ("round trip", "of a pipe's"),
    };
    let words = |share: &Share| {
        format!(
            "{} per {piece} of {}, {} % ({} to {})",
            time(own_ns(share.null)),
            share.null.ends().block,
            per_cent(share.contrast.ratio),
            per_cent(share.contrast.low),
            per_cent(share.contrast.high),
        )
    };
    let more = if shares.len() > 1 { format!(", and {}", words(last)) } else { String::new() };
    let text = format!(
        "The harness itself, without any transfer, takes {} {pipes}{more}, {}.",
        words(first),
        situation(first.null.job)
    );
    let evidence = json!({ "by_block": shares.iter().map(|share| json!({
        "block": share.null.ends().block, "ns": own_ns(share.null), "share": share.contrast.evidence(),
        "of": figures(share.null), "to": figures(share.pipe),
    })).collect::<Vec<_>>() });
    Some(Found::new("harness", first.contrast.ratio, text, evidence))
}

/// Nanoseconds per block, or per round trip.
fn own_ns(null: Subject) -> f64 {
    null.round_trip().map_or_else(|| null.ends().block.0 as f64 * 1e9 / null.throughput(), |trip| trip.median)
}

fn per_cent(share: f64) -> String {
    match share * 100.0 {
        small if small < 0.0005 => "<0.001".to_owned(),
        small if small < 0.0995 => format!("{small:.3}"),
        more => three_digits(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixture::{STEADY, record, spoken};

    fn texts(records: &[Record]) -> Vec<String> {
        share(records).into_iter().map(|found| found.finding.text).collect()
    }

    fn of(link: &str, block: &str, verify: &str, figure: f64) -> Record {
        record("e", &[("link", link), ("block", block), ("verify", verify)], figure, &STEADY)
    }

    #[test]
    fn the_null_link_is_held_against_a_pipe() {
        let records = [
            of("null", "64k", "count", 5_000.0),
            of("null", "64", "count", 5.0),
            of("pipe", "64k", "full", 1.0),
            of("pipe", "64k", "count", 2.0),
            of("pipe", "64", "count", 0.1),
            of("pipe", "4k", "count", 0.1),
            spoken(&[("block", "8")], 4_000.0, &STEADY),
            spoken(&[("block", "8"), ("link", "null")], 40.0, &STEADY),
        ];
        assert_eq!(
            texts(&records),
            [
                "The harness itself, without any transfer, takes 11.9 ns per block of 64 B, 2.00 % (2.00 to 2.00) of what a pipe \
                 takes for it, and 12.2 ns per block of 64 KiB, 0.040 % (0.040 to 0.040), across two cores.",
                "The harness itself, without any transfer, takes 40.0 ns per round trip of 8 B, 1.00 % (1.00 to 1.00) of a \
                 pipe's, across two cores.",
            ]
        );
        let found = share(&records);
        assert_eq!(found[0].finding.evidence["by_block"][1]["to"]["trial"], records[3].id);
    }

    #[test]
    fn without_both_or_in_doubt_it_is_silent() {
        assert_eq!(texts(&[of("null", "64k", "count", 5.0)]), [""; 0]);
        assert_eq!(texts(&[of("null", "64k", "count", 5.0), of("pipe", "4k", "count", 1.0)]), [""; 0]);
        assert_eq!(texts(&[of("null", "64k", "count", 1.0), of("pipe", "64k", "count", 1.0)]), [""; 0]);
        let mut few = [of("null", "64k", "count", 5.0), of("pipe", "64k", "count", 1.0)];
        few[0] = record("e", &[("link", "null")], 5.0, &STEADY[..4]);
        assert_eq!(texts(&few), [""; 0]);
    }
}
