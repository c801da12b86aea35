//! The result as text: what each stage costs, what helps, and the fastest pipeline.

use pipemark_model::{ByteSize, counted, digits};
use pipemark_show::{Cell, Column, Fit, Grid, Note, Sheet, Style, Table};
use pipemark_stats::verdict::Verdict;

use crate::result::{ExperimentKind, ExperimentResult, TuneExperiment};

/// A screened experiment within this factor of the pipeline's time makes no visible difference.
const NO_DIFFERENCE: f64 = 1.05;

/// Lays a result out.
pub fn sheet(result: &ExperimentResult) -> Sheet {
    let mut sheet = Sheet::default();
    let runs = format!("{} in {:.0} s", counted(result.runs as usize, "run"), result.seconds);
    sheet.text(Style::Heading, ["tune".to_owned(), result.pipeline.clone(), runs]);
    sheet.notes(result.interrupted.then(|| Note::new("!", Style::Caution, "interrupted: only what was known by then")));
    let interval = match (result.time.low, result.time.high) {
        (Some(low), Some(high)) => format!(" ({} to {} s)", digits(low), digits(high)),
        _ => String::new(),
    };
    sheet.text(
        Style::Plain,
        [
            format!("as it is: {} s{interval}", digits(result.time.median)),
            format!("output: {}", ByteSize(result.output)),
        ],
    );
    sheet.grid(stages(result));
    sheet.grid(changes(result));
    sheet.notes(sentences(result).into_iter().map(Note::plain));
    sheet.notes(result.notes.iter().map(Note::plain));
    conclusion(&mut sheet, result);
    sheet
}

fn find(result: &ExperimentResult, kind: ExperimentKind, stage: usize) -> Option<&TuneExperiment> {
    result.experiments.iter().find(|one| one.kind == kind && one.stage == Some(stage))
}

/// A gain, such as 2.2×.
fn gain(experiment: Option<&TuneExperiment>) -> Cell {
    experiment.and_then(|one| one.gain).map_or_else(Cell::default, |gain| Cell::of(format!("{}×", digits(gain)), gain))
}

fn interval(experiment: Option<&TuneExperiment>) -> Cell {
    let ends = experiment.and_then(|one| one.low.zip(one.high));
    Cell::shown(ends.map(|(low, high)| format!("{} – {}", digits(low), digits(high))).unwrap_or_default())
}

fn seconds(experiment: Option<&TuneExperiment>) -> Cell {
    experiment
        .and_then(|one| one.seconds)
        .map_or_else(Cell::default, |seconds| Cell::of(format!("{} s", digits(seconds)), seconds))
}

/// What each stage costs.
fn stages(result: &ExperimentResult) -> Grid {
    let measured = |kind| result.experiments.iter().any(|one| one.kind == kind && one.seconds.is_some());
    if !measured(ExperimentKind::Without) && !measured(ExperimentKind::Alone) {
        return Grid::default();
    }
    let mut grid = Table::of(&result.stages)
        .column(Column::figures("stage", "#"), |stage| Cell::of(stage.number.to_string(), stage.number))
        .column(Column::words("command", "stage").fit(Fit::Elastic), |stage| Cell::text(&stage.command))
        .column(Column::figures("wrote", "output"), |stage| {
            stage.wrote.map_or_else(Cell::default, |bytes| Cell::of(ByteSize(bytes).to_string(), bytes))
        })
        .column(Column::figures("alone", "alone"), |stage| seconds(find(result, ExperimentKind::Alone, stage.number)))
        .column(Column::figures("without", "without it"), |stage| {
            seconds(find(result, ExperimentKind::Without, stage.number))
        })
        .column(Column::figures("gain", "gain"), |stage| gain(find(result, ExperimentKind::Without, stage.number)))
        .column(Column::figures("", "interval"), |stage| interval(find(result, ExperimentKind::Without, stage.number)))
        .grid();
    grid.labels = 2;
    grid
}

/// What was tried, best first: confirmed changes, then those that helped in their only run.
fn changes(result: &ExperimentResult) -> Grid {
    let is_listed = |one: &&TuneExperiment| {
        !matches!(one.kind, ExperimentKind::Without | ExperimentKind::Alone)
            && one.gain.is_some_and(|gain| gain >= NO_DIFFERENCE || one.verdict.is_some())
    };
    let mut rows: Vec<&TuneExperiment> = result.experiments.iter().filter(is_listed).collect();
    rows.sort_by(|one, other| other.gain.unwrap_or(0.0).total_cmp(&one.gain.unwrap_or(0.0)));
    const MOST: usize = 8;
    rows.truncate(MOST);
    Table::of(&rows)
        .column(Column::words("change", "change").fit(Fit::Wrapped), |one| {
            let stage = one.stage.filter(|_| one.kind == ExperimentKind::Remedy);
            let stage = stage.map_or_else(String::new, |stage| format!("{stage} "));
            Cell::of(format!("{stage}{}", one.text), one.text.as_str())
        })
        .column(Column::figures("seconds", "time"), |one| seconds(Some(one)))
        .column(Column::figures("gain", "gain"), |one| gain(Some(one)))
        .column(Column::figures("", "interval"), |one| interval(Some(one)))
        .column(Column::words("verdict", "verdict"), |one| match one.verdict {
            Some(verdict) => Cell::of(verdict.name(), verdict.name()).style(pipemark_console::verdict::style(verdict)),
            None => Cell::shown("one run"),
        })
        .grid()
}

