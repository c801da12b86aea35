//! Checks a filter before its first run. The filter's output for a fixed text must equal, byte for byte, the output of
//! a reference implementation that shares no code with the filters.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use pipemark_entrants::{FilterTask, quoted};
use pipemark_host::child::error::{RunError, explained};
use pipemark_host::child::{Begin, Child};
use pipemark_model::Filter;

use crate::runner::conditions::Conditions;
use crate::runner::feed::{LOG, LONG_LINE, SHORT_LINE, reopen, unnamed_file};

/// Number of bytes of log at the end of the text: several times what any filter processes in one batch.
const LOG_PART: usize = 3 << 20;

/// The number of bytes by which a filter's output may exceed the expected output before the filter is stopped.
const SLACK: u64 = 64 << 10;

/// The largest number of characters of a wrong line that are quoted.
const MAX_QUOTE: usize = 60;

/// Runs the filter on the text and checks its output.
///
/// # Errors
/// If the output is wrong, the filter failed, or it could not be run.
pub fn check_filter(
    filter: &Filter,
    does: FilterTask,
    words: &[String],
    conditions: &Conditions<'_>,
) -> Result<(), RunError> {
    let failed = |error: io::Error| {
        RunError::Failed(format!("the output of {filter} could not be checked: {}", explained(&error)))
    };
    let text = text();
    let (mut running, file) = start(filter, words, &text).map_err(failed)?;
    if !running.wait(Instant::now() + conditions.limit, Some(conditions.interrupt))? {
        let (bytes, limit) = (text.len(), conditions.limit);
        return Err(RunError::Failed(format!("{filter} did not transform {bytes} bytes within {limit:?}")));
    }
    running.succeeded()?;
    let output = read_to_offset(file).map_err(failed)?;
    let fault = match does {
        FilterTask::Count => {
            let printed = String::from_utf8_lossy(&output);
            (!printed.contains(&format!("({} bytes", text.len()))).then(|| format!("it printed '{}'", printed.trim()))
        }
        FilterTask::Copy => difference(&output, &text),
        FilterTask::Transform => difference(&output, &expected(&text)),
    };
    fault.map_or(Ok(()), |fault| Err(RunError::Unverified(format!("the output of {filter} is wrong: {fault}"))))
}

/// Starts the filter with the text as its input file. The size of its output file is limited.
fn start(filter: &Filter, words: &[String], text: &[u8]) -> io::Result<(Child, File)> {
    let mut input = unnamed_file("text")?;
    input.write_all(text)?;
    let output = File::from(memfd_create("output", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    output.set_len(2 * text.len() as u64 + SLACK)?;
    fcntl_add_seals(&output, SealFlags::GROW | SealFlags::SHRINK)?;
    let streams = (reopen(&input)?.into(), output.try_clone()?.into());
    Ok((Child::start_foreign(filter.as_str(), words, streams, None, Begin::AtOnce)?, output))
}

/// The text: lines with 0 to 12 spaces in all positions, empty lines, the lines of the feeds, and a log. All characters
/// are ASCII and every line is terminated, because tools differ on any other text.
fn text() -> Vec<u8> {
    let mut text = Vec::new();
    for spaces in 0..=12 {
        let blank = " ".repeat(spaces);
        text.extend(format!("{blank}\n{blank}x\nx{blank}\nx{blank}y\n{}\n", vec!["x"; spaces + 1].join(" ")).bytes());
        text.extend(format!("{}{blank}{}\n\n", "long".repeat(50), "er".repeat(900)).bytes());
    }
    text.extend(format!("{SHORT_LINE}\n").repeat(1000).bytes());
    text.extend(format!("{LONG_LINE}\n").repeat(1000).bytes());
    let mut log = LOG.stream();
    let end = text.len() + LOG_PART;
    while text.len() < end {
        text.extend(log.next(usize::MAX));
    }
    text
}

/// The expected output for the text.
pub fn expected(text: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(text.len() * 2);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        match line.iter().filter(|&&byte| byte == b' ').count() {
            7.. => output.extend(b"[spaces: >6]"),
            count => output.extend(format!("[spaces: {count}]").bytes()),
        }
        output.extend(line);
    }
    output
}

/// Describes where and how two outputs differ; `None` if they are equal.
fn difference(output: &[u8], expected: &[u8]) -> Option<String> {
    if output == expected {
        return None;
    }
    let at = output.iter().zip(expected).take_while(|(one, other)| one == other).count();
    let start = expected[..at.min(expected.len())].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let number = expected[..start].iter().filter(|&&byte| byte == b'\n').count() + 1;
    let line = |bytes: &[u8]| {
        let rest = &bytes[start.min(bytes.len())..];
        quoted(&String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or_default()), MAX_QUOTE)
    };
    Some(format!("line {number} is '{}' instead of '{}'", line(output), line(expected)))
}

/// The contents of a file up to its current offset.
fn read_to_offset(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.stream_position()?).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_output_matches_the_document() {
        let text = b"hello world\n\n      \n       \nx\n";
        let output = b"[spaces: 1]hello world\n[spaces: 0]\n[spaces: 6]      \n[spaces: >6]       \n[spaces: 0]x\n";
        assert_eq!(expected(text).escape_ascii().to_string(), output.escape_ascii().to_string());
    }

    #[test]
    fn a_difference_is_shown_in_its_line() {
        assert_eq!(difference(b"a\nb\n", b"a\nb\n"), None);
        assert_eq!(difference(b"a\nc\n", b"a\nb\n").unwrap(), "line 2 is 'c' instead of 'b'");
        assert_eq!(difference(b"a\n", b"a\nb\n").unwrap(), "line 2 is '' instead of 'b'");
        assert_eq!(difference(b"a\nb\nc\n", b"a\nb\n").unwrap(), "line 3 is 'c' instead of ''");
    }
}
