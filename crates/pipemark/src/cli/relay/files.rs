//! `relay FILE…`: files as standard input, one after the other.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use pipeio::relay::Relay;
use pipemark_console::ExitError;
use pipemark_model::{ByteSize, neutral};
use pipemark_sys::own_descriptors;
use rustix::fs::{FileType, SeekFrom, fstat, seek, stat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// The files to pass on.
#[derive(Default)]
pub struct Files {
    /// Their bytes together; `None` for one file, which is standard input, or if any has no size.
    pub size: Option<u64>,
    /// `None` for a FIFO, which is opened in its turn, because its writer may come only then.
    several: Vec<(PathBuf, Option<OwnedFd>)>,
}

/// The outcome of the thread that passes several files into a pipe; `None` for fewer files.
pub struct Passing(Option<Receiver<Result<(), ExitError>>>);

impl Files {
    /// Opens all files but FIFOs, so that nothing is passed on if one can't be opened. A single file becomes standard
    /// input.
    ///
    /// # Errors
    /// When a file can't be opened, or one of several is also the output.
    pub fn open(paths: &[PathBuf]) -> Result<Files, ExitError> {
        if let [path] = paths {
            rustix::stdio::dup2_stdin(open(path)?).map_err(failed)?;
            return Ok(Files::default());
        }
        let now = |path: &PathBuf| if is_fifo(path) { Ok(None) } else { open(path).map(Some) };
        let opened = paths.iter().map(|path| Ok((path.clone(), now(path)?))).collect::<Result<Vec<_>, ExitError>>()?;
        if let Some((path, _)) = opened.iter().find(|(_, file)| file.as_ref().is_some_and(is_output)) {
            let name = neutral(&path.to_string_lossy());
            return Err(ExitError::failed(format_args!("{name} is the output too, and would never end")));
        }
        let size: Option<u64> = opened.iter().map(|(_, file)| rest_of_file(file.as_ref()?)).sum();
        Ok(Files { size: size.filter(|_| !opened.is_empty()), several: opened })
    }

    /// Makes standard input a pipe into which a thread passes the files.
    ///
    /// # Errors
    /// When the system has no pipe or thread left, or no /proc.
    pub fn pass_on(self) -> Result<Passing, ExitError> {
        if self.several.is_empty() {
            return Ok(Passing(None));
        }
        let (made, pipe) = channel();
        let (opened, go_on) = channel::<()>();
        let (passed, outcome) = channel();
        // The thread has descriptors of its own, and makes the pipe. So the threads of the relay, which copy the
        // descriptors of this one, can't keep the pipe open for writing.
        let pass = move || {
            let Ok((read, write)) = pipe_with(PipeFlags::CLOEXEC) else { return };
            let thread = rustix::thread::gettid();
            let _ = made.send(format!("/proc/self/task/{thread}/fd/{}", read.as_raw_fd()));
            let _ = go_on.recv();
            drop(read);
            let _ = passed.send(self.several.into_iter().try_for_each(|(path, file)| pass_on(file, &path, &write)));
        };
        own_descriptors::spawn(pass).map_err(failed)?;
        let pipe = pipe.recv().map_err(|_| failed(Errno::NFILE))?;
        rustix::stdio::dup2_stdin(File::open(pipe).map_err(failed)?).map_err(failed)?;
        drop(opened);
        Ok(Passing(Some(outcome)))
    }
}

impl Passing {
    /// Waits until all files are passed on.
    ///
    /// # Errors
    /// When one could not be read.
    pub fn check(self) -> Result<(), ExitError> {
        // The thread doesn't panic.
        self.0.map_or(Ok(()), |outcome| outcome.recv().unwrap_or(Ok(())))
    }
}

fn failed(error: impl Into<io::Error>) -> ExitError {
    ExitError::failed(format_args!("the files could not be passed on: {}", error.into()))
}

/// Whether a file is the file to which standard output writes.
fn is_output(file: &OwnedFd) -> bool {
    let [input, output] = [fstat(file), fstat(rustix::stdio::stdout())];
    let (Ok(input), Ok(output)) = (input, output) else { return false };
    let is_file = FileType::from_raw_mode(input.st_mode) == FileType::RegularFile;
    is_file && (input.st_dev, input.st_ino) == (output.st_dev, output.st_ino)
}

fn open(path: &Path) -> Result<OwnedFd, ExitError> {
    let opened = match path.to_str() {
        Some("-") => rustix::stdio::stdin().try_clone_to_owned(),
        _ => File::open(path).map(OwnedFd::from),
    };
    opened.map_err(|error| cannot_be_read(path, &error))
}

fn cannot_be_read(path: &Path, error: &io::Error) -> ExitError {
    let name = neutral(&path.to_string_lossy());
    // pv's --rate shows the rate, and has no value.
    let is_size = path.to_str().is_some_and(|text| text.parse::<ByteSize>().is_ok());
    let limit = if is_size { format!("; to limit the rate, use --limit {name}") } else { String::new() };
    ExitError::failed(format_args!("{name} could not be read: {error}{limit}"))
}

fn is_fifo(path: &Path) -> bool {
    stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

fn pass_on(file: Option<OwnedFd>, path: &Path, pipe: &OwnedFd) -> Result<(), ExitError> {
    let file = file.map_or_else(|| open(path), Ok)?;
    match Relay::new().run(file.as_fd(), pipe.as_fd()) {
        // Also if the reading end is gone: it is this process's, which says why.
        Ok(_) => Ok(()),
        Err(error) => Err(cannot_be_read(path, &error)),
    }
}

/// The bytes from the offset of a file or block device to its end; `None` for other types, and for files in /proc,
/// which have no size.
pub fn rest_of_file(file: impl AsFd) -> Option<u64> {
    let stat = fstat(&file).ok()?;
    let size = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => stat.st_size.unsigned_abs(),
        FileType::BlockDevice => {
            // The offset of `file` itself stays as it is, because other processes may share it.
            let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
            seek(File::open(path).ok()?, SeekFrom::End(0)).ok()?
        }
        _ => 0,
    };
    size.checked_sub(seek(&file, SeekFrom::Current(0)).ok()?).filter(|_| size > 0)
}
