//! Charts in text: lines over two axes, and bars. Neither knows what it shows.

use super::axis::Axis;
use super::text::{Colour, Side, Style, abridge, bar, neutral, pad, width};

/// What a chart may be drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pen {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether colours may be used.
    pub colour: Colour,
    /// Which characters may be used.
    pub characters: Characters,
}

/// The characters that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters {
    /// All of Unicode: curves are drawn in dots of braille.
    Unicode,
    /// ASCII alone.
    Ascii,
}

/// One curve. The label may be anything; it is shown neutralised.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Its points, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Whether the points are joined.
    pub joined: bool,
}

/// Curves over two axes, `rows` high without axis and legend. At most 26 curves are drawn; the legend counts the others.
pub fn lines(series: &[Series], x: &Axis, y: &Axis, rows: usize, pen: Pen) -> Vec<String> {
    let rows = rows.clamp(4, 60);
    let labels: Vec<usize> = y.ticks.iter().map(|(_, label)| width(label)).collect();
    let margin = labels.into_iter().max().unwrap_or(0).min(pen.width / 3);
    let columns = pen.width.saturating_sub(margin + 3).clamp(16, 160);
    let mut canvas = Canvas::new(columns, rows, pen.characters);
    for (index, curve) in series.iter().take(MARKS).enumerate() {
        let placed: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|(px, py)| (x.share(*px), y.share(*py)))
            .filter(|(px, py)| px.is_finite() && py.is_finite())
            .collect();
        if curve.joined {
            for pair in placed.windows(2) {
                canvas.join(pair[0], pair[1], index);
            }
        }
        for point in placed {
            canvas.mark(point, index);
        }
    }
    let mut out = vec![pen.colour.paint(Style::Aside, &neutral(&y.title))];
    let (rule, corner, tee) = match pen.characters {
        Characters::Unicode => ("│", "└", "┤"),
        Characters::Ascii => ("|", "+", "+"),
    };
    for row in 0..rows {
        let tick = y.ticks.iter().find(|(value, _)| canvas.row(y.share(*value)) == Some(row));
        let label = tick.map_or(String::new(), |(_, label)| abridge(label, margin));
        let edge = if tick.is_some() { tee } else { rule };
        let side = pen.colour.paint(Style::Aside, &format!("{} {edge}", pad(&shown(&label, pen), margin, Side::Right)));
        out.push(format!("{side}{}", canvas.line(row, pen.colour)).trim_end().to_owned());
    }
    let base = match pen.characters {
        Characters::Unicode => "─",
        Characters::Ascii => "-",
    };
    let blank = " ".repeat(margin + 1);
    out.push(pen.colour.paint(Style::Aside, &format!("{blank}{corner}{}", base.repeat(columns))));
    out.push(pen.colour.paint(Style::Aside, format!("{blank} {}", under(x, columns, pen)).trim_end()));
    if !x.title.is_empty() {
        out.push(pen.colour.paint(Style::Aside, &format!("{blank} {}", neutral(&x.title))));
    }
    for (index, curve) in series.iter().take(MARKS).enumerate() {
        let mark = canvas.symbol(index).to_string();
        let label = abridge(&shown(&neutral(&curve.label), pen), pen.width.saturating_sub(4));
        out.push(format!("  {} {label}", pen.colour.paint(Style::Series(index), &mark)));
    }
    if series.len() > MARKS {
        out.push(format!("  and {} more", series.len() - MARKS));
    }
    out
}

/// The labels under the lower axis; one that has no room is left out.
fn under(x: &Axis, columns: usize, pen: Pen) -> String {
    let mut line = String::new();
    for (value, label) in &x.ticks {
        let label = shown(label, pen);
        let middle = x.share(*value).clamp(0.0, 1.0) * (columns - 1) as f64;
        let begin = (middle - width(&label) as f64 / 2.0).round().max(0.0) as usize;
        let begin = begin.min(columns.saturating_sub(width(&label)));
        if begin >= width(&line) + usize::from(!line.is_empty()) * 2 {
            line.push_str(&" ".repeat(begin - width(&line)));
            line.push_str(&label);
        }
    }
    line
}

/// One bar: its name, its length from 0 to 1, the figure beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// Its length as a share of the longest.
    pub share: f64,
    /// What stands at its end.
    pub figure: String,
    /// Which of the curves' colours it has.
    pub series: usize,
}

