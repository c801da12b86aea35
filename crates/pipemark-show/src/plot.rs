//! Charts as text: curves over two axes, bars, and heat maps as tables.

use std::collections::BTreeSet;

use pipemark_model::Unit;

use crate::style::Colour;
use crate::text::{abridge, pad, width, wrap};
use crate::{Align, Axis, Cell, Chart, ChartKind, Column, Grid, Point, Scale, Series, SeriesRole, Style, layout};

/// The smallest and the largest height of a chart with two axes, in rows. A chart of few points needs few rows.
const ROWS: [usize; 2] = [6, 16];
/// The marks of curves, in the order of the curves.
const SYMBOLS: &str = "●▲■◆○△□◇abcdefghijklmnopqr";

/// Draws the chart in lines of at most `room` columns.
pub(super) fn lines(chart: &Chart, room: usize, colour: Colour) -> Vec<String> {
    let title = if chart.panel.is_empty() { chart.title.clone() } else { format!("{}, {}", chart.title, chart.panel) };
    let mut lines = vec![colour.paint(Style::Aside, &abridge(&title, room))];
    lines.extend(match chart.kind {
        ChartKind::Curves => curves(chart, room, colour),
        ChartKind::Bars => bars(chart, room, colour),
        ChartKind::Heat(_) => layout::lines(&heat(chart), room, colour),
    });
    if !chart.caption.is_empty() {
        lines.splice(0..0, wrap(&chart.caption, room));
    }
    lines.extend(wrap(&chart.below, room).into_iter().filter(|line| !line.is_empty()));
    lines
}

fn heat(chart: &Chart) -> Grid {
    // Non-breaking spaces keep a heading on one line above narrow cells.
    let headings = chart.x.names.iter().map(|name| Column::figures("", &name.replace(' ', "\u{a0}")));
    let mut rows: Vec<Vec<Cell>> = vec![vec![Cell::default(); 1 + chart.x.names.len()]; chart.y.names.len()];
    for (row, name) in rows.iter_mut().zip(&chart.y.names) {
        row[0] = Cell::shown(name);
    }
    for (_, point) in chart.points() {
        rows[point.y as usize][1 + point.x as usize] = Cell::shown(&point.brief);
    }
    Grid::new([Column::words("", &chart.x.title)].into_iter().chain(headings).collect(), rows)
}

fn bars(chart: &Chart, room: usize, colour: Colour) -> Vec<String> {
    let measured = || chart.series.iter().enumerate().filter(|(_, series)| series.role == SeriesRole::Measured);
    let points = measured().flat_map(|(n, series)| series.points.iter().map(move |point| (n, point)));
    let mut points: Vec<(usize, &Point)> = points.collect();
    points.sort_by(|one, other| one.1.y.total_cmp(&other.1.y).then(one.0.cmp(&other.0)));
    let longest = points.iter().map(|(_, point)| point.x).fold(f64::MIN_POSITIVE, f64::max);
    let several = measured().count() > 1;
    let theirs = |label: &str, row: f64| {
        let named = chart.points().filter(|(series, _)| series.role == SeriesRole::Published && series.label == label);
        named.map(|(_, point)| point).find(|point| point.y == row)
    };
    let rows = points.iter().map(|&(series, point)| {
        let (row, share) = (&chart.y.names[point.y as usize], point.x / longest);
        let elsewhere = theirs(&chart.series[series].label, point.y);
        let label = if several { format!("{row} ({})", chart.series[series].label) } else { row.clone() };
        vec![
            Cell::shown(abridge(&label, room * 2 / 5)),
            Cell::bar(share, share).style(Style::Series(series)),
            Cell::shown(
                elsewhere
                    .map_or_else(|| point.figure.clone(), |theirs| format!("{} ({})", point.figure, theirs.figure)),
            ),
        ]
    });
    let columns = vec![Column::words("", "").fit(crate::Fit::Elastic), Column::bars(""), Column::figures("", "")];
    let mut lines = layout::lines(&Grid::new(columns, rows.collect()), room, colour);
    let published = chart.points().filter(|(series, _)| series.role == SeriesRole::Published);
    let sources = BTreeSet::from_iter(published.map(|(_, point)| point.name.as_str()));
    lines.extend(
        sources
            .into_iter()
            .flat_map(|source| wrap(&format!("in brackets, {source}"), room))
            .map(|line| colour.paint(Style::Aside, &line)),
    );
    lines
}

