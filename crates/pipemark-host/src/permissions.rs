//! Probes which system calls are available here. For each unavailable one, gives the reason and a remedy.

use std::{fmt, io};

use pipeio_harness::probe;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use pipemark_model::Permission;

use crate::files::{SystemFiles, field};

type Probe = fn() -> io::Result<()>;

/// Defines the facilities. Each row has the name for [`Permission`]s, the function that probes the facility, and the
/// kernel version or configuration that it needs.
macro_rules! facilities {
    ($($facility:ident $name:literal: $probe:expr, $kernel:literal;)*) => {
        /// A kernel facility that pipemark can use.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Facility {
            $($facility,)*
        }

        impl fmt::Display for Facility {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Facility::$facility => $name,)* })
            }
        }

        impl Facility {
            /// All facilities.
            pub fn iter() -> impl Iterator<Item = Facility> {
                [$(Facility::$facility),*].into_iter()
            }

            fn probe(self) -> Probe {
                match self { $(Facility::$facility => $probe,)* }
            }

            fn kernel(self) -> &'static str {
                match self { $(Facility::$facility => $kernel,)* }
            }
        }
    };
}

facilities! {
    Vmsplice "vmsplice": probe::vmsplice, "Linux 2.6.17 or later";
    Splice "splice": probe::splice, "Linux 2.6.17 or later";
    Tee "tee": probe::tee, "Linux 2.6.17 or later";
    Sendfile "sendfile": probe::sendfile, "Linux 2.6.33 or later";
    Memfd "memfd_create": probe::memfd_create, "Linux 3.17 or later";
    IoUring "io_uring": probe::io_uring, "Linux 5.1 or later with CONFIG_IO_URING";
    PipeCapacity "F_SETPIPE_SZ": largest_pipe, "Linux 2.6.35 or later";
    Affinity "sched_setaffinity": probe::affinity, "any Linux of the last twenty years";
    Futex "futex": probe::futex, "any Linux of the last twenty years";
    Pidfd "pidfd_open": probe::pidfd_open, "Linux 5.3 or later";
    HugePages "MADV_HUGEPAGE": probe::huge_page_advice, "Linux 2.6.38 or later with CONFIG_TRANSPARENT_HUGEPAGE";
    ProcessVm "process_vm_readv": probe::process_vm_readv, "Linux 3.2 or later with CONFIG_CROSS_MEMORY_ATTACH";
    PosixQueues "mq_open": probe::posix_queues, "a Linux kernel with CONFIG_POSIX_MQUEUE";
    SysvQueues "msgget": probe::sysv_queues, "a Linux kernel with CONFIG_SYSVIPC";
    UnixSockets "UNIX sockets": probe::unix_sockets, "a Linux kernel with CONFIG_UNIX";
    Tcp "TCP over loopback": probe::tcp_sockets, "a Linux kernel with CONFIG_INET";
    HardwareCounters "hardware counters": probe::hardware_counter, "a Linux kernel with CONFIG_PERF_EVENTS";
    SoftwareCounters "software counters": probe::software_counter, "a Linux kernel with CONFIG_PERF_EVENTS";
    FunctionSampling "function sampling": probe::function_sampling, "a Linux kernel with CONFIG_PERF_EVENTS";
}

/// Makes a pipe of the largest allowed capacity, at most 16 MiB. A larger pipe may fail for lack of contiguous kernel
/// memory.
fn largest_pipe() -> io::Result<()> {
    probe::pipe_capacity(super::pipe_max_size(&SystemFiles::live()).min(16 << 20) as usize).map(drop)
}

impl Facility {
    /// Why a facility is unavailable although its probe succeeds; `None` if it is available.
    fn withheld(self, files: &SystemFiles) -> Option<String> {
        let why = match self {
            Facility::ProcessVm => match files.value::<u32>("/proc/sys/kernel/yama/ptrace_scope")? {
                2 if !capable(CapabilitySet::SYS_PTRACE) => {
                    "needs CAP_SYS_PTRACE (/proc/sys/kernel/yama/ptrace_scope is 2); as root: sysctl kernel.yama.ptrace_scope=1"
                }
                3.. => {
                    "no process may inspect another one (/proc/sys/kernel/yama/ptrace_scope is 3) until the next boot"
                }
                _ => return None,
            },
            Facility::HugePages if field(&files.text("/proc/self/status")?, "THP_enabled") == Some("0") => {
                "switched off for this process (prctl PR_SET_THP_DISABLE); start pipemark from another program"
            }
            _ => return None,
        };
        Some(why.to_owned())
    }

