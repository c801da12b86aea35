//! The shell that starts a command, if any.

use clap::ValueEnum;
use pipemark_model::neutral;
use pipemark_shell::{Dialect, ShellError, quote_bytes, split_without_shell};
use serde::Serialize;

/// The shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    /// No shell: the command is split at blanks; only quotes, backslashes and # comments are special
    None,
    /// /bin/sh
    #[default]
    Sh,
    /// bash
    Bash,
}

impl Shell {
    /// The program to start for `text`, and its arguments.
    ///
    /// # Errors
    /// A message, when there is no shell and the text can't be split into words.
    pub fn words(self, text: &str) -> Result<Vec<String>, String> {
        let with = |shell: &str| Ok(vec![shell.to_owned(), "-c".to_owned(), text.to_owned()]);
        match self {
            Shell::Sh => with("/bin/sh"),
            Shell::Bash => with("bash"),
            Shell::None => match split_without_shell(text.as_bytes()) {
                Ok(words) => Ok(words.into_iter().map(|word| String::from_utf8_lossy(&word).into_owned()).collect()),
                Err(ShellError::Empty) => {
                    Err("the command is empty; with --shell none, write a program to start".to_owned())
                }
                Err(error) => Err(format!("'{}': {error}", neutral(text))),
            },
        }
    }

    /// The dialect of its commands. Without a shell, what is special in sh is too.
    pub fn dialect(self) -> Dialect {
        match self {
            Shell::None | Shell::Sh => Dialect::Posix,
            Shell::Bash => Dialect::Bash,
        }
    }

    /// The command line that starts this shell with nothing to do; `None` without a shell.
    pub fn empty_command(self) -> Option<String> {
        match self {
            Shell::None => None,
            Shell::Sh | Shell::Bash => {
                let quoted = |word: &String| quote_bytes(word.as_bytes(), Dialect::Posix).ok();
                Some(self.words("").ok()?.iter().map(quoted).collect::<Option<Vec<String>>>()?.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_shell_words_are_split_and_quotes_removed() {
        assert_eq!(Shell::None.words(r#"grep 'a b' "c" d\ e"#).unwrap(), ["grep", "a b", "c", "d e"]);
        assert_eq!(Shell::Sh.words("a | b").unwrap(), ["/bin/sh", "-c", "a | b"]);
        assert!(Shell::None.words("a 'b").unwrap_err().contains("quote"));
        assert!(Shell::None.words(" ").is_err());
    }

    #[test]
    fn the_empty_command_of_a_shell_is_the_shell() {
        let text = Shell::Sh.empty_command().unwrap();
        assert_eq!(Shell::None.words(&text), Shell::Sh.words(""), "the empty command of a shell is the shell itself");
        assert_eq!(Shell::None.words(&Shell::Bash.empty_command().unwrap()), Shell::Bash.words(""));
        assert_eq!(Shell::None.empty_command(), None);
    }
}
