//! Entrants against each other: what is the language and what the way a program is written, what starting costs, and
//! where the language stops mattering. Which language others are held against is the suite's choice, its baseline.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::contrast::Contrast;
use super::words::{figures, interval, times};
use super::{Found, Subject, fastest, groups};
use crate::model::{ByteSize, Figure, Language, Nanos, Program, Record, Volume, three_digits};

/// As good as the fastest.
const NEARLY: f64 = 0.1;

/// A program that was measured, and whose it is.
#[derive(Clone, Copy)]
struct Entrant<'a> {
    language: &'a Language,
    program: Program,
    subject: Subject<'a>,
}

impl Entrant<'_> {
    fn name(&self) -> String {
        format!("{} {}", self.language, self.program)
    }

    fn seconds_per_gib(&self) -> f64 {
        (1u64 << 30) as f64 / self.subject.throughput()
    }
}

/// What the entrants among `subjects` say; `records` are all, to find baselines in.
pub(super) fn of_entrants(subjects: &[Subject], records: &[Record]) -> Vec<Vec<Found>> {
    let alike = groups(subjects, |s| (s.language, s.program) = (None, None));
    let alike: Vec<Vec<Entrant>> = alike.into_iter().map(|group| entrants(&group)).collect();
    // Where most was streamed, start-up and warm-up count least.
    let Some(main) = alike.iter().max_by_key(|group| (group.iter().map(streamed).max(), group.len())) else {
        return Vec::new();
    };
    vec![
        written(main),
        gaps(main, records),
        start_up(main),
        stops_mattering(&alike, Program::Idiomatic)
            .into_iter()
            .chain(stops_mattering(&alike, Program::Tuned))
            .collect(),
    ]
}

fn entrants<'a>(group: &[Subject<'a>]) -> Vec<Entrant<'a>> {
    let entrant = |subject: &Subject<'a>| {
        let crate::model::Entrant { language, program, .. } = subject.job.entrant()?;
        Some(Entrant { language, program: *program, subject: *subject })
    };
    group.iter().filter_map(entrant).collect()
}

fn streamed(entrant: &Entrant) -> u64 {
    match entrant.subject.job.volume() {
        Volume::Total(total) => total.0,
        Volume::Time(_) => 0,
    }
}

fn find<'a, 'b>(group: &'b [Entrant<'a>], language: &Language, program: Program) -> Option<&'b Entrant<'a>> {
    group.iter().find(|entrant| entrant.language == language && entrant.program == program)
}

/// What tuning gains in each language.
fn written(group: &[Entrant]) -> Vec<Found> {
    let mut gains: Vec<(&Language, Contrast)> = group
        .iter()
        .filter(|entrant| entrant.program == Program::Idiomatic)
        .filter_map(|plain| {
            let tuned = find(group, plain.language, Program::Tuned)?;
            Some((plain.language, Contrast::throughput(plain.subject, tuned.subject)?))
        })
        .collect();
    gains.sort_by(|one, other| other.1.ratio.total_cmp(&one.1.ratio));
    let told: Vec<String> = gains
        .iter()
        .filter(|(_, gain)| gain.more() || gain.less())
        .map(|(language, gain)| format!("{language} {} {}", times(gain.ratio), interval(gain)))
        .collect();
    let same: Vec<&str> = gains.iter().filter(|(_, gain)| gain.same()).map(|(language, _)| language.as_str()).collect();
    let text = match (told.is_empty(), same.is_empty()) {
        (true, true) => return Vec::new(),
        (false, true) => format!("Tuned against idiomatic: {}.", told.join(", ")),
        (false, false) => {
            format!("Tuned against idiomatic: {}; no difference for {}.", told.join(", "), same.join(", "))
        }
        (true, false) => format!("Tuned against idiomatic: no difference for {}.", same.join(", ")),
    };
    let evidence: BTreeMap<&str, Value> =
        gains.iter().map(|(language, gain)| (language.as_str(), gain.evidence())).collect();
    vec![Found::new("tuning", 1.0, text, json!({ "tuned_over_idiomatic": evidence }))]
}

