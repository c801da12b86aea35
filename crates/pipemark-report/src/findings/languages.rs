//! Findings about entrants (programs in other languages): the effect of the language, the effect of how a program is
//! written, the time to start, and the block size from which the language no longer matters. The suite chooses the
//! baseline language.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use pipemark_model::{
    ByteSize, Entrant, Figure, GIB, Key, Language, Program, Record, group_by_key, three_digits, total_order,
};

use pipemark_stats::records::checks_alike;

use crate::findings::contrast::Contrast;
use crate::findings::measured::common_settings;
use crate::findings::words::time;
use crate::findings::{Candidate, MeasuredTrial, fastest};

/// The block size of published benchmarks, which is also the default capacity of a pipe.
const MAIN_BLOCK: ByteSize = ByteSize(64 << 10);
/// The largest slowdown relative to the fastest program that counts as equally fast, as a fraction.
const MAX_SLOWDOWN: f64 = 0.1;

fn entrant<'a>(measured: &MeasuredTrial<'a>) -> &'a Entrant {
    measured.job.entrant().expect("these rules apply only to entrants")
}

fn find<'a>(group: &[MeasuredTrial<'a>], language: &Language, program: Program) -> Option<MeasuredTrial<'a>> {
    let wanted = |one: &&MeasuredTrial| entrant(one).language == *language && entrant(one).program == program;
    group.iter().find(wanted).copied()
}

fn seconds_per_gib(one: MeasuredTrial) -> f64 {
    GIB / one.throughput()
}

/// Findings about entrants, in groups whose trials do the same work. The first part streams the largest volume, so
/// start-up and warm-up affect it least. `records` has all records, including the baselines.
pub(super) fn compare_languages(parts: &[Vec<Vec<MeasuredTrial>>], records: &[Record]) -> Vec<Vec<Candidate>> {
    let both = [Program::Idiomatic, Program::Tuned];
    let first = |rule: &dyn Fn(&[Vec<MeasuredTrial>]) -> Vec<Candidate>| {
        parts.iter().map(|groups| rule(groups)).find(|found| !found.is_empty()).unwrap_or_default()
    };
    vec![
        first(&|groups| tuning(&main_group(groups)).into_iter().collect()),
        first(&|groups| {
            let main = main_group(groups);
            main.iter().filter_map(|one| gap(one, &main, records)).collect()
        }),
        first(&|groups| start_up(&main_group(groups)).into_iter().collect()),
        first(&|groups| both.into_iter().filter_map(|program| by_block(&main_sizes(groups), program)).collect()),
        first(&|groups| both.into_iter().filter_map(|program| best_block(&main_sizes(groups), program)).collect()),
    ]
}

/// The group with the most programs. If several groups have the most, the one with blocks of [`MAIN_BLOCK`].
fn main_group<'a>(groups: &[Vec<MeasuredTrial<'a>>]) -> Vec<MeasuredTrial<'a>> {
    let near = |group: &&Vec<MeasuredTrial>| (group.len(), entrant(&group[0]).block == MAIN_BLOCK);
    groups.iter().max_by_key(near).cloned().unwrap_or_default()
}

/// A set of groups that differ only in the block size. If there are several such sets, the one with the most programs.
fn main_sizes<'a>(groups: &[Vec<MeasuredTrial<'a>>]) -> Vec<Vec<MeasuredTrial<'a>>> {
    let varies = [Key::Language, Key::Program, Key::Block];
    let situations = group_by_key(groups.iter().map(|group| (common_settings(&group[0], &varies), group.clone())));
    let programs = |sizes: &Vec<Vec<MeasuredTrial>>| sizes.iter().map(Vec::len).sum::<usize>();
    // `rev` makes `max_by_key` return the first of several equal sets.
    situations.into_iter().map(|(_, sizes)| sizes).rev().max_by_key(programs).unwrap_or_default()
}

