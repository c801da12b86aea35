//! Creates the link of a run. A link that has a name, or that outlives its creator, is created by a separate process,
//! the keeper. The keeper removes the link when the link is no longer needed, or when the parent is gone. No link
//! remains, whichever process is killed: the keeper outlives a killed parent, and the parent cleans up after a killed
//! keeper.

use std::fs;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pipemark_host::child::guard;
use pipemark_model::{Ends, Job};

use crate::link::{self, Handle, Handles, Link, Naming};
use crate::runner::channel::{self, Assignment, EndRole, Granted, Reply, Wire, descriptor};
use crate::runner::end_process::EndProcess;

/// The time limit for a keeper to create its link, and another for it to remove the link.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a link and, if the link needs one, its keeper. The keeper must live as long as the run.
///
/// # Errors
/// [`link::not_here`] if the link is not available here.
pub fn make(link: &'static dyn Link, job: &Job, ends: &Ends) -> io::Result<(Handles, Option<Keeper>)> {
    match link.naming() {
        Naming::Unnamed => link.connect(ends, Path::new("")).map(|handles| (handles, None)),
        Naming::File | Naming::Queue => Keeper::start(link, job).map(|(handles, keeper)| (handles, Some(keeper))),
    }
}

/// A running keeper. Dropping it removes its link.
pub struct Keeper {
    process: EndProcess,
    link: &'static dyn Link,
    directory: PathBuf,
}

impl Keeper {
    fn start(link: &'static dyn Link, job: &Job) -> io::Result<(Handles, Keeper)> {
        let directory = unused_path()?;
        // If both this process and the keeper are killed, a guard process removes the link by this name.
        if let Some(ends) = job.ends() {
            guard::remember(&format!("{} {}", ends.link, directory.display()));
        }
        let assignment = Assignment {
            role: EndRole::Keeper,
            parent: std::process::id(),
            job: job.clone(),
            pair: 0,
            line: 0,
            pin: None,
            seed: 0,
            handles: Vec::new(),
            directory: Some(directory.clone()),
        };
        let process = EndProcess::start(&assignment, &[]).map_err(io::Error::other)?;
        let mut keeper = Keeper { process, link, directory };
        let mut descriptors = keeper.process.wait_for_reply(EXIT_TIMEOUT).map_err(io::Error::other)?.into_iter();
        match keeper.process.reply.take() {
            Some(Reply::Made(source, sink, Granted { message_limit, buffers })) => {
                let (source, sink) = (source.handle(&mut descriptors)?, sink.handle(&mut descriptors)?);
                Ok((Handles { source, sink, message_limit, buffers }, keeper))
            }
            Some(Reply::NotHere(reason)) => Err(io::Error::new(io::ErrorKind::Unsupported, reason)),
            Some(Reply::Failed(reason)) => Err(io::Error::other(reason)),
            _ => Err(io::Error::other("the keeper of the link did not reply")),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.process.shut_down(EXIT_TIMEOUT) {
            // The keeper was killed or stopped and creates nothing more, so its link is removed by name.
            remove_link(self.link, &self.directory);
        }
    }
}

fn remove_link(link: &dyn Link, directory: &Path) {
    let _ = fs::remove_dir_all(directory);
    link.remove(&directory.join("link"));
}

/// Removes a link or directory that a killed process left, by the name stored for the guards.
pub fn remove(name: &str) {
    let (kind, directory) = name.split_once(' ').unwrap_or_default();
    match kind.parse().ok().and_then(link::of) {
        Some(link) => remove_link(link, Path::new(directory)),
        None if kind == pipemark_outside::LEFTOVERS => pipemark_outside::remove(directory),
        None if kind == guard::DIRECTORY => drop(fs::remove_dir_all(directory)),
        None => {}
    }
}

/// A directory for the files of a foreign program. It is removed even if this process is killed.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// # Errors
    /// If the directory can't be created.
    pub fn new() -> io::Result<Scratch> {
        let directory = unused_path()?;
        guard::remember(&format!("{} {}", guard::DIRECTORY, directory.display()));
        make_directory(&directory)?;
        Ok(Scratch(directory))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn make_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(directory).map_err(|error| {
        let place = std::env::temp_dir();
        let sentence = format!(
            "can't create a run's directory in {}: {error}; set TMPDIR to a writable directory",
            place.display()
        );
        io::Error::new(io::ErrorKind::Unsupported, sentence)
    })
}

/// An unused and unguessable path for a directory.
fn unused_path() -> io::Result<PathBuf> {
    let mut random = [0u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(std::env::temp_dir().join(format!("pipemark-{:032x}", u128::from_le_bytes(random))))
}

/// The main function of a keeper. Creates the link, sends its handles to the parent, and removes the link when the
/// parent closes the socket or is gone.
pub fn main(assignment: &Assignment, socket: BorrowedFd<'_>) -> u8 {
    let connected = (|| {
        let ends = assignment.job.ends().ok_or(io::ErrorKind::InvalidInput)?;
        let link = link::of(ends.link).ok_or(io::ErrorKind::InvalidInput)?;
        let directory = assignment.directory.as_deref().ok_or(io::ErrorKind::InvalidInput)?;
        connect(link, ends, directory).map(|(handles, name)| (link, handles, name))
    })();
    let (link, handles, name) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            let _ = channel::send(socket, &Reply::of(&error, ""), &[]);
            return 0;
        }
    };
    let granted = Granted { message_limit: handles.message_limit, buffers: handles.buffers };
    let reply = Reply::Made(Wire::of(&handles.source), Wire::of(&handles.sink), granted);
    let descriptors: Vec<_> = [&handles.source, &handles.sink].into_iter().filter_map(descriptor).collect();
    // An error is ignored: if the parent is gone, the read below returns.
    let _ = channel::send(socket, &reply, &descriptors);
    if let Handle::Fd(_) = handles.source {
        // The link disappears when its last descriptor is closed, so this process must not keep one.
        return 0;
    }
    let _ = io::stdin().read(&mut [0]);
    link.remove(&name);
    0
}

/// Creates the link. Returns its handles and its name. A file is created in `directory`, which is removed as soon as
/// the link is open.
fn connect(link: &dyn Link, ends: &Ends, directory: &Path) -> io::Result<(Handles, PathBuf)> {
    let name = directory.join("link");
    if link.naming() != Naming::File {
        return link.connect(ends, &name).map(|handles| (handles, name));
    }
    make_directory(directory)?;
    let handles = link.connect(ends, &name);
    fs::remove_dir_all(directory)?;
    Ok((handles?, name))
}
