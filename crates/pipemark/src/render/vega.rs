//! Charts as Vega-Lite specifications: the library lays out scales and axes. What comes from a file is a value in `data` or
//! in a scale's domain, never a part of an expression, a field's name or an address: the library then draws it as text.

use serde_json::{Map, Value, json};

use crate::model::Unit;
use crate::sheet::{Axis, Chart, Colouring, Kind, Point, Role, Scale};

const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// The specification, and the names that its legend tells apart: none where there is nothing to tell.
pub(super) fn spec(chart: &Chart) -> (Value, Vec<String>) {
    let names = |published: bool| {
        let mut names: Vec<&str> = Vec::new();
        for series in &chart.series {
            let fits = series.role != Role::Limit && (series.role == Role::Published) == published;
            if fits && !names.contains(&series.label.as_str()) {
                names.push(&series.label);
            }
        }
        names
    };
    let (measured, elsewhere) = (names(false), names(true));
    let (values, height, layers) = match chart.kind {
        Kind::Curves => curves(chart, &measured),
        Kind::Bars => bars(chart, &measured),
        Kind::Heat(colouring) => heat(chart, colouring),
    };
    let title = if chart.panel.is_empty() { chart.title.clone() } else { format!("{}, {}", chart.title, chart.panel) };
    let spec = json!({
        "$schema": SCHEMA,
        "description": title,
        "width": 640,
        "height": height,
        "data": {"values": values},
        "params": [{"name": "hidden", "value": []}],
        "transform": [{"filter": "indexof(hidden, datum.s) < 0"}],
        "layer": layers,
    });
    let legend = match chart.kind {
        Kind::Bars => measured,
        _ => [measured, elsewhere].concat(),
    };
    (spec, if legend.len() > 1 { legend.into_iter().map(str::to_owned).collect() } else { Vec::new() })
}

type Parts = (Vec<Value>, Value, Vec<Value>);

/// Curves with bands for their intervals; fits are thin, published figures are dashed with hollow marks.
fn curves(chart: &Chart, names: &[&str]) -> Parts {
    let across = Figures::new(&chart.x, chart.extent(|point| [point.x; 3], f64::MIN));
    let least = if chart.y.scale == Scale::Log { f64::MIN_POSITIVE } else { f64::MIN };
    let up = Figures::new(&chart.y, chart.extent(|point| [point.y; 3], least));
    let mut values = Vec::new();
    for (series, point) in chart.points() {
        let mut datum = datum(point, &series.label, series.role);
        datum.insert("x".to_owned(), across.value(point.x));
        datum.insert("y".to_owned(), up.value(point.y));
        if let Some((low, high)) = point.interval {
            datum.insert("l".to_owned(), up.value(low));
            datum.insert("h".to_owned(), up.value(high));
        }
        values.push(datum.into());
    }
    let mut measured: Vec<f64> =
        chart.points().filter(|(series, _)| series.role == Role::Measured).map(|(_, p)| p.x).collect();
    measured.sort_by(f64::total_cmp);
    measured.dedup();
    let mut x = across.channel("x");
    if !measured.is_empty() {
        x["axis"]["values"] = measured.into_iter().map(|x| across.value(x)).collect();
    }
    let channel = |field: &str| up.channel(field);
    let (base, colour) = (json!({"x": x, "y": channel("y")}), colours(names));
    let told = json!({"tooltip": tooltip()});
    let coloured = json!({"color": colour});
    let detail = json!({"detail": {"field": "s"}});
    let mut layers = vec![
        layer(
            json!({"type": "area", "opacity": 0.18, "line": false, "clip": true}),
            &[Role::Measured],
            &[&base, &coloured, &json!({"y": channel("l"), "y2": {"field": "h"}})],
        ),
        layer(
            json!({"type": "line", "strokeWidth": 1, "opacity": 0.7, "strokeDash": [2, 2]}),
            &[Role::Fit],
            &[&base, &coloured],
        ),
        layer(
            json!({"type": "line", "strokeWidth": 2}),
            &[Role::Measured, Role::Distribution],
            &[&base, &coloured, &json!({"strokeDash": dashes(names)})],
        ),
        layer(
            json!({"type": "point", "filled": true, "opacity": 1, "size": 42}),
            &[Role::Measured],
            &[&base, &coloured],
        ),
    ];
    if chart.series.iter().any(|series| series.role == Role::Published) {
        let dashes = json!({"type": "line", "style": "published", "strokeDash": [5, 4]});
        let marks = json!({"type": "point", "style": "published", "shape": "diamond", "size": 60});
        layers.extend([dashes, marks].map(|mark| layer(mark, &[Role::Published], &[&base, &detail])));
    }
    // A finger is wider than a mark.
    let near = json!({"type": "point", "filled": true, "opacity": 0, "size": 320});
    layers.push(layer(near, &[Role::Measured, Role::Fit, Role::Distribution, Role::Published], &[&base, &told]));
    (values, json!(340), layers)
}

