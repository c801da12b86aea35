//! The JSON that Bencher (bencher.dev) reads: Bencher Metric Format.

use serde_json::{Map, Value, json};

use crate::result::AbResult;

/// The figures of each command. Bencher calls the time `latency`, and expects it in nanoseconds.
///
/// # Errors
/// None are known: all figures are numbers.
pub fn bencher_json(result: &AbResult) -> serde_json::Result<String> {
    let mut all = Map::new();
    for command in result.commands.iter().filter(|command| !command.figures.is_empty()) {
        let mut measures = Map::new();
        for (key, figure) in &command.figures {
            let estimate = figure.estimate;
            let measure = if key == "time" { "latency" } else { key.as_str() };
            let ends = [estimate.low.unwrap_or(estimate.min), estimate.high.unwrap_or(estimate.max)];
            measures.insert(
                measure.to_owned(),
                json!({"value": estimate.median, "lower_value": ends[0], "upper_value": ends[1]}),
            );
        }
        all.insert(command.label.clone(), Value::Object(measures));
    }
    Ok(serde_json::to_string(&Value::Object(all))? + "\n")
}
