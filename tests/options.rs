//! Each option of `pipemark bw`, checked by its effect on the measurement.

use crate::program::{self, allowed_cpus, bw, bw_under, number, only_trial, pipemark, samples, trials};
use serde_json::Value;

/// The sources or sinks of a trial's runs.
fn ends<'a>(trial: &'a Value, role: &str) -> Vec<&'a Value> {
    samples(trial).iter().flat_map(|sample| sample[role].as_array().unwrap()).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// A trial is skipped with a reason if `pipemark list` shows that something it needs is missing. In all other trials
/// every byte is verified, and as many bytes arrive as were sent.
fn assert_every_trial_is_verified(flags: &str, count: usize) {
    let document = bw(&format!("{flags} --block 8k --time 4ms"));
    let trials = trials(&document);
    assert_eq!(trials.len(), count);
    for trial in trials {
        if trial["status"] == "skipped" {
            assert!(text(trial, "reason").contains("needs"), "{trial}");
            continue;
        }
        assert_eq!((&trial["status"], &trial["verified"]), (&"ok".into(), &true.into()), "{trial}");
        let (sources, sinks) = (ends(trial, "sources"), ends(trial, "sinks"));
        assert_eq!((sources.len(), sinks.len()), (1, 1));
        for (source, sink) in sources.iter().zip(&sinks) {
            assert_eq!(source["bytes_in_all"], sink["bytes_in_all"], "{trial}");
            assert!(number(&sink["bytes"]) > 0 && number(&sink["calls"]) > 0, "{trial}");
        }
    }
}

const SENDERS: &str = "write,vmsplice,vmsplice-gift,sendfile,splice,tee,io-uring";
const FRESH_SENDERS: &str = "write,vmsplice,vmsplice-gift,sendfile,splice,io-uring";
const RECEIVERS: &str = "read,splice,vmsplice,io-uring";
const TOUCHING_RECEIVERS: &str = "read,vmsplice,io-uring";

#[test]
fn every_sender_reaches_every_receiver() {
    assert_every_trial_is_verified(&format!("--send {SENDERS} --recv {RECEIVERS} --verify count"), 7 * 4);
}

#[test]
fn every_byte_of_every_sender_is_verified() {
    assert_every_trial_is_verified(&format!("--send {FRESH_SENDERS} --recv {TOUCHING_RECEIVERS} --verify full"), 6 * 3);
    assert_every_trial_is_verified(&format!("--send {SENDERS} --recv {TOUCHING_RECEIVERS} --verify xor"), 7 * 3);
}

#[test]
fn every_wait_policy_moves_verified_bytes() {
    for (send, recv) in [("write", "read"), ("vmsplice", "vmsplice"), ("io-uring", "io-uring")] {
        assert_every_trial_is_verified(&format!("--send {send} --recv {recv} --wait block,poll,spin --verify full"), 3);
    }
    assert_every_trial_is_verified("--send tee,splice --recv splice --wait poll,spin", 4);
}

