//! The live screen of a pipeline, drawn on the terminal of standard error.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write, stderr};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use pipemark_causes::PipelineReport;
use pipemark_model::neutral;
use pipemark_show::{Sheet, Terminal};

use crate::sheet;

/// Switches to the alternate screen, hides the cursor and turns line wrap off.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Undoes `ENTER`.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Columns needed to show all columns of a stage.
const MIN_WIDE: usize = 78;

/// What the user requested with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPress {
    /// Quit.
    Quit,
    /// Quit, by Ctrl-C.
    Interrupt,
    /// Show another pipeline.
    Next,
}

/// How a frame is drawn.
#[derive(Debug, Clone, Copy, Default)]
struct ScreenOptions {
    busiest_first: bool,
    frozen: bool,
}

/// The screen. Dropping it restores the terminal.
pub struct Screen {
    terminal: Terminal,
    keyboard: File,
    before: Termios,
    options: ScreenOptions,
    /// The last report, and the busy share of each stage over time; `None` before the first report.
    last: Option<(PipelineReport, Vec<Vec<f64>>)>,
}

impl Screen {
    /// Takes over the terminal.
    ///
    /// # Errors
    /// When there is no terminal.
    pub fn open(terminal: Terminal) -> io::Result<Screen> {
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).expect("an open flag fits an int");
        let keyboard = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open("/dev/tty")?;
        let before = tcgetattr(&keyboard)?;
        let mut raw = before.clone();
        raw.make_raw();
        // Keys typed before the screen opened are kept.
        tcsetattr(&keyboard, OptionalActions::Now, &raw)?;
        let screen = Screen { terminal, keyboard, before, options: ScreenOptions::default(), last: None };
        stderr().write_all(ENTER.as_bytes())?;
        Ok(screen)
    }

    /// Draws the report, or the frozen report while the screen is frozen.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, report: &PipelineReport, history: Vec<Vec<f64>>) -> io::Result<()> {
        let size = tcgetwinsize(&self.keyboard)?;
        let [width, height] = known_size([size.ws_col, size.ws_row]);
        let terminal = Terminal { width, ..self.terminal };
        if !self.options.frozen || self.last.is_none() {
            self.last = Some((report.clone(), history));
        }
        let Some((report, history)) = &self.last else { return Ok(()) };
        let lines = frame(report, history, self.options, terminal, height);
        // Each line is cleared before it is written. Clearing it afterwards would erase the last character of a line as
        // wide as the screen.
        write!(stderr(), "\x1b[H\x1b[K{}", lines.join("\r\n\x1b[K"))?;
        stderr().flush()
    }

    /// Returns the key that was pressed; `None` if none was, or if the key concerned only the screen.
    pub fn key(&mut self) -> Option<KeyPress> {
        let mut pressed = [0; 64];
        let count = self.keyboard.read(&mut pressed).unwrap_or(0);
        self.options.take(&pressed[..count])
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = stderr().write_all(LEAVE.as_bytes());
        let _ = tcsetattr(&self.keyboard, OptionalActions::Flush, &self.before);
    }
}

impl ScreenOptions {
    fn take(&mut self, pressed: &[u8]) -> Option<KeyPress> {
        const ESCAPE: u8 = 0x1b;
        if let [ESCAPE, _, ..] = pressed {
            // An arrow, or another key without a function.
            return None;
        }
        for key in pressed {
            match key {
                0x03 => return Some(KeyPress::Interrupt),
                b'q' | &ESCAPE => return Some(KeyPress::Quit),
                b'n' => return Some(KeyPress::Next),
                b's' => self.busiest_first = !self.busiest_first,
                b' ' | b'f' => self.frozen = !self.frozen,
                _ => {}
            }
        }
        None
    }
}

/// The terminal's columns and lines. A terminal that doesn't know its size, such as a serial line or a new
/// pseudo-terminal, counts as 80 by 24.
fn known_size([columns, lines]: [u16; 2]) -> [usize; 2] {
    let or = |own: u16, common: usize| if own == 0 { common } else { own.into() };
    [or(columns, 80), or(lines, 24)]
}

/// The lines of a frame, as many as fit: the header, the stages, the verdict, the keys.
fn frame(
    report: &PipelineReport,
    history: &[Vec<f64>],
    options: ScreenOptions,
    terminal: Terminal,
    height: usize,
) -> Vec<String> {
    let about = format!(
        "{:.0} samples/s · pipemark {:.1} % CPU · {}",
        report.samples_per_second,
        report.own_cpu * 100.0,
        neutral(&report.pipeline)
    );
    // A longer line is cut, because the terminal would write the rest over its last column.
    let cut = |line: String| line.chars().take(terminal.width).collect::<String>();
    let rendered = |sheet: Sheet| terminal.render(&sheet).lines().map(str::to_owned).collect::<Vec<_>>();
    let screen = |narrow| sheet::screen(report, history, options.busiest_first, narrow).map(rendered);
    let [mut stages, mut verdict] = screen(terminal.width < MIN_WIDE);
    verdict.truncate(height / 2);
    let room = height.saturating_sub(verdict.len() + 3);
    if stages.len() > room {
        [stages, _] = screen(true);
    }
    if stages.len() > room {
        let more = stages.len() + 1 - room;
        stages.truncate(room.saturating_sub(1));
        stages.push(cut(format!("… {more} more lines")));
    }
    stages.resize(room + 1, String::new());
    let frozen = if options.frozen { "frozen · " } else { "" };
    let keys = cut(format!("{frozen}q quit   space freeze   s sort   n next pipeline"));
    let mut lines = [vec![format!("\x1b[7m{}\x1b[0m", cut(about))], stages, verdict].concat();
    lines.truncate(height.saturating_sub(1));
    lines.push(keys);
    lines
}

#[cfg(test)]
mod tests;
