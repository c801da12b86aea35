//! The memory-copy limit: how near copying through the kernel comes to copying within one process.

use serde_json::json;

use super::contrast::{percent, ratio_of};
use super::words::setting;
use super::{Candidate, Measured, copying};
use crate::model::{Estimate, LinkKind, Throughput, WaitPolicy};

/// The fastest of the trials in which every byte is copied into the pipe and out of it, against the limit: fastest for
/// certain, by the low end of the interval, so that no wild figure makes the claim. What the ends do to the bytes besides
/// would only blur it, so where it was measured without, that is taken.
pub(super) fn share(streams: &[Measured], limit: Option<&Estimate>) -> Option<Candidate> {
    let copied = streams
        .iter()
        .copied()
        // process_vm_readv copies only once.
        .filter(|one| copying::copies(one.ends()) && one.ends().link != LinkKind::ProcessVm)
        .filter(|one| one.ends().wait != WaitPolicy::Spin && one.ends().pairs == 1);
    let low = |one: &Measured| one.estimates.throughput().low.unwrap_or(0.0);
    let rank = |one: &Measured| (!one.ends().touched(), low(one));
    let best = copied.max_by(|one, other| rank(one).partial_cmp(&rank(other)).expect("intervals are numbers"))?;
    let limit = limit?;
    let share = ratio_of(limit, best.estimates.throughput())?;
    let text = format!(
        "Best copying path: {}, {}, {} of this machine's memory-copy limit of {}.",
        setting(best.job, &[]),
        best.headline(),
        percent(share),
        Throughput(limit.median),
    );
    let [ratio, low, high] = share;
    let evidence = json!({ "ratio": ratio, "low": low, "high": high, "of": best.evidence(), "limit": limit });
    Some(Candidate::new("memory-copy", 0.0, text, evidence))
}

#[cfg(test)]
mod tests {
    use crate::findings::{findings, texts};
    use crate::stats::fixture::{STEADY, record};

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
                "Best copying path: write → read across two cores (blocks of 64 KiB), 2.00 GiB/s, 25.0 % (24.9–25.1) of this \
                 machine's memory-copy limit of 8.00 GiB/s."
            ]
        );
        assert!(findings(&all, None).iter().all(|finding| finding.rule != "memory-copy"));
        assert_eq!(texts("memory-copy", &[&all[..1], &all[6..]].concat()), [""; 0]);
        assert_eq!(texts("memory-copy", &[copy, record("e", &[], 2.0, &STEADY[..4])]), [""; 0]);
    }
}
