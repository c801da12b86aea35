//! An experiment on a running pipeline: alternates its pipes between their old and a larger capacity, and compares the
//! rates.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde::Serialize;

use pipemark_causes::{Interval, PipelineFigures, Timeline};
use pipemark_console::verdict::{interval, style};
use pipemark_model::{Better, ByteSize, Throughput, counted, signed_percent};
use pipemark_proc::process::PipeId;
use pipemark_show::{Cell, Column, Grid, Table};
use pipemark_stats::compare::{Comparison, Pairing, compare};
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::pipeline::pipe::WatchedPipe;
use crate::watcher::Watcher;

/// The number of half-second turns before any pipe is changed. The first turn is not counted, because the pipeline may
/// be starting.
pub const BASELINE_TURNS: usize = 4;
/// The minimum number of rounds for a comparison.
pub const MIN_ROUNDS: usize = 3;
/// The maximum number of half-second turns to wait until a pipe is empty enough to be shrunk again.
const MAX_WAITS: usize = 4;

/// A pipe that the experiment changes.
#[derive(Debug, Clone, Serialize)]
struct TriedPipe {
    /// The number of the stage that writes the pipe.
    from: usize,
    /// The number of the stage that reads the pipe.
    to: usize,
    /// The pipe's capacity in bytes before the experiment.
    before: u64,
    /// The pipe's capacity in bytes now.
    now: u64,
    /// Whether no process reads the pipe any more.
    ended: bool,
    #[serde(skip)]
    id: PipeId,
}

/// The stage whose bytes, read or written, define the pipeline's rate.
#[derive(Debug, Clone, Serialize)]
struct CountedStage {
    stage: usize,
    name: String,
    reads: bool,
    #[serde(skip)]
    place: usize,
}

impl CountedStage {
    /// Chooses the last stage that moves a relevant number of bytes; `None` if there is none. Bytes that a larger pipe
    /// merely holds have not arrived at that stage.
    fn choose(watcher: &Watcher, interval: &Interval) -> Option<CountedStage> {
        let evidence = watcher.evidence(Timeline::default());
        let figures = PipelineFigures::of(&evidence, interval);
        let count = |place: usize, reads: bool| {
            let (stage, counts) = (&evidence.stages[place], &interval.stages[place]);
            match reads {
                true => counts.read.filter(|_| stage.reads_pipe),
                false => counts.wrote,
            }
            .filter(|_| !stage.uncounted)
        };
        let all = || figures.places.iter().rev().flat_map(|&place| [(place, true), (place, false)]);
        let most = all().filter_map(|(place, reads)| count(place, reads)).max().filter(|&most| most > 0)?;
        let (place, reads) = all().find(|&(place, reads)| count(place, reads).is_some_and(|n| n >= most / 50))?;
        let stage = figures.stages.iter().zip(&figures.places).find(|&(_, &at)| at == place)?.0;
        Some(CountedStage { stage: stage.number, name: stage.name.clone(), reads, place })
    }

    fn rate(&self, interval: &Interval) -> Option<f64> {
        let counts = interval.stages.get(self.place)?;
        let bytes = if self.reads { counts.read } else { counts.wrote }?;
        (bytes > 0 && interval.seconds > 0.0).then(|| bytes as f64 / interval.seconds)
    }
}

/// The result: what `--json` writes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TuneOutcome {
    schema: &'static str,
    /// Null if nothing could be compared.
    pub verdict: Option<Verdict>,
    pub text: String,
    /// The larger capacity.
    capacity: u64,
    /// The rate with larger pipes divided by the rate with the old ones.
    ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval.
    low: Option<f64>,
    /// Upper end of the ratio's 95 % interval.
    high: Option<f64>,
    /// Whether turns with old and larger pipes alternated. Otherwise the rates are from before and after the change.
    in_turns: bool,
    rounds: usize,
    counted: Option<CountedStage>,
    pipes: Vec<TriedPipe>,
    /// The comparison, and the mean rates with the old and the larger pipes, in bytes per second.
    #[serde(skip)]
    compared: Option<(Comparison, [f64; 2])>,
}

