//! `pipemark watch`: shows a pipeline on a live screen, or prints a line per interval.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;

use pipemark_causes::Interval;
use pipemark_console::{Destination, ExitError, OutputError, VerbResult, check_stdout, say, say_error, terminal_of};
use pipemark_host::child::{Interrupt, RunError, wait_readable};
use pipemark_model::{neutral, parse_duration};
use pipemark_show::{Sheet, Style, json_line};

use crate::openmetrics::{Exporter, MetricsTarget};
use crate::screen::{KeyPress, Screen};
use crate::verbs::sampling::{self, Keep, WatchView, exit_for};
use crate::verbs::search_term::SearchTerm;
use crate::verbs::target::{FAILED, WatchTarget, WatchedOptions, watch_target};
use crate::{PipelineReport, Timeline, Watcher, live};

/// Examples at the end of the long help.
pub const EXAMPLES: &str = include_str!("watch.txt").trim_ascii_end();

/// The options of `pipemark watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchOptions {
    #[command(flatten)]
    watched: WatchedOptions,
    /// Watch for TIME, then leave the pipeline running [default: until it ends]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Update the screen, or print a line, every TIME
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    interval: Duration,
    /// Publish the latest figures as OpenMetrics every --interval: in FILE, which is replaced as a whole, or by HTTP on
    /// the UNIX socket SOCKET
    ///
    /// Instead of lines; a live screen is still shown on a terminal. At the end, FILE says that nothing is watched.
    #[arg(long, value_name = "FILE|unix:SOCKET")]
    openmetrics: Option<MetricsTarget>,
}

/// Shows the pipeline until it ends.
pub fn run(options: &WatchOptions, keep: Keep<'_>) -> VerbResult {
    let watched = &options.watched;
    if let Some(Destination::File(_)) = watched.json {
        return Err(ExitError::with(FAILED, "watch writes JSON lines to standard output only; use '--json -'"));
    }
    let mut exporter = options.openmetrics.as_ref().map(Exporter::open).transpose()?;
    // This program starts no process here, so no guards are needed.
    let interrupt = || Interrupt::catch().map_err(ExitError::failed);
    if let (Some(exporter), Some(term), None) = (&mut exporter, watched.search_term(), options.time) {
        return keep_watching(options, &term, exporter, &interrupt()?, keep);
    }
    match watch_target(watched)? {
        WatchTarget::Start(command, text) => {
            let mut live = WatchOutput::new(options, sampling::is_free(), exporter.as_mut())?;
            live.may_draw = sampling::can_draw() && watched.json.is_none() && matches!(live.mode, OutputMode::Lines);
            let ending = sampling::start(watched, command, &text, options.time, &mut live, keep, &|_| Ok(()));
            if let Some(error) = live.broken {
                say_error(error);
            }
            ending
        }
        WatchTarget::Processes(pids) => follow(options, Some(pids), exporter, &interrupt()?, keep),
        WatchTarget::Live => follow(options, None, exporter, &interrupt()?, keep),
    }
}

/// Publishes the figures of a unit, for example, also when its pipeline runs again, until the user interrupts.
fn keep_watching(
    options: &WatchOptions,
    term: &SearchTerm,
    exporter: &mut Exporter,
    interrupt: &Interrupt,
    keep: Keep<'_>,
) -> VerbResult {
    const PAUSE: Duration = Duration::from_secs(1);
    exporter.end();
    let mut last_error = String::new();
    loop {
        let outcome = term.find().and_then(|pids| show(options, &pids, Some(exporter), true, interrupt, keep));
        match outcome {
            Ok(key @ Some(KeyPress::Interrupt | KeyPress::Quit)) => return exit_for(key),
            Ok(_) => last_error.clear(),
            Err(stop) => {
                let error = stop.to_string();
                if error != last_error {
                    say(format_args!("watch: waiting: {error}"));
                    last_error = error;
                }
            }
        }
        if wait_readable(&[], Instant::now() + PAUSE, Some(interrupt)) == Err(RunError::Interrupted) {
            return exit_for(Some(KeyPress::Interrupt));
        }
    }
}

/// Shows these processes, or a live pipeline if none are given. Shows another pipeline whenever the user requests it.
fn follow(
    options: &WatchOptions,
    mut requested: Option<Vec<u32>>,
    mut exporter: Option<Exporter>,
    interrupt: &Interrupt,
    keep: Keep<'_>,
) -> VerbResult {
    for nth in 0.. {
        let pids = requested.take().or_else(|| {
            let found = live::live_pipelines();
            Some(vec![found.get(nth % found.len().max(1))?.pid])
        });
        let none = || {
            ExitError::failed("there is no running pipeline that you may sample; to run one: pipemark watch 'a | b'")
        };
        match show(options, &pids.ok_or_else(none)?, exporter.as_mut(), false, interrupt, keep)? {
            Some(KeyPress::Next) => {}
            key => return exit_for(key),
        }
    }
    Ok(())
}

fn show(
    options: &WatchOptions,
    pids: &[u32],
    exporter: Option<&mut Exporter>,
    goes_on: bool,
    interrupt: &Interrupt,
    keep: Keep<'_>,
) -> Result<Option<KeyPress>, ExitError> {
    let mut live = WatchOutput::new(options, sampling::can_draw() && io::stdout().is_terminal(), exporter)?;
    live.goes_on = goes_on;
    let (watched, time) = (&options.watched, options.time);
    let (_, key) = sampling::sample_until(interrupt, watched, pids, time, &mut live, keep, &|_| Ok(()))?;
    live.broken.map_or(Ok(key), |error| Err(error.into()))
}

