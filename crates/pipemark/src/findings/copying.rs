//! Moving page references against copying bytes, and fresh data by either.

use super::contrast::Contrast;
use super::words::{capacity, methods, setting};
use super::{Candidate, Measured, fastest};
use crate::model::{Key, RecvMethod, SendMethod, Warning};

/// What the reader saw of the bytes, by whether they reached its memory and whether it looked at them; moving a page
/// reference is not reading a page.
const SEEN: [(bool, bool, &str); 3] = [
    (false, false, "the bytes never reached the reader's memory"),
    (true, false, "the bytes reached the reader's memory, and it did not look at them"),
    (true, true, "the reader looked at every byte"),
];

/// The fastest way that copies less against write → read, once for each number of copies and each level of what the reader saw
/// of the bytes.
pub(super) fn zero_copy(group: &[Measured]) -> Vec<Candidate> {
    // Fresh data has a rule of its own.
    let group = || group.iter().copied().filter(|one| !one.ends().fresh());
    let plain = |one: &Measured| (one.ends().send, one.ends().recv) == (SendMethod::Write, RecvMethod::Read);
    let base = group().filter(plain).min_by_key(|one| one.ends().pages);
    let at_level = |copies: u8, (arrived, seen, words): (bool, bool, &str)| {
        let level = group().map(|one| (one, one.ends())).filter(|(_, ends)| ends.work().copies == copies);
        let level =
            level.filter(|(_, ends)| (ends.recv.touches(), ends.touched()) == (arrived, seen)).map(|(one, _)| one);
        // tee sends one page again and again, which moves nothing anyone wants moved.
        let (tee, moving): (Vec<Measured>, Vec<Measured>) = level.partition(|one| one.ends().send == SendMethod::Tee);
        let contrast = Contrast::throughput(base?, fastest(moving).or_else(|| fastest(tee))?)?;
        let text = format!(
            "{} by {} is {} as write → read ({} against {}) {}; {words}.",
            if copies == 0 { "Zero copy" } else { "One copy instead of two" },
            methods(contrast.new.ends()),
            contrast.as_fast().filter(|_| !contrast.same())?,
            contrast.new.headline(),
            contrast.base.headline(),
            setting(contrast.base.job, &[Key::Send, Key::Pages]),
        );
        let evidence = contrast.evidence_with("touched", contrast.new.record.touched.into());
        Some(Candidate::new("zero-copy", contrast.effect(), text, evidence))
    };
    [0, 1].into_iter().flat_map(|copies| SEEN.into_iter().filter_map(move |seen| at_level(copies, seen))).collect()
}

