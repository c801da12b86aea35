//! Warnings about figures. Each has one sentence that says what is wrong and what to do about it.

use serde::{Deserialize, Serialize};

use crate::text::counted;
use crate::units::{Nanos, Throughput};

/// A warning about figures.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The figure is within 10 % of what the source or the sink can do alone.
    #[error(
        "within 10 % of the limit of the {end} alone: the {end}, not the link, may be the bottleneck{}",
        if *own_work { "" } else { "; use a lighter --verify" }
    )]
    NearCeiling {
        end: String,
        ceiling: f64,
        /// Whether the end does work that a lighter `--verify` doesn't reduce.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        own_work: bool,
    },
    /// Runs are faster than the source or the sink can be alone. In documents of earlier versions, `runs` is 0, which
    /// means all runs.
    #[error("{}", match self.invalidates_figures() {
        true => format!("faster than the {end} alone can be, which is a bug in pipemark: ignore this row, and please report the bug"),
        false => format!("{above} of {runs} runs {} faster than the {end} alone can be, so either these runs or the limit measured for the {end} is wrong; measure again", if *above == 1 { "is" } else { "are" }),
    })]
    AboveCeiling {
        end: String,
        ceiling: f64,
        #[serde(default)]
        above: u32,
        #[serde(default)]
        runs: u32,
    },
    /// pipemark's own loop took much of the time.
    #[error("pipemark's own loop took {percent:.0} % of the time: the link itself is faster")]
    Harness { percent: f64 },
    /// The trial is bimodal: it alternates between a slow and a fast mode, both in bytes per second.
    #[error("{}{}", modes(*slow, *slow_percent, *fast), cause.as_ref().map_or_else(String::new, |cause| format!("; {cause}")))]
    Regimes { slow: f64, slow_percent: f64, fast: f64, cause: Option<String> },
    /// A fixed rate was not reached.
    #[error("only {sent} of {due} due messages or lines were sent, so the times are omitted; lower --rate")]
    Behind { sent: u64, due: u64 },
    /// A filter kept lines until the end of its input.
    #[error(
        "{held} of {lines} lines arrived only after the input ended: the filter holds lines back until more arrive, so the times of these lines are omitted; raise --rate or --time"
    )]
    Held { held: u64, lines: u64 },
    /// Some runs are outliers.
    #[error("{count} of {runs} runs {}", if *count == 1 { "is an outlier" } else { "are outliers" })]
    Outliers { count: u32, runs: u32 },
    /// Later runs are faster or slower than earlier ones.
    #[error("the runs drifted by {:+.0} % from first to last: the machine was not in a steady state; measure again", change * 100.0)]
    Drift { change: f64 },
    /// The interval was still wider than requested when the budget was spent.
    #[error("the interval is still ±{:.0} %; raise --budget or --runs", relative * 100.0)]
    Wide { relative: f64 },
    /// The kernel granted a different capacity than requested.
    #[error("the kernel granted a capacity of {granted} bytes, not {asked}; the figures are for {granted}")]
    CapacityDiffers { asked: u64, granted: u64 },
    /// Blocks are larger than the link's message limit.
    #[error("messages of this link are limited to {limit} bytes; larger blocks were split")]
    Split { limit: u64 },
    /// The bytes were sent in a different way than the sender's name says.
    #[error("{text}")]
    Sender { text: String },
    /// The time of a third-party program includes its start and its end.
    #[error("the time includes the program's start and end; use --figure to read the figure that the program prints")]
    StartIncluded,
    /// The capacity changed while the trial ran.
    #[error(
        "the capacity changed from {before} to {after} bytes during the run: a process that had the pipe open resized it, as pipemark relay does"
    )]
    CapacityChanged { before: u64, after: u64 },
    /// An end was seen on a CPU that it was not placed on.
    #[error("an end ran on CPU {cpu}, outside its placement")]
    Misplaced { cpu: u16 },
    /// Huge pages were requested but not granted.
    #[error("no huge pages here ({reason}); base pages were used")]
    NoHugePages { reason: String },
    /// The hypervisor took CPU time away.
    #[error("the hypervisor took {percent:.1} % of the CPU time (steal); measure when the host is quieter")]
    Steal { percent: f64 },
    /// Other processes used the CPUs.
    #[error("other processes used {busy:.2} CPUs during the measurement; stop them or measure again later")]
    Load { busy: f64 },
    /// Tasks waited for a CPU at the start.
    #[error("the CPUs were overloaded at the start (pressure {percent:.0} %); wait for idle CPUs")]
    CpuPressure { percent: f64 },
    /// The control group's CPU limit throttled pipemark's processes.
    #[error(
        "the control group's CPU limit throttled the processes for {percent:.1} % of the CPU time; raise the limit (docker run --cpus)"
    )]
    Throttled {
        percent: f64,
        /// Number of throttled periods: nr_throttled.
        #[serde(default)]
        times: u64,
    },
    /// Reading the clock is slow.
    #[error(
        "reading the clock takes a microsecond or more, which adds to short round trips; use the clock source tsc instead of '{clock}'"
    )]
    SlowClock { clock: String },
    /// The ends ran on different NUMA nodes.
    #[error(
        "the writer ran on NUMA node {writer} and the reader on node {reader}: shared data crosses between the nodes"
    )]
    Nodes { writer: u32, reader: u32 },
    /// The planned runs take far longer than the budget, so some trials got fewer. `needed_ns` is `None` if not every
    /// trial was run.
    #[error("{}", budget_in_words(*budget_ns, *needed_ns, *min_runs, *trials))]
    BudgetTooShort { budget_ns: u64, needed_ns: Option<u64>, min_runs: u32, trials: u32 },
    /// The frequency governor may change the clock while measuring.
    #[error("the frequency governor is '{governor}'; 'performance' gives steadier figures")]
    Governor { governor: String },
}

