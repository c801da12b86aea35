//! Links by other programs: every byte checked at odd sizes, every fault found, and nothing left behind, whichever
//! process dies.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PIPEMARK, number, report_skip, samples, trials};

/// The two links that need no library.
const SMALL: [&str; 2] = ["pipe-c", "pipe-python"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("crates/pipemark is in the tree")
}

/// A measurement with the links of the source tree. Returns the exit code, the document and the messages.
fn measure(words: &str) -> (i32, Value, String) {
    let output = Command::new(PIPEMARK)
        .args(words.split_whitespace())
        .args(["--place", "free", "--no-save", "--quiet", "--json", "-"])
        .current_dir(root())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code().unwrap_or(-1), document, message)
}

/// The names of the files in a directory.
fn names_in(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_byte_is_checked_at_odd_sizes() {
    for link in SMALL {
        for mode in ["throughput", "latency"] {
            let words = format!(
                "bw --link {link} --mode {mode} --block 1,7,8,1000,4097,64k,1m --verify full --time 5ms --runs 1"
            );
            let (code, document, message) = measure(&words);
            assert_eq!(code, 0, "{message}");
            for trial in trials(&document) {
                assert_eq!((&trial["status"], &trial["verified"]), (&"ok".into(), &true.into()), "{trial}");
                let sample = &samples(trial)[0];
                assert_eq!(sample["sources"][0]["bytes_in_all"], sample["sinks"][0]["bytes_in_all"], "{trial}");
                assert!(number(&sample["bytes"]) > 0, "{trial}");
                assert_eq!(sample["latency"].is_object(), mode == "latency", "{trial}");
            }
        }
    }
}

#[test]
fn every_fault_is_found() {
    for link in SMALL {
        for (fault, words) in [
            ("flip-5", "block 5"),
            ("drop-5", "block 6 came in its place"),
            ("repeat-5", "block 5 came again"),
            ("reorder-5", "block 6 came in its place"),
        ] {
            let (code, document, message) =
                measure(&format!("bw --link {link}:fault={fault} --block 1000 --verify full --time 5ms --runs 1"));
            assert_eq!(code, 3, "{link} {fault}: {message}");
            let reason = trials(&document)[0]["reason"].as_str().unwrap_or_default().to_owned();
            assert!(reason.contains(words), "{link} {fault}: {reason}");
        }
        // Without a comparison of the bytes, a dropped block is still missing in the count.
        let (code, document, _) = measure(&format!("bw --link {link}:fault=drop-5 --block 1000 --time 5ms --runs 1"));
        assert_eq!(code, 3, "{document}");
    }
}

#[test]
fn unknown_links_and_options_are_refused() {
    for (words, wanted) in [
        ("bw --link pipee", "did you mean pipe?"),
        ("bw --link pipe-c:size=7", "has no option 'size'"),
        ("bw --link pipe-c:fault=lose-5", "'lose-5' is not a fault"),
        ("bw --link pipe-c --capacity 1m", "omit --capacity"),
        ("bw --link pipe-c --send splice", "use write"),
        ("bw --link pipe-c --total 1m", "use --time"),
        ("bw --link pipe --links links", "omit it"),
        ("bw --link pipe --readers 2", "needs a link by other programs"),
        ("list contract", "--write DIR"),
    ] {
        let output = Command::new(PIPEMARK).args(words.split(' ')).current_dir(root()).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words}: {message}");
        assert!(message.contains(wanted), "{words}: {message}");
    }
}

#[test]
fn a_link_that_cannot_do_it_is_skipped_with_a_reason() {
    for (words, wanted) in [
        ("bw --link pipe-c --wait spin", "can't wait by --wait spin"),
        ("latency --link null-c", "no way back"),
        ("bw --link pipe-c --readers 2", "at most 1 receiver"),
    ] {
        let (_, document, _) = measure(&format!("{words} --runs 1 --time 5ms"));
        let trial = &trials(&document)[0];
        assert_eq!(trial["status"], "skipped", "{trial}");
        assert!(trial["reason"].as_str().unwrap_or_default().contains(wanted), "{trial}");
    }
}

#[test]
fn a_link_that_loses_boundaries_must_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("links/pieces");
    fs::create_dir_all(&own).unwrap();
    fs::copy(root().join("links/pipe-c/pipe.c"), own.join("pipe.c")).unwrap();
    let description = fs::read_to_string(root().join("links/pipe-c/link.toml")).unwrap();
    fs::write(own.join("link.toml"), description.replace("boundaries = \"lost\"\n", "")).unwrap();
    let words = "bw --link pieces --block 1m --verify full --time 5ms --runs 1 --no-save --quiet --json -";
    let output = Command::new(PIPEMARK).args(words.split(' ')).current_dir(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reason = trials(&document)[0]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("the link keeps no boundaries"), "{reason}");
}

