//! The table of one experiment: a row for each trial, with columns for the varying parameters and for the figures.

use std::collections::{BTreeSet, HashMap, HashSet};

use pipemark_model::{
    ColumnUnit, Estimate, Estimates, Figure, Job, Key, MEMORY_COPY_KEYS, Record, Statistic, Throughput, Unit, Volume,
    WaitPolicy, bytes_in_words, differing_keys, digits, distinct, group_by_key, mixes_foreign_programs, neutral,
    percent, phrase, shared, three_digits,
};
use pipemark_show::{Align, Cell, Column, Fit, Grid, Note, Style, Table};
use pipemark_stats::records::ratio_agrees;

use crate::sheet::marks::{WARNED, marks, warnings_by_trial};
use crate::sheet::matrix::{self, without_transfer};
use crate::sheet::message_cpu::MessageCpu;
use crate::sheet::words::{interval, missing, ranked};

/// The trials of a document by the names of their experiments.
pub(super) type TrialsByExperiment<'a> = HashMap<&'a str, Vec<&'a Record>>;

pub(super) fn trials_by_experiment(document: &pipemark_model::Document) -> TrialsByExperiment<'_> {
    group_by_key(document.trials.iter().map(|record| (record.experiment.as_str(), record))).into_iter().collect()
}

/// Trials that sentences are about: the names of their experiments, and their ids.
pub(super) type CitedTrials<'a> = BTreeSet<(&'a str, &'a str)>;

/// One experiment of a document.
#[derive(Debug)]
pub(super) struct MeasuredExperiment<'a> {
    pub(super) about: &'a pipemark_model::Experiment,
    pub(super) records: Vec<&'a Record>,
    /// The sources of published figures, in the order of the rows.
    sources: Vec<&'a str>,
    baselines: Vec<&'a Record>,
    baselines_by_id: HashMap<&'a str, &'a Record>,
    /// The highest throughput of each wait policy, in bytes per second.
    highest: Vec<(WaitPolicy, f64)>,
    copy: Option<f64>,
}

/// The median throughput in bytes per second; 0 without an estimate.
fn throughput(record: &Record) -> f64 {
    record.estimate.as_ref().map_or(0.0, |estimates| estimates.throughput().median)
}

