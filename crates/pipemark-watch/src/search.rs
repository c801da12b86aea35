//! Keeps the list of all processes of the machine up to date, as far as the budget allows.

use std::time::Instant;

use pipemark_proc::table::ProcessTable;

use crate::budget::{Budget, PaidWork, own_time};

/// Brings the list of all processes up to date, if the budget allows that. On a machine with many processes, a pass over
/// all of them takes several calls. Returns whether the last pass has ended.
pub fn refresh(table: &mut ProcessTable, budget: &mut Budget) -> bool {
    let (now, cpu) = (Instant::now(), own_time());
    if budget.has_reserve() || budget.allows(PaidWork::Search, None, now) {
        table.refresh(Some(budget.portion() * 2), own_time);
        budget.note(PaidWork::Search, now, own_time().saturating_sub(cpu));
    }
    table.is_complete()
}
