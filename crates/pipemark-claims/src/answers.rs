//! Compares a document's claims with the measurements, by direction and by size.
//!
//! A claim is a range. The claim holds if the measured interval lies within the range, and fails if the interval lies
//! outside. A claim of *no difference* is a range around zero: it holds only if both ends of the interval are inside
//! the range, so a wide interval decides nothing. Because every claim gets an answer, the share of wrong answers is
//! limited: of the trials that decide a claim, at most one in twenty is expected to decide wrongly (the false coverage
//! rate of Benjamini and Yekutieli, 2005).
//!
//! Each trial is compared with one that differs in what the claim is about and in nothing else. If a figure includes the
//! start of the processes, runs in which the start takes more than 5 % of the time don't answer the claim, whatever
//! their scale. Nor do runs of a few milliseconds, or fewer than five runs; a suite can ask for more, not for less.

use pipemark_model::{
    Answer, ByteSize, Claim, ClaimVerdict, Evidence, Figure, Key, MAX_SPAN, MAX_START, Record, Sample, Unit, Volume,
    Which, bytes_in_words, names, spans_too_much, three_digits,
};
use pipemark_stats::estimate::{self, MIN_RUNS, median};
use pipemark_stats::family::Family;
use pipemark_stats::records::{ratios, speeds_by_round};
use pipemark_stats::spread;

/// The figures that include process start. For chains, they are measured from the start of the first process to the end
/// of the last.
const INCLUDE_START: [&str; 7] =
    ["real_ns", "real_ns_per_gib", "per_hop", "user_time_ns", "system_time_ns", "system_percent", "cpus"];
/// Figures that don't depend on the duration of a run.
const EXACT: [&str; 2] = ["copies", "granted"];
/// The least duration of a run in nanoseconds. The ends begin within about 0.2 ms of each other, which is 2 % of such a
/// run.
const MIN_RUN: f64 = 10e6;
/// The least duration of a filter's run in nanoseconds. Its clock includes the start of the program, which takes about
/// 1 ms: 5 % of such a run.
const MIN_FILTER_RUN: f64 = 20e6;
/// The largest number of runs that is practical to suggest.
const MAX_RUNS: f64 = 1000.0;

/// Answers the claims. Claims that a demonstration has answered keep their answers.
pub fn answer_claims(mut claims: Vec<Claim>, records: &[Record]) -> Vec<Claim> {
    let speeds: Vec<_> = records
        .iter()
        .filter(|record| record.measured().is_some())
        .map(|record| speeds_by_round(&record.samples))
        .collect();
    let family = Family::of(&speeds);
    let covered: usize = claims.iter().map(|claim| covered_trials(claim, records).len()).sum();
    // If fewer trials decide a claim, each interval has to be wider. So the loop starts with all trials, and repeats
    // until the number of deciding trials no longer falls.
    let mut deciding = covered;
    loop {
        let family = family.with(covered as f64 / deciding.max(1) as f64);
        let answers: Vec<Answer> = claims.iter().map(|claim| answer(claim, records, family)).collect();
        let evidence = answers.iter().flat_map(|answer| &answer.evidence);
        let decided = evidence.filter(|one| one.verdict != ClaimVerdict::CantTell).count();
        if decided >= deciding || decided == 0 {
            claims.iter_mut().zip(answers).for_each(|(claim, answer)| claim.answer = Some(answer));
            return claims;
        }
        deciding = decided;
    }
}

/// The trials that a claim is about, each with the trial that it is compared with.
fn covered_trials<'a>(claim: &Claim, records: &'a [Record]) -> Vec<(&'a Record, Option<&'a Record>)> {
    if claim.open.is_some() || claim.shown_by.is_some() {
        return Vec::new();
    }
    let alone = !claim.is_compared() && !["gain", "ratio"].contains(&claim.figure.as_str());
    let covered = records.iter().filter(|record| claim.covers(&record.experiment, &record.job));
    covered
        .filter_map(|record| {
            let mut of_experiment = records.iter().filter(|other| other.experiment == record.experiment);
            let base = match claim.is_compared() {
                true => of_experiment.find(|other| claim.has_base(&record.job, &other.job)),
                false => {
                    of_experiment.find(|other| record.baseline.as_ref() == Some(&other.id) && other.id != record.id)
                }
            };
            (alone || base.is_some()).then_some((record, base.filter(|_| !alone)))
        })
        .collect()
}

