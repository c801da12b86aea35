//! Findings about line filters: the gain from batches and vector instructions, the gain from a second core, the cost of
//! a scheduler and queues, the cost per line, and the published times.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use pipemark_entrants::{FILTERS, FilterTask, FindingForm, filter_task};
use pipemark_model::{
    ByteSize, Feed, Figure, Filter, GIB, Key, LinesJob, Published, Record, Unit, Warning, group_by_key, three_digits,
    total_order,
};

use crate::findings::contrast::Contrast;
use crate::findings::measured::{common_settings, first_findings, settings_except};
use crate::findings::{Candidate, MeasuredTrial, fastest};

/// The lengths in bytes of the lines that yes(1) writes.
const SHORT: f64 = 8.0;
const LONG: f64 = 285.0;

/// Findings about filters. `parts` has groups of trials with the same feed.
pub(super) fn compare_filters(parts: &[Vec<Vec<MeasuredTrial>>], records: &[Record]) -> Vec<Vec<Candidate>> {
    let (timed, groups): (Vec<&Vec<MeasuredTrial>>, Vec<&Vec<MeasuredTrial>>) =
        parts.iter().flatten().partition(|group| lines(&group[0]).rate.is_some());
    let each = |rule: &dyn Fn(&[MeasuredTrial]) -> Option<Candidate>| {
        first_findings(&groups, |group| common_settings(&group[0], &[Key::Filter]), |group| rule(group))
    };
    let compared: Vec<_> = FILTERS.iter().filter_map(|(filter, form)| Some((filter, form.finding.as_ref()?))).collect();
    // The compared pairs are fixed before the measurement, so intervals are widened only for their number.
    let pairs = |group: &&Vec<MeasuredTrial>| {
        compared.iter().filter(|(filter, of)| find(group, filter).and(find(group, &of.to)).is_some()).count()
    };
    let comparisons = groups.iter().map(pairs).sum::<usize>().max(1) as f64;
    // All trials are searched, because a group contains only one of several trials that differ only in volume.
    let of_files = |one: &MeasuredTrial| one.job.lines().is_some_and(|lines| lines.feed == Feed::File);
    let of_files: Vec<MeasuredTrial> = records.iter().filter_map(MeasuredTrial::of).filter(of_files).collect();
    let steps = compared.iter().map(|(filter, finding)| match by_amount(filter, finding, &of_files) {
        Some(candidate) => vec![candidate],
        None => each(&|group| by_throughput(filter, finding, comparisons, group)),
    });
    let mut rules = vec![
        parts.iter().flat_map(|groups| by_feed(groups)).find_map(|groups| per_line(&groups)).into_iter().collect(),
        timed.into_iter().filter_map(|group| latency(group, records)).collect(),
    ];
    rules.extend(steps);
    rules.extend([each(&top_line), each(&published)]);
    rules
}

fn lines<'a>(measured: &MeasuredTrial<'a>) -> &'a LinesJob {
    measured.job.lines().expect("these rules apply only to filters")
}

fn find<'a>(group: &[MeasuredTrial<'a>], filter: &Filter) -> Option<MeasuredTrial<'a>> {
    group.iter().find(|one| lines(one).filter == *filter).copied()
}

/// CPU seconds per GiB of the filter alone; `None` if unknown.
fn own_cpu(one: MeasuredTrial) -> Option<f64> {
    one.estimates.get(Figure::FilterCpu).map(|seconds| seconds.median)
}

/// Context switches of the pipeline per MiB of input; `None` if unknown.
fn switches(one: MeasuredTrial) -> Option<f64> {
    one.estimates.get(Figure::ContextSwitches).map(|switches| switches.median / (one.bytes() / (1 << 20) as f64))
}

