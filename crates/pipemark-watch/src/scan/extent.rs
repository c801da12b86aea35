//! Which processes a scan reads.

use std::collections::BTreeSet;

/// The processes that a scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanExtent<'c> {
    /// All known processes and their descendants.
    Known,
    /// Those that have changed and their descendants.
    Changed(&'c BTreeSet<u32>),
}

impl ScanExtent<'_> {
    pub fn includes(self, pid: u32) -> bool {
        match self {
            ScanExtent::Known => true,
            ScanExtent::Changed(changed) => changed.contains(&pid),
        }
    }
}
