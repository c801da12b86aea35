//! The reference code of the contract for outside links, in each language. It is part of this program, so a link is
//! always built with the code that this version understands.

use std::path::Path;
use std::{fs, io};

/// The version of the contract.
pub const VERSION: u32 = 1;

/// The files by name.
pub const FILES: [(&str, &str); 8] = [
    ("pipemark_link.h", include_str!("../contract/pipemark_link.h")),
    ("pipemark_link.c", include_str!("../contract/pipemark_link.c")),
    ("pipemark_link.hpp", include_str!("../contract/pipemark_link.hpp")),
    ("pipemark_link.rs", include_str!("../contract/pipemark_link.rs")),
    ("pipemark_link.go", include_str!("../contract/pipemark_link.go")),
    ("PipemarkLink.java", include_str!("../contract/PipemarkLink.java")),
    ("pipemark_link.py", include_str!("../contract/pipemark_link.py")),
    ("pipemark_link.mjs", include_str!("../contract/pipemark_link.mjs")),
];

/// Writes all files to `directory`, which is created. Files that are already there are left alone, so that nothing is
/// built anew without a reason.
///
/// # Errors
/// If the directory or a file can't be written.
pub fn write(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in FILES {
        let file = directory.join(name);
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        // Another process may be compiling the file.
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        io::Write::write_all(&mut new, text.as_bytes())?;
        new.persist(&file).map_err(|error| error.error)?;
    }
    Ok(())
}
