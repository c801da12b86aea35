//! Links against each other: which wins at which size, where two change places, and from where on shared memory beats a
//! pipe. One rule for streams and for round trips: a link is faster when it moves more, or when the answer is back sooner.

use serde_json::{Value, json};

use super::contrast::Contrast;
use super::rivals::{Rival, Rivals, rivals};
use super::words::{capital, figures, headline, interval, pieces, situation, spans, times};
use super::{Found, Subject, fastest};
use crate::model::{ByteSize, Job, LinkKind, Mode};

/// Of more than so many that cannot be told apart it is not said that they win.
const MOST_LEADERS: usize = 3;
/// The most pairs of links of which it is told in one sentence where they change places.
const MOST_PAIRS: usize = 3;

/// The fastest links at one size.
struct Lead<'a> {
    size: ByteSize,
    /// The fastest, and those that cannot be told from it.
    leaders: Vec<&'a str>,
    best: Subject<'a>,
    /// The fastest of the others, and how many times as fast the best is.
    next: (Subject<'a>, Contrast),
}

/// Which link is fastest at which size, for each placement and wait policy.
pub(super) fn best(subjects: &[Subject]) -> Vec<Found> {
    rivals(subjects).iter().filter_map(best_of).collect()
}

fn best_of(rivals: &Rivals) -> Option<Found> {
    let leads: Vec<Lead> = rivals.sizes.iter().filter_map(|size| lead(rivals, *size)).collect();
    let mut parts: Vec<Vec<&Lead>> = Vec::new();
    for lead in &leads {
        match parts.iter_mut().find(|part| part[0].leaders == lead.leaders) {
            Some(part) => part.push(lead),
            None => parts.push(vec![lead]),
        }
    }
    let effect = |lead: &Lead| lead.next.1.effect();
    let most = leads.iter().map(effect).reduce(f64::max)?;
    let job = rivals.example().job;
    let clause = |part: &Vec<&Lead>| {
        let widest = part.iter().max_by(|one, other| effect(one).total_cmp(&effect(other))).expect("not empty");
        let sizes: Vec<ByteSize> = part.iter().map(|lead| lead.size).collect();
        let at = if sizes.len() > 1 { format!(" at {}", widest.size) } else { String::new() };
        let (next, contrast) = &widest.next;
        format!(
            "{} with {} of {}, {}{at}, {} {} as fast as {}",
            winning(&part[0].leaders, job),
            pieces(job),
            spans(&sizes, &rivals.sizes),
            headline(widest.best),
            times(contrast.ratio),
            interval(contrast),
            next.ends().mechanism(),
        )
    };
    let clauses: Vec<String> = parts.iter().map(clause).collect();
    let text = format!("{}: {}.", capital(&situation(job)), clauses.join("; "));
    let evidence = json!({ "by_block": leads.iter().map(|lead| json!({
        "block": lead.size, "fastest": lead.leaders, "of": figures(lead.best), "to": figures(lead.next.0),
        "ratio": lead.next.1.evidence(),
    })).collect::<Vec<_>>() });
    Some(Found::new("best-link", most, text, evidence))
}

fn lead<'a>(rivals: &'a Rivals<'a>, size: ByteSize) -> Option<Lead<'a>> {
    let there: Vec<(&str, Subject)> =
        rivals.all.iter().filter_map(|rival| Some((rival.name.as_str(), rival.at(size)?))).collect();
    let best = fastest(there.iter().map(|(_, subject)| *subject))?;
    let mut leaders = Vec::new();
    let mut slower: Vec<(Subject, Contrast)> = Vec::new();
    for (name, subject) in there {
        match Contrast::speed(subject, best).filter(Contrast::more) {
            Some(contrast) if subject.record.id != best.record.id => slower.push((subject, contrast)),
            _ => leaders.push(name),
        }
    }
    let next = slower.into_iter().max_by(|one, other| one.0.speed().total_cmp(&other.0.speed()))?;
    (leaders.len() <= MOST_LEADERS).then_some(Lead { size, leaders, best, next })
}

/// `shm moves most`, `pipe and fifo, not to be told apart, answer soonest`.
fn winning(leaders: &[&str], job: &Job) -> String {
    let verb = match (job.mode(), leaders.len()) {
        (Mode::Throughput, 1) => "moves most",
        (Mode::Throughput, _) => "move most",
        (Mode::Latency, 1) => "answers soonest",
        (Mode::Latency, _) => "answer soonest",
    };
    match leaders {
        [one] => format!("{one} {verb}"),
        [rest @ .., last] => format!("{} and {last}, not to be told apart, {verb}", rest.join(", ")),
        [] => verb.to_owned(),
    }
}