fn answer(claim: &Claim, records: &[Record], family: Family) -> Answer {
    let not_measured = |here: String| Answer { verdict: ClaimVerdict::NotMeasured, here, evidence: Vec::new() };
    if let Some(reason) = &claim.open {
        return not_measured(reason.clone());
    }
    if claim.shown_by.is_some() {
        return claim.answer.clone().unwrap_or_else(|| not_measured("the demonstration did not run".to_owned()));
    }
    let covered = covered_trials(claim, records);
    let measured = |record: &Record| record.measured().is_some();
    let complete: Vec<&(&Record, Option<&Record>)> =
        covered.iter().filter(|one| measured(one.0) && one.1.is_none_or(measured)).collect();
    let short = complete
        .iter()
        .flat_map(|(record, base)| [Some(*record), *base])
        .flatten()
        .filter_map(|record| shortfall(claim, record));
    let short = short.reduce(|one, other| if other.factor > one.factor { other } else { one });
    let enough = |one: &&&(&Record, Option<&Record>)| {
        shortfall(claim, one.0).is_none() && one.1.is_none_or(|base| shortfall(claim, base).is_none())
    };
    let evidence: Vec<Evidence> =
        complete.iter().filter(enough).filter_map(|(record, base)| evidence(claim, record, *base, family)).collect();
    if evidence.is_empty() {
        let reasons = covered.iter().flat_map(|(record, base)| [Some(*record), *base]).flatten();
        let reason = reasons.filter(|record| !measured(record)).find_map(|record| record.reason.clone());
        let reason = short.map(|short| short.in_words()).or(reason);
        let unknown = if complete.is_empty() { "no run finished" } else { "this machine doesn't count the figure" };
        return not_measured(reason.unwrap_or_else(|| unknown.to_owned()));
    }
    let verdict = match claim.which {
        Which::Each if evidence.len() < covered.len() => match verdict_of_all(&evidence) {
            ClaimVerdict::Holds => ClaimVerdict::CantTell,
            other => other,
        },
        Which::Each => verdict_of_all(&evidence),
        which => match verdict(claim, extreme_ends(which, &evidence, covered.len())) {
            // A missing trial could have the highest or lowest figure.
            ClaimVerdict::CantTell if without_interval(&evidence, covered.len()) => ClaimVerdict::NotMeasured,
            verdict => verdict,
        },
    };
    let mut here = in_words(claim, &evidence, records);
    here.push_str(&volumes(&evidence, records));
    let missing = covered.len() - evidence.len();
    if missing > 0 {
        here.push_str(&format!("; {missing} of {} not measured", covered.len()));
    }
    if let Some(short) = short {
        let is_only_reason = missing == complete.len() - complete.iter().filter(enough).count();
        here.push_str(&format!("{} {}", if is_only_reason { ":" } else { ";" }, short.in_words()));
    }
    if verdict == ClaimVerdict::CantTell {
        here.extend(runs_to_decide(claim, &evidence, records).map(|words| format!("; {words}")));
    }
    Answer { verdict, here, evidence }
}

/// The reason why the runs of a trial are too short for a claim.
struct Shortfall {
    /// The volume of a run that would be enough, relative to the measured volume.
    factor: f64,
    measured: String,
    needs: String,
    /// The share of the time taken by process start, 0 to 1; `None` if the runs are too short for another reason.
    start: Option<f64>,
}

impl Shortfall {
    /// Compares numbers of bytes, or of nanoseconds if the volume of a run is a time.
    fn of(volume: Volume, (measured, needs): (f64, f64), start: Option<f64>) -> Shortfall {
        let [of_run, enough] = [measured, needs.ceil()].map(|amount| match volume {
            Volume::Total(_) => bytes_in_words(amount as u64),
            Volume::Time(_) => Unit::Nanoseconds.show(amount),
        });
        Shortfall { factor: needs / measured, measured: of_run, needs: enough, start }
    }

    fn in_words(&self) -> String {
        let start = self.start.map_or_else(String::new, |share| {
            format!(" (starting the processes took {} %)", three_digits(share * 100.0))
        });
        format!("runs of {} are too short{start}; {} are needed", self.measured, self.needs)
    }
}

