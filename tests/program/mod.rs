//! Runs the program as a user does, in an empty directory and with a time limit. Reads the program's document, observes
//! its processes, and lists what it leaves behind.

pub mod history;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

pub const PIPEMARK: &str = env!("CARGO_BIN_EXE_pipemark");

/// A time limit that no test reaches, however slow the machine is.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The environment variable that marks our processes. Children inherit it.
const MARK: &str = "PIPEMARK_TEST_MARK";

/// How the program ended and what it printed.
#[derive(Debug)]
pub struct ProgramOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl ProgramOutput {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Standard output as one JSON document.
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON: {error}\n{self:?}"))
    }

    /// The document of a measurement that must have succeeded.
    pub fn measured(&self) -> Value {
        assert_eq!(self.code(), Some(0), "{}\n{}", self.stderr, self.stdout);
        self.document()
    }
}

/// Runs `pipemark WORDS` to its end; panics if it leaves anything behind.
pub fn pipemark(words: &[&str]) -> ProgramOutput {
    run(&[PIPEMARK], words)
}

/// `pipemark bw FLAGS --json -`: one round of 20 ms on two CPUs unless the flags say otherwise.
pub fn bw(flags: &str) -> Value {
    bw_under(&[PIPEMARK], flags).measured()
}

/// The placement with the shortest runs: pinned ends settle for 10 ms, ends that may move between CPUs for 70 ms.
pub fn placement() -> &'static str {
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) { "cross" } else { "free" }
}

/// [`bw`], started by `launcher`, whose last word is the program; the caller checks the exit code.
pub fn bw_under(launcher: &[&str], flags: &str) -> ProgramOutput {
    let mut words = vec!["bw", "--json", "-"];
    words.extend(flags.split_whitespace());
    let given = |flag: &str| words.contains(&flag);
    let (runs, time) = (given("--runs") || given("--budget"), given("--time") || given("--total"));
    let placed = given("--place");
    for (given, default) in [(runs, ["--runs", "1"]), (time, ["--time", "20ms"]), (placed, ["--place", placement()])] {
        if !given {
            words.extend(default);
        }
    }
    run(launcher, &words)
}

/// Calls `report` until its verdict is neither `cpu` nor `inconclusive`, at most six times. Parallel tests and other
/// programs may cause these verdicts.
pub fn without_contention(mut report: impl FnMut() -> Value) -> Value {
    for _ in 0..5 {
        let report = report();
        if report["verdict"]["kind"] != "cpu" && report["verdict"]["kind"] != "inconclusive" {
            return report;
        }
    }
    report()
}