/// The throughput of each language's tuned program relative to its idiomatic program.
fn tuning<'a>(group: &[MeasuredTrial<'a>]) -> Option<Candidate> {
    let gain = |plain: &MeasuredTrial<'a>| {
        let Entrant { language, program: Program::Idiomatic, .. } = entrant(plain) else { return None };
        Some((language, Contrast::throughput(*plain, find(group, language, Program::Tuned)?)?))
    };
    let mut gains: Vec<(&Language, Contrast)> = group.iter().filter_map(gain).collect();
    gains.sort_by_cached_key(|one| total_order(-one.1.ratio));
    let differ = gains.iter().filter(|(_, gain)| gain.is_higher() || gain.is_lower());
    let differ: Vec<String> = differ.map(|(language, gain)| format!("{language} {gain}")).collect();
    let same: Vec<&str> =
        gains.iter().filter(|(_, gain)| gain.is_equal()).map(|(language, _)| language.as_str()).collect();
    let mut parts = Vec::from_iter((!differ.is_empty()).then(|| differ.join(", ")));
    parts.extend((!same.is_empty()).then(|| format!("no difference for {}", same.join(", "))));
    let evidence: BTreeMap<&str, Value> =
        gains.iter().map(|(language, gain)| (language.as_str(), gain.evidence())).collect();
    let text = format!("Throughput of tuned programs relative to idiomatic ones: {}.", parts.join("; "));
    (!parts.is_empty()).then(|| Candidate::new("tuning", 1.0, text, json!({ "tuned_over_idiomatic": evidence })))
}

/// The part of a language's slowdown that tuning removes. `None` unless the idiomatic program
/// `plain` is slower than the tuned program of the baseline language.
fn gap(plain: &MeasuredTrial, group: &[MeasuredTrial], records: &[Record]) -> Option<Candidate> {
    let Entrant { language, program: Program::Idiomatic, .. } = entrant(plain) else { return None };
    let baseline = plain.record.baseline.as_ref()?;
    let baseline = &records.iter().find(|record| record.id == *baseline)?.job.entrant()?.language;
    let (tuned, base) = (find(group, language, Program::Tuned)?, find(group, baseline, Program::Tuned)?);
    let contrast = Contrast::throughput(base, *plain).filter(|c| c.is_lower() && c.ratio < 1.0 - MAX_SLOWDOWN)?;
    let [a, b, c] = [*plain, tuned, base].map(seconds_per_gib);
    let way = ((a - b) / (a - c)).clamp(0.0, 1.0);
    let share = match (way * 100.0).round() {
        _ if way > 0.995 => "all".to_owned(),
        _ if way < 0.005 => "none".to_owned(),
        way => format!("{way:.0} %"),
    };
    let [a, b, c] = [a, b, c].map(three_digits);
    let text = format!(
        "Per GiB, idiomatic {language} takes {a} s, tuned {language} takes {b} s and tuned {baseline} takes {c} s: tuning removes {share} of the gap."
    );
    let evidence = json!({
        "idiomatic": plain.evidence(), "tuned": tuned.evidence(), "baseline": base.evidence(),
        "share_of_the_way_it_is_written": way,
    });
    Some(Candidate::new("language-gap", contrast.effect(), text, evidence))
}

/// The shortest and the longest time spent outside the timed part.
fn start_up<'a>(group: &[MeasuredTrial<'a>]) -> Option<Candidate> {
    let of = |one: &MeasuredTrial<'a>| {
        Some((one.estimates.get(Figure::StartUp)?.median, entrant(one), seconds_per_gib(*one)))
    };
    let mut all: Vec<(f64, &Entrant, f64)> = group.iter().filter_map(of).collect();
    all.sort_by_cached_key(|one| total_order(one.0));
    let [least, .., most] = all.as_slice() else { return None };
    let total = entrant(&group[0]).total;
    let name = |entrant: &Entrant| format!("{} {}", entrant.language, entrant.program);
    let share = |(ns, _, seconds): &(f64, &Entrant, f64)| {
        three_digits(ns / (ns + seconds * total.0 as f64 / GIB * 1e9) * 100.0)
    };
    let text = format!(
        "Outside the timed part, start-up and exit take {} ({}) to {} ({}): {} % and {} % of a run of {total}.",
        time(least.0),
        name(least.1),
        time(most.0),
        name(most.1),
        share(least),
        share(most)
    );
    let evidence = BTreeMap::from_iter(all.iter().map(|(ns, entrant, _)| (name(entrant), *ns)));
    Some(Candidate::new("start-up", 1.0, text, json!({ "start_up_ns": evidence })))
}

