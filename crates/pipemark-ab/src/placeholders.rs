//! `--parameter NAME=VALUES`: lists and ranges, their combinations, and `{NAME}` in commands, hooks and names.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::str::FromStr;

use pipemark_model::{nearest, neutral};

/// A parameter and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The parameter's name: letters, digits, `_` and `-`.
    pub name: String,
    /// The values in order, at least one.
    pub values: Vec<String>,
}

/// A name with its value.
pub type ParameterSetting = (String, String);

/// The maximum number of values of one parameter. A larger number is probably a typing error.
const MAX_VALUES: usize = 100_000;

impl FromStr for Parameter {
    type Err = String;

    /// Parses values such as `threads=1,2,4`, `size=1..10`, `delay=0.3..0.7:0.2`, and lists of these.
    fn from_str(text: &str) -> Result<Parameter, String> {
        let shown = neutral(text);
        let (name, values) = text.split_once('=').ok_or_else(|| {
            format!("'{shown}' has no values; use NAME=VALUE,…, such as threads=1,2,4 or size=1..10:3")
        })?;
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !name.starts_with(starts) || !name.chars().all(|c| starts(c) || c.is_ascii_digit() || c == '-') {
            return Err(format!(
                "'{}' is not a parameter name; use letters, digits, _ and -, and begin with a letter or _",
                neutral(name)
            ));
        }
        if values.is_empty() {
            return Err(format!("the parameter {name} has no values; use {name}=VALUE,…"));
        }
        let mut all = Vec::new();
        for item in values.split(',') {
            match range(item).map_err(|error| format!("'{shown}': {error}"))? {
                Some(range) => all.extend(range),
                None => all.push(item.to_owned()),
            }
        }
        let mut seen = HashSet::new();
        if let Some(twice) = all.iter().find(|value| !seen.insert(value.as_str())) {
            return Err(format!("the parameter {name} has the value '{}' twice", neutral(twice)));
        }
        Ok(Parameter { name: name.to_owned(), values: all })
    }
}

/// A decimal number: its digits as an integer, and the number of decimals.
fn decimal(text: &str) -> Option<(i64, u32)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    ((!unsigned.is_empty() || !part.is_empty()) && digits(unsigned) && digits(part) && part.len() <= 9)
        .then(|| Some((format!("{whole}{part}").parse().ok()?, part.len() as u32)))?
}

/// Expands ranges such as `1..4` and `1..4:2`, both ends included. `None` if the text is a plain value instead of a
/// range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((from, rest)) = text.split_once("..") else { return Ok(None) };
    let (to, step) = rest.split_once(':').map_or((rest, None), |(to, step)| (to, Some(step)));
    let (Some(from), Some(to)) = (decimal(from), decimal(to)) else {
        let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
        return if is_number(from) && is_number(to) {
            Err("the ends of a range are numbers such as 8 or 0.25, with at most 9 decimals".to_owned())
        } else {
            Ok(None)
        };
    };
    let step = match step {
        None => (1, 0),
        Some(step) => decimal(step).ok_or_else(|| format!("the step '{step}' is not a number"))?,
    };
    let places = from.1.max(to.1).max(step.1);
    let scaled = |(value, own): (i64, u32)| value.checked_mul(10i64.pow(places - own)).ok_or("a number is too large");
    let (from, to, step) = (scaled(from)?, scaled(to)?, scaled(step)?);
    if step == 0 {
        return Err("the step is 0; use another".to_owned());
    }
    let count = (i128::from(to) - i128::from(from)) / i128::from(step);
    if count < 0 || (from != to && (to > from) != (step > 0)) {
        return Err("the range is empty; a descending range needs a negative step, such as 8..1:-1".to_owned());
    }
    if count as usize >= MAX_VALUES {
        return Err(format!("the range has more than {MAX_VALUES} values"));
    }
    let shown = |value: i64| {
        let sign = if value < 0 { "-" } else { "" };
        let (whole, part) = (value.unsigned_abs() / 10u64.pow(places), value.unsigned_abs() % 10u64.pow(places));
        match places {
            0 => format!("{sign}{whole}"),
            places => format!("{sign}{whole}.{part:0width$}", width = places as usize),
        }
    };
    Ok(Some((0..=count as i64).map(|nth| shown(from + nth * step)).collect()))
}

