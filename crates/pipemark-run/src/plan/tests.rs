//! Tests of suites: the embedded suites, the error for each mistake, and properties of all suites.

use std::collections::HashSet;

use proptest::prelude::*;

use pipemark_entrants::{AgainstProgram, FILTERS};
use pipemark_model::{
    ByteSize, Job, Key, LinkKind, MAX_SHORT, Nanos, Place, RecvMethod, SendMethod, Value, Verify, Volume,
};

use super::*;
use crate::plan::refusal::PlanError;
use crate::plan::suite::MAX_TRIALS;

fn plan_of(text: &str) -> Result<Plan, PlanError> {
    Suite::parse("x.toml", text)?.expand(VolumeScale::ONE)
}

fn embedded_plan(name: &str) -> Plan {
    plan_of(embedded(name).unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// A suite with one experiment that contains only the lines under test.
fn with_experiment(body: &str) -> String {
    format!("name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\n{body}\n")
}

fn blocks(plan: &Plan) -> Vec<u64> {
    plan.trials.iter().map(|trial| trial.job.block().unwrap().0).collect()
}

#[test]
fn embedded_suites_are_valid_and_have_their_listed_names() {
    for (name, text) in EMBEDDED {
        assert_eq!(Suite::parse(name, text).unwrap_or_else(|error| panic!("{error}")).name, name);
        let plan = embedded_plan(name);
        assert!(!plan.trials.is_empty());
        for trial in &plan.trials {
            Job::try_from(trial.job.settings()).unwrap();
            assert_eq!(trial.id, trial.job.id());
        }
    }
}

#[test]
fn embedded_suites_use_only_bundled_filters() {
    for (name, _) in EMBEDDED {
        for trial in embedded_plan(name).trials {
            let Some(lines) = trial.job.lines() else { continue };
            assert!(FILTERS.iter().any(|(known, _)| *known == lines.filter), "{name}: {}", lines.filter);
        }
    }
}

#[test]
fn embedded_suites_can_be_run_together() {
    let mut names = HashSet::new();
    for (name, _) in EMBEDDED {
        for experiment in embedded_plan(name).experiments {
            assert!(names.insert(experiment.name.clone()), "{} is in two suites", experiment.name);
        }
    }
}

/// A claim compares only trials that move the same volume, so a trial with another volume than its base would be omitted.
#[test]
fn every_trial_that_a_claim_compares_has_its_base() {
    for (name, _) in EMBEDDED {
        let plan = embedded_plan(name);
        for claim in plan.claims.iter().filter(|claim| claim.is_compared()) {
            for trial in plan.trials.iter().filter(|trial| claim.covers(&trial.experiment, &trial.job)) {
                let is_base =
                    |other: &&Trial| other.experiment == trial.experiment && claim.has_base(&trial.job, &other.job);
                let bases = plan.trials.iter().filter(is_base).count();
                assert_eq!(bases, 1, "{}: {}", claim.id, trial.id);
            }
        }
    }
}

#[test]
fn block_size_is_as_published() {
    let plan = embedded_plan("block-size");
    // Blocks and sizes are from test_bandwidth.sh, and averages in MiB/s from the table in pipe_bandwidth.c.
    let document = [
        (64, 26_000_000, 250.91),
        (256, 6_500_000, 933.07),
        (1024, 1_600_000, 2534.25),
        (4096, 400_000, 1532.90),
        (8192, 200_000, 3184.68),
        (16384, 100_000, 2093.62),
        (32768, 50_000, 1508.83),
        (65536, 25_000, 1096.92),
    ];
    assert_eq!(
        plan.trials.len(),
        document.len() + 24 + 8 + 9,
        "the document's trials, those on one core and unpinned, those with another capacity, and those with few blocks"
    );
    for (trial, (size, count, average)) in plan.trials.iter().zip(document) {
        assert_eq!(trial.job.block(), Some(ByteSize(size)));
        assert_eq!(trial.job.volume(), Volume::Total(ByteSize(size * count)));
        assert_eq!(trial.job.place(), "0:1".parse::<Place>().unwrap());
        assert_eq!(
            (trial.job.ends().unwrap().send, trial.job.ends().unwrap().recv),
            (SendMethod::Write, RecvMethod::Read)
        );
        let published = trial.published.as_ref().expect("each size has an average");
        assert!((published.throughput / (average * 1024.0 * 1024.0) - 1.0).abs() < 1e-12);
        assert!(published.source.contains("pipe_bandwidth.c") && published.source.contains("other hardware"));
    }
    assert!(matches!(plan.schedule.runs, Runs::Adaptive { min: 7, .. }));
    assert_eq!(plan.experiments[0].varies, [Key::Block], "the totals vary only with the block sizes");
    // The claim compares the scatter of small blocks with that of as many large blocks.
    let claim = plan.claims.iter().find(|claim| claim.id == "small-blocks-vary").unwrap();
    let pairs: Vec<_> = plan
        .trials
        .iter()
        .filter(|trial| claim.covers(&trial.experiment, &trial.job))
        .flat_map(|of| plan.trials.iter().filter(|to| claim.has_base(&of.job, &to.job)).map(|to| (&of.job, &to.job)))
        .map(|(of, to)| [of, to].map(|job| (job.block().unwrap().0, job.volume())))
        .collect();
    let blocks = |block: u64, count: u64| (block, Volume::Total(ByteSize(block * count)));
    let expected = [1000, 10_000].map(|count| [blocks(64, count), blocks(65536, count)]);
    assert_eq!(pairs, expected);
}

#[test]
fn quick_fits_its_time() {
    let mut plan = embedded_plan("quick");
    plan.prepend_memory_copy();
    assert!(plan.trials.len() <= 36, "{} trials", plan.trials.len());
    // The first trial is the added memory copy.
    for trial in &plan.trials[1..] {
        assert_eq!(trial.job.volume(), Volume::Time(Nanos(50_000_000)), "{}", trial.id);
    }
    assert!(matches!(plan.schedule.runs, Runs::Adaptive { min: 8, .. }));
}

#[test]
fn baselines_are_trials_of_the_same_experiment() {
    for (name, _) in EMBEDDED {
        let plan = embedded_plan(name);
        for experiment in &plan.experiments {
            let ids: HashSet<&str> = plan
                .trials
                .iter()
                .filter(|trial| trial.experiment == experiment.name)
                .map(|trial| trial.id.as_str())
                .collect();
            for trial in plan.trials.iter().filter(|trial| trial.experiment == experiment.name) {
                let Some(baseline) = &trial.baseline else { continue };
                assert!(ids.contains(baseline.as_str()), "{} has a baseline elsewhere: {baseline}", trial.id);
                assert_ne!(*baseline, trial.id);
            }
        }
    }
    let quick = embedded_plan("quick");
    let fresh = quick.trials.iter().filter(|trial| trial.experiment == "fresh" && trial.baseline.is_some());
    assert_eq!(fresh.count(), 2, "vmsplice is compared with write at each capacity");
}

#[test]
fn axes_are_multiplied_in_their_order() {
    let plan = plan_of(&with_experiment("axes = { send = [\"write\", \"vmsplice\"], block = [64, \"1k\"] }")).unwrap();
    let shown: Vec<(SendMethod, u64)> =
        plan.trials.iter().map(|trial| (trial.job.ends().unwrap().send, trial.job.block().unwrap().0)).collect();
    use SendMethod::{Vmsplice, Write};
    assert_eq!(shown, [(Write, 64), (Write, 1024), (Vmsplice, 64), (Vmsplice, 1024)]);
    assert_eq!(plan.experiments[0].varies, [Key::Send, Key::Block]);
}

#[test]
fn cases_are_crossed_with_axes_and_replace_params() {
    let plan = plan_of(&with_experiment(
        "params = { pages = \"base\", verify = \"full\" }\naxes = { capacity = [\"default\", \"1m\"] }\n\
         cases = [{ send = \"write\" }, { send = \"vmsplice\", pages = \"huge\" }]",
    ))
    .unwrap();
    assert_eq!(plan.trials.len(), 4);
    assert!(plan.trials.iter().all(|trial| trial.job.verify() == Verify::Full));
    assert_eq!(plan.experiments[0].varies, [Key::Capacity, Key::Send, Key::Pages]);
}

#[test]
fn a_baseline_outside_the_axes_is_added_once() {
    let plan = plan_of(&with_experiment(
        "params = { send = \"vmsplice\" }\naxes = { recv = [\"read\", \"splice\"] }\n\
         baseline = { send = \"write\", recv = \"read\" }",
    ))
    .unwrap();
    assert_eq!(plan.trials.len(), 3);
    assert_eq!((plan.trials[0].job.ends().unwrap().send, &plan.trials[0].baseline), (SendMethod::Write, &None));
    assert!(plan.trials[1..].iter().all(|trial| trial.baseline.as_ref() == Some(&plan.trials[0].id)));
}

#[test]
fn a_scale_keeps_whole_blocks_and_is_in_the_title() {
    let suite = Suite::parse("x", embedded("block-size").unwrap()).unwrap();
    let plan = suite.expand("0.01".parse().unwrap()).unwrap();
    assert_eq!(plan.trials[0].job.volume(), Volume::Total(ByteSize(16_640_000)));
    assert!(plan.trials[..8].iter().all(|trial| trial.published.is_some()));
    assert!(plan.title.ends_with("(totals × 0.01)"), "{}", plan.title);
    let both = Suite::parse("x", embedded("large-pipe").unwrap()).unwrap().expand("0.01".parse().unwrap()).unwrap();
    assert!(both.title.ends_with("(totals and times × 0.01)"), "{}", both.title);
    let few = |trial: &&Trial| trial.experiment == "volume" && trial.job.block() == Some(ByteSize(64));
    let few: Vec<Volume> = plan.trials.iter().filter(few).map(|trial| trial.job.volume()).collect();
    let total = |blocks: u64| Volume::Total(ByteSize(64 * blocks));
    assert_eq!(few, [1000, 10_000, 50_000].map(total), "a number of blocks isn't scaled");
    let smallest = suite.expand("0.000001".parse().unwrap()).unwrap();
    assert_eq!(blocks(&smallest)[7], 65536);
    assert_eq!(smallest.trials[7].job.volume(), Volume::Total(ByteSize(65536)), "never less than a block");
    let timed = Suite::parse("x", embedded("quick").unwrap()).unwrap();
    let half = timed.expand("0.5".parse().unwrap()).unwrap();
    let whole = timed.expand(VolumeScale::ONE).unwrap();
    assert!(half.title.ends_with("(times × 0.5)"), "{}", half.title);
    assert_eq!(half.scaled, "times × 0.5", "a run of several suites shows this text without the suites' titles");
    for (half, whole) in half.trials.iter().zip(&whole.trials) {
        let (Volume::Time(half), Volume::Time(whole)) = (half.job.volume(), whole.job.volume()) else { continue };
        assert_eq!(half.0 * 2, whole.0);
    }
    for text in ["0", "-1", "NaN", "inf", "1e9", "", "x"] {
        assert!(text.parse::<VolumeScale>().is_err(), "{text} was taken as a scale");
    }
}

#[test]
fn the_memory_copy_limit_is_added_once() {
    let mut plan = embedded_plan("quick");
    let trials = plan.trials.len();
    plan.prepend_memory_copy();
    plan.prepend_memory_copy();
    assert_eq!(plan.trials.len(), trials + 1);
    assert_eq!(plan.trials[0].job.link(), LinkKind::MemoryCopy);
    assert_eq!(plan.experiments[0].name, plan.trials[0].experiment);
}

#[test]
fn published_figures_find_their_trials() {
    let plan = plan_of(&with_experiment(
        "axes = { place = [\"same\", \"cross\"], block = [\"64\", \"1k\"] }\n[[experiment.published]]\n\
         source = \"S\"\nhardware = \"H\"\nunit = \"GB/s\"\nby = \"block\"\nvalues = { 1024 = 2 }\n\
         when = { place = \"same\" }",
    ))
    .unwrap();
    let found: Vec<Option<f64>> =
        plan.trials.iter().map(|trial| trial.published.as_ref().map(|p| p.throughput)).collect();
    assert_eq!(found, [None, Some(2e9), None, None]);
}

/// For each mistake, the test has the complete first line of the error and the words that the error underlines.
#[test]
fn errors_point_to_their_place() {
    let published = |rest: &str| {
        let table = "[[experiment.published]]\nsource = \"S\"\nhardware = \"H\"\nby = \"block\"";
        with_experiment(&format!("params = {{ block = 64 }}\n{table}\n{rest}"))
    };
    let e = with_experiment;
    let cases = [
        (
            e("params = { send = \"wriite\" }"),
            "x.toml:6:19: 'wriite' is not a send method; use write, vmsplice, vmsplice-gift, sendfile, splice, tee, \
             io-uring, in-place, zerocopy (did you mean write?)",
            "\"wriite\"",
        ),
        (
            e("params = { sned = \"write\" }"),
            "x.toml:6:12: 'sned' is not a parameter; use mode, link, send, recv, wait, pages, place, capacity, \
             buffer, block, read-block, align, pairs, writers, readers, stage, length, source, content, exit, read-delay, write-delay, rate, gap, \
             verify, rseq, total, blocks, time, language, program, feed, filter (did you mean send?)",
            "sned",
        ),
        (
            e("parms = {}"),
            "x.toml:6:1: 'parms' is unknown here; use name, title, about, across, params, axes, cases, baseline, published, \
             gains, volume, against (did you mean params?)",
            "parms",
        ),
        (e("axes = { block = [64, 0] }"), "x.toml:6:23: block size 0 B is out of range; use 1 B to 1 GiB", "0"),
        (e("axes = { block = [64, -4096] }"), "x.toml:6:23: block size: '-4096' is not a size; ", "-4096"),
        (e("axes = { block = [64, \"64 B\"] }"), "x.toml:6:23: block 64 B is given twice", "\"64 B\""),
        (e("axes = { block = [] }"), "x.toml:6:10: the axis 'block' has no values", "block"),
        (e("axes = { block = 64 }"), "x.toml:6:18: invalid type: integer `64`, expected a list", "64"),
        (e("axes = { block = [true] }"), "x.toml:6:18: a value must be a number or a string", "[true]"),
        (
            e("params = { total = \"1g\", time = \"1s\" }"),
            "x.toml:6:26: use only one of total, blocks and time",
            "time",
        ),
        (
            e("axes = { block = [64, 128] }\ncases = [{ send = \"tee\", block = 1 }]"),
            "x.toml:7:34: 'block' is an axis, so it cannot also have a fixed value; omit one of the two",
            "1",
        ),
        (
            e("cases = [{ block = 64 }, { block = \"64\" }]"),
            "x.toml:6:36: experiment 'e' has the trial 'pipe write-read 64 cross count' twice",
            "\"64\"",
        ),
        (
            e("params = { recv = \"splice\", verify = \"full\" }"),
            "x.toml:4:8: experiment 'e': --recv splice never reads the bytes, so --verify full is impossible; ",
            "\"e\"",
        ),
        (
            e("params = { block = \"1m\", total = \"64k\" }"),
            "x.toml:4:8: experiment 'e': block size 1 MiB is larger than the total of 64 KiB; ",
            "\"e\"",
        ),
        (
            published("unit = \"MiB/s\"\nvalues = { 128 = 1.5 }"),
            "x.toml:12:12: a figure is published for block 128 B, but experiment 'e' has no such trial",
            "128",
        ),
        (
            published("unit = \"MB\"\nvalues = { 64 = 1.5 }"),
            "x.toml:11:8: 'MB' is unknown here; use B/s, kB/s, KiB/s, MB/s, MiB/s, GB/s, GiB/s",
            "\"MB\"",
        ),
        (
            published("unit = \"MB/s\"\nvalues = { 64 = 1 }\nstatistic = \"best\""),
            "x.toml:13:13: 'best' is unknown here; use least, mean, single",
            "\"best\"",
        ),
        (
            published("unit = \"MB/s\"\nvalues = { 64 = nan }"),
            "x.toml:12:17: a published figure must be a number above 0",
            "nan",
        ),
        (
            "name = \"X!\"\ntitle = \"\"\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\n".to_owned(),
            "x.toml:1:8: 'X!' is not a name; use lower-case letters, digits and hyphens, as in block-size",
            "\"X!\"",
        ),
        (
            "name = \"x\"\ntitle = \"\"\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\n".to_owned(),
            "x.toml:2:9: this title is empty",
            "\"\"",
        ),
        ("name = \"x\"\nexperiment = []\n".to_owned(), "x.toml:1:1: 'title' is missing here", "n"),
        (
            "name = \"x\"\ntitle = \"X\"\nexperiment = []\n".to_owned(),
            "x.toml:3:14: a suite needs at least one [[experiment]]",
            "[]",
        ),
        (
            format!("{}[[experiment]]\nname = \"e\"\ntitle = \"E\"\n", e("")),
            "x.toml:8:8: two experiments are called 'e'; give each its own name",
            "\"e\"",
        ),
        (
            "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"memory-copy\"\ntitle = \"E\"\n".to_owned(),
            "x.toml:4:8: 'memory-copy' is the reference that pipemark adds; use another name",
            "\"memory-copy\"",
        ),
        (format!("{}[schedule]\nruns = 0\n", e("")), "x.toml:8:8: 0 runs are out of range; use 1 to 10000", "0"),
        (
            format!("{}[schedule]\nruns = 3\nbudget = \"1s\"\n", e("")),
            "x.toml:7:1: runs fixes the number of runs, so min-runs, max-runs, precision and budget have no effect",
            "[schedule]",
        ),
        (
            format!("{}[schedule]\nbudget = \"30\"\n", e("")),
            "x.toml:8:10: '30' is not a time; write a number with ns, us, ms, s or min, such as 200ms",
            "\"30\"",
        ),
    ];
    for (text, expected, marked) in cases {
        let error = plan_of(&text).expect_err(expected).to_string();
        let mut lines = error.lines();
        let first = lines.next().unwrap();
        assert!(first.starts_with(expected), "expected {expected}\n     got {first}");
        let (line, carets) = (lines.nth(1).unwrap(), lines.next().unwrap());
        let start = carets.find('^').unwrap();
        assert_eq!(&line[start..start + carets.matches('^').count()], marked, "{error}");
    }
}

#[test]
fn the_example_of_the_docs_is_a_suite() {
    let docs = include_str!("../../../../docs/suites.md");
    let example = docs.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let plan = plan_of(example).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.trials.len(), 8);
    assert_eq!(plan.trials.iter().filter(|trial| trial.published.is_some()).count(), 2);
}

#[test]
fn syntax_errors_have_a_position() {
    let error = plan_of("name = \"x\ntitle = \"X\"\n").unwrap_err().to_string();
    assert!(error.starts_with("x.toml:1:"), "{error}");
    let error = plan_of("").unwrap_err().to_string();
    assert!(error.starts_with("x.toml:1:1: 'name' is missing here"), "{error}");
}

#[test]
fn a_billion_trials_are_counted_without_making_them() {
    let thousand: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let list = thousand.join(", ");
    let axes = format!("[experiment.axes]\nblock = [{list}]\nread-block = [{list}]\nalign = [{list}]");
    let error = plan_of(&with_experiment(&axes)).unwrap_err().to_string();
    assert!(error.starts_with("x.toml:4:8: 1,000,000,000 trials are too many; the limit is 10,000"), "{error}");
}

#[test]
fn the_trial_limit_includes_all_experiments_and_baselines() {
    let list = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let at_the_limit = with_experiment(&format!("axes = {{ block = [{}] }}", list(MAX_TRIALS)));
    assert_eq!(plan_of(&at_the_limit).unwrap().trials.len(), MAX_TRIALS);
    let above = format!("{at_the_limit}[[experiment]]\nname = \"f\"\ntitle = \"F\"\n");
    assert!(plan_of(&above).unwrap_err().to_string().contains("10,001 trials are too many"));
    let baselines = with_experiment(&format!(
        "params = {{ send = \"vmsplice\" }}\naxes = {{ block = [{}] }}\nbaseline = {{ send = \"write\" }}",
        list(MAX_TRIALS)
    ));
    assert!(plan_of(&baselines).unwrap_err().to_string().contains("20,000 trials are too many"));
}

#[test]
fn hostile_files_are_refused() {
    let deep = |open: &str, count| format!("name = {}", open.repeat(count));
    for text in [
        deep("[", 100_000),
        deep("{a=", 100_000),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        format!("name = \"{}\"", "x".repeat(MAX_SUITE_BYTES - 20)),
        format!("{} = 1", "x".repeat(MAX_SUITE_BYTES - 20)),
        with_experiment(&format!("params = {{ send = \"{}\" }}", "x".repeat(1 << 19))),
        with_experiment(&format!("params = {{ {} = 1 }}", "x".repeat(1 << 19))),
        with_experiment("about = \"\\u001b[31m\""),
        with_experiment("params = { send = \"\\u001b[31m\" }"),
        "\0".repeat(1000),
        " ".repeat(MAX_SUITE_BYTES + 1),
    ] {
        let error = plan_of(&text).expect_err(&text[..50]).to_string();
        assert!(error.starts_with("x.toml:"), "{error}");
        assert!(error.len() < 2000, "an answer of {} bytes", error.len());
        assert!(!error.contains('\x1b'));
    }
}

/// Lists of distinct block sizes.
fn values_of_block() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::hash_set(1u64..1 << 30, 1..8).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
        let _ = plan_of(&text);
    }

    #[test]
    fn no_mangled_suite_makes_the_reader_panic(at in 0usize..2000, cut in 0usize..40, paste in ".{0,8}") {
        for (_, text) in EMBEDDED {
            let start = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap();
            let end = (start + cut..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
            let mangled = format!("{}{paste}{}", &text[..start], &text[end..]);
            if let Err(error) = plan_of(&mangled) {
                prop_assert!(error.to_string().starts_with("x.toml:"), "{}", error);
            }
        }
    }

    #[test]
    fn no_value_makes_a_setting_panic(text in ".{0,30}") {
        let _ = Value::parse_pair(&text);
        for key in Key::iter() {
            if let Ok(value) = Value::parse(key, &text) {
                prop_assert_eq!(Value::parse(key, &value.exact()), Ok(value));
            }
        }
    }

    #[test]
    fn the_number_of_trials_equals_the_count(
        blocks in values_of_block(),
        reads in values_of_block(),
        places in proptest::sample::subsequence(vec!["free", "same", "cross", "0:1"], 1..=4),
        cases in proptest::sample::subsequence(vec!["write", "vmsplice", "tee"], 0..=3),
    ) {
        let settings = |key, values: Vec<String>| -> Vec<Value> {
            values.iter().map(|value| Value::parse(key, value).unwrap()).collect()
        };
        let texts = |numbers: Vec<u64>| numbers.iter().map(u64::to_string).collect();
        let design = Design {
            name: "e".to_owned(),
            axes: vec![
                DesignAxis::new(Key::Block, settings(Key::Block, texts(blocks))),
                DesignAxis::new(Key::ReadBlock, settings(Key::ReadBlock, texts(reads))),
                DesignAxis::new(Key::Place, settings(Key::Place, places.iter().map(|p| p.to_string()).collect())),
            ],
            cases: cases.iter().map(|send| settings(Key::Send, vec![send.to_string()]).into_iter().map(DesignSetting::from).collect()).collect(),
            ..Design::default()
        };
        let counted = design.count();
        let plan = Suite::of_flags("bw", ScheduleChoices::default(), design).expand(VolumeScale::ONE).unwrap();
        prop_assert_eq!(plan.trials.len() as u128, counted);
        let ids: HashSet<&str> = plan.trials.iter().map(|trial| trial.id.as_str()).collect();
        prop_assert_eq!(ids.len(), plan.trials.len());
    }

    #[test]
    fn counting_does_not_overflow(lengths in proptest::collection::vec(1usize..2000, 0..30)) {
        let setting = Value::parse(Key::Block, "1").unwrap();
        let axes = lengths.iter().map(|&length| DesignAxis::new(Key::Block, vec![setting.clone(); length])).collect();
        let design = Design { axes, ..Design::default() };
        let product = lengths.iter().try_fold(1u128, |product, &length| product.checked_mul(length as u128));
        prop_assert_eq!(design.count(), product.unwrap_or(u128::MAX));
    }
}

