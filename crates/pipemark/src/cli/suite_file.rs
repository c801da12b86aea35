//! Finds a suite by its name: an embedded one, or a file.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use pipemark_model::{did_you_mean, without_errno};
use pipemark_run::plan::{EMBEDDED, MAX_SUITE_BYTES, Suite, embedded};

/// The suite called `word`: a file if the word contains a slash or ends with `.toml`, otherwise an embedded suite.
///
/// # Errors
/// A sentence that names the fault in the word, the file or the suite, and its position.
pub fn find(word: &str) -> Result<Suite, String> {
    let (file, text) = if word.contains('/') || word.ends_with(".toml") {
        (word.to_owned(), read(word)?)
    } else {
        (format!("suites/{word}.toml"), embedded(word).ok_or_else(|| unknown(word))?.to_owned())
    };
    Suite::parse(&file, &text).map_err(|error| error.to_string())
}

fn unknown(word: &str) -> String {
    let names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
    let hint = match did_you_mean(word, names.iter().copied()) {
        hint if hint.is_empty() && Path::new(word).is_file() => format!(" (use ./{word} for the file)"),
        hint => hint,
    };
    format!("'{word}' is not a suite; use {}, or a file such as ./mine.toml{hint}", names.join(", "))
}

/// The text of a file. Refuses files above the limit, and never waits for a writer.
fn read(path: &str) -> Result<String, String> {
    let failed = |error: io::Error| format!("cannot read the suite {path}: {}", without_errno(&error).to_lowercase());
    // Without NONBLOCK, opening a FIFO waits for a writer, forever if there is none.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("an open flag fits an int");
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(format!("cannot read the suite {path}: it is a directory; name a file in it"));
    }
    if !kind.is_file() {
        return Err(format!("cannot read the suite {path}: it is not a regular file; save the suite to a file first"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_SUITE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_SUITE_BYTES {
        return Err(format!("{path}: the file is larger than {} MiB, the limit for a suite", MAX_SUITE_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("{path}:{line}: this line is not UTF-8 text; is this file a suite?")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A directory that is removed at the end of the test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("pipemark-suite-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Directory(path)
        }

        fn file(&self, content: &[u8]) -> String {
            let path = self.0.join("x.toml");
            fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn names_are_suites_and_paths_are_files() {
        assert_eq!(find("quick").unwrap().name, "quick");
        let directory = Directory::new("paths");
        let path = directory.file(embedded("block-size").unwrap().as_bytes());
        assert_eq!(find(&path).unwrap().name, "block-size");
        assert!(find("./quick").unwrap_err().contains("no such file"));
        assert!(find("quick.toml").unwrap_err().contains("no such file"));
        let error = find("quik").unwrap_err();
        assert!(error.contains("did you mean quick?"), "{error}");
    }

    #[test]
    fn errors_name_the_file() {
        let directory = Directory::new("names");
        let path = directory.file(b"name = \"x\"\ntitel = 1\n");
        let error = find(&path).unwrap_err();
        assert!(error.starts_with(&format!("{path}:2:1: 'titel' is unknown here")), "{error}");
        assert!(error.contains("did you mean title?"), "{error}");
    }

    #[test]
    fn unreadable_files_are_errors_not_waits() {
        let directory = Directory::new("kinds");
        let path = directory.file(b"name = \"x\"\n\xff\xfe\n");
        assert!(find(&path).unwrap_err().contains(":2: this line is not UTF-8"));
        let path = directory.file(&vec![b' '; MAX_SUITE_BYTES + 1]);
        assert!(find(&path).unwrap_err().contains("larger than 1 MiB"));
        assert!(find(&format!("{}/", directory.0.display())).unwrap_err().contains("is a directory"));
        assert!(find("/dev/zero").unwrap_err().contains("not a regular file"));
        let fifo = directory.0.join("fifo.toml");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        // The call would hang if opening the FIFO waited for a writer.
        assert!(find(fifo.to_str().unwrap()).unwrap_err().contains("not a regular file"));
    }
}
