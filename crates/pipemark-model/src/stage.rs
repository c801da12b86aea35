//! The stages between source and sink: commands that are split into words without a shell.

use std::fmt;
use std::str::FromStr;

use pipemark_shell::{Dialect, Script, ShellError, ShellStage, Word, quote_argument, quote_bytes};

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
        // What a terminal can't show is in quotes too, because this text is parsed again.
        let quoted = |word: &String| {
            quote_bytes(word.as_bytes(), Dialect::Posix)
                .unwrap_or_else(|_| format!("'{}'", word.replace('\'', r"'\''")))
        };
        let arguments = self.0[1..]
            .iter()
            .map(|word| quote_argument(word.as_bytes(), Dialect::Posix).unwrap_or_else(|_| quoted(word)));
        let words: Vec<String> = self.0.first().map(quoted).into_iter().chain(arguments).collect();
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

    /// Parses `cat -u | relay`. Words are separated and quoted as in sh. What sh would expand or redirect is refused,
    /// because no shell is used.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |why: &dyn fmt::Display| {
            BadValue::new(format!("'{text}' is not a stage: {why}; write a command such as 'cat -u'"))
        };
        let no_shell =
            |what: &str| refuse(&format!("{what} needs a shell, but no shell is used; quote it, or use sh -c '…'"));
        let empty = || refuse(&"a command is empty");
        let script = Script::parse(text, Dialect::Posix).map_err(|error| match error {
            ShellError::Empty => empty(),
            error => refuse(&error),
        })?;
        let stages = script.separate_stages().map_err(|error| no_shell(&error.to_string()))?;
        if stages.len() > MAX_STAGES {
            return Err(refuse(&format!("{} commands are too many", stages.len())));
        }
        let pipeline = script.pipeline().into_iter().flat_map(|pipeline| &pipeline.stages);
        let stage = |stage: &ShellStage| {
            let command = stage.simple().filter(|command| !command.words.is_empty());
            let command = command.ok_or_else(|| no_shell("a compound command"))?;
            if !stage.redirections.is_empty() || !command.assignments.is_empty() {
                return Err(no_shell("a redirection or a variable"));
            }
            let word = |word: &Word| {
                let shown = String::from_utf8_lossy(script.bytes(&word.span)).into_owned();
                word.as_str().map(str::to_owned).ok_or_else(|| no_shell(&shown))
            };
            let words: Vec<String> = command.words.iter().map(word).collect::<Result<_, _>>()?;
            if words[0].is_empty() { Err(empty()) } else { Ok(Stage(words)) }
        };
        Ok(Stages(pipeline.map(stage).collect::<Result<_, _>>()?))
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
        for text in [
            "",
            " ",
            "|",
            "cat |",
            "cat > x",
            "cat $HOME",
            "cat 'x",
            "cat \\",
            "'' x",
            "cat *.gz",
            "cat ~",
            "A=1 cat",
            "(cat)",
            "cat; cat",
            "cat &",
            "cat # x",
            "cat {a,b}",
            "if x",
        ] {
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