/// The figures of the document's tables were copied by hand.
#[test]
fn the_suite_large_pipe_has_the_tables_of_its_document() {
    let plan = embedded_plan("large-pipe");
    let column = |experiment: &str, block: &str, name: &str| {
        let experiment = plan.experiments.iter().find(|known| known.name == experiment).unwrap();
        let gains = experiment.gains.as_ref().unwrap();
        let block = gains.blocks.iter().find(|known| known.title == block).unwrap();
        block
            .columns
            .iter()
            .find(|known| known.name == name)
            .unwrap()
            .cells
            .iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
    };
    let published = |experiment, block, name| -> Vec<f64> {
        column(experiment, block, name).iter().map(|cell| cell.published.unwrap()).collect()
    };
    let table_2 = "UP, 4 KiB pipe (Table 2)";
    for (experiment, block, name, figures) in [
        ("grep", "2-way", "LP+ZC", &[203.0][..]),
        ("grep", "UP", "ZC", &[-53.0]),
        ("grep", table_2, "LP (4k)", &[1.61]),
        ("bw-pipe", "2-way", "LP", &[4.0, 19.0, 50.0, -1.0, -13.0, -16.0, -24.0, -26.0, -24.0, -23.0]),
        ("bw-pipe", "2-way", "LP+ZC", &[102.0, 133.0, 89.0, 55.0, 8.0, 6.0, 6.0, 1.0, 23.0, 27.0]),
        ("bw-pipe", "UP", "ZC", &[16.0, 21.0, 73.0, 30.0, 14.0, 17.0, 22.0, 25.0, 27.0, 41.0]),
        ("bw-pipe", "UP", "LP+ZC", &[-10.0, -8.0, -42.0, -62.0, -23.0, -24.0, -14.0, -13.0, 26.0, 28.0]),
        ("bw-pipe", table_2, "LP (4k)", &[-2.58, -2.47, 0.21, 5.98, -0.9, -0.43, 0.12, 0.98, 0.07, -1.17]),
        ("bw-pipe", table_2, "LP (4k)+ZC", &[2.0, 23.0, 63.0, 20.0, 12.0, 16.0, 21.0, 24.0, 46.0, 40.0]),
        ("pipeflex", "2-way", "LP", &[0.0, 0.0, 10.0, 46.0, 93.0, 163.0, 183.0, 359.0, 276.0, 292.0]),
        ("pipeflex", "UP", "LP+ZC", &[-5.0, -11.0, -11.0, -20.0, -14.0, -31.0, -31.0, -43.0, -39.0, -48.0]),
        ("pipeflex", table_2, "ZC", &[-24.0, -42.0, -23.0, -41.0, -57.0, -65.0, -74.0, -79.0, -85.0, -88.0]),
        ("pipeflex", table_2, "LP (4k)+ZC", &[-24.0, -4.0, -24.0, -42.0, -57.0, -66.0, -74.0, -79.0, -85.0, -87.0]),
    ] {
        assert_eq!(published(experiment, block, name), figures, "{experiment}, {block}, {name}");
    }
    // Zero copy is faster above the size of the large buffer.
    let both = column("bw-pipe", "2-way", "LP+ZC");
    let large = column("bw-pipe", "2-way", "LP");
    for (row, (both, large)) in both.iter().zip(&large).enumerate() {
        assert_eq!(both.trial == large.trial, row < 8, "row {row}: {} {}", both.trial, large.trial);
        assert_eq!(both.trial.contains("vmsplice"), row >= 8);
    }
    let small = Suite::parse("x", embedded("large-pipe").unwrap()).unwrap().expand("0.01".parse().unwrap()).unwrap();
    let times = small.trials.iter().filter(|trial| trial.experiment == "pipeflex");
    assert!(times.map(|trial| trial.job.volume()).all(|volume| volume == Volume::Time(Nanos(1_000_000))));
}

