//! CPUs in groups that share a core, an L3 cache, a die, a package or a node.

use std::collections::BTreeMap;

use pipemark_model::{Cpu, CpuTopology};

/// CPUs by their place in a list, divided into groups.
pub type Groups = Vec<Vec<usize>>;

/// What CPUs share, as a number that is equal for those that share it.
type Part = fn(&CpuTopology) -> Option<(u32, u32)>;

/// What the CPUs of a group share: the name of the groups, and of one group.
const SHARED: [(&str, &str, Part); 5] = [
    ("cores", "one core", |own| Some((own.package, own.core))),
    ("L3 caches", "one L3 cache", |own| own.l3.map(|l3| (0, l3))),
    ("dies", "one die", |own| own.die.map(|die| (own.package, die))),
    ("packages", "one package", |own| Some((0, own.package))),
    ("nodes", "one node", |own| own.node.map(|node| (0, node))),
];

/// The groups of CPUs that share something.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedGroups {
    /// The name of the groups, such as `cores`.
    pub name: &'static str,
    /// The name of one group, such as `one core`.
    pub of_one: &'static str,
    pub groups: Groups,
}

/// The groups of CPUs that share something, smallest groups first. Groups that consist of parts of others are omitted,
/// and so is what all CPUs share or none.
pub fn shared(cpus: &[Cpu], topology: &[CpuTopology]) -> Vec<SharedGroups> {
    let of_cpu = |cpu: &Cpu| topology.iter().find(|own| own.cpu == *cpu);
    let divide = |part: Part| -> Option<Groups> {
        let mut groups: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (at, cpu) in cpus.iter().enumerate() {
            groups.entry(part(of_cpu(cpu)?)?).or_default().push(at);
        }
        let mut groups: Groups = groups.into_values().collect();
        groups.sort();
        (groups.len() > 1 && groups.len() < cpus.len()).then_some(groups)
    };
    let of = |(name, of_one, part): (&'static str, &'static str, Part)| {
        Some(SharedGroups { name, of_one, groups: divide(part)? })
    };
    let mut all: Vec<SharedGroups> = SHARED.into_iter().filter_map(of).collect();
    all.sort_by_key(|own| std::cmp::Reverse(own.groups.len()));
    let mut nested: Vec<SharedGroups> = Vec::new();
    for own in all {
        let contains =
            |smaller: &Vec<usize>| own.groups.iter().any(|group| smaller.iter().all(|at| group.contains(at)));
        let is_larger = |last: &SharedGroups| last.groups.len() > own.groups.len() && last.groups.iter().all(contains);
        if nested.last().is_none_or(is_larger) {
            nested.push(own);
        }
    }
    nested
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A machine with this many packages, L3 caches in each package, and cores with each L3 cache. Each core has two
    /// threads, of which the second have the higher numbers.
    pub fn machine(packages: u32, caches: u32, cores: u32) -> Vec<CpuTopology> {
        let count = packages * caches * cores;
        let cpu = |cpu: u32| {
            let core = cpu % count;
            CpuTopology {
                cpu: Cpu(cpu as u16),
                core,
                package: core / cores / caches,
                node: (packages > 1).then_some(core / cores / caches),
                die: None,
                l3: Some(core / cores * cores),
            }
        };
        (0..2 * count).map(cpu).collect()
    }

    #[test]
    fn what_cpus_share_is_found_from_small_to_large() {
        let names = |packages, caches, cores| {
            let topology = machine(packages, caches, cores);
            let cpus: Vec<Cpu> = topology.iter().map(|own| own.cpu).collect();
            let found = shared(&cpus, &topology);
            found.iter().map(|own| (own.name, own.groups.len())).collect::<Vec<_>>()
        };
        assert_eq!(names(2, 4, 8), [("cores", 64), ("L3 caches", 8), ("packages", 2)]);
        assert_eq!(names(1, 2, 4), [("cores", 8), ("L3 caches", 2)]);
        assert_eq!(names(2, 1, 4), [("cores", 8), ("L3 caches", 2)], "a package has one L3 cache");
        assert_eq!(names(1, 1, 4), [("cores", 4)]);
        assert_eq!(names(1, 1, 1), [], "all share all");
        assert_eq!(shared(&[Cpu(0), Cpu(1)], &[]), [], "nothing is known");
    }
}
