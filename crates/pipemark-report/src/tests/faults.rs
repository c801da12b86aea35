//! Detects comparisons, in a document's findings and claims, that no table of the document shows.

use serde_json::{Value as Json, json};

use pipemark_entrants::FILTERS;
use pipemark_model::{
    Claim, Estimate, Evidence, Figure, Finding, Job, Key, Record, Sample, Throughput, Volume, three_digits,
};
use pipemark_stats::estimate::from_runs;
use pipemark_stats::fixture::{STEADY, record};
use pipemark_stats::records::{memory_copy, ratio_of, ratios};

use crate::findings::findings;
use crate::tests::one_setting;
use pipemark_claims::answers::answer_claims;

/// The parameters in which the trials of a finding may differ, by rule. All other parameters must be equal.
const VARIES: [(&[&str], &[Key]); 14] = {
    use Key::*;
    [
        (&["place"], &[Place, Block]),
        (&["wait"], &[Wait]),
        (&["gap"], &[Gap]),
        (&["capacity"], &[Capacity]),
        (&["best-block", "call-cost"], &[Block]),
        (&["zero-copy"], &[Send, Recv, Pages]),
        (&["fresh-data"], &[Send, Pages, Capacity]),
        (&["best-link", "crossing", "shared-memory", "tail"], &[Link, Send, Recv, Block]),
        (&["harness"], &[Link, Capacity, Block]),
        (&["tuning", "language-gap"], &[Language, Program]),
        (&["language-by-block", "language-best-block"], &[Language, Block]),
        (&["lines-conjecture"], &[Filter, Feed]),
        (&["lines-latency", "lines-top-line", "lines-published"], &[Filter]),
        (&["chain-cost", "chain-published"], &[Length]),
    ]
};
/// The parameters in which the two trials of one comparison may differ, for rules whose findings have several
/// comparisons.
const VARIES_IN_PAIR: [(&[&str], &[Key]); 5] = {
    use Key::*;
    [
        (&["place"], &[Place]),
        (&["best-link", "crossing", "shared-memory"], &[Link, Send, Recv]),
        (&["harness"], &[Link, Capacity]),
        (&["tuning"], &[Program]),
        (&["language-by-block"], &[Language]),
    ]
};
/// Rules about one trial, or about a line fitted through many trials.
const SINGLE_TRIAL_RULES: [&str; 5] = ["recommended", "round-trip", "memory-copy", "message-cost", "start-up"];
/// Rules that report shares in per cent.
const SHARE_RULES: [&str; 4] = ["capacity", "harness", "lines-top-line", "language-by-block"];
/// The limits in per cent within which rules call two trials equal. A text may print these limits, although no trial
/// contains them.
const LIMITS: [&str; 3] = ["3", "5", "10"];

fn of_filters(rule: &str) -> bool {
    FILTERS.iter().filter_map(|(_, form)| form.finding.as_ref()).any(|finding| finding.rule == rule)
}

/// The parameters in which the trials of a rule may differ; `None` if they may differ in any parameter within an
/// experiment.
fn varies(rule: &str) -> Option<&'static [Key]> {
    match VARIES.iter().find(|(rules, _)| rules.contains(&rule)) {
        Some((_, keys)) => Some(keys),
        None if of_filters(rule) => Some(&[Key::Filter]),
        None if SINGLE_TRIAL_RULES.contains(&rule) => Some(&[]),
        // Each trial is compared with the figure published for it.
        None if rule == "published" => None,
        None => panic!("{rule}: say in VARIES what its trials may differ in"),
    }
}

/// The parameters in which the two trials of a comparison may differ.
fn varies_in_pair(rule: &str) -> &'static [Key] {
    let narrower = VARIES_IN_PAIR.iter().find(|(rules, _)| rules.contains(&rule));
    narrower.map(|(_, keys)| *keys).or_else(|| varies(rule)).unwrap_or_default()
}

