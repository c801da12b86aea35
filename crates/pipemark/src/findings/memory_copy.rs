//! The memory-copy limit: how near copying through the kernel comes to copying within one process.

use serde_json::json;

use super::words::setting;
use super::{Candidate, Measured, fastest};
use crate::model::{Estimate, Throughput, WaitPolicy, three_digits};

/// The fastest of the trials in which every byte is copied into the pipe and out of it, against the limit.
pub(super) fn share(streams: &[Measured], limit: Option<&Estimate>) -> Option<Candidate> {
    let copying = |one: &Measured| {
        one.ends().work().copies == 2
            && one.ends().wait != WaitPolicy::Spin
            && one.ends().pairs == 1
            && one.ends().writers == 1
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

#[cfg(test)]
mod tests {
    use crate::findings::{findings, texts};
    use crate::stats::fixture::{STEADY, record};

    /// One that was measured with less proof was called the fastest, at 3.41 GiB/s beside 8.26.
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
            ["Best path that copies twice, without spinning: write → read across two cores (blocks of 64 KiB, verify \
                 full), 2.50 GiB/s, 31.2 % of this machine's memory-copy limit of 8.00 GiB/s (one copy of 64 KiB blocks on one core)."]
        );
        assert!(findings(&all, None).iter().all(|finding| finding.rule != "memory-copy"));
        assert_eq!(texts("memory-copy", &[&all[..1], &all[6..]].concat()), [""; 0]);
        assert_eq!(texts("memory-copy", &[copy, record("e", &[], 2.0, &STEADY[..4])]), [""; 0]);
    }
}