/// Bars with their figure and interval; published figures are hollow marks in the same row.
fn bars(chart: &Chart, names: &[&str]) -> Parts {
    // An axis fits the figures; an interval may reach a little beyond the longest, and ends there.
    let longest = chart.extent(|point| [point.x, 0.0, 0.0], 0.0).unwrap_or((0.0, 1.0)).1;
    let beyond = longest * 1.15;
    let along = Figures::new(&chart.x, Some((0.0, longest)));
    let end = |row: f64, label: &str| {
        let same = chart.points().filter(|(series, point)| point.y == row && series.label == label);
        same.map(|(_, point)| ends(point, point.x).1.max(point.x).min(beyond)).fold(0.0, f64::max)
    };
    let mut values = Vec::new();
    let measured = |series: &&crate::sheet::Series| series.role == Role::Measured;
    let several = chart.series.iter().filter(measured).count() > 1;
    for (series, point) in chart.points().filter(|(series, _)| series.role != Role::Limit) {
        let mut datum = datum(point, &series.label, series.role);
        datum.insert("row".to_owned(), chart.y.names[point.y as usize].as_str().into());
        datum.insert("x".to_owned(), along.value(point.x));
        // The figure stands behind the interval's end and what others measured.
        datum.insert("e".to_owned(), along.value(end(point.y, &series.label)));
        if let Some((low, high)) = point.interval {
            datum.insert("l".to_owned(), along.value(low.min(beyond)));
            datum.insert("h".to_owned(), along.value(high.min(beyond)));
        }
        values.push(datum.into());
    }
    // Bars of one row stand beside each other; where each row has one, it has the whole row.
    let bars: usize = chart.series.iter().filter(measured).map(|series| series.points.len()).sum();
    let beside = several && bars > chart.y.names.len();
    let place = |field: &str| {
        let mut channel = along.channel(field);
        // Fit for the figure behind the longest bar, however narrow the chart is.
        let longest = beyond / along.divisor;
        let most = format!("{longest} / max(0.3, 1 - 78 / width)");
        channel["axis"]["tickCount"] = json!(6);
        channel["scale"] = json!({"type": "linear", "domainMin": 0, "domainMax": {"expr": most}, "nice": false});
        channel
    };
    let mut base = json!({"y": named(&chart.y, "row")});
    if beside {
        base["yOffset"] = json!({"field": "s", "type": "nominal", "scale": {"domain": names}});
    }
    let told = json!({"tooltip": tooltip()});
    let coloured = json!({"x": place("x"), "color": colours(names)});
    let mut layers = vec![
        layer(json!({"type": "bar", "cornerRadiusEnd": 2}), &[Role::Measured], &[&base, &coloured, &told]),
        layer(
            json!({"type": "rule", "style": "interval"}),
            &[Role::Measured],
            &[&base, &json!({"x": place("l"), "x2": {"field": "h"}})],
        ),
        layer(
            json!({"type": "text", "align": "left", "dx": 5, "style": "figure"}),
            &[Role::Measured],
            &[&base, &json!({"x": place("e"), "text": {"field": "f"}}), &told],
        ),
    ];
    if chart.series.iter().any(|series| series.role == Role::Published) {
        let mark = json!({"type": "point", "style": "published", "shape": "diamond", "size": 70});
        layers.push(layer(mark, &[Role::Published], &[&base, &json!({"x": place("x")}), &told]));
    }
    for series in chart.series.iter().filter(|series| series.role == Role::Limit) {
        for point in &series.points {
            let value = json!({"datum": along.value(point.x), "type": "quantitative", "scale": place("x")["scale"]});
            let once = json!({"values": [{}]});
            let rule = json!({"type": "rule", "style": "limit"});
            layers.push(json!({"data": once, "mark": rule, "encoding": {"x": value}}));
            layers.push(json!({
                "data": once,
                "mark": {"type": "text", "style": "limit-name", "align": "right", "dx": -4, "baseline": "top", "y": {"expr": "height - 12"}},
                "encoding": {"x": value, "text": {"value": series.label}},
            }));
        }
    }
    let step = if beside { 14 * names.len() + 8 } else { 26 };
    (values, json!({"step": step, "for": "position"}), layers)
}

