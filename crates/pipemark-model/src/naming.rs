//! Names of trials, made from the parameters in which they differ. Shared by plans, records, tables, reports and
//! findings.

use std::collections::HashSet;

use crate::job::Job;
use crate::methods::WaitPolicy;
use crate::parameter::{Key, Settings, Value};
use crate::place::Place;

/// The parameters in which jobs differ, starting with those in `first`. The volume of a run is included only if the
/// other parameters don't distinguish all jobs, because suites give small blocks a smaller total. If only some jobs run
/// programs in other languages, the language comes first. Then come the parameters in which these jobs differ from each
/// other, or the other jobs from each other.
pub fn differing_keys(jobs: &[&Job], first: &[Key]) -> Vec<Key> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let settings: Vec<Settings> = jobs.iter().map(|job| job.settings()).collect();
    // An unset read block equals the block, so it isn't a separate difference.
    let value = |settings: &Settings, key: Key| match key {
        Key::ReadBlock => settings.get(key),
        _ => settings.effective(key),
    };
    let (programs, own): (Vec<&Settings>, Vec<&Settings>) =
        settings.iter().partition(|settings| settings.get(Key::Language).is_some());
    let beside = mixes_foreign_programs(jobs);
    let mut keys = if beside { vec![Key::Language] } else { Vec::new() };
    for key in first.iter().copied().chain(Key::iter()) {
        let differs = || match key {
            _ if beside => {
                [&programs, &own].iter().any(|kind| kind.iter().any(|one| value(one, key) != value(kind[0], key)))
            }
            // Jobs without a program already differ from the others in the language.
            Key::Program => {
                let mut values = settings.iter().filter_map(|one| value(one, key));
                values.next().is_some_and(|first| values.any(|other| other != first))
            }
            _ => settings.iter().any(|one| value(one, key) != value(&settings[0], key)),
        };
        if !keys.contains(&key) && differs() {
            keys.push(key);
        }
    }
    let without_volume: Vec<Key> = keys.iter().copied().filter(|key| !key.is_volume()).collect();
    let mut seen = HashSet::new();
    let values = |one: &Settings| without_volume.iter().map(|key| value(one, *key)).collect::<Vec<_>>();
    if settings.iter().all(|one| seen.insert(values(one))) { without_volume } else { keys }
}

/// Whether some jobs run programs in other languages, and others use pipemark's own source and sink.
pub fn mixes_foreign_programs(jobs: &[&Job]) -> bool {
    jobs.iter().any(|job| job.entrant().is_some()) && jobs.iter().any(|job| job.ends().is_some())
}

/// Names each job by the parameters in which the jobs differ, except those in `without`.
pub fn names(jobs: &[&Job], without: &[Key]) -> Vec<String> {
    let mut keys = differing_keys(jobs, &[]);
    // If the jobs don't differ, use the most important parameters.
    if keys.is_empty() {
        keys = vec![Key::Link, Key::Send, Key::Recv, Key::Place, Key::Block];
    }
    // Send and receive methods are named together, so if one is in `without`, both are omitted.
    let ends = [Key::Send, Key::Recv];
    let without_ends = ends.iter().any(|key| without.contains(key));
    keys.retain(|key| !(without.contains(key) || without_ends && ends.contains(key)));
    jobs.iter().map(|job| name(job, &keys)).collect()
}

/// Names a job by the parameters in `keys`. Default pages and waits are omitted unless the name would be empty.
pub fn name(job: &Job, keys: &[Key]) -> String {
    let settings = job.settings();
    if job.is_memory_copy() {
        return match settings.block {
            Some(size) if keys.contains(&Key::Block) => format!("memory copy, {size} blocks"),
            _ => "memory copy".to_owned(),
        };
    }
    // Both methods are named even if only one is in `keys`, because one method alone could be the source's or the
    // sink's.
    let methods = keys.iter().copied().find(|key| matches!(key, Key::Send | Key::Recv));
    let words = |with_defaults: bool| {
        let word = |key: &Key| {
            if *key == Key::Language && job.ends().is_some() {
                return Some("pipemark".to_owned());
            }
            let value = settings.effective(*key)?;
            match (&value, settings.send, settings.recv) {
                (Value::Pages(_) | Value::Wait(_), ..)
                    if !with_defaults && Some(&value) == key.default_value().as_ref() =>
                {
                    None
                }
                (Value::Send(_) | Value::Recv(_), Some(send), Some(recv)) => {
                    (methods == Some(*key)).then(|| format!("{send} → {recv}"))
                }
                _ => Some(phrase(&value)),
            }
        };
        keys.iter().filter_map(word).collect::<Vec<_>>().join(", ")
    };
    let short = words(false);
    if short.is_empty() { words(true) } else { short }
}

/// The parameters that a memory copy has. It has no source and sink.
pub const MEMORY_COPY_KEYS: [Key; 6] = [Key::Link, Key::Block, Key::Pages, Key::Align, Key::Total, Key::Time];

