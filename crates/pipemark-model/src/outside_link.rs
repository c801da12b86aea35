//! The names of links by programs other than pipemark, with their options.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

use crate::bad_value::BadValue;

/// The largest number of characters in a name with its options.
const MAX_LENGTH: usize = 100;

/// A link by programs other than pipemark: a name and options, such as `zeromq:transport=tcp`. Options are sorted, so
/// that equal links have equal names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutsideLink(&'static str);

/// All names in use. They are never freed, so that a link can be copied like a number; a process uses few of them.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl OutsideLink {
    /// The name with its options, as on the command line.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// The name without options, which is that of the directory that describes the link.
    pub fn name(self) -> &'static str {
        self.0.split(':').next().unwrap_or_default()
    }

    /// The options and their values, sorted by name.
    pub fn options(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.0.split(':').skip(1).filter_map(|option| option.split_once('='))
    }

    /// Whether the link moves no bytes, which its name says: `null-c` or `null-python`.
    pub fn is_null(self) -> bool {
        self.0.starts_with("null-")
    }
}

impl fmt::Display for OutsideLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl FromStr for OutsideLink {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<OutsideLink, BadValue> {
        let is_good = |word: &str| {
            let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
            word.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) && word.chars().all(good)
        };
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut options: Vec<&str> = parts.collect();
        let good_option =
            |option: &&str| option.split_once('=').is_some_and(|(key, value)| is_good(key) && is_good(value));
        options.sort_unstable();
        let repeated = options.windows(2).any(|two| two[0].split('=').next() == two[1].split('=').next());
        if text.len() > MAX_LENGTH || !is_good(name) || !options.iter().all(good_option) || repeated {
            let shown: String = text.chars().take(40).collect();
            let form = "use lower-case letters, digits and hyphens, as in pipe, or NAME:OPTION=VALUE";
            return Err(BadValue::new(format!("'{shown}' is not the name of a link; {form}")));
        }
        let text = std::iter::once(name).chain(options).collect::<Vec<_>>().join(":");
        let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = names.get(text.as_str()) {
            return Ok(OutsideLink(known));
        }
        let name: &'static str = Box::leak(text.into_boxed_str());
        names.insert(name);
        Ok(OutsideLink(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_options_in_any_order_are_one_link() {
        let one: OutsideLink = "zeromq:transport=tcp:queue=100".parse().unwrap();
        let other: OutsideLink = "zeromq:queue=100:transport=tcp".parse().unwrap();
        assert_eq!(one, other);
        assert_eq!((one.name(), one.as_str()), ("zeromq", "zeromq:queue=100:transport=tcp"));
        assert_eq!(one.options().collect::<Vec<_>>(), [("queue", "100"), ("transport", "tcp")]);
    }

    #[test]
    fn malformed_names_are_refused() {
        for text in ["", "Pipe", "a b", "a:", "a:b", "a:=c", "a:b=", "a:b=c:b=d", "-a", "../a", &"a".repeat(101)] {
            assert!(text.parse::<OutsideLink>().is_err(), "{text}");
        }
    }
}
