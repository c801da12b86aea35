//! Charts as Vega-Lite specifications. The library lays out scales and axes, and `page/charts.json` defines the marks.
//! Text from a file occurs only as a value in `data` or in a scale's domain. Such text is never part of an expression,
//! a field's name or an address, so the library draws it as text.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use pipemark_model::{Unit, distinct};

use crate::plot::ascending;
use crate::{Axis, Chart, ChartKind, Colouring, Point, Scale, SeriesRole};

/// Templates of charts and of their parts. A string `$NAME` is replaced by the part NAME or, if there is no such part,
/// by the template NAME. Without either, the string and its key are omitted.
static TEMPLATES: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("page/charts.json")).expect("the built-in templates are valid JSON")
});

/// The specification and the names in the legend. The names are empty if the chart has one series and needs no legend.
pub(super) fn spec(chart: &Chart) -> (Value, Vec<String>) {
    let chart = &with_drawable_names(chart);
    let names = |published: bool| {
        let drawn = chart.series.iter().filter(|series| !matches!(series.role, SeriesRole::Limit | SeriesRole::Fit));
        let those = drawn.filter(|series| (series.role == SeriesRole::Published) == published);
        distinct(those.map(|series| series.label.as_str()))
    };
    let (measured, elsewhere) = (names(false), names(true));
    let (kind, values, mut parts) = match chart.kind {
        ChartKind::Curves => curves(chart, &measured),
        ChartKind::Bars => bars(chart, &measured),
        ChartKind::Heat(colouring) => heat(chart, colouring),
    };
    let title = if chart.panel.is_empty() { chart.title.clone() } else { format!("{}, {}", chart.title, chart.panel) };
    // Only measured series have a colour, in the order of the names.
    parts.extend([("title", json!(title)), ("names", json!(measured))]);
    parts.extend((measured.len() < 2).then_some(("legend", Value::Null)));
    let mut spec = fill_template(&TEMPLATES["chart"], &parts);
    for part in ["height", "layer"] {
        spec[part] = fill_template(&TEMPLATES[kind][part], &parts);
    }
    spec["data"]["values"] = values.into();
    let legend = if chart.kind == ChartKind::Bars { measured } else { [measured, elsewhere].concat() };
    (spec, if legend.len() > 1 { legend.into_iter().map(str::to_owned).collect() } else { Vec::new() })
}

/// The name of the template, the data, and the named parts.
type Parts = (&'static str, Vec<Value>, Vec<(&'static str, Value)>);

/// A template with its parts filled in.
fn fill_template(form: &Value, parts: &[(&str, Value)]) -> Value {
    let part = |value: &Value| match value.as_str().and_then(|text| text.strip_prefix('$')) {
        None => Some(fill_template(value, parts)),
        Some(name) => match parts.iter().find(|(part, _)| *part == name) {
            Some((_, value)) => Some(value.clone()),
            None => TEMPLATES.get(name).map(|form| fill_template(form, parts)),
        },
    };
    match form {
        Value::Array(items) => items.iter().filter_map(part).collect(),
        Value::Object(fields) => fields.iter().filter_map(|(key, value)| Some((key.clone(), part(value)?))).collect(),
        other => other.clone(),
    }
}

/// Names of properties that every JavaScript object has. The library looks up the names of curves and rows in objects,
/// and draws nothing for a name in this list.
const PROPERTIES: &str = "constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf \
                          __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__";

/// The chart with a zero-width space after each name that is a property of every object.
fn with_drawable_names(chart: &Chart) -> Chart {
    let mut chart = chart.clone();
    let labels = chart.series.iter_mut().map(|series| &mut series.label);
    for name in labels.chain(&mut chart.x.names).chain(&mut chart.y.names) {
        if PROPERTIES.split(' ').any(|property| property == name) {
            name.push('\u{200b}');
        }
    }
    chart
}

/// Curves with bands for intervals. Fits are thin lines. Published figures are dashed lines with hollow marks.
fn curves(chart: &Chart, names: &[&str]) -> Parts {
    let across = VegaFigures::new(&chart.x, chart.extent(|point| [point.x; 3], f64::MIN));
    let least = if chart.y.scale == Scale::Log { f64::MIN_POSITIVE } else { f64::MIN };
    let up = VegaFigures::new(&chart.y, chart.extent(|point| [point.y; 3], least));
    let values = chart.points().map(|(series, point)| {
        let role = match series.role == SeriesRole::Fit && !names.contains(&series.label.as_str()) {
            true => "published fit",
            false => series.role.name(),
        };
        let mut datum = datum(point, &series.label, role);
        datum["x"] = across.value(point.x);
        datum["y"] = up.value(point.y);
        if let Some((low, high)) = point.interval {
            datum["l"] = up.value(low);
            datum["h"] = up.value(high);
        }
        datum
    });
    let measured = chart.points().filter(|(series, _)| series.role == SeriesRole::Measured);
    let measured = ascending(measured.map(|(_, point)| point.x));
    let mut x = across.channel("x");
    if !measured.is_empty() {
        x["axis"]["values"] = measured.into_iter().map(|x| across.value(x)).collect();
    }
    // There are eight colours. From the ninth curve on, lines are dashed.
    let dashes = (0..names.len()).map(|index| json!([[1, 0], [7, 3], [2, 3]][(index / 8).min(2)]));
    let parts = vec![("x", x), ("y", up.channel("y")), ("low", up.channel("l")), ("patterns", dashes.collect())];
    ("curves", values.collect(), parts)
}

