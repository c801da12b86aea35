//! `pipemark bw` and `pipemark latency`: an experiment defined by flags. A comma-separated list becomes an axis. The
//! experiment is run like an experiment of a suite.

use std::time::Duration;

use clap::Args;

use pipemark_console::{Destination, ExitError, VerbResult, destination};
use pipemark_model::{Key, Mode, Place, Value, parse_duration};
use pipemark_run::plan::{DesignAxis, DesignSetting, Plan};

use crate::cli::cpu_pairs;
use crate::cli::measure::FlagOptions;
use crate::cli::parameters::{KeySet, check_unique};

/// The least number of pairs of CPUs that are shown as a map.
const MIN_MAP: usize = 6;

/// The parameters of `bw`.
#[derive(Debug, Clone)]
pub struct BwKeys;

impl KeySet for BwKeys {
    const HEADING: &'static str = "What to measure (comma-separated lists)";
    const COMMON: &'static [Key] =
        &[Key::Block, Key::Capacity, Key::Place, Key::Send, Key::Recv, Key::Link, Key::Verify, Key::Time, Key::Total];
    const KEYS: &'static [Key] = {
        use Key::*;
        &[
            Mode, Link, Pairs, Writers, Readers, Place, Verify, Send, Recv, Wait, Pages, Align, Capacity, Buffer, Rseq,
            Rate, Gap, WriteDelay, ReadDelay, Total, Blocks, Time, ReadBlock, Block,
        ]
    };
    const DEFAULTS: &'static [(Key, &'static str)] = &[
        (Key::Total, "limited by --time"),
        (Key::Blocks, "limited by --time"),
        (Key::Time, "250ms"),
        (Key::ReadBlock, "same as --block"),
    ];
    // Flags of `latency` that `bw` accepts too.
    const HIDDEN: &'static [Key] = &[Key::Mode, Key::Rate, Key::Gap];
}

/// The parameters of `latency`, which are those that apply to round trips.
#[derive(Debug, Clone)]
pub struct LatencyKeys;

impl KeySet for LatencyKeys {
    const HEADING: &'static str = BwKeys::HEADING;
    const COMMON: &'static [Key] = &[Key::Block, Key::Link, Key::Place, Key::Wait, Key::Gap, Key::Rate, Key::Time];
    const KEYS: &'static [Key] = {
        use Key::*;
        &[
            Link, Pairs, Place, Verify, Send, Recv, Wait, Pages, Align, Capacity, Buffer, Rseq, Rate, Gap, Total, Time,
            Block,
        ]
    };
    const DEFAULTS: &'static [(Key, &'static str)] =
        &[(Key::Total, "limited by --time"), (Key::Time, "250ms"), (Key::Block, "64")];
}

/// The options of `bw` and `latency`.
#[derive(Debug, Clone, Args)]
pub struct BwOptions<K: KeySet> {
    #[command(flatten)]
    flags: FlagOptions<K>,
    /// For each trial, also measure a baseline with these values, and show the ratio to it
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = Value::parse_pair, help_heading = "Output")]
    baseline: Vec<Value>,
    /// Print a line every TIME during a run [default: sample every 10ms, print nothing]
    ///
    /// A line has the throughput and the context switches since the previous line. JSON has the same figures in
    /// samples[].pieces; they show whether a trial is bimodal.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, help_heading = "Output", hide_short_help = true)]
    interval: Option<Duration>,
    /// With --place all: also write the map as CSV, as core-to-core-latency does
    ///
    /// There are no headings: a row for each writer, a column for each reader, in the order of their numbers. A cell has
    /// nanoseconds one way (half a round trip), or bytes per second.
    #[arg(long, value_name = "FILE|-", value_parser = destination, help_heading = "Output", hide_short_help = true)]
    cpu_map: Option<Destination>,
}

impl<K: KeySet> BwOptions<K> {
    fn measure(&self, plan: Plan) -> VerbResult {
        let mut flags = self.flags.clone();
        flags.output.cpu_map.clone_from(&self.cpu_map);
        flags.measure(plan)
    }
}

/// Measures streams, or round trips with `--mode latency`.
pub fn bw(options: &BwOptions<BwKeys>) -> VerbResult {
    let latency = options.flags.parameters.values(Key::Mode).contains(&Value::Mode(Mode::Latency));
    options.measure(plan("bw", if latency { "Round trips" } else { "Throughput" }, options, &[])?)
}

/// Measures round trips.
pub fn latency(options: &BwOptions<LatencyKeys>) -> VerbResult {
    let defaults = [(Key::Mode, "latency"), (Key::Block, "64")];
    options.measure(plan("latency", "Round trips", options, &defaults)?)
}

