//! An anonymous pipe.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use pipeio::memory::page_size;
use pipeio::pipe::set_capacity;

use pipemark_model::{Capacity, Ends, NamedCapacity};

use crate::link::{Handles, Link};

pub struct Pipe;

impl Link for Pipe {
    fn is_plain(&self) -> bool {
        true
    }

    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        let pipe = pipeio::Pipe::new()?;
        resize(&pipe.writer, params.capacity)?;
        Ok(Handles::new(pipe.writer.into(), pipe.reader.into()))
    }
}

/// Sets the requested capacity. For the default, leaves the capacity as it is.
pub fn resize(pipe: impl AsFd, capacity: Capacity) -> io::Result<()> {
    let bytes = match capacity {
        Capacity::Named(NamedCapacity::Default) => return Ok(()),
        Capacity::Named(NamedCapacity::Quota) => NamedCapacity::Quota.pages() as usize * page_size(),
        Capacity::Bytes(size) => size.as_usize(),
    };
    set_capacity(pipe, bytes).map(drop).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!(
                "the kernel refused a pipe capacity of {capacity}: {error}; lower --capacity, or see /proc/sys/fs/pipe-max-size and pipe-user-pages-soft"
            ),
        )
    })
}
