use super::*;
use crate::cause::Activity;
use crate::causes::work::activities;
use crate::evidence::{MachineLimits, PeerFigures};
use crate::pipe_figures::PipeFigures;
use crate::report::{Certainty, Quality};
use crate::stage_figures::StageFigures;

/// A stage that computes, is starved and is blocked for these shares of the time, in per cent.
pub(crate) fn stage(number: usize, busy: u32, starved: u32, blocked: u32) -> StageFigures {
    let share = |percent: u32| f64::from(percent) / 100.0;
    StageFigures {
        number,
        name: format!("s{number}"),
        command: String::new(),
        pid: 0,
        processes: 1,
        threads: 1,
        present: 1.0,
        busy: share(busy),
        starved: share(starved),
        blocked: share(blocked),
        computing: share(busy),
        waiting_for_cpu: 0.0,
        disk: 0.0,
        network: 0.0,
        terminal: 0.0,
        sleep: 0.0,
        children: 0.0,
        lock: 0.0,
        stopped: 0.0,
        other: 0.0,
        unknown: 0.0,
        hidden: false,
        cpu: Some(share(busy)),
        cpu_wait: Some(0.0),
        bytes_in_per_second: None,
        bytes_out_per_second: None,
        switches_per_second: None,
        throttled: None,
        progress: None,
        seconds_left: None,
        sampling_error: None,
        cpus: vec![0, 1],
        waits_for: None,
        moments: Vec::new(),
        words: vec![format!("s{number}")],
        ..StageFigures::default()
    }
}

pub(crate) fn line(stages: Vec<StageFigures>) -> PipelineFigures {
    let pipe = |number: usize, stages: &[StageFigures]| PipeFigures {
        number,
        from: number,
        to: number + 1,
        capacity: Some(65536),
        writer_waits: stages[number - 1].blocked,
        reader_waits: stages[number].starved,
        bytes_per_second: None,
        stretch: None,
        reader_stretch: None,
        is_socket: false,
        turns: None,
        absorbable: None,
    };
    let pipes = (1..stages.len()).map(|number| pipe(number, &stages)).collect();
    let limits = MachineLimits { cpus: 2, ..MachineLimits::default() };
    PipelineFigures { begin: 0.0, seconds: 2.0, samples: 200, stages, pipes, limits, ..PipelineFigures::default() }
}

#[test]
fn the_busiest_stage_is_the_bottleneck_and_the_next_bounds_the_gain() {
    let found = verdict(&line(vec![stage(1, 20, 0, 80), stage(2, 98, 1, 1), stage(3, 49, 51, 0)]));
    assert_eq!((found.kind, found.stage, found.reason.as_str()), (VerdictKind::Stage, Some(2), "computing"));
    assert_eq!(found.next, Some(3));
    // The pipeline is more than twice as fast, because the two stages no longer compute at the same time.
    assert!((found.bound.unwrap() - 2.0 / (1.0 - 0.3 * 0.98)).abs() < 1e-9);
    assert!(found.text.contains("at most 2.8 times as fast; then s3 is the bottleneck"), "{}", found.text);
}

#[test]
fn no_stage_makes_the_pipeline_slower_by_being_faster() {
    let found = verdict(&line(vec![stage(1, 20, 0, 80), stage(2, 98, 1, 1), stage(3, 49, 51, 0), stage(4, 2, 98, 0)]));
    let of = |number| found.hypotheses.iter().find(|one| one.stage == Some(number)).map(|one| one.text.as_str());
    assert!(of(2).unwrap().contains("at most 2.8 times"), "{:?}", found.hypotheses);
    for number in [1, 3, 4] {
        assert!(of(number).is_some_and(|text| !text.contains("at most")), "{:?}", of(number));
    }
}

#[test]
fn the_reason_of_a_stage_is_its_wait() {
    let mut slow = stage(2, 95, 5, 0);
    (slow.computing, slow.sleep) = (0.02, 0.93);
    let found = verdict(&line(vec![stage(1, 12, 0, 88), slow.clone()]));
    assert_eq!((found.stage, found.reason.as_str()), (Some(2), "sleeping"));
    assert!(found.bound.is_some_and(|bound| (7.8..8.0).contains(&bound)), "{:?}", found.bound);
    // The other stage's time is mostly overhead.
    assert_eq!(verdict(&line(vec![stage(1, 5, 0, 95), slow])).bound, None);
    // The text names the kind of wait, as far as known.
    let waits = |lock: f64, waits_for: Option<&str>| {
        let waits_for = waits_for.map(str::to_owned);
        let waits = StageFigures { lock, other: 0.95 - lock, computing: 0.0, waits_for, ..stage(2, 95, 5, 0) };
        verdict(&line(vec![stage(1, 5, 0, 95), waits])).text
    };
    assert!(waits(0.0, None).contains(": waiting for something else (95 %"), "{}", waits(0.0, None));
    assert!(waits(0.0, Some("a signal")).contains(": waiting for a signal (95 %"));
    assert!(waits(0.95, None).contains(": waiting for a lock, a timer or another thread (95 %"));
    // The advice also covers the stage's second reason, waiting for a CPU.
    let waits = StageFigures { computing: 0.6, waiting_for_cpu: 0.35, cpu: Some(0.6), ..stage(2, 95, 5, 0) };
    let found = verdict(&line(vec![stage(1, 5, 0, 95), waits]));
    assert!(found.advice.iter().any(|advice| advice.contains("taskset")), "{:?}", found.advice);
}

