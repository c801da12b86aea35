//! Parsers for flag values that several verbs share.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A choice: its name on the command line, its value, and its help text.
pub type WordChoice<T> = (&'static str, T, &'static str);

/// A parser that accepts the names of these choices.
pub fn one_of<T: Copy + Send + Sync + 'static>(all: &'static [WordChoice<T>]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|&(word, _, help)| PossibleValue::new(word).help(help)))
        .map(|word| all.iter().find(|(known, ..)| *known == word).expect("one of these").1)
}

/// A parser for a whole number from `low` to `high`.
pub fn count<N>(low: u64, high: u64) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: TryFrom<u64>,
{
    move |text| {
        let number = text.parse().ok().filter(|number| (low..=high).contains(number));
        let refused = || format!("'{text}' is not a whole number from {low} to {high}");
        number.and_then(|number| N::try_from(number).ok()).ok_or_else(refused)
    }
}
