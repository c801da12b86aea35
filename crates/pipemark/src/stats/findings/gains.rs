//! Published conclusions about gains, each answered by what was measured: which hold, which have turned round, by how
//! much.

use serde_json::{Value, json};

use super::Found;
use crate::model::{Claim, ClaimTest, Experiment, Finding, Gains, Record, Scope, three_digits};
use crate::stats::gains::{Gain, Sign, column};

/// An answer to each conclusion of the experiments' tables, in their order.
pub fn answers(experiments: &[Experiment], records: &[Record]) -> Vec<Finding> {
    let with_gains = || experiments.iter().filter_map(|experiment| Some((experiment, experiment.gains.as_ref()?)));
    with_gains()
        .flat_map(|(experiment, gains)| gains.claims.iter().map(move |claim| (experiment, gains, claim)))
        .filter_map(|(experiment, gains, claim)| match claim.scope {
            Scope::Experiment => answer(brief(&experiment.title), claim, &[(experiment, gains)], records),
            Scope::Suite => answer("All benchmarks", claim, &with_gains().collect::<Vec<_>>(), records),
        })
        .collect()
}

/// A difference of at most so much, in per cent, is none to speak of: the document calls +1 to -2 negligible.
const NEGLIGIBLE: f64 = 3.0;

/// A measured row: what it is called, the gain, its evidence.
struct Row {
    name: String,
    gain: Gain,
    evidence: Value,
}

/// A title up to what explains it.
fn brief(title: &str) -> &str {
    title.split_once(':').map_or(title, |(brief, _)| brief)
}

