//! Selects rows of the table of remedies (remedies.toml, remedies_of_calls.toml) for a stage. Pure: no clock and no I/O.

use pipemark_model::total_order;
use pipemark_shell::{Edits, FoundCommand, ShellError};

use crate::cause::{Activity, Cause};
use crate::causes::work::activities;
use crate::commands::edited;
use crate::environment;
use crate::figures::PipelineFigures;
use crate::model::is_work_of_children;
use crate::options::{may_be_value, one_thread};
use crate::programs::{base, is_called};
use crate::remedy_row::{RemedyRow, TABLE};
use crate::report::Remedy;
use crate::sentences::name;
use crate::stage_figures::StageFigures;

/// The maximum number of remedies shown for a stage.
const MAX_REMEDIES: usize = 4;

/// The command that a stage such as parallel or xargs starts repeatedly. `None` unless that command has a row in the
/// table and takes most of the CPU time.
fn repeated_command(stage: &StageFigures) -> Option<StageFigures> {
    let listed = |word: &String| {
        TABLE.iter().flat_map(|row| &row.program).any(|like| is_called(base(word), like)) && base(word) != stage.name
    };
    let at = (1..stage.words.len()).find(|&at| is_work_of_children(stage) && listed(&stage.words[at]))?;
    let words = stage.words[at..].to_vec();
    Some(StageFigures { name: base(&words[0]).to_owned(), words, ..stage.clone() })
}

impl RemedyRow {
    fn remedy(&self, stage: &StageFigures, figures: &PipelineFigures) -> Remedy {
        let variable = environment::set(&stage.variables, &self.set).unwrap_or_default();
        let mut text = self.text.replace("{variable}", variable);
        if let Some(changes) = &self.changes {
            text = format!("{text}; the output changes: {changes}");
        }
        let has_command = !self.command.is_empty() && !self.experiment && self.is_proved_for(stage, figures);
        let command = has_command
            .then(|| edited(figures, stage, true, |edits, found| self.edit(edits, found, &figures.functions)))
            .flatten();
        if let Some(command) = command.as_ref().filter(|command| !command.remark.is_empty()) {
            text = format!("{text} {}", command.remark);
        }
        Remedy { id: self.id.clone(), text, command: command.map(|command| command.text).unwrap_or_default() }
    }

    /// Applies the row's command to a command as typed.
    pub(crate) fn edit(
        &self,
        edits: &mut Edits<'_>,
        found: &FoundCommand<'_>,
        functions: &[String],
    ) -> Result<(), ShellError> {
        if !self.is_proved_in(edits.script(), found, functions) {
            return Err(ShellError::Edit("another program may run"));
        }
        let FoundCommand { pipeline, place, simple, program } = *found;
        let outer = pipemark_shell::program_after_wrappers(&simple.words).map_or_else(Vec::new, |(_, outer)| outer);
        if outer.iter().any(|wrapper| wrapper.name == "busybox") {
            return Err(ShellError::Edit("busybox has other options"));
        }
        let known: Vec<Option<&str>> = simple.words.iter().map(pipemark_shell::Word::as_str).collect();
        // Behind the first operand are another program's options, as in `ssh host tar -C dir`.
        let end = self.end_of_options(&simple.words[program..]).map_or(simple.words.len(), |end| program + end);
        let arguments = found.arguments().start..found.arguments().end.min(end);
        // If a command sets the number of threads twice, the later number applies.
        let mut left_out = one_thread(&known, &self.command);
        if !left_out.is_empty() && known.contains(&Some("--")) {
            return Err(ShellError::Edit("the word may be a file"));
        }
        let dropped = |word: &str, entry: &str| word == entry || entry.ends_with('=') && word.starts_with(entry);
        let drops = |word: &str| self.drops.iter().any(|entry| dropped(word, entry));
        let dropped: Vec<usize> = arguments.clone().filter(|&at| known[at].is_some_and(drops)).collect();
        if dropped.iter().any(|&at| may_be_value(&known, at)) {
            return Err(ShellError::Edit("the word may be a value"));
        }
        left_out.extend(dropped);
        left_out.sort_unstable();
        left_out.dedup();
        left_out.retain(|at| arguments.contains(at));
        left_out.into_iter().try_for_each(|at| edits.remove_words(simple, at..at + 1))?;
        if !self.under.is_empty() {
            let wrappers = pipemark_shell::program_after_wrappers(&simple.words).map(|(_, wrappers)| wrappers);
            let mut wrappers = wrappers.unwrap_or_default().into_iter().filter(|one| self.under.contains(&one.name));
            wrappers.try_for_each(|wrapper| edits.remove_words(simple, wrapper.words))?;
        }
        match self.command.as_str() {
            "{program} {args}" => Ok(()),
            command => {
                if let Some(options) = command.strip_prefix("{program} {args} ") {
                    edits.append_arguments(simple, &[options])
                } else if let Some(options) =
                    command.strip_prefix("{program} ").and_then(|rest| rest.strip_suffix(" {args}"))
                {
                    edits.insert_options(simple, program, &[options])
                } else if let Some(name) = command.strip_suffix(" {args}") {
                    edits.replace_program(simple, program, name)
                } else if let Some((name, value)) =
                    command.strip_suffix(" {all}").and_then(|words| words.split_once('='))
                    && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
                {
                    edits.set_environment(simple, name, value)
                } else if let Some(stage) = command.strip_suffix(" | {all}") {
                    match place.checked_sub(1) {
                        Some(bar) => edits.insert_stage(pipeline, bar, stage),
                        None => edits.insert_first_stage(pipeline, stage),
                    }
                } else if let Some(wrapper) = command.strip_suffix(" {all}") {
                    edits.insert_before(simple, program, &[wrapper])
                } else {
                    edits.replace_words(simple, program..simple.words.len(), &[command])
                }
            }
        }
    }
}

