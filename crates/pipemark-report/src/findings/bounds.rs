//! The bounds of the figures: the machine's memory-copy limit, and the overhead of the harness.

use serde_json::{Value, json};

use pipemark_model::{
    Capacity, Ends, Estimate, LinkKind, Nanos, RecvMethod, SendMethod, Throughput, WaitPolicy, three_digits,
};

use crate::findings::contrast::Contrast;
use crate::findings::wakeups::gap;
use crate::findings::words::{setting, situation, time};
use crate::findings::{Candidate, MeasuredTrial, fastest};

/// Compares the fastest trial that copies each byte twice, into the link and out of it, with the memory-copy limit.
pub(super) fn memory_copy(streams: &[MeasuredTrial], limit: Option<&Estimate>) -> Option<Candidate> {
    let copying = |one: &MeasuredTrial| {
        one.ends().work().copies == 2
            && one.ends().wait != WaitPolicy::Spin
            && one.ends().pairs == 1
            && one.ends().writers == 1
            && one.ends().readers == 1
    };
    let (best, limit) = (fastest(streams.iter().copied().filter(copying))?, limit?);
    let share = best.throughput() / limit.median;
    let text = format!(
        "Best path that copies twice, without spinning: {}, {}, {} % of this machine's memory-copy limit of {} (one copy of 64 KiB \
         blocks on one core).",
        setting(best.job, &[]),
        best.headline(),
        three_digits(share * 100.0),
        Throughput(limit.median),
    );
    let evidence = json!({ "ratio": share, "of": best.evidence(), "limit": limit });
    let known = share.is_finite() && best.estimates.throughput().low.is_some();
    known.then(|| Candidate::new("memory-copy", 0.0, text, evidence))
}

/// Compares the null link with a pipe that uses write and read, for streams and for round trips.
pub(super) fn harness<'a>(group: &[MeasuredTrial<'a>]) -> Option<Candidate> {
    let of_link = |link: LinkKind| {
        group.iter().copied().filter(move |one| {
            let back_to_back = !one.job.is_round_trip() || gap(one) == Some(Nanos(0));
            let plain =
                |ends: &Ends| ends.link == link && (ends.send, ends.recv) == (SendMethod::Write, RecvMethod::Read);
            back_to_back && one.job.ends().is_some_and(plain)
        })
    };
    let against_pipe = |idle: MeasuredTrial<'a>| {
        let unlike = |pipe: &MeasuredTrial| pipe.ends().capacity != Capacity::DEFAULT;
        let pipes = of_link(LinkKind::Pipe).filter(|pipe| pipe.ends().block == idle.ends().block);
        // The ratio of the null link's time to the pipe's time.
        let contrast = Contrast::speed(idle, pipes.min_by_key(unlike)?).filter(Contrast::is_lower)?;
        Some((idle, contrast))
    };
    let mut shares: Vec<(MeasuredTrial<'a>, Contrast)> = of_link(LinkKind::Null).filter_map(against_pipe).collect();
    shares.sort_by_cached_key(|(idle, _)| idle.ends().block);
    let [(first, contrast), rest @ ..] = shares.as_slice() else { return None };
    let piece = if first.job.is_round_trip() { "round trip" } else { "block" };
    let words = |(idle, share): &(MeasuredTrial, Contrast)| {
        format!("{} per {piece} of {}, {}", time(block_ns(*idle)), idle.ends().block, share.percent())
    };
    let more = rest.last().map_or_else(String::new, |last| format!(", and {}", words(last)));
    let text = format!(
        "The harness itself, without any transfer, takes {} of the time of a pipe{more}, {}.",
        words(&shares[0]),
        situation(first.job)
    );
    let evidence = |(idle, share): &(MeasuredTrial, Contrast)| json!({ "block": idle.ends().block, "ns": block_ns(*idle), "share": share.evidence(), "of": idle.evidence() });
    let by_block: Value = shares.iter().map(evidence).collect();
    Some(Candidate::new("harness", contrast.ratio, text, json!({ "by_block": by_block })))
}

/// Nanoseconds per block, or per round trip.
fn block_ns(idle: MeasuredTrial) -> f64 {
    let trip = idle.estimates.round_trip();
    trip.map_or_else(|| idle.ends().block.0 as f64 * 1e9 / idle.throughput(), |trip| trip.median)
}

