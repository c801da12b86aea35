//! A chain with a command as its source, as a shell would start `head -c N /dev/zero | cat | cat > /dev/null`. All its
//! processes are foreign programs, so its duration is comparable with the real time that time(1) reports.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use pipemark_host::child::Begin;
use pipemark_host::child::Child;
use pipemark_host::child::error::{RunError, explained};
use pipemark_model::{Chain, LinkKind, Nanos, Sample, StageStats, Stages, Volume};

use crate::link::{self, Handle};
use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::stage::{RunningStages, stage_stats};

/// The placeholder for the number of bytes in a source's command.
const TOTAL: &str = "{total}";

/// Makes one run. The stages are started before the source, so that the transfer begins when the source starts.
///
/// # Errors
/// If a process could not be started, failed, or timed out. All processes are then ended.
pub fn run(chain: &Chain, source: &Stages, conditions: &Conditions<'_>) -> Result<RunResult, RunError> {
    let Volume::Total(total) = chain.ends.volume else {
        return Err(RunError::Failed("a chain whose source is a command needs a total".to_owned()));
    };
    let link = link::of(LinkKind::Pipe).expect("pipes are a link");
    let connect = || link.connect(&chain.ends, Path::new("")).map_err(RunError::failed("no link"));
    let nowhere = || -> Result<OwnedFd, RunError> {
        let file = File::options().read(true).write(true).open("/dev/null");
        file.map(OwnedFd::from).map_err(RunError::failed("/dev/null"))
    };
    let begin = Instant::now();
    let deadline = begin + conditions.limit;
    let mut stages = RunningStages::none(chain.exit);
    let mut to = nowhere()?;
    if chain.length > 0 {
        let first = connect()?;
        to = fd(first.source)?;
        let mut input = first.sink;
        for position in 0..chain.length as usize {
            if conditions.interrupt.requested() {
                return Err(RunError::Interrupted);
            }
            if position + 1 == chain.length as usize {
                stages.add(chain, position, input, nowhere()?, conditions)?;
                break;
            }
            let next = connect()?;
            stages.add(chain, position, input, fd(next.source)?, conditions)?;
            input = next.sink;
        }
    }
    let words: Vec<String> =
        source.at(0).words().iter().map(|word| word.replace(TOTAL, &total.0.to_string())).collect();
    let name = format!("the source ({})", words.join(" "));
    let released = Instant::now();
    let cpu = conditions.cpus.map(|(source, _)| source);
    let mut process = Child::start_foreign(&*name, &words, (nowhere()?, to), cpu, Begin::AtOnce)
        .map_err(|error| RunError::Failed(format!("{name} could not be started: {}", explained(&error))))?;
    let too_long = || {
        let limit = conditions.limit;
        RunError::Failed(format!("the run was aborted at its limit of {limit:?}; raise --limit if it needs longer"))
    };
    if !process.wait(deadline, Some(conditions.interrupt))? {
        return Err(too_long());
    }
    let source = match process.succeeded() {
        Ok(usage) => stage_stats(&usage),
        // If the first stage fails, the source gets SIGPIPE. So the stage's failure is reported.
        Err(RunError::Failed(reason)) => return Err(RunError::Failed(stages.root_cause(reason))),
        Err(other) => return Err(other),
    };
    let stages = stages.finish(deadline, conditions.interrupt)?;
    let ended = Instant::now();
    let nanoseconds = |time: Duration| Nanos::from(time).0;
    let sum = |of: fn(&StageStats) -> u64| of(&source) + stages.iter().map(of).sum::<u64>();
    let real = nanoseconds(ended - begin);
    let sample = Sample {
        bytes: total.0,
        ns: nanoseconds(ended - released).max(1),
        real_ns: Some(real),
        wall_ns: real,
        user_ns: sum(|one| one.user_ns),
        sys_ns: sum(|one| one.sys_ns),
        voluntary_switches: sum(|one| one.voluntary_switches),
        involuntary_switches: sum(|one| one.involuntary_switches),
        stages,
        ..Sample::default()
    };
    Ok(RunResult { sample, notes: Vec::new() })
}

fn fd(handle: Handle) -> Result<OwnedFd, RunError> {
    match handle {
        Handle::Fd(fd) => Ok(fd),
        _ => Err(RunError::Failed("a chain needs links that have file descriptors".to_owned())),
    }
}