/// Remedies for the stage of a verdict.
pub fn of_stage(stage: &StageFigures, cause: Cause, figures: &PipelineFigures) -> Vec<Remedy> {
    let rows: Vec<&RemedyRow> = TABLE.iter().filter(|row| row.applies_to(stage, cause, figures)).collect();
    // Rows for the name as typed, such as zcat. If there are none, rows for the program that runs, such as gzip.
    let typed_as =
        |row: &&&RemedyRow| row.program.is_empty() || row.program.iter().any(|like| is_called(&stage.name, like));
    let is_own = |row: &&&RemedyRow| !(row.program.is_empty() && row.under.is_empty() && row.language.is_empty());
    let mut own: Vec<&&RemedyRow> = rows.iter().filter(is_own).collect();
    // What is known about a program is more exact than what is known about its language.
    if own.iter().any(|row| !row.program.is_empty()) {
        own.retain(|row| row.language.is_empty());
    }
    // A program that another program started can't be replaced on its own.
    if own.iter().any(|row| !row.by.is_empty()) {
        own.retain(|row| !row.by.is_empty() || row.command.is_empty());
    }
    let named: Vec<&&RemedyRow> = own.iter().copied().filter(|row| typed_as(row)).collect();
    let mut own: Vec<Remedy> =
        if named.is_empty() { own } else { named }.into_iter().map(|row| row.remedy(stage, figures)).collect();
    // The stage already runs several processes at a time, so remedies that need more CPUs are omitted.
    own.extend(repeated_command(stage).and_then(|command| of_program(&command, cause, figures, false)));
    let any = rows.iter().filter(|row| !is_own(row)).map(|row| row.remedy(stage, figures));
    // Rows for any program apply only if no row for this program does.
    if own.is_empty() { any.take(MAX_REMEDIES).collect() } else { own.into_iter().take(MAX_REMEDIES).collect() }
}

/// Remedies that make the stages use less CPU time. Remedies that use more CPUs are omitted.
pub fn of_less_work(figures: &PipelineFigures) -> Vec<Remedy> {
    /// A stage that uses fewer CPUs than this gets no remedy.
    const MIN_CPUS: f64 = 0.2;
    let cpu = |stage: &StageFigures| stage.cpu.unwrap_or(stage.computing) * stage.present;
    let mut stages: Vec<&StageFigures> = figures.stages.iter().filter(|stage| cpu(stage) >= MIN_CPUS).collect();
    stages.sort_by_cached_key(|stage| total_order(-cpu(stage)));
    let computing = |stage: &StageFigures| of_program(stage, Cause::Activity(Activity::Computing), figures, false);
    named_once(figures, stages.into_iter().filter_map(|stage| Some((stage, computing(stage)?))))
}

/// The best remedy for each of the two stages of a verdict that finds them about equally busy.
pub fn of_two(figures: &PipelineFigures, stages: [Option<usize>; 2]) -> Vec<Remedy> {
    let stages = stages.into_iter().flatten();
    let stages = stages.filter_map(|number| figures.stages.get(number - 1));
    let of_stage = |stage: &StageFigures| of_program(stage, Cause::Activity(activities(stage)[0].0), figures, true);
    named_once(figures, stages.filter_map(|stage| Some((stage, of_stage(stage)?))))
}

/// The first row of the table that applies to a stage's program. Rows that need more CPUs apply only if `parallel` is
/// set.
fn of_program(stage: &StageFigures, cause: Cause, figures: &PipelineFigures, parallel: bool) -> Option<Remedy> {
    let mut rows = TABLE.iter().filter(|row| !row.program.is_empty() && (parallel || !row.parallel));
    let row = rows.find(|row| row.applies_to(stage, cause, figures))?;
    Some(row.remedy(stage, figures))
}

/// Prefixes each remedy with the name of its stage, and drops duplicates.
fn named_once<'f>(
    figures: &PipelineFigures,
    remedies: impl Iterator<Item = (&'f StageFigures, Remedy)>,
) -> Vec<Remedy> {
    let mut found: Vec<Remedy> = Vec::new();
    for (stage, remedy) in remedies {
        if found.iter().all(|other| other.id != remedy.id) {
            found.push(Remedy { text: format!("{}: {}", name(figures, stage.number), remedy.text), ..remedy });
        }
    }
    found.truncate(MAX_REMEDIES);
    found
}

#[cfg(test)]
mod tests;