impl TuneOutcome {
    /// The rates with the old and with larger pipes, in the columns of `ab` and `compare`; `None` if they were not
    /// compared.
    pub fn table(&self) -> Option<Grid> {
        let (comparison, [old, new]) = self.compared?;
        let name = format!("{} pipes", ByteSize(self.capacity));
        let rows = [("old pipes", old, None), (name.as_str(), new, Some(comparison))];
        let shown = |value: Option<String>| Cell::shown(value.unwrap_or_default());
        let grid = Table::of(&rows)
            .column(Column::words("label", "name"), |row| {
                Cell::text(row.0).mark(if row.2.is_none() { "*" } else { "" })
            })
            .column(Column::figures("rate", "rate"), |row| Cell::of(Throughput(row.1).to_string(), row.1))
            .column(Column::figures("change", "change"), |row| {
                shown(row.2.map(|comparison| format!("{} %", signed_percent(comparison.change))))
            })
            .column(Column::figures("", "interval"), |row| shown(row.2.map(|comparison| interval(&comparison))))
            .column(Column::words("verdict", "verdict"), |row| {
                row.2.map_or_else(Cell::default, |comparison| {
                    Cell::of(comparison.verdict.name(), comparison.verdict.name()).style(style(comparison.verdict))
                })
            })
            .grid();
        Some(grid)
    }
}

/// An experiment in progress.
#[derive(Debug, Default)]
pub struct Tuning {
    capacity: u64,
    rounds: usize,
    /// The number of the pipe to change; `None` for all pipes.
    only: Option<usize>,
    baseline: Vec<Interval>,
    pipes: Vec<TriedPipe>,
    counted: Option<CountedStage>,
    /// Whether the pipes have the larger capacities now.
    large: bool,
    /// For each turn, whether the pipes were large, and the rate in bytes per second; `None` if the turn wasn't
    /// counted.
    turns: Vec<(bool, Option<f64>)>,
    waits: usize,
    refused: Option<Errno>,
    outcome: Option<TuneOutcome>,
}

impl Tuning {
    /// Prepares to try `capacity` bytes for `rounds` rounds of two turns. Changes all pipes or, with `only`, the pipe
    /// with this number.
    pub fn new(capacity: u64, rounds: usize, only: Option<usize>) -> Tuning {
        Tuning { capacity, rounds, only, ..Tuning::default() }
    }

    /// The result; `None` until the experiment is over.
    pub fn outcome(&self) -> Option<&TuneOutcome> {
        self.outcome.as_ref()
    }

    /// Adds the turn that has ended, and sets the capacities for the next turn.
    pub fn step(&mut self, watcher: &Watcher, turn: &Interval) {
        if self.outcome.is_some() {
            return;
        }
        if self.baseline.len() < BASELINE_TURNS {
            self.baseline.push(turn.clone());
            if self.baseline.len() < BASELINE_TURNS {
                return;
            }
            if let Err(sentence) = self.prepare(watcher) {
                self.outcome = Some(self.outcome_without_comparison(sentence));
                return;
            }
        } else if self.is_as_planned() {
            self.turns.push((self.large, self.counted.as_ref().and_then(|counted| counted.rate(turn))));
        }
        if self.turns.len() == 2 * self.rounds || self.pipes.iter().all(|pipe| pipe.ended) {
            return self.finish(watcher);
        }
        let large = self.plans_large();
        if !self.resize(watcher, large, Duration::from_millis(40)) {
            self.waits += 1;
            if self.is_stuck() {
                self.resize(watcher, true, Duration::ZERO);
            }
        }
        if self.pipes.is_empty() {
            let why = self.refused.map(|error| error.to_string()).unwrap_or_default();
            self.outcome = Some(self.outcome_without_comparison(format!(
                "the pipes can't be enlarged to {}: {why}; see /proc/sys/fs/pipe-max-size and /proc/sys/fs/pipe-user-pages-soft",
                ByteSize(self.capacity)
            )));
        }
    }

    /// Whether a running pipeline has a pipe that can be changed.
    pub fn can_try(watcher: &Watcher) -> bool {
        watcher.pipeline.pipes.iter().any(|pipe| !watcher.pipeline.stages[pipe.to].hidden)
    }

