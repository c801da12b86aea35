//! What a table says of one experiment: which columns it needs, each cell's text, the groups and the footnotes.
//! The terminal's table and Markdown both lay this out; neither is done here.

use std::collections::HashSet;

use strum::IntoEnumIterator;

use crate::model::{
    self, ByteSize, Document, Estimate, Figure, Key, LinkKind, Nanos, Published, Record, Status, Throughput, Volume,
    WaitPolicy, three_digits,
};

use super::column::Column;
use super::footnotes::Footnotes;
use super::text::{digits, neutral, percent};

const GIB: f64 = (1u64 << 30) as f64;

/// Trials that wait in the same way: rows are compared within a group only, because a spinning end costs a whole CPU.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) wait: WaitPolicy,
    pub(super) records: Vec<&'a Record>,
    /// The highest median throughput of what is ranked, which the longest bar stands for.
    pub(super) highest: f64,
}

impl Group<'_> {
    /// What the policy means for the figures.
    pub(super) fn meaning(&self) -> &'static str {
        match self.wait {
            WaitPolicy::Block => "block: an end that has to wait sleeps in the call",
            WaitPolicy::Poll => "poll: an end that has to wait sleeps in poll(2)",
            WaitPolicy::Spin => {
                "spin: an end that has to wait keeps its CPU busy; not to be ranked with rows that sleep"
            }
        }
    }
}

/// One experiment of a document, ready to be laid out.
#[derive(Debug)]
pub(super) struct Experiment<'a> {
    pub(super) name: &'a str,
    pub(super) title: String,
    /// The parameters that all its trials share, in words.
    pub(super) shared: Vec<String>,
    pub(super) columns: Vec<Column>,
    pub(super) groups: Vec<Group<'a>>,
    footnotes: Footnotes<'a>,
    /// Where published figures come from, in the order of their first row.
    sources: Vec<&'a str>,
    baselines: Vec<&'a Record>,
    copy: Option<f64>,
}