/// The feed of a group, as text.
fn feed_in_words(group: &[MeasuredTrial]) -> &'static str {
    match lines(&group[0]).feed {
        Feed::YesShort => "fed by yes with lines of 8 bytes",
        Feed::YesMiddle => "fed by yes with lines of 48 bytes",
        Feed::YesLong => "fed by yes with lines of 285 bytes",
        Feed::ThroughputSh => "in throughput.sh",
        Feed::File => "from a file in memory",
        Feed::Zcat => "fed by zcat",
        Feed::Timed => "fed line by line",
    }
}

/// Compares a filter's throughput with that of its base, the filter named in its description. `comparisons` is the
/// number of such pairs.
fn by_throughput(
    filter: &Filter,
    finding: &FindingForm,
    comparisons: f64,
    group: &[MeasuredTrial],
) -> Option<Candidate> {
    let (base, new) = (find(group, &finding.to)?, find(group, filter)?);
    let [base, new] = [base, new].map(|one| MeasuredTrial { family: one.family.with(comparisons), ..one });
    let contrast = Contrast::throughput(base, new)?;
    let doubt = contrast.adjusted.0 <= 1.0 && contrast.adjusted.1 >= 1.0 && !contrast.is_equal();
    let doubt = if doubt { " (inconclusive: too few runs)" } else { "" };
    let throughput = format!("{contrast} the throughput of {}{doubt}", finding.to);
    let figures = format!(
        "{throughput}, with {} s of its own CPU time per GiB instead of {} s, and {} context switches per MiB instead of {}",
        three_digits(own_cpu(new)?),
        three_digits(own_cpu(base)?),
        three_digits(switches(new)?),
        three_digits(switches(base)?),
    );
    let text = finding.says.replace("{feed}", feed_in_words(group)).replace("{figures}", &figures);
    let mut evidence = contrast.evidence();
    for (side, one) in [("to", base), ("of", new)] {
        evidence[side]["filter_cpu_seconds_per_gib"] = json!(own_cpu(one));
        evidence[side]["context_switches_per_mib"] = json!(switches(one));
    }
    Some(Candidate::new(&finding.rule, contrast.effect(), text, evidence))
}

/// Compares a filter's fixed time and time per GiB with those of its base. `None` unless both processed the same
/// volumes.
fn by_amount<'a>(filter: &Filter, finding: &FindingForm, of_files: &[MeasuredTrial<'a>]) -> Option<Candidate> {
    let of = |filter: &Filter| of_files.iter().copied().filter(|one| lines(one).filter == *filter).collect::<Vec<_>>();
    let common = |one: &MeasuredTrial| common_settings(one, &[Key::Filter]);
    let bases = of(&finding.to);
    let pair = |new: MeasuredTrial<'a>| {
        let base = bases.iter().copied().find(|base| base.is_comparable_with(new) && common(base) == common(&new));
        base.map(|base| (base, new))
    };
    let mut pairs: Vec<(MeasuredTrial, MeasuredTrial)> = of(filter).into_iter().filter_map(pair).collect();
    pairs.sort_by_cached_key(|one| total_order(one.1.bytes()));
    // The two volumes may be measured in two experiments. All other parameters are equal.
    let volumes = |pairs: Vec<(MeasuredTrial<'a>, MeasuredTrial<'a>)>| {
        let (small, large) = (*pairs.first()?, *pairs.last()?);
        let is_larger = |of: fn(&(MeasuredTrial<'a>, MeasuredTrial<'a>)) -> MeasuredTrial<'a>| {
            of(&large).bytes() >= 2.0 * of(&small).bytes()
        };
        (is_larger(|pair| pair.0) && is_larger(|pair| pair.1)).then_some((small, large))
    };
    let situations = group_by_key(pairs.into_iter().map(|pair| (common(&pair.1), pair)));
    let (small, large) = situations.into_iter().find_map(|(_, pairs)| volumes(pairs))?;
    let (base, new) = ([small.0, large.0], [small.1, large.1]);
    // Seconds for a run of the smaller volume, and seconds for each additional GiB. Each is given as low end, median
    // and high end.
    let seconds = |[small, large]: [MeasuredTrial; 2]| {
        let run = |one: MeasuredTrial| {
            let speed = one.estimates.throughput();
            Some([speed.high?, speed.median, speed.low?].map(|speed| one.bytes() / speed))
        };
        let (few, many) = (run(small)?, run(large)?);
        let more = [many[0] - few[2], many[1] - few[1], many[2] - few[0]];
        Some((few, more.map(|seconds| seconds * GIB / (large.bytes() - small.bytes()))))
    };
    let ((base_few, base_each), (few, each)) = (seconds(base)?, seconds(new)?);
    let show = |seconds: f64| Unit::Nanoseconds.show(seconds * 1e9);
    let range = |seconds: [f64; 3]| match seconds {
        [low, median, high] if low > 0.0 => Some(format!("{} ({}–{})", show(median), show(low), show(high))),
        [.., high] => (high > 0.0).then(|| format!("at most {}", show(high))),
    };
    let figures = format!(
        "{} for {} ({}: {}), and {} for each further GiB ({})",
        range(few)?,
        ByteSize(new[0].bytes() as u64),
        finding.to,
        range(base_few)?,
        range(each)?,
        range(base_each)?,
    );
    let text = finding.says.replace("{feed}", feed_in_words(of_files)).replace("{figures}", &figures);
    let evidence = json!({
        "to": base.map(|one| one.evidence()),
        "of": new.map(|one| one.evidence()),
        "seconds_for_little": { "low": few[0], "median": few[1], "high": few[2] },
        "seconds_per_gib": { "low": each[0], "median": each[1], "high": each[2] },
    });
    Some(Candidate::new(&finding.rule, few[1] / base_few[1], text, evidence))
}

