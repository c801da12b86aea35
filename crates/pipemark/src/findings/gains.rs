//! Gains over a base in per cent, beside published ones; and published conclusions about them, each answered by what was
//! measured: which hold, which are reversed, by how much.

use serde_json::{Value, json};

use crate::model::{
    Claim, ClaimTest, Experiment, Finding, Gains, GainsBlock, GainsCell, Record, Scope, Status, three_digits,
};
use crate::stats::family::Family;

/// A difference of at most so much, in per cent, is none to speak of: the document calls +1 to -2 negligible.
const NEGLIGIBLE: f64 = 3.0;

/// One cell of a table of gains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Per cent over the base, the median of the rounds.
    pub percent: f64,
    /// The 95 % interval of that; `None` where there were too few rounds.
    pub interval: Option<(f64, f64)>,
    /// The interval that holds together with those of all other cells of the table.
    sure: Option<(f64, f64)>,
    /// As published, in per cent.
    pub published: Option<f64>,
}

/// What a measured gain says about the sign of a published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It is the same.
    Holds,
    /// It is the other one, for certain.
    Reversed,
    /// Nothing: the interval includes 0, or there is none.
    Unclear,
    /// There is no published sign: none at all, or a gain of 0.
    Unpublished,
}

impl Gain {
    /// The gain of a cell; `None` where its trial was not measured.
    pub fn of(cell: &GainsCell, experiment: &Experiment, records: &[Record]) -> Option<Gain> {
        let ratio = record(&cell.trial, experiment, records)?.estimate.as_ref()?.ratio()?;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let ends = |(low, high): (f64, f64)| (percent(low), percent(high));
        let columns = experiment.gains.iter().flat_map(|gains| &gains.blocks).flat_map(|block| &block.columns);
        let cells = columns.flat_map(|column| &column.cells).flatten().count();
        ratio.median.is_finite().then(|| Gain {
            percent: percent(ratio.median),
            interval: ratio.low.zip(ratio.high).map(ends),
            sure: Family::among(cells).interval(ratio).map(ends),
            published: cell.published,
        })
    }

    /// Whether it is over or under the base by more than `percent` for certain.
    pub fn differs_by(&self, percent: f64) -> bool {
        self.sure.is_some_and(|(low, high)| low > percent || high < -percent)
    }

    /// Whether it is within `percent` of the base for certain.
    fn is_within(&self, percent: f64) -> bool {
        self.sure.is_some_and(|(low, high)| low >= -percent && high <= percent)
    }

    /// What it says about the published sign.
    pub fn sign(&self) -> Sign {
        match self.published {
            None | Some(0.0) => Sign::Unpublished,
            Some(_) if !self.differs_by(0.0) => Sign::Unclear,
            Some(published) if (published > 0.0) == (self.percent > 0.0) => Sign::Holds,
            Some(_) => Sign::Reversed,
        }
    }
}

/// The trial called `id`, if it was measured well.
pub fn record<'a>(id: &str, experiment: &Experiment, records: &'a [Record]) -> Option<&'a Record> {
    let wanted = |record: &&Record| record.experiment == experiment.name && record.id == id;
    let sound = |record: &&Record| record.status == Status::Ok && record.verified != Some(false);
    records.iter().find(wanted).filter(sound)
}

/// An answer to each conclusion of the experiments' tables, in their order.
pub fn answers(experiments: &[Experiment], records: &[Record]) -> Vec<Finding> {
    let tables: Vec<(&Experiment, &Gains)> =
        experiments.iter().filter_map(|experiment| Some((experiment, experiment.gains.as_ref()?))).collect();
    let of_table = |table: &(&Experiment, &Gains)| -> Vec<Finding> {
        // A title up to what explains it.
        let title = table.0.title.split(':').next().unwrap_or_default();
        let answer = |claim: &Claim| match claim.scope {
            Scope::Experiment => answer(title, claim, &[*table], records),
            Scope::Suite => answer("All benchmarks", claim, &tables, records),
        };
        table.1.claims.iter().filter_map(answer).collect()
    };
    tables.iter().flat_map(of_table).collect()
}

/// A measured row: what it is called, the gain, its evidence.
struct Row {
    name: String,
    gain: Gain,
    evidence: Value,
}

fn answer(subject: &str, claim: &Claim, tables: &[(&Experiment, &Gains)], records: &[Record]) -> Option<Finding> {
    let mut titles: Vec<&str> = Vec::new();
    for block in tables.iter().flat_map(|(_, gains)| &gains.blocks) {
        let asked = claim.blocks.is_empty() || claim.blocks.contains(&block.title);
        if asked && !titles.contains(&block.title.as_str()) {
            titles.push(&block.title);
        }
    }
    let (mut texts, mut evidence) = (Vec::new(), Vec::new());
    for title in titles {
        let blocks = tables.iter().flat_map(|(experiment, gains)| {
            gains.blocks.iter().filter(|block| block.title == title).map(move |block| (*experiment, *gains, block))
        });
        let rows = blocks.flat_map(|(experiment, gains, block)| rows(claim, experiment, gains, block, records));
        let rows: Vec<Row> = rows
            .map(|(experiment, row)| match tables.len() {
                1 => row,
                _ => Row { name: format!("{experiment}, {}", row.name), ..row },
            })
            .collect();
        if !rows.is_empty() {
            texts.push(format!("{title}: {}", in_words(&rows, claim.test)));
            let rows: Vec<Value> = rows.into_iter().map(|row| row.evidence).collect();
            evidence.push(json!({ "block": title, "rows": rows }));
        }
    }
    let Value::Object(evidence) = json!({ "says": claim.says, "column": claim.column, "blocks": evidence }) else {
        unreachable!("written as an object")
    };
    let text = format!("{subject}: “{}” Here, {}.", claim.says.trim(), texts.join("; "));
    (!texts.is_empty()).then(|| Finding {
        rule: "published-gain".to_owned(),
        topic: super::topic("published-gain"),
        text,
        evidence,
    })
}

