//! Filters of lines: what batching alone brings, what a second core brings, what a scheduler and queues cost, how much of
//! the cost is the line's, and how much of the published order of the programs is found again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::contrast::Contrast;
use super::words::{figures, interval, rate, times};
use super::{Found, Subject, fastest};
use crate::entrant::{Does, FILTERS, FindingForm, does};
use crate::model::{Feed, Figure, Filter, Lines, Published, three_digits};

/// Bytes of the lines that yes writes.
const LENGTHS: [(Feed, f64); 2] = [(Feed::YesShort, 8.0), (Feed::YesLong, 285.0)];
const GIB: f64 = (1u64 << 30) as f64;

/// The filters that were fed in one way.
type Fed<'a> = BTreeMap<&'a Filter, Subject<'a>>;

/// What is to be said of filters.
pub(super) fn of_lines(subjects: &[Subject]) -> Vec<Vec<Found>> {
    let mut feeds: BTreeMap<Feed, Fed> = BTreeMap::new();
    for subject in subjects {
        if let Some(Lines { feed, filter, .. }) = subject.job.lines() {
            feeds.entry(*feed).or_default().insert(filter, *subject);
        }
    }
    let each = |rule: &dyn Fn(Feed, &Fed) -> Option<Found>| {
        feeds.iter().filter_map(|(feed, fed)| rule(*feed, fed)).collect::<Vec<_>>()
    };
    let compared = FILTERS.iter().filter_map(|(filter, form)| Some((filter, form.finding.as_ref()?)));
    let steps = compared.map(|(filter, finding)| each(&|feed, fed| step(filter, finding, feed, fed)));
    [per_line(&feeds).into_iter().collect()]
        .into_iter()
        .chain(steps)
        .chain([each(&top_line), each(&published)])
        .collect()
}

/// CPU seconds per GiB of the filter alone.
fn own_cpu(subject: &Subject) -> Option<f64> {
    subject.estimates.get(Figure::FilterCpu).map(|seconds| seconds.median)
}

/// Context switches of the pipeline for each MiB that went in.
fn switches(subject: &Subject) -> Option<f64> {
    let samples = &subject.record.samples;
    let bytes = samples.iter().map(|sample| sample.bytes as f64).sum::<f64>() / samples.len() as f64;
    subject.estimates.get(Figure::ContextSwitches).map(|switches| switches.median / (bytes / (1 << 20) as f64))
}

/// Two filters of one feed, the second against the first: in what words, and how.
struct Step<'a> {
    base: Subject<'a>,
    new: Subject<'a>,
    contrast: Contrast,
}

impl<'a> Step<'a> {
    fn of(fed: &Fed<'a>, base: &Filter, new: &Filter) -> Option<Step<'a>> {
        let (base, new) = (*fed.get(base)?, *fed.get(new)?);
        Some(Step { base, new, contrast: Contrast::throughput(base, new)? })
    }

    /// `9.51 times (9.4 to 9.6) the throughput of std-baseline`, or that no difference is shown.
    fn throughput(&self) -> String {
        let base = name(&self.base);
        match self.contrast.low <= 1.0 && self.contrast.high >= 1.0 {
            true => format!("the throughput of {base}, as far as can be told {}", interval(&self.contrast)),
            false => format!("{} {} the throughput of {base}", times(self.contrast.ratio), interval(&self.contrast)),
        }
    }

    /// `with 0.07 s of its own CPU time per GiB instead of 1.12 s and 0.1 context switches per MiB instead of 31`.
    fn cost(&self) -> Option<String> {
        Some(format!(
            "with {} s of its own CPU time per GiB instead of {} s, and {} context switches per MiB instead of {}",
            three_digits(own_cpu(&self.new)?),
            three_digits(own_cpu(&self.base)?),
            three_digits(switches(&self.new)?),
            three_digits(switches(&self.base)?),
        ))
    }

    fn found(&self, rule: &str, text: String) -> Found {
        let mut evidence = json!({
            "base": figures(self.base), "new": figures(self.new), "ratio": self.contrast.ratio,
            "low": self.contrast.low, "high": self.contrast.high,
        });
        for (side, subject) in [("base", &self.base), ("new", &self.new)] {
            evidence[side]["filter_cpu_seconds_per_gib"] = own_cpu(subject).map_or(Value::Null, Value::from);
            evidence[side]["context_switches_per_mib"] = switches(subject).map_or(Value::Null, Value::from);
        }
        Found::new(rule, self.contrast.effect(), text, evidence)
    }
}

fn name(subject: &Subject) -> String {
    subject.job.lines().map_or_else(String::new, |lines| lines.filter.to_string())
}

/// What feeds it, in words.
fn fed_by(feed: Feed) -> &'static str {
    match feed {
        Feed::YesShort => "fed by yes with lines of 8 bytes",
        Feed::YesLong => "fed by yes with lines of 285 bytes",
        Feed::File => "from a file in memory",
        Feed::Zcat => "fed by zcat",
    }
}

