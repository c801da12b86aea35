//! Synthetic outcomes and records for tests.

use pipemark_model::{
    Cpu, EndStats, Job, Key, Latency, Outcome, Record, Sample, Settings, Stopped, Trial, Value, Verify, Warning,
};

pub const GIB: f64 = (1u64 << 30) as f64;

/// The factors of seven quiet runs.
pub const STEADY: [f64; 7] = [1.0, 1.004, 0.996, 1.002, 0.998, 1.001, 0.999];

/// A trial with default parameters except `params`. It was measured once per round, starting with round 0. Each round's
/// speed is `throughput` GiB/s times the round's factor in `runs`, with two CPUs busy all the time.
pub fn outcome(experiment: &str, params: &[(&str, &str)], throughput: f64, runs: &[f64]) -> Outcome {
    let value = |(key, text): &(&str, &str)| Value::parse(Key::named(key).expect("a key"), text).expect("a value");
    let job = Job::try_from(Settings::of(params.iter().map(value))).expect("no contradiction");
    let id = job.id();
    outcome_of(Trial { id, experiment: experiment.to_owned(), job, baseline: None, published: None }, throughput, runs)
}

/// The outcome of `trial`, with runs like those of [`outcome`] or, in latency mode, like those of
/// [`round_trip_outcome`].
pub fn outcome_of(trial: Trial, throughput: f64, runs: &[f64]) -> Outcome {
    let samples = runs.iter().zip(0..).map(|(factor, round)| sample(round, throughput * factor * GIB)).collect();
    let verified = (trial.job.verify() != Verify::None).then_some(true);
    let latency = trial.job.is_latency();
    let outcome = Outcome { verified, samples, stopped: Some(Stopped::Budget), ..Outcome::of(trial) };
    if latency { with_trips(outcome, 1e4 / throughput, runs) } else { outcome }
}

/// Like [`outcome`], in latency mode. Each run lasts a second and consists of back-to-back round trips. Their median is
/// `ns` nanoseconds times the round's factor. One in a hundred round trips takes at least twice the median.
pub fn round_trip_outcome(experiment: &str, params: &[(&str, &str)], ns: f64, runs: &[f64]) -> Outcome {
    with_trips(outcome(experiment, &[&[("mode", "latency")], params].concat(), 1.0, runs), ns, runs)
}

fn with_trips(mut outcome: Outcome, ns: f64, runs: &[f64]) -> Outcome {
    let block = outcome.trial.job.block().map_or(0, |block| block.0);
    for (sample, factor) in outcome.samples.iter_mut().zip(runs) {
        let p50 = (ns * factor).round() as u64;
        let round_trips = sample.ns / p50.max(1);
        sample.bytes = round_trips * block;
        for end in sample.sources.iter_mut().chain(&mut sample.sinks) {
            (end.bytes, end.bytes_in_all) = (sample.bytes, sample.bytes);
        }
        sample.latency = Some(Latency {
            due: None,
            held: None,
            round_trips,
            min: p50 / 2,
            p50,
            p90: Some(p50 * 3 / 2),
            p99: Some(p50 * 2),
            p999: None,
            max: p50 * 20,
            histogram: String::new(),
        });
    }
    outcome
}

/// The record of [`round_trip_outcome`].
pub fn round_trip_record(params: &[(&str, &str)], ns: f64, runs: &[f64]) -> Record {
    record_of(round_trip_outcome("e", params, ns, runs))
}

/// The record of [`outcome`].
pub fn record(experiment: &str, params: &[(&str, &str)], throughput: f64, runs: &[f64]) -> Record {
    record_of(outcome(experiment, params, throughput, runs))
}

fn sample(round: u32, throughput: f64) -> Sample {
    let ns = 1_000_000_000;
    let bytes = throughput.round() as u64;
    let end = EndStats { bytes, ns, calls: 1000, bytes_in_all: bytes, cpus: vec![Cpu(0)], ..EndStats::default() };
    Sample {
        pieces: None,
        round,
        started_ns: u64::from(round) * 2 * ns,
        bytes,
        ns,
        wall_ns: ns + 1_000_000,
        real_ns: None,
        user_ns: ns / 5,
        sys_ns: 2 * ns - ns / 5,
        voluntary_switches: 100,
        involuntary_switches: 1,
        capacity_granted: None,
        capacity_after: None,
        send_buffer: None,
        recv_buffer: None,
        message_limit: None,
        interleaved_percent: None,
        latency: None,
        stages: Vec::new(),
        broker: None,
        sources: vec![end.clone()],
        sinks: vec![end],
        entrant: None,
        pipeline: None,
    }
}

/// The records of these outcomes, on a machine with pages of 4 KiB.
pub fn records(outcomes: Vec<Outcome>) -> Vec<Record> {
    crate::records::records(outcomes, 4096)
}

/// The record of this outcome alone.
pub fn record_of(outcome: Outcome) -> Record {
    records(vec![outcome]).remove(0)
}

/// The names of the kinds of a record's warnings.
pub fn warning_kinds(record: &Record) -> Vec<String> {
    let kind = |warning: &Warning| serde_json::to_value(warning).unwrap()["kind"].as_str().unwrap().to_owned();
    record.warnings.iter().map(kind).collect()
}
