//! The table of one experiment: a row for each trial, below the parameters that tell them apart and the figures they have.

use strum::IntoEnumIterator;

use super::footnotes::Footnotes;
use super::words::{Touched, margin_or_runs, missing, ranked};
use super::{Cell, Column, Fit, Grid, Group, Note, Room, Row, Side, Style, neutral};
use crate::model::{
    self, Estimate, Figure, Job, Key, LinkKind, Published, Record, Unit, Volume, WaitPolicy, between, differing,
    digits, percent, three_digits,
};

/// The parameters of a copy within one process, which has no ends.
const COPIED: [Key; 6] = [Key::Link, Key::Block, Key::Pages, Key::Align, Key::Total, Key::Time];
const GIB: f64 = (1u64 << 30) as f64;

/// One experiment of a document.
#[derive(Debug)]
pub(super) struct Experiment<'a> {
    pub(super) about: &'a model::Experiment,
    pub(super) records: Vec<&'a Record>,
    /// Where published figures come from, in the order of their first row.
    sources: Vec<&'a str>,
    baselines: Vec<&'a Record>,
    footnotes: Footnotes<'a>,
    copy: Option<f64>,
}

impl<'a> Experiment<'a> {
    /// An experiment of a document; `None` if it has no trials.
    pub(super) fn of(document: &'a model::Document, about: &'a model::Experiment) -> Option<Experiment<'a>> {
        let records: Vec<&Record> = document.trials.iter().filter(|record| record.experiment == about.name).collect();
        if records.is_empty() {
            return None;
        }
        let (mut sources, mut baselines): (Vec<&str>, Vec<&Record>) = (Vec::new(), Vec::new());
        for record in &records {
            if let Some(Published { source, .. }) = &record.published
                && !sources.contains(&source.as_str())
            {
                sources.push(source);
            }
            if let Some(baseline) = records.iter().find(|other| record.baseline.as_ref() == Some(&other.id))
                && !baselines.iter().any(|known| known.id == baseline.id)
            {
                baselines.push(baseline);
            }
        }
        let copy = document.memory_copy.map(|estimate| estimate.median).filter(|median| *median > 0.0);
        let footnotes = Footnotes::of(&records);
        Some(Experiment { about, records, sources, baselines, footnotes, copy })
    }

    pub(super) fn title(&self) -> &str {
        if self.about.title.is_empty() { &self.about.name } else { &self.about.title }
    }

    /// The parameters in which the trials differ, those of the suite first. A wait policy makes groups, and a copy within
    /// one process has no ends to differ in.
    fn varying(&self) -> Vec<Key> {
        let jobs: Vec<&Job> =
            self.records.iter().map(|record| &record.job).filter(|job| !job.is_memory_copy()).collect();
        let mut keys = differing(&jobs, &self.about.varies);
        if jobs.len() < self.records.len() && !keys.contains(&Key::Link) && !jobs.is_empty() {
            keys.insert(0, Key::Link);
        }
        keys.retain(|key| *key != Key::Wait);
        keys
    }

    /// What all trials have in common, in words; what is usual and says nothing is left out.
    pub(super) fn shared(&self) -> Vec<String> {
        let ours = |record: &&&Record| !record.job.is_memory_copy();
        let jobs: Vec<&Job> = self.records.iter().filter(ours).map(|record| &record.job).collect();
        let jobs = if jobs.is_empty() { self.records.iter().map(|record| &record.job).collect() } else { jobs };
        let first = jobs[0].settings();
        let applies = |key: Key| !jobs[0].is_memory_copy() || COPIED.contains(&key);
        let same = |key: Key| applies(key) && jobs.iter().all(|job| job.value(key) == first.effective(key));
        let mut words = Vec::new();
        if same(Key::Link) && first.link.is_some_and(|link| link != LinkKind::Pipe) {
            words.extend(first.link.map(|link| link.to_string()));
        }
        if let (Some(send), Some(recv), true) = (first.send, first.recv, applies(Key::Send)) {
            match (same(Key::Send), same(Key::Recv)) {
                (true, true) => words.push(format!("{send} → {recv}")),
                (true, false) => words.push(format!("send {send}")),
                (false, true) => words.push(format!("recv {recv}")),
                (false, false) => {}
            }
        }
        let mut keys = vec![Key::Block, Key::ReadBlock, Key::Capacity, Key::Place];
        keys.extend(Key::iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
        for key in keys.into_iter().filter(|key| same(*key)) {
            let Some(value) = first.get(key) else { continue };
            let telling = match key {
                Key::Link | Key::Send | Key::Recv | Key::Wait => false,
                Key::Block | Key::Place | Key::Total | Key::Time => true,
                Key::Capacity => Some(&value) != key.usual().as_ref() || jobs.iter().all(|job| job.link().is_pipe()),
                Key::Stage => jobs.iter().any(|job| job.chain().is_some()),
                _ => Some(&value) != key.usual().as_ref(),
            };
            if telling {
                words.push(match key {
                    Key::Total | Key::Time => format!("{value} per run"),
                    Key::Pairs => format!("{value} pairs at once"),
                    Key::Pages => format!("{value} pages"),
                    _ => format!("{} {value}", key.to_string().replace('-', " ")),
                });
            }
        }
        words
    }

    /// The table and what has to stand below it.
    pub(super) fn grid(&self) -> (Grid, Vec<Note>) {
        let parts = self.parts();
        let labels = parts.iter().take_while(|part| matches!(part, Part::Parameter(_) | Part::Name)).count();
        let mut groups: Vec<(WaitPolicy, Group)> = Vec::new();
        let policies: Vec<WaitPolicy> = self.records.iter().map(|record| record.job.wait()).collect();
        for record in &self.records {
            let wait = record.job.wait();
            let place = groups.iter().position(|(known, _)| *known == wait).unwrap_or_else(|| {
                let lonely = policies.iter().all(|other| *other == WaitPolicy::Block);
                let caption = if lonely { String::new() } else { meaning(wait).to_owned() };
                groups.push((wait, Group { caption, rows: Vec::new() }));
                groups.len() - 1
            });
            let highest = self.records.iter().filter(|other| other.job.wait() == wait && ranked(other));
            let highest = highest.filter_map(|record| median(record, Figure::Throughput)).fold(0.0, f64::max);
            let instead = missing(record)
                .map(|reason| (if reason.starts_with("skipped") { Style::Aside } else { Style::Failure }, reason));
            let cells = parts.iter().map(|part| self.cell(part, record, highest)).collect();
            groups[place].1.rows.push(Row { cells, instead });
        }
        let several = groups.len() > 1;
        let columns = parts.iter().map(|part| part.column(several)).collect();
        let grid = Grid { labels, columns, groups: groups.into_iter().map(|(_, group)| group).collect() };
        let notes = self.notes(&parts);
        (grid, notes)
    }

    /// What the columns show.
    fn parts(&self) -> Vec<Part> {
        let estimates = || self.records.iter().filter_map(|record| record.estimate.as_ref());
        let has = |figure: Figure| estimates().any(|estimates| estimates.get(figure).is_some());
        let measured = estimates().next().is_some();
        let latency = measured && estimates().all(|estimates| estimates.headline_figure() == Figure::P50);
        let chained = self.records.iter().any(|record| record.job.chain().is_some());
        let mut parts: Vec<Part> = self.varying().into_iter().map(Part::Parameter).collect();
        let groups = self.records.iter().any(|record| record.job.wait() != self.records[0].job.wait());
        // A row without parameters may still be told by its group.
        if parts.is_empty() && self.records.len() > 1 + usize::from(groups) {
            parts.push(Part::Name);
        }
        let headline = if latency { Figure::P50 } else { Figure::Throughput };
        parts.push(Part::Headline(headline));
        let optional = [
            (Part::PerHop, chained),
            (Part::Figure(Figure::Real), chained && has(Figure::Real)),
            (Part::PublishedReal, chained && !self.sources.is_empty()),
            (Part::Margin, measured),
            (Part::Interval, measured && !latency),
            (Part::Runs, measured),
            (Part::Ratio, has(Figure::Ratio)),
            (Part::RatioInterval, has(Figure::Ratio)),
            (Part::OfCopy, measured && !latency && self.copy.is_some()),
        ];
        parts.extend(optional.into_iter().filter_map(|(part, wanted)| wanted.then_some(part)));
        parts.extend(Figure::iter().filter(|figure| has(*figure)).filter_map(|figure| match figure {
            Figure::Throughput | Figure::Ratio | Figure::Real | Figure::P50 => None,
            Figure::CpuSecondsPerGib if latency => None,
            Figure::SwitchesPerMib if !chained => None,
            figure => Some(Part::Figure(figure)),
        }));
        let bars = !latency && self.records.iter().filter(|record| ranked(record)).count() > 1;
        parts.extend(has(Figure::StartUp).then_some(Part::Inside));
        parts.extend((!self.sources.is_empty() && !chained).then_some(Part::Published));
        parts.extend(bars.then_some(Part::Bar));
        parts
    }

    fn cell(&self, part: &Part, record: &Record, highest: f64) -> Cell {
        let text = |text: Option<String>| Cell::shown(text.unwrap_or_default());
        match part {
            Part::Parameter(key) => return Cell::shown(self.parameter(*key, record)),
            Part::Name => return Cell::shown(&record.name),
            Part::Published => return text(self.published(record)),
            Part::PublishedReal => return text(published_real(record).map(|ns| Unit::Nanoseconds.show(ns))),
            _ => {}
        }
        let Some(estimates) = &record.estimate else { return Cell::default() };
        let throughput = estimates.throughput();
        match part {
            Part::Headline(figure) => {
                let moves = record.job.lines().is_none();
                let marks = [
                    if moves { Touched::of(record).mark().to_owned() } else { String::new() },
                    self.footnotes.letters(record),
                ];
                let marks: String =
                    marks.iter().filter(|mark| !mark.is_empty()).map(|mark| format!(" {mark}")).collect();
                text(median(record, *figure).map(|median| figure.unit().show(median))).mark(marks)
            }
            Part::Figure(figure) => {
                let shown = |median| {
                    if figure.unit() == Unit::Count { Unit::Count.brief(median) } else { figure.unit().show(median) }
                };
                Cell::shown(median(record, *figure).map_or_else(|| "–".to_owned(), shown))
            }
            Part::Margin => Cell::shown(margin_or_runs(estimates.headline())),
            Part::Interval => Cell::shown(interval(throughput, |end| Unit::BytesPerSecond.show(end))),
            Part::PerHop => {
                let hops = record.job.chain().map(|chain| throughput.median * f64::from(chain.length));
                Cell::shown(hops.map_or_else(|| "–".to_owned(), |hops| Unit::BytesPerSecond.show(hops)))
            }
            Part::Runs => Cell::shown(estimates.headline().runs.to_string()),
            Part::Ratio if self.is_baseline(record) => Cell::shown("base"),
            Part::Ratio => text(
                estimates
                    .ratio()
                    .map(|ratio| format!("{}{}×", if differs(ratio) { "" } else { "~" }, digits(ratio.median))),
            ),
            Part::RatioInterval if self.is_baseline(record) => Cell::default(),
            Part::RatioInterval => text(estimates.ratio().map(|ratio| interval(ratio, digits))),
            // What moves nothing has no share of what can be moved.
            Part::OfCopy if record.job.link() == LinkKind::Null => Cell::shown("–"),
            Part::OfCopy => text(self.copy.map(|copy| percent(throughput.median / copy * 100.0))),
            Part::Inside => text(match record.job.volume() {
                Volume::Total(total) => Some(Unit::Nanoseconds.show(total.0 as f64 / throughput.median * 1e9)),
                Volume::Time(_) => None,
            }),
            Part::Bar if ranked(record) => Cell::bar(throughput.median / highest, throughput.median / highest),
            _ => Cell::default(),
        }
    }

    /// A copy within one process has no ends, so only what it copies is a parameter of it.
    fn parameter(&self, key: Key, record: &Record) -> String {
        let value = record.job.value(key).filter(|_| COPIED.contains(&key) || !record.job.is_memory_copy());
        value.map_or_else(|| "–".to_owned(), |value| value.to_string())
    }

    fn is_baseline(&self, record: &Record) -> bool {
        self.baselines.iter().any(|baseline| baseline.id == record.id)
    }

    fn published(&self, record: &Record) -> Option<String> {
        let published = record.published.as_ref()?;
        let figure = match published.relative {
            true => format!("{} s", three_digits(GIB / published.throughput)),
            false => Unit::BytesPerSecond.show(published.throughput),
        };
        let source = self.sources.iter().position(|source| *source == published.source)?;
        Some(if self.sources.len() > 1 { format!("{figure} [{}]", source + 1) } else { figure })
    }

    /// What ratios are taken to, in words: one row, or what several rows have in common.
    fn baseline(&self) -> String {
        let [first, others @ ..] = self.baselines.as_slice() else { return "the baseline".to_owned() };
        if others.is_empty() {
            return format!("'{}'", first.name);
        }
        let common = |key: &Key| others.iter().all(|other| other.job.value(*key) == first.job.value(*key));
        let common: Vec<String> =
            self.varying().into_iter().filter(common).map(|key| format!("{key} {}", first.shown(key))).collect();
        if common.is_empty() {
            return "the row marked 'base' that is otherwise the same".to_owned();
        }
        format!("the row with {} that is otherwise the same", common.join(", "))
    }

    /// What has to stand below the table: its footnotes, and where ratios and published figures come from.
    fn notes(&self, parts: &[Part]) -> Vec<Note> {
        let lettered = self.footnotes.lettered();
        let mut notes: Vec<Note> = lettered.map(|(mark, text)| Note::new(&mark, Style::Caution, &text)).collect();
        let mut note = |mark: &str, text: &str| notes.push(Note::new(mark, Style::Aside, text));
        if parts.contains(&Part::Ratio) {
            let ratio = |record: &&Record| record.estimate.as_ref().and_then(|estimates| estimates.ratio()).copied();
            let others = self.records.iter().filter(|record| !self.is_baseline(record));
            let unclear = others.filter_map(ratio).any(|ratio| !differs(&ratio));
            let unclear = if unclear { "; ~ means that no difference is shown" } else { "" };
            let figure = match parts.contains(&Part::Headline(Figure::P50)) {
                true => ": how many times as fast, by the median round trip, so below 1 is slower",
                false => "",
            };
            note("ratio", &format!("to {}, taken within each round{figure}{unclear}", self.baseline()));
        }
        if self.records.iter().any(|record| record.job.link() == LinkKind::Null && missing(record).is_none()) {
            note("null", "transfers nothing, it is what the harness itself costs; not ranked");
        }
        if parts.contains(&Part::Figure(Figure::TaskClock)) {
            note("counters", "of all processes of the pipeline, from start to end, a run");
            let hardware = [Figure::Migrations, Figure::Cycles, Figure::Instructions, Figure::BranchMisses].into_iter();
            let missing = hardware.filter(|figure| !parts.contains(&Part::Figure(*figure))).map(Figure::heading);
            let missing: Vec<&str> = missing.collect();
            if !missing.is_empty() {
                let text = format!(
                    "{}: perf_event_open(2) counts none here (no hardware counters, or /proc/sys/kernel/perf_event_paranoid above 1)",
                    missing.join(", ")
                );
                note("not supported", &text);
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            let number = if self.sources.len() > 1 { format!(" [{}]", index + 1) } else { String::new() };
            note(&format!("published{number}"), &format!("on other hardware, by others: {}", neutral(source)));
        }
        notes
    }
}

/// What a column shows.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// A parameter in which the trials differ.
    Parameter(Key),
    /// The name, where trials differ in nothing that has a column.
    Name,
    /// The figure that trials are told by, with the marks of the row.
    Headline(Figure),
    /// Another figure.
    Figure(Figure),
    /// Half the interval's width, in per cent of the median.
    Margin,
    /// The interval's ends.
    Interval,
    /// The real time as published, for as many bytes.
    PublishedReal,
    /// What a stage passed on per second, times the stages.
    PerHop,
    /// How many runs there were.
    Runs,
    /// How many times as fast as the baseline.
    Ratio,
    /// The interval of that.
    RatioInterval,
    /// Throughput in per cent of the memory-copy limit.
    OfCopy,
    /// Of an entrant, the time that its own clock took.
    Inside,
    /// What others measured on other hardware.
    Published,
    /// Throughput as a bar.
    Bar,
}