#[test]
fn a_busy_stage_that_waits_for_something_unknown_is_not_the_bottleneck() {
    let waits = StageFigures { computing: 0.02, other: 0.95, ..stage(1, 97, 3, 0) };
    for computes in [stage(2, 98, 2, 0), stage(2, 90, 10, 0)] {
        let found = verdict(&line(vec![waits.clone(), computes]));
        assert_eq!((found.kind, found.stage, found.reason.as_str()), (VerdictKind::Stage, Some(2), "computing"));
        assert_eq!(found.bound, None, "the first may wait for the second");
    }
}

#[test]
fn a_pipe_with_both_ends_waiting_is_too_small() {
    let found = verdict(&line(vec![stage(1, 60, 0, 40), stage(2, 62, 38, 0)]));
    assert_eq!((found.kind, found.pipe), (VerdictKind::Pipe, Some(1)));
    assert!(found.advice[0].contains("pipemark tune"), "{:?}", found.advice);
    let mut large = line(vec![stage(1, 60, 0, 40), stage(2, 62, 38, 0)]);
    large.pipes[0].capacity = Some(1 << 20);
    assert_eq!(verdict(&large).advice, Vec::<String>::new());
    assert!((found.bound.unwrap() - 1.0 / 0.62).abs() < 1e-9);
    // Stages with many context switches spend part of their busy time on the switches. A larger pipe saves some of
    // them, so it may gain more than the inverse of the busiest stage's share.
    let mut switched = line(vec![stage(1, 60, 0, 40), stage(2, 62, 38, 0)]);
    switched.stages[0].switches_per_second = Some(20_000.0);
    let found = verdict(&switched);
    assert_eq!((found.kind, found.bound), (VerdictKind::Pipe, None));
    assert!(!found.advice[0].contains("at most"), "{:?}", found.advice);
    // A faster stage gains 2.7 times, a larger pipe 1.2 times. The advice mentions the pipe too.
    let found = verdict(&line(vec![stage(1, 30, 0, 70), stage(2, 82, 18, 0)]));
    assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(2)));
    let advice = found.advice.join("\n");
    assert!(advice.contains("a larger pipe between s1 and s2 may also help (at most 1.2 times as fast)"), "{advice}");
    // Waits in few samples are no evidence, nor are waits of stages that existed only briefly.
    let few = PipelineFigures { samples: 20, ..line(vec![stage(1, 60, 0, 40), stage(2, 62, 38, 0)]) };
    assert_eq!((verdict(&few).kind, verdict(&few).reason.as_str()), (VerdictKind::Unknown, "short"));
    let mut brief = line(vec![stage(1, 60, 0, 40), stage(2, 62, 38, 0), stage(3, 60, 40, 0)]);
    brief.stages[..2].iter_mut().for_each(|stage| stage.present = 0.1);
    assert_eq!(verdict(&brief).kind, VerdictKind::Stage);
    // A stage that is busy all the time is the cause, whatever the pipes do.
    let found = verdict(&line(vec![stage(1, 60, 0, 40), stage(2, 86, 14, 0)]));
    assert_eq!(found.kind, VerdictKind::Stage);
    assert_eq!(found.advice, Vec::<String>::new());
}

#[test]
fn two_equally_busy_stages_are_balanced() {
    let found = verdict(&line(vec![stage(1, 93, 0, 7), stage(2, 97, 3, 0)]));
    assert_eq!((found.kind, found.stage, found.next), (VerdictKind::Balanced, Some(2), Some(1)));
}

#[test]
fn two_runs_of_one_program_have_no_bound() {
    let mut two = line(vec![stage(1, 98, 0, 2), stage(2, 20, 80, 0)]);
    assert!(verdict(&two).bound.is_some());
    for (stage, words) in two.stages.iter_mut().zip([["grep", "a"], ["/bin/grep", "b"]]) {
        stage.words = words.map(str::to_owned).to_vec();
    }
    let found = verdict(&two);
    assert_eq!((found.kind, found.stage, found.bound), (VerdictKind::Stage, Some(1), None), "{}", found.text);
}

#[test]
fn only_stages_that_are_idle_wait_for_another() {
    let text = |busy| {
        verdict(&line(vec![stage(1, 98, 0, 2), StageFigures { kernel: Some(1.0), ..stage(2, busy, 100 - busy, 0) }]))
            .text
    };
    assert!(text(3).contains("All other stages wait"), "{}", text(3));
    assert!(!text(30).contains("All other stages wait"), "{}", text(30));
}