/// Waits until `happens` returns true; panics with `what` at the time limit.
pub fn eventually(what: impl fmt::Display, mut happens: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happens() {
        assert!(begin.elapsed() < TIMEOUT, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs `launcher WORDS` to its end; panics if it leaves anything behind.
pub fn run(launcher: &[&str], words: &[&str]) -> ProgramOutput {
    let started = RunningProgram::new(launcher, words);
    let (ended, left) = started.end();
    assert_eq!(left, Vec::<String>::new(), "{words:?} left something behind");
    ended
}

/// A running program. Dropping it kills all processes that it started.
pub struct RunningProgram {
    child: Child,
    output: Option<(JoinHandle<String>, JoinHandle<String>)>,
    mark: String,
    directory: TempDir,
    /// Names in /dev/shm before the start.
    before: BTreeSet<String>,
}

impl RunningProgram {
    /// Starts the program in an empty directory, which is also its TMPDIR.
    pub fn new(launcher: &[&str], words: &[&str]) -> RunningProgram {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::Builder::new().prefix("pipemark-test-").tempdir().unwrap();
        // Tests may run the program as another user.
        fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let before = names(Path::new("/dev/shm")).collect();
        let mut child = Command::new(launcher[0])
            .args(&launcher[1..])
            .args(words)
            .env(MARK, &mark)
            .env("TMPDIR", directory.path())
            // Keeps measurements of tests out of the user's history.
            .env("XDG_DATA_HOME", directory.path().join("data"))
            .env_remove("NO_COLOR")
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{launcher:?}: {error}"));
        let output = (drain(child.stdout.take().unwrap()), drain(child.stderr.take().unwrap()));
        RunningProgram { child, output: Some(output), mark, directory, before }
    }

    /// Starts `pipemark WORDS`.
    pub fn pipemark(words: &[&str]) -> RunningProgram {
        RunningProgram::new(&[PIPEMARK], words)
    }

    pub fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// The process id of the program.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The processes that the program has started and not yet reaped, oldest first.
    pub fn children(&self) -> Vec<u32> {
        let process = self.child.id();
        let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        list.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    /// The ids of the program's process and of all descendants.
    pub fn marked(&self) -> Vec<u32> {
        marked(&self.mark)
    }

    /// The working directory of the program.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The ends of the program, once `count` of them have their links. Panics if the program ends first.
    pub fn ends(&mut self, count: usize) -> Vec<End> {
        let begin = Instant::now();
        // Every process also inherits the pipes with which the tests themselves were started.
        let inherited = pipes("self").into_iter().map(|(_, pipe)| pipe).collect();
        loop {
            let ends: Vec<End> =
                self.children().into_iter().filter_map(|process| End::of(process, &inherited)).collect();
            if ends.len() == count {
                return ends;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                let (_, stderr) = self.output.take().unwrap();
                panic!("it was over too early: {status}\n{}", stderr.join().unwrap());
            }
            assert!(begin.elapsed() < TIMEOUT, "there were never {count} ends but {}", ends.len());
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The end with this role, in the first pair of a run.
    pub fn end_with(&mut self, role: Role) -> End {
        self.ends(2).into_iter().find(|end| end.role == role).expect("a pair has both roles")
    }

    /// Waits until the program ends. Also returns what it left behind: processes, files in its directory, shared
    /// memory, System V queues.
    pub fn end(mut self) -> (ProgramOutput, Vec<String>) {
        let begin = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if begin.elapsed() > TIMEOUT => {
                    for process in marked(&self.mark) {
                        send(process, Signal::KILL);
                    }
                    let (stdout, stderr) = self.output.take().unwrap();
                    panic!("it has not exited:\n{}{}", stdout.join().unwrap(), stderr.join().unwrap());
                }
                None => thread::sleep(Duration::from_millis(2)),
            }
        };
        // An end that the kernel or a guard kills takes a moment to disappear.
        let gone = Instant::now();
        let mut processes = marked(&self.mark);
        while !processes.is_empty() && gone.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(2));
            processes = marked(&self.mark);
        }
        let mut left: Vec<String> = processes.iter().map(|process| format!("process {process}")).collect();
        for directory in [self.directory.path(), Path::new("/dev/shm")] {
            left.extend(names(directory).filter(|name| name.contains("pipemark") && !self.before.contains(name)));
        }
        // Remaining processes hold the pipes open, so reading their output would never end.
        for process in processes {
            send(process, Signal::KILL);
        }
        left.extend(remaining_queues());
        let (stdout, stderr) = self.output.take().unwrap();
        (ProgramOutput { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }, left)
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in marked(&self.mark) {
            send(process, Signal::KILL);
        }
    }
}

fn names(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).expect("output is UTF-8")
    })
}

/// The System V queues of pipemark that remain for longer than a moment. Queues of parallel tests are removed sooner.
fn remaining_queues() -> Vec<String> {
    let mut lasting = sysv_queues();
    let begin = Instant::now();
    while !lasting.is_empty() && begin.elapsed() < TIMEOUT {
        thread::sleep(Duration::from_millis(2));
        let now = sysv_queues();
        lasting.retain(|queue| now.contains(queue));
    }
    lasting.iter().map(|(key, number, _)| format!("System V queue {number} with key {key:#x}")).collect()
}

/// Key, number and permissions (octal) of System V queues whose key is one of pipemark's.
pub fn sysv_queues() -> Vec<(i64, u64, u32)> {
    let list = fs::read_to_string("/proc/sysvipc/msg").unwrap_or_default();
    let queue = |line: &str| {
        let mut words = line.split_whitespace();
        let (key, number) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((key, number, u32::from_str_radix(words.next()?, 8).ok()?))
    };
    list.lines().skip(1).filter_map(queue).filter(|&(key, ..): &(i64, _, _)| key >> 28 == 2).collect()
}

/// The names of all POSIX queues; `None` without the right to mount their file system. Listing the queues needs that
/// mount.
pub fn posix_queues() -> Option<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let list = "mount -t mqueue pipemark-test \"$0\" && ls \"$0\"";
    let listed = Command::new("unshare").args(["-m", "sh", "-c", list]).arg(directory.path()).output().ok()?;
    let names = String::from_utf8(listed.stdout).unwrap();
    listed.status.success().then(|| names.lines().map(str::to_owned).collect())
}

/// The words of a command that runs a program under a system-call filter, as in a container. The calls `names` fail
/// with `error`, such as EPERM.
pub fn refusing<'a>(error: &'a str, names: &'a str) -> Vec<&'a str> {
    vec!["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/without.py"), error, names]
}