/// Sizes at which one of two links is faster than the other for certain, without one between at which it is slower.
struct Stretch {
    sizes: Vec<ByteSize>,
    /// How many times as fast the first of the two is, where that is farthest from 1.
    peak: (ByteSize, Contrast),
}

/// Two links that change places: the one is ahead in the first stretch, the other in the second.
struct Crossing<'a> {
    one: &'a Rival<'a>,
    other: &'a Rival<'a>,
    ahead: Stretch,
    behind: Stretch,
}

impl Crossing<'_> {
    fn effect(&self) -> f64 {
        self.ahead.peak.1.effect().min(self.behind.peak.1.effect())
    }

    /// The last size before it and the first after it.
    fn place(&self) -> (Option<&ByteSize>, Option<&ByteSize>) {
        (self.ahead.sizes.last(), self.behind.sizes.first())
    }

    /// Whether it is at the same sizes and of one same link.
    fn repeats(&self, told: &Crossing) -> bool {
        let shared = [&self.one.name, &self.other.name]
            .into_iter()
            .any(|name| *name == told.one.name || *name == told.other.name);
        shared && self.place() == told.place()
    }

    fn words(&self, all: &[ByteSize], job: &Job) -> String {
        let side = |stretch: &Stretch| {
            let (size, contrast) = &stretch.peak;
            let at = if stretch.sizes.len() > 1 { format!(" at {size}") } else { String::new() };
            format!("{} ({} {}{at})", spans(&stretch.sizes, all), times(contrast.ratio), interval(contrast))
        };
        format!(
            "{} is faster than {} with {} of {} and slower with {}",
            self.one.name,
            self.other.name,
            pieces(job),
            side(&self.ahead),
            side(&self.behind),
        )
    }

    fn evidence(&self) -> Value {
        let side = |stretch: &Stretch| {
            json!({
                "blocks": stretch.sizes, "at": stretch.peak.0, "ratio": stretch.peak.1.evidence(),
            })
        };
        json!({ "of": self.one.name, "to": self.other.name, "ahead": side(&self.ahead), "behind": side(&self.behind) })
    }
}

/// Where the lines of two links cross.
pub(super) fn crossing(subjects: &[Subject]) -> Vec<Found> {
    rivals(subjects).iter().filter_map(crossing_of).collect()
}

fn crossing_of(rivals: &Rivals) -> Option<Found> {
    let mut crossings: Vec<Crossing> = Vec::new();
    for (index, one) in rivals.all.iter().enumerate() {
        for other in &rivals.all[index + 1..] {
            crossings.extend(crossings_of(one, other, &rivals.sizes));
        }
    }
    crossings.sort_by(|one, other| other.effect().total_cmp(&one.effect()));
    let job = rivals.example().job;
    let most = crossings.first()?.effect();
    let evidence = json!({ "crossings": crossings.iter().map(Crossing::evidence).collect::<Vec<_>>() });
    // Of links that behave alike one is enough.
    let mut told: Vec<Crossing> = Vec::new();
    for crossing in crossings {
        if told.len() < MOST_PAIRS && !told.iter().any(|known| crossing.repeats(known)) {
            told.push(crossing);
        }
    }
    let words: Vec<String> = told.iter().map(|crossing| crossing.words(&rivals.sizes, job)).collect();
    let text = format!("Links change places {}: {}.", situation(job), words.join("; "));
    Some(Found::new("crossing", most, text, evidence))
}

fn crossings_of<'a>(one: &'a Rival<'a>, other: &'a Rival<'a>, sizes: &[ByteSize]) -> Vec<Crossing<'a>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for size in sizes {
        let contrast = one.at(*size).zip(other.at(*size)).and_then(|(one, other)| Contrast::speed(other, one));
        let Some(contrast) = contrast.filter(|contrast| contrast.more() || contrast.less()) else { continue };
        match stretches.last_mut().filter(|stretch| stretch.peak.1.more() == contrast.more()) {
            Some(stretch) => {
                stretch.sizes.push(*size);
                if contrast.effect() > stretch.peak.1.effect() {
                    stretch.peak = (*size, contrast);
                }
            }
            None => stretches.push(Stretch { sizes: vec![*size], peak: (*size, contrast) }),
        }
    }
    let copy = |stretch: &Stretch, turned: bool| {
        let (size, contrast) = stretch.peak;
        Stretch { sizes: stretch.sizes.clone(), peak: (size, if turned { contrast.inverse() } else { contrast }) }
    };
    // The one that is ahead first is named first.
    let crossing = |pair: &[Stretch]| {
        let turned = pair[0].peak.1.less();
        let (one, other) = if turned { (other, one) } else { (one, other) };
        Crossing { one, other, ahead: copy(&pair[0], turned), behind: copy(&pair[1], turned) }
    };
    stretches.windows(2).map(crossing).collect()
}

