//! When one or two processes of a verb are killed at any time, nothing remains: no process, not even a distant
//! descendant, no file and no queue.

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::program::{PIPEMARK, RunningProgram};
use rustix::process::{Pid, Signal, kill_process};

/// A random number generator (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

/// Repeats `times` times: runs one of `verbs` and kills one or two of the program's own processes.
fn kill_some(times: u64, verbs: &[&[&str]]) {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    let mut random = Random(seed);
    for round in 0..times {
        let words = verbs[random.below(verbs.len() as u64) as usize];
        let mut started = RunningProgram::pipemark(words);
        thread::sleep(Duration::from_micros(random.below(60_000)));
        let two = random.below(2) == 1;
        let mut killed = Vec::new();
        for _ in 0..=u8::from(two) {
            let processes: Vec<u32> = started.marked().into_iter().filter(|process| is_ours(*process)).collect();
            if processes.is_empty() {
                break;
            }
            let process = processes[random.below(processes.len() as u64) as usize];
            let name = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            killed.push(String::from_utf8_lossy(&name).replace('\0', " "));
            let _ = kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL);
            thread::sleep(Duration::from_micros(random.below(3000)));
        }
        // If the program continues after the kills, end it with a signal.
        let begin = Instant::now();
        while !started.is_over() && begin.elapsed() < Duration::from_millis(30) {
            thread::sleep(Duration::from_millis(1));
        }
        if !started.is_over() {
            started.signal(Signal::TERM);
        }
        let (ended, left) = started.end();
        let case = format!("{words:?}, killed {killed:?}, seed {seed}, round {round}");
        assert!(left.is_empty(), "{case}: {left:?}");
        assert!(!ended.stderr.contains("panicked"), "{case}: {}", ended.stderr);
    }
}

fn is_ours(process: u32) -> bool {
    fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe.to_str() == Some(PIPEMARK))
}

const BW: [&str; 9] = ["bw", "--place", "free", "--time", "5ms", "--runs", "20", "--pairs", "2"];

fn links(times: u64) {
    let links = ["fifo", "unix-stream", "sysv-mq", "posix-mq", "shm", "process-vm", "pty", "tcp"];
    let words: Vec<Vec<&str>> = links.iter().map(|link| [&BW[..], &["--link", link]].concat()).collect();
    kill_some(times, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

/// Commands that start background processes and sessions.
const AB: &[&str] =
    &["ab", "--runs", "20", "--", "setsid sh -c 'sleep 50 & sleep 50' & sleep 0.01 | cat", "--", "sleep 50"];

fn ab(times: u64) {
    kill_some(times, &[AB]);
}

const CHAINS: [&[&str]; 2] = [
    &["chain", "--length", "0,3", "--time", "5ms", "--runs", "20", "--place", "free"],
    &["chain", "--length", "2", "--stage", "sh -c 'cat | cat'", "--time", "5ms", "--runs", "20", "--place", "free"],
];

fn chains(times: u64) {
    kill_some(times, &CHAINS);
}

fn lines(times: u64) {
    kill_some(times, &[&["run", "lines", "--scale", "0.01", "--runs", "2"]]);
}

/// One entrant, which leaves a file and starts a process in another session.
fn languages(times: u64) {
    let entrants = tempfile::tempdir().unwrap();
    let directory = entrants.path().join("sleeper");
    fs::create_dir(&directory).unwrap();
    let program = "run = [\"sh\", \"-c\", \"touch $TMPDIR/file; setsid sleep 50 & sleep 50\"]\nabout = \"sleeps\"";
    let form = format!(
        "name = \"Sleeper\"\n[[tools]]\nname = \"sh\"\ntry = [[\"sh\"]]\nversion = [\"-c\", \"echo 1\"]\n\
         install = \"there is one\"\n[build]\ncommands = []\n[idiomatic]\n{program}\n[tuned]\n{program}\n"
    );
    fs::write(directory.join("entrant.toml"), form).unwrap();
    let suite = entrants.path().join("sleep.toml");
    let text = "name = \"sleep\"\ntitle = \"Sleep\"\n[[experiment]]\nname = \"sleep\"\ntitle = \"Sleep\"\n\
                params = { total = 20_000, block = 512, program = \"tuned\", place = \"free\", verify = \"full\" }\n\
                axes = { language = [\"sleeper\"] }\n";
    fs::write(&suite, text).unwrap();
    let words = ["run", suite.to_str().unwrap(), "--entrants", entrants.path().to_str().unwrap(), "--runs", "2"];
    kill_some(times, &[&words]);
}

macro_rules! groups {
    ($($group:ident: $times:literal $short:ident, $long:ident;)*) => {$(
        #[test]
        fn $short() {
            $group($times);
        }

        #[test]
        #[ignore = "soak"]
        fn $long() {
            // PIPEMARK_KILLS sets a smaller number of kills.
            $group(std::env::var("PIPEMARK_KILLS").map_or(1000, |times| times.parse().unwrap()));
        }
    )*};
}

groups! {
    links: 20 nothing_remains_of_links, soak_nothing_remains_of_links;
    ab: 20 nothing_remains_of_ab, soak_nothing_remains_of_ab;
    chains: 20 nothing_remains_of_chains, soak_nothing_remains_of_chains;
    lines: 8 nothing_remains_of_the_lines_suite, soak_nothing_remains_of_the_lines_suite;
    languages: 8 nothing_remains_of_languages, soak_nothing_remains_of_languages;
}
