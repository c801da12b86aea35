//! The form of a suite in TOML, and its reading with the place of each word, so that errors can point at it.
//!
//! docs/suites.md describes the form for those who write suites.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use toml::Spanned;

use super::design::{Axis, Design, PublishedFigure, PublishedFigures, Setting};
use super::gains::{ColumnDesign, GainsDesign};
use super::refusal::Refusal;
use super::schedule::{ScheduleChoices, parse_duration};
use super::suite::Suite;
use crate::model::{Claim, ClaimTest, Key, Scope, Value, nearest};

const MAX_NAME_CHARS: usize = 40;
const MAX_TITLE_CHARS: usize = 120;
const MAX_ABOUT_CHARS: usize = 4000;
const MAX_VALUE_CHARS: usize = 40;
/// Looking figures up is the product of these and the trials.
const MAX_PUBLISHED: usize = 24;
const MAX_CLAIM_CHARS: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SuiteForm {
    name: Spanned<String>,
    title: Spanned<String>,
    about: Option<Spanned<String>>,
    schedule: Option<ScheduleForm>,
    #[serde(default)]
    defaults: Table<Scalar>,
    experiment: Spanned<Vec<DesignForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ScheduleForm {
    runs: Option<Spanned<u32>>,
    min_runs: Option<Spanned<u32>>,
    max_runs: Option<Spanned<u32>>,
    precision: Option<Spanned<f64>>,
    budget: Option<Spanned<String>>,
    run_limit: Option<Spanned<String>>,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DesignForm {
    name: Spanned<String>,
    title: Spanned<String>,
    about: Option<Spanned<String>>,
    across: Option<Spanned<String>>,
    #[serde(default)]
    params: Table<Scalar>,
    #[serde(default)]
    axes: Table<Vec<Spanned<Scalar>>>,
    #[serde(default)]
    cases: Vec<Table<Scalar>>,
    #[serde(default)]
    baseline: Table<Scalar>,
    #[serde(default)]
    published: Vec<Spanned<PublishedForm>>,
    gains: Option<Spanned<GainsForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GainsForm {
    by: Spanned<String>,
    corner: Spanned<String>,
    source: Spanned<String>,
    hardware: Spanned<String>,
    column: Vec<GainsColumnForm>,
    #[serde(default)]
    claim: Vec<ClaimForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GainsColumnForm {
    block: Spanned<String>,
    name: Spanned<String>,
    when: Vec<Table<Scalar>>,
    #[serde(default)]
    published: Table<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClaimForm {
    says: Spanned<String>,
    column: Spanned<String>,
    #[serde(default)]
    rows: Vec<Spanned<Scalar>>,
    #[serde(default)]
    blocks: Vec<Spanned<String>>,
    #[serde(default)]
    scope: Scope,
    #[serde(default)]
    test: ClaimTest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PublishedForm {
    source: Spanned<String>,
    hardware: Spanned<String>,
    unit: Spanned<Unit>,
    /// Bytes that took the time, where the figures are seconds.
    total: Option<Spanned<u64>>,
    by: Spanned<String>,
    values: Table<f64>,
    #[serde(default)]
    when: Table<Scalar>,
}

/// The units that documents give throughput in.
#[derive(Clone, Copy, Deserialize)]
enum Unit {
    #[serde(rename = "B/s")]
    Bytes,
    #[serde(rename = "kB/s")]
    Kilobytes,
    #[serde(rename = "KiB/s")]
    Kibibytes,
    #[serde(rename = "MB/s")]
    Megabytes,
    #[serde(rename = "MiB/s")]
    Mebibytes,
    #[serde(rename = "GB/s")]
    Gigabytes,
    #[serde(rename = "GiB/s")]
    Gibibytes,
    #[serde(rename = "s")]
    Seconds,
    /// Seconds for a number of bytes that the document does not give.
    #[serde(rename = "s, total unknown")]
    SecondsOfSomething,
}

impl Unit {
    /// Bytes per second; a time is for `total` bytes.
    fn throughput(self, figure: f64, total: Option<u64>) -> f64 {
        let bytes = match self {
            Unit::Seconds => return total.unwrap_or(0) as f64 / figure,
            Unit::SecondsOfSomething => return (1u64 << 30) as f64 / figure,
            Unit::Bytes => 1.0,
            Unit::Kilobytes => 1e3,
            Unit::Kibibytes => 1024.0,
            Unit::Megabytes => 1e6,
            Unit::Mebibytes => 1024.0 * 1024.0,
            Unit::Gigabytes => 1e9,
            Unit::Gibibytes => 1024.0 * 1024.0 * 1024.0,
        };
        figure * bytes
    }
}

/// A value of a parameter: a string, or a number where that is all there is to it.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;
        impl Visitor<'_> for ScalarVisitor {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a string")
            }

            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }

            fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar(value.to_owned()))
            }
        }
        deserializer.deserialize_any(ScalarVisitor)
    }
}

