//! A chart as data: axes with units, series of points with intervals. Each renderer decides how it is drawn.

use pipemark_model::{Unit, few_digits, named, neutral};

/// The kind of chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChartKind {
    /// Curves over two numeric axes.
    Curves,
    /// Bars from 0: `y.names` are the rows; a point's `y` is its row and its `x` the length.
    Bars,
    /// A heat map: `x.names` by `y.names`; each point's `value` sets its colour.
    Heat(Colouring),
}

/// How figures are mapped to colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Colouring {
    /// From `low` to `high` on a logarithmic scale. The better end has the stronger colour.
    Sequential { low: f64, high: f64, more_is_better: bool },
    /// Around 1. The ends are `most` times as fast and `most` times as slow.
    Diverging { most: f64 },
}

/// How figures are placed along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Proportional, from 0.
    Linear,
    /// Equal steps for equal ratios.
    Log,
    /// Like `Log`, but with a place for 0: the logarithm of 1 + figure / this number, which is above 0.
    LogWithZero(f64),
    /// Shares q of a whole, placed at −log10(1 − q): 1 is 90 %, 2 is 99 %.
    Nines,
    /// Names, one after the other.
    Names,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Its title.
    pub title: String,
    /// The unit of its figures.
    pub unit: Unit,
    /// How they are placed.
    pub scale: Scale,
    /// The names on an axis without figures.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis of figures.
    pub fn new(title: &str, unit: Unit, scale: Scale) -> Axis {
        Axis { title: neutral(title), unit, scale, names: Vec::new() }
    }

    /// An axis of names.
    pub fn named(title: &str, names: Vec<String>) -> Axis {
        Axis { names, ..Axis::new(title, Unit::Count, Scale::Names) }
    }

    /// The label of a round figure.
    pub fn label(&self, value: f64) -> String {
        match self.scale {
            Scale::Nines if value == 0.0 => "fastest".to_owned(),
            Scale::Nines => format!("{} %", few_digits(100.0 * (1.0 - 10f64.powf(-value)))),
            _ => self.unit.tick(value),
        }
    }

    /// The position of a figure, before the ends of the axis are known.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear | Scale::Nines | Scale::Names => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log2(),
            Scale::LogWithZero(unit) => (value.max(0.0) / unit).ln_1p(),
        }
    }
}

/// The meaning of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesRole {
    /// Measured here: points with intervals.
    Measured,
    /// A line through measured points.
    Fit,
    /// Measured by others on other hardware.
    Published,
    /// Points so dense that they are joined without marks.
    Distribution,
    /// A limit to compare bars with. The `x` of its one point is its position.
    Limit,
}

named!(SeriesRole: Measured Fit Published Distribution Limit);

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend; may be empty if it is the only one.
    pub label: String,
    /// Its meaning.
    pub role: SeriesRole,
    /// The points.
    pub points: Vec<Point>,
}

/// A figure with its interval and its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// Its horizontal position.
    pub x: f64,
    /// Its vertical position.
    pub y: f64,
    /// The ends of its interval, along the axis of figures.
    pub interval: Option<(f64, f64)>,
    /// In a heat map, the value that sets its colour; `None` for a cell that isn't ranked.
    pub value: Option<f64>,
    /// In a heat map, the text of the cell.
    pub brief: String,
    /// The trial.
    pub name: String,
    /// The figure as text.
    pub figure: String,
    /// Its interval and number of runs as text.
    pub about: String,
}

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// Its name among several charts of the same title; empty for a single chart.
    pub panel: String,
    /// Its message; may be empty.
    pub caption: String,
    /// A note below it: what was omitted to keep it readable, or what its marks mean; may be empty.
    pub below: String,
    /// The kind of chart.
    pub kind: ChartKind,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data.
    pub series: Vec<Series>,
}

impl Chart {
    /// A single chart, without a note.
    pub fn new(title: &str, kind: ChartKind, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
        let (panel, caption, below) = Default::default();
        Chart { title: title.to_owned(), panel, caption, below, kind, x, y, series }
    }

    /// The smallest and largest of the figures that `of` returns for the points. Ignores figures below `least`; `None`
    /// if there are no others.
    pub fn extent(&self, of: impl Fn(&Point) -> [f64; 3], least: f64) -> Option<(f64, f64)> {
        let values = self.points().flat_map(|(_, point)| of(point));
        extent(values.filter(|value| value.is_finite() && *value >= least))
    }

    /// All points, each with its series.
    pub fn points(&self) -> impl Iterator<Item = (&Series, &Point)> {
        self.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)))
    }
}

/// The smallest and largest; `None` if there are none.
pub fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, v| Some(ends.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}
