//! The names of containers, from what docker and podman keep in files and in the command lines of podman's monitors.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::process::{Process, pids};

/// A larger file isn't read.
const MAX_BYTES: u64 = 16 << 20;

/// Names of containers by ID.
pub(super) struct ContainerNames {
    /// The directories in which docker has one for each container.
    of_docker: Vec<PathBuf>,
    /// Those that podman's files and monitors name.
    known: HashMap<String, String>,
}

/// docker's file on a container.
#[derive(Deserialize)]
struct DockerContainer {
    #[serde(rename = "Name")]
    name: String,
}

/// An entry of podman's file on its containers.
#[derive(Deserialize)]
struct PodmanContainer {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

impl ContainerNames {
    /// The names that this user may read: those of the system's containers are root's.
    pub(super) fn of_this_user() -> ContainerNames {
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
        let mut names = ContainerNames::in_directories([Some("/var/lib".into()), home].into_iter().flatten());
        names.known.extend(monitored());
        names
    }

    /// Those below these directories.
    fn in_directories(directories: impl Iterator<Item = PathBuf>) -> ContainerNames {
        let mut names = ContainerNames { of_docker: Vec::new(), known: HashMap::new() };
        for directory in directories {
            names.of_docker.push(directory.join("docker/containers"));
            let list = directory.join("containers/storage/overlay-containers/containers.json");
            let found: Vec<PodmanContainer> = json(&list).unwrap_or_default();
            let named =
                found.into_iter().filter_map(|container| Some((container.id, container.names.into_iter().next()?)));
            names.known.extend(named);
        }
        names
    }

    /// The name of a container; `None` if it is unreadable.
    pub(super) fn of(&self, id: &str) -> Option<String> {
        let of_docker = |directory: &PathBuf| json::<DockerContainer>(&directory.join(id).join("config.v2.json"));
        let name = self.of_docker.iter().find_map(of_docker).map(|container| container.name);
        name.map(|name| name.trim_start_matches('/').to_owned()).or_else(|| self.known.get(id).cloned())
    }

    #[cfg(test)]
    pub(super) fn for_tests<'a>(names: impl IntoIterator<Item = (&'a str, &'a str)>) -> ContainerNames {
        let known = names.into_iter().map(|(id, name)| (id.to_owned(), name.to_owned())).collect();
        ContainerNames { of_docker: Vec::new(), known }
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The names in the command lines of conmon, which monitors each container of podman: `-c ID -n NAME`. Other users but
/// root could claim any name.
fn monitored() -> impl Iterator<Item = (String, String)> {
    let is_trusted = |process: &Process| {
        let owner = fs::metadata(format!("/proc/{}", process.pid)).map(|about| about.uid());
        owner.is_ok_and(|owner| owner == 0 || owner == geteuid().as_raw())
    };
    let monitors = pids().into_iter().filter_map(Process::read_stat).filter(|process| process.comm == "conmon");
    let monitors = monitors.filter(is_trusted);
    monitors.filter_map(|process| of_monitor(&process.words()))
}

fn of_monitor(words: &[String]) -> Option<(String, String)> {
    let value = |letter: &str| words.iter().skip_while(|word| *word != letter).nth(1).cloned();
    Some((value("-c")?, value("-n")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_the_files_of_docker_and_podman() {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("docker/containers/d1/config.v2.json", r#"{"ID": "d1", "State": {"Pid": 7}, "Name": "/web"}"#),
            ("docker/containers/d2/config.v2.json", "damaged"),
            (
                "containers/storage/overlay-containers/containers.json",
                r#"[{"id": "p1", "names": ["job", "other"], "image": "x"}, {"id": "p2"}]"#,
            ),
        ] {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let names = ContainerNames::in_directories([directory.path().into(), "/nonexistent".into()].into_iter());
        for (id, name) in [("d1", Some("web")), ("p1", Some("job")), ("p2", None), ("d2", None), ("d3", None)] {
            assert_eq!(names.of(id).as_deref(), name, "{id}");
        }
    }

    #[test]
    fn monitors_name_their_containers() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let monitor = words("/usr/bin/conmon --api-version 1 -c 12ab -u 12ab -r /usr/bin/crun -n job --exit-dir /run");
        assert_eq!(of_monitor(&monitor), Some(("12ab".to_owned(), "job".to_owned())));
        assert_eq!(of_monitor(&words("conmon -c")), None);
    }
}
