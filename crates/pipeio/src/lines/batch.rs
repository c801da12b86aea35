//! A batch of lines, as a transform receives it.

use super::error::{Error, Failure};
use super::simd::Positions;

/// Consecutive whole lines, each with its terminator. Only the last line of the input may lack a terminator.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'b> {
    bytes: &'b [u8],
    terminator: u8,
    offset: u64,
    first_line: u64,
}

impl<'b> Batch<'b> {
    /// Creates a batch of `bytes` as the engine does at the start of an input. For testing a transform.
    pub fn new(bytes: &'b [u8], terminator: u8) -> Self {
        Self { bytes, terminator, offset: 0, first_line: 1 }
    }

    /// The same lines at another place in the input.
    pub(super) fn at(self, offset: u64, first_line: u64) -> Self {
        Self { offset, first_line, ..self }
    }

    /// All lines, with their terminators.
    #[inline]
    pub fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// The byte that ends a line.
    #[inline]
    pub fn terminator(&self) -> u8 {
        self.terminator
    }

    /// Where the batch starts, in bytes from the descriptor's position at the start of the run; if a
    /// [range](super::Engine::range) is read, from the start of the file.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of the batch's first line, counted from [`Engine::first_line`](super::Engine::first_line). Valid only
    /// if the transform requests numbers with [`numbered`](super::Transform::numbered): otherwise lines aren't counted.
    #[inline]
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// The lines, without terminators.
    #[inline]
    pub fn lines(&self) -> Lines<'b> {
        Lines { bytes: self.bytes, start: 0, ends: Positions::new(self.bytes, self.terminator) }
    }

    /// Creates the error of a transform that failed on `line`. `line` must be a line of this batch.
    pub fn failure(&self, line: &Line<'_>, source: Failure) -> Error {
        Error::Transform { offset: self.offset + line.start as u64, source }
    }
}

/// One line of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'b> {
    /// The line without its terminator.
    pub bytes: &'b [u8],
    /// Offset of the line in the batch, in bytes.
    pub start: usize,
    /// Whether the line ends with a terminator or with the input.
    pub end: LineEnd,
}

impl Line<'_> {
    /// Length of the line's terminator in bytes: 1, or 0 for a line that ends with the input.
    pub(super) fn terminator_len(&self) -> usize {
        match self.end {
            LineEnd::Terminator => 1,
            LineEnd::Input => 0,
        }
    }
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// With the terminator.
    Terminator,
    /// With the end of the input: only the last line.
    Input,
}

/// The lines of a [`Batch`].
#[derive(Debug, Clone)]
pub struct Lines<'b> {
    bytes: &'b [u8],
    start: usize,
    ends: Positions<'b>,
}

impl<'b> Iterator for Lines<'b> {
    type Item = Line<'b>;

    #[inline]
    fn next(&mut self) -> Option<Line<'b>> {
        let start = self.start;
        if let Some(end) = self.ends.next() {
            self.start = end + 1;
            return Some(Line { bytes: &self.bytes[start..end], start, end: LineEnd::Terminator });
        }
        if start == self.bytes.len() {
            return None;
        }
        self.start = self.bytes.len();
        Some(Line { bytes: &self.bytes[start..], start, end: LineEnd::Input })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(&[u8], LineEnd)> {
        Batch::new(bytes, b'\n').lines().map(|line| (line.bytes, line.end)).collect()
    }

    #[test]
    fn only_the_last_line_may_lack_its_terminator() {
        use LineEnd::{Input, Terminator};
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"\n\n"), [(&b""[..], Terminator), (b"", Terminator)]);
        assert_eq!(lines(b"a\0\r\n\nb"), [(&b"a\0\r"[..], Terminator), (b"", Terminator), (b"b", Input)]);
    }
}