/// The groups of one part, grouped further into those that differ only in the feed.
fn by_feed<'a>(groups: &[Vec<MeasuredTrial<'a>>]) -> Vec<Vec<Vec<MeasuredTrial<'a>>>> {
    let common = |group: &Vec<MeasuredTrial>| common_settings(&group[0], &[Key::Filter, Key::Feed]);
    let situations = group_by_key(groups.iter().map(|group| (common(group), group.clone())));
    situations.into_iter().map(|(_, groups)| groups).collect()
}

/// The CPU time of std-baseline per line and per byte. It tests the conjecture, in the document "pipelines", that the
/// cost per line dominates.
fn per_line(groups: &[Vec<MeasuredTrial>]) -> Option<Candidate> {
    let split = |name: &str| {
        let filter: Filter = name.parse().ok()?;
        let ns_per_byte = |feed: Feed| {
            let of_feed = |group: &&Vec<MeasuredTrial>| (lines(&group[0]).feed, lines(&group[0]).rate) == (feed, None);
            let one = find(groups.iter().find(of_feed)?, &filter)?;
            Some((one, own_cpu(one)? * 1e9 / GIB))
        };
        // Solves short = line / SHORT + byte, long = line / LONG + byte.
        let ((of_short, short), (of_long, long)) = (ns_per_byte(Feed::YesShort)?, ns_per_byte(Feed::YesLong)?);
        let line = (short - long) / (1.0 / SHORT - 1.0 / LONG);
        (line > 0.0).then(|| (line, (long - line / LONG).max(0.0), [of_short, of_long]))
    };
    let spends = |(line, byte, _): (f64, f64, [MeasuredTrial; 2])| (three_digits(line), three_digits(byte * 1024.0));
    let theirs = split("std-baseline")?;
    let ours = split("lines-1");
    let (line, kib) = spends(theirs);
    let share = |length: f64| theirs.0 / (theirs.0 + theirs.1 * length) * 100.0;
    let text = format!(
        "Does the cost per line dominate? std-baseline spends {line} ns of CPU time on each line and {kib} ns on each KiB, so the cost per line is {:.0} % of the total for lines of 8 bytes, and {:.0} % for lines of 285 bytes{}.",
        share(SHORT),
        share(LONG),
        ours.map(spends).map_or_else(String::new, |(line, kib)| {
            format!("; lines-1 spends {line} ns on a line and {kib} ns on a KiB")
        }),
    );
    let figures = |(line, byte, trials): (f64, f64, [MeasuredTrial; 2])| {
        let trials = trials.map(|one| one.evidence());
        json!({ "ns_per_line": line, "ns_per_byte": byte, "trials": trials })
    };
    let evidence = json!({ "std_baseline": figures(theirs), "lines_1": ours.map(figures) });
    Some(Candidate::new("lines-conjecture", 1.0, text, evidence))
}

