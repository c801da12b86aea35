//! A progress line on the terminal during a measurement, and the parts that other progress lines share.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use unicode_width::UnicodeWidthChar;

use pipemark_model::neutral;

/// The time before the progress line appears. Shorter measurements show no progress line.
const MIN_ELAPSED: Duration = Duration::from_secs(1);
/// The width of the progress bar in characters.
const BAR_WIDTH: usize = 20;

/// The progress line. It is cleared when dropped.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    began: Instant,
    drawn: bool,
}

impl Progress {
    /// Creates a progress line. It shows nothing if `quiet`, or if standard error isn't a terminal that can clear a
    /// line.
    pub fn new(quiet: bool) -> Progress {
        Progress { terminal: !quiet && can_redraw(), began: Instant::now(), drawn: false }
    }

    /// Whether a progress line is shown.
    pub fn is_shown(&self) -> bool {
        self.terminal
    }

    /// Shows that `done` of about `total` runs are complete and that `trial` is next.
    pub fn update(&mut self, done: u64, total: u64, trial: &str) {
        let elapsed = self.began.elapsed();
        if elapsed >= MIN_ELAPSED {
            self.show(&sentence(elapsed, done, total.max(done), trial));
        }
    }

    /// Replaces the text of the line. A background job shows nothing.
    pub fn show(&mut self, text: &str) {
        if self.terminal && in_background() {
            // The shell's prompt has replaced the line.
            self.drawn = false;
        } else if self.terminal {
            let line = format!("\r\x1b[K{}", fitting(text, terminal_size().0));
            // One write(2), so that the output of other processes doesn't split the line.
            let _ = stderr().write_all(line.as_bytes());
            self.drawn = true;
        }
    }

    /// Clears the line, so that other code can print.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }

    /// Clears the line and ends the progress display.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether standard error is a terminal that can clear a line.
pub fn can_redraw() -> bool {
    stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

/// The columns and rows of the terminal.
pub fn terminal_size() -> (usize, usize) {
    // A terminal whose size was never set has none.
    let size = tcgetwinsize(stderr()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

/// The start of the text that leaves one of the columns free. In the last column, some terminals begin a new line.
pub fn fitting(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let too_far = text.char_indices().find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken >= columns
    });
    &text[..too_far.map_or(text.len(), |(at, _)| at)]
}

/// A bar of this width, filled by this share.
pub fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (8 * width) as f64) as usize;
    format!("{:width$}", "█".repeat(eighths / 8) + PARTS[eighths % 8])
}

/// Whether the terminal's shell has put this process in the background. A terminal that doesn't control this process
/// has no background jobs.
pub fn in_background() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|foreground| foreground != getpgrp())
}

/// The text of the line, such as `█████▌  11 of 40 runs, about 23 s left · pipe write`.
fn sentence(elapsed: Duration, done: u64, total: u64, trial: &str) -> String {
    let bar = bar(if total > 0 { done as f64 / total as f64 } else { 0.0 }, BAR_WIDTH);
    let left = match remaining(elapsed, done, total) {
        Some(left) => format!(", about {} s left", left.as_secs_f64().ceil()),
        None => String::new(),
    };
    format!("{bar} {done} of {total} runs{left} · {}", neutral(trial))
}

/// The estimated time left, from the mean time per run so far; `None` if no estimate is possible.
fn remaining(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64(total.saturating_sub(done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_percentage_and_time_left() {
        let text = sentence(Duration::from_millis(7_500), 10, 40, "write\x1b[2J read");
        assert_eq!(text, format!("{:20} 10 of 40 runs, about 23 s left · write\\u{{1b}}[2J read", "█████"));
        assert!(sentence(Duration::ZERO, 0, 0, "").contains("0 of 0 runs ·"));
    }

    #[test]
    fn time_left_is_estimated_from_completed_runs() {
        let ten = Duration::from_secs(10);
        assert_eq!(remaining(ten, 10, 40), Some(Duration::from_secs(30)));
        assert_eq!(remaining(ten, 0, 40), None);
        assert_eq!(remaining(ten, 50, 40), Some(Duration::ZERO));
    }
}