/// Bars with their figures and intervals. Published figures are hollow marks in the same row.
fn bars(chart: &Chart, names: &[&str]) -> Parts {
    // The axis is scaled to the figures. An interval that reaches slightly beyond the longest bar is cut there.
    let longest = chart.extent(|point| [point.x, 0.0, 0.0], 0.0).unwrap_or((0.0, 1.0)).1;
    let beyond = longest * 1.15;
    let along = VegaFigures::new(&chart.x, Some((0.0, longest)));
    // The ends of the bars, by row and label.
    let mut ends: HashMap<(usize, &str), f64> = HashMap::new();
    for (series, point) in chart.points().filter(|(series, _)| series.role == SeriesRole::Measured) {
        let end = point.interval.map_or(point.x, |ends| ends.1.max(point.x)).min(beyond);
        let known = ends.entry((point.y as usize, &series.label)).or_default();
        *known = known.max(end);
    }
    let values = chart.points().map(|(series, point)| {
        let mut datum = datum(point, &series.label, series.role.name());
        datum["x"] = along.value(point.x);
        if series.role == SeriesRole::Limit {
            return datum;
        }
        datum["row"] = json!(chart.y.names[point.y as usize]);
        // The text of the figure is placed to the right of the interval.
        datum["e"] = along.value(ends.get(&(point.y as usize, &series.label[..])).copied().unwrap_or_default());
        if let Some((low, high)) = point.interval {
            datum["l"] = along.value(low.min(beyond));
            datum["h"] = along.value(high.min(beyond));
        }
        datum
    });
    // Bars of one row are side by side. If each row has only one bar, the bar fills the row.
    let measured = || chart.series.iter().filter(|series| series.role == SeriesRole::Measured);
    let bars: usize = measured().map(|series| series.points.len()).sum();
    let beside = measured().count() > 1 && bars > chart.y.names.len();
    let place = |field: &str| {
        let mut channel = along.channel(field);
        // Leaves room for the figure to the right of the longest bar, however narrow the chart is.
        let most = format!("{} / max(0.3, 1 - 78 / width)", beyond / along.divisor);
        channel["axis"]["tickCount"] = json!(6);
        channel["axis"]["labelFlush"] = json!(false);
        channel["scale"] = json!({"type": "linear", "domainMin": 0, "domainMax": {"expr": most}, "nice": false});
        channel
    };
    // Published figures are placed below the measured figure, never between the measured figure and its bar.
    let published = chart.series.iter().any(|series| series.role == SeriesRole::Published);
    let each = if published { 20 } else { 14 };
    let step = if beside { each * names.len() + 8 } else { 26 };
    let mut parts = vec![("x", place("x")), ("low", place("l")), ("end", place("e")), ("step", json!(step))];
    parts.push(("row", words_channel(&chart.y, "row", "letters", 0.5)));
    parts.extend(beside.then(|| ("beside", json!({"field": "s", "type": "nominal", "scale": {"domain": names}}))));
    parts.extend(published.then_some([("above", json!(-4)), ("below", json!(5))]).into_iter().flatten());
    ("bars", values.collect(), parts)
}

/// A heat map. Cells that aren't ranked have no colour.
fn heat(chart: &Chart, colouring: Colouring) -> Parts {
    let values = chart.points().map(|(series, point)| {
        let place = point.value.map(|value| place(colouring, value));
        let tone = match (place, colouring) {
            (None, _) => "unranked",
            // The text on a strong colour has the opposite brightness.
            (Some(place), Colouring::Sequential { .. }) if place > 0.58 => "strong",
            (Some(place), Colouring::Diverging { .. }) if place.abs() > 0.7 => "strong",
            (Some(_), _) => "weak",
        };
        let mut datum = datum(point, &series.label, tone);
        datum["row"] = json!(chart.y.names[point.y as usize]);
        datum["column"] = json!(chart.x.names[point.x as usize]);
        datum["b"] = json!(point.brief);
        datum["v"] = place.map_or(Value::Null, round_digits);
        datum
    });
    let colours = match colouring {
        Colouring::Sequential { .. } => "sequential",
        Colouring::Diverging { .. } => "diverging",
    };
    // If there are many columns, names are not wrapped, but some names are omitted.
    let letters = match chart.x.names.len() {
        columns @ 1..=8 => format!("max(4, floor(width / {columns} / 6))"),
        _ => "99".to_owned(),
    };
    let mut column = words_channel(&chart.x, "column", &letters, 1.0);
    column["title"] = if chart.x.title.is_empty() { Value::Null } else { json!(chart.x.title) };
    for (key, value) in TEMPLATES["column-axis"].as_object().into_iter().flatten() {
        column["axis"][key] = value.clone();
    }
    // A cell's text that would overlap its neighbours is omitted. The tooltip and the table show the text.
    let room = format!("width >= {}", chart.x.names.len() * 34);
    let row = words_channel(&chart.y, "row", "letters", 0.5);
    let parts = vec![("column", column), ("row", row), ("colours", TEMPLATES[colours].clone()), ("room", json!(room))];
    ("heat", values.collect(), parts)
}

