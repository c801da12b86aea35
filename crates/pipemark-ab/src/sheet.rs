//! Timed pipelines as a sheet.

use pipemark_model::{Estimate, Unit, digits};
use pipemark_show::{Cell, Column, Fit, Note, Sheet, Style, Table};
use pipemark_stats::compare::Comparison;
use pipemark_stats::verdict::Verdict;

use crate::turns::{AbResult, TimedPipeline};

const INTERVAL: &str = "95\u{a0}% interval";

/// A pipeline that was timed, or two that were run in turns.
pub fn in_turns(turns: &AbResult) -> Sheet {
    let sides: Vec<(&str, &TimedPipeline)> =
        ["A", "B"].into_iter().zip([&turns.a].into_iter().chain(&turns.b)).collect();
    let capacity = match sides.iter().any(|(_, side)| side.capacity_granted.is_some()) {
        true => Column::figures("capacity", "capacity"),
        false => Column::data("capacity"),
    };
    let granted = |side: &TimedPipeline| {
        side.capacity_granted.map_or_else(Cell::default, |bytes| Cell::of(Unit::Bytes.show(bytes as f64), bytes))
    };
    let ns = |ns: f64| Unit::Nanoseconds.show(ns);
    let median = |estimate: &Estimate| Cell::of(ns(estimate.median), estimate.median);
    let ends = |time: &Estimate| time.low.zip(time.high).map(|(low, high)| format!("{} – {}", ns(low), ns(high)));
    // What is said of both stands with the second.
    let compared = |name: &str| turns.comparison.as_ref().filter(|_| name == "B");
    let table = Table::of(&sides)
        .column(Column::words("side", ""), |(name, _)| Cell::text(*name))
        .column(Column::words("pipeline", "pipeline").fit(Fit::Wrapped), |(_, side)| Cell::text(&side.pipeline))
        .column(Column::figures("median_ns", "time"), |(_, side)| median(&side.time))
        .column(Column::figures("", INTERVAL), |(_, side)| Cell::shown(ends(&side.time).unwrap_or_default()))
        .column(Column::figures("user_ns", "user"), |(_, side)| median(&side.user))
        .column(Column::figures("system_ns", "system"), |(_, side)| median(&side.system))
        .column(Column::figures("runs", "runs"), |(_, side)| Cell::of(side.time.runs.to_string(), side.time.runs))
        .column(capacity, |(_, side)| granted(side))
        .data("low_ns", |(_, side)| side.time.low)
        .data("high_ns", |(_, side)| side.time.high)
        .data("change", |(name, _)| Some(compared(name)?.change))
        .data("change_low", |(name, _)| compared(name)?.low)
        .data("change_high", |(name, _)| compared(name)?.high)
        .data("verdict", |(name, _)| Some(compared(name)?.verdict.name()));
    let plain = |text: String| Note { style: Style::Plain, ..Note::plain(text) };
    let output = turns.output;
    let mut notes = vec![plain(match turns.same_output {
        None => format!("Each run wrote {output} bytes."),
        Some(true) => format!("Both wrote the same {output} bytes."),
        Some(false) => "The outputs differ: --ignore-output.".to_owned(),
    })];
    if let Some(comparison) = &turns.comparison {
        let seen = |by: f64| plain(format!("A change of {} % would have been seen.", digits(by * 100.0)));
        notes.extend(turns.resolution.map(seen));
        notes.extend(turns.why.as_ref().map(|why| Note::new("!", Style::Caution, why)));
        notes.extend(ratio_sentence(comparison).map(plain));
    }
    Sheet::of(table.grid(), notes)
}

/// Which of A and B ran how many times as fast, with its interval: the end of the output.
fn ratio_sentence(comparison: &Comparison) -> Option<String> {
    let (time, low, high) = (1.0 + comparison.change, 1.0 + comparison.low?, 1.0 + comparison.high?);
    Some(match comparison.verdict {
        Verdict::Better => {
            format!(
                "B ran {}× as fast as A ({} to {}): better",
                digits(1.0 / time),
                digits(1.0 / high),
                digits(1.0 / low)
            )
        }
        Verdict::Worse => {
            format!("A ran {}× as fast as B ({} to {}): B is worse", digits(time), digits(low), digits(high))
        }
        verdict => {
            let word = if verdict == Verdict::Same { "the same" } else { "can't tell" };
            format!("B takes {} times as long as A ({} to {}): {word}", digits(time), digits(low), digits(high))
        }
    })
}