/// The number of languages within 10 % of the fastest, by block size.
fn by_block<'a>(groups: &[Vec<MeasuredTrial<'a>>], program: Program) -> Option<Candidate> {
    // Programs that check differently do different work; those that check like the most are compared.
    let of_program = |group: &Vec<MeasuredTrial<'a>>| -> Vec<MeasuredTrial<'a>> {
        let all: Vec<_> = group.iter().copied().filter(|one| entrant(one).program == program).collect();
        let alike = |one: &MeasuredTrial<'a>| -> Vec<MeasuredTrial<'a>> {
            all.iter().copied().filter(|other| checks_alike(&one.record.samples, &other.record.samples)).collect()
        };
        all.iter().map(alike).max_by_key(Vec::len).unwrap_or_default()
    };
    let count = |group: &Vec<MeasuredTrial>| group.iter().filter(|one| entrant(one).program == program).count();
    let all = groups.iter().map(count).max().unwrap_or(0);
    let mut groups: Vec<Vec<MeasuredTrial>> = groups.iter().map(of_program).filter(|group| group.len() > 1).collect();
    let block = |group: &[MeasuredTrial]| entrant(&group[0]).block;
    groups.sort_by_cached_key(|group| block(group));
    let alike = groups.windows(2).all(|two| block(&two[0]) < block(&two[1]) && two[0].len() == two[1].len());
    let sure = groups.iter().flatten().all(|one| one.estimates.throughput().low.is_some());
    if groups.len() < 2 || !alike || !sure {
        return None;
    }
    let (mut parts, mut evidence, mut from) = (Vec::new(), Vec::new(), None::<ByteSize>);
    for group in &groups {
        let best = fastest(group.iter().copied())?;
        let others = group.iter().filter(|one| one.record.id != best.record.id);
        let mut shares: Vec<Contrast> =
            others.map(|one| Contrast::throughput(best, *one)).collect::<Option<Vec<_>>>()?;
        shares.sort_by_cached_key(|one| total_order(one.ratio));
        let near = 1 + shares.iter().filter(|share| share.ratio >= 1.0 - MAX_SLOWDOWN).count();
        let (block, least) = (block(group), shares.first()?);
        let (slowest, percent) = (&entrant(&least.new).language, three_digits(least.ratio * 100.0));
        let qualifier = least.qualifier();
        parts.push(format!("{near} with {block} (slowest: {slowest}, {percent} % of the fastest{qualifier})"));
        let shares: Value = shares.iter().map(Contrast::evidence).collect();
        evidence.push(json!({ "block": block, "share_of_the_fastest": shares }));
        from = from.or(Some(block)).filter(|_| near == group.len());
    }
    let verdict = match from {
        Some(block) => format!("from {block} up, all are within 10 %"),
        None => format!("at {}, not all are within 10 %", block(groups.last()?)),
    };
    let (programs, parts) = (groups[0].len(), parts.join(", "));
    let alone = if all > programs { " that check their bytes alike" } else { "" };
    let text = format!("Within 10 % of the fastest of {programs} {program} programs{alone}: {parts}; {verdict}.");
    Some(Candidate::new("language-by-block", 1.0, text, json!({ "program": program, "blocks": evidence })))
}

/// The minimum throughput of a block size that counts as equally fast, as a share of the best block size's throughput.
const MIN_SHARE_OF_FASTEST: f64 = 0.95;

/// For each language, the smallest block size whose median throughput is within 5 % of the best block size's.
fn best_block<'a>(groups: &[Vec<MeasuredTrial<'a>>], program: Program) -> Option<Candidate> {
    let mut languages: BTreeMap<&str, Vec<MeasuredTrial<'a>>> = BTreeMap::new();
    for one in groups.iter().flatten().filter(|one| entrant(one).program == program) {
        languages.entry(entrant(one).language.as_str()).or_default().push(*one);
    }
    let mut blocks: BTreeMap<ByteSize, Vec<&str>> = BTreeMap::new();
    let mut evidence = BTreeMap::new();
    for (language, all) in languages.into_iter().filter(|(_, all)| all.len() > 2) {
        let best = fastest(all.iter().copied())?;
        let share =
            |one: &MeasuredTrial<'a>| Contrast::throughput(best, *one).filter(|_| one.record.id != best.record.id);
        let as_fast = |one: &&MeasuredTrial<'a>| {
            one.record.id == best.record.id || share(one).is_some_and(|share| share.ratio >= MIN_SHARE_OF_FASTEST)
        };
        let smallest = all.iter().filter(as_fast).min_by_key(|one| entrant(one).block)?;
        blocks.entry(entrant(smallest).block).or_default().push(language);
        let share = share(smallest).map(|share| share.evidence());
        evidence.insert(language, json!({ "smallest": smallest.evidence(), "share_of_the_fastest": share }));
    }
    let sure = groups.iter().flatten().all(|one| one.estimates.throughput().low.is_some());
    let parts: Vec<String> =
        blocks.iter().map(|(block, languages)| format!("{block} for {}", languages.join(", "))).collect();
    let text = format!("Smallest block within 5 % of the best, {program} programs: {}.", parts.join("; "));
    let evidence = json!({ "program": program, "languages": evidence });
    (sure && !parts.is_empty()).then(|| Candidate::new("language-best-block", 1.0, text, evidence))
}

