//! What samples say: estimates, fits, comparisons, and records of trials. Begin with [`estimate`] and [`compare`].
//!
//! Pure: no I/O, no clock, no randomness but from a seed that is an argument. A slice of figures holds one figure per run,
//! in the order of the runs, because a run is the unit that was repeated. What was measured many times within a run is
//! summed up per run first: pooled, such samples would make every interval far too narrow.
#![forbid(unsafe_code)]

pub mod changes;
pub mod compare;
pub mod diff;
pub mod drift;
pub mod estimate;
pub mod family;
pub mod fit;
pub mod outliers;
pub mod percentile;
pub mod ranking;
mod ranks;
pub mod records;
mod regimes;
pub mod sessions;
pub mod spread;
pub mod verdict;
mod warnings;

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
#[cfg(any(test, feature = "fixture"))]
pub mod noise;
#[cfg(test)]
mod simulations;