/// The latency of a line through the fastest filter and through the slowest, at a fixed rate. Also names the filters
/// that hold back lines.
fn latency(group: &[MeasuredTrial], records: &[Record]) -> Option<Candidate> {
    let rate = lines(&group[0]).rate?;
    let transform = |filter: &Filter| filter_task(filter) == FilterTask::Transform;
    let filters = || group.iter().copied().filter(|one| transform(&lines(one).filter));
    let (best, slowest) = (fastest(filters())?, filters().min_by(|one, other| one.speed().total_cmp(&other.speed()))?);
    let through = |one: MeasuredTrial| format!("{} through {}", one.headline(), lines(&one).filter);
    let latencies = [Some(best), find(group, &"lines-1".parse().ok()?), Some(slowest)].into_iter().flatten();
    let mut latencies: Vec<String> = latencies.map(through).collect();
    latencies.dedup();
    let beside = records.iter().filter(|record| record.experiment == best.record.experiment);
    let held = beside.filter(|record| record.warnings.iter().any(|own| matches!(own, Warning::Held { .. })));
    let common = common_settings(&best, &[Key::Filter]);
    let alike = held.filter(|record| settings_except(&record.job, &[Key::Filter]) == common);
    let held = alike.filter_map(|record| record.job.lines());
    let held: BTreeSet<&str> = held.map(|lines| lines.filter.as_str()).collect();
    let also = match held.len() {
        0 => String::new(),
        _ => format!(
            "; filters that hold lines back until more arrive: {}",
            Vec::from_iter(held.iter().copied()).join(", ")
        ),
    };
    let text = format!("Median latency of a line at {rate} lines per second: {}{also}.", latencies.join(", "));
    let evidence =
        json!({ "rate": rate, "quickest": best.evidence(), "slowest": slowest.evidence(), "held_back_by": held });
    (latencies.len() > 1 || !held.is_empty()).then(|| Candidate::new("lines-latency", 1.0, text, evidence))
}

/// The throughput of the fastest and of the slowest filter, relative to a filter that only counts lines.
fn top_line(group: &[MeasuredTrial]) -> Option<Candidate> {
    let top = group.iter().find(|one| filter_task(&lines(one).filter) == FilterTask::Count)?;
    let filters = || group.iter().copied().filter(|one| filter_task(&lines(one).filter) == FilterTask::Transform);
    let best = fastest(filters())?;
    let slowest = filters().min_by(|one, other| one.throughput().total_cmp(&other.throughput()))?;
    let share = Contrast::throughput(*top, best).filter(|_| slowest.record.id != best.record.id)?;
    let least = Contrast::throughput(*top, slowest)?;
    let text = format!(
        "Throughput relative to only counting the lines, {} ({}): fastest filter {}, {}; slowest filter {}, {}.",
        feed_in_words(group),
        top.headline(),
        lines(&best).filter,
        share.percent(),
        lines(&slowest).filter,
        least.percent(),
    );
    let evidence = json!({ "fastest": share.evidence(), "slowest": least.evidence() });
    Some(Candidate::new("lines-top-line", share.ratio, text, evidence))
}