/// A coloured table. Cells that are not ranked have no colour.
fn heat(chart: &Chart, colouring: Colouring) -> Parts {
    let mut values = Vec::new();
    for (series, point) in chart.points() {
        let mut datum = datum(point, &series.label, series.role);
        let place = point.value.map(|value| place(colouring, value));
        let tone = match (place, colouring) {
            (None, _) => "unranked",
            // Strong colours need text of the other kind.
            (Some(place), Colouring::Sequential { .. }) if place > 0.58 => "strong",
            (Some(place), Colouring::Diverging { .. }) if place.abs() > 0.7 => "strong",
            (Some(_), _) => "weak",
        };
        datum.insert("row".to_owned(), chart.y.names[point.y as usize].as_str().into());
        datum.insert("column".to_owned(), chart.x.names[point.x as usize].as_str().into());
        datum.insert("b".to_owned(), point.brief.as_str().into());
        datum.insert("v".to_owned(), place.map_or(Value::Null, rounded));
        datum.insert("r".to_owned(), tone.into());
        values.push(datum.into());
    }
    let colour = match colouring {
        Colouring::Sequential { .. } => json!({"domain": [0, 1], "range": "heatmap"}),
        Colouring::Diverging { .. } => json!({"domain": [-1, 1], "domainMid": 0, "range": "diverging"}),
    };
    let mut column = named(&chart.x, "column");
    let title = if chart.x.title.is_empty() { Value::Null } else { json!(chart.x.title) };
    column["title"] = title;
    for (key, value) in [("orient", json!("top")), ("labelAngle", json!(0)), ("labelOverlap", json!(true))] {
        column["axis"][key] = value;
    }
    let base = json!({"x": column, "y": named(&chart.y, "row"), "tooltip": tooltip()});
    let layer = |mark: Value, tones: &[&str], more: Value| json!({"mark": mark, "transform": [{"filter": {"field": "r", "oneOf": tones}}], "encoding": joined(&[&base, &more])});
    let colour = json!({"color": {"field": "v", "type": "quantitative", "scale": colour, "legend": null}});
    let mut layers = vec![
        layer(json!({"type": "rect", "style": "cell"}), &["strong", "weak"], colour),
        layer(json!({"type": "rect", "style": "unranked"}), &["unranked"], json!({})),
    ];
    // Text that would run into its neighbours is left out; the pointer and the table have it.
    let room = format!("width >= {}", chart.x.names.len() * 34);
    let text = json!({"text": {"condition": {"test": room, "field": "b"}, "value": ""}});
    for tone in ["strong", "weak", "unranked"] {
        layers.push(layer(json!({"type": "text", "style": format!("cell-{tone}")}), &[tone], text.clone()));
    }
    (values, json!({"step": 27}), layers)
}

/// Where a figure stands between the two ends of the colours: 0 to 1, or −1 to 1 around the baseline.
fn place(colouring: Colouring, value: f64) -> f64 {
    match colouring {
        Colouring::Sequential { low, high, more_is_better } => {
            let share = if high > low { (value / low).ln() / (high / low).ln() } else { 0.5 };
            if more_is_better { share } else { 1.0 - share }
        }
        Colouring::Diverging { most } => value.ln() / most.ln(),
    }
}

/// The ends of a point's interval, or the figure itself.
fn ends(point: &Point, figure: f64) -> (f64, f64) {
    point.interval.unwrap_or((figure, figure))
}

/// How figures reach an axis. On one in proportion they are multiples of a unit that the title names, so that the library
/// finds round ones; on others labels have the unit.
struct Figures<'a> {
    axis: &'a Axis,
    divisor: f64,
    domain: (f64, f64),
}

