//! The finding about measurements by other tools. No other rule and no claim of a published document uses their figures,
//! because nothing is known of their runs except what the file says.

use serde_json::json;

use pipemark_model::{Figure, Finding, Record, counted, total_order};

use crate::findings::Candidate;
use crate::findings::measured::measured_trials;

/// How many trials and runs the file has, and its least and its highest figure. A file of times gives times.
pub fn imported(records: &[Record]) -> Vec<Finding> {
    let trials = measured_trials(records);
    let times = trials.iter().all(|one| one.job.chain().is_some());
    let figure = if times { Figure::Real } else { Figure::Throughput };
    let mut figures: Vec<_> =
        trials.iter().filter_map(|one| Some((one.record, one.estimates.get(figure)?.median))).collect();
    figures.sort_by_cached_key(|(_, median)| total_order(*median));
    let ([least, .., most], runs) = (figures.as_slice(), trials.iter().map(|one| one.record.samples.len())) else {
        return Vec::new();
    };
    let word = if times { "real time" } else { "throughput" };
    let end = |(record, median): &(&Record, f64)| format!("{} ({})", figure.unit().show(*median), record.name);
    let text = format!(
        "Measured by another tool: {word} of {} in {}, {} to {}.",
        counted(trials.len(), "trial"),
        counted(runs.sum(), "run"),
        end(least),
        end(most),
    );
    let evidence = json!({ "figure": figure.column(), "least": least.1, "most": most.1, "trials": trials.len() });
    vec![Candidate::new("imported", 1.0, text, evidence).finding]
}

#[cfg(test)]
mod tests {
    use pipemark_stats::fixture::{STEADY, outcome, records};

    use super::imported;

    #[test]
    fn a_file_of_another_tool_has_one_sentence() {
        let outcomes = ["4k", "64k"].into_iter().zip([1.0, 2.0]);
        let outcomes = outcomes.map(|(block, speed)| outcome("import", &[("block", block)], speed, &STEADY));
        let found = imported(&records(outcomes.collect()));
        assert_eq!(
            found[0].text,
            "Measured by another tool: throughput of 2 trials in 14 runs, 1.00 GiB/s (4 KiB blocks) to 2.00 GiB/s (64 KiB \
             blocks)."
        );
        assert!(imported(&[]).is_empty());
    }
}
