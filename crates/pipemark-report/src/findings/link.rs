//! Findings about links: the fastest link at each size, crossovers, and the size from which shared memory is faster
//! than a pipe. The same rules cover streams and round trips. A link is faster if its throughput is higher or its round
//! trips are shorter.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use pipemark_model::{ByteSize, Job, Key, LinkKind, RecvMethod, SendMethod, distinct, total_order};

use crate::findings::contrast::{Contrast, by_size, evidence_by_block, widest};
use crate::findings::measured::{common_settings, first_findings, sizes};
use crate::findings::words::{join_list, pieces, situation, size_ranges, work_in_words};
use crate::findings::{Candidate, MeasuredTrial, fastest, groups};

/// The parameters in which rivals differ.
pub(super) const VARIES: [Key; 4] = [Key::Link, Key::Send, Key::Recv, Key::Block];
/// The largest number of tied links that are reported as winners.
const MAX_LEADERS: usize = 3;
/// The largest number of link pairs whose crossover is reported in one sentence.
const MAX_PAIRS: usize = 3;

/// Two or more mechanisms measured under the same conditions.
pub(super) struct Rivals<'a> {
    group: Vec<MeasuredTrial<'a>>,
    /// The senders and receivers of each mechanism.
    methods: HashMap<String, BTreeSet<(SendMethod, RecvMethod)>>,
    /// The last trial of each mechanism at each size, by its place in the group.
    places: HashMap<(String, ByteSize), usize>,
    /// The names of the mechanisms, see [`Ends::mechanism`](pipemark_model::Ends::mechanism).
    pub names: Vec<String>,
    /// All sizes at which any of the mechanisms was measured, ascending.
    pub sizes: Vec<ByteSize>,
}

impl<'a> Rivals<'a> {
    fn of(group: Vec<MeasuredTrial<'a>>) -> Rivals<'a> {
        let mut methods: HashMap<String, BTreeSet<(SendMethod, RecvMethod)>> = HashMap::new();
        for ends in group.iter().map(|one| one.ends()) {
            methods.entry(ends.mechanism()).or_default().insert((ends.send, ends.recv));
        }
        let (sizes, names, places) = (sizes(&group), Vec::new(), HashMap::new());
        let mut rivals = Rivals { group, methods, places, names, sizes };
        let names: Vec<String> = rivals.group.iter().map(|one| rivals.name(one)).collect();
        let sizes = rivals.group.iter().map(|one| one.ends().block);
        rivals.places = names.iter().cloned().zip(sizes).enumerate().map(|(place, key)| (key, place)).collect();
        rivals.names = distinct(names);
        rivals
    }

    /// The job of one rival. It shows the parameters that all rivals have in common.
    pub fn job(&self) -> &'a Job {
        self.group[0].job
    }

    /// The mechanism's name. If two mechanisms have the same name, both methods are added.
    fn name(&self, one: &MeasuredTrial) -> String {
        let ends = one.ends();
        let name = ends.mechanism();
        match self.methods.get(&name) {
            Some(methods) if methods.len() > 1 => format!("{} {} → {}", ends.link, ends.send, ends.recv),
            _ => name,
        }
    }

    /// The mechanism's name. If the mechanisms in `among` do different work per byte, the work is added, because only
    /// mechanisms with equal work can be ranked without comment.
    pub fn name_with_work(&self, name: &str, among: &[String]) -> String {
        let of = |name: &str| self.group.iter().find(|one| self.name(one) == name).map(|one| one.ends().work());
        match of(name).filter(|work| among.iter().any(|other| of(other) != Some(*work))) {
            Some(work) => format!("{name} ({})", work_in_words(work)),
            None => name.to_owned(),
        }
    }

    fn at(&self, name: &str, size: ByteSize) -> Option<MeasuredTrial<'a>> {
        self.places.get(&(name.to_owned(), size)).map(|&place| self.group[place])
    }

    /// The trials of one mechanism, smallest size first.
    pub fn sweep(&self, name: &str) -> Vec<MeasuredTrial<'a>> {
        self.sizes.iter().filter_map(|size| self.at(name, *size)).collect()
    }

    /// Compares two mechanisms at each size.
    fn contrasts(&self, base: &str, new: &str) -> Vec<Contrast<'a>> {
        let contrast = |size: &ByteSize| Contrast::speed(self.at(base, *size)?, self.at(new, *size)?);
        self.sizes.iter().filter_map(contrast).collect()
    }
}