/// From which size on shared memory beats a pipe.
pub(super) fn shared_memory(subjects: &[Subject]) -> Vec<Found> {
    rivals(subjects).iter().filter_map(shared_memory_of).collect()
}

fn shared_memory_of(rivals: &Rivals) -> Option<Found> {
    let plain = LinkKind::Pipe.to_string();
    let pipe = rivals.all.iter().find(|rival| rival.name == plain)?;
    let job = rivals.example().job;
    let mut clauses = Vec::new();
    let mut evidence = Vec::new();
    let mut most = 0.0f64;
    for ring in rivals.all.iter().filter(|rival| rival.link == LinkKind::Shm) {
        let contrasts: Vec<(ByteSize, Contrast)> = rivals
            .sizes
            .iter()
            .filter_map(|size| Some((*size, Contrast::speed(pipe.at(*size)?, ring.at(*size)?)?)))
            .collect();
        let Some(words) = against_pipe(&contrasts) else { continue };
        clauses.push(format!("{} {words}", ring.name));
        most = contrasts.iter().map(|(_, contrast)| contrast.effect()).fold(most, f64::max);
        evidence.extend(contrasts.iter().map(
            |(size, contrast)| json!({ "of": ring.name, "to": plain, "block": size, "ratio": contrast.evidence() }),
        ));
    }
    if clauses.is_empty() {
        return None;
    }
    let text = format!(
        "Shared memory against a pipe, {}, by size of {}: {}.",
        situation(job),
        pieces(job),
        clauses.join("; ")
    );
    Some(Found::new("shared-memory", most, text, json!({ "by_block": evidence })))
}