/// A filter against the one that its form says to compare it with.
fn step(filter: &Filter, finding: &FindingForm, feed: Feed, fed: &Fed) -> Option<Found> {
    let step = Step::of(fed, &finding.to, filter)?;
    let figures = format!("{}, {}", step.throughput(), step.cost()?);
    let text = finding.says.replace("{feed}", fed_by(feed)).replace("{figures}", &figures);
    Some(step.found(&finding.rule, text))
}

/// The document's conjecture in figures: CPU time of std-baseline is so much for each line and so much for each byte.
fn per_line(feeds: &BTreeMap<Feed, Fed>) -> Option<Found> {
    let split = |name: &str| {
        let filter: Filter = name.parse().ok()?;
        let mut ns_per_byte = LENGTHS.iter().map(|(feed, length)| {
            let ns_per_gib = own_cpu(feeds.get(feed)?.get(&filter)?)? * 1e9;
            Some((ns_per_gib / GIB, *length))
        });
        let ((short, few), (long, many)) = (ns_per_byte.next()??, ns_per_byte.next()??);
        // short = line / few + byte, long = line / many + byte.
        let line = (short - long) / (1.0 / few - 1.0 / many);
        let byte = long - line / many;
        (line > 0.0).then_some((line, byte.max(0.0)))
    };
    let (line, byte) = split("std-baseline")?;
    let share = |length: f64| line / (line + byte * length) * 100.0;
    let ours = split("lines-1").map(|(line, byte)| {
        format!("; lines-1 spends {} ns on a line and {} ns on a KiB", three_digits(line), three_digits(byte * 1024.0))
    });
    let text = format!(
        "The conjecture that the cost per line dominates: std-baseline spends {} ns of its CPU time on each line and {} ns on each KiB, so that the line is {:.0} % of the cost with 8 bytes, and {:.0} % with 285{}.",
        three_digits(line),
        three_digits(byte * 1024.0),
        share(8.0),
        share(285.0),
        ours.unwrap_or_default(),
    );
    let evidence = json!({
        "std_baseline": { "ns_per_line": line, "ns_per_byte": byte },
        "lines_1": split("lines-1").map(|(line, byte)| json!({ "ns_per_line": line, "ns_per_byte": byte })),
    });
    Some(Found::new("lines-conjecture", 1.0, text, evidence))
}

fn top_line(feed: Feed, fed: &Fed) -> Option<Found> {
    let top = fed.iter().find(|(filter, _)| does(filter) == Does::Count).map(|(_, subject)| subject)?;
    let filters = || fed.iter().filter(|(filter, _)| does(filter) == Does::Transform).map(|(_, subject)| *subject);
    let best = fastest(filters())?;
    let slowest = filters().min_by(|one, other| one.throughput().total_cmp(&other.throughput()))?;
    let share = Contrast::throughput(*top, best)?;
    if slowest.record.id == best.record.id {
        return None;
    }
    let text = format!(
        "Of the top line {}, {}, the fastest filter, {}, has {:.0} % ({:.0} to {:.0}), the slowest, {}, {:.1} %.",
        fed_by(feed),
        rate(*top),
        name(&best),
        share.ratio * 100.0,
        share.low * 100.0,
        share.high * 100.0,
        name(&slowest),
        slowest.throughput() / top.throughput() * 100.0,
    );
    let evidence = json!({ "top_line": figures(*top), "fastest": figures(best), "slowest": figures(slowest) });
    Some(Found::new("lines-top-line", share.ratio, text, evidence))
}

/// Published times of unknown totals: each in times the shortest, beside ours.
fn published(feed: Feed, fed: &Fed) -> Option<Found> {
    let mut theirs: Vec<(Subject, &Published)> = fed
        .values()
        .filter_map(|subject| Some((*subject, subject.record.published.as_ref().filter(|p| p.relative)?)))
        .collect();
    theirs.sort_by(|one, other| other.1.throughput.total_cmp(&one.1.throughput));
    let [(first, shortest), others @ ..] = theirs.as_slice() else { return None };
    if others.is_empty() || theirs.iter().any(|(subject, _)| subject.estimates.throughput().low.is_none()) {
        return None;
    }
    let ratios: Vec<(String, f64, f64)> = others
        .iter()
        .map(|(subject, published)| {
            let ours = first.throughput() / subject.throughput();
            (name(subject), shortest.throughput / published.throughput, ours)
        })
        .collect();
    let told: Vec<String> = ratios
        .iter()
        .map(|(name, theirs, ours)| format!("{name} {}, here {}", times(*theirs), three_digits(*ours)))
        .collect();
    let text = format!(
        "Published, from other hardware ({}), in times of {}: {}; {}.",
        shortest.source,
        name(first),
        told.join("; "),
        fed_by(feed)
    );
    let evidence = json!({
        "source": shortest.source, "to": first.record.id,
        "times": ratios.iter().map(|(name, theirs, ours)| json!({ "filter": name, "published": theirs, "measured": ours }))
            .collect::<Vec<_>>(),
    });
    Some(Found::new("lines-published", others.len() as f64, text, evidence))
}