/// Bars, one a line.
pub fn bars(bars: &[Bar], pen: Pen) -> Vec<String> {
    let names: Vec<String> = bars.iter().map(|bar| shown(&neutral(&bar.label), pen)).collect();
    let figures: Vec<String> = bars.iter().map(|bar| shown(&neutral(&bar.figure), pen)).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let name = widest(&names).min(pen.width * 2 / 5);
    let room = pen.width.saturating_sub(name + widest(&figures) + 4).clamp(8, 80);
    let line = |((own, label), figure): ((&Bar, &String), &String)| {
        let drawn = match pen.characters {
            Characters::Unicode => bar(own.share, room),
            Characters::Ascii => "#".repeat((own.share.clamp(0.0, 1.0) * room as f64).round() as usize),
        };
        let drawn = pen.colour.paint(Style::Series(own.series), &drawn);
        format!("  {} {drawn} {figure}", pad(&abridge(label, name), name, Side::Left))
    };
    bars.iter().zip(&names).zip(&figures).map(line).collect()
}

/// The two lines above a chart: what it is of, what it shows.
pub fn heading(title: &str, subtitle: &str, pen: Pen) -> Vec<String> {
    let fitting = |text: &str| abridge(&safe(text, pen), pen.width.max(8));
    vec![pen.colour.paint(Style::Heading, &fitting(title)), pen.colour.paint(Style::Aside, &fitting(subtitle))]
}

/// Figures by row and column; columns that the terminal has no room for are left out, and that is said.
pub fn matrix(columns: &[String], rows: &[(String, Vec<String>)], pen: Pen) -> Vec<String> {
    let text = |text: &String| safe(text, pen);
    let name = rows.iter().map(|(label, _)| width(&text(label))).max().unwrap_or(0).min(pen.width / 3);
    let widths = (0..columns.len()).map(|column| {
        let cells = rows.iter().filter_map(|(_, cells)| cells.get(column)).chain([&columns[column]]);
        cells.map(|cell| width(&text(cell))).max().unwrap_or(0) + 2
    });
    let mut room = pen.width.saturating_sub(name + 2);
    let widths: Vec<usize> = widths
        .take_while(|width| {
            let fits = *width <= room;
            room = room.saturating_sub(*width);
            fits
        })
        .collect();
    let line = |label: &str, cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| pad(&text(cell), *width, Side::Right));
        format!("  {}{}", pad(&abridge(label, name), name, Side::Left), cells.collect::<String>())
    };
    let mut lines = vec![pen.colour.paint(Style::Aside, &line("", columns))];
    lines.extend(rows.iter().map(|(label, cells)| line(&text(label), cells)));
    if widths.len() < columns.len() {
        lines.push(format!("  {} more columns need a wider terminal", columns.len() - widths.len()));
    }
    lines
}

/// Neutral text in the characters that may be used.
pub fn safe(text: &str, pen: Pen) -> String {
    shown(&neutral(text), pen)
}

/// Text in the characters that may be used.
fn shown(text: &str, pen: Pen) -> String {
    match pen.characters {
        Characters::Unicode => text.to_owned(),
        Characters::Ascii => text
            .chars()
            .map(|c| match c {
                'µ' => 'u',
                '×' => 'x',
                '–' | '−' => '-',
                '…' => '~',
                _ if c.is_ascii() => c,
                _ => '?',
            })
            .collect(),
    }
}

/// How many curves have a mark of their own.
const MARKS: usize = 26;

/// What is drawn, cell by cell; the first row is the upper one.
struct Canvas {
    columns: usize,
    rows: usize,
    characters: Characters,
    /// Dots of braille, and the curve that drew the last of them.
    dots: Vec<(u8, usize)>,
    /// The curve that has a point there.
    marks: Vec<Option<usize>>,
}

impl Canvas {
    fn new(columns: usize, rows: usize, characters: Characters) -> Canvas {
        Canvas { columns, rows, characters, dots: vec![(0, 0); columns * rows], marks: vec![None; columns * rows] }
    }

    fn symbol(&self, index: usize) -> char {
        const SYMBOLS: [char; 8] = ['●', '▲', '■', '◆', '○', '△', '□', '◇'];
        match self.characters {
            Characters::Unicode if index < SYMBOLS.len() => SYMBOLS[index],
            _ => char::from(b'a' + u8::try_from(index % 26).expect("below 26")),
        }
    }

    /// The row of a share of the height, if it is on the canvas.
    fn row(&self, share: f64) -> Option<usize> {
        let row = ((1.0 - share) * (self.rows - 1) as f64).round();
        (row >= 0.0 && row < self.rows as f64).then_some(row as usize)
    }

    fn mark(&mut self, (x, y): (f64, f64), index: usize) {
        let column = (x * (self.columns - 1) as f64).round();
        if let Some(row) = self.row(y)
            && (0.0..self.columns as f64).contains(&column)
        {
            // The first curve keeps its place: it is the one that the others are held against.
            self.marks[row * self.columns + column as usize].get_or_insert(index);
        }
    }

