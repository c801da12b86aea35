//! Makes the report on a pipeline from what was seen.

use pipemark_model::{Watched, neutral};
use pipemark_proc::state::ThreadState;
use pipemark_proc::thread::ProcFile;
use pipemark_shell::shown_command;

use crate::causes;
use crate::commands;
use crate::evidence::PipelineEvidence;
use crate::exact_text::hex;
use crate::figures::PipelineFigures;
use crate::interval::Interval;
use crate::phases::phases;
use crate::recorded::Recorded;
use crate::report::{PipelineReport, PipelineVerdict};
use crate::stage_figures::{StageFigures, StageMoment};
use crate::timeline::Timeline;
use crate::verdict;

/// If the error of a stage's sampled shares is larger than this, the samples are reported as rough.
const MAX_SAMPLING_ERROR: f64 = 0.05;

/// A pipeline that takes longer, in seconds, isn't run many times.
const MAX_REPEATED_SECONDS: f64 = 20.0;

impl PipelineReport {
    /// Converts the report to the form in which result files store it.
    ///
    /// # Errors
    /// When a figure is not a number.
    pub fn record(&self) -> serde_json::Result<Watched> {
        serde_json::value::to_raw_value(self).map(Watched)
    }

    /// Reads the report from the form in which result files store it.
    ///
    /// # Errors
    /// When the result file has another form.
    pub fn from_record(watched: &Watched) -> serde_json::Result<PipelineReport> {
        serde_json::from_str(watched.0.get())
    }

    /// The report on all that was seen.
    pub fn of(evidence: &PipelineEvidence) -> PipelineReport {
        let figures = PipelineFigures::of(evidence, &evidence.timeline.total());
        let phases = if figures.cycle.is_some() { Vec::new() } else { phases(evidence) };
        let longest = phases.iter().max_by(|a, b| (a.end - a.begin).total_cmp(&(b.end - b.begin)));
        let verdict = match longest {
            Some(phase) if phases.len() > 1 => phase.verdict.clone(),
            _ if figures.stages.is_empty() && !evidence.has_proc => PipelineVerdict::unknown(
                "no /proc",
                "Nothing to sample: /proc is not mounted; as root: mount -t proc proc /proc",
            ),
            _ if figures.stages.is_empty() && evidence.alive => verdict::too_short(figures.samples),
            _ => verdict::verdict(&figures),
        };
        let verdict = match evidence.exit_code {
            Some(code) => verdict::of_failed(verdict, code),
            None => verdict,
        };
        let is_repeatable = evidence.exit_code == Some(0) && (0.1..=MAX_REPEATED_SECONDS).contains(&figures.seconds);
        let experiments = is_repeatable.then(|| commands::experiments(&figures)).flatten();
        let names = || figures.stages.iter().map(|stage| stage.name.as_str()).collect::<Vec<_>>().join(" | ");
        let given = evidence.pipeline.as_ref();
        PipelineReport {
            schema: "pipemark-why/1".to_owned(),
            pipeline: given.map_or_else(names, |text| shown_command(text).into_owned()),
            pipeline_hex: given.filter(|text| std::str::from_utf8(text).is_err()).map(|text| hex(text)),
            notes: notes(evidence, &figures, &verdict),
            verdict,
            experiments,
            phases: if phases.len() > 1 { phases } else { Vec::new() },
            seconds: figures.seconds,
            samples: figures.samples,
            samples_per_second: f64::from(figures.samples) / figures.seconds.max(1e-3),
            access: evidence.access,
            own_cpu: evidence.own_seconds / evidence.elapsed.max(1e-3),
            first_scan: evidence.first_scan,
            stages: figures.stages.to_form(),
            pipes: figures.pipes.to_form(),
            places: figures.places,
        }
    }

