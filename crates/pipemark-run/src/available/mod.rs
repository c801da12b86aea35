//! Whether a trial can run here. If it can't, a sentence says why and what would help. Only this module decides this.

mod chain;
mod machine;

use pipemark_entrants::{Entrants, LinkFile, on_path};
use pipemark_host::child::RunError;
use pipemark_model::{ByteSize, Chain, Cpu, Entrant, Feed, Host, Job, LinesJob, counted};

pub use machine::missing;

/// The CPUs of the writer and the reader, if the trial can run on `host`; `None` leaves the choice to the scheduler.
/// `entrants` must contain the entrants that the trial needs, already prepared.
///
/// # Errors
/// Why the trial can't run.
pub fn check(job: &Job, host: &Host, entrants: &Entrants) -> Result<Option<(Cpu, Cpu)>, RunError> {
    programs(job, entrants)?;
    outside_link(job, entrants)?;
    match machine::missing(job, host).or_else(|| chain::missing(job, host)) {
        Some(reason) => Err(RunError::NotHere(reason)),
        None => machine::cpus_for(job.place(), host).map_err(RunError::NotHere),
    }
}

/// Checks that an outside link can do what the trial asks of it.
fn outside_link(job: &Job, entrants: &Entrants) -> Result<(), RunError> {
    let Some((ends, link)) = job.ends().and_then(|ends| Some((ends, ends.link.outside()?))) else { return Ok(()) };
    let LinkFile { wait, round_trips, senders, receivers, .. } = &entrants.links.link(link)?.file;
    let (least, most) = entrants.links.link(link)?.file.block_limits();
    let not_here = |reason: String| Err(RunError::NotHere(format!("--link {link}: {reason}")));
    match job {
        Job::RoundTrip(_) if !round_trips => not_here("the link has no way back for round trips".to_owned()),
        _ if !wait.contains(&ends.wait) => not_here(format!("its programs can't wait by --wait {}", ends.wait)),
        _ if ends.writers > *senders => {
            not_here(format!("it takes at most {} for --writers", counted(*senders as usize, "sender")))
        }
        _ if ends.readers > *receivers => {
            not_here(format!("it takes at most {} for --readers", counted(*receivers as usize, "receiver")))
        }
        _ if ends.block.0 < least => not_here(format!("its smallest block is {}", ByteSize(least))),
        _ if ends.block.0 > most => not_here(format!("its largest block is {}", ByteSize(most))),
        _ => Ok(()),
    }
}

/// Checks that the programs started by a trial are available, except this program.
fn programs(job: &Job, entrants: &Entrants) -> Result<(), RunError> {
    if let Some(Entrant { language, program, .. }) = job.entrant() {
        entrants.program(language, *program)?;
    }
    if let Some(LinesJob { feed, filter, .. }) = job.lines() {
        let tools: &[&str] = match feed {
            Feed::YesShort | Feed::YesMiddle | Feed::YesLong => &["yes"],
            Feed::File | Feed::Timed => &[],
            Feed::Zcat => &["gzip", "zcat"],
            Feed::ThroughputSh => &["yes", "head", "pv"],
        };
        installed(tools.iter().copied(), "which feeds the filter")?;
        entrants.filter(filter)?;
    }
    if let Job::Chain(Chain { source: Some(source), .. }) = job {
        installed([source.at(0).words()[0].as_str()], "the source of the chain")?;
    }
    let Some(chain) = job.chain() else { return Ok(()) };
    let stages = (0..chain.length as usize).map(|position| chain.stage.at(position).words()[0].as_str());
    // The relay is part of this program, so a chain of relays needs no other program.
    installed(stages.filter(|program| *program != "relay"), "a stage of the chain")
}

fn installed<'a>(programs: impl IntoIterator<Item = &'a str>, role: &str) -> Result<(), RunError> {
    let mut asked = std::collections::BTreeSet::new();
    match programs.into_iter().find(|program| asked.insert(*program) && on_path(program).is_none()) {
        Some(program) => Err(RunError::NotHere(format!("{program}, {role}, is not installed"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Key, Settings, Value};

    use super::*;

    #[test]
    fn a_stage_that_is_not_installed_is_named() {
        let host = pipemark_host::survey();
        let check = |stage: &str, length: &str| {
            let words = [(Key::Place, "free"), (Key::Stage, stage), (Key::Length, length)];
            let values = words.map(|(key, text)| Value::parse(key, text).unwrap());
            super::check(&Job::try_from(Settings::of(values)).unwrap(), &host, &Entrants::default())
        };
        assert_eq!(check("cat | no-such-program | relay", "1"), Ok(None));
        assert_eq!(
            check("cat | no-such-program | relay", "3"),
            Err(RunError::NotHere("no-such-program, a stage of the chain, is not installed".to_owned()))
        );
        assert!(check("/no/such/program -v", "1").is_err() && check("relay | /bin/sh", "2").is_ok());
    }
}
