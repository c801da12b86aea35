//! The sandbox of guesses: whatever a guess's stages do, nothing outside changes. This program starts itself with a
//! hidden verb, confines itself ([`confinement`]), and becomes the shell that runs the stages.
//!
//! The stages have no descriptors but standard input, which only reads, and the pipes. They can't leave the process
//! group that is killed after each run.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::rand::{GetRandomFlags, getrandom};

use pipemark_ab::shell::Shell;
use pipemark_host::child::guard;
use pipemark_sys::confinement;

use crate::parts::PART_VERB;
use crate::typed::quote;

/// The word after the hidden verb.
pub const CONFINED: &str = "confined";

/// A sandbox for the runs of guesses. Dropping it removes the directory in which they may keep temporary files.
pub struct Sandbox {
    directory: PathBuf,
}

impl Sandbox {
    /// # Errors
    /// Why nothing can be confined here, as a clause.
    pub fn new() -> Result<Sandbox, String> {
        if let Some(obstacle) = confinement::obstacle() {
            return Err(obstacle.to_owned());
        }
        let mut random = [0u8; 8];
        getrandom(&mut random, GetRandomFlags::empty()).map_err(|error| error.to_string())?;
        let place = std::env::temp_dir();
        let directory = place.join(format!("pipemark-{:016x}", u64::from_le_bytes(random)));
        if directory.to_str().is_none_or(|path| path.contains('\n')) {
            return Err(format!("the path of {} isn't text", place.display()));
        }
        guard::remember(&format!("{} {}", guard::DIRECTORY, directory.display()));
        let made = fs::DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|error| format!("no directory can be made in {}: {error}", place.display()))?;
        Ok(Sandbox { directory })
    }

    /// The command with which a shell runs `text` in the sandbox. `program` is the path of this program.
    pub fn command(&self, program: &str, shell: Shell, text: &str) -> Option<String> {
        let words = shell.words(OsStr::new(text)).ok()?;
        let words: Vec<&str> = words.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
        let own = [program, PART_VERB, CONFINED, self.directory.to_str()?];
        let quoted: Vec<String> = own.into_iter().chain(words).map(quote).collect();
        Some(format!("exec {}", quoted.join(" ")))
    }

    /// Removes temporary files that a killed run left.
    pub fn clear(&self) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.for_each(|entry| drop(fs::remove_file(entry.path())));
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Confines this process, and executes the command. `words` are the directory for temporary files and the command.
/// Returns the exit code if that fails.
pub fn main(words: &[OsString]) -> u8 {
    let [directory, program, arguments @ ..] = words else { return 2 };
    let error = confine(Path::new(directory)).map_or_else(
        |error| io::Error::new(error.kind(), format!("the sandbox could not be made: {error}")),
        // Nothing is executed outside of the sandbox.
        |()| Command::new(program).args(arguments).env("TMPDIR", directory).exec(),
    );
    let _ = writeln!(io::stderr(), "pipemark: {error}");
    126
}

fn confine(directory: &Path) -> io::Result<()> {
    confinement::keep_other_descriptors()?;
    confinement::confine(directory)
}
