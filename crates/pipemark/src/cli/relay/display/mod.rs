//! `relay --progress`: shows how many bytes the relay's reader has taken. On a terminal each relay has one line that is
//! redrawn; other outputs get a line for each interval.

mod counts;
mod options;
mod state;
mod terminal;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use pipeio::relay::RelayHandle;
use pipemark_console::progress::terminal_size;
use pipemark_console::say;
use pipemark_sys::own_descriptors;

use counts::{Counts, Rates};
pub use options::{DisplayOptions, ProgressForm};
use state::State;
use terminal::TerminalLine;

/// How long the end of the relay waits for the last line of progress, if standard error doesn't accept it. A signal
/// waits as long for all messages.
pub(super) const REPORT_TIME: Duration = Duration::from_secs(1);

/// How long the last line waits until the reader has taken everything.
const DELIVERY_TIME: Duration = Duration::from_secs(1);

/// How often the display checks whether the first byte has passed.
const WAIT_INTERVAL: Duration = Duration::from_millis(50);

/// A thread that shows progress until it is dropped.
pub struct Display {
    end: Option<Sender<()>>,
    /// Disconnected once the thread has printed its last line.
    printed: Receiver<()>,
}

impl Display {
    /// Starts the thread.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(handle: &RelayHandle, options: DisplayOptions) -> io::Result<Display> {
        let ((end, ended), (printing, printed)) = (channel(), channel());
        let handle = handle.clone();
        own_descriptors::spawn(move || {
            show(&handle, &options, &ended);
            drop(printing);
        })?;
        Ok(Display { end: Some(end), printed })
    }

    /// Prints the last line once the reader has taken everything, but after a second at the latest.
    pub fn finish(self) {
        if let Some(end) = &self.end {
            let _ = end.send(());
        }
        let _ = self.printed.recv_timeout(DELIVERY_TIME + REPORT_TIME);
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.end.take();
        // Not forever: if standard error accepts nothing, the relay must still end, so that its reader gets the end of
        // the output.
        let _ = self.printed.recv_timeout(REPORT_TIME);
    }
}

fn show(handle: &RelayHandle, options: &DisplayOptions, ended: &Receiver<()>) {
    let mut terminal = match options.form {
        ProgressForm::Text => TerminalLine::new(),
        ProgressForm::Json => None,
    };
    let counts = || Counts::now(handle, options.buffer.is_some());
    let mut end = Err(RecvTimeoutError::Timeout);
    while options.wait && handle.read() == 0 && end == Err(RecvTimeoutError::Timeout) {
        end = ended.recv_timeout(WAIT_INTERVAL);
    }
    let begin = Instant::now();
    let mut rates = Rates::new(Counts { at: begin, ..Counts::default() }, options.average);
    let mut tick = 0;
    loop {
        // Updates that fell into a time when this process was stopped are omitted.
        let passed = begin.elapsed().div_duration_f64(options.interval) as u32;
        tick = passed.max(tick) + 1;
        let next = begin + options.interval * tick;
        if end == Err(RecvTimeoutError::Timeout) {
            end = ended.recv_timeout(next.saturating_duration_since(Instant::now()));
        }
        let over = end != Err(RecvTimeoutError::Timeout);
        if end == Ok(()) {
            wait_for_delivery(counts);
        }
        let rates = rates.next(counts());
        let state = State { elapsed: rates.last.at - begin, rates, options, over };
        match (&mut terminal, options.form) {
            (_, ProgressForm::Json) => say(state.json()),
            (None, ProgressForm::Text) => say(state.text()),
            (Some(terminal), _) if over => terminal.finish(&state.text()),
            (Some(terminal), _) => terminal.show(&state.text_with_bar(terminal_size().0)),
        }
        if over {
            return;
        }
    }
}

/// Waits until the reader has taken all bytes written, or has left.
fn wait_for_delivery(counts: impl Fn() -> Counts) {
    let (begin, mut pause) = (Instant::now(), Duration::from_micros(100));
    while counts().unread() > 0 && !counts::reader_left() && begin.elapsed() < DELIVERY_TIME {
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}
