//! Statistics of samples: estimates, fits, comparisons, and records of trials. Start with [`estimate`] and [`compare`].
//!
//! This crate does no I/O and reads no clock. The seed of any randomness is an argument. A slice of figures holds one
//! figure per run, in the order of the runs, because the run is the unit of repetition. Repeated measurements within a
//! run are first reduced to one figure, because pooling them would make every interval far too narrow.
#![forbid(unsafe_code)]

pub mod changes;
pub mod compare;
pub mod diff;
pub mod drift;
pub mod estimate;
pub mod family;
pub mod fit;
pub mod order;
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
