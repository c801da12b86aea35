//! Figures as Vega-Lite specifications. What comes from a file is a value in `data` or in a scale's domain, never a part of
//! an expression, a field's name or an address: the library then draws it as text.

mod bars;
mod curves;
mod heat;

use serde_json::{Value, json};

use super::figure::{Figure, Point, Shape};
use crate::show::axis::{Axis, Scale};

/// A specification, and the words that the page puts around it.
pub(super) struct Chart {
    /// What it is one of several panels of; empty for one alone.
    pub(super) title: String,
    /// What the legend names; empty where there is nothing to tell apart.
    pub(super) legend: Vec<String>,
    pub(super) spec: Value,
}

/// The charts of a figure: one, or a panel for each group of rows.
pub(super) fn charts(figure: &Figure) -> Vec<Chart> {
    match &figure.shape {
        Shape::Curves(curves) => vec![self::curves::chart(&figure.title, curves)],
        Shape::Bars(bars) => vec![self::bars::chart(&figure.title, bars)],
        Shape::Heat(heat) => heat.panels.iter().map(|panel| self::heat::chart(&figure.title, heat, panel)).collect(),
    }
}

const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// What all specifications have: layers over the data, and the names of curves that are hidden.
fn spec(title: &str, values: Vec<Value>, height: Value, layers: Vec<Value>) -> Value {
    json!({
        "$schema": SCHEMA,
        "description": title,
        "width": 640,
        "height": height,
        "data": {"values": values},
        "params": [{"name": "hidden", "value": []}],
        "transform": [{"filter": "indexof(hidden, datum.s) < 0"}],
        "layer": layers,
    })
}

/// What the pointer shows. The fields hold finished text.
fn tooltip() -> Value {
    json!([
        {"field": "n", "title": "trial"},
        {"field": "f", "title": "figure"},
        {"field": "i", "title": "95 %"},
    ])
}

/// The words of a point, to which its place is added.
fn datum(point: &Point, series: &str) -> serde_json::Map<String, Value> {
    let mut datum = serde_json::Map::new();
    datum.insert("s".to_owned(), series.into());
    datum.insert("n".to_owned(), point.name.as_str().into());
    datum.insert("f".to_owned(), point.figure.as_str().into());
    datum.insert("i".to_owned(), point.interval.as_str().into());
    if let (Some(low), Some(high)) = (point.low, point.high) {
        datum.insert("l".to_owned(), rounded(low));
        datum.insert("h".to_owned(), rounded(high));
    }
    datum
}

/// More digits than five cannot be seen, and a page that is mailed should be small.
fn rounded(value: f64) -> Value {
    format!("{value:.4e}").parse::<f64>().ok().filter(|value| value.is_finite()).map_or(
        Value::Null,
        |value| match value.fract() == 0.0 && value.abs() < 9e15 {
            true => json!(value as i64),
            false => json!(value),
        },
    )
}

/// The scale of a position, with the ends that the axis has.
fn scale(axis: &Axis) -> Value {
    let kind = match axis.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
        Scale::LogWithZero(unit) => {
            return json!({"type": "symlog", "constant": unit, "domain": [axis.low, axis.high], "nice": false});
        }
    };
    json!({"type": kind, "domain": [axis.low, axis.high], "nice": false, "zero": false})
}

/// The axis: our own ticks, whose labels are looked up by their figure.
fn guide(axis: &Axis) -> Value {
    let values: Vec<f64> = axis.ticks.iter().map(|(value, _)| *value).collect();
    let labels: Vec<&str> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
    // Both lists are made of figures by `Unit`, so this expression holds nothing from a file.
    let label = format!("{}[indexof({}, datum.value)]", json!(labels), json!(values));
    json!({"values": values, "labelExpr": label, "title": axis.title, "labelOverlap": true})
}

fn colours(names: &[String]) -> Value {
    let legend = if names.len() > 1 {
        json!({"title": null, "orient": "bottom", "columns": 2, "labelLimit": 300})
    } else {
        Value::Null
    };
    json!({"field": "s", "type": "nominal", "scale": {"domain": names}, "legend": legend})
}
