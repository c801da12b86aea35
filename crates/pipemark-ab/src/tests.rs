//! Tests of whole sheets: what the sentences below the tables say follows from the tables.

use std::time::Duration;

use pipemark_model::Better;
use pipemark_show::{Block, Characters, Colour, Terminal};

use crate::commands::{TypedCommands, entries};
use crate::interleaving::{CommandRuns, RoundPlan, Rounds, RunRecord};
use crate::judge::Judge;
use crate::result::{AB_SCHEMA, AbResult};
use crate::run_figures::{FigureKind, TIME, kinds};
use crate::sheet::commands_sheet;
use crate::shell::Shell;

/// The result of commands with these times in seconds, one list for each command. The first is the reference. `values`
/// are those of a parameter `threads`; without them, the commands are A, B and so on.
fn result(times: &[Vec<f64>], values: &[&str]) -> (AbResult, Vec<FigureKind>) {
    let parameters = match values {
        [] => Vec::new(),
        values => vec![format!("threads={}", values.join(",")).parse().unwrap()],
    };
    let commands = if values.is_empty() { vec!["true".into(); times.len()] } else { vec!["x {threads}".into()] };
    let entries = entries(&TypedCommands { commands, parameters, ..TypedCommands::default() }).unwrap();
    assert_eq!(entries.len(), times.len());
    let kinds = kinds(&[]);
    let of = |times: &Vec<f64>| {
        let run = |(time, round): (&f64, u32)| {
            let figure = |kind: &FigureKind| [TIME, "cpu"].contains(&kind.key.as_str()).then_some(time * 1e9);
            RunRecord { session: 1, round, figures: kinds.iter().map(figure).collect(), exit_code: Some(0) }
        };
        let mut command = CommandRuns::default();
        command.runs = times.iter().zip(1..).map(run).collect();
        command
    };
    let plan = RoundPlan {
        rounds: Some(times[0].len() as u32),
        sessions: 1,
        warmup: 0,
        budget: Duration::ZERO,
        by: 0,
        threshold: None,
        thresholds: Default::default(),
        catch: None,
        reference: 0,
        ignore_output: false,
        memory: false,
        cold: Vec::new(),
        keep_going: true,
        announced: false,
    };
    let rounds = Rounds { commands: times.iter().map(of).collect(), ..Rounds::default() };
    let judge = Judge::of(&entries, &kinds, &plan, &rounds);
    let result = AbResult {
        schema: AB_SCHEMA.to_owned(),
        version: String::new(),
        started: 0,
        sessions: 1,
        shell: Shell::None,
        shell_start: None,
        shell_start_taken_off: false,
        concurrent: 1,
        cold: None,
        by: TIME.to_owned(),
        criterion: plan.criterion(Better::Lower),
        catch: None,
        baseline: None,
        reference: entries[0].label.clone(),
        figures: Vec::new(),
        commands: judge.commands(),
        interrupted: false,
        warnings: Vec::new(),
    };
    (result, kinds)
}

fn shown(times: &[Vec<f64>], values: &[&str]) -> String {
    let (result, kinds) = result(times, values);
    let terminal = Terminal { width: 160, colour: Colour::Never, characters: Characters::Unicode };
    terminal.render(&commands_sheet(&result, &kinds, true))
}

fn steady(time: f64) -> Vec<f64> {
    [1.0, 1.004, 0.996, 1.002, 0.998, 1.001, 0.999, 1.003, 0.997, 1.0].map(|factor| time * factor).to_vec()
}

/// The question was how much faster two and four threads are than one.
#[test]
fn the_conclusion_compares_the_best_with_the_reference() {
    let text = shown(&[steady(4.0), steady(2.0), steady(2.002)], &["1", "2", "4"]);
    assert!(text.contains("threads=2 ran 2.00× as fast as threads=1 ("), "{text}");
    assert!(text.contains("not significantly different from threads=4") && !text.contains("Tied"), "{text}");
}

/// A table of three rows says as much as their chart.
#[test]
fn few_points_have_no_chart() {
    let charts = |values: &[&str]| {
        let times: Vec<Vec<f64>> = (1..=values.len()).map(|nth| steady(1.0 / nth as f64)).collect();
        let (result, kinds) = result(&times, values);
        let sheet = commands_sheet(&result, &kinds, false);
        sheet.blocks.iter().filter(|block| matches!(block, Block::Chart(_))).count()
    };
    assert_eq!(charts(&["1", "2", "4"]), 0);
    assert_eq!(charts(&["1", "2", "4", "8", "16"]), 1);
}

/// In each round, the second command takes nearly as long as the first, but the medians of all runs differ.
#[test]
fn changes_with_another_ratio_than_the_medians_say_what_they_are_of() {
    let times = [2.0, 2.01, 8.0, 8.01, 8.02, 8.03, 8.04, 8.05, 8.06];
    let mut other = times.map(|time| time * 0.993);
    // Two rounds in which only the second command was fast change its median, but not the median change.
    (other[2], other[3]) = (2.0, 2.01);
    let text = shown(&[times.to_vec(), other.to_vec()], &[]);
    assert!(text.contains("-0.7 %"), "{text}");
    let note =
        "change: the median of the changes within each round; of time, CPU time, the medians above have another ratio";
    assert!(text.contains(note), "{text}");
    let text = shown(&[steady(2.0), steady(3.0)], &[]);
    assert!(!text.contains("another ratio"), "{text}");
}

/// Times of one table have one unit.
#[test]
fn a_figure_has_one_unit_in_a_table() {
    let text = shown(&[steady(0.9), steady(1.2)], &[]);
    assert!(text.contains("0.900 s") && text.contains("1.20 s") && !text.contains("900 ms"), "{text}");
    let text = shown(&[steady(0.9), steady(1.2), steady(0.5)], &[]);
    assert!(text.contains("0.900 s") && text.contains("0.500 s") && !text.contains("ms"), "{text}");
    let mut wide = steady(0.9);
    wide[0] = 1.5;
    let text = shown(&[wide], &[]);
    assert!(text.contains("0.9") && text.contains("1.50 s") && !text.contains("ms"), "{text}");
}
