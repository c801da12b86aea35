//! Restricted machines: filtered system calls, one CPU, little memory, few descriptors, a user over the pipe limit.
//! Trials that can't run are skipped with a reason, and the others are measured.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::program::{PIPEMARK, ProgramOutput, allowed_cpus, bw_under, number, report_skip, run, samples, trials};
use serde_json::Value;

const WITHOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/without.py");

const TAKE_PIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/take_pipes.py");

fn statuses(document: &Value) -> Vec<&str> {
    trials(document).iter().map(|trial| trial["status"].as_str().unwrap()).collect()
}

fn reason(trial: &Value) -> &str {
    trial["reason"].as_str().unwrap_or_else(|| panic!("no reason: {trial}"))
}

/// Runs `bw` under a system call filter that makes `calls` fail with `error`.
fn bw_without_calls(error: &str, calls: &str, flags: &str) -> ProgramOutput {
    bw_under(&["python3", WITHOUT, error, calls, PIPEMARK], flags)
}

#[test]
fn filtered_calls_are_skipped_with_their_reason() {
    for error in ["EPERM", "ENOSYS"] {
        let ended =
            bw_without_calls(error, "vmsplice,io_uring_setup", "--send write,vmsplice,io-uring --recv read,vmsplice");
        let document = ended.measured();
        assert_eq!(statuses(&document), ["ok", "skipped", "skipped", "skipped", "skipped", "skipped"]);
        for (trial, call) in trials(&document)[1..].iter().zip(["vmsplice", "vmsplice", "vmsplice", "io_uring", ""]) {
            assert!(reason(trial).contains(error) && reason(trial).contains(call), "{}", reason(trial));
            assert!(trial["estimate"].is_null() && samples(trial).is_empty());
        }
        assert_eq!(document["host"]["vmsplice_shares_pages"], Value::Null);
    }
}

#[test]
fn splice_and_tee_are_filtered_alike() {
    let document = bw_without_calls("EPERM", "splice,tee", "--send write,splice,tee --recv read,splice").measured();
    let [plain, others @ ..] = &trials(&document)[..] else { panic!("six trials") };
    assert_eq!(plain["status"], "ok");
    assert!(others.iter().all(|trial| reason(trial).contains("EPERM")), "{others:?}");
}

#[test]
fn without_affinity_only_free_placement_is_left() {
    let document = bw_without_calls("ENOSYS", "sched_setaffinity", "--place free,same").measured();
    assert_eq!(statuses(&document), ["ok", "skipped"]);
    assert!(reason(trials(&document)[1]).contains("sched_setaffinity"));
}

#[test]
fn no_trial_is_measured_if_none_can_run() {
    let ended = bw_without_calls("EPERM", "memfd_create", "");
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("can be measured here"), "{}", ended.stderr);
    assert_eq!(statuses(&ended.document()), ["skipped"]);
}

#[test]
fn both_lists_say_what_is_filtered() {
    for (error, words) in [("EPERM", &["list"][..]), ("ENOSYS", &["list", "machine"])] {
        let ended = run(&["python3", WITHOUT, error, "io_uring_setup,tee", PIPEMARK], words);
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains(error) && ended.stdout.contains("tee"), "{}", ended.stdout);
    }
}

#[test]
fn one_cpu_is_enough_for_all_but_cross() {
    let cpu = allowed_cpus().last().unwrap().to_string();
    let document = bw_under(&["taskset", "-c", &cpu, PIPEMARK], "--place same,cross,free --wait block,spin").measured();
    assert_eq!(statuses(&document), ["ok", "ok", "skipped", "skipped", "ok", "ok"]);
    assert!(reason(trials(&document)[2]).contains("needs two CPUs"));
    let sink = &samples(trials(&document)[0])[0]["sinks"][0];
    assert_eq!(sink["cpus"][0].to_string(), cpu);
}

#[test]
fn a_run_beyond_the_memory_limit_fails() {
    let ended = bw_under(&["prlimit", "--as=300000000", PIPEMARK], "--block 64k,512m --time 5ms");
    assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
    assert_eq!(statuses(&ended.document()), ["ok", "failed"]);
    assert!(ended.stderr.contains("allocate memory; lower --block"), "{}", ended.stderr);
}

#[test]
fn too_few_descriptors_are_named() {
    let ended = bw_under(&["prlimit", "--nofile=24", PIPEMARK], "--pairs 1,60 --time 5ms");
    assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
    assert_eq!(statuses(&ended.document()), ["ok", "failed"]);
    assert!(ended.stderr.contains("ulimit -n"), "{}", ended.stderr);
}

/// The words of a command that runs a program as an unprivileged user, so that all limits apply.
const NOBODY: [&str; 6] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--"];

fn may_become_nobody() -> bool {
    let status =
        Command::new(NOBODY[0]).args(&NOBODY[1..]).arg(PIPEMARK).arg("--version").stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A process of the user `NOBODY` that holds enough pipes to leave only two pages for a new pipe.
struct PipeHolder(Child);

impl PipeHolder {
    fn new() -> PipeHolder {
        let mut holder = Command::new("python3");
        let child = holder.arg(TAKE_PIPES).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut holder = PipeHolder(child);
        let mut line = String::new();
        BufReader::new(holder.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "taken\n");
        holder
    }
}

impl Drop for PipeHolder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn another_user_measures_within_the_limits() {
    if !may_become_nobody() {
        report_skip("another user's limits", "this user may not become another one");
        return;
    }
    let launcher: Vec<&str> = NOBODY.iter().copied().chain([PIPEMARK]).collect();
    let document = bw_under(&launcher, "--capacity default,1m,1g --time 5ms").measured();
    assert_eq!(statuses(&document), ["ok", "ok", "skipped"]);
    assert!(reason(trials(&document)[2]).contains("pipe-max-size"));

    let _holder = PipeHolder::new();
    let document = bw_under(&launcher, "--capacity default,quota,1m --time 5ms").measured();
    let [default, quota, large] = trials(&document)[..] else { panic!("three trials") };
    let page = rustix::param::page_size() as u64;
    let granted = number(&samples(default)[0]["capacity_granted"]);
    if granted == 16 * page {
        report_skip("the limit on a user's pipes", "there is none here");
        return;
    }
    assert_eq!(granted, 2 * page);
    let warnings: Vec<_> = default["warnings"].as_array().unwrap().iter().map(|warning| &warning["kind"]).collect();
    assert!(warnings.contains(&&Value::from("capacity-differs")), "{warnings:?}");
    assert!(large["status"] == "skipped" && reason(large).contains("pipe-user-pages-soft"), "{large}");
    // `quota` requests exactly those two pages.
    assert_eq!((&quota["status"], number(&samples(quota)[0]["capacity_granted"])), (&"ok".into(), 2 * page), "{quota}");
}
