//! The state of a relay as a line of text or JSON.

use std::time::Duration;

use pipemark_console::progress::bar;
use pipemark_model::{ByteSize, Nanos, Throughput, counted};
use pipemark_show::width;

use super::counts::RatesNow;
use super::options::DisplayOptions;

/// The narrowest and the widest bar, in columns.
const BAR_WIDTHS: [usize; 2] = [8, 40];

/// The state to show.
pub struct State<'o> {
    pub elapsed: Duration,
    pub rates: RatesNow,
    pub options: &'o DisplayOptions,
    /// Whether the relay has ended.
    pub over: bool,
}

impl State<'_> {
    /// What the size is compared with: lines if they are counted, otherwise bytes.
    fn done(&self) -> u64 {
        self.rates.last.lines.unwrap_or_else(|| self.rates.last.done())
    }

    /// More than 1 if the size was too small.
    fn share(&self) -> Option<f64> {
        let size = self.options.size.filter(|&size| size > 0)?;
        Some(self.done() as f64 / size as f64)
    }

    /// `None` if the size was too small.
    fn left(&self) -> Option<Duration> {
        let left = self.options.size?.checked_sub(self.done()).filter(|&left| left > 0 && !self.over)?;
        let rate = self.rates.to_extrapolate;
        Duration::try_from_secs_f64(left as f64 / rate).ok().filter(|_| rate > 0.0)
    }

    /// A rate, and at the end the mean over the whole time.
    fn rate(&self, rate: f64, total: u64) -> f64 {
        if self.over { total as f64 / self.elapsed.as_secs_f64().max(1e-9) } else { rate }
    }

    /// A line such as `log: 12 s  1.20 GiB delivered  102 MiB/s  45.1 %  14 s left`.
    pub fn text(&self) -> String {
        let [before, after] = self.parts();
        before + &after
    }

    /// Like [`text`](Self::text), with a bar before the percentage if there is one and the columns suffice.
    pub fn text_with_bar(&self, columns: usize) -> String {
        let [before, after] = self.parts();
        let free = columns.saturating_sub(width(&before) + width(&after) + "  ".len() + 1);
        let [least, most] = BAR_WIDTHS;
        match self.share().filter(|_| free >= least) {
            Some(share) => format!("{before}  {}{after}", bar(share, free.min(most))),
            None => before + &after,
        }
    }

    /// The line up to its bar, and after it.
    fn parts(&self) -> [String; 2] {
        let RatesNow { last, read, done, lines, .. } = self.rates;
        let word = if last.delivered.is_some() { "delivered" } else { "written" };
        let amount =
            last.lines.map_or_else(|| ByteSize(last.done()).to_string(), |lines| counted(lines as usize, "line"));
        let out = match (lines, last.lines) {
            (Some(rate), Some(lines)) => lines_per_second(self.rate(rate, lines)),
            _ => Throughput(self.rate(done, last.done())).to_string(),
        };
        let name = self.options.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        let mut text = format!("{name}{}  {amount} {word}", time(self.elapsed));
        if self.over && last.unread() > 0 {
            text.push_str(&format!("  {} unread", ByteSize(last.unread())));
        }
        match self.options.buffer.filter(|_| !self.over) {
            Some(buffer) => {
                let percent = (last.read - last.written) as f64 / buffer.max(1) as f64 * 100.0;
                if lines.is_none() {
                    text.push_str(&format!("  in {}", Throughput(read)));
                }
                text.push_str(&format!("  out {out}  buffer {:.0} %", percent.min(100.0)));
            }
            None => text.push_str(&format!("  {out}")),
        }
        let mut after = String::new();
        if let Some(share) = self.share() {
            after.push_str(&format!("  {:.1} %", share * 100.0));
        }
        if let Some(left) = self.left() {
            after.push_str(&format!("  {} left", time(left)));
        }
        [text, after]
    }

    pub fn json(&self) -> String {
        let last = self.rates.last;
        serde_json::json!({
            "name": self.options.name,
            "elapsed_ns": Nanos::from(self.elapsed).0,
            "read": last.read,
            "written": last.written,
            "delivered": last.delivered,
            "lines": last.lines,
            "in_rate": self.rate(self.rates.read, last.read),
            "out_rate": self.rate(self.rates.done, last.written),
            "line_rate": last.lines.map(|lines| self.rate(self.rates.lines.unwrap_or(0.0), lines)),
            "buffered": last.read - last.written,
            "buffer": self.options.buffer,
            "size": self.options.size,
            "left_ns": self.left().map(|left| Nanos::from(left).0),
            "ended": self.over,
        })
        .to_string()
    }
}