#[test]
fn a_table_of_gains_fits_its_trials() {
    let of = |column: &str| {
        Suite::parse(
            "x",
            &with_experiment(&format!(
                "axes = {{ block = [\"4k\", \"8k\"], capacity = [\"32k\", \"64k\"] }}\nbaseline = {{ capacity = \"4k\" }}\n\
                 [experiment.gains]\nby = \"block\"\ncorner = \"T.S.\"\nsource = \"a paper\"\nhardware = \"a machine\"\n\
                 [[experiment.gains.column]]\nblock = \"b\"\nname = \"LP\"\n{column}"
            )),
        )
        .and_then(|suite| suite.expand(VolumeScale::ONE))
    };
    let good = "when = [{ capacity = \"32k\" }]\npublished = { 8k = 3.5 }";
    let plan = of(good).unwrap();
    let gains = plan.experiments[0].gains.as_ref().unwrap();
    assert_eq!(gains.rows, ["4 KiB", "8 KiB"]);
    let cells: Vec<_> = gains.blocks[0].columns[0].cells.iter().flatten().map(|cell| cell.published).collect();
    assert_eq!(cells, [None, Some(3.5)]);
    for (column, words) in [
        ("when = [{}]", "both match the row"),
        ("when = [{ capacity = \"1m\" }]", "no trial with a baseline matches"),
        ("when = [{ capacity = \"32k\" }]\npublished = { 16k = 1 }", "no trial matches"),
        ("when = [{ capacity = \"32k\" }]\npublished = { 8k = -100 }", "above -100"),
        ("when = [{ capacity = \"32k\", speed = \"1\" }]", "speed"),
    ] {
        let error = of(column).unwrap_err().to_string();
        assert!(error.contains(words), "{column}: {error}");
    }
}