/// Whether two jobs are equal except for the parameters `keys` and the volume.
fn equal_except(keys: &[Key], one: &Job, other: &Job) -> bool {
    let (own, their) = (one.settings(), other.settings());
    let fixed = |key: &Key| !key.is_volume() && !keys.contains(key);
    (keys.contains(&Key::Verify) || one.verify() == other.verify())
        && Key::iter().filter(fixed).all(|key| own.get(key) == their.get(key))
}

fn find<'a>(trial: &Json, all: &'a [Record]) -> Option<&'a Record> {
    let [id, experiment] = ["trial", "experiment"].map(|key| trial[key].as_str());
    all.iter().find(|record| Some(&*record.id) == id && Some(&*record.experiment) == experiment)
}

/// Collects each object in `json` that `wanted` accepts.
fn collect_matching<'e>(json: &'e Json, wanted: &dyn Fn(&Json) -> bool, found: &mut Vec<&'e Json>) {
    if wanted(json) {
        found.push(json);
    }
    match json {
        Json::Object(fields) => fields.values().for_each(|inner| collect_matching(inner, wanted, found)),
        Json::Array(items) => items.iter().for_each(|inner| collect_matching(inner, wanted, found)),
        _ => {}
    }
}

fn all_matching<'e>(json: &'e Json, wanted: &dyn Fn(&Json) -> bool) -> Vec<&'e Json> {
    let mut found = Vec::new();
    collect_matching(json, wanted, &mut found);
    found
}

/// The ratio of one trial's figure to another trial's, in the rounds that both have.
fn ratio(figure: &str, of: &Record, to: &Record) -> Option<Estimate> {
    if figure == "speed" {
        return ratio_of(&of.samples, &to.samples);
    }
    let figure = Figure::iter().find(|known| known.column() == figure)?;
    from_runs(&ratios(&of.samples, &to.samples, |sample| figure.of_sample(sample)))
}

fn close(one: Option<f64>, other: Option<f64>) -> bool {
    one.zip(other).is_some_and(|(one, other)| (one / other - 1.0).abs() < 1e-9)
}

/// A description of an invalid comparison. `None` if a table can show both trials, and their ratio or its inverse is
/// the stated ratio.
fn fault(rule: &str, comparison: &Json, all: &[Record]) -> Option<String> {
    let shown = || {
        let (of, to) = (find(&comparison["of"], all)?, find(&comparison["to"], all)?);
        let alike = of.experiment == to.experiment
            && of.job.volume().is_equivalent(to.job.volume())
            && equal_except(varies_in_pair(rule), &of.job, &to.job);
        let told = ["ratio", "low", "high"].map(|key| comparison[key].as_f64());
        let ends = |ratio: Estimate| [Some(ratio.median), ratio.low, ratio.high];
        let figure = comparison["figure"].as_str()?;
        let [own, turned] = [ratio(figure, of, to), ratio(figure, to, of)];
        let turned = turned.map(|own| {
            let [median, low, high] = ends(own).map(|end| end.map(|end| 1.0 / end));
            [median, high, low]
        });
        let equal = [own.map(ends), turned].into_iter().flatten();
        let mut equal = equal.map(|own| told.into_iter().zip(own).all(|(told, own)| close(told, own)));
        (alike && equal.any(|equal| equal)).then_some(())
    };
    shown().is_none().then(|| format!("{rule}: {comparison}"))
}