#[test]
fn peak_memory_is_that_of_the_end() {
    let (code, document, message) = measure("bw --link pipe-c --time 5ms --runs 1");
    assert_eq!(code, 0, "{message}");
    let sample = &samples(trials(&document)[0])[0];
    // The C program needs far less than pipemark, which starts it.
    assert!((1..8 << 20).contains(&number(&sample["sinks"][0]["max_rss"])), "{sample}");
}

#[test]
fn nothing_is_left_whoever_dies() {
    for victim in ["sender0", "receiver0", "pipemark"] {
        kill_during_a_run("pipe-c", victim);
    }
}

/// Kills `victim` during a run of `link`: an end, pipemark itself, `broker`, or `program` for a program of both ends.
fn kill_during_a_run(link: &str, victim: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let words = format!("bw --link {link} --block 1000 --time 20s --runs 1 --place free --no-save --quiet --json -");
    let mut running = Command::new(PIPEMARK)
        .args(words.split(' '))
        .current_dir(root())
        .env("TMPDIR", temporary.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let run = format!("PIPEMARK_LINK={}", temporary.path().display());
    let role = |of: &dyn Fn(&str) -> String| {
        let environment = of("environ");
        let role = environment.split_once("PIPEMARK_ROLE=").and_then(|(_, rest)| rest.split('\0').next());
        let own = environment.contains(&run) && !of("cmdline").contains("__stage");
        own.then(|| role.unwrap_or("program or broker").to_owned())
    };
    let pid = match victim {
        "pipemark" => {
            wait_for_child(running.id(), |of| role(of).is_some());
            running.id()
        }
        "broker" | "program" => wait_for_child(running.id(), |of| role(of).is_some_and(|role| role.contains(victim))),
        end => wait_for_child(running.id(), |of| role(of).is_some_and(|role| role == end)),
    };
    let names = names_in(temporary.path());
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    let status = running.wait().unwrap();
    if victim != "pipemark" {
        assert_eq!(status.code(), Some(1), "{link} without its {victim}");
    }
    let begin = Instant::now();
    let remains = || {
        let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&run)
        });
        let shared =
            names_in(Path::new("/dev/shm")).into_iter().filter(|name| names.iter().any(|own| name.contains(own)));
        let processes = processes.map(|entry| format!("process {}", entry.file_name().display()));
        names_in(temporary.path()).into_iter().chain(shared).chain(processes).collect::<Vec<String>>()
    };
    while !remains().is_empty() && begin.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(remains(), [""; 0], "{link} without its {victim}");
}

/// The pid of the process that is the end `role` of a run of `pipemark`, once it runs its own program.
fn wait_for_end(pipemark: u32, role: &str) -> u32 {
    let role = format!("PIPEMARK_ROLE={role}\0");
    wait_for_child(pipemark, |of| of("environ").contains(&role) && !of("cmdline").contains("__stage"))
}

/// The pid of the first child of `pipemark` whose files in /proc fit.
fn wait_for_child(pipemark: u32, fits: impl Fn(&dyn Fn(&str) -> String) -> bool) -> u32 {
    let begin = Instant::now();
    // The link may have to be built first.
    while begin.elapsed() < Duration::from_secs(200) {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let of = |file: &str| {
                let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            let stat = of("stat");
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
            if parent == Some(pipemark) && fits(&of) {
                return pid;
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("no such process was started");
}

#[test]
fn a_broker_that_dies_ends_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("links/with-broker");
    fs::create_dir_all(&own).unwrap();
    fs::copy(root().join("links/pipe-c/pipe.c"), own.join("pipe.c")).unwrap();
    let description = fs::read_to_string(root().join("links/pipe-c/link.toml")).unwrap();
    let broker =
        "\n[broker]\nrun = [\"sh\", \"-c\", \"touch {run}/ready; exec sleep 1000\"]\nready = \"{run}/ready\"\n";
    fs::write(own.join("link.toml"), description + broker).unwrap();
    let words = "bw --link with-broker --time 20s --runs 1 --place free --no-save --quiet --json -";
    let mut running = Command::new(PIPEMARK)
        .args(words.split(' '))
        .current_dir(directory.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for_end(running.id(), "sender0");
    let broker = wait_for_child(running.id(), |of| of("cmdline").starts_with("sleep\x001000"));
    assert!(Command::new("kill").args(["-9", &broker.to_string()]).status().unwrap().success());
    let mut document = String::new();
    std::io::Read::read_to_string(&mut running.stdout.take().unwrap(), &mut document).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(1));
    let document: Value = serde_json::from_str(&document).unwrap();
    let reason = trials(&document)[0]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("the broker was killed"), "{reason}");
}

#[test]
fn the_reference_code_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["list", "contract", "--write", directory.path().to_str().unwrap()];
    let output = Command::new(PIPEMARK).args(words).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).lines().all(|file| Path::new(file).is_file()));
    assert!(directory.path().join("pipemark_link.h").is_file());
}

