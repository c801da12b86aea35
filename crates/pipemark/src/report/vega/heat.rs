//! A coloured table. Cells that are not ranked have no colour.

use serde_json::{Value, json};

use super::super::figure::{Colouring, Heat, Panel};
use super::{Chart, datum, rounded, spec, tooltip};

pub(super) fn chart(title: &str, heat: &Heat, panel: &Panel) -> Chart {
    let values = panel.cells.iter().map(|cell| {
        let mut datum = datum(&cell.point, "");
        datum.insert("row".to_owned(), panel.rows[cell.row].as_str().into());
        datum.insert("column".to_owned(), heat.columns[cell.column].as_str().into());
        datum.insert("b".to_owned(), cell.brief.as_str().into());
        let place = cell.value.map(|value| place(heat.colour, value));
        datum.insert("v".to_owned(), place.map_or(Value::Null, rounded));
        let tone = match place {
            None => "unranked",
            Some(place) if strong(heat.colour, place) => "strong",
            Some(_) => "weak",
        };
        datum.insert("k".to_owned(), tone.into());
        Value::from(datum)
    });
    let colour = match heat.colour {
        Colouring::Sequential { .. } => json!({"domain": [0, 1], "range": "heatmap"}),
        Colouring::Diverging { .. } => json!({"domain": [-1, 1], "domainMid": 0, "range": "diverging"}),
    };
    let row = json!({
        "field": "row", "type": "nominal", "sort": null, "title": null,
        "scale": {"domain": panel.rows}, "axis": {"grid": false, "ticks": false, "domain": false},
    });
    let column = json!({
        "field": "column", "type": "nominal", "sort": null, "title": heat.across,
        "scale": {"domain": heat.columns},
        "axis": {"grid": false, "ticks": false, "domain": false, "orient": "top", "labelAngle": 0, "labelOverlap": true},
    });
    let layer = |mark: Value, tones: &[&str], encoding: Value| {
        let mut all = json!({"x": column, "y": row});
        for (channel, of) in encoding.as_object().into_iter().flatten() {
            all[channel] = of.clone();
        }
        json!({"mark": mark, "transform": [{"filter": {"field": "k", "oneOf": tones}}], "encoding": all})
    };
    let text = |tone: &'static str| {
        let mark = json!({"type": "text", "style": format!("cell-{tone}")});
        // The text lies on its cell, and would hide it from the pointer. Text that would run into its neighbours is left out; the pointer and the table have it.
        let room = format!("width >= {}", heat.columns.len() * 30);
        layer(
            mark,
            &[tone],
            json!({"text": {"condition": {"test": room, "field": "b"}, "value": ""}, "tooltip": tooltip()}),
        )
    };
    let layers = vec![
        layer(
            json!({"type": "rect", "style": "cell"}),
            &["strong", "weak"],
            json!({
                "color": {"field": "v", "type": "quantitative", "scale": colour, "legend": null},
                "tooltip": tooltip(),
            }),
        ),
        layer(json!({"type": "rect", "style": "unranked"}), &["unranked"], json!({"tooltip": tooltip()})),
        text("strong"),
        text("weak"),
        text("unranked"),
    ];
    let name = if panel.title.is_empty() { title.to_owned() } else { format!("{title}, {}", panel.title) };
    Chart {
        title: panel.title.clone(),
        legend: Vec::new(),
        spec: spec(&name, values.collect(), json!({"step": 27}), layers),
    }
}

/// Where a figure stands between the two ends of the colours: 0 to 1, or −1 to 1 around the baseline.
fn place(colour: Colouring, value: f64) -> f64 {
    match colour {
        Colouring::Sequential { low, high, more_is_better } => {
            let share = if high > low { (value / low).ln() / (high / low).ln() } else { 0.5 };
            if more_is_better { share } else { 1.0 - share }
        }
        Colouring::Diverging { most } => value.ln() / most.ln(),
    }
}

/// Whether the colour is so strong that the text on it has to be of the other kind.
fn strong(colour: Colouring, place: f64) -> bool {
    match colour {
        Colouring::Sequential { .. } => place > 0.58,
        Colouring::Diverging { .. } => place.abs() > 0.7,
    }
}
