//! Statistics of samples: estimates, fits, comparisons, and records of trials. Start with [`estimate`] and [`compare`].
//!
//! This crate does no I/O and reads no clock. The seed of any randomness is an argument. A slice of figures has one
//! figure per run, in the order of the runs. Repeated measurements within a run are first reduced to one figure,
//! because counting them as independent would make every interval far too narrow.
#![forbid(unsafe_code)]

pub mod catch;
pub mod changes;
pub mod clusters;
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
pub mod sequential;
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