#[cfg(test)]
mod tests {
    use crate::model::{Finding, Outcome, PipelineStats, ProcessStats, Published};
    use crate::stats::findings::findings;
    use crate::stats::fixture::{STEADY, outcome};
    use crate::stats::records::records;

    const SECOND: u64 = 1_000_000_000;

    /// A filter at `throughput` GiB/s for a second, which took `own` seconds of CPU time in each, with so many switches.
    fn filter(feed: &str, filter: &str, throughput: f64, own: f64, switches: u64) -> Outcome {
        let volume = if feed.starts_with("yes") { ("time", "1s") } else { ("total", "1g") };
        let words = [("feed", feed), ("filter", filter), ("place", "free"), volume];
        let mut outcome = outcome("e", &words, throughput, &STEADY);
        for sample in &mut outcome.samples {
            (sample.sources, sample.sinks) = (Vec::new(), Vec::new());
            let filter = ProcessStats {
                user_ns: (own * SECOND as f64) as u64,
                context_switches: switches,
                ..ProcessStats::default()
            };
            let feed = ProcessStats { sys_ns: SECOND / 2, ..ProcessStats::default() };
            sample.pipeline = Some(PipelineStats { feed: Some(feed), filter });
        }
        outcome
    }

    fn told(outcomes: Vec<Outcome>) -> Vec<Finding> {
        findings(&records(outcomes), None)
    }

    fn text<'f>(found: &'f [Finding], rule: &str) -> &'f str {
        &found.iter().find(|finding| finding.rule == rule).unwrap_or_else(|| panic!("no {rule}: {found:?}")).text
    }

    #[test]
    fn each_step_is_told_with_its_cost() {
        let found = told(vec![
            filter("yes-long", "sink", 4.0, 0.5, 100),
            filter("yes-long", "std-baseline", 0.5, 0.9, 5120),
            filter("yes-long", "baseline", 0.25, 1.0, 51200),
            filter("yes-long", "pipeline", 0.125, 1.5, 102400),
            filter("yes-long", "lines-1", 2.5, 0.5, 2560),
            filter("yes-long", "lines-all", 2.5, 1.0, 5120),
        ]);
        assert_eq!(
            text(&found, "lines-batching"),
            "Batching alone, fed by yes with lines of 285 bytes: lines-1 has 5.00 times (5.00 to 5.00) the throughput of \
             std-baseline, with 0.20 s of its own CPU time per GiB instead of 1.80 s, and 1.00 context switches per MiB \
             instead of 10.0."
        );
        let threads = text(&found, "lines-threads");
        assert!(threads.contains("lines-all has the throughput of lines-1, as far as can be told"), "{threads}");
        assert!(
            text(&found, "lines-scheduler").contains("has 0.50 times (0.50 to 0.50) the throughput of std-baseline")
        );
        assert!(text(&found, "lines-queues").contains("800 context switches per MiB instead of 200"));
        let top = text(&found, "lines-top-line");
        assert!(
            top.starts_with("Of the top line fed by yes with lines of 285 bytes, 4.00 GiB/s, the fastest"),
            "{top}"
        );
        // Filters say nothing of pipemark's own senders and receivers.
        assert!(found.iter().all(|finding| finding.rule.starts_with("lines-")), "{found:?}");
    }

    #[test]
    fn the_conjecture_is_answered_from_two_lengths() {
        // 40 ns for a line and 1 ns for a byte.
        let cpu = |length: f64| (40.0 / length + 1.0) * super::GIB / 1e9;
        let found = told(vec![
            filter("yes-short", "std-baseline", 1.0, cpu(8.0), 0),
            filter("yes-long", "std-baseline", 1.0, cpu(285.0), 0),
        ]);
        let conjecture = text(&found, "lines-conjecture");
        assert!(conjecture.contains("40.0 ns of its CPU time on each line and 1024 ns on each KiB"), "{conjecture}");
        assert!(conjecture.contains("83 % of the cost with 8 bytes, and 12 % with 285."), "{conjecture}");
    }

    #[test]
    fn published_times_of_an_unknown_log_are_compared_among_themselves() {
        let seconds = |name: &str, ours: f64, seconds: f64| {
            let mut outcome = filter("zcat", name, ours, 1.0, 1);
            let source = "stress.sh".to_owned();
            outcome.trial.published = Some(Published { throughput: super::GIB / seconds, source, relative: true });
            outcome
        };
        let found = told(vec![
            seconds("std-baseline", 1.0, 4.0),
            seconds("baseline", 0.5, 5.0),
            seconds("pipeline", 0.25, 6.0),
        ]);
        assert_eq!(
            text(&found, "lines-published"),
            "Published, from other hardware (stress.sh), in times of std-baseline: baseline 1.25 times, here 2.00; \
             pipeline 1.50 times, here 4.00; fed by zcat."
        );
    }
}
