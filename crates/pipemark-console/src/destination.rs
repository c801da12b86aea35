//! Destinations of results: standard output, whose reader may close it early, or a file, which is either replaced
//! completely or left unchanged.

use std::convert::Infallible;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use pipemark_sys::start::stdout_was_closed;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use pipemark_model::neutral;

/// `FILE`, or `-` for standard output.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file. A regular file is replaced as a whole. A device or a FIFO is written to.
    File(PathBuf),
}

impl FromStr for Destination {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            // `/dev/stdout` counts as standard output. If standard output is a regular file, replacing it by name would
            // discard its content.
            "-" | "/dev/stdout" => Destination::Stdout,
            _ => Destination::File(text.into()),
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Stdout => f.write_str("standard output"),
            Destination::File(path) => f.write_str(&neutral(&path.to_string_lossy())),
        }
    }
}

/// The error that an output could not be written. Its text is a message for the user.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the {what} to {destination}: {cause}; {}", self.advice())]
pub struct OutputError {
    /// The name of the output, such as `JSON`.
    what: &'static str,
    destination: Destination,
    #[source]
    cause: io::Error,
}

impl OutputError {
    fn advice(&self) -> &'static str {
        match (self.cause.kind(), &self.destination) {
            (io::ErrorKind::InvalidData, _) => "this is a bug in pipemark; please report it",
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => "free some space or write elsewhere",
            (io::ErrorKind::NotFound, _) => "create the directory first or write elsewhere",
            (_, Destination::Stdout) => "write to a FILE instead",
            (_, Destination::File(_)) => "choose another file, or - for standard output",
        }
    }
}

impl Destination {
    /// Checks that the destination can be written, before time is spent on measuring.
    ///
    /// # Errors
    /// If the directory does not exist or isn't writable, the path is a directory, or standard output is closed.
    pub fn check(&self, what: &'static str) -> Result<(), OutputError> {
        let Destination::File(path) = self else { return check_stdout_open().map_err(|cause| self.error(what, cause)) };
        let outcome = match Target::of(path) {
            Ok(Target::Replace(path)) => Draft::create_beside(&path).map(drop),
            Ok(Target::WriteInto(path)) => check_writable(&path),
            Err(error) => Err(error),
        };
        outcome.map_err(|cause| self.error(what, cause))
    }

    /// Writes `content`, called `what` in messages. A pipe that its reader has closed (EPIPE) is no error, because the
    /// reader needs no more output.
    ///
    /// # Errors
    /// If `content` is an error, or cannot be written. A regular file is then unchanged, and no temporary file is left.
    pub fn write(&self, what: &'static str, content: io::Result<String>) -> Result<(), OutputError> {
        self.write_as(what, content, true)
    }

    /// Like [`write`](Self::write), for content that is replaced again soon: doesn't wait until it is on the disk.
    ///
    /// # Errors
    /// As `write`.
    pub fn write_transient(&self, what: &'static str, content: io::Result<String>) -> Result<(), OutputError> {
        self.write_as(what, content, false)
    }

    fn write_as(&self, what: &'static str, content: io::Result<String>, syncs: bool) -> Result<(), OutputError> {
        let write = |content: String| match self {
            Destination::Stdout => {
                check_stdout_open()?;
                let mut out = io::stdout().lock();
                ignore_broken_pipe(out.write_all(content.as_bytes()).and_then(|()| out.flush()))
            }
            Destination::File(path) => write_file(path, content.as_bytes(), syncs),
        };
        content.and_then(write).map_err(|cause| self.error(what, cause))
    }

    /// Whether it is a FIFO, whose writer waits for a reader.
    pub fn is_fifo(&self) -> bool {
        let Destination::File(path) = self else { return false };
        fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo())
    }

    /// Whether writing to this destination would write to the file at `path`, possibly under another name.
    pub fn is_same_file(&self, path: &Path) -> bool {
        let Destination::File(own) = self else { return false };
        let identity = |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
        matches!((identity(own), identity(path)), (Ok(own), Ok(other)) if own == other)
    }

    fn error(&self, what: &'static str, cause: io::Error) -> OutputError {
        OutputError { what, destination: self.clone(), cause }
    }
}

fn check_stdout_open() -> io::Result<()> {
    if stdout_was_closed() { Err(Errno::BADF.into()) } else { Ok(()) }
}

/// How a file is written.
enum Target {
    /// A file to replace by a rename within its directory. Symbolic links are already resolved.
    Replace(PathBuf),
    /// A device, FIFO or other special file, which must not be replaced.
    WriteInto(PathBuf),
}