#[test]
fn stages_that_cause_each_others_overhead_need_a_clear_difference() {
    let mut two = line(vec![stage(1, 98, 0, 2), stage(2, 82, 15, 3)]);
    assert_eq!(verdict(&two).kind, VerdictKind::Stage);
    two.stages[1].switches_per_second = Some(16_000.0);
    let found = verdict(&two);
    assert_eq!((found.kind, found.stage, found.next), (VerdictKind::Inconclusive, Some(1), Some(2)), "{}", found.text);
    assert!(found.text.contains("s1 (busy 98 %) or s2 (busy 82 %)"), "{}", found.text);
}

#[test]
fn pipelines_that_nothing_joins_are_judged_each_alone() {
    let stages = vec![stage(1, 1, 0, 99), stage(2, 99, 1, 0), stage(3, 98, 0, 2), stage(4, 20, 80, 0)];
    let mut two = line(stages);
    two.pipes.remove(1);
    let found = verdict(&two);
    assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(2)));
    assert!(found.text.starts_with("2 separate pipelines. s2 holds the pipeline back"), "{}", found.text);
    assert!(found.text.contains(". s3 holds the pipeline back"), "{}", found.text);
    assert!(found.text.contains("at most 6.9 times as fast; then s4 is the bottleneck"), "{}", found.text);
    // Of the pipelines in a script, the one that existed longest determines the verdict. Each is judged by the time in
    // which it existed, as in the table.
    two.stages[..2].iter_mut().for_each(|stage| stage.present = 0.3);
    let found = verdict(&two);
    assert_eq!(found.stage, Some(3));
    assert!(found.text.starts_with("2 separate pipelines. s2 holds the pipeline back"), "{}", found.text);
}

#[test]
fn stages_that_want_more_cpus_than_there_are_share_them() {
    let mut all: Vec<StageFigures> = (1..=4).map(|number| stage(number, 95, 3, 2)).collect();
    for one in &mut all {
        (one.cpu, one.cpu_wait, one.computing, one.waiting_for_cpu) = (Some(0.5), Some(0.45), 0.5, 0.45);
    }
    let found = verdict(&line(all.clone()));
    assert_eq!(found.kind, VerdictKind::Cpu);
    all.iter_mut().for_each(|one| one.cpus = (0..8).collect());
    assert_eq!(verdict(&line(all.clone())).kind, VerdictKind::Balanced);
    // A stage with many threads uses nearly all CPU time; the others only wait for it.
    let mut many = [stage(1, 30, 0, 70), stage(2, 100, 0, 0), stage(3, 26, 74, 0)];
    for (one, (run, wait)) in many.iter_mut().zip([(0.03, 0.27), (1.8, 4.46), (0.01, 0.25)]) {
        (one.cpu, one.cpu_wait) = (Some(run), Some(wait));
    }
    let found = verdict(&line(many.to_vec()));
    assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(2)));
    // Two stages are pinned to one CPU while other CPUs are idle.
    all.truncate(3);
    all[0].cpus = vec![3];
    all[1].cpus = vec![3];
    let found = verdict(&line(all));
    assert_eq!(found.kind, VerdictKind::Cpu);
    assert!(found.advice[0].contains("restricted to 1 of 2"), "{:?}", found.advice);
}

#[test]
fn copies_of_a_program_side_by_side_use_all_cpus() {
    let xz = |number: usize| StageFigures {
        words: vec!["xz".to_owned(), "-3".to_owned()],
        name: "xz".to_owned(),
        ..stage(number, 98, 2, 0)
    };
    let mut figures = line(vec![stage(1, 2, 0, 98), xz(2), xz(3)]);
    assert_eq!(verdict(&figures).kind, VerdictKind::Balanced, "one copy feeds the other");
    figures.pipes[1].from = 1;
    let found = verdict(&figures);
    assert_eq!(found.kind, VerdictKind::Cpu, "{}", found.text);
    assert!(found.text.starts_with("2 stages that run xz use all 2 CPUs"), "{}", found.text);
    figures.stages[2].cpu = Some(0.6);
    assert_ne!(verdict(&figures).kind, VerdictKind::Cpu, "a part of a CPU is free");
}

#[test]
fn no_stage_is_blamed_if_others_use_the_cpus() {
    let mut slow = [stage(1, 62, 0, 38), stage(2, 89, 1, 10)];
    for (one, (run, wait)) in slow.iter_mut().zip([(0.01, 0.61), (0.13, 0.75)]) {
        (one.cpu, one.cpu_wait, one.cpus) = (Some(run), Some(wait), vec![0, 1]);
    }
    let mut figures = line(slow.to_vec());
    figures.limits.idle_cpus = Some(0.0);
    let found = verdict(&figures);
    assert_eq!((found.kind, found.stage), (VerdictKind::Cpu, None), "{}", found.text);
    assert!(found.text.contains("Other programs use 1.9 of 2") && found.remedies[0].id == "cpu-busy", "{found:?}");
    // The stage's own threads use the CPUs.
    figures.stages[1].cpu = Some(1.8);
    assert_ne!(verdict(&figures).reason, "CPUs are taken by other programs");
}

#[test]
fn a_cpu_limit_that_was_hit_takes_precedence() {
    let mut slow = stage(2, 99, 1, 0);
    slow.throttled = Some(0.4);
    let found = verdict(&line(vec![stage(1, 20, 0, 80), slow]));
    assert_eq!((found.kind, found.stage), (VerdictKind::Throttled, Some(2)));
}