/// A table in the order of the file, with the places of keys and values.
struct Table<T>(Vec<(Spanned<String>, Spanned<T>)>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TableVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
            type Value = Table<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table such as { block = \"64k\" }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry::<Spanned<String>, Spanned<T>>()? {
                    entries.push(entry);
                }
                // The parser hands them out by name; the order of axes is that of the file.
                entries.sort_by_key(|(key, _)| key.span().start);
                Ok(Table(entries))
            }
        }
        deserializer.deserialize_map(TableVisitor(PhantomData))
    }
}

pub(super) fn read(text: &str) -> Result<Suite, Refusal> {
    let form: SuiteForm =
        toml::from_str(text).map_err(|error| Refusal::new(in_our_words(error.message()), error.span()))?;
    let mut suite = Suite::new(name(&form.name)?, title(&form.title)?, about(form.about.as_ref())?);
    suite.schedule = form.schedule.map_or(Ok(ScheduleChoices::default()), schedule)?;
    suite.defaults = settings(&form.defaults)?;
    if form.experiment.as_ref().is_empty() {
        return Err(Refusal::new("a suite needs at least one [[experiment]]", Some(form.experiment.span())));
    }
    for design in form.experiment.as_ref() {
        suite.designs.push(read_design(design)?);
    }
    Ok(suite)
}

fn read_design(form: &DesignForm) -> Result<Design, Refusal> {
    let mut axes = Vec::new();
    for (word, values) in &form.axes.0 {
        let key = key(word)?;
        let values = values.as_ref().iter().map(|value| setting(key, value)).collect::<Result<_, _>>()?;
        axes.push(Axis { key, values, at: Some(word.span()) });
    }
    if let Some(table) = form.published.get(MAX_PUBLISHED) {
        let sentence = format!("an experiment takes at most {MAX_PUBLISHED} tables of published figures");
        return Err(Refusal::new(sentence, Some(table.span())));
    }
    Ok(Design {
        name: name(&form.name)?,
        title: title(&form.title)?,
        about: about(form.about.as_ref())?,
        across: form.across.as_ref().map(key).transpose()?,
        params: settings(&form.params)?,
        axes,
        cases: form.cases.iter().map(settings).collect::<Result<_, _>>()?,
        baseline: settings(&form.baseline)?,
        published: form.published.iter().map(|table| published(table.as_ref())).collect::<Result<_, _>>()?,
        gains: form.gains.as_ref().map(gains).transpose()?,
        at: Some(form.name.span()),
    })
}

fn published(form: &PublishedForm) -> Result<PublishedFigures, Refusal> {
    let by = key(&form.by)?;
    let unit = *form.unit.as_ref();
    let total = form.total.as_ref().map(|total| *total.as_ref());
    if matches!(unit, Unit::Seconds) != total.is_some() {
        let sentence =
            "total says how many bytes took a time in seconds: unit = \"s\" needs it, and no other unit takes it";
        return Err(Refusal::new(sentence, Some(form.unit.span())));
    }
    let mut figures = Vec::new();
    let mut seen = HashSet::new();
    for (word, figure) in &form.values.0 {
        let setting = setting_of(by, word.as_ref(), word)?;
        if !seen.insert(setting.value.clone()) {
            return Err(Refusal::new(format!("{by} {} has two figures", setting.value.exact()), Some(word.span())));
        }
        let throughput = unit.throughput(*figure.as_ref(), total);
        if !(throughput.is_finite() && throughput > 0.0) {
            return Err(Refusal::new("a published figure has to be a number above 0", Some(figure.span())));
        }
        figures.push(PublishedFigure { setting, throughput });
    }
    if figures.is_empty() {
        return Err(Refusal::new("a table of published figures needs values", Some(form.by.span())));
    }
    Ok(PublishedFigures {
        source: format!("{} ({})", title(&form.source)?, title(&form.hardware)?),
        when: settings(&form.when)?,
        relative: matches!(unit, Unit::SecondsOfSomething),
        figures,
    })
}

