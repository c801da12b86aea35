//! What the samples say: estimates, fits and comparisons; records of them, and findings.
//!
//! Pure: no I/O, no clock, and no randomness but from a seed that is an argument. Most are functions of slices: a slice
//! holds one figure per run, in the order the runs were made, because a run is the unit that was repeated: what was
//! measured many times within a run is summed up per run before it comes here. Pooled over the runs such samples would
//! pass for as many independent measurements, and make every interval far too narrow.

pub mod changes;
pub mod compare;
pub mod drift;
pub mod estimate;
pub mod family;
pub mod fit;
pub mod outliers;
pub mod percentile;
mod ranks;
pub mod records;
mod regimes;
pub mod sessions;
pub mod spread;
pub mod verdict;
mod warnings;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
pub(crate) mod simulations;
