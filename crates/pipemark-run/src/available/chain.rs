//! Whether this process may start a chain of the requested length. This is checked before anything is started, because
//! an incomplete chain is useless. Soft limits are raised up to the hard limits.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use pipemark_host::Headroom;
use pipemark_model::{ByteSize, Host, Job, counted};

/// Descriptors needed besides one per stage: sockets to the ends, the next link, the shared page, standard streams and
/// libraries.
const SPARE_DESCRIPTORS: u64 = 64;
/// Processes needed besides the stages.
const SPARE_PROCESSES: u64 = 8;
/// The minimum memory that a process takes, in bytes, for page tables, kernel stack and private pages. A small C
/// program took 250 to 400 KiB.
const PROCESS_BYTES: u64 = 384 << 10;

/// Why a chain of this length can't be started here, with the number needed and the number allowed. `None` if no
/// obstacle is known.
pub fn missing(job: &Job, host: &Host) -> Option<String> {
    let chain = job.chain()?;
    let length = u64::from(chain.length);
    descriptor_shortage(length)
        .or_else(|| (!host.pipe_user_limits_lifted).then(|| process_shortage(length)).flatten())
        .or_else(|| control_group_shortage(length, &pipemark_host::headroom()))
}

fn descriptor_shortage(length: u64) -> Option<String> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let needed = open + length + SPARE_DESCRIPTORS;
    raise(Resource::Nofile, needed).map(|allowed| {
        format!(
            "a chain of {} needs {needed} descriptors, and the limit is {allowed} (RLIMIT_NOFILE); raise the hard limit (ulimit -Hn), or use a shorter --length",
            counted(length as usize, "stage")
        )
    })
}

/// Why the user may not start `length` more processes; `None` if allowed. The limit counts all tasks of the user,
/// threads included, in all sessions. It doesn't apply to root.
fn process_shortage(length: u64) -> Option<String> {
    let running = task_count(getuid().as_raw());
    let needed = running + length + SPARE_PROCESSES;
    raise(Resource::Nproc, needed).map(|allowed| {
        format!(
            "a chain of {} needs {needed} processes, including the {running} that this user already runs, and the limit is {allowed} (RLIMIT_NPROC); raise the hard limit (ulimit -Hu), or use a shorter --length",
            counted(length as usize, "stage")
        )
    })
}

/// Raises the soft limit to `needed` if it is lower. Returns the limit that prevents this; `None` if the limit is now
/// high enough.
fn raise(resource: Resource, needed: u64) -> Option<u64> {
    let limit = getrlimit(resource);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return None;
    }
    if let Some(hard) = limit.maximum.filter(|&hard| hard < needed) {
        return Some(hard);
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(resource, raised).is_err().then(|| limit.current.unwrap_or(0))
}

fn task_count(user: u32) -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())))
        .filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok())
        .filter_map(|status| {
            let field =
                |name: &str| pipemark_host::field(&status, name)?.split_whitespace().next()?.parse::<u64>().ok();
            (field("Uid")? == u64::from(user)).then(|| field("Threads").unwrap_or(1))
        })
        .sum()
}

fn control_group_shortage(length: u64, room: &Headroom) -> Option<String> {
    let needed = length + SPARE_PROCESSES;
    if let Some(left) = room.processes.filter(|&left| left < needed) {
        return Some(format!(
            "a chain of {} needs {needed} processes, and the control group has room for {left} (pids.max); raise its limit (docker run --pids-limit), or use a shorter --length",
            counted(length as usize, "stage")
        ));
    }
    let needed = length * PROCESS_BYTES;
    room.memory.filter(|&left| left < needed).map(|left| {
        format!(
            "a chain of {} needs about {} of memory, and the control group has {} left (memory.max); raise its limit, or use a shorter --length",
            counted(length as usize, "stage"),
            ByteSize(needed),
            ByteSize(left)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_in_the_control_group_is_reported() {
        let room = |processes, memory| Headroom { processes, memory };
        assert_eq!(control_group_shortage(100, &room(None, None)), None);
        assert_eq!(control_group_shortage(100, &room(Some(108), Some(1 << 30))), None);
        assert!(control_group_shortage(100, &room(Some(107), None)).unwrap().contains("needs 108 processes"));
        assert!(control_group_shortage(1024, &room(None, Some(100 << 20))).unwrap().contains("has 100 MiB left"));
    }

    #[test]
    fn the_task_count_includes_this_process() {
        assert!(task_count(getuid().as_raw()) >= 1);
    }

    #[test]
    fn no_limit_is_raised_above_the_hard_limit() {
        assert_eq!(raise(Resource::Nofile, 1), None);
        if let Some(hard) = getrlimit(Resource::Nofile).maximum {
            assert_eq!(raise(Resource::Nofile, hard + 1), Some(hard));
        }
    }
}
