//! Shell commands: parses them, edits them by byte range, and prints them so that they can be pasted. Pure: no I/O.
//!
//! The grammar covers what POSIX sh and bash have in common with what is typed as a pipeline, and refuses everything
//! else ([`ShellError`]), so that a command is printed exactly or not at all. It is our own. The libraries that were tried,
//! brush-parser and tree-sitter-bash, take 94 s and 48 s of CPU time to build, a fifth to a third of the whole program;
//! the one counts positions in characters, though commands needn't be UTF-8, and the other never fails and attaches
//! `2>&1` to the wrong commands. Both parse bash only, whereas here the dialect decides what is refused. The tests
//! compare this grammar with the shells themselves.
//!
//! ```
//! use pipemark_shell::{Dialect, Edits, Script};
//!
//! let script = Script::parse("zcat a.gz | grep 'a  hit' | sort", Dialect::Posix)?;
//! let pipeline = script.pipeline().expect("one pipeline");
//! let grep = pipeline.stages[1].simple().expect("a simple command");
//! let mut edits = Edits::new(&script);
//! edits.insert_options(grep, 0, &["--line-buffered"])?;
//! assert_eq!(edits.apply()?.to_paste()?, "zcat a.gz | grep --line-buffered 'a  hit' | sort");
//! # Ok::<(), pipemark_shell::ShellError>(())
//! ```
#![forbid(unsafe_code)]

mod dialect;
mod edit;
mod error;
mod find;
mod parse;
mod paste;
mod plain;
mod quote;
mod syntax;
mod wrappers;

pub use dialect::Dialect;
pub use edit::Edits;
pub use error::ShellError;
pub use find::{FoundCommand, RunningStage, find_stages, from_arguments};
pub use parse::{MAX_BYTES, ansi_c_value};
pub use plain::split_without_shell;
pub use quote::{is_shown_exactly, quote_argument, quote_bytes, readable, shown_command};
pub use syntax::{
    Bar, CommandList, Compound, CompoundKind, Connector, Pipeline, Redirection, RedirectionKind, Script, ShellStage,
    SimpleCommand, Span, StageCommand, Word, WordPart, WordPartKind,
};
pub use wrappers::{Wrapper, program_after_wrappers};