/// Applies `rule` to each group of rivals. Of groups under the same conditions, only the first with a finding is used.
pub(super) fn each_situation<'a>(
    rivals: &[Rivals<'a>],
    rule: impl Fn(&Rivals<'a>) -> Option<Candidate>,
) -> Vec<Candidate> {
    first_findings(rivals, |rivals| common_settings(&rivals.group[0], &VARIES), |rivals| rule(rivals))
}

/// Groups of trials that differ only in the link, the methods and the size. Trials that discard bytes unread, or send
/// one page repeatedly, are excluded, because they can't be compared with trials that deliver data.
pub(super) fn rivals<'a>(parts: &[Vec<MeasuredTrial<'a>>]) -> Vec<Rivals<'a>> {
    let arrives = |one: &&MeasuredTrial| one.ends().recv.touches() && one.ends().send != SendMethod::Tee;
    let several_links = |group: &Vec<MeasuredTrial>| group.iter().any(|one| one.job.link() != group[0].job.link());
    let of_part = |part: &Vec<MeasuredTrial<'a>>| {
        let arriving: Vec<MeasuredTrial> = part.iter().filter(arrives).copied().collect();
        groups(&arriving, &VARIES).into_iter().filter(several_links).map(Rivals::of).collect::<Vec<_>>()
    };
    parts.iter().flat_map(of_part).collect()
}

/// The fastest link at each size.
pub(super) fn best(rivals: &Rivals) -> Option<Candidate> {
    let leads: Vec<(Vec<String>, Contrast)> =
        rivals.sizes.iter().filter_map(|size| leaders_with_lead(rivals, *size)).collect();
    let mut parts: Vec<(&[String], Vec<Contrast>)> = Vec::new();
    for (leaders, contrast) in &leads {
        match parts.iter_mut().find(|(known, _)| known == leaders) {
            Some((_, part)) => part.push(*contrast),
            None => parts.push((leaders, vec![*contrast])),
        }
    }
    let clause = |(leaders, part): &(&[String], Vec<Contrast>)| {
        let widest = widest(part)?;
        let sizes: Vec<ByteSize> = part.iter().map(|contrast| contrast.new.ends().block).collect();
        let at = if sizes.len() > 1 { format!(" at {}", widest.new.ends().block) } else { String::new() };
        let tied = if leaders.len() > 1 { " (tied)" } else { "" };
        Some(format!(
            "{}{tied} with {} of {}, {}{at}, {widest} as fast as {}",
            join_list(&leaders.iter().map(|name| rivals.name_with_work(name, &rivals.names)).collect::<Vec<_>>()),
            pieces(rivals.job()),
            size_ranges(&sizes, &rivals.sizes),
            widest.new.headline(),
            rivals.name_with_work(&rivals.name(&widest.base), &rivals.names),
        ))
    };
    let clauses: Vec<String> = parts.iter().filter_map(clause).collect();
    let text = format!("Fastest {}: {}.", situation(rivals.job()), clauses.join("; "));
    let contrasts: Vec<Contrast> = leads.iter().map(|(_, contrast)| *contrast).collect();
    let mut evidence = evidence_by_block(&contrasts);
    for ((leaders, _), at) in leads.iter().zip(evidence.as_array_mut()?) {
        at["fastest"] = json!(leaders);
    }
    Some(Candidate::new("best-link", widest(&contrasts)?.effect(), text, json!({ "by_block": evidence })))
}

/// The fastest mechanism at one size and the mechanisms tied with it. Also the comparison of the fastest with the best
/// of the other mechanisms. `None` if there is no significant lead.
fn leaders_with_lead<'a>(rivals: &Rivals<'a>, size: ByteSize) -> Option<(Vec<String>, Contrast<'a>)> {
    let there: Vec<MeasuredTrial> = rivals.names.iter().filter_map(|name| rivals.at(name, size)).collect();
    let best = fastest(there.iter().copied())?;
    let (mut leaders, mut slower) = (Vec::new(), Vec::new());
    for other in there {
        match Contrast::speed(other, best).filter(Contrast::is_higher) {
            Some(contrast) => slower.push(contrast),
            None => leaders.push(rivals.name(&other)),
        }
    }
    let next = slower.into_iter().max_by(|one, other| one.base.speed().total_cmp(&other.base.speed()))?;
    (leaders.len() <= MAX_LEADERS).then_some((leaders, next))
}