#[cfg(test)]
mod tests {
    mod memory_copy {
        use pipemark_stats::fixture::{STEADY, record};

        use crate::findings::{findings, texts};

        /// The fastest copying trial is found even if its verification is stricter than that of the others.
        #[test]
        fn the_fastest_copy_is_compared_with_the_limit() {
            let copy = record("c", &[("link", "memory-copy")], 8.0, &STEADY);
            let all = [
                copy.clone(),
                record("e", &[("block", "4k")], 1.0, &STEADY),
                record("e", &[("block", "64k")], 2.0, &STEADY),
                record("e", &[("block", "1m")], 2.2, &[1.0, 0.6, 1.5, 0.7, 1.4, 0.8, 1.2]),
                record("e", &[("verify", "full")], 2.5, &STEADY),
                record("e", &[("wait", "spin")], 5.0, &STEADY),
                record("e", &[("link", "process-vm")], 6.0, &STEADY),
                record("e", &[("send", "vmsplice"), ("recv", "splice")], 50.0, &STEADY),
            ];
            assert_eq!(
                texts("memory-copy", &all),
                [
                    "Best path that copies twice, without spinning: write → read across two cores (blocks of 64 KiB, verify \
                     full), 2.50 GiB/s, 31.2 % of this machine's memory-copy limit of 8.00 GiB/s (one copy of 64 KiB blocks on one core)."
                ]
            );
            assert!(findings(&all, None, &[]).iter().all(|finding| finding.rule != "memory-copy"));
            assert_eq!(texts("memory-copy", &[&all[..1], &all[6..]].concat()), [""; 0]);
            assert_eq!(texts("memory-copy", &[copy, record("e", &[], 2.0, &STEADY[..4])]), [""; 0]);
        }
    }

    mod harness {
        use pipemark_model::Record;
        use pipemark_stats::fixture::{STEADY, record, round_trip_record};

        fn texts(records: &[Record]) -> Vec<String> {
            crate::findings::texts("harness", records)
        }

        fn of(link: &str, block: &str, verify: &str, figure: f64) -> Record {
            record("e", &[("link", link), ("block", block), ("verify", verify)], figure, &STEADY)
        }

        #[test]
        fn the_null_link_is_compared_with_a_pipe() {
            let records = [
                of("null", "64k", "count", 5_000.0),
                of("null", "64", "count", 5.0),
                of("pipe", "64k", "full", 1.0),
                of("pipe", "64k", "count", 2.0),
                of("pipe", "64", "count", 0.1),
                of("pipe", "4k", "count", 0.1),
                round_trip_record(&[("block", "8")], 4_000.0, &STEADY),
                round_trip_record(&[("block", "8"), ("link", "null")], 40.0, &STEADY),
            ];
            assert_eq!(
                texts(&records),
                [
                    "The harness itself, without any transfer, takes 11.9 ns per block of 64 B, 2.00 % (2.00–2.00) of the time of a pipe, and 12.2 ns per block of 64 KiB, 0.040 % (0.040–0.040), across two cores.",
                    "The harness itself, without any transfer, takes 40.0 ns per round trip of 8 B, 1.00 % (1.00–1.00) of the time of a pipe, across two cores.",
                ]
            );
            let found = crate::findings::findings_of_rule("harness", &records);
            assert_eq!(found[0].evidence["by_block"][1]["share"]["of"]["trial"], records[3].id);
        }

        #[test]
        fn no_finding_without_both_or_if_inconclusive() {
            assert_eq!(texts(&[of("null", "64k", "count", 5.0)]), [""; 0]);
            assert_eq!(texts(&[of("null", "64k", "count", 5.0), of("pipe", "4k", "count", 1.0)]), [""; 0]);
            assert_eq!(texts(&[of("null", "64k", "count", 1.0), of("pipe", "64k", "count", 1.0)]), [""; 0]);
            let mut few = [of("null", "64k", "count", 5.0), of("pipe", "64k", "count", 1.0)];
            few[0] = record("e", &[("link", "null")], 5.0, &STEADY[..4]);
            assert_eq!(texts(&few), [""; 0]);
        }
    }
}
