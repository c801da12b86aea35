//! Finds processes that wait for each other in a cycle. Pure: no clock and no I/O.

use std::collections::BTreeSet;

use pipemark_proc::process::{Direction, PipeEnd, PipeId};

use crate::cause::{Cause, CycleKind};
use crate::evidence::{FileLock, WaitCycle, WaitStep};
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::Quality;

/// A process and its waits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WaitingProcess {
    pub pid: u32,
    pub parent: u32,
    pub name: String,
    /// Ends of pipes that the process waits for: descriptor, pipe and direction. If it polls, there may be several.
    pub waits: Vec<PipeEnd>,
    /// A FIFO that the process is opening: its name and the direction. The call blocks until another process opens the
    /// other end.
    pub opens: Option<(String, Direction)>,
    /// A locked file that the process waits for.
    pub lock: Option<FileLock>,
    /// Whether the process waits for a child to end.
    pub for_children: bool,
    /// Whether the process runs, sleeps or waits for something else, so that it may unblock others.
    pub free: bool,
    /// All ends of pipes that the process holds.
    pub ends: Vec<PipeEnd>,
}

fn holds(process: &WaitingProcess, pipe: PipeId, direction: Direction) -> Option<u32> {
    let end = |end: &&PipeEnd| end.pipe == pipe && (end.direction == direction || end.direction == Direction::Both);
    process.ends.iter().find(end).map(|end| end.fd)
}

/// Processes that could end the wait for a pipe, as indices into `all`: the holders of the pipe's other end.
fn unblockers(all: &[WaitingProcess], end: &PipeEnd) -> Vec<usize> {
    let other = if end.direction == Direction::In { Direction::Out } else { Direction::In };
    (0..all.len()).filter(|&place| holds(&all[place], end.pipe, other).is_some()).collect()
}

/// Processes that could open the other end of a FIFO, as indices into `all`: all other processes.
fn openers(all: &[WaitingProcess], pid: u32) -> Vec<usize> {
    (0..all.len()).filter(|&place| all[place].pid != pid && !all[place].for_children).collect()
}

/// The holders of the lock that a process waits for, as indices into `all`.
fn lock_holders(all: &[WaitingProcess], lock: &FileLock) -> Vec<usize> {
    (0..all.len()).filter(|&place| lock.holders.contains(&all[place].pid)).collect()
}

fn children(all: &[WaitingProcess], pid: u32) -> Vec<usize> {
    (0..all.len()).filter(|&place| all[place].parent == pid).collect()
}

/// A cycle of stuck processes, in which each waits only for others in the cycle; `None` if there is none.
pub fn cycle(all: &[WaitingProcess]) -> Option<WaitCycle> {
    let waits = |process: &WaitingProcess| {
        let waits = process.for_children || !process.waits.is_empty() || process.opens.is_some();
        !process.free && (waits || process.lock.is_some())
    };
    let mut stuck = BTreeSet::from_iter((0..all.len()).filter(|&place| waits(&all[place])));
    loop {
        let can_go_on = |&place: &usize| {
            let process = &all[place];
            let freed = |unblockers: Vec<usize>| {
                unblockers.is_empty() || unblockers.iter().any(|process| !stuck.contains(process))
            };
            let opened = process.opens.is_some();
            let other = !process.waits.is_empty() || opened || process.lock.is_some();
            process.waits.iter().any(|end| freed(unblockers(all, end)))
                || opened && freed(openers(all, process.pid))
                || process.lock.as_ref().is_some_and(|lock| freed(lock_holders(all, lock)))
                || !other && freed(children(all, process.pid))
        };
        let free: Vec<usize> = stuck.iter().copied().filter(can_go_on).collect();
        if free.is_empty() {
            break;
        }
        stuck.retain(|place| !free.contains(place));
    }
    let step = |place: usize| {
        let process = &all[place];
        let (on, helper) = match (process.waits.first(), &process.opens, &process.lock) {
            (Some(end), ..) => (Some(*end), *unblockers(all, end).first()?),
            (None, Some(_), _) => (None, *openers(all, process.pid).first()?),
            (None, None, Some(lock)) => (None, *lock_holders(all, lock).first()?),
            (None, None, None) => (None, *children(all, process.pid).first()?),
        };
        let direction = |end: PipeEnd| if end.direction == Direction::In { Direction::Out } else { Direction::In };
        let holder_fd = on.and_then(|end| holds(&all[helper], end.pipe, direction(end))).unwrap_or(0);
        let (name, holder, opens) = (process.name.clone(), &all[helper], process.opens.clone());
        let step = WaitStep {
            pid: process.pid,
            name,
            on,
            opens,
            lock: process.lock.clone().filter(|_| on.is_none()),
            holder: holder.pid,
            holder_name: holder.name.clone(),
            holder_fd,
        };
        Some((step, helper))
    };
    // At least one process must wait for a pipe. Otherwise a shell that waits for its child would qualify.
    let on_pipe = |place: &&usize| !all[**place].waits.is_empty() || all[**place].opens.is_some();
    let mut place = *stuck.iter().find(on_pipe)?;
    let (mut seen, mut steps): (Vec<usize>, Vec<WaitStep>) = (Vec::new(), Vec::new());
    while !seen.contains(&place) {
        seen.push(place);
        let (found, next) = step(place)?;
        steps.push(found);
        place = next;
    }
    steps.drain(..seen.iter().position(|&at| at == place)?);
    let eldest = steps.iter().position(|step| {
        let parent = all.iter().find(|process| process.pid == step.pid).map(|process| process.parent);
        !steps.iter().any(|other| Some(other.pid) == parent)
    });
    steps.rotate_left(eldest.unwrap_or(0));
    Some(WaitCycle { steps })
}

