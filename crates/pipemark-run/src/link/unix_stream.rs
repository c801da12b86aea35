//! A UNIX stream socket that was bound, connected and accepted. Its name is in a directory that only this user may
//! enter, and is removed before the first byte is sent.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::{fs, io};

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};

use pipemark_model::Ends;

use crate::link::{Handles, Link, Naming, socketpair};

pub struct UnixStream;

impl Link for UnixStream {
    fn is_plain(&self) -> bool {
        true
    }

    fn naming(&self) -> Naming {
        Naming::File
    }

    fn connect(&self, params: &Ends, name: &Path) -> io::Result<Handles> {
        socketpair::with_buffers(connected_through(SocketType::STREAM, name)?, params)
    }
}

/// Two UNIX sockets, connected through `name`. `name` is then removed.
pub fn connected_through(kind: SocketType, name: &Path) -> io::Result<(OwnedFd, OwnedFd)> {
    // A socket's name is limited to 107 bytes. The path through the directory's descriptor is short, regardless of
    // TMPDIR.
    let directory =
        open(name.parent().unwrap_or(name), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short =
        Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name.file_name().unwrap_or_default());
    let address = SocketAddrUnix::new(short)?;
    let socket = || socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
    let listener = socket()?;
    bind(&listener, &address)?;
    let ends = (|| {
        listen(&listener, 1)?;
        let source = socket()?;
        connect(&source, &address)?;
        Ok((source, accept_with(&listener, SocketFlags::CLOEXEC)?))
    })();
    fs::remove_file(name)?;
    ends
}
