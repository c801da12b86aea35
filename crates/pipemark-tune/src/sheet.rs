//! The result as text: what each stage costs, what helps, and the fastest pipeline.

use pipemark_model::{ByteSize, Unit, counted, digits, total_order};
use pipemark_show::{
    Axis, Block, Cell, Chart, ChartKind, Column, Fit, Grid, Note, Point, Scale, Series, SeriesRole, Sheet, Style, Table,
};

use pipemark_stats::verdict::Verdict;

use crate::result::{ExperimentKind, ExperimentResult, GuessResult, PredictedGain, Prediction, TuneExperiment};

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
    sheet.notes(result.prediction.iter().flat_map(verdict));
    sheet.grid(stages(result));
    sheet.grid(changes(result));
    sheet.notes(sentences(result).into_iter().map(Note::plain));
    sheet.grid(guesses(result));
    sheet.notes(result.notes.iter().map(Note::plain));
    conclusion(&mut sheet, result);
    sheet
}

/// The verdict of `why`, and whether the experiments confirm it.
fn verdict(prediction: &Prediction) -> Vec<Note> {
    let predicted = prediction.predicted.map(|gain| format!("predicted {}×, ", predicted_text(gain)));
    let predicted = predicted.unwrap_or_default();
    let judged = prediction.confirmed.zip(prediction.measured).map(|(confirmed, measured)| {
        let confirmed = if confirmed { "confirmed" } else { "not confirmed" };
        let change = if prediction.stage.is_some() { "without the work of that stage" } else { "with larger pipes" };
        format!("{confirmed}: {predicted}measured {}× {change}", digits(measured))
    });
    let judged = judged.unwrap_or_else(|| "no experiment here tests that".to_owned());
    let text = format!("why: {}", prediction.text);
    [text, judged].map(Note::plain).into()
}

/// A predicted gain, such as `1.8 to 2.4`.
fn predicted_text(gain: PredictedGain) -> String {
    match gain.high {
        Some(high) if high - gain.low < 0.05 => digits(gain.low),
        Some(high) => format!("{} to {}", digits(gain.low), digits(high)),
        None => format!("≥ {}", digits(gain.low)),
    }
}

fn find(result: &ExperimentResult, kind: ExperimentKind, stage: usize) -> Option<&TuneExperiment> {
    result.experiments.iter().find(|one| one.kind == kind && one.stage == Some(stage))
}

/// A gain, such as 2.2×.
fn gain(experiment: Option<&TuneExperiment>) -> Cell {
    experiment.and_then(|one| one.gain).map_or_else(Cell::default, |gain| Cell::of(format!("{}×", digits(gain)), gain))
}

fn interval(experiment: Option<&TuneExperiment>) -> Cell {
    let Some(one) = experiment.filter(|one| one.gain.is_some()) else { return Cell::default() };
    Cell::shown(match one.low.zip(one.high) {
        Some((low, high)) => format!("{} – {}", digits(low), digits(high)),
        None => counted(one.runs as usize, "run"),
    })
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
        .column(Column::figures("gain", "without it"), |stage| match stage.bound {
            Some(bound) => Cell::shown(format!("≤ {}×", digits(bound))),
            None => gain(find(result, ExperimentKind::Without, stage.number)),
        })
        .column(Column::figures("", "interval"), |stage| interval(find(result, ExperimentKind::Without, stage.number)))
        .column(Column::figures("predicted", "predicted"), |stage| {
            Cell::shown(stage.predicted.map(predicted_text).unwrap_or_default())
        })
        .grid();
    grid.labels = 2;
    grid
}

