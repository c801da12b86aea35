//! The size of bursts, and whether a pipe can hold them. Pure: no clock and no I/O.

use pipemark_model::ByteSize;

use crate::figures::PipelineFigures;
use crate::pipe_figures::PipeFigures;

/// The largest pipe, unless an administrator has raised /proc/sys/fs/pipe-max-size.
/// Multiplied by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const LARGEST_PIPE: f64 = (1 << 20) as f64;

/// A burst clearly exceeds the largest pipe if it is larger by more than this factor. The sizes measured in two
/// samplings of a pipeline differ by less.
/// Multiplied by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const CLEAR_FACTOR: f64 = 4.0;

/// The size of a burst in bytes: what the writer would have written during one of its waits, or the reader would have
/// read during one of its waits, whichever is more. `None` if waits are too short to sample or no rate is known.
pub fn size(pipe: &PipeFigures) -> Option<f64> {
    let rate = pipe.bytes_per_second?;
    let moved = |stretch: Option<f64>, waits: f64| stretch.map(|seconds| rate / (1.0 - waits).max(0.05) * seconds);
    let (written, read) = (moved(pipe.stretch, pipe.writer_waits), moved(pipe.reader_stretch, pipe.reader_waits));
    written.into_iter().chain(read).reduce(f64::max)
}

/// The size of a burst in bytes, if it is clearly larger than any pipe of this machine.
pub fn beyond_pipes(figures: &PipelineFigures, pipe: &PipeFigures) -> Option<f64> {
    size(pipe).filter(|&size| size > CLEAR_FACTOR * largest(figures))
}

/// The size of a burst in bytes, if it exceeds the largest pipe by a factor of at most [`CLEAR_FACTOR`].
pub fn near_pipe_size(figures: &PipelineFigures, pipe: &PipeFigures) -> Option<f64> {
    size(pipe).filter(|&size| size > largest(figures) && size <= CLEAR_FACTOR * largest(figures))
}

fn largest(figures: &PipelineFigures) -> f64 {
    (figures.limits.largest_pipe as f64).max(LARGEST_PIPE)
}

/// A buffer that holds a burst with room to spare: a power of two, from 16 MiB to 4 GiB.
pub fn buffer(size: f64) -> ByteSize {
    let wanted = (size * 2.0).clamp((16 << 20) as f64, (1_u64 << 32) as f64) as u64;
    ByteSize(wanted.next_power_of_two())
}

/// Formats a size in whole MiB.
pub fn mebibytes(size: f64) -> String {
    ByteSize(((size / f64::from(1 << 20)).round() as u64).max(1) << 20).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Certainty, VerdictKind};
    use crate::verdict::tests::{line, stage};
    use crate::verdict::verdict;

    /// The reader takes a burst of some MiB, then works for a while without reading.
    fn bursts(stretch: Option<f64>, rate: f64) -> PipelineFigures {
        let mut figures = line(vec![stage(1, 55, 0, 45), stage(2, 60, 40, 0)]);
        figures.pipes[0].stretch = stretch;
        figures.pipes[0].bytes_per_second = Some(rate);
        figures
    }

    #[test]
    fn bursts_larger_than_any_pipe_need_another_buffer() {
        let found = verdict(&bursts(Some(0.8), 44e6));
        assert_eq!((found.kind, found.pipe), (VerdictKind::Burst, Some(1)), "{}", found.text);
        assert!(found.text.contains("61 MiB"), "{}", found.text);
        let advice = found.advice.join("\n");
        assert!(advice.contains("s1 | pipemark relay --buffer 128m | s2"), "{advice}");
        assert!(!advice.contains("tune") && !advice.contains("--capacity"), "{advice}");
    }

    #[test]
    fn no_buffer_is_put_where_exit_codes_or_pieces_count() {
        let command = |typed: &'static str| {
            let mut figures = bursts(Some(0.8), 44e6);
            (figures.typed, figures.shell) = (Some(typed.into()), "bash".to_owned());
            let found = verdict(&figures);
            found.remedies.iter().find(|one| one.id == "burst-relay-buffer").map(|one| one.command.clone()).unwrap()
        };
        assert_eq!(command("s1 | s2"), "s1 | pipemark relay --buffer 128m | s2");
        for typed in [
            "set -o pipefail; s1 | s2",
            "s1 | s2; echo ${PIPESTATUS[1]}",
            "pipemark() { :; }; s1 | s2",
            "s1 | s2 | dd count=9",
        ] {
            assert_eq!(command(typed), "", "{typed}");
        }
    }

    #[test]
    fn bursts_count_where_a_stage_is_busy_for_most_of_the_time_too() {
        let mut figures = bursts(Some(0.4), 44e6);
        figures.stages[1] = stage(2, 75, 25, 0);
        figures.pipes[0].reader_waits = 0.25;
        assert_eq!(verdict(&figures).kind, VerdictKind::Burst);
        // A buffer gains at most 1.2 times here.
        figures.stages[0] = stage(1, 83, 0, 17);
        figures.stages[1] = stage(2, 17, 83, 0);
        (figures.pipes[0].writer_waits, figures.pipes[0].reader_waits) = (0.17, 0.83);
        let found = verdict(&figures);
        assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(1)), "{}", found.text);
    }

    #[test]
    fn bursts_that_a_pipe_holds_need_a_larger_pipe() {
        for stretch in [None, Some(0.02)] {
            let found = verdict(&bursts(stretch, 20e6));
            assert_eq!(found.kind, VerdictKind::Pipe, "{}", found.text);
        }
    }

    #[test]
    fn bursts_of_about_the_largest_pipe_have_both_remedies() {
        let found = verdict(&bursts(Some(0.04), 20e6));
        assert_eq!((found.kind, found.sure), (VerdictKind::Pipe, Certainty::Unsure), "{}", found.text);
        let ids: Vec<&str> = found.remedies.iter().map(|remedy| remedy.id.as_str()).collect();
        assert_eq!(ids, ["pipe-capacity", "burst-relay-buffer"]);
    }

    #[test]
    fn a_buffer_has_room_to_spare() {
        assert_eq!(buffer(1e6), ByteSize(16 << 20));
        assert_eq!(buffer(61e6), ByteSize(128 << 20));
        assert_eq!(buffer(1e12), ByteSize(1 << 32));
    }
}
