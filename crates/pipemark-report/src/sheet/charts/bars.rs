//! Bar charts for parameters that aren't numbers, with one bar per trial, the best first.

use pipemark_entrants::{FilterTask, filter_task};
use pipemark_model::{Figure, Key, Published, Unit, WaitPolicy, capitalised, distinct, group_by_key, total_order};
use pipemark_show::{Axis, Chart, ChartKind, Point, Scale, Series, SeriesRole};

use crate::sheet::charts::{Context, MAX_ROWS, Trial, published, truncate_with_note};

/// A bar for each trial.
pub(super) fn trials(context: &Context) -> Chart {
    // Spinning keeps a whole CPU busy, so bars of spinning trials have another colour.
    let waits = context.section.keys.contains(&Key::Wait);
    let series_of = |trial: &Trial| match (context.has_several_runs(), waits) {
        (true, _) => context.run(trial).to_owned(),
        (false, true) => format!("ends that {}", trial.word(Key::Wait)),
        (false, false) => String::new(),
    };
    let row_of = |trial: &Trial| {
        let name = context.section.name_of(trial, &context.section.keys);
        if name.is_empty() { context.section.title.clone() } else { name }
    };
    let point_of = |trial: &Trial| context.point(trial, 0.0);
    let axis = Axis::new(context.measure(), context.unit(), Scale::Linear);
    bar_chart(context, &capitalised(context.measure()), axis, &row_of, &series_of, &point_of)
}

/// The same job in each language, with the idiomatic and the tuned program side by side. A second chart has the
/// start-up time.
pub(super) fn languages(context: &Context) -> Vec<Chart> {
    let others = context.keys_except(&[Key::Language, Key::Program]);
    let row_of = |trial: &Trial| {
        let rest = context.section.name_of(trial, &others);
        let language = trial.word(Key::Language);
        if rest.is_empty() { language } else { format!("{language}, {rest}") }
    };
    let series_of = |trial: &Trial| context.with_run(trial.word(Key::Program), trial.run);
    let flow = |trial: &Trial| context.point(trial, 0.0);
    let axis = Axis::new("throughput", Unit::BytesPerSecond, Scale::Linear);
    let title = "Throughput by language, without start-up";
    let mut charts = vec![bar_chart(context, title, axis, &row_of, &series_of, &flow)];
    if context.ranked().all(|trial| trial.estimates.get(Figure::StartUp).is_some()) {
        let start = |trial: &Trial| {
            let estimate = trial.estimates.get(Figure::StartUp).unwrap_or(trial.estimates.throughput());
            context.point_of(trial, 0.0, estimate, Unit::Nanoseconds)
        };
        let title = "start-up: time that the program itself doesn't measure";
        let axis = Axis::new(title, Unit::Nanoseconds, Scale::Linear);
        let title = "Start-up, not included above";
        charts.push(bar_chart(context, title, axis, &row_of, &series_of, &start));
    }
    charts
}

/// A chart with a bar for each trial. Rows are sorted by their best bar, those of ends that spin last.
fn bar_chart(
    context: &Context,
    title: &str,
    axis: Axis,
    row_of: &dyn Fn(&Trial) -> String,
    series_of: &dyn Fn(&Trial) -> String,
    point_of: &dyn Fn(&Trial) -> Point,
) -> Chart {
    let more_is_better = axis.unit == Unit::BytesPerSecond;
    let rank = |trial: &Trial| if more_is_better { -point_of(trial).y } else { point_of(trial).y };
    // Rows of ends that spin aren't ranked among those of ends that sleep.
    let best = |trials: &[&Trial]| {
        let spins = trials.iter().all(|trial| trial.job().wait() == WaitPolicy::Spin);
        (spins, total_order(trials.iter().map(|trial| rank(trial)).fold(f64::INFINITY, f64::min)))
    };
    // The labels are in the order of the suite.
    let labels = distinct(context.ranked().map(series_of));
    let measured = |label| Series { label, role: SeriesRole::Measured, points: Vec::new() };
    let mut series: Vec<Series> = labels.into_iter().map(measured).collect();
    let mut rows = group_by_key(context.ranked().map(|trial| (row_of(trial), trial)));
    rows.sort_by_cached_key(|one| best(&one.1));
    let (rows, omitted) = truncate_with_note(rows, MAX_ROWS, "rows");
    let mut elsewhere: Vec<Series> = Vec::new();
    for (row, (_, trials)) in rows.iter().enumerate() {
        for trial in trials {
            let (label, point) = (series_of(trial), point_of(trial));
            let measured = series.iter_mut().find(|known| known.label == label).expect("each was added");
            measured.points.push(Point { x: point.y, y: row as f64, ..point });
            let is_drawn = |figure: &&Published| more_is_better && !figure.relative && figure.throughput > 0.0;
            let figure = trial.record.published.as_ref().filter(is_drawn);
            if let Some(figure) = figure {
                let point = published(&figure.source, axis.unit, figure.throughput, "");
                let points = vec![Point { x: figure.throughput, y: row as f64, ..point }];
                elsewhere.push(Series { label, role: SeriesRole::Published, points });
            }
        }
    }
    let highest = series.iter().flat_map(|series| &series.points).map(|point| point.x).fold(0.0, f64::max);
    // The limit of filters is the throughput of a filter that only counts lines. The limit of other trials is the
    // memory copy.
    let counts =
        |trial: &&Trial| trial.job().lines().is_some_and(|lines| filter_task(&lines.filter) == FilterTask::Count);
    let limit = match context.ranked().find(counts) {
        Some(top_line) => Some(("top line", point_of(top_line).y)),
        None if more_is_better => context.memory_copy(highest).map(|copy| ("memory copy", copy)),
        None => None,
    };
    series.extend(elsewhere);
    series.extend(limit.map(|(label, x)| {
        let points = vec![Point { x, ..Point::default() }];
        Series { label: label.to_owned(), role: SeriesRole::Limit, points }
    }));
    let y = Axis::named("", rows.into_iter().map(|row| row.0).collect());
    Chart { below: omitted, ..Chart::new(title, ChartKind::Bars, axis, y, series) }
}