/// The gains that a conclusion is about in a part of a table, each with its experiment's name.
fn rows<'a>(
    claim: &Claim,
    experiment: &'a Experiment,
    gains: &Gains,
    block: &GainsBlock,
    records: &[Record],
) -> Vec<(&'a str, Row)> {
    let Some(column) = block.columns.iter().find(|column| column.name == claim.column) else { return Vec::new() };
    let row = |(row, cell): (&String, &Option<GainsCell>)| {
        let cell = cell.as_ref().filter(|_| claim.rows.is_empty() || claim.rows.contains(row))?;
        let gain = Gain::of(cell, experiment, records)?;
        let evidence = json!({
            "experiment": experiment.name, "row": row, "trial": cell.trial, "percent": gain.percent,
            "interval": gain.interval, "published": gain.published,
        });
        Some((experiment.name.as_str(), Row { name: row.clone(), gain, evidence }))
    };
    gains.rows.iter().zip(&column.cells).filter_map(row).collect()
}

/// `+3 % (2 KiB) to +215 % (32 KiB): 8 of 10 signs hold, 2 reversed`.
fn in_words(rows: &[Row], test: ClaimTest) -> String {
    let by = |row: &&Row, other: &&Row| row.gain.percent.total_cmp(&other.gain.percent);
    let (Some(least), Some(most)) = (rows.iter().min_by(by), rows.iter().max_by(by)) else { return String::new() };
    let range = match rows {
        [Row { gain: Gain { percent, interval, published, .. }, .. }] => {
            let interval = interval.map_or_else(
                || ", too few rounds for an interval".to_owned(),
                |(low, high)| format!(" ({} to {} %)", per_cent(low), per_cent(high)),
            );
            let published = published.map_or_else(String::new, |figure| format!(", published {} %", per_cent(figure)));
            format!("{} %{interval}{published}", per_cent(*percent))
        }
        _ => [least, most].map(|row| format!("{} % ({})", per_cent(row.gain.percent), row.name)).join(" to "),
    };
    if test == ClaimTest::NoChange {
        let count = |test: fn(&Gain, f64) -> bool| rows.iter().filter(|row| test(&row.gain, NEGLIGIBLE)).count();
        return match (count(Gain::differs_by), count(Gain::is_within), rows.len()) {
            (0, same, all) if same == all => format!("{range}: it holds, all are within {NEGLIGIBLE} %"),
            (0, same, all) => format!("{range}: can't tell, {same} of {all} are within {NEGLIGIBLE} % for certain"),
            (some, _, all) => format!("{range}: {some} of {all} differ by over {NEGLIGIBLE} %"),
        };
    }
    let count = |sign: Sign| rows.iter().filter(|row| row.gain.sign() == sign).count();
    let verdict = match (count(Sign::Holds), count(Sign::Reversed), count(Sign::Unclear)) {
        (0, 0, 0) => return range,
        (_, 0, 0) => "it holds".to_owned(),
        (0, _, 0) => "it is reversed".to_owned(),
        (0, 0, _) => "tied with the base".to_owned(),
        (holds, reversed, unclear) => {
            let parts = [(reversed, "reversed"), (unclear, "can't tell")].into_iter().filter(|(count, _)| *count > 0);
            let parts: String = parts.map(|(count, word)| format!(", {count} {word}")).collect();
            format!("{holds} of {} signs hold{parts}", holds + reversed + unclear)
        }
    };
    format!("{range}: {verdict}")
}

/// `+12.3`, `-0.45`, `+8230`.
fn per_cent(percent: f64) -> String {
    format!("{}{}", if percent < 0.0 { "-" } else { "+" }, three_digits(percent.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GainsColumn, Key};
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
             same: -30.0 % (4 KiB) to +10.0 % (64 KiB): it is reversed."
        );
        let mixed = text([[30.0, 10.0], [0.0, 0.0]], |_| ()).unwrap();
        assert!(mixed.contains("1 of 2 signs hold, 1 reversed; same:"), "{mixed}");
        assert!(mixed.ends_with("tied with the base."), "{mixed}");
    }

    #[test]
    fn no_change_is_a_conclusion_too() {
        let of = |gains| text(gains, |claim| claim.test = ClaimTest::NoChange).unwrap();
        let none = of([[1.0, -2.0], [0.0, 0.0]]);
        assert_eq!(none.matches("it holds, all are within 3 %").count(), 2, "{none}");
        // What can't be told is no evidence that there is nothing.
        let (mut experiments, records) = table([[0.0; 2]; 2], &STEADY[..4]);
        experiments[0].gains.as_mut().unwrap().claims[0].test = ClaimTest::NoChange;
        let unknown = &answers(&experiments, &records)[0].text;
        assert_eq!(unknown.matches("can't tell, 0 of 2 are within 3 % for certain").count(), 2, "{unknown}");
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