/// Published times of unknown volumes, as multiples of the shortest time, beside the measured ones.
fn published<'a>(group: &[MeasuredTrial<'a>]) -> Option<Candidate> {
    let mut theirs: Vec<(MeasuredTrial<'a>, &Published)> = group
        .iter()
        .filter_map(|one| Some((*one, one.record.published.as_ref().filter(|published| published.relative)?)))
        .collect();
    theirs.sort_by_cached_key(|one| total_order(-one.1.throughput));
    let [(first, shortest), others @ ..] = theirs.as_slice() else { return None };
    if others.is_empty() || theirs.iter().any(|(one, _)| one.estimates.throughput().low.is_none()) {
        return None;
    }
    let ratio = |(one, published): &(MeasuredTrial<'a>, &Published)| {
        Some((shortest.throughput / published.throughput, Contrast::throughput(*one, *first)?))
    };
    let ratios: Vec<(f64, Contrast)> = others.iter().map(ratio).collect::<Option<Vec<_>>>()?;
    let words = |(theirs, ours): &(f64, Contrast)| {
        let name = &lines(&ours.base).filter;
        format!("{name} {}×, here {}×", three_digits(*theirs), three_digits(ours.ratio))
    };
    let text = format!(
        "Published times, from other hardware ({}), as multiples of the time of {}: {}; {}.",
        shortest.source,
        lines(first).filter,
        ratios.iter().map(words).collect::<Vec<_>>().join("; "),
        feed_in_words(group)
    );
    let times: Value = ratios
        .iter()
        .map(|(theirs, ours)| {
            let filter = json!(lines(&ours.base).filter.as_str());
            json!({ "filter": filter, "published": theirs, "measured": ours.evidence() })
        })
        .collect();
    let evidence = json!({ "source": shortest.source, "to": first.record.id, "times": times });
    Some(Candidate::new("lines-published", others.len() as f64, text, evidence))
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Finding, Outcome, PipelineStats, ProcessStats, Published};
    use pipemark_stats::fixture::records;
    use pipemark_stats::fixture::{STEADY, outcome};

    use crate::findings::findings;

    const SECOND: u64 = 1_000_000_000;

    /// A filter at `throughput` GiB/s, with runs of one second. Per run, the filter uses `own` seconds of CPU time, and
    /// the pipeline has `switches` context switches.
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
            sample.pipeline = Some(PipelineStats { feed: Some(feed), filter, reader: None });
        }
        outcome
    }

    fn all(outcomes: Vec<Outcome>) -> Vec<Finding> {
        findings(&records(outcomes), None, &[])
    }

    fn text<'f>(found: &'f [Finding], rule: &str) -> &'f str {
        &found.iter().find(|finding| finding.rule == rule).unwrap_or_else(|| panic!("no {rule}: {found:?}")).text
    }

    #[test]
    fn each_step_is_reported_with_its_cost() {
        let found = all(vec![
            filter("yes-long", "sink", 4.0, 0.5, 100),
            filter("yes-long", "std-baseline", 0.5, 0.9, 5120),
            filter("yes-long", "std-baseline-batch", 0.75, 0.9, 5120),
            filter("yes-long", "baseline-main-thread", 0.5, 1.0, 51200),
            filter("yes-long", "baseline", 0.25, 1.0, 51200),
            filter("yes-long", "pipeline", 0.125, 1.5, 102400),
            filter("yes-long", "lines-1", 2.5, 0.5, 2560),
            filter("yes-long", "lines-all", 2.5, 1.0, 5120),
        ]);
        assert_eq!(
            text(&found, "lines-batching"),
            "Effect of batches and vector instructions, fed by yes with lines of 285 bytes: lines-1 has 5.00× (5.00–5.00) \
             the throughput of std-baseline, with 0.20 s of its own CPU time per GiB instead of 1.80 s, and 1.00 context \
             switches per MiB instead of 10.0."
        );
        let threads = text(&found, "lines-threads");
        assert!(threads.contains("lines-all has 1.00× (1.00–1.00) the throughput of lines-1, with"), "{threads}");
        let alone = text(&found, "lines-batches-alone");
        assert!(alone.contains("std-baseline with batches has 1.50× (1.50–1.50) the throughput of"), "{alone}");
        let scheduler = text(&found, "lines-scheduler");
        assert!(scheduler.contains("has 0.50× (0.50–0.50) the throughput of baseline-main-thread"), "{scheduler}");
        assert!(text(&found, "lines-queues").contains("800 context switches per MiB instead of 200"));
        let top = text(&found, "lines-top-line");
        assert!(
            top.starts_with(
                "Throughput relative to only counting the lines, fed by yes with lines of 285 bytes (4.00 GiB/s): fastest"
            ),
            "{top}"
        );
        // No rule about pipemark's own source and sink reports a finding about filters.
        assert!(found.iter().all(|finding| finding.rule.starts_with("lines-")), "{found:?}");
    }

    #[test]
    fn two_totals_separate_the_start_from_the_time_per_gib() {
        let of = |filter: &str, total: &str, seconds: f64, mib: f64| {
            let words = [("feed", "file"), ("filter", filter), ("place", "free"), ("total", total)];
            let mut outcome = outcome(total, &words, mib / 1024.0 / seconds, &STEADY);
            outcome.samples.iter_mut().for_each(|sample| {
                sample.ns = (sample.ns as f64 * seconds) as u64;
                sample.bytes = (mib * 1048576.0) as u64;
                (sample.sources, sample.sinks) = (Vec::new(), Vec::new());
                sample.pipeline = Some(PipelineStats { feed: None, filter: ProcessStats::default(), reader: None });
            });
            outcome
        };
        let found = all(vec![
            of("lines-1", "1m", 0.01, 1.0),
            of("lines-1", "513m", 0.11, 513.0),
            of("spark-sql", "1m", 8.0, 1.0),
            of("spark-sql", "513m", 18.0, 513.0),
        ]);
        let sql = text(&found, "spark-sql");
        assert!(
            sql.contains("8.00 s (8.00 s–8.00 s) for 1 MiB (lines-1: 10.0 ms (10.0 ms–10.0 ms)), and 20.0 s (20"),
            "{sql}"
        );
        assert!(sql.contains("for each further GiB (200 ms (200 ms–200 ms))"), "{sql}");
        // Filters that processed different volumes aren't compared.
        let found = all(vec![
            of("lines-1", "1m", 0.01, 1.0),
            of("lines-1", "257m", 0.11, 257.0),
            of("spark-sql", "1m", 8.0, 1.0),
            of("spark-sql", "513m", 18.0, 513.0),
        ]);
        assert!(!found.iter().any(|finding| finding.text.contains("for each further GiB")), "{found:?}");
    }

    #[test]
    fn the_conjecture_is_answered_from_two_lengths() {
        // The filter takes 40 ns per line and 1 ns per byte.
        let cpu = |length: f64| (40.0 / length + 1.0) * super::GIB / 1e9;
        let found = all(vec![
            filter("yes-short", "std-baseline", 1.0, cpu(8.0), 0),
            filter("yes-long", "std-baseline", 1.0, cpu(285.0), 0),
        ]);
        let conjecture = text(&found, "lines-conjecture");
        assert!(conjecture.contains("40.0 ns of CPU time on each line and 1024 ns on each KiB"), "{conjecture}");
        assert!(
            conjecture.contains("83 % of the total for lines of 8 bytes, and 12 % for lines of 285 bytes."),
            "{conjecture}"
        );
    }

    #[test]
    fn published_times_of_an_unknown_log_are_compared_among_themselves() {
        let seconds = |name: &str, ours: f64, seconds: f64| {
            let mut outcome = filter("zcat", name, ours, 1.0, 1);
            let source = "stress.sh".to_owned();
            outcome.trial.published =
                Some(Published { throughput: super::GIB / seconds, source, relative: true, ..Published::default() });
            outcome
        };
        let found =
            all(vec![seconds("std-baseline", 1.0, 4.0), seconds("baseline", 0.5, 5.0), seconds("pipeline", 0.25, 6.0)]);
        assert_eq!(
            text(&found, "lines-published"),
            "Published times, from other hardware (stress.sh), as multiples of the time of std-baseline: baseline 1.25×, here 2.00×; \
             pipeline 1.50×, here 4.00×; fed by zcat."
        );
    }
}
