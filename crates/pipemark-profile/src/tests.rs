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
