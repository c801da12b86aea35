//! Reading a parameter's value from text, and saying what is wrong with it.

use std::fmt;
use std::str::FromStr;

use strum::IntoEnumIterator;

use super::bad_value::BadValue;
use super::capacity::Capacity;
use super::entrant::Language;
use super::filter::Filter;
use super::parameter::{Buffer, Rate};
use super::place::Place;
use super::stage::Stages;
use super::units::{ByteSize, Delay, Nanos};

/// Serialises a type as the text it is shown as and reads it back through `FromStr`.
macro_rules! serde_as_text {
    ($type:ty, $description:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        #[cfg(test)]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "description": $description})
            }
        }
    };
}
pub(super) use serde_as_text;

/// Reads one of an enum's words; the error lists them all.
pub(super) fn word<T: FromStr + IntoEnumIterator + Into<&'static str>>(what: &str, text: &str) -> Result<T, BadValue> {
    text.parse().map_err(|_| {
        let all: Vec<&str> = T::iter().map(Into::into).collect();
        let hint = nearest(text, all.iter().copied()).map_or(String::new(), |word| format!(" (did you mean {word}?)"));
        BadValue::new(format!("'{text}' is not a {what}; use {}{hint}", all.join(", ")))
    })
}

/// The word that was probably meant, if one is close enough: one slip in three letters.
pub fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Distance is quadratic in the lengths, and no word of ours is this long.
    if text.len() > 64 {
        return None;
    }
    let allowed = (text.chars().count() / 3).max(1);
    let distance = |word| strsim::damerau_levenshtein(text, word);
    words.into_iter().filter(|word| distance(word) <= allowed).min_by_key(|word| distance(word))
}

/// Reads a value between two others, both allowed.
pub(super) fn bounded<T: Quantity>(what: &str, text: &str, low: T, high: T) -> Result<T, BadValue> {
    let value = T::read(text, &low, &high).map_err(|sentence| BadValue::new(format!("{what}: {sentence}")))?;
    if value < low || value > high {
        return Err(BadValue::new(format!("{what} {value} is out of range; use {low} to {high}")));
    }
    Ok(value)
}

/// Something that has an order and is read from text.
pub(super) trait Quantity: Sized + PartialOrd + fmt::Display {
    /// # Errors
    /// A sentence that says what it should have been.
    fn read(text: &str, low: &Self, high: &Self) -> Result<Self, String>;
}

macro_rules! counts {
    ($($type:ty)*) => {$(
        impl Quantity for $type {
            fn read(text: &str, low: &Self, high: &Self) -> Result<Self, String> {
                text.parse().map_err(|_| format!("'{text}' is not a whole number from {low} to {high}"))
            }
        }
    )*};
}
counts!(u8 u32);

macro_rules! quantities {
    ($($type:ty)*) => {$(
        impl Quantity for $type {
            fn read(text: &str, _: &Self, _: &Self) -> Result<Self, String> {
                text.parse().map_err(|error: BadValue| error.to_string())
            }
        }
    )*};
}
quantities!(ByteSize Delay Nanos);

/// A word that a parameter takes, and what it means.
pub type Word = (&'static str, &'static str);

/// The words that a type of value takes.
pub(super) trait Words {
    /// All of them; none where there is no end of them.
    fn words() -> Vec<Word> {
        Vec::new()
    }
}

macro_rules! words {
    ($($type:ty: $all:expr;)*) => {$(
        impl Words for $type {
            fn words() -> Vec<Word> {
                $all
            }
        }
    )*};
}

/// An enum whose values are words: the same in flags, suites, tables and JSON. What is documented of each is what help and
/// `pipemark list` say of it.
macro_rules! word_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($variants:tt)* }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
            strum::Display, strum::EnumIter, strum::EnumMessage, strum::EnumString, strum::IntoStaticStr,
        )]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        pub enum $name {
            $($variants)*
        }

        impl $crate::model::value::Words for $name {
            fn words() -> Vec<$crate::model::value::Word> {
                use strum::{EnumMessage, IntoEnumIterator};
                let about = |value: $name| value.get_documentation().unwrap_or_default().trim_end_matches('.');
                $name::iter().map(|value| (value.into(), about(value))).collect()
            }
        }
    };
}
pub(super) use word_enum;

words! {
    Place: vec![
        ("free", "wherever the scheduler puts the ends"),
        ("same", "both ends on one CPU, the first allowed"),
        ("cross", "on two cores, of one package if there are two"),
    ];
    Capacity: vec![("default", "what the system gives"), ("quota", "what a user over the system's limit gets")];
    Buffer: vec![("default", "what the system gives")];
    Rate: vec![("closed", "the next message when the last is back")];
    Language: Vec::new();
    Filter: Vec::new();
    Stages: Vec::new();
    ByteSize: Vec::new();
    Nanos: Vec::new();
    Delay: Vec::new();
    u32: Vec::new();
    u8: Vec::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SendMethod;

    #[test]
    fn a_slip_is_recognised() {
        let words = || SendMethod::iter().map(Into::into);
        assert_eq!(nearest("wriite", words()), Some("write"));
        assert_eq!(nearest("vmsplise", words()), Some("vmsplice"));
        assert_eq!(nearest("carrier-pigeon", words()), None);
        assert_eq!(nearest("", words()), None);
    }
}