fn budget_in_words(budget: u64, needed: Option<u64>, min_runs: u32, trials: u32) -> String {
    let trials = counted(trials as usize, "trial");
    let budget = Nanos(budget);
    match needed {
        Some(needed) => format!(
            "{min_runs} runs of each trial need about {}, and the budget is {budget}: {trials} got fewer; raise --budget",
            Nanos(needed)
        ),
        None => format!("the budget of {budget} was spent in the first round: {trials} not measured; raise --budget"),
    }
}

/// A mode that lasts for less than this share of the time, in per cent, doesn't make a trial bimodal.
const MIN_MODE: f64 = 10.0;

/// Text on the two modes of a trial. Speeds are in bytes per second.
fn modes(slow: f64, slow_percent: f64, fast: f64) -> String {
    let fast_percent = 100.0 - slow_percent;
    let (slow, fast) = (Throughput(slow), Throughput(fast));
    if fast_percent < MIN_MODE {
        format!("{fast} for {fast_percent:.0} % of the time, otherwise {slow}")
    } else if slow_percent < MIN_MODE {
        format!("{slow} for {slow_percent:.0} % of the time, otherwise {fast}")
    } else {
        format!("bimodal: {slow} for {slow_percent:.0} % of the time, {fast} for {fast_percent:.0} %")
    }
}

impl Warning {
    /// Whether the warning makes all figures of the row unusable.
    pub fn invalidates_figures(&self) -> bool {
        matches!(self, Warning::AboveCeiling { above, runs, .. } if 2 * above > *runs || *runs == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_of_a_few_per_cent_makes_no_trial_bimodal() {
        let text = |slow_percent| Warning::Regimes { slow: 1e9, slow_percent, fast: 3e9, cause: None }.to_string();
        assert_eq!(text(4.0), "954 MiB/s for 4 % of the time, otherwise 2.79 GiB/s");
        assert_eq!(text(96.0), "2.79 GiB/s for 4 % of the time, otherwise 954 MiB/s");
        assert_eq!(text(40.0), "bimodal: 954 MiB/s for 40 % of the time, 2.79 GiB/s for 60 %");
    }
}
