//! Whether a row of the table of remedies fits a stage. Pure: no clock and no I/O.

use pipemark_profile::WorkKind;

use crate::cause::{Activity, Cause};
use crate::commands::wrappers;
use crate::environment::{self, with_variables};
use crate::figures::PipelineFigures;
use crate::model::is_work_of_children;
use crate::naming::{begins_with, names};
use crate::options::without_one_thread;
use crate::pipe_figures::PipeFigures;
use crate::programs::{self, base, has_abbreviation, has_option, is_called};
use crate::remedy_row::RemedyRow;
use crate::stage_figures::StageFigures;

/// Parallel work is advised only if at least this number of CPUs is idle.
const MIN_IDLE_CPUS: f64 = 0.3;
/// With less memory than this, in bytes, sort merges many temporary files.
const SMALL_MEMORY: u64 = 64 << 20;

/// Whether a stage reads the output of a process that it started itself. Its standard input is then not the pipeline's
/// data.
fn feeds_itself(stage: &StageFigures, figures: &PipelineFigures) -> bool {
    let typed = figures.typed.as_deref().unwrap_or_default();
    begins_with(typed, &stage.name) && figures.pipes.iter().any(|pipe| pipe.to == stage.number)
}

/// Whether a stage sends messages over a pair of sockets, or to a process of the same program that it started. A pair
/// of sockets is found only if a process was observed waiting for the other process.
fn sends_messages(stage: &StageFigures, figures: &PipelineFigures) -> bool {
    let alone = figures.typed.as_deref().is_some_and(|typed| begins_with(typed, &stage.name));
    let same = |number: usize| number != stage.number && figures.stages[number - 1].name == stage.name;
    let joined =
        |pipe: &PipeFigures| [pipe.from, pipe.to].contains(&stage.number) && (same(pipe.from) || same(pipe.to));
    figures.pipes.iter().any(|pipe| pipe.from == stage.number && pipe.is_socket || alone && joined(pipe))
}

/// Whether a stage writes about as much as it reads, such as a compressor of compressed data. If child processes do the
/// work, the stage's counts include what it exchanges with them, so this isn't known.
fn passes_all(stage: &StageFigures) -> bool {
    const MIN_RATIO: f64 = 0.9;
    let rates = stage.bytes_in_per_second.zip(stage.bytes_out_per_second);
    !is_work_of_children(stage) && rates.is_some_and(|(input, output)| input > 0.0 && output >= MIN_RATIO * input)
}

/// Whether a stage is known to write much less than it reads.
fn squeezes_input(stage: &StageFigures) -> bool {
    /// Encryption alone adds bytes; text compresses to less than this.
    const MAX_RATIO: f64 = 0.6;
    let rates = stage.bytes_in_per_second.zip(stage.bytes_out_per_second);
    rates.is_some_and(|(input, output)| output < MAX_RATIO * input)
}

/// Whether a stage's program was started from a directory that isn't one of the system's, and isn't known to be written
/// in another language than C or C++.
fn is_own_program(stage: &StageFigures) -> bool {
    let path = stage.words.first().map_or("", String::as_str);
    let of_system =
        ["/usr/", "/bin/", "/sbin/", "/lib/", "/opt/", "/nix/", "/snap/"].iter().any(|begin| path.starts_with(begin));
    path.contains('/') && !of_system && stage.language.as_deref().is_none_or(|language| language == "c++")
}

/// Whether a kind of work takes at least a third of a stage's CPU time, as sampled.
fn is_mostly(stage: &StageFigures, kind: WorkKind) -> bool {
    const MIN_SHARE: f64 = 1.0 / 3.0;
    let mut kinds = stage.profile.iter().flat_map(|profile| &profile.kinds);
    kinds.any(|one| one.kind == kind && one.share >= MIN_SHARE)
}

impl RemedyRow {
    /// Whether the row is for this program and cause.
    pub(crate) fn applies_to(&self, stage: &StageFigures, cause: Cause, figures: &PipelineFigures) -> bool {
        self.cause.iter().any(|name| cause.names().contains(name))
            && !(self.itself && cause == Cause::Activity(Activity::Computing) && is_work_of_children(stage))
            && self.fits(stage, figures)
    }

    /// Whether the row is for this program with these options, whatever the cause.
    pub(crate) fn fits(&self, stage: &StageFigures, figures: &PipelineFigures) -> bool {
        let called = |name: &str| self.program.iter().any(|like| is_called(name, like));
        let words: Vec<&str> = stage.words.first().map(|word| base(word)).into_iter().collect();
        let program = self.program.is_empty() || called(&stage.name) || words.iter().any(|word| called(word));
        let all_words = with_variables(&stage.words, &stage.variables);
        let option = |options: &[String]| {
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            has_option(&all_words, &options)
        };
        let words = without_one_thread(&all_words, &self.command);
        let lacks: Vec<&str> = self.lacks.iter().map(String::as_str).collect();
        let idle = figures.limits.idle_cpus.is_none_or(|idle| idle >= MIN_IDLE_CPUS);
        let room = !self.parallel || idle && stage.cpus.len() != 1;
        program
            && (self.language.is_empty() || stage.language.as_ref().is_some_and(|own| self.language.contains(own)))
            && (self.has.is_empty() || option(&self.has))
            && !has_option(&words, &lacks)
            && !has_abbreviation(&words, &lacks)
            && (!self.ascii || stage.words.iter().all(|word| word.is_ascii()))
            && room
            && (!self.locale || stage.collates)
            && (self.set.is_empty() || environment::set(&stage.variables, &self.set).is_some())
            && (self.under.is_empty() || wrappers(figures, stage).iter().any(|name| self.under.contains(name)))
            && (self.by.is_empty() || self.is_started_by(stage, figures))
            && !(self.splits && (feeds_itself(stage, figures) || stage.name == "parallel"))
            && (!self.socket || sends_messages(stage, figures))
            && (!self.fed || figures.pipes.iter().any(|pipe| pipe.to == stage.number))
            && self.shrinks.is_none_or(|shrinks| shrinks != passes_all(stage))
            && self.squeezes.is_none_or(|squeezes| squeezes == squeezes_input(stage))
            && self.own.is_none_or(|own| own == is_own_program(stage))
            && (!self.unoptimised || stage.profile.as_ref().is_some_and(|profile| profile.unoptimised))
            && (self.work.is_empty() || self.work.iter().any(|&kind| is_mostly(stage, kind)))
            && (!self.small_memory || programs::sort_memory(&stage.words).is_some_and(|bytes| bytes < SMALL_MEMORY))
    }

    /// Whether the pipeline as typed names a program that starts the row's program, but not the row's program itself.
    fn is_started_by(&self, stage: &StageFigures, figures: &PipelineFigures) -> bool {
        let typed = figures.typed.as_deref().unwrap_or_default();
        self.by.iter().any(|name| names(typed, name)) && !names(typed, &stage.name)
    }
}