    /// Finds the pipes to change, and the stage whose bytes to count.
    fn prepare(&mut self, watcher: &Watcher) -> Result<(), String> {
        let total = Interval::total(&self.baseline[1..]);
        let places = PipelineFigures::of(&watcher.evidence(Timeline::default()), &total).places;
        let number = |place: usize| places.iter().position(|&kept| kept == place).map(|at| at + 1);
        let live = |place: usize| watcher.pipeline.stages[place].alive;
        let found: Vec<_> = watcher.pipeline.pipes.iter().filter(|pipe| live(pipe.from) && live(pipe.to)).collect();
        if found.is_empty() {
            return Err("this is not a pipeline: no pipe connects it to another process that you may sample".to_owned());
        }
        // The pipes are numbered as in the figures.
        let mut order: Vec<(usize, usize)> =
            found.iter().filter_map(|pipe| Some((number(pipe.from)?, number(pipe.to)?))).collect();
        order.sort_unstable();
        let chosen = |from: usize, to: usize| match self.only {
            Some(only) => only.checked_sub(1).and_then(|at| order.get(at)) == Some(&(from, to)),
            None => true,
        };
        if let Some(only) = self.only.filter(|&only| only == 0 || only > order.len()) {
            return Err(format!(
                "there is no pipe {only}; the pipeline has {}, counted from the source",
                counted(order.len(), "pipe")
            ));
        }
        let pipe = |pipe: &&WatchedPipe| {
            let before = pipe.capacity?;
            let (from, to) = (number(pipe.from)?, number(pipe.to)?);
            if !chosen(from, to) {
                return None;
            }
            Some(TriedPipe { from, to, before, now: before, ended: false, id: pipe.id })
        };
        let known: Vec<TriedPipe> = found.iter().filter_map(pipe).collect();
        if known.is_empty() {
            return Err(
                "pipemark is not permitted to open the pipes; run it as the pipeline's user, or as root".to_owned()
            );
        }
        self.pipes = known.into_iter().filter(|pipe| pipe.before < self.capacity).collect();
        if self.pipes.is_empty() {
            return Err(format!("all pipes already hold {} or more; use a larger --capacity", ByteSize(self.capacity)));
        }
        let nothing = "there is no rate to compare: no stage moved bytes that the kernel counts (it does not count the bytes that splice moves)";
        self.counted = Some(CountedStage::choose(watcher, &total).ok_or(nothing)?);
        Ok(())
    }

    fn is_stuck(&self) -> bool {
        self.waits >= MAX_WAITS
    }

    /// Whether the pipes should be large in the next turn. A round is a turn with small pipes and a turn with large
    /// pipes. In the first round the small pipes come first; in later rounds the order is random.
    fn plans_large(&self) -> bool {
        let (round, second) = (self.turns.len() / 2, self.turns.len() % 2 == 1);
        match second {
            _ if self.is_stuck() => true,
            true => !self.turns[self.turns.len() - 1].0,
            false => round > 0 && RandomState::new().hash_one(round) % 2 == 1,
        }
    }

    /// Whether each pipe has the capacity planned for this turn.
    fn is_as_planned(&self) -> bool {
        self.pipes.iter().all(|pipe| pipe.ended || (pipe.now > pipe.before) == self.large)
    }

