//! A chart as data: axes with units, series of points with intervals. How it is drawn is decided where it is rendered.

use pipemark_model::{Unit, few_digits, named, neutral};

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChartKind {
    /// Curves over two axes of numbers.
    Curves,
    /// Bars from 0: `y.names` are the rows, a point's `y` is its row and its `x` the length.
    Bars,
    /// A coloured table: `x.names` by `y.names`, each point's `value` decides its colour.
    Heat(Colouring),
}

/// How figures become colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Colouring {
    /// From `low` to `high` on a logarithmic scale; the better end is the stronger colour.
    Sequential { low: f64, high: f64, more_is_better: bool },
    /// Around 1: `most` times as fast and as slow are the two ends.
    Diverging { most: f64 },
}

/// How figures are laid along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// In proportion, from 0.
    Linear,
    /// Equal steps for equal ratios.
    Log,
    /// As `Log`, but with a place for 0: the logarithm of 1 + the figure over this one, which is above 0.
    LogWithZero(f64),
    /// Shares q of a whole, each as −log10(1 − q): 1 is 90 %, 2 is 99 %.
    Nines,
    /// Words, one after the other.
    Names,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What stands beside it.
    pub title: String,
    /// What its figures are.
    pub unit: Unit,
    /// How they are laid out.
    pub scale: Scale,
    /// The words of an axis that has no figures.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis of figures.
    pub fn new(title: &str, unit: Unit, scale: Scale) -> Axis {
        Axis { title: neutral(title), unit, scale, names: Vec::new() }
    }

    /// An axis of words.
    pub fn named(title: &str, names: Vec<String>) -> Axis {
        Axis { names, ..Axis::new(title, Unit::Count, Scale::Names) }
    }

    /// A round figure beside the axis.
    pub fn label(&self, value: f64) -> String {
        match self.scale {
            Scale::Nines if value == 0.0 => "fastest".to_owned(),
            Scale::Nines => format!("{} %", few_digits(100.0 * (1.0 - 10f64.powf(-value)))),
            _ => self.unit.tick(value),
        }
    }

    /// Where a figure stands, before the axis' ends are known.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear | Scale::Nines | Scale::Names => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log2(),
            Scale::LogWithZero(unit) => (value.max(0.0) / unit).ln_1p(),
        }
    }
}

/// What a series stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesRole {
    /// Measured here: points with intervals.
    Measured,
    /// A line through measured points.
    Fit,
    /// Measured by others on other hardware.
    Published,
    /// Points so dense that they are joined and not marked.
    Distribution,
    /// What bars are held against; its one point's `x` is where.
    Limit,
}

named!(SeriesRole: Measured Fit Published Distribution Limit);

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend; may be empty where there is one.
    pub label: String,
    /// What it stands for.
    pub role: SeriesRole,
    /// The points.
    pub points: Vec<Point>,
}

/// A figure with its interval, and its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// Where it stands across.
    pub x: f64,
    /// Where it stands up.
    pub y: f64,
    /// The ends of its interval, along the axis of figures.
    pub interval: Option<(f64, f64)>,
    /// In a coloured table what its colour says; `None` for what is not to be ranked.
    pub value: Option<f64>,
    /// In a coloured table what stands in the cell.
    pub brief: String,
    /// The trial.
    pub name: String,
    /// The figure, in words.
    pub figure: String,
    /// Its interval and number of runs, in words.
    pub about: String,
}

/// One chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Which of several charts of the same title it is; empty for one alone.
    pub panel: String,
    /// What it says; may be empty.
    pub caption: String,
    /// A note below it: what was omitted to keep it readable, or what its marks mean; may be empty.
    pub below: String,
    /// What is drawn.
    pub kind: ChartKind,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is in it.
    pub series: Vec<Series>,
}

impl Chart {
    /// A chart alone, without a note.
    pub fn new(title: &str, kind: ChartKind, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
        let (panel, caption, below) = Default::default();
        Chart { title: title.to_owned(), panel, caption, below, kind, x, y, series }
    }

    /// The least and the greatest of some figures of its points, if there are any.
    pub fn extent(&self, of: impl Fn(&Point) -> [f64; 3], least: f64) -> Option<(f64, f64)> {
        let values = self.points().flat_map(|(_, point)| of(point));
        extent(values.filter(|value| value.is_finite() && *value >= least))
    }

    /// All points, each with its series.
    pub fn points(&self) -> impl Iterator<Item = (&Series, &Point)> {
        self.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)))
    }
}

/// The least and the greatest, if there are any.
pub fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, v| Some(ends.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}
