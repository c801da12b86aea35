//! Recommends settings for this machine from those measured.

use serde_json::json;

use pipemark_model::{Delay, Ends, Key, RecvMethod, SendMethod, Verify, WaitPolicy, Work, total_order};

use crate::findings::contrast::Contrast;
use crate::findings::words::{setting, work_in_words};
use crate::findings::{Candidate, MeasuredTrial, fastest};

/// The largest slowdown relative to the best that counts as equally good, as a fraction.
const MAX_SLOWDOWN: f64 = 0.05;

/// The best settings for three uses: data that is read, data that is only passed on, and programs with plain write and
/// read.
///
/// Of the settings tied with the fastest and within 5 % of it, the one with the least CPU time is chosen. Spinning
/// isn't recommended, because it uses a whole CPU.
///
/// If there are recommendations for several volumes, the one with the fastest trial is used.
pub(super) fn settings<'a>(parts: &[Vec<MeasuredTrial<'a>>]) -> Vec<Candidate> {
    let mut by_volume: Vec<Vec<MeasuredTrial<'a>>> = Vec::new();
    for part in parts {
        let like =
            |volume_group: &&mut Vec<MeasuredTrial>| volume_group[0].job.volume().is_equivalent(part[0].job.volume());
        match by_volume.iter_mut().find(like) {
            Some(volume_group) => volume_group.extend(part),
            None => by_volume.push(part.clone()),
        }
    }
    let read = |one: &&MeasuredTrial| one.ends().recv.touches();
    let best =
        |streams: &Vec<MeasuredTrial>| streams.iter().filter(read).map(|one| one.throughput()).fold(0.0, f64::max);
    by_volume.sort_by_cached_key(|one| total_order(-best(one)));
    by_volume.iter().map(|streams| of_volume(streams)).find(|found| !found.is_empty()).unwrap_or_default()
}

fn of_volume<'a>(streams: &[MeasuredTrial<'a>]) -> Vec<Candidate> {
    // Only trials with the same work on the bytes can be ranked. The strictest verification comes first.
    let by_proof = |wanted: fn(&Ends) -> bool| {
        [Verify::Full, Verify::Xor, Verify::Count, Verify::None].map(|verify| -> Vec<MeasuredTrial<'a>> {
            let usable = |ends: &Ends| {
                let undelayed = (ends.read_delay, ends.write_delay) == (Delay::default(), Delay::default());
                ends.verify == verify
                    && ends.wait != WaitPolicy::Spin
                    && ends.pairs == 1
                    && ends.writers == 1
                    && ends.readers == 1
                    && undelayed
                    && wanted(ends)
            };
            streams.iter().copied().filter(|one| usable(one.ends())).collect()
        })
    };
    // If the sink reads the data, the source must be able to write new data. If the sink only passes it on, tee is
    // excluded, because tee sends one page repeatedly.
    let read = by_proof(|ends| ends.recv.touches() && ends.send.sends_fresh_data());
    let read = read.into_iter().find(|those| those.len() > 1).unwrap_or_default();
    let most = |levels: [Vec<MeasuredTrial<'a>>; 4]| levels.into_iter().rev().max_by_key(Vec::len).unwrap_or_default();
    let untouched = most(by_proof(|ends| !ends.recv.touches() && ends.send != SendMethod::Tee));
    // The methods `write` and `read` mean write(2) and read(2) only for pipes and sockets.
    let plain = most(by_proof(|ends| {
        (ends.link.is_pipe() || ends.link.is_socket())
            && (ends.send, ends.recv) == (SendMethod::Write, RecvMethod::Read)
    }));
    let for_reading = choose(&read);
    let words = |one: &MeasuredTrial| setting(one.job, &[Key::Verify]);
    let same = |plain: &MeasuredTrial| for_reading.is_some_and(|other| words(&other) == words(plain));
    // The first number is the effect. It keeps the findings in this order.
    let advice = [
        (3.0, for_reading, "Best for data that must be read", &read),
        (2.0, choose(&untouched), "Best for forwarding data without reading it", &untouched),
        (1.0, choose(&plain).filter(|plain| !same(plain)), "Best with write and read", &plain),
    ];
    let candidate = |(effect, choice, purpose, those): (f64, Option<MeasuredTrial>, &str, &Vec<MeasuredTrial>)| {
        let choice = choice?;
        let proof = match choice.ends().verify {
            Verify::Full => ", each byte newly written and checked",
            Verify::Xor => ", each byte checked",
            Verify::None | Verify::Count => "",
        };
        let copied = work_in_words(Work { written: false, read: false, ..choice.ends().work() });
        let fastest = fastest(those.iter().copied())?.record.id == choice.record.id;
        let why = if fastest { "" } else { "; within 5 % of the fastest, with less CPU time" };
        let text = format!("{purpose}: {}, {}, {copied}{proof}{why}.", words(&choice), choice.headline());
        let evidence = json!({ "setting": choice.evidence(), "of_settings": those.len(), "params": choice.job });
        Some(Candidate::new("recommended", effect, text, evidence))
    };
    advice.into_iter().filter_map(candidate).collect()
}