/// The parameters that all jobs have in common, as text. Most parameters with default values are omitted.
pub fn shared(jobs: &[&Job]) -> Vec<String> {
    let [first, ..] = jobs else { return Vec::new() };
    let settings = first.settings();
    let common = |key: &Key| jobs.iter().all(|job| job.value(*key) == settings.effective(*key));
    let mut keys = vec![Key::Link, Key::Send, Key::Recv, Key::Block, Key::ReadBlock, Key::Capacity, Key::Place];
    keys.extend(Key::iter().filter(|key| !keys.contains(key)).collect::<Vec<_>>());
    keys.retain(|key| common(key) && (!first.is_memory_copy() || MEMORY_COPY_KEYS.contains(key)));
    let both_methods = keys.contains(&Key::Send) && keys.contains(&Key::Recv);
    let word = |key: &Key| {
        let value = settings.get(*key)?;
        let shown = match key {
            Key::Verify if settings.source.is_some() => false,
            Key::Send | Key::Recv | Key::Block | Key::Place | Key::Total | Key::Time => true,
            Key::Wait => false,
            Key::Capacity if jobs.iter().all(|job| job.link().is_pipe()) => true,
            Key::Stage => jobs.iter().any(|job| job.chain().is_some()),
            _ => Some(&value) != key.default_value().as_ref(),
        };
        match &value {
            _ if !shown => None,
            Value::Send(send) if both_methods => Some(format!("{send} → {}", settings.recv?)),
            Value::Recv(_) if both_methods => None,
            Value::Send(_) | Value::Recv(_) => Some(format!("{key} {value}")),
            _ => Some(phrase(&value)),
        }
    };
    keys.iter().filter_map(word).collect()
}

/// A value with its unit or noun: `64 KiB blocks`, `capacity 1 MiB`, `2 stages`.
pub fn phrase(value: &Value) -> String {
    let count = |number: u32, thing: &str| match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    };
    match value {
        Value::Feed(feed) => format!("fed by {feed}"),
        Value::Place(place) => match place {
            Place::Free => "unpinned".to_owned(),
            Place::Same => "1 core".to_owned(),
            Place::Cross => "2 cores".to_owned(),
            Place::Pinned(writer, reader) => format!("CPUs {writer} and {reader}"),
        },
        Value::Wait(WaitPolicy::Block) => "blocking".to_owned(),
        Value::Wait(WaitPolicy::Poll) => "polling".to_owned(),
        Value::Wait(WaitPolicy::Spin) => "spinning".to_owned(),
        Value::Link(_)
        | Value::Mode(_)
        | Value::Language(_)
        | Value::Program(_)
        | Value::Filter(_)
        | Value::Stage(_) => value.to_string(),
        Value::Source(source) => format!("source {source}"),
        Value::Block(size) => format!("{size} blocks"),
        Value::Pages(kind) => format!("{kind} pages"),
        Value::Length(length) => count(*length, "stage"),
        Value::Pairs(pairs) => count(*pairs, "pair"),
        Value::Writers(writers) => count(*writers, "writer"),
        Value::Readers(readers) => count(*readers, "reader"),
        Value::Total(_) | Value::Time(_) => format!("{value} per run"),
        _ => format!("{} {value}", value.key().to_string().replace('-', " ")),
    }
}

/// A placement as a phrase within a sentence: `across two cores`.
pub fn placement_phrase(place: Place) -> String {
    match place {
        Place::Free => "unpinned".to_owned(),
        Place::Same => "on one core".to_owned(),
        Place::Cross => "across two cores".to_owned(),
        Place::Pinned(writer, reader) if writer == reader => format!("on CPU {writer}"),
        Place::Pinned(writer, reader) => format!("from CPU {writer} to CPU {reader}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(all: &[&str]) -> Vec<Job> {
        let job = |words: &&str| {
            Job::try_from(Settings::of(words.split_whitespace().map(|word| Value::parse_pair(word).unwrap()))).unwrap()
        };
        all.iter().map(job).collect()
    }

    fn named(all: &[&str]) -> Vec<String> {
        let jobs = jobs(all);
        names(&jobs.iter().collect::<Vec<_>>(), &[])
    }

    #[test]
    fn names_contain_only_differing_parameters() {
        assert_eq!(named(&["block=1k total=1m", "block=64k total=1g"]), ["1 KiB blocks", "64 KiB blocks"]);
        assert_eq!(named(&["total=1m", "total=1g"]), ["1 MiB per run", "1 GiB per run"]);
        assert_eq!(
            named(&["send=vmsplice", "recv=splice", "capacity=1m"]),
            ["vmsplice → read, capacity default", "write → splice, capacity default", "write → read, capacity 1 MiB"]
        );
        assert_eq!(named(&["length=1", "length=2"]), ["1 stage", "2 stages"]);
        assert_eq!(named(&[""]), ["pipe, write → read, 2 cores, 64 KiB blocks"]);
    }

    #[test]
    fn foreign_programs_are_named_first() {
        assert_eq!(
            named(&[
                "block=64 total=1m verify=count place=cross",
                "block=1k total=1m verify=count place=cross",
                "language=theirs program=idiomatic block=64 total=1m verify=none place=free",
                "language=theirs program=idiomatic block=1k total=1m verify=none place=free",
            ]),
            ["pipemark, 64 B blocks", "pipemark, 1 KiB blocks", "theirs, 64 B blocks", "theirs, 1 KiB blocks"]
        );
        assert_eq!(
            named(&["block=64", "language=theirs program=tuned block=64 total=1m verify=none place=free"]),
            ["pipemark", "theirs"]
        );
    }

    #[test]
    fn a_read_block_equal_to_the_block_distinguishes_no_trials() {
        let all = jobs(&["block=1k", "block=2k read-block=2k"]);
        assert_eq!(differing_keys(&all.iter().collect::<Vec<_>>(), &[]), [Key::Block]);
    }
}