    /// Why a probe failed and what would help, as a clause to be placed after the facility's name.
    fn reason(self, error: &io::Error, files: &SystemFiles) -> String {
        let Some(errno) = Errno::from_io_error(error) else { return format!("it exists but does not work: {error}") };
        match (self, errno) {
            (_, Errno::NOSYS) => format!(
                "not in this kernel, or hidden by a system call filter (ENOSYS); needs {} and a filter that permits it",
                self.kernel()
            ),
            (Facility::IoUring, Errno::PERM | Errno::ACCESS) if io_uring_switch(files) == Some(2) => {
                "switched off for everyone (/proc/sys/kernel/io_uring_disabled is 2); as root: sysctl kernel.io_uring_disabled=0".to_owned()
            }
            (Facility::IoUring, Errno::PERM | Errno::ACCESS) if io_uring_switch(files) == Some(1) => {
                "needs CAP_SYS_ADMIN or membership of a group (/proc/sys/kernel/io_uring_disabled is 1); join the group whose ID is in /proc/sys/kernel/io_uring_group, or as root: sysctl kernel.io_uring_disabled=0".to_owned()
            }
            (Facility::IoUring, Errno::NOMEM) => {
                "the limit on locked memory is too low to register buffers (ENOMEM); raise it with ulimit -l".to_owned()
            }
            (Facility::HardwareCounters | Facility::SoftwareCounters, Errno::PERM | Errno::ACCESS) => {
                match files.value::<i32>("/proc/sys/kernel/perf_event_paranoid") {
                    Some(level @ 2..) => format!(
                        "counting kernel events needs CAP_PERFMON (/proc/sys/kernel/perf_event_paranoid is {level}); as root: sysctl kernel.perf_event_paranoid=1"
                    ),
                    _ => refused(errno),
                }
            }
            (Facility::FunctionSampling, Errno::PERM | Errno::ACCESS) => {
                match files.value::<i32>("/proc/sys/kernel/perf_event_paranoid") {
                    Some(level @ 3..) => format!(
                        "needs CAP_PERFMON (/proc/sys/kernel/perf_event_paranoid is {level}); as root: sysctl kernel.perf_event_paranoid=2"
                    ),
                    _ => refused(errno),
                }
            }
            (Facility::HardwareCounters, Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV) => {
                "this machine has no such counters, like most virtual machines; give the guest a virtual PMU, or measure on the host".to_owned()
            }
            (Facility::PipeCapacity, Errno::PERM) => format!(
                "refused (EPERM): this user's pipes exceed /proc/sys/fs/pipe-user-pages-soft{}, or a system call filter forbids F_SETPIPE_SZ; close pipes or raise the limit",
                files.line("/proc/sys/fs/pipe-user-pages-soft").map(|pages| format!(" ({pages} pages)")).unwrap_or_default(),
            ),
            (Facility::HugePages, Errno::INVAL) => {
                format!("this kernel has no transparent huge pages; needs {}", self.kernel())
            }
            (Facility::UnixSockets | Facility::Tcp, Errno::AFNOSUPPORT) => {
                format!("not in this kernel, or forbidden (EAFNOSUPPORT); needs {}", self.kernel())
            }
            (Facility::Tcp, Errno::ADDRNOTAVAIL) => {
                "the loopback device is down (EADDRNOTAVAIL); as root: ip link set lo up".to_owned()
            }
            (Facility::Splice, Errno::NOENT) => "there is no /dev/null to splice to; as root: mknod -m 666 /dev/null c 1 3".to_owned(),
            (_, Errno::PERM | Errno::ACCESS) => refused(errno),
            (_, Errno::MFILE | Errno::NFILE) => {
                "no file descriptor is left for the check; raise the limit with ulimit -n".to_owned()
            }
            _ => format!("does not work here: {error}"),
        }
    }
}

fn refused(errno: Errno) -> String {
    let name = if errno == Errno::PERM { "EPERM" } else { "EACCES" };
    format!(
        "refused by a system call filter or a security module ({name}); in a container, allow the call (docker run --security-opt seccomp=PROFILE), or run outside the container"
    )
}

fn io_uring_switch(files: &SystemFiles) -> Option<u32> {
    files.value("/proc/sys/kernel/io_uring_disabled")
}

/// Whether this process has a capability in its own user namespace.
pub fn capable(capability: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(capability))
}