#[test]
fn a_claim_fits_its_trials() {
    let of = |claim: &str| {
        let experiment = with_experiment("axes = { block = [\"4k\", \"8k\"], capacity = [\"32k\", \"64k\"] }");
        Suite::parse(
            "x",
            &format!("{experiment}\n[[claim]]\nid = \"c\"\nwhere = \"a table\"\nsays = \"It helps.\"\n{claim}"),
        )
        .and_then(|suite| suite.expand(VolumeScale::ONE))
    };
    let small = "of = [{ capacity = \"32k\" }]\nto = { capacity = \"64k\" }\n";
    let claim = &of(&format!("{small}about = 0.5")).unwrap().claims[0];
    assert_eq!(claim.experiments.len(), 1);
    // At a ratio of 0.5 a run takes twice the time. With half of that extra time the ratio is 2/3, with twice that
    // extra time it is 1/3.
    assert!(
        (claim.low.unwrap() - 1.0 / 3.0).abs() < 1e-9 && (claim.high.unwrap() - 2.0 / 3.0).abs() < 1e-9,
        "{claim:?}"
    );
    let gain = &of(&format!("{small}figure = \"gain\"\nabout = 165")).unwrap().claims[0];
    assert_eq!((gain.low, gain.high), (Some(82.5), Some(330.0)));
    assert!(of("open = \"no other system here\"").unwrap().claims[0].experiments.is_empty());
    for (claim, words) in [
        ("low = 1", "none of the matching trials has a baseline to compare with"),
        ("figure = \"throughputs\"\nlow = 1", "did you mean throughput?"),
        ("figure = \"throughput\"\nabout = 1", "'about' is for gains and ratios"),
        (small, "a claim needs either low, high or about"),
        ("shown-by = \"magic\"", "is not a demonstration; use one of two-copies, vmsplice-passes, "),
        ("figure = \"throughput\"\nlow = 1\nof = [{ capacity = \"1m\" }]", "matches no trial"),
        ("in = [\"elsewhere\"]\nfigure = \"throughput\"\nlow = 1", "no experiment 'elsewhere'"),
        ("figure = \"throughput\"\nlow = 1\nof = [{ speed = \"1\" }]", "speed"),
        ("low = 1\nof = [{ block = \"4k\" }]\nto-each = [{ block = \"8k\" }, {}]", "one table for each entry of 'of'"),
        (&*format!("{small}low = 1\nshort = \"{}\"", "x".repeat(51)), "more than 50 characters"),
    ] {
        let error = of(claim).unwrap_err().to_string();
        assert!(error.contains(words), "{claim}: {error}");
    }
}