/// The reason why a trial is too short to settle a claim; `None` if it isn't. pipemark's own source and sink and
/// entrants start the clock when all processes have started, so only figures of chains include the start of processes.
/// The clock of other runs includes at most the first wakeups, or the start of a filter's program; such runs must last
/// at least [`MIN_RUN`] or [`MIN_FILTER_RUN`].
fn shortfall(claim: &Claim, record: &Record) -> Option<Shortfall> {
    let middle = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        let figures: Option<Vec<f64>> = record.samples.iter().map(figure).collect();
        median(&figures?)
    };
    let volume = record.job.volume();
    let bytes = middle(&|sample| Some(sample.bytes as f64))?;
    let block = record.job.block().map_or(1, |block| block.0);
    let least = claim.least.max(claim.least_blocks.map(|blocks| blocks.saturating_mul(block)));
    if let Some(needs) = least.map(|least| least as f64).filter(|needs| bytes < *needs) {
        return Some(Shortfall::of(Volume::Total(ByteSize(bytes as u64)), (bytes, needs), None));
    }
    let inside = middle(&|sample| Some(sample.ns as f64))?;
    let includes_start = record.job.chain().is_some() && INCLUDE_START.contains(&claim.figure.as_str());
    if !includes_start {
        let least = if record.job.lines().is_some() { MIN_FILTER_RUN } else { MIN_RUN };
        let amount = if matches!(volume, Volume::Total(_)) { bytes } else { inside };
        let short = inside < least && !EXACT.contains(&claim.figure.as_str());
        return short.then(|| Shortfall::of(volume, (amount, amount * least / inside), None));
    }
    let start = middle(&|sample| Some(sample.real().saturating_sub(sample.ns) as f64))?;
    let share = start / (start + inside);
    // The start time doesn't depend on the volume, and the remaining time is proportional to it.
    let needs = bytes * (start / MAX_START - start) / inside;
    (share > MAX_START).then(|| Shortfall::of(volume, (bytes, needs), Some(share)))
}

