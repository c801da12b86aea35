//! Grouping and deduplication that preserve the order, and a key for sorting.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Groups values by key, in the order in which keys first occur.
pub fn group_by_key<K: Clone + Eq + Hash, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    let mut places = HashMap::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// The distinct values, in the order of first occurrence.
pub fn distinct<T: Clone + Eq + Hash>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

/// A key that sorts figures like [`f64::total_cmp`]. All sorts by keys of one type share
/// their code; each closure passed to `sort_by` gets a copy of its own.
pub fn total_order(figure: f64) -> i64 {
    let bits = figure.to_bits().cast_signed();
    // Of negative figures, the one with the larger magnitude is less.
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_sort_like_figures(one: f64, other: f64) {
            prop_assert_eq!(total_order(one).cmp(&total_order(other)), one.total_cmp(&other));
        }
    }
}
