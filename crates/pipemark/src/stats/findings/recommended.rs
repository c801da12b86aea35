//! The settings to use on this machine, of those that were measured.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::json;

use super::contrast::Contrast;
use super::words::{figures, rate, setting};
use super::{Found, Subject, fastest};
use crate::model::{Delay, Ends, Key, RecvMethod, SendMethod, Verify, WaitPolicy};

/// As good as the best: at most this much slower.
const NEARLY: f64 = 0.05;

/// For data that must be read, for data that is only passed on, and for programs that write and read as ever.
///
/// Of settings that cannot be told from the fastest and are within 5 % of it, the one that takes the least CPU time.
/// Spinning is not advised: it takes a whole CPU from everyone else.
pub(super) fn settings<'a>(subjects: &[Subject<'a>]) -> Vec<Found> {
    let usable = |ends: &Ends| {
        ends.wait != WaitPolicy::Spin
            && ends.pairs == 1
            && (ends.read_delay, ends.write_delay) == (Delay::default(), Delay::default())
    };
    let levels = |wanted: fn(&Ends) -> bool| -> Vec<Vec<Subject<'a>>> {
        by_proof(subjects.iter().copied().filter(|s| usable(s.ends()) && wanted(s.ends())))
    };
    let proven = |levels: Vec<Vec<Subject<'a>>>| levels.into_iter().find(|those| those.len() > 1).unwrap_or_default();
    let most = |levels: Vec<Vec<Subject<'a>>>| levels.into_iter().max_by_key(Vec::len).unwrap_or_default();
    // A source of data that is to be read has to be able to write it; tee sends one page again and again.
    let read = proven(levels(|ends| ends.recv.touches() && ends.send.sends_fresh_data()));
    let untouched = most(levels(|ends| !ends.recv.touches() && ends.send != SendMethod::Tee));
    // The plain way of other links is another call, or none.
    let plain = most(levels(|ends| {
        (ends.link.is_pipe() || ends.link.is_socket())
            && (ends.send, ends.recv) == (SendMethod::Write, RecvMethod::Read)
    }));

    let for_reading = choose(&read);
    let setting_of = |subject: &Subject| setting(subject.job, &[Key::Verify]);
    let advice = [
        (for_reading, "For data that must be read", read.len()),
        (choose(&untouched), "For moving data on untouched", untouched.len()),
        (
            choose(&plain).filter(|plain| for_reading.is_none_or(|other| setting_of(&other) != setting_of(plain))),
            "With plain write and read",
            plain.len(),
        ),
    ];
    // Earlier ones count more, so that they stay in this order.
    advice
        .into_iter()
        .zip([3.0, 2.0, 1.0])
        .filter_map(|((choice, purpose, of), effect)| {
            let choice = choice?;
            let proof = match choice.ends().verify {
                Verify::Full => ", each byte written anew and checked",
                Verify::Xor => ", each byte checked",
                Verify::None | Verify::Count => "",
            };
            let text = format!("{purpose}: {}, {}{proof}.", setting_of(&choice), rate(choice));
            let evidence = json!({ "setting": figures(choice), "of_settings": of, "params": choice.job });
            Some(Found::new("recommended", effect, text, evidence))
        })
        .collect()
}

/// Only those that did the same work on the bytes can be ranked; the highest level of proof first.
fn by_proof<'a>(subjects: impl Iterator<Item = Subject<'a>>) -> Vec<Vec<Subject<'a>>> {
    let mut levels: BTreeMap<Reverse<Verify>, Vec<Subject>> = BTreeMap::new();
    for subject in subjects {
        levels.entry(Reverse(subject.ends().verify)).or_default().push(subject);
    }
    levels.into_values().collect()
}

/// The best of `those`; `None` when it cannot be told from any other.
fn choose<'a>(those: &[Subject<'a>]) -> Option<Subject<'a>> {
    let best = fastest(those.iter().copied())?;
    let slower = |other: &Subject| Contrast::throughput(best, *other).is_some_and(|contrast| contrast.less());
    if !those.iter().any(slower) {
        return None;
    }
    those
        .iter()
        .filter(|other| !slower(other) && other.throughput() >= (1.0 - NEARLY) * best.throughput())
        .min_by(|one, other| one.cpu_seconds_per_gib().total_cmp(&other.cpu_seconds_per_gib()))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::streams;
    use crate::stats::fixture::{STEADY, outcome, record};
    use crate::stats::records::records;

    fn texts(records: &[Record]) -> Vec<String> {
        settings(&streams(records)).into_iter().map(|found| found.finding.text).collect()
    }

    #[test]
    fn each_purpose_has_its_setting() {
        let all = [
            record("e", &[("block", "4k")], 1.0, &STEADY),
            record("e", &[("block", "64k")], 3.0, &STEADY),
            record("f", &[("verify", "full")], 2.0, &STEADY),
            record("f", &[("verify", "full"), ("send", "vmsplice"), ("capacity", "1m")], 4.0, &STEADY),
            record("z", &[("send", "vmsplice"), ("recv", "splice"), ("pages", "huge")], 50.0, &STEADY),
            record("z", &[("send", "splice"), ("recv", "splice")], 20.0, &STEADY),
            record("z", &[("send", "tee"), ("recv", "splice")], 70.0, &STEADY),
            record("z", &[("send", "vmsplice"), ("recv", "splice"), ("wait", "spin")], 90.0, &STEADY),
        ];
        assert_eq!(
            texts(&all),
            [
                "For data that must be read: vmsplice → read across two cores (blocks of 64 KiB, capacity 1 MiB), 4.00 GiB/s, each \
                 byte written anew and checked.",
                "For moving data on untouched: vmsplice → splice across two cores (blocks of 64 KiB, huge pages), 50.0 GiB/s.",
                "With plain write and read: write → read across two cores (blocks of 64 KiB), 3.00 GiB/s.",
            ]
        );
        // The plain setting is found among most, not among those with the most proof.
        let mut proven = all.to_vec();
        proven.push(record("f", &[("verify", "full"), ("capacity", "1m")], 1.0, &STEADY));
        proven.push(record("e", &[("block", "1m")], 2.0, &STEADY));
        assert!(
            texts(&proven)[2].ends_with("read across two cores (blocks of 64 KiB), 3.00 GiB/s."),
            "{:?}",
            texts(&proven)
        );
        // One setting is not told twice.
        assert_eq!(texts(&all[..2]).len(), 1);
    }

    #[test]
    fn of_equals_the_cheapest() {
        let mut costly = outcome("e", &[("block", "256k")], 3.01, &STEADY);
        costly.samples.iter_mut().for_each(|sample| sample.user_ns += 500_000_000);
        let rest =
            [("4k", 1.0), ("64k", 3.0)].map(|(block, figure)| outcome("e", &[("block", block)], figure, &STEADY));
        let all = records(rest.into_iter().chain([costly]).collect());
        assert!(texts(&all)[0].contains("blocks of 64 KiB"), "{:?}", texts(&all));
    }

    #[test]
    fn nothing_is_advised_in_doubt() {
        let one = record("e", &[("block", "4k")], 1.0, &STEADY);
        assert_eq!(texts(std::slice::from_ref(&one)), [""; 0]);
        assert_eq!(texts(&[one.clone(), record("e", &[], 1.01, &STEADY)]), [""; 0]);
        assert_eq!(texts(&[one, record("e", &[], 3.0, &STEADY[..3])]), [""; 0]);
    }
}
