//! Mechanisms that can be held against each other: measured in one situation, at the same sizes, for bytes that arrive.

use std::collections::BTreeMap;

use super::{Subject, groups};
use crate::model::{ByteSize, LinkKind, SendMethod};

/// One mechanism by size.
pub(super) struct Rival<'a> {
    pub name: String,
    pub link: LinkKind,
    by_size: BTreeMap<ByteSize, Subject<'a>>,
}

impl<'a> Rival<'a> {
    pub fn at(&self, size: ByteSize) -> Option<Subject<'a>> {
        self.by_size.get(&size).copied()
    }

    /// The smallest first.
    pub fn sweep(&self) -> Vec<Subject<'a>> {
        self.by_size.values().copied().collect()
    }
}

/// Two links or more in one situation.
pub(super) struct Rivals<'a> {
    pub all: Vec<Rival<'a>>,
    /// Every size that one of them was measured at, ascending.
    pub sizes: Vec<ByteSize>,
}

impl<'a> Rivals<'a> {
    /// Any of them, for what they have in common.
    pub fn example(&self) -> Subject<'a> {
        *self.all[0].by_size.values().next().expect("made of subjects")
    }
}

/// The groups of subjects that differ in the link, in how bytes go in and out of it, and in size. Bytes that are dropped
/// unseen, and one page sent again and again, are no rivals of bytes that arrive.
pub(super) fn rivals<'a>(subjects: &[Subject<'a>]) -> Vec<Rivals<'a>> {
    let arriving: Vec<Subject> =
        subjects.iter().copied().filter(|s| s.ends().recv.touches() && s.ends().send != SendMethod::Tee).collect();
    let groups = groups(&arriving, |s| {
        (s.link, s.send, s.recv, s.block) = (None, None, None, None);
    });
    let several = |group: &Vec<Subject>| group.iter().any(|subject| subject.ends().link != group[0].ends().link);
    groups.into_iter().filter(several).map(of_group).collect()
}

fn of_group(group: Vec<Subject<'_>>) -> Rivals<'_> {
    let mut all: Vec<Rival> = Vec::new();
    for subject in &group {
        let name = subject.ends().mechanism();
        let by_size = [(subject.ends().block, *subject)];
        match all.iter_mut().find(|rival| rival.name == name) {
            Some(rival) => rival.by_size.extend(by_size),
            None => all.push(Rival { name, link: subject.ends().link, by_size: by_size.into() }),
        }
    }
    let mut sizes: Vec<ByteSize> = group.iter().map(|subject| subject.ends().block).collect();
    sizes.sort_unstable();
    sizes.dedup();
    Rivals { all, sizes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::findings::streams;
    use crate::stats::fixture::{STEADY, record};

    #[test]
    fn only_what_arrives_in_one_situation_is_compared() {
        let of = |params: &[(&str, &str)]| record("e", params, 1.0, &STEADY);
        let all = [
            of(&[("block", "1m")]),
            of(&[]),
            of(&[("link", "shm")]),
            of(&[("link", "shm"), ("send", "in-place"), ("recv", "in-place")]),
            of(&[("send", "vmsplice"), ("recv", "splice")]),
            of(&[("send", "tee")]),
            of(&[("link", "null")]),
            of(&[("link", "tcp"), ("place", "same")]),
            of(&[("link", "tcp"), ("wait", "spin")]),
        ];
        let found = rivals(&streams(&all));
        let names: Vec<Vec<&str>> =
            found.iter().map(|rivals| rivals.all.iter().map(|rival| rival.name.as_str()).collect()).collect();
        assert_eq!(names, [["pipe", "shm", "shm in-place"]]);
        assert_eq!(found[0].sizes, [ByteSize(64 << 10), ByteSize(1 << 20)]);
    }
}
