//! Locks on single bytes of a file or device, by which processes agree on the use of it. The kernel removes a process's
//! locks when it ends. A byte needn't exist: a terminal has locks too.
//!
//! The locks are those of an open file description (F_OFD_SETLK, see fcntl(2)), so closing another descriptor of the same
//! file removes none.

use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Locks a byte, unless another open file has locked it. Returns whether it is locked now. The descriptor must be open
/// for writing.
///
/// # Errors
/// If the file or its file system has no locks, or too many.
pub fn try_lock(file: BorrowedFd<'_>, byte: u64) -> io::Result<bool> {
    match call(file, libc::F_OFD_SETLK, &mut lock(libc::F_WRLCK, &(byte..byte + 1))) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Unlocks a byte.
///
/// # Errors
/// If the descriptor isn't valid.
pub fn unlock(file: BorrowedFd<'_>, byte: u64) -> io::Result<()> {
    call(file, libc::F_OFD_SETLK, &mut lock(libc::F_UNLCK, &(byte..byte + 1)))
}

/// The bytes in `range` that other open files have locked, in ascending order, at most `most` of them.
///
/// # Errors
/// If the file or its file system has no locks.
pub fn locked_by_others(file: BorrowedFd<'_>, range: Range<u64>, most: usize) -> io::Result<Vec<u64>> {
    let (mut found, mut ranges) = (Vec::new(), vec![range]);
    // The kernel reports any lock in a range, so the parts before and behind it are asked about too.
    while let Some(range) = ranges.pop().filter(|_| found.len() < most) {
        let mut asked = lock(libc::F_WRLCK, &range);
        call(file, libc::F_OFD_GETLK, &mut asked)?;
        if i32::from(asked.l_type) != libc::F_UNLCK {
            let at = asked.l_start.unsigned_abs().max(range.start);
            found.push(at);
            ranges.extend([range.start..at, at + 1..range.end].into_iter().filter(|part| !part.is_empty()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn lock(kind: libc::c_int, bytes: &Range<u64>) -> libc::flock {
    // SAFETY: flock has only integer fields, for which 0 is a value. l_pid must be 0 for locks of this kind.
    let mut lock: libc::flock = unsafe { mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = bytes.start.cast_signed();
    lock.l_len = (bytes.end - bytes.start).cast_signed();
    lock
}

fn call(file: BorrowedFd<'_>, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the three commands read and write one flock, which lives during the call.
    crate::result_of(unsafe { libc::fcntl(file.as_raw_fd(), command, lock) }).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsFd;
    use std::path::Path;

    use super::*;

    #[test]
    fn locks_of_other_open_files_are_listed_in_order() {
        let path = std::env::temp_dir().join(format!("pipemark-byte-locks-{}", std::process::id()));
        let open = |path: &Path| OpenOptions::new().create(true).append(true).open(path).unwrap();
        let [one, two, three] = [open(&path), open(&path), open(&path)];
        let locked = |file: &File, most| locked_by_others(file.as_fd(), 1..1 << 40, most).unwrap();
        assert!(try_lock(one.as_fd(), 70).unwrap() && try_lock(two.as_fd(), 5).unwrap());
        assert!(try_lock(one.as_fd(), 6).unwrap() && try_lock(one.as_fd(), 0).unwrap());
        assert!(!try_lock(two.as_fd(), 70).unwrap() && try_lock(one.as_fd(), 70).unwrap());
        assert_eq!((locked(&three, 9), locked(&one, 9), locked(&two, 9)), (vec![5, 6, 70], vec![5], vec![6, 70]));
        assert_eq!(locked(&three, 2).len(), 2);
        unlock(one.as_fd(), 6).unwrap();
        drop(two);
        assert_eq!(locked(&three, 9), [70]);
        std::fs::remove_file(path).unwrap();
    }
}
