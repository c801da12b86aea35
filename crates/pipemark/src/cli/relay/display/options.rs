//! What `relay --progress` shows, and how often.

use std::time::Duration;

/// How progress is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressForm {
    /// One line that is redrawn on a terminal; a line for each interval elsewhere.
    Text,
    /// A JSON object for each interval.
    Json,
}

/// Options of the display.
#[derive(Debug, Clone)]
pub struct DisplayOptions {
    /// What lines begin with; `None` for nothing.
    pub name: Option<String>,
    pub form: ProgressForm,
    pub interval: Duration,
    /// The time over which rates are averaged; `None` for the last interval.
    pub average: Option<Duration>,
    /// Whether nothing is shown before the first byte.
    pub wait: bool,
    /// Total bytes expected, or lines if the relay counts lines; `None` if unknown.
    pub size: Option<u64>,
    /// The size of the buffer, in bytes; `None` without a buffer.
    pub buffer: Option<u64>,
}
