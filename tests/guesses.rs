//! The guesses of `pipemark tune`: what runs in their sandbox changes nothing outside, whatever it is.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::program::{PIPEMARK, eventually, refusing, report_skip, run};

const SANDBOX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sandbox.py");

/// What is outside of the sandbox, and must stay as it is.
struct Outside {
    directory: tempfile::TempDir,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    named: UnixListener,
    name: String,
}

impl Outside {
    fn new() -> Outside {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "kept").unwrap();
        fs::create_dir(directory.path().join("inside")).unwrap();
        let unix = UnixListener::bind(directory.path().join("socket")).unwrap();
        let name = directory.path().file_name().unwrap().to_string_lossy().into_owned();
        let named = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        Outside {
            victim: Command::new("sleep").arg("600").spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            directory,
            unix,
            named,
            name,
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Everything that could have changed.
    fn state(&mut self) -> (Vec<String>, String, [i64; 4], bool) {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let metadata = fs::metadata(self.path("file")).unwrap();
        let numbers = [metadata.mode().into(), metadata.uid().into(), metadata.mtime(), metadata.nlink() as i64];
        let is_alive = self.victim.try_wait().unwrap().is_none();
        (names, fs::read_to_string(self.path("file")).unwrap(), numbers, is_alive)
    }

    /// Whether anything arrived at one of the sockets.
    fn was_reached(&self) -> bool {
        let sockets = [self.tcp.as_fd(), self.udp.as_fd(), self.unix.as_fd(), self.named.as_fd()];
        let mut polled = sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Whether a process with this word in its command line runs.
fn runs(word: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.map(|entry| entry.path().join("cmdline"))
        .any(|path| fs::read_to_string(path).is_ok_and(|line| line.contains(word)))
}

/// Whether this machine can confine programs.
fn has_sandbox() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<u32>().ok());
    let is_new = (numbers.next(), numbers.next()) >= (Some(6), Some(12));
    let active = fs::read_to_string("/sys/kernel/security/lsm");
    let found = is_new && !active.is_ok_and(|list| !list.contains("landlock"));
    if !found {
        report_skip("the sandbox of guesses", "it needs Landlock of Linux 6.12");
    }
    found
}

#[test]
fn a_confined_program_changes_nothing_outside() {
    if !has_sandbox() {
        return;
    }
    let mut outside = Outside::new();
    let before = outside.state();
    let ports = [outside.tcp.local_addr().unwrap().port(), outside.udp.local_addr().unwrap().port()];
    let mut command = Command::new(PIPEMARK);
    command.args(["__tune-part", "confined", &outside.path("inside"), "python3", SANDBOX, &outside.path("file")]);
    command.args([outside.victim.id(), ports[0].into(), ports[1].into()].map(|number: u32| number.to_string()));
    command.args([&outside.path("socket"), &outside.name]);
    let mut started =
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let group = Pid::from_child(&started);
    let status = started.wait().unwrap();
    // As after each run: the child that wanted to outlive it is still in the group.
    kill_process_group(group, Signal::KILL).unwrap();
    let ended = started.wait_with_output().unwrap();
    let [printed, errors] = [&ended.stdout, &ended.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!((status.code(), printed.as_str(), errors.as_str()), (Some(0), "", ""));
    eventually("the child has ended", || !runs(&outside.path("file")));
    assert_eq!(outside.state(), before);
    assert!(!outside.was_reached());
    assert_eq!(fs::read_dir(outside.path("inside")).unwrap().count(), 0);
}

/// A program named sort that does harm in a sandbox, takes long with -u, and sorts.
fn hostile_sort(outside: &Outside) -> String {
    let directory = outside.path("inside");
    let (file, victim) = (outside.path("file"), outside.victim.id());
    let script = format!(
        "#!/bin/sh\nif grep -q '^NoNewPrivs:.1' /proc/self/status; then\n\
         {{ echo x >'{file}'; rm -f '{file}'; chmod 777 '{file}'; mkdir '{file}.new'; kill -9 {victim}; }} 2>/dev/null\n\
         sleep 671 >/dev/null 2>&1 &\nfi\n\
         case \"$*\" in *u*) sleep 0.05;; esac\nexec /usr/bin/sort \"$@\"\n"
    );
    let path = format!("{directory}/sort");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    directory
}

/// The whole way, with a program that `tune` takes for one that only reads. It takes about 150 short runs.
#[test]
#[ignore = "long"]
fn long_guesses_are_listed_apart_and_do_no_harm() {
    if !has_sandbox() {
        return;
    }
    let mut outside = Outside::new();
    let path = format!("PATH={}:{}", hostile_sort(&outside), std::env::var("PATH").unwrap());
    let before = outside.state();
    let pipeline = "seq 1000 | sort -u | tail -n 3";
    let words = ["tune", "--budget", "15s", "--shell", "sh", "--json", "-", pipeline];
    let ended = run(&["env", &path, "GUESSED_FOR_NOTHING=1", PIPEMARK], &words);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let result: Value = ended.document();
    let guesses = result["guesses"].as_array().unwrap();
    let without = guesses.iter().find(|guess| guess["text"] == "sort without -u").unwrap_or_else(|| panic!("{result}"));
    assert!(without["gain"].as_f64() > Some(1.5) && without["low"].as_f64() > Some(1.0), "{without}");
    assert_eq!((&without["stage"], &without["id"]), (&2.into(), &"without-option".into()), "{without}");
    // Nothing of that kind is proposed: in another input, lines may be repeated.
    let experiments = result["experiments"].as_array().unwrap();
    let commands = experiments.iter().filter_map(|one| one["command"].as_str());
    for command in commands.chain(result["fastest"]["command"].as_str()) {
        assert!(!command.contains("| sort |") && !command.ends_with("| sort"), "{command}");
    }
    assert_eq!(outside.state(), before);
    assert!(!runs("sleep\x00671"), "what a run started outlived it");
}

#[test]
fn without_a_sandbox_there_are_no_guesses() {
    for (calls, says) in [("landlock_create_ruleset", "no Landlock"), ("seccomp", "seccomp")] {
        let words = ["tune", "--budget", "5s", "--json", "-", "seq 2000 | sort -rn | tail -n 1"];
        let ended = run(&[&refusing("EPERM", calls)[..], &[PIPEMARK]].concat(), &words);
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        let (result, notes) = (ended.document(), ended.document()["notes"].to_string());
        assert!(result["guesses"].as_array().unwrap().is_empty(), "{result}");
        assert!(has_sandbox_note(&notes, says), "{calls}: {notes}");
    }
}

/// Whether the notes give the reason.
fn has_sandbox_note(notes: &str, says: &str) -> bool {
    notes.contains("no guesses: the kernel") && notes.contains(says)
}
