//! Words and values as the author of a suite wrote them, each with its position in the text, so that errors can point at
//! it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use toml::Spanned;

use crate::parameter::{Key, Value};

const MAX_NAME_CHARS: usize = 40;
const MAX_TITLE_CHARS: usize = 120;
/// The largest number of characters of a value.
pub const MAX_VALUE_CHARS: usize = 40;

/// A table with the positions of keys and values.
pub type SuiteTable<T> = BTreeMap<Spanned<String>, Spanned<T>>;

/// The reason for an error, and its position in the suite's text in bytes. `None` if the error is about flags or the
/// whole suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub sentence: String,
    pub at: Option<Range<usize>>,
}

impl Refusal {
    pub fn new(sentence: impl Into<String>, at: Option<Range<usize>>) -> Self {
        Refusal { sentence: sentence.into(), at }
    }
}

/// A parameter's value with its position in the suite's text, for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignSetting {
    pub value: Value,
    pub at: Option<Range<usize>>,
}

impl DesignSetting {
    pub fn key(&self) -> Key {
        self.value.key()
    }
}

impl From<Value> for DesignSetting {
    fn from(value: Value) -> DesignSetting {
        DesignSetting { value, at: None }
    }
}

/// A value of a parameter.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a value must be a number or a string")]
pub enum Scalar {
    Integer(i64),
    Float(f64),
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Integer(number) => number.fmt(f),
            Scalar::Float(number) => number.fmt(f),
            Scalar::Text(text) => text.fmt(f),
        }
    }
}

/// The entries of a table in the order of the file.
pub fn entries<T>(table: &SuiteTable<T>) -> Vec<(&Spanned<String>, &Spanned<T>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_cached_key(|(key, _)| key.span().start);
    entries
}

#[derive(Deserialize)]
pub struct CheckedName(#[serde(deserialize_with = "name")] pub String);

pub fn settings(table: &SuiteTable<Scalar>) -> Result<Vec<DesignSetting>, Refusal> {
    let mut settings: Vec<DesignSetting> = Vec::new();
    for (word, value) in entries(table) {
        let key = key(word)?;
        if key.is_volume() && settings.iter().any(|setting| setting.key().is_volume()) {
            return Err(Refusal::new("use only one of total, blocks and time", Some(word.span())));
        }
        settings.push(setting(key, value)?);
    }
    Ok(settings)
}

pub fn key(word: &Spanned<String>) -> Result<Key, Refusal> {
    let refuse = |sentence: String| Refusal::new(sentence, Some(word.span()));
    check_line("parameter", word.as_ref(), MAX_VALUE_CHARS).map_err(refuse)?;
    Key::named(word.as_ref()).map_err(|error| refuse(error.to_string()))
}

pub fn setting(key: Key, value: &Spanned<Scalar>) -> Result<DesignSetting, Refusal> {
    setting_of(key, &value.as_ref().to_string(), value)
}

pub fn setting_of<T>(key: Key, text: &str, place: &Spanned<T>) -> Result<DesignSetting, Refusal> {
    let refuse = |sentence: String| Refusal::new(sentence, Some(place.span()));
    check_line(&format!("value of {key}"), text, MAX_VALUE_CHARS).map_err(refuse)?;
    let value = Value::parse(key, text).map_err(|error| refuse(error.to_string()))?;
    Ok(DesignSetting { value, at: Some(place.span()) })
}

/// Checks that `text` is a single line, not empty, and at most `limit` characters long.
pub fn check_line(what: &str, text: &str, limit: usize) -> Result<(), String> {
    let length = text.chars().count();
    if length > limit {
        return Err(format!("this {what} has {length} characters; the limit is {limit}"));
    }
    if text.trim().is_empty() {
        return Err(format!("this {what} is empty"));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("this {what} contains a newline or another control character; remove it"));
    }
    Ok(())
}

pub fn line<'de, D: Deserializer<'de>>(deserializer: D, what: &str, limit: usize) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    check_line(what, &text, limit).map_err(D::Error::custom)?;
    Ok(text)
}

pub fn title<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    line(deserializer, "title", MAX_TITLE_CHARS)
}

/// Parses a name. Names are typed on command lines and used in file names.
pub fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = line(deserializer, "name", MAX_NAME_CHARS)?;
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.chars().all(good) && name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Ok(name);
    }
    let rule = "use lower-case letters, digits and hyphens, as in block-size";
    Err(D::Error::custom(format_args!("'{name}' is not a name; {rule}")))
}
