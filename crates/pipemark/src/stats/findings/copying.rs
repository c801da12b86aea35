//! Moving page references against copying bytes, and fresh data by either.

use super::contrast::Contrast;
use super::words::{Seen, capacity, figures, interval, rate, setting, times};
use super::{Found, Subject, fastest, groups};
use crate::model::{Ends, Key, PageKind, RecvMethod, SendMethod, Warning};

/// Whether bytes are copied into the pipe and out of it.
pub(super) fn copies(ends: &Ends) -> bool {
    ends.send.copies() && ends.recv.touches()
}

/// The fastest zero-copy way against write → read, once for each level of what the reader saw of the bytes.
pub(super) fn zero_copy(subjects: &[Subject]) -> Vec<Found> {
    // Fresh data has a rule of its own.
    let again: Vec<Subject> = subjects.iter().filter(|subject| !subject.ends().fresh()).copied().collect();
    groups(&again, |s| {
        (s.send, s.recv, s.pages) = (None, None, None);
    })
    .iter()
    .flat_map(|group| of_group(group))
    .collect()
}

fn of_group(group: &[Subject]) -> Vec<Found> {
    let plain =
        |subject: &&Subject| (subject.ends().send, subject.ends().recv) == (SendMethod::Write, RecvMethod::Read);
    let Some(base) = group.iter().filter(plain).min_by_key(|subject| subject.ends().pages).copied() else {
        return Vec::new();
    };
    [Seen::Nothing, Seen::Arrived, Seen::All]
        .into_iter()
        .filter_map(|seen| {
            let of_level =
                group.iter().copied().filter(|other| !copies(other.ends()) && Seen::of(other.ends()) == seen);
            // tee sends one page again and again, which moves nothing anyone wants moved.
            let (tee, moving): (Vec<Subject>, Vec<Subject>) =
                of_level.partition(|other| other.ends().send == SendMethod::Tee);
            let best = fastest(moving).or_else(|| fastest(tee))?;
            let contrast = Contrast::throughput(base, best)?;
            let verdict = match (contrast.more(), contrast.less()) {
                (true, _) => format!("moves {} {} what", times(contrast.ratio), interval(&contrast)),
                (_, true) => format!("moves only {} {} what", times(contrast.ratio), interval(&contrast)),
                _ => return None,
            };
            let text = format!(
                "Zero copy by {} {verdict} write → read does ({} against {}) {}; {}.",
                way(best.ends()),
                rate(best),
                rate(base),
                setting(base.job, &[Key::Send, Key::Pages]),
                seen.words(),
            );
            let mut evidence = contrast.evidence();
            evidence["touched"] = best.record.touched.into();
            evidence["of"] = figures(best);
            evidence["to"] = figures(base);
            Some(Found::new("zero-copy", contrast.effect(), text, evidence))
        })
        .collect()
}

/// `vmsplice → splice from huge pages`.
fn way(ends: &Ends) -> String {
    let pages = if ends.pages == PageKind::Huge { " from huge pages" } else { "" };
    format!("{} → {}{pages}", ends.send, ends.recv)
}

/// Data written anew and compared by the reader: by references against by copies, each at its own best capacity.
pub(super) fn fresh(subjects: &[Subject]) -> Vec<Found> {
    let fresh: Vec<Subject> = subjects.iter().filter(|subject| subject.ends().fresh()).copied().collect();
    groups(&fresh, |s| {
        (s.send, s.pages, s.capacity) = (None, None, None);
    })
    .iter()
    .filter_map(|group| {
        let best_of = |copying: bool| fastest(group.iter().copied().filter(|s| s.ends().send.copies() == copying));
        let (copy, reference) = (best_of(true)?, best_of(false)?);
        let contrast = Contrast::throughput(copy, reference)?;
        let verdict = match (contrast.more(), contrast.less(), contrast.same()) {
            (true, ..) => format!("moves {} {} what", times(contrast.ratio), interval(&contrast)),
            (_, true, _) => format!("moves only {} {} what", times(contrast.ratio), interval(&contrast)),
            (.., true) => "moves the same, within 3 %, as".to_owned(),
            _ => return None,
        };
        let at = |subject| format!("{} at capacity {}", rate(subject), capacity(subject));
        let text = format!(
            "Fresh data, each byte written anew and checked by the reader: {} {verdict} {} does ({} against {}), {}{}.",
            way(reference.ends()),
            way(copy.ends()),
            at(reference),
            at(copy),
            setting(copy.job, &[Key::Send, Key::Pages, Key::Capacity, Key::Verify]),
            ceiling_words(&[reference, copy]),
        );
        let mut evidence = contrast.evidence();
        evidence["of"] = figures(reference);
        evidence["to"] = figures(copy);
        Some(Found::new("fresh-data", contrast.effect(), text, evidence))
    })
    .collect()
}

