//! The dry run of a suite: lists its trials and estimates the time they take, without running any.

use std::time::Duration;

use pipemark_model::{Nanos, Trial, Volume};
use pipemark_run::plan::{MEMORY_COPY, Plan, Runs};
use pipemark_show::{Cell, Column, Fit, Sheet, Style, Table};

/// The trials of the plans, grouped by experiment, and the time that all sessions take.
pub fn sheet(plans: &[Plan], sessions: u32) -> Sheet {
    let mut trials: Vec<(&Plan, &Trial)> =
        plans.iter().flat_map(|plan| plan.trials.iter().map(move |trial| (plan, trial))).collect();
    // Requested trials come before the reference, as in results.
    trials.sort_by_key(|(_, trial)| trial.experiment == MEMORY_COPY);
    let title = |(plan, trial): &(&Plan, &Trial)| {
        let experiment = plan.experiments.iter().find(|experiment| experiment.name == trial.experiment);
        experiment.map_or_else(|| trial.experiment.clone(), |experiment| experiment.title.clone())
    };
    let table = Table::of(&trials)
        .data("experiment", |(_, trial)| Some(trial.experiment.as_str()))
        .column(Column::words("trial", "trial").fit(Fit::Wrapped), |(plan, trial)| Cell::text(id(plan, trial)))
        .grouped(title, |key| key.clone());
    let mut sheet = Sheet::of(table, []);
    let text = plans.iter().map(|plan| sentence(plan, sessions)).collect::<Vec<_>>();
    sheet.text(Style::Plain, text);
    sheet
}

/// The id of a trial, without the volume if that is chosen only when measuring.
fn id(plan: &Plan, trial: &Trial) -> String {
    match plan.to_measure.contains(&trial.experiment) {
        true => trial
            .id
            .split(' ')
            .map(|word| if word.starts_with("total=") { "total=auto" } else { word })
            .collect::<Vec<_>>()
            .join(" "),
        false => trial.id.clone(),
    }
}

/// The summary, such as `quick: 34 trials, at least 8 runs each, about 28 s`.
fn sentence(plan: &Plan, sessions: u32) -> String {
    let schedule = &plan.schedule;
    let once: Vec<&Trial> = plan
        .trials
        .iter()
        .enumerate()
        .filter(|(at, trial)| {
            // A trial that occurs in several experiments is measured once.
            plan.trials.iter().position(|other| trial.is_same_as(other)) == Some(*at)
        })
        .map(|(_, trial)| trial)
        .collect();
    let (runs, least) = match schedule.runs {
        Runs::Fixed(runs) => (format!("{runs} {} each", plural(u64::from(runs), "run", "runs")), runs),
        Runs::Adaptive { min, .. } => (format!("at least {min} {} each", plural(u64::from(min), "run", "runs")), min),
    };
    let (mut time, mut volumes) = (Duration::ZERO, 0);
    for trial in &once {
        match trial.job.volume() {
            Volume::Time(ns) => time += Duration::from(ns),
            Volume::Total(_) => volumes += 1,
        }
    }
    let runs_take = time * least;
    let all = match schedule.runs {
        Runs::Fixed(_) => runs_take,
        Runs::Adaptive { .. } => runs_take.max(schedule.budget),
    } * sessions;
    let sessions = if sessions > 1 { format!(", {sessions} sessions") } else { String::new() };
    let count = once.len() as u64;
    let head = format!("{}: {count} {}, {runs}{sessions}", plan.suite, plural(count, "trial", "trials"));
    let volumes = match volumes {
        0 => String::new(),
        1 => " plus an unknown time for 1 trial that moves a fixed number of bytes".to_owned(),
        _ => format!(" plus an unknown time for {volumes} trials that move a fixed number of bytes"),
    };
    format!("{head}, about {}{volumes}", in_words(all))
}

/// Formats a duration: `28 s`, `6 min`.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        120.. => format!("{} min", (time.as_secs_f64() / 60.0).round()),
        1.. => format!("{} s", time.as_secs_f64().round()),
        0 => Nanos::from(time).to_string(),
    }
}

fn plural<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use pipemark_run::plan::{Suite, VolumeScale};
    use pipemark_show::{Characters, Colour, Terminal};

    use super::*;

    fn plan(text: &str) -> Plan {
        Suite::parse("x.toml", text).unwrap().expand(VolumeScale::ONE).unwrap()
    }

    #[test]
    fn every_trial_of_every_suite_is_listed() {
        for (name, text) in pipemark_run::plan::EMBEDDED {
            let plan = plan(text);
            let terminal = Terminal { width: 500, colour: Colour::Never, characters: Characters::Unicode };
            let text = terminal.render(&sheet(std::slice::from_ref(&plan), 1));
            for trial in &plan.trials {
                let id = id(&plan, trial);
                assert!(text.contains(&id), "{name}: {id} is not in\n{text}");
            }
            assert!(text.lines().any(|line| line.starts_with(&format!("{name}: "))), "{text}");
        }
    }

    #[test]
    fn the_estimated_time_is_that_of_the_runs_or_the_budget() {
        let text = "name = \"x\"\ntitle = \"x\"\n[schedule]\nruns = 3\n[[experiment]]\nname = \"e\"\ntitle = \"e\"\nparams = { time = \"200ms\" }\n";
        let text = sentence(&plan(text), 2);
        assert_eq!(text, "x: 1 trial, 3 runs each, 2 sessions, about 1 s");
    }
}