impl Target {
    fn of(path: &Path) -> io::Result<Target> {
        if path.as_os_str().is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let is_link = is_own_link(path)?;
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if metadata.is_file() => {
                // Checked here, because a rename would replace a write-protected file without an error.
                check_writable(path)?;
                // What wasn't a link isn't followed if it has become one.
                Ok(Target::Replace(if is_link { fs::canonicalize(path)? } else { path.to_owned() }))
            }
            Ok(_) => Ok(Target::WriteInto(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Target::Replace(path.to_owned())),
            Err(error) => Err(error),
        }
    }
}

/// An incomplete file. If the file system supports it, the file has no name until it is complete, so nothing is left if
/// this process is killed.
enum Draft {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Draft {
    /// Creates the draft in the directory of `path`, because a file cannot be renamed to another file system.
    fn create_beside(path: &Path) -> io::Result<Draft> {
        let directory = parent_directory(path);
        // Checked first, because tempfile's error names the temporary file, which the user doesn't know.
        rustix::fs::access(directory, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
        // Not the bits by which a program runs with the rights of its owner, because this user will be the owner.
        let permissions = |known: fs::Metadata| Permissions::from_mode(known.permissions().mode() & 0o777);
        let known = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).map(permissions);
        // The umask applies to this mode, as for any new file.
        let mode = Mode::from_raw_mode(0o666);
        match rustix::fs::open(directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode) {
            Ok(file) => {
                let file = File::from(file);
                if let Some(permissions) = known {
                    file.set_permissions(permissions)?;
                }
                Ok(Draft::Unnamed(file))
            }
            // Not every file system supports unnamed files. An error with another cause occurs again here.
            Err(_) => {
                let permissions = known.unwrap_or_else(|| Permissions::from_mode(0o666));
                Ok(Draft::Named(draft_name().permissions(permissions).tempfile_in(directory)?))
            }
        }
    }

    fn file(&mut self) -> &mut File {
        match self {
            Draft::Unnamed(file) => file,
            Draft::Named(file) => file.as_file_mut(),
        }
    }

    /// Gives the file its name, replacing an existing file.
    fn publish(self, path: &Path) -> io::Result<()> {
        let file = match self {
            Draft::Named(file) => return file.persist(path).map(drop).map_err(|error| error.error),
            Draft::Unnamed(file) => file,
        };
        let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        let link = |to: &Path| rustix::fs::linkat(CWD, &descriptor, CWD, to, AtFlags::SYMLINK_FOLLOW);
        match link(path) {
            // Only a rename can replace a file, and a rename needs a file with a name.
            Err(Errno::EXIST) => {
                let named = draft_name().make_in(parent_directory(path), |to| link(to).map_err(io::Error::from))?;
                named.persist(path).map(drop).map_err(|error| error.error)
            }
            outcome => outcome.map_err(io::Error::from),
        }
    }
}

fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A builder for the names of temporary files.
fn draft_name() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".pipemark-").suffix(".tmp");
    builder
}

/// Checks that this process may write to a file. The file isn't opened, because opening a FIFO would wait for its
/// reader.
fn check_writable(path: &Path) -> io::Result<()> {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(io::Error::from)
}

/// Whether the path is a symbolic link. One that another user put into a directory in which everybody may create files is
/// an error, as it is for the kernel where fs.protected_symlinks is set.
fn is_own_link(path: &Path) -> io::Result<bool> {
    let Some(link) = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink) else { return Ok(false) };
    let directory = fs::metadata(parent_directory(path))?;
    let is_shared = directory.mode() & 0o1002 == 0o1002;
    if is_shared && ![rustix::process::geteuid().as_raw(), directory.uid()].contains(&link.uid()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is a symbolic link of another user"));
    }
    Ok(true)
}

/// Creates a file, or empties it if it exists.
///
/// # Errors
/// As of [`File::create`], and for a symbolic link that another user put into a directory like /tmp.
pub fn create_file(path: &Path) -> io::Result<File> {
    is_own_link(path)?;
    if path.metadata().is_ok_and(|file| file.file_type().is_fifo()) {
        return open_fifo(path, Some(MAX_WAIT_FOR_READER));
    }
    File::create(path)
}

/// How long a program may take to open a FIFO for reading before a message says what is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long such a program is waited for where no signal ends the wait.
const MAX_WAIT_FOR_READER: Duration = Duration::from_secs(10);

