//! Bars with their figure and interval; published figures are hollow marks in the same row.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::figure::{Bar, Bars};
use super::{Chart, colours, datum, guide, rounded, scale, spec, tooltip};

pub(super) fn chart(title: &str, figure: &Bars) -> Chart {
    let several = figure.series.len() > 1;
    let elsewhere = |bar: &Bar| {
        let same = figure.published.iter().filter(|other| (other.row, other.series) == (bar.row, bar.series));
        same.map(|other| other.point.y).fold(0.0, f64::max)
    };
    // Bars of one row stand beside each other; where each row has one, it has the whole row.
    let rows: HashSet<usize> = figure.bars.iter().map(|bar| bar.row).collect();
    let beside = rows.len() < figure.bars.len();
    let mut values: Vec<Value> = Vec::new();
    for (bars, role) in [(&figure.bars, "measured"), (&figure.published, "published")] {
        for bar in bars {
            let mut datum = datum(&bar.point, &figure.series[bar.series]);
            datum.insert("row".to_owned(), figure.rows[bar.row].as_str().into());
            datum.insert("y".to_owned(), rounded(bar.point.y));
            // The figure stands behind the interval's end and what others measured.
            datum.insert("e".to_owned(), rounded(end(bar).max(elsewhere(bar))));
            datum.insert("r".to_owned(), role.into());
            values.push(datum.into());
        }
    }
    let longest = figure.bars.iter().map(|bar| end(bar).max(elsewhere(bar))).fold(0.0, f64::max);
    let mut x = scale(&figure.x);
    // Room for the figure behind the longest bar, however narrow the chart is.
    x["domain"] = json!([figure.x.low, figure.x.high]);
    x["domainMax"] = json!({"expr": format!("max({}, {longest} / max(0.3, 1 - 78 / width))", figure.x.high)});
    let place = |field: &str| json!({"field": field, "type": "quantitative", "scale": x, "axis": guide(&figure.x)});
    let row = json!({
        "field": "row", "type": "nominal", "sort": null, "title": null,
        "scale": {"domain": figure.rows}, "axis": {"grid": false, "ticks": false, "domain": false},
    });
    let layer = |mark: Value, role: &str, encoding: Value| {
        let mut all = json!({"y": row});
        if beside {
            all["yOffset"] = json!({"field": "s", "type": "nominal", "scale": {"domain": figure.series}});
        }
        for (channel, of) in encoding.as_object().into_iter().flatten() {
            all[channel] = of.clone();
        }
        json!({"mark": mark, "transform": [{"filter": {"field": "r", "equal": role}}], "encoding": all})
    };
    let colour = colours(&figure.series);
    let interval = json!({"x": place("l"), "x2": {"field": "h"}});
    let published = json!({"x": place("y"), "tooltip": tooltip()});
    let mut layers = vec![
        layer(
            json!({"type": "bar", "cornerRadiusEnd": 2}),
            "measured",
            json!({"x": place("y"), "color": colour, "tooltip": tooltip()}),
        ),
        layer(json!({"type": "rule", "style": "interval"}), "measured", interval),
        layer(
            json!({"type": "text", "align": "left", "dx": 5, "style": "figure"}),
            "measured",
            json!({"x": place("e"), "text": {"field": "f"}, "tooltip": tooltip()}),
        ),
    ];
    if !figure.published.is_empty() {
        layers.push(layer(
            json!({"type": "point", "style": "published", "shape": "diamond", "size": 70}),
            "published",
            published,
        ));
    }
    for (name, limit) in &figure.limits {
        let value = json!({"datum": limit, "type": "quantitative", "scale": x});
        layers.push(json!({"mark": {"type": "rule", "style": "limit"}, "encoding": {"x": value}}));
        layers.push(json!({
            "mark": {"type": "text", "style": "limit-name", "align": "right", "dx": -4, "baseline": "top", "y": {"expr": "height - 12"}},
            "encoding": {"x": value, "text": {"value": name}},
        }));
    }
    let step = if beside { 14 * figure.series.len() + 8 } else { 26 };
    Chart {
        title: String::new(),
        legend: if several { figure.series.clone() } else { Vec::new() },
        spec: spec(title, values, json!({"step": step, "for": "position"}), layers),
    }
}

/// Where a bar ends, its interval included.
fn end(bar: &Bar) -> f64 {
    bar.point.high.unwrap_or(bar.point.y).max(bar.point.y)
}
