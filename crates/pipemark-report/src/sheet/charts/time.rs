//! The speed of bimodal trials over time, with a strip for each run.

use pipemark_model::{Pieces, Unit, Warning, neutral};
use pipemark_show::{Axis, Chart, ChartKind, Colouring, Point, Series, SeriesRole, extent};

use crate::sheet::charts::section::{Section, truncate_with_note};

const MAX_STRIPS: usize = 30;
const MAX_PIECES: u64 = 60;

/// A chart for each bimodal trial of the section.
pub(in crate::sheet) fn over_time(section: &Section, labels: &[String]) -> Vec<Chart> {
    let strips = section.trials.iter().filter_map(|trial| {
        let two = trial.record.warnings.iter().find(|warning| matches!(warning, Warning::Regimes { .. }))?;
        let runs: Vec<&Pieces> = trial.record.samples.iter().filter_map(|sample| sample.pieces.as_ref()).collect();
        let mut panel = vec![neutral(&trial.record.name)];
        panel.extend(labels.get(trial.run).filter(|_| section.runs.len() > 1).cloned());
        strips(&runs, &format!("{}: {two}", panel.join(" · ")))
    });
    strips.collect()
}

/// A chart with a row for each run. The cells of a row have equal duration and are coloured by speed. `None` if there
/// is nothing to draw.
fn strips(runs: &[&Pieces], panel: &str) -> Option<Chart> {
    let (runs, omitted) = truncate_with_note(runs.to_vec(), MAX_STRIPS, "runs");
    let pieces = runs.iter().map(|run| run.ns.len() as u64).max().filter(|pieces| *pieces > 0)?;
    let longest = runs.iter().map(|run| run.ns.iter().sum::<u64>()).max()?;
    // The duration of a cell is a whole number of milliseconds, long enough that a row doesn't have too many cells.
    let step = ((longest / pieces.min(MAX_PIECES) + 500_000) / 1_000_000).max(1) * 1_000_000;
    let mut points = Vec::new();
    for (row, run) in runs.iter().enumerate() {
        let mut cells: Vec<(u64, u64, u64)> = Vec::new();
        let mut passed = 0;
        for (ns, bytes) in run.ns.iter().zip(&run.bytes) {
            let column = (passed + ns / 2) / step;
            passed += ns;
            match cells.last_mut().filter(|cell| cell.0 == column) {
                Some(cell) => (cell.1, cell.2) = (cell.1 + ns, cell.2 + bytes),
                None => cells.push((column, *ns, *bytes)),
            }
        }
        points.extend(cells.into_iter().filter(|cell| cell.1 > 0 && cell.2 > 0).map(|(column, ns, bytes)| {
            let speed = bytes as f64 * 1e9 / ns as f64;
            Point {
                x: column as f64,
                y: row as f64,
                value: Some(speed),
                name: format!("run {}, from {} ms on", row + 1, column * step / 1_000_000),
                figure: Unit::BytesPerSecond.show(speed),
                ..Point::default()
            }
        }));
    }
    let (low, high) = extent(points.iter().filter_map(|point| point.value))?;
    let unit = Unit::BytesPerSecond.common([low, high]);
    points.iter_mut().for_each(|point| point.brief = point.value.map_or_else(String::new, |speed| unit.brief(speed)));
    let kind = ChartKind::Heat(Colouring::Sequential { low, high, more_is_better: true });
    let rows = (1..=runs.len()).map(|run| format!("run {run}")).collect();
    let last = points.iter().map(|point| point.x as u64).max()?;
    let columns = (0..=last).map(|nth| format!("{} ms", nth * step / 1_000_000)).collect();
    let (x, y) = (Axis::named("time in the run", columns), Axis::named("", rows));
    let series = vec![Series { label: String::new(), role: SeriesRole::Measured, points }];
    let title = "Throughput over time, for each run: the stronger the colour, the faster; empty if nothing arrived";
    Some(Chart { panel: panel.to_owned(), below: omitted, ..Chart::new(title, kind, x, y, series) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_a_strip_of_its_speeds() {
        let run = |length: usize| Pieces {
            ns: vec![10_000_000; length],
            bytes: (0..length).map(|nth| if nth % 2 == 0 { 10_000_000 } else { 40_000_000 }).collect(),
            ..Pieces::default()
        };
        let runs = [run(8), run(5)];
        let chart = strips(&runs.iter().collect::<Vec<_>>(), "").unwrap();
        assert_eq!((chart.x.names.len(), chart.y.names.len()), (8, 2));
        assert_eq!((chart.x.names[7].as_str(), chart.points().count()), ("70 ms", 13));
        assert!(chart.points().all(|(_, point)| point.value == Some(if point.x % 2.0 == 0.0 { 1e9 } else { 4e9 })));
        assert!(chart.points().all(|(_, point)| point.brief.ends_with('G')), "one unit, also for 954 MiB/s");
        // Each cell of a long run is the mean of several pieces.
        let long = strips(&[&run(400)], "").unwrap();
        assert!(
            long.x.names.len() <= 60 && long.points().all(|(_, point)| (1.5e9..3.5e9).contains(&point.value.unwrap()))
        );
        assert_eq!(strips(&[&Pieces::default()], ""), None);
    }
}