/// A crossover of two links: one is significantly faster at the sizes of `ahead`, the other at the sizes of `behind`,
/// and no size in between contradicts the order.
struct Crossover<'a> {
    names: [&'a str; 2],
    ahead: Vec<Contrast<'a>>,
    behind: Vec<Contrast<'a>>,
}

impl Crossover<'_> {
    fn effect(&self) -> f64 {
        let effect = |part: &[Contrast]| widest(part).map_or(0.0, Contrast::effect);
        effect(&self.ahead).min(effect(&self.behind))
    }

    /// The last size before the crossover, and the first size after it.
    fn place(&self) -> [ByteSize; 2] {
        [self.ahead[self.ahead.len() - 1], self.behind[0]].map(|contrast| contrast.new.ends().block)
    }

    /// Whether this crossover is at the same sizes as `known` and has a link in common with it.
    fn repeats(&self, known: &Crossover) -> bool {
        self.place() == known.place() && self.names.iter().any(|name| known.names.contains(name))
    }

    fn words(&self, rivals: &Rivals) -> String {
        let all = [&self.ahead[..], &self.behind].concat();
        let names = self.names.map(str::to_owned);
        let [one, other] = [0, 1].map(|side| rivals.name_with_work(&names[side], &names));
        let sizes = by_size(&all, &rivals.sizes, pieces(rivals.job()));
        format!("{one} against {other}: {}", sizes.unwrap_or_default())
    }

    fn evidence(&self) -> Value {
        let [one, other] = self.names;
        let [ahead, behind] = [&self.ahead, &self.behind].map(|part| evidence_by_block(part));
        json!({ "of": one, "to": other, "ahead": ahead, "behind": behind })
    }
}

/// The sizes at which the order of two links changes.
pub(super) fn crossover(rivals: &Rivals) -> Option<Candidate> {
    let mut crossovers: Vec<Crossover> = Vec::new();
    for (index, one) in rivals.names.iter().enumerate() {
        for other in &rivals.names[index + 1..] {
            crossovers.extend(crossovers_of(rivals, one, other));
        }
    }
    crossovers.sort_by_cached_key(|one| total_order(-one.effect()));
    // If several links cross another link at the same sizes, only one of the crossovers is reported.
    let mut chosen: Vec<&Crossover> = Vec::new();
    for crossover in &crossovers {
        if chosen.len() < MAX_PAIRS && !chosen.iter().any(|known| crossover.repeats(known)) {
            chosen.push(crossover);
        }
    }
    let words: Vec<String> = chosen.iter().map(|crossover| crossover.words(rivals)).collect();
    let text = format!("Crossover {}: {}.", situation(rivals.job()), words.join("; "));
    let evidence: Value = crossovers.iter().map(Crossover::evidence).collect();
    Some(Candidate::new("crossing", crossovers.first()?.effect(), text, json!({ "crossings": evidence })))
}