/// Faults of a finding's trials as a whole: trials of different kinds, or of different experiments.
fn mixed_trials(rule: &str, evidence: &Json, all: &[Record]) -> Vec<String> {
    let trials = all_matching(evidence, &|json| json["trial"].is_string());
    let records: Option<Vec<&Record>> = trials.iter().map(|trial| find(trial, all)).collect();
    let Some(records) = records else { return vec![format!("{rule}: no such row: {trials:?}")] };
    let Some(first) = records.first() else { return Vec::new() };
    // A fixed cost is computed from two volumes, each measured with both filters. Each chain and each published figure
    // may have its own volume.
    let of_two = evidence["of"].is_array();
    let of_many = rule.starts_with("chain-") || rule == "published";
    let alike = |other: &&&Record| {
        let volume = of_many || other.job.volume().is_equivalent(first.job.volume());
        let beside = of_two || volume && other.experiment == first.experiment;
        beside && varies(rule).is_none_or(|keys| equal_except(keys, &other.job, &first.job))
    };
    let unlike = records.iter().filter(|other| !alike(other));
    let mut faults: Vec<String> = unlike.map(|other| format!("{rule}: {} beside {}", other.id, first.id)).collect();
    if let (Some(of), Some(to)) = (evidence["of"].as_array(), evidence["to"].as_array()) {
        let beside = |(of, to): &(&Json, &Json)| match (find(of, all), find(to, all)) {
            (Some(of), Some(to)) => of.experiment == to.experiment && of.job.volume().is_equivalent(to.job.volume()),
            _ => false,
        };
        let apart = of.iter().zip(to).filter(|pair| !beside(pair));
        faults.extend(apart.map(|(of, to)| format!("{rule}: {of} beside {to}")));
    }
    faults
}

