//! A comparison: what changed, trial by trial; two pipelines in turns; the smallest change that could be seen.

use super::words::time;
use super::{Cell, Column, Fit, Grid, Group, Note, Row, Sheet, Style, Table, counted, grouped, neutral};
use crate::compare::{self, Change, Diff, Missing, NoiseFloor, Origin, TimedPipeline, Turns};
use crate::model::{Estimate, Mode, Unit, digits, signed_percent};
use crate::stats::compare::{Comparison, Pairing};
use crate::stats::verdict::Verdict;

const INTERVAL: &str = "95\u{a0}% interval";
/// More that were not compared are only counted.
const MOST_MISSING: usize = 3;

/// What changed, and in `all` what did not.
pub fn comparison(diff: &Diff, all: bool) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.heading(1, &summary(diff));
    let origins = [("BASE", &diff.base), ("NEW", &diff.new)];
    sheet.notes(origins.map(|(side, origin)| Note::new(side, Style::Heading, &origin_in_words(origin))));
    sheet.notes(diff.warnings.iter().map(|warning| Note::new("!", Style::Caution, warning)));
    let mut groups: Vec<Group> = diff.groups.iter().map(|own| group(own, all)).collect();
    groups.retain(|group| !group.rows.is_empty());
    let few = diff.missing.len() <= MOST_MISSING || diff.groups.is_empty();
    if !diff.missing.is_empty() && (all || few) {
        groups.push(Group { caption: "Not compared".to_owned(), rows: diff.missing.iter().map(missing).collect() });
    }
    let grid = Grid { labels: 1, columns: columns(), groups };
    if grid.rows().next().is_some() {
        sheet.heading(2, "Changes");
    }
    sheet.grid(grid);
    let hidden = [Verdict::Same, Verdict::CantTell].map(|verdict| diff.count(verdict)).iter().sum::<usize>();
    let hidden = hidden + if few { 0 } else { diff.missing.len() };
    let hidden = (!all && hidden > 0).then(|| Note::plain(format!("{} more with --all", counted(hidden, "row"))));
    sheet.notes(reasons(diff).into_iter().chain(hidden).chain([Note::plain(legend(diff))]));
    sheet
}

/// For programs, `kind` is trial, reference (a copy within one process, which has no verdict), mean (of the experiment's
/// trials, geometric; it has no `base` and `new`) or missing (its `name` is the reason, its verdict the side that lacks it).
/// `base` and `new` are bytes per second, or in latency mode nanoseconds. `change`, `low` and `high` are fractions; `low`
/// and `high` are empty where too few runs allow no interval. `p` is of the test for no difference.
fn columns() -> Vec<Column> {
    let mut columns = vec![Column::words("name", "trial").fit(Fit::Wrapped)];
    columns.extend(["experiment", "mode", "kind", "base_id", "new_id"].map(Column::data));
    columns.extend([
        Column::figures("base", "BASE"),
        Column::figures("new", "NEW"),
        Column::figures("change", "change"),
    ]);
    columns.extend([Column::figures("", INTERVAL), Column::words("verdict", "verdict")]);
    columns.extend(["low", "high", "p", "base_runs", "new_runs"].map(Column::data));
    columns
}

