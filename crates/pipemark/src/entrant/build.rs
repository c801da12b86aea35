//! Building an entrant, when its sources, commands or tools are not those that it was last built from.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::tool::Found;
use super::{Build, Entrant, command};

/// A cold Zig or Rust build takes half a minute on a slow machine.
const LIMIT: Duration = Duration::from_secs(600);
/// As much of a failed build's output as is quoted: its end, where compilers sum up.
const MAX_QUOTE: u64 = 1500;
/// Sources deeper than this are not looked at; ours are one folder deep.
const MAX_DEPTH: u32 = 4;

impl Entrant {
    /// Builds it if that is due; returns whether it was.
    ///
    /// # Errors
    /// Which command failed, with the end of its output.
    pub(super) fn build(&self, tools: &[Found], when: Build) -> Result<bool, String> {
        let failed = |error: io::Error| format!("{} cannot be written: {error}", self.out.display());
        fs::create_dir_all(&self.out).map_err(failed)?;
        // Two builds into one folder would find each other's half-written files.
        let log = File::options().read(true).write(true).create(true).truncate(false).open(self.out.join("build.log"));
        let mut log = log.map_err(failed)?;
        flock(&log, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let stamp_file = self.out.join("built-from");
        let stamp = self.stamp(tools).map_err(|error| format!("{} cannot be read: {error}", self.folder.display()))?;
        if when == Build::Stale && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
            return Ok(false);
        }
        let _ = fs::remove_file(&stamp_file);
        log.set_len(0).and_then(|()| log.rewind()).map_err(failed)?;
        for words in &self.form.build.commands {
            let words = self.expand(words, tools);
            let ended = command::run(&words, &self.folder, &log, LIMIT);
            let trouble = match ended {
                Ok(status) if status.success() => continue,
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            let quote = end_of(&mut log).unwrap_or_default();
            return Err(format!(
                "it does not build: '{}': {trouble}; all of its output is in {}; the end of it: {quote}",
                words.join(" "),
                self.out.join("build.log").display()
            ));
        }
        fs::write(&stamp_file, stamp).map_err(failed)?;
        Ok(!self.form.build.commands.is_empty())
    }

    /// Everything that a build depends on, as text.
    fn stamp(&self, tools: &[Found]) -> io::Result<String> {
        let mut stamp = format!("{}\n", env!("CARGO_PKG_VERSION"));
        for tool in tools {
            stamp.push_str(&format!("{} {:?} {}\n", tool.name, tool.words, tool.version));
        }
        stamp.push_str(&format!("{:?}\n", self.form.build.commands));
        sources(&self.folder, 0, &mut stamp)?;
        Ok(stamp)
    }
}

/// Path, size and time of change of every file below `folder`.
fn sources(folder: &Path, depth: u32, stamp: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, about) = (entry.path(), entry.metadata()?);
        if about.is_dir() && depth < MAX_DEPTH && entry.file_name() != "__pycache__" {
            sources(&path, depth + 1, stamp)?;
        } else if about.is_file() {
            let changed = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            stamp.push_str(&format!("{} {} {}\n", path.display(), about.len(), changed.as_nanos()));
        }
    }
    Ok(())
}

fn end_of(log: &mut File) -> io::Result<String> {
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MAX_QUOTE)))?;
    let mut bytes = Vec::new();
    log.take(MAX_QUOTE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}
