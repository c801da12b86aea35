//! What decides about a pipeline besides its text: variables of the environment, the directories of programs, and the kinds
//! of the files that it reads.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pipemark_causes::environment;
use serde::Deserialize;

/// A variable by which a program may write or start others.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EffectiveVariable {
    names: Vec<String>,
    programs: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct EnvironmentTable {
    variable: Vec<EffectiveVariable>,
}

/// The rows of purity.toml about variables.
static TABLE: LazyLock<Vec<EffectiveVariable>> = LazyLock::new(|| {
    toml::from_str::<EnvironmentTable>(include_str!("../purity.toml")).expect("a test reads the table").variable
});

/// Directories whose programs are known by their names.
pub(super) const SYSTEM_DIRECTORIES: [&str; 5] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];

/// The surroundings in which a pipeline will run.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// As in /proc/PID/environ.
    pub environment: Vec<u8>,
    /// Whether POSIXLY_CORRECT is set.
    pub is_posix: bool,
    /// The directories in which programs are searched.
    directories: Vec<PathBuf>,
}

impl Surroundings {
    /// Those of this program.
    pub fn own() -> Surroundings {
        let path = env::var_os("PATH").unwrap_or_default();
        Surroundings::of(environment::own(), env::split_paths(&path).collect())
    }

    pub fn of(environment: Vec<u8>, directories: Vec<PathBuf>) -> Surroundings {
        let is_posix = names(&environment).any(|name| name == "POSIXLY_CORRECT");
        Surroundings { environment, is_posix, directories }
    }

    /// Why a program that is started as `path` may do something else here than its name says.
    pub fn concern(&self, path: &str, name: &str) -> Option<String> {
        let rows = TABLE.iter();
        let rows = rows.filter(|row| row.programs.is_empty() || row.programs.iter().any(|one| one == name));
        let entries: Vec<&str> = rows.flat_map(|row| &row.names).map(String::as_str).collect();
        let is_listed = |variable: &str| {
            entries.iter().any(|entry| match entry.strip_suffix('*') {
                Some(begin) => variable.starts_with(begin),
                None => variable == *entry,
            })
        };
        if let Some(variable) = names(&self.environment).find(|name| is_listed(name)) {
            return Some(format!("{variable} is set in the environment, by which {name} may do anything"));
        }
        if path.contains('/') {
            return None;
        }
        if !environment::functions(std::iter::once(name), &self.environment).is_empty() {
            return Some(format!("{name} may be a function of bash (export -f, BASH_ENV)"));
        }
        let other = self.shadowing(name)?;
        Some(format!("{name} is {}, which may do anything", pipemark_model::neutral(&other.to_string_lossy())))
    }

    /// The file that is started in place of the system's program: a script, or a file in a directory that depends on the
    /// working directory.
    fn shadowing(&self, name: &str) -> Option<PathBuf> {
        let is_program = |path: &Path| path.metadata().is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0);
        let is_system = |directory: &Path| {
            SYSTEM_DIRECTORIES.iter().any(|system| Path::new(system.trim_end_matches('/')) == directory)
        };
        let first = self.directories.iter().find(|directory| is_program(&directory.join(name)))?;
        let found = first.join(name);
        let is_elsewhere = || self.directories.iter().any(|one| is_system(one) && is_program(&one.join(name)));
        let replaces = !is_system(first) && (first.is_relative() || is_script(&found) && is_elsewhere());
        replaces.then_some(found)
    }
}

/// The names of variables that have a value.
fn names(environment: &[u8]) -> impl Iterator<Item = &str> {
    environment.split(|&byte| byte == 0).filter_map(|entry| {
        let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        (!value.is_empty() || name == "POSIXLY_CORRECT").then_some(name)
    })
}

/// Whether a file begins with `#!`.
fn is_script(path: &Path) -> bool {
    let mut begin = [0; 2];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok() && begin == *b"#!")
}

/// Why a file can't be read again with the same result, as a noun: a FIFO, a terminal, a connection. `None` for other files
/// and for what isn't a file.
pub(super) fn read_once(path: &str) -> Option<&'static str> {
    /// Devices that give the same to everybody.
    const HARMLESS: [&str; 8] = ["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr"];
    if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
        return Some("a connection");
    }
    if path == "/proc/kmsg" || path.ends_with("/trace_pipe") {
        return Some("a log that can be read once");
    }
    if path.strip_prefix("/dev/").is_some_and(|name| HARMLESS.contains(&name) || name.starts_with("fd/")) {
        return None;
    }
    let kind = fs::metadata(path).ok()?.file_type();
    match () {
        () if kind.is_fifo() => Some("a FIFO"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_char_device() => Some("a device"),
        () => None,
    }
}
