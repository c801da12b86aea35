//! One core against two.

use serde_json::json;

use super::contrast::Contrast;
use super::words::{capital, figures, interval, setting, spans, times};
use super::{Found, Subject, groups};
use crate::model::{ByteSize, Key, Place};

/// Ends on one core against ends on two, over all block sizes for which both were measured.
pub(super) fn same_against_cross(subjects: &[Subject]) -> Vec<Found> {
    groups(subjects, |s| (s.place, s.block) = (None, None)).iter().flat_map(|group| of_group(group)).collect()
}

fn on_one_cpu(place: Place) -> bool {
    matches!(place, Place::Same) || matches!(place, Place::Pinned(writer, reader) if writer == reader)
}

/// One finding for each pair of a placement on one CPU and one on two.
fn of_group(group: &[Subject]) -> Vec<Found> {
    let mut places: Vec<Place> = group.iter().map(|subject| subject.ends().place).collect();
    places.sort_unstable();
    places.dedup();
    let (one, rest): (Vec<Place>, Vec<Place>) = places.into_iter().partition(|place| on_one_cpu(*place));
    let two = rest.into_iter().filter(|place| *place != Place::Free);
    let Some(one) = one.first().copied() else { return Vec::new() };
    two.filter_map(|two| against(group, one, two)).collect()
}

struct Pair<'a> {
    block: ByteSize,
    one: Subject<'a>,
    two: Subject<'a>,
    contrast: Contrast,
}