/// All combinations of the values. The values of the last parameter vary fastest. Without parameters, one empty
/// combination.
pub fn combinations(parameters: &[Parameter]) -> Vec<Vec<ParameterSetting>> {
    parameters.iter().fold(vec![Vec::new()], |before, parameter| {
        let with = |settings: &Vec<ParameterSetting>, value: &String| {
            settings.iter().cloned().chain([(parameter.name.clone(), value.clone())]).collect()
        };
        before.iter().flat_map(|settings| parameter.values.iter().map(move |value| with(settings, value))).collect()
    })
}

/// Replaces each `{NAME}` by the value of the setting NAME. Shell variables, `${NAME}`, and all other braces stay.
pub fn replaced(text: &OsStr, settings: &[ParameterSetting]) -> OsString {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte == b'{') {
        let (before, brace) = rest.split_at(at);
        out.extend(before);
        let found = settings.iter().find_map(|(name, value)| {
            Some((brace.strip_prefix(b"{")?.strip_prefix(name.as_bytes())?.strip_prefix(b"}")?, value))
        });
        match found.filter(|_| !before.ends_with(b"$")) {
            Some((after, value)) => {
                out.extend(value.as_bytes());
                rest = after;
            }
            None => {
                out.push(b'{');
                rest = &brace[1..];
            }
        }
    }
    out.extend(rest);
    OsString::from_vec(out)
}

/// [`replaced`] for a name.
pub fn replaced_in_name(name: &str, settings: &[ParameterSetting]) -> String {
    replaced(OsStr::new(name), settings).to_string_lossy().into_owned()
}

/// Refuses parameters that none of the texts uses, and parameters that are given twice.
///
/// # Errors
/// A message.
pub fn check(parameters: &[Parameter], texts: &[&OsStr]) -> Result<(), String> {
    for (at, Parameter { name, .. }) in parameters.iter().enumerate() {
        if parameters[..at].iter().any(|other| other.name == *name) {
            return Err(format!("--parameter {name} is given twice; list all its values in one --parameter"));
        }
        let probe = [(name.clone(), String::new())];
        if texts.iter().all(|text| replaced(text, &probe) == *text) {
            let texts: Vec<_> = texts.iter().map(|text| text.to_string_lossy()).collect();
            let seen: Vec<&str> = texts.iter().flat_map(|text| names(text)).collect();
            let unknown = seen.iter().copied().filter(|seen| parameters.iter().all(|known| known.name != *seen));
            let meant = nearest(name, unknown).map_or_else(String::new, |meant| format!(" (there is {{{meant}}})"));
            return Err(format!(
                "no command, hook or name contains {{{name}}}, so --parameter {name} changes nothing{meant}"
            ));
        }
    }
    Ok(())
}