#[test]
fn every_embedded_claim_has_a_short_sentence() {
    for claim in EMBEDDED.iter().flat_map(|(name, _)| embedded_plan(name).claims) {
        assert!(!claim.short.is_empty() && claim.short.chars().count() <= MAX_SHORT, "{}", claim.id);
    }
}

/// Batches are judged by pairs of one program each.
#[test]
fn each_program_with_batches_is_compared_with_itself() {
    let plan = embedded_plan("lines");
    for id in ["batches-gain", "batches-delay", "batches-keep-cache"] {
        let claim = plan.claims.iter().find(|claim| claim.id == id).unwrap();
        let covered = plan.trials.iter().filter(|trial| claim.covers(&trial.experiment, &trial.job));
        let mut programs = 0;
        for trial in covered {
            let bases: Vec<_> = plan
                .trials
                .iter()
                .filter(|other| other.experiment == trial.experiment && claim.has_base(&trial.job, &other.job))
                .collect();
            let filter = |trial: &Trial| trial.job.lines().unwrap().filter.to_string();
            assert_eq!(bases.len(), 1, "{id}: {}", trial.id);
            assert_eq!(filter(trial), format!("{}-batch", filter(bases[0])));
            programs += 1;
        }
        assert!(programs >= 4, "{id}");
    }
}

