//! Fixed documents for tests of the output formats. Also compares output with the files in `snapshots/`.

use std::path::PathBuf;

use pipemark_model::*;
use pipemark_run::plan::Suite;
use pipemark_stats::fixture::{outcome_of, records};
use pipemark_stats::noise::{Dice, Noise};

use crate::findings::findings;
use pipemark_claims::answers::answer_claims;

const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;

/// The environment variable that makes tests write the files instead of comparing them.
const BLESS: &str = "PIPEMARK_BLESS";

/// Compares `text` with the file at `path` (from the crate's directory), or replaces the file if [`BLESS`] is set.
pub fn assert_file(path: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os(BLESS).is_some() {
        std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("directory for the file");
        std::fs::write(&path, text).expect("file written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} differs from the program's output; if the change is intended, run `{BLESS}=1 cargo test -p pipemark-report` \
         and review the diff. The program's output:\n{text}",
        path.display()
    );
}

/// A document with every trial of a suite and random speeds from `seed`. A trial that occurs in several experiments has
/// different figures in each.
pub fn of_suite(text: &str, scale: &str, seed: u64) -> Document {
    let suite = Suite::parse("suite.toml", text).expect("a suite");
    let plan = suite.expand(scale.parse().expect("a scale")).expect("a plan");
    let mut dice = Dice::new(seed);
    let outcomes = plan.trials.iter().map(|trial| {
        let speed = dice.runs(Noise::Quiet, 3).iter().map(|factor| (factor / 100.0 - 1.0) * 40.0).sum::<f64>().exp();
        let mut outcome = outcome_of(trial.clone(), speed.clamp(0.05, 20.0) / 100.0, &dice.runs(Noise::Quiet, 7));
        let lines = trial.job.lines().is_some();
        for sample in outcome.samples.iter_mut().filter(|_| lines) {
            let filter = ProcessStats { user_ns: sample.user_ns, context_switches: 100, ..ProcessStats::default() };
            sample.pipeline = Some(PipelineStats { feed: None, filter, reader: None });
        }
        outcome
    });
    let trials = records(outcomes.collect());
    Document {
        claims: answer_claims(plan.claims, &trials),
        findings: findings(&trials, None, &[]),
        experiments: plan.experiments,
        ..document(&plan.suite, &plan.title, trials)
    }
}

/// A document with these trials, and nothing else.
pub fn of_records(trials: Vec<Record>) -> Document {
    document("generated", "Generated trials", trials)
}

/// An estimate with the median `median`. `margin` is half the interval's width as a fraction of the median; `None`
/// means that there are too few runs for an interval.
fn estimate(median: f64, margin: Option<f64>) -> Estimate {
    let spread = margin.unwrap_or(0.02);
    Estimate {
        median,
        low: margin.map(|m| median * (1.0 - m * 0.8)),
        high: margin.map(|m| median * (1.0 + m)),
        min: median * (1.0 - 1.5 * spread),
        max: median * (1.0 + 1.5 * spread),
        runs: if margin.is_some() { 7 } else { 3 },
    }
}

fn sample(round: u32, throughput: f64) -> Sample {
    let ns = 250_000_000;
    let end = EndStats {
        bytes: (throughput / 4.0) as u64,
        ns,
        calls: 4000,
        bytes_in_all: (throughput / 3.0) as u64,
        cpus: vec![Cpu(0)],
        ..EndStats::default()
    };
    Sample {
        pieces: None,
        round,
        started_ns: u64::from(round) * 300_000_000,
        bytes: (throughput / 4.0) as u64,
        ns,
        wall_ns: 260_000_000,
        real_ns: None,
        user_ns: 10_000_000,
        sys_ns: 400_000_000,
        voluntary_switches: 100,
        involuntary_switches: 3,
        capacity_granted: Some(65536),
        capacity_after: Some(65536),
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

/// A measured record. `throughput` is in GiB/s.
fn measured(experiment: &str, params: &[(&str, &str)], throughput: f64, margin: Option<f64>, cpu: f64) -> Record {
    let mut record = unmeasured(experiment, params, Status::Ok, None);
    let rounds = if margin.is_some() { 7 } else { 3 };
    record.samples = (0..rounds).map(|round| sample(round, throughput * GIB)).collect();
    let figures = [(Figure::Throughput, throughput * GIB), (Figure::CpuSecondsPerGib, cpu)];
    record.estimate = Estimates::new(figures.map(|(figure, median)| (figure, estimate(median, margin))));
    record.verified = (record.verify != Verify::None).then_some(true);
    record.stopped = Some(Stopped::Narrow);
    record
}

fn unmeasured(experiment: &str, params: &[(&str, &str)], status: Status, reason: Option<&str>) -> Record {
    let mut settings = Settings::default();
    let mut words = Vec::new();
    for (key, value) in params {
        settings.set(Value::parse(Key::named(key).expect("a key"), value).expect("a value"));
        words.push((*value).to_owned());
    }
    let job = Job::try_from(settings).expect("no contradiction");
    Record {
        id: job.id(),
        name: words.join(" "),
        experiment: experiment.to_owned(),
        reference: false,
        verify: job.verify(),
        touched: job.touched(),
        copies: job.ends().map(|ends| ends.work().copies),
        written: job.ends().map(|ends| ends.work().written),
        job,
        status,
        reason: reason.map(str::to_owned),
        verified: None,
        samples: Vec::new(),
        estimate: None,
        stopped: None,
        warnings: Vec::new(),
        baseline: None,
        published: None,
    }
}

/// Sets the ratio of all measured trials to the trial at `index`.
fn compare(records: &mut [Record], index: usize, margin: f64) {
    let (id, base) = (records[index].id.clone(), records[index].estimate.as_ref().expect("measured").headline().median);
    for record in records {
        record.baseline = Some(id.clone());
        if let Some(estimates) = &mut record.estimate {
            let times = match estimates.headline_figure() {
                Figure::P50 => base / estimates.headline().median,
                _ => estimates.headline().median / base,
            };
            estimates.set(Figure::Ratio, estimate(times, Some(margin)));
        }
    }
}

fn host() -> Host {
    Host {
        name: "bench".to_owned(),
        kernel: "6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC".to_owned(),
        cpu: "AMD EPYC 7B13 64-Core Processor".to_owned(),
        cpus: 2,
        virtualized: true,
        virtualization: Some("kvm".to_owned()),
        memory: 8 << 30,
        page_size: 4096,
        pipe_max_size: 1 << 20,
        pipe_user_pages_soft: 16384,
        load: 0.12,
        pressure: Some(Pressure { cpu: 1.5, memory: 0.0 }),
        ..Host::default()
    }
}

fn document(suite: &str, title: &str, trials: Vec<Record>) -> Document {
    Document {
        schema: SCHEMA.to_owned(),
        workload: WORKLOAD,
        method: METHOD,
        version: "0.1.0".to_owned(),
        label: None,
        suite: suite.to_owned(),
        title: title.to_owned(),
        command: vec!["pipemark".to_owned(), "run".to_owned(), suite.to_owned()],
        started: "2025-03-01T12:00:00Z".to_owned(),
        elapsed_ns: 28_400_000_000,
        seed: 42,
        partial: false,
        host: host(),
        memory_copy: Some(estimate(9.31 * GIB, Some(0.008))),
        experiments: experiments(&trials),
        trials,
        claims: Vec::new(),
        findings: Vec::new(),
        warnings: Vec::new(),
        watched: None,
        tuned: None,
        commands: Vec::new(),
    }
}

/// One experiment for each experiment name in `trials`. Its title is made from the name.
fn experiments(trials: &[Record]) -> Vec<Experiment> {
    let mut names: Vec<&str> = trials.iter().map(|record| record.experiment.as_str()).collect();
    names.dedup();
    let named = |name: &str| Experiment {
        name: name.to_owned(),
        title: format!("About {name}"),
        about: String::new(),
        varies: Vec::new(),
        across: None,
        headline: false,
        gains: None,
        known: Vec::new(),
    };
    names.into_iter().map(named).collect()
}

fn finding(rule: &str, text: &str) -> Finding {
    let mut evidence = serde_json::Map::new();
    evidence.insert("ratio".to_owned(), 1.52.into());
    Finding { rule: rule.to_owned(), topic: String::new(), text: text.to_owned(), evidence }
}

/// Several experiments with most kinds of results: measured, skipped and failed trials, warnings, ratios and wait
/// policies.
pub fn quick() -> Document {
    let mut trials = vec![measured("memory copy", &[("link", "memory-copy")], 9.31, Some(0.008), 0.107)];
    for (place, figures) in [("same", [0.094, 0.89, 3.01, 3.62, 2.95]), ("cross", [0.061, 0.71, 2.44, 3.05, 2.61])] {
        let blocks = ["256", "4k", "64k", "256k", "1m"];
        for (block, figure) in blocks.into_iter().zip(figures) {
            let params = [("place", place), ("block", block), ("verify", "full")];
            trials.push(measured("block size", &params, figure, Some(0.021), 1.0 / figure));
        }
    }
    trials[3].warnings.push(Warning::Wide { relative: 0.081 });
    trials[5].warnings.push(Warning::Wide { relative: 0.12 });
    trials[5].warnings.push(Warning::NearCeiling { end: "sink".to_owned(), ceiling: 3.9 * GIB, own_work: false });

    let mut capacities: Vec<Record> = [("default", 2.44), ("4k", 0.66), ("1m", 3.70), ("quota", 2.47)]
        .map(|(capacity, figure)| measured("capacity", &[("capacity", capacity)], figure, Some(0.019), 0.6))
        .into();
    compare(&mut capacities, 0, 0.03);
    capacities[3].warnings.push(Warning::CapacityDiffers { asked: 8192, granted: 65536 });
    capacities.push(unmeasured(
        "capacity",
        &[("capacity", "4m")],
        Status::Skipped,
        Some("pipe capacity 4 MiB is above this system's limit of 1 MiB (/proc/sys/fs/pipe-max-size); lower --capacity or raise the limit"),
    ));
    trials.extend(capacities);

    let zero = |send: &str, recv: &str, wait: &str, figure: f64, cpu: f64| {
        let params = [("send", send), ("recv", recv), ("wait", wait), ("place", "cross")];
        measured("zero copy", &params, figure, Some(0.034), cpu)
    };
    let mut senders = vec![
        zero("write", "read", "block", 2.44, 0.71),
        zero("vmsplice", "read", "block", 4.12, 0.44),
        zero("vmsplice-gift", "splice", "block", 31.2, 0.061),
        zero("tee", "splice", "block", 66.0, 0.0003),
        zero("vmsplice", "splice", "spin", 88.4, 0.022),
        zero("write", "read", "spin", 2.61, 0.77),
    ];
    compare(&mut senders, 0, 0.04);
    senders.push(unmeasured(
        "zero copy",
        &[("send", "io-uring"), ("recv", "io-uring")],
        Status::Skipped,
        Some("io_uring_setup is refused here (EPERM: a system call filter)"),
    ));
    senders.push(unmeasured(
        "zero copy",
        &[("send", "sendfile"), ("recv", "read")],
        Status::Failed,
        Some("the sink was killed by signal 9 after 12 ms; 65536 of 65536 bytes were in the pipe, the source waited for room"),
    ));
    trials.extend(senders);
    let shared = [("link", "shm"), ("wait", "spin"), ("place", "cross")];
    trials.push(measured("two copies", &shared, 7.1, Some(0.02), 0.31));
    let mut document = document("quick", "how fast pipes are here, and what makes them faster", trials);
    document.findings = vec![
        finding(
            "best-block",
            "Blocks of 256 KiB are best across two cores: 3.05 GiB/s; 64 KiB to 1 MiB are within 5 % of it.",
        ),
        finding("capacity", "A capacity of 1 MiB instead of 64 KiB gives 1.52 times the throughput (1.48 to 1.55)."),
    ];
    document.warnings = vec![Warning::Steal { percent: 2.3 }, Warning::Governor { governor: "powersave".to_owned() }];
    document
}

/// Trials with published figures, a separate volume for each trial, and too few runs for an interval.
pub fn block_size() -> Document {
    let rows = [
        ("64", "26000000", 57.4, 46.98),
        ("128", "12500000", 110.0, 88.4),
        ("1024", "1600000", 690.0, 640.3),
        ("65536", "25000", 2470.0, 3120.0),
    ];
    let mut trials = Vec::new();
    for (index, (block, blocks, figure, published)) in rows.into_iter().enumerate() {
        let total = (block.parse::<u64>().unwrap() * blocks.parse::<u64>().unwrap()).to_string();
        let params = [("place", "0:1"), ("block", block), ("verify", "count"), ("total", total.as_str())];
        let margin = (index != 1).then_some(0.013);
        let mut record = measured("pipe_bandwidth", &params, figure / 1024.0, margin, 400.0 / figure);
        record.published = Some(Published {
            throughput: published * MIB,
            source: "pipe_bandwidth.c, average of three runs".to_owned(),
            statistic: Some(Statistic::Mean),
            relative: false,
            ..Default::default()
        });
        trials.push(record);
    }
    let mut document = document("block-size", "the sweep from 64 to 65536 bytes", trials);
    document.host.virtualized = false;
    document.host.virtualization = None;
    document
}

/// A single interrupted trial, on a machine without a memory-copy figure.
pub fn interrupted() -> Document {
    let mut record = measured("bw", &[("wait", "spin"), ("verify", "xor")], 2.5, None, 0.8);
    record.stopped = Some(Stopped::Interrupted);
    let mut document = document("bw", "", vec![record]);
    document.partial = true;
    document.memory_copy = None;
    document
}

/// A document in which every text from other sources is an attack on the terminal, the spreadsheet or the page. The
/// data of one trial failed verification.
pub fn hostile() -> Document {
    let evil =
        "\x1b]0;owned\x07\x1b[2J=cmd|' /C calc'!A0 <script>alert(1)</script> [x](http://evil) `a|b`\r\n# no\u{202e}";
    let mut broken = measured(evil, &[("block", "4k")], 1.0, Some(0.01), 0.5);
    broken.verified = Some(false);
    broken.status = Status::Failed;
    broken.reason = Some(format!("byte 4096 is wrong {evil}"));
    let mut record = measured(evil, &[("block", "64k")], 2.0, Some(0.01), 0.5);
    record.name = "=HYPERLINK(\"http://evil\")\u{9b}31m".to_owned();
    record.published =
        Some(Published { throughput: GIB, source: evil.to_owned(), relative: false, ..Published::default() });
    record.warnings.push(Warning::NoHugePages { reason: evil.to_owned() });
    let mut document = document(evil, evil, vec![broken, record]);
    document.host.cpu = evil.to_owned();
    document.host.kernel = evil.to_owned();
    document.host.virtualization = Some(evil.to_owned());
    document.findings.push(finding(evil, evil));
    document.warnings.push(Warning::Governor { governor: evil.to_owned() });
    document
}

/// A record in latency mode. `ns` is the median round trip in nanoseconds, and `cpu` the CPU seconds per million
/// messages.
fn round_trip_record(experiment: &str, params: &[(&str, &str)], ns: f64, margin: Option<f64>, cpu: f64) -> Record {
    let params = [&[("mode", "latency")], params].concat();
    let mut record = measured(experiment, &params, 1e-3, margin, 40.0);
    for sample in &mut record.samples {
        sample.latency = Some(Latency {
            due: None,
            held: None,
            round_trips: (sample.ns as f64 / ns) as u64,
            min: (ns * 0.8) as u64,
            p50: ns as u64,
            p90: Some((ns * 1.2) as u64),
            p99: Some((ns * 2.5) as u64),
            p999: None,
            max: (ns * 40.0) as u64,
            histogram: String::new(),
        });
    }
    let estimates = record.estimate.as_mut().expect("measured");
    for (figure, median, margin) in [
        (Figure::P50, ns, margin),
        (Figure::P90, ns * 1.2, margin),
        (Figure::P99, ns * 2.5, Some(0.2)),
        (Figure::Slowest, ns * 40.0, Some(0.5)),
        (Figure::RoundTripsPerSecond, 9e8 / ns, margin),
        (Figure::CpuSecondsPerMillion, cpu, margin),
    ] {
        estimates.set(figure, estimate(median, margin));
    }
    record
}

/// The settings of a mechanism, and its throughput in GiB/s at each of four sizes.
type Way = (&'static [(&'static str, &'static str)], [f64; 4]);

/// Tables of links (rows) by size (columns), for throughput and for round trips. Also tables of round trips with one
/// row per trial.
pub fn ipc() -> Document {
    let blocks = ["64", "4k", "64k", "1m"];
    let ways: [Way; 6] = [
        (&[("link", "pipe")], [0.05, 0.9, 2.4, 2.3]),
        (&[("link", "socketpair")], [0.03, 0.7, 3.1, 3.0]),
        (&[("link", "posix-mq")], [0.04, 0.8, 0.9, 0.9]),
        (&[("link", "shm")], [0.3, 3.0, 6.02, 6.0]),
        (&[("link", "shm"), ("send", "in-place"), ("recv", "in-place")], [1.2, 9.0, 6.0, 6.1]),
        (&[("link", "null"), ("verify", "count")], [5.0, 330.0, 5_200.0, 81_000.0]),
    ];
    let mut trials = Vec::new();
    for (place, by) in [("same", 0.7), ("cross", 1.0)] {
        for (way, figures) in ways {
            for (block, figure) in blocks.into_iter().zip(figures) {
                let params = [&[("verify", "full"), ("place", place), ("block", block)], way].concat();
                let mut record = measured("throughput", &params, figure * by, Some(0.02), 1.0 / figure);
                if way[0].1 == "posix-mq" && matches!(block, "64k" | "1m") {
                    record.samples.iter_mut().for_each(|sample| sample.message_limit = Some(8192));
                    record.warnings.push(Warning::Split { limit: 8192 });
                }
                if place == "same" && block == "64" {
                    record.warnings.push(Warning::Wide { relative: 0.05 * figure.min(2.0) });
                }
                trials.push(record);
            }
        }
        let refused = "process_vm_readv is refused here (EPERM); it needs CAP_SYS_PTRACE or kernel.yama.ptrace_scope 0";
        for block in blocks {
            let params = [("link", "process-vm"), ("place", place), ("block", block), ("verify", "full")];
            trials.push(unmeasured("throughput", &params, Status::Skipped, Some(refused)));
        }
    }
    for (link, figures) in [
        ("pipe", [4_120.0, 4_180.0, 21_300.0]),
        ("tcp", [12_900.0, 13_100.0, 38_000.0]),
        ("shm", [4_300.0, 4_310.0, 9_870.0]),
        ("null", [41.0, 41.0, 42.0]),
    ] {
        for (block, ns) in ["8", "64", "64k"].into_iter().zip(figures) {
            let margin = if link == "tcp" && block == "64k" { None } else { Some(0.015) };
            trials.push(round_trip_record("latency", &[("link", link), ("block", block)], ns, margin, ns / 1e3));
        }
    }
    for (link, wait, ns) in [
        ("pipe", "block", 4_180.0),
        ("shm", "block", 4_310.0),
        ("null", "block", 41.0),
        ("pipe", "spin", 1_340.0),
        ("shm", "spin", 182.0),
    ] {
        let params = [("link", link), ("block", "64"), ("wait", wait)];
        trials.push(round_trip_record("spin", &params, ns, Some(0.015), ns / 1e3));
    }
    let mut gaps: Vec<Record> = [("0", 4_180.0), ("100us", 9_900.0), ("1ms", 16_400.0)]
        .map(|(gap, ns)| round_trip_record("gap", &[("block", "64"), ("gap", gap)], ns, Some(0.03), 0.9 * ns / 1e3))
        .into();
    compare(&mut gaps, 0, 0.03);
    gaps.push(unmeasured(
        "gap",
        &[("mode", "latency"), ("block", "64"), ("gap", "10ms")],
        Status::Failed,
        Some("the run took longer than 30 s"),
    ));
    trials.extend(gaps);
    let mut document = document("ipc", "every way two processes can talk", trials);
    for experiment in &mut document.experiments {
        (experiment.varies, experiment.across) = match experiment.name.as_str() {
            "throughput" => {
                (vec![Key::Link, Key::Send, Key::Recv, Key::Verify, Key::Place, Key::Block], Some(Key::Block))
            }
            "latency" => (vec![Key::Link, Key::Block], Some(Key::Block)),
            _ => (vec![Key::Link, Key::Gap], None),
        };
    }
    document
}

/// A table of gains with every kind of cell: gains with the published sign, gains with the opposite sign, inconclusive
/// gains, small and large gains, a trial that wasn't measured, an empty cell, and a column without published figures.
pub fn gains() -> Document {
    let mut trials = Vec::new();
    let mut blocks = Vec::new();
    for (title, place, factor) in [("2-way", "cross", 1.0), ("UP", "same", -0.5)] {
        let mut columns = Vec::new();
        for (name, capacity, published) in [("LP", "32k", true), ("LP+ZC", "64k", true), ("1M, today", "1m", false)] {
            let mut cells = Vec::new();
            for (row, block) in ["2k", "12k", "128k"].into_iter().enumerate() {
                let params = [("place", place), ("block", block)];
                let mut pair = [("capacity", "4k"), ("capacity", capacity)]
                    .map(|setting| measured("table", &[&params[..], &[setting]].concat(), 1.5, Some(0.02), 0.4));
                compare(&mut pair, 0, 0.03);
                let [mut base, mut changed] = pair;
                base.baseline = None;
                let gain: f64 = [1.65, 0.01, 82.3][row] * factor;
                let ratio = estimate((1.0 + gain).max(0.02), Some(0.03));
                changed.estimate.as_mut().unwrap().set(Figure::Ratio, ratio);
                if name == "LP+ZC" && row == 1 {
                    changed = unmeasured(
                        "table",
                        &[&params[..], &[("capacity", capacity)]].concat(),
                        Status::Failed,
                        Some("the run took longer than 30 s"),
                    );
                    changed.baseline = Some(base.id.clone());
                }
                let published = published.then_some([165.0, 0.0, -2.58][row]);
                let cell = GainsCell { trial: changed.id.clone(), published };
                cells.push((name != "LP+ZC" || row != 2).then_some(cell));
                if !trials.iter().any(|known: &Record| known.id == base.id) {
                    trials.push(base);
                }
                trials.push(changed);
            }
            columns.push(GainsColumn { name: name.to_owned(), cells });
        }
        blocks.push(GainsBlock { title: title.to_owned(), columns });
    }
    trials[1].warnings.push(Warning::CapacityDiffers { asked: 4095, granted: 4096 });
    let mut document = document("gains", "per cent over a base", trials);
    let claim = |id: &str, verdict, here: &str, open: Option<&str>| Claim {
        id: id.to_owned(),
        place: "Summary, last paragraph".to_owned(),
        says: "The large pipe makes pv 2 % faster on two CPUs.".to_owned(),
        published: if open.is_none() { "+2 %".to_owned() } else { String::new() },
        figure: "gain".to_owned(),
        low: open.is_none().then_some(1.0),
        high: open.is_none().then_some(4.0),
        open: open.map(str::to_owned),
        answer: Some(Answer { verdict, here: here.to_owned(), evidence: Vec::new() }),
        ..Claim::default()
    };
    let elsewhere = "another system is needed";
    document.claims = vec![
        claim("large-helps", ClaimVerdict::DoesntHold, "+165 % (+160 % to +170 %)", None),
        claim("other-systems", ClaimVerdict::NotMeasured, elsewhere, Some(elsewhere)),
    ];
    document.experiments[0].gains = Some(Gains {
        by: Key::Block,
        corner: "T.S.".to_owned(),
        rows: ["2 KiB", "12 KiB", "128 KiB"].map(str::to_owned).into(),
        source: "A paper (a machine of its time)".to_owned(),
        blocks,
    });
    document
}

/// Chains of two kinds of stage, with published figures and figures of chains.
pub fn chains() -> Document {
    let mut trials = Vec::new();
    for (stage, slope) in [("cat", 260e6), ("relay", 110e6)] {
        for (length, published) in [("0", Some(0.21)), ("1", Some(0.72)), ("4", None), ("16", Some(4.9))] {
            let ns = 180e6 + slope * length.parse::<f64>().unwrap();
            let params =
                [("stage", stage), ("length", length), ("total", "1g"), ("verify", "xor"), ("capacity", "default")];
            let params = if length == "0" { &params[1..] } else { &params[..] };
            let mut record = measured("chains", params, 1e9 / ns, Some(0.02), ns / 1e9);
            let estimates = record.estimate.as_mut().expect("measured");
            estimates.set(Figure::Real, estimate(ns, Some(0.02)));
            estimates.set(Figure::SwitchesPerMib, estimate(31.7, Some(0.1)));
            // The published figure of the longest chain is for more bytes than the others.
            let total = if length == "16" { 26_250_000_000u64 } else { 1 << 30 };
            record.published = published.filter(|_| stage == "cat").map(|seconds| Published {
                throughput: total as f64 / seconds,
                as_published: format!("{seconds:.2} s"),
                total: Some(total),
                source: "pipe-speed, on its author's machine".to_owned(),
                statistic: Some(Statistic::Least),
                relative: false,
                ..Default::default()
            });
            if length != "0" || stage == "cat" {
                trials.push(record);
            }
        }
    }
    document("chains", "what one more process costs", trials)
}

/// Entrants with their start-up time. One of them can't run here.
pub fn languages() -> Document {
    let mut trials = Vec::new();
    for (language, figure, start, peak) in
        [("c", 3.1, 1.2e6, 1.9), ("java", 2.2, 310e6, 88.0), ("python", 1.1, 22e6, 9.4)]
    {
        for program in ["idiomatic", "tuned"] {
            let tuned = if program == "tuned" { 1.4 } else { 1.0 };
            let params =
                [("language", language), ("program", program), ("total", "10g"), ("verify", "full"), ("place", "free")];
            let mut record = measured("languages", &params, figure * tuned, Some(0.03), 1.0 / figure);
            let estimates = record.estimate.as_mut().expect("measured");
            estimates.set(Figure::Real, estimate(10e9 / (figure * tuned), Some(0.03)));
            estimates.set(Figure::StartUp, estimate(start, Some(0.2)));
            estimates.set(Figure::MaxRss, estimate(peak * MIB, Some(0.01)));
            trials.push(record);
        }
    }
    compare(&mut trials, 0, 0.03);
    let params = [("language", "zig"), ("program", "tuned"), ("total", "10g"), ("verify", "full"), ("place", "free")];
    trials.push(unmeasured("languages", &params, Status::Skipped, Some("zig is not installed")));
    document("languages", "the same pipe in several languages", trials)
}

/// Line filters. Some of their counters are missing, as on a machine that lacks these counters.
pub fn lines() -> Document {
    let mut trials = Vec::new();
    for (filter, figure) in [("sink", 2.6), ("awk", 0.21), ("perl", 0.17)] {
        let params = [("feed", "file"), ("filter", filter), ("total", "256m"), ("place", "free")];
        let mut record = measured("file", &params, figure, Some(0.02), 1.3 / figure);
        let estimates = record.estimate.as_mut().expect("measured");
        for (counter, value) in [
            (Figure::FilterCpu, 1.0 / figure),
            (Figure::TaskClock, 0.3e9 / figure),
            (Figure::Cpus, 1.6),
            (Figure::ContextSwitches, 12_345.0),
            (Figure::Migrations, 3.0),
            (Figure::PageFaults, 432.0),
        ] {
            estimates.set(counter, estimate(value, Some(0.05)));
        }
        trials.push(record);
    }
    trials[1].published = Some(Published {
        throughput: 0.4 * GIB,
        source: "results of 2026".to_owned(),
        relative: false,
        ..Default::default()
    });
    for (feed, seconds) in [("yes-short", 20.0), ("yes-long", 1.5)] {
        for (filter, factor) in [("awk", 1.0), ("perl", 1.3)] {
            let params = [("feed", feed), ("filter", filter), ("time", "500ms"), ("place", "free")];
            let mut record = measured("line-length", &params, 0.2, Some(0.02), 6.0);
            let estimates = record.estimate.as_mut().expect("measured");
            estimates.set(Figure::FilterCpu, estimate(seconds * factor, Some(0.05)));
            trials.push(record);
        }
    }
    document("lines", "one line filter, written in several ways", trials)
}

/// All documents, each with the name of its files.
pub fn all() -> [(&'static str, Document); 9] {
    [
        ("quick", quick()),
        ("block-size", block_size()),
        ("interrupted", interrupted()),
        ("hostile", hostile()),
        ("ipc", ipc()),
        ("gains", gains()),
        ("chains", chains()),
        ("languages", languages()),
        ("lines", lines()),
    ]
}
