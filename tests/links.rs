//! Each link on the command line: content and order at sizes around every boundary, in both modes, with the link's
//! options. A link that the system lacks or forbids is skipped with a reason. link_cleanup.rs tests what a link leaves
//! behind.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::program::{
    self, PIPEMARK, RunningProgram, bw, bw_under, number, only_trial, pipemark, placement, refusing, report_skip,
    samples, sysv_queues, trials,
};
use rustix::process::Signal;
use serde_json::Value;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Whether a trial was measured. A trial that wasn't measured must have a reason and advice.
fn was_measured(trial: &Value) -> bool {
    if trial["status"] == "skipped" {
        assert!(text(trial, "reason").split_whitespace().count() > 8, "{trial}");
        return false;
    }
    assert_eq!(trial["status"], "ok", "{} {}", trial["id"], trial["reason"]);
    true
}

/// Measures all combinations, compares every byte, and checks that the fields of each sample agree.
fn measure_and_verify(flags: &str) -> Vec<Value> {
    let document = bw(&format!("{flags} --verify full --time 2ms"));
    let trials: Vec<Value> = trials(&document).into_iter().filter(|trial| was_measured(trial)).cloned().collect();
    for trial in &trials {
        assert_eq!(trial["verified"], true, "{trial}");
        let (block, latency) = (number(&trial["params"]["block"]), trial["params"]["mode"] == "latency");
        let limit = samples(trial)[0]["message_limit"].as_u64();
        let split = trial["warnings"].as_array().unwrap().iter().find(|warning| warning["kind"] == "split");
        assert_eq!(split.map(|warning| number(&warning["limit"])), limit.filter(|&limit| limit < block), "{trial}");
        for sample in samples(trial) {
            assert_eq!(sample["sources"][0]["bytes_in_all"], sample["sinks"][0]["bytes_in_all"], "{trial}");
            assert_eq!(sample["latency"].is_object(), latency, "{trial}");
            if latency {
                assert_eq!(number(&sample["sources"][0]["bytes"]), number(&sample["latency"]["round_trips"]) * block);
            }
        }
    }
    trials
}

/// Measures both modes at all sizes. The last three sizes, which are near or above the link's limit, are also measured
/// with read blocks that divide none of the sizes.
fn measure_around(link: &str, sizes: &str) {
    let all: Vec<&str> = sizes.split(',').collect();
    let last = all[all.len().saturating_sub(3)..].join(",");
    let both = measure_and_verify(&format!("--link {link} --mode throughput,latency --block {sizes}"));
    let odd = measure_and_verify(&format!("--link {link} --block {last} --read-block 7,100001"));
    assert!(both.is_empty() && odd.is_empty() || both.len() == 2 * all.len() && odd.len() == 6, "{link}");
}

const LINKS: &str =
    "pipe,fifo,socketpair,unix-stream,unix-seqpacket,unix-dgram,tcp,sysv-mq,posix-mq,shm,process-vm,pty";

#[test]
fn no_bytes_are_refused() {
    for link in LINKS.split(',').chain(["null"]) {
        for mode in ["throughput", "latency"] {
            let ended = pipemark(&["bw", "--link", link, "--mode", mode, "--block", "0"]);
            assert_eq!(ended.code(), Some(2), "{link}: {}", ended.stderr);
            assert!(ended.stderr.contains("out of range"), "{link}: {}", ended.stderr);
        }
    }
}

#[test]
fn pipes_around_their_capacity() {
    let page = rustix::param::page_size();
    let full = 16 * page;
    let sizes = format!("1,{},{page},{},{},{full},{},99999", page - 1, page + 1, full - 1, full + 1);
    measure_around("pipe", &sizes);
    measure_around("fifo", &sizes);
}

/// The size of a stream socket's buffer.
fn send_buffer(link: &str) -> u64 {
    let document = bw(&format!("--link {link} --time 1ms"));
    number(&samples(only_trial(&document))[0]["send_buffer"])
}

/// A few of the sizes that the long tests below measure.
#[test]
fn sockets_and_memory_above_their_limit() {
    let larger = send_buffer("unix-stream") + 1;
    let limited = "socketpair,unix-stream,tcp,unix-seqpacket,unix-dgram";
    let all = measure_and_verify(&format!("--link {limited} --block {larger} --read-block 100001"));
    assert!(all.len() >= 4, "{} trials", all.len());
    measure_and_verify("--link shm --capacity 5000 --mode throughput,latency --block 4999,5001");
    measure_and_verify("--link shm --capacity 5000 --send in-place --recv in-place,read --block 5001");
    measure_and_verify("--link process-vm --mode throughput,latency --block 524289");
}