fn group(group: &compare::Group, all: bool) -> Group {
    let (what, unit) = match group.mode {
        Mode::Throughput => ("throughput, higher is better", Unit::BytesPerSecond),
        Mode::Latency => ("median round trip, lower is better", Unit::Nanoseconds),
    };
    let row = |kind: &str, name: &str, change: Option<&Change>, comparison: &Comparison| {
        // What is shown agrees with the change.
        let figure = |of: fn(&Change) -> f64, typical: fn((f64, f64)) -> f64| {
            change.map_or_else(Cell::default, |c| Cell::of(unit.show(c.typical.map_or(of(c), typical)), of(c)))
        };
        let id = |of: fn(&Change) -> &String| Cell::data(change.map(|change| of(change).as_str()));
        let mut cells = vec![
            Cell::text(name),
            Cell::data(Some(group.experiment.as_str())),
            Cell::data(Some(group.mode.to_string())),
            Cell::data(Some(kind)),
            id(|change| &change.base_id),
            id(|change| &change.new_id),
            figure(|change| change.base, |pair| pair.0),
            figure(|change| change.new, |pair| pair.1),
        ];
        cells.extend(outcome(comparison, kind == "reference"));
        Row { cells, instead: None }
    };
    let mut rows: Vec<Row> = group
        .changes
        .iter()
        .filter(|change| all || (changed(change.comparison.verdict) && !change.reference))
        .map(|change| {
            let kind = if change.reference { "reference" } else { "trial" };
            row(kind, &change.name, Some(change), &change.comparison)
        })
        .collect();
    if let Some(mean) = group.mean.as_ref().filter(|mean| all || changed(mean.verdict)) {
        let count = group.changes.iter().filter(|change| !change.reference).count();
        rows.push(row("mean", &format!("geometric mean of {count}"), None, mean));
    }
    Group { caption: format!("{}: {what}", neutral(&group.title)), rows }
}

/// Why some can't be told, and how much is known of the sessions.
fn reasons(diff: &Diff) -> Vec<Note> {
    let reasons = grouped(diff.counted().filter_map(|change| Some((change.why.as_ref()?, change))));
    let said = |(why, of): (&String, Vec<&Change>)| format!("{} can't be told: {why}", counted(of.len(), "trial"));
    reasons.into_iter().map(|reason| Note::new("!", Style::Caution, &said(reason))).collect()
}

fn changed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

fn missing(missing: &Missing) -> Row {
    let side = format!("not in {}", missing.side);
    let mut cells = vec![Cell::of(&missing.id, missing.reason.as_str()), Cell::data(Some(missing.experiment.as_str()))];
    cells.extend([Cell::default(), Cell::data(Some("missing")), Cell::data(Some(missing.id.as_str()))]);
    cells.extend(columns()[cells.len()..].iter().map(|column| match column.key.as_str() {
        "verdict" => Cell::data(Some(side.as_str())),
        _ => Cell::default(),
    }));
    Row { cells, instead: Some((Style::Aside, neutral(&format!("{side}: {}", missing.reason)))) }
}

/// Change, interval and verdict for people, and the rest for programs.
fn outcome(comparison: &Comparison, in_brackets: bool) -> Vec<Cell> {
    let verdict = verdict_in_words(comparison.verdict);
    let verdict = if in_brackets { format!("({verdict})") } else { verdict.to_owned() };
    vec![
        Cell::of(format!("{} %", signed_percent(comparison.change)), comparison.change),
        Cell::shown(interval(comparison)),
        Cell::of(verdict, comparison.verdict.name()).style(style(comparison.verdict)),
        Cell::data(comparison.low),
        Cell::data(comparison.high),
        Cell::data(Some(comparison.p)),
        Cell::data(Some(comparison.base_runs)),
        Cell::data(Some(comparison.new_runs)),
    ]
}

fn interval(comparison: &Comparison) -> String {
    match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => format!("{} … {} %", signed_percent(low), signed_percent(high)),
        _ => format!("n={}/{}", comparison.base_runs, comparison.new_runs),
    }
}

/// How a verdict looks.
pub(super) fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Better => Style::Success,
        Verdict::Worse => Style::Failure,
        Verdict::Same => Style::Plain,
        Verdict::CantTell => Style::Caution,
    }
}

/// A verdict as it is read.
pub fn verdict_in_words(verdict: Verdict) -> &'static str {
    if verdict == Verdict::CantTell { "can't tell" } else { verdict.name() }
}