/// The volumes of the runs that answer a claim, as text: `; 1.05 GB per run`, or `; 40.0 MB or 100 ms per run`.
fn volumes(evidence: &[Evidence], records: &[Record]) -> String {
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
fn runs_to_decide(claim: &Claim, evidence: &[Evidence], records: &[Record]) -> Option<String> {
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

/// The evidence of one trial; `None` if it lacks the figure.
fn evidence(claim: &Claim, record: &Record, base: Option<&Record>, family: Family) -> Option<Evidence> {
    let (estimate, together) = match claim.figure.as_str() {
        "spread" => {
            let base = base.map(|base| &base.samples);
            let spread =
                |confidence: f64| spread::estimate_spread(&record.samples, base.map(Vec::as_slice), confidence);
            let (alone, all) = (spread(0.95)?, spread(1.0 - 0.05 / family.comparisons())?);
            (alone, all.low.zip(all.high))
        }
        "copies" => {
            let copies = f64::from(record.copies?);
            (estimate::from_runs(&vec![copies; record.samples.len()])?, Some((copies, copies)))
        }
        word => {
            let times = claim.times.unwrap_or(1.0);
            let figure = Figure::iter().find(|figure| figure.column() == word);
            let of = |sample: &Sample| match figure {
                Some(figure) if word != "ratio" => figure.of_sample(sample),
                _ => Some(sample.speed()),
            };
            let figures: Vec<f64> = match base {
                Some(base) => ratios(&record.samples, &base.samples, of),
                None => record.samples.iter().filter_map(of).map(|figure| figure * times).collect(),
            };
            let ratio = estimate::from_runs(&figures)?;
            // A ratio that is equal in every run is exact.
            let counted = ratio.min == ratio.max;
            let together = if counted { Some((ratio.min, ratio.max)) } else { family.interval(&ratio) };
            (ratio, together)
        }
    };
    let runs = base.map_or(record.samples.len(), |base| base.samples.len().min(record.samples.len()));
    let together = together.filter(|_| runs >= MIN_RUNS);
    let shown = |figure: f64| if claim.figure == "gain" { (figure - 1.0) * 100.0 } else { figure };
    let ends = |(low, high): (f64, f64)| (shown(low), shown(high));
    let together = together.map(ends);
    Some(Evidence {
        experiment: record.experiment.clone(),
        trial: record.id.clone(),
        to: base.map(|base| base.id.clone()),
        figure: shown(estimate.median),
        interval: estimate.low.zip(estimate.high).map(ends),
        with_all_others: together,
        verdict: together.map_or(ClaimVerdict::CantTell, |ends| verdict(claim, ends)),
    })
}

/// The verdict of an interval on the claimed range.
fn verdict(claim: &Claim, (low, high): (f64, f64)) -> ClaimVerdict {
    let (from, to) = (claim.low.unwrap_or(f64::NEG_INFINITY), claim.high.unwrap_or(f64::INFINITY));
    let neutral = match claim.figure.as_str() {
        "gain" => Some(0.0),
        "ratio" => Some(1.0),
        _ => claim.is_compared().then_some(1.0),
    };
    let reversed = neutral.is_some_and(|none| from >= none && high < none || to <= none && low > none);
    match () {
        () if low >= from && high <= to => ClaimVerdict::Holds,
        () if reversed => ClaimVerdict::Reversed,
        () if high < from || low > to => ClaimVerdict::DoesntHold,
        () => ClaimVerdict::CantTell,
    }
}

/// The verdict if the claim must hold for all trials. One contradicting trial refutes the claim. If all decided trials
/// have the opposite direction, the claim is reversed.
fn verdict_of_all(evidence: &[Evidence]) -> ClaimVerdict {
    let count = |verdict: ClaimVerdict| evidence.iter().filter(|one| one.verdict == verdict).count();
    match (count(ClaimVerdict::Holds), count(ClaimVerdict::DoesntHold), count(ClaimVerdict::Reversed)) {
        (holds, 0, 0) if holds == evidence.len() => ClaimVerdict::Holds,
        (_, 0, 0) => ClaimVerdict::CantTell,
        (0, 0, _) => ClaimVerdict::Reversed,
        _ => ClaimVerdict::DoesntHold,
    }
}

/// The interval of the largest (or smallest) figure of all `covered` trials. The largest figure is at least the largest
/// lower end of the intervals, and at most the largest upper end. If a trial is missing or has no interval, one end is
/// infinite.
fn extreme_ends(which: Which, evidence: &[Evidence], covered: usize) -> (f64, f64) {
    let take = if which == Which::Most { f64::max } else { f64::min };
    let ends = evidence.iter().filter_map(|one| one.with_all_others);
    let (low, high) = ends
        .reduce(|one, other| (take(one.0, other.0), take(one.1, other.1)))
        .unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    match (without_interval(evidence, covered), which) {
        (true, Which::Most) => (low, f64::INFINITY),
        (true, _) => (f64::NEG_INFINITY, high),
        (false, _) => (low, high),
    }
}

/// Whether one of the `covered` trials is missing or has no interval.
fn without_interval(evidence: &[Evidence], covered: usize) -> bool {
    evidence.iter().filter(|one| one.with_all_others.is_some()).count() < covered
}

/// The evidence as text: `-10.0 % (64 KiB) to +30.0 % (4 KiB); holds for 3 of 10, reversed for 7`.
fn in_words(claim: &Claim, evidence: &[Evidence], records: &[Record]) -> String {
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

/// The evidence that decides an answer: a trial with the answer's verdict, the highest or the lowest figure.
pub fn decisive<'a>(claim: &Claim, answer: &'a Answer) -> Option<&'a Evidence> {
    let figure = |one: &&Evidence, other: &&Evidence| one.figure.total_cmp(&other.figure);
    match claim.which {
        Which::Most => answer.evidence.iter().max_by(figure),
        Which::Least => answer.evidence.iter().min_by(figure),
        Which::Each => {
            let as_answered = answer.evidence.iter().find(|one| one.verdict == answer.verdict);
            let contradicts = answer
                .evidence
                .iter()
                .find(|one| matches!(one.verdict, ClaimVerdict::DoesntHold | ClaimVerdict::Reversed))
                .filter(|_| answer.verdict == ClaimVerdict::DoesntHold);
            as_answered.or(contradicts).or(answer.evidence.first())
        }
    }
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

#[cfg(test)]
mod tests {
    use pipemark_model::{Settings, Status, Value};
    use pipemark_stats::fixture::records;
    use pipemark_stats::fixture::{STEADY, outcome};
    use pipemark_stats::noise::{ALL, Dice};

    use super::*;

    /// Trials at four block sizes on two cores, and on one core with `times` the speed of two.
    fn measured_records(times: [f64; 4], runs: &[f64]) -> Vec<Record> {
        let sizes = ["4k", "8k", "16k", "32k"].into_iter().zip(times);
        let pair = |(block, times): (&str, f64)| {
            let base = outcome("e", &[("block", block), ("place", "cross")], 1.0, runs);
            let mut compared = outcome("e", &[("block", block), ("place", "same")], times, runs);
            compared.trial.baseline = Some(base.trial.id.clone());
            [base, compared]
        };
        records(sizes.flat_map(pair).collect())
    }

    fn claim(figure: &str, low: Option<f64>, high: Option<f64>) -> Claim {
        let setting = |key: &str, text: &str| Settings::of([Value::parse(Key::named(key).unwrap(), text).unwrap()]);
        Claim {
            id: "c".to_owned(),
            experiments: vec!["e".to_owned()],
            figure: figure.to_owned(),
            of: vec![setting("place", "same")],
            to: (figure == "spread").then(|| setting("place", "cross")),
            low,
            high,
            ..Claim::default()
        }
    }

    fn answer(claim: &Claim, records: &[Record]) -> Answer {
        answer_claims(vec![claim.clone()], records).remove(0).answer.unwrap()
    }

    #[test]
    fn direction_and_size_are_judged() {
        let of =
            |low, high, times: [f64; 4]| answer(&claim("gain", low, high), &measured_records(times, &STEADY)).verdict;
        // The gain is about 2 %.
        assert_eq!(of(Some(1.0), Some(4.0), [1.02; 4]), ClaimVerdict::Holds);
        assert_eq!(of(Some(1.0), Some(4.0), [2.35; 4]), ClaimVerdict::DoesntHold, "the right way, and far too much");
        assert_eq!(of(Some(1.0), Some(4.0), [0.8; 4]), ClaimVerdict::Reversed);
        assert_eq!(of(Some(1.0), Some(4.0), [0.8, 1.02, 1.02, 1.02]), ClaimVerdict::DoesntHold, "it isn't so for all");
        assert_eq!(of(Some(-3.0), Some(3.0), [1.2; 4]), ClaimVerdict::DoesntHold, "no difference has no other way");
        assert_eq!(of(None, Some(0.0), [1.2; 4]), ClaimVerdict::Reversed);
    }

    #[test]
    fn no_difference_needs_both_ends_within_the_range() {
        let same = claim("gain", Some(-3.0), Some(3.0));
        assert_eq!(answer(&same, &measured_records([1.01, 0.99, 1.0, 1.0], &STEADY)).verdict, ClaimVerdict::Holds);
        let mut wide = measured_records([1.0; 4], &STEADY);
        for (run, sample) in wide[1].samples.iter_mut().enumerate() {
            sample.ns = (sample.ns as f64 * [0.76, 1.02, 0.9, 1.24, 1.0, 1.1, 0.85][run]) as u64;
        }
        let answer = answer(&same, &wide);
        assert_eq!(answer.verdict, ClaimVerdict::CantTell, "{answer:?}");
    }

    #[test]
    fn trials_that_differ_only_in_volume_are_named_by_it() {
        let pair = |total: &str| {
            let base = outcome("e", &[("total", total), ("place", "cross")], 1.0, &STEADY);
            let mut compared = outcome("e", &[("total", total), ("place", "same")], 1.2, &STEADY);
            compared.trial.baseline = Some(base.trial.id.clone());
            [base, compared]
        };
        let records = records(["64k", "640k"].into_iter().flat_map(pair).collect());
        let here = answer(&claim("gain", Some(5.0), None), &records).here;
        assert!(here.contains("64") && !here.contains("()"), "{here}");
    }

    #[test]
    fn a_claim_may_concern_the_maximum_or_minimum() {
        let records = measured_records([0.9, 1.3, 2.0, 1.1], &STEADY);
        let most = Claim { which: Which::Most, ..claim("ratio", Some(1.5), Some(3.0)) };
        let answer = |claim: &Claim| super::tests::answer(claim, &records);
        assert_eq!(answer(&most).verdict, ClaimVerdict::Holds);
        assert!(answer(&most).here.starts_with("highest 2.00× (2.00× to 2.00×, 16 KiB"), "{}", answer(&most).here);
        let least = Claim { which: Which::Least, ..most };
        assert_eq!(answer(&least).verdict, ClaimVerdict::Reversed);
        let each = answer(&claim("gain", Some(5.0), None));
        assert_eq!(each.verdict, ClaimVerdict::DoesntHold);
        assert_eq!(
            each.here,
            "-10.0 % (4 KiB blocks) to +100 % (16 KiB blocks); holds for 3 of 4, opposite for 1; 250 ms per run"
        );
    }

    #[test]
    fn constant_figures_are_known_exactly() {
        let mut records = measured_records([1.0, 1.2, 0.9, 1.0], &STEADY);
        let none = claim("interleaved_percent", Some(0.0), Some(0.0));
        for sample in records.iter_mut().flat_map(|record| &mut record.samples) {
            sample.interleaved_percent = Some(0.0);
        }
        assert_eq!(answer(&none, &records).verdict, ClaimVerdict::Holds);
        records[1].samples[0].interleaved_percent = Some(0.1);
        assert_ne!(answer(&none, &records).verdict, ClaimVerdict::Holds, "one record was cut");
    }

    #[test]
    fn unmeasured_trials_are_no_evidence() {
        let mut records = measured_records([1.3; 4], &STEADY);
        let claim = claim("ratio", Some(1.0), None);
        records[1].status = Status::Skipped;
        let some = answer(&claim, &records);
        assert_eq!((some.verdict, some.evidence.len()), (ClaimVerdict::CantTell, 3));
        assert!(some.here.ends_with("; 1 of 4 not measured"), "{}", some.here);
        for record in &mut records {
            (record.status, record.reason) = (Status::Skipped, Some("one CPU only".to_owned()));
        }
        let none = answer(&claim, &records);
        assert_eq!((none.verdict, none.here.as_str()), (ClaimVerdict::NotMeasured, "one CPU only"));
        let few = answer(&claim, &measured_records([9.0; 4], &STEADY[..4]));
        assert_eq!(few.verdict, ClaimVerdict::CantTell, "too few runs for an interval");
        assert!(few.here.ends_with("about 5 runs are needed (4 were done)"), "{}", few.here);
        let open = Claim { open: Some("another system is needed".to_owned()), ..claim };
        assert_eq!(answer(&open, &records).here, "another system is needed");
    }

    #[test]
    fn programs_of_the_user_answer_no_claim() {
        let own =
            [("language", "mine"), ("program", "idiomatic"), ("place", "free"), ("verify", "none"), ("block", "4k")];
        let own = outcome("e", &[&own[..], &[("total", "1g")]].concat(), 1.0, &STEADY);
        let steady = Claim { of: Vec::new(), to: None, ..claim("spread", None, Some(11.0)) };
        let all = |with: Vec<Record>| answer(&steady, &[measured_records([1.0; 4], &STEADY), with].concat());
        let ours = all(Vec::new()).evidence.len();
        assert_eq!(all(records(vec![own.clone()])).evidence.len(), ours);
        let language = Settings::of([Value::parse(Key::named("language").unwrap(), "mine").unwrap()]);
        let named = Claim { of: vec![language], ..steady };
        assert_eq!(answer(&named, &records(vec![own])).evidence.len(), 1, "a claim about a language names it");
    }

    #[test]
    fn a_missing_trial_could_be_the_extreme() {
        let mut records = measured_records([0.9, 1.3, 2.0, 1.1], &STEADY);
        let most = Claim { which: Which::Most, ..claim("ratio", Some(1.5), Some(3.0)) };
        assert_eq!(answer(&most, &records).verdict, ClaimVerdict::Holds);
        records[1].status = Status::Skipped;
        let found = answer(&most, &records);
        assert_eq!(found.verdict, ClaimVerdict::NotMeasured);
        assert!(found.here.contains("1 of 4 not measured"), "{}", found.here);
        // Whatever the missing trial's figure is, the highest one is above 1.5, and below 1.5 for no trial.
        let with = |low, high| answer(&Claim { low, high, ..most.clone() }, &records).verdict;
        assert_eq!(with(None, Some(1.5)), ClaimVerdict::DoesntHold);
        assert_eq!(with(Some(1.5), None), ClaimVerdict::Holds);
        assert_eq!(with(Some(2.5), None), ClaimVerdict::NotMeasured);
        let least = |low, high| answer(&Claim { which: Which::Least, low, high, ..most.clone() }, &records).verdict;
        assert_eq!(least(Some(1.2), None), ClaimVerdict::DoesntHold, "1.1 was measured");
        assert_eq!(least(Some(0.5), None), ClaimVerdict::NotMeasured);
    }

    #[test]
    fn fewer_than_five_runs_give_no_verdict_on_any_figure() {
        let noisy = [1.0, 1.3, 0.8, 1.2];
        for figure in ["ratio", "spread", "copies", "throughput", "granted"] {
            let claim = Claim { to: None, of: Vec::new(), ..claim(figure, Some(1e-9), Some(1e18)) };
            let of = |runs: &[f64]| answer(&claim, &with_exact_figures(runs)).verdict;
            assert_ne!(of(&noisy), ClaimVerdict::Holds, "{figure}");
            let enough = [1.0, 1.3, 0.8, 1.2, 1.1];
            assert_eq!(of(&enough), ClaimVerdict::Holds, "{figure}");
        }
    }

    /// Records whose copies and capacity are known.
    fn with_exact_figures(runs: &[f64]) -> Vec<Record> {
        let mut records = measured_records([1.0; 4], runs);
        for record in &mut records {
            record.copies = Some(2);
            record.samples.iter_mut().for_each(|sample| sample.capacity_granted = Some(65536));
        }
        records
    }

    #[test]
    fn runs_under_ten_milliseconds_answer_nothing() {
        let mut records = measured_records([1.3; 4], &STEADY);
        let claim = claim("ratio", Some(1.2), None);
        assert_eq!(answer(&claim, &records).verdict, ClaimVerdict::Holds);
        for sample in &mut records[1].samples {
            (sample.ns, sample.bytes) = (9_000_000, 9_000_000);
        }
        let found = answer(&claim, &records);
        assert_eq!((found.verdict, found.evidence.len()), (ClaimVerdict::CantTell, 3));
        assert!(found.here.contains("1 of 4 not measured: runs of 9.00 ms are too short"), "{}", found.here);
    }

    #[test]
    fn each_trial_may_have_its_own_base() {
        let records = measured_records([1.5; 4], &STEADY);
        let setting = |block: &str, place: &str| {
            let value = |key: &str, text: &str| Value::parse(Key::named(key).unwrap(), text).unwrap();
            Settings::of([value("block", block), value("place", place)])
        };
        let pairs = Claim {
            of: vec![setting("4k", "same"), setting("8k", "same")],
            to_each: vec![setting("4k", "cross"), setting("8k", "cross")],
            ..claim("ratio", Some(1.2), Some(2.0))
        };
        let answer = answer(&pairs, &records);
        assert_eq!((answer.verdict, answer.evidence.len()), (ClaimVerdict::Holds, 2), "{answer:?}");
        assert!(answer.evidence.iter().all(|one| one.to.as_ref().is_some_and(|to| to.contains("cross"))), "{answer:?}");
    }

    #[test]
    fn an_interval_that_says_nothing_is_not_printed() {
        let mut records = measured_records([1.0; 4], &STEADY);
        for (run, sample) in records[1].samples.iter_mut().enumerate() {
            sample.ns *= [1, 400, 1, 400, 1, 400, 1][run];
        }
        let one = Claim {
            of: vec![Settings::of([Value::parse(Key::Block, "4k").unwrap()])],
            ..claim("ratio", Some(1.0), None)
        };
        let here = answer(&one, &records).here;
        assert!(here.contains("the interval spans more than a factor of 100"), "{here}");
    }

    /// A chain of 16 stages that takes `start` ms to start and passes on `total` bytes at 1 GiB/s.
    fn chain(total: &str, start: u64) -> Record {
        let mut chain =
            outcome("e", &[("stage", "cat"), ("length", "16"), ("total", total), ("place", "free")], 1.0, &STEADY);
        let Volume::Total(total) = chain.trial.job.volume() else { unreachable!() };
        for sample in &mut chain.samples {
            (sample.bytes, sample.ns) = (total.0, sample.ns * total.0 / (1 << 30));
            sample.wall_ns = sample.ns + start * 1_000_000;
            sample.stages = vec![pipemark_model::StageStats::default(); 16];
        }
        records(vec![chain]).remove(0)
    }

    #[test]
    fn a_run_that_is_mostly_startup_answers_no_claim() {
        let rate = Claim { of: Vec::new(), ..claim("per_hop", Some(1e9), None) };
        let of = |total: &str, claim: &Claim| answer(claim, &[chain(total, 20)]);
        let whole = of("1g", &rate);
        assert_eq!(whole.verdict, ClaimVerdict::Holds);
        assert!(whole.here.ends_with("; 1 GiB per run"), "{}", whole.here);
        let little = of("832k", &rate);
        assert_eq!((little.verdict, little.evidence.len()), (ClaimVerdict::NotMeasured, 0));
        assert_eq!(
            little.here,
            "runs of 832 KiB are too short (starting the processes took 96.2 %); 408 MB are needed"
        );
        // This volume answers the claim, and a slightly smaller one doesn't, whatever the scale.
        assert_eq!(of("410m", &rate).verdict, ClaimVerdict::Holds);
        assert_eq!(of("380m", &rate).verdict, ClaimVerdict::NotMeasured);
        let own = Claim { least: Some(1 << 20), ..rate };
        assert_eq!(of("832k", &own).here, "runs of 832 KiB are too short; 1 MiB are needed");
        assert_eq!(of("2m", &own).verdict, ClaimVerdict::NotMeasured, "a suite can't accept shorter runs");
        assert_eq!(of("410m", &Claim { least: Some(1 << 30), ..own }).verdict, ClaimVerdict::NotMeasured);
    }

    #[test]
    fn an_open_claim_names_what_would_decide_it() {
        let noisy = [1.0, 1.3, 0.8, 1.2, 0.9, 1.1, 0.7];
        let mut records = measured_records([1.3; 4], &STEADY);
        for (run, sample) in records[1].samples.iter_mut().enumerate() {
            sample.ns = (sample.ns as f64 * noisy[run]) as u64;
        }
        let open = answer(&claim("ratio", Some(1.2), None), &records);
        assert_eq!(open.verdict, ClaimVerdict::CantTell, "{open:?}");
        assert!(
            open.here.contains("; about ") && open.here.ends_with("runs are needed (7 were done)"),
            "{}",
            open.here
        );
    }

    #[test]
    fn copies_are_known_and_calls_are_counted() {
        let mut records = measured_records([1.0; 4], &STEADY);
        records
            .iter_mut()
            .flat_map(|record| &mut record.samples)
            .for_each(|sample| sample.sources[0].user_ns = 1_000_000);
        let two = claim("copies", Some(2.0), Some(2.0));
        let answered = answer(&two, &records);
        assert_eq!(answered.verdict, ClaimVerdict::Holds);
        assert!(answered.here.contains("2 copies"), "{}", answered.here);
        assert_eq!(answer(&claim("copies", Some(1.0), Some(1.0)), &records).verdict, ClaimVerdict::DoesntHold);
        let calls = Claim { times: Some(1000.0), ..claim("call_ns", None, None) };
        let [one, all] =
            [Claim { times: None, ..calls.clone() }, calls].map(|claim| answer(&claim, &records).evidence[0].figure);
        assert!((all / one / 1000.0 - 1.0).abs() < 1e-9, "{one} {all}");
    }

    #[test]
    fn scatter_is_compared_with_scatter() {
        let runs = |far: f64| -> Vec<f64> { (0..20).map(|run| [1.0, far, 1.0 / far][run % 3]).collect() };
        let base = outcome("e", &[("place", "cross")], 1.0, &runs(1.01));
        let wild = outcome("e", &[("place", "same")], 1.0, &runs(1.3));
        let records = records(vec![base, wild]);
        assert_eq!(answer(&claim("spread", Some(1.0), None), &records).verdict, ClaimVerdict::Holds);
        assert_eq!(answer(&claim("spread", None, Some(1.0)), &records).verdict, ClaimVerdict::Reversed);
        let alone = Claim { to: None, ..claim("spread", None, Some(11.0)) };
        assert_eq!(answer(&alone, &records).verdict, ClaimVerdict::DoesntHold);
    }

    #[test]
    fn a_few_deciding_trials_among_many_need_wider_intervals() {
        let mut records = measured_records([1.0; 4], &STEADY);
        for record in records.iter_mut().skip(1).step_by(2) {
            for (sample, factor) in record.samples.iter_mut().zip([0.96, 1.02, 0.98, 1.04, 1.0, 1.01, 0.99]) {
                sample.ns = (sample.ns as f64 * factor) as u64;
            }
        }
        let width = |open: usize| {
            // Exact ratios decide the first claim. The other claims stay inconclusive, because their ranges are
            // narrower than the noise.
            let mut claims = vec![claim("ratio", Some(0.1), None)];
            claims.extend(vec![claim("gain", Some(-0.1), Some(0.1)); open]);
            let answers = answer_claims(claims, &records);
            assert_eq!(answers[0].answer.as_ref().unwrap().verdict, ClaimVerdict::Holds);
            let (low, high) = answers[0].answer.as_ref().unwrap().evidence[0].with_all_others.unwrap();
            high - low
        };
        assert!(width(20) > 1.2 * width(0), "{} {}", width(20), width(0));
    }

    #[test]
    fn equal_trials_rarely_get_wrong_answers() {
        for noise in ALL {
            let mut dice = Dice::new(2005);
            let wrong = (0..200).filter(|_| {
                let pairs = ["4k", "8k", "16k", "32k"].into_iter().flat_map(|block| {
                    let [base, mut own] = ["cross", "same"]
                        .map(|place| outcome("e", &[("block", block), ("place", place)], 0.01, &dice.runs(noise, 7)));
                    own.trial.baseline = Some(base.trial.id.clone());
                    [base, own]
                });
                answer(&claim("ratio", Some(1.0), None), &records(pairs.collect())).verdict != ClaimVerdict::CantTell
            });
            let wrong = wrong.count();
            // An answer is wrong with a probability of at most 5 %. So the probability of more than 18 wrong answers of
            // 200 is below 1 %.
            assert!(wrong <= 18, "{noise:?}: {wrong} of 200");
        }
    }
}
