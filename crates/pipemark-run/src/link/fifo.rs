//! A named pipe. Its name is removed before the first byte is sent, so nobody else can open it.

use std::path::Path;
use std::{fs, io};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

use pipemark_model::Ends;

use crate::link::{Handles, Link, Naming, pipe};

pub struct Fifo;

impl Link for Fifo {
    fn is_plain(&self) -> bool {
        true
    }

    fn naming(&self) -> Naming {
        Naming::File
    }

    fn connect(&self, params: &Ends, name: &Path) -> io::Result<Handles> {
        mknodat(CWD, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(|error| {
            let directory = std::env::temp_dir();
            let what = format!(
                "can't create a FIFO in {}: {error}; set TMPDIR to a directory whose file system supports FIFOs, and allow mknodat in a system call filter",
                directory.display()
            );
            io::Error::new(io::ErrorKind::Unsupported, what)
        })?;
        // Without O_NONBLOCK, the open for reading would wait for a writer.
        let ends = open(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .and_then(|reader| Ok((open(name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?, reader)));
        fs::remove_file(name)?;
        let (writer, reader) = ends?;
        pipe::resize(&writer, params.capacity)?;
        Ok(Handles::new(writer, reader))
    }
}
