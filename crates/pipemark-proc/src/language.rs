//! Finds the programming language of a compiled program, from marks that its runtime library leaves in the executable.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use memchr::memmem;

/// Languages and their marks. The first language whose mark is found applies: programs in most of these languages may
/// also link the library of C++.
const MARKS: [(&str, &str); 11] = [
    ("go", "Go buildinf:"),
    ("haskell", "GHCRTS"),
    ("ocaml", "OCAMLRUNPARAM"),
    ("nim", "NimMain"),
    ("crystal", "__crystal_main"),
    ("pascal", ".fpcdata"),
    ("d", "_Dmain"),
    ("ada", "__gnat_"),
    ("fortran", "_gfortran_"),
    ("rust", "/rustc/"),
    ("c++", "libstdc++.so"),
];

/// The maximum number of bytes of an executable that are searched.
const MAX_BYTES: u64 = 64 << 20;

/// The languages that are recognized.
pub fn languages() -> [&'static str; MARKS.len()] {
    MARKS.map(|(language, _)| language)
}

/// The language of a process's executable; `None` if unknown. Programs of the system have none, because their users
/// don't change their source code.
pub fn language_of(pid: u32) -> Option<&'static str> {
    let path = format!("/proc/{pid}/exe");
    let name = fs::read_link(&path).ok()?;
    let of_system = ["/usr/", "/bin/", "/sbin/", "/lib/", "/nix/", "/snap/"].iter().any(|begin| is_below(&name, begin));
    if of_system { None } else { language_in(File::open(path).ok()?.take(MAX_BYTES)) }
}

fn is_below(path: &Path, directory: &str) -> bool {
    path.to_string_lossy().starts_with(directory)
}

/// The language of an executable's content.
fn language_in(mut content: impl Read) -> Option<&'static str> {
    /// The end of a piece is searched again with the next one, because a mark may span both.
    const OVERLAP: usize = 32;
    let finders = MARKS.map(|(_, mark)| memmem::Finder::new(mark));
    let (mut buffer, mut kept) = (vec![0; 1 << 20], 0);
    let mut first = MARKS.len();
    // Only marks of languages before the one found so far are still of interest.
    while first > 0 {
        let length = kept + content.read(&mut buffer[kept..]).ok().filter(|&length| length > 0).unwrap_or(0);
        if length == kept {
            break;
        }
        first = finders[..first].iter().position(|mark| mark.find(&buffer[..length]).is_some()).unwrap_or(first);
        kept = length.min(OVERLAP);
        buffer.copy_within(length - kept..length, 0);
    }
    MARKS.get(first).map(|(language, _)| *language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_wherever_it_is() {
        let content = |at: usize, mark: &str| [&vec![0; at][..], mark.as_bytes(), &[0; 9]].concat();
        for at in [0, (1 << 20) - 3, (3 << 20) + 5] {
            assert_eq!(language_in(&content(at, "NimMain")[..]), Some("nim"), "{at}");
        }
        assert_eq!(language_in(&content(9, "nothing")[..]), None);
        let both = [content(9, "libstdc++.so"), content(2 << 20, "GHCRTS")].concat();
        assert_eq!(language_in(&both[..]), Some("haskell"), "C++ is the last choice");
    }

    #[test]
    fn this_program_is_written_in_rust_and_sleep_belongs_to_the_system() {
        // The marks themselves are in this test.
        assert!(language_of(std::process::id()).is_some());
        let mut sleep = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let name = format!("/proc/{}/exe", sleep.id());
        while fs::read_link(&name).unwrap() == fs::read_link("/proc/self/exe").unwrap() {
            std::thread::yield_now();
        }
        assert_eq!(language_of(sleep.id()), None);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
}