/// The kind of a cycle.
pub fn kind_of(cycle: &WaitCycle) -> CycleKind {
    let writes_errors = |step: &WaitStep| step.on.is_some_and(|end| end.fd == 2 && end.direction != Direction::In);
    match &cycle.steps[..] {
        steps if steps.iter().any(|step| step.opens.is_some()) => CycleKind::Fifos,
        steps if steps.iter().any(|step| step.lock.is_some()) => CycleKind::FileLock,
        steps if steps.iter().any(writes_errors) => CycleKind::StandardError,
        [only] if only.holder == only.pid => CycleKind::OwnWriteEnd,
        // Both processes wait to read: one has sent a request, and the other holds its answer back.
        [one, other] if [one, other].iter().all(|step| step.on.is_some_and(|end| end.direction == Direction::In)) => {
            CycleKind::Answers
        }
        steps if steps.iter().all(|step| step.on.is_none_or(|end| end.direction == Direction::In)) => {
            CycleKind::WriteEnd
        }
        _ => CycleKind::Other,
    }
}

/// The cycle that was found, if any.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let Some(cycle) = &scene.figures.cycle else { return Vec::new() };
    let with = |pid: u32| scene.figures.stages.iter().find(|stage| stage.pids.contains(&pid)).map(|stage| stage.number);
    let stage = cycle.steps.iter().find_map(|step| with(step.pid));
    vec![Hypothesis { stage, ..Hypothesis::of_whole(Cause::Deadlock(kind_of(cycle)), Quality::Proved) }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(fd: u32, pipe: u64, direction: Direction) -> PipeEnd {
        PipeEnd { fd, pipe: PipeId(0, pipe), direction }
    }

    fn process(pid: u32, parent: u32, ends: &[PipeEnd], waits: &[u32]) -> WaitingProcess {
        let waits = ends.iter().filter(|end| waits.contains(&end.fd)).copied().collect();
        WaitingProcess { pid, parent, name: format!("p{pid}"), ends: ends.to_vec(), waits, ..WaitingProcess::default() }
    }

    use Direction::{In, Out};

    /// A parent that reads its child's output, while the child blocks on a full standard error.
    fn unread() -> [WaitingProcess; 2] {
        [
            process(10, 1, &[end(3, 1, In), end(5, 2, In)], &[3]),
            process(11, 10, &[end(1, 1, Out), end(2, 2, Out)], &[2]),
        ]
    }

    #[test]
    fn a_child_that_fills_an_unread_stderr_is_found() {
        let found = cycle(&unread()).unwrap();
        assert_eq!(kind_of(&found).words(), "deadlock: stderr unread");
        let text = crate::sentences::cycle_text(&found);
        assert!(
            text.starts_with(
                "Deadlock: p10 (PID 10) waits for data on its descriptor 3, and p11 (PID 11) holds the write end open as its standard output; "
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "room in the pipe on its standard error, and p10 (PID 10) has the read end as its descriptor 5"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_process_that_can_continue_frees_the_others() {
        let mut one = unread();
        one[1].waits.clear();
        one[1].free = true;
        assert_eq!(cycle(&one), None, "the child works");
        // A third process holds the write end too, and sleeps.
        let mut two = unread().to_vec();
        two.push(WaitingProcess { free: true, ..process(12, 1, &[end(1, 1, Out)], &[]) });
        assert_eq!(cycle(&two), None);
        // If no process holds the read end, the writer gets SIGPIPE, so there is no deadlock.
        let alone = [process(11, 10, &[end(2, 2, Out)], &[2])];
        assert_eq!(cycle(&alone), None);
    }

    #[test]
    fn waiting_for_a_child_that_waits_for_its_parent_is_a_cycle() {
        let mut parent = process(10, 1, &[end(3, 1, In)], &[]);
        parent.for_children = true;
        let found = cycle(&[parent, process(11, 10, &[end(1, 1, Out)], &[1])]).unwrap();
        assert_eq!(found.steps.len(), 2);
        assert!(
            crate::sentences::cycle_text(&found).contains("p10 (PID 10) waits for p11 (PID 11) to exit"),
            "{}",
            crate::sentences::cycle_text(&found)
        );
    }

    #[test]
    fn fifos_opened_in_different_orders_are_a_cycle() {
        let opens =
            |pid, path: &str| WaitingProcess { opens: Some((path.to_owned(), In)), ..process(pid, 1, &[], &[]) };
        let found = cycle(&[opens(10, "/tmp/a"), opens(11, "/tmp/b")]).unwrap();
        assert_eq!(kind_of(&found).words(), "deadlock: FIFOs opened in a circle");
        assert!(
            crate::sentences::cycle_text(&found).contains(
                "p10 (PID 10) waits to open the FIFO /tmp/a for reading, but no process opens it for writing"
            )
        );
        assert_eq!(cycle(&[opens(10, "/tmp/a")]), None, "somebody may come");
        let works = WaitingProcess { free: true, ..process(11, 1, &[], &[]) };
        assert_eq!(cycle(&[opens(10, "/tmp/a"), works]), None);
    }

    #[test]
    fn a_lock_whose_holder_waits_for_the_same_pipeline_is_a_cycle() {
        // The first process has locked the file and fills the pipe; its reader waits for the lock.
        let holder = process(10, 1, &[end(1, 1, Out)], &[1]);
        let lock = |polled| Some(FileLock { path: "/tmp/stock.db".to_owned(), holders: vec![10], polled });
        let reader = |polled| WaitingProcess { lock: lock(polled), ..process(11, 1, &[end(0, 1, In)], &[]) };
        let found = cycle(&[holder.clone(), reader(false)]).unwrap();
        assert_eq!(kind_of(&found).words(), "deadlock: file lock");
        assert!(
            crate::sentences::cycle_text(&found)
                .ends_with("p11 (PID 11) waits for the lock on /tmp/stock.db, and p10 (PID 10) holds it."),
            "{}",
            crate::sentences::cycle_text(&found)
        );
        let found = cycle(&[holder.clone(), reader(true)]).unwrap();
        assert!(
            crate::sentences::cycle_text(&found).contains("p11 (PID 11) has /tmp/stock.db open and sleeps"),
            "{}",
            crate::sentences::cycle_text(&found)
        );
        let elsewhere = FileLock { holders: vec![99], ..lock(false).unwrap() };
        let waits = WaitingProcess { lock: Some(elsewhere), ..reader(false) };
        assert_eq!(cycle(&[holder, waits]), None, "its holder is outside the pipeline");
    }

    #[test]
    fn a_reader_that_holds_the_write_end_waits_forever() {
        let found = cycle(&[process(10, 1, &[end(0, 1, In), end(4, 1, Out)], &[0])]).unwrap();
        assert_eq!(kind_of(&found).words(), "deadlock: write end open");
        assert!(
            crate::sentences::cycle_text(&found)
                .contains("data on its standard input, and holds the write end open as its descriptor 4"),
            "{}",
            crate::sentences::cycle_text(&found)
        );
        // There is no deadlock while a process works.
        assert_eq!(cycle(&[WaitingProcess { for_children: true, ..WaitingProcess::default() }]), None);
    }
}