fn gains(form: &Spanned<GainsForm>) -> Result<GainsDesign, Refusal> {
    let table = form.as_ref();
    let by = key(&table.by)?;
    if table.column.is_empty() || table.column.len() > MAX_PUBLISHED || table.claim.len() > MAX_PUBLISHED {
        let sentence = format!("a table of gains takes 1 to {MAX_PUBLISHED} columns and at most as many claims");
        return Err(Refusal::new(sentence, Some(form.span())));
    }
    let column = |form: &GainsColumnForm| {
        let figure = |(word, percent): &(Spanned<String>, Spanned<f64>)| {
            let setting = setting_of(by, word.as_ref(), word)?;
            match *percent.as_ref() {
                percent if percent.is_finite() && percent > -100.0 => Ok((setting, percent)),
                _ => Err(Refusal::new("a gain has to be a number above -100 per cent", Some(word.span()))),
            }
        };
        Ok(ColumnDesign {
            block: title(&form.block)?,
            name: title(&form.name)?,
            when: form.when.iter().map(settings).collect::<Result<_, _>>()?,
            published: form.published.0.iter().map(figure).collect::<Result<_, _>>()?,
            at: Some(form.name.span()),
        })
    };
    let claim = |form: &ClaimForm| {
        // A row is shown as its parameter is, however it was written.
        let row = |row: &Spanned<Scalar>| Ok(setting(by, row)?.value.to_string());
        Ok(Claim {
            says: line("claim", &form.says, MAX_CLAIM_CHARS)?,
            column: title(&form.column)?,
            rows: form.rows.iter().map(row).collect::<Result<_, Refusal>>()?,
            blocks: form.blocks.iter().map(title).collect::<Result<_, _>>()?,
            scope: form.scope,
            test: form.test,
        })
    };
    Ok(GainsDesign {
        by,
        corner: title(&table.corner)?,
        source: format!("{} ({})", title(&table.source)?, title(&table.hardware)?),
        columns: table.column.iter().map(column).collect::<Result<_, Refusal>>()?,
        claims: table.claim.iter().map(claim).collect::<Result<_, Refusal>>()?,
    })
}

fn schedule(form: ScheduleForm) -> Result<ScheduleChoices, Refusal> {
    if let Some(runs) = &form.runs {
        let adapts = form.min_runs.is_some() || form.max_runs.is_some();
        if adapts || form.precision.is_some() || form.budget.is_some() {
            let sentence = "runs fixes the number of runs, so min-runs, max-runs, precision and budget have no place \
                            beside it; leave out one or the other";
            return Err(Refusal::new(sentence, Some(runs.span())));
        }
    }
    let count = |runs: Option<Spanned<u32>>| match runs {
        Some(runs) if !(1..=10_000).contains(runs.as_ref()) => {
            Err(Refusal::new(format!("{} runs are out of range; use 1 to 10000", runs.as_ref()), Some(runs.span())))
        }
        runs => Ok(runs.map(Spanned::into_inner)),
    };
    let precision = match form.precision {
        Some(precision) if !(0.001..=0.5).contains(precision.as_ref()) => {
            let sentence = format!("the precision {} is out of range; use 0.001 to 0.5", precision.as_ref());
            return Err(Refusal::new(sentence, Some(precision.span())));
        }
        precision => precision.map(Spanned::into_inner),
    };
    let duration = |text: Option<Spanned<String>>| match text {
        Some(text) => {
            let clipped = line("time", &text, MAX_VALUE_CHARS)?;
            parse_duration(&clipped).map(Some).map_err(|sentence| Refusal::new(sentence, Some(text.span())))
        }
        None => Ok(None),
    };
    Ok(ScheduleChoices {
        runs: count(form.runs)?,
        min_runs: count(form.min_runs)?,
        max_runs: count(form.max_runs)?,
        precision,
        budget: duration(form.budget)?,
        run_limit: duration(form.run_limit)?,
        seed: form.seed,
    })
}

