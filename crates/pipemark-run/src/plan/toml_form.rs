//! Parses a suite from TOML and keeps the position of each word, so that errors can point at it.
//!
//! docs/suites.md describes the format for users.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use toml::Spanned;

use pipemark_claims::form::ClaimForm;
use pipemark_entrants::AgainstProgram;
use pipemark_model::written::{
    CheckedName, MAX_VALUE_CHARS, Refusal, Scalar, SuiteTable, check_line, entries, key, name, setting, setting_of,
    settings, title,
};
use pipemark_model::{GIB, Language, RATE_UNITS, Statistic, did_you_mean};

use crate::plan::design::{Design, DesignAxis, PublishedFigure, PublishedFigures};
use crate::plan::gains::{ColumnDesign, GainsDesign};
use crate::plan::refusal::PlanError;
use crate::plan::schedule::ScheduleChoices;
use crate::plan::suite::{MAX_SUITE_BYTES, Suite, SuiteSource};

const MAX_ABOUT_CHARS: usize = 4000;
/// The largest number of tables with published figures. It limits the time to find the figures of all trials, which is
/// proportional to the number of tables times the number of trials.
const MAX_PUBLISHED: usize = 24;
/// The value of `total` for chains whose volume is chosen by measuring.
const AUTO: &str = "auto";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteForm {
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(deserialize_with = "title")]
    title: String,
    #[serde(default, deserialize_with = "parse_about")]
    about: String,
    #[serde(default, deserialize_with = "schedule")]
    schedule: ScheduleChoices,
    #[serde(default)]
    defaults: SuiteTable<Scalar>,
    headline: Option<Spanned<Headline>>,
    experiment: Spanned<Vec<DesignForm>>,
    #[serde(default)]
    claim: Vec<ClaimForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DesignForm {
    name: Spanned<CheckedName>,
    #[serde(deserialize_with = "title")]
    title: String,
    #[serde(default, deserialize_with = "parse_about")]
    about: String,
    across: Option<Spanned<String>>,
    #[serde(default)]
    params: SuiteTable<Scalar>,
    #[serde(default)]
    axes: SuiteTable<Vec<Spanned<Scalar>>>,
    #[serde(default)]
    cases: Vec<SuiteTable<Scalar>>,
    #[serde(default)]
    baseline: SuiteTable<Scalar>,
    #[serde(default)]
    published: Vec<Spanned<PublishedForm>>,
    gains: Option<Spanned<GainsForm>>,
    volume: Option<Spanned<String>>,
    #[serde(default)]
    against: Vec<Spanned<AgainstForm>>,
}

/// One of the user's own programs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgainstForm {
    /// The name of its row; by default, the name of the program.
    name: Option<Spanned<String>>,
    command: String,
    figure: Option<String>,
}

