//! Groups of items that are closer to each other than to all others, from the distances of pairs. Not every pair needs a
//! distance. Groups may consist of smaller groups, as packages consist of cores.

use std::collections::{BTreeMap, BTreeSet};

use pipemark_model::total_order;

use crate::estimate::median;

/// The least ratio of two neighbouring distances, in ascending order, between which groups may be divided.
const MIN_GAP: f64 = 1.25;
/// The least share of distances on the right side of the division, within groups and across.
const MIN_SHARE: f64 = 0.95;
/// The largest number of gaps at which a division is tried, widest first.
const MAX_GAPS: usize = 50;

/// A pair of items and their distance. A pair may occur in both directions.
pub type Distance = (usize, usize, f64);

/// A division into groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// The items of each group, in ascending order. Each group has at least two items.
    pub groups: Vec<Vec<usize>>,
    /// The distances within groups, without those within the groups of the level below.
    pub within: Vec<f64>,
}

/// The levels of groups, smallest groups first, and the distances across the largest groups. Without groups, there are no
/// levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Levels {
    pub levels: Vec<Level>,
    pub across: Vec<f64>,
}

impl Levels {
    /// The levels with these groups, which must be nested, smallest groups first.
    pub fn of(divisions: Vec<Vec<Vec<usize>>>, distances: &[Distance]) -> Levels {
        let mut rest = distances.to_vec();
        let mut levels = Vec::new();
        for groups in divisions {
            let group = indices(&groups);
            let (within, across): (Vec<Distance>, Vec<Distance>) =
                rest.into_iter().partition(|(one, other, _)| group.get(one) == group.get(other));
            levels.push(Level { groups, within: figures(&within) });
            rest = across;
        }
        Levels { levels, across: figures(&rest) }
    }
}

/// Finds the levels of groups of `count` items. Items are divided at the widest gap between distances, so that nearly
/// all distances within groups are below the gap and nearly all across are above. The distances within the groups, and
/// the medians of those across each two groups, are then divided in the same way.
pub fn levels(count: usize, distances: &[Distance]) -> Levels {
    Levels::of(divisions(&vec![0; count], distances), distances)
}

/// `parents` has the group to which each item belongs already.
fn divisions(parents: &[usize], distances: &[Distance]) -> Vec<Vec<Vec<usize>>> {
    let Some(Division { groups, within, across }) = divide_at_widest_gap(parents, distances) else { return Vec::new() };
    let group = indices(&groups);
    let mut pairs: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for (one, other, distance) in &across {
        let (one, other) = (group[one], group[other]);
        pairs.entry((one.min(other), one.max(other))).or_default().push(*distance);
    }
    let between: Vec<Distance> =
        pairs.iter().filter_map(|((one, other), all)| Some((*one, *other, median(all)?))).collect();
    let of_items = |larger: &Vec<usize>| {
        let mut items: Vec<usize> = larger.iter().flat_map(|group| groups[*group].clone()).collect();
        items.sort_unstable();
        items
    };
    let larger = divisions(&vec![0; groups.len()], &between);
    let larger: Vec<Vec<Vec<usize>>> = larger.iter().map(|division| division.iter().map(of_items).collect()).collect();
    let smaller = divisions(&group.into_values().collect::<Vec<_>>(), &within);
    [smaller, vec![groups], larger].concat()
}

/// Groups, and the distances within and across them.
struct Division {
    groups: Vec<Vec<usize>>,
    within: Vec<Distance>,
    across: Vec<Distance>,
}

/// Divides the items at the widest gap with which the groups are clear. `None` if there is no such gap, or fewer than
/// two groups.
fn divide_at_widest_gap(parents: &[usize], distances: &[Distance]) -> Option<Division> {
    let mut sorted = figures(distances);
    sorted.sort_unstable_by(f64::total_cmp);
    let mut gaps: Vec<(f64, f64)> = sorted
        .windows(2)
        .filter(|two| two[0] > 0.0 && two[1] >= MIN_GAP * two[0])
        .map(|two| (two[1] / two[0], two[0]))
        .collect();
    gaps.sort_by_cached_key(|one| total_order(-one.0));
    gaps.into_iter().take(MAX_GAPS).find_map(|(_, below)| divide(parents, distances, below))
}

