//! The sheet of a comparison, with the change of each trial.

use pipemark_console::verdict::{interval, style};
use pipemark_model::{Mode, Unit, capitalised, counted, group_by_key, neutral, signed_percent};
use pipemark_show::{Cell, Column, Fit, Grid, Note, Row, RowGroup, Sheet, Style};
use pipemark_stats::compare::{Comparison, Pairing};
use pipemark_stats::diff::{self, Change, Diff, Missing, Origin};
use pipemark_stats::verdict::Verdict;

use crate::sheet::words::time;

/// The largest number of rows without `--all`: one screen. Rows with a change are never hidden.
const MAX_ROWS: usize = 24;
/// The largest number of trials without a comparison that are listed. If there are more, they are only counted.
const MAX_MISSING: usize = 3;

/// The comparison as a sheet. Rows with a change come first. Of the other rows, either all are shown, or as many as fit
/// on a screen.
pub fn comparison(diff: &Diff, all: bool) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.heading(1, &summary(diff));
    let origins = [("BASE", &diff.base), ("NEW", &diff.new)];
    sheet.notes(origins.map(|(side, origin)| Note::new(side, Style::Heading, &origin_in_words(origin))));
    sheet.notes(diff.warnings.iter().map(|warning| Note::new("!", Style::Caution, warning)));
    let changed = diff.groups.iter().flat_map(outcomes).filter(|verdict| is_change(*verdict)).count();
    let mut room = if all { usize::MAX } else { MAX_ROWS.saturating_sub(changed) };
    let rows = diff.groups.iter().map(|group| outcomes(group).count()).sum::<usize>();
    let mut groups: Vec<RowGroup> = diff.groups.iter().map(|changes| group(changes, &mut room)).collect();
    let omitted = rows - groups.iter().map(|group| group.rows.len()).sum::<usize>();
    groups.retain(|group| !group.rows.is_empty());
    let few = diff.missing.len() <= MAX_MISSING || diff.groups.is_empty();
    if !diff.missing.is_empty() && (all || few) {
        groups.push(RowGroup { caption: "Not compared".to_owned(), rows: diff.missing.iter().map(missing).collect() });
    }
    let grid = Grid { labels: 1, columns: columns(), groups };
    if grid.rows().next().is_some() {
        sheet.heading(2, "Changes");
    }
    sheet.grid(grid);
    let hidden = omitted + if few || all { 0 } else { diff.missing.len() };
    let hidden = (hidden > 0).then(|| Note::plain(format!("{} hidden (--all)", counted(hidden, "row"))));
    sheet.notes(reasons(diff).into_iter().chain(hidden).chain([Note::plain(legend(diff))]));
    sheet
}

/// Columns for programs:
///
/// - `kind` is trial, reference (a memory copy within one process, without a verdict), mean (the geometric mean of the
///   experiment's trials, without `base` and `new`) or missing (`name` is the reason, and the verdict is the side that
///   lacks the trial).
/// - `base` and `new` are bytes per second, or nanoseconds in latency mode.
/// - `change`, `low` and `high` are fractions. `low` and `high` are the ends of the 95 % interval; both are empty if
///   there are too few runs.
/// - `judged_low` and `judged_high` are the ends of the interval that the verdict is based on. Tables for people show
///   this interval.
/// - `p` is the p-value of the test for no difference.
fn columns() -> Vec<Column> {
    let mut columns = vec![Column::words("name", "trial").fit(Fit::Wrapped)];
    columns.extend(["experiment", "mode", "kind", "base_id", "new_id"].map(Column::data));
    columns.extend([
        Column::figures("base", "BASE"),
        Column::figures("new", "NEW"),
        Column::figures("change", "change"),
    ]);
    columns.extend([Column::figures("", "interval"), Column::words("verdict", "verdict")]);
    columns.extend(["low", "high", "judged_low", "judged_high", "p", "base_runs", "new_runs"].map(Column::data));
    columns
}

/// The verdicts of a group's rows, then the verdict of the mean.
fn outcomes(group: &diff::ChangeGroup) -> impl Iterator<Item = Verdict> {
    let rows = group.changes.iter().map(|change| match change.reference {
        // A reference gets no verdict, so it counts as unchanged.
        true => Verdict::Same,
        false => change.comparison.verdict,
    });
    rows.chain(group.mean.iter().map(|mean| mean.verdict))
}