    /// A straight line in dots, two across and four down in each cell.
    fn join(&mut self, from: (f64, f64), to: (f64, f64), index: usize) {
        let dot = |(x, y): (f64, f64)| (x * (self.columns * 2 - 1) as f64, (1.0 - y) * (self.rows * 4 - 1) as f64);
        let (from, to) = (dot(from), dot(to));
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().clamp(1.0, 4000.0) as u32;
        for step in 0..=steps {
            let t = f64::from(step) / f64::from(steps);
            let (x, y) = ((from.0 + (to.0 - from.0) * t).round(), (from.1 + (to.1 - from.1) * t).round());
            if x < 0.0 || y < 0.0 || x >= (self.columns * 2) as f64 || y >= (self.rows * 4) as f64 {
                continue;
            }
            let (x, y) = (x as usize, y as usize);
            const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
            let cell = &mut self.dots[(y / 4) * self.columns + x / 2];
            *cell = (cell.0 | BITS[y % 4][x % 2], index);
        }
    }

    fn line(&self, row: usize, colour: Colour) -> String {
        let mut line = String::new();
        for cell in row * self.columns..(row + 1) * self.columns {
            let (glyph, index) = match (self.marks[cell], self.dots[cell], self.characters) {
                (Some(index), _, _) => (self.symbol(index), index),
                (None, (0, _), _) => (' ', 0),
                (None, (dots, index), Characters::Unicode) => {
                    (char::from_u32(0x2800 + u32::from(dots)).unwrap_or('.'), index)
                }
                (None, (_, index), Characters::Ascii) => ('.', index),
            };
            match glyph {
                ' ' => line.push(' '),
                _ => line.push_str(&colour.paint(Style::Series(index), &glyph.to_string())),
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::{Scale, Unit};
    use super::*;

    fn pen(characters: Characters) -> Pen {
        Pen { width: 60, colour: Colour::Never, characters }
    }

    fn chart(characters: Characters) -> Vec<String> {
        let rising = (0..9).map(|n| (f64::from(1 << n) * 64.0, f64::from(n) * 1e8)).collect();
        let flat = vec![(64.0, 4e8), (16384.0, 4e8)];
        let series = [
            Series { label: "rising".to_owned(), points: rising, joined: true },
            Series { label: "fl\x1bat".to_owned(), points: flat, joined: true },
        ];
        let values: Vec<(f64, f64)> = series.iter().flat_map(|s| s.points.clone()).collect();
        let x = Axis::at("block", Unit::Bytes, Scale::Log, values.iter().map(|p| p.0));
        let y = Axis::from_zero("throughput", Unit::Throughput, values.iter().map(|p| p.1));
        lines(&series, &x, &y, 12, pen(characters))
    }

    #[test]
    fn a_chart_fits_and_shows_every_curve() {
        for characters in [Characters::Unicode, Characters::Ascii] {
            let chart = chart(characters);
            assert!(chart.iter().all(|line| width(line) <= 60), "{}", chart.join("\n"));
            let text = chart.join("\n");
            assert!(text.contains("64 B") && text.contains("rising") && text.contains("fl\\u{1b}at"), "{text}");
            assert!(!text.contains('\x1b'));
            assert_eq!(text.is_ascii(), characters == Characters::Ascii, "{text}");
        }
    }

    #[test]
    fn a_rising_curve_rises() {
        let chart = chart(Characters::Ascii);
        let first = chart.iter().position(|line| line.ends_with('a')).expect("the last point, at the right edge");
        let last = chart.iter().rposition(|line| line.contains("+a") || line.contains("|a")).expect("the first point");
        assert!(first < last, "{}", chart.join("\n"));
    }

    #[test]
    fn points_that_are_no_numbers_are_left_out() {
        let wild = vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (-5.0, 1e300), (0.0, 0.0)];
        let series = [Series { label: String::new(), points: wild, joined: true }];
        let axis = Axis::from_zero("", Unit::Count, [1.0]);
        for width in [0, 10, 80] {
            let pen = Pen { width, ..pen(Characters::Unicode) };
            assert!(lines(&series, &axis, &axis, 8, pen).len() > 8);
        }
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        let of = |share: f64| Bar { label: "a".to_owned(), share, figure: "1".to_owned(), series: 0 };
        let drawn = bars(&[of(1.0), of(0.5), of(f64::NAN)], pen(Characters::Ascii));
        let count = |line: &String| line.matches('#').count();
        assert_eq!(count(&drawn[1]) * 2, count(&drawn[0]));
        assert_eq!(count(&drawn[2]), 0);
    }
}
