//! The memory-copy limit: how near copying through the kernel comes to copying within one process.

use serde_json::json;

use super::contrast::Contrast;
use super::words::{figures, rate, setting};
use super::{Found, Subject, copying};
use crate::model::{Estimate, LinkKind, Throughput, WaitPolicy, three_digits};

/// The fastest of the trials in which every byte is copied into the pipe and out of it, against the limit: fastest for
/// certain, by the low end of the interval, so that no wild figure makes the claim. What the ends do to the bytes besides
/// would only blur it, so where it was measured without, that is taken.
pub(super) fn memory_copy(subjects: &[Subject], limit: Option<&Estimate>) -> Vec<Found> {
    let copied = subjects
        .iter()
        .copied()
        // process_vm_readv copies only once.
        .filter(|s| copying::copies(s.ends()) && s.ends().link != LinkKind::ProcessVm)
        .filter(|s| s.ends().wait != WaitPolicy::Spin && s.ends().pairs == 1);
    let (touched, untouched): (Vec<Subject>, Vec<Subject>) = copied.partition(|subject| subject.ends().touched());
    let found = |limit: &Estimate, best: Subject| {
        let share = Contrast::of_intervals(limit, best.estimates.throughput())?;
        let per_cent = |share: f64| three_digits(share * 100.0);
        let text = format!(
            "The fastest that copies every byte twice, in and out, reaches {} % ({} to {}) of this machine's memory-copy \
             limit of {}: {} by {}.",
            per_cent(share.ratio),
            per_cent(share.low),
            per_cent(share.high),
            Throughput(limit.median),
            rate(best),
            setting(best.job, &[]),
        );
        let mut evidence = share.evidence();
        evidence["of"] = figures(best);
        evidence["limit"] = json!(limit);
        Some(Found::new("memory-copy", 0.0, text, evidence))
    };
    limit
        .zip(surest(untouched).or_else(|| surest(touched)))
        .and_then(|(limit, best)| found(limit, best))
        .into_iter()
        .collect()
}

fn surest(subjects: Vec<Subject<'_>>) -> Option<Subject<'_>> {
    let low = |subject: &Subject| subject.estimates.throughput().low.unwrap_or(0.0);
    subjects.into_iter().max_by(|one, other| low(one).total_cmp(&low(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::findings::streams;
    use crate::stats::fixture::{STEADY, record};
    use crate::stats::records;

    #[test]
    fn the_fastest_copy_is_held_against_the_limit() {
        let all = [
            record("c", &[("link", "memory-copy")], 8.0, &STEADY),
            record("e", &[("block", "4k")], 1.0, &STEADY),
            record("e", &[("block", "64k")], 2.0, &STEADY),
            record("e", &[("block", "1m")], 2.2, &[1.0, 0.6, 1.5, 0.7, 1.4, 0.8, 1.2]),
            record("e", &[("verify", "full")], 2.5, &STEADY),
            record("e", &[("wait", "spin")], 5.0, &STEADY),
            record("e", &[("link", "process-vm")], 6.0, &STEADY),
            record("e", &[("send", "vmsplice"), ("recv", "splice")], 50.0, &STEADY),
        ];
        let limit = records::memory_copy(&all);
        let found = memory_copy(&streams(&all), limit.as_ref());
        assert_eq!(
            found[0].finding.text,
            "The fastest that copies every byte twice, in and out, reaches 25.0 % (24.8 to 25.2) of this machine's \
             memory-copy limit of 8.00 GiB/s: 2.00 GiB/s by write → read across two cores (blocks of 64 KiB)."
        );
        assert!(memory_copy(&streams(&all), None).is_empty());
        assert!(memory_copy(&streams(&all[6..]), limit.as_ref()).is_empty());
        let few = [record("e", &[], 2.0, &STEADY[..4])];
        assert!(memory_copy(&streams(&few), limit.as_ref()).is_empty());
    }
}