/// Rows with a change, then as many other rows as fit in `room`.
fn group(group: &diff::ChangeGroup, room: &mut usize) -> RowGroup {
    let (what, unit) = match group.mode {
        Mode::Throughput => ("throughput, higher is better", Unit::BytesPerSecond),
        Mode::Latency => ("median round trip, lower is better", Unit::Nanoseconds),
    };
    // References don't affect the choice of the unit, because they are much faster than the trials.
    let only_references = group.changes.iter().all(|change| change.reference);
    let shown = group.changes.iter().filter(|change| only_references || !change.reference);
    let unit = unit.common(shown.flat_map(|change| [change.base, change.new]));
    let row = |kind: &str, name: &str, change: Option<&Change>, comparison: &Comparison| {
        // If the ratio of the medians doesn't agree with the change, a pair of runs whose ratio agrees is shown.
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
    let (first, others): (Vec<&Change>, Vec<&Change>) =
        group.changes.iter().partition(|change| is_change(change.comparison.verdict) && !change.reference);
    let mut fits = || {
        let fits = *room > 0;
        *room = room.saturating_sub(1);
        fits
    };
    let others: Vec<&Change> = others.into_iter().take_while(|_| fits()).collect();
    let mean = group.mean.as_ref().filter(|mean| is_change(mean.verdict) || fits());
    let of = |change: &Change| {
        let kind = if change.reference { "reference" } else { "trial" };
        row(kind, &change.name, Some(change), &change.comparison)
    };
    let mut rows: Vec<Row> = first.into_iter().chain(others).map(of).collect();
    if let Some(mean) = mean {
        let count = group.changes.iter().filter(|change| !change.reference).count();
        rows.push(row("mean", &format!("geometric mean of {count}"), None, mean));
    }
    let caption = match neutral(&group.title) {
        // The title of an experiment with one table may already name what the table measures.
        title if what.starts_with(&format!("{},", title.to_lowercase())) => capitalised(what),
        title => format!("{title}: {what}"),
    };
    RowGroup { caption, rows }
}

/// The reasons why rows are inconclusive or have no verdict.
fn reasons(diff: &Diff) -> Vec<Note> {
    let reasons = group_by_key(diff.counted().filter_map(|change| Some((change.why.as_ref()?, change))));
    let describe = |(why, of): (&String, Vec<&Change>)| match of.len() {
        all if all == diff.counted().count() => why.clone(),
        some => format!("{}: {why}", counted(some, "trial")),
    };
    reasons.into_iter().map(|reason| Note::new("!", Style::Caution, &describe(reason))).collect()
}

fn is_change(verdict: Verdict) -> bool {
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

/// The cells for change, interval and verdict, and the cells that only programs see.
fn outcome(comparison: &Comparison, in_brackets: bool) -> Vec<Cell> {
    let verdict = verdict_in_words(comparison);
    let verdict = if in_brackets { format!("({verdict})") } else { verdict.to_owned() };
    vec![
        Cell::of(format!("{} %", signed_percent(comparison.change)), comparison.change),
        Cell::shown(interval(comparison)),
        Cell::of(verdict, comparison.verdict.name()).style(style(comparison.verdict)),
        Cell::data(comparison.low),
        Cell::data(comparison.high),
        Cell::data(comparison.judged_low),
        Cell::data(comparison.judged_high),
        Cell::data(Some(comparison.p)),
        Cell::data(Some(comparison.base_runs)),
        Cell::data(Some(comparison.new_runs)),
    ]
}

/// The verdict's name, or "no verdict", for people and programs.
fn verdict_in_words(comparison: &Comparison) -> &'static str {
    match comparison.judged() {
        None => NO_VERDICT,
        Some(_) => comparison.verdict.name(),
    }
}

const NO_VERDICT: &str = "no verdict";

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
    let words = [Verdict::Worse, Verdict::Better, Verdict::Same, Verdict::Inconclusive].map(Verdict::name);
    let count = |word: &&str| diff.counted().filter(|change| verdict_in_words(&change.comparison) == *word).count();
    let parts: Vec<String> = words
        .into_iter()
        .chain([NO_VERDICT])
        .map(|word| (count(&word), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let compared = diff.verdicts().count();
    match (compared, diff.missing.len()) {
        (0, 0) => "Nothing was compared".to_owned(),
        (0, missing) => format!("0 trials compared; {missing} not compared"),
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
        "worse or better if the whole interval is beyond {}, same if it is within {} of 0, otherwise inconclusive",
        percent(diff.threshold),
        percent(diff.same_within)
    );
    text.push_str(match (pairing, by_session) {
        (Some(Pairing::Rounds), false) => {
            "; compared round by round, with 95 % intervals that hold for all rows together"
        }
        (Some(Pairing::Rounds), true) => {
            "; compared round by round in each session, with 98 % intervals that hold for all rows together"
        }
        (Some(_), _) => "; compared by session, with 98 % intervals that hold for all rows together",
        (None, _) => "; intervals: 95 %, for these runs only, not for other sessions",
    });
    if diff.known_sessions > 0 && by_session {
        text.push_str(&format!(", with {} of the history", counted(diff.known_sessions, "session")));
    }
    if changes().any(|change| change.comparison.judged().is_none()) {
        text.push_str("; no verdict without enough sessions or runs");
    }
    if changes().any(|change| change.typical.is_some()) {
        text.push_str("; BASE and NEW are one pair of runs where the medians have another ratio");
    }
    if changes().any(|change| change.reference) {
        text.push_str("; verdicts in brackets are for memory copies and don't count");
    }
    text
}
