use pipemark_model::{Key, Settings, Status, Value, Volume};
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
    let of = |low, high, times: [f64; 4]| answer(&claim("gain", low, high), &measured_records(times, &STEADY)).verdict;
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
    let own = [("language", "mine"), ("program", "idiomatic"), ("place", "free"), ("verify", "none"), ("block", "4k")];
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
    let one =
        Claim { of: vec![Settings::of([Value::parse(Key::Block, "4k").unwrap()])], ..claim("ratio", Some(1.0), None) };
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
    assert_eq!(little.here, "runs of 832 KiB are too short (starting the processes took 96.2 %); 408 MB are needed");
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
    assert!(open.here.contains("; about ") && open.here.ends_with("runs are needed (7 were done)"), "{}", open.here);
}

#[test]
fn copies_are_known_and_calls_are_counted() {
    let mut records = measured_records([1.0; 4], &STEADY);
    records.iter_mut().flat_map(|record| &mut record.samples).for_each(|sample| sample.sources[0].user_ns = 1_000_000);
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
