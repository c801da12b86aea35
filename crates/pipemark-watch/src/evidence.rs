//! What a watcher has seen, as evidence.

use pipemark_causes::evidence::Arrivals;
use pipemark_causes::{PipeEvidence, PipelineEvidence, StageEvidence, Timeline};
use pipemark_model::neutral;

use crate::sampler::{Subject, WatchedPipe, WatchedStage, Watcher};

impl Watcher {
    /// What has been seen so far, with the counts of these intervals.
    pub fn evidence(&self, timeline: Timeline) -> PipelineEvidence {
        PipelineEvidence {
            pipeline: None,
            typed: self.typed.clone(),
            typed_elsewhere: self.typed_elsewhere,
            shell: self.shell.clone(),
            started: matches!(self.subject, Subject::Child(_)),
            alive: self.is_alive(),
            exit_code: None,
            elapsed: self.elapsed().as_secs_f64(),
            own_seconds: self.own_cpu() * self.elapsed().as_secs_f64(),
            first_scan: self.first_scan().as_secs_f64(),
            sampled_less: self.ceiling_that_limits(),
            access: self.access(),
            has_proc: std::path::Path::new("/proc/self/stat").exists(),
            limits: self.limits,
            stages: self.stages.iter().map(stage).collect(),
            pipes: self.pipes.iter().map(pipe).collect(),
            cycle: self.cycle.clone(),
            timeline,
        }
    }
}

fn stage(stage: &WatchedStage) -> StageEvidence {
    let arrived = &stage.socket.arrived;
    StageEvidence {
        name: neutral(&stage.name),
        command: stage.command.clone(),
        words: stage.words.clone(),
        pids: stage.pids.clone(),
        processes: stage.processes,
        threads: stage.threads,
        reads_pipe: !stage.ins.is_empty(),
        writes_pipe: !stage.outs.is_empty(),
        uncounted: stage.uncounted,
        hidden: stage.hidden,
        waits_for: stage.waits_for.map(str::to_owned),
        cpus: stage.cpus.clone(),
        progress: stage.progress,
        tracer: stage.tracer.as_deref().map(neutral),
        frozen: stage.frozen,
        collates: stage.collates,
        language: stage.language.map(str::to_owned),
        low_priority: stage.low_priority.clone(),
        locked_by: stage.locked_by.clone(),
        reads_others: stage.reads_others,
        writes_others: stage.writes_others,
        silent: stage.silent.map(|silent| silent.as_secs_f64()),
        held_bytes: stage.held_bytes,
        wrote_before: stage.wrote_before,
        arrived: Arrivals { bytes: arrived.bytes(), increases: arrived.increases },
        arrived_ever: Arrivals { bytes: arrived.all_bytes(), increases: arrived.all_increases },
        peer: stage.peer.clone(),
    }
}

fn pipe(pipe: &WatchedPipe) -> PipeEvidence {
    PipeEvidence {
        from: pipe.from,
        to: pipe.to,
        id: (pipe.id.0, pipe.id.1),
        is_socket: pipe.id.is_socket(),
        capacity: pipe.capacity,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{ProcFile, SamplingOptions};

    #[test]
    fn time_after_the_last_reading_of_the_counters_is_not_silence() {
        let options = SamplingOptions { touch: false, access: ProcFile::Syscall, period: Duration::from_millis(1) };
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut watcher = Watcher::new(Subject::Processes(vec![child.id()]), options);
        (0..3).for_each(|_| watcher.sample());
        watcher.close_interval();
        child.kill().unwrap();
        child.wait().unwrap();
        let silence = || watcher.evidence(Timeline::default()).stages[0].silent;
        let before = silence();
        std::thread::sleep(Duration::from_millis(5));
        assert!(before.is_some() && silence() == before);
    }
}