/// Probes all facilities.
pub fn probe_all(files: &SystemFiles) -> Vec<Permission> {
    let permission = |facility: Facility| {
        let missing = match facility.probe()() {
            Ok(()) => facility.withheld(files),
            Err(error) => Some(facility.reason(&error, files)),
        };
        Permission { name: facility.to_string(), missing }
    };
    Facility::iter().map(permission).collect()
}

/// Returns two flags: whether this process may exceed all pipe limits, and whether it may exceed the per-user limits.
/// The first is probed, because a capability inside a user namespace lifts no limit.
pub fn pipe_limits_lifted(files: &SystemFiles, pipe_max_size: u64) -> (bool, bool) {
    let all = usize::try_from(pipe_max_size)
        .ok()
        .and_then(|limit| limit.checked_add(1))
        .is_some_and(|beyond| probe::pipe_capacity(beyond).is_ok());
    let initial_namespace =
        files.text("/proc/self/uid_map").is_some_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    (all, all || initial_namespace && capable(CapabilitySet::SYS_ADMIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::sample::Tree;

    fn reason(facility: Facility, errno: Errno, contents: &[(&str, &str)]) -> String {
        facility.reason(&errno.into(), &Tree::new(contents).files)
    }

    #[test]
    fn each_refusal_is_named_with_its_cause() {
        let paranoid = ("/proc/sys/kernel/perf_event_paranoid", "3\n");
        let switch = |level| ("/proc/sys/kernel/io_uring_disabled", level);
        for (facility, errno, contents, words) in [
            (Facility::Vmsplice, Errno::PERM, &[][..], "filter"),
            (Facility::Vmsplice, Errno::NOSYS, &[], "2.6.17"),
            (Facility::IoUring, Errno::PERM, &[switch("2\n")], "io_uring_disabled is 2"),
            (Facility::IoUring, Errno::PERM, &[switch("1\n")], "io_uring_group"),
            (Facility::IoUring, Errno::PERM, &[switch("0\n")], "filter"),
            (Facility::IoUring, Errno::NOMEM, &[], "ulimit -l"),
            (Facility::IoUring, Errno::NOSYS, &[], "CONFIG_IO_URING"),
            (Facility::SoftwareCounters, Errno::ACCESS, &[paranoid], "perf_event_paranoid is 3"),
            (Facility::SoftwareCounters, Errno::PERM, &[], "EPERM"),
            (Facility::FunctionSampling, Errno::ACCESS, &[paranoid], "perf_event_paranoid=2"),
            (Facility::HardwareCounters, Errno::NOENT, &[], "virtual"),
            (Facility::PipeCapacity, Errno::PERM, &[("/proc/sys/fs/pipe-user-pages-soft", "16384\n")], "16384 pages"),
            (Facility::HugePages, Errno::INVAL, &[], "no transparent huge pages"),
            (Facility::Tcp, Errno::ADDRNOTAVAIL, &[], "ip link set lo up"),
            (Facility::UnixSockets, Errno::AFNOSUPPORT, &[], "CONFIG_UNIX"),
            (Facility::Tee, Errno::MFILE, &[], "ulimit -n"),
            (Facility::Tee, Errno::IO, &[], "does not work"),
        ] {
            let text = reason(facility, errno, contents);
            assert!(text.contains(words), "{facility} {errno:?}: {text}");
        }
    }

    #[test]
    fn settings_withhold_a_facility_despite_a_successful_probe() {
        let withheld = |facility: Facility, path, text| facility.withheld(&Tree::new(&[(path, text)]).files);
        let scope = "/proc/sys/kernel/yama/ptrace_scope";
        assert!(withheld(Facility::ProcessVm, scope, "3\n").is_some());
        assert_eq!(withheld(Facility::ProcessVm, scope, "1\n"), None);
        assert!(withheld(Facility::HugePages, "/proc/self/status", "Name:\tx\nTHP_enabled:\t0\n").is_some());
        assert_eq!(withheld(Facility::HugePages, "/proc/self/status", "Name:\tx\nTHP_enabled:\t1\n"), None);
    }

    #[test]
    fn every_facility_is_probed_under_its_own_name() {
        let permissions = probe_all(&SystemFiles::live());
        let names: std::collections::HashSet<&str> = permissions.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names.len(), Facility::iter().count());
        assert_eq!(permissions.iter().find(|p| p.name == "futex").unwrap().missing, None);
    }
}