fn against(group: &[Subject], one: Place, two: Place) -> Option<Found> {
    let at = |place: Place, block: ByteSize| {
        group.iter().find(|subject| subject.ends().place == place && subject.ends().block == block).copied()
    };
    let mut blocks: Vec<ByteSize> = group.iter().map(|subject| subject.ends().block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let pairs: Vec<Pair> = blocks
        .into_iter()
        .filter_map(|block| {
            let (one, two) = (at(one, block)?, at(two, block)?);
            Some(Pair { block, one, two, contrast: Contrast::throughput(one, two)? })
        })
        .collect();
    let first = pairs.first()?;
    let all: Vec<ByteSize> = pairs.iter().map(|pair| pair.block).collect();
    let sizes = |wanted: fn(&Contrast) -> bool| -> Vec<ByteSize> {
        pairs.iter().filter(|pair| wanted(&pair.contrast)).map(|pair| pair.block).collect()
    };
    let (faster, slower, same) = (sizes(Contrast::more), sizes(Contrast::less), sizes(Contrast::same));
    let setting = setting(first.one.job, &[Key::Place, Key::Block]);
    let (alone, both) = (seat(one), seat(two));
    // The winner's largest lead, told as its ratio to the other.
    let lead = |those: &[ByteSize], wins: &str, loses: &str, turned: bool| -> String {
        let most = pairs
            .iter()
            .filter(|pair| those.contains(&pair.block))
            .max_by(|one, other| one.contrast.effect().total_cmp(&other.contrast.effect()));
        let Some(Pair { block, contrast, .. }) = most else { return String::new() };
        let contrast = if turned { contrast.inverse() } else { *contrast };
        let (ratio, interval) = (times(contrast.ratio), interval(&contrast));
        match those {
            [_] => format!(
                "{wins} {moves} {ratio} {interval} what {loses} {does} with blocks of {block}",
                moves = verb(wins, "moves"),
                does = verb(loses, "does")
            ),
            _ => format!(
                "{wins} {moves} more than {loses} with blocks of {}, up to {ratio} {interval} at {block}",
                spans(those, &all),
                moves = verb(wins, "moves")
            ),
        }
    };
    let text = match (faster.is_empty(), slower.is_empty()) {
        (true, true) if same.len() == pairs.len() => {
            let blocks = spans(&same, &all);
            format!(
                "{} {} the same as {alone}, within 3 %, with blocks of {blocks}",
                capital(&both),
                verb(&both, "moves")
            )
        }
        (true, true) => return None,
        (false, true) => capital(&lead(&faster, &both, &alone, false)),
        (true, false) => capital(&lead(&slower, &alone, &both, true)),
        (false, false) => {
            capital(&format!("{}; {}", lead(&slower, &alone, &both, true), lead(&faster, &both, &alone, false)))
        }
    };
    let effect = pairs.iter().map(|pair| pair.contrast.effect()).fold(0.0, f64::max);
    let evidence = json!({ "by_block": pairs.iter().map(|pair| json!({
        "block": pair.block, "two_to_one": pair.contrast.evidence(), "one": figures(pair.one), "two": figures(pair.two),
    })).collect::<Vec<_>>() });
    Some(Found::new("place", effect, format!("{text}: {setting}."), evidence))
}

fn seat(place: Place) -> String {
    match place {
        Place::Same => "one core".to_owned(),
        Place::Cross | Place::Free => "two cores".to_owned(),
        Place::Pinned(writer, reader) if writer == reader => format!("CPU {writer} alone"),
        Place::Pinned(writer, reader) => format!("CPUs {writer} and {reader}"),
    }
}

/// `one core moves`, `two cores move`.
fn verb(subject: &str, third_person: &str) -> String {
    let plural = subject.starts_with("two") || subject.starts_with("CPUs");
    match (third_person, plural) {
        ("does", true) => "do".to_owned(),
        (verb, true) => verb.trim_end_matches('s').to_owned(),
        (verb, false) => verb.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::streams;
    use crate::stats::fixture::{STEADY, record};

    /// Figures by block on one core and across two.
    fn texts(figures: &[(&str, f64, f64)], two: &str, runs: &[f64]) -> Vec<String> {
        let records: Vec<Record> = figures
            .iter()
            .flat_map(|(block, alone, both)| {
                let at = |place, figure| record("e", &[("place", place), ("block", block)], figure, runs);
                [at("same", *alone), at(two, *both)]
            })
            .collect();
        same_against_cross(&streams(&records)).into_iter().map(|found| found.finding.text).collect()
    }

    #[test]
    fn who_wins_where_is_told() {
        assert_eq!(
            texts(&[("64", 0.18, 0.1), ("1k", 1.2, 1.0), ("64k", 2.0, 2.0), ("1m", 2.0, 2.8)], "cross", &STEADY),
            [
                "One core moves more than two cores with blocks of 64 B to 1 KiB, up to 1.80 times (1.80 to 1.80) at 64 B; two \
              cores move 1.40 times (1.40 to 1.40) what one core does with blocks of 1 MiB: write → read."
            ]
        );
        assert_eq!(
            texts(&[("64k", 2.0, 3.0)], "0:1", &STEADY),
            ["CPUs 0 and 1 move 1.50 times (1.50 to 1.50) what one core does with blocks of 64 KiB: write → read."]
        );
        assert_eq!(
            texts(&[("4k", 2.0, 1.0), ("64k", 2.0, 1.9)], "cross", &STEADY),
            [
                "One core moves more than two cores with blocks of 4 KiB to 64 KiB, up to 2.00 times (2.00 to 2.00) at 4 KiB: \
             write → read."
            ]
        );
    }

    #[test]
    fn no_difference_is_said_and_doubt_is_not() {
        assert_eq!(
            texts(&[("64k", 2.0, 2.0)], "cross", &STEADY),
            ["Two cores move the same as one core, within 3 %, with blocks of 64 KiB: write → read."]
        );
        assert_eq!(texts(&[("64k", 2.0, 3.0)], "cross", &STEADY[..3]), [""; 0]);
        assert_eq!(texts(&[("64k", 2.0, 2.06)], "cross", &STEADY), [""; 0]);
        assert_eq!(texts(&[("64k", 2.0, 3.0)], "free", &STEADY), [""; 0]);
    }
}
