//! Values of flags that several verbs take.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word, what it stands for, and what help says of it.
pub type WordChoice<T> = (&'static str, T, &'static str);

/// Reads one of these words.
pub fn one_of<T: Copy + Send + Sync + 'static>(all: &'static [WordChoice<T>]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|&(word, _, help)| PossibleValue::new(word).help(help)))
        .map(|word| all.iter().find(|(known, ..)| *known == word).expect("one of these").1)
}

/// Reads a whole number within bounds, with an error in words.
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
