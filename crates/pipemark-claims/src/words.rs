//! Claims and their answers in words.

use pipemark_model::{
    Claim, ClaimVerdict, Evidence, Figure, Key, MAX_SPAN, Record, Unit, Volume, Which, names, spans_too_much,
    three_digits,
};
use pipemark_stats::estimate::MIN_RUNS;

use crate::evidence::extreme_ends;

/// The largest number of runs that is practical to suggest.
const MAX_RUNS: f64 = 1000.0;

/// The evidence as text: `-10.0 % (64 KiB) to +30.0 % (4 KiB); holds for 3 of 10, reversed for 7`.
pub fn in_words(claim: &Claim, evidence: &[Evidence], records: &[Record]) -> String {
    let record =
        |one: &Evidence| records.iter().find(|record| record.experiment == one.experiment && record.id == one.trial);
    let several_experiments = evidence.iter().any(|one| one.experiment != evidence[0].experiment);
    // Each trial is named within its experiment, because other experiments vary other parameters.
    let name = |one: &Evidence| {
        let alike: Vec<_> = evidence.iter().filter(|other| other.experiment == one.experiment).collect();
        let jobs: Vec<_> = alike.iter().filter_map(|other| record(other)).map(|record| &record.job).collect();
        let at = alike.iter().position(|other| std::ptr::eq(*other, one)).unwrap_or_default();
        let setting = if alike.len() > 1 {
            let mut settings = names(&jobs, &[Key::Total, Key::Time]);
            // The answer ends with the volumes, so they are part of the name only if nothing else distinguishes the
            // trials.
            if settings.iter().all(String::is_empty) {
                settings = names(&jobs, &[]);
            }
            settings.swap_remove(at)
        } else {
            String::new()
        };
        match (several_experiments, setting.is_empty()) {
            (true, true) => one.experiment.clone(),
            (true, false) => format!("{}: {setting}", one.experiment),
            (false, _) => setting,
        }
    };
    let names: Vec<String> = evidence.iter().map(name).collect();
    let by = |one: &usize, other: &usize| evidence[*one].figure.total_cmp(&evidence[*other].figure);
    let least = (0..evidence.len()).min_by(by).unwrap_or(0);
    let most = (0..evidence.len()).max_by(by).unwrap_or(0);
    // The interval shown is the one that the verdict is based on.
    let with_interval = |at: usize| {
        let few = format!("too few runs for an interval: {MIN_RUNS} are needed");
        let ends = match claim.which {
            Which::Each => evidence[at].with_all_others,
            which => Some(extreme_ends(which, evidence, evidence.len())),
        };
        let interval = match ends {
            Some((low, high)) if low == high => None,
            Some((low, high)) if !(low.is_finite() && high.is_finite()) => Some(few),
            Some(ends) if is_too_wide(claim, ends) => {
                Some(format!("the interval spans more than a factor of {MAX_SPAN}"))
            }
            Some((low, high)) => {
                let [low, high] = [low, high].map(|end| if is_share(claim) { end.clamp(0.0, 100.0) } else { end });
                Some(format!("{} to {}", show(claim, low), show(claim, high)))
            }
            None => Some(few),
        };
        let name = names.get(at).filter(|_| evidence.len() > 1).cloned();
        let about = [interval, name].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let figure = show(claim, evidence[at].figure);
        if about.is_empty() { figure } else { format!("{figure} ({about})") }
    };
    match claim.which {
        _ if claim.figure == "copies" && least != most => {
            format!("{} to {}", with_interval(least), with_interval(most))
        }
        Which::Most => format!("highest {}", with_interval(most)),
        Which::Least => format!("lowest {}", with_interval(least)),
        Which::Each if evidence.len() == 1 => with_interval(0),
        Which::Each => {
            let end = |at: usize| format!("{} ({})", show(claim, evidence[at].figure), names[at]);
            let count = |verdict: ClaimVerdict| {
                let words = if verdict == ClaimVerdict::Reversed { "opposite" } else { verdict.in_words() };
                (evidence.iter().filter(|one| one.verdict == verdict).count(), words)
            };
            let counts =
                [ClaimVerdict::Holds, ClaimVerdict::DoesntHold, ClaimVerdict::Reversed, ClaimVerdict::CantTell]
                    .map(count);
            let counts = counts.into_iter().filter(|(count, _)| *count > 0);
            let mut counts: Vec<String> = counts.map(|(count, word)| format!("{word} for {count}")).collect();
            counts[0] += &format!(" of {}", evidence.len());
            format!("{} to {}; {}", end(least), end(most), counts.join(", "))
        }
    }
}

/// Whether an interval is too wide to be printed.
fn is_too_wide(claim: &Claim, (low, high): (f64, f64)) -> bool {
    let ratio = |figure: f64| if claim.figure == "gain" { 1.0 + figure / 100.0 } else { figure };
    !is_share(claim) && spans_too_much(ratio(low), ratio(high))
}

