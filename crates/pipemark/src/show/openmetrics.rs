//! The estimates as OpenMetrics text, for node_exporter's textfile collector: gauges only and no time stamps, which is
//! what OpenMetrics and the older Prometheus format have in common.

use std::io;

use jiff::Timestamp;

use crate::model::{Document, Estimates, Mode, Record};

use super::Format;
use super::text::hides;

/// OpenMetrics text.
#[derive(Debug, Clone, Copy)]
pub struct OpenMetrics;

/// What one line tells of a trial; `None` where there is nothing to tell.
type Figure = fn(&Record) -> Option<f64>;

/// A metric family: name without the prefix, unit, help, figure. The unit is the name's end.
struct Family(&'static str, &'static str, &'static str, Figure);

const FAMILIES: [Family; 10] = [
    Family("trial_measured", "", "Whether the trial was measured (1), or skipped or failed (0).", |record| {
        Some(if record.estimate.is_some() { 1.0 } else { 0.0 })
    }),
    Family("trial_runs", "", "How often the trial was run.", |record| Some(record.samples.len() as f64)),
    Family("throughput_bytes_per_second", "bytes_per_second", "Median throughput of the runs.", |record| {
        stream(record).map(|estimates| estimates.throughput().median)
    }),
    Family("throughput_low_bytes_per_second", "bytes_per_second", "Lower end of its 95 % interval.", |record| {
        stream(record).and_then(|estimates| estimates.throughput().low)
    }),
    Family("throughput_high_bytes_per_second", "bytes_per_second", "Upper end of its 95 % interval.", |record| {
        stream(record).and_then(|estimates| estimates.throughput().high)
    }),
    Family("cpu_seconds_per_byte", "seconds_per_byte", "CPU time of all ends for each byte.", |record| {
        stream(record).map(|estimates| estimates.cpu_seconds_per_gib().median / (1u64 << 30) as f64)
    }),
    Family("round_trip_seconds", "seconds", "Median round trip.", |record| {
        Some(record.estimate.as_ref()?.round_trip()?.median / 1e9)
    }),
    Family("round_trip_low_seconds", "seconds", "Lower end of its 95 % interval.", |record| {
        Some(record.estimate.as_ref()?.round_trip()?.low? / 1e9)
    }),
    Family("round_trip_high_seconds", "seconds", "Upper end of its 95 % interval.", |record| {
        Some(record.estimate.as_ref()?.round_trip()?.high? / 1e9)
    }),
    Family("round_trip_p99_seconds", "seconds", "99th percentile of the round trips.", |record| {
        Some(record.estimate.as_ref()?.get(crate::model::Figure::P99)?.median / 1e9)
    }),
];

/// The estimates of a trial whose throughput means something.
fn stream(record: &Record) -> Option<&Estimates> {
    record.estimate.as_ref().filter(|_| record.job.mode() == Mode::Throughput)
}

impl Format for OpenMetrics {
    fn name(&self) -> &'static str {
        "OpenMetrics"
    }

    fn write(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        let of_run = vec![("suite", document.suite.as_str()), ("label", document.label.as_deref().unwrap_or_default())];
        if let Ok(started) = document.started.parse::<Timestamp>() {
            let help = "When the measurement began.";
            family("started_timestamp_seconds", "seconds", help, out)?;
            sample("started_timestamp_seconds", &of_run, started.as_millisecond() as f64 / 1e3, out)?;
        }
        family("duration_seconds", "seconds", "How long the measurement took.", out)?;
        sample("duration_seconds", &of_run, document.elapsed_ns as f64 / 1e9, out)?;
        for Family(name, unit, help, figure) in FAMILIES {
            let figures: Vec<(&Record, f64)> =
                document.trials.iter().filter_map(|record| Some((record, figure(record)?))).collect();
            if figures.is_empty() {
                continue;
            }
            family(name, unit, help, out)?;
            for (record, figure) in figures {
                let link = record.job.link().to_string();
                let own = [("experiment", &*record.experiment), ("trial", &*record.id), ("link", &*link)];
                sample(name, &[&of_run[..], &own].concat(), figure, out)?;
            }
        }
        writeln!(out, "# EOF")
    }
}

fn family(name: &str, unit: &str, help: &str, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "# HELP pipemark_{name} {help}")?;
    writeln!(out, "# TYPE pipemark_{name} gauge")?;
    if !unit.is_empty() {
        writeln!(out, "# UNIT pipemark_{name} {unit}")?;
    }
    Ok(())
}

/// An empty label is the same as none.
fn sample(name: &str, labels: &[(&str, &str)], figure: f64, out: &mut dyn io::Write) -> io::Result<()> {
    if !figure.is_finite() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a figure of the document is not a number"));
    }
    let labels: Vec<String> = labels
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    writeln!(out, "pipemark_{name}{{{}}} {figure}", labels.join(","))
}

/// A label's value: backslash, quote and line feed as the format asks for, and what a terminal would act on.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\\\"),
            '"' => safe.push_str("\\\""),
            '\n' => safe.push_str("\\n"),
            _ if hides(c) => {
                safe.push('\\');
                safe.extend(c.escape_unicode());
            }
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn written(document: &Document) -> String {
        let mut out = Vec::new();
        OpenMetrics.write(document, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn families_are_whole_and_end_with_their_unit() {
        for (name, document) in fixture::all() {
            let text = written(&document);
            assert!(text.ends_with("\n# EOF\n"), "{name}");
            let mut family = "";
            for line in text.lines().filter(|line| *line != "# EOF") {
                if let Some(rest) = line.strip_prefix("# HELP ") {
                    family = rest.split(' ').next().unwrap();
                    assert_eq!(text.matches(&format!("# HELP {family} ")).count(), 1, "{name}: {family} twice");
                } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                    let unit = rest.split(' ').nth(1).unwrap();
                    assert!(family.ends_with(&format!("_{unit}")), "{name}: {line}");
                } else if !line.starts_with("# TYPE ") {
                    assert!(line.starts_with(&format!("{family}{{")), "{name}: {line}");
                }
            }
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let mut document = fixture::interrupted();
        document.label = Some("a\"b\\c\nd\x1b".to_owned());
        let text = written(&document);
        assert!(text.contains("label=\"a\\\"b\\\\c\\nd\\\\u{1b}\""), "{text}");
    }
}
