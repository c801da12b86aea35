//! One run of an entrant: a program, in some language, that streams bytes between processes that it starts itself.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::net::Shutdown;

use pipemark_entrants::{ByteStream, Entrants, Prints, ProgramAnswer, Runnable, parse_answer, quoted};
use pipemark_host::child::error::RunError;
use pipemark_host::child::interrupt::Interrupt;
use pipemark_host::child::wait_readable;
use pipemark_model::{Entrant, EntrantStats, Sample, Warning};

use crate::runner::conditions::{Conditions, RunResult};
use crate::runner::end_process::Peer;
use crate::runner::keeper::Scratch;
use crate::runner::supervisor::{MAX_CAPTURED, ProgramResult, ProgramSpec, SUPERVISOR_VERB};

/// The time limit for a supervisor to end the processes it started.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(20);

/// The largest number of characters of an entrant's stderr that an error quotes.
const MAX_QUOTE: usize = 1000;

/// A stream with one altered byte, to check whether an entrant reads its bytes: the number of bytes, the block size,
/// and the position of that byte.
const PROOF_STREAM: (u64, u64, u64) = (3 * 4096 + 5, 4096, 2 * 4096 + 1234);

/// Makes one run of an entrant. Before the entrant's first run, checks that it reads the bytes.
///
/// # Errors
/// If the entrant can't run here, violated the contract, or reported a wrong result.
pub fn run(
    Entrant { language, program, block, verify, total, length, .. }: &Entrant,
    conditions: &Conditions<'_>,
    entrants: &Entrants,
    proven: &mut BTreeSet<String>,
) -> Result<RunResult, RunError> {
    let runnable = entrants.program(language, *program)?;
    match (&runnable.prints, verify.reads()) {
        (Some(prints), false) => return run_third_party(&runnable, prints, (block.0, total.0, *length), conditions),
        (None, true) => {}
        (Some(_), true) => {
            return Err(RunError::NotHere(
                "the program doesn't check the bytes that arrive; use --verify none".to_owned(),
            ));
        }
        (None, false) => {
            return Err(RunError::NotHere(
                "the program checks the bytes that arrive; use --verify full or xor".to_owned(),
            ));
        }
    }
    let stream =
        ByteStream { bytes: total.0, block: block.0, verify: *verify, seed: conditions.seed as u32, flip: None };
    if proven.insert(format!("{language} {program} {}", stream.pattern())) {
        let (bytes, block, flip) = PROOF_STREAM;
        let proof = ByteStream { bytes, block, flip: Some(flip), ..stream };
        run_once(&runnable, &proof, conditions).map_err(|error| match error {
            RunError::Unverified(reason) => RunError::Unverified(format!(
                "a byte was changed in transit, and the program did not detect that: {reason}"
            )),
            other => other,
        })?;
    }
    let (answer, outcome) = run_once(&runnable, &stream, conditions)?;
    let measured = sample(answer.runtime, runnable.compares, (answer.bytes, answer.ns), &outcome);
    let sample = Sample { capacity_after: answer.capacity, ..measured };
    Ok(RunResult { sample, notes: Vec::new() })
}

/// Runs a third-party benchmark, which may print its own figure. Its data isn't checked.
fn run_third_party(
    runnable: &Runnable,
    prints: &Prints,
    (block, total, length): (u64, u64, u32),
    conditions: &Conditions<'_>,
) -> Result<RunResult, RunError> {
    match prints {
        Prints::Rate { .. } if length > 0 => {
            Err(RunError::NotHere("the program runs no chain of processes; omit length".to_owned()))
        }
        Prints::Rate { unit, bytes } => {
            run_with_printed_rate(runnable, (unit, bytes.as_deref()), (block, total), conditions)
        }
        Prints::Custom(own) => {
            let (words, bytes) = own.command(block, total, length);
            let outcome = run_supervised(runnable, words, conditions)?;
            let (out, err) = (outcome.stdout.text.as_bytes(), outcome.stderr.text.as_bytes());
            let (ns, notes) = match &own.figure {
                Some(figure) => {
                    let ns = figure.nanoseconds([out, err], bytes);
                    (ns.map_err(|sentence| RunError::Failed(with_stderr(sentence, &outcome)))?, Vec::new())
                }
                None => (outcome.wall_ns.max(1), vec![Warning::StartIncluded]),
            };
            // The command of a suite's own program may be a whole script.
            let name = if own.optional { own.name.to_string() } else { runnable.name.clone() };
            let sample = Sample { real_ns: Some(ns), ..sample(name, false, (bytes, ns), &outcome) };
            Ok(RunResult { sample, notes })
        }
    }
}

