//! The figures of a run: one table of built-in figures, and those that the command prints itself.

use pipemark_entrants::PrintedFigure;
use pipemark_host::child::RunError;
use pipemark_model::{Better, Unit, did_you_mean, digits, neutral};

use crate::pipeline::PipelineRun;

/// A figure: its name, its unit, and whether higher or lower is better.
#[derive(Debug, Clone)]
pub struct FigureKind {
    /// The figure's key in JSON and `--by`.
    pub key: String,
    /// The figure's heading in tables.
    pub heading: String,
    /// The figure's unit.
    pub unit: FigureUnit,
    /// Whether higher or lower is better.
    pub better: Better,
    source: FigureSource,
}

impl FigureKind {
    /// Whether the command itself prints the figure.
    pub fn is_printed(&self) -> bool {
        matches!(self.source, FigureSource::Printed(_))
    }
}

/// The unit of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureUnit {
    /// A unit known to pipemark.
    Known(Unit),
    /// A unit that the command itself uses; may be empty.
    Own(String),
}

impl FigureUnit {
    /// Formats a value for people.
    pub fn show(&self, value: f64) -> String {
        match self {
            FigureUnit::Known(unit) => unit.show(value),
            FigureUnit::Own(unit) => format!("{} {unit}", digits(value)).trim_end().to_owned(),
        }
    }

    /// Formats values in the multiple of the unit that fits all of `values`, so that a row or a column has one unit.
    pub fn common<'a>(&'a self, values: &[f64]) -> impl Fn(f64) -> String + use<'a> {
        let common = match self {
            FigureUnit::Known(unit) => Some(unit.common(values.iter().copied())),
            FigureUnit::Own(_) => None,
        };
        move |value| common.map_or_else(|| self.show(value), |common| common.show(value))
    }

    /// The unit of the figure's values in JSON.
    pub fn name(&self) -> &str {
        match self {
            FigureUnit::Known(Unit::Nanoseconds) => "ns",
            FigureUnit::Known(Unit::Bytes) => "bytes",
            FigureUnit::Known(_) => "count",
            FigureUnit::Own(unit) => unit,
        }
    }
}

#[derive(Debug, Clone)]
enum FigureSource {
    Run(fn(&PipelineRun) -> Option<f64>),
    Printed(PrintedFigure),
}

/// The key of the time, the first figure.
pub const TIME: &str = "time";

/// The key of the CPU time, user and system.
pub const CPU: &str = "cpu";

/// The key of the number of instructions.
pub const INSTRUCTIONS: &str = "instructions";

/// The key of the number of page faults.
pub const FAULTS: &str = "faults";

/// The key of a figure that is sampled only on request.
pub const PIPELINE_MEMORY: &str = "pipeline-memory";

/// All figures: the built-in ones, and those that the commands print.
pub fn kinds(printed: &[PrintedFigure]) -> Vec<FigureKind> {
    let built_in = |(key, heading, unit, of): BuiltIn| FigureKind {
        key: key.to_owned(),
        heading: heading.to_owned(),
        unit: FigureUnit::Known(unit),
        better: Better::Lower,
        source: FigureSource::Run(of),
    };
    let own = |figure: &PrintedFigure| FigureKind {
        key: figure.name.clone(),
        heading: figure.name.clone(),
        unit: FigureUnit::Own(figure.unit.clone()),
        better: figure.better,
        source: FigureSource::Printed(figure.clone()),
    };
    BUILT_IN.into_iter().map(built_in).chain(printed.iter().map(own)).collect()
}

type BuiltIn = (&'static str, &'static str, Unit, fn(&PipelineRun) -> Option<f64>);

