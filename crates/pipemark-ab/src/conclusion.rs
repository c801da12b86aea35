//! The last line of the sheet: compares the two commands, or the best of several commands with the reference. It claims
//! only what the ranks and verdicts of the table say.

use pipemark_console::verdict::interval;
use pipemark_model::{Better, digits, signed_percent};
use pipemark_stats::compare::Comparison;
use pipemark_stats::verdict::Verdict;

use crate::result::{CommandResult, FigureResult};
use crate::run_figures::{FigureKind, TIME};

/// The conclusion on the figure `by`; `None` if nothing was compared.
pub fn conclusion(commands: &[CommandResult], reference: &str, by: &FigureKind) -> Option<String> {
    let reference = commands.iter().find(|command| command.label == reference)?;
    if let [_, _] = commands {
        let other = commands.iter().find(|command| command.label != reference.label)?;
        return against_reference(other, reference, by);
    }
    let mut first: Vec<&CommandResult> = commands.iter().filter(|command| command.rank == Some(1)).collect();
    if first.iter().any(|command| command.label == reference.label) {
        return leading_reference(commands, reference, &first, by);
    }
    let median = |command: &CommandResult| judged(command, by).map_or(f64::INFINITY, |figure| figure.estimate.median);
    first.sort_by(|one, other| match by.better {
        Better::Higher => median(other).total_cmp(&median(one)),
        Better::Lower | Better::Neither => median(one).total_cmp(&median(other)),
    });
    let (best, tied) = first.split_first()?;
    let mut sentence = against_reference(best, reference, by)?;
    if !tied.is_empty() {
        sentence.push_str(&format!("; not significantly different from {}", labels(tied)));
    }
    Some(sentence)
}

/// The conclusion if no command is better than the reference.
fn leading_reference(
    commands: &[CommandResult],
    reference: &CommandResult,
    first: &[&CommandResult],
    by: &FigureKind,
) -> Option<String> {
    let others = || commands.iter().filter(|command| command.label != reference.label && command.failed.is_none());
    let is_worse =
        |command: &&CommandResult| judged(command, by).and_then(|figure| figure.verdict) == Some(Verdict::Worse);
    let (count, worse, label) = (others().count(), others().filter(is_worse).count(), &reference.label);
    let that_ran = if count + 1 == commands.len() { "" } else { " that ran" };
    match (count, worse) {
        (0, _) => None,
        _ if worse == count => Some(format!("{label} is best: better than every other command{that_ran}.")),
        (_, 0) => Some(format!("No command is significantly better or worse than {label}.")),
        _ if first.len() > 1 => {
            Some(format!("Tied for first place: {}. {label} is better than {worse} of {count} others.", labels(first)))
        }
        _ => Some(format!(
            "No command is significantly better than {label}, which is better than {worse} of {count} others."
        )),
    }
}

fn labels(commands: &[&CommandResult]) -> String {
    commands.iter().map(|command| command.label.as_str()).collect::<Vec<_>>().join(", ")
}

fn judged<'a>(command: &'a CommandResult, by: &FigureKind) -> Option<&'a FigureResult> {
    command.figures.get(&by.key)
}

/// The conclusion of a comparison with the sessions that were saved as `name`; `None` if nothing was compared.
pub fn compared_with_saved(commands: &[CommandResult], name: &str, by: &FigureKind) -> Option<String> {
    if let [one] = commands {
        return against(one, name, by);
    }
    let labels = |wanted: Verdict| {
        let own = commands.iter().filter(|one| judged(one, by).and_then(|figure| figure.verdict) == Some(wanted));
        let own: Vec<&str> = own.map(|one| one.label.as_str()).collect();
        (!own.is_empty()).then(|| format!("{}: {}", wanted.name(), own.join(", ")))
    };
    let all = [Verdict::Worse, Verdict::Better, Verdict::Same, Verdict::Inconclusive].into_iter().filter_map(labels);
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| format!("{} compared with {name}: {}", by.heading, all.join("; ")))
}

fn against_reference(command: &CommandResult, reference: &CommandResult, by: &FigureKind) -> Option<String> {
    against(command, &reference.label, by)
}

fn against(command: &CommandResult, reference: &str, by: &FigureKind) -> Option<String> {
    let figure = judged(command, by)?;
    let (comparison, verdict) = (figure.comparison?, figure.verdict?);
    match by.key == TIME {
        true => time_sentence(reference, &command.label, &comparison, verdict),
        false => Some(format!(
            "{}: {} {} %{} compared with {}: {}",
            command.label,
            by.heading,
            signed_percent(comparison.change),
            shown_interval(&comparison).map_or_else(String::new, |interval| format!(" ({interval})")),
            reference,
            verdict.name()
        )),
    }
}