/// For each language that is slower than the baseline's tuned program: how much of that is the way it is written.
fn gaps(group: &[Entrant], records: &[Record]) -> Vec<Found> {
    let gap = |plain: &Entrant| {
        let wanted = plain.subject.record.baseline.as_ref()?;
        let base_language =
            records.iter().find(|record| record.id == *wanted)?.job.entrant().map(|entrant| &entrant.language)?;
        let base = find(group, base_language, Program::Tuned)?;
        let tuned = find(group, plain.language, Program::Tuned)?;
        let contrast =
            Contrast::throughput(base.subject, plain.subject).filter(|c| c.less() && c.ratio < 1.0 - NEARLY)?;
        let [a, b, c] = [plain, tuned, base].map(Entrant::seconds_per_gib);
        let way = ((a - b) / (a - c)).clamp(0.0, 1.0);
        let share = match way {
            way if way > 0.995 => "all of the difference is the way it is written".to_owned(),
            way if way < 0.005 => "none of the difference is the way it is written, all of it the language".to_owned(),
            way => format!(
                "{:.0} % of the difference is the way it is written, {:.0} % the language",
                way * 100.0,
                100.0 - (way * 100.0).round()
            ),
        };
        let text = format!(
            "{}, written idiomatically, takes {} s per GiB, tuned {} s, where tuned {} takes {} s: {share}.",
            plain.language,
            three_digits(a),
            three_digits(b),
            base.language,
            three_digits(c)
        );
        let evidence = json!({
            "idiomatic": figures(plain.subject), "tuned": figures(tuned.subject), "baseline": figures(base.subject),
            "share_of_the_way_it_is_written": way,
        });
        Some(Found::new("language-gap", contrast.effect(), text, evidence))
    };
    group.iter().filter(|entrant| entrant.program == Program::Idiomatic).filter_map(gap).collect()
}

/// What is spent outside of the clock, at best and at worst.
fn start_up(group: &[Entrant]) -> Vec<Found> {
    let of = |entrant: &Entrant| entrant.subject.estimates.get(Figure::StartUp).map(|estimate| estimate.median);
    let mut all: Vec<(f64, &Entrant)> = group.iter().filter_map(|entrant| Some((of(entrant)?, entrant))).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ([(least, first), .., (most, last)], Some(volume)) = (all.as_slice(), group.first().map(streamed)) else {
        return Vec::new();
    };
    let share = |ns: f64, entrant: &Entrant| {
        let inside = entrant.seconds_per_gib() * volume as f64 / (1u64 << 30) as f64 * 1e9;
        format!("{} %", three_digits(ns / (ns + inside) * 100.0))
    };
    let text = format!(
        "Starting and ending takes {} ({}) to {} ({}) besides the time inside; of a whole run of {} that is {} and {}.",
        Nanos(*least as u64),
        first.name(),
        Nanos(*most as u64),
        last.name(),
        ByteSize(volume),
        share(*least, first),
        share(*most, last)
    );
    let evidence: BTreeMap<String, f64> = all.iter().map(|(ns, entrant)| (entrant.name(), *ns)).collect();
    vec![Found::new("start-up", 1.0, text, json!({ "start_up_ns": evidence }))]
}

/// How many languages are within 10 % of the fastest, block by block.
fn stops_mattering(alike: &[Vec<Entrant>], program: Program) -> Option<Found> {
    let mut blocks: Vec<(ByteSize, Vec<&Entrant>)> = alike
        .iter()
        .map(|group| group.iter().filter(|entrant| entrant.program == program).collect::<Vec<_>>())
        .filter(|group| group.len() > 1)
        .filter_map(|group| Some((group[0].subject.job.block()?, group)))
        .collect();
    blocks.sort_by_key(|(block, _)| *block);
    let sure = |entrant: &&Entrant| entrant.subject.estimates.throughput().low.is_some();
    let same_size = blocks.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1.len() == pair[1].1.len());
    if blocks.len() < 2 || !same_size || !blocks.iter().all(|(_, group)| group.iter().all(sure)) {
        return None;
    }
    let mut parts = Vec::new();
    let mut evidence = Vec::new();
    let mut from = None;
    for (block, group) in &blocks {
        let best = fastest(group.iter().map(|entrant| entrant.subject))?.throughput();
        let share = |entrant: &Entrant| entrant.subject.throughput() / best;
        let near = group.iter().filter(|entrant| share(entrant) >= 1.0 - NEARLY).count();
        let slowest = group.iter().min_by(|one, other| share(one).total_cmp(&share(other)))?;
        parts.push(format!(
            "{near} with {block} (the slowest, {}, has {} %)",
            slowest.language,
            three_digits(share(slowest) * 100.0)
        ));
        let shares: BTreeMap<&str, f64> =
            group.iter().map(|entrant| (entrant.language.as_str(), share(entrant))).collect();
        evidence.push(json!({ "block": block.0, "share_of_the_fastest": shares }));
        from = if near == group.len() { from.or(Some(*block)) } else { None };
    }
    let verdict = match from {
        Some(block) => format!("from {block} on the language does not matter"),
        None => "the language matters at each".to_owned(),
    };
    let text = format!(
        "Of {} {program} programs, within 10 % of the fastest are {}: {verdict}.",
        blocks[0].1.len(),
        parts.join(", ")
    );
    Some(Found::new("language-by-block", 1.0, text, json!({ "program": program, "blocks": evidence })))
}

