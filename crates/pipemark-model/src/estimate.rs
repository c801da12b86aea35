//! The estimates of a trial's figures, and their JSON format.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::figure::Figure;

/// The estimate of one quantity from a trial's samples: a median with its interval and range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The median of the means of all pairs of samples (the Hodges-Lehmann estimate or pseudomedian). In documents
    /// whose `method` is 1, it is the sample median.
    pub median: f64,
    /// Lower end of the median's 95 % interval; `None` if there are too few samples for an interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// Number of samples.
    pub runs: u32,
}

/// The largest ratio of an interval's ends that is printed. A wider interval only says that nothing is known.
pub const MAX_SPAN: f64 = 100.0;

/// Whether an interval of a figure above zero is too wide to be printed.
pub fn spans_too_much(low: f64, high: f64) -> bool {
    high > 0.0 && high > MAX_SPAN * low
}

/// The estimates of a trial. Throughput and CPU seconds per GiB are always present. Other figures are present if they
/// apply to the trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimates(BTreeMap<Figure, Estimate>);

impl Estimates {
    /// Collects estimates. Returns `None` if throughput or CPU seconds per GiB is missing.
    pub fn new(estimates: impl IntoIterator<Item = (Figure, Estimate)>) -> Option<Estimates> {
        let estimates = BTreeMap::from_iter(estimates);
        let all = [Figure::Throughput, Figure::CpuSecondsPerGib].iter().all(|figure| estimates.contains_key(figure));
        all.then_some(Estimates(estimates))
    }

    /// The estimate of one figure; `None` if the figure doesn't apply to the trial.
    pub fn get(&self, figure: Figure) -> Option<&Estimate> {
        self.0.get(&figure)
    }

    /// Adds or replaces an estimate.
    pub fn set(&mut self, figure: Figure, estimate: Estimate) {
        self.0.insert(figure, estimate);
    }

    /// All estimates, in the order of the table of figures.
    pub fn iter(&self) -> impl Iterator<Item = (Figure, &Estimate)> {
        self.0.iter().map(|(figure, estimate)| (*figure, estimate))
    }

    /// Bytes per second that arrived at the sinks.
    pub fn throughput(&self) -> &Estimate {
        &self.0[&Figure::Throughput]
    }

    /// CPU seconds of sources, sinks and stages per GiB.
    pub fn cpu_seconds_per_gib(&self) -> &Estimate {
        &self.0[&Figure::CpuSecondsPerGib]
    }

    /// The factor by which the trial is faster than its baseline; `None` without a baseline.
    pub fn ratio(&self) -> Option<&Estimate> {
        self.get(Figure::Ratio)
    }

    /// The median round trip in nanoseconds; `None` except in latency mode.
    pub fn round_trip(&self) -> Option<&Estimate> {
        self.get(Figure::P50)
    }

    /// The trial's main figure: the median round trip in latency mode, throughput otherwise.
    pub fn headline_figure(&self) -> Figure {
        if self.0.contains_key(&Figure::P50) { Figure::P50 } else { Figure::Throughput }
    }

    /// The estimate of the main figure.
    pub fn headline(&self) -> &Estimate {
        &self.0[&self.headline_figure()]
    }
}

impl Serialize for Estimates {
    /// Serialises each estimate at its [`Figure::path`]: figures of round trips and of counters are in nested objects.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Json::Object(Map::new());
        for (figure, estimate) in self.iter() {
            let place = figure.path().iter().fold(&mut object, |object, name| &mut object[*name]);
            *place = serde_json::to_value(estimate).map_err(serde::ser::Error::custom)?;
        }
        object.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Estimates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Map::deserialize(deserializer)?;
        let mut estimates = BTreeMap::new();
        for figure in Figure::iter() {
            let path = figure.path();
            let json = path[1..].iter().fold(object.get(path[0]), |json, name| json?.get(name));
            if let Some(json) = json.filter(|json| !json.is_null()) {
                let estimate = Estimate::deserialize(json)
                    .map_err(|error| D::Error::custom(format!("estimate.{}: {error}", path.join("."))))?;
                estimates.insert(figure, estimate);
            }
        }
        Estimates::new(estimates)
            .ok_or_else(|| D::Error::custom("an estimate needs throughput and cpu_seconds_per_gib"))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Estimates {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Estimates".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut properties: Map<String, Json> = Map::new();
        for figure in Figure::iter() {
            let mut schema = generator.subschema_for::<Estimate>();
            schema.insert("description".to_owned(), figure.help().into());
            let place = match figure.path() {
                [group, _] => {
                    let object = schemars::json_schema!({"type": "object", "properties": {}}).to_value();
                    let group = properties.entry(*group).or_insert(object);
                    group["properties"].as_object_mut().expect("made above")
                }
                _ => &mut properties,
            };
            place.insert(figure.path()[figure.path().len() - 1].to_owned(), schema.to_value());
        }
        schemars::json_schema!({
            "type": "object",
            "description": "The quantities estimated for each trial. Those that don't apply to the trial are omitted.",
            "properties": properties,
            "required": ["throughput", "cpu_seconds_per_gib"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_survives_json() {
        let estimate = |n: f64| Estimate { median: n, low: None, high: Some(n), min: n, max: n, runs: 1 };
        let all = Figure::iter().enumerate().map(|(n, figure)| (figure, estimate(n as f64)));
        let all = Estimates::new(all).unwrap();
        let json = serde_json::to_value(&all).unwrap();
        assert_eq!(json["latency"]["p999"]["median"], Figure::P999 as u32 as f64);
        assert_eq!(serde_json::from_value::<Estimates>(json).unwrap(), all);
    }
}