fn run_with_printed_rate(
    runnable: &Runnable,
    (unit, bytes_word): (&str, Option<&str>),
    (block, total): (u64, u64),
    conditions: &Conditions<'_>,
) -> Result<RunResult, RunError> {
    let filled = |word: &String| word.replace("{block}", &block.to_string()).replace("{total}", &total.to_string());
    let words = runnable.words.iter().map(filled).collect();
    let outcome = run_supervised(runnable, words, conditions)?;
    let output = format!("{} {}", outcome.stdout.text, outcome.stderr.text);
    let per_second = match unit {
        "MB/sec" => 1e6,
        _ => return Err(RunError::Failed(format!("{unit} is not a known unit of a rate; use MB/sec"))),
    };
    let printed = |what: &str, word: &str| {
        number_before(&output, word).filter(|number| *number > 0.0).ok_or_else(|| {
            let sentence = format!("the program printed no {what} {word}: {}", quoted(&output, MAX_QUOTE));
            RunError::Failed(with_stderr(sentence, &outcome))
        })
    };
    let rate = printed("rate in", unit)?;
    let bytes = bytes_word.map_or(Ok(total as f64), |word| printed("number of", word))?;
    let ns = (bytes / (rate * per_second) * 1e9).max(1.0) as u64;
    let sample = sample(runnable.name.clone(), false, (bytes as u64, ns), &outcome);
    Ok(RunResult { sample, notes: Vec::new() })
}

/// The first number that is followed by `word`.
fn number_before(text: &str, word: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let numbers = words.windows(2).filter(|two| two[1] == word).filter_map(|two| two[0].parse::<f64>().ok());
    numbers.into_iter().find(|number| number.is_finite())
}

fn sample(runtime: String, compares: bool, (bytes, ns): (u64, u64), outcome: &ProgramResult) -> Sample {
    let used = outcome.used;
    Sample {
        bytes,
        ns,
        wall_ns: outcome.wall_ns,
        user_ns: used.user_ns,
        sys_ns: used.sys_ns,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        entrant: Some(EntrantStats { runtime, compares, max_rss: outcome.max_rss }),
        ..Sample::default()
    }
}

fn run_once(
    runnable: &Runnable,
    stream: &ByteStream,
    conditions: &Conditions<'_>,
) -> Result<(ProgramAnswer, ProgramResult), RunError> {
    let mut words = runnable.words.clone();
    for (option, value) in [
        ("--bytes", stream.bytes.to_string()),
        ("--block", stream.block.to_string()),
        ("--pattern", stream.pattern().to_owned()),
        ("--seed", stream.seed.to_string()),
    ] {
        words.extend([option.to_owned(), value]);
    }
    if let Some(flip) = stream.flip {
        words.extend(["--flip".to_owned(), flip.to_string()]);
    }
    let outcome = run_supervised(runnable, words, conditions)?;
    match parse_answer(&outcome.stdout.text, &runnable.name, stream, outcome.wall_ns) {
        Ok(answer) => Ok((answer, outcome)),
        Err(RunError::Unverified(sentence)) => Err(RunError::Unverified(with_stderr(sentence, &outcome))),
        Err(error) => Err(RunError::Failed(with_stderr(error.to_string(), &outcome))),
    }
}

fn run_supervised(
    runnable: &Runnable,
    words: Vec<String>,
    conditions: &Conditions<'_>,
) -> Result<ProgramResult, RunError> {
    let scratch = Scratch::new().map_err(RunError::failed("the program could not be run"))?;
    let spec = ProgramSpec {
        words,
        directory: runnable.directory.clone(),
        scratch: scratch.0.clone(),
        pin: conditions.cpus.map(|(cpu, _)| cpu),
    };
    let outcome = Supervisor::start(&spec)?.outcome(conditions.limit, conditions.interrupt)?;
    check_end(&outcome)?;
    Ok(outcome)
}

