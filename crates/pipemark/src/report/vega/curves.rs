//! Curves with bands for their intervals; fits are thin, published figures are dashed with hollow marks.

use serde_json::{Value, json};

use super::super::figure::{Curves, Role};
use super::{Chart, colours, datum, guide, rounded, scale, spec, tooltip};

pub(super) fn chart(title: &str, figure: &Curves) -> Chart {
    let mut values = Vec::new();
    let (mut names, mut elsewhere): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for curve in &figure.curves {
        let known = if curve.role == Role::Published { &mut elsewhere } else { &mut names };
        if !known.contains(&curve.label) {
            known.push(curve.label.clone());
        }
        for point in &curve.points {
            let mut datum = datum(point, &curve.label);
            datum.insert("x".to_owned(), rounded(point.x));
            datum.insert("y".to_owned(), rounded(point.y));
            datum.insert("r".to_owned(), role(curve.role).into());
            values.push(datum.into());
        }
    }
    let x = json!({"field": "x", "type": "quantitative", "scale": scale(&figure.x), "axis": guide(&figure.x)});
    let y = json!({"field": "y", "type": "quantitative", "scale": scale(&figure.y), "axis": guide(&figure.y)});
    let colour = colours(&names);
    let of = |roles: &[Role]| {
        let all: Vec<&str> = roles.iter().map(|role| self::role(*role)).collect();
        json!([{"filter": {"field": "r", "oneOf": all}}])
    };
    let layer = |mark: Value, roles: &[Role], encoding: Value| {
        let mut all = json!({"x": x, "y": y});
        for (channel, of) in encoding.as_object().into_iter().flatten() {
            all[channel] = of.clone();
        }
        json!({"mark": mark, "transform": of(roles), "encoding": all})
    };
    let mut high = y.clone();
    high["field"] = "l".into();
    let band = json!({"y": high, "y2": {"field": "h"}, "color": colour});
    let measured = json!({"color": colour});
    let told = json!({"color": colour, "tooltip": tooltip()});
    let published = json!({"detail": {"field": "s"}});
    let mut layers = vec![
        layer(json!({"type": "area", "opacity": 0.18, "line": false}), &[Role::Measured], band),
        layer(
            json!({"type": "line", "strokeWidth": 1, "opacity": 0.7, "strokeDash": [2, 2]}),
            &[Role::Fit],
            measured.clone(),
        ),
        layer(json!({"type": "line", "strokeWidth": 2}), &[Role::Measured, Role::Distribution], measured.clone()),
        layer(json!({"type": "point", "filled": true, "opacity": 1, "size": 42}), &[Role::Measured], measured),
    ];
    if !elsewhere.is_empty() {
        layers.push(layer(
            json!({"type": "line", "style": "published", "strokeDash": [5, 4]}),
            &[Role::Published],
            published.clone(),
        ));
        layers.push(layer(
            json!({"type": "point", "style": "published", "shape": "diamond", "size": 60}),
            &[Role::Published],
            published,
        ));
    }
    // A finger is wider than a mark.
    let near = json!({"type": "point", "filled": true, "opacity": 0, "size": 320});
    let all = [Role::Measured, Role::Fit, Role::Distribution, Role::Published];
    layers.push(layer(near, &all, told));
    if let Some(last) = layers.last_mut() {
        // Published curves are in no scale of colours.
        last["encoding"]["color"] = Value::Null;
        last["encoding"].as_object_mut().expect("an object").remove("color");
    }
    let legend = names.into_iter().chain(elsewhere).collect::<Vec<_>>();
    Chart {
        title: String::new(),
        legend: if legend.len() > 1 { legend } else { Vec::new() },
        spec: spec(title, values, json!(340), layers),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Measured => "measured",
        Role::Fit => "fit",
        Role::Published => "published",
        Role::Distribution => "distribution",
    }
}
