//! `why`, `watch` and the list of pipelines with units, containers and control groups, which the tests make themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::{eventually, pipemark, report_skip};

/// A control group that is removed when dropped, after its processes were killed.
struct ControlGroup {
    path: PathBuf,
    shell: Option<Child>,
}

impl ControlGroup {
    /// `None` if this system has no hierarchy in which groups can be made.
    fn new(name: &str) -> Option<ControlGroup> {
        // The hierarchies that systemd uses, also where version 1 is mounted beside version 2.
        let roots = ["systemd", "unified", ""].map(|directory| Path::new("/sys/fs/cgroup").join(directory));
        let path = roots.iter().map(|root| root.join(name)).find(|path| fs::create_dir_all(path).is_ok());
        path.map(|path| ControlGroup { path, shell: None })
    }

    /// Runs a pipeline of a shell in the group.
    fn start(&mut self, pipeline: &str) {
        let script = format!("echo $$ >{}/cgroup.procs && {pipeline}", self.path.display());
        let mut command = Command::new("bash");
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.shell = Some(command.spawn().unwrap());
        eventually("the pipeline runs in the group", || self.processes().len() > 2);
    }

    fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for pid in self.processes() {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        if let Some(shell) = &mut self.shell {
            let _ = shell.wait();
        }
        eventually("the group is empty", || self.processes().is_empty());
        for path in self.path.ancestors().take_while(|path| path.to_string_lossy().contains("pipemark")) {
            let _ = fs::remove_dir(path);
        }
    }
}

/// The names of the stages that a verb has sampled.
fn stages(words: &[&str]) -> Vec<String> {
    let output = pipemark(words);
    let line = output.stdout.lines().next().unwrap_or_else(|| panic!("{words:?}: {}", output.stderr));
    let report: Value = serde_json::from_str(line).unwrap();
    report["stages"].as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pipelines_of_a_unit_or_container_are_found() {
    let number = std::process::id();
    let unit = format!("nightly-{number}.service");
    let id = format!("{number:0>8x}{}", "0123456789abcdef".repeat(4)).chars().take(64).collect::<String>();
    let (Some(mut of_unit), Some(mut of_container)) = (
        ControlGroup::new(&format!("pipemark-{number}.slice/{unit}")),
        ControlGroup::new(&format!("pipemark-machine-{number}.slice/docker-{id}.scope")),
    ) else {
        report_skip("control groups", "this user may not make any");
        return;
    };
    of_unit.start("yes | tr y n | gzip >/dev/null");
    of_container.start("yes | wc -l");
    let path = of_unit.path.to_string_lossy().into_owned();
    let slice = format!("pipemark-{number}.slice");
    for words in [
        ["--unit", &unit],
        ["--unit", unit.strip_suffix(".service").unwrap()],
        ["--unit", &slice],
        ["--cgroup", &path],
        ["--cgroup", &slice],
    ] {
        let found = stages(&[&["why"][..], &words, &["--for", "200ms", "--json", "-"]].concat());
        assert_eq!(found, ["yes", "tr", "gzip"], "{words:?}");
    }
    for name in [&id[..], &id[..12]] {
        assert_eq!(stages(&["why", "--container", name, "--for", "200ms", "--json", "-"]), ["yes", "wc"]);
    }
    let watched = ["watch", "--unit", &unit, "--for", "700ms", "--interval", "500ms", "--json", "-"];
    assert_eq!(stages(&watched), ["yes", "tr", "gzip"]);

    let list = pipemark(&["why", "--json", "-"]).stdout;
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let with = |key: &str, value: &str| list.iter().find(|live| live[key] == value).map(|live| live["stages"].clone());
    assert_eq!(with("unit", &unit).unwrap().as_array().unwrap().len(), 3);
    assert_eq!(with("container", &id[..12]).unwrap().as_array().unwrap().len(), 2);
    let table = pipemark(&["why"]).stdout;
    for text in [format!("unit {unit}"), format!("container {}", &id[..12])] {
        assert!(table.contains(&text), "{table}");
    }
}

#[test]
fn groups_without_processes_are_errors() {
    for (words, sentence) in [
        (&["why", "--unit", "pipemark-no-such"][..], "the unit pipemark-no-such.service has no processes"),
        (&["tune", "--unit", "pipemark-no-such.timer.service"], "has no processes"),
        (&["tune", "--live", "--container", "pipemark-none"], "no running container is called 'pipemark-none'"),
        (&["watch", "--cgroup", "/pipemark/none"], "the control group /pipemark/none has no processes"),
        (&["why", "--unit", "a", "--container", "b"], "cannot be used with"),
        (&["why", "--unit", "a", "x | y"], "cannot be used with"),
    ] {
        let output = pipemark(words);
        assert!(matches!(output.code(), Some(2 | 125)), "{words:?}: {:?}", output.code());
        assert!(output.stderr.contains(sentence), "{words:?}: {}", output.stderr);
    }
}
