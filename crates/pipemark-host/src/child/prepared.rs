//! Children that wait to execute their program, and that have none of this program's memory by then: see
//! [`pipemark_sys::launch`].

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

use pipemark_sys::launch::{ExecCall, HeldProgram};
use pipemark_sys::usage::Usage;

use crate::child::{Child, ProcessGroup, guard};

/// Where programs are looked for if PATH isn't set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A child that waits to execute its program.
#[derive(Debug)]
pub struct PreparedChild {
    child: Child,
    held: HeldProgram,
}

impl PreparedChild {
    /// Prepares a process, called `name` in messages, for a command with these streams. `None` if that isn't possible
    /// here, for this command or for this group; [`Child::start`] may then start it.
    ///
    /// # Errors
    /// If no process, descriptor or memory is available.
    pub fn prepare(
        name: impl Into<String>,
        command: &mut Command,
        streams: [BorrowedFd; 3],
        group: ProcessGroup<'_>,
    ) -> io::Result<Option<PreparedChild>> {
        let leader = match group {
            ProcessGroup::Own => 0,
            ProcessGroup::Of(leader) => leader.pid.as_raw_nonzero().get(),
            ProcessGroup::Inherited => return Ok(None),
        };
        guard::mark(command);
        let Some(program) = program(command) else { return Ok(None) };
        let Some(held) = HeldProgram::prepare(&program, streams, leader)? else { return Ok(None) };
        let leads_group = matches!(group, ProcessGroup::Own);
        let child = Child { name: name.into(), pid: held.pid(), leads_group, stderr: None, end: None };
        Ok(Some(PreparedChild { child, held }))
    }

    /// The process.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// What the child has used so far, which the kernel counts as its program's.
    pub fn used(&self) -> Usage {
        self.held.used()
    }

    /// Lets the child end without executing its program.
    pub fn abandon(self) -> Child {
        self.child
    }

    /// Lets the child execute its program.
    ///
    /// # Errors
    /// If the program can't be executed.
    pub fn release(self) -> io::Result<Child> {
        self.held.release()?;
        Ok(self.child)
    }
}

/// The program of a command, with this process's environment; `None` if it has another directory or can't be executed.
fn program(command: &Command) -> Option<ExecCall> {
    if command.get_current_dir().is_some() {
        return None;
    }
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => environment.insert(name.to_owned(), value.to_owned()),
            None => environment.remove(name),
        };
    }
    let name = command.get_program();
    let path = environment.get(OsStr::new("PATH")).cloned().unwrap_or_else(|| DEFAULT_PATH.into());
    let paths: Vec<OsString> = match name.as_bytes().contains(&b'/') {
        true => vec![name.to_owned()],
        false => std::env::split_paths(&path).map(|directory| directory.join(name).into_os_string()).collect(),
    };
    let string = |bytes: Vec<u8>| CString::new(bytes).ok();
    let variable = |(name, value): (OsString, OsString)| string([name.as_bytes(), value.as_bytes()].join(&b'='));
    let arguments = [name].into_iter().chain(command.get_args());
    Some(ExecCall {
        paths: paths.into_iter().map(|path| string(path.into_vec())).collect::<Option<_>>()?,
        arguments: arguments.map(|word| string(word.as_bytes().to_vec())).collect::<Option<_>>()?,
        environment: environment.into_iter().map(variable).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use super::*;

    /// Runs a command, and returns its exit code, its output and its peak memory; `None` where nothing can be prepared.
    fn run(command: &mut Command) -> Option<(Option<i32>, String, u64)> {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let (mut output, writer) = std::io::pipe().unwrap();
        let streams = [null.as_fd(), writer.as_fd(), null.as_fd()];
        let prepared = PreparedChild::prepare("test", command, streams, ProcessGroup::Own).unwrap()?;
        drop(writer);
        let mut child = prepared.release().unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(child.wait(Instant::now() + Duration::from_secs(60), None).unwrap());
        let (status, usage) = child.end().unwrap();
        Some((status.code(), text, usage.peak_bytes))
    }

    #[test]
    fn a_command_finds_its_program_and_has_its_environment() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $A $B; exit 3"]).env("A", "1").env_remove("B");
        let Some((code, text, _)) = run(&mut command) else { return };
        assert_eq!((code, text.as_str()), (Some(3), "1\n"));
        let own = std::env::var("PATH").unwrap();
        let (_, text, _) = run(Command::new("sh").args(["-c", "echo $PATH"])).unwrap();
        assert_eq!(text.trim_end(), own);
    }

    #[test]
    fn a_command_that_cannot_be_prepared_is_left_to_others() {
        let none = |command: &mut Command| program(command).is_none();
        assert!(none(Command::new("true").current_dir("/")));
        assert!(!none(Command::new("true").arg("a")));
    }

    #[test]
    fn a_child_that_is_never_released_leaves_no_process() {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let streams = [null.as_fd(), null.as_fd(), null.as_fd()];
        let prepared = PreparedChild::prepare("test", &mut Command::new("true"), streams, ProcessGroup::Own).unwrap();
        let Some(prepared) = prepared else { return };
        let pid = prepared.child().pid();
        drop(prepared);
        assert!(!std::path::Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists());
    }
}
