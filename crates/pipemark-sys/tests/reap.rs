//! Reaping children, in a separate process. In a process with other tests, the children of those tests would be reaped
//! too.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pipemark_sys::reap::{Reap, reap};

#[test]
fn children_are_reaped_individually() {
    let exe = std::env::current_exe().unwrap();
    let test = Command::new(exe).args(["--exact", "children_of_this_process", "--ignored"]).output().unwrap();
    let text = String::from_utf8_lossy(&test.stdout);
    assert!(test.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "reaps the children of other tests: run by children_are_reaped_individually"]
fn children_of_this_process() {
    assert!(matches!(reap().unwrap(), Reap::NoChildren));
    let shell = |script: &str| Command::new("sh").args(["-c", script]).spawn().unwrap().id();
    let greedy = shell("x=$(head -c 30000000 /dev/zero | tr '\\0' x); exit 3");
    let modest = shell("exec sleep 0.2");
    let mut ended = Vec::new();
    let begin = Instant::now();
    loop {
        match reap().unwrap() {
            Reap::Ended(reaped) => ended.push(reaped),
            Reap::Running if begin.elapsed() > Duration::from_secs(60) => panic!("a child has not exited"),
            Reap::Running => sleep(Duration::from_millis(1)),
            Reap::NoChildren => break,
        }
    }
    let of = |pid: u32| ended.iter().find(|reaped| reaped.pid == pid).unwrap();
    assert_eq!(ended.len(), 2);
    assert_eq!(of(greedy).status.code(), Some(3));
    assert!(of(modest).status.success());
    assert!(of(greedy).max_rss > 30_000_000, "{:?}", of(greedy));
    assert!(of(modest).max_rss < of(greedy).max_rss, "one child's peak is not the other's");
}