impl<'a> Experiment<'a> {
    /// The experiments of a document, in its order.
    pub(super) fn all(document: &'a Document) -> Vec<Experiment<'a>> {
        let copy = document.memory_copy.map(|estimate| estimate.median).filter(|median| *median > 0.0);
        let records = |name: &str| -> Vec<&Record> {
            document.trials.iter().filter(|record| record.experiment == name).collect()
        };
        document
            .experiments
            .iter()
            .map(|experiment| (experiment, records(&experiment.name)))
            .filter(|(_, records)| !records.is_empty())
            .map(|(experiment, records)| Experiment::new(experiment, &records, copy))
            .collect()
    }

    fn new(about: &'a model::Experiment, records: &[&'a Record], copy: Option<f64>) -> Experiment<'a> {
        // In the order that the author of the suite gave them, and then what differs besides.
        let mut varying: Vec<Key> = about.varies.clone();
        varying.extend(Key::iter().filter(|key| !about.varies.contains(key)));
        varying.retain(|key| *key != Key::Wait && varies(*key, records));
        let mut experiment = Experiment {
            name: &about.name,
            title: neutral(if about.title.is_empty() { &about.name } else { &about.title }),
            shared: shared(records),
            columns: Vec::new(),
            groups: groups(records),
            footnotes: Footnotes::of(records),
            sources: Vec::new(),
            baselines: Vec::new(),
            copy,
        };
        for record in records {
            if let Some(Published { source, .. }) = &record.published
                && !experiment.sources.contains(&source.as_str())
            {
                experiment.sources.push(source);
            }
            if let Some(baseline) = records.iter().find(|other| record.baseline.as_ref() == Some(&other.id))
                && !experiment.baselines.iter().any(|known| known.id == baseline.id)
            {
                experiment.baselines.push(baseline);
            }
        }
        experiment.columns = experiment.columns_for(&varying, records);
        experiment
    }

    fn columns_for(&self, varying: &[Key], records: &[&Record]) -> Vec<Column> {
        let measured = records.iter().any(|record| record.estimate.is_some());
        let chained = records.iter().any(|record| record.job.chain().is_some());
        let compared = records.iter().any(|record| record.estimate.as_ref().is_some_and(|e| e.ratio().is_some()));
        let entrants =
            records.iter().any(|record| record.estimate.as_ref().is_some_and(|e| e.get(Figure::StartUp).is_some()));
        let mut columns: Vec<Column> = varying.iter().copied().map(Column::Param).collect();
        // A wait policy is a group of its own, not a column, so a row without parameters may still be told by its group.
        if columns.is_empty() && records.len() > self.groups.len() {
            columns.push(Column::Name);
        }
        let latency = measured
            && records
                .iter()
                .filter_map(|record| record.estimate.as_ref())
                .all(|estimate| estimate.round_trip().is_some());
        let has = |figure: Figure| {
            records.iter().filter_map(|record| record.estimate.as_ref()).any(|estimate| estimate.get(figure).is_some())
        };
        let counted = has(Figure::TaskClock);
        columns.push(if latency { Column::P50 } else { Column::Throughput });
        let optional = [
            (Column::Touched, measured && !counted),
            (Column::Flags, !self.footnotes.is_empty()),
            (Column::PerHop, chained),
            (Column::Real, chained),
            (Column::PublishedReal, chained && !self.sources.is_empty()),
            (Column::Margin, measured),
            (Column::P90, latency && has(Figure::P90)),
            (Column::P99, latency && has(Figure::P99)),
            (Column::P999, latency && has(Figure::P999)),
            (Column::Slowest, latency),
            (Column::Trips, latency),
            (Column::CpuPerMillion, latency),
            (Column::Interval, measured && !latency),
            (Column::Runs, measured),
            (Column::Ratio, compared),
            (Column::RatioInterval, compared),
            (Column::OfCopy, measured && !latency && self.copy.is_some()),
            (Column::Cpu, measured && !latency),
            (Column::Switches, measured && chained),
            (Column::Inside, entrants),
            (Column::StartUp, entrants),
            (Column::Memory, entrants && has(Figure::MaxRss)),
            (Column::FilterCpu, counted),
            (Column::TaskClock, counted),
            (Column::Cpus, counted),
            (Column::AllSwitches, counted),
            (Column::Migrations, has(Figure::Migrations)),
            (Column::Faults, counted),
            (Column::Cycles, has(Figure::Cycles)),
            (Column::Instructions, has(Figure::Instructions)),
            (Column::BranchMisses, has(Figure::BranchMisses)),
            (Column::Published, !self.sources.is_empty() && !chained),
            (Column::Bar, !latency && records.iter().filter(|record| ranked(record)).count() > 1),
        ];
        columns.extend(optional.into_iter().filter_map(|(column, wanted)| wanted.then_some(column)));
        columns
    }

    /// The text of one cell; empty where there is nothing to say, and always for the bar.
    pub(super) fn cell(&self, column: Column, record: &Record) -> String {
        match column {
            Column::Param(key) if !applies(key, record) => return "–".to_owned(),
            Column::Param(key) => return neutral(&record.shown(key)),
            Column::Name => return neutral(&record.name),
            Column::Published => return self.published(record),
            Column::PublishedReal => return published_real(record),
            _ => {}
        }
        let Some(estimate) = &record.estimate else { return String::new() };
        let headline = estimate.headline();
        let of = |figure: Figure, shown: fn(f64) -> String| {
            estimate.get(figure).map_or_else(|| "–".to_owned(), |estimate| shown(estimate.median))
        };
        let time: fn(f64) -> String = |ns| Nanos(ns.round() as u64).to_string();
        match column {
            Column::P50 => of(Figure::P50, time),
            Column::P90 => of(Figure::P90, time),
            Column::P99 => of(Figure::P99, time),
            Column::P999 => of(Figure::P999, time),
            Column::Slowest => of(Figure::Slowest, time),
            Column::Trips => of(Figure::RoundTripsPerSecond, counted),
            Column::CpuPerMillion => of(Figure::CpuSecondsPerMillion, digits),
            Column::Throughput => Throughput(estimate.throughput().median).to_string(),
            Column::Margin => match margin(headline) {
                Some(share) => format!("±{} %", margin_percent(share)),
                None => format!("n={}", headline.runs),
            },
            Column::Interval => match (estimate.throughput().low, estimate.throughput().high) {
                (Some(low), Some(high)) => between(&Throughput(low).to_string(), &Throughput(high).to_string()),
                _ => "–".to_owned(),
            },
            Column::Real => estimate.get(Figure::Real).map_or_else(String::new, |real| time(real.median)),
            Column::PerHop if record.job.chain().is_none() => "–".to_owned(),
            Column::PerHop => {
                Throughput(estimate.throughput().median * f64::from(record.job.chain().map_or(0, |chain| chain.length)))
                    .to_string()
            }
            Column::Runs => headline.runs.to_string(),
            Column::Touched => touched(record).mark().to_owned(),
            Column::Flags => self.footnotes.letters(record),
            Column::Ratio => match estimate.ratio() {
                _ if self.is_baseline(record) => "base".to_owned(),
                Some(ratio) if differs(ratio) => format!("{}×", digits(ratio.median)),
                Some(ratio) => format!("~{}×", digits(ratio.median)),
                None => String::new(),
            },
            Column::RatioInterval => match estimate.ratio().copied() {
                _ if self.is_baseline(record) => String::new(),
                Some(Estimate { low: Some(low), high: Some(high), .. }) => format!("{}–{}", digits(low), digits(high)),
                Some(_) => "–".to_owned(),
                None => String::new(),
            },
            // What moves nothing has no share of what can be moved.
            Column::OfCopy if record.job.link() == LinkKind::Null => "–".to_owned(),
            Column::OfCopy => {
                self.copy.map_or_else(String::new, |copy| percent(estimate.throughput().median / copy * 100.0))
            }
            Column::Cpu => digits(estimate.cpu_seconds_per_gib().median),
            Column::Switches => {
                estimate.get(Figure::SwitchesPerMib).map_or_else(String::new, |figure| digits(figure.median))
            }
            Column::Inside => match record.job.volume() {
                Volume::Total(total) => nanos(total.0 as f64 / estimate.throughput().median * 1e9),
                Volume::Time(_) => String::new(),
            },
            Column::StartUp => {
                estimate.get(Figure::StartUp).map_or_else(String::new, |estimate| nanos(estimate.median))
            }
            Column::Memory => estimate
                .get(Figure::MaxRss)
                .map_or_else(|| "–".to_owned(), |peak| ByteSize(peak.median as u64).to_string()),
            Column::FilterCpu => of(Figure::FilterCpu, digits),
            Column::TaskClock => of(Figure::TaskClock, time),
            Column::Cpus => of(Figure::Cpus, |cpus| format!("{cpus:.2}")),
            Column::AllSwitches => of(Figure::ContextSwitches, counted),
            Column::Migrations => of(Figure::Migrations, counted),
            Column::Faults => of(Figure::PageFaults, counted),
            Column::Cycles => of(Figure::Cycles, counted),
            Column::Instructions => of(Figure::Instructions, counted),
            Column::BranchMisses => of(Figure::BranchMisses, counted),
            Column::Param(_) | Column::Name | Column::Published | Column::PublishedReal | Column::Bar => String::new(),
        }
    }

    fn is_baseline(&self, record: &Record) -> bool {
        self.baselines.iter().any(|baseline| baseline.id == record.id)
    }

    fn published(&self, record: &Record) -> String {
        let Some(published) = &record.published else { return String::new() };
        let figure = match published.relative {
            true => format!("{} s", three_digits(GIB / published.throughput)),
            false => Throughput(published.throughput).to_string(),
        };
        match self.sources.iter().position(|source| *source == published.source) {
            Some(index) if self.sources.len() > 1 => format!("{figure} [{}]", index + 1),
            _ => figure,
        }
    }

    /// What ratios are taken to, in words: one row, or what several rows have in common.
    fn baseline(&self) -> String {
        let [first, others @ ..] = self.baselines.as_slice() else { return "the baseline".to_owned() };
        if others.is_empty() {
            return format!("'{}'", neutral(&first.name));
        }
        let common: Vec<String> = self
            .columns
            .iter()
            .filter_map(|column| if let Column::Param(key) = column { Some(*key) } else { None })
            .filter(|key| others.iter().all(|other| other.job.value(*key) == first.job.value(*key)))
            .map(|key| format!("{key} {}", neutral(&first.shown(key))))
            .collect();
        if common.is_empty() {
            return "the row marked 'base' that is otherwise the same".to_owned();
        }
        format!("the row with {} that is otherwise the same", common.join(", "))
    }

    /// What has to stand below the table: its footnotes, and where ratios and published figures come from.
    pub(super) fn notes(&self) -> Vec<(String, String)> {
        let mut notes = self.footnotes.notes();
        if self.columns.contains(&Column::Ratio) {
            let unclear = self.groups.iter().flat_map(|group| &group.records).any(|record| {
                let ratio = record.estimate.as_ref().and_then(|e| e.ratio());
                !self.is_baseline(record) && ratio.is_some_and(|ratio| !differs(ratio))
            });
            let unclear = if unclear { "; ~ means that no difference is shown" } else { "" };
            let figure = match self.columns.contains(&Column::P50) {
                true => ": how many times as fast, by the median round trip, so below 1 is slower",
                false => "",
            };
            let text = format!("to {}, taken within each round{figure}{unclear}", self.baseline());
            notes.push(("ratio".to_owned(), text));
        }
        let null = |record: &&Record| record.job.link() == LinkKind::Null && missing(record).is_none();
        if self.groups.iter().flat_map(|group| &group.records).copied().any(|record| null(&record)) {
            let text = "transfers nothing, it is what the harness itself costs; not ranked";
            notes.push(("null".to_owned(), text.to_owned()));
        }
        if self.columns.contains(&Column::TaskClock) {
            let lacks = |column| !self.columns.contains(&column);
            let missing: Vec<&str> = [
                (Column::Migrations, "migrations"),
                (Column::Cycles, "cycles"),
                (Column::Instructions, "instructions"),
                (Column::BranchMisses, "branch misses"),
            ]
            .into_iter()
            .filter_map(|(column, word)| lacks(column).then_some(word))
            .collect();
            notes
                .push(("counters".to_owned(), "of all processes of the pipeline, from start to end, a run".to_owned()));
            if !missing.is_empty() {
                let text = format!(
                    "{}: perf_event_open(2) counts none here (no hardware counters, or /proc/sys/kernel/perf_event_paranoid above 1)",
                    missing.join(", ")
                );
                notes.push(("not supported".to_owned(), text));
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            let mark =
                if self.sources.len() > 1 { format!("published [{}]", index + 1) } else { "published".to_owned() };
            notes.push((mark, format!("on other hardware, by others: {}", neutral(source))));
        }
        notes
    }
}