/// A plan with the memory-copy limit and one experiment.
fn plan<K: KeySet>(
    verb: &str,
    title: &str,
    options: &BwOptions<K>,
    defaults: &[(Key, &str)],
) -> Result<Plan, ExitError> {
    let mut design = options.flags.parameters.design(verb, title, defaults);
    check_unique("--baseline", &options.baseline)?;
    let others: usize =
        design.axes.iter().filter(|axis| axis.key != Key::Place).map(|axis| axis.values.len()).product();
    let pairs = options.flags.most_trials().map(|most| most / others);
    let places = design.axes.iter_mut().find(|axis| axis.key == Key::Place);
    if let Some((axis, most)) = places.zip(pairs).filter(|_| options.flags.parameters.has_all_pairs) {
        *axis = DesignAxis::new(Key::Place, cpu_pairs::here(most.max(2))?.into_iter().map(Value::Place));
    }
    if options.cpu_map.is_some() && (!options.flags.parameters.has_all_pairs || others > 1) {
        return Err(ExitError::usage(
            "--cpu-map writes one map: use --place all, and one value of each other parameter",
        ));
    }
    // Many pairs of CPUs are shown as a map: a row for each writer, a column for each reader.
    let place = design.axes.iter().find(|axis| axis.key == Key::Place);
    let is_pinned = |setting: &DesignSetting| matches!(setting.value, Value::Place(Place::Pinned(..)));
    if place.is_some_and(|axis| axis.values.len() >= MIN_MAP && axis.values.iter().all(is_pinned)) {
        design.across = Some(Key::Place);
    }
    design.baseline = options.baseline.iter().cloned().map(Into::into).collect();
    let mut plan = options.flags.plan(design)?;
    plan.schedule.by_interval = options.interval.is_some();
    plan.schedule.interval = options.interval.unwrap_or(plan.schedule.interval);
    plan.prepend_memory_copy();
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use pipemark_model::{Job, SendMethod};
    use pipemark_run::plan::Runs;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn plan_of(flags: &str) -> Result<Plan, String> {
        let words = ["pipemark", "bw"].into_iter().chain(flags.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.verb {
            Some(Verb::Bw(options)) => plan("bw", "", &options, &[]).map_err(|stop| stop.to_string()),
            _ => unreachable!("the verb is bw"),
        }
    }

    #[test]
    fn without_flags_a_plain_pipe_and_the_limit_are_measured() {
        let plan = plan_of("").unwrap();
        assert_eq!(plan.trials.len(), 2);
        assert!(plan.trials[0].job.is_memory_copy());
        assert_eq!(plan.trials[1].job, Job::default());
        assert_eq!(plan.schedule.runs, Runs::Adaptive { min: 5, max: 30 });
    }

    #[test]
    fn comma_lists_are_axes() {
        let plan = plan_of("--block 64,1k --send write,tee --place same,0:1 --runs 7 --limit 9s --seed 3").unwrap();
        assert_eq!(plan.trials.len(), 1 + 8);
        assert_eq!(plan.experiments[1].varies, [Key::Place, Key::Send, Key::Block]);
        assert_eq!(plan.schedule.runs, Runs::Fixed(7));
        assert_eq!((plan.schedule.run_limit, plan.schedule.seed), (Duration::from_secs(9), 3));
    }

    #[test]
    fn every_key_has_its_flag() {
        let flags = "--link pipe --send write --recv read --wait poll --pages huge --place free --capacity quota \
                     --block 128 --read-block 256 --align 16 --pairs 2 --read-delay 5 --write-delay 6us --verify xor \
                     --total 4m";
        let plan = plan_of(flags).unwrap();
        let settings = plan.trials[1].job.settings();
        let mut words = flags.split_whitespace();
        while let (Some(flag), Some(text)) = (words.next(), words.next()) {
            let value = Value::parse(Key::named(flag.trim_start_matches("--")).unwrap(), text).unwrap();
            assert!(settings.has(&value), "{flag} {text}");
        }
    }

    #[test]
    fn a_baseline_is_measured_too() {
        let plan = plan_of("--send vmsplice --baseline send=write,pages=base").unwrap();
        assert_eq!(plan.trials.len(), 3);
        assert_eq!(plan.trials[1].job.ends().unwrap().send, SendMethod::Write);
        assert_eq!(plan.trials[2].baseline.as_ref(), Some(&plan.trials[1].id));
    }

    #[test]
    fn a_map_of_cpus_needs_all_pairs_and_nothing_else_that_varies() {
        for flags in ["--cpu-map map.csv", "--cpu-map map.csv --place 0:1,1:0", "--cpu-map map.csv --block 64,1k"] {
            assert!(plan_of(flags).unwrap_err().contains("use --place all"), "{flags}");
        }
    }

    #[test]
    fn too_many_trials_are_refused_with_their_number() {
        let list = |count: u32| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let error = plan_of(&format!("--block {} --read-block {}", list(200), list(200))).unwrap_err();
        assert!(error.contains("40,000 trials"), "{error}");
    }
}
