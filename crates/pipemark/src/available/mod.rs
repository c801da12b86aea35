//! Whether a trial can run here, and if not, why, as a sentence that says what would help. Nothing else answers that.

mod chain;
mod machine;

use crate::entrant::{Absent, Entrants, on_path};
use crate::model::{Cpu, Feed, Host, Params};

pub use machine::missing;

/// The CPUs of the writer and the reader, where the trial can run on `host`; `None` leaves them to the scheduler.
/// `entrants` are those that it may need, prepared.
///
/// # Errors
/// Why it can't run.
pub fn check(params: &Params, host: &Host, entrants: &Entrants) -> Result<Option<(Cpu, Cpu)>, Absent> {
    programs(params, entrants)?;
    match machine::missing(params, host).or_else(|| chain::missing(params, host)) {
        Some(reason) => Err(Absent::Missing(reason)),
        None => machine::cpus_for(params.place, host).map_err(Absent::Missing),
    }
}

/// The programs besides this one that a trial starts.
fn programs(params: &Params, entrants: &Entrants) -> Result<(), Absent> {
    if let Some((language, program)) = params.entrant() {
        entrants.program(language, program)?;
    }
    if let Some((feed, filter)) = params.lines() {
        let tools: &[&str] = match feed {
            Feed::YesShort | Feed::YesLong => &["yes"],
            Feed::File => &[],
            Feed::Zcat => &["gzip", "zcat"],
        };
        installed(tools.iter().copied(), "which feeds the filter")?;
        entrants.filter(filter)?;
    }
    let stages = (0..params.length as usize).map(|position| params.stage.at(position).words()[0].as_str());
    // A chain of this program's own relay needs no other.
    installed(stages.filter(|program| *program != "relay"), "a stage of the chain")
}

fn installed<'a>(programs: impl IntoIterator<Item = &'a str>, role: &str) -> Result<(), Absent> {
    let mut asked = std::collections::BTreeSet::new();
    match programs.into_iter().find(|program| asked.insert(*program) && on_path(program).is_none()) {
        Some(program) => Err(Absent::Missing(format!("{program}, {role}, is not installed"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Key;

    #[test]
    fn a_stage_that_is_not_installed_is_named() {
        let host = crate::host::survey();
        let check = |stage: &str, length: &str| {
            let mut params = Params::default();
            for (key, text) in [(Key::Place, "free"), (Key::Stage, stage), (Key::Length, length)] {
                params.set(key, text).unwrap();
            }
            super::check(&params, &host, &Entrants::default())
        };
        assert_eq!(check("cat | no-such-program | relay", "1"), Ok(None));
        assert_eq!(
            check("cat | no-such-program | relay", "3"),
            Err(Absent::Missing("no-such-program, a stage of the chain, is not installed".to_owned()))
        );
        assert!(check("/no/such/program -v", "1").is_err() && check("relay | /bin/sh", "2").is_ok());
    }
}
