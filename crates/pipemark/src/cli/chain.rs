//! `pipemark chain`: what one more process in a pipeline costs. Source, so many stages, sink; the rest goes the way that
//! suites go.

use std::process::ExitCode;

use clap::Args;

use super::output::OutputOptions;
use super::schedule::ScheduleOptions;
use super::{measure, usage};
use crate::model::{BadValue, Key};
use crate::plan::{Axis, Design, Plan, Scale, Setting, Suite};

pub const EXAMPLES: &str = "\
EXAMPLES
  What one more cat costs, in chains of 0 to 64:
      pipemark chain

  Long ones, a gigabyte through each, against our own relay:
      pipemark chain --to 1024 --total 1g --stage cat --stage relay --runs 3

  Any command, which is given no shell; and a mixed chain, its stages in turns:
      pipemark chain --length 1,2,4 --stage 'tr a-z A-Z' --verify none
      pipemark chain --stage 'cat | relay'

  How fast grep reads text in which it finds nothing:
      pipemark chain --length 1 --stage 'grep no-such-line' --content text --exit 1 --verify none --send write

  Larger pipes, everything on one CPU:
      pipemark chain --capacity default,1m --place same

  The source splices from a file in memory and the sink to /dev/null, unless --send and --recv say otherwise.";

/// The longest of the lengths that are measured where none are given.
const USUAL: u32 = 64;

/// One value of the parameter `key`.
fn value(key: Key) -> impl Fn(&str) -> Result<Setting, BadValue> + Clone + Send + Sync + 'static {
    move |text| Setting::new(key, text)
}

/// What `chain` takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What to measure (each takes a comma list, but for --stage)")]
pub struct ChainOptions {
    /// Numbers of stages between source and sink [default: 0,1,2,4,8,16,32,64]
    #[arg(long, value_name = "N", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Length))]
    length: Vec<Setting>,
    /// In place of --length: 0 and the powers of two up to N
    #[arg(long, value_name = "N", conflicts_with = "length", value_parser = clap::value_parser!(u32).range(1..=4096))]
    to: Option<u32>,
    /// A stage: a command with its arguments, or relay; may be given several times [default: cat]
    ///
    /// 'a | b' is a chain of a and b in turns. There is no shell; use sh -c '…' for what only a shell can do.
    #[arg(long, value_name = "COMMAND", value_parser = value(Key::Stage))]
    stage: Vec<Setting>,
    /// Bytes through the chain per run [default: 256m]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Total))]
    total: Vec<Setting>,
    /// Capacity of every pipe: default, quota, or a size [default: default]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Capacity))]
    capacity: Vec<Setting>,
    /// CPUs: free, same, cross, or A:B such as 0:1, where neighbours take turns [default: free]
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = value(Key::Place))]
    place: Vec<Setting>,
    /// How the source sends: splice, write, vmsplice, sendfile, tee, io-uring [default: splice]
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = value(Key::Send))]
    send: Vec<Setting>,
    /// How the sink receives: splice, read, vmsplice, io-uring [default: splice, or read with --verify xor or full]
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = value(Key::Recv))]
    recv: Vec<Setting>,
    /// Bytes per call of source and sink [default: 64k]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Block))]
    block: Vec<Setting>,
    /// How much is proven about the bytes: none, count, xor, full [default: count]
    ///
    /// none is for stages that change the bytes or their number.
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', value_parser = value(Key::Verify))]
    verify: Vec<Setting>,
    /// What the bytes are: pattern, or text for stages that work on lines [default: pattern]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = value(Key::Content))]
    content: Vec<Setting>,
    /// The exit code that every stage has to end with, such as 1 for a grep that finds nothing [default: 0]
    #[arg(long, value_name = "CODE", value_parser = value(Key::Exit))]
    exit: Option<Setting>,
    #[command(flatten)]
    schedule: ScheduleOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Measures what the flags say.
pub fn run(options: &ChainOptions) -> ExitCode {
    let plan = options.output.check().and_then(|()| plan(options));
    match plan {
        Ok(plan) => measure::measure(&[plan], &options.output),
        Err(sentence) => usage(sentence),
    }
}

