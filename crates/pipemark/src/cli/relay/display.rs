//! `relay --progress`: shows how many bytes the relay's reader has taken. A terminal has one line that is redrawn;
//! other outputs get a line for each interval.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pipeio::relay::{RelayHandle, unread};
use pipemark_console::{Progress, say};
use pipemark_model::{ByteSize, Nanos, Throughput};
use pipemark_sys::own_descriptors;

/// How progress is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressForm {
    /// One line that is redrawn on a terminal; a line for each interval elsewhere.
    Text,
    /// A JSON object for each interval.
    Json,
}

/// How long the end of the relay waits for the last line of progress, if standard error doesn't accept it. A signal
/// waits as long for all messages.
pub(super) const REPORT_TIME: Duration = Duration::from_secs(1);

/// Options of the display.
#[derive(Debug, Clone)]
pub struct DisplayOptions {
    /// What lines begin with; `None` for nothing.
    pub name: Option<String>,
    pub form: ProgressForm,
    pub interval: Duration,
    /// Total bytes expected; `None` if unknown.
    pub size: Option<u64>,
    /// The size of the buffer, in bytes; `None` without a buffer.
    pub buffer: Option<u64>,
}

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
    let mut line = Progress::new(options.form == ProgressForm::Json);
    let counts = || Counts::now(handle, options.buffer.is_some());
    let mut pace = Rates::new(counts());
    let begin = pace.first().at;
    let mut tick = 0;
    loop {
        // Updates that fell into a time when this process was stopped are omitted.
        let passed = begin.elapsed().div_duration_f64(options.interval) as u32;
        tick = passed.max(tick) + 1;
        let next = begin + options.interval * tick;
        let over = ended.recv_timeout(next.saturating_duration_since(Instant::now())) != Err(RecvTimeoutError::Timeout);
        let rates = pace.next(counts());
        let counts = pace.last();
        let state = State { elapsed: counts.at - begin, rates, counts, options, over };
        match options.form {
            ProgressForm::Json => say(state.json()),
            ProgressForm::Text if line.is_shown() && !over => line.show(&state.text()),
            ProgressForm::Text => {
                line.clear();
                say(state.text());
            }
        }
        if over {
            return;
        }
    }
}

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Counts {
    at: Instant,
    read: u64,
    written: u64,
    /// Bytes that the reader has taken; `None` if the kernel doesn't report them.
    delivered: Option<u64>,
}

impl Counts {
    fn now(handle: &RelayHandle, has_buffer: bool) -> Counts {
        // `written` is read before the fill level. Otherwise, bytes written between the two calls would count as
        // delivered although they are still in the pipe.
        let written = handle.written();
        let held = unread(rustix::stdio::stdout());
        let read = if has_buffer { handle.read() } else { written };
        Counts { at: Instant::now(), read, written, delivered: held.map(|held| written.saturating_sub(held)) }
    }

    fn done(&self) -> u64 {
        self.delivered.unwrap_or(self.written)
    }
}

/// The counts of the last ten intervals. The rates are those of the last interval. The time left is computed from all
/// ten.
struct Rates(VecDeque<Counts>);

impl Rates {
    const INTERVALS: usize = 10;

    fn new(first: Counts) -> Rates {
        Rates(VecDeque::from([first]))
    }

    fn first(&self) -> Counts {
        self.0[0]
    }

    fn last(&self) -> Counts {
        self.0[self.0.len() - 1]
    }

    /// Adds counts and returns the input rate, the output rate and the mean output rate, in bytes per second.
    fn next(&mut self, mut counts: Counts) -> [f64; 3] {
        let (first, last) = (self.first(), self.last());
        // The kernel's figure for a socket is rough, so `delivered` is kept from decreasing.
        counts.delivered = counts.delivered.map(|bytes| bytes.max(last.delivered.unwrap_or(0)));
        let rate = |from: u64, to: u64, since: Instant| {
            to.saturating_sub(from) as f64 / (counts.at - since).as_secs_f64().max(1e-9)
        };
        let rates = [
            rate(last.read, counts.read, last.at),
            rate(last.done(), counts.done(), last.at),
            rate(first.done(), counts.done(), first.at),
        ];
        self.0.push_back(counts);
        if self.0.len() > Rates::INTERVALS {
            self.0.pop_front();
        }
        rates
    }
}

/// The state to show.
struct State<'o> {
    elapsed: Duration,
    counts: Counts,
    rates: [f64; 3],
    options: &'o DisplayOptions,
    over: bool,
}

