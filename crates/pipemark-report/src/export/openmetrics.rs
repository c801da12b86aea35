//! The estimates as OpenMetrics text, for node_exporter's textfile collector.

use std::io;

use jiff::Timestamp;

use pipemark_model::{Document, Estimate, Figure, GIB, Record, Unit};
use pipemark_show::Metrics;

/// The figures of a document. Each has its median and the ends of its 95 % interval.
///
/// # Errors
/// `InvalidData` if a figure isn't a number.
pub fn openmetrics(document: &Document) -> io::Result<String> {
    let of_run = vec![("suite", document.suite.as_str()), ("label", document.label.as_deref().unwrap_or_default())];
    let mut out = Metrics::default();
    let mut of_whole = |name: &str, help: &str, value: f64| {
        out.family(name, "seconds", help);
        out.sample(name, &of_run, value)
    };
    if let Ok(started) = document.started.parse::<Timestamp>() {
        let seconds = started.as_millisecond() as f64 / 1e3;
        of_whole("started_timestamp_seconds", "Start of the measurement.", seconds)?;
    }
    of_whole("duration_seconds", "Duration of the measurement.", document.elapsed_ns as f64 / 1e9)?;
    let mut of_trials = |name: &str, unit: &str, help: &str, figure: &dyn Fn(&Record) -> Option<f64>| {
        let figures = document.trials.iter().filter_map(|record| Some((record, figure(record)?)));
        for (index, (record, figure)) in figures.enumerate() {
            if index == 0 {
                out.family(name, unit, help);
            }
            let link = record.job.link().to_string();
            let own = [("experiment", &*record.experiment), ("trial", &*record.id), ("link", &*link)];
            out.sample(name, &[&of_run[..], &own].concat(), figure)?;
        }
        io::Result::Ok(())
    };
    let measured = |record: &Record| Some(f64::from(u8::from(record.estimate.is_some())));
    of_trials("trial_measured", "", "Whether the trial was measured (1), or skipped or failed (0).", &measured)?;
    of_trials("trial_runs", "", "Number of runs of the trial.", &|record| Some(record.samples.len() as f64))?;
    for figure in Figure::iter() {
        let (stem, unit, factor) = name_of(figure);
        type EstimateEnd = fn(&Estimate) -> Option<f64>;
        let ends: [(&str, EstimateEnd, &str); 3] = [
            ("", |estimate| Some(estimate.median), ""),
            ("_low", |estimate| estimate.low, "Lower end of the 95 % interval. "),
            ("_high", |estimate| estimate.high, "Upper end of the 95 % interval. "),
        ];
        for (end, value, which) in ends {
            let name = if unit.is_empty() { format!("{stem}{end}") } else { format!("{stem}{end}_{unit}") };
            of_trials(&name, unit, &format!("{which}{}", in_unit(&figure.help(), unit)), &|record| {
                // The result of round trips is their time, so their figures per byte are omitted.
                let aside = matches!(figure, Figure::Throughput | Figure::CpuSecondsPerGib) && record.job.is_latency();
                let estimate = record.estimate.as_ref().filter(|_| !aside)?.get(figure)?;
                Some(value(estimate)? * factor)
            })?;
        }
    }
    Ok(out.text())
}

/// The base of a metric family's name, its unit, and the factor that converts its figures to this unit. The format
/// allows only seconds, bytes and ratios of the two.
fn name_of(figure: Figure) -> (&'static str, &'static str, f64) {
    let (unit, suffix, factor) = match figure.unit() {
        Unit::Nanoseconds => ("seconds", "_ns", 1e-9),
        Unit::Bytes => ("bytes", "", 1.0),
        Unit::BytesPerSecond => ("bytes_per_second", "", 1.0),
        Unit::SecondsPerGib => ("seconds_per_byte", "_seconds_per_gib", 1.0 / GIB),
        Unit::SecondsPerMillion => ("seconds_per_message", "_seconds_per_million", 1e-6),
        Unit::PerSecond => ("per_second", "_per_second", 1.0),
        Unit::PerMib => ("per_byte", "_per_mib", 1.0 / (1u64 << 20) as f64),
        Unit::Ratio | Unit::Percent | Unit::Count | Unit::Word => ("", "", 1.0),
    };
    let stem = match figure {
        Figure::P50 => "round_trip",
        Figure::P90 => "round_trip_p90",
        Figure::P99 => "round_trip_p99",
        Figure::P999 => "round_trip_p999",
        Figure::Slowest => "round_trip_max",
        figure => figure.column(),
    };
    (stem.strip_suffix(suffix).unwrap_or(stem), unit, factor)
}

/// A figure's description, with the unit in which the figure is exported.
fn in_unit(help: &str, unit: &str) -> String {
    match unit {
        "seconds" => help.replace("Nanoseconds", "Seconds").replace("nanoseconds", "seconds"),
        "seconds_per_byte" => help.replace("per GiB", "per byte"),
        "per_byte" => help.replace("per MiB", "per byte"),
        "seconds_per_message" => {
            help.replace("per million messages", "per message").replace("per million lines", "per line")
        }
        _ => help.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::fixture;

    fn export(document: &Document) -> String {
        openmetrics(document).unwrap()
    }

    #[test]
    fn families_are_whole_and_end_with_their_unit() {
        for (name, document) in fixture::all() {
            let text = export(&document);
            assert!(text.ends_with("\n# EOF\n"), "{name}");
            let mut family = "";
            for line in text.lines().filter(|line| *line != "# EOF") {
                if let Some(rest) = line.strip_prefix("# HELP ") {
                    family = rest.split(' ').next().unwrap();
                    assert_eq!(text.matches(&format!("# HELP {family} ")).count(), 1, "{name}: {family} twice");
                    for (unit, others) in
                        [("_seconds", "anoseconds"), ("_seconds_per_byte", "per GiB"), ("_per_byte", "per MiB")]
                    {
                        assert!(!family.ends_with(unit) || !line.contains(others), "{name}: {line}");
                    }
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
        let text = export(&document);
        assert!(text.contains("label=\"a\\\"b\\\\c\\nd\\\\u{1b}\""), "{text}");
    }
}
