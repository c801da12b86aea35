//! Figures as OpenMetrics text, which is also valid in the older Prometheus format, because it has only gauges and no time
//! stamps.

use std::fmt::Write;
use std::io;

use pipemark_model::is_control_or_invisible;

/// Families of figures, each with its samples.
#[derive(Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    /// Begins a family. The name, which gets the prefix `pipemark_`, must end with the unit if there is one.
    pub fn family(&mut self, name: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP pipemark_{name} {}\n# TYPE pipemark_{name} gauge", escaped(help));
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT pipemark_{name} {unit}");
        }
    }

    /// Adds a sample of the last family. An empty label is equivalent to a missing one, so it is omitted.
    ///
    /// # Errors
    /// `InvalidData` if the figure isn't a number.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], figure: f64) -> io::Result<()> {
        if !figure.is_finite() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a figure of the document is not a number"));
        }
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(self.0, "pipemark_{name}{{{}}} {figure}", labels.join(","));
        Ok(())
    }

    /// The whole text.
    pub fn text(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }
}

/// A label's value, with backslash, quote and line feed escaped as the format requires. Characters that a terminal
/// would interpret are escaped too.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\\\"),
            '"' => safe.push_str("\\\""),
            '\n' => safe.push_str("\\n"),
            _ if is_control_or_invisible(c) => {
                safe.push('\\');
                safe.extend(c.escape_unicode());
            }
            _ => safe.push(c),
        }
    }
    safe
}