/// The experiments that are the suite's main result: one, or several that belong together.
#[derive(Deserialize)]
#[serde(untagged, expecting = "headline must be the name of an experiment, or a list of names")]
enum Headline {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GainsForm {
    by: Spanned<String>,
    /// The heading of the first column.
    #[serde(deserialize_with = "title")]
    corner: String,
    #[serde(deserialize_with = "title")]
    source: String,
    #[serde(deserialize_with = "title")]
    hardware: String,
    column: Vec<GainsColumnForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GainsColumnForm {
    #[serde(deserialize_with = "title")]
    block: String,
    name: Spanned<String>,
    when: Vec<SuiteTable<Scalar>>,
    #[serde(default)]
    published: SuiteTable<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedForm {
    #[serde(deserialize_with = "title")]
    source: String,
    #[serde(deserialize_with = "title")]
    hardware: String,
    #[serde(deserialize_with = "unit")]
    unit: SuiteUnit,
    /// For figures in seconds, the bytes moved in the published time. For other figures, the bytes moved for each
    /// figure, if published.
    total: Option<u64>,
    /// The document's spelling of the unit, if it differs.
    written: Option<String>,
    /// How each figure was derived from the document's runs, such as their mean.
    statistic: Option<Statistic>,
    by: Spanned<String>,
    values: SuiteTable<FigureForm>,
    /// Other published figures for the same parameter values, by name.
    #[serde(default)]
    figures: SuiteTable<SuiteTable<FigureForm>>,
    #[serde(default)]
    when: SuiteTable<Scalar>,
}

/// Another published figure: a number in the unit of its CSV column, or a text as it was published, such as "4787 ms".
#[derive(Deserialize)]
#[serde(untagged)]
enum FigureForm {
    Number(f64),
    Text(String),
}

/// The units that a published text may end with, and their size in the unit of the CSV column.
const FIGURE_UNITS: [(&str, f64); 9] = [
    ("", 1.0),
    ("s", 1e9),
    ("ms", 1e6),
    ("msec", 1e6),
    ("%", 1.0),
    ("GHz", 1.0),
    ("M/sec", 1e6),
    ("K/sec", 1e3),
    ("MB/s", 1.0),
];

impl FigureForm {
    /// The figure in the unit of its CSV column; `None` if the text isn't a number with a known unit.
    fn number(&self) -> Option<f64> {
        match self {
            FigureForm::Number(number) => Some(*number),
            FigureForm::Text(text) => {
                let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
                let (_, size) = FIGURE_UNITS.into_iter().find(|(known, _)| *known == unit)?;
                Some(number.replace(',', "").parse::<f64>().ok().filter(|number| number.is_finite())? * size)
            }
        }
    }

    fn text(&self) -> Option<&String> {
        match self {
            FigureForm::Number(_) => None,
            FigureForm::Text(text) => Some(text),
        }
    }
}

/// Units of published figures that aren't rates: times, times for an unknown number of bytes, and numbers of calls.
const OTHER_UNITS: [(&str, SuiteUnit); 3] =
    [("s", SuiteUnit::Seconds), ("s, total unknown", SuiteUnit::SecondsOfSomething), ("calls", SuiteUnit::Calls)];

/// The units accepted for published figures.
fn units() -> impl Iterator<Item = (&'static str, SuiteUnit)> {
    RATE_UNITS.into_iter().map(|(word, bytes)| (word, SuiteUnit::Bytes(bytes))).chain(OTHER_UNITS)
}

#[derive(Clone, Copy, PartialEq)]
enum SuiteUnit {
    Bytes(f64),
    Seconds,
    SecondsOfSomething,
    /// Number of calls that moved `total` bytes. It is not a throughput.
    Calls,
}

impl SuiteUnit {
    /// Converts a figure to bytes per second. A time is taken as that for `total` bytes, or for 1 GiB if the number of
    /// bytes is unknown.
    fn throughput(self, figure: f64, total: Option<u64>) -> f64 {
        match self {
            SuiteUnit::Bytes(bytes) => figure * bytes,
            SuiteUnit::Seconds => total.unwrap_or(0) as f64 / figure,
            SuiteUnit::SecondsOfSomething => GIB / figure,
            SuiteUnit::Calls => 0.0,
        }
    }
}

impl Suite {
    /// Parses a suite. `file` is the file's name in errors.
    ///
    /// # Errors
    /// A message with file, line and column, if the text isn't a suite or a value isn't valid for its parameter.
    pub fn parse(file: &str, text: &str) -> Result<Suite, PlanError> {
        let located = |refusal| PlanError::of_suite(refusal, file, text);
        if text.len() > MAX_SUITE_BYTES {
            return Err(located(Refusal::new(
                format!("the file is larger than {} MiB, the limit for a suite", MAX_SUITE_BYTES >> 20),
                None,
            )));
        }
        let mut suite = read(text).map_err(located)?;
        suite.source = Some(SuiteSource { file: file.into(), text: text.into() });
        Ok(suite)
    }
}

fn read(text: &str) -> Result<Suite, Refusal> {
    let form: SuiteForm = toml::from_str(text).map_err(|error| Refusal::new(reword(error.message()), error.span()))?;
    let defaults = settings(&form.defaults)?;
    if form.experiment.as_ref().is_empty() {
        return Err(Refusal::new("a suite needs at least one [[experiment]]", Some(form.experiment.span())));
    }
    Ok(Suite {
        name: form.name,
        title: form.title,
        about: form.about,
        schedule: form.schedule,
        defaults,
        headline: form.headline.map_or_else(Vec::new, headlines),
        designs: form.experiment.into_inner().into_iter().map(read_design).collect::<Result<_, _>>()?,
        claims: form.claim.into_iter().map(ClaimForm::read).collect::<Result<_, _>>()?,
        source: None,
    })
}

/// The names of the main experiments with their positions in the suite's text.
fn headlines(form: Spanned<Headline>) -> Vec<(String, std::ops::Range<usize>)> {
    let at = form.span();
    let names = match form.into_inner() {
        Headline::One(name) => vec![name],
        Headline::Several(names) => names,
    };
    names.into_iter().map(|name| (name, at.clone())).collect()
}

fn read_design(form: DesignForm) -> Result<Design, Refusal> {
    let mut axes = Vec::new();
    for (word, values) in entries(&form.axes) {
        let key = key(word)?;
        let values = values.as_ref().iter().map(|value| setting(key, value)).collect::<Result<_, _>>()?;
        axes.push(DesignAxis { key, values, at: Some(word.span()) });
    }
    if let Some(table) = form.published.get(MAX_PUBLISHED) {
        let sentence = format!("an experiment has at most {MAX_PUBLISHED} tables of published figures");
        return Err(Refusal::new(sentence, Some(table.span())));
    }
    if let Some(other) = form.volume.as_ref().filter(|word| word.as_ref() != AUTO) {
        let sentence =
            format!("volume = \"{AUTO}\" chooses the total of each trial by measuring; no other value is accepted");
        return Err(Refusal::new(sentence, Some(other.span())));
    }
    Ok(Design {
        measures_volume: form.volume.is_some(),
        against: form.against.iter().map(against).collect::<Result<_, _>>()?,
        at: Some(form.name.span()),
        name: form.name.into_inner().0,
        title: form.title,
        about: form.about,
        across: form.across.as_ref().map(key).transpose()?,
        params: settings(&form.params)?,
        axes,
        cases: form.cases.iter().map(settings).collect::<Result<_, _>>()?,
        baseline: settings(&form.baseline)?,
        published: form.published.iter().map(published).collect::<Result<_, _>>()?,
        gains: form.gains.as_ref().map(gains).transpose()?,
    })
}

fn against(form: &Spanned<AgainstForm>) -> Result<AgainstProgram, Refusal> {
    let AgainstForm { name, command, figure } = form.as_ref();
    let refuse = |sentence| Refusal::new(sentence, Some(form.span()));
    let program = AgainstProgram::parse(command, figure.as_deref()).map_err(refuse)?;
    let Some(name) = name else { return Ok(program) };
    let named = name.as_ref().parse::<Language>();
    let name = named.map_err(|error| Refusal::new(error.to_string(), Some(name.span())))?;
    // A program that the suite names itself may be missing, as other programs in a suite may.
    Ok(AgainstProgram { name, optional: true, ..program })
}

fn published(table: &Spanned<PublishedForm>) -> Result<PublishedFigures, Refusal> {
    let form = table.as_ref();
    let by = key(&form.by)?;
    let unknown = form.unit == SuiteUnit::SecondsOfSomething;
    if form.unit == SuiteUnit::Seconds && form.total.is_none() || unknown && form.total.is_some() {
        let sentence = "'total' is the number of bytes moved in the published seconds: required with unit = \"s\", not allowed with unit = \"s, total unknown\"";
        return Err(Refusal::new(sentence, Some(table.span())));
    }
    let unit = units().find(|(_, unit)| *unit == form.unit).map_or("", |(word, _)| word);
    let unit = form.written.as_deref().unwrap_or(if unknown { "s" } else { unit });
    check_line("unit", unit, MAX_VALUE_CHARS).map_err(|sentence| Refusal::new(sentence, Some(table.span())))?;
    // All numbers get the same number of decimals, as in the published table: the most that any of them has.
    let decimals = |figure: &Spanned<FigureForm>| match figure.as_ref() {
        FigureForm::Number(number) => number.to_string().split_once('.').map_or(0, |(_, digits)| digits.len()),
        FigureForm::Text(_) => 0,
    };
    let decimals = form.values.values().map(decimals).max().unwrap_or(0);
    let mut figures = Vec::new();
    let mut seen = HashSet::new();
    for (what, table) in entries(&form.figures) {
        let refuse = |sentence| Refusal::new(sentence, Some(what.span()));
        check_line("figure", what.as_ref(), MAX_VALUE_CHARS).map_err(refuse)?;
        let unknown = |word: &&Spanned<String>| !form.values.keys().any(|known| known.as_ref() == word.as_ref());
        if let Some(word) = table.as_ref().keys().find(unknown) {
            return Err(Refusal::new(
                format!("'{}' is not one of the published values; add it to them, or omit it", word.as_ref()),
                Some(word.span()),
            ));
        }
    }
    for (word, figure) in entries(&form.values) {
        let setting = setting_of(by, word.as_ref(), word)?;
        if !seen.insert(setting.value.clone()) {
            return Err(Refusal::new(format!("{by} {} has two figures", setting.value.exact()), Some(word.span())));
        }
        let number = figure.as_ref().number().unwrap_or(0.0);
        let throughput = form.unit.throughput(number, form.total);
        let positive = number > 0.0 && throughput.is_finite();
        if !positive || throughput <= 0.0 && form.unit != SuiteUnit::Calls {
            return Err(Refusal::new("a published figure must be a number above 0", Some(figure.span())));
        }
        let (mut others, mut texts) = (BTreeMap::new(), BTreeMap::new());
        for (what, table) in &form.figures {
            let Some((_, figure)) = table.as_ref().iter().find(|(value, _)| value.as_ref() == word.as_ref()) else {
                continue;
            };
            let Some(number) = figure.as_ref().number() else {
                let units: Vec<&str> = FIGURE_UNITS.iter().skip(1).map(|(unit, _)| *unit).collect();
                let sentence = format!("not a number, or not with one of the units {}", units.join(", "));
                return Err(Refusal::new(sentence, Some(figure.span())));
            };
            others.insert(what.as_ref().clone(), number);
            texts.extend(figure.as_ref().text().map(|text| (what.as_ref().clone(), text.clone())));
        }
        let as_published = match figure.as_ref() {
            FigureForm::Number(number) => format!("{number:.decimals$} {unit}"),
            FigureForm::Text(text) => format!("{text} {unit}"),
        };
        figures.push(PublishedFigure {
            setting,
            throughput,
            as_published,
            figures: others,
            figures_as_published: texts,
        });
    }
    if figures.is_empty() {
        return Err(Refusal::new("a table of published figures needs values", Some(form.by.span())));
    }
    Ok(PublishedFigures {
        source: format!("{} ({})", form.source, form.hardware),
        when: settings(&form.when)?,
        total: form.total,
        relative: form.unit == SuiteUnit::SecondsOfSomething,
        statistic: form.statistic,
        figures,
    })
}

fn gains(form: &Spanned<GainsForm>) -> Result<GainsDesign, Refusal> {
    let table = form.as_ref();
    let by = key(&table.by)?;
    if table.column.is_empty() || table.column.len() > MAX_PUBLISHED {
        let sentence = format!("a table of gains has 1 to {MAX_PUBLISHED} columns");
        return Err(Refusal::new(sentence, Some(form.span())));
    }
    let column = |form: &GainsColumnForm| {
        let figure = |(word, percent): (&Spanned<String>, &Spanned<f64>)| {
            let setting = setting_of(by, word.as_ref(), word)?;
            match *percent.as_ref() {
                percent if percent.is_finite() && percent > -100.0 => Ok((setting, percent)),
                _ => Err(Refusal::new("a gain must be above -100 per cent", Some(word.span()))),
            }
        };
        Ok(ColumnDesign {
            block: form.block.clone(),
            name: form.name.as_ref().clone(),
            when: form.when.iter().map(settings).collect::<Result<_, _>>()?,
            published: entries(&form.published).into_iter().map(figure).collect::<Result<_, _>>()?,
            at: Some(form.name.span()),
        })
    };
    Ok(GainsDesign {
        by,
        corner: table.corner.clone(),
        source: format!("{} ({})", table.source, table.hardware),
        columns: table.column.iter().map(column).collect::<Result<_, Refusal>>()?,
    })
}

fn parse_about<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let length = text.trim().chars().count();
    if length > MAX_ABOUT_CHARS {
        let sentence = format_args!("'about' has {length} characters; the limit is {MAX_ABOUT_CHARS}");
        return Err(D::Error::custom(sentence));
    }
    if text.trim().chars().any(|c| c.is_control() && c != '\n') {
        return Err(D::Error::custom("'about' contains a control character other than a newline; remove it"));
    }
    Ok(text.trim().to_owned())
}

fn unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SuiteUnit, D::Error> {
    let word = String::deserialize(deserializer)?;
    let unit = units().find(|(name, _)| *name == word).map(|(_, unit)| unit);
    unit.ok_or_else(|| D::Error::custom(unknown_word(&word, &units().map(|(name, _)| name).collect::<Vec<_>>())))
}

fn schedule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ScheduleChoices, D::Error> {
    let choices = ScheduleChoices::deserialize(deserializer)?;
    let adapts = ScheduleChoices { runs: None, run_limit: None, seed: None, interval: None, ..choices }
        != ScheduleChoices::default();
    if choices.runs.is_some() && adapts {
        return Err(D::Error::custom(
            "runs fixes the number of runs, so min-runs, max-runs, precision and budget have no effect; \
             omit runs or these",
        ));
    }
    Ok(choices)
}

/// Rewords an error message of the TOML library in the style of our other errors, and suggests a known word for a
/// misspelled one.
fn reword(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    if unknown && let Some(word) = quoted.next() {
        return unknown_word(word, &quoted.collect::<Vec<_>>());
    }
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("'{key}' is missing here");
    }
    message.replace("expected a sequence", "expected a list").replace("expected a map", "expected a table")
}

fn unknown_word(word: &str, known: &[&str]) -> String {
    let hint = did_you_mean(word, known.iter().copied());
    format!("'{word}' is unknown here; use {}{hint}", known.join(", "))
}
