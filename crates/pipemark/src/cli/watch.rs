//! `pipemark watch`: a pipeline on a live screen, or as a line for each interval.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;

use super::output::terminal_of;
use super::why::{self, Live, Wanted, WatchedOptions, ended, wanted};
use super::{Ending, Stop};
use crate::export::{Destination, json_line};
use crate::model::PipelineReport;
use crate::plan::parse_duration;
use crate::sheet::neutral;
use crate::tui::{Key, Screen};
use crate::watch::{self, Timeline, Watcher};

/// What `watch` takes.
#[derive(Debug, Clone, Args)]
pub struct WatchOptions {
    #[command(flatten)]
    watched: WatchedOptions,
    /// Stop after TIME [default: when the pipeline ends]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Time between two updates of the screen, or two lines
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    interval: Duration,
}

/// Shows it until it ends.
pub fn run(options: &WatchOptions) -> Ending {
    let watched = &options.watched;
    if let Some(Destination::File(_)) = watched.json {
        return Err(Stop::with(why::FAILED, "watch writes JSON lines to standard output: use '--json -'"));
    }
    match wanted(watched)? {
        Wanted::Start(command, text) => {
            let mut live = Shown::new(options, why::is_free())?;
            why::start(watched, command, &text, &mut live)
        }
        Wanted::Processes(pids) => follow(options, Some(pids)),
        Wanted::Live => follow(options, None),
    }
}

/// Shows these, or else a live pipeline, and another one whenever that is asked for.
fn follow(options: &WatchOptions, mut asked: Option<Vec<u32>>) -> Ending {
    for nth in 0.. {
        let pids = asked.take().or_else(|| {
            let found = watch::live();
            Some(vec![found.get(nth % found.len().max(1))?.pid])
        });
        let none = || Stop::failed("no live pipeline that may be looked at; 'pipemark watch 'a | b'' runs one");
        match show(options, &pids.ok_or_else(none)?)? {
            Some(Key::Next) => {}
            key => return ended(key),
        }
    }
    Ok(())
}

fn show(options: &WatchOptions, pids: &[u32]) -> Result<Option<Key>, Stop> {
    let mut live = Shown::new(options, io::stderr().is_terminal() && io::stdout().is_terminal())?;
    let (_, key) = why::look(&options.watched, pids, options.time, &mut live)?;
    Ok(key)
}

/// How it is shown.
enum How {
    Screen(Box<Screen>),
    Lines,
    Json,
}

struct Shown {
    how: How,
    interval: Duration,
    next: Instant,
    gone: bool,
}

impl Shown {
    fn new(options: &WatchOptions, screen: bool) -> Result<Shown, Stop> {
        let how = match (&options.watched.json, screen) {
            (Some(_), _) => How::Json,
            (None, true) => How::Screen(Box::new(Screen::open(terminal_of(&io::stderr()))?)),
            (None, false) => How::Lines,
        };
        // A picture is shown as soon as there is one; a line is about an interval.
        let first = if matches!(how, How::Screen(_)) { Duration::ZERO } else { options.interval };
        Ok(Shown { how, interval: options.interval, next: Instant::now() + first, gone: false })
    }
}

impl Live for Shown {
    fn show(&mut self, watcher: &Watcher, timeline: &Timeline) {
        /// Intervals of half a second that a picture is about, and that its history is.
        const RECENT: usize = 4;
        const HISTORY: usize = 240;
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.interval;
        let report = PipelineReport::of(watcher, &timeline.recent(RECENT), None);
        let written = match &mut self.how {
            How::Screen(screen) => screen.draw(&report, report.history(timeline, HISTORY)),
            How::Lines => {
                let seconds = watcher.elapsed().as_secs_f64();
                writeln!(io::stdout(), "{seconds:7.1} s  {}: {}", neutral(&report.pipeline), report.verdict.text)
            }
            How::Json => match serde_json::to_string(&report) {
                Ok(text) => io::stdout().write_all(json_line(&text).as_bytes()),
                Err(error) => Err(error.into()),
            },
        };
        // A terminal that is gone, or a reader that left.
        self.gone |= written.is_err();
    }

    fn asked(&mut self) -> Option<Key> {
        match &mut self.how {
            _ if self.gone => Some(Key::Quit),
            How::Screen(screen) => screen.key(),
            _ => None,
        }
    }

    fn close(&mut self, _: &Watcher) {
        if matches!(self.how, How::Screen(_)) {
            self.how = How::Lines;
            self.next = Instant::now() + Duration::from_secs(1 << 30);
        }
        self.gone = false;
    }
}