fn lines_per_second(rate: f64) -> String {
    let digits = if rate < 9.95 { 1 } else { 0 };
    format!("{rate:.digits$} lines/s")
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
    use std::time::Instant;

    use super::super::counts::{Counts, Rates};
    use super::super::options::ProgressForm;
    use super::*;

    fn state(
        read: u64,
        written: u64,
        delivered: Option<u64>,
        size: Option<u64>,
        buffer: Option<u64>,
    ) -> State<'static> {
        state_of(Counts { read, written, delivered, ..Counts::default() }, size, buffer)
    }

    /// The state after ten seconds.
    fn state_of(counts: Counts, size: Option<u64>, buffer: Option<u64>) -> State<'static> {
        let (begin, elapsed) = (Instant::now(), Duration::from_secs(10));
        let first = Counts { at: begin, ..Counts::default() };
        let now = Counts { at: begin + elapsed, ..counts };
        let interval = Duration::from_secs(1);
        let form = ProgressForm::Text;
        let options = DisplayOptions { name: None, form, interval, average: None, wait: false, size, buffer };
        let options = Box::leak(Box::new(options));
        State { elapsed, rates: Rates::new(first, None).next(now), options, over: false }
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
    fn a_bar_fills_the_line() {
        let state = state(100 << 20, 50 << 20, Some(50 << 20), Some(200 << 20), None);
        let line = state.text_with_bar(80);
        assert_eq!(line, format!("10 s  50 MiB delivered  5.00 MiB/s  {:24}  25.0 %  30 s left", "██████"));
        assert_eq!(width(&line), 79);
        assert!(state.text_with_bar(200).contains(&format!("  {:40}  25.0 %", "██████████")));
        assert_eq!(state.text_with_bar(50), state.text());
    }

    #[test]
    fn lines_take_the_place_of_bytes() {
        let counts = Counts { read: 300, written: 300, delivered: Some(200), lines: Some(30), ..Counts::default() };
        let mut state = state_of(counts, Some(120), Some(4096));
        assert_eq!(state.text(), "10 s  30 lines delivered  out 3.0 lines/s  buffer 0 %  25.0 %  30 s left");
        let json: serde_json::Value = serde_json::from_str(&state.json()).unwrap();
        assert_eq!([&json["lines"], &json["line_rate"], &json["size"]], [30, 3, 120].map(f64::from));
        state.over = true;
        assert_eq!(state.text(), "10 s  30 lines delivered  100 B unread  3.0 lines/s  25.0 %");
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
        assert!(json["delivered"].is_null() && json["left_ns"].is_null() && json["lines"].is_null());
    }

    #[test]
    fn the_last_line_has_mean_rates_and_what_is_unread() {
        let mut state = state(300, 200, Some(100), Some(200), Some(4096));
        state.over = true;
        (state.rates.read, state.rates.done) = (0.0, 0.0);
        assert_eq!(state.text(), "10 s  100 B delivered  100 B unread  10.0 B/s  50.0 %");
        let json: serde_json::Value = serde_json::from_str(&state.json()).unwrap();
        assert_eq!([&json["in_rate"], &json["out_rate"]], [30.0, 20.0]);
        state.rates.last.delivered = Some(200);
        assert_eq!(state.text(), "10 s  200 B delivered  20.0 B/s  100.0 %");
    }

    #[test]
    fn times_are_short() {
        for (seconds, text) in [(0.25, "250 ms"), (7.0, "7 s"), (125.0, "2:05"), (3725.0, "1:02:05")] {
            assert_eq!(time(Duration::from_secs_f64(seconds)), text);
        }
    }
}
