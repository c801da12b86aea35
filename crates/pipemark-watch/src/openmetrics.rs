//! `watch --openmetrics`: the latest figures of a pipeline for Prometheus, in a file that is replaced as a whole, or served
//! on a UNIX socket.

mod socket;

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use pipemark_causes::{PipelineReport, StageRecord};
use pipemark_console::{Destination, ExitError, say_error};
use pipemark_show::Metrics;

use socket::MetricsSocket;

/// The longest text of a label, in characters.
const MAX_LABEL: usize = 120;

/// Where figures go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsTarget {
    File(Destination),
    /// A UNIX socket that speaks HTTP.
    Socket(PathBuf),
}

impl FromStr for MetricsTarget {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix("unix:") {
            Some(path) => MetricsTarget::Socket(path.into()),
            None => MetricsTarget::File(text.parse()?),
        })
    }
}

/// Publishes the figures of a pipeline while it is watched.
pub struct Exporter {
    target: OpenTarget,
    /// The error of the last attempt, so that each is printed once.
    error: Option<String>,
}

enum OpenTarget {
    File(Destination),
    Socket(MetricsSocket),
}

impl Exporter {
    /// Opens the socket, or checks that the file can be written.
    ///
    /// # Errors
    /// If that fails.
    pub fn open(target: &MetricsTarget) -> Result<Exporter, ExitError> {
        let target = match target {
            MetricsTarget::File(destination) => {
                destination.check("OpenMetrics")?;
                // To open it waits for a reader.
                if destination.is_fifo() {
                    return Err(ExitError::usage(format_args!(
                        "{destination} is a FIFO, but --openmetrics needs a file or unix:SOCKET"
                    )));
                }
                OpenTarget::File(destination.clone())
            }
            MetricsTarget::Socket(path) => OpenTarget::Socket(MetricsSocket::open(path)?),
        };
        Ok(Exporter { target, error: None })
    }

    /// Publishes the figures of a report. A file that can't be written now is written next time.
    pub fn publish(&mut self, report: &PipelineReport) {
        self.put(metrics(report));
    }

    /// Publishes that nothing is watched any more.
    pub fn end(&mut self) {
        self.put(ended());
    }

    fn put(&mut self, text: io::Result<String>) {
        let outcome = match &self.target {
            OpenTarget::File(destination) => destination.write_transient("OpenMetrics", text).map_err(ExitError::from),
            OpenTarget::Socket(socket) => text.map(|text| socket.set(text)).map_err(ExitError::failed),
        };
        let error = outcome.as_ref().err().map(ToString::to_string);
        if let Err(stop) = outcome
            && error != self.error
        {
            say_error(stop);
        }
        self.error = error;
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64().floor())
}

fn ended() -> io::Result<String> {
    let mut out = Metrics::default();
    watching(&mut out, &[], false)?;
    Ok(out.text())
}

fn watching(out: &mut Metrics, labels: &[(&str, &str)], is_watched: bool) -> io::Result<()> {
    out.family("watch_running", "", "Whether the pipeline is watched (1) or watching has ended (0).");
    out.sample("watch_running", labels, f64::from(u8::from(is_watched)))?;
    out.family("watch_timestamp_seconds", "seconds", "When these figures were made.");
    out.sample("watch_timestamp_seconds", labels, now())
}

