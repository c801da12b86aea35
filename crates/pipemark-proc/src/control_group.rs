//! Finds the processes of a unit of systemd, a container or a control group, and names those of a process, from
//! /proc/PID/cgroup. No daemon is asked.

mod container_names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::process::{Process, pids};
use container_names::ContainerNames;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The length of a container's ID in digits.
const ID_LENGTH: usize = 64;

/// The fewest digits that identify a container, as for docker.
const MIN_ID_LENGTH: usize = 4;

/// A group of processes that is chosen by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupName {
    /// A unit of systemd; without its type, a service.
    Unit(String),
    /// A container of docker or podman, by its name, its ID or the first digits of its ID.
    Container(String),
    /// A control group, by its path in its hierarchy or below /sys/fs/cgroup, with all control groups below it.
    Path(String),
}

/// A control group of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupPath {
    /// The controllers of its hierarchy, as /proc/PID/cgroup names them; empty for version 2.
    controllers: String,
    path: String,
}

/// The control groups of a process: one in each hierarchy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupPaths(Vec<GroupPath>);

impl GroupPaths {
    /// Those of a process; none if they are unreadable.
    pub fn of(pid: u32) -> GroupPaths {
        GroupPaths::parse(&fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default())
    }

    fn parse(text: &str) -> GroupPaths {
        let group = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some(GroupPath { controllers: parts.next()?.to_owned(), path: parts.next()?.to_owned() })
        };
        GroupPaths(text.lines().filter_map(group).collect())
    }

    /// The parts of each path, from the innermost outwards.
    fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|group| group.path.rsplit('/'))
    }

    /// The innermost unit of systemd that stands for a job: no login session, no desktop application, and not systemd
    /// itself.
    pub fn unit(&self) -> Option<&str> {
        const OTHERS: [&str; 7] = ["user@", "session-", "init.", "app-", "vte-spawn-", "tmux-spawn-", "systemd-"];
        let is_job = |part: &&str| {
            (part.ends_with(".service") || part.ends_with(".scope"))
                && !OTHERS.iter().any(|other| part.starts_with(other))
                && id_in(part).is_none()
        };
        self.parts().find(is_job)
    }

    /// The ID of the container that the process runs in.
    pub fn container_id(&self) -> Option<&str> {
        self.parts().find_map(id_in)
    }

    fn is_in_unit(&self, name: &str) -> bool {
        self.parts().any(|part| part == name)
    }

    fn is_in_path(&self, path: &str) -> bool {
        self.0.iter().any(|group| {
            let is_below =
                |whole: String| whole.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            let hierarchy = match group.controllers.as_str() {
                "" => "unified",
                controllers => controllers.strip_prefix("name=").unwrap_or(controllers),
            };
            let own = group.path.trim_end_matches('/');
            path.is_empty()
                || is_below(own.to_owned())
                || is_below(format!("{MOUNT}/{hierarchy}{own}"))
                || group.controllers.is_empty() && is_below(format!("{MOUNT}{own}"))
        })
    }
}

/// The ID of a container in a part of a path, such as `docker-ID.scope`, `libpod-ID` or the ID alone. Monitors of
/// containers aren't in them.
fn id_in(part: &str) -> Option<&str> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let at = part.len().checked_sub(ID_LENGTH)?;
    let (prefix, id) = (part.get(..at)?, part.get(at..)?);
    let is_id = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_id && (prefix.is_empty() || prefix.ends_with('-')) && !prefix.contains("conmon")).then_some(id)
}

/// The processes in a group, in ascending order, without this one.
///
/// # Errors
/// A sentence, if there are none, or if the name fits several containers.
pub fn processes_in(name: &GroupName) -> Result<Vec<u32>, String> {
    let own = std::process::id();
    let all = pids().into_iter().filter(|&pid| pid != own).map(|pid| (pid, GroupPaths::of(pid)));
    let mut found: Vec<u32> = match name {
        GroupName::Unit(name) => {
            let unit = unit_name(name);
            all.filter(|(_, groups)| groups.is_in_unit(&unit)).map(|(pid, _)| pid).collect()
        }
        GroupName::Path(path) => {
            let path = path.trim_end_matches('/');
            let path = if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
            all.filter(|(_, groups)| groups.is_in_path(&path)).map(|(pid, _)| pid).collect()
        }
        GroupName::Container(name) => {
            let mut by_id: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for (pid, groups) in all {
                if let Some(id) = groups.container_id() {
                    by_id.entry(id.to_owned()).or_default().push(pid);
                }
            }
            let id = container_named(name, &by_id.keys().cloned().collect(), &ContainerNames::of_this_user())?;
            by_id.remove(&id).unwrap_or_default()
        }
    };
    found.retain(|&pid| Process::read_stat(pid).is_some_and(|process| !process.of_kernel && process.state != 'Z'));
    found.sort_unstable();
    match (found.is_empty(), name) {
        (false, _) => Ok(found),
        (_, GroupName::Unit(name)) => Err(format!("the unit {} has no processes", unit_name(name))),
        (_, GroupName::Path(path)) => Err(format!("the control group {path} has no processes")),
        (_, GroupName::Container(name)) => Err(format!("the container {name} has no processes")),
    }
}

/// The name of a unit, with its type.
fn unit_name(name: &str) -> String {
    const TYPES: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];
    if TYPES.iter().any(|kind| name.ends_with(kind)) { name.to_owned() } else { format!("{name}.service") }
}