/// Data written anew and compared by the reader: by references against by copies, each at its own best capacity.
pub(super) fn fresh(group: &[Measured]) -> Option<Candidate> {
    let fresh = |copying: bool| {
        fastest(group.iter().copied().filter(|one| one.ends().fresh() && one.ends().send.copies() == copying))
    };
    let contrast = Contrast::throughput(fresh(true)?, fresh(false)?)?;
    let at = |one: Measured| format!("{} at capacity {}", one.headline(), capacity(one));
    // A figure near what the ends can do alone understates what the link can do.
    let warnings = |one: Measured| one.record.warnings.iter().any(|w| matches!(w, Warning::NearCeiling { .. }));
    let ceiling = match warnings(contrast.new) || warnings(contrast.base) {
        true => "; making and checking the bytes takes so long that the pipe itself may do more",
        false => "",
    };
    let text = format!(
        "Fresh data, each byte written anew and checked by the reader: {} is {} as {} ({} against {}), {}{ceiling}.",
        methods(contrast.new.ends()),
        contrast.as_fast()?,
        methods(contrast.base.ends()),
        at(contrast.new),
        at(contrast.base),
        setting(contrast.base.job, &[Key::Send, Key::Pages, Key::Capacity, Key::Verify]),
    );
    Some(Candidate::new("fresh-data", contrast.effect(), text, contrast.evidence()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::texts;
    use crate::model::Record;
    use crate::stats::fixture::{STEADY, record};

    fn way_of(send: &str, recv: &str, rest: &[(&str, &str)], figure: f64) -> Record {
        record("e", &[&[("send", send), ("recv", recv)], rest].concat(), figure, &STEADY)
    }

    #[test]
    fn each_figure_says_what_the_reader_saw() {
        let records = [
            way_of("write", "read", &[], 2.0),
            way_of("io-uring", "io-uring", &[], 9.0),
            way_of("vmsplice", "splice", &[], 40.0),
            way_of("vmsplice", "splice", &[("pages", "huge")], 50.0),
            way_of("tee", "splice", &[], 70.0),
            way_of("vmsplice", "splice", &[("wait", "spin")], 90.0),
            way_of("vmsplice", "read", &[], 3.0),
            way_of("splice", "read", &[], 1.0),
        ];
        assert_eq!(
            texts("zero-copy", &records),
            [
                "Zero copy by vmsplice → splice from huge pages is 25.0× (25.0–25.0) as fast as write → read (50.0 GiB/s \
                 against 2.00 GiB/s) across two cores (blocks of 64 KiB); the bytes never reached the reader's memory.",
                "One copy instead of two by vmsplice → read is 1.50× (1.50–1.50) as fast as write → read (3.00 GiB/s against 2.00 \
                 GiB/s) across two cores (blocks of 64 KiB); the bytes reached the reader's memory, and it did not look at them.",
            ]
        );
    }

    /// vmsplice takes bytes out of a pipe by copying them: "zero copy by vmsplice → vmsplice" copies once.
    #[test]
    fn what_copies_once_is_not_called_zero_copy() {
        let records = [way_of("write", "read", &[], 2.0), way_of("vmsplice", "vmsplice", &[], 3.0)];
        let text = &texts("zero-copy", &records)[0];
        assert!(text.starts_with("One copy instead of two by vmsplice → vmsplice is 1.50×"), "{text}");
    }

    #[test]
    fn readers_that_look_are_told_from_those_that_do_not() {
        let xor = [("verify", "xor")];
        let text = &texts("zero-copy", &[way_of("write", "read", &xor, 2.0), way_of("splice", "read", &xor, 3.0)])[0];
        assert!(text.ends_with("; the reader looked at every byte."), "{text}");
    }

    #[test]
    fn spinning_is_not_held_against_blocking() {
        let records = [way_of("write", "read", &[], 2.0), way_of("vmsplice", "splice", &[("wait", "spin")], 90.0)];
        assert_eq!(texts("zero-copy", &records), [""; 0]);
    }

    #[test]
    fn a_loss_is_told_and_doubt_is_not() {
        let plain = way_of("write", "read", &[], 2.0);
        let text = &texts("zero-copy", &[plain.clone(), way_of("vmsplice", "read", &[], 1.0)])[0];
        assert!(text.contains("is only 0.50×"), "{text}");
        assert_eq!(texts("zero-copy", &[plain.clone(), way_of("vmsplice", "read", &[], 2.02)]), [""; 0]);
        let few = record("e", &[("send", "vmsplice")], 9.0, &STEADY[..3]);
        assert_eq!(texts("zero-copy", &[plain, few]), [""; 0]);
    }

    #[test]
    fn fresh_data_is_compared_at_the_best_capacity_of_each() {
        let full = |send: &str, capacity: &str, figure: f64| {
            way_of(send, "read", &[("verify", "full"), ("capacity", capacity)], figure)
        };
        let mut records = [
            full("write", "64k", 2.5),
            full("write", "1m", 2.0),
            full("vmsplice", "64k", 2.4),
            full("vmsplice", "1m", 4.0),
        ];
        assert_eq!(texts("zero-copy", &records), [""; 0]);
        assert_eq!(
            texts("fresh-data", &records),
            ["Fresh data, each byte written anew and checked by the reader: vmsplice → read is 1.60× (1.60–1.60) \
              as fast as write → read (4.00 GiB/s at capacity 1 MiB against 2.50 GiB/s at capacity 64 KiB), across two cores \
              (blocks of 64 KiB)."]
        );
        records[3].warnings.push(Warning::NearCeiling { end: "sink".to_owned(), ceiling: 4.1e9 });
        assert!(texts("fresh-data", &records)[0].ends_with("the pipe itself may do more."));
        assert_eq!(texts("fresh-data", &records[..2]), [""; 0]);
    }
}