impl Part {
    fn column(&self, several_groups: bool) -> Column {
        let figures = |heading: &str, fit: Fit| Column::figures("", heading).fit(fit);
        match self {
            Part::Parameter(key) => {
                let side = if key.unit() == Unit::Word { Side::Left } else { Side::Right };
                Column { side, ..Column::words("", (*key).into()).room(Room::Elastic) }
            }
            Part::Name => Column::words("", "trial").room(Room::Elastic),
            Part::Headline(figure) => Column::figures("", figure.heading()),
            // What spinning costs has to stand beside what it gains.
            Part::Figure(figure @ Figure::CpuSecondsPerGib) if several_groups => Column::figures("", figure.heading()),
            Part::Figure(figure) => figures(figure.heading(), Fit::Leave(rank(*figure))),
            Part::Margin => figures("95\u{a0}%", Fit::Leave(1)),
            Part::Interval => figures("95\u{a0}% interval", Fit::LeaveSilently(80)),
            Part::PublishedReal => Column::figures("", "real, elsewhere"),
            Part::PerHop => figures("per hop", Fit::Leave(30)),
            Part::Runs => figures("runs", Fit::LeaveSilently(79)),
            Part::Ratio => figures("ratio", Fit::Leave(2)),
            Part::RatioInterval => figures("ratio's interval", Fit::LeaveSilently(90)),
            Part::OfCopy => figures("% of copy", Fit::Leave(70)),
            Part::Inside => figures("time inside", Fit::Leave(25)),
            Part::Published => figures("published, elsewhere", Fit::Leave(3)),
            Part::Bar => Column::bars("").fit(Fit::LeaveSilently(75)),
        }
    }
}