/// Names in braces that look like parameters.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split('{').skip(1).filter_map(|part| part.split_once('}'));
    parts
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Parameter>().unwrap().values
    }

    fn settings(text: &str) -> Vec<ParameterSetting> {
        text.split_whitespace().map(|pair| pair.split_once('=').unwrap()).map(|(n, v)| (n.into(), v.into())).collect()
    }

    #[test]
    fn values_are_lists_and_ranges() {
        assert_eq!(values("threads=1,2,4"), ["1", "2", "4"]);
        assert_eq!(values("threads=1..4"), ["1", "2", "3", "4"]);
        assert_eq!(values("threads=1..8:3,16"), ["1", "4", "7", "16"]);
        assert_eq!(values("delay=0.3..0.7:0.2"), ["0.3", "0.5", "0.7"]);
        assert_eq!(values("delay=-1..1:0.5"), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(values("n=3..1:-1"), ["3", "2", "1"]);
        assert_eq!(values("n=7..7"), ["7"]);
        assert_eq!(values("n=.5..1.5"), ["0.5", "1.5"]);
        assert_eq!(values("n=1..99999").len(), 99_999, "in a moment");
        assert_eq!(values("branch=main,feature/a=b"), ["main", "feature/a=b"]);
        assert_eq!(values("range=main..branch"), ["main..branch"], "a range of commits is a value");
        assert_eq!(values("empty=,x"), ["", "x"]);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for (text, words) in [
            ("threads", "has no values"),
            ("threads=", "has no values"),
            ("=1", "not a parameter name"),
            ("1x=1", "not a parameter name"),
            ("a b=1", "not a parameter name"),
            ("n=1..4:0", "the step is 0"),
            ("n=1..4:0.0", "the step is 0"),
            ("n=4..1", "the range is empty"),
            ("n=1..4:-1", "the range is empty"),
            ("n=1..4:x", "the step 'x'"),
            ("n=1e3..2e3", "ends of a range"),
            ("n=0..9999999", "more than 100000"),
            ("n=1,2,1", "twice"),
            ("n=1..3,2", "twice"),
            ("n=0.000000001..9223372036854775807", "too large"),
        ] {
            let error = text.parse::<Parameter>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn only_the_names_given_are_replaced_in_name() {
        let set = settings("threads=4 x=1");
        assert_eq!(replaced_in_name("make -j{threads} {threads}", &set), "make -j4 4");
        for stays in ["awk '{print}'", "echo ${x}", "echo {y} { x } {", "{ threads; }"] {
            assert_eq!(replaced_in_name(stays, &set), stays);
        }
        assert_eq!(replaced_in_name("{{x}}", &set), "{1}");
        assert_eq!(replaced(OsStr::from_bytes(b"caf\xe9{x}\xff"), &set).as_bytes(), b"caf\xe91\xff");
    }

    #[test]
    fn placeholders_in_a_value_are_kept() {
        assert_eq!(replaced_in_name("{a}", &settings("a={b} b=2")), "{b}");
    }

    #[test]
    fn parameters_combine_and_the_last_varies_fastest() {
        let all = combinations(&["a=1,2".parse().unwrap(), "b=x,y".parse().unwrap()]);
        let all: Vec<String> = all.iter().map(|one| one.iter().map(|(_, value)| value.as_str()).collect()).collect();
        assert_eq!(all, ["1x", "1y", "2x", "2y"]);
        assert_eq!(combinations(&[]), [vec![]]);
    }

    #[test]
    fn an_unused_parameter_is_refused() {
        let parameters = ["threads=1,2".parse().unwrap()];
        assert_eq!(check(&parameters, &["make", "rm -f {threads}"].map(OsStr::new)), Ok(()));
        let error = check(&parameters, &["make -j{thread}", "echo ${threads}"].map(OsStr::new)).unwrap_err();
        assert!(error.contains("{threads}") && error.contains("there is {thread}"), "{error}");
        let twice = ["n=1".parse().unwrap(), "n=2".parse().unwrap()];
        assert!(check(&twice, &[OsStr::new("{n}")]).unwrap_err().contains("twice"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-z0-9=,.:{}$-]{0,24}", command in "[a-c{}$]{0,24}") {
            if let Ok(parameter) = text.parse::<Parameter>() {
                prop_assert!(!parameter.values.is_empty());
                let settings = [(parameter.name, parameter.values[0].clone())];
                let _ = replaced_in_name(&command, &settings);
            }
        }

        #[test]
        fn without_settings_nothing_changes(command in any::<String>()) {
            prop_assert_eq!(replaced_in_name(&command, &[]), command);
        }
    }
}