/// Opens a FIFO for writing once a program reads it. Says what it waits for.
///
/// # Errors
/// As of [`File::open`], and if no program reads it within `most`.
fn open_fifo(path: &Path, most: Option<Duration>) -> io::Result<File> {
    let nonblocking = || rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    let (begun, mut is_said) = (Instant::now(), false);
    loop {
        match nonblocking() {
            Err(Errno::NXIO) if most.is_none_or(|most| begun.elapsed() < most) => {}
            Err(Errno::NXIO) => return Err(io::Error::other("it is a FIFO that no program reads")),
            opened => {
                let opened = opened?;
                rustix::fs::fcntl_setfl(&opened, rustix::fs::fcntl_getfl(&opened)? - OFlags::NONBLOCK)?;
                return Ok(opened.into());
            }
        }
        if begun.elapsed() > PATIENCE && !std::mem::replace(&mut is_said, true) {
            let path = neutral(&path.to_string_lossy());
            let _ = writeln!(io::stderr(), "pipemark: {path} is a FIFO; waiting for a program to read it");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn write_file(path: &Path, content: &[u8], syncs: bool) -> io::Result<()> {
    match Target::of(path)? {
        Target::WriteInto(path) if path.metadata()?.file_type().is_fifo() => {
            ignore_broken_pipe(open_fifo(&path, None)?.write_all(content))
        }
        Target::WriteInto(path) => ignore_broken_pipe(File::options().write(true).open(path)?.write_all(content)),
        Target::Replace(path) => {
            let mut draft = Draft::create_beside(&path)?;
            draft.file().write_all(content)?;
            if syncs {
                // Some file systems report only at fsync that they are full.
                draft.file().sync_all()?;
            }
            draft.publish(&path)
        }
    }
}

fn ignore_broken_pipe(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.json");
        let destination = Destination::File(path.clone());
        destination.check("JSON").unwrap();
        assert!(names(directory.path()).is_empty(), "the check leaves nothing");
        destination.write("JSON", Ok("whole".to_owned())).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");

        let error = destination.write("JSON", Err(io::ErrorKind::StorageFull.into())).unwrap_err().to_string();
        assert!(error.contains("out.json") && error.contains("free some space"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole", "a failure keeps what was there");
        assert_eq!(names(directory.path()), ["out.json"]);
    }

    #[test]
    fn a_full_device_is_reported_with_advice() {
        let destination = Destination::File("/dev/full".into());
        destination.check("CSV").unwrap();
        let error = destination.write("CSV", Ok("x".to_owned())).unwrap_err().to_string();
        let begin = "cannot write the CSV to /dev/full: No space left on device";
        assert!(error.starts_with(begin) && error.contains("free some space"), "{error}");
        assert!(fs::metadata("/dev/full").is_ok());
    }

    #[test]
    fn links_and_permissions_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        Destination::File(link.clone()).write("JSON", Ok("new".to_owned())).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn links_of_others_and_bits_of_programs_are_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        fs::write(&program, "old").unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o6755)).unwrap();
        Destination::File(program.clone()).write("JSON", Ok("new".to_owned())).unwrap();
        assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o7777, 0o755);
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        if std::os::unix::fs::lchown(&link, Some(65534), None).is_err() {
            return; // Only root can make a link of another user.
        }
        let write = |text: &str| Destination::File(link.clone()).write("JSON", Ok(text.to_owned()));
        write("new").unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o1777)).unwrap();
        let error = write("newest").unwrap_err().to_string();
        assert!(error.contains("a symbolic link of another user"), "{error}");
        assert!(Destination::File(link.clone()).check("JSON").is_err() && create_file(&link).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        std::os::unix::fs::lchown(&link, Some(rustix::process::geteuid().as_raw()), None).unwrap();
        write("newest").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "newest");
    }

    #[test]
    fn a_fifo_is_written_into_and_its_reader_may_leave() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || File::open(path).unwrap().read(&mut [0; 16]).unwrap()
        });
        // The text is larger than the pipe's capacity, so the reader leaves before the last byte is written.
        Destination::File(path.clone()).write("JSON", Ok("x".repeat(4 << 20))).unwrap();
        assert!(reader.join().unwrap() > 0);
        assert!(!fs::metadata(&path).unwrap().is_file(), "still a FIFO");
        let error = open_fifo(&path, Some(Duration::from_millis(20))).unwrap_err();
        assert!(error.to_string().contains("no program reads"), "{error}");
    }

    #[test]
    fn unwritable_destinations_are_reported_before_measuring() {
        for path in ["/nonexistent/directory/out.json", "/", "/dev/null/x", ""] {
            let error = Destination::File(path.into()).check("JSON").unwrap_err().to_string();
            assert!(error.contains(path) && !error.contains(".tmp"), "{error}");
        }
    }
}
