//! The map of pairs of CPUs as CSV in the form that core-to-core-latency writes, so that its users' scripts can plot it: no
//! headings, a row for each CPU, a column for each CPU, both in the order of their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use pipemark_model::{Cpu, Document, Place, Record};

/// The map of the document's first experiment with pairs of CPUs. Rows are writers and columns readers. A cell has the
/// time one way in nanoseconds, which is half of the median round trip, or bytes per second. It is empty if the pair was
/// not measured.
///
/// # Errors
/// If the document has no pairs of CPUs.
pub fn cpu_map(document: &Document) -> io::Result<String> {
    let pair = |record: &Record| match record.job.place() {
        Place::Pinned(writer, reader) if writer != reader && !record.reference => Some((writer, reader)),
        _ => None,
    };
    let pairs: Vec<(&Record, (Cpu, Cpu))> =
        document.trials.iter().filter_map(|record| Some((record, pair(record)?))).collect();
    let (first, _) = pairs.first().ok_or_else(|| io::Error::other("there are no pairs of CPUs; use --place all"))?;
    let of_experiment = pairs.iter().filter(|(record, _)| record.experiment == first.experiment);
    let figure = |record: &Record| {
        let estimates = record.measured()?;
        match record.job.is_latency() {
            true => estimates.round_trip().map(|trip| trip.median / 2.0),
            false => Some(estimates.throughput().median),
        }
    };
    let figures: BTreeMap<(Cpu, Cpu), Option<f64>> =
        of_experiment.map(|(record, pair)| (*pair, figure(record))).collect();
    let cpus: BTreeSet<Cpu> = figures.keys().flat_map(|(writer, reader)| [*writer, *reader]).collect();
    let cell = |writer: Cpu, reader: Cpu| {
        figures.get(&(writer, reader)).copied().flatten().map_or_else(String::new, |figure| format!("{figure:.1}"))
    };
    let row = |writer: &Cpu| cpus.iter().map(|reader| cell(*writer, *reader)).collect::<Vec<_>>().join(",") + "\n";
    Ok(cpus.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use pipemark_stats::fixture::{STEADY, outcome, records};

    use super::*;
    use crate::sheet::fixture::of_records;

    #[test]
    fn the_map_is_a_matrix_without_headings() {
        let map = |mode: &'static str, pairs: &[(&str, f64)]| {
            let trial =
                |(place, speed): &(&str, f64)| outcome("map", &[("mode", mode), ("place", place)], *speed, &STEADY);
            cpu_map(&of_records(records(pairs.iter().map(trial).collect())))
        };
        let speeds = map("throughput", &[("0:4", 1.0), ("4:0", 2.0), ("0:10", 4.0)]).unwrap();
        let rows: Vec<Vec<&str>> = speeds.lines().map(|line| line.split(',').collect()).collect();
        let empty: Vec<Vec<bool>> = rows.iter().map(|row| row.iter().map(|cell| cell.is_empty()).collect()).collect();
        assert_eq!(empty, [[true, false, false], [false, true, true], [true, true, true]], "{speeds}");
        let cell = |row: usize, column: usize| rows[row][column].parse::<f64>().unwrap() / f64::from(1 << 30);
        for (found, speed) in [(cell(0, 1), 1.0), (cell(1, 0), 2.0), (cell(0, 2), 4.0)] {
            assert!((found / speed - 1.0).abs() < 0.01, "{speeds}");
        }
        let times = map("latency", &[("0:4", 1.0), ("4:0", 2.0)]).unwrap();
        let cells: Vec<Vec<&str>> = times.lines().map(|line| line.split(',').collect()).collect();
        let [one, other]: [f64; 2] = [cells[0][1], cells[1][0]].map(|cell| cell.parse().unwrap());
        assert!(cells[0][0].is_empty() && one > 1.9 * other && other > 0.0, "{times}");
        assert!(map("throughput", &[("same", 1.0)]).unwrap_err().to_string().contains("--place all"));
    }
}
