//! A named pipe. Its name is gone before the first byte, so nobody else can open it.

use std::fs;
use std::io;
use std::path::Path;

use pipeio::recv::Receiver;
use pipeio::send::Sender;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};

use super::{Ends, Handle, Link, Naming, pipe, stream};
use crate::model::Params;

pub struct Fifo;

impl Link for Fifo {
    fn naming(&self) -> Naming {
        Naming::File
    }

    fn connect(&self, params: &Params, name: &Path) -> io::Result<Ends> {
        mknodat(CWD, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Without a writer, a blocking open for reading would wait.
        let ends = open(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .and_then(|reader| Ok((open(name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?, reader)));
        fs::remove_file(name)?;
        let (writer, reader) = ends?;
        pipe::resize(&writer, params.capacity)?;
        Ok(Ends::new(writer, reader))
    }

    fn sender(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Sender + Send>> {
        stream::sender(end, params)
    }

    fn receiver(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Receiver + Send>> {
        stream::receiver(end, params)
    }
}