#[test]
fn at_most_five_embedded_claims_are_open() {
    let claims: Vec<_> = EMBEDDED.iter().flat_map(|(name, _)| embedded_plan(name).claims).collect();
    let open: Vec<&str> = claims.iter().filter(|claim| claim.open.is_some()).map(|claim| claim.id.as_str()).collect();
    assert!(claims.len() > 80 && open.len() <= 5, "{open:?} of {}", claims.len());
}

#[test]
fn chains_may_have_their_volume_measured() {
    let with = |body: &str| plan_of(&with_experiment(&format!("volume = \"auto\"\n{body}")));
    let plan = with("axes = { length = [0, 4] }").unwrap();
    assert_eq!((plan.to_measure, plan.trials.len()), (vec!["e".to_owned()], 2));
    assert!(embedded_plan("pipe-speed").to_measure == ["cat-long"] && embedded_plan("quick").to_measure.is_empty());
    for (body, sentence) in [
        ("axes = { length = [0, 4] }\nparams = { total = \"1m\" }", "so total, blocks and time can't be set"),
        ("axes = { block = [64, 128] }", "only chains can have a volume"),
        ("axes = { block = [64, 128] }\nparams = { time = \"1s\" }", "only chains can have a volume"),
    ] {
        let error = with(body).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
    let least = with("axes = { block = [64, 128] }\nparams = { total = \"1m\" }").unwrap();
    assert_eq!((&least.to_measure, &least.with_least), (&vec!["e".to_owned()], &vec!["e".to_owned()]));
    assert!(plan.with_least.is_empty());
    let error = plan_of(&with_experiment("volume = \"much\"\naxes = { length = [1] }")).unwrap_err().to_string();
    assert!(error.contains("volume = \"auto\""), "{error}");
}

#[test]
fn a_program_of_the_user_has_a_row_for_each_block() {
    let body = "cases = [{ block = 64, total = 6400 }, { block = 128, total = 6400 }]\n\
                [[experiment.against]]\ncommand = \"./mine {blocks} {block}\"";
    let plan = plan_of(&with_experiment(body)).unwrap();
    let rows: Vec<_> =
        plan.trials.iter().map(|trial| (trial.job.block().unwrap().0, trial.job.entrant().is_some())).collect();
    assert_eq!(rows, [(64, false), (64, true), (128, false), (128, true)]);
    assert_eq!(plan.against.len(), 1);
    let scaled = Suite::parse("x", &with_experiment(body)).unwrap().expand("0.1".parse().unwrap()).unwrap();
    assert!(scaled.trials.iter().all(|trial| trial.job.volume() == Volume::Total(ByteSize(640))));
    // A program that runs chains has a row for each length.
    let chains = "params = { stage = \"cat\", source = \"head -c {total} /dev/zero\", total = 6_400_000, place = \"free\" }\n\
                  axes = { length = [0, 1, 4] }\n[[experiment.against]]\nname = \"script\"\n\
                  command = \"sh -c 'run {length} {total}'\"";
    let plan = plan_of(&with_experiment(chains)).unwrap();
    let rows: Vec<_> = plan
        .trials
        .iter()
        .map(|trial| (trial.job.value(Key::Length).unwrap().exact(), trial.job.value(Key::Language).is_some()))
        .collect();
    let expected = [("0", false), ("0", true), ("1", false), ("1", true), ("4", false), ("4", true)];
    assert_eq!(rows, expected.map(|(length, is_program)| (length.to_owned(), is_program)));
    let mut suite = Suite::parse("x", embedded("pipe-speed").unwrap()).unwrap();
    let program = |command: &str| AgainstProgram::parse(command, None).unwrap();
    assert!(suite.add_against(&program("./mine {total}")).unwrap_err().contains("put {length}"));
    suite.add_against(&program("./mine {total} {length}")).unwrap();
    let plan = suite.expand(VolumeScale::ONE).unwrap();
    let rows = |experiment: &str| {
        let is_mine = |trial: &&pipemark_model::Trial| trial.id.contains("language=mine");
        plan.trials.iter().filter(is_mine).filter(|trial| trial.experiment == experiment).count()
    };
    assert_eq!((rows("cat"), rows("cat-long"), rows("relay")), (6, 7, 0), "only in the main tables");
    // Among filters of lines, the program is one more filter.
    let mut suite = Suite::parse("x", embedded("lines").unwrap()).unwrap();
    suite.add_against(&program("./mine -x")).unwrap();
    let plan = suite.expand(VolumeScale::ONE).unwrap();
    let mine: Vec<_> = plan.trials.iter().filter(|trial| trial.id.contains("filter=mine")).collect();
    assert_eq!((mine.len(), mine[0].experiment.as_str(), mine[0].baseline.is_some()), (1, "throughput-sh", true));
    assert!(plan.claims.iter().all(|claim| !claim.covers(&mine[0].experiment, &mine[0].job)));
    let with_figure = AgainstProgram::parse("./other", Some("time,s=x")).unwrap();
    assert!(suite.add_against(&with_figure).unwrap_err().contains("omit --figure"));
    // A suite without totals has no trials with which the program can be compared.
    let own = AgainstProgram::parse("./mine", None).unwrap();
    let mut timed = Suite::parse("x", &with_experiment("params = { time = \"1ms\" }")).unwrap();
    assert!(timed.add_against(&own).unwrap_err().contains("an experiment that moves a fixed number of bytes"));
    let twice = plan_of(&with_experiment(&format!("{body}\n[[experiment.against]]\ncommand = \"/other/mine x\"")));
    assert!(twice.unwrap_err().to_string().contains("two programs are called 'mine'"));
}

#[test]
fn suites_name_their_main_experiments() {
    for (name, _) in EMBEDDED {
        assert!(embedded_plan(name).experiments.iter().any(|experiment| experiment.headline), "{name}");
    }
    let headline = |line: &str| plan_of(&with_experiment("").replacen("title", &format!("{line}\ntitle"), 1));
    assert!(headline("headline = \"e\"").unwrap().experiments[0].headline);
    assert!(headline("headline = [\"e\"]").unwrap().experiments[0].headline);
    let error = headline("headline = \"f\"").unwrap_err().to_string();
    assert!(error.contains("headline: there is no experiment 'f'"), "{error}");
}

/// A claim about gains is about cells for which the document published a gain, because other trials stand for none of
/// its kernels.
#[test]
fn claims_about_gains_are_about_published_cells() {
    let plan = embedded_plan("large-pipe");
    let mut checked = 0;
    for claim in plan.claims.iter().filter(|claim| claim.figure == "gain") {
        for trial in plan.trials.iter().filter(|trial| claim.covers(&trial.experiment, &trial.job)) {
            let experiment = plan.experiments.iter().find(|known| known.name == trial.experiment).unwrap();
            let gains = experiment.gains.as_ref().unwrap();
            let mut cells = gains.blocks.iter().flat_map(|block| &block.columns).flat_map(|column| &column.cells);
            let published =
                cells.any(|cell| cell.as_ref().is_some_and(|cell| cell.trial == trial.id && cell.published.is_some()));
            assert!(published, "{}: {} {}", claim.id, trial.experiment, trial.id);
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn published_figures_are_shown_as_in_their_document() {
    let of = |name: &str, experiment: &str| -> Vec<(String, Option<u64>)> {
        let trials = embedded_plan(name).trials.into_iter().filter(|trial| trial.experiment == experiment);
        trials.filter_map(|trial| trial.published).map(|figure| (figure.shown(), figure.total)).collect()
    };
    let chains = of("pipe-speed", "cat-long");
    assert_eq!(chains[6], ("405.044 s".to_owned(), Some(1_050_000_000)));
    assert_eq!(of("block-size", "block-size")[3], ("1532.90 MB/s".to_owned(), Some(1_638_400_000)));
    assert_eq!(of("languages", "as-written")[0], ("2.10 GB/s".to_owned(), Some(10 << 30)));
    assert_eq!(of("languages", "sizes")[0], ("20971520 calls".to_owned(), Some(10 << 30)));
    assert_eq!(of("lines", "zcat")[0], ("4.1175 s".to_owned(), None));
    assert_eq!(of("lines", "zcat")[1], ("4.978 s".to_owned(), None));
    let figure = |name: &str, experiment: &str, figure: &str| {
        let trials = embedded_plan(name).trials.into_iter().filter(|trial| trial.experiment == experiment);
        let published = trials.filter_map(|trial| trial.published).next().unwrap();
        (published.figures[figure], published.figures_as_published[figure].clone())
    };
    assert_eq!(figure("block-size", "block-size", "one run, s"), (7.775_132, "7.775132".to_owned()));
    assert_eq!(figure("block-size", "block-size", "elapsed_ns"), (6.32e9, "6.32 s".to_owned()));
    assert_eq!(figure("languages", "as-written", "elapsed_ns"), (4.787e9, "4787 ms".to_owned()));
    assert_eq!(figure("lines", "zcat", "task_clock_ns"), (5885.51e6, "5,885.51 msec".to_owned()));
    let long = &embedded_plan("pipe-speed").trials[12];
    let published = long.published.as_ref().unwrap();
    assert_eq!(published.shown_next_to(Volume::Total(ByteSize(42_000_000))), "405.044 s for 1.05 GB (2.47 MiB/s)");
    assert_eq!(published.shown_next_to(Volume::Total(ByteSize(1_050_000_000))), "405.044 s");
}