    /// Makes all pipes large, or restores their old capacities. Returns `false` if a pipe is still too full to shrink.
    fn resize(&mut self, watcher: &Watcher, large: bool, patience: Duration) -> bool {
        const PAUSE: Duration = Duration::from_millis(2);
        self.large = large;
        let deadline = Instant::now() + patience;
        let mut refused = Vec::new();
        // Each pass tries all pipes, so that one full pipe doesn't delay the others.
        loop {
            let mut full = false;
            for pipe in self.pipes.iter_mut().filter(|pipe| (pipe.now > pipe.before) != large && !pipe.ended) {
                match watcher.resize(pipe.id, if large { self.capacity } else { pipe.before }) {
                    None => pipe.ended = true,
                    Some(Ok(now)) => pipe.now = now,
                    Some(Err(error)) if large => {
                        self.refused = Some(error);
                        refused.push(pipe.id);
                    }
                    Some(Err(_)) => full = true,
                }
            }
            self.pipes.retain(|pipe| !refused.contains(&pipe.id));
            if !full || Instant::now() >= deadline {
                return !full;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends the experiment, even early. Keeps the larger pipes if they help, and otherwise restores the old capacities.
    pub fn finish(&mut self, watcher: &Watcher) {
        if self.outcome.is_some() {
            return;
        }
        let early = self.turns.len() < 2 * self.rounds;
        let compared = self.compared();
        let verdict = compared.map(|compared| compared.verdict);
        let helps = verdict == Some(Verdict::Better) && !early;
        let done = self.resize(watcher, helps, Duration::from_secs(1));
        let ended = !self.pipes.is_empty() && self.pipes.iter().all(|pipe| pipe.ended);
        let after = match (ended, helps, done) {
            _ if self.pipes.is_empty() => "the pipeline ended before any pipe was changed".to_owned(),
            (true, ..) => "the pipeline has ended".to_owned(),
            (_, true, _) => "the larger pipes were kept".to_owned(),
            (_, false, true) => "the old capacities were restored".to_owned(),
            (_, false, false) => {
                let full = self.pipes.iter().filter(|pipe| !pipe.ended && pipe.now > pipe.before);
                let full: Vec<String> = full.map(|pipe| format!("from stage {} to {}", pipe.from, pipe.to)).collect();
                let (pipes, keep) = if full.len() == 1 {
                    ("pipe", "keeps the larger capacity, because it is too full")
                } else {
                    ("pipes", "keep the larger capacity, because they are too full")
                };
                format!("the {pipes} {} {keep} to be made smaller", full.join(" and "))
            }
        };
        let rounds = self.pairs().len();
        if early && rounds < MIN_ROUNDS && !self.pipes.is_empty() {
            let text = format!("too few rounds ({rounds}; at least {MIN_ROUNDS} are needed); {after}");
            self.outcome = Some(self.outcome_without_comparison(text));
            return;
        }
        let (Some(compared), Some(counted)) = (compared, self.counted.clone()) else {
            self.outcome = Some(self.outcome_without_comparison(format!("nothing was compared: {after}")));
            return;
        };
        let size = ByteSize(self.capacity);
        let times = 1.0 + compared.change;
        let what = match compared.verdict {
            Verdict::Better => format!("with {size} pipes, the pipeline is {times:.2} times as fast"),
            Verdict::Worse => format!("with {size} pipes, the pipeline is slower: {times:.2} times as fast"),
            Verdict::Same => format!("{size} pipes make no difference: {times:.2} times as fast"),
            Verdict::Inconclusive => {
                format!("inconclusive: with {size} pipes, the pipeline is {times:.2} times as fast")
            }
        };
        let interval = match (compared.low, compared.high) {
            (Some(low), Some(high)) => format!(" (95 % interval {:.2} to {:.2})", 1.0 + low, 1.0 + high),
            _ => " (too few rounds for an interval)".to_owned(),
        };
        let in_turns = !self.is_stuck();
        let how = match in_turns {
            true => format!("in {} rounds", self.pairs().len()),
            false => {
                "measured once before and once after the change, because a full pipe can't be made smaller".to_owned()
            }
        };
        let side = if counted.reads { "input" } else { "output" };
        let mean = |rates: Vec<f64>| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let (old, new) = self.sides();
        let (old, new) = (mean(old), mean(new));
        let rate = format!("{} with the old capacities", Throughput(old));
        let text = format!(
            "{what}{interval}, {how}; {after}. Rate measured at the {side} of stage {} {}: {rate}",
            counted.stage, counted.name
        );
        self.outcome = Some(TuneOutcome {
            verdict,
            ratio: Some(times),
            low: compared.low.map(|low| 1.0 + low),
            high: compared.high.map(|high| 1.0 + high),
            in_turns,
            compared: Some((compared, [old, new])),
            ..self.outcome_without_comparison(text)
        });
    }

    /// The rates with small and with large pipes, for each round in which both were counted.
    fn pairs(&self) -> Vec<(f64, f64)> {
        let pair = |round: &[(bool, Option<f64>)]| {
            let of = |large: bool| round.iter().find(|turn| turn.0 == large)?.1;
            Some((of(false)?, of(true)?))
        };
        self.turns.chunks(2).filter_map(pair).collect()
    }

    /// All rates with the old capacities, and with the larger ones.
    fn sides(&self) -> (Vec<f64>, Vec<f64>) {
        if !self.is_stuck() {
            return self.pairs().into_iter().unzip();
        }
        let of = |large: bool| self.turns.iter().filter(move |turn| turn.0 == large).filter_map(|turn| turn.1);
        let baseline = self.baseline[1..].iter().filter_map(|turn| self.counted.as_ref()?.rate(turn));
        (baseline.chain(of(false)).collect(), of(true).collect())
    }

    fn compared(&self) -> Option<Comparison> {
        let (old, new) = self.sides();
        let pairing = if self.is_stuck() { Pairing::None } else { Pairing::Rounds };
        compare(&old, &new, pairing, Criterion::new(Better::Higher)).ok()
    }

    fn outcome_without_comparison(&self, text: String) -> TuneOutcome {
        TuneOutcome {
            schema: "pipemark-tune/1",
            text,
            capacity: self.capacity,
            in_turns: true,
            rounds: self.pairs().len(),
            counted: self.counted.clone(),
            pipes: self.pipes.clone(),
            ..TuneOutcome::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_the_columns_of_a_comparison() {
        let rates: Vec<f64> = (0..8).map(|turn| 1e9 + f64::from(turn) * 1e6).collect();
        let faster: Vec<f64> = rates.iter().map(|rate| rate * 1.5).collect();
        let compared = compare(&rates, &faster, Pairing::Rounds, Criterion::new(Better::Higher)).unwrap();
        let outcome =
            TuneOutcome { capacity: 1 << 20, compared: Some((compared, [1e9, 1.5e9])), ..TuneOutcome::default() };
        let grid = outcome.table().unwrap();
        let headings: Vec<&str> = grid.columns.iter().map(|column| column.heading.as_str()).collect();
        assert_eq!(headings, ["name", "rate", "change", "interval", "verdict"]);
        let cells: Vec<&str> = grid.groups[0].rows[1].cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!((cells[0], cells[2], cells[4]), ("1 MiB pipes", "+50.0 %", "better"));
        assert!(TuneOutcome::default().table().is_none());
    }
}
