//! `pipemark list`: senders, receivers and suites.

use std::process::ExitCode;

use clap::Args;
use strum::IntoEnumIterator;

use super::usage;
use crate::model::{LinkKind, RecvMethod, SendMethod};
use crate::plan::{EMBEDDED, Scale, Suite};

/// What `list` takes.
#[derive(Debug, Clone, Args)]
pub struct ListOptions {}

/// Prints the words that --link, --send and --recv know, and the suites that come with the program.
pub fn run(_: &ListOptions) -> ExitCode {
    let words = |title, words: Vec<String>| println!("{title:<10} {}", words.join(", "));
    words("links", LinkKind::iter().map(|link| link.to_string()).collect());
    words("senders", SendMethod::iter().map(|method| method.to_string()).collect());
    words("receivers", RecvMethod::iter().map(|method| method.to_string()).collect());
    println!("suites");
    for (name, text) in EMBEDDED {
        let plan = Suite::parse(&format!("suites/{name}.toml"), text).and_then(|suite| suite.expand(Scale::ONE));
        match plan {
            Ok(plan) => println!("  {name:<12} {} ({} trials)", plan.title, plan.trials.len()),
            Err(error) => return usage(error),
        }
    }
    ExitCode::SUCCESS
}
