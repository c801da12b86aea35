//! The limits that the control groups of this process set on memory, CPU time and processes, in both versions of
//! control groups.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::SystemFiles;

/// The control groups of this process, from the innermost to the topmost visible one. The limits of all of them apply.
#[derive(Debug)]
pub struct ControlGroups {
    memory: Vec<PathBuf>,
    cpu: Vec<PathBuf>,
    processes: Vec<PathBuf>,
}

/// The processes and memory that control groups still allow. A field is `None` if there is no limit, or if the limit
/// cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headroom {
    /// The number of processes and threads that may still be started.
    pub processes: Option<u64>,
    /// Bytes of memory still available, including the reclaimable file cache.
    pub memory: Option<u64>,
}

impl ControlGroups {
    /// The control groups of this process; empty if /proc hides them.
    pub fn find(files: &SystemFiles) -> ControlGroups {
        ControlGroups::of("self", files)
    }

    /// The control groups of the process `pid`.
    pub fn of_process(pid: u32) -> ControlGroups {
        ControlGroups::of(&pid.to_string(), &SystemFiles::live())
    }

    fn of(process: &str, files: &SystemFiles) -> ControlGroups {
        let groups = files.text(format!("/proc/{process}/cgroup")).unwrap_or_default();
        let mounts = files.text("/proc/self/mountinfo").unwrap_or_default();
        let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
        let directories = |controller: &str| {
            let directories = |line: &str| {
                let (hierarchy, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                let mount = match hierarchy {
                    // Version 2 has one hierarchy for all controllers.
                    "0" => mounts.iter().find(|mount| mount.kind == "cgroup2"),
                    _ if !controllers.split(',').any(|name| name == controller) => None,
                    _ => mounts.iter().find(|mount| {
                        mount.kind == "cgroup" && mount.options.split(',').any(|name| name == controller)
                    }),
                }?;
                Some(ancestry(Path::new(mount.point), mount.root, path))
            };
            groups.lines().filter_map(directories).flatten().collect()
        };
        ControlGroups { memory: directories("memory"), cpu: directories("cpu"), processes: directories("pids") }
    }

    /// The tightest memory limit in bytes; `None` if there is none.
    pub fn memory(&self, files: &SystemFiles) -> Option<u64> {
        // In version 1, "no limit" is the largest number of bytes that is a whole number of pages.
        const NO_LIMIT: u64 = 1 << 62;
        let names = ["memory.max", "memory.limit_in_bytes"];
        let limit = |directory: &PathBuf| names.iter().find_map(|name| files.value(directory.join(name)));
        self.memory.iter().filter_map(limit).filter(|&bytes| bytes < NO_LIMIT).min()
    }

    /// The processes and memory that the control groups still allow.
    pub fn headroom(&self, files: &SystemFiles) -> Headroom {
        let left = |directory: &PathBuf, what: &str, kept: u64| {
            let limit: u64 = files.value(directory.join(format!("{what}.max")))?;
            let used: u64 = files.value(directory.join(format!("{what}.current")))?;
            Some(limit.saturating_sub(used.saturating_sub(kept)))
        };
        let memory = self.memory.iter().filter_map(|directory| {
            let entry = |key| files.entry(directory.join("memory.stat"), key).unwrap_or(0);
            left(directory, "memory", entry("active_file") + entry("inactive_file"))
        });
        let processes = self.processes.iter().filter_map(|directory| left(directory, "pids", 0));
        Headroom { processes: processes.min(), memory: memory.min() }
    }

    /// The tightest CPU limit in CPUs; `None` if there is none.
    pub fn cpus(&self, files: &SystemFiles) -> Option<f64> {
        let limit = |directory: &PathBuf| {
            let (quota, period): (f64, f64) = match files.line(directory.join("cpu.max")) {
                Some(both) => {
                    let (quota, period) = both.split_once(' ')?;
                    (quota.parse().ok()?, period.parse().ok()?)
                }
                None => (
                    files.value(directory.join("cpu.cfs_quota_us"))?,
                    files.value(directory.join("cpu.cfs_period_us"))?,
                ),
            };
            (quota > 0.0 && period > 0.0).then(|| quota / period)
        };
        self.cpu.iter().filter_map(limit).min_by(f64::total_cmp)
    }

    /// [`ControlGroups::throttled`] on this machine.
    pub fn throttled_now(&self) -> Option<Duration> {
        self.throttled(&SystemFiles::live())
    }

    /// The time for which a CPU limit has throttled a group since its creation, summed over CPUs: the longest of all
    /// groups. `None` if the kernel doesn't report it.
    pub fn throttled(&self, files: &SystemFiles) -> Option<Duration> {
        let time = |directory: &PathBuf| {
            let entry = |key| files.entry(directory.join("cpu.stat"), key);
            let version_1 = || entry("throttled_time").map(Duration::from_nanos);
            entry("throttled_usec").map(Duration::from_micros).or_else(version_1)
        };
        self.cpu.iter().filter_map(time).max()
    }

    /// The number of periods in which a group was throttled (nr_throttled): the largest of all groups. `None` if the
    /// kernel doesn't report it.
    pub fn times_throttled(&self, files: &SystemFiles) -> Option<u64> {
        self.cpu.iter().filter_map(|directory| files.entry(directory.join("cpu.stat"), "nr_throttled")).max()
    }
}

/// The fields used from a line of /proc/PID/mountinfo: proc_pid_mountinfo(5).
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        Some(Mount { root: before.next()?, point: before.next()?, kind: after.next()?, options: after.nth(1)? })
    }
}