/// Which figure goes first where there is not enough room: the highest.
fn rank(figure: Figure) -> u8 {
    match figure {
        Figure::P90 => 89,
        Figure::Slowest => 88,
        Figure::P999 => 87,
        Figure::BranchMisses | Figure::PageFaults => 66,
        Figure::Instructions | Figure::Migrations | Figure::Cycles => 65,
        Figure::TaskClock => 62,
        Figure::FilterCpu | Figure::ContextSwitches | Figure::Cpus => 60,
        Figure::SwitchesPerMib => 40,
        Figure::CpuSecondsPerGib => 20,
        Figure::MaxRss => 11,
        Figure::StartUp => 10,
        Figure::Real | Figure::P99 | Figure::RoundTripsPerSecond | Figure::CpuSecondsPerMillion => 0,
        // What is new goes first.
        _ => 85,
    }
}

/// What a wait policy means for the figures.
fn meaning(wait: WaitPolicy) -> &'static str {
    match wait {
        WaitPolicy::Block => "block: an end that has to wait sleeps in the call",
        WaitPolicy::Poll => "poll: an end that has to wait sleeps in poll(2)",
        WaitPolicy::Spin => "spin: an end that has to wait keeps its CPU busy; not to be ranked with rows that sleep",
    }
}

fn median(record: &Record, figure: Figure) -> Option<f64> {
    Some(record.estimate.as_ref()?.get(figure)?.median)
}

fn interval(estimate: &Estimate, show: impl Fn(f64) -> String) -> String {
    estimate.low.zip(estimate.high).map_or_else(|| "–".to_owned(), |(low, high)| between(&show(low), &show(high)))
}

/// Whether a ratio's interval leaves 1 out.
fn differs(ratio: &Estimate) -> bool {
    matches!((ratio.low, ratio.high), (Some(low), Some(high)) if low > 1.0 || high < 1.0)
}

/// How long a published chain would have taken for as many bytes as ours moves, in nanoseconds.
pub(super) fn published_real(record: &Record) -> Option<f64> {
    match (&record.published, record.job.volume()) {
        (Some(published), Volume::Total(total)) => Some(total.0 as f64 / published.throughput * 1e9),
        _ => None,
    }
}
