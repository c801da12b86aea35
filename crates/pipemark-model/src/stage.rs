//! The stages between source and sink: commands that are split into words without a shell.

use std::fmt;
use std::str::FromStr;

use crate::bad_value::BadValue;

/// One stage: a program and its arguments. The program `relay` is pipemark's own relay, not a program in the PATH.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stage(Vec<String>);

/// The largest number of commands that can be given. A longer chain repeats them.
const MAX_STAGES: usize = 64;

impl Stage {
    /// The program and its arguments, at least one word.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        let words: Vec<String> = self
            .0
            .iter()
            .map(|word| match !word.is_empty() && word.chars().all(plain) {
                true => word.clone(),
                false => format!("'{}'", word.replace('\'', r"'\''")),
            })
            .collect();
        f.write_str(&words.join(" "))
    }
}

/// The commands of a chain. A chain with more stages than commands repeats the commands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stages(Vec<Stage>);

impl Stages {
    /// Number of commands given.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The stage at a position in the chain, counted from 0.
    pub fn at(&self, position: usize) -> &Stage {
        &self.0[position % self.0.len()]
    }
}

impl Default for Stages {
    fn default() -> Self {
        Stages(vec![Stage(vec!["cat".to_owned()])])
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages: Vec<String> = self.0.iter().map(Stage::to_string).collect();
        f.pad(&stages.join(" | "))
    }
}

impl FromStr for Stages {
    type Err = BadValue;

    /// Parses `cat -u | relay`. Words are separated and quoted as in a shell; all other shell syntax is refused.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse =
            |why: &str| BadValue::new(format!("'{text}' is not a stage: {why}; write a command such as 'cat -u'"));
        let mut stages = vec![Vec::new()];
        let mut word: Option<String> = None;
        let mut quote: Option<char> = None;
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None | Some('"'), '\\') => {
                    let next = chars.next().ok_or_else(|| refuse("it ends with a backslash"))?;
                    word.get_or_insert_default().push(next);
                }
                (Some(_), c) => word.get_or_insert_default().push(c),
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, '|') => {
                    stages.last_mut().expect("at least one").extend(word.take());
                    stages.push(Vec::new());
                }
                (None, ' ' | '\t') => stages.last_mut().expect("at least one").extend(word.take()),
                (None, '<' | '>' | '&' | ';' | '`' | '$' | '(' | ')') => {
                    return Err(refuse(&format!(
                        "'{c}' is shell syntax, but no shell is used; quote it, or use sh -c '…'"
                    )));
                }
                (None, c) => word.get_or_insert_default().push(c),
            }
        }
        if quote.is_some() {
            return Err(refuse("a quote is not closed"));
        }
        stages.last_mut().expect("at least one").extend(word);
        if stages.iter().any(|words| words.first().is_none_or(String::is_empty)) {
            return Err(refuse("a command is empty"));
        }
        if text.contains('\0') || stages.len() > MAX_STAGES {
            return Err(refuse("it contains a NUL or too many commands"));
        }
        Ok(Stages(stages.into_iter().map(Stage).collect()))
    }
}

super::value::serde_as_text!(Stages, "commands without a shell, joined by |, such as cat -u | relay");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let stages: Stages = text.parse().unwrap();
        stages.0.iter().map(|stage| stage.words().to_vec()).collect()
    }

    #[test]
    fn words_are_split_like_a_shell_does() {
        assert_eq!(words(" cat  -u "), [["cat", "-u"]]);
        assert_eq!(words("cat|relay --capacity keep"), [vec!["cat"], vec!["relay", "--capacity", "keep"]]);
        assert_eq!(words(r#"sh -c 'cat | "cat"' "a b" c\ d '' "#), [["sh", "-c", "cat | \"cat\"", "a b", "c d", ""]]);
    }

    #[test]
    fn shell_syntax_is_refused() {
        for text in ["", " ", "|", "cat |", "cat > x", "cat $HOME", "cat 'x", "cat \\", "'' x"] {
            assert!(text.parse::<Stages>().is_err(), "{text}");
        }
    }

    #[test]
    fn stages_repeat_in_order() {
        let stages: Stages = "cat | relay".parse().unwrap();
        assert_eq!((stages.at(0).words(), stages.at(3).words()), (&["cat".to_owned()][..], &["relay".to_owned()][..]));
    }

    proptest! {
        #[test]
        fn displayed_values_parse_back(all in prop::collection::vec(prop::collection::vec("[ -~é]{1,9}", 1..4), 1..4)) {
            let stages = Stages(all.into_iter().map(Stage).collect());
            prop_assert_eq!(stages.to_string().parse::<Stages>(), Ok(stages));
        }
    }
}