fn answer(subject: &str, claim: &Claim, tables: &[(&Experiment, &Gains)], records: &[Record]) -> Option<Finding> {
    let mut blocks: Vec<&str> = Vec::new();
    for block in tables.iter().flat_map(|(_, gains)| &gains.blocks) {
        let asked = claim.blocks.is_empty() || claim.blocks.contains(&block.title);
        let has_column = block.columns.iter().any(|column| column.name == claim.column);
        if asked && has_column && !blocks.contains(&block.title.as_str()) {
            blocks.push(&block.title);
        }
    }
    let mut texts = Vec::new();
    let mut evidence = Vec::new();
    for block in blocks {
        let rows: Vec<Row> = tables
            .iter()
            .flat_map(|(experiment, gains)| {
                let rows = column(gains, block, &claim.column, experiment, records);
                rows.into_iter()
                    .filter(|(row, ..)| claim.rows.is_empty() || claim.rows.iter().any(|asked| asked == row))
                    .map(|(row, cell, gain)| Row {
                        name: match tables.len() {
                            1 => row.to_owned(),
                            _ => format!("{}, {row}", experiment.name),
                        },
                        gain,
                        evidence: json!({
                            "experiment": experiment.name, "row": row, "trial": cell.trial, "percent": gain.percent,
                            "interval": gain.interval, "published": gain.published,
                        }),
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        if !rows.is_empty() {
            texts.push(format!("{block}: {}", in_words(&rows, claim.test)));
            let rows: Vec<Value> = rows.into_iter().map(|row| row.evidence).collect();
            evidence.push(json!({ "block": block, "rows": rows }));
        }
    }
    if texts.is_empty() {
        return None;
    }
    let text = format!("{subject}: “{}” Here, {}.", claim.says.trim(), texts.join("; "));
    let evidence = json!({ "says": claim.says, "column": claim.column, "blocks": evidence });
    Some(Found::new("published-gain", 0.0, text, evidence).finding)
}

/// `+3 % (2 KiB) to +215 % (32 KiB): 8 of 10 signs hold, 2 have turned round`.
fn in_words(rows: &[Row], test: ClaimTest) -> String {
    let by = |row: &&Row, other: &&Row| row.gain.percent.total_cmp(&other.gain.percent);
    let (Some(least), Some(most)) = (rows.iter().min_by(by), rows.iter().max_by(by)) else { return String::new() };
    let range = match rows {
        [one] => {
            let interval = one.gain.interval.map_or_else(
                || ", too few rounds for an interval".to_owned(),
                |(low, high)| format!(" ({} to {} %)", per_cent(low), per_cent(high)),
            );
            let published =
                one.gain.published.map_or_else(String::new, |figure| format!(", published {} %", per_cent(figure)));
            format!("{} %{interval}{published}", per_cent(one.gain.percent))
        }
        _ => format!(
            "{} % ({}) to {} % ({})",
            per_cent(least.gain.percent),
            least.name,
            per_cent(most.gain.percent),
            most.name
        ),
    };
    if test == ClaimTest::NoChange {
        let differ = rows.iter().filter(|row| row.gain.differs_by(NEGLIGIBLE)).count();
        return match differ {
            0 => format!("{range}: it holds, no difference of over {NEGLIGIBLE} % could be told"),
            some => format!("{range}: {some} of {} differ by over {NEGLIGIBLE} %", rows.len()),
        };
    }
    let count = |sign: Sign| rows.iter().filter(|row| row.gain.sign() == sign).count();
    let (holds, turned, not_told) = (count(Sign::Holds), count(Sign::TurnedRound), count(Sign::NotTold));
    let verdict = match (holds, turned, not_told) {
        (0, 0, 0) => return range,
        (_, 0, 0) => "it holds".to_owned(),
        (0, _, 0) => "it has turned round".to_owned(),
        (0, 0, _) => "no different from the base that could be told".to_owned(),
        (holds, turned, not_told) => {
            let mut parts = vec![format!("{holds} of {} signs hold", holds + turned + not_told)];
            if turned > 0 {
                parts.push(format!("{turned} turned round"));
            }
            if not_told > 0 {
                parts.push(format!("{not_told} not to be told"));
            }
            parts.join(", ")
        }
    };
    format!("{range}: {verdict}")
}

/// `+12.3`, `-0.45`, `+8230`.
fn per_cent(percent: f64) -> String {
    let digits = if percent.abs() >= 100.0 { format!("{:.0}", percent.abs()) } else { three_digits(percent.abs()) };
    let sign = if percent < 0.0 { "-" } else { "+" };
    format!("{sign}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GainsBlock, GainsCell, GainsColumn, Key};
    use crate::stats::fixture::{STEADY, outcome};
    use crate::stats::records::records;

    /// A table of two sizes in two blocks, with trials that gain what is given.
    fn table(gains: [[f64; 2]; 2], runs: &[f64]) -> (Vec<Experiment>, Vec<Record>) {
        let mut outcomes = Vec::new();
        let mut blocks = Vec::new();
        for (place, gains) in ["cross", "same"].into_iter().zip(gains) {
            let mut cells = Vec::new();
            for ((block, gain), published) in ["4k", "64k"].into_iter().zip(gains).zip([19.0, -24.0]) {
                let params = [("place", place), ("block", block)];
                let base = outcome("e", &[&params[..], &[("capacity", "4k")]].concat(), 1.0, runs);
                let mut changed =
                    outcome("e", &[&params[..], &[("capacity", "32k")]].concat(), 1.0 + gain / 100.0, runs);
                changed.trial.baseline = Some(base.trial.id.clone());
                cells.push(Some(GainsCell { trial: changed.trial.id.clone(), published: Some(published) }));
                outcomes.extend([base, changed]);
            }
            let columns = vec![GainsColumn { name: "LP".to_owned(), cells }];
            blocks.push(GainsBlock { title: place.to_owned(), columns });
        }
        let claim = Claim {
            says: "It helps.".to_owned(),
            column: "LP".to_owned(),
            rows: Vec::new(),
            blocks: Vec::new(),
            scope: Scope::Experiment,
            test: ClaimTest::Signs,
        };
        let experiment = Experiment {
            name: "e".to_owned(),
            title: "A table".to_owned(),
            about: String::new(),
            varies: vec![Key::Block, Key::Capacity],
            across: None,
            gains: Some(Gains {
                by: Key::Block,
                corner: "T.S.".to_owned(),
                rows: vec!["4 KiB".to_owned(), "64 KiB".to_owned()],
                source: "a paper".to_owned(),
                blocks,
                claims: vec![claim],
            }),
        };
        (vec![experiment], records(outcomes))
    }

    fn text(gains: [[f64; 2]; 2], change: impl Fn(&mut Claim)) -> Option<String> {
        let (mut experiments, records) = table(gains, &STEADY);
        change(&mut experiments[0].gains.as_mut().unwrap().claims[0]);
        answers(&experiments, &records).pop().map(|finding| finding.text)
    }

    #[test]
    fn a_conclusion_is_answered_for_each_block() {
        assert_eq!(
            text([[30.0, -10.0], [-30.0, 10.0]], |_| ()).unwrap(),
            "A table: “It helps.” Here, cross: -10.0 % (64 KiB) to +30.0 % (4 KiB): it holds; \
             same: -30.0 % (4 KiB) to +10.0 % (64 KiB): it has turned round."
        );
        let mixed = text([[30.0, 10.0], [0.0, 0.0]], |_| ()).unwrap();
        assert!(mixed.contains("1 of 2 signs hold, 1 turned round; same:"), "{mixed}");
        assert!(mixed.ends_with("no different from the base that could be told."), "{mixed}");
    }

    #[test]
    fn no_change_is_a_conclusion_too() {
        let of = |gains| text(gains, |claim| claim.test = ClaimTest::NoChange).unwrap();
        let none = of([[1.0, -2.0], [0.0, 0.0]]);
        assert_eq!(none.matches("it holds, no difference of over 3 % could be told").count(), 2, "{none}");
        assert!(of([[9.0, -2.0], [0.0, 0.0]]).contains("(4 KiB): 1 of 2 differ by over 3 %; same:"));
    }

    #[test]
    fn rows_and_blocks_can_be_chosen() {
        let one = text([[30.0, -10.0], [0.0, 0.0]], |claim| {
            claim.rows = vec!["64 KiB".to_owned()];
            claim.blocks = vec!["cross".to_owned()];
        });
        let one = one.unwrap();
        assert!(one.contains("Here, cross: -10.0 % (-") && one.ends_with("%), published -24.0 %: it holds."), "{one}");
        assert_eq!(text([[30.0, -10.0], [0.0, 0.0]], |claim| claim.column = "ZC".to_owned()), None);
        let all = text([[30.0, -10.0], [0.0, 0.0]], |claim| claim.scope = Scope::Suite).unwrap();
        assert!(all.starts_with("All benchmarks: “"), "{all}");
    }

    #[test]
    fn what_was_not_measured_is_no_evidence() {
        let (experiments, mut records) = table([[30.0, -10.0], [5.0, 5.0]], &STEADY);
        for record in &mut records {
            record.estimate = None;
        }
        assert_eq!(answers(&experiments, &records), []);
    }
}