/// The best candidate; `None` if it is tied with every other one.
fn choose<'a>(candidates: &[MeasuredTrial<'a>]) -> Option<MeasuredTrial<'a>> {
    let best = fastest(candidates.iter().copied())?;
    let those: Vec<MeasuredTrial> = candidates.iter().copied().filter(|other| other.is_comparable_with(best)).collect();
    let slower = |other: &MeasuredTrial| Contrast::throughput(best, *other).is_some_and(|contrast| contrast.is_lower());
    let as_good =
        |other: &&MeasuredTrial| !slower(other) && other.throughput() >= (1.0 - MAX_SLOWDOWN) * best.throughput();
    let cost = |one: &MeasuredTrial| one.estimates.cpu_seconds_per_gib().median;
    let cheapest = those.iter().filter(as_good).min_by(|one, other| cost(one).total_cmp(&cost(other)));
    cheapest.filter(|_| those.iter().any(slower)).copied()
}

#[cfg(test)]
mod tests {
    use pipemark_model::Record;
    use pipemark_stats::fixture::records;
    use pipemark_stats::fixture::{STEADY, outcome, record};

    fn texts(records: &[Record]) -> Vec<String> {
        crate::findings::texts("recommended", records)
    }

    #[test]
    fn each_use_has_its_recommended_setting() {
        let all = [
            record("e", &[("block", "4k")], 1.0, &STEADY),
            record("e", &[("block", "64k")], 3.0, &STEADY),
            record("f", &[("verify", "full")], 2.0, &STEADY),
            record("f", &[("verify", "full"), ("send", "vmsplice"), ("capacity", "1m")], 4.0, &STEADY),
            record("z", &[("send", "vmsplice"), ("recv", "splice"), ("pages", "huge")], 50.0, &STEADY),
            record("z", &[("send", "splice"), ("recv", "splice")], 20.0, &STEADY),
            record("z", &[("send", "tee"), ("recv", "splice")], 70.0, &STEADY),
            record("z", &[("send", "vmsplice"), ("recv", "splice"), ("wait", "spin")], 90.0, &STEADY),
        ];
        assert_eq!(
            texts(&all),
            [
                "Best for data that must be read: vmsplice → read across two cores (blocks of 64 KiB, capacity 1 MiB), 4.00 GiB/s, copied \
                 once, each byte newly written and checked.",
                "Best for forwarding data without reading it: vmsplice → splice across two cores (blocks of 64 KiB, huge pages), 50.0 GiB/s, not copied.",
                "Best with write and read: write → read across two cores (blocks of 64 KiB), 3.00 GiB/s, copied twice.",
            ]
        );
        // The setting for write and read is chosen at the level of verification that most trials have, not at the
        // strictest.
        let mut proven = all.to_vec();
        proven.push(record("f", &[("verify", "full"), ("capacity", "1m")], 1.0, &STEADY));
        proven.push(record("e", &[("block", "1m")], 2.0, &STEADY));
        assert!(
            texts(&proven)[2].ends_with("read across two cores (blocks of 64 KiB), 3.00 GiB/s, copied twice."),
            "{:?}",
            texts(&proven)
        );
        // The same setting isn't reported twice.
        assert_eq!(texts(&all[..2]).len(), 1);
    }

    #[test]
    fn among_equally_fast_sizes_the_cheapest_is_recommended() {
        let mut costly = outcome("e", &[("block", "256k")], 3.01, &STEADY);
        costly.samples.iter_mut().for_each(|sample| sample.user_ns += 500_000_000);
        let rest =
            [("4k", 1.0), ("64k", 3.0)].map(|(block, figure)| outcome("e", &[("block", block)], figure, &STEADY));
        let all = records(rest.into_iter().chain([costly]).collect());
        let text = &texts(&all)[0];
        assert!(
            text.contains("blocks of 64 KiB") && text.ends_with("within 5 % of the fastest, with less CPU time."),
            "{text}"
        );
    }

    #[test]
    fn the_fastest_volume_has_the_answer() {
        let total = |block| [("block", block), ("total", "1g")];
        let all = [
            record("e", &total("4k"), 1.0, &STEADY),
            record("e", &total("64k"), 2.0, &STEADY),
            record("f", &[("block", "4k")], 3.0, &STEADY),
            record("f", &[], 6.0, &STEADY),
        ];
        assert!(texts(&all)[0].contains("6.00 GiB/s"), "{:?}", texts(&all));
    }

    #[test]
    fn inconclusive_settings_are_not_recommended() {
        let one = record("e", &[("block", "4k")], 1.0, &STEADY);
        assert_eq!(texts(std::slice::from_ref(&one)), [""; 0]);
        assert_eq!(texts(&[one.clone(), record("e", &[], 1.01, &STEADY)]), [""; 0]);
        assert_eq!(texts(&[one, record("e", &[], 3.0, &STEADY[..3])]), [""; 0]);
    }
}
