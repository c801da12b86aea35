//! The trait that a user of the engine implements: a transform from lines to output.

use super::batch::{Batch, LineEnd};
use super::error::{Error, Failure};
use super::fate::{Fate, Flow};
use super::output::Output;

/// Turns lines into output.
///
/// Only [`line`](Self::line) is required. If calling it for each line is too slow, implement [`batch`](Self::batch),
/// which processes many lines at once.
///
/// If there are several threads, each has a clone of the transform, and each clone receives only some of the batches.
/// So a transform that carries state from line to line requires a single thread. Reusing buffers works with any number
/// of threads. A line's number comes from the batch.
///
/// ```
/// use pipeio::lines::{Failure, Fate, Output, Transform};
///
/// /// Adds up the numbers of a line.
/// #[derive(Clone)]
/// struct Sum;
///
/// impl Transform for Sum {
///     fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
///         let mut sum = 0i64;
///         for number in std::str::from_utf8(line)?.split_whitespace() {
///             sum += number.parse::<i64>()?;
///         }
///         output.extend(sum.to_string().as_bytes());
///         Ok(Fate::Keep)
///     }
/// }
/// # use pipeio::lines::Engine;
/// # let (reader, writer) = std::io::pipe()?;
/// # let (mut result, out) = std::io::pipe()?;
/// # std::io::Write::write_all(&mut &writer, b"1 2 3\n40 2\nsix\n")?;
/// # drop(writer);
/// let error = Engine::new().run(&reader, &out, &mut Sum).unwrap_err();
/// assert_eq!(error.to_string(), "the line at byte 11 of the input can't be transformed: invalid digit found in string");
/// # drop(out);
/// # let mut text = String::new();
/// # std::io::Read::read_to_string(&mut result, &mut text)?;
/// # assert_eq!(text, "6\n42\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Transform {
    /// Appends the output for `line` to `output`. Neither the line nor its output has a terminator. If the call fails,
    /// the bytes it appended are removed, and the output of earlier lines is written.
    ///
    /// # Errors
    ///
    /// Any error ends the run, and is returned as [`Error::Transform`].
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure>;

    /// Appends the output for a whole batch, including terminators.
    ///
    /// The default calls [`line`](Self::line) for each line, and ends the line's output with the terminator that the
    /// line had.
    ///
    /// ```
    /// use pipeio::lines::{Batch, Error, Failure, Fate, Flow, Output, Transform};
    ///
    /// /// Turns commas into tabs. No need to know where lines end.
    /// #[derive(Clone)]
    /// struct Tabs;
    ///
    /// impl Transform for Tabs {
    ///     fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
    ///         let spare = &mut output.spare(line.len())?[..line.len()];
    ///         for (to, from) in spare.iter_mut().zip(line) {
    ///             *to = if *from == b',' { b'\t' } else { *from };
    ///         }
    ///         output.advance(line.len());
    ///         Ok(Fate::Keep)
    ///     }
    ///
    ///     fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
    ///         match self.line(batch.bytes(), output) {
    ///             Ok(_) => Ok(Flow::Continue),
    ///             Err(failure) => Err(batch.failure(&batch.lines().next().expect("a line"), failure)),
    ///         }
    ///     }
    /// }
    /// # use pipeio::lines::Engine;
    /// # let (reader, writer) = std::io::pipe()?;
    /// # let (mut result, out) = std::io::pipe()?;
    /// # std::io::Write::write_all(&mut &writer, b"1,2,3\n40,2\n")?;
    /// # drop(writer);
    /// # Engine::new().run(&reader, &out, &mut Tabs)?;
    /// # drop(out);
    /// # let mut text = String::new();
    /// # std::io::Read::read_to_string(&mut result, &mut text)?;
    /// # assert_eq!(text, "1\t2\t3\n40\t2\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Create the error with [`Batch::failure`], which adds the line's offset. The output of earlier lines should stay
    /// in `output`.
    fn batch<'b>(&mut self, batch: &Batch<'b>, output: &mut Output<'b>) -> Result<Flow, Error> {
        line_by_line(self, batch, output)
    }

    /// Whether [`Batch::first_line`] is used. Counting lines costs a pass over each batch.
    fn numbered(&self) -> bool {
        false
    }
}

/// The default of [`Transform::batch`].
pub(super) fn line_by_line<'b, T: Transform + ?Sized>(
    transform: &mut T,
    batch: &Batch<'b>,
    output: &mut Output<'b>,
) -> Result<Flow, Error> {
    for line in batch.lines() {
        let mark = output.mark();
        let fate = transform.line(line.bytes, output);
        match fate {
            Ok(Fate::Keep | Fate::KeepAndStop) if line.end == LineEnd::Terminator => {
                output.push(batch.terminator());
            }
            Ok(Fate::Keep | Fate::KeepAndStop) => {}
            Ok(Fate::Drop | Fate::DropAndStop) | Err(_) => output.truncate(mark),
        }
        match fate {
            Ok(Fate::Keep | Fate::Drop) => {}
            Ok(Fate::KeepAndStop | Fate::DropAndStop) => return Ok(Flow::Stop),
            Err(failure) => return Err(batch.failure(&line, failure)),
        }
    }
    Ok(Flow::Continue)
}

/// Makes a transform from a function of one line.
///
/// ```
/// use pipeio::lines::{Engine, Fate, per_line};
///
/// let mut backwards = per_line(|line, output| {
///     let start = output.spare(line.len())?;
///     start[..line.len()].copy_from_slice(line);
///     start[..line.len()].reverse();
///     output.advance(line.len());
///     Ok(Fate::Keep)
/// });
/// # let (reader, writer) = std::io::pipe()?;
/// # let (mut result, out) = std::io::pipe()?;
/// # std::io::Write::write_all(&mut &writer, b"abc\n\nde")?;
/// # drop(writer);
/// Engine::new().run(&reader, &out, &mut backwards)?;
/// # drop(out);
/// # let mut text = String::new();
/// # std::io::Read::read_to_string(&mut result, &mut text)?;
/// # assert_eq!(text, "cba\n\ned");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn per_line<F>(function: F) -> PerLine<F>
where
    F: for<'b> FnMut(&'b [u8], &mut Output<'b>) -> Result<Fate, Failure>,
{
    PerLine(function)
}

/// The transform that [`per_line`] returns.
#[derive(Debug, Clone, Copy)]
pub struct PerLine<F>(F);

impl<F> Transform for PerLine<F>
where
    F: for<'b> FnMut(&'b [u8], &mut Output<'b>) -> Result<Fate, Failure>,
{
    #[inline]
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        (self.0)(line, output)
    }
}
