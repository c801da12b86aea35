//! Prints what limits the pipeline that a process is in: `cargo run -p pipemark-watch --example verdict -- PID`.

use std::time::{Duration, Instant};

use pipemark_watch::{PipelineReport, ProcFile, SamplingOptions, Subject, Timeline, Watcher};

fn main() {
    let Some(pid) = std::env::args().nth(1).and_then(|word| word.parse().ok()) else {
        eprintln!("usage: verdict PID");
        std::process::exit(2);
    };
    let options = SamplingOptions {
        touch: true,
        access: ProcFile::Syscall,
        profile: false,
        keeps_stacks: false,
        period: Duration::from_millis(10),
    };
    let mut watcher = Watcher::new(Subject::Processes(vec![pid]), options);
    let mut timeline = Timeline::default();
    for _ in 0..4 {
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            std::thread::sleep(watcher.pause());
            watcher.sample();
        }
        timeline.add(watcher.close_interval());
    }
    let report = PipelineReport::of(&watcher.evidence(timeline));
    println!("{}: {}", report.pipeline, report.verdict.text);
    report.verdict.advice.iter().for_each(|advice| println!("  {advice}"));
}