/// Checks that the entrant started, exited successfully, left no process behind, and didn't print too much.
fn check_end(outcome: &ProgramResult) -> Result<(), RunError> {
    let trouble = match (&outcome.unstarted, outcome.code, outcome.signal) {
        (Some(reason), _, _) => reason.clone(),
        (_, Some(0), _) if outcome.left_behind > 0 => {
            let left = outcome.left_behind;
            format!("it left {left} process{} behind", if left == 1 { "" } else { "es" })
        }
        (_, Some(0), _) if !outcome.stdout.is_complete() => {
            format!("it printed {} bytes; the limit is {}", outcome.stdout.bytes, MAX_CAPTURED)
        }
        (_, Some(0), _) => return Ok(()),
        (_, Some(code), _) => format!("it ended with status {code}"),
        (_, None, Some(signal)) => format!("it was ended by signal {signal}"),
        (_, None, None) => "its exit status is unknown".to_owned(),
    };
    Err(RunError::Failed(with_stderr(trouble, outcome)))
}

fn with_stderr(sentence: String, outcome: &ProgramResult) -> String {
    match outcome.stderr.text.trim() {
        "" => sentence,
        output => format!("{sentence}; its stderr: {}", quoted(output, MAX_QUOTE)),
    }
}

/// A supervisor, as seen by its parent. Dropping the value ends all processes that the supervisor started.
struct Supervisor(Peer);

impl Supervisor {
    fn start(spec: &ProgramSpec) -> Result<Supervisor, RunError> {
        // The entrant runs in the supervisor's process group.
        let peer = Peer::start("entrant's supervisor", SUPERVISOR_VERB, None, spec, &[]);
        peer.map(Supervisor).map_err(RunError::Failed)
    }

    /// Waits until the entrant has exited. At the time limit, ends the entrant.
    fn outcome(&mut self, limit: Duration, interrupt: &Interrupt) -> Result<ProgramResult, RunError> {
        if let Some(outcome) = self.take(Instant::now() + limit, Some(interrupt))? {
            return Ok(outcome);
        }
        self.0.hang_up(Shutdown::Write);
        let sentence = format!("it was aborted at its limit of {limit:?}; raise --limit if it needs longer");
        let outcome = self.wait_for_result().ok().flatten().unwrap_or_default();
        Err(RunError::Failed(with_stderr(sentence, &outcome)))
    }

    /// The supervisor's reply after it was told to stop; `None` at the deadline. The supervisor is resumed first,
    /// because the entrant may have suspended it.
    fn wait_for_result(&mut self) -> Result<Option<ProgramResult>, RunError> {
        let deadline = Instant::now() + CLEANUP_TIMEOUT;
        while Instant::now() < deadline {
            self.0.resume();
            if let Some(outcome) = self.take(Instant::now() + Duration::from_millis(100), None)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// The supervisor's reply; `None` if the deadline passes first.
    fn take(&mut self, deadline: Instant, interrupt: Option<&Interrupt>) -> Result<Option<ProgramResult>, RunError> {
        if wait_readable(&[self.0.socket()], deadline, interrupt)?.is_none() {
            return Ok(None);
        }
        self.0.receive().map(|(outcome, _)| Some(outcome)).map_err(RunError::Failed)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.0.hang_up(Shutdown::Write);
        // The supervisor closes its end of the socket when all processes that it started are gone.
        while matches!(self.wait_for_result(), Ok(Some(_))) {}
        // If the supervisor was killed, its children are still in its process group. Dropping the peer kills that
        // group.
    }
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn printed_numbers_are_found_by_the_word_after_them() {
        let text = "2 children, 0.500 s, 2048 bytes per read, 512 per write: 7168 bytes, 0.014 MB/sec";
        assert_eq!(number_before(text, "MB/sec"), Some(0.014));
        assert_eq!(number_before(text, "bytes,"), Some(7168.0));
        assert_eq!(number_before("inf MB/sec", "MB/sec").or(number_before(text, "KB/sec")), None);
    }
}
