//! Opens a file that the user names as input. A FIFO without a writer isn't waited for in silence.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use pipemark_model::neutral;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// How long a FIFO's writer may take before a message says what is waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Opens a file for reading. If it is a FIFO that nobody writes to, prints so, and waits until somebody does. A signal ends
/// the wait.
///
/// # Errors
/// If the file can't be opened or is a directory, or a signal ends the wait.
pub fn open_input(path: &Path) -> io::Result<File> {
    open_and_say(path, || {
        let path = neutral(&path.to_string_lossy());
        let _ = writeln!(io::stderr(), "pipemark: {path} is a FIFO; waiting for a program to write to it");
    })
}

fn open_and_say(path: &Path, say: impl FnOnce()) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).expect("open flags fit an int");
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if kind.is_fifo() {
        let mut files = [PollFd::new(&file, PollFlags::IN)];
        let patience = Timespec::try_from(PATIENCE).ok();
        if poll(&mut files, patience.as_ref())? == 0 {
            say();
            poll(&mut files, None)?;
        }
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A FIFO that is removed when dropped.
    struct Fifo(std::path::PathBuf);

    impl Fifo {
        fn new(name: &str) -> Fifo {
            let path = std::env::temp_dir().join(format!("pipemark-{name}-{}", std::process::id()));
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
            Fifo(path)
        }
    }

    impl Drop for Fifo {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_fifo_without_a_writer_is_reported_and_then_read() {
        let fifo = Fifo::new("input");
        let (said, was_said) = std::sync::mpsc::channel();
        let path = fifo.0.clone();
        let writer = std::thread::spawn(move || {
            was_said.recv().unwrap();
            std::fs::write(path, "text").unwrap();
        });
        let mut text = String::new();
        let mut file = open_and_say(&fifo.0, || said.send(()).unwrap()).unwrap();
        file.read_to_string(&mut text).unwrap();
        writer.join().unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn files_are_opened_and_directories_refused_without_a_word() {
        assert!(open_and_say(Path::new("/proc/self/stat"), || panic!("a file")).is_ok());
        assert!(open_and_say(Path::new("/dev/null"), || panic!("a device")).is_ok());
        let error = open_and_say(Path::new("/"), || panic!("a directory")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert!(open_and_say(Path::new(&path), || panic!("a pipe with bytes")).is_ok());
    }
}
