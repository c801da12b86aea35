//! Parses parameter values, with specific error messages.

use std::fmt;
use std::str::FromStr;

use crate::bad_value::BadValue;

/// Serialises a type with `Display` and deserialises it with `FromStr`.
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
        #[cfg(feature = "schema")]
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

/// Parses one of an enum's choices. The error lists all choices.
pub(super) fn word<T: FromStr + Choices>(what: &str, text: &str) -> Result<T, BadValue> {
    text.parse().map_err(|_| {
        let all: Vec<&str> = T::choices().into_iter().map(|(word, _)| word).collect();
        let hint = did_you_mean(text, all.iter().copied());
        BadValue::new(format!("'{text}' is not a {what}; use {}{hint}", all.join(", ")))
    })
}

/// The word closest to `text`; `None` if every word differs from `text` by more than one typo per three letters.
pub fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The computation takes quadratic time, and no word has more than 64 letters.
    if text.len() > 64 {
        return None;
    }
    let allowed = (text.chars().count() / 3).max(1);
    let distance = |word| strsim::damerau_levenshtein(text, word);
    words.into_iter().filter(|word| distance(word) <= allowed).min_by_key(|word| distance(word))
}

/// The hint ` (did you mean WORD?)`, or an empty string if no word is close.
pub fn did_you_mean<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    nearest(text, words).map_or_else(String::new, |word| format!(" (did you mean {word}?)"))
}

/// Parses a quantity from `low` to `high`, inclusive.
pub fn bounded<T>(what: &str, text: &str, low: T, high: T) -> Result<T, BadValue>
where
    T: FromStr<Err = BadValue> + PartialOrd + fmt::Display,
{
    within(what, text.parse().map_err(|error| BadValue::new(format!("{what}: {error}")))?, low, high)
}

/// Parses a whole number from `low` to `high`, inclusive.
pub(super) fn whole<T: FromStr + PartialOrd + fmt::Display>(
    what: &str,
    text: &str,
    low: T,
    high: T,
) -> Result<T, BadValue> {
    let sentence = format!("{what}: '{text}' is not a whole number from {low} to {high}");
    within(what, text.parse().map_err(|_| BadValue::new(sentence))?, low, high)
}

fn within<T: PartialOrd + fmt::Display>(what: &str, value: T, low: T, high: T) -> Result<T, BadValue> {
    match (&low..=&high).contains(&&value) {
        true => Ok(value),
        false => Err(BadValue::new(format!("{what} {value} is out of range; use {low} to {high}"))),
    }
}

/// A choice of a parameter: its name and its meaning.
pub type Choice = (&'static str, &'static str);

/// Types of parameter values that may have choices.
pub(super) trait Choices {
    /// All choices; empty if the type has none.
    fn choices() -> Vec<Choice> {
        Vec::new()
    }
}

/// Converts `VmspliceGift` to `vmsplice-gift`. Returns a buffer and the number of bytes used.
#[doc(hidden)]
pub const fn kebab_case(ident: &[u8]) -> ([u8; 32], usize) {
    let (mut name, mut at, mut to) = ([b'-'; 32], 0, 0);
    while at < ident.len() {
        to += (at > 0 && ident[at].is_ascii_uppercase()) as usize;
        name[to] = ident[at].to_ascii_lowercase();
        (at, to) = (at + 1, to + 1);
    }
    (name, to)
}

/// Implements `iter`, `name`, `Display` and `FromStr` for an enum. The names are those of `#[serde(rename_all =
/// "kebab-case")]`.
#[macro_export]
macro_rules! named {
    ($type:ident: $($variant:ident)*) => {
        impl $type {
            /// All variants, in order.
            pub fn iter() -> impl DoubleEndedIterator<Item = $type> + ExactSizeIterator + Clone {
                [$($type::$variant),*].into_iter()
            }

            /// The variant's name.
            pub fn name(self) -> &'static str {
                match self {
                    $($type::$variant => {
                        const NAME: ([u8; 32], usize) = $crate::kebab_case(stringify!($variant).as_bytes());
                        const WORD: Result<&str, std::str::Utf8Error> = str::from_utf8(NAME.0.split_at(NAME.1).0);
                        WORD.expect("names of variants are ASCII")
                    })*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::iter().find(|known| known.name() == text).ok_or(())
            }
        }
    };
}

/// Defines an enum whose variants have the same names in flags, suites, tables and JSON. A variant's doc comment is its
/// description in help and in `pipemark list`.
macro_rules! word_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $about:literal])+ $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[doc = $about])+ $variant,)*
        }

        $crate::named!($name: $($variant)*);

        impl Default for $name {
            /// The first variant.
            fn default() -> Self {
                [$($name::$variant),*][0]
            }
        }

        impl $crate::value::Choices for $name {
            fn choices() -> Vec<$crate::value::Choice> {
                let about = [$(concat!($($about),+)),*].map(|about| about.trim().trim_end_matches('.'));
                $name::iter().map($name::name).zip(about).collect()
            }
        }
    };
}
pub(super) use word_enum;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SendMethod;

    #[test]
    fn a_misspelt_word_gets_a_suggestion() {
        let words = || SendMethod::iter().map(SendMethod::name);
        assert_eq!(nearest("wriite", words()), Some("write"));
        assert_eq!(nearest("vmsplise", words()), Some("vmsplice"));
        assert_eq!(nearest("carrier-pigeon", words()), None);
        assert_eq!(nearest("", words()), None);
    }
}