impl<'a> MeasuredExperiment<'a> {
    /// The experiment of a document; `None` if it has no trials.
    pub(super) fn of(
        document: &'a pipemark_model::Document,
        about: &'a pipemark_model::Experiment,
        trials: &TrialsByExperiment<'a>,
    ) -> Option<MeasuredExperiment<'a>> {
        let records = trials.get(about.name.as_str())?.clone();
        let published = records.iter().filter_map(|record| record.published.as_ref());
        let sources = distinct(published.map(|published| published.source.as_str()));
        let bases: HashSet<&str> = records.iter().filter_map(|record| record.baseline.as_deref()).collect();
        let baselines: Vec<&Record> =
            records.iter().copied().filter(|record| bases.contains(record.id.as_str())).collect();
        // If an id occurs several times, the first record counts.
        let baselines_by_id = baselines.iter().rev().map(|record| (record.id.as_str(), *record)).collect();
        let mut highest: Vec<(WaitPolicy, f64)> = Vec::new();
        for record in records.iter().filter(|record| ranked(record)) {
            let (wait, speed) = (record.job.wait(), throughput(record));
            match highest.iter_mut().find(|known| known.0 == wait) {
                Some(known) => known.1 = known.1.max(speed),
                None => highest.push((wait, speed)),
            }
        }
        let copy = document.memory_copy.map(|estimate| estimate.median).filter(|median| *median > 0.0);
        Some(MeasuredExperiment { about, records, sources, baselines, baselines_by_id, highest, copy })
    }

    pub(super) fn title(&self) -> &str {
        if self.about.title.is_empty() { &self.about.name } else { &self.about.title }
    }

    /// The jobs without memory copies, or all jobs if there are only memory copies.
    fn jobs(&self) -> Vec<&'a Job> {
        let jobs = || self.records.iter().map(|record| &record.job);
        let ours: Vec<&Job> = jobs().filter(|job| !job.is_memory_copy()).collect();
        if ours.is_empty() { jobs().collect() } else { ours }
    }

    /// The parameters in which the trials differ. Those that the suite names come first. Memory copies are ignored,
    /// because they have no source and sink.
    pub(super) fn varying(&self) -> Vec<Key> {
        let jobs = self.jobs();
        let mut keys = differing_keys(&jobs, &self.about.varies);
        if jobs.len() < self.records.len() && !keys.contains(&Key::Link) {
            keys.insert(0, Key::Link);
        }
        keys
    }

    /// The settings that all trials have in common, as text. If only some trials run programs in other languages, these
    /// are ignored.
    pub(super) fn shared(&self) -> Vec<String> {
        let mut jobs = self.jobs();
        if !self.about.known.is_empty() {
            let varying = self.varying();
            let known = self.about.known.iter().filter(|key| !varying.contains(key));
            return known.filter_map(|key| Some(phrase(&jobs.first()?.value(*key)?))).collect();
        }
        if mixes_foreign_programs(&jobs) {
            jobs.retain(|job| job.ends().is_some());
        }
        shared(&jobs)
    }

    /// Whether a figure was measured: of measurements by other tools, only the time, and CPU times that aren't 0.
    fn is_measured(&self, figure: Figure) -> bool {
        let counts_cpu =
            || self.records.iter().flat_map(|record| &record.samples).any(|own| own.user_ns + own.sys_ns > 0);
        self.about.may_have(figure, counts_cpu)
    }

    /// Whether the main figure of the trials is a time.
    pub(super) fn is_latency(&self) -> bool {
        let mut measured = self.records.iter().filter(|record| record.estimate.is_some()).peekable();
        measured.peek().is_some() && measured.all(|record| record.job.is_latency())
    }

    /// The table, and the notes below the table.
    pub(super) fn grid(&self) -> (Grid, Vec<Note>) {
        let mut table = Table::of(&self.records);
        let labels = self.add_columns(&mut table);
        let style = |reason: &str| if reason.starts_with("skipped") { Style::Aside } else { Style::Failure };
        let table = table.instead(|record| missing(record).map(|reason| (style(&reason), reason)));
        let blocking = self.records.iter().all(|record| record.job.wait() == WaitPolicy::Block);
        let checks = distinct(self.records.iter().filter_map(|record| check(record)));
        // Programs that check differently do different work, so they aren't ranked together.
        let caption = |record: &Record| match check(record) {
            Some(true) if checks.len() > 1 => "compare each block with the expected block",
            Some(false) if checks.len() > 1 => "sum the words of each block",
            _ if blocking => "",
            _ => wait_policy_effect(record.job.wait()),
        };
        let grid = table.grouped(|record| caption(record), |caption| (*caption).to_owned());
        (Grid { labels, ..grid }, self.notes())
    }

    /// Whether the published figures are counts of calls.
    pub(super) fn counts_calls(&self) -> bool {
        self.records
            .iter()
            .filter_map(|record| record.published.as_ref())
            .any(|own| own.as_published.ends_with(" calls"))
    }

    /// How the published figures were computed from the publication's runs; `None` if that is unknown or differs
    /// between them.
    pub(super) fn statistic(&self) -> Option<Statistic> {
        let published = self.records.iter().filter_map(|record| record.published.as_ref());
        let [statistic] = distinct(published.map(|own| own.statistic))[..] else { return None };
        statistic
    }

    /// `published` with the statistic of the published figures, if known: `published mean`.
    fn published_heading(&self) -> String {
        let statistic = self.statistic().map_or_else(String::new, |own| format!(" {}", own.in_words()));
        format!("published{statistic}")
    }

    fn has(&self, figure: Figure) -> bool {
        let mut estimates = self.records.iter().filter_map(|record| record.estimate.as_ref());
        estimates.any(|estimates| estimates.get(figure).is_some())
    }

    /// Adds a column for a figure.
    fn add<'s>(
        &'s self,
        table: &mut Table<'s, &'a Record>,
        heading: &str,
        show: impl Fn(&Estimates, &MeasuredExperiment, &Record) -> Option<String> + 's,
    ) {
        table.push(Column::figures("", heading), move |record| {
            let text = record.estimate.as_ref().and_then(|estimates| show(estimates, self, record));
            Cell::shown(text.unwrap_or_default())
        });
    }

    /// Adds the CPU time per message at each end and in the broker, if a link by other programs was measured.
    fn add_message_cpu<'s>(&'s self, table: &mut Table<'s, &'a Record>) {
        for part in MessageCpu::parts(&self.records) {
            let unit = Unit::Nanoseconds.common(self.records.iter().filter_map(|record| part.of(record)));
            self.add(table, part.heading(), move |_, _, record| {
                Some(part.of(record).map_or_else(|| "–".to_owned(), |ns| unit.show(ns)))
            });
        }
    }

    /// The unit in which a column shows all values of a figure.
    fn common(&self, figure: Figure, of: fn(&Estimate) -> f64) -> ColumnUnit {
        let measured = self.records.iter().filter(|record| missing(record).is_none());
        let estimates = measured.filter_map(|record| record.estimate.as_ref()?.get(figure));
        figure.unit().common(estimates.map(of))
    }

    /// The unit in which the table shows a record's throughput or median time.
    pub(super) fn unit(&self, record: &Record) -> ColumnUnit {
        let headline = if self.is_latency() { Figure::P50 } else { Figure::Throughput };
        matrix::unit(self.about, &self.records, record)
            .unwrap_or_else(|| self.common(headline, |estimate| estimate.median))
    }

    /// Adds the columns; returns the number of columns that identify a row.
    fn add_columns<'s>(&'s self, table: &mut Table<'s, &'a Record>) -> usize {
        let (latency, has) = (self.is_latency(), |figure| self.has(figure));
        let chained = self.records.iter().any(|record| record.job.chain().is_some());
        let beside = mixes_foreign_programs(&self.jobs());
        // Rows are grouped by wait policy, so wait policies have no column.
        for key in self.varying().into_iter().filter(|key| *key != Key::Wait) {
            let side = if key.unit() == Unit::Word { Align::Left } else { Align::Right };
            let heading = if beside && key == Key::Language { "program" } else { key.name() };
            let column = Column { side, ..Column::words("", heading).fit(Fit::Elastic) };
            table.push(column, |record| Cell::shown(parameter(key, record)));
        }
        let groups = self.records.iter().any(|record| record.job.wait() != self.records[0].job.wait());
        // If no other parameter differs, the group may still identify a row.
        if table.columns.is_empty() && self.records.len() > 1 + usize::from(groups) {
            table.push(Column::words("", "trial").fit(Fit::Elastic), |record| Cell::shown(&record.name));
        }
        let labels = table.columns.len();
        let headline = if latency { Figure::P50 } else { Figure::Throughput };
        let unit = self.common(headline, |estimate| estimate.median);
        let cell = move |record: &&Record| {
            let estimate = record.estimate.as_ref().and_then(|estimates| estimates.get(headline));
            let text = estimate.map_or_else(String::new, |estimate| unit.show(estimate.median));
            Cell::shown(text).mark(marks(record))
        };
        let of_lines = latency && self.records.iter().all(|record| record.job.lines().is_some());
        let beside_statistic = !chained && self.statistic().is_some();
        let heading = |figure: Figure| match figure {
            Figure::P50 if of_lines => "median time",
            Figure::Throughput if beside_statistic => "median throughput",
            Figure::RoundTripsPerSecond if of_lines => "lines /s",
            Figure::CpuSecondsPerMillion if of_lines => "CPU s / M lines",
            figure => figure.heading(),
        };
        table.push(Column::figures("", heading(headline)), cell);
        self.add(table, "95\u{a0}% interval", move |estimates, own, _| {
            let same_unit = own.is_latency() == (estimates.headline_figure().unit() == Unit::Nanoseconds);
            same_unit.then(|| interval(estimates.headline(), |end| unit.show(end)))
        });
        self.add(table, "runs", |estimates, _, _| Some(estimates.headline().runs.to_string()));
        if chained && self.about.known.is_empty() {
            let hops = |record: &Record, estimates: &Estimates| {
                Some(estimates.throughput().median * f64::from(record.job.chain()?.length))
            };
            let all = self.records.iter().filter_map(|record| hops(record, record.estimate.as_ref()?));
            let unit = Unit::BytesPerSecond.common(all);
            self.add(table, "transfer per hop", move |estimates, _, record| {
                Some(hops(record, estimates).map_or_else(|| "–".to_owned(), |rate| unit.show(rate)))
            });
        }
        if chained && !self.sources.is_empty() {
            self.add(table, &format!("real, {}", self.published_heading()), |_, _, record| {
                Some(record.published.as_ref()?.shown_next_to(record.job.volume()))
            });
        }
        if has(Figure::Ratio) {
            self.add(table, "ratio", |estimates, own, record| match estimates.ratio() {
                _ if own.is_baseline(record) => Some("base".to_owned()),
                ratio => ratio.map(|ratio| format!("{} ({})", times(ratio), interval(ratio, digits))),
            });
        }
        if !latency && self.copy.is_some() {
            // The null link transfers nothing, so its throughput as a share of the memory copy's means nothing.
            self.add(table, "% of copy", |estimates, own, record| match record.job.link() {
                link if link.is_null() => Some("–".to_owned()),
                _ => own.copy.map(|copy| percent(estimates.throughput().median / copy * 100.0)),
            });
        }
        for figure in Figure::iter().filter(|figure| has(*figure) && self.is_measured(*figure)) {
            let shown = match figure {
                Figure::Throughput | Figure::Ratio | Figure::P50 => false,
                Figure::CallTime | Figure::ByteTime | Figure::Granted | Figure::SystemShare => false,
                Figure::Calls => self.counts_calls(),
                Figure::Elapsed => false,
                // These figures are shown only if the same figures were published.
                Figure::StalledFrontendCycles | Figure::StalledBackendCycles | Figure::StalledPerInstruction => false,
                Figure::Branches | Figure::BranchMissShare | Figure::BranchRate => false,
                Figure::ContextSwitchRate | Figure::MigrationRate | Figure::PageFaultRate => false,
                Figure::Real => chained,
                // A check may change how often the ends sleep.
                Figure::SwitchesPerMib => chained || self.varying().contains(&Key::Verify),
                Figure::CpuSecondsPerGib => !latency,
                _ => true,
            };
            let unit = self.common(figure, |estimate| estimate.median);
            let text = move |record: &Record| {
                let median = record.estimate.as_ref()?.get(figure)?.median;
                Some(if figure.unit() == Unit::Count { unit.brief(median) } else { unit.show(median) })
            };
            if figure == Figure::Real && chained {
                // For chains, the shortest real time is shown too, because publications that repeat a command report
                // the best time. Like a published time for another volume, it has its volume and rate.
                let unit = self.common(Figure::Real, |estimate| estimate.min);
                self.add(table, "real, least", move |estimates, _, record| {
                    let least = estimates.get(Figure::Real)?.min;
                    let volume = record.job.volume();
                    let other = record.published.as_ref().and_then(|own| own.other_volume(volume));
                    Some(match volume {
                        Volume::Total(total) if other.is_some() => {
                            let rate = Throughput(total.0 as f64 * 1e9 / least);
                            format!("{} for {} ({rate})", unit.show(least), bytes_in_words(total.0))
                        }
                        _ => unit.show(least),
                    })
                });
            }
            if shown {
                let cell = move |record: &&Record| Cell::shown(text(record).unwrap_or_else(|| "–".to_owned()));
                table.push(Column::figures("", heading(figure)), cell);
            }
        }
        self.add_message_cpu(table);
        if has(Figure::StartUp) {
            // For an entrant, this is the time that the entrant itself measured.
            let inside = |record: &Record, estimates: &Estimates| match record.job.volume() {
                Volume::Total(total) => Some(total.0 as f64 / estimates.throughput().median * 1e9),
                Volume::Time(_) => None,
            };
            let all = self.records.iter().filter_map(|record| inside(record, record.estimate.as_ref()?));
            let unit = Unit::Nanoseconds.common(all);
            self.add(table, "time inside", move |estimates, _, record| {
                inside(record, estimates).map(|time| unit.show(time))
            });
        }
        let entrant = |record: &Record| record.samples.first().and_then(|sample| sample.entrant.as_ref()).cloned();
        if self.records.iter().any(|record| entrant(record).is_some()) {
            table.push(Column::words("", "compiler or runtime"), move |record| {
                Cell::text(entrant(record).map_or_else(String::new, |entrant| entrant.runtime))
            });
            table.push(Column::words("", "check"), move |record| {
                let words = |compares| if compares { "compares blocks" } else { "sums words" };
                Cell::shown(check(record).map_or("–", words))
            });
        }
        if !self.sources.is_empty() && !chained {
            let heading = format!("{}, elsewhere", self.published_heading());
            self.add(table, &heading, |_, own, record| own.published(record));
        }
        if !latency && self.records.iter().filter(|record| ranked(record)).count() > 1 {
            table.push(Column::bars(""), |record| self.bar(record));
        }
        labels
    }

    /// A table of the other published figures, each as `ours (published)`; `None` if there are none.
    pub(super) fn published_figures(&self) -> Option<Grid> {
        let of =
            |record: &Record| record.published.as_ref().map(|published| published.figures.clone()).unwrap_or_default();
        let words = BTreeSet::from_iter(self.records.iter().flat_map(|record| of(record).into_keys()));
        let known = |word: &str| Figure::iter().find(|figure| figure.column() == word);
        // The order is that of the other tables. Figures found only in the publication come last.
        let mut words: Vec<(Option<Figure>, String)> = words.into_iter().map(|word| (known(&word), word)).collect();
        words.sort_by_key(|(figure, _)| (figure.is_none(), *figure));
        let records: Vec<&Record> = self.records.iter().copied().filter(|record| !of(record).is_empty()).collect();
        let heading = match self.statistic() {
            None => "ours (published)".to_owned(),
            Some(_) => format!("our medians ({})", self.published_heading()),
        };
        let mut table = Table::of(&records).column(Column::words("", &heading), |record| Cell::shown(&record.name));
        for (figure, word) in words {
            let show = |value: f64| match figure {
                Some(figure) if figure.unit() != Unit::Count => figure.unit().show(value),
                _ if value.fract() == 0.0 => format!("{value}"),
                _ => three_digits(value),
            };
            let ours = |record: &Record, figure: Figure| match record.estimate.as_ref()?.get(figure)?.median {
                median if figure.unit() == Unit::Count && median >= 1000.0 => Some(show(median.round())),
                median => Some(show(median)),
            };
            let heading = figure.map_or_else(|| neutral(&word), |figure| figure.heading().to_owned());
            table.push(Column::figures("", &heading), |record| {
                let ours = figure.map(|figure| ours(record, figure).unwrap_or_else(|| "–".to_owned()));
                let as_published = record.published.as_ref().and_then(|own| own.figures_as_published.get(&word));
                let theirs = match as_published {
                    Some(text) => Some(format!("({})", neutral(text))),
                    None => of(record).get(&word).map(|value| format!("({})", show(*value))),
                };
                Cell::shown([ours, theirs].into_iter().flatten().collect::<Vec<_>>().join(" "))
            });
        }
        (!records.is_empty()).then(|| table.grid())
    }

    /// A bar for throughput relative to the highest with the same wait policy.
    fn bar(&self, record: &Record) -> Cell {
        let wait = record.job.wait();
        let highest = self.highest.iter().find(|known| known.0 == wait).map_or(0.0, |known| known.1);
        let share = throughput(record) / highest.max(f64::MIN_POSITIVE);
        if ranked(record) { Cell::bar(share, share) } else { Cell::default() }
    }

    pub(super) fn is_baseline(&self, record: &Record) -> bool {
        self.baselines_by_id.contains_key(record.id.as_str())
    }

    /// Whether a row must be shown: a sentence is about it, or it is a baseline.
    pub(super) fn is_needed(&self, record: &Record, cited: &CitedTrials) -> bool {
        self.is_baseline(record) || cited.contains(&(record.experiment.as_str(), record.id.as_str()))
    }

    /// The number of rows that must be shown; 0 if no sentence is about any.
    pub(super) fn needed_rows(&self, cited: &CitedTrials) -> usize {
        let measured = || self.records.iter().filter(|record| missing(record).is_none());
        let is_cited = |record: &&&Record| cited.contains(&(record.experiment.as_str(), record.id.as_str()));
        match measured().any(|record| is_cited(&record)) {
            true => measured().filter(|record| self.is_needed(record, cited)).count(),
            false => 0,
        }
    }

    /// The baseline of a trial's ratio; `None` if it isn't in the document.
    pub(super) fn baseline_of(&self, record: &Record) -> Option<&'a Record> {
        self.baselines_by_id.get(record.baseline.as_deref()?).copied()
    }

    fn published(&self, record: &Record) -> Option<String> {
        let published = record.published.as_ref()?;
        let figure = published.shown_next_to(record.job.volume());
        let source = self.sources.iter().position(|source| *source == published.source)?;
        Some(if self.sources.len() > 1 { format!("{figure} [{}]", source + 1) } else { figure })
    }

    /// The baseline of all ratios as text: the name of a row or, if there are several baselines, the settings that they
    /// have in common.
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

    /// The notes below the table: warnings of its rows, the baseline of ratios and the sources of published figures.
    fn notes(&self) -> Vec<Note> {
        let warnings = warnings_by_trial(&self.records, "row", |record| record.name.clone());
        let mut notes: Vec<Note> = warnings.into_iter().map(|text| Note::new(WARNED, Style::Caution, &text)).collect();
        let mut note = |mark: &str, text: &str| notes.push(Note::new(mark, Style::Aside, text));
        if self.has(Figure::Ratio) {
            let figure = match self.is_latency() {
                true => ": speed by the median round trip; below 1 is slower",
                false => "",
            };
            note("ratio", &format!("to {}, taken within each round{figure}", self.baseline()));
        }
        if let Some(text) = without_transfer(&self.records) {
            note("null:", text);
        }
        if self.has(Figure::TaskClock) {
            note("counters:", "all processes of the pipeline, from start to end, per run");
            let hardware = [Figure::Migrations, Figure::Cycles, Figure::Instructions, Figure::BranchMisses].into_iter();
            let missing: Vec<&str> = hardware.filter(|figure| !self.has(*figure)).map(Figure::heading).collect();
            if !missing.is_empty() {
                let text = format!(
                    "{} (no hardware counters here, or /proc/sys/kernel/perf_event_paranoid is above 1)",
                    missing.join(", ")
                );
                note("not supported:", &text);
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            let number = if self.sources.len() > 1 { format!(" [{}]", index + 1) } else { String::new() };
            note(&format!("published{number}"), &format!("on other hardware: {}", neutral(source)));
        }
        notes
    }
}

