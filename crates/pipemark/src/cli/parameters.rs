//! Flags made from the table of parameters: the same names, help and values for all verbs that accept them.

use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use pipemark_model::{Key, Value};
use pipemark_run::plan::{Design, DesignAxis};

use crate::cli::cpu_pairs::{self, MAX_PAIRS};

/// The parameters of a verb.
pub trait KeySet: Clone + Send + Sync + 'static {
    /// The heading of the common flags in help.
    const HEADING: &'static str;
    /// The most common flags, in this order. `-h` shows no other flags.
    const COMMON: &'static [Key];
    /// All parameters. The first axis changes slowest, so the parameters whose values people compare directly are last.
    const KEYS: &'static [Key];
    /// Defaults shown in help that differ from those in the table of parameters.
    const DEFAULTS: &'static [(Key, &'static str)];
    /// Parameters that help doesn't show.
    const HIDDEN: &'static [Key] = &[];
}

/// The heading of the less common flags.
const RARE: &str = "More to measure (comma-separated lists)";

/// The values given for each parameter.
#[derive(Debug, Clone)]
pub struct ParameterFlags<K> {
    given: Vec<(Key, Vec<Value>)>,
    /// Whether the places are all pairs of CPUs.
    pub has_all_pairs: bool,
    keys: PhantomData<K>,
}

impl<K: KeySet> ParameterFlags<K> {
    /// The values given for a parameter.
    pub fn values(&self, key: Key) -> &[Value] {
        self.given.iter().find(|(other, _)| *other == key).map_or(&[], |(_, values)| values)
    }

    /// Fixes each parameter with one value, and makes an axis of each parameter with several values. Parameters that
    /// aren't given have the values in `defaults`.
    pub fn design(&self, name: &str, title: &str, defaults: &[(Key, &str)]) -> Design {
        let mut design = Design::new(name, title);
        let fixed = defaults.iter().map(|(key, _)| *key).filter(|key| !K::KEYS.contains(key));
        for key in fixed.chain(K::KEYS.iter().copied()) {
            let text = defaults.iter().find(|(other, _)| *other == key).map_or("", |(_, text)| text);
            let texts = text.split(',').filter(|text| !text.is_empty() && self.values(key).is_empty());
            let defaults = texts.map(|text| Value::parse(key, text).expect("a default is a value"));
            let values: Vec<Value> = defaults.chain(self.values(key).iter().cloned()).collect();
            match &values[..] {
                [] => {}
                [one] => design.params.push(one.clone().into()),
                _ => design.axes.push(DesignAxis::new(key, values)),
            }
        }
        design
    }
}

impl<K: KeySet> Args for ParameterFlags<K> {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading(K::HEADING);
        let default = |key| K::DEFAULTS.iter().find(|(own, _)| *own == key).map_or("", |(_, default)| default);
        // Help shows groups in the order of their first flags, so the common flags come first.
        let (common, rare): (Vec<Key>, Vec<Key>) = K::KEYS.iter().copied().partition(|key| K::COMMON.contains(key));
        let flags = common.into_iter().chain(rare).map(|key| {
            let flag = flag(key, default(key)).hide(K::HIDDEN.contains(&key));
            match K::COMMON.iter().position(|&common| common == key) {
                Some(place) => flag.display_order(place),
                None => flag.help_heading(RARE).hide_short_help(true),
            }
        });
        flags.fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<K: KeySet> FromArgMatches for ParameterFlags<K> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |key: Key| {
            matches.get_many::<Vec<Value>>(key.name()).map(|values| (key, values.flatten().cloned().collect()))
        };
        let places = K::KEYS.contains(&Key::Place).then(|| matches.get_raw(Key::Place.name())).flatten();
        Ok(ParameterFlags {
            given: K::KEYS.iter().filter_map(|key| given(*key)).collect(),
            has_all_pairs: places.is_some_and(|mut places| places.any(|place| place == ALL_PAIRS)),
            keys: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(key: Key, default: &str) -> Arg {
    let name = key.name();
    let [first, details @ ..] = key.help() else { unreachable!("each parameter has help") };
    let own = key.default_value().map(|value| value.to_string());
    let first = match (default, own) {
        ("", Some(own)) => format!("{} [default: {own}]", first.trim()),
        ("", None) => first.trim().to_owned(),
        (default, _) => format!("{} [default: {default}]", first.trim()),
    };
    let details: Vec<&str> = details.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let long = if details.is_empty() { first.clone() } else { format!("{first}\n\n{}", details.join(" ")) };
    let arg = Arg::new(name)
        .long(name)
        .value_name(key.value_name())
        .help(first)
        .long_help(long)
        .value_parser(ValueParser(key))
        // The help of these parameters lists their choices in its text, because they accept other values too.
        .hide_possible_values(matches!(key, Key::Capacity | Key::Buffer | Key::Place | Key::Rate))
        // Passes values such as `-1` to the value's parser, whose message is clearer than clap's.
        .allow_hyphen_values(true)
        .action(ArgAction::Append);
    match key {
        Key::Time => arg.value_delimiter(',').conflicts_with(Key::Total.name()),
        Key::Blocks => arg.value_delimiter(',').conflicts_with_all([Key::Total, Key::Time].map(Key::name)),
        // A command may contain commas.
        Key::Stage | Key::Source => arg,
        _ => arg.value_delimiter(','),
    }
}

/// The word for every pair of CPUs, in both directions.
pub const ALL_PAIRS: &str = "all";

/// Parses the values of one parameter, or all pairs of CPUs, and lists its choices if it has any.
#[derive(Debug, Clone)]
struct ValueParser(Key);

impl TypedValueParser for ValueParser {
    type Value = Vec<Value>;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, text: &std::ffi::OsStr) -> Result<Vec<Value>, Error> {
        let text = text.to_str().ok_or_else(|| Error::new(ErrorKind::InvalidUtf8).with_cmd(command))?;
        let values = match (self.0, text) {
            (Key::Place, ALL_PAIRS) => {
                cpu_pairs::here(MAX_PAIRS).map(|places| places.into_iter().map(Value::Place).collect())
            }
            (key, text) => Value::parse(key, text).map(|value| vec![value]).map_err(|error| error.to_string()),
        };
        values.map_err(|error| {
            let flag = arg.map_or_else(String::new, Arg::to_string);
            Error::raw(ErrorKind::ValueValidation, format!("invalid value '{text}' for '{flag}': {error}\n"))
                .with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = self.0.choices();
        (!words.is_empty()).then(|| {
            Box::new(words.into_iter().map(|(word, _)| PossibleValue::new(word))) as Box<dyn Iterator<Item = _>>
        })
    }
}

/// Checks that a list of KEY=VALUE names no parameter twice.
///
/// # Errors
/// A message, if a parameter is named twice.
pub fn check_unique(flag: &str, values: &[Value]) -> Result<(), String> {
    let twice =
        values.iter().enumerate().find(|(n, value)| values[..*n].iter().any(|other| other.key() == value.key()));
    twice.map_or(Ok(()), |(_, value)| Err(format!("{flag} names '{}' twice; omit one", value.key())))
}