/// A number of things: 950, 12.3k, 4.56M.
fn counted(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{}M", digits(n / 1e6)),
        n if n >= 1e4 => format!("{}k", digits(n / 1e3)),
        n => format!("{n:.0}"),
    }
}

/// What happened to the bytes at the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touched {
    /// Each was looked at.
    Read,
    /// They were in the sink's memory and not looked at.
    Copied,
    /// They never were in the sink's memory.
    Unseen,
}

impl Touched {
    pub(super) fn mark(self) -> &'static str {
        match self {
            Touched::Read => "●",
            Touched::Copied => "◐",
            Touched::Unseen => "○",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Touched::Read => "● the sink looked at every byte",
            Touched::Copied => "◐ the bytes reached the sink's memory, and it did not look at them",
            Touched::Unseen => "○ the bytes never reached the sink's memory",
        }
    }
}

/// What happened to the bytes of this trial at the sink.
pub(super) fn touched(record: &Record) -> Touched {
    let arrives = record.job.ends().is_none_or(|ends| ends.recv.touches() && ends.link != LinkKind::Null);
    match (record.touched, arrives) {
        (true, _) => Touched::Read,
        (false, true) => Touched::Copied,
        (false, false) => Touched::Unseen,
    }
}

/// The legend of the marks that a document's tables use.
pub(super) fn legend(document: &Document) -> Vec<String> {
    let measured = || document.trials.iter().filter(|record| record.estimate.is_some());
    let moved = || measured().filter(|record| record.job.lines().is_none());
    let mut marks: Vec<Touched> = moved().map(touched).collect();
    marks.sort_unstable();
    marks.dedup();
    let mut legend: Vec<String> = marks.into_iter().map(|mark| mark.meaning().to_owned()).collect();
    if measured().any(|record| record.estimate.as_ref().is_some_and(|e| margin(e.headline()).is_none())) {
        legend.push("n=… too few runs for an interval: take such a figure as a hint".to_owned());
    }
    legend
}

