//! Real programs, profiled.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Profile, Profiler, TimeLimit, WorkKind, unavailable};

/// Ends the program that it started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Samples a command until it ends or has this number of samples. `None` if sampling isn't permitted here.
fn profile(command: &mut Command, most: u32) -> Option<Profile> {
    if let Some(reason) = unavailable() {
        eprintln!("skipped: {reason}");
        return None;
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    let pid = running.0.id();
    let mut profiler = Profiler::default();
    let end = Instant::now() + Duration::from_secs(20);
    let mut samples = 0;
    while Instant::now() < end && samples < most && running.0.try_wait().unwrap().is_none() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let threads: Vec<(usize, u32)> =
            tasks.filter_map(|task| Some((0, task.file_name().to_str()?.parse().ok()?))).collect();
        profiler.follow(&threads, &TimeLimit::none());
        samples = profiler.samples(0);
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(running);
    Some(profiler.finish(|_| program.clone(), true, &TimeLimit::none()).remove(&0).expect("samples"))
}

fn kind_of(mut command: Command, most: u32) -> Option<WorkKind> {
    let profile = profile(&mut command, most)?;
    Some(profile.kinds.first().expect("a kind of work").kind)
}

fn shell(text: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", text]);
    command
}

#[test]
fn kinds_of_other_programs() {
    let cases = [
        ("exec gzip -9 </dev/urandom", WorkKind::Compression),
        ("exec sha256sum /dev/zero", WorkKind::Hashing),
        ("exec perl -e '$x += $_ % 7 while $_++ < 1e9'", WorkKind::Interpreting),
        ("exec dd if=/dev/zero of=/dev/null bs=1", WorkKind::SystemCalls),
    ];
    for (command, expected) in cases {
        let Some(kind) = kind_of(shell(command), 60) else { return };
        assert_eq!(kind, expected, "{command}");
    }
}

/// Compiles a program, or returns `None` if there is no such compiler.
fn compiled(
    directory: &std::path::Path,
    compiler: &str,
    options: &[&str],
    source: &str,
    text: &str,
) -> Option<Command> {
    let (source, program) = (directory.join(source), directory.join("program"));
    fs::write(&source, text).unwrap();
    let done = Command::new(compiler).args(options).arg(&source).arg("-o").arg(&program).output();
    match done {
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
        Err(_) => {
            eprintln!("skipped: no {compiler}");
            return None;
        }
    }
    Some(Command::new(program))
}

#[test]
fn programs_without_optimisation_are_recognised() {
    // Several functions, which no compiler joins.
    let c = "
        static unsigned table[4096], sum;
        #define FUNCTION(name, change) __attribute__((noinline)) static unsigned name(unsigned n) { \\
            unsigned all = 0; for (unsigned i = 0; i < 64; i++) { unsigned x = table[(n + i) % 4096]; change; all += x; } return all; }
        FUNCTION(first, x = x * 3 + n) FUNCTION(second, x ^= x >> 3) FUNCTION(third, if (x % 3) x -= i) FUNCTION(fourth, table[n % 4096] = x)
        int main(void) { for (unsigned n = 0; n < 400000000; n++) sum += first(n) + second(n) + third(n) + fourth(n); return sum; }";
    let rust = "fn main() { let all: Vec<u64> = (1..2_000_000).collect(); let mut sum = 0u64;
        for round in 0..u64::MAX { for (at, one) in all.iter().enumerate() { sum = sum.wrapping_add(one ^ round ^ all[at / 2]); } }
        println!(\"{sum}\"); }";
    let cases = [
        ("gcc", &["-O0"][..], "a.c", c, true),
        ("gcc", &["-O2", "-fno-omit-frame-pointer"], "a.c", c, false),
        (
            "g++",
            &["-O0"],
            "a.cpp",
            "#include <vector>
            int main() { std::vector<int> all(1000); long sum = 0;
                for (long round = 0; round < 100000000; round++) for (int one : all) sum += one + all[round % 1000];
                return sum; }",
            true,
        ),
        ("rustc", &[], "a.rs", rust, true),
    ];
    for (compiler, options, source, text, expected) in cases {
        let directory = tempfile::tempdir().unwrap();
        let Some(mut command) = compiled(directory.path(), compiler, options, source, text) else { continue };
        let Some(profile) = profile(&mut command, 60) else { return };
        assert_eq!(profile.unoptimised, expected, "{compiler} {options:?}: {:?}", profile.functions);
    }
}