/// The figures of a report as OpenMetrics.
fn metrics(report: &PipelineReport) -> io::Result<String> {
    let mut out = Metrics::default();
    let pipeline = cut(&report.pipeline);
    let whole = [("pipeline", &*pipeline)];
    watching(&mut out, &whole, true)?;
    out.family("watch_own_cpus", "", "CPUs that pipemark itself uses.");
    out.sample("watch_own_cpus", &whole, report.own_cpu)?;

    let numbers: Vec<(String, String)> =
        report.stages.iter().map(|stage| (stage.number.to_string(), cut(&stage.name))).collect();
    let mut of_stages = |name: &str, unit: &str, help: &str, figure: &dyn Fn(&StageRecord) -> Option<f64>| {
        let figures = report.stages.iter().zip(&numbers).filter_map(|(stage, label)| Some((label, figure(stage)?)));
        for (index, ((number, stage), figure)) in figures.enumerate() {
            if index == 0 {
                out.family(name, unit, help);
            }
            out.sample(name, &[("pipeline", &pipeline), ("stage", number), ("name", stage)], figure)?;
        }
        io::Result::Ok(())
    };
    let share = "Share of time in which the stage";
    of_stages("stage_busy_ratio", "ratio", &format!("{share} was busy."), &|stage| Some(stage.busy))?;
    of_stages("stage_starved_ratio", "ratio", &format!("{share} waited for input."), &|stage| Some(stage.starved))?;
    of_stages("stage_blocked_ratio", "ratio", &format!("{share} waited for room in its output pipe."), &|stage| {
        Some(stage.blocked)
    })?;
    of_stages("stage_cpus", "", "CPUs that the stage used.", &|stage| stage.cpu)?;
    of_stages("stage_cpus_waited", "", "CPUs that the stage waited for.", &|stage| stage.cpu_wait)?;
    let [read, written] = ["stage_read_bytes_per_second", "stage_written_bytes_per_second"];
    of_stages(read, "bytes_per_second", "Bytes that the stage read.", &|stage| stage.bytes_in_per_second)?;
    of_stages(written, "bytes_per_second", "Bytes that the stage wrote.", &|stage| stage.bytes_out_per_second)?;
    of_stages("stage_input_ratio", "ratio", "Position in the file that the stage reads.", &|stage| stage.progress)?;

    type PipeFigure = fn(&pipemark_causes::PipeRecord) -> Option<f64>;
    let of_pipes: [(&str, &str, &str, PipeFigure); 3] = [
        ("pipe_writer_waits_ratio", "ratio", "Share of time in which the writer waited for room.", |pipe| {
            Some(pipe.writer_waits)
        }),
        ("pipe_reader_waits_ratio", "ratio", "Share of time in which the reader waited for bytes.", |pipe| {
            Some(pipe.reader_waits)
        }),
        ("pipe_capacity_bytes", "bytes", "Capacity of the pipe.", |pipe| pipe.capacity.map(|bytes| bytes as f64)),
    ];
    for (name, unit, help, figure) in of_pipes {
        let figures = report.pipes.iter().filter_map(|pipe| Some((pipe, figure(pipe)?)));
        for (index, (pipe, figure)) in figures.enumerate() {
            if index == 0 {
                out.family(name, unit, help);
            }
            let [number, from, to] = [pipe.number, pipe.from, pipe.to].map(|number| number.to_string());
            let ends = [("pipe", &*number), ("from", &*from), ("to", &*to)];
            out.sample(name, &[&whole[..], &ends].concat(), figure)?;
        }
    }

    let verdict = &report.verdict;
    let number = |place: Option<usize>| place.map_or_else(String::new, |place| place.to_string());
    let (stage, pipe) = (number(verdict.stage), number(verdict.pipe));
    let place = [("cause", &*verdict.cause), ("stage", &*stage), ("pipe", &*pipe)];
    let labels = [&whole[..], &place].concat();
    out.family("bottleneck", "", "The cause and place of what limits the pipeline.");
    out.sample("bottleneck", &labels, 1.0)?;
    if let Some(bound) = verdict.bound.filter(|bound| bound.is_finite()) {
        out.family("bottleneck_gain_ratio", "ratio", "The most that removing it speeds the pipeline up.");
        out.sample("bottleneck_gain_ratio", &labels, bound)?;
    }
    Ok(out.text())
}

/// The beginning of a long text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_LABEL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pipemark_causes::{PipeRecord, PipelineVerdict};

    use super::*;
    use crate::ProcFile;

    fn report(stages: usize) -> PipelineReport {
        let stage = |number| StageRecord {
            number,
            name: "sort".to_owned(),
            busy: 0.5,
            cpu: Some(0.25),
            bytes_in_per_second: (number > 1).then_some(1e6),
            ..StageRecord::default()
        };
        let pipe = |number| PipeRecord { number, from: number, to: number + 1, ..PipeRecord::default() };
        PipelineReport {
            pipeline: "sort \"a\" | ".repeat(stages),
            verdict: PipelineVerdict { cause: "computing".to_owned(), stage: Some(2), ..PipelineVerdict::default() },
            stages: (1..=stages).map(stage).collect(),
            pipes: (1..stages).map(pipe).collect(),
            schema: String::new(),
            pipeline_hex: None,
            experiments: None,
            phases: Vec::new(),
            seconds: 1.0,
            samples: 100,
            samples_per_second: 100.0,
            access: ProcFile::Syscall,
            own_cpu: 0.01,
            first_scan: 0.0,
            notes: Vec::new(),
            places: Vec::new(),
        }
    }

    #[test]
    fn stages_pipes_and_the_bottleneck_are_gauges() {
        let text = metrics(&report(3)).unwrap();
        for line in [
            "pipemark_watch_running{pipeline=\"sort \\\"a\\\" | sort \\\"a\\\" | sort \\\"a\\\" | \"} 1",
            "stage=\"1\",name=\"sort\"} 0.5",
            "stage=\"2\",name=\"sort\"} 1000000",
            "pipe=\"2\",from=\"2\",to=\"3\"} 0",
            "cause=\"computing\",stage=\"2\"} 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        // A figure that is unknown for all has no family.
        assert!(!text.contains("pipe_capacity_bytes") && !text.contains("gain_ratio"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        let text = ended().unwrap();
        assert!(text.contains("pipemark_watch_running{} 0") && !text.contains("pipeline="), "{text}");
    }

    #[test]
    fn a_fifo_is_refused() {
        let path = std::env::temp_dir().join(format!("pipemark-metrics-{}.fifo", std::process::id()));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let opened = Exporter::open(&MetricsTarget::File(Destination::File(path.clone())));
        assert!(opened.is_err_and(|error| error.to_string().contains("is a FIFO")));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn long_names_are_cut() {
        let text = metrics(&report(100)).unwrap();
        assert!(text.lines().all(|line| line.len() < 400), "{text}");
    }

    #[test]
    fn a_socket_is_named_by_its_scheme() {
        assert_eq!("unix:/run/a.sock".parse(), Ok(MetricsTarget::Socket("/run/a.sock".into())));
        assert_eq!("/run/a.prom".parse(), Ok(MetricsTarget::File(Destination::File("/run/a.prom".into()))));
    }
}
