//! What the kernel refuses for want of something, as a sentence that says what would help.

use std::io;

use rustix::io::Errno;

/// The error, and what to do about it where that is known.
pub fn explained(error: &io::Error) -> String {
    let advice = match Errno::from_io_error(error) {
        Some(Errno::NOMEM) => "lower --block or --pairs, or raise the memory limit (ulimit -v, docker run --memory)",
        Some(Errno::MFILE) => "lower --pairs, or raise the limit of open files (ulimit -n)",
        Some(Errno::NFILE) => "lower --pairs, or raise the system's limit of open files (/proc/sys/fs/file-max)",
        Some(Errno::AGAIN) => "lower --pairs, or raise the limit of processes (ulimit -u, docker run --pids-limit)",
        None if error.kind() == io::ErrorKind::OutOfMemory => "lower --block or --pairs",
        _ => return error.to_string(),
    };
    format!("{error}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_named_with_its_limit() {
        for (errno, words) in [(Errno::NOMEM, "ulimit -v"), (Errno::MFILE, "ulimit -n"), (Errno::AGAIN, "ulimit -u")] {
            let text = explained(&errno.into());
            assert!(text.contains(words) && text.contains("os error"), "{text}");
        }
        assert_eq!(explained(&Errno::PIPE.into()), "Broken pipe (os error 32)");
    }
}
