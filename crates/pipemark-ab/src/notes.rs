//! The notes below the tables of `ab`, and its conclusion.

use pipemark_model::{Unit, counted, digits, signed_percent};
use pipemark_show::{Note, Style};
use pipemark_stats::records::ratio_agrees;
use pipemark_stats::verdict::Verdict;

use crate::conclusion::{compared_with_saved, conclusion, shown_interval};
use crate::result::{AbResult, CommandResult};
use crate::run_figures::{FigureKind, TIME};

/// Commands that take less than this, in nanoseconds, spend most of their time starting a process.
const SHORT: f64 = 5e6;

/// The notes below the tables, and last the conclusion.
pub fn notes(result: &AbResult, kinds: &[FigureKind], by: &FigureKind) -> Vec<Note> {
    let plain = |text: String| Note { style: Style::Plain, ..Note::plain(text) };
    let ran = || result.commands.iter().filter(|command| command.failed.is_none());
    let mut notes = Vec::new();
    if result.commands.len() > 1 && result.baseline.is_none() {
        notes.push(Note::new("*", Style::Aside, &format!("reference{}", confidence(result))));
    }
    let outputs: Vec<u64> = ran().map(|command| command.output).collect();
    let steady = ran().all(|command| command.same_output);
    let allowing = if kinds.iter().any(FigureKind::is_printed) { "--figure" } else { "--ignore-output" };
    // Without hashes, or with different parameters, only the lengths of the outputs are known to be the same.
    let alike = ran().all(|command| command.hashed && command.parameters == result.commands[0].parameters);
    let same = if alike { "the same " } else { "" };
    let bytes = |count: u64| counted(usize::try_from(count).unwrap_or(usize::MAX), "byte");
    notes.push(plain(match (outputs.as_slice(), steady) {
        (_, false) => format!("The outputs differ, which {allowing} allows."),
        ([one], _) => format!("Each run wrote {}.", bytes(*one)),
        ([one, other], _) if one == other => format!("Both commands wrote {same}{}.", bytes(*one)),
        ([one, others @ ..], _) if others.iter().all(|other| other == one) => {
            format!("All commands wrote {same}{}.", bytes(*one))
        }
        _ => String::new(),
    }));
    notes.retain(|note| !note.text.is_empty());
    notes.extend(change_note(result, kinds, by));
    if let Some(cold) = result.cold {
        notes.push(match cold.stayed {
            0 => plain(format!("Cold: all {} pages were evicted from the page cache before each run.", cold.pages)),
            stayed => Note::new(
                "!",
                Style::Caution,
                &format!("Cold: {stayed} of {} pages stayed in the page cache.", cold.pages),
            ),
        });
    }
    notes.extend(start_note(result));
    if kinds.iter().any(|kind| kind.key == "instructions")
        && ran().all(|command| !command.figures.contains_key("instructions"))
    {
        notes.push(Note::plain("Hardware counters (instructions, cycles, cache misses) are not available here."));
    }
    let judged = |command: &CommandResult| result.judged(command).cloned();
    for command in ran() {
        if let Some(why) = judged(command).and_then(|figure| figure.why) {
            notes.push(Note::new("!", Style::Caution, &format!("{}: {why}", command.label)));
        }
    }
    notes.extend(
        match (&result.catch, &result.baseline) {
            (Some(catch), _) => Some(catch.sentence.clone()),
            (None, Some(baseline)) => compared_with_saved(&result.commands, baseline, by),
            (None, None) => conclusion(&result.commands, &result.reference, by),
        }
        .map(plain),
    );
    notes.extend(beyond_thresholds(result, kinds));
    notes
}