impl<'a> Figures<'a> {
    fn new(axis: &'a Axis, extent: Option<(f64, f64)>) -> Figures<'a> {
        let (low, high) = extent.unwrap_or((1.0, 10.0));
        let linear = axis.scale == Scale::Linear;
        let divisor = if linear { axis.unit.multiple(high).0 } else { 1.0 };
        let domain = if linear { (0.0, high / divisor) } else { (low, if high > low { high } else { low * 2.0 }) };
        Figures { axis, divisor, domain }
    }

    fn value(&self, value: f64) -> Value {
        rounded(value / self.divisor)
    }

    fn channel(&self, field: &str) -> Value {
        let unit = self.axis.unit;
        let domain = [self.domain.0, self.domain.1];
        let scale = match self.axis.scale {
            Scale::LogWithZero(constant) => {
                json!({"type": "symlog", "constant": constant, "domain": domain, "nice": false})
            }
            // Bytes are round in powers of two, times in powers of ten.
            Scale::Log => {
                json!({"type": "log", "base": if unit == Unit::Nanoseconds { 10 } else { 2 }, "domain": domain, "nice": field != "x"})
            }
            _ => json!({"type": "linear", "domain": domain, "nice": self.axis.scale != Scale::Nines}),
        };
        let mut axis = json!({"title": self.axis.title, "labelOverlap": true});
        if self.axis.scale == Scale::Linear && unit.multiples().len() > 1 {
            let (_, name) = unit.multiple(self.divisor);
            let per = if unit == Unit::BytesPerSecond { "/s" } else { "" };
            axis["title"] = json!(format!("{}, {name}{per}", self.axis.title));
        } else if self.axis.scale == Scale::Nines {
            axis["tickMinStep"] = json!(1);
            axis["labelExpr"] =
                json!("datum.value == 0 ? 'fastest' : format(100 * (1 - pow(10, -datum.value)), '.6~r') + ' %'");
        } else if unit.multiples().len() > 1 {
            let per = if unit == Unit::BytesPerSecond { "/s" } else { "" };
            let label = |(multiple, name): &(f64, &str)| {
                format!("datum.value >= {multiple} ? format(datum.value / {multiple}, '.4~r') + ' {name}{per}' : ")
            };
            // Made of our own table of units, so this expression holds nothing from a file.
            axis["labelExpr"] =
                json!(unit.multiples().iter().map(label).collect::<String>() + "format(datum.value, '.3~r')");
        }
        json!({"field": field, "type": "quantitative", "scale": scale, "axis": axis})
    }
}

/// A channel of words.
fn named(axis: &Axis, field: &str) -> Value {
    json!({
        "field": field, "type": "nominal", "sort": null, "title": null,
        "scale": {"domain": axis.names}, "axis": {"grid": false, "ticks": false, "domain": false},
    })
}

/// Marks for the points of some roles; of encodings that name the same channel the last holds.
fn layer(mark: Value, roles: &[Role], encodings: &[&Value]) -> Value {
    let roles: Vec<&str> = roles.iter().map(|role| word(*role)).collect();
    json!({"mark": mark, "transform": [{"filter": {"field": "r", "oneOf": roles}}], "encoding": joined(encodings)})
}

fn joined(encodings: &[&Value]) -> Value {
    let channels = encodings.iter().filter_map(|encoding| encoding.as_object()).flatten();
    Value::Object(channels.map(|(channel, of)| (channel.clone(), of.clone())).collect())
}

/// What the pointer shows. The fields hold finished text.
fn tooltip() -> Value {
    json!([{"field": "n", "title": "trial"}, {"field": "f", "title": "figure"}, {"field": "i", "title": "95 %"}])
}

/// The words of a point, to which its place is added.
fn datum(point: &Point, series: &str, role: Role) -> Map<String, Value> {
    let words = [("s", series), ("n", &point.name), ("f", &point.figure), ("i", &point.about), ("r", word(role))];
    words.into_iter().map(|(field, text)| (field.to_owned(), text.into())).collect()
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Measured => "measured",
        Role::Fit => "fit",
        Role::Published => "published",
        Role::Distribution => "distribution",
        Role::Limit => "limit",
    }
}

/// More digits than five cannot be seen, and a page that is mailed should be small. Whole numbers stay, as an axis ends at one.
fn rounded(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return json!(value as i64);
    }
    let value = format!("{value:.4e}").parse::<f64>().ok().filter(|value| value.is_finite());
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 9e15 => json!(value as i64),
        other => json!(other),
    }
}

/// There are eight colours: the ninth curve and those after it are drawn in another line.
fn dashes(names: &[&str]) -> Value {
    let range = (0..names.len()).map(|index| match index / 8 {
        0 => json!([1, 0]),
        1 => json!([7, 3]),
        _ => json!([2, 3]),
    });
    let range: Value = range.collect();
    json!({"field": "s", "type": "nominal", "scale": {"domain": names, "range": range}, "legend": null})
}

fn colours(names: &[&str]) -> Value {
    let legend = match names.len() > 1 {
        true => json!({"title": null, "orient": "bottom", "columns": 2, "labelLimit": 300}),
        false => Value::Null,
    };
    json!({"field": "s", "type": "nominal", "scale": {"domain": names}, "legend": legend})
}