fn curves(chart: &Chart, room: usize, colour: Colour) -> Vec<String> {
    let shown: Vec<_> = chart.series.iter().filter(|series| series.role != SeriesRole::Fit).collect();
    let points = || shown.iter().flat_map(|series| &series.points);
    let x_ticks = ascending(points().map(|point| point.x));
    let y_ticks = round(&chart.y, points().map(|point| point.y));
    let (x, y) = (Span::new(&chart.x, &x_ticks), Span::new(&chart.y, &y_ticks));
    let labels: Vec<(f64, String)> = y_ticks.iter().map(|&tick| (tick, chart.y.label(tick))).collect();
    let margin = labels.iter().map(|(_, label)| width(label)).max().unwrap_or(0).min(room / 3);
    let columns = room.saturating_sub(margin + 2).clamp(16, 160);
    let rows = (2 * x_ticks.len()).clamp(ROWS[0], ROWS[1]);
    let mut canvas = Canvas::new(columns, rows);
    for (index, series) in shown.iter().take(SYMBOLS.chars().count()).enumerate() {
        let place = |point: &Point| (x.share(point.x), y.share(point.y));
        let placed: Vec<_> = series.points.iter().map(place).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        let fitted = |other: &&Series| other.role == SeriesRole::Fit && other.label == series.label;
        let fit = chart.series.iter().find(fitted);
        if let Some(line) = fit.or(Some(*series).filter(|series| series.role != SeriesRole::Published)) {
            let line: Vec<_> = line.points.iter().map(place).collect();
            line.windows(2).for_each(|pair| canvas.join(pair[0], pair[1], index));
        }
        placed.into_iter().for_each(|point| canvas.mark(point, index));
    }
    let aside = |text: &str| colour.paint(Style::Aside, text);
    let mut out = vec![aside(&chart.y.title)];
    for row in 0..rows {
        // If there are fewer rows than ticks, a row has the label of the first of its ticks.
        let tick = labels.iter().find(|(value, _)| canvas.row(y.share(*value)) == Some(row));
        let (label, edge) = tick.map_or(("", "│"), |(_, label)| (label.as_str(), "┤"));
        let side = aside(&format!("{} {edge}", pad(&abridge(label, margin), margin, Align::Right)));
        out.push(format!("{side}{}", canvas.line(row, colour)).trim_end().to_owned());
    }
    let blank = " ".repeat(margin + 1);
    out.push(aside(&format!("{blank}└{}", "─".repeat(columns))));
    out.push(aside(format!("{blank} {}", tick_labels(&x, &x_ticks, columns)).trim_end()));
    out.push(aside(&format!("{blank} {}", chart.x.title)));
    for (index, (series, symbol)) in shown.iter().zip(SYMBOLS.chars()).enumerate() {
        let label = abridge(&series.label, room.saturating_sub(2));
        out.push(format!("{} {label}", colour.paint(Style::Series(index), &symbol.to_string())));
    }
    out
}

/// The labels below the x axis. Labels that would overlap are omitted.
fn tick_labels(x: &Span, ticks: &[f64], columns: usize) -> String {
    let mut line = String::new();
    for &tick in ticks {
        let label = x.axis.label(tick);
        let middle = x.share(tick).clamp(0.0, 1.0) * (columns - 1) as f64;
        let begin = (middle - width(&label) as f64 / 2.0).round().max(0.0) as usize;
        let begin = begin.min(columns.saturating_sub(width(&label)));
        if begin >= width(&line) + usize::from(!line.is_empty()) * 2 {
            line = pad(&line, begin, Align::Left) + &label;
        }
    }
    line
}

/// An axis with its lower and upper end.
struct Span<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
}