/// How the record ended when it has no figures to show: `skipped: why`.
pub(super) fn missing(record: &Record) -> Option<String> {
    let why = |outcome: &str| match record.reason.as_deref().map(neutral).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{outcome}: {reason}"),
        None => outcome.to_owned(),
    };
    match record.status {
        // Data that did not verify has no speed.
        _ if record.verified == Some(false) => Some(why("did not verify")),
        Status::Skipped => Some(why("skipped")),
        Status::Failed => Some(why("failed")),
        Status::Ok if record.estimate.is_none() => Some(why("not measured")),
        Status::Ok => None,
    }
}

/// Whether it is measured and moves bytes from one process to another: what moves nothing is not ranked with what does.
pub(super) fn ranked(record: &Record) -> bool {
    record.job.link().transfers() && record.estimate.is_some() && missing(record).is_none()
}

/// Half the interval's width as a share of the median: the larger half, because a bootstrap interval is lopsided.
pub(super) fn margin(estimate: &Estimate) -> Option<f64> {
    let (low, high) = (estimate.low?, estimate.high?);
    (estimate.median > 0.0).then(|| (high - estimate.median).max(estimate.median - low).max(0.0) / estimate.median)
}

/// A margin in per cent, rounded up: ±0.0 % would promise too much.
pub(super) fn margin_percent(share: f64) -> String {
    // A tenth of a millionth of a per cent is the arithmetic's own.
    let percent = (share * 1000.0 - 1e-6).ceil().max(1.0) / 10.0;
    match percent {
        p if p < 10.0 => format!("{p:.1}"),
        p if p <= 999.0 => format!("{:.0}", p.ceil()),
        // How much more does not matter, and would make the column wide.
        _ => ">999".to_owned(),
    }
}

