//! Kills the processes that children have started, in whatever process group or session.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::child::{Child, guard};

/// The maximum number of times that the processes are listed. Each new one is stopped at once, so few lists suffice.
const MAX_LISTS: usize = 100;

/// Kills children that still run, with all that they have started, such as the program of `timeout`, which is in a process
/// group of its own. The children are not reaped. Processes whose parent has ended are found by the mark of this run.
pub fn kill_with_descendants(children: &[Child]) {
    let roots: Vec<Pid> = children.iter().filter(|child| child.end().is_none()).map(Child::pid).collect();
    let mut found: BTreeMap<i32, OwnedFd> = BTreeMap::new();
    for _ in 0..MAX_LISTS {
        let all = roots.iter().map(|pid| pid.as_raw_nonzero().get()).chain(found.keys().copied());
        let new: Vec<i32> = all.flat_map(children_of).filter(|pid| !found.contains_key(pid)).collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            let Some(process) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
                continue;
            };
            // Since the list was read, the process may have ended, and another may have got its number.
            let is_ours = |parent: i32| {
                found.contains_key(&parent) || roots.iter().any(|root| root.as_raw_nonzero().get() == parent)
            };
            if !parent_of(pid).is_some_and(is_ours) {
                continue;
            }
            // A stopped process starts no others, and keeps those that it has started.
            let _ = pidfd_send_signal(&process, Signal::STOP);
            found.insert(pid, process);
        }
    }
    for process in found.values() {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    children.iter().for_each(Child::kill);
    guard::kill_remaining();
}

/// The children of a process; none where the kernel doesn't list them.
fn children_of(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands before it in parentheses, and may have any characters.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::child::ProcessGroup;

    #[test]
    fn processes_in_groups_and_sessions_of_their_own_are_killed() {
        let script = "timeout 60 sleep 60 & setsid sh -c 'env -i sleep 60; :' & echo; wait";
        let mut command = Command::new("sh");
        let (mut output, writer) = std::io::pipe().unwrap();
        command.args(["-c", script]).stdin(Stdio::null()).stdout(writer);
        let mut child = Child::start("sh", &mut command, ProcessGroup::Own).unwrap();
        drop(command);
        output.read_exact(&mut [0]).unwrap();
        // They are started by now, or soon.
        let begun = Instant::now();
        while children_of(child.pid().as_raw_nonzero().get()).into_iter().flat_map(children_of).count() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(10), "they weren't started");
            std::thread::sleep(Duration::from_millis(1));
        }
        kill_with_descendants(std::slice::from_ref(&child));
        child.end_now().unwrap();
        assert_eq!(
            parent_of(std::process::id().cast_signed()),
            Some(std::os::unix::process::parent_id().cast_signed())
        );
        // All of them hold the pipe.
        assert_eq!(output.read(&mut [0]).unwrap(), 0);
    }
}