/// The figure of one trial in words.
pub fn figure_in_words(claim: &Claim, evidence: &Evidence) -> String {
    show(claim, evidence.figure)
}

/// Whether the claim's figure is a share, 0 to 100 %. A ratio of two shares isn't.
fn is_share(claim: &Claim) -> bool {
    let known = Figure::iter().find(|known| known.column() == claim.figure);
    !claim.is_compared() && known.is_some_and(|known| known.unit() == Unit::Percent)
}

/// A claim's figure as text with its unit.
fn show(claim: &Claim, figure: f64) -> String {
    let known = Figure::iter().find(|known| known.column() == claim.figure);
    match known {
        _ if claim.figure == "gain" && figure == 0.0 => "0 %".to_owned(),
        _ if claim.figure == "gain" => {
            format!("{}{} %", if figure < 0.0 { "-" } else { "+" }, three_digits(figure.abs()))
        }
        Some(known) if !claim.is_compared() && claim.figure != "ratio" => known.unit().show(figure),
        None if claim.figure == "copies" && figure == 1.0 => "1 copy".to_owned(),
        None if claim.figure == "copies" => format!("{figure:.0} copies"),
        None if claim.figure == "spread" && !claim.is_compared() => format!("±{} %", three_digits(figure)),
        _ => format!("{}×", three_digits(figure)),
    }
}

/// The range in which a claim holds, as text.
pub fn range(claim: &Claim) -> String {
    match (claim.low, claim.high) {
        (None, Some(0.0)) if claim.figure == "throughput" => "no bytes are moved".to_owned(),
        (Some(low), None) if low > 0.0 && show(claim, low) == "<.1 %" => "more than 0 %".to_owned(),
        (Some(low), Some(high)) if low == high => show(claim, low),
        (Some(low), Some(high)) => format!("{} to {}", show(claim, low), show(claim, high)),
        (Some(low), None) => format!("at least {}", show(claim, low)),
        (None, Some(high)) => format!("at most {}", show(claim, high)),
        (None, None) => String::new(),
    }
}

/// The volumes of the runs that answer a claim, as text: `; 1.05 GB per run`, or `; 40.0 MB or 100 ms per run`.
pub fn volumes(evidence: &[Evidence], records: &[Record]) -> String {
    let of = |one: &Evidence| {
        let is_one = |record: &&Record| {
            record.experiment == one.experiment && (record.id == one.trial || one.to.as_ref() == Some(&record.id))
        };
        records.iter().filter(is_one).map(|record| record.job.volume()).collect::<Vec<_>>()
    };
    let mut volumes: Vec<Volume> = evidence.iter().flat_map(of).collect();
    volumes.sort();
    let (totals, times): (Vec<Volume>, Vec<Volume>) =
        volumes.into_iter().partition(|volume| matches!(volume, Volume::Total(_)));
    let range = |volumes: &[Volume]| match (volumes.first(), volumes.last()) {
        (Some(least), Some(most)) if least.is_equivalent(*most) => Some(least.to_string()),
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        _ => None,
    };
    let ranges: Vec<String> = [range(&totals), range(&times)].into_iter().flatten().collect();
    if ranges.is_empty() { String::new() } else { format!("; {} per run", ranges.join(" or ")) }
}

/// A text that says how many runs an inconclusive claim needs; `None` if that is unknown.
pub fn runs_to_decide(claim: &Claim, evidence: &[Evidence], records: &[Record]) -> Option<String> {
    let runs = |one: &Evidence| {
        let record = records.iter().find(|record| record.experiment == one.experiment && record.id == one.trial)?;
        let made = record.samples.len() as f64;
        let Some((low, high)) = one.with_all_others else { return Some((MIN_RUNS as f64, made)) };
        let bounds = [claim.low, claim.high].into_iter().flatten();
        let distance = bounds.map(|bound| (one.figure - bound).abs()).fold(f64::INFINITY, f64::min);
        // An interval narrows with the square root of the runs.
        Some((made * ((high - low) / 2.0 / distance).powi(2), made))
    };
    let open = evidence.iter().filter(|one| one.verdict == ClaimVerdict::CantTell).filter_map(runs);
    let (needed, made) = open.reduce(|one, other| if other.0 > one.0 { other } else { one })?;
    let done = match made {
        1.0 => "1 was done".to_owned(),
        made => format!("{made:.0} were done"),
    };
    Some(match needed.max(MIN_RUNS as f64) {
        // Intervals aren't symmetric, so the estimate may be too small.
        few if few <= made => format!("a few more runs are needed ({done})"),
        few if few < MAX_RUNS => format!("about {} runs are needed ({done})", round_up(few)),
        _ => format!("more than 1,000 runs are needed ({done})"),
    })
}

/// Rounds up to two digits.
fn round_up(runs: f64) -> u64 {
    let unit = if runs > 100.0 { 10.0 } else { 1.0 };
    ((runs / unit).ceil() * unit) as u64
}
