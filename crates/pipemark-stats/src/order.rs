//! The order of runs within a round.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::Rng;

/// Shuffles by the Fisher–Yates algorithm.
pub fn shuffle(order: &mut [usize], random: &mut SplitMix64) {
    for i in (1..order.len()).rev() {
        // The modulo bias is below 2⁻⁵⁰ for any realistic number of runs.
        order.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn a_seed_determines_the_order_and_each_run_occurs_once() {
        let shuffled = |seed| {
            let mut order: Vec<usize> = (0..20).collect();
            shuffle(&mut order, &mut SplitMix64::seed_from_u64(seed));
            order
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        let mut all = shuffled(3);
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
    }
}