/// The ID of the container with this name, ID or start of an ID.
fn container_named(name: &str, ids: &BTreeSet<String>, names: &ContainerNames) -> Result<String, String> {
    if let Some(id) = ids.iter().find(|id| names.of(id).as_deref() == Some(name)) {
        return Ok(id.clone());
    }
    let fits = |id: &&String| name.len() >= MIN_ID_LENGTH && id.starts_with(name);
    match ids.iter().filter(fits).collect::<Vec<_>>()[..] {
        [id] => Ok(id.clone()),
        [] => Err(format!("no running container is called '{name}'; if its name is unreadable for you, give its ID")),
        ref several => Err(format!("{} containers have an ID that begins with {name}", several.len())),
    }
}

/// Names the unit or container of processes.
pub struct GroupNames(ContainerNames);

/// What a process belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    pub unit: Option<String>,
    /// The name of the container, or the first digits of its ID if its name is unreadable.
    pub container: Option<String>,
}

impl GroupNames {
    /// Reads the names of containers as far as this user may.
    pub fn read() -> GroupNames {
        GroupNames(ContainerNames::of_this_user())
    }

    pub fn of(&self, pid: u32) -> Membership {
        const SHORT: usize = 12;
        let groups = GroupPaths::of(pid);
        let container = groups.container_id().map(|id| self.0.of(id).unwrap_or_else(|| id[..SHORT].to_owned()));
        let unit = groups.unit().map(str::to_owned).filter(|_| container.is_none());
        Membership { unit, container }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn groups(paths: &[&str]) -> GroupPaths {
        GroupPaths::parse(&paths.iter().map(|path| format!("0::{path}\n")).collect::<String>())
    }

    #[test]
    fn the_unit_of_a_job_is_named() {
        for (path, unit) in [
            ("/system.slice/nightly.service", Some("nightly.service")),
            ("/system.slice/system-backup.slice/backup@home.service", Some("backup@home.service")),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/own.service", Some("own.service")),
            ("/user.slice/user-1000.slice/session-3.scope", None),
            ("/user.slice/user-1000.slice/user@1000.service/init.scope", None),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope", None),
            ("/system.slice/run-r1.scope", Some("run-r1.scope")),
            ("/system.slice/nightly.service/below", Some("nightly.service")),
            ("/", None),
        ] {
            assert_eq!(groups(&[path]).unit(), unit, "{path}");
        }
        let hybrid = GroupPaths::parse("9:name=systemd:/system.slice/a.service\n4:memory:/x\n0::/\n");
        assert_eq!(hybrid.unit(), Some("a.service"));
    }

    #[test]
    fn containers_are_found_in_each_layout() {
        for path in [
            "/docker/ID",
            "/system.slice/docker-ID.scope",
            "/machine.slice/libpod-ID.scope/container",
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
            "/libpod_parent/libpod-ID",
            "/kubepods.slice/kubepods-pod1.slice/cri-containerd-ID.scope",
            "/docker/ID/system.slice/inner.service",
        ] {
            let found = groups(&[&path.replace("ID", ID)]);
            assert_eq!(found.container_id(), Some(ID), "{path}");
        }
        for path in ["/machine.slice/libpod-conmon-ID.scope", "/docker", "/system.slice/xID.service", "/IDx"] {
            assert_eq!(groups(&[&path.replace("ID", ID)]).container_id(), None, "{path}");
        }
    }

    #[test]
    fn a_path_is_that_of_any_hierarchy() {
        let groups = GroupPaths::parse("9:name=systemd:/a/b\n4:memory:/m/x\n3:cpu,cpuacct:/c\n0::/u/v\n");
        for path in [
            "/a",
            "/a/b",
            "/m/x",
            "/u",
            "/sys/fs/cgroup/systemd/a/b",
            "/sys/fs/cgroup/memory/m",
            "/sys/fs/cgroup/cpu,cpuacct/c",
            "/sys/fs/cgroup/u/v",
            "/sys/fs/cgroup/unified/u",
            "/sys/fs/cgroup",
            "",
        ] {
            assert!(groups.is_in_path(path), "{path}");
        }
        for path in ["/a/bb", "/b", "/sys/fs/cgroup/memory/a", "/a/b/c", "/sys/fs/cgroup/m"] {
            assert!(!groups.is_in_path(path), "{path}");
        }
    }

    #[test]
    fn a_container_is_found_by_its_name_or_the_start_of_its_id() {
        let other = ID.replace("0123", "0124");
        let ids: BTreeSet<String> = [ID.to_owned(), other.clone()].into();
        let names = ContainerNames::for_tests([(other.as_str(), "web")]);
        let find = |name: &str| container_named(name, &ids, &names);
        assert_eq!(find("web"), Ok(other.clone()));
        assert_eq!(find("01234"), Ok(ID.to_owned()));
        assert_eq!(find(&other), Ok(other));
        for (name, sentence) in [("012", "no running"), ("we", "no running"), ("01245", "no running")] {
            let error = find(name).unwrap_err();
            assert!(error.contains(sentence), "{name}: {error}");
        }
        let several: BTreeSet<String> = [ID.to_owned(), ID.replace("cdef0123", "cdef0124")].into();
        let error = container_named("0123", &several, &names).unwrap_err();
        assert_eq!(error, "2 containers have an ID that begins with 0123");
    }

    #[test]
    fn this_process_is_in_its_groups_only() {
        assert_eq!(unit_name("nightly"), "nightly.service");
        assert_eq!(unit_name("a.slice"), "a.slice");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = processes_in(&GroupName::Path(String::new())).unwrap();
        assert!(found.contains(&child.id()) && !found.contains(&std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        let none = processes_in(&GroupName::Unit("no-such-unit".to_owned())).unwrap_err();
        assert_eq!(none, "the unit no-such-unit.service has no processes");
    }
}