fn origin_in_words(origin: &Origin) -> String {
    let mut words = origin.file.clone();
    if !origin.chosen.is_empty() {
        words.push_str(&format!(" with {}", origin.chosen.join(", ")));
    }
    if let Some(label) = &origin.label {
        words.push_str(&format!(" · '{label}'"));
    }
    let kernel = origin.kernel.split(" #").next().unwrap_or_default();
    if origin.sessions > 1 {
        words.push_str(&format!(" · {} sessions", origin.sessions));
    }
    format!("{words} · {} of {} · {kernel}", origin.suite, time(&origin.started))
}

fn summary(diff: &Diff) -> String {
    let parts: Vec<String> = [Verdict::Worse, Verdict::Better, Verdict::Same, Verdict::CantTell]
        .into_iter()
        .map(|verdict| (diff.count(verdict), verdict_in_words(verdict)))
        .filter(|(count, _)| *count > 0)
        .map(|(count, verdict)| format!("{count} {verdict}"))
        .collect();
    let compared = diff.verdicts().count();
    match (compared, diff.missing.len()) {
        (0, 0) => "Nothing was compared".to_owned(),
        (0, missing) => format!("Nothing was compared, {missing} not compared"),
        (_, 0) => format!("{}: {}", counted(compared, "trial"), parts.join(", ")),
        (_, missing) => format!("{}: {}; {missing} not compared", counted(compared, "trial"), parts.join(", ")),
    }
}

fn legend(diff: &Diff) -> String {
    let percent = |fraction: f64| format!("{} %", (fraction * 10_000.0).round() / 100.0);
    let changes = || diff.groups.iter().flat_map(|group| &group.changes);
    let pairing = changes().map(|change| change.comparison.pairing).find(|pairing| *pairing != Pairing::None);
    let by_session = changes().any(|change| change.comparison.base_sessions > 0);
    let mut text = format!(
        "worse, better: certainly past {}, all trials considered; same: within {} of 0; can't tell: neither",
        percent(diff.threshold),
        percent(diff.same_within)
    );
    text.push_str(match (pairing, by_session) {
        (Some(Pairing::Rounds), false) => "; compared round by round",
        (Some(Pairing::Rounds), true) => "; compared round by round in each session",
        (Some(_), _) => "; compared by session",
        (None, _) => "; the intervals are of these runs, and say nothing of other sessions",
    });
    if diff.known_sessions > 0 && by_session {
        text.push_str(&format!(", with {} of the history", counted(diff.known_sessions, "session")));
    }
    if changes().any(|change| change.reference) {
        text.push_str("; (in brackets): the machine itself, which is no verdict");
    }
    text
}

/// A pipeline that was timed, or two that were run in turns.
pub fn in_turns(turns: &Turns) -> Sheet {
    let sides: Vec<(&str, &TimedPipeline)> =
        ["A", "B"].into_iter().zip([&turns.a].into_iter().chain(&turns.b)).collect();
    let capacity = match sides.iter().any(|(_, side)| side.capacity_granted.is_some()) {
        true => Column::figures("capacity", "capacity"),
        false => Column::data("capacity"),
    };
    let granted = |side: &TimedPipeline| {
        side.capacity_granted.map_or_else(Cell::default, |bytes| Cell::of(Unit::Bytes.show(bytes as f64), bytes))
    };
    let ns = |ns: f64| Unit::Nanoseconds.show(ns);
    let median = |estimate: &Estimate| Cell::of(ns(estimate.median), estimate.median);
    let ends = |time: &Estimate| time.low.zip(time.high).map(|(low, high)| format!("{} – {}", ns(low), ns(high)));
    // What is said of both stands with the second.
    let compared = |name: &str| turns.comparison.as_ref().filter(|_| name == "B");
    let table = Table::of(&sides)
        .column(Column::words("side", ""), |(name, _)| Cell::text(*name))
        .column(Column::words("pipeline", "pipeline").fit(Fit::Wrapped), |(_, side)| Cell::text(&side.pipeline))
        .column(Column::figures("median_ns", "time"), |(_, side)| median(&side.time))
        .column(Column::figures("", INTERVAL), |(_, side)| Cell::shown(ends(&side.time).unwrap_or_default()))
        .column(Column::figures("user_ns", "user"), |(_, side)| median(&side.user))
        .column(Column::figures("system_ns", "system"), |(_, side)| median(&side.system))
        .column(Column::figures("runs", "runs"), |(_, side)| Cell::of(side.time.runs.to_string(), side.time.runs))
        .column(capacity, |(_, side)| granted(side))
        .data("low_ns", |(_, side)| side.time.low)
        .data("high_ns", |(_, side)| side.time.high)
        .data("change", |(name, _)| Some(compared(name)?.change))
        .data("change_low", |(name, _)| compared(name)?.low)
        .data("change_high", |(name, _)| compared(name)?.high)
        .data("verdict", |(name, _)| Some(compared(name)?.verdict.name()));
    let plain = |text: String| Note { style: Style::Plain, ..Note::plain(text) };
    let output = turns.output;
    let mut notes = vec![plain(match turns.same_output {
        None => format!("Each run wrote {output} bytes."),
        Some(true) => format!("Both wrote the same {output} bytes."),
        Some(false) => "The outputs differ: --ignore-output.".to_owned(),
    })];
    if let Some(comparison) = &turns.comparison {
        let seen = |by: f64| plain(format!("A change of {} % would have been seen.", digits(by * 100.0)));
        notes.extend(turns.resolution.map(seen));
        notes.extend(turns.why.as_ref().map(|why| Note::new("!", Style::Caution, why)));
        notes.extend(ratio_sentence(comparison).map(plain));
    }
    Sheet::of(table.grid(), notes)
}

