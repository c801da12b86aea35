//! Whether a process is this user's, and is what it calls itself: conditions for a command that is made from its arguments.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::process::{Process, text};

impl Process {
    /// Whether the process belongs to this program's user, and sees the same files: all its user ids are this user's,
    /// and its root directory and namespaces are this program's. A process that executed a program with the set-user-ID
    /// bit has the other id only as its effective one.
    pub fn is_own(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let status = text(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let ids: Vec<Option<u32>> =
            ids.iter().flat_map(|ids| ids.split_whitespace()).map(|id| id.parse().ok()).collect();
        let is_same = |file: &str| {
            let of = |pid: &str| fs::metadata(format!("/proc/{pid}/{file}")).map(|found| (found.dev(), found.ino()));
            of("self").ok().is_some_and(|own| of(&self.pid.to_string()).ok() == Some(own))
        };
        ids.len() == 4
            && ids.iter().all(|id| *id == Some(own))
            && ["root", "ns/mnt", "ns/user"].iter().all(|file| is_same(file))
    }

    /// Whether a shell here that is given the process's arguments executes the same program in the same directory. A
    /// process can call itself anything.
    pub fn runs_its_name(&self, name: &[u8]) -> bool {
        let Ok(program) = fs::canonicalize(format!("/proc/{}/exe", self.files_of)) else { return false };
        // Relative names in the arguments would be other files elsewhere.
        let directory = |pid: &str| fs::canonicalize(format!("/proc/{pid}/cwd")).ok();
        if directory("self").is_none_or(|own| directory(&self.files_of.to_string()) != Some(own)) {
            return false;
        }
        let name = Path::new(OsStr::from_bytes(name));
        let is = |path: &Path| fs::canonicalize(path).is_ok_and(|found| found == program);
        if name.as_os_str().as_bytes().contains(&b'/') {
            return is(name);
        }
        found_by_shell(name).is_some_and(|file| is(&file))
    }
}

/// The program that a shell here runs by this name; `None` if there is none.
pub fn found_by_shell(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name.as_ref())).find(|file| is_executable(file))
}

/// Whether a file can be executed by someone.
fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_calls_itself_something_else_is_recognised() {
        use std::os::unix::process::CommandExt;
        let runs = |program: &str, name: &str, asked: &str| {
            let mut command = std::process::Command::new(program);
            let mut child = command.arg0(name).arg("60").spawn().unwrap();
            let process = Process::read(child.id()).unwrap();
            let runs = (process.is_own(), process.runs_its_name(asked.as_bytes()));
            child.kill().unwrap();
            child.wait().unwrap();
            runs
        };
        let sleep = found_by_shell("sleep").unwrap().into_os_string().into_string().unwrap();
        assert_eq!(found_by_shell("no-such-program"), None);
        assert_eq!(runs("sleep", "sleep", "sleep"), (true, true));
        assert_eq!(runs("sleep", &sleep, &sleep), (true, true));
        for name in ["rm", "/bin/rm", "./sleep", "no-such-program", "", "/", "../sleep"] {
            assert_eq!(runs("sleep", name, name), (true, false), "{name}");
        }
        // A program with the set-user-ID bit that another user started has this user's effective id only.
        if rustix::process::geteuid().is_root() {
            let mut child =
                std::process::Command::new("setpriv").args(["--ruid=65533", "sleep", "60"]).spawn().unwrap();
            let is_started = || Process::read(child.id()).is_some_and(|process| process.comm == "sleep");
            while !is_started() {
                std::thread::yield_now();
            }
            let is_own = Process::read(child.id()).unwrap().is_own();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(!is_own);
        } else {
            assert!(!Process::read(1).unwrap().is_own());
        }
    }
}