enum OutputMode {
    Screen(Box<Screen>),
    Lines,
    Json,
    /// The figures are only published.
    Silent,
}

/// The number of half seconds that a frame's figures cover.
const RECENT: usize = 4;

struct WatchOutput<'e> {
    mode: OutputMode,
    exporter: Option<&'e mut Exporter>,
    /// Whether the next run of the pipeline is watched too.
    goes_on: bool,
    /// The counts of the last half seconds. After hours, those of the timeline cover minutes.
    recent: VecDeque<Interval>,
    interval: Duration,
    next: Instant,
    /// Whether the reader of the output has gone.
    gone: bool,
    /// Whether the screen may be used: the pipeline must not use the terminal. This is known only once the pipeline
    /// runs.
    may_draw: bool,
    /// The error of a line that could not be written; `None` if all were written.
    broken: Option<OutputError>,
}

impl<'e> WatchOutput<'e> {
    fn new(
        options: &WatchOptions,
        screen: bool,
        exporter: Option<&'e mut Exporter>,
    ) -> Result<WatchOutput<'e>, ExitError> {
        let mode = match (&options.watched.json, screen) {
            (Some(_), _) => OutputMode::Json,
            (None, true) => OutputMode::Screen(Box::new(Screen::open(terminal_of(&io::stderr()))?)),
            (None, false) if options.openmetrics.is_some() => OutputMode::Silent,
            (None, false) => OutputMode::Lines,
        };
        if matches!(mode, OutputMode::Lines | OutputMode::Json) {
            check_stdout()?;
        }
        // The first frame is drawn as soon as possible. The first line is printed after a whole interval.
        let first = if matches!(mode, OutputMode::Screen(_)) { Duration::ZERO } else { options.interval };
        let next = Instant::now() + first;
        let (interval, recent) = (options.interval, VecDeque::new());
        let goes_on = false;
        Ok(WatchOutput { mode, exporter, goes_on, recent, interval, next, gone: false, may_draw: false, broken: None })
    }
}

/// A sheet of one wrapped sentence.
fn sentence(text: &str) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.text(Style::Plain, [text]);
    sheet
}

impl WatchOutput<'_> {
    /// Uses the screen from now on if no process of the pipeline reads or writes the terminal. Otherwise reports why
    /// not.
    fn decide(&mut self, watcher: &Watcher, timeline: &Timeline) {
        if watcher.uses_terminal() || watcher.waits_for_terminal(timeline) {
            let text = "watch: the pipeline uses this terminal, so watch prints a line per interval; redirect the pipeline's output to see a live screen";
            let _ = write!(io::stderr(), "{}", terminal_of(&io::stderr()).render(&sentence(text)));
        } else if let Ok(screen) = Screen::open(terminal_of(&io::stderr())) {
            (self.mode, self.next) = (OutputMode::Screen(Box::new(screen)), Instant::now());
        }
    }
}

impl WatchView for WatchOutput<'_> {
    fn goes_on(&self) -> bool {
        self.goes_on
    }

    fn add(&mut self, interval: &Interval) {
        self.recent.push_back(interval.clone());
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    fn show(&mut self, watcher: &Watcher, timeline: &Timeline) {
        /// The number of half-second intervals that a frame's history covers.
        const HISTORY: usize = 240;
        if std::mem::take(&mut self.may_draw) {
            self.decide(watcher, timeline);
        }
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.interval;
        let mut recent = Timeline::default();
        self.recent.iter().for_each(|interval| recent.add(interval.clone()));
        let report = PipelineReport::of(&watcher.evidence(recent));
        if let Some(exporter) = &mut self.exporter {
            exporter.publish(&report);
        }
        let written = match &mut self.mode {
            OutputMode::Screen(screen) => screen.draw(&report, report.history(timeline, HISTORY)),
            OutputMode::Lines => {
                let seconds = watcher.elapsed().as_secs_f64();
                let line = format!("{seconds:7.1} s  {}: {}", neutral(&report.pipeline), report.verdict.text);
                if io::stdout().is_terminal() {
                    write!(io::stdout(), "{}", terminal_of(&io::stdout()).render(&sentence(&line)))
                } else {
                    writeln!(io::stdout(), "{line}")
                }
            }
            OutputMode::Silent => Ok(()),
            OutputMode::Json => match serde_json::to_string(&report) {
                Ok(text) => io::stdout().write_all(json_line(&text).as_bytes()),
                Err(error) => Err(error.into()),
            },
        };
        let Err(error) = written else { return };
        self.gone = true;
        // It is no error if the terminal is gone or the reader has closed the pipe.
        if !matches!(self.mode, OutputMode::Screen(_)) && error.kind() != io::ErrorKind::BrokenPipe {
            self.broken = Destination::Stdout.write("line", Err(error)).err();
        }
    }

    fn requested_key(&mut self) -> Option<KeyPress> {
        match &mut self.mode {
            _ if self.gone => Some(KeyPress::Quit),
            OutputMode::Screen(screen) => screen.key(),
            _ => None,
        }
    }

    fn close(&mut self, _: &Watcher) {
        if let Some(exporter) = &mut self.exporter {
            exporter.end();
        }
        if matches!(self.mode, OutputMode::Screen(_)) {
            self.mode = OutputMode::Lines;
            self.next = Instant::now() + Duration::from_secs(1 << 30);
        }
        self.gone = false;
    }
}
