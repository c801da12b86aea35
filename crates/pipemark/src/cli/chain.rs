//! `pipemark chain`: the cost of one more process in a pipeline. The flags define an experiment, which is run like an
//! experiment of a suite.

use clap::Args;

use pipemark_console::{ExitError, VerbResult, count};
use pipemark_model::{Key, MAX_LENGTH, Value};
use pipemark_run::plan::{DesignAxis, DesignSetting, Plan};

use crate::cli::measure::FlagOptions;
use crate::cli::parameters::KeySet;

/// The longest chain measured by default.
const DEFAULT_LENGTH: u32 = 64;

/// The parameters of `chain`.
#[derive(Debug, Clone)]
pub struct ChainKeys;

impl KeySet for ChainKeys {
    const HEADING: &'static str = "What to measure (comma-separated lists; --stage and --source may be repeated)";
    const COMMON: &'static [Key] = &[Key::Length, Key::Stage, Key::Source, Key::Total, Key::Capacity, Key::Place];
    const KEYS: &'static [Key] = {
        use Key::*;
        &[Send, Recv, Verify, Content, Exit, Block, Total, Place, Capacity, Stage, Source, Length]
    };
    const DEFAULTS: &'static [(Key, &'static str)] = &[
        (Key::Send, "splice; write if --verify is xor or full"),
        (Key::Recv, "splice; read if --verify is xor or full"),
        (Key::Total, "chosen for each length, so that starting the processes takes at most 5 % of the time"),
        (Key::Place, "free"),
        (Key::Length, "0,1,2,4,8,16,32,64"),
    ];
}

/// The options of `chain`.
#[derive(Debug, Clone, Args)]
pub struct ChainOptions {
    #[command(flatten)]
    flags: FlagOptions<ChainKeys>,
    /// Measure lengths 0, 1, 2, 4, 8 and so on up to N, in place of --length
    #[arg(long, value_name = "N", conflicts_with = "length", help_heading = ChainKeys::HEADING, value_parser = count::<u32>(1, MAX_LENGTH.into()))]
    to: Option<u32>,
}

/// Measures the chains.
pub fn run(options: &ChainOptions) -> VerbResult {
    options.flags.measure(plan(options)?)
}

fn plan(options: &ChainOptions) -> Result<Plan, ExitError> {
    let given = &options.flags.parameters;
    let reads = given.values(Key::Verify).iter().any(|level| matches!(level, Value::Verify(level) if level.reads()));
    // The ends write and read if bytes are compared, and splice otherwise.
    let (send, recv) = if reads { ("write", "read") } else { ("splice", "splice") };
    let lengths: Vec<String> = lengths(options.to.unwrap_or(DEFAULT_LENGTH)).map(|length| length.to_string()).collect();
    let lengths = lengths.join(",");
    let mut defaults = vec![(Key::Place, "free"), (Key::Length, lengths.as_str())];
    if given.values(Key::Source).is_empty() {
        defaults.extend([(Key::Send, send), (Key::Recv, recv)]);
    }
    let mut design = given.design("chain", "Chains of processes", &defaults);
    design.measures_volume = given.values(Key::Total).is_empty();
    // Choosing the volume needs an axis of lengths, even for a single length.
    if design.measures_volume && !design.axes.iter().any(|axis| axis.key == Key::Length) {
        let (lengths, rest) = design.params.into_iter().partition(|setting| setting.key() == Key::Length);
        design.params = rest;
        let lengths: Vec<DesignSetting> = lengths;
        design.axes.push(DesignAxis::new(Key::Length, lengths.into_iter().map(|setting| setting.value)));
    }
    if let [first, _, ..] = given.values(Key::Stage) {
        design.baseline = vec![first.clone().into()];
    }
    let mut plan = options.flags.plan(design)?;
    // A headline experiment has a row with the real time for each length.
    plan.experiments.iter_mut().for_each(|experiment| experiment.headline = true);
    Ok(plan)
}

/// 0, the powers of two up to `most`, and `most` itself.
fn lengths(most: u32) -> impl Iterator<Item = u32> {
    let powers = (0..).map(|power| 1 << power).take_while(move |&length| length < most);
    std::iter::once(0).chain(powers).chain(std::iter::once(most))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use pipemark_model::{Place, RecvMethod};

    use super::*;
    use crate::cli::{Cli, Verb};

    fn plan_of(flags: &[&str]) -> Result<Plan, String> {
        let words = ["pipemark", "chain"].iter().chain(flags);
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.verb {
            Some(Verb::Chain(options)) => plan(&options).map_err(|stop| stop.to_string()),
            _ => unreachable!("the verb is chain"),
        }
    }

    #[test]
    fn lengths_double() {
        assert_eq!(lengths(1).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(lengths(8).collect::<Vec<_>>(), [0, 1, 2, 4, 8]);
        assert_eq!(lengths(9).collect::<Vec<_>>(), [0, 1, 2, 4, 8, 9]);
    }

    #[test]
    fn without_flags_0_to_64_cats_are_measured() {
        let plan = plan_of(&[]).unwrap();
        assert_eq!(plan.trials.len(), 8);
        assert_eq!(plan.experiments[0].varies, [Key::Length]);
        let last = plan.trials[7].job.chain().unwrap();
        assert_eq!((last.length, last.stage.to_string().as_str(), last.ends.place), (64, "cat", Place::Free));
    }

    #[test]
    fn stages_are_compared_with_the_first() {
        let plan = plan_of(&["--length", "2,4", "--stage", "tr a,b c,d", "--stage", "relay"]).unwrap();
        assert_eq!(plan.trials.len(), 4);
        assert_eq!(plan.trials[0].job.chain().unwrap().stage.to_string(), "tr a,b c,d");
        assert_eq!(plan.trials[3].baseline.as_ref(), Some(&plan.trials[1].id));
    }

    #[test]
    fn full_verification_selects_a_receiver_that_reads() {
        assert_eq!(plan_of(&["--verify", "full"]).unwrap().trials[0].job.ends().unwrap().recv, RecvMethod::Read);
    }
}