fn send(process: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(process as i32).unwrap(), signal);
}

/// Whether all threads of a process wait.
pub fn sleeps(process: u32) -> bool {
    let waits = |stat: &Path| fs::read_to_string(stat).is_ok_and(|stat| stat.contains(") S "));
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.flatten().all(|thread| waits(&thread.path().join("stat")))
}

/// All processes with this mark in their environment. A zombie has no environment.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let processes =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes
        .filter(|process| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

/// The open pipes of a process: descriptor and pipe.
fn pipes(process: &str) -> Vec<(u32, String)> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let target = fs::read_link(entry.path()).ok()?.to_str()?.to_owned();
        target.starts_with("pipe:").then_some((number, target))
    });
    all.collect()
}

/// Whether an end sends or receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Source,
    Sink,
}

/// A process that has one side of a link open.
#[derive(Debug, Clone)]
pub struct End {
    pub role: Role,
    pub process: u32,
    link: PathBuf,
}

impl End {
    /// The end that runs in this process; `None` if the process isn't an end or has no link yet.
    fn of(process: u32, inherited: &BTreeSet<String>) -> Option<End> {
        let words = fs::read(format!("/proc/{process}/cmdline")).ok()?;
        words.split(|&byte| byte == 0).any(|word| word == b"__end").then_some(())?;
        let pipes = pipes(&process.to_string());
        let (number, _) = pipes.iter().find(|(number, pipe)| *number > 2 && !inherited.contains(pipe))?;
        let about = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
        let flags = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let role = if flags.trim().ends_with('0') { Role::Sink } else { Role::Source };
        Some(End { role, process, link: format!("/proc/{process}/fd/{number}").into() })
    }

    pub fn signal(&self, signal: Signal) {
        send(self.process, signal);
    }

    /// The fields of the process's /proc/PID/stat from the state on; `None` if it has ended.
    fn stat(&self) -> Option<Vec<String>> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process)).ok()?;
        // The process name before these fields may contain any character.
        Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
    }

    /// Waits until an end that keeps its CPU busy (with delays or spinning) must be in its measured window. Before the
    /// window, an end uses only a few milliseconds of CPU time. Returns false if the end has exited.
    pub fn reaches_window(&self) -> bool {
        while let Some(stat) = self.stat().filter(|stat| stat[0] != "Z") {
            let ticks: u64 = stat[11..13].iter().map(|word| word.parse::<u64>().unwrap()).sum();
            if ticks * 1000 / rustix::param::clock_ticks_per_second() >= 40 {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Stops the process and waits until it has stopped. Returns false if it has ended.
    pub fn stop(&self) -> bool {
        self.signal(Signal::STOP);
        while let Some(stat) = self.stat().filter(|stat| stat[0] != "Z") {
            if stat[0] == "T" {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Opens a second reader and a second writer of the end's link.
    pub fn link(&self) -> io::Result<(File, File)> {
        Ok((File::open(&self.link)?, File::options().write(true).open(&self.link)?))
    }
}

/// Reports what a test skips, and why. `make test` lists all such skips at its end.
pub fn report_skip(what: &str, why: impl fmt::Display) {
    eprintln!("skipped: {what}: {why}");
    if let Some(list) = std::env::var_os("PIPEMARK_SKIPPED") {
        let mut list = File::options().append(true).create(true).open(list).unwrap();
        writeln!(list, "{what}: {}", why.to_string().replace('\n', " ")).unwrap();
    }
}

/// The trials of a document without the memory-copy limit.
pub fn trials(document: &Value) -> Vec<&Value> {
    let all = document["trials"].as_array().expect("a document has trials");
    all.iter().filter(|trial| trial["params"]["link"] != "memory-copy").collect()
}

/// The only trial besides the memory-copy limit.
pub fn only_trial(document: &Value) -> &Value {
    match trials(document)[..] {
        [one] => one,
        ref all => panic!("{} trials", all.len()),
    }
}

/// The runs of a trial.
pub fn samples(trial: &Value) -> &Vec<Value> {
    trial["samples"].as_array().unwrap()
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The CPUs that the program may use.
pub fn allowed_cpus() -> Vec<u64> {
    let host = pipemark(&["list", "machine", "--format", "json"]).measured();
    host["topology"].as_array().unwrap().iter().map(|cpu| number(&cpu["cpu"])).collect()
}

/// A temporary file, removed when dropped.
pub fn file(content: &[u8], suffix: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}