impl<'a> Span<'a> {
    fn new(axis: &'a Axis, ticks: &[f64]) -> Span<'a> {
        let (low, high) = (ticks.first().copied().unwrap_or(0.0), ticks.last().copied().unwrap_or(1.0));
        Span { axis, low: axis.place(low), high: axis.place(high) }
    }

    /// The position of a figure between the ends of the axis: 0 is the lower end, 1 the upper.
    fn share(&self, value: f64) -> f64 {
        let length = self.high - self.low;
        if length > 0.0 { (self.axis.place(value) - self.low) / length } else { 0.5 }
    }
}

/// The finite values in ascending order, without duplicates.
pub(super) fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

/// Round figures that enclose all of `values`.
fn round(axis: &Axis, values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values = ascending(values.filter(|value| axis.scale != Scale::Log || *value > 0.0));
    let (low, high) = (values.first().copied().unwrap_or(1.0), values.last().copied().unwrap_or(10.0));
    if axis.scale != Scale::Log {
        let (divisor, _) = axis.unit.multiple(high);
        let rough = (high / divisor / 5.0).max(f64::MIN_POSITIVE);
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(power) * divisor;
        return (0..=(high / step - 1e-9).ceil().clamp(1.0, 20.0) as u32).map(|n| f64::from(n) * step).collect();
    }
    // Round bytes are powers of two, and round times powers of ten.
    let base: f64 = if axis.unit == Unit::Nanoseconds { 10.0 } else { 2.0 };
    let (first, last) = (low.log(base).floor(), high.log(base).ceil());
    let every = ((last - first) / 7.0).ceil().max(1.0);
    (0..=((last - first) / every).ceil().clamp(1.0, 8.0) as u32)
        .map(|n| base.powf(first + f64::from(n) * every))
        .collect()
}

/// The cells of the drawing. The first row is at the top.
struct Canvas {
    columns: usize,
    rows: usize,
    /// The Braille dots in the cell, and the index of the curve that drew the last of them.
    dots: Vec<(u8, usize)>,
    /// The index of the curve with a point in the cell; `None` without a point.
    marks: Vec<Option<usize>>,
}

impl Canvas {
    fn new(columns: usize, rows: usize) -> Canvas {
        Canvas { columns, rows, dots: vec![(0, 0); columns * rows], marks: vec![None; columns * rows] }
    }

    /// The row at a share of the height; `None` outside of the drawing.
    fn row(&self, share: f64) -> Option<usize> {
        let row = ((1.0 - share) * (self.rows - 1) as f64).round();
        (row >= 0.0 && row < self.rows as f64).then_some(row as usize)
    }

    fn mark(&mut self, (x, y): (f64, f64), index: usize) {
        let column = (x * (self.columns - 1) as f64).round();
        if let (Some(row), true) = (self.row(y), (0.0..self.columns as f64).contains(&column)) {
            // An earlier mark stays: the other curves are compared with the first one.
            self.marks[row * self.columns + column as usize].get_or_insert(index);
        }
    }

    /// Draws a straight line in dots. Each cell has two columns and four rows of dots.
    fn join(&mut self, from: (f64, f64), to: (f64, f64), index: usize) {
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let (across, down) = ((self.columns * 2) as f64, (self.rows * 4) as f64);
        let dot = |(x, y): (f64, f64)| (x * (across - 1.0), (1.0 - y) * (down - 1.0));
        let (from, to) = (dot(from), dot(to));
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().clamp(1.0, 4000.0) as u32;
        for step in 0..=steps {
            let t = f64::from(step) / f64::from(steps);
            let (x, y) = ((from.0 + (to.0 - from.0) * t).round(), (from.1 + (to.1 - from.1) * t).round());
            if (0.0..across).contains(&x) && (0.0..down).contains(&y) {
                let (x, y) = (x as usize, y as usize);
                let cell = &mut self.dots[(y / 4) * self.columns + x / 2];
                *cell = (cell.0 | BITS[y % 4][x % 2], index);
            }
        }
    }

    fn line(&self, row: usize, colour: Colour) -> String {
        let glyph = |cell: usize| match (self.marks[cell], self.dots[cell]) {
            (Some(index), _) => (SYMBOLS.chars().nth(index).unwrap_or('?'), index),
            (None, (0, _)) => (' ', 0),
            (None, (dots, index)) => (char::from_u32(0x2800 + u32::from(dots)).unwrap_or('.'), index),
        };
        let cells = (row * self.columns..(row + 1) * self.columns).map(glyph);
        cells
            .map(|(glyph, index)| match glyph {
                ' ' => " ".to_owned(),
                _ => colour.paint(Style::Series(index), &glyph.to_string()),
            })
            .collect()
    }
}

/// The ASCII replacement of each character. A mark narrower than half a column becomes a space.
const ASCII_REPLACEMENTS: [(&str, &str); 4] = [
    ("\u{a0}µ×–−─│└┤·█▒…•→≠≈", " ux---|++.#-.->#~"),
    ("▏▎▍▌▋▊▉▁▂▃▄▅▆▇", "   ####__--==%"),
    ("●◐○◀", "*%o<"),
    (SYMBOLS, "ABCDEFGH"),
];

/// The text with all characters replaced by ASCII.
pub(super) fn ascii(text: &str) -> String {
    let plain = |c: char| match c {
        _ if c.is_ascii() => c,
        '\u{2800}'..='\u{28ff}' => '.',
        _ => {
            let known = ASCII_REPLACEMENTS.iter().flat_map(|(from, to)| from.chars().zip(to.chars()));
            known.into_iter().find(|(from, _)| *from == c).map_or('?', |(_, to)| to)
        }
    };
    text.chars().map(plain).collect()
}
