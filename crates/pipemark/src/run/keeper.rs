//! Makes the link of a run. What has a name, or outlives its makers, is made by a keeper: a process that removes it when
//! it is no longer needed or when its parent is gone. So nothing remains, whichever process is killed at whichever moment:
//! the keeper outlives a killed parent, and the parent cleans up after a killed keeper.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::channel::{self, Assignment, Reply, Role};
use super::process::Process;
use crate::link::{self, Handle, Handles, Link, Naming};
use crate::model::{Ends, Job};

/// How long a keeper may take to make a link, and to remove it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A link's handle in a message; descriptors travel attached, in the same order.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// The next descriptor.
    Fd,
    /// A System V queue.
    Queue(i32),
    /// No handle.
    Nothing,
}

/// A link as its keeper reports it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Made {
    source: Wire,
    sink: Wire,
    message_limit: Option<u64>,
    buffers: Option<(u64, u64)>,
}

impl Wire {
    /// What stands for `handle` in a message.
    pub fn of(handle: &Handle) -> Wire {
        match handle {
            Handle::Fd(_) => Wire::Fd,
            Handle::Queue(id) => Wire::Queue(*id),
            Handle::Nothing => Wire::Nothing,
        }
    }

    /// The handle, with the next of the descriptors that came along.
    ///
    /// # Errors
    /// When there are too few.
    pub fn handle(self, descriptors: &mut impl Iterator<Item = OwnedFd>) -> io::Result<Handle> {
        Ok(match self {
            Wire::Fd => Handle::Fd(descriptors.next().ok_or(io::ErrorKind::InvalidData)?),
            Wire::Queue(id) => Handle::Queue(id),
            Wire::Nothing => Handle::Nothing,
        })
    }
}

/// The descriptor of a handle, to be attached to a message.
pub fn descriptor(handle: &Handle) -> Option<BorrowedFd<'_>> {
    match handle {
        Handle::Fd(fd) => Some(fd.as_fd()),
        _ => None,
    }
}

/// Makes a link, and the keeper it needs, which has to live as long as the run.
///
/// # Errors
/// One that is [`link::not_here`] where the mechanism is not to be had here.
pub fn make(link: &'static dyn Link, params: &Ends) -> io::Result<(Handles, Option<Keeper>)> {
    match link.naming() {
        Naming::Unnamed => link.connect(params, Path::new("")).map(|ends| (ends, None)),
        Naming::File | Naming::Queue => Keeper::start(link, params).map(|(ends, keeper)| (ends, Some(keeper))),
    }
}

/// A running keeper. Dropping it removes what it made.
pub struct Keeper {
    process: Process,
    link: &'static dyn Link,
    folder: PathBuf,
}

impl Keeper {
    fn start(link: &'static dyn Link, params: &Ends) -> io::Result<(Handles, Keeper)> {
        let folder = folder()?;
        let assignment = Assignment {
            role: Role::Keeper,
            parent: std::process::id(),
            pair: 0,
            line: 0,
            pin: None,
            job: Job::Stream(params.clone()),
            seed: 0,
            handles: Vec::new(),
            folder: Some(folder.clone()),
        };
        let process = Process::start(&assignment, &[]).map_err(io::Error::other)?;
        let mut keeper = Keeper { process, link, folder };
        let descriptors = keeper.process.wait_for_reply(PATIENCE).map_err(io::Error::other)?;
        match keeper.process.reply.take() {
            Some(Reply::Made(made)) => {
                let mut descriptors = descriptors.into_iter();
                let ends = Handles {
                    source: made.source.handle(&mut descriptors)?,
                    sink: made.sink.handle(&mut descriptors)?,
                    message_limit: made.message_limit,
                    buffers: made.buffers,
                };
                Ok((ends, keeper))
            }
            Some(Reply::NotHere(reason)) => Err(io::Error::new(io::ErrorKind::Unsupported, reason)),
            Some(Reply::Failed(reason)) => Err(io::Error::other(reason)),
            _ => Err(io::Error::other("the keeper of the link gave no answer")),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.process.dismiss(PATIENCE) {
            // It was killed, or stopped: what it may have left goes by the name it was given, now that it can make no more.
            let _ = fs::remove_dir_all(&self.folder);
            self.link.remove(&self.folder.join("link"));
        }
    }
}

/// A path for a folder that does not exist and that nobody can guess.
fn folder() -> io::Result<PathBuf> {
    let mut random = [0u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(std::env::temp_dir().join(format!("pipemark-{:032x}", u128::from_le_bytes(random))))
}

/// Runs as a keeper: makes the link, hands it over, and removes it when the parent hangs up or is gone.
pub fn main(assignment: &Assignment, socket: BorrowedFd<'_>) -> ExitCode {
    let made = assignment
        .folder
        .as_deref()
        .zip(assignment.job.ends().and_then(|ends| Some((ends, link::of(ends.link)?))))
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
        .and_then(|(folder, (ends, link))| Ok((link, connect(link, ends, folder)?)));
    let (link, (ends, name)) = match made {
        Ok(made) => made,
        Err(error) => {
            let _ = channel::send(socket, &Reply::of(&error, ""), &[]);
            return ExitCode::SUCCESS;
        }
    };
    let made = Made {
        source: Wire::of(&ends.source),
        sink: Wire::of(&ends.sink),
        message_limit: ends.message_limit,
        buffers: ends.buffers,
    };
    let descriptors: Vec<_> = [&ends.source, &ends.sink].into_iter().filter_map(descriptor).collect();
    // A parent that is gone is told by the next read.
    let _ = channel::send(socket, &Reply::Made(made), &descriptors);
    drop(descriptors);
    if let Handle::Fd(_) = ends.source {
        // Nothing outlives the descriptors, and keeping them would keep the link open.
        return ExitCode::SUCCESS;
    }
    let _ = io::stdin().read(&mut [0]);
    link.remove(&name);
    ExitCode::SUCCESS
}

/// Makes the link, a file in a folder of its own; returns its name, too.
fn connect(link: &dyn Link, params: &Ends, folder: &Path) -> io::Result<(Handles, PathBuf)> {
    let name = folder.join("link");
    if link.naming() != Naming::File {
        return link.connect(params, &name).map(|ends| (ends, name));
    }
    fs::DirBuilder::new().mode(0o700).create(folder).map_err(|error| {
        io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "no folder for the link in {}: {error}; set TMPDIR to one that can be written to",
                std::env::temp_dir().display()
            ),
        )
    })?;
    let ends = link.connect(params, &name);
    fs::remove_dir_all(folder)?;
    Ok((ends?, name))
}
