//! What the kernel counts twice: a process's CPU time and bytes are added to those of its parent when the parent reaps it.
//! Both may be stages, as in `bash -c 'a | b; c' | d`.

use std::collections::HashMap;

use pipemark_proc::process::Process;
use rustix::process::{Pid, test_kill_process};

/// What processes spent over their lives, with their own reaped children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time, in clock ticks.
    pub ticks: u64,
    /// The part of `ticks` in the kernel.
    pub kernel_ticks: u64,
    /// Bytes read and written.
    pub moved: u64,
}

impl Spent {
    pub fn add(&mut self, other: Spent) {
        let Spent { ticks, kernel_ticks, moved } = other;
        self.ticks += ticks;
        self.kernel_ticks += kernel_ticks;
        self.moved += moved;
    }
}

/// Processes that belong to another stage than their parents.
#[derive(Debug, Default)]
pub struct ForeignChildren(HashMap<u32, ForeignChild>);

#[derive(Debug)]
struct ForeignChild {
    start: u64,
    parent: u32,
    spent: Spent,
}

impl ForeignChildren {
    /// Remembers what a process has spent, if it belongs to another stage than its parent.
    pub fn remember(&mut self, process: &Process, moved: u64, stage_of: &HashMap<u32, usize>) {
        match (stage_of.get(&process.parent), stage_of.get(&process.pid)) {
            (Some(parent), own) if Some(parent) != own => {
                let spent = Spent { ticks: process.ticks, kernel_ticks: process.kernel_ticks, moved };
                self.0.insert(process.pid, ForeignChild { start: process.start, parent: process.parent, spent });
            }
            _ => _ = self.0.remove(&process.pid),
        }
    }

    /// What the processes spent that have been reaped since the last call, by the stage that reaped them.
    pub fn take_reaped(&mut self, stage_of: &HashMap<u32, usize>) -> HashMap<usize, Spent> {
        let mut reaped: HashMap<usize, Spent> = HashMap::new();
        self.0.retain(|&pid, child| {
            let is_here = if stage_of.contains_key(&pid) {
                Pid::from_raw(pid.cast_signed()).is_some_and(|pid| test_kill_process(pid).is_ok())
            } else {
                // It has left its stage, and its parent may not have reaped it yet.
                match Process::read_stat(pid).filter(|process| process.start == child.start) {
                    Some(Process { ticks, kernel_ticks, .. }) => {
                        child.spent = Spent { ticks, kernel_ticks, ..child.spent };
                        true
                    }
                    None => false,
                }
            };
            if let (false, Some(&stage)) = (is_here, stage_of.get(&child.parent)) {
                reaped.entry(stage).or_default().add(child.spent);
            }
            is_here
        });
        reaped
    }
}