fn crossovers_of<'r>(rivals: &'r Rivals<'r>, one: &'r str, other: &'r str) -> Vec<Crossover<'r>> {
    let mut certain = rivals.contrasts(other, one);
    certain.retain(|contrast| contrast.is_higher() || contrast.is_lower());
    let stretches: Vec<&[Contrast]> =
        certain.chunk_by(|before, after| before.is_higher() == after.is_higher()).collect();
    // The link that is faster at small sizes comes first.
    let crossover = |pair: &[&[Contrast<'r>]]| match pair[0][0].is_higher() {
        true => Crossover { names: [one, other], ahead: pair[0].to_vec(), behind: pair[1].to_vec() },
        false => {
            let [ahead, behind] = [pair[0], pair[1]].map(|part| part.iter().map(Contrast::inverse).collect());
            Crossover { names: [other, one], ahead, behind }
        }
    };
    stretches.windows(2).map(crossover).collect()
}

/// The size from which shared memory is faster than a pipe.
pub(super) fn shared_memory(rivals: &Rivals) -> Option<Candidate> {
    let plain = LinkKind::Pipe.to_string();
    let (mut clauses, mut all) = (Vec::new(), Vec::new());
    let is_shm = |name: &str| rivals.sweep(name)[0].job.link() == LinkKind::Shm;
    for name in rivals.names.iter().filter(|name| is_shm(name)) {
        let contrasts = rivals.contrasts(&plain, name);
        if contrasts.iter().any(|contrast| contrast.is_higher() || contrast.is_lower()) {
            clauses.push(format!(
                "{} {}",
                rivals.name_with_work(name, std::slice::from_ref(&plain)),
                by_size(&contrasts, &rivals.sizes, pieces(rivals.job()))?
            ));
            all.extend(contrasts);
        }
    }
    let shared: Vec<String> = rivals.names.iter().filter(|name| is_shm(name)).cloned().collect();
    let (plain, situation) = (rivals.name_with_work(&plain, &shared), situation(rivals.job()));
    let text = format!("Shared memory against a {plain}, {situation}: {}.", clauses.join("; "));
    let evidence = json!({ "by_block": evidence_by_block(&all) });
    Some(Candidate::new("shared-memory", widest(&all)?.effect(), text, evidence))
}

#[cfg(test)]
mod tests {
    use pipemark_model::Record;
    use pipemark_stats::fixture::{STEADY, record, round_trip_record};

    use super::*;
    use crate::findings::{findings_of_rule, measured_trials, parts, texts};

    const SIZES: [&str; 4] = ["64", "1k", "64k", "1m"];
    const IN_PLACE: [(&str, &str); 3] = [("link", "shm"), ("send", "in-place"), ("recv", "in-place")];

    fn sweep(way: &[(&str, &str)], figures: [f64; 4], runs: &[f64]) -> Vec<Record> {
        let at = |(size, figure): (&str, f64)| record("e", &[way, &[("block", size)]].concat(), figure, runs);
        SIZES.into_iter().zip(figures).map(at).collect()
    }

    fn trips(link: &str, rest: &[(&str, &str)], figures: [f64; 4]) -> Vec<Record> {
        let at = |(size, ns): (&str, f64)| {
            round_trip_record(&[rest, &[("link", link), ("block", size)]].concat(), ns, &STEADY)
        };
        SIZES.into_iter().zip(figures).map(at).collect()
    }

    fn three(runs: &[f64]) -> Vec<Record> {
        [
            sweep(&[("link", "pipe")], [0.4, 1.0, 2.0, 2.0], runs),
            sweep(&[("link", "tcp")], [0.1, 0.5, 2.5, 4.0], runs),
            sweep(&IN_PLACE, [2.0, 4.0, 12.0, 4.0], runs),
        ]
        .concat()
    }

    #[test]
    fn the_fastest_link_of_each_size_is_reported_with_its_lead() {
        assert_eq!(
            texts("best-link", &three(&STEADY)),
            [
                "Fastest across two cores: shm in-place (not copied, newly written and read) with blocks of 64 B to 64 KiB, \
                 2.00 GiB/s at 64 B, 5.00× (5.00–5.00) as fast as pipe (copied twice); tcp (copied twice) and shm in-place \
                 (not copied, newly written and read) (tied) with blocks of 1 MiB, 4.00 GiB/s, 2.00× (2.00–2.00) as fast as \
                 pipe (copied twice)."
            ]
        );
    }

    #[test]
    fn round_trips_are_won_by_the_shortest() {
        let records = [
            trips("pipe", &[("place", "same")], [4_400.0, 4_400.0, 20_000.0, 300_000.0]),
            trips("shm", &[("place", "same")], [1_100.0, 2_000.0, 10_000.0, 200_000.0]),
            trips("pipe", &[("wait", "spin")], [1000.0, 900.0, 900.0, 900.0]),
            trips("shm", &[("wait", "spin")], [200.0, 200.0, 300.0, 300.0]),
        ]
        .concat();
        assert_eq!(
            texts("best-link", &records),
            [
                "Fastest across two cores (spinning): shm with messages of 64 B to 1 MiB, 200 ns at 64 B, 5.00× (4.99–5.01) \
                 as fast as pipe.",
                "Fastest on one core: shm with messages of 64 B to 1 MiB, 1.10 µs at 64 B, 4.00× (4.00–4.00) as fast as pipe.",
            ]
        );
    }

    #[test]
    fn crossovers_are_reported() {
        let mut records = three(&STEADY);
        // The FIFO is as fast as the pipe, so it crosses at the same sizes.
        records.extend(sweep(&[("link", "fifo")], [0.39, 0.99, 2.01, 2.01], &STEADY));
        assert_eq!(
            texts("crossing", &records),
            [
                "Crossover across two cores: pipe against tcp: faster with blocks of 64 B to 1 KiB, up to 4.00× (4.00–4.00) at \
                 64 B; slower with blocks of 64 KiB to 1 MiB, down to 0.50× (0.50–0.50) at 1 MiB."
            ]
        );
        let found = findings_of_rule("crossing", &records);
        assert_eq!(found[0].evidence["crossings"].as_array().unwrap().len(), 2);
        // The link that is faster at small sizes comes first.
        let turned = [sweep(&[("link", "tcp")], [0.1, 0.5, 2.5, 4.0], &STEADY), three(&STEADY)[..4].to_vec()].concat();
        assert!(texts("crossing", &turned)[0].contains(": pipe against tcp: faster with blocks of 64 B"));
    }

    #[test]
    fn shared_memory_is_compared_with_a_pipe() {
        let mut records = three(&STEADY);
        records.extend(sweep(&[("link", "shm")], [0.2, 1.0, 3.0, 3.0], &STEADY));
        assert_eq!(
            texts("shared-memory", &records),
            [
                "Shared memory against a pipe (copied twice), across two cores: shm in-place (not copied, newly written and read) faster with blocks of 64 B to 1 MiB, up to 6.00× \
                 (6.00–6.00) at 64 KiB; shm slower with blocks of 64 B, 0.50× (0.50–0.50); faster with blocks of 64 KiB to 1 MiB, \
                 up to 1.50× (1.50–1.50) at 1 MiB."
            ]
        );
        let slow = [three(&STEADY)[..4].to_vec(), sweep(&[("link", "shm")], [0.2, 0.5, 1.0, 1.0], &STEADY)].concat();
        assert!(
            texts("shared-memory", &slow)[0]
                .contains("shm slower with blocks of 64 B to 1 MiB, down to 0.50× (0.50–0.50) at")
        );
        let same = [three(&STEADY)[..4].to_vec(), sweep(&[("link", "shm")], [0.4, 1.0, 2.0, 2.0], &STEADY)].concat();
        assert_eq!(texts("shared-memory", &same), [""; 0]);
    }

    #[test]
    fn inconclusive_links_and_single_links_give_no_finding() {
        let rules = ["best-link", "crossing", "shared-memory"];
        for records in [three(&STEADY[..3]), three(&STEADY)[..4].to_vec()] {
            for rule in rules {
                assert_eq!(texts(rule, &records), [""; 0]);
            }
        }
        // Each link has its own noise.
        let noisy = [1.0, 1.9, 0.6, 1.4, 0.8, 1.2, 1.6];
        let turned = |by: usize| [&noisy[by..], &noisy[..by]].concat();
        let records = [
            sweep(&[("link", "pipe")], [1.0; 4], &turned(0)),
            sweep(&[("link", "tcp")], [1.2, 1.2, 0.9, 0.9], &turned(2)),
            sweep(&[("link", "shm")], [1.1; 4], &turned(5)),
        ]
        .concat();
        for rule in rules {
            assert_eq!(texts(rule, &records), [""; 0]);
        }
    }

    #[test]
    fn links_are_compared_within_one_situation_only() {
        let of = |params: &[(&str, &str)]| record("e", params, 1.0, &STEADY);
        let all = [
            of(&[("block", "1m")]),
            of(&[]),
            of(&[("link", "shm")]),
            of(&[("link", "shm"), ("send", "in-place"), ("recv", "in-place")]),
            of(&[("send", "vmsplice"), ("recv", "splice")]),
            of(&[("send", "tee")]),
            of(&[("link", "tcp"), ("place", "same")]),
            of(&[("link", "tcp"), ("wait", "spin")]),
        ];
        let found = rivals(&parts(&measured_trials(&all)));
        let names: Vec<&[String]> = found.iter().map(|rivals| rivals.names.as_slice()).collect();
        assert_eq!(names, [["pipe", "shm", "shm in-place"]]);
        assert_eq!(found[0].sizes, [ByteSize(64 << 10), ByteSize(1 << 20)]);
    }
}