#[test]
fn insufficient_evidence_gives_no_verdict() {
    let mut few = line(vec![stage(1, 20, 0, 80), stage(2, 98, 1, 1)]);
    few.samples = 3;
    assert_eq!((verdict(&few).kind, verdict(&few).reason.as_str()), (VerdictKind::Unknown, "short"));
    let outside = verdict(&line(vec![stage(1, 10, 90, 0), stage(2, 10, 90, 0)]));
    assert_eq!((outside.kind, outside.reason.as_str()), (VerdictKind::Unknown, "input"));
    let outside = verdict(&line(vec![stage(1, 10, 0, 90), stage(2, 10, 0, 90)]));
    assert_eq!((outside.kind, outside.reason.as_str()), (VerdictKind::Unknown, "output"));
    let mut hidden = stage(2, 100, 0, 0);
    (hidden.computing, hidden.unknown) = (0.0, 1.0);
    assert_eq!(verdict(&line(vec![stage(1, 10, 0, 90), hidden])).reason, "hidden");
}

#[test]
fn stages_of_one_name_are_numbered() {
    let mut all = vec![stage(1, 20, 0, 80), stage(2, 98, 1, 1)];
    all.iter_mut().for_each(|stage| stage.name = "grep".to_owned());
    assert!(verdict(&line(all)).text.starts_with("grep (stage 2) holds the pipeline back"));
}

#[test]
fn advice_follows_from_the_reason_only() {
    let mut sort = stage(2, 98, 1, 1);
    (sort.name, sort.command) = ("xz".to_owned(), "xz -9".to_owned());
    let of = |stage: &StageFigures| {
        let words = stage.command.split(' ').map(str::to_owned).collect();
        verdict(&line(vec![super::tests::stage(1, 20, 0, 80), StageFigures { words, ..stage.clone() }])).advice
    };
    assert!(of(&sort)[0].contains("xz -T0"));
    sort.command = "xz -9 -T2".to_owned();
    assert!(of(&sort)[0].contains("a lower level"), "{:?}", of(&sort));
    sort.command = "xz -dc -T2".to_owned();
    assert!(of(&sort).is_empty());
    (sort.command, sort.computing, sort.disk) = ("xz -9".to_owned(), 0.1, 0.88);
    assert!(of(&sort).is_empty());
}

#[test]
fn no_stage_is_blamed_if_all_wait_for_each_other() {
    let found = verdict(&line(vec![stage(1, 1, 0, 99), stage(2, 2, 98, 0)]));
    assert_eq!((found.kind, found.reason.as_str(), found.stage), (VerdictKind::Unknown, "idle", None));
}

#[test]
fn a_hidden_stage_is_not_blamed_for_unknown_time() {
    let mut alone = stage(1, 100, 0, 0);
    (alone.computing, alone.other, alone.hidden) = (0.05, 0.95, true);
    let found = verdict(&line(vec![alone]));
    assert_eq!((found.kind, found.reason.as_str()), (VerdictKind::Unknown, "hidden"));
}

#[test]
fn processes_that_wait_for_one_lock_are_named() {
    let jobs = |queued| StageFigures { queued, computing: 0.3, sleep: 0.7, processes: 9, ..stage(1, 100, 0, 0) };
    let found = verdict(&line(vec![jobs(0.8), stage(2, 2, 98, 0)]));
    assert_eq!((found.kind, found.cause.as_str()), (VerdictKind::Stage, "waiting for a file lock"), "{}", found.text);
    assert_eq!(found.remedies[0].id, "file-lock");
    assert_eq!(verdict(&line(vec![jobs(0.3), stage(2, 2, 98, 0)])).reason, "sleeping");
}

#[test]
fn the_holder_of_a_lock_that_a_stage_waits_for_is_named() {
    let waits = |lock: f64, sleep: f64| StageFigures {
        locked_by: Some(("/srv/shop.db".to_owned(), 77, "python3".to_owned())),
        computing: 1.0 - lock - sleep,
        lock,
        sleep,
        ..stage(2, 100, 0, 0)
    };
    let found = verdict(&line(vec![stage(1, 2, 0, 98), waits(0.97, 0.0)]));
    let kind = (found.kind, found.stage, found.cause.as_str());
    assert_eq!(kind, (VerdictKind::Stage, Some(2), "waiting for a file lock"), "{}", found.text);
    let text = "s2 waits 97 % of the time for a lock on /srv/shop.db, which python3 (PID 77) holds.";
    assert_eq!((found.text.as_str(), found.remedies[0].id.as_str()), (text, "file-lock"));
    // A stage that only sleeps isn't known to wait for a lock.
    let found = verdict(&line(vec![stage(1, 2, 0, 98), waits(0.0, 0.97)]));
    assert_eq!(found.reason, "sleeping", "{}", found.text);
    let found = verdict(&line(vec![stage(1, 2, 0, 98), waits(0.1, 0.2)]));
    assert_eq!(found.reason, "computing", "{}", found.text);
}