/// The stage whose work costs the pipeline most time, or that no single stage does.
fn bottleneck(result: &ExperimentResult) -> Option<String> {
    let mut without: Vec<(f64, usize)> = result
        .experiments
        .iter()
        .filter(|one| one.kind == ExperimentKind::Without)
        .filter_map(|one| Some((one.gain?, one.stage?)))
        .collect();
    without.sort_by(|one, other| other.0.total_cmp(&one.0));
    let name = |number: usize| format!("{number} {}", result.stages[number - 1].name);
    let (best, stage) = *without.first()?;
    let second = without.get(1).map_or(1.0, |second| second.0);
    if best < NO_DIFFERENCE {
        return Some(
            "no stage alone decides the time: without the work of any of them, it stays about the same".to_owned(),
        );
    }
    if best < second * NO_DIFFERENCE {
        let both = format!("{} and {}", name(stage), name(without[1].1));
        return Some(format!("{both} cost about the same: up to {}× without the work of either", digits(best)));
    }
    Some(format!("bottleneck: {}; without its work, the pipeline is {}× as fast", name(stage), digits(best)))
}

/// What the tables don't say.
fn sentences(result: &ExperimentResult) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(bottleneck(result));
    let alone: Vec<f64> = result
        .experiments
        .iter()
        .filter(|one| one.kind == ExperimentKind::Alone)
        .filter_map(|one| one.seconds)
        .collect();
    let total: f64 = alone.iter().sum();
    let largest = alone.iter().copied().fold(0.0, f64::max);
    let base = result.time.median;
    if alone.len() == result.stages.len() && alone.len() > 1 && total < base * 1.15 && largest < 0.75 * base {
        sentences.push(format!(
            "the stages don't overlap: alone they take {} s together, about as long as the pipeline",
            digits(total)
        ));
    }
    let is_change = |one: &&TuneExperiment| !matches!(one.kind, ExperimentKind::Without | ExperimentKind::Alone);
    let unhelpful: Vec<&str> = result
        .experiments
        .iter()
        .filter(is_change)
        .filter(|one| one.verdict.is_none() && one.same_output != Some(false))
        .filter(|one| one.gain.is_some_and(|gain| gain < NO_DIFFERENCE) || one.seconds.is_none())
        .filter(|one| one.kind != ExperimentKind::Cpus)
        .map(|one| one.text.as_str())
        .collect();
    if !unhelpful.is_empty() {
        sentences.push(format!("no gain: {}", unhelpful.join("; ")));
    }
    let differing: Vec<&str> =
        result.experiments.iter().filter(|one| one.same_output == Some(false)).map(|one| one.text.as_str()).collect();
    if !differing.is_empty() {
        sentences.push(format!("omitted, because the output differs: {}", differing.join("; ")));
    }
    sentences
}

/// The fastest pipeline, or that there is none.
fn conclusion(sheet: &mut Sheet, result: &ExperimentResult) {
    if let Some(fastest) = &result.fastest {
        let output = if fastest.same_output { "the output is the same" } else { "the output differs" };
        let sentence = format!(
            "fastest: {}× as fast ({} to {}), {output}: {}",
            digits(fastest.gain),
            digits(fastest.low),
            digits(fastest.high),
            fastest.changes.join("; ")
        );
        let notes = [Some(Note::new("", Style::Success, &sentence)), Note::command(&fastest.command)];
        sheet.notes(notes.into_iter().flatten());
        return;
    }
    let confirmed = result.experiments.iter().any(|one| one.command.is_some() && one.verdict.is_some());
    let better_without = result
        .experiments
        .iter()
        .filter(|one| one.kind == ExperimentKind::Without && one.verdict == Some(Verdict::Better))
        .max_by(|one, other| one.gain.unwrap_or(0.0).total_cmp(&other.gain.unwrap_or(0.0)));
    let text = match (confirmed, better_without) {
        (true, _) => "no change was proved faster: inconclusive".to_owned(),
        (false, Some(one)) => {
            format!("no change with the same output was found that helps; the most would be gained {}", one.text)
        }
        (false, None) => "no change with the same output was found that helps".to_owned(),
    };
    sheet.notes([Note::new("", Style::Plain, &text)]);
}
