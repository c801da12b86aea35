//! How far the measurement is, on standard error, for a person who waits: nothing when it is not a terminal, when asked
//! to be quiet, or within the first second.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::pieces::Passed;
use crate::model::{Throughput, Unit, neutral};

/// Whoever waits for less than this does not want to be told.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line that tells how far the work is. It is cleared when finished or dropped.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    began: Instant,
    /// Where the line goes once it is worth showing.
    shown: Option<ProgressDrawTarget>,
    /// Whether what passes in a run is printed, and the trial that was announced.
    lines: Option<String>,
}

impl Progress {
    /// For work of about `runs` runs, which may turn out to be more or fewer.
    pub fn new(quiet: bool, runs: u64) -> Progress {
        let wanted = !quiet && std::io::stderr().is_terminal();
        Progress::on(wanted.then(ProgressDrawTarget::stderr), runs, Instant::now())
    }

    fn on(target: Option<ProgressDrawTarget>, runs: u64, began: Instant) -> Progress {
        let bar = target.is_some().then(|| {
            let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template("{bar:20.cyan} {wide_msg}").expect("the template is constant");
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            bar
        });
        Progress { bar, began, shown: target, lines: None }
    }

    /// What passes in each run, printed line by line, as a result.
    pub fn in_lines() -> Progress {
        let mut progress = Progress::new(true, 0);
        progress.lines = Some(String::new());
        progress
    }

    /// Tells what has passed in the run.
    pub fn passed(&mut self, passed: Passed) {
        if self.lines.is_none() {
            return;
        }
        let Passed { from_ns, to_ns, bytes, switches } = passed;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let rate = Throughput(bytes as f64 / seconds(to_ns - from_ns).max(1e-9));
        let switches = switches.map_or_else(String::new, |count| format!("  {count:>7} switches"));
        let (from, to, size) = (seconds(from_ns), seconds(to_ns), Unit::Bytes.brief(bytes as f64));
        // Who reads it may be gone; the run goes on.
        let _ = writeln!(std::io::stdout(), "{from:8.3}-{to:<8.3} s {size:>7}B {:>12}{switches}", rate.to_string());
    }

    /// `done` of about `total` runs are made and `trial` is next. `left` is how long it takes from here, where the
    /// caller knows better than by the runs made so far.
    pub fn update(&mut self, done: u64, total: u64, left: Option<Duration>, trial: &str) {
        if let Some(announced) = self.lines.as_mut().filter(|announced| *announced != trial) {
            trial.clone_into(announced);
            let _ = writeln!(std::io::stdout(), "{}", neutral(trial));
        }
        let Some(bar) = &self.bar else { return };
        let elapsed = self.began.elapsed();
        if elapsed < PATIENCE {
            return;
        }
        let left = left.or_else(|| remaining(elapsed, done, total));
        let left = left.map_or_else(String::new, |left| format!(", about {} s left", left.as_secs_f64().ceil()));
        if let Some(target) = self.shown.take() {
            bar.set_draw_target(target);
        }
        bar.set_length(total.max(done));
        bar.set_position(done);
        bar.set_message(format!("{done} of {total} runs{left} · {}", neutral(trial)));
    }

    /// Clears the line.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// As long per run as until now.
fn remaining(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64(total.saturating_sub(done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that remembers what was written to it.
    #[derive(Debug, Clone, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn on_paper(began: Instant) -> (Paper, Progress) {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        (paper, Progress::on(Some(target), 40, began))
    }

    #[test]
    fn says_how_far_it_is_and_how_long_it_takes() {
        let (paper, mut progress) = on_paper(Instant::now().checked_sub(Duration::from_secs(10)).unwrap());
        progress.update(10, 40, Some(Duration::from_millis(22_500)), "write\x1b[2J read");
        let text = paper.0.lock().unwrap().clone();
        assert!(text.contains("10 of 40 runs, about 23 s left"), "{text:?}");
        assert!(text.contains("write\\u{1b}[2J read"), "{text:?}");
        progress.finish();
        assert_eq!(*paper.0.lock().unwrap(), "", "the line is cleared");
    }

    #[test]
    fn says_nothing_within_the_first_second() {
        let (paper, mut progress) = on_paper(Instant::now() + Duration::from_secs(3600));
        progress.update(10, 40, None, "write read");
        assert_eq!(*paper.0.lock().unwrap(), "");
    }

    #[test]
    fn what_is_left_goes_by_the_runs_made() {
        let ten = Duration::from_secs(10);
        assert_eq!(remaining(ten, 10, 40), Some(Duration::from_secs(30)));
        assert_eq!(remaining(ten, 0, 40), None);
        assert_eq!(remaining(ten, 50, 40), Some(Duration::ZERO));
    }
}