#[test]
fn each_verify_level_states_its_guarantee() {
    let document = bw("--verify none,count,xor,full --time 5ms");
    let verified: Vec<_> = trials(&document)
        .iter()
        .map(|trial| (text(trial, "verify"), trial["verified"].as_bool(), trial["touched"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        verified,
        [("none", None, false), ("count", Some(true), false), ("xor", Some(true), true), ("full", Some(true), true)]
    );
    let xor = trials(&document)[2];
    assert!(ends(xor, "sinks")[0]["xor"].is_u64());
    assert_eq!(ends(xor, "sinks")[0]["xor"], ends(xor, "sources")[0]["xor"]);
}

#[test]
fn block_sizes_bound_what_a_call_moves() {
    let document = bw("--block 4k --read-block 1k,4k,64k --capacity 64k --read-delay 20");
    let per_call: Vec<u64> = trials(&document)
        .iter()
        .map(|trial| {
            let (source, sink) = (ends(trial, "sources")[0], ends(trial, "sinks")[0]);
            assert!(number(&source["bytes"]) <= 4096 * number(&source["calls"]));
            assert!(number(&source["bytes"]).is_multiple_of(4096), "whole blocks are sent");
            number(&sink["bytes"]) / number(&sink["calls"])
        })
        .collect();
    assert!(per_call[0] <= 1024 && per_call[1] <= 4096, "{per_call:?}");
    // The sink works for 20 µs per call, so more than one block is waiting when it reads.
    assert!(per_call[2] > 4096 && per_call[2] <= 65536, "{per_call:?}");
}

#[test]
fn odd_blocks_and_offsets_arrive_whole() {
    let document = bw("--block 1,100,4097,70000 --align 0,1,100,4095 --verify full --time 3ms");
    for trial in trials(&document) {
        assert_eq!(trial["verified"], true, "{trial}");
    }
    let document = bw("--send vmsplice --block 5000 --align 1,4095 --verify full --time 3ms");
    let aligns: Vec<u64> = trials(&document).iter().map(|trial| number(&trial["params"]["align"])).collect();
    assert_eq!(aligns, [1, 4095]);
    assert!(trials(&document).iter().all(|trial| trial["verified"] == true));
}

#[test]
fn the_requested_capacity_is_set_and_read_back() {
    let document = bw("--capacity default,4k,5000,64k,1m,quota --time 5ms");
    let granted: Vec<u64> =
        trials(&document).iter().map(|trial| number(&samples(trial)[0]["capacity_granted"])).collect();
    let after: Vec<u64> = trials(&document).iter().map(|trial| number(&samples(trial)[0]["capacity_after"])).collect();
    let page = rustix::param::page_size() as u64;
    assert_eq!(granted, [16 * page, 4096.max(page), 8192.max(page), 65536.max(page), 1 << 20, 2 * page]);
    assert_eq!(granted, after);
}

#[test]
fn a_capacity_above_the_limit_is_skipped_or_granted() {
    let limit: u64 = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").unwrap().trim().parse().unwrap();
    let ended = bw_under(&[program::PIPEMARK], "--capacity default,1g --time 5ms");
    let document = ended.document();
    let refused = trials(&document)[1];
    if refused["status"] == "skipped" {
        let reason = text(refused, "reason");
        assert!(limit < 1 << 30 && reason.contains("pipe-max-size") && reason.contains("1 GiB"), "{reason}");
    } else {
        // Root may exceed the limit if the kernel has enough memory.
        assert!(refused["status"] == "failed" || samples(refused)[0]["capacity_granted"] == 1 << 30);
    }
}

#[test]
fn ends_run_where_they_are_placed() {
    let cpus = allowed_cpus();
    let seen = |trial: &Value| {
        ["sources", "sinks"].map(|role| {
            let end = ends(trial, role)[0].clone();
            (end["pinned"].clone(), end["cpus"].clone())
        })
    };
    let document = bw("--place free,same");
    let [free, same] = trials(&document)[..] else { panic!("two trials") };
    assert!(seen(free).iter().all(|(pinned, _)| pinned.is_null()));
    let on = |cpu: u64| (Value::from(vec![cpu]), Value::from(vec![cpu]));
    assert_eq!(seen(same), [on(cpus[0]), on(cpus[0])]);
    if let [first, second, ..] = cpus[..] {
        let document = bw(&format!("--place cross,{second}:{first},{second}:{second}"));
        let [cross, swapped, one] = trials(&document)[..] else { panic!("three trials") };
        let [(writer, ran), (reader, _)] = seen(cross);
        assert!(writer != reader && ran == writer, "{writer} {reader}");
        assert_eq!(seen(swapped), [on(second), on(first)]);
        assert_eq!(seen(one), [on(second), on(second)]);
    }
}

#[test]
fn a_trial_on_a_missing_cpu_is_skipped() {
    let document = bw("--place same,0:1023 --time 5ms");
    assert_eq!(trials(&document)[1]["status"], "skipped");
    assert!(text(trials(&document)[1], "reason").contains("CPU 1023"));
}

#[test]
fn pairs_run_at_once_and_add_up() {
    let document = bw("--pairs 1,3,4 --verify full --runs 2");
    for (trial, pairs) in trials(&document).into_iter().zip([1, 3, 4]) {
        assert_eq!(trial["verified"], true, "{trial}");
        for sample in samples(trial) {
            let (sources, sinks) = (sample["sources"].as_array().unwrap(), sample["sinks"].as_array().unwrap());
            assert_eq!((sources.len(), sinks.len()), (pairs, pairs));
            let rate = |end: &Value| number(&end["bytes"]) as f64 / number(&end["ns"]) as f64;
            let sum: f64 = sinks.iter().map(rate).sum();
            assert!((rate(sample) / sum - 1.0).abs() < 1e-6, "the pairs' rates add up");
            assert_eq!(number(&sample["bytes"]), sinks.iter().map(|sink| number(&sink["bytes"])).sum::<u64>());
        }
    }
}

#[test]
fn records_up_to_pipe_buf_are_never_cut_by_other_writers_and_larger_ones_are() {
    let document = bw("--writers 2,4 --block 512,4095,4096,128k --total 64m --place free --runs 1");
    for trial in trials(&document) {
        assert_eq!((&trial["verified"], &trial["touched"]), (&true.into(), &true.into()), "{trial}");
        let (block, writers) = (number(&trial["params"]["block"]), number(&trial["params"]["writers"]));
        for sample in samples(trial) {
            assert_eq!(sample["sources"].as_array().unwrap().len() as u64, writers);
            let cut = sample["interleaved_percent"].as_f64().unwrap();
            assert_eq!(cut > 0.0, block > 4096, "{cut} % of records of {block} bytes were cut");
        }
    }
}

#[test]
fn many_pairs_start_together() {
    let document = bw("--pairs 40 --time 5ms");
    let sample = &samples(only_trial(&document))[0];
    assert_eq!(sample["sinks"].as_array().unwrap().len(), 40);
}

#[test]
fn delays_bound_the_number_of_calls() {
    // Each delay lasts at least half of the requested time.
    let document = bw("--read-delay 1000 --block 4k");
    let sink = ends(only_trial(&document), "sinks")[0].clone();
    assert!(number(&sink["calls"]) <= number(&sink["ns"]) / 500_000 + 1, "{sink}");
    let document = bw("--write-delay 1ms --block 4k");
    let source = ends(only_trial(&document), "sources")[0].clone();
    assert!(number(&source["calls"]) <= number(&source["ns"]) / 500_000 + 1, "{source}");
}

#[test]
fn a_run_moves_the_total_or_takes_the_time() {
    let document = bw("--total 100000,3m --block 4k --verify full");
    for (trial, total) in trials(&document).into_iter().zip([100_000, 3 << 20]) {
        let bytes = number(&samples(trial)[0]["bytes"]);
        assert!((total..total + 4096).contains(&bytes), "{bytes} for {total}");
    }
    let document = bw("--time 10ms,30ms");
    for (trial, time) in trials(&document).into_iter().zip([10_000_000, 30_000_000]) {
        assert!(number(&samples(trial)[0]["ns"]) >= time);
    }
}

#[test]
fn the_number_of_runs_is_as_requested_or_as_needed() {
    let document = bw("--runs 3 --time 5ms");
    let trial = only_trial(&document);
    assert_eq!((samples(trial).len(), text(trial, "stopped")), (3, "runs"));
    assert_eq!(trial["estimate"]["throughput"]["runs"], 3);

    let document = bw("--budget 1ms --time 2ms");
    let trial = only_trial(&document);
    assert_eq!(samples(trial).len(), 5, "the least number, whatever the budget");
    assert!(["budget", "narrow"].contains(&text(trial, "stopped")), "{}", trial["stopped"]);

    let document = bw("--budget 2s --time 2ms");
    let trial = only_trial(&document);
    let runs = samples(trial).len();
    let estimate = &trial["estimate"]["throughput"];
    let (low, median, high) = (&estimate["low"], &estimate["median"], &estimate["high"]);
    let wide = high.as_f64().unwrap() - low.as_f64().unwrap() > 0.06 * median.as_f64().unwrap();
    match text(trial, "stopped") {
        "narrow" => assert!(runs >= 5 && !wide, "{estimate}"),
        "runs" => assert_eq!(runs, 30),
        other => assert_eq!(other, "budget"),
    }
}

#[test]
fn a_seed_fixes_the_order_of_the_runs() {
    let order = |seed: &str| {
        let document = bw(&format!("--block 1k,2k,4k,8k,16k,32k --runs 3 --time 1ms --seed {seed}"));
        assert_eq!(document["seed"].to_string(), seed);
        let mut order: Vec<(u64, u64)> = trials(&document)
            .iter()
            .flat_map(|trial| {
                let block = number(&trial["params"]["block"]);
                samples(trial).iter().map(move |sample| (number(&sample["started_ns"]), block))
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, block)| block).collect::<Vec<_>>()
    };
    let first = order("7");
    assert_eq!(order("7"), first);
    assert_ne!(order("8"), first);
}

#[test]
fn rounds_take_each_trial_once() {
    let document = bw("--block 1k,4k,16k --runs 3 --time 2ms");
    for trial in trials(&document) {
        let rounds: Vec<u64> = samples(trial).iter().map(|sample| number(&sample["round"])).collect();
        assert_eq!(rounds, [0, 1, 2]);
    }
}

#[test]
fn a_baseline_gives_ratios_within_rounds() {
    let document = bw("--block 4k,64k --baseline block=4k --runs 3 --time 10ms");
    let [small, large] = trials(&document)[..] else { panic!("two trials") };
    assert!(small["estimate"].get("ratio").is_none(), "the baseline has no ratio to itself");
    assert_eq!(large["baseline"], small["id"]);
    let rate = |sample: &Value| number(&sample["bytes"]) as f64 / number(&sample["ns"]) as f64;
    let mut ratios: Vec<f64> =
        samples(large).iter().zip(samples(small)).map(|(one, base)| rate(one) / rate(base)).collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = &large["estimate"]["ratio"];
    for (end, wanted) in [("min", ratios[0]), ("max", ratios[2])] {
        assert!((ratio[end].as_f64().unwrap() / wanted - 1.0).abs() < 1e-6, "{end} of {ratio} and {ratios:?}");
    }
    assert!((ratios[0]..=ratios[2]).contains(&ratio["median"].as_f64().unwrap()), "{ratio} of {ratios:?}");
}

#[test]
fn missing_huge_pages_are_reported() {
    let document = bw("--send write,vmsplice --pages huge --verify full");
    for trial in trials(&document) {
        match text(trial, "status") {
            "skipped" => assert!(text(trial, "reason").contains("huge"), "{trial}"),
            _ => assert_eq!(trial["verified"], true, "{trial}"),
        }
    }
}

#[test]
fn the_memory_copy_limit_comes_with_every_measurement() {
    let document = bw("--time 5ms");
    assert!(document["memory_copy"]["median"].as_f64().unwrap() > 0.0);
    let document = bw("--link memory-copy --block 4k,64k --time 5ms");
    assert_eq!(document["partial"], false);
    assert!(document["trials"].as_array().unwrap().iter().all(|trial| trial["status"] == "ok"));
}

#[test]
fn options_that_have_no_effect_on_the_data_are_recorded() {
    let ended = pipemark(&["bw", "--runs", "1", "--time", "5ms", "--wait", "poll", "--limit", "9s", "--json", "-"]);
    let document = ended.measured();
    let command: Vec<&str> =
        document["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(command[1..].starts_with(&["bw", "--runs", "1"]), "{command:?}");
    assert_eq!(only_trial(&document)["params"]["wait"], "poll");
}

#[test]
fn completions_offer_values() {
    let script = pipemark(&["--completions", "bash"]).stdout;
    for words in ["write vmsplice vmsplice-gift", "none count", "text markdown"] {
        assert!(script.contains(words), "{words}");
    }
}
