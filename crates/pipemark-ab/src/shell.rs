//! The shell that starts a command, if any.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::ValueEnum;
use pipemark_model::neutral;
use pipemark_shell::{Dialect, ShellError, quote_bytes, shown_command, split_without_shell};
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
    pub fn words(self, text: &OsStr) -> Result<Vec<OsString>, String> {
        let with = |shell: &str| Ok(vec![shell.into(), "-c".into(), text.to_owned()]);
        match self {
            Shell::Sh => with("/bin/sh"),
            Shell::Bash => with("bash"),
            Shell::None => match split_without_shell(text.as_bytes()) {
                Ok(words) => Ok(words.into_iter().map(OsString::from_vec).collect()),
                Err(ShellError::Empty) => {
                    Err("the command is empty; with --shell none, write a program to start".to_owned())
                }
                Err(error) => Err(format!("'{}': {error}", neutral(&shown_command(text.as_bytes())))),
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
    pub fn empty_command(self) -> Option<OsString> {
        match self {
            Shell::None => None,
            Shell::Sh | Shell::Bash => {
                let quoted = |word: &OsString| quote_bytes(word.as_bytes(), Dialect::Posix).ok();
                let words = self.words(OsStr::new("")).ok()?;
                Some(words.iter().map(quoted).collect::<Option<Vec<String>>>()?.join(" ").into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_shell_words_are_split_and_quotes_removed() {
        let words = |shell: Shell, text: &str| shell.words(OsStr::new(text));
        assert_eq!(words(Shell::None, r#"grep 'a b' "c" d\ e"#).unwrap(), ["grep", "a b", "c", "d e"]);
        assert_eq!(words(Shell::Sh, "a | b").unwrap(), ["/bin/sh", "-c", "a | b"]);
        assert!(words(Shell::None, "a 'b").unwrap_err().contains("quote"));
        assert!(words(Shell::None, " ").is_err());
        let bytes = OsStr::from_bytes(b"cat 'caf\xe9  x'");
        assert_eq!(Shell::None.words(bytes).unwrap()[1].as_bytes(), b"caf\xe9  x");
        assert_eq!(Shell::Bash.words(bytes).unwrap()[2], bytes);
    }

    #[test]
    fn the_empty_command_of_a_shell_is_the_shell() {
        let text = Shell::Sh.empty_command().unwrap();
        assert_eq!(
            Shell::None.words(&text),
            Shell::Sh.words(OsStr::new("")),
            "the empty command of a shell is the shell itself"
        );
        let bash = Shell::Bash.empty_command().unwrap();
        assert_eq!(Shell::None.words(&bash), Shell::Bash.words(OsStr::new("")));
        assert_eq!(Shell::None.empty_command(), None);
    }
}