fn plan(options: &ChainOptions) -> Result<Plan, String> {
    let made = |key, text: &str| Setting::new(key, text).map_err(|error| error.to_string());
    let or = |given: &[Setting], key, usual: &str| match given {
        [] => made(key, usual).map(|setting| vec![setting]),
        given => Ok(given.to_vec()),
    };
    let lengths = match (options.to, options.length.as_slice()) {
        (None, given @ [_, ..]) => given.to_vec(),
        (to, _) => lengths(to.unwrap_or(USUAL)).map(|n| made(Key::Length, &n.to_string())).collect::<Result<_, _>>()?,
    };
    let looks = options.verify.iter().any(|level| matches!(level.text(), "xor" | "full"));
    // What is compared has to be made and read.
    let (send, recv) = if looks { ("write", "read") } else { ("splice", "splice") };
    let lists = [
        (Key::Send, or(&options.send, Key::Send, send)?),
        (Key::Recv, or(&options.recv, Key::Recv, recv)?),
        (Key::Verify, options.verify.clone()),
        (Key::Content, options.content.clone()),
        (Key::Exit, options.exit.iter().cloned().collect()),
        (Key::Block, options.block.clone()),
        (Key::Total, or(&options.total, Key::Total, "256m")?),
        (Key::Place, or(&options.place, Key::Place, "free")?),
        (Key::Capacity, options.capacity.clone()),
        (Key::Stage, or(&options.stage, Key::Stage, "cat")?),
        (Key::Length, lengths),
    ];
    let mut design = Design::new("chain", "Chains of processes");
    for (key, list) in lists {
        match list.as_slice() {
            [] => {}
            [one] => design.params.push(one.clone()),
            _ => design.axes.push(Axis::new(key, list)),
        }
    }
    if let [first, _, ..] = options.stage.as_slice() {
        design.baseline = vec![first.clone()];
    }
    let suite = Suite::of_flags("chain", options.schedule.choices(), design);
    suite.expand(Scale::ONE).map_err(|error| error.to_string())
}

/// 0 and the powers of two up to `most`, and `most`.
fn lengths(most: u32) -> impl Iterator<Item = u32> {
    let powers = (0..).map(|power| 1 << power).take_while(move |&length| length < most);
    std::iter::once(0).chain(powers).chain(std::iter::once(most))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};
    use crate::model::{Place, RecvMethod};

    fn plan_of(flags: &[&str]) -> Result<Plan, String> {
        let words = ["pipemark", "chain"].iter().chain(flags);
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.verb {
            Verb::Chain(options) => plan(&options),
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
    fn no_flags_are_cat_from_0_to_64() {
        let plan = plan_of(&[]).unwrap();
        assert_eq!(plan.trials.len(), 8);
        assert_eq!(plan.experiments[0].varies, [Key::Length]);
        let last = &plan.trials[7].params;
        assert_eq!((last.length, last.stage.to_string().as_str(), last.place), (64, "cat", Place::Free));
    }

    #[test]
    fn stages_are_compared_with_the_first() {
        let plan = plan_of(&["--length", "2,4", "--stage", "tr a,b c,d", "--stage", "relay"]).unwrap();
        assert_eq!(plan.trials.len(), 4);
        assert_eq!(plan.trials[0].params.stage.to_string(), "tr a,b c,d");
        assert_eq!(plan.trials[3].baseline.as_ref(), Some(&plan.trials[1].id));
    }

    #[test]
    fn what_is_compared_is_read() {
        assert_eq!(plan_of(&["--verify", "full"]).unwrap().trials[0].params.recv, RecvMethod::Read);
    }

    #[test]
    fn nonsense_is_refused_in_a_sentence() {
        for (flags, words) in [
            (&["--length", "5000"][..], "out of range"),
            (&["--length", "x"], "length of the chain"),
            (&["--to", "0"], "1..=4096"),
            (&["--to", "8", "--length", "1"], "cannot be used with"),
            (&["--stage", ""], "is empty"),
            (&["--stage", "cat >x"], "no shell"),
            (&["--stage", "cat", "--stage", "cat"], "given twice"),
        ] {
            let error = plan_of(flags).expect_err("refused");
            assert!(error.contains(words), "{flags:?}: {error}");
        }
    }
}