#[test]
fn a_stage_at_a_low_priority_gets_advice_on_it() {
    let mut slow = [stage(1, 2, 0, 98), stage(2, 98, 1, 0)];
    (slow[1].cpu, slow[1].cpu_wait, slow[1].waiting_for_cpu, slow[1].computing) = (Some(0.05), Some(0.9), 0.9, 0.08);
    let found = |low: Option<&str>, idle: f64| {
        let mut figures = line(slow.to_vec());
        (figures.stages[1].low_priority, figures.limits.idle_cpus) = (low.map(str::to_owned), Some(idle));
        let found = verdict(&figures);
        (found.kind, found.remedies[0].clone())
    };
    for (idle, kind) in [(0.0, VerdictKind::Cpu), (1.5, VerdictKind::Stage)] {
        let (of, remedy) = found(Some("nice 19"), idle);
        assert_eq!((of, remedy.id.as_str()), (kind, "cpu-priority"));
        assert!(remedy.text.starts_with("s2 runs at nice 19, so other programs come first"), "{}", remedy.text);
        assert_ne!(found(None, idle).1.id, "cpu-priority");
    }
}

#[test]
fn a_stage_that_is_stopped_again_and_again_is_throttled() {
    let limited = |stops| StageFigures {
        stopped: 0.7,
        computing: 0.3,
        cpu: Some(0.3),
        stops_per_second: stops,
        stops: (stops * 2.0) as u32,
        ..stage(2, 100, 0, 0)
    };
    let found = verdict(&line(vec![stage(1, 2, 0, 98), limited(9.0), stage(3, 2, 98, 0)]));
    assert_eq!((found.kind, found.stage), (VerdictKind::Throttled, Some(2)), "{}", found.text);
    assert!(found.text.contains("is stopped 70 % of the time"), "{}", found.text);
    assert_eq!(found.remedies[0].id, "cpulimit");
    // The stage is stopped three times in two seconds, then once.
    for stops in [1.5, 0.5] {
        let found = verdict(&line(vec![stage(1, 2, 0, 98), limited(stops), stage(3, 2, 98, 0)]));
        assert_eq!((found.kind, found.reason.as_str()), (VerdictKind::Stage, "stopped"), "{}", found.text);
    }
    let found = verdict(&line(vec![stage(1, 100, 0, 0), limited(9.0), stage(3, 2, 98, 0)]));
    assert_eq!(found.kind, VerdictKind::Throttled, "both are busy");
}

#[test]
fn a_pipeline_stopped_by_ctrl_z_is_reported_as_stopped() {
    let stopped =
        |number| StageFigures { stopped: 1.0, computing: 0.0, pid: 100 + number as u32, ..stage(number, 100, 0, 0) };
    let found = verdict(&line(vec![stopped(1), stopped(2), stage(3, 0, 100, 0)]));
    assert_eq!((found.kind, found.stage, found.reason.as_str()), (VerdictKind::Stage, Some(1), "stopped"), "{found:?}");
    assert!(found.text.contains("s1, s2") && found.advice[0].contains("kill -CONT 101 102"), "{found:?}");
    let found = verdict(&line(vec![stopped(1), stage(2, 0, 100, 0)]));
    assert_eq!((found.stage, found.reason.as_str()), (Some(1), "stopped"), "{found:?}");
    let half = StageFigures { stopped: 0.4, computing: 0.35, sleep: 0.25, pid: 101, ..stage(1, 100, 0, 0) };
    let found = verdict(&line(vec![half, stage(2, 0, 100, 0)]));
    assert!(found.reason == "stopped" && found.advice[0].ends_with("kill -CONT 101"), "{found:?}");
}

#[test]
fn a_stage_that_waits_for_input_while_it_works_is_not_the_bottleneck() {
    let zstd = StageFigures { threads: 5, hungry: 0.7, cpu: Some(0.9), ..stage(2, 94, 6, 0) };
    let found = verdict(&line(vec![stage(1, 97, 0, 3), zstd]));
    assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(1)), "{}", found.text);
    // With five threads, the stage may do the same work in a fifth of the time.
    assert!(found.bound.unwrap() > 4.0, "{}", found.text);
}

#[test]
fn more_cpus_are_advised_only_where_they_gain_more_than_a_faster_stage() {
    let on_one = |shares: &[(f64, f64)]| {
        let stage = |(number, &(cpu, wait)): (usize, &(f64, f64))| StageFigures {
            computing: cpu,
            waiting_for_cpu: wait,
            cpu: Some(cpu),
            cpu_wait: Some(wait),
            cpus: vec![0],
            ..stage(number, ((cpu + wait) * 100.0) as u32, 0, 0)
        };
        verdict(&line((1..).zip(shares).map(stage).collect()))
    };
    assert_eq!(on_one(&[(0.33, 0.66), (0.33, 0.66), (0.33, 0.66)]).kind, VerdictKind::Cpu);
    assert_eq!(on_one(&[(0.5, 0.5), (0.5, 0.5)]).kind, VerdictKind::Cpu);
    let found = on_one(&[(0.8, 0.2), (0.2, 0.4)]);
    assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(1)), "{}", found.text);
}

