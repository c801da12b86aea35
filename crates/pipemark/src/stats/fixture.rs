//! Hand-made outcomes and records for the tests of what is computed from them.

use crate::model::{Cpu, EndStats, Key, Outcome, Params, Record, Sample, Status, Stopped, Trial, Verify};

pub const GIB: f64 = (1u64 << 30) as f64;

/// Seven quiet runs.
pub const STEADY: [f64; 7] = [1.0, 1.004, 0.996, 1.002, 0.998, 1.001, 0.999];

/// A trial of default parameters but for `params`, measured once in each round from 0 at `throughput` GiB/s times the
/// round's factor in `runs`, with two CPUs busy all the time.
pub fn outcome(experiment: &str, params: &[(&str, &str)], throughput: f64, runs: &[f64]) -> Outcome {
    let mut all = Params::default();
    for (key, value) in params {
        all.set(Key::named(key).expect("a key"), value).expect("a value");
    }
    let samples = runs.iter().zip(0..).map(|(factor, round)| sample(round, throughput * factor * GIB)).collect();
    Outcome {
        trial: Trial {
            id: all.id(),
            experiment: experiment.to_owned(),
            params: all.clone(),
            baseline: None,
            published: None,
        },
        status: Status::Ok,
        reason: None,
        verified: (all.verify != Verify::None).then_some(true),
        samples,
        stopped: Some(Stopped::Budget),
        notes: Vec::new(),
    }
}

/// The record of [`outcome`].
pub fn record(experiment: &str, params: &[(&str, &str)], throughput: f64, runs: &[f64]) -> Record {
    super::records::records(vec![outcome(experiment, params, throughput, runs)]).remove(0)
}

fn sample(round: u32, throughput: f64) -> Sample {
    let ns = 1_000_000_000;
    let bytes = throughput.round() as u64;
    let end = EndStats { bytes, ns, calls: 1000, bytes_in_all: bytes, cpus: vec![Cpu(0)], ..EndStats::default() };
    Sample {
        round,
        started_ns: u64::from(round) * 2 * ns,
        bytes,
        ns,
        wall_ns: ns + 1_000_000,
        user_ns: ns / 5,
        sys_ns: 2 * ns - ns / 5,
        voluntary_switches: 100,
        involuntary_switches: 1,
        capacity_granted: None,
        capacity_after: None,
        sources: vec![end.clone()],
        sinks: vec![end],
        entrant: None,
    }
}