/// Says what changes are of, if the medians that the tables show beside one have another ratio. `None` otherwise.
fn change_note(result: &AbResult, kinds: &[FigureKind], by: &FigureKind) -> Option<Note> {
    let reference = result.commands.iter().find(|command| command.label == result.reference);
    let differs = |command: &CommandResult, kind: &FigureKind| {
        let figure = command.figures.get(&kind.key)?;
        let base = match &result.baseline {
            Some(_) => figure.saved?.median,
            None => reference?.figures.get(&kind.key)?.estimate.median,
        };
        let change = figure.comparison?.change;
        Some(!ratio_agrees(1.0 + change, figure.estimate.median / base))
    };
    let commands = || result.commands.iter().filter(|command| command.failed.is_none());
    // Two commands have a table of all figures; more have one of the judged figure.
    let mut those: Vec<String> = Vec::new();
    for command in commands() {
        let several = result.commands.len() > 2 || (result.baseline.is_some() && result.commands.len() > 1);
        let shown = kinds.iter().filter(|kind| !several || kind.key == by.key);
        let own = shown.filter(|kind| differs(command, kind) == Some(true));
        those.extend(own.map(|kind| if several { command.label.clone() } else { kind.heading.clone() }));
    }
    let unit = if result.sessions == 1 && result.baseline.is_none() { "round" } else { "session" };
    let text = format!(
        "change: the median of the changes within each {unit}; of {}, the medians above have another ratio",
        those.join(", ")
    );
    (!those.is_empty()).then(|| Note::plain(text))
}

/// The figures that are worse by their own threshold, except the judged one.
fn beyond_thresholds(result: &AbResult, kinds: &[FigureKind]) -> Vec<Note> {
    let note = |command: &CommandResult, kind: &FigureKind| {
        let figure = command.figures.get(&kind.key).filter(|_| kind.key != result.by)?;
        let (threshold, comparison) = (figure.threshold?, figure.comparison?);
        let text = format!(
            "{}: {} {} %{}: worse; threshold {} %",
            command.label,
            kind.heading,
            signed_percent(comparison.change),
            shown_interval(&comparison).map_or_else(String::new, |interval| format!(" ({interval})")),
            digits(threshold * 100.0)
        );
        (figure.verdict == Some(Verdict::Worse)).then(|| Note::new("!", Style::Failure, &text))
    };
    result.commands.iter().flat_map(|command| kinds.iter().filter_map(move |kind| note(command, kind))).collect()
}

fn confidence(result: &AbResult) -> &'static str {
    match result.sessions {
        _ if result.catch.is_some() => "; compared by session, with intervals that all hold in 98 % of measurements",
        1 => "; 98 % intervals that hold for all rows together",
        _ => "; compared by session, with 98 % intervals that hold for all rows together",
    }
}

/// The time to start the shell, and the error that subtracting it adds to short times.
fn start_note(result: &AbResult) -> Option<Note> {
    let start = result.shell_start?;
    let error = (start.high? - start.low?) / 2.0;
    let ns = |ns: f64| Unit::Nanoseconds.show(ns);
    let times = result.commands.iter().filter_map(|command| Some(command.figures.get(TIME)?.estimate.median));
    let shortest = times.reduce(f64::min)?;
    if !result.shell_start_taken_off && start.median >= shortest {
        return Some(Note::new(
            "!",
            Style::Caution,
            "The time to start the shell is included, because it varied too much to subtract; use --shell none.",
        ));
    }
    if !result.shell_start_taken_off {
        return Some(Note::new(
            "!",
            Style::Caution,
            &format!(
                "The times include {} to start the shell, too large a share to subtract; use --shell none.",
                ns(start.median)
            ),
        ));
    }
    let taken = format!(
        "The time to start the shell, {} ({} – {}), is subtracted.",
        ns(start.median),
        ns(start.low?),
        ns(start.high?)
    );
    if shortest >= SHORT {
        return Some(Note::plain(taken));
    }
    let percent = digits(error / shortest * 100.0);
    Some(Note::new(
        "!",
        Style::Caution,
        &format!(
            "{taken} For times under 5 ms, this adds an error of up to {percent} %; --shell none avoids the error."
        ),
    ))
}