/// Whether a ratio's interval leaves 1 out.
fn differs(ratio: &Estimate) -> bool {
    matches!((ratio.low, ratio.high), (Some(low), Some(high)) if low > 1.0 || high < 1.0)
}

/// A time in three digits.
fn nanos(ns: f64) -> String {
    Nanos(ns.round() as u64).to_string()
}

/// `1.48–1.53 GiB/s`, or both units where they differ.
fn between(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((value, unit)), Some((_, other))) if unit == other => format!("{value}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// A copy within one process has no ends, so only what it copies is a parameter of it.
fn applies(key: Key, record: &Record) -> bool {
    record.job.link() != LinkKind::MemoryCopy
        || matches!(key, Key::Link | Key::Block | Key::Pages | Key::Align | Key::Total | Key::Time)
}

fn varies(key: Key, records: &[&Record]) -> bool {
    if key == Key::ReadBlock && records.iter().all(|record| record.job.settings().read_block.is_none()) {
        return false;
    }
    let values: HashSet<_> =
        records.iter().filter(|record| applies(key, record)).map(|record| record.job.value(key)).collect();
    values.len() > 1
}

/// How long a published chain would have taken for as many bytes as ours moves.
fn published_real(record: &Record) -> String {
    match (&record.published, record.job.volume()) {
        (Some(published), Volume::Total(total)) => {
            Nanos((total.0 as f64 / published.throughput * 1e9).round() as u64).to_string()
        }
        _ => String::new(),
    }
}

/// What all trials have in common, in words; what is usual and says nothing is left out.
fn shared(records: &[&Record]) -> Vec<String> {
    let Some(first) = records.iter().find(|record| record.job.link() != LinkKind::MemoryCopy).or(records.first())
    else {
        return Vec::new();
    };
    let settings = first.job.settings();
    let same = |key: Key| applies(key, first) && !varies(key, records);
    let mut words = Vec::new();
    if same(Key::Link) && first.job.link() != LinkKind::Pipe {
        words.push(first.job.link().to_string());
    }
    let both = [Key::Send, Key::Recv].map(|key| first.shown(key));
    match (same(Key::Send), same(Key::Recv)) {
        (true, true) => words.push(both.join(" → ")),
        (true, false) => words.push(format!("send {}", both[0])),
        (false, true) => words.push(format!("recv {}", both[1])),
        (false, false) => {}
    }
    let order = [Key::Block, Key::ReadBlock, Key::Capacity, Key::Place].into_iter().chain(Key::iter());
    let mut seen = HashSet::new();
    for key in order.filter(|key| seen.insert(*key) && same(*key)) {
        let value = first.shown(key);
        let unusual = || settings.get(key).is_some_and(|value| key.usual() != Some(value));
        let telling = match key {
            Key::Block | Key::Place => true,
            // The usual capacity says nothing of links that have none.
            Key::Capacity => unusual() || records.iter().all(|record| record.job.link().is_pipe()),
            Key::Link | Key::Send | Key::Recv | Key::Wait => false,
            Key::ReadBlock => settings.read_block.is_some(),
            Key::Total | Key::Time => !value.is_empty(),
            Key::Stage => records.iter().any(|record| record.job.chain().is_some()),
            _ => unusual(),
        };
        match key {
            _ if !telling => {}
            Key::Total => words.push(format!("{value} per run")),
            Key::Time => words.push(format!("{value} per run")),
            Key::Pairs => words.push(format!("{value} pairs at once")),
            Key::Pages => words.push(format!("{value} pages")),
            _ => words.push(format!("{} {value}", key.to_string().replace('-', " "))),
        }
    }
    words.iter().map(|word| neutral(word)).collect()
}

fn groups<'a>(records: &[&'a Record]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    for record in records {
        let highest = match &record.estimate {
            Some(estimate) if ranked(record) => estimate.throughput().median,
            _ => 0.0,
        };
        match groups.iter_mut().find(|group| group.wait == record.job.wait()) {
            Some(group) => {
                group.records.push(record);
                group.highest = group.highest.max(highest);
            }
            None => groups.push(Group { wait: record.job.wait(), records: vec![record], highest }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_name_a_shared_unit_once() {
        assert_eq!(between("1.48 GiB/s", "1.53 GiB/s"), "1.48–1.53 GiB/s");
        assert_eq!(between("990 MiB/s", "1.01 GiB/s"), "990 MiB/s–1.01 GiB/s");
    }

    #[test]
    fn a_margin_is_never_rounded_down() {
        assert_eq!(margin_percent(0.0), "0.1");
        assert_eq!(margin_percent(0.0101), "1.1");
        assert_eq!(margin_percent(0.1201), "13");
        assert_eq!(margin_percent(9.989), "999");
        assert_eq!(margin_percent(54.0), ">999");
    }

    #[test]
    fn a_ratio_without_an_interval_shows_no_difference() {
        let ratio = |low, high| Estimate { median: 1.5, low, high, min: 1.0, max: 2.0, runs: 3 };
        assert!(!differs(&ratio(None, None)));
        assert!(!differs(&ratio(Some(0.9), Some(1.6))));
        assert!(differs(&ratio(Some(1.4), Some(1.6))));
    }
}
