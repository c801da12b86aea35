//! `pipemark bw`: an experiment made of flags. Each comma list is an axis; the rest goes the way that suites go.

use std::process::ExitCode;

use clap::Args;

use super::output::OutputOptions;
use super::schedule::ScheduleOptions;
use super::{measure, usage};
use crate::model::{BadValue, Key};
use crate::plan::{Axis, Design, Plan, Scale, Setting, Suite};

pub const EXAMPLES: &str = "\
EXAMPLES
  The plain pipe: 64 KiB blocks by write and read, across two cores:
      pipemark bw

  What block size costs; a comma list makes a trial of each value:
      pipemark bw --block 64,256,1k,4k,16k,64k,256k,1m

  What capacity is worth, against what a pipe has by default:
      pipemark bw --capacity default,256k,1m --baseline capacity=default

  Zero copy with every byte written anew and checked, writer on CPU 0, reader on CPU 1:
      pipemark bw --send write,vmsplice --pages huge --verify full --place 0:1

  Four pairs at once, 4 GiB each, exactly ten times:
      pipemark bw --pairs 4 --total 4g --runs 10

  Round trips through a pipe, a socket and shared memory, back to back and after a pause:
      pipemark bw --mode latency --link pipe,socketpair,shm --block 64 --gap 0,1ms

  Sizes are binary: 64k is 65536 bytes. A trial that cannot run here is skipped, and the table says why.";

/// One value, or a comma list of values, of the parameter `key`.
fn value(key: Key) -> impl Fn(&str) -> Result<Setting, BadValue> + Clone + Send + Sync + 'static {
    move |text| Setting::new(key, text)
}

/// What `bw` takes. Every parameter takes a comma list.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What to measure (each takes a comma list)")]
pub struct BwOptions {
    /// Bytes per call of the writer [default: 64k]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Block))]
    block: Vec<Setting>,
    /// Bytes asked for per call of the reader [default: the same as --block]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::ReadBlock))]
    read_block: Vec<Setting>,
    /// How the writer sends: write, vmsplice, vmsplice-gift, sendfile, splice, tee, io-uring, in-place, zerocopy [default: write]
    ///
    /// write is each link's plain way. in-place goes with --link shm, zerocopy with tcp, sendfile and io-uring with pipes
    /// and stream sockets, the others with pipes.
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = value(Key::Send))]
    send: Vec<Setting>,
    /// How the reader receives: read, splice, vmsplice, io-uring, in-place [default: read]
    ///
    /// splice drops the pages in /dev/null without touching them: what the pipe can pass on, not what a reader can use.
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = value(Key::Recv))]
    recv: Vec<Setting>,
    /// What an end does when it has to wait: block, poll, spin [default: block]
    ///
    /// An end that spins costs a whole CPU, so spinning and blocking trials are never ranked together.
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = value(Key::Wait))]
    wait: Vec<Setting>,
    /// Pages of the buffers: base, huge [default: base]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = value(Key::Pages))]
    pages: Vec<Setting>,
    /// Pipe capacity: default, quota, or a size [default: default]
    ///
    /// quota is what a user gets who is over the limit of /proc/sys/fs/pipe-user-pages-soft: 8 KiB on current kernels.
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Capacity))]
    capacity: Vec<Setting>,
    /// Offset of the buffers from a page, in bytes [default: 0]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Align))]
    align: Vec<Setting>,
    /// CPUs: free, same, cross, or WRITER:READER such as 0:1 [default: cross]
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = value(Key::Place))]
    place: Vec<Setting>,
    /// How many pairs of writer and reader run at once [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Pairs))]
    pairs: Vec<Setting>,
    /// Busy work after each call of the reader, in microseconds: 0.5 to 1.5 times the value [default: 0]
    #[arg(long, value_name = "DELAY", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::ReadDelay))]
    read_delay: Vec<Setting>,
    /// Busy work before each call of the writer, likewise [default: 0]
    #[arg(long, value_name = "DELAY", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::WriteDelay))]
    write_delay: Vec<Setting>,
    /// How much is proven about the bytes: none, count, xor, full [default: count]
    ///
    /// full writes each byte anew and compares it with what belongs at its place; it needs a receiver that touches bytes.
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', value_parser = value(Key::Verify))]
    verify: Vec<Setting>,
    /// throughput: a stream one way. latency: a block there and one back, over and over [default: throughput]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = value(Key::Mode))]
    mode: Vec<Setting>,
    /// Messages per second in latency mode, each timed from when it was due; closed sends when the last is back [default: closed]
    #[arg(long, value_name = "N", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Rate))]
    rate: Vec<Setting>,
    /// Pause between messages in latency mode, such as 0,100us,1ms [default: 0]
    ///
    /// Back-to-back messages keep both ends awake; after a pause a round trip can take several times as long.
    #[arg(long, value_name = "TIME", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Gap))]
    gap: Vec<Setting>,
    /// Send and receive buffer of sockets, as asked for [default: the system's]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Buffer))]
    buffer: Vec<Setting>,
    /// The mechanism between the ends: pipe, fifo, socketpair, unix-stream, unix-seqpacket, unix-dgram, tcp, sysv-mq, posix-mq, shm, process-vm, pty, null, memory-copy [default: pipe]
    #[arg(long, value_name = "LINK", value_delimiter = ',', value_parser = value(Key::Link))]
    link: Vec<Setting>,
    /// Move so many bytes per run and pair [default: see --time]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Total), conflicts_with = "time")]
    total: Vec<Setting>,
    /// Measure each run for so long, such as 200ms [default: 250ms]
    #[arg(long, value_name = "TIME", value_delimiter = ',', allow_negative_numbers = true, value_parser = value(Key::Time))]
    time: Vec<Setting>,
    /// Add the ratio to the trial that differs in these only; it is measured too if it is not asked for
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = Setting::parse)]
    baseline: Vec<Setting>,
    #[command(flatten)]
    schedule: ScheduleOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Measures what the flags say.