impl State<'_> {
    /// More than 100 if the size was too small.
    fn percent(&self) -> Option<f64> {
        let size = self.options.size.filter(|&size| size > 0)?;
        Some(self.counts.done() as f64 / size as f64 * 100.0)
    }

    /// `None` if the size was too small.
    fn left(&self) -> Option<Duration> {
        let left = self.options.size?.checked_sub(self.counts.done()).filter(|&left| left > 0)?;
        Duration::try_from_secs_f64(left as f64 / self.rates[2]).ok().filter(|_| self.rates[2] > 0.0)
    }

    /// The input and the output rate in bytes per second: those of the last interval, and at the end the means over the
    /// whole time.
    fn shown_rates(&self) -> [f64; 2] {
        let [in_rate, out_rate, _] = self.rates;
        let mean = |bytes: u64| bytes as f64 / self.elapsed.as_secs_f64().max(1e-9);
        if self.over { [mean(self.counts.read), mean(self.counts.written)] } else { [in_rate, out_rate] }
    }

    fn text(&self) -> String {
        let text = self.figures();
        self.options.name.as_ref().map_or_else(|| text.clone(), |name| format!("{name}: {text}"))
    }

    /// The figures of a line, such as `12 s  1.20 GiB delivered  102 MiB/s  45.1 %  14 s left`.
    fn figures(&self) -> String {
        let Counts { read, written, delivered, .. } = self.counts;
        let [in_rate, out_rate] = self.shown_rates().map(|rate| Throughput(rate).to_string());
        if self.over {
            return format!("{}  {} written  {out_rate}", time(self.elapsed), ByteSize(written));
        }
        let word = if delivered.is_some() { "delivered" } else { "written" };
        let mut text = format!("{}  {} {word}", time(self.elapsed), ByteSize(self.counts.done()));
        match self.options.buffer {
            Some(buffer) => {
                let percent = (read - written) as f64 / buffer.max(1) as f64 * 100.0;
                text.push_str(&format!("  in {in_rate}  out {out_rate}  buffer {:.0} %", percent.min(100.0)));
            }
            None => text.push_str(&format!("  {out_rate}")),
        }
        if let Some(percent) = self.percent() {
            text.push_str(&format!("  {percent:.1} %"));
        }
        if let Some(left) = self.left() {
            text.push_str(&format!("  {} left", time(left)));
        }
        text
    }

    fn json(&self) -> String {
        let Counts { read, written, delivered, .. } = self.counts;
        let [in_rate, out_rate] = self.shown_rates();
        serde_json::json!({
            "name": self.options.name,
            "elapsed_ns": Nanos::from(self.elapsed).0,
            "read": read,
            "written": written,
            "delivered": delivered,
            "in_rate": in_rate,
            "out_rate": out_rate,
            "buffered": read - written,
            "buffer": self.options.buffer,
            "size": self.options.size,
            "left_ns": self.left().filter(|_| !self.over).map(|left| Nanos::from(left).0),
            "ended": self.over,
        })
        .to_string()
    }
}

/// Formats a duration: `7 s`, `2:05`, `1:02:05`.
fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) if time < Duration::from_secs(1) => Nanos::from(time).to_string(),
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(
        read: u64,
        written: u64,
        delivered: Option<u64>,
        size: Option<u64>,
        buffer: Option<u64>,
    ) -> State<'static> {
        let begin = Instant::now();
        let counts = |at, read, written, delivered| Counts { at, read, written, delivered };
        let mut rates = Rates::new(counts(begin, 0, 0, delivered.map(|_| 0)));
        let now = counts(begin + Duration::from_secs(10), read, written, delivered);
        let interval = Duration::from_secs(1);
        let options = DisplayOptions { name: None, form: ProgressForm::Text, interval, size, buffer };
        let options = Box::leak(Box::new(options));
        State { elapsed: Duration::from_secs(10), rates: rates.next(now), counts: now, options, over: false }
    }

    #[test]
    fn only_bytes_taken_by_the_reader_count() {
        let text = state(100 << 20, 60 << 20, Some(50 << 20), Some(200 << 20), Some(64 << 20)).text();
        assert_eq!(text, "10 s  50 MiB delivered  in 10.0 MiB/s  out 5.00 MiB/s  buffer 62 %  25.0 %  30 s left");
        let text = state(60 << 20, 60 << 20, None, None, None).text();
        assert_eq!(text, "10 s  60 MiB written  6.00 MiB/s");
        // Nothing moves, so the time left is unknown.
        assert!(!state(0, 0, Some(0), Some(100), None).text().contains("left"));
    }

    #[test]
    fn a_size_that_is_too_small_gives_no_time_left() {
        assert_eq!(state(300, 300, None, Some(200), None).text(), "10 s  300 B written  30.0 B/s  150.0 %");
        assert_eq!(state(300, 300, None, Some(0), None).text(), "10 s  300 B written  30.0 B/s");
    }

    #[test]
    fn json_has_plain_figures() {
        let json: serde_json::Value =
            serde_json::from_str(&state(300, 200, Some(100), Some(1000), Some(4096)).json()).unwrap();
        for (key, value) in [("read", 300), ("written", 200), ("delivered", 100), ("buffered", 100), ("size", 1000)] {
            assert_eq!(json[key], value, "{key}");
        }
        assert_eq!(json["left_ns"], 90_000_000_000u64);
        assert_eq!(json["elapsed_ns"], 10_000_000_000u64);
        let json: serde_json::Value = serde_json::from_str(&state(0, 0, None, None, None).json()).unwrap();
        assert!(json["delivered"].is_null() && json["left_ns"].is_null());
    }

    #[test]
    fn the_last_line_has_mean_rates() {
        let mut state = state(300, 200, Some(100), None, Some(4096));
        (state.over, state.rates) = (true, [0.0; 3]);
        assert_eq!(state.text(), "10 s  200 B written  20.0 B/s");
        let json: serde_json::Value = serde_json::from_str(&state.json()).unwrap();
        assert_eq!([&json["in_rate"], &json["out_rate"]], [30.0, 20.0]);
    }

    #[test]
    fn times_are_short() {
        for (seconds, text) in [(0.25, "250 ms"), (7.0, "7 s"), (125.0, "2:05"), (3725.0, "1:02:05")] {
            assert_eq!(time(Duration::from_secs_f64(seconds)), text);
        }
    }
}
