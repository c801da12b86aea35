//! Keeps the list of all processes of the machine up to date, as far as the budget allows.

use std::time::{Duration, Instant};

use pipemark_proc::table::ProcessTable;

use crate::budget::{Budget, PaidWork, own_time};

/// CPU time of one part of the first pass, which is made of one or more parts. A pass over 1,000 processes takes less.
const PART_OF_FIRST_PASS: Duration = Duration::from_millis(200);
/// The shortest time between the beginnings of two parts of the first pass.
const FIRST_PASS_INTERVAL: Duration = Duration::from_millis(400);

/// Brings the list of all processes up to date, as far as the budget allows that. The first pass over all processes is
/// part of the first scan, even if it is made later, because it wasn't needed before. On a machine with many processes, a
/// pass takes several calls. Returns whether there is a list, which may lack processes that have started since.
pub fn refresh(table: &mut ProcessTable, budget: &mut Budget) -> bool {
    let (now, cpu) = (Instant::now(), own_time());
    if !table.has_passed() {
        if budget.is_due(PaidWork::Search, FIRST_PASS_INTERVAL, now) {
            table.refresh(Some(PART_OF_FIRST_PASS), own_time);
            let cost = own_time().saturating_sub(cpu);
            budget.count_as_first_scan(cost);
            budget.note(PaidWork::Search, now, cost);
        }
    } else if (budget.has_reserve() || budget.allows(PaidWork::Search, None, now))
        && budget.affords(budget.portion() * 2)
    {
        table.refresh(Some(budget.portion() * 2), own_time);
        budget.note(PaidWork::Search, now, own_time().saturating_sub(cpu));
    }
    table.has_passed()
}