fn settings(table: &Table<Scalar>) -> Result<Vec<Setting>, Refusal> {
    let mut settings: Vec<Setting> = Vec::new();
    for (word, value) in &table.0 {
        let key = key(word)?;
        let excluded = match key {
            Key::Time => Some(Key::Total),
            Key::Total => Some(Key::Time),
            _ => None,
        };
        if settings.iter().any(|setting| Some(setting.key()) == excluded) {
            return Err(Refusal::new("total and time exclude each other; leave one out", Some(word.span())));
        }
        settings.push(setting(key, value)?);
    }
    Ok(settings)
}

fn key(word: &Spanned<String>) -> Result<Key, Refusal> {
    let text = line("parameter", word, MAX_VALUE_CHARS)?;
    Key::named(&text).map_err(|error| Refusal::value(&error, word.span()))
}

fn setting(key: Key, value: &Spanned<Scalar>) -> Result<Setting, Refusal> {
    setting_of(key, &value.as_ref().0, value)
}

fn setting_of<T>(key: Key, text: &str, place: &Spanned<T>) -> Result<Setting, Refusal> {
    let refuse = |sentence: String| Refusal::new(sentence, Some(place.span()));
    bounded_line(&format!("value of {key}"), text, MAX_VALUE_CHARS).map_err(refuse)?;
    let value = Value::parse(key, text).map_err(|error| Refusal::value(&error, place.span()))?;
    Ok(Setting { value, at: Some(place.span()) })
}

/// A name is typed on command lines and stands in file names.
fn name(text: &Spanned<String>) -> Result<String, Refusal> {
    let name = line("name", text, MAX_NAME_CHARS)?;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.chars().all(good) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        let sentence =
            format!("'{name}' is not a name; use lower-case letters, digits and hyphens, such as block-size");
        return Err(Refusal::new(sentence, Some(text.span())));
    }
    Ok(name)
}

fn title(text: &Spanned<String>) -> Result<String, Refusal> {
    line("title", text, MAX_TITLE_CHARS)
}

fn about(text: Option<&Spanned<String>>) -> Result<String, Refusal> {
    let Some(text) = text else { return Ok(String::new()) };
    let about = text.as_ref().trim();
    let wrong = if about.chars().count() > MAX_ABOUT_CHARS {
        format!("'about' has {} characters; the limit is {MAX_ABOUT_CHARS}", about.chars().count())
    } else if about.chars().any(|c| c.is_control() && c != '\n') {
        "'about' holds a control character other than a newline; take it out".to_owned()
    } else {
        return Ok(about.to_owned());
    };
    Err(Refusal::new(wrong, Some(text.span())))
}

/// A text of one line, not empty.
fn line(what: &str, text: &Spanned<String>, limit: usize) -> Result<String, Refusal> {
    bounded_line(what, text.as_ref(), limit).map_err(|sentence| Refusal::new(sentence, Some(text.span())))?;
    Ok(text.as_ref().clone())
}

fn bounded_line(what: &str, text: &str, limit: usize) -> Result<(), String> {
    let length = text.chars().count();
    if length > limit {
        return Err(format!("this {what} has {length} characters; the limit is {limit}"));
    }
    if text.trim().is_empty() {
        return Err(format!("this {what} is empty"));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("this {what} holds a newline or another control character; take it out"));
    }
    Ok(())
}

/// What the TOML library says, as our other errors say it, with the word that was probably meant.
fn in_our_words(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    if unknown && let Some(word) = quoted.next() {
        let known: Vec<&str> = quoted.collect();
        let hint =
            nearest(word, known.iter().copied()).map_or(String::new(), |near| format!(" (did you mean {near}?)"));
        return format!("'{word}' has no meaning here; use {}{hint}", known.join(", "));
    }
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("'{key}' is missing here");
    }
    message.to_owned()
}