fn against_pipe(contrasts: &[(ByteSize, Contrast)]) -> Option<String> {
    let all: Vec<ByteSize> = contrasts.iter().map(|(size, _)| *size).collect();
    let side = |wanted: fn(&Contrast) -> bool| {
        let those: Vec<&(ByteSize, Contrast)> = contrasts.iter().filter(|(_, contrast)| wanted(contrast)).collect();
        let sizes: Vec<ByteSize> = those.iter().map(|(size, _)| *size).collect();
        let peak = those.into_iter().max_by(|one, other| one.1.effect().total_cmp(&other.1.effect()));
        let peak = peak.map(|(size, contrast)| format!("{} {} at {size}", times(contrast.ratio), interval(contrast)));
        (sizes, peak)
    };
    let (faster, gain) = side(Contrast::more);
    let (slower, loss) = side(Contrast::less);
    let behind = loss.map(|loss| format!("slower with {} ({loss})", spans(&slower, &all)));
    let Some(gain) = gain else {
        return behind.map(|behind| format!("does not beat it anywhere, {behind}"));
    };
    let first = faster[0];
    let from_there: Vec<ByteSize> = all.iter().copied().filter(|size| *size >= first).collect();
    let ahead = match all.len() {
        _ if faster.len() == all.len() && all.len() > 1 => {
            format!("is faster at every size from {first} to {}", all[all.len() - 1])
        }
        _ if faster == from_there && all.len() > 1 => format!("is faster from {first} on"),
        _ => format!("is faster with {}", spans(&faster, &all)),
    };
    let behind = behind.map_or_else(String::new, |behind| format!(", and {behind}"));
    Some(format!("{ahead} ({gain}){behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::findings::{conversations, streams};
    use crate::stats::fixture::{STEADY, record, spoken};

    const SIZES: [&str; 4] = ["64", "1k", "64k", "1m"];
    const IN_PLACE: [(&str, &str); 3] = [("link", "shm"), ("send", "in-place"), ("recv", "in-place")];

    fn sweep(way: &[(&str, &str)], figures: [f64; 4], runs: &[f64]) -> Vec<Record> {
        let at = |(size, figure): (&str, f64)| record("e", &[way, &[("block", size)]].concat(), figure, runs);
        SIZES.into_iter().zip(figures).map(at).collect()
    }

    fn trips(link: &str, rest: &[(&str, &str)], figures: [f64; 4]) -> Vec<Record> {
        let at = |(size, ns): (&str, f64)| spoken(&[rest, &[("link", link), ("block", size)]].concat(), ns, &STEADY);
        SIZES.into_iter().zip(figures).map(at).collect()
    }

    fn texts(rule: fn(&[Subject]) -> Vec<Found>, records: &[Record]) -> Vec<String> {
        let all = [streams(records), conversations(records)];
        all.iter().flat_map(|subjects| rule(subjects)).map(|found| found.finding.text).collect()
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
    fn the_winner_of_each_size_is_told_with_its_lead() {
        assert_eq!(
            texts(best, &three(&STEADY)),
            [
                "Across two cores: shm in-place moves most with blocks of 64 B to 64 KiB, 2.00 GiB/s at 64 B, 5.00 times (5.00 \
                 to 5.00) as fast as pipe; tcp and shm in-place, not to be told apart, move most with blocks of 1 MiB, 4.00 \
                 GiB/s, 2.00 times (2.00 to 2.00) as fast as pipe."
            ]
        );
    }

    #[test]
    fn round_trips_are_won_by_the_shortest() {
        let records = [
            trips("pipe", &[("place", "same")], [4_000.0, 4_000.0, 20_000.0, 300_000.0]),
            trips("shm", &[("place", "same")], [1_000.0, 2_000.0, 10_000.0, 200_000.0]),
            trips("pipe", &[("wait", "spin")], [1000.0, 900.0, 900.0, 900.0]),
            trips("shm", &[("wait", "spin")], [200.0, 200.0, 300.0, 300.0]),
        ]
        .concat();
        assert_eq!(
            texts(best, &records),
            [
                "On one core: shm answers soonest with messages of 64 B to 1 MiB, 1.00 µs at 64 B, 4.00 times (4.00 to 4.00) as fast \
                 as pipe.",
                "Across two cores (spinning): shm answers soonest with messages of 64 B to 1 MiB, 200 ns at 64 B, 5.00 times (4.99 \
                 to 5.01) as fast as pipe.",
            ]
        );
    }

    #[test]
    fn sizes_at_which_two_change_places_are_told() {
        let mut records = three(&STEADY);
        // A twin of the pipe crosses at the same sizes.
        records.extend(sweep(&[("link", "fifo")], [0.39, 0.99, 2.01, 2.01], &STEADY));
        assert_eq!(
            texts(crossing, &records),
            [
                "Links change places across two cores: pipe is faster than tcp with blocks of 64 B to 1 KiB (4.00 times (4.00 to \
                 4.00) at 64 B) and slower with 64 KiB to 1 MiB (0.50 times (0.50 to 0.50) at 1 MiB)."
            ]
        );
        let found = crossing(&streams(&records));
        assert_eq!(found[0].finding.evidence["crossings"].as_array().unwrap().len(), 2);
        // Whoever is ahead first is named first.
        let turned = [sweep(&[("link", "tcp")], [0.1, 0.5, 2.5, 4.0], &STEADY), three(&STEADY)[..4].to_vec()].concat();
        assert!(texts(crossing, &turned)[0].contains(": pipe is faster than tcp with blocks of 64 B"));
    }

    #[test]
    fn shared_memory_is_held_against_a_pipe() {
        let mut records = three(&STEADY);
        records.extend(sweep(&[("link", "shm")], [0.2, 1.0, 3.0, 3.0], &STEADY));
        assert_eq!(
            texts(shared_memory, &records),
            [
                "Shared memory against a pipe, across two cores, by size of blocks: shm in-place is faster at every size from 64 B \
                 to 1 MiB (6.00 times (6.00 to 6.00) at 64 KiB); shm is faster from 64 KiB on (1.50 times (1.50 to 1.50) at 1 \
                 MiB), and slower with 64 B (0.50 times (0.50 to 0.50) at 64 B)."
            ]
        );
        let slow = [three(&STEADY)[..4].to_vec(), sweep(&[("link", "shm")], [0.2, 0.5, 1.0, 1.0], &STEADY)].concat();
        assert!(
            texts(shared_memory, &slow)[0].contains("shm does not beat it anywhere, slower with 64 B to 1 MiB (0.50")
        );
        let same = [three(&STEADY)[..4].to_vec(), sweep(&[("link", "shm")], [0.4, 1.0, 2.0, 2.0], &STEADY)].concat();
        assert_eq!(texts(shared_memory, &same), [""; 0]);
    }

    #[test]
    fn doubt_and_a_single_link_are_silent() {
        let rules = [best, crossing, shared_memory];
        for records in [three(&STEADY[..3]), three(&STEADY)[..4].to_vec()] {
            for rule in rules {
                assert_eq!(texts(rule, &records), [""; 0]);
            }
        }
        // Each with a noise of its own.
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
}
