//! A comparison: what changed, trial by trial.

use pipemark_console::verdict::{interval, style, verdict_in_words};
use pipemark_model::{Mode, Unit, counted, grouped, neutral, signed_percent};
use pipemark_show::{Cell, Column, Fit, Grid, Note, Row, RowGroup, Sheet, Style};
use pipemark_stats::compare::{Comparison, Pairing};
use pipemark_stats::diff::{self, Change, Diff, Missing, Origin};
use pipemark_stats::verdict::Verdict;

use crate::sheet::words::time;

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
    let mut groups: Vec<RowGroup> = diff.groups.iter().map(|own| group(own, all)).collect();
    groups.retain(|group| !group.rows.is_empty());
    let few = diff.missing.len() <= MOST_MISSING || diff.groups.is_empty();
    if !diff.missing.is_empty() && (all || few) {
        groups.push(RowGroup { caption: "Not compared".to_owned(), rows: diff.missing.iter().map(missing).collect() });
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

fn group(group: &diff::ChangeGroup, all: bool) -> RowGroup {
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
    RowGroup { caption: format!("{}: {what}", neutral(&group.title)), rows }
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
