//! Charts as data: axes with units, and series of points with intervals. Each renderer decides how to draw them.

use pipemark_model::{Unit, few_digits, named, neutral};

/// The kind of chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChartKind {
    /// Curves over two numeric axes.
    Curves,
    /// Horizontal bars from 0. `y.names` are the rows. A point's `y` is its row and its `x` the length of the bar.
    Bars,
    /// A heat map of `x.names` by `y.names`. Each point's `value` sets its colour.
    Heat(Colouring),
}

/// How figures are mapped to colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Colouring {
    /// From `low` to `high` on a logarithmic scale. The better end has the stronger colour.
    Sequential { low: f64, high: f64, more_is_better: bool },
    /// Factors from 1 / `most` to `most`, centred on 1.
    Diverging { most: f64 },
}

/// How figures are placed along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Proportional, from 0.
    Linear,
    /// Equal steps for equal ratios.
    Log,
    /// Like `Log`, but with a place for 0: log(1 + figure / c). This number is c, which is above 0.
    LogWithZero(f64),
    /// A share q of a whole is placed at −log10(1 − q), so that 90 % is at 1 and 99 % at 2.
    Nines,
    /// Names, one after the other.
    Names,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The title; empty for none.
    pub title: String,
    /// The unit of the figures.
    pub unit: Unit,
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

    /// Formats a round figure as a label.
    pub fn label(&self, value: f64) -> String {
        match self.scale {
            Scale::Nines if value == 0.0 => "fastest".to_owned(),
            Scale::Nines => format!("{} %", few_digits(100.0 * (1.0 - 10f64.powf(-value)))),
            _ => self.unit.tick(value),
        }
    }

    /// The position of a figure on the scale, before it is mapped to the length of the axis.
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
    /// Points so dense that they are drawn as a line without marks.
    Distribution,
    /// A limit to compare bars with, at the `x` of its one point.
    Limit,
}

named!(SeriesRole: Measured Fit Published Distribution Limit);

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in the legend; empty if the chart has one series.
    pub label: String,
    /// The meaning of the points.
    pub role: SeriesRole,
    pub points: Vec<Point>,
}

/// A figure with its interval and its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// The horizontal position, in the unit of the x axis.
    pub x: f64,
    /// The vertical position, in the unit of the y axis.
    pub y: f64,
    /// The ends of the figure's interval, along the axis of figures; `None` without an interval.
    pub interval: Option<(f64, f64)>,
    /// In a heat map, the value that sets the colour; `None` for an unranked cell, and in other charts.
    pub value: Option<f64>,
    /// In a heat map, the text of the cell; otherwise empty.
    pub brief: String,
    /// The name of the trial.
    pub name: String,
    /// The figure as text.
    pub figure: String,
    /// The interval and the number of runs as text.
    pub about: String,
}

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub title: String,
    /// The name of this chart among charts with the same title; empty for a single chart.
    pub panel: String,
    /// The main result in words; empty for none.
    pub caption: String,
    /// A note below the chart about omitted data or the meaning of marks; empty for none.
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

    /// The smallest and the largest figure that `of` returns for the points, ignoring figures below `least`. `None` if
    /// no figure is left.
    pub fn extent(&self, of: impl Fn(&Point) -> [f64; 3], least: f64) -> Option<(f64, f64)> {
        let values = self.points().flat_map(|(_, point)| of(point));
        extent(values.filter(|value| value.is_finite() && *value >= least))
    }

    /// All points, each with the series it belongs to.
    pub fn points(&self) -> impl Iterator<Item = (&Series, &Point)> {
        self.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)))
    }
}

/// The smallest and the largest value; `None` without values.
pub fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, v| Some(ends.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}
