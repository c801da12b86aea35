//! Parses and checks the answer that an entrant prints after a run.

use serde::Deserialize;

use pipemark_host::child::RunError;

use crate::byte_stream::{ByteStream, checksum};

/// The answer, as the contract (entrants/README.md) defines it: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProgramAnswer {
    /// The language's name.
    pub language: String,
    /// Compiler or runtime with its version.
    pub runtime: String,
    /// The number of bytes that the child counted.
    pub bytes: u64,
    /// The time from when the child was ready until its answer, in nanoseconds, by the entrant's clock.
    pub ns: u64,
    /// The checksum, 16 hexadecimal digits.
    pub checksum: String,
    /// The capacity of the pipe at the end, in bytes; `None` if the entrant doesn't report it.
    pub capacity: Option<u64>,
}

/// The longest quotation of an answer, in characters.
const MAX_QUOTE: usize = 200;
/// The longest description of a runtime, in characters.
const MAX_RUNTIME: usize = 200;

/// Parses `output`, and checks that it is one line that follows the contract, comes from the language `name`, agrees
/// with `stream`, and claims no more time than `wall_ns`.
///
/// # Errors
/// The first mistake: `Failed` if the answer breaks the contract, `Unverified` if its number of bytes or its checksum
/// differs from the stream's.
pub fn parse_answer(output: &str, name: &str, stream: &ByteStream, wall_ns: u64) -> Result<ProgramAnswer, RunError> {
    let broken = |sentence: String| Err(RunError::Failed(sentence));
    let quoted = |text: &str| format!("'{}'", quoted(text.trim(), MAX_QUOTE));
    if output.trim().is_empty() {
        return broken("it succeeded but printed no answer".to_owned());
    }
    let mut lines = output.lines();
    let line = lines.next().unwrap_or_default();
    let more = lines.count();
    if more > 0 {
        return broken(format!("it printed {} lines instead of one: {}", more + 1, quoted(output)));
    }
    let answer: ProgramAnswer = match serde_json::from_str(line) {
        Ok(answer) => answer,
        Err(error) => return broken(format!("its answer breaks the contract ({error}): {}", quoted(line))),
    };
    if answer.language != name {
        return broken(format!("it reports that it is {}, not {name}", quoted(&answer.language)));
    }
    if answer.runtime.trim().is_empty() || answer.runtime.chars().count() > MAX_RUNTIME {
        return broken("the name of its runtime is missing or too long".to_owned());
    }
    if answer.capacity == Some(0) {
        return broken("it reports a pipe capacity of 0".to_owned());
    }
    if answer.bytes != stream.bytes {
        return Err(RunError::Unverified(format!("it counted {} of {} bytes", answer.bytes, stream.bytes)));
    }
    let expected = format!("{:016x}", checksum(stream));
    if answer.checksum != expected {
        return Err(RunError::Unverified(format!(
            "it computed a checksum other than {expected}: {}",
            quoted(&answer.checksum)
        )));
    }
    if answer.ns == 0 || answer.ns > wall_ns {
        return broken(format!("it reports {} ns, but ran for only {wall_ns} ns", answer.ns));
    }
    Ok(answer)
}

/// The beginning of a program's output, at most `most` characters.
pub fn quoted(text: &str, most: usize) -> String {
    let mut start: String = text.chars().take(most).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use pipemark_model::Verify;

    use super::*;

    #[test]
    fn only_a_line_that_follows_the_contract_is_an_answer() {
        let stream = ByteStream { bytes: 0, block: 1, verify: Verify::Full, seed: 0, flip: None };
        let line = r#"{"language": "C", "runtime": "gcc 12", "bytes": 0, "ns": 5, "checksum": "0000000000000001", "capacity": null}"#;
        let parse_answer = |text: &str| parse_answer(text, "C", &stream, 10);
        let answer = parse_answer(&format!("{line}\n")).unwrap();
        assert_eq!((answer.ns, answer.capacity), (5, None));
        for (from, to, words) in [
            (line, "", "printed no answer"),
            (line, "\n", "printed no answer"),
            ("{\"l", "hello\n{\"l", "2 lines"),
            ("null}", "null}\nbye", "2 lines"),
            ("null}", "null", "breaks the contract"),
            ("\"ns\": 5, ", "", "missing field `ns`"),
            ("\"C\"", "\"D\"", "'D', not C"),
            ("gcc 12", "", "its runtime"),
            ("null", "0", "capacity of 0"),
            ("\"ns\": 5", "\"ns\": 0", "reports 0 ns"),
            ("\"ns\": 5", "\"ns\": 11", "ran for only 10 ns"),
            ("\"ns\": 5", "\"ns\": -1", "breaks the contract"),
        ] {
            match parse_answer(&line.replace(from, to)) {
                Err(RunError::Failed(sentence)) => assert!(sentence.contains(words), "{sentence}"),
                other => panic!("{to}: {other:?}"),
            }
        }
        for (from, to, words) in [
            ("\"bytes\": 0", "\"bytes\": 7", "it counted 7"),
            ("00001", "00002", "it computed a checksum other than 0000000000000001"),
        ] {
            match parse_answer(&line.replace(from, to)) {
                Err(RunError::Unverified(sentence)) => assert!(sentence.contains(words), "{sentence}"),
                other => panic!("{to}: {other:?}"),
            }
        }
        assert!(matches!(parse_answer(&"x".repeat(5000)), Err(RunError::Failed(sentence)) if sentence.len() < 400));
    }
}
