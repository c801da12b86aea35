//! Batches of lines. A batch is the whole lines of one buffer of input, so it needs no larger buffer than a line does.

use std::io;

use crate::header::{header, spaces};

/// Splits buffers of input into batches, and carries the start of a line to the next buffer.
#[derive(Default)]
pub struct Batches {
    carried: Vec<u8>,
}

impl Batches {
    /// The whole lines of the carried bytes and `buffer`, newlines included; `None` if no line ends in `buffer`.
    ///
    /// # Errors
    /// If a line isn't UTF-8, as with `lines()`.
    pub fn next(&mut self, buffer: &[u8]) -> io::Result<Option<String>> {
        let Some(last) = buffer.iter().rposition(|&byte| byte == b'\n') else {
            self.carried.extend_from_slice(buffer);
            return Ok(None);
        };
        let mut batch = std::mem::take(&mut self.carried);
        batch.extend_from_slice(&buffer[..=last]);
        self.carried.extend_from_slice(&buffer[last + 1..]);
        String::from_utf8(batch).map(Some).map_err(io::Error::other)
    }

    /// The last line, if the input ends without a newline.
    ///
    /// # Errors
    /// If the line isn't UTF-8.
    pub fn rest(&mut self) -> io::Result<Option<String>> {
        let rest = std::mem::take(&mut self.carried);
        if rest.is_empty() { Ok(None) } else { String::from_utf8(rest).map(Some).map_err(io::Error::other) }
    }
}

/// The output for all lines of a batch.
pub fn transform(batch: &str) -> Vec<u8> {
    let mut output = Vec::with_capacity(2 * batch.len());
    for line in batch.lines() {
        output.extend_from_slice(header(spaces(line)).as_bytes());
        output.extend_from_slice(line.as_bytes());
        output.push(b'\n');
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_carried_across_buffers() {
        for size in 1..12 {
            let text = b"a b\n\nlonger line\nend";
            let mut batches = Batches::default();
            let mut output = Vec::new();
            for buffer in text.chunks(size) {
                output.extend(batches.next(buffer).unwrap().map(|batch| transform(&batch)).unwrap_or_default());
            }
            output.extend(batches.rest().unwrap().map(|batch| transform(&batch)).unwrap_or_default());
            let expected = "[spaces: 1]a b\n[spaces: 0]\n[spaces: 1]longer line\n[spaces: 0]end\n";
            assert_eq!(String::from_utf8(output).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn wrong_utf_8_is_an_error() {
        assert!(Batches::default().next(b"\xff\n").is_err());
    }
}
