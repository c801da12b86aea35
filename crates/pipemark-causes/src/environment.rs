//! Environment variables that change how a program works. The rows are in variables.toml. Pure but for `own`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::programs::{base, is_called};

/// A row of the table; see the head of variables.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableRow {
    name: Vec<String>,
    #[serde(default)]
    program: Vec<String>,
    #[serde(default)]
    options: bool,
}

#[derive(Debug, Deserialize)]
struct VariableTable {
    variable: Vec<VariableRow>,
}

static TABLE: LazyLock<Vec<VariableRow>> = LazyLock::new(|| {
    toml::from_str::<VariableTable>(include_str!("variables.toml")).expect("a test reads the table").variable
});

/// The maximum length of a value that is kept, in bytes.
const MAX_VALUE: usize = 200;

/// The names of all variables of the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| &row.name).map(String::as_str)
}

/// The variables of an environment that change how a program works, each as `NAME=value`, in the order in which the
/// program reads them. `environment` is as in /proc/PID/environ. Empty and long values are omitted.
pub fn variables(program: &str, environment: &[u8]) -> Vec<String> {
    let all: Vec<(&str, &str)> = environment
        .split(|&byte| byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='))
        .filter(|(_, value)| !value.is_empty() && value.len() <= MAX_VALUE)
        .collect();
    let value = |name: &String| all.iter().find(|(one, _)| one == name);
    let entry = |name: &String| value(name).map(|(name, value)| format!("{name}={value}"));
    TABLE.iter().filter(|row| row.is_for(program)).flat_map(|row| row.name.iter().filter_map(entry)).collect()
}

/// This program's environment, as in /proc/PID/environ.
pub fn own() -> Vec<u8> {
    let entry = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        [name.as_encoded_bytes(), b"=", value.as_encoded_bytes(), b"\0"].concat()
    };
    std::env::vars_os().flat_map(entry).collect()
}

/// Those of the names that an environment defines as functions of bash (`export -f`); all of them if bash reads a file before
/// each script, which may define any, or if it begins with options by which the exit code depends on each stage.
pub fn functions<'n>(names: impl Iterator<Item = &'n str>, environment: &[u8]) -> Vec<String> {
    let is_set = |variable: &str| {
        let mut entries = environment.split(|&byte| byte == 0);
        let value = |entry: &[u8]| entry.strip_prefix(variable.as_bytes())?.strip_prefix(b"=").map(<[u8]>::is_empty);
        entries.any(|entry| value(entry) == Some(false))
    };
    let is_option =
        |entry: &[u8]| entry.starts_with(b"SHELLOPTS=") && entry.windows(8).any(|bytes| bytes == b"pipefail");
    let is_unknown = is_set("BASH_ENV") || environment.split(|&byte| byte == 0).any(is_option);
    let is_function = |name: &&str| is_unknown || is_set(&format!("BASH_FUNC_{name}%%"));
    let found: BTreeSet<&str> = names.filter(is_function).collect();
    found.into_iter().map(str::to_owned).collect()
}

/// The words of a command line with those that variables add to them.
pub fn with_variables<'a>(words: &'a [String], variables: &[String]) -> Cow<'a, [String]> {
    let Some(program) = words.first().map(|word| base(word)) else { return words.into() };
    let is_option = |name: &str| {
        TABLE.iter().any(|row| row.options && row.is_for(program) && row.name.iter().any(|one| one == name))
    };
    let added: Vec<String> = variables
        .iter()
        .filter_map(|entry| entry.split_once('='))
        .filter(|(name, _)| is_option(name))
        .flat_map(|(_, value)| value.split_ascii_whitespace().map(str::to_owned))
        .collect();
    if added.is_empty() {
        return words.into();
    }
    [&words[..1], &added, &words[1..]].concat().into()
}

/// The variable of those set that an entry of a table names: `NAME` for any value, `NAME=value` for this one.
pub fn set<'a>(variables: &'a [String], entries: &[String]) -> Option<&'a str> {
    let is = |variable: &str, entry: &str| {
        variable == entry || variable.strip_prefix(entry).is_some_and(|rest| rest.starts_with('='))
    };
    variables.iter().map(String::as_str).find(|variable| entries.iter().any(|entry| is(variable, entry)))
}

impl VariableRow {
    fn is_for(&self, program: &str) -> bool {
        self.program.is_empty() || self.program.iter().any(|like| is_called(program, like))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_of_the_program_are_kept() {
        let environment =
            b"HOME=/home/me\0XZ_OPT=-T0 -3\0PYTHONUNBUFFERED=1\0TOKEN=secret\0XZ_DEFAULTS=-9\0GOGC=\0OMP_NUM_THREADS=1";
        let of = |program| variables(program, environment);
        assert_eq!(of("xz"), ["XZ_DEFAULTS=-9", "XZ_OPT=-T0 -3", "OMP_NUM_THREADS=1"]);
        assert_eq!(of("python3.11"), ["PYTHONUNBUFFERED=1", "OMP_NUM_THREADS=1"]);
        assert_eq!(of("sort"), ["OMP_NUM_THREADS=1"]);
        let long = [b"GOGC=", vec![b'1'; 300].as_slice()].concat();
        assert!(variables("sort", &long).is_empty());
    }

    #[test]
    fn options_in_variables_stand_before_those_typed() {
        let words = ["xz", "-d"].map(str::to_owned);
        let variables = ["XZ_DEFAULTS=-9", "XZ_OPT=-T0 -3", "OMP_NUM_THREADS=1"].map(str::to_owned);
        assert_eq!(*with_variables(&words, &variables), ["xz", "-9", "-T0", "-3", "-d"]);
        assert_eq!(*with_variables(&["sort".to_owned()], &variables), ["sort"]);
        assert!(with_variables(&[], &variables).is_empty());
    }

    #[test]
    fn an_entry_names_a_variable_or_one_of_its_values() {
        let variables = ["OMP_NUM_THREADS=1".to_owned()];
        let is_set = |entry: &str| set(&variables, &[entry.to_owned()]).is_some();
        assert!(is_set("OMP_NUM_THREADS") && is_set("OMP_NUM_THREADS=1"));
        assert!(!is_set("OMP_NUM_THREADS=11") && !is_set("OMP_NUM") && !is_set("GOGC"));
    }
}