#[cfg(test)]
mod tests {
    use pipemark_model::{EntrantStats, Finding, Record};
    use pipemark_stats::fixture::records;
    use pipemark_stats::fixture::{STEADY, outcome};

    use crate::findings::findings;

    /// Records of programs with blocks of 64 KiB and of 512 B. Each program is given with its throughput in GiB/s. With
    /// 512 B, programs in all languages but C are half as fast.
    fn measured_records(programs: &[(&str, &str, f64)]) -> Vec<Record> {
        let mut outcomes = Vec::new();
        for block in ["64k", "512"] {
            for (language, program, throughput) in programs {
                let params = |language| {
                    [
                        ("language", language),
                        ("program", *program),
                        ("block", block),
                        ("total", "10g"),
                        ("verify", "full"),
                        ("place", "free"),
                    ]
                };
                let slower = if block == "512" && *language != "c" { 0.5 } else { 1.0 };
                let mut one = outcome("e", &params(*language), throughput * slower, &STEADY);
                let base = outcome("e", &params("c"), 1.0, &[]).trial.id;
                one.trial.baseline = (base != one.trial.id).then_some(base);
                for sample in &mut one.samples {
                    sample.entrant =
                        Some(EntrantStats { runtime: "x 1".to_owned(), compares: false, max_rss: Some(1 << 20) });
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
    fn the_best_block_of_each_language_is_the_smallest_that_is_as_fast() {
        let mut all = Vec::new();
        for (language, speeds) in [("c", [1.0, 4.0, 4.01]), ("java", [1.0, 2.0, 3.0])] {
            for (block, speed) in ["4k", "64k", "1m"].into_iter().zip(speeds) {
                let params = [("language", language), ("program", "tuned"), ("block", block)];
                let others = [("total", "1g"), ("verify", "full"), ("place", "free")];
                all.push(outcome("e", &[params, others].concat(), speed, &STEADY));
            }
        }
        assert_eq!(
            text(&findings(&records(all), None, &[]), "language-best-block"),
            ["Smallest block within 5 % of the best, tuned programs: 64 KiB for c; 1 MiB for java."]
        );
    }

    #[test]
    fn the_gap_is_split_into_language_and_programming_style() {
        let all = measured_records(&[
            ("c", "idiomatic", 4.0),
            ("c", "tuned", 4.0),
            ("java", "idiomatic", 1.0),
            ("java", "tuned", 2.0),
        ]);
        let found = findings(&all, None, &[]);
        assert_eq!(
            text(&found, "language-gap"),
            [
                "Per GiB, idiomatic java takes 1.00 s, tuned java takes 0.50 s and tuned c takes 0.25 s: tuning removes 67 % of the gap."
            ]
        );
        let tuning = &text(&found, "tuning")[0];
        assert!(
            tuning.starts_with("Throughput of tuned programs relative to idiomatic ones: java 2.00× (")
                && tuning.ends_with("for c."),
            "{tuning}"
        );
        assert_eq!(text(&found, "start-up").len(), 1);
        // Rules about pipemark's own source and sink ignore entrants.
        assert!(text(&found, "best-block").is_empty() && text(&found, "recommended").is_empty());
    }

    #[test]
    fn programs_that_check_differently_are_not_compared() {
        let mut all = measured_records(&[("c", "tuned", 4.0), ("zig", "tuned", 3.9), ("python", "tuned", 8.0)]);
        let all_alike = findings(&all, None, &[]);
        for sample in
            all.iter_mut().filter(|record| record.id.contains("python")).flat_map(|record| &mut record.samples)
        {
            sample.entrant.as_mut().unwrap().compares = true;
        }
        let apart = findings(&all, None, &[]);
        let [all_alike, apart] = [all_alike, apart].map(|found| text(&found, "language-by-block").remove(0));
        assert!(all_alike.starts_with("Within 10 % of the fastest of 3 tuned programs: "), "{all_alike}");
        assert!(
            apart.starts_with("Within 10 % of the fastest of 2 tuned programs that check their bytes alike: "),
            "{apart}"
        );
    }

    #[test]
    fn the_block_size_beyond_which_languages_tie_is_found() {
        let all = measured_records(&[("c", "tuned", 4.0), ("zig", "tuned", 3.9), ("go", "tuned", 3.8)]);
        let texts = text(&findings(&all, None, &[]), "language-by-block");
        assert_eq!(
            texts,
            [
                "Within 10 % of the fastest of 3 tuned programs: 1 with 512 B (slowest: go, 47.5 % of the fastest), 3 with \
              64 KiB (slowest: go, 95.0 % of the fastest); from 64 KiB up, all are within 10 %."
            ]
        );
    }
}