#[test]
fn a_deliberate_rate_limit_is_named_whatever_the_wait() {
    let words = ["curl", "-s", "--limit-rate", "8M"].map(str::to_owned).to_vec();
    let curl = StageFigures { name: "curl".to_owned(), words, other: 0.72, computing: 0.01, ..stage(1, 73, 0, 27) };
    let mut figures = line(vec![curl, stage(2, 22, 77, 1)]);
    figures.pipes[0].reader_stretch = Some(0.8);
    figures.pipes[0].bytes_per_second = Some(9e6);
    let found = verdict(&figures);
    assert_eq!((found.kind, found.cause.as_str()), (VerdictKind::Stage, "rate limit on purpose"), "{}", found.text);
    assert_eq!(found.remedies[0].id, "curl-limit-rate");
    // Without the option, the same figures mean bursts.
    figures.stages[0].words.clear();
    assert_eq!(verdict(&figures).kind, VerdictKind::Burst);
}

#[test]
fn a_stage_that_wants_a_cpu_is_not_reported_as_waiting() {
    let ssh = StageFigures { computing: 0.27, waiting_for_cpu: 0.24, network: 0.39, ..stage(1, 90, 10, 0) };
    assert_eq!(activities(&ssh)[..2], [(Activity::Computing, 0.27), (Activity::Network, 0.39)]);
    let slow = StageFigures { network: 0.6, ..ssh };
    assert_eq!(activities(&slow)[0].0.words(), "waiting for the network");
}

#[test]
fn kernel_time_of_disk_requests_is_not_computing() {
    let direct =
        StageFigures { computing: 0.41, waiting_for_cpu: 0.09, disk: 0.49, kernel: Some(0.4), ..stage(1, 99, 0, 1) };
    assert_eq!(activities(&direct)[0].0.words(), "waiting for the disk");
    assert_eq!(activities(&StageFigures { kernel: Some(0.1), ..direct.clone() })[0].0.words(), "computing");
    let syncs = StageFigures { computing: 0.51, disk: 0.47, kernel: Some(0.36), ..direct.clone() };
    assert_eq!(activities(&syncs)[0].0.words(), "waiting for the disk");
    let sleeps = StageFigures { computing: 0.02, kernel: Some(0.02), disk: 0.31, sleep: 0.65, ..direct };
    assert_eq!(activities(&sleeps)[0].0.words(), "sleeping");
}

#[test]
fn a_pipe_of_two_pages_costs_its_ends_a_switch_for_each_fill() {
    let mut figures = line(vec![stage(1, 30, 0, 70), stage(2, 86, 3, 11)]);
    figures.pipes[0].capacity = Some(8192);
    assert_eq!(verdict(&figures).kind, VerdictKind::Stage);
    figures.stages.iter_mut().for_each(|stage| stage.switches_per_second = Some(40_000.0));
    let found = verdict(&figures);
    assert_eq!((found.kind, found.pipe, found.bound), (VerdictKind::Pipe, Some(1), None), "{}", found.text);
    assert_eq!(found.remedies[0].id, "pipe-user-pages");
    figures.pipes[0].capacity = Some(65536);
    assert_eq!(verdict(&figures).kind, VerdictKind::Stage);
}

#[test]
fn parallel_that_waits_for_memory_limits_itself() {
    let words = ["/usr/bin/perl", "/usr/bin/parallel", "--memfree", "9T", "echo"].map(str::to_owned).to_vec();
    let waits = StageFigures { words, computing: 0.54, sleep: 0.42, ..stage(1, 99, 1, 0) };
    let checks = StageFigures { seconds_silent: Some(3.0), ..waits.clone() };
    let found = verdict(&line(vec![checks, stage(2, 1, 99, 0)]));
    assert_eq!((found.stage, found.cause.as_str()), (Some(1), "rate limit on purpose"), "{}", found.text);
    let works = StageFigures { seconds_silent: Some(0.0), ..waits };
    assert_eq!(verdict(&line(vec![works, stage(2, 1, 99, 0)])).cause, "computing");
}

#[test]
fn the_pauses_of_sort_are_its_own_work() {
    let mut figures = line(vec![stage(1, 42, 2, 56), stage(2, 51, 49, 0)]);
    assert_eq!(verdict(&figures).kind, VerdictKind::Pipe);
    figures.stages[1].words = vec!["sort".to_owned()];
    let found = verdict(&figures);
    assert_eq!((found.kind, found.stage, found.bound), (VerdictKind::Stage, Some(2), None), "{}", found.text);
    // Only a large buffer bridges them.
    figures.pipes[0] = PipeFigures { stretch: Some(0.3), bytes_per_second: Some(50e6), ..figures.pipes[0].clone() };
    assert_eq!(verdict(&figures).kind, VerdictKind::Burst);
}

#[test]
fn a_reader_that_waits_first_and_then_works_has_phases_and_not_bursts() {
    let figures = |turns: u32| {
        let mut figures = line(vec![stage(1, 48, 0, 52), stage(2, 60, 40, 0)]);
        figures.pipes[0].turns = Some(turns);
        figures
    };
    assert_eq!(verdict(&figures(1)).kind, VerdictKind::Stage);
    assert_eq!(verdict(&figures(20)).kind, VerdictKind::Pipe);
}