#[cfg(test)]
mod tests {
    use crate::model::{EntrantStats, Finding, Record};
    use crate::stats::findings::findings;
    use crate::stats::fixture::{STEADY, outcome};
    use crate::stats::records::records;

    /// Programs with their throughput in GiB/s, in blocks of 64 KiB and, half as fast where it is not C, of 512 B.
    fn measured(programs: &[(&str, &str, f64)]) -> Vec<Record> {
        let mut outcomes = Vec::new();
        for block in ["64k", "512"] {
            for (language, program, throughput) in programs {
                let total = if block == "64k" { "10g" } else { "1g" };
                let params = |language| {
                    [
                        ("language", language),
                        ("program", *program),
                        ("block", block),
                        ("total", total),
                        ("verify", "full"),
                        ("place", "free"),
                    ]
                };
                let slower = if block == "512" && *language != "c" { 0.5 } else { 1.0 };
                let mut one = outcome("e", &params(*language), throughput * slower, &STEADY);
                let base = outcome("e", &params("c"), 1.0, &[]).trial.id;
                one.trial.baseline = (base != one.trial.id).then_some(base);
                for sample in &mut one.samples {
                    sample.entrant = Some(EntrantStats { runtime: "x 1".to_owned(), max_rss: Some(1 << 20) });
                }
                outcomes.push(one);
            }
        }
        records(outcomes)
    }

    fn text(found: &[Finding], rule: &str) -> Vec<String> {
        found.iter().filter(|finding| finding.rule == rule).map(|finding| finding.text.clone()).collect()
    }

    #[test]
    fn the_gap_is_split_into_language_and_writing() {
        let all = measured(&[
            ("c", "idiomatic", 4.0),
            ("c", "tuned", 4.0),
            ("java", "idiomatic", 1.0),
            ("java", "tuned", 2.0),
        ]);
        let found = findings(&all, None);
        assert_eq!(
            text(&found, "language-gap"),
            [
                "java, written idiomatically, takes 1.00 s per GiB, tuned 0.50 s, where tuned c takes 0.25 s: 67 % of the \
              difference is the way it is written, 33 % the language."
            ]
        );
        let tuning = &text(&found, "tuning")[0];
        assert!(
            tuning.starts_with("Tuned against idiomatic: java 2.00 times (") && tuning.ends_with("for c."),
            "{tuning}"
        );
        assert_eq!(text(&found, "start-up").len(), 1);
        // Entrants tell of languages; what else varies is told by pipemark's own ends.
        assert!(text(&found, "best-block").is_empty() && text(&found, "recommended").is_empty());
    }

    #[test]
    fn blocks_tell_where_the_language_stops_mattering() {
        let all = measured(&[("c", "tuned", 4.0), ("zig", "tuned", 3.9), ("go", "tuned", 3.8)]);
        let texts = text(&findings(&all, None), "language-by-block");
        assert_eq!(
            texts,
            ["Of 3 tuned programs, within 10 % of the fastest are 1 with 512 B (the slowest, go, has 47.5 %), 3 with \
              64 KiB (the slowest, go, has 95.0 %): from 64 KiB on the language does not matter."]
        );
    }
}