/// The interval of the change; `None` if there are too few runs, which a note reports.
pub fn shown_interval(comparison: &Comparison) -> Option<String> {
    comparison.judged().or(comparison.low.zip(comparison.high)).map(|_| interval(comparison))
}

/// The sentence that says how many times as fast one command is as the other, with the interval.
fn time_sentence(a: &str, b: &str, comparison: &Comparison, verdict: Verdict) -> Option<String> {
    let time = 1.0 + comparison.change;
    let Some((low, high)) = comparison.judged() else {
        return Some(format!("{b} takes {} times as long as {a}: {}", digits(time), verdict.name()));
    };
    let (low, high) = (1.0 + low, 1.0 + high);
    Some(match verdict {
        Verdict::Better => {
            format!(
                "{b} ran {}× as fast as {a} ({} to {}): better",
                digits(1.0 / time),
                digits(1.0 / high),
                digits(1.0 / low)
            )
        }
        Verdict::Worse => {
            format!("{a} ran {}× as fast as {b} ({} to {}): {b} is worse", digits(time), digits(low), digits(high))
        }
        Verdict::Same => {
            format!("{a} and {b} are equally fast: {b} takes {} to {} times as long", digits(low), digits(high))
        }
        Verdict::Inconclusive => {
            format!(
                "{b} takes {} times as long as {a} ({} to {}): {}",
                digits(time),
                digits(low),
                digits(high),
                verdict.name()
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pipemark_stats::estimate;

    use super::*;
    use crate::commands::{TypedCommands, entries};
    use crate::interleaving::{CommandRuns, RoundPlan, Rounds, RunRecord};
    use crate::judge::Judge;
    use crate::run_figures::kinds;
    use crate::shell_start::ShellStart;

    /// Random numbers from a seed (splitmix64).
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, below: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut n = self.0;
            n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (n ^ (n >> 31)) % below
        }

        fn of<T: Copy>(&mut self, all: &[T]) -> T {
            all[self.roll(all.len() as u64) as usize]
        }
    }

    /// Judged commands with random figures: the same speed or others, quiet or noisy, constant, zero, failed, and with
    /// missing figures.
    fn commands(dice: &mut Dice) -> (Vec<CommandResult>, String, FigureKind) {
        let (count, runs) = (dice.of(&[2, 3, 4, 6]), dice.of(&[2, 5, 8, 12]));
        let typed = TypedCommands { commands: vec!["true".into(); count], ..TypedCommands::default() };
        let (entries, kinds) = (entries(&typed).unwrap(), kinds(&[]));
        let (by, noise) = (dice.of(&[0, 0, 4, 9]), dice.of(&[0.0, 0.004, 0.05, 0.3]));
        let figures = |dice: &mut Dice| {
            let base = 1e9 * dice.of(&[1.0, 1.0, 1.0, 1.02, 1.5, 3.0]);
            let (constant, zero) = (dice.roll(6) == 0, dice.roll(12) == 0);
            let run = |dice: &mut Dice, round: u32| {
                let noise = if constant { 0.0 } else { noise * (dice.roll(2001) as f64 / 1000.0 - 1.0) };
                let mut figures = vec![None; kinds.len()];
                let value = if zero && round.is_multiple_of(2) { 0.0 } else { base * (1.0 + noise) };
                figures[by] = (dice.roll(200) > 0).then_some(value);
                RunRecord { session: 1, round, figures, exit_code: Some(0) }
            };
            let mut command = CommandRuns::default();
            command.runs = (1..=runs).map(|round| run(dice, round)).collect();
            command.failed = (dice.roll(8) == 0).then(|| "exit code 1".to_owned());
            command
        };
        let rounds = Rounds { commands: (0..count).map(|_| figures(dice)).collect(), ..Rounds::default() };
        let start = estimate::from_runs(&[2e8, 2.1e8, 2.6e8, 2.0e8, 2.3e8, 2.2e8, 2.5e8, 1.9e8]).unwrap();
        let shell_start = if dice.roll(3) == 0 { ShellStart::Subtracted(start) } else { ShellStart::NotMeasured };
        let reference = dice.roll(count as u64) as usize;
        let plan = RoundPlan {
            rounds: Some(runs),
            sessions: 1,
            warmup: 0,
            budget: Duration::ZERO,
            by,
            threshold: None,
            thresholds: Default::default(),
            catch: None,
            reference,
            ignore_output: false,
            memory: false,
            cold: Vec::new(),
            keep_going: true,
            announced: false,
        };
        let judge = Judge {
            entries: &entries,
            kinds: &kinds,
            plan: &plan,
            rounds: &rounds,
            shell_start,
            own_memory: dice.of(&[1.0, 1.2e9]),
        };
        (judge.commands(), entries[reference].label.clone(), kinds[by].clone())
    }

    /// Panics if the sentence claims more than the ranks and verdicts of the table.
    fn assert_implied(sentence: &str, commands: &[CommandResult], reference: &str, by: &FigureKind) {
        let command = |label: &str| commands.iter().find(|one| one.label == label).expect("a label");
        let verdict = |one: &CommandResult| judged(one, by).and_then(|figure| figure.verdict);
        let others: Vec<&CommandResult> =
            commands.iter().filter(|one| one.label != reference && one.failed.is_none()).collect();
        let count = |wanted: Verdict| others.iter().filter(|one| verdict(one) == Some(wanted)).count();
        let table = commands.iter().map(|one| (&one.label, one.rank, verdict(one), one.failed.is_some()));
        let table = format!("{sentence}\n{reference}: {:?}", table.collect::<Vec<_>>());
        let (worse, all) = (count(Verdict::Worse), others.len());
        if sentence.contains("is best") {
            assert!(worse == all && all > 0, "{table}");
            assert_eq!(sentence.contains("that ran"), all + 1 < commands.len(), "{table}");
            return;
        }
        if sentence.starts_with("No command is significantly better") || sentence.starts_with("Tied for first place") {
            assert_eq!(count(Verdict::Better), 0, "{table}");
            assert!(!sentence.contains("or worse") || worse == 0, "{table}");
            let has_count = sentence.contains(&format!("better than {worse} of {all} others"));
            assert!(has_count || (worse == 0 && sentence.contains("or worse")), "{table}");
        }
        if let Some(tied) = sentence.strip_prefix("Tied for first place: ") {
            let tied = tied.split('.').next().unwrap();
            assert!(tied.split(", ").all(|label| command(label).rank == Some(1)), "{table}");
            return;
        }
        let (main, tied) = sentence.split_once("; not significantly different from ").unwrap_or((sentence, ""));
        if commands.len() > 2 {
            assert!(
                tied.split(", ").filter(|label| !label.is_empty()).all(|label| command(label).rank == Some(1)),
                "{table}"
            );
        }
        if main.starts_with("No command") {
            return;
        }
        // The sentence compares the reference with one command, and states that command's verdict.
        let compared = others.iter().find(|one| main.split([' ', ':']).any(|word| word == one.label)).expect("a label");
        let stated = match main {
            _ if main.contains("worse") => Verdict::Worse,
            _ if main.contains("better") => Verdict::Better,
            _ if main.contains("equally fast") || main.ends_with("same") => Verdict::Same,
            _ => Verdict::Inconclusive,
        };
        assert_eq!(Some(stated), verdict(compared), "{table}");
    }

    #[test]
    fn no_sentence_claims_more_than_the_table() {
        let mut dice = Dice(1);
        let mut kinds_of_sentences = std::collections::BTreeSet::new();
        for _ in 0..5000 {
            let (commands, reference, by) = commands(&mut dice);
            let verdict = |one: &CommandResult| judged(one, &by).and_then(|figure| figure.verdict);
            let ranked = |label: &str| commands.iter().find(|one| one.label == label).and_then(|one| one.rank);
            for command in commands.iter().filter(|one| one.rank.is_some() && one.label != reference) {
                // Ranks and verdicts agree.
                let (own, of_reference) = (command.rank, ranked(&reference));
                assert!(verdict(command) != Some(Verdict::Better) || of_reference > Some(1), "{command:?}");
                assert!(verdict(command) != Some(Verdict::Worse) || own > Some(1), "{command:?}");
            }
            if let Some(sentence) = conclusion(&commands, &reference, &by) {
                assert_implied(&sentence, &commands, &reference, &by);
                let words = [
                    "is best",
                    "or worse",
                    "Tied",
                    "not significantly different",
                    "No command",
                    ": better",
                    "same",
                    "inconclusive",
                ];
                kinds_of_sentences.extend(words.into_iter().filter(|word| sentence.contains(word)));
            }
        }
        assert_eq!(kinds_of_sentences.len(), 8, "{kinds_of_sentences:?}");
    }

    #[test]
    fn commands_without_a_rank_never_win() {
        let mut dice = Dice(3);
        for _ in 0..2000 {
            let (commands, reference, by) = commands(&mut dice);
            let ran = commands.iter().filter(|one| one.rank.is_some()).count();
            let sentence = conclusion(&commands, &reference, &by).unwrap_or_default();
            assert!(ran > 1 || commands.len() == 2 || sentence.is_empty(), "{sentence}: {commands:?}");
        }
    }
}