#[test]
fn stages_with_equal_work_are_balanced_although_one_waits_for_a_cpu() {
    let first = StageFigures { computing: 0.45, waiting_for_cpu: 0.2, cpu: Some(0.45), ..stage(1, 65, 0, 35) };
    let second = StageFigures { computing: 0.48, waiting_for_cpu: 0.49, cpu: Some(0.48), ..stage(2, 97, 3, 0) };
    let found = verdict(&line(vec![first.clone(), second.clone()]));
    assert_eq!(found.kind, VerdictKind::Balanced, "{}", found.text);
    assert!(found.text.contains("s2 works for 48 % of the time and s1 45 %"), "{}", found.text);
    // A stage that does little is not limited.
    let light = StageFigures { computing: 0.1, cpu: Some(0.1), busy: 0.3, blocked: 0.7, ..first };
    assert_eq!(verdict(&line(vec![light, second])).kind, VerdictKind::Stage);
}

#[test]
fn waits_that_no_buffer_saves_are_no_bursts() {
    let figures = |absorbable: f64| {
        let mut figures = line(vec![stage(1, 48, 0, 52), stage(2, 60, 40, 0)]);
        (figures.pipes[0].turns, figures.pipes[0].absorbable) = (Some(20), Some(absorbable));
        figures
    };
    assert_eq!(verdict(&figures(0.2)).kind, VerdictKind::Stage);
    assert_eq!(verdict(&figures(0.9)).kind, VerdictKind::Pipe);
}

#[test]
fn a_stage_and_a_pipe_with_equal_gains_are_both_named() {
    for busy in [67, 72] {
        let found = verdict(&line(vec![stage(1, 20, 0, 80), stage(2, busy, 100 - busy, 0)]));
        assert_eq!((found.kind, found.stage, found.pipe), (VerdictKind::Inconclusive, Some(2), Some(1)));
        assert_eq!(found.sure, Certainty::Unsure);
        assert_eq!(found.remedies[0].id, "pipe-capacity");
    }
}

#[test]
fn no_remedy_is_named_twice() {
    let sort = |number: usize, busy: u32, starved: u32, blocked: u32| {
        let words = vec!["sort".to_owned()];
        StageFigures { name: "sort".to_owned(), words, collates: true, ..stage(number, busy, starved, blocked) }
    };
    let found = verdict(&line(vec![sort(1, 62, 0, 38), stage(2, 60, 40, 0), sort(3, 61, 39, 0)]));
    let ids: Vec<&str> = found.remedies.iter().map(|remedy| remedy.id.as_str()).collect();
    assert_eq!(ids, ["pipe-capacity", "sort-lc-all-c", "sort-memory"]);
}

#[test]
fn a_stage_that_cannot_be_sampled_is_never_the_bottleneck() {
    let unsampled = |number| StageFigures { busy: 0.0, unknown: 1.0, hidden: true, ..stage(number, 0, 0, 0) };
    let found = verdict(&line(vec![unsampled(1), stage(2, 40, 60, 0)]));
    assert_eq!((found.kind, found.stage, found.reason.as_str()), (VerdictKind::Unknown, None, "hidden"));
    assert!(found.text.starts_with("The bottleneck may be s1,"), "{}", found.text);
    // If the stage's wait counts as other, the verdict is the same.
    let other = StageFigures { other: 1.0, hidden: true, ..stage(1, 100, 0, 0) };
    assert_eq!(verdict(&line(vec![other.clone(), stage(2, 40, 60, 0)])).stage, None);
    assert!(other.is_unsampled() && !stage(1, 100, 0, 0).is_unsampled());
}

#[test]
fn a_command_that_could_not_run_failed() {
    let failed = |code| of_failed(too_short(0), code);
    assert!(failed(127).text.contains("exit code 127 (command not found)"), "{}", failed(127).text);
    assert_eq!(
        (failed(2).reason.as_str(), failed(0).reason.as_str(), failed(1).reason.as_str()),
        ("failed", "short", "short")
    );
    let found = verdict(&line(vec![stage(1, 20, 0, 80), stage(2, 98, 1, 1)]));
    assert_eq!(of_failed(found.clone(), 127), found);
}

#[test]
fn a_stage_that_a_tracer_stops_is_traced() {
    let tar = StageFigures {
        stopped: 0.32,
        stops: 300,
        stops_per_second: 40.0,
        tracer: Some("strace".to_owned()),
        ..stage(1, 99, 0, 1)
    };
    let found = verdict(&line(vec![tar.clone(), stage(2, 3, 97, 0)]));
    assert_eq!((found.kind, found.stage, found.cause.as_str()), (VerdictKind::Stage, Some(1), "traced by strace"));
    assert!(found.text.contains("strace traces s1, which is stopped for 32 % of the time"), "{}", found.text);
    assert_eq!(found.remedies[0].id, "tracer");
    let limited = StageFigures { tracer: None, ..tar.clone() };
    assert_eq!(verdict(&line(vec![limited, stage(2, 3, 97, 0)])).kind, VerdictKind::Throttled);
    let beside = StageFigures { busy: 0.4, blocked: 0.6, ..tar };
    assert_ne!(verdict(&line(vec![beside, stage(2, 99, 1, 0)])).stage, Some(1), "another stage is slower");
}

