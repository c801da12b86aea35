//! The main chart of each experiment in text.

use std::io::{self, Write};

use super::figure::{Bars, Curves, Figure, Heat, Role, Shape, figures};
use super::sections::{Section, labels};
use crate::model::Document;
use crate::show::plot::{self, Bar, Pen, Series};

/// Rows of a chart with two axes.
const ROWS: usize = 16;

/// Draws the charts.
///
/// # Errors
/// When `out` refuses the bytes.
pub fn terminal(documents: &[Document], pen: Pen, out: &mut dyn Write) -> io::Result<()> {
    let labels = labels(documents);
    let mut drawn = 0;
    for section in Section::all(documents) {
        if let Some(figure) = figures(&section, documents, &labels).first() {
            if drawn > 0 {
                writeln!(out)?;
            }
            drawn += 1;
            for line in chart(&section, figure, pen) {
                writeln!(out, "{line}")?;
            }
        }
    }
    if drawn == 0 {
        writeln!(out, "Fewer than two trials of an experiment were measured: there is nothing to draw.")?;
    }
    Ok(())
}

fn chart(section: &Section, figure: &Figure, pen: Pen) -> Vec<String> {
    let mut lines = plot::heading(&section.title, &figure.title, pen);
    lines.extend(match &figure.shape {
        Shape::Curves(curves) => of_curves(curves, pen),
        Shape::Bars(bars) => of_bars(bars, pen),
        Shape::Heat(heat) => of_heat(heat, pen),
    });
    if !figure.left_out.is_empty() {
        lines.push(figure.left_out.clone());
    }
    lines
}

fn of_curves(curves: &Curves, pen: Pen) -> Vec<String> {
    let shown = curves.curves.iter().filter(|curve| curve.role != Role::Fit);
    let series: Vec<Series> = shown
        .map(|curve| Series {
            label: curve.label.clone(),
            points: curve.points.iter().map(|point| (point.x, point.y)).collect(),
            joined: curve.role != Role::Published,
        })
        .collect();
    plot::lines(&series, &curves.x, &curves.y, ROWS, pen)
}

fn of_bars(bars: &Bars, pen: Pen) -> Vec<String> {
    let longest = bars.bars.iter().map(|bar| bar.point.y).fold(f64::MIN_POSITIVE, f64::max);
    let drawn: Vec<Bar> = bars
        .bars
        .iter()
        .map(|bar| {
            let series = &bars.series[bar.series];
            let alone = bars.bars.iter().filter(|other| other.row == bar.row).count() == 1;
            let label = match alone {
                true => bars.rows[bar.row].clone(),
                false => format!("{} ({series})", bars.rows[bar.row]),
            };
            Bar { label, share: bar.point.y / longest, figure: bar.point.figure.clone(), series: bar.series }
        })
        .collect();
    plot::bars(&drawn, pen)
}

fn of_heat(heat: &Heat, pen: Pen) -> Vec<String> {
    let mut lines = Vec::new();
    for panel in &heat.panels {
        if !panel.title.is_empty() {
            lines.push(format!("  {}", plot::safe(&panel.title, pen)));
        }
        let mut cells = vec![vec![String::new(); heat.columns.len()]; panel.rows.len()];
        for cell in &panel.cells {
            cells[cell.row][cell.column].clone_from(&cell.brief);
        }
        let rows: Vec<(String, Vec<String>)> = panel.rows.iter().cloned().zip(cells).collect();
        lines.extend(plot::matrix(&heat.columns, &rows, pen));
    }
    lines
}