/// The directories of the group `path` and of its ancestors, where the group `root` is mounted at `point`.
fn ancestry(point: &Path, root: &str, path: &str) -> Vec<PathBuf> {
    // A group outside the mount is invisible. Only the directory of the mount itself can be read.
    let inner = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    let inner = if inner.components().any(|part| part.as_os_str() == "..") { Path::new("") } else { inner };
    inner.ancestors().map(|part| point.join(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::sample::Tree;

    const V2_MOUNT: &str = "30 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1_MOUNTS: &str = "\
31 24 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
32 24 0:29 / /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct
";

    #[test]
    fn the_tightest_limit_of_version_2_applies() {
        let tree = Tree::new(&[
            ("/proc/self/cgroup", "0::/user.slice/app.scope\n"),
            ("/proc/self/mountinfo", V2_MOUNT),
            ("/sys/fs/cgroup/user.slice/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/user.slice/app.scope/memory.max", "max\n"),
            ("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/user.slice/app.scope/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/user.slice/app.scope/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 1500\n"),
        ]);
        let groups = ControlGroups::find(&tree.files);
        assert_eq!(groups.memory(&tree.files), Some(1 << 30));
        assert_eq!(groups.cpus(&tree.files), Some(1.5));
        assert_eq!(groups.throttled(&tree.files), Some(Duration::from_micros(1500)));
        assert_eq!(groups.times_throttled(&tree.files), Some(2));
    }

    #[test]
    fn free_memory_is_the_limit_less_the_usage() {
        let tree = Tree::new(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/proc/self/mountinfo", V2_MOUNT),
            ("/sys/fs/cgroup/a/pids.max", "100\n"),
            ("/sys/fs/cgroup/a/pids.current", "40\n"),
            ("/sys/fs/cgroup/a/b/pids.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "1000000\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "700000\n"),
            ("/sys/fs/cgroup/a/b/memory.stat", "anon 300000\nactive_file 100000\ninactive_file 300000\n"),
        ]);
        let room = ControlGroups::find(&tree.files).headroom(&tree.files);
        assert_eq!(room, Headroom { processes: Some(60), memory: Some(700_000) });
    }

    #[test]
    fn version_1_is_read_where_it_is_mounted() {
        let tree = Tree::new(&[
            ("/proc/self/cgroup", "9:memory:/docker/abc\n3:cpu,cpuacct:/\n0::/\n"),
            ("/proc/self/mountinfo", V1_MOUNTS),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 3\nnr_throttled 1\nthrottled_time 2000\n"),
        ]);
        let groups = ControlGroups::find(&tree.files);
        assert_eq!(groups.memory(&tree.files), Some(512 << 20));
        assert_eq!(groups.cpus(&tree.files), Some(0.5));
        assert_eq!(groups.throttled(&tree.files), Some(Duration::from_nanos(2000)));
    }

    #[test]
    fn unlimited_settings_set_no_limit() {
        let tree = Tree::new(&[
            ("/proc/self/cgroup", "9:memory:/docker/abc\n3:cpu,cpuacct:/\n"),
            ("/proc/self/mountinfo", V1_MOUNTS),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        let groups = ControlGroups::find(&tree.files);
        assert_eq!(groups.memory(&tree.files), None);
        assert_eq!(groups.cpus(&tree.files), None);
        assert_eq!(groups.throttled(&tree.files), None);
    }

    #[test]
    fn hidden_or_malformed_files_set_no_limit() {
        for contents in [
            &[][..],
            &[("/proc/self/cgroup", "0::/\n")],
            &[("/proc/self/cgroup", "nonsense"), ("/proc/self/mountinfo", "nonsense")],
            &[("/proc/self/cgroup", "0::/../../outside\n"), ("/proc/self/mountinfo", V2_MOUNT)],
        ] {
            let tree = Tree::new(contents);
            assert_eq!(ControlGroups::find(&tree.files).memory(&tree.files), None);
        }
    }
}