/// Which of A and B ran how many times as fast, with its interval: the end of the output.
fn ratio_sentence(comparison: &Comparison) -> Option<String> {
    let (time, low, high) = (1.0 + comparison.change, 1.0 + comparison.low?, 1.0 + comparison.high?);
    Some(match comparison.verdict {
        Verdict::Better => {
            format!(
                "B ran {}× as fast as A ({} to {}): better",
                digits(1.0 / time),
                digits(1.0 / high),
                digits(1.0 / low)
            )
        }
        Verdict::Worse => {
            format!("A ran {}× as fast as B ({} to {}): B is worse", digits(time), digits(low), digits(high))
        }
        verdict => {
            let word = if verdict == Verdict::Same { "the same" } else { "can't tell" };
            format!("B takes {} times as long as A ({} to {}): {word}", digits(time), digits(low), digits(high))
        }
    })
}

/// A trial against itself, and for numbers of sessions the smallest change that two files, and turns in each session,
/// would show.
pub fn noise_floor(floor: &NoiseFloor) -> Sheet {
    let mut sheet = Sheet::default();
    let (change, verdict) = (signed_percent(floor.itself.change), verdict_in_words(floor.itself.verdict));
    sheet
        .heading(2, &format!("{} against itself, {} sessions of {} rounds", floor.trial, floor.sessions, floor.rounds));
    let between = format!(
        "Sessions differ by {} % from their mean. Of {} pairs of them, runs alone would call {} better or worse.",
        digits(floor.between_sessions * 100.0),
        floor.pairs,
        floor.differ_by_runs
    );
    sheet.text(Style::Plain, [format!("In turns: {change} % ({}): {verdict}", interval(&floor.itself)), between]);
    sheet.heading(2, "The smallest change in speed that is seen 9 times of 10");
    let change = |by: f64| Cell::of(format!("{} %", signed_percent(by)), by);
    let table = Table::of(&floor.floors)
        .column(Column::figures("sessions", "sessions"), |one| Cell::of(one.sessions.to_string(), one.sessions))
        .column(Column::figures("two_files", "in two files"), |one| change(one.two_files))
        .column(Column::figures("in_turns", "in turns"), |one| change(one.in_turns));
    sheet.grid(table.grid());
    sheet.notes([Note::plain(
        "In two files: so many sessions of each, one file after the other, as --sessions makes them. In turns: both in each \
         session, as ab does.",
    )]);
    sheet
}