/// The numbers of a finding that aren't ratios of two trials, recomputed from the records.
fn known_besides(rule: &str, evidence: &Json, all: &[Record]) -> Vec<f64> {
    let published = |record: &Record| record.published.as_ref().map(|own| own.throughput);
    let own = |record: &Record| record.estimate.as_ref().map(|own| own.throughput().median);
    let trials = all_matching(evidence, &|json| json["trial"].is_string());
    let mut records = trials.into_iter().filter_map(|trial| find(trial, all));
    match rule {
        "published" => records.filter_map(|record| Some(own(record)? / published(record)?)).collect(),
        "lines-published" => {
            let all: Vec<f64> = records.filter_map(published).collect();
            let shortest = all.iter().copied().fold(0.0, f64::max);
            all.into_iter().map(|own| shortest / own).collect()
        }
        "chain-published" => {
            let slope = |whose: &str| evidence[whose]["slope"]["value"].as_f64();
            slope("published").zip(slope("measured")).map(|(theirs, ours)| theirs / ours).into_iter().collect()
        }
        "tail" => {
            let of_run = |sample: &Sample| Some(Figure::P99.of_sample(sample)? / Figure::P50.of_sample(sample)?);
            let tail = |record: &Record| from_runs(&record.samples.iter().filter_map(of_run).collect::<Vec<_>>());
            records.filter_map(tail).flat_map(|tail| [Some(tail.median), tail.low, tail.high]).flatten().collect()
        }
        "memory-copy" => {
            let limit = evidence["limit"]["median"].as_f64();
            records.next().and_then(own).zip(limit).map(|(own, limit)| own / limit).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The figures in a text that its evidence doesn't contain.
fn unsupported_figures(rule: &str, text: &str, known: &[f64]) -> Vec<String> {
    let before = |mark: &str| -> Vec<String> {
        let figures = text.match_indices(mark).map(|(at, _)| text[..at].rsplit([' ', '(']).next().unwrap_or_default());
        figures.map(str::to_owned).collect()
    };
    let times: Vec<String> = known.iter().copied().map(three_digits).collect();
    let percent = |share: f64| match share * 100.0 {
        small if small < 0.0005 => "<0.001".to_owned(),
        small if small < 0.0995 => format!("{small:.3}"),
        more => three_digits(more),
    };
    let shares: Vec<String> = known.iter().copied().map(percent).chain(LIMITS.map(str::to_owned)).collect();
    let mut unsupported_figures = before("×");
    unsupported_figures.retain(|figure| !times.contains(figure));
    if SHARE_RULES.contains(&rule) {
        unsupported_figures.extend(before(" %").into_iter().filter(|figure| !shares.contains(figure)));
    }
    unsupported_figures.into_iter().map(|figure| format!("{rule}: no evidence for {figure}: {text}")).collect()
}

/// The throughputs of a text: `3.05 GiB/s`.
fn rates(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split(' ').map(|word| word.trim_matches(|c| ",;:.()".contains(c))).collect();
    let rates = words.windows(2).filter(|two| two[1].ends_with("B/s"));
    rates.map(|two| two.join(" ")).collect()
}

/// Describes each throughput in a text that belongs to none of its trials, and each pair in the wrong order. The right
/// order is the order of the two compared trials: `2.00× as fast (2.00 GiB/s against 1.00 GiB/s)`.
fn misplaced_rates(rule: &str, text: &str, evidence: &Json, all: &[Record]) -> Vec<String> {
    // The rates in these findings are rates per hop of chains, or published rates.
    if rule.starts_with("chain-") || rule.ends_with("published") {
        return Vec::new();
    }
    let shown = |record: &Record| record.estimate.as_ref().map(|own| Throughput(own.throughput().median).to_string());
    let of = |trial: &Json| find(trial, all).and_then(shown);
    let trials = all_matching(evidence, &|json| json["trial"].is_string());
    let mut known: Vec<String> = trials.into_iter().filter_map(of).collect();
    known.extend(evidence["limit"]["median"].as_f64().map(|limit| Throughput(limit).to_string()));
    let told = rates(text);
    let mut faults: Vec<String> = told
        .iter()
        .filter(|rate| !known.contains(rate))
        .map(|rate| format!("{rule}: no trial has {rate}: {text}"))
        .collect();
    if let (Some(new), Some(base), [first, second]) = (of(&evidence["of"]), of(&evidence["to"]), told.as_slice())
        && [&new, &base] != [first, second]
    {
        faults.push(format!("{rule}: {new} against {base} in the wrong order: {text}"));
    }
    faults
}

/// A description of an invalid answer to a claim. `None` if a table shows the two trials that the answer compares, and
/// the answer is their ratio.
fn fault_of_claim(claim: &Claim, one: &Evidence, all: &[Record]) -> Option<String> {
    let row = |id: &String| all.iter().find(|record| record.experiment == one.experiment && record.id == *id);
    let shown = || {
        let of = row(&one.trial).filter(|own| claim.covers(&own.experiment, &own.job))?;
        let figure = if ["gain", "ratio"].contains(&&*claim.figure) { "speed" } else { &claim.figure };
        let Some(to) = one.to.as_ref() else {
            let known = Figure::iter().find(|known| known.column() == figure);
            let own = known.and_then(|known| of.estimate.as_ref()?.get(known));
            let equal = own.is_none_or(|own| close(Some(own.median * claim.times.unwrap_or(1.0)), Some(one.figure)));
            return (claim.to.is_none() && figure != "speed" && (equal || one.figure == 0.0)).then_some(());
        };
        let to = row(to)?;
        let kind = match claim.to_of(&of.job) {
            Some(wanted) => {
                let keys: Vec<Key> = Key::iter().filter(|key| wanted.get(*key).is_some()).collect();
                let settings = to.job.settings();
                let [(of_total, of_block), (to_total, to_block)] = [of, to].map(|own| match own.job.volume() {
                    Volume::Total(total) => (total.0, own.job.block().map_or(0, |block| block.0)),
                    Volume::Time(_) => (0, 0),
                });
                let blocks = of_block > 0 && to_block > 0 && of_total * to_block == to_total * of_block;
                let volumes = claim.is_per_byte() || keys.iter().any(|key| key.is_volume());
                equal_except(&keys, &of.job, &to.job)
                    && keys.iter().filter_map(|key| wanted.get(*key)).all(|value| settings.has(&value))
                    && (volumes || of.job.volume().is_equivalent(to.job.volume()) || claim.figure == "spread" && blocks)
            }
            None => of.baseline.as_ref() == Some(&to.id) && of.job.volume().is_equivalent(to.job.volume()),
        };
        let own = ratio(figure, of, to).map(|own| own.median);
        let own = own.map(|own| if claim.figure == "gain" { (own - 1.0) * 100.0 } else { own });
        // Scatter isn't a figure of single runs, so it has no ratio by run to compare.
        let equal = claim.figure == "spread" || own.is_some_and(|own| (own - one.figure).abs() <= own.abs() * 1e-9);
        (kind && equal).then_some(())
    };
    shown().is_none().then(|| format!("claim {}: {one:?}", claim.id))
}

/// The comparisons in findings and claims that no table shows.
pub(super) fn faults(all: &[Record], claims: Vec<Claim>) -> Vec<String> {
    let mut faults = Vec::new();
    for Finding { rule, text, evidence, .. } in findings(all, memory_copy(all).as_ref(), &[]) {
        let evidence = Json::Object(evidence);
        let pair = |json: &Json| json.pointer("/of/trial").is_some() && json.pointer("/to/trial").is_some();
        let comparisons = all_matching(&evidence, &pair);
        faults.extend(comparisons.iter().filter_map(|own| fault(&rule, own, all)));
        faults.extend(mixed_trials(&rule, &evidence, all));
        let told = comparisons.iter().flat_map(|own| ["ratio", "low", "high"].map(|key| own[key].as_f64()));
        let known: Vec<f64> = told.flatten().chain(known_besides(&rule, &evidence, all)).collect();
        faults.extend(unsupported_figures(&rule, &text, &known));
        faults.extend(misplaced_rates(&rule, &text, &evidence, all));
    }
    for claim in answer_claims(claims, all) {
        let evidence = claim.answer.iter().flat_map(|answer| &answer.evidence);
        faults.extend(evidence.filter_map(|one| fault_of_claim(&claim, one, all)));
    }
    faults
}

/// A pair of rows and their true ratio, as evidence.
fn comparison_evidence(of: &Record, to: &Record) -> Json {
    let ratio = ratio_of(&of.samples, &to.samples).unwrap();
    let row = |own: &Record| json!({ "trial": own.id, "experiment": own.experiment });
    let (median, low, high) = (ratio.median, ratio.low, ratio.high);
    json!({ "figure": "throughput", "ratio": median, "low": low, "high": high, "of": row(of), "to": row(to) })
}

/// The checks above detect a finding about capacity that compares two rows of different tables, even if the ratio is
/// right.
#[test]
fn a_ratio_of_two_tables_is_detected() {
    let with = |experiment: &str, params: &[(&str, &str)]| {
        let own =
            [("capacity", "default"), ("place", "cross"), ("verify", "count"), ("time", "200ms"), ("block", "4k")];
        let kept = own.iter().filter(|(key, _)| !params.iter().any(|(other, _)| key == other));
        record(experiment, &kept.chain(params).copied().collect::<Vec<_>>(), 2.0, &STEADY)
    };
    let base = with("one", &[]);
    let seen = |other: Record| {
        let all = [base.clone(), other];
        let comparison = comparison_evidence(&all[1], &all[0]);
        let mixed = mixed_trials("capacity", &comparison, &all);
        (fault("capacity", &comparison, &all).is_some(), !mixed.is_empty())
    };
    assert_eq!(seen(with("one", &[("capacity", "1m")])), (false, false), "one table shows the two");
    for (experiment, key, value) in [
        ("two", "capacity", "1m"),
        ("one", "place", "same"),
        ("one", "verify", "full"),
        ("one", "time", "50ms"),
        ("one", "total", "1g"),
        ("one", "block", "64k"),
        ("one", "wait", "spin"),
        ("one", "link", "tcp"),
    ] {
        let params: &[(&str, &str)] = &[(key, value), ("capacity", "1m")];
        let other = match key {
            "total" => {
                let params =
                    [("total", value), ("capacity", "1m"), ("place", "cross"), ("verify", "count"), ("block", "4k")];
                record(experiment, &params, 2.0, &STEADY)
            }
            _ => with(experiment, if key == "capacity" || key == "link" { &params[..1] } else { params }),
        };
        assert_eq!(seen(other), (true, true), "{experiment} {key} {value}");
    }
}

#[test]
fn an_invented_figure_is_detected() {
    let all = [record("e", &[], 1.0, &STEADY), record("e", &[("capacity", "1m")], 2.0, &STEADY)];
    let true_one = comparison_evidence(&all[1], &all[0]);
    assert_eq!(fault("capacity", &true_one, &all), None);
    for (key, value) in [
        ("ratio", json!(2.5)),
        ("low", json!(1.0)),
        ("high", json!(null)),
        ("figure", json!("cpu_seconds_per_gib")),
        ("figure", json!(null)),
    ] {
        let mut other = true_one.clone();
        other[key] = value;
        assert!(fault("capacity", &other, &all).is_some(), "{key}");
    }
    let told = |text: &str| unsupported_figures("capacity", text, &[2.0, 1.99]);
    assert!(told("It gives 2.00× (1.99–2.00) the throughput, within 3 %.").is_empty());
    assert_eq!(told("It gives 2.10× the throughput, and cuts it to 19.0 %.").len(), 2);
}

#[test]
fn a_throughput_of_another_trial_or_place_is_detected() {
    let all = [record("e", &[], 1.0, &STEADY), record("e", &[("send", "vmsplice")], 2.0, &STEADY)];
    let evidence = comparison_evidence(&all[1], &all[0]);
    let faults = |text: &str| misplaced_rates("zero-copy", text, &evidence, &all).len();
    assert_eq!(faults("vmsplice → read is 2.00× as fast (2.00 GiB/s against 1.00 GiB/s)."), 0);
    assert_eq!(faults("vmsplice → read is 2.00× as fast (1.00 GiB/s against 2.00 GiB/s)."), 1);
    assert_eq!(faults("vmsplice → read moves 3.00 GiB/s."), 1);
}

/// The checks detect a finding in which two trials differ in parameters in which no comparison of the rule may differ.
#[test]
fn a_pair_that_differs_in_unstated_parameters_is_detected() {
    let all = [
        record("e", &[("place", "same"), ("block", "1k")], 1.0, &STEADY),
        record("e", &[("place", "cross"), ("block", "1k")], 2.0, &STEADY),
        record("e", &[("place", "cross"), ("block", "64")], 2.0, &STEADY),
    ];
    assert_eq!(fault("place", &comparison_evidence(&all[1], &all[0]), &all), None);
    assert!(fault("place", &comparison_evidence(&all[2], &all[0]), &all).is_some());
}

/// The checks also detect a claim whose trial is compared with a row that differs in more parameters than the claim
/// says, even if the ratio is right.
#[test]
fn a_claim_about_rows_that_differ_in_unstated_parameters_is_detected() {
    let with = |experiment: &str, params: &[(&str, &str)]| {
        let own = [("capacity", "default"), ("place", "cross"), ("verify", "count"), ("time", "200ms")];
        let kept = own.iter().filter(|(key, _)| !params.iter().any(|(other, _)| key == other));
        record(experiment, &kept.chain(params).copied().collect::<Vec<_>>(), 2.0, &STEADY)
    };
    let claim = Claim {
        experiments: vec!["one".to_owned()],
        figure: "ratio".to_owned(),
        of: vec![one_setting("capacity", "1m")],
        to: Some(one_setting("capacity", "default")),
        low: Some(1.0),
        ..Claim::default()
    };
    let own = with("one", &[("capacity", "1m")]);
    let seen = |claim: &Claim, base: Record| {
        let honest = answer_claims(vec![claim.clone()], &[own.clone(), with("one", &[])]).remove(0).answer.unwrap();
        let one = Evidence { to: Some(base.id.clone()), ..honest.evidence[0].clone() };
        fault_of_claim(claim, &one, &[own.clone(), base]).is_some()
    };
    assert!(!seen(&claim, with("one", &[])));
    for (key, value) in [("place", "same"), ("verify", "full"), ("time", "50ms"), ("capacity", "256k")] {
        assert!(seen(&claim, with("one", &[(key, value)])), "{key}");
    }
    assert!(seen(&claim, with("two", &[])), "another experiment");
    let gain = Claim { figure: "gain".to_owned(), ..claim };
    assert!(!seen(&gain, with("one", &[])));
    let mut faster = with("one", &[]);
    faster.samples.iter_mut().for_each(|sample| sample.ns *= 2);
    assert!(seen(&gain, faster), "another ratio");
}
