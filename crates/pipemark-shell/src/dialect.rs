//! The dialects of the shell whose commands are parsed.

use crate::error::ShellError;

/// A shell's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// What dash, busybox's ash and bash called as `sh` agree on.
    Posix,
    Bash,
}

impl Dialect {
    /// The dialect of a shell, given by its path or name.
    ///
    /// # Errors
    /// For shells with another language, such as zsh, fish and ksh.
    pub fn of_shell(program: &str) -> Result<Dialect, ShellError> {
        let name = program.rsplit('/').next().unwrap_or(program).trim_start_matches('-');
        match name {
            "sh" | "dash" | "ash" | "busybox" => Ok(Dialect::Posix),
            "bash" => Ok(Dialect::Bash),
            _ => Err(ShellError::Shell(name.to_owned())),
        }
    }
}
