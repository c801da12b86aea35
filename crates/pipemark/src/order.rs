//! Sorting and keying of what is shown, which is short: as std does it, in the same order, with a thirtieth of the
//! machine code. std makes 2,000 lines of it for each type and place that sorts, a tenth of what there was to compile.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Sorting of a slice; equal elements stay in their order.
pub trait Order<T> {
    /// As `sort_by`.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// As `sort_by_key`.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }

    /// As `sort`.
    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }
}

impl<T> Order<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut places = places(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        for place in 0..places.len() {
            // What belongs here has been moved on if its place was filled before.
            let mut from = places[place];
            while from < place {
                from = places[from];
            }
            places[place] = from;
            self.swap(place, from);
        }
    }
}

/// Where each element of the sorted order stands now.
fn places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|&one, &other| compare(one, other));
    places
}

/// A map of entries; of two with the same key the later.
pub fn map<K: Ord, V>(entries: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (key, value) in entries {
        map.insert(key, value);
    }
    map
}

/// A set of elements.
pub fn set<T: Ord>(elements: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for element in elements {
        set.insert(element);
    }
    set
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_as_std_does(values: Vec<(u8, u32)>) {
            let (mut ours, mut theirs) = (values.clone(), values.clone());
            ours.order_by_key(|own| own.0);
            theirs.sort_by_key(|own| own.0);
            prop_assert_eq!(ours, theirs);
            prop_assert_eq!(map(values.clone()), values.into_iter().collect::<BTreeMap<_, _>>());
        }
    }
}