/// What was tried, best first: confirmed changes, then those that helped in their only run.
fn changes(result: &ExperimentResult) -> Grid {
    let is_listed = |one: &&TuneExperiment| {
        !matches!(one.kind, ExperimentKind::Without | ExperimentKind::Alone)
            && one.failed.is_none()
            && (one.kind != ExperimentKind::Combination || one.verdict.is_some())
            && one.gain.is_some_and(|gain| gain >= NO_DIFFERENCE || one.verdict.is_some())
    };
    let mut rows: Vec<&TuneExperiment> = result.experiments.iter().filter(is_listed).collect();
    rows.sort_by(|one, other| {
        let [one, other] = [one, other].map(|row| (row.verdict.is_some(), row.gain.unwrap_or(0.0)));
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    const MOST: usize = 8;
    rows.truncate(MOST);
    // Changes that are made together have a line each.
    let lines = |one: &TuneExperiment| match one.changes.len() {
        0 | 1 => vec![one.text.clone()],
        _ => one
            .changes
            .iter()
            .zip(0..)
            .map(|(text, nth)| if nth == 0 { text.clone() } else { format!("+ {text}") })
            .collect(),
    };
    let rows: Vec<(Option<&TuneExperiment>, String)> = rows
        .into_iter()
        .flat_map(|one| lines(one).into_iter().zip(0..).map(move |(line, nth)| (Some(one).filter(|_| nth == 0), line)))
        .collect();
    Table::of(&rows)
        .column(Column::words("change", "change").fit(Fit::Wrapped), |(one, line)| {
            let stage = one.filter(|one| one.kind == ExperimentKind::Remedy).and_then(|one| one.stage);
            let stage = stage.map_or_else(String::new, |stage| format!("{stage} "));
            Cell::of(format!("{stage}{line}"), line.as_str())
        })
        .column(Column::figures("gain", "gain"), |(one, _)| gain(*one))
        .column(Column::figures("", "interval"), |(one, _)| interval(*one))
        .column(Column::words("verdict", "verdict"), |(one, _)| match one.map(|one| one.verdict) {
            Some(Some(verdict)) => {
                Cell::of(verdict.name(), verdict.name()).style(pipemark_console::verdict::style(verdict))
            }
            Some(None) => Cell::shown("not proved"),
            None => Cell::default(),
        })
        .grid()
}

/// Guesses, apart from the changes that keep the output of any input.
fn guesses(result: &ExperimentResult) -> Grid {
    let stage = |guess: &GuessResult| guess.stage.map_or_else(String::new, |stage| format!("{stage} "));
    Table::of(&result.guesses)
        .column(Column::words("guess", "same output on this input only").fit(Fit::Wrapped), |guess| {
            Cell::of(format!("{}{}", stage(guess), guess.text), guess.text.as_str())
        })
        .column(Column::figures("gain", "gain"), |guess| Cell::of(format!("{}×", digits(guess.gain)), guess.gain))
        .column(Column::figures("", "interval"), |guess| {
            Cell::shown(format!("{} – {}", digits(guess.low), digits(guess.high)))
        })
        .grid()
}

/// The stage whose work costs the pipeline most time, or that no single stage does.
fn bottleneck(result: &ExperimentResult) -> Option<String> {
    let proof = |one: &TuneExperiment| match one.verdict {
        Some(Verdict::Better) => String::new(),
        Some(_) => " (not proved)".to_owned(),
        None => format!(" ({})", counted(one.runs as usize, "run")),
    };
    let mut without: Vec<(f64, usize, String)> = result
        .experiments
        .iter()
        .filter(|one| one.kind == ExperimentKind::Without)
        .filter_map(|one| Some((one.gain?, one.stage?, proof(one))))
        .collect();
    without.sort_by_cached_key(|one| total_order(-one.0));
    let name = |number: usize| format!("{number} {}", result.stages[number - 1].name);
    let (best, stage, proof) = without.first()?.clone();
    let second = without.get(1).map_or(1.0, |second| second.0);
    // Of a stage that couldn't be measured, nothing is known.
    let bounded = result.stages.iter().filter(|stage| stage.bound.is_some()).count();
    let of = if without.len() + bounded < result.stages.len() { " of the stages measured" } else { "" };
    if best < NO_DIFFERENCE {
        let whose = if of.is_empty() { "no stage" } else { "none of the stages measured" };
        return Some(format!(
            "{whose} alone decides the time: without the work of any of them, it stays about the same"
        ));
    }
    if best < second * NO_DIFFERENCE {
        let both = format!("{} and {}", name(stage), name(without[1].1));
        return Some(format!("{both} cost about the same: up to {}× without the work of either{proof}", digits(best)));
    }
    Some(format!("bottleneck{of}: {}; without its work, the pipeline is {}× as fast{proof}", name(stage), digits(best)))
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
    let is_about_as_long = (base * 0.85..base * 1.15).contains(&total);
    if alone.len() == result.stages.len() && alone.len() > 1 && is_about_as_long && largest < 0.75 * base {
        sentences.push(format!(
            "the stages don't overlap: alone they take {} s together, about as long as the pipeline",
            digits(total)
        ));
    }
    let failed: Vec<String> = result
        .experiments
        .iter()
        .filter(is_change)
        .filter(|one| one.same_output != Some(false))
        .filter_map(|one| Some(format!("{} ({})", one.text, one.failed.as_ref()?)))
        .collect();
    if !failed.is_empty() {
        sentences.push(format!("without a result: {}", failed.join("; ")));
    }
    let unhelpful: Vec<&str> = result
        .experiments
        .iter()
        .filter(is_change)
        .filter(|one| one.verdict.is_none() && one.same_output != Some(false))
        .filter(|one| one.gain.is_some_and(|gain| gain < NO_DIFFERENCE))
        .filter(|one| one.kind != ExperimentKind::Cpus)
        .map(|one| one.text.as_str())
        .collect();
    if !unhelpful.is_empty() {
        sentences.push(format!("no gain: {}", unhelpful.join("; ")));
    }
    let differs = |one: &&TuneExperiment| one.same_output == Some(false) && one.difference.is_none();
    let differing: Vec<&str> = result.experiments.iter().filter(differs).map(|one| one.text.as_str()).collect();
    if !differing.is_empty() {
        sentences.push(format!("omitted, because the output differs: {}", differing.join("; ")));
    }
    if !result.untried.is_empty() {
        let reason = match result.sufficient_budget {
            Some(budget) => format!(" in the budget (--budget {budget:.0}s should suffice)"),
            None => String::new(),
        };
        sentences.push(format!("not tried{reason}: {}", result.untried.join("; ")));
    }
    sentences
}

/// The fastest pipeline, or that there is none.
fn conclusion(sheet: &mut Sheet, result: &ExperimentResult) {
    let text = result.conclusion();
    let Some(fastest) = &result.fastest else {
        return sheet.notes([Note::new("", Style::Plain, &text)]);
    };
    let mut notes = vec![Note::new("", Style::Success, &text)];
    if fastest.changes.len() > 1 {
        notes.extend(fastest.changes.iter().map(|change| Note::new("+", Style::Plain, change)));
    }
    notes.extend(Note::command(&fastest.command));
    sheet.notes(notes);
}

/// The result with a chart, for a page.
pub fn experiments(sheet: &mut Sheet, result: &ExperimentResult) {
    sheet.heading(2, &result.pipeline);
    sheet.blocks.extend(self::sheet(result).blocks);
    let bars = bars(result);
    let names = bars.iter().map(|bar| bar.0.clone()).collect();
    let point = |(row, (name, seconds)): (usize, &(String, f64))| {
        let figure = format!("{} s", digits(*seconds));
        Point { x: seconds * 1e9, y: row as f64, name: name.clone(), figure, ..Point::default() }
    };
    let points = bars.iter().enumerate().map(point).collect();
    let series = Series { label: String::new(), role: SeriesRole::Measured, points };
    let x = Axis::new("time", Unit::Nanoseconds, Scale::Linear);
    let chart = Chart::new("Time of the pipeline", ChartKind::Bars, x, Axis::named("", names), vec![series]);
    sheet.blocks.push(Block::Chart(Box::new(chart)));
}

/// The times of the chart: as it is, without the work of each stage, and with each change.
fn bars(result: &ExperimentResult) -> Vec<(String, f64)> {
    const MOST: usize = 10;
    let of = |experiments: Vec<&TuneExperiment>| {
        // Their gains refer to runs at the same time.
        let time = |one: &TuneExperiment| Some((one.text.clone(), result.time.median / one.gain?));
        let mut bars: Vec<(String, f64)> = experiments.iter().filter_map(|one| time(one)).collect();
        bars.truncate(MOST);
        bars
    };
    let is_without = |one: &&TuneExperiment| one.kind == ExperimentKind::Without;
    let mut changes: Vec<&TuneExperiment> = result.experiments.iter().filter(is_change).collect();
    changes.sort_by_cached_key(|one| total_order(-one.gain.unwrap_or(0.0)));
    let mut bars = vec![("as it is".to_owned(), result.time.median)];
    bars.extend(of(result.experiments.iter().filter(is_without).collect()));
    bars.extend(of(changes));
    bars
}

fn is_change(one: &&TuneExperiment) -> bool {
    !matches!(one.kind, ExperimentKind::Without | ExperimentKind::Alone)
}

#[cfg(test)]
mod tests {
    use pipemark_model::Estimate;

    use super::*;
    use crate::result::{SCHEMA, StageResult};

    fn experiment(kind: ExperimentKind, stage: usize, text: &str, gain: Option<f64>, runs: u32) -> TuneExperiment {
        TuneExperiment {
            stage: Some(stage),
            text: text.to_owned(),
            command: (kind == ExperimentKind::Remedy).then(|| text.to_owned()),
            seconds: gain.map(|gain| 10.0 / gain),
            gain,
            runs,
            ..crate::engine::blank(kind, "", String::new())
        }
    }

    fn result(experiments: Vec<TuneExperiment>) -> ExperimentResult {
        let stage = |(name, number): (&str, usize)| StageResult {
            number,
            name: name.to_owned(),
            command: name.to_owned(),
            wrote: None,
            predicted: None,
            bound: None,
        };
        ExperimentResult {
            schema: SCHEMA.to_owned(),
            version: String::new(),
            pipeline: "gzip | sort".to_owned(),
            seconds: 40.0,
            budget: 40.0,
            runs: 4,
            interrupted: false,
            time: Estimate { median: 10.0, low: None, high: None, min: 10.0, max: 10.0, runs: 4 },
            prediction: None,
            output: 9,
            stages: ["gzip", "sort"].into_iter().zip(1..).map(stage).collect(),
            experiments,
            fastest: None,
            guesses: Vec::new(),
            notes: Vec::new(),
            untried: Vec::new(),
            sufficient_budget: None,
        }
    }

    #[test]
    fn what_is_not_proved_is_not_said_to_help_or_not_to_help() {
        let none = result(vec![experiment(ExperimentKind::Remedy, 1, "pigz", None, 0)]);
        assert_eq!(none.conclusion(), "no change was tried: the budget is too short; use --budget 300s");
        let promising = vec![
            experiment(ExperimentKind::Remedy, 1, "pigz", Some(1.5), 2),
            experiment(ExperimentKind::Remedy, 2, "sort -S 25%", Some(1.2), 1),
        ];
        let conclusion = result(promising).conclusion();
        assert_eq!(conclusion, "not proved: 1.50× as fast in 2 runs by pigz; use --budget 300s");
        let spent = ExperimentResult { budget: 300.0, ..none };
        assert!(spent.conclusion().ends_with("use --budget 600s"), "more than was too little: {}", spent.conclusion());
        let useless = result(vec![experiment(ExperimentKind::Remedy, 1, "pigz", Some(1.01), 1)]);
        assert_eq!(useless.conclusion(), "no change with the same output was found that helps");
        let interrupted = ExperimentResult {
            interrupted: true,
            ..result(vec![experiment(ExperimentKind::Without, 1, "gzip", Some(2.0), 1)])
        };
        assert_eq!(interrupted.conclusion(), "interrupted before a change was tried");
        let mut setting = experiment(ExperimentKind::Locale, 1, "LC_ALL=C for all stages", Some(1.13), 5);
        (setting.command, setting.verdict) = (None, Some(Verdict::Better));
        let conclusion = result(vec![setting]).conclusion();
        assert_eq!(conclusion, "no pipeline to paste is proved faster; 1.13× as fast: LC_ALL=C for all stages");
    }

    #[test]
    fn changes_that_are_made_together_have_a_line_each() {
        let mut both = experiment(ExperimentKind::Combination, 1, "pigz + sort -S 25%", Some(2.0), 5);
        both.changes = ["pigz", "sort -S 25%"].map(str::to_owned).to_vec();
        both.verdict = Some(Verdict::Better);
        let one = experiment(ExperimentKind::Remedy, 1, "pigz", Some(1.5), 2);
        let grid = changes(&result(vec![one, both]));
        let texts: Vec<Vec<&str>> =
            grid.rows().map(|row| row.cells.iter().map(|cell| cell.text.as_str()).collect()).collect();
        let expected = [
            ["pigz", "2.00×", "5 runs", "better"],
            ["+ sort -S 25%", "", "", ""],
            ["1 pigz", "1.50×", "2 runs", "not proved"],
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_was_not_tried_has_a_budget_that_suffices() {
        let untried = ["guesses".to_owned()].to_vec();
        let short = ExperimentResult { untried, sufficient_budget: Some(90.0), ..result(Vec::new()) };
        let said = |result: &ExperimentResult| sentences(result).last().cloned().unwrap_or_default();
        assert_eq!(said(&short), "not tried in the budget (--budget 90s should suffice): guesses");
        assert!(short.conclusion().ends_with("use --budget 90s"), "{}", short.conclusion());
        let interrupted = ExperimentResult { sufficient_budget: None, interrupted: true, ..short };
        assert_eq!(said(&interrupted), "not tried: guesses");
    }

    #[test]
    fn a_prediction_and_its_measurement_stand_side_by_side() {
        let gain = PredictedGain { low: 1.8, high: Some(2.4) };
        let prediction = Prediction {
            text: "sort computes".to_owned(),
            cause: "computing".to_owned(),
            stage: Some(2),
            predicted: Some(gain),
            measured: Some(2.2),
            confirmed: Some(true),
        };
        let lines: Vec<String> = verdict(&prediction).into_iter().map(|note| note.text).collect();
        let second = "confirmed: predicted 1.80 to 2.40×, measured 2.20× without the work of that stage";
        assert_eq!(lines, ["why: sort computes", second]);
        let pipe = Prediction { stage: None, confirmed: Some(false), ..prediction };
        assert!(verdict(&pipe)[1].text.ends_with("measured 2.20× with larger pipes"));
    }

    #[test]
    fn what_failed_is_not_said_to_gain_nothing() {
        let mut failed = experiment(ExperimentKind::Remedy, 1, "pigz", None, 0);
        failed.failed = Some("exit code 127".to_owned());
        let all = vec![failed, experiment(ExperimentKind::Remedy, 2, "sort -S 25%", Some(1.01), 1)];
        let sentences = sentences(&result(all));
        assert_eq!(sentences, ["without a result: pigz (exit code 127)", "no gain: sort -S 25%"]);
    }

    #[test]
    fn stages_overlap_unless_their_times_add_up_to_that_of_the_pipeline() {
        let alone = |stage, seconds| {
            let one = experiment(ExperimentKind::Alone, stage, "", None, 1);
            TuneExperiment { seconds: Some(seconds), ..one }
        };
        let said = |first, second| {
            let sentences = sentences(&result(vec![alone(1, first), alone(2, second)]));
            sentences.iter().any(|sentence| sentence.contains("about as long as the pipeline"))
        };
        assert!(said(5.0, 5.0) && said(7.0, 4.0));
        assert!(!said(2.0, 3.0), "5 s together aren't about as long as 10 s");
    }

    #[test]
    fn only_a_comparison_of_all_stages_finds_the_bottleneck_of_all() {
        let one = |gain| bottleneck(&result(vec![experiment(ExperimentKind::Without, 1, "", Some(gain), 1)])).unwrap();
        assert!(one(2.0).starts_with("bottleneck of the stages measured: 1 gzip"), "{}", one(2.0));
        assert!(one(1.0).starts_with("none of the stages measured alone"), "{}", one(1.0));
    }

    #[test]
    fn only_an_open_comparison_is_inconclusive() {
        let conclusion = |verdict| {
            let mut one = experiment(ExperimentKind::Remedy, 1, "pigz", Some(0.9), 5);
            one.verdict = Some(verdict);
            result(vec![one]).conclusion()
        };
        assert_eq!(conclusion(Verdict::Inconclusive), "no change was proved faster: inconclusive");
        for verdict in [Verdict::Same, Verdict::Worse] {
            assert_eq!(conclusion(verdict), "no change that was confirmed is faster");
        }
    }

    #[test]
    fn the_bottleneck_says_how_well_it_is_known() {
        let sentence = |verdict, runs| {
            let mut gzip = experiment(ExperimentKind::Without, 1, "", Some(2.86), runs);
            gzip.verdict = verdict;
            bottleneck(&result(vec![gzip, experiment(ExperimentKind::Without, 2, "", Some(1.1), 1)])).unwrap()
        };
        let known = "bottleneck: 1 gzip; without its work, the pipeline is 2.86× as fast";
        assert_eq!(sentence(Some(Verdict::Better), 5), known);
        assert_eq!(sentence(Some(Verdict::Inconclusive), 5), format!("{known} (not proved)"));
        assert_eq!(sentence(None, 1), format!("{known} (1 run)"));
    }
}