/// The position of a figure on the colour scale: 0 to 1, or −1 to 1 around the baseline.
fn place(colouring: Colouring, value: f64) -> f64 {
    match colouring {
        Colouring::Sequential { low, high, more_is_better } => {
            let share = if high > low { (value / low).ln() / (high / low).ln() } else { 0.5 };
            if more_is_better { share } else { 1.0 - share }
        }
        Colouring::Diverging { most } => value.ln() / most.ln(),
    }
}

/// Converts figures for an axis. On a proportional axis, figures are multiples of a unit named in the title, so that
/// the library finds round numbers. On other axes the labels have the unit.
struct VegaFigures<'a> {
    axis: &'a Axis,
    divisor: f64,
    domain: (f64, f64),
}

impl<'a> VegaFigures<'a> {
    fn new(axis: &'a Axis, extent: Option<(f64, f64)>) -> VegaFigures<'a> {
        let (low, high) = extent.unwrap_or((1.0, 10.0));
        let linear = axis.scale == Scale::Linear;
        let divisor = if linear { axis.unit.multiple(high).0 } else { 1.0 };
        let domain = if linear { (0.0, high / divisor) } else { (low, if high > low { high } else { low * 2.0 }) };
        VegaFigures { axis, divisor, domain }
    }

    fn value(&self, value: f64) -> Value {
        round_digits(value / self.divisor)
    }

    fn channel(&self, field: &str) -> Value {
        let unit = self.axis.unit;
        let domain = [self.domain.0, self.domain.1];
        let scale = match self.axis.scale {
            Scale::LogWithZero(constant) => {
                json!({"type": "symlog", "constant": constant, "domain": domain, "nice": false})
            }
            // Round bytes are powers of two, and round times powers of ten.
            Scale::Log => {
                json!({"type": "log", "base": if unit == Unit::Nanoseconds { 10 } else { 2 }, "domain": domain, "nice": field != "x"})
            }
            _ => json!({"type": "linear", "domain": domain, "nice": self.axis.scale != Scale::Nines}),
        };
        let per = if unit == Unit::BytesPerSecond { "/s" } else { "" };
        let mut axis = json!({"title": self.axis.title, "labelOverlap": true});
        if self.axis.scale == Scale::Linear && unit.multiples().len() > 1 {
            axis["title"] = json!(format!("{}, {}{per}", self.axis.title, unit.multiple(self.divisor).1));
        } else if self.axis.scale == Scale::Nines {
            axis["tickMinStep"] = json!(1);
            axis["labelExpr"] =
                json!("datum.value == 0 ? 'fastest' : format(100 * (1 - pow(10, -datum.value)), '.6~r') + ' %'");
        } else if unit.multiples().len() > 1 {
            let label = |(multiple, name): &(f64, &str)| {
                format!("datum.value >= {multiple} ? format(datum.value / {multiple}, '.4~r') + ' {name}{per}' : ")
            };
            // The expression is made from pipemark's own table of units, and contains no text from a file.
            axis["labelExpr"] =
                json!(unit.multiples().iter().map(label).collect::<String>() + "format(datum.value, '.3~r')");
        }
        json!({"field": field, "type": "quantitative", "scale": scale, "axis": axis})
    }
}

/// A channel of names, which are wrapped into lines of at most as many letters as the expression `letters` gives. The
/// library puts the first line where a single line would be, so a name of several lines is raised by `share` times the
/// height of the lines after the first.
fn words_channel(axis: &Axis, field: &str, letters: &str, share: f64) -> Value {
    let lines =
        format!("split(trim(replace(datum.label, regexp('(.{{1,' + {letters} + '}})( |$)', 'g'), '$1\\n')), '\\n')");
    let raised = format!("{} * (length({lines}) - 1)", -13.0 * share);
    let parts =
        [("field", json!(field)), ("domain", json!(axis.names)), ("lines", json!(lines)), ("raised", json!(raised))];
    fill_template(&TEMPLATES["words"], &parts)
}

/// The texts of a point, as a JSON object to which the position is added.
fn datum(point: &Point, series: &str, role: &str) -> Value {
    json!({"s": series, "n": point.name, "f": point.figure, "i": point.about, "r": role})
}

/// Rounds to five significant digits, because more aren't visible and a mailed page should be small. Whole numbers stay
/// exact, because a rounded one could lie beyond the end of an axis.
fn round_digits(value: f64) -> Value {
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => json!(value as i64),
        false => json!(format!("{value:.4e}").parse::<f64>().unwrap_or(value)),
    }
}