/// Key, heading, unit and source of each built-in figure.
const BUILT_IN: [BuiltIn; 13] = [
    (TIME, "time", Unit::Nanoseconds, |run| Some(run.nanoseconds())),
    ("user", "user", Unit::Nanoseconds, |run| Some(run.usage.user_ns as f64)),
    ("system", "system", Unit::Nanoseconds, |run| Some(run.usage.sys_ns as f64)),
    // The kernel counts the sum exactly, and divides it by samples.
    (CPU, "CPU time", Unit::Nanoseconds, |run| Some((run.usage.user_ns + run.usage.sys_ns) as f64)),
    ("memory", "peak memory", Unit::Bytes, |run| Some(run.usage.peak_bytes as f64)),
    (PIPELINE_MEMORY, "pipeline memory", Unit::Bytes, |run| Some(run.pipeline_memory? as f64)),
    ("read", "bytes read", Unit::Bytes, |run| Some(run.bytes?.0 as f64)),
    ("written", "bytes written", Unit::Bytes, |run| Some(run.bytes?.1 as f64)),
    ("switches", "context switches", Unit::Count, |run| {
        Some((run.usage.voluntary_switches + run.usage.involuntary_switches) as f64)
    }),
    (FAULTS, "page faults", Unit::Count, |run| Some((run.usage.minor_faults + run.usage.major_faults) as f64)),
    (INSTRUCTIONS, "instructions", Unit::Count, |run| run.counters[0]),
    ("cycles", "cycles", Unit::Count, |run| run.counters[1]),
    ("cache-misses", "cache misses", Unit::Count, |run| run.counters[2]),
];

/// The figures of a run, in the order of the kinds. `printed` is the text on the command's two streams.
///
/// # Errors
/// When a figure is missing from the command's output.
pub fn of_run(kinds: &[FigureKind], run: &PipelineRun, printed: &[Vec<u8>; 2]) -> Result<Vec<Option<f64>>, RunError> {
    let figure = |kind: &FigureKind| match &kind.source {
        FigureSource::Run(of) => Ok(of(run)),
        FigureSource::Printed(figure) => figure.find([&printed[0], &printed[1]]).map(Some).map_err(RunError::Failed),
    };
    kinds.iter().map(figure).collect()
}

/// Names of other fields in the JSON of a run. No figure may have one of these names.
const RUN_FIELDS: [&str; 6] = ["label", "command", "session", "round", "warmup", "exit_code"];

/// The index of the figure that `--by` names.
///
/// # Errors
/// A message, when no figure or several figures have the name.
pub fn place(kinds: &[FigureKind], by: &str) -> Result<usize, String> {
    let keys = || kinds.iter().map(|kind| kind.key.as_str());
    let is_taken = |key: &&str| RUN_FIELDS.contains(key) || key.starts_with("parameter_");
    if let Some(taken) = keys().find(is_taken) {
        return Err(format!("the figure name '{}' is reserved; use another", neutral(taken)));
    }
    if let Some(twice) =
        keys().enumerate().find_map(|(at, key)| keys().take(at).any(|other| other == key).then_some(key))
    {
        return Err(format!("two figures are called '{}'; give each --figure its own name", neutral(twice)));
    }
    // Tables show the heading.
    let is_named = |kind: &FigureKind| kind.key == by || kind.heading == by;
    kinds.iter().position(is_named).ok_or_else(|| {
        let hint = did_you_mean(by, keys());
        format!(
            "'{}' is not a figure{hint}; use one of {}",
            neutral(by),
            neutral(&keys().collect::<Vec<_>>().join(", "))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_key() {
        let own = |text: &str| text.parse::<PrintedFigure>().unwrap();
        let kinds = kinds(&[own("tok/s=([0-9]+)")]);
        assert_eq!(place(&kinds, TIME), Ok(0));
        let at = place(&kinds, "tok/s").unwrap();
        assert_eq!((kinds[at].better, kinds[at].unit.show(1234.5)), (Better::Higher, "1234".to_owned()));
        assert!(place(&kinds, "memry").unwrap_err().contains("did you mean memory?"));
        assert!(place(&super::kinds(&[own("time=x")]), TIME).unwrap_err().contains("two figures"));
        for taken in ["round=x", "parameter_n=x"] {
            assert!(place(&super::kinds(&[own(taken)]), TIME).unwrap_err().contains("use another"), "{taken}");
        }
    }

    #[test]
    fn a_custom_unit_follows_the_number() {
        assert_eq!(FigureUnit::Own("tok/s".to_owned()).show(12.34), "12.3 tok/s");
        assert_eq!(FigureUnit::Known(Unit::Bytes).show(2048.0), "2 KiB");
    }
}
