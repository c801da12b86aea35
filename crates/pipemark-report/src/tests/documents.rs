//! Random documents and claims. The trials belong to experiments that have settings in common and differ in volume.

use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

use pipemark_model::{Claim, Job, Key, Outcome, PipelineStats, ProcessStats, Published, Record, Settings, Value};
use pipemark_stats::fixture::{outcome, records};

use crate::tests::one_setting;

/// Adds the resource usage of the filter's process if the outcome is of a line filter.
fn with_pipeline(mut outcome: Outcome) -> Outcome {
    if outcome.trial.job.lines().is_some() {
        for sample in &mut outcome.samples {
            let filter = ProcessStats { user_ns: sample.user_ns, context_switches: 100, ..ProcessStats::default() };
            sample.pipeline = Some(PipelineStats { feed: None, filter, reader: None });
        }
    }
    outcome
}

type Params = Vec<(&'static str, &'static str)>;

fn word(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words)
}

/// Random settings, each with one of several values.
fn settings(axes: &'static [(&'static str, &'static [&'static str])]) -> BoxedStrategy<Params> {
    let values: Vec<BoxedStrategy<(&str, &str)>> =
        axes.iter().map(|(key, values)| word(values).prop_map(|value| (*key, value)).boxed()).collect();
    values.boxed()
}

/// Kinds of trials, each with the settings in which its trials differ.
fn kinds() -> Vec<BoxedStrategy<Params>> {
    vec![
        settings(&[
            ("place", &["same", "cross", "0:1"]),
            ("block", &["64", "1k", "64k"]),
            ("capacity", &["default", "default", "1m"]),
            ("verify", &["count", "count", "full"]),
            ("send", &["write", "write", "vmsplice"]),
            ("link", &["pipe", "pipe", "tcp", "null"]),
            ("wait", &["block", "block", "spin"]),
        ]),
        settings(&[
            ("mode", &["latency"]),
            ("place", &["same", "cross"]),
            ("block", &["64", "1k"]),
            ("link", &["pipe", "tcp", "shm", "null"]),
            ("wait", &["block", "spin"]),
            ("gap", &["0", "0", "1ms"]),
        ]),
        settings(&[
            ("language", &["c", "rust", "java"]),
            ("program", &["idiomatic", "tuned"]),
            ("block", &["512", "64k", "1m"]),
            ("verify", &["full", "full", "xor"]),
            ("place", &["free", "free", "same"]),
        ]),
        settings(&[
            ("feed", &["yes-short", "yes-long", "file"]),
            (
                "filter",
                &["sink", "std-baseline", "baseline", "baseline-main-thread", "pipeline", "lines-1", "lines-all"],
            ),
            ("place", &["free", "free", "same"]),
        ]),
        settings(&[
            ("feed", &["timed"]),
            ("rate", &["1000", "100000"]),
            ("filter", &["std-baseline", "baseline", "lines-1", "perl"]),
            ("place", &["free", "same"]),
        ]),
        settings(&[("stage", &["cat"]), ("length", &["0", "1", "2", "4", "8"]), ("place", &["free", "free", "same"])]),
    ]
}

/// Trials of one of three experiments. The experiments have settings in common and differ in volume. Some trials have a
/// published figure.
fn overlapping(params: BoxedStrategy<Params>) -> impl Strategy<Value = Record> {
    let volume = prop::sample::select(vec![("total", "1g"), ("total", "20m"), ("time", "200ms"), ("time", "50ms")]);
    let runs = prop::collection::vec(0.99..1.01f64, 7);
    let published = prop::option::weighted(0.3, 0.2..9.0f64);
    (word(&["one", "two", "three"]), params, volume, 0.2..9.0f64, runs, published).prop_filter_map(
        "contradictions",
        |(experiment, params, volume, speed, runs, published)| {
            let params = [params, vec![volume]].concat();
            let values = params.iter().map(|(key, text)| Value::parse(Key::named(key).unwrap(), text).unwrap());
            let job = Job::try_from(Settings::of(values)).ok()?;
            let mut outcome = with_pipeline(outcome(experiment, &params, speed, &runs));
            outcome.trial.published = published.map(|speed| Published {
                throughput: speed * (1 << 30) as f64,
                source: "a paper".to_owned(),
                relative: job.lines().is_some(),
                ..Published::default()
            });
            Some(records(vec![outcome]).remove(0))
        },
    )
}

/// Documents with one kind of trials, or with all kinds. Many trials differ in one setting only.
pub(super) fn documents() -> impl Strategy<Value = Vec<Record>> {
    let of = |params: BoxedStrategy<Params>| prop::collection::vec(overlapping(params), 20..80).boxed();
    let all = prop::strategy::Union::new(kinds()).boxed();
    prop::strategy::Union::new(kinds().into_iter().chain([all]).map(of))
}

pub(super) fn claims() -> impl Strategy<Value = Claim> {
    let of = prop::sample::select(vec![
        ("place", "cross"),
        ("place", "free"),
        ("block", "64k"),
        ("verify", "full"),
        ("filter", "baseline"),
        ("language", "java"),
        ("length", "4"),
    ]);
    let to = prop::sample::select(vec![
        ("place", "same"),
        ("verify", "count"),
        ("capacity", "default"),
        ("send", "write"),
        ("block", "1k"),
        ("filter", "sink"),
        ("language", "c"),
        ("length", "1"),
        ("total", "1g"),
    ]);
    let figure = word(&["ratio", "gain", "throughput", "cpu_seconds_per_gib", "per_hop", "spread"]);
    let experiments = prop::sample::subsequence(vec!["one".to_owned(), "two".to_owned(), "three".to_owned()], 1..4);
    (figure, of, prop::option::weighted(0.8, to), experiments).prop_map(|(figure, of, to, experiments)| Claim {
        id: "c".to_owned(),
        experiments,
        figure: figure.to_owned(),
        of: vec![one_setting(of.0, of.1)],
        to: to.map(|(key, text)| one_setting(key, text)),
        low: Some(1.0),
        ..Claim::default()
    })
}
