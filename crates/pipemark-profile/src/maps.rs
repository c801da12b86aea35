//! The code that a process has mapped, from /proc/PID/maps, and which of its files may be read.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The maximum size of a maps file, in bytes. A Java process has about 200 KiB.
const MAX_MAPS: u64 = 4 << 20;
const MAX_MOUNTS: u64 = 1 << 20;

/// File systems on which reading a file can't wait for another machine or for another user's program.
const LOCAL: [&str; 10] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "overlay", "tmpfs", "squashfs", "f2fs", "zfs"];

/// What a part of executable memory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappedContent {
    /// A file: the path as the process sees it, and its inode number.
    File { path: PathBuf, inode: u64 },
    /// The kernel's code for fast system calls.
    Vdso,
    /// Memory without a file: code that the process generated.
    Generated,
}

/// A part of executable memory.
#[derive(Debug, Clone)]
pub struct CodeMapping {
    pub start: u64,
    pub end: u64,
    /// The position of `start` in the file.
    pub offset: u64,
    pub content: MappedContent,
}

/// The executable memory of a process.
#[derive(Debug)]
pub struct Maps {
    pid: u32,
    mappings: Vec<CodeMapping>,
}

impl Maps {
    /// `None` if the process has ended or belongs to another user.
    pub fn read(pid: u32) -> Option<Maps> {
        let text = read_bounded(&format!("/proc/{pid}/maps"), MAX_MAPS)?;
        Some(Maps { pid, mappings: text.split(|&byte| byte == b'\n').filter_map(mapping).collect() })
    }

    /// One mapping, as if this process had mapped a file.
    #[cfg(test)]
    pub fn of(mapping: CodeMapping) -> Maps {
        Maps { pid: std::process::id(), mappings: vec![mapping] }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn contains(&self, address: u64) -> bool {
        self.mapping(address).is_some()
    }

    pub fn mapping(&self, address: u64) -> Option<&CodeMapping> {
        let at = self.mappings.partition_point(|mapping| mapping.end <= address);
        self.mappings.get(at).filter(|mapping| mapping.start <= address)
    }

    /// Opens a file that the process has mapped, unless that could wait for another machine or for another user.
    pub fn open(&self, path: &Path, inode: u64) -> Option<File> {
        let mounts = read_bounded(&format!("/proc/{}/mountinfo", self.pid), MAX_MOUNTS)?;
        if !is_local(&String::from_utf8_lossy(&mounts), path) {
            return None;
        }
        let root = format!("/proc/{}/root", self.pid);
        let inside = Path::new(&root).join(path.strip_prefix("/").ok()?);
        // Without O_PATH, opening a FIFO would wait.
        let handle =
            rustix::fs::open(&inside, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&handle).ok()?;
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile;
        let own = rustix::process::geteuid().as_raw();
        if !is_file || stat.st_ino != inode || (stat.st_uid != 0 && stat.st_uid != own) {
            return None;
        }
        File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle))).ok()
    }
}

fn read_bounded(path: &str, limit: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(limit).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The mapping that a line describes; `None` if its memory isn't executable.
fn mapping(line: &[u8]) -> Option<CodeMapping> {
    let mut rest = line;
    let mut field = || {
        let start = rest.iter().position(|&byte| byte != b' ')?;
        let end = rest[start..].iter().position(|&byte| byte == b' ').map_or(rest.len(), |length| start + length);
        let (field, after) = (&rest[start..end], &rest[end..]);
        rest = after;
        std::str::from_utf8(field).ok()
    };
    let (start, end) = field()?.split_once('-')?;
    let is_executable = field()?.as_bytes().get(2) == Some(&b'x');
    let offset = u64::from_str_radix(field()?, 16).ok()?;
    let _device = field()?;
    let inode = field()?.parse().ok()?;
    let path = rest.trim_ascii_start();
    if !is_executable {
        return None;
    }
    let content = match path {
        b"[vdso]" => MappedContent::Vdso,
        [b'/', ..] if inode != 0 => {
            MappedContent::File { path: PathBuf::from(OsString::from_vec(path.to_vec())), inode }
        }
        _ => MappedContent::Generated,
    };
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(CodeMapping { start: number(start)?, end: number(end)?, offset, content })
}

/// Whether the file system of a path is in [`LOCAL`], according to a process's mounts.
fn is_local(mounts: &str, path: &Path) -> bool {
    let mount = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let point = unescaped(before.split(' ').nth(4)?);
        path.starts_with(&point).then(|| (point.as_os_str().len(), after.split(' ').next().unwrap_or("").to_owned()))
    };
    // Of several mounts at one point, the last covers the others.
    let nearest = mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length);
    nearest.is_some_and(|(_, kind)| LOCAL.contains(&kind.as_str()))
}

/// A path of mountinfo, in which blanks, tabs, newlines and backslashes are octal escapes.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = (first == b'\\').then(|| std::str::from_utf8(after.get(..3)?).ok()).flatten();
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The name of a process's executable file, without directories.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_own_code() {
        let maps = Maps::read(std::process::id()).unwrap();
        let address = reads_own_code as *const () as u64;
        let MappedContent::File { path, inode } = &maps.mapping(address).unwrap().content else { panic!("no file") };
        assert_eq!(*path, std::env::current_exe().unwrap());
        assert!(maps.open(path, *inode).is_some());
        assert!(maps.open(path, inode + 1).is_none(), "a file that took this one's place");
        assert!(!maps.contains(8));
    }

    #[test]
    fn parses_a_line() {
        let line = b"7f1200001000-7f1200002000 r-xp 00001000 fe:01 1234                       /usr/lib/a b.so";
        let mapping = mapping(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f12_0000_1000, 0x7f12_0000_2000, 0x1000));
        assert_eq!(mapping.content, MappedContent::File { path: "/usr/lib/a b.so".into(), inode: 1234 });
        assert!(super::mapping(b"7f1200001000-7f1200002000 rw-p 00001000 fe:01 1234 /usr/lib/a.so").is_none());
        assert!(super::mapping(b"nonsense").is_none());
    }

    #[test]
    fn files_on_fuse_and_nfs_are_not_opened() {
        let mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:40 / /home/a\\040b rw - fuse.sshfs x rw\n";
        assert!(is_local(mounts, Path::new("/usr/bin/sort")));
        assert!(is_local(mounts, Path::new("/home/ab")));
        assert!(!is_local(mounts, Path::new("/home/a b/sort")));
        assert!(!is_local("", Path::new("/usr/bin/sort")));
    }
}
