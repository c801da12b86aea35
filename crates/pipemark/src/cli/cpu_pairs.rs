//! The pairs of CPUs of `--place all`: every CPU as writer with every other as reader, in both directions. On large
//! machines, and if the time is short, a sample of the pairs in which each kind of neighbour occurs.

use std::collections::BTreeMap;

use pipemark_model::{CpuTopology, Place};

/// The largest number of pairs that are measured. At five runs of a tenth of a second each, they take about 17 minutes.
pub const MAX_PAIRS: usize = 2000;

/// What two CPUs share: a core, an L3 cache, and the nodes and packages of both.
type Neighbours = (bool, bool, (u32, u32), (u32, u32));

/// The pairs, in the order of nodes, packages, dies, L3 caches, cores and CPUs. With more than `most` pairs, equally many
/// of each kind: threads of one core, with one L3 cache and with two, within each node and package, and across each two
/// of these.
pub fn pairs(topology: &[CpuTopology], most: usize) -> Vec<Place> {
    let mut cpus: Vec<&CpuTopology> = topology.iter().collect();
    cpus.sort_by_key(|own| own.position());
    let all: Vec<(&CpuTopology, &CpuTopology)> = cpus
        .iter()
        .flat_map(|writer| {
            cpus.iter().filter(move |reader| reader.cpu != writer.cpu).map(move |reader| (*writer, *reader))
        })
        .collect();
    let place = |(writer, reader): &(&CpuTopology, &CpuTopology)| Place::Pinned(writer.cpu, reader.cpu);
    if all.len() <= most {
        return all.iter().map(place).collect();
    }
    let mut kinds: BTreeMap<Neighbours, Vec<Place>> = BTreeMap::new();
    for pair in &all {
        let home = |own: &CpuTopology| (own.node.unwrap_or(0), own.package);
        let is_core = pair.0.core == pair.1.core && pair.0.package == pair.1.package;
        let is_l3 = pair.0.l3.is_some() && pair.0.l3 == pair.1.l3;
        kinds.entry((is_core, is_l3, home(pair.0), home(pair.1))).or_default().push(place(pair));
    }
    let each = (most / kinds.len()).max(1);
    // Evenly spread over the pairs of a kind, so that no CPU is preferred, and over the kinds if not even one pair of
    // each kind is measured.
    let sampled = kinds.into_values().flat_map(|pairs| spread(&pairs, each)).collect::<Vec<_>>();
    spread(&sampled, most.max(1))
}

/// At most `most` of the pairs, evenly spread.
fn spread(pairs: &[Place], most: usize) -> Vec<Place> {
    let count = most.min(pairs.len());
    (0..count).map(|nth| pairs[nth * pairs.len() / count]).collect()
}

/// At most `most` pairs of the CPUs that this process may use. With one CPU there is no pair.
///
/// # Errors
/// If there is only one CPU.
pub fn here(most: usize) -> Result<Vec<Place>, String> {
    let topology = pipemark_host::survey().topology;
    match topology.as_slice() {
        [] | [_] => Err("'all' needs two CPUs, but this process may use one; use same".to_owned()),
        topology => Ok(pairs(topology, most.min(MAX_PAIRS))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pipemark_model::Cpu;

    use super::*;

    /// A machine with nodes of N cores with two threads each. The second threads have the higher numbers.
    fn machine(nodes: u16, cores: u16) -> Vec<CpuTopology> {
        let count = nodes * cores;
        let cpu = |cpu: u16| {
            let core = cpu % count;
            CpuTopology {
                cpu: Cpu(cpu),
                core: core.into(),
                package: u32::from(core / cores),
                node: Some(u32::from(core / cores)),
                die: None,
                // Two L3 caches in each package.
                l3: Some(u32::from(core / (cores / 2).max(1) * (cores / 2).max(1))),
            }
        };
        (0..2 * count).map(cpu).collect()
    }

    #[test]
    fn both_directions_of_every_pair_are_measured() {
        let pairs = pairs(&machine(2, 2), MAX_PAIRS);
        assert_eq!(pairs.len(), 8 * 7);
        assert_eq!(BTreeSet::from_iter(&pairs).len(), pairs.len());
        let pinned = |writer, reader| Place::Pinned(Cpu(writer), Cpu(reader));
        assert!(pairs.contains(&pinned(0, 7)) && pairs.contains(&pinned(7, 0)) && !pairs.contains(&pinned(3, 3)));
        assert_eq!(pairs[0], pinned(0, 4), "the threads of one core are next to each other");
    }

    #[test]
    fn a_large_machine_is_sampled_in_all_its_parts() {
        let topology = machine(6, 48);
        assert_eq!(topology.len(), 576);
        let pairs = pairs(&topology, MAX_PAIRS);
        assert!(pairs.len() <= MAX_PAIRS && pairs.len() > MAX_PAIRS / 2, "{}", pairs.len());
        let home =
            |cpu: Cpu| topology.iter().find(|own| own.cpu == cpu).map(|own| (own.package, own.core, own.l3)).unwrap();
        let kinds: BTreeSet<(u32, u32, bool, bool)> = pairs
            .iter()
            .map(|place| {
                let Place::Pinned(writer, reader) = place else { unreachable!() };
                let (one, other) = (home(*writer), home(*reader));
                (one.0, other.0, one == other, one.2 == other.2)
            })
            .collect();
        let message = "each two packages in both directions, two L3 caches in a package, the threads of one core";
        assert_eq!(kinds.len(), 6 * 6 + 6 + 6, "{message}");
        // With less time than for each kind, pairs within packages and across them are still measured.
        let few = super::pairs(&topology, 12);
        let is_within = |place: &&Place| matches!(place, Place::Pinned(one, other) if home(*one).0 == home(*other).0);
        let within = few.iter().filter(is_within).count();
        assert!(few.len() == 12 && (1..12).contains(&within), "{few:?}");
    }
}