/// The links of the source tree whose libraries are here, and their descriptions; those without a transfer are omitted.
fn installed() -> Vec<(String, String)> {
    let output =
        Command::new(PIPEMARK).args(["list", "links", "--format", "csv"]).current_dir(root()).output().unwrap();
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|known| known == name).unwrap();
    let (name, missing) = (column("name"), column("missing"));
    let mut here = Vec::new();
    for row in reader.records().map(Result::unwrap) {
        let (link, reason) = (&row[name], &row[missing]);
        let own = root().join("links").join(link);
        if !own.is_dir() || link.starts_with("null-") {
            continue;
        }
        match reason {
            "" => here.push((link.to_owned(), fs::read_to_string(own.join("link.toml")).unwrap())),
            reason => report_skip(&format!("the link {link}"), reason),
        }
    }
    here
}

#[test]
#[ignore = "long"]
fn long_nothing_is_left_of_any_installed_link() {
    for (link, description) in installed() {
        let mut victims = vec!["pipemark"];
        victims.extend(if description.contains("[both]") { &["program"][..] } else { &["sender0", "receiver0"] });
        victims.extend(description.contains("[broker]").then_some("broker"));
        victims.iter().for_each(|victim| kill_during_a_run(&link, victim));
    }
}

/// Each link whose library is here and that can have several ends, with four senders, then with four receivers.
#[test]
#[ignore = "long"]
fn long_several_ends_of_each_installed_link() {
    for (link, description) in installed() {
        let pubsub = if link == "redis" { ":pattern=pubsub" } else { "" };
        for (key, words) in [("senders", "--writers 4".to_owned()), ("receivers", "--readers 4".to_owned())] {
            if !description.contains(&format!("\n{key} = ")) {
                continue;
            }
            let words =
                format!("bw --link {link}{pubsub} {words} --block 8,1000,64k --verify full --time 5ms --runs 1");
            let (code, document, message) = measure(&words);
            assert_eq!(code, 0, "{link}: {message}");
            for trial in trials(&document) {
                assert_eq!((&trial["status"], &trial["verified"]), (&"ok".into(), &true.into()), "{trial}");
                let sample = &samples(trial)[0];
                let all = |ends: &str| {
                    sample[ends].as_array().unwrap().iter().map(|end| number(&end["bytes_in_all"])).sum::<u64>()
                };
                assert_eq!(all("sinks"), all("sources") * if key == "receivers" { 4 } else { 1 }, "{trial}");
            }
        }
    }
}

/// Each link whose library is here, at sizes up to its limit, in both modes, with each fault.
#[test]
#[ignore = "long"]
fn long_each_installed_link() {
    for (link, description) in installed() {
        let variants = variants(&description, &link);
        for link in &variants {
            for mode in ["throughput", "latency"] {
                let words = format!(
                    "bw --link {link} --mode {mode} --block 8,13,1000,64k,1m --verify full --time 5ms --runs 1"
                );
                let (code, document, message) = measure(&words);
                assert_eq!(code, 0, "{link}: {message}");
                for trial in trials(&document) {
                    assert_eq!((&trial["status"], &trial["verified"]), (&"ok".into(), &true.into()), "{trial}");
                }
            }
            for fault in ["flip-5", "drop-5", "repeat-5", "reorder-5"] {
                let words = format!("bw --link {link}:fault={fault} --block 1000 --verify full --time 5ms --runs 1");
                let (code, document, message) = measure(&words);
                assert_eq!(code, 3, "{link} {fault}: {message} {}", trials(&document)[0]["reason"]);
            }
        }
    }
}

/// The link with each value of each option that isn't a number.
fn variants(description: &str, link: &str) -> Vec<String> {
    let options = description.split("[option]").nth(1).unwrap_or_default().split("\n[").next().unwrap_or_default();
    let mut all = vec![link.to_owned()];
    for (key, values) in options.lines().filter_map(|line| line.split_once(" = ")) {
        let values = values.trim_matches(['[', ']']).split(", ").map(|value| value.trim_matches('"'));
        let words = values.skip(1).filter(|value| !value.starts_with(|c: char| c.is_ascii_digit()));
        all.extend(words.map(|value| format!("{link}:{key}={value}")));
    }
    all
}