    /// Adds each stage's activity over time.
    pub fn add_moments(&mut self, timeline: &Timeline) {
        let round = |number: f64| (number * 1e3).round() / 1e3;
        let moment = |interval: &Interval, place: usize| {
            let seen: u32 = interval.stages.get(place)?.states.iter().sum();
            let share = |state| f64::from(interval.stages[place].states[state as usize]) / f64::from(seen.max(1));
            let (starved, blocked) = (round(share(ThreadState::Starved)), round(share(ThreadState::Blocked)));
            let seconds = round(interval.begin + interval.seconds / 2.0);
            let unknown = share(ThreadState::Unknown);
            let busy = round((1.0 - starved - blocked - unknown).max(0.0));
            (seen > 0).then_some(StageMoment { seconds, busy, starved, blocked })
        };
        for (stage, &place) in self.stages.iter_mut().zip(&self.places) {
            stage.moments = timeline.intervals.iter().filter_map(|interval| moment(interval, place)).collect();
        }
    }

    /// The busy share of each stage in each of the last `count` intervals, from 0 to 1.
    pub fn history(&self, timeline: &Timeline, count: usize) -> Vec<Vec<f64>> {
        let recent = &timeline.intervals[timeline.intervals.len().saturating_sub(count)..];
        self.places.iter().map(|&place| recent.iter().map(|interval| interval.busy(place)).collect()).collect()
    }
}

fn notes(evidence: &PipelineEvidence, figures: &PipelineFigures, verdict: &PipelineVerdict) -> Vec<String> {
    let mut notes = Vec::new();
    match evidence.access {
        ProcFile::Syscall => {}
        ProcFile::Wchan => notes.push(
            "/proc/PID/syscall is unreadable here (kernel.yama.ptrace_scope), so pipemark reads /proc/PID/wchan, which shows less about waits in poll and splice; for full detail, start the pipeline with 'pipemark why', or run pipemark as root"
                .to_owned(),
        ),
        ProcFile::Stat => notes.push(
            "here, pipemark sees only whether a thread runs or sleeps, and infers the rest; to see more, run pipemark as the pipeline's user, or as root"
                .to_owned(),
        ),
    }
    if let (false, [alone]) = (evidence.started, &figures.stages[..])
        && evidence.pipes.is_empty()
        && !alone.hidden
    {
        notes.push(format!("no pipe connects {} to another process", alone.name));
    }
    let hidden = figures.stages.iter().filter(|stage| stage.hidden);
    let hidden: Vec<String> = hidden.map(|stage| verdict::name(figures, stage.number)).collect();
    if !hidden.is_empty() {
        notes.push(format!(
            "{}: another user's process; pipemark sees only whether it runs or sleeps; run pipemark as root to see more",
            hidden.join(", ")
        ));
    }
    let less = match (evidence.sampled_less, evidence.counted_less) {
        (Some(ceiling), Some(_)) => Some(("samples and reads counters", ceiling)),
        (Some(ceiling), None) => Some(("samples", ceiling)),
        (None, Some(ceiling)) => Some(("reads counters", ceiling)),
        (None, None) => None,
    };
    if let Some((what, ceiling)) = less {
        notes.push(format!(
            "pipemark {what} less often than it could, to use at most {:.0} % of one CPU itself over 10 s",
            ceiling * 100.0
        ));
    }
    // The cause says "computing" and no more, so what would say more is of use.
    if let Some(reason) = evidence.unprofiled.as_ref().filter(|_| verdict.cause == "computing") {
        notes.push(format!("functions weren't sampled: {}", neutral(reason)));
    }
    let error = |stage: &StageFigures| stage.sampling_error.filter(|&error| error > MAX_SAMPLING_ERROR);
    let rough = figures.stages.iter().filter_map(|stage| Some((error(stage)?, stage.number)));
    if let Some((error, number)) = rough.max_by(|a, b| a.0.total_cmp(&b.0)) {
        notes.push(format!(
            "samples are rough; shares corrected by kernel counters ({} by {:.0} percentage points)",
            verdict::name(figures, number),
            error * 100.0
        ));
    }
    notes.extend(causes::stages_that_keep_output(figures).filter(|stage| Some(stage.number) != verdict.stage).map(
        |stage| {
            format!(
                "{} keeps its output until a buffer is full or its input ends: nothing written for {:.1} s",
                verdict::name(figures, stage.number),
                stage.seconds_silent.unwrap_or(0.0)
            )
        },
    ));
    notes
}