/// A figure near what the ends can do alone understates what the link can do.
fn ceiling_words(subjects: &[Subject]) -> &'static str {
    let near = subjects
        .iter()
        .flat_map(|subject| &subject.record.warnings)
        .any(|warning| matches!(warning, Warning::NearCeiling { .. }));
    if near { "; making and checking the bytes takes so long that the pipe itself may do more" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::streams;
    use crate::stats::fixture::{STEADY, record};

    fn texts(rule: fn(&[Subject]) -> Vec<Found>, records: &[Record]) -> Vec<String> {
        rule(&streams(records)).into_iter().map(|found| found.finding.text).collect()
    }

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
            texts(zero_copy, &records),
            [
                "Zero copy by vmsplice → splice from huge pages moves 25.0 times (25.0 to 25.0) what write → read does (50.0 GiB/s \
                 against 2.00 GiB/s) across two cores (blocks of 64 KiB); the bytes never reached the reader's memory.",
                "Zero copy by vmsplice → read moves 1.50 times (1.50 to 1.50) what write → read does (3.00 GiB/s against 2.00 \
                 GiB/s) across two cores (blocks of 64 KiB); the bytes reached the reader's memory, and it did not look at them.",
            ]
        );
    }

    #[test]
    fn readers_that_look_are_told_from_those_that_do_not() {
        let xor = [("verify", "xor")];
        let text = &texts(zero_copy, &[way_of("write", "read", &xor, 2.0), way_of("splice", "read", &xor, 3.0)])[0];
        assert!(text.ends_with("; the reader looked at every byte."), "{text}");
    }

    #[test]
    fn spinning_is_not_held_against_blocking() {
        let records = [way_of("write", "read", &[], 2.0), way_of("vmsplice", "splice", &[("wait", "spin")], 90.0)];
        assert_eq!(texts(zero_copy, &records), [""; 0]);
    }

    #[test]
    fn a_loss_is_told_and_doubt_is_not() {
        let plain = way_of("write", "read", &[], 2.0);
        let text = &texts(zero_copy, &[plain.clone(), way_of("vmsplice", "read", &[], 1.0)])[0];
        assert!(text.contains("moves only 0.50 times"), "{text}");
        assert_eq!(texts(zero_copy, &[plain.clone(), way_of("vmsplice", "read", &[], 2.02)]), [""; 0]);
        let few = record("e", &[("send", "vmsplice")], 9.0, &STEADY[..3]);
        assert_eq!(texts(zero_copy, &[plain, few]), [""; 0]);
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
        assert_eq!(texts(zero_copy, &records), [""; 0]);
        assert_eq!(
            texts(fresh, &records),
            [
                "Fresh data, each byte written anew and checked by the reader: vmsplice → read moves 1.60 times (1.60 to 1.60) \
              what write → read does (4.00 GiB/s at capacity 1 MiB against 2.50 GiB/s at capacity 64 KiB), across two cores \
              (blocks of 64 KiB)."
            ]
        );
        records[3].warnings.push(Warning::NearCeiling { end: "sink".to_owned(), ceiling: 4.1e9 });
        assert!(texts(fresh, &records)[0].ends_with("the pipe itself may do more."));
        assert_eq!(texts(fresh, &records[..2]), [""; 0]);
    }
}