/// A parameter's value as text. For a memory copy, parameters of source and sink are shown as `–`, because it has
/// neither.
fn parameter(key: Key, record: &Record) -> String {
    if key == Key::Language && record.job.ends().is_some() {
        return "pipemark".to_owned();
    }
    let value = record.job.value(key).filter(|_| MEMORY_COPY_KEYS.contains(&key) || !record.job.is_memory_copy());
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// Whether a program compares each block with the expected one; `None` if it checks nothing, or isn't an entrant.
fn check(record: &Record) -> Option<bool> {
    record.job.entrant().filter(|entrant| entrant.verify.reads())?;
    Some(record.samples.first()?.entrant.as_ref()?.compares)
}

/// The effect of a wait policy, as text.
fn wait_policy_effect(wait: WaitPolicy) -> &'static str {
    match wait {
        WaitPolicy::Block => "block: a waiting end sleeps in the call",
        WaitPolicy::Poll => "poll: a waiting end sleeps in poll(2)",
        WaitPolicy::Spin => "spin: a waiting end keeps its CPU busy; ranked apart from other rows",
    }
}

/// Whether a ratio of speeds, which is computed within rounds, is within 2 % of the ratio of the medians shown, which are
/// speeds.
pub(super) fn agrees_with_medians(ratio: &Estimate, figure: f64, base: f64) -> bool {
    ratio_agrees(ratio.median, figure / base)
}

/// The ratio as text: `2.70×`, or `tied` if the interval contains 1. If there are too few runs for an interval, `?`
/// follows.
pub(super) fn times(ratio: &Estimate) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) if low > 1.0 || high < 1.0 => format!("{}×", digits(ratio.median)),
        (Some(_), Some(_)) => "tied".to_owned(),
        _ => format!("{}×?", digits(ratio.median)),
    }
}
