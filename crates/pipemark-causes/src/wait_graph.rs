//! Who waits for whom: finds processes that wait for each other in a cycle. Observers call it, so it knows no cause.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pipemark_proc::process::{Direction, PipeEnd, PipeId};

use crate::evidence::{FileLock, WaitCycle, WaitStep};

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

/// Processes, by what others wait for. All processes are indices into a list.
struct WaitIndex<'a> {
    all: &'a [WaitingProcess],
    by_pid: HashMap<u32, usize>,
    children: HashMap<u32, Vec<usize>>,
    /// The holders of each end of each pipe.
    holders: HashMap<(PipeId, Direction), Vec<usize>>,
}

impl<'a> WaitIndex<'a> {
    fn of(all: &'a [WaitingProcess]) -> WaitIndex<'a> {
        let by_pid = all.iter().enumerate().map(|(place, process)| (process.pid, place)).collect();
        let (mut children, mut holders) = (HashMap::<u32, Vec<usize>>::new(), HashMap::<_, Vec<usize>>::new());
        for (place, process) in all.iter().enumerate() {
            children.entry(process.parent).or_default().push(place);
            let ends = process.ends.iter().flat_map(ends_held);
            ends.collect::<BTreeSet<_>>().into_iter().for_each(|end| holders.entry(end).or_default().push(place));
        }
        WaitIndex { all, by_pid, children, holders }
    }

    /// Processes that could end the wait for a pipe: the holders of the pipe's other end.
    fn unblockers(&self, end: &PipeEnd) -> &[usize] {
        let other = if end.direction == Direction::In { Direction::Out } else { Direction::In };
        self.holders.get(&(end.pipe, other)).map(Vec::as_slice).unwrap_or_default()
    }

    /// A process that could open the other end of a FIFO: any other process that doesn't wait for a child.
    fn openers(&self, pid: u32) -> impl Iterator<Item = usize> {
        let all = self.all;
        (0..all.len()).filter(move |&place| all[place].pid != pid && !all[place].for_children)
    }

    fn lock_holders(&self, lock: &FileLock) -> Vec<usize> {
        let mut found: Vec<usize> = lock.holders.iter().filter_map(|pid| self.by_pid.get(pid)).copied().collect();
        found.sort_unstable();
        found
    }

    fn children(&self, pid: u32) -> &[usize] {
        self.children.get(&pid).map(Vec::as_slice).unwrap_or_default()
    }

    /// The processes that are stuck: they wait only for each other.
    fn stuck(&self) -> BTreeSet<usize> {
        let waits = |process: &WaitingProcess| {
            let waits = process.for_children || !process.waits.is_empty() || process.opens.is_some();
            !process.free && (waits || process.lock.is_some())
        };
        let mut stuck: Vec<bool> = self.all.iter().map(waits).collect();
        // Who goes on when a process does. `freed` has the processes that go on.
        let mut by_end: HashMap<(PipeId, Direction), Vec<usize>> = HashMap::new();
        let (mut by_lock, mut opening) = (HashMap::<usize, Vec<usize>>::new(), Vec::new());
        let mut freed: Vec<usize> = (0..self.all.len()).filter(|&place| !stuck[place]).collect();
        for (place, process) in self.all.iter().enumerate().filter(|(place, _)| stuck[*place]) {
            let mut alone = false;
            for end in &process.waits {
                let other = if end.direction == Direction::In { Direction::Out } else { Direction::In };
                by_end.entry((end.pipe, other)).or_default().push(place);
                alone |= self.unblockers(end).is_empty();
            }
            if let Some(lock) = &process.lock {
                let holders = self.lock_holders(lock);
                alone |= holders.is_empty();
                holders.into_iter().for_each(|holder| by_lock.entry(holder).or_default().push(place));
            }
            if process.opens.is_some() {
                alone |= self.openers(process.pid).next().is_none();
                opening.push(place);
            }
            alone |= waits_only_for_children(process) && self.children(process.pid).is_empty();
            if alone {
                freed.push(place);
            }
        }
        freed.iter().for_each(|&place| stuck[place] = false);
        while let Some(place) = freed.pop() {
            let process = &self.all[place];
            let mut next: Vec<usize> =
                process.ends.iter().flat_map(ends_held).filter_map(|end| by_end.remove(&end)).flatten().collect();
            next.extend(by_lock.remove(&place).unwrap_or_default());
            let parent = self.by_pid.get(&process.parent).copied();
            next.extend(parent.filter(|&parent| waits_only_for_children(&self.all[parent])));
            if !process.for_children {
                // A process doesn't open the other end for itself.
                let own: Vec<usize> = opening.iter().copied().filter(|&other| other == place).collect();
                next.extend(opening.drain(..).filter(|&other| other != place));
                opening = own;
            }
            for other in next {
                if std::mem::replace(&mut stuck[other], false) {
                    freed.push(other);
                }
            }
        }
        (0..self.all.len()).filter(|&place| stuck[place]).collect()
    }
}

/// A pipe and the directions in which a descriptor may use it.
fn ends_held(end: &PipeEnd) -> impl Iterator<Item = (PipeId, Direction)> + use<> {
    let (pipe, direction) = (end.pipe, end.direction);
    let held = [Direction::In, Direction::Out].into_iter();
    held.filter(move |&one| direction == one || direction == Direction::Both).map(move |one| (pipe, one))
}

fn waits_only_for_children(process: &WaitingProcess) -> bool {
    process.for_children && process.waits.is_empty() && process.opens.is_none() && process.lock.is_none()
}

/// A cycle of stuck processes, in which each waits only for others in the cycle; `None` if there is none.
pub fn cycle(all: &[WaitingProcess]) -> Option<WaitCycle> {
    let index = WaitIndex::of(all);
    let stuck = index.stuck();
    let step = |place: usize| {
        let process = &all[place];
        let (on, helper) = match (process.waits.first(), &process.opens, &process.lock) {
            (Some(end), ..) => (Some(*end), *index.unblockers(end).first()?),
            (None, Some(_), _) => (None, index.openers(process.pid).next()?),
            (None, None, Some(lock)) => (None, *index.lock_holders(lock).first()?),
            (None, None, None) => (None, *index.children(process.pid).first()?),
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
    let (mut seen, mut steps): (BTreeMap<usize, usize>, Vec<WaitStep>) = (BTreeMap::new(), Vec::new());
    while !seen.contains_key(&place) {
        seen.insert(place, steps.len());
        let (found, next) = step(place)?;
        steps.push(found);
        place = next;
    }
    steps.drain(..seen[&place]);
    let inside: BTreeSet<u32> = steps.iter().map(|step| step.pid).collect();
    let parent = |step: &WaitStep| index.by_pid.get(&step.pid).map(|&place| all[place].parent);
    let eldest = steps.iter().position(|step| parent(step).is_none_or(|parent| !inside.contains(&parent)));
    steps.rotate_left(eldest.unwrap_or(0));
    Some(WaitCycle { steps, may_have_alarm: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::deadlock::kind_of;

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
    fn an_alarm_that_nothing_shows_is_said_to_be_possible() {
        let found = cycle(&unread()).unwrap();
        assert!(!crate::sentences::cycle_text(&found).contains("alarm"));
        let text = crate::sentences::cycle_text(&WaitCycle { may_have_alarm: true, ..found });
        assert!(
            text.starts_with("Deadlock: p10")
                && text.ends_with("An alarm of one of these processes may end it; /proc doesn't show alarms."),
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
        let lock = FileLock { path: "/tmp/stock.db".to_owned(), holders: vec![10] };
        let reader = WaitingProcess { lock: Some(lock.clone()), ..process(11, 1, &[end(0, 1, In)], &[]) };
        let found = cycle(&[holder.clone(), reader.clone()]).unwrap();
        assert_eq!(kind_of(&found).words(), "deadlock: file lock");
        assert!(
            crate::sentences::cycle_text(&found)
                .ends_with("p11 (PID 11) waits for the lock on /tmp/stock.db, and p10 (PID 10) holds it."),
            "{}",
            crate::sentences::cycle_text(&found)
        );
        let elsewhere = FileLock { holders: vec![99], ..lock };
        let waits = WaitingProcess { lock: Some(elsewhere), ..reader };
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