#[test]
fn a_frozen_stage_is_not_waiting_for_the_disk() {
    let gzip = StageFigures { disk: 1.0, computing: 0.0, frozen: true, ..stage(2, 100, 0, 0) };
    let found = verdict(&line(vec![stage(1, 0, 0, 100), gzip, stage(3, 0, 100, 0)]));
    assert_eq!((found.kind, found.stage, found.cause.as_str()), (VerdictKind::Stage, Some(2), "frozen control group"));
    assert_eq!(found.remedies[0].id, "thaw");
}

#[test]
fn a_reader_of_a_fifo_beside_the_pipeline_is_named() {
    let peer =
        |sends| PeerFigures { name: "monitor".to_owned(), pid: Some(77), pipe: true, sends, ..PeerFigures::default() };
    let tee = StageFigures { peer: Some(peer(true)), ..stage(2, 3, 0, 97) };
    let mut figures = line(vec![stage(1, 2, 0, 98), tee, stage(3, 2, 98, 0)]);
    figures.pipes[1].writer_waits = 0.0;
    let found = verdict(&figures);
    assert_eq!(
        (found.kind, found.stage, found.cause.as_str()),
        (VerdictKind::Peer, Some(2), "peer: receiver (monitor)")
    );
    assert!(found.text.contains("s2 waits 97 % of the time for room in a pipe to monitor (PID 77)"), "{}", found.text);
    figures.pipes[1].writer_waits = 0.97;
    assert_ne!(verdict(&figures).kind, VerdictKind::Peer, "it waits for the next stage");
    // A stage that reads a second FIFO.
    figures.stages[1] = StageFigures { peer: Some(peer(false)), ..stage(2, 3, 97, 0) };
    figures.pipes[1].writer_waits = 0.0;
    figures.pipes[0].reader_waits = 0.0;
    let found = verdict(&figures);
    assert_eq!(found.cause, "peer: sender (monitor)", "{}", found.text);
}

#[test]
fn of_two_pipelines_each_has_its_own_figures() {
    // perl slow | cat & perl slow | sponge | cat
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let named = |name: &str, stage: StageFigures| StageFigures { name: name.to_owned(), words: words(name), ..stage };
    let slow = |number| StageFigures {
        cpu: Some(0.01),
        computing: 0.0,
        sleep: 0.99,
        ..named("perl", stage(number, 99, 0, 1))
    };
    let sponge =
        StageFigures { held_bytes: Some(900), seconds_silent: Some(2.0), ..named("sponge", stage(4, 0, 100, 0)) };
    let cat = |number| named("cat", stage(number, 0, 100, 0));
    let mut figures = line(vec![slow(1), cat(2), slow(3), sponge, cat(5)]);
    figures.pipes.remove(1);
    figures.pipes.iter_mut().zip(1..).for_each(|(pipe, number)| pipe.number = number);
    let found = verdict(&figures);
    assert!(found.text.starts_with("2 separate pipelines. perl (stage 1) holds the pipeline back"), "{}", found.text);
    assert_eq!(found.text.matches("sponge stores all").count(), 1, "{}", found.text);
    assert!(found.text.contains("sponge stores all"), "{}", found.text);
    let only = figures.subset(&[3, 4, 5]);
    assert_eq!(
        only.pipes.iter().map(|pipe| (pipe.number, pipe.from, pipe.to)).collect::<Vec<_>>(),
        [(1, 1, 2), (2, 2, 3)]
    );
    assert_eq!((only.stages[0].number, name(&only, 1).as_str()), (1, "perl (stage 3)"));
}

/// The recorded pipelines, with the names of their files.
fn recordings() -> impl Iterator<Item = (String, crate::PipelineEvidence)> {
    let directory = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/real/traces")).unwrap();
    let paths = directory.map(|entry| entry.unwrap().path());
    let traces = paths.filter(|path| path.extension().is_some_and(|end| end == "trace"));
    traces.map(|path| {
        let evidence = crate::trace::read(&mut std::fs::File::open(&path).unwrap()).unwrap();
        (path.display().to_string(), evidence)
    })
}

#[test]
fn what_is_expensive_to_say_wrong_is_proved_or_said_to_be_possible() {
    let mut claims = [0, 0];
    for (path, evidence) in recordings() {
        let verdict = crate::report::PipelineReport::of(&evidence).verdict;
        for found in &verdict.hypotheses {
            let is_expensive = ["peer:", "deadlock:", "waiting for a file lock", "input", "output"]
                .iter()
                .any(|cause| found.cause == *cause || cause.ends_with(':') && found.cause.starts_with(cause));
            let is_possible = ["probably", " may "].iter().any(|word| found.text.contains(word));
            assert!(!is_expensive || found.quality == Quality::Proved || is_possible, "{path}: {}", found.text);
            claims[usize::from(is_possible)] += usize::from(is_expensive);
        }
    }
    println!("{claims:?} claims are proved, and possible");
    assert!(claims.iter().all(|&count| count > 0), "{claims:?}");
}
