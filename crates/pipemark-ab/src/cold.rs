//! `--cold FILE`: files whose pages are dropped before each run.

use std::io;
use std::path::PathBuf;

use pipemark_sys::file_cache;
use serde::Serialize;

use pipemark_host::child::RunError;
use pipemark_model::neutral;

use crate::conditions::open_repeatedly;

/// How many pages of the files were in memory before the runs.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColdPages {
    /// The number of pages of all files together.
    pub pages: u64,
    /// The largest number of pages that were in memory before a run, although they had been dropped.
    pub stayed: u64,
}

/// Drops the cached pages of all files, and counts the pages that stay in memory.
///
/// # Errors
/// If a file can't be opened, written back or mapped.
pub fn drop_all(files: &[PathBuf], before: ColdPages) -> Result<ColdPages, RunError> {
    let mut now = ColdPages::default();
    for path in files {
        let named =
            |error: io::Error| RunError::Failed(format!("--cold {}: {error}", neutral(&path.to_string_lossy())));
        let file = open_repeatedly("--cold", path)?;
        if !file.metadata().map_err(named)?.is_file() {
            return Err(named(io::Error::other("it is not a regular file, so it has no pages in the page cache")));
        }
        file_cache::drop_pages(&file).map_err(named)?;
        let counted = file_cache::count(&file).map_err(named)?;
        now.pages += counted.all;
        now.stayed += counted.cached;
    }
    Ok(ColdPages { stayed: before.stayed.max(now.stayed), ..now })
}