#[test]
#[ignore = "long"]
fn long_stream_sockets_around_their_buffers() {
    for link in ["socketpair", "unix-stream", "tcp"] {
        let buffer = send_buffer(link);
        measure_around(link, &format!("1,{},{buffer},{},65537", buffer - 1, buffer + 1));
    }
}

#[test]
#[ignore = "long"]
fn long_message_sockets_around_their_limit() {
    for link in ["unix-seqpacket", "unix-dgram"] {
        for buffer in ["default", "10000"] {
            let document = bw(&format!("--link {link} --buffer {buffer} --time 1ms"));
            let sample = &samples(only_trial(&document))[0];
            let limit = number(&sample["message_limit"]);
            assert_eq!(limit, number(&sample["send_buffer"]) - 32, "what the kernel puts aside");
            measure_around(
                &format!("{link} --buffer {buffer}"),
                &format!("1,{},{limit},{},{}", limit - 1, limit + 1, 3 * limit + 1),
            );
        }
    }
}

fn setting(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[test]
fn queues_around_their_limit() {
    for (link, limit) in
        [("sysv-mq", setting("/proc/sys/kernel/msgmax")), ("posix-mq", setting("/proc/sys/fs/mqueue/msgsize_max"))]
    {
        let limit = limit.unwrap_or(8192);
        let sizes = format!("1,{},{limit},{},{},{}", limit - 1, limit + 1, 2 * limit, 2 * limit + 1);
        measure_around(link, &sizes);
        for trial in measure_and_verify(&format!("--link {link} --block {}", limit + 1)) {
            assert_eq!(number(&samples(&trial)[0]["message_limit"]), limit);
        }
    }
}

#[test]
#[ignore = "long"]
fn long_memory_around_its_ring() {
    measure_around("shm", "1,63,65,4095,4097,1048575,1048577");
    measure_around("shm --capacity 5000", "1,2499,2501,4999,5000,5001,10001");
    for (send, recv) in [("in-place", "in-place"), ("in-place", "read"), ("write", "in-place")] {
        measure_around(&format!("shm --capacity 5000 --send {send} --recv {recv}"), "1,2501,4999,5000,5001,10001");
    }
    measure_around("process-vm", "1,63,524287,524289,1048575,1048577");
}

#[test]
fn a_terminal_around_its_buffer() {
    measure_around("pty", "1,3,4095,4096,4097,65537");
}

#[test]
fn every_wait_policy_of_every_link() {
    let document =
        bw(&format!("--link {LINKS} --mode throughput,latency --block 1000 --wait poll,spin --verify full --time 2ms"));
    let seen = trials(&document).into_iter().filter(|trial| was_measured(trial));
    let policies: Vec<&str> = seen.map(|trial| text(&trial["params"], "wait")).collect();
    assert!(policies.iter().filter(|&&policy| policy == "spin").count() * 2 == policies.len());
}

#[test]
fn several_pairs_have_links_of_their_own() {
    for trial in measure_and_verify(&format!("--link {LINKS} --mode throughput,latency --block 3000 --pairs 3")) {
        assert_eq!(samples(&trial)[0]["sinks"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn a_split_block_is_noted_in_text_output() {
    let ended = pipemark(&[
        "bw",
        "--link",
        "unix-seqpacket",
        "--block",
        "1m",
        "--runs",
        "1",
        "--time",
        "5ms",
        "--place",
        "free",
    ]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let stdout = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        stdout.contains("messages of this link are limited to") && stdout.contains("were split"),
        "{}",
        ended.stdout
    );
}

#[test]
fn socket_buffers_are_an_axis_and_are_read_back() {
    for link in ["socketpair", "unix-stream", "unix-seqpacket", "unix-dgram", "tcp"] {
        let document = bw(&format!("--link {link} --buffer default,8k,20000 --block 1000 --verify full --time 2ms"));
        let granted: Vec<(u64, u64)> = trials(&document)
            .iter()
            .map(|trial| (number(&samples(trial)[0]["send_buffer"]), number(&samples(trial)[0]["recv_buffer"])))
            .collect();
        // The kernel doubles the requested size (socket(7)).
        assert_eq!(granted[1..], [(2 * 8192, 2 * 8192), (40_000, 40_000)], "{link}");
        assert!(granted[0] != granted[1], "{link}: {granted:?}");
    }
    let document = bw("--link pipe,shm --time 2ms");
    assert!(trials(&document).iter().all(|trial| samples(trial)[0].get("send_buffer").is_none()));
}

#[test]
fn other_ways_to_send_over_sockets() {
    other_ways_to_send("5000,100001", "block,poll");
}

#[test]
#[ignore = "long"]
fn long_other_ways_to_send_over_sockets() {
    other_ways_to_send("1,5000,100001", "block,poll,spin");
}

fn other_ways_to_send(blocks: &str, waits: &str) {
    let (of_blocks, of_waits) = (blocks.split(',').count(), waits.split(',').count());
    let sent = measure_and_verify(&format!(
        "--link socketpair,unix-stream,tcp --send io-uring --recv read,io-uring --block {blocks}"
    ));
    assert!(sent.is_empty() || sent.len() == 6 * of_blocks);
    let document =
        bw_under(&[PIPEMARK], &format!("--link tcp --send zerocopy --block {blocks},1048577 --verify full --time 3ms"))
            .document();
    for trial in trials(&document) {
        // Small messages need little locked memory, so they work wherever the kernel has MSG_ZEROCOPY.
        let fits = number(&trial["params"]["block"]) <= 5000;
        let verified = was_measured(trial) && trial["verified"] == true;
        assert!(verified || !fits && text(trial, "reason").contains("locked memory"), "{trial}");
    }
    let document = bw(&format!(
        "--link socketpair,unix-stream,tcp --send sendfile,splice --wait {waits} --block {blocks} --verify xor --time 3ms"
    ));
    assert_eq!(trials(&document).len(), 6 * of_blocks * of_waits);
    assert!(trials(&document).into_iter().all(|trial| trial["verified"] == true && trial["copies"] == 1));
}

#[test]
fn percentiles_need_enough_samples() {
    // The number of round trips is exactly the number requested.
    let of = |trips: u64| {
        let document = bw(&format!("--mode latency --block 8 --total {}", 8 * trips));
        let trial = only_trial(&document).clone();
        assert_eq!(number(&samples(&trial)[0]["latency"]["round_trips"]), trips);
        trial
    };
    let few = of(5);
    let latency = &samples(&few)[0]["latency"];
    assert!(latency["p99"].is_null() && latency["p999"].is_null() && number(&latency["p50"]) > 0, "{latency}");
    assert!(few["estimate"]["latency"]["p99"].is_null(), "{few}");
    let many = of(20_000);
    let latency = &samples(&many)[0]["latency"];
    let ordered: Vec<u64> = ["min", "p50", "p90", "p99", "p999", "max"].map(|key| number(&latency[key])).to_vec();
    assert!(ordered.is_sorted() && ordered[0] > 0, "{latency}");
    let estimate = &many["estimate"]["latency"];
    assert_eq!(estimate["p50"]["median"].as_f64(), latency["p50"].as_f64());
    let sample = &samples(&many)[0];
    let cpu = (number(&sample["user_ns"]) + number(&sample["sys_ns"])) as f64 / 1e9;
    // A round trip is two messages.
    let per_million = cpu / (2.0 * 20_000.0) * 1e6;
    assert!((estimate["cpu_seconds_per_million"]["median"].as_f64().unwrap() / per_million - 1.0).abs() < 1e-6);
    let per_second = 20_000.0 / (number(&sample["ns"]) as f64 / 1e9);
    assert!((estimate["round_trips_per_second"]["median"].as_f64().unwrap() / per_second - 1.0).abs() < 1e-6);
}

#[test]
fn a_rate_sends_when_it_is_due_and_a_gap_when_it_is_over() {
    let document = bw("--mode latency --block 64 --rate 1000,2000 --time 100ms");
    for trial in trials(&document) {
        // When the time is over, one more message may be in flight. A stalled machine sends fewer messages.
        let most = number(&trial["params"]["rate"]) / 10 + 2;
        let trips = number(&samples(trial)[0]["latency"]["round_trips"]);
        assert!((1..=most).contains(&trips), "{trips} {trial}");
    }
    let document = bw("--mode latency --block 64 --gap 0,1ms --time 100ms");
    let trips: Vec<u64> =
        trials(&document).iter().map(|trial| number(&samples(trial)[0]["latency"]["round_trips"])).collect();
    assert!(trips[1] <= 100 + 1, "{trips:?}");
    // The gap isn't part of the round trip: together they fit into the time of the run. On a machine this busy, no round
    // trip may be faster than a gap.
    let paused = &samples(trials(&document)[1])[0];
    let (trips, fastest) = (number(&paused["latency"]["round_trips"]), number(&paused["latency"]["min"]));
    assert!(trips * fastest + (trips - 1) * 1_000_000 <= number(&paused["ns"]), "{paused}");
}

/// Coordinated omission is avoided: messages that become due while the answering end is stopped are timed from the
/// moment when they were due.
#[test]
fn an_open_loop_counts_the_stall() {
    const STALL: Duration = Duration::from_millis(300);
    let words = "bw --mode latency --block 64 --rate 1000 --time 900ms --runs 1 --place free --json -";
    let words: Vec<&str> = words.split_whitespace().collect();
    // On a busy machine the window may begin after the stall.
    for _ in 0..5 {
        let mut started = RunningProgram::pipemark(&words);
        let sink = started.end_with(program::Role::Sink);
        thread::sleep(Duration::from_millis(250));
        sink.stop();
        thread::sleep(STALL);
        sink.signal(Signal::CONT);
        let (ended, left) = started.end();
        assert_eq!(left, Vec::<String>::new());
        let document = ended.measured();
        let latency = &samples(only_trial(&document))[0]["latency"];
        // In a closed loop, the stall would lengthen only one round trip.
        if u128::from(number(&latency["p90"])) > STALL.as_nanos() / 3 {
            return;
        }
    }
    panic!("the stall is not in the 90th percentile");
}

#[test]
fn rows_carry_loop_and_wait_policy() {
    let words = "bw --mode latency --link pipe,shm --wait block,spin --rate closed,5000 --block 64 --runs 1 --time 5ms \
                 --place free";
    let words: Vec<&str> = words.split_whitespace().collect();
    let ended = pipemark(&words);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    for word in ["block", "spin", "closed", "5000"] {
        assert!(ended.stdout.contains(word), "no '{word}' in\n{}", ended.stdout);
    }
}

/// In a network namespace with few ports, other processes that try all ports repeatedly find every port that opens.
#[test]
fn other_processes_can_inject_no_bytes() {
    let namespace = if rustix::process::geteuid().is_root() { "-n" } else { "-rn" };
    let flooded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/program/flooded.py");
    for _ in 0..10 {
        let came = tempfile::NamedTempFile::new().unwrap();
        let launcher = ["unshare", namespace, "python3", flooded, came.path().to_str().unwrap(), PIPEMARK];
        let flags = "--link tcp --pairs 2 --block 1000 --verify full --time 10ms --runs 15";
        let ended = bw_under(&launcher, flags);
        if ended.code() == Some(77) || ended.stderr.contains("unshare") {
            report_skip("strangers on TCP", format_args!("no network of one's own here: {}", ended.stderr));
            return;
        }
        assert_eq!(only_trial(&ended.measured())["verified"], true);
        if fs::metadata(came.path()).unwrap().len() > 0 {
            return;
        }
    }
    panic!("no stranger ever found the port");
}

/// The targets of a process's descriptors, with their permissions.
fn descriptors(process: u32) -> Vec<(String, u32)> {
    let directory = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    directory
        .filter_map(|entry| {
            let name = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            Some((name, fs::metadata(entry.path()).ok()?.permissions().mode() & 0o7777))
        })
        .collect()
}

/// During the measurement the link's name is already removed. Before that, only this user could open the link.
#[test]
fn nobody_else_can_open_what_had_a_name() {
    for link in ["fifo", "posix-mq"] {
        let mut started =
            RunningProgram::pipemark(&["bw", "--link", link, "--time", "5s", "--place", "free", "--runs", "1"]);
        let mut seen = Vec::new();
        while seen.len() < 2 && !started.is_over() {
            let all = started.children().into_iter().flat_map(descriptors);
            seen = all.filter(|(name, _)| name.contains("pipemark-") && name.ends_with("(deleted)")).collect();
        }
        assert!(!seen.is_empty() && seen.iter().all(|&(_, mode)| mode == 0o600), "{link}: {seen:?}");
        started.signal(Signal::INT);
        assert_eq!(started.end().1, Vec::<String>::new());
    }
}

#[test]
fn a_sysv_queue_is_this_users() {
    let before = sysv_queues();
    let mut started =
        RunningProgram::pipemark(&["bw", "--link", "sysv-mq", "--time", "5s", "--place", "free", "--runs", "1"]);
    let mut new = Vec::new();
    while new.is_empty() && !started.is_over() {
        new = sysv_queues().into_iter().filter(|queue| !before.contains(queue)).collect();
    }
    assert!(!new.is_empty() && new.iter().all(|&(_, _, mode)| mode == 0o600), "{new:?}");
    started.signal(Signal::INT);
    assert_eq!(started.end().1, Vec::<String>::new());
}

/// The directory of a link's name exists only briefly, so the test polls for it.
#[test]
fn the_directory_of_a_name_is_private() {
    for link in ["fifo", "unix-stream"] {
        let mut seen = 0;
        for _ in 0..10 {
            let words = ["bw", "--link", link, "--pairs", "40", "--time", "5ms", "--place", "free", "--runs", "2"];
            let mut started = RunningProgram::new(&["sh", "-c", "umask 0; exec \"$0\" \"$@\"", PIPEMARK], &words);
            while !started.is_over() {
                for entry in fs::read_dir(started.directory()).unwrap().flatten() {
                    let Ok(about) = entry.metadata() else { continue };
                    assert_eq!((about.mode() & 0o7777, about.is_dir()), (0o700, true), "{entry:?}");
                    seen += 1;
                }
            }
            let (ended, left) = started.end();
            assert_eq!((ended.code(), left), (Some(0), vec![]), "{}", ended.stderr);
            if seen > 0 {
                break;
            }
        }
        assert!(seen > 0, "{link} never had a directory");
    }
}

/// The reason why a link is skipped under a launcher. Panics if the link isn't skipped, or if the pipe trial in the
/// same run is skipped.
fn skip_reason(launcher: &[&str], link: &str) -> String {
    let mut words = launcher.to_vec();
    words.push(PIPEMARK);
    let document = bw_under(&words, &format!("--link {link},pipe --time 2ms")).measured();
    let [one, pipe] = trials(&document)[..] else { panic!("two trials") };
    assert_eq!((&one["status"], &pipe["status"]), (&"skipped".into(), &"ok".into()), "{one}");
    assert!(samples(one).is_empty() && one["verified"].is_null() && one["estimate"].is_null(), "{one}");
    text(one, "reason").to_owned()
}

/// The links that need a call which a system-call filter may forbid.
const FORBIDDEN: [(&str, &str); 6] = [
    ("sysv-mq", "msgget"),
    ("posix-mq", "mq_open"),
    ("process-vm", "process_vm_readv"),
    ("unix-stream", "socket"),
    ("tcp", "socket"),
    ("fifo", "mknodat"),
];

fn assert_forbidden(link: &str, call: &str, error: &str) {
    let reason = skip_reason(&refusing(error, call), link);
    assert!(reason.contains(&format!("--link {link}")) && reason.contains("filter"), "{error}: {reason}");
    // A bare error code would mean that this refusal has no message of its own.
    assert!(!reason.ends_with("(os error 1)") && !reason.ends_with("(os error 38)"), "{error}: {reason}");
}

#[test]
#[ignore = "long"]
fn long_calls_forbidden_by_seccomp_are_skipped_with_a_reason() {
    for (link, call) in FORBIDDEN {
        for error in ["EPERM", "ENOSYS"] {
            assert_forbidden(link, call, error);
        }
    }
}

#[test]
fn calls_forbidden_by_seccomp_are_skipped_with_a_reason() {
    for ((link, call), error) in FORBIDDEN.into_iter().zip(["EPERM", "ENOSYS"].into_iter().cycle()) {
        assert_forbidden(link, call, error);
    }
    // A kernel without TCP/IP returns this error. The filter returns it for all sockets.
    let reason = skip_reason(&refusing("EAFNOSUPPORT", "socket"), "tcp");
    assert!(reason.contains("CONFIG_INET"), "{reason}");
}

#[test]
fn a_run_without_measurable_trials_fails_with_reasons() {
    let mut words = refusing("EPERM", "msgget");
    words.push(PIPEMARK);
    let ended = program::run(&words, &["bw", "--link", "sysv-mq", "--time", "2ms", "--runs", "1", "--place", "free"]);
    assert!(ended.stdout.contains("msgget") && ended.stdout.contains("filter"), "{}", ended.stdout);
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named() {
    unusable_directories_are_named(&["/nonexistent"]);
}

#[test]
#[ignore = "long"]
fn long_directories_that_cannot_be_written_to_are_named() {
    unusable_directories_are_named(&["/proc", "/nonexistent", "/dev/null"]);
}

fn unusable_directories_are_named(directories: &[&str]) {
    for &directory in directories {
        let launcher = ["env", &format!("TMPDIR={directory}")].map(str::to_owned);
        let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
        for link in ["fifo", "unix-stream"] {
            let reason = skip_reason(&launcher, link);
            assert!(reason.contains(directory) && reason.contains("set TMPDIR"), "{reason}");
        }
        // Queues need no directory.
        let mut words = launcher.clone();
        words.push(PIPEMARK);
        let document = bw_under(&words, "--link sysv-mq,posix-mq --time 2ms").measured();
        assert!(trials(&document).into_iter().all(was_measured));
    }
}

#[test]
fn a_limit_on_queues_is_named() {
    let reason = skip_reason(&["prlimit", "--msgqueue=0"], "posix-mq");
    assert!(reason.contains("ulimit -q"), "{reason}");
}

/// The words of a command that starts pipemark as an unprivileged user, from a copy that this user can execute. If the
/// current user has no privileges, only the path of the program.
fn unprivileged(directory: &Path) -> Vec<String> {
    if !rustix::process::geteuid().is_root() {
        return vec![PIPEMARK.to_owned()];
    }
    // Other users may have no access to the build directory.
    let copy = directory.join("pipemark");
    // A process that another test starts may inherit the descriptor of a copy that this process writes, and such a file
    // can't be executed.
    assert!(std::process::Command::new("cp").arg(PIPEMARK).arg(&copy).status().unwrap().success());
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy.to_str().unwrap()];
    words.map(str::to_owned).to_vec()
}

#[test]
fn every_link_runs_without_privileges() {
    let directory = tempfile::tempdir().unwrap();
    let words = unprivileged(directory.path());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let flags = format!("--link {LINKS} --mode throughput,latency --block 20000 --verify full --time 2ms");
    let document = bw_under(&words, &flags).measured();
    let measured = trials(&document).into_iter().filter(|trial| was_measured(trial)).count();
    assert!(measured >= 2 * 8, "only {measured} trials were measured");
    let locked = bw_under(&[&["env", "TMPDIR=/"], &words[..]].concat(), "--link fifo,pipe --time 2ms").measured();
    assert!(text(trials(&locked)[0], "reason").contains("set TMPDIR"), "{}", trials(&locked)[0]);
}

/// The suite `ipc` with short runs and few block sizes.
fn short_suite() -> tempfile::NamedTempFile {
    let suite = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/ipc.toml")).unwrap();
    let short = suite
        .replace("time = \"30ms\"", "time = \"2ms\"")
        .replace("place = [\"same\", \"cross\"]", &format!("place = [{:?}]", placement()))
        .replace("place = \"cross\"", &format!("place = {:?}", placement()))
        .replace("\"64\", \"1k\", \"4k\", \"16k\", \"64k\", \"256k\", \"1m\"", "\"64\", \"64k\"")
        .replace("\"8\", \"64\", \"1k\", \"4k\", \"64k\"", "\"8\", \"64k\"");
    assert!(!short.contains("30ms") && !short.contains("\"same\"") && !short.contains("256k"), "the suite has changed");
    program::file(short.as_bytes(), ".toml")
}

fn measure_suite(launcher: &[String]) {
    let suite = short_suite();
    fs::set_permissions(suite.path(), fs::Permissions::from_mode(0o644)).unwrap();
    let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
    let ended = program::run(&launcher, &["run", suite.path().to_str().unwrap(), "--runs", "1", "--json", "-"]);
    let document = ended.measured();
    assert!(trials(&document).len() > 50);
    for trial in trials(&document) {
        assert!(!was_measured(trial) || trial["verified"] != false, "{trial}");
    }
}

#[test]
fn the_suite_is_measured_without_privileges() {
    let directory = tempfile::tempdir().unwrap();
    measure_suite(&unprivileged(directory.path()));
}

#[test]
#[ignore = "long"]
fn long_the_suite_is_measured_by_this_user() {
    measure_suite(&[PIPEMARK.to_owned()]);
}
