//! Groups of items that are closer to each other than to all others, from the distances of pairs. Not every pair needs a
//! distance.

use pipemark_model::total_order;

/// The least ratio of two neighbouring distances, in ascending order, between which groups may be divided.
const MIN_GAP: f64 = 1.25;
/// The least share of distances on the right side of the division, within groups and across.
const MIN_SHARE: f64 = 0.95;

/// A division into groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    /// The items of each group, in ascending order. Each group has at least two items.
    pub groups: Vec<Vec<usize>>,
    /// The distances within groups.
    pub within: Vec<f64>,
    /// The distances across groups.
    pub across: Vec<f64>,
}

/// Divides `count` items at the widest gap between distances, so that nearly all distances within groups are below the
/// gap and nearly all across are above. `None` if there is no such gap, or fewer than two groups. `distances` has the
/// known pairs, each with its distance; a pair may occur in both directions.
pub fn clusters(count: usize, distances: &[(usize, usize, f64)]) -> Option<Clusters> {
    let mut sorted: Vec<f64> = distances.iter().map(|(_, _, distance)| *distance).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut gaps: Vec<(f64, f64)> = sorted
        .windows(2)
        .filter(|two| two[0] > 0.0 && two[1] >= MIN_GAP * two[0])
        .map(|two| (two[1] / two[0], two[0]))
        .collect();
    gaps.sort_by_cached_key(|one| total_order(-one.0));
    gaps.into_iter().find_map(|(_, below)| divide(count, distances, below))
}

fn divide(count: usize, distances: &[(usize, usize, f64)], below: f64) -> Option<Clusters> {
    // The group of an item is that of the first item that it is near to, directly or through others.
    let mut group: Vec<usize> = (0..count).collect();
    for (one, other, _) in distances.iter().filter(|(_, _, distance)| *distance <= below) {
        let (from, to) = (group[*one].max(group[*other]), group[*one].min(group[*other]));
        group.iter_mut().filter(|own| **own == from).for_each(|own| *own = to);
    }
    let groups: Vec<Vec<usize>> = (0..count)
        .map(|first| (0..count).filter(|item| group[*item] == first).collect::<Vec<_>>())
        .filter(|items| !items.is_empty())
        .collect();
    let (within, across): (Vec<_>, Vec<_>) = distances.iter().partition(|(one, other, _)| group[*one] == group[*other]);
    let near = within.iter().filter(|(_, _, distance)| *distance <= below).count();
    let far = across.iter().filter(|(_, _, distance)| *distance > below).count();
    let is_clear = near as f64 >= MIN_SHARE * within.len() as f64 && far as f64 >= MIN_SHARE * across.len() as f64;
    let of = |pairs: Vec<(usize, usize, f64)>| pairs.into_iter().map(|(_, _, distance)| distance).collect();
    (groups.len() > 1 && groups.iter().all(|items| items.len() > 1) && is_clear).then(|| Clusters {
        groups,
        within: of(within),
        across: of(across),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All pairs of `count` items, with this distance within groups of `size` items and that distance across, and some
    /// scatter.
    fn pairs(count: usize, size: usize, near: f64, far: f64) -> Vec<(usize, usize, f64)> {
        let scatter = |one: usize, other: usize| 1.0 + 0.01 * ((one * 7 + other * 13) % 10) as f64;
        let all = (0..count).flat_map(|one| (0..count).map(move |other| (one, other)));
        all.filter(|(one, other)| one != other)
            .map(|(one, other)| {
                let distance = if one / size == other / size { near } else { far };
                (one, other, distance * scatter(one, other))
            })
            .collect()
    }

    #[test]
    fn groups_are_found_at_the_gap() {
        let found = clusters(16, &pairs(16, 8, 1.9, 3.4)).unwrap();
        assert_eq!(found.groups, [(0..8).collect::<Vec<_>>(), (8..16).collect()]);
        assert_eq!((found.within.len(), found.across.len()), (2 * 56, 2 * 64));
        assert_eq!(clusters(576, &pairs(576, 96, 1.0, 2.0)).unwrap().groups.len(), 6);
    }

    #[test]
    fn a_sample_of_the_pairs_is_enough() {
        let all = pairs(64, 16, 1.0, 2.0);
        let some: Vec<_> = all.into_iter().enumerate().filter(|(at, _)| at % 3 == 0).map(|(_, pair)| pair).collect();
        assert_eq!(clusters(64, &some).unwrap().groups.len(), 4);
    }

    #[test]
    fn equal_distances_have_no_groups() {
        assert_eq!(clusters(8, &pairs(8, 8, 1.0, 1.0)), None);
        assert_eq!(clusters(8, &pairs(8, 4, 1.0, 1.1)), None, "the difference is within the scatter of such figures");
        assert_eq!(clusters(2, &[(0, 1, 1.0), (1, 0, 3.0)]), None, "one pair in two directions");
        // One slow item is no group.
        assert_eq!(clusters(3, &[(0, 1, 1.0), (0, 2, 5.0), (1, 2, 5.0)]), None);
    }
}