fn divide(parents: &[usize], distances: &[Distance], below: f64) -> Option<Division> {
    let count = parents.len();
    // Each item points to an item of its group; the first one of a group points to itself.
    let mut first: Vec<usize> = (0..count).collect();
    let find = |first: &mut Vec<usize>, mut item: usize| {
        while first[item] != item {
            first[item] = first[first[item]];
            item = first[item];
        }
        item
    };
    for (one, other, _) in distances.iter().filter(|(_, _, distance)| *distance <= below) {
        let (one, other) = (find(&mut first, *one), find(&mut first, *other));
        first[one.max(other)] = one.min(other);
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    (0..count).for_each(|item| groups.entry(find(&mut first, item)).or_default().push(item));
    let groups: Vec<Vec<usize>> = groups.into_values().collect();
    let group = indices(&groups);
    let (within, across): (Vec<Distance>, Vec<Distance>) =
        distances.iter().partition(|(one, other, _)| group[one] == group[other]);
    let near = within.iter().filter(|(_, _, distance)| *distance <= below).count();
    let far = across.iter().filter(|(_, _, distance)| *distance > below).count();
    let is_clear = near as f64 >= MIN_SHARE * within.len() as f64 && far as f64 >= MIN_SHARE * across.len() as f64;
    // Two groups between which nothing was measured may be one.
    let mut in_parent: BTreeMap<usize, usize> = BTreeMap::new();
    groups.iter().for_each(|items| *in_parent.entry(parents[items[0]]).or_default() += 1);
    let between = |(one, other, _): &Distance| (group[one].min(group[other]), group[one].max(group[other]));
    let is_measured = BTreeSet::from_iter(across.iter().map(between)).len()
        == in_parent.values().map(|count| count * (count - 1) / 2).sum::<usize>();
    let is_divided = groups.len() > 1 && groups.iter().all(|items| items.len() > 1) && far > 0;
    (is_divided && is_clear && is_measured).then_some(Division { groups, within, across })
}

/// The number of each item's group.
fn indices(groups: &[Vec<usize>]) -> BTreeMap<usize, usize> {
    let items = groups.iter().enumerate().flat_map(|(group, items)| items.iter().map(move |item| (*item, group)));
    items.collect()
}

fn figures(distances: &[Distance]) -> Vec<f64> {
    distances.iter().map(|(_, _, distance)| *distance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pairs of `count` items, with the distance that `far` gives to the smallest of `sizes` whose groups have both,
    /// and some scatter.
    fn pairs(count: usize, sizes: &[(usize, f64)], across: f64) -> Vec<Distance> {
        let scatter = |one: usize, other: usize| 1.0 + 0.01 * ((one * 7 + other * 13) % 10) as f64;
        let all = (0..count).flat_map(|one| (0..count).map(move |other| (one, other)));
        all.filter(|(one, other)| one != other)
            .map(|(one, other)| {
                let near = sizes.iter().find(|(size, _)| one / size == other / size);
                (one, other, near.map_or(across, |(_, distance)| *distance) * scatter(one, other))
            })
            .collect()
    }

    /// The number of groups of each level.
    fn groups(count: usize, distances: &[Distance]) -> Vec<usize> {
        levels(count, distances).levels.iter().map(|level| level.groups.len()).collect()
    }

    #[test]
    fn groups_are_found_at_the_gap() {
        let found = levels(16, &pairs(16, &[(8, 1.9)], 3.4));
        assert_eq!(found.levels.len(), 1);
        assert_eq!(found.levels[0].groups, [(0..8).collect::<Vec<_>>(), (8..16).collect()]);
        assert_eq!((found.levels[0].within.len(), found.across.len()), (2 * 56, 2 * 64));
        assert_eq!(groups(576, &pairs(576, &[(96, 1.0)], 2.0)), [6]);
    }

    /// The distances in ns are those of published maps: two packages of 16 cores with two threads each, a processor of
    /// eight chiplets, and two of them.
    #[test]
    fn groups_of_groups_are_found() {
        assert_eq!(groups(64, &pairs(64, &[(2, 7.0), (32, 48.0)], 136.0)), [32, 2]);
        assert_eq!(groups(128, &pairs(128, &[(2, 10.0), (16, 26.0)], 115.0)), [64, 8]);
        assert_eq!(groups(256, &pairs(256, &[(2, 8.0), (8, 25.0), (128, 120.0)], 261.0)), [128, 32, 2]);
        let found = levels(64, &pairs(64, &[(2, 7.0), (32, 48.0)], 136.0));
        let sizes: Vec<usize> = found.levels.iter().map(|level| level.within.len()).collect();
        assert_eq!(sizes, [64, 64 * 30], "the pairs of a core aren't counted again");
        assert_eq!(found.across.len(), 64 * 32);
    }

    /// In a package with a mesh, distances differ by a factor of two without a gap.
    #[test]
    fn distances_within_a_group_may_vary() {
        let mut all = pairs(64, &[(2, 7.0), (32, 48.0)], 141.0);
        for (at, (one, other, distance)) in all.iter_mut().enumerate() {
            if *one / 2 != *other / 2 && *one / 32 == *other / 32 {
                *distance *= 1.0 + 0.9 * (at % 41) as f64 / 40.0;
            }
        }
        assert_eq!(groups(64, &all), [32, 2]);
    }

    #[test]
    fn a_sample_of_the_pairs_is_enough() {
        let all = pairs(64, &[(16, 1.0)], 2.0);
        let some: Vec<_> = all.into_iter().enumerate().filter(|(at, _)| at % 3 == 0).map(|(_, pair)| pair).collect();
        assert_eq!(groups(64, &some), [4]);
    }

    #[test]
    fn groups_between_which_nothing_was_measured_are_not_divided() {
        // Pairs of neighbours in a ring of 16, in two halves: within a half, most pairs are unknown.
        let ring: Vec<Distance> =
            (0..16).map(|one| (one, (one + 1) % 16, if one % 2 == 0 { 1.0 } else { 4.0 })).collect();
        assert!(groups(16, &ring).is_empty(), "eight pairs that meet only their neighbours");
    }

    #[test]
    fn equal_distances_have_no_groups() {
        assert!(groups(8, &pairs(8, &[(8, 1.0)], 1.0)).is_empty());
        assert!(
            groups(8, &pairs(8, &[(4, 1.0)], 1.1)).is_empty(),
            "the difference is within the scatter of such figures"
        );
        assert!(groups(2, &[(0, 1, 1.0), (1, 0, 3.0)]).is_empty(), "one pair in two directions");
        // One slow item is no group.
        assert!(groups(3, &[(0, 1, 1.0), (0, 2, 5.0), (1, 2, 5.0)]).is_empty());
    }
}