pub fn run(options: &BwOptions) -> ExitCode {
    let plan = options.output.check().and_then(|()| plan(options));
    match plan {
        Ok(plan) => measure::measure(&[plan], &options.output),
        Err(sentence) => usage(sentence),
    }
}

/// The memory-copy limit and one experiment.
fn plan(options: &BwOptions) -> Result<Plan, String> {
    // The first axis changes slowest: what people compare within, the block size, comes last.
    let lists = [
        &options.mode,
        &options.link,
        &options.pairs,
        &options.place,
        &options.verify,
        &options.send,
        &options.recv,
        &options.wait,
        &options.pages,
        &options.align,
        &options.capacity,
        &options.buffer,
        &options.rate,
        &options.gap,
        &options.write_delay,
        &options.read_delay,
        &options.total,
        &options.time,
        &options.read_block,
        &options.block,
    ];
    let latency = options.mode.iter().any(|mode| mode.text() == "latency");
    let mut design = Design::new("bw", if latency { "Round trips" } else { "Throughput" });
    for list in lists {
        match list.as_slice() {
            [] => {}
            [one] => design.params.push(one.clone()),
            many => design.axes.push(Axis::new(many[0].key(), many.to_vec())),
        }
    }
    let keys = |setting: &Setting| options.baseline.iter().filter(|other| other.key() == setting.key()).count();
    if let Some(twice) = options.baseline.iter().find(|setting| keys(setting) > 1) {
        return Err(format!("--baseline names '{}' twice; leave one out", twice.key()));
    }
    design.baseline = options.baseline.clone();
    let suite = Suite::of_flags("bw", options.schedule.choices(), design);
    let mut plan = suite.expand(Scale::ONE).map_err(|error| error.to_string())?;
    plan.precede_with_memory_copy();
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};
    use crate::model::{LinkKind, Params, SendMethod};
    use crate::plan::Runs;

    fn plan_of(flags: &str) -> Result<Plan, String> {
        let words = ["pipemark", "bw"].into_iter().chain(flags.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.verb {
            Verb::Bw(options) => options.output.check().and_then(|()| plan(&options)),
            _ => unreachable!("the verb is bw"),
        }
    }

    #[test]
    fn no_flags_are_a_plain_pipe_and_the_limit() {
        let plan = plan_of("").unwrap();
        assert_eq!(plan.trials.len(), 2);
        assert_eq!(plan.trials[0].params.link, LinkKind::MemoryCopy);
        assert_eq!(plan.trials[1].params, Params::default());
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
                     --total 1m";
        let plan = plan_of(flags).unwrap();
        let trial = &plan.trials[1].params;
        let mut words = flags.split_whitespace();
        while let (Some(flag), Some(text)) = (words.next(), words.next()) {
            let key = Key::named(flag.trim_start_matches("--")).unwrap();
            assert_eq!(trial.exact(key), Setting::new(key, text).unwrap().exact(), "{flag}");
        }
        assert_eq!(plan_of("--time 9ms").unwrap().trials[1].params.exact(Key::Time), "9.00 ms");
    }

    #[test]
    fn a_baseline_is_measured_too() {
        let plan = plan_of("--send vmsplice --baseline send=write,pages=base").unwrap();
        assert_eq!(plan.trials.len(), 3);
        assert_eq!(plan.trials[1].params.send, SendMethod::Write);
        assert_eq!(plan.trials[2].baseline.as_ref(), Some(&plan.trials[1].id));
    }

    #[test]
    fn nonsense_is_refused_in_a_sentence() {
        for (flags, words) in [
            ("--block 0", "out of range"),
            ("--block -1", "is not a size"),
            ("--block 99999999999999999999", "64 bits"),
            ("--block 64x", "is not a size"),
            ("--block 2g", "1 GiB"),
            ("--block 64,", "block size"),
            ("--block 64,64", "block 64 B is given twice"),
            ("--block 1m --total 64k", "larger than the total"),
            ("--total 0", "out of range"),
            ("--time 5", "is not a time"),
            ("--time 1s --total 1m", "cannot be used with"),
            ("--time 1s --limit 1s", "raise --limit"),
            ("--runs 0", "1..=10000"),
            ("--runs 3 --budget 1s", "cannot be used with"),
            ("--budget 0", "out of range"),
            ("--send wriite", "did you mean write?"),
            ("--link wormhole", "is not a link"),
            ("--place 0:9999", "placement"),
            ("--pairs 0", "256"),
            ("--recv splice --verify full", "never sees the bytes"),
            ("--recv read,splice --verify full", "never sees the bytes"),
            ("--send tee --verify full", "over and over"),
            ("--baseline send", "KEY=VALUE"),
            ("--baseline sned=write", "did you mean send?"),
            ("--baseline send=write,send=tee", "twice"),
            ("--baseline recv=splice --verify full", "never sees the bytes"),
            ("--json - --csv -", "standard output"),
            ("--json x --csv x", "file 'x'"),
        ] {
            let error = plan_of(flags).expect_err(flags);
            assert!(error.contains(words), "{flags}: {error}");
        }
    }

    #[test]
    fn a_matrix_beyond_the_bound_is_counted() {
        let list = |count: u32| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let error = plan_of(&format!("--block {} --read-block {}", list(200), list(200))).unwrap_err();
        assert!(error.contains("40,000 trials"), "{error}");
    }
}
