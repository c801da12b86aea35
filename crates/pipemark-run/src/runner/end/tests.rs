//! Checks that, on each link, a source that doesn't write and a sink that doesn't read are detected.

use std::path::Path;
use std::thread;

use pipeio_harness::buffer::BytesMut;
use pipeio_harness::recv::{Received, Receiver};
use pipeio_harness::send::{Moved, Sender};

use pipemark_model::{LinkKind, Settings, Value};

use super::*;
use crate::link::{BoxReceiver, BoxSender, Handle, Handles, Link, Naming};
use crate::runner::pair::verify;

#[derive(Clone, Copy, PartialEq)]
enum SkippedWork {
    Nothing,
    Write,
    Read,
}

/// A link whose ends skip part of the work.
struct LazyLink(&'static dyn Link, SkippedWork);

impl Link for LazyLink {
    fn connect(&self, ends: &Ends, name: &Path) -> io::Result<Handles> {
        self.0.connect(ends, name)
    }

    fn sender(&self, end: Handle, ends: &Ends) -> io::Result<BoxSender> {
        let sender = self.0.sender(end, ends)?;
        Ok(if self.1 == SkippedWork::Write {
            Box::new(Unwritten(sender, vec![0; ends.block.as_usize()]))
        } else {
            sender
        })
    }

    fn receiver(&self, end: Handle, ends: &Ends) -> io::Result<BoxReceiver> {
        let receiver = self.0.receiver(end, ends)?;
        Ok(if self.1 == SkippedWork::Read { Box::new(Unread(receiver)) } else { receiver })
    }
}

/// A sender that hands out memory but doesn't send what is written there.
struct Unwritten(BoxSender, Vec<u8>);

impl Sender for Unwritten {
    fn prepare(&mut self, _: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        self.0.prepare(&mut |_, _| {})
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        self.0.fresh(len)?;
        Ok((&mut self.1[..len]).into())
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        self.0.send(len)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.finish()
    }
}

/// A receiver that reports how many bytes arrived, but doesn't deliver them.
struct Unread(BoxReceiver);

impl Receiver for Unread {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let Received { bytes, calls, .. } = self.0.recv()?;
        Ok(Received { bytes, calls, data: None })
    }
}

/// The result of a run whose ends are threads; `None` if the link is not available.
fn run(job: &Job, skipped: SkippedWork) -> Option<Result<(), String>> {
    let ends = job.ends().unwrap();
    let link = LazyLink(link::of(ends.link).unwrap(), skipped);
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("link");
    let connected = link.connect(ends, &name);
    if link.0.naming() == Naming::Queue && connected.is_err() {
        return None;
    }
    let handles = connected.unwrap();
    let (page, _control) = Control::create(2).unwrap();
    let end = |role, line| {
        let assignment = Assignment {
            role,
            parent: std::process::id(),
            job: job.clone(),
            pair: 0,
            line,
            pin: None,
            seed: 5,
            handles: Vec::new(),
            directory: None,
        };
        TrialEnd { assignment, ends: ends.clone(), control: Control::open(&page).unwrap(), pinned: None }
    };
    let (source_end, sink_end) = (end(EndRole::Source, 0), end(EndRole::Sink, 1));
    let (source, sink) = thread::scope(|scope| {
        let source = scope.spawn(|| source::run(&source_end, &link, handles.source));
        let sink = scope.spawn(|| sink::run(&sink_end, &link, handles.sink));
        (source.join().unwrap(), sink.join().unwrap())
    });
    link.0.remove(&name);
    Some(verify(ends, &[source.unwrap()], &[sink.unwrap()]).map_err(|error| error.to_string()))
}

fn job(values: &[(&str, &str)]) -> Job {
    let values = values.iter().map(|(key, value)| Value::parse_pair(&format!("{key}={value}")).unwrap());
    Job::try_from(Settings::of(values)).unwrap()
}

#[test]
fn skipped_work_is_detected_on_every_link() {
    let mut tried = 0;
    for link in LinkKind::iter().filter(|link| link.transfers()).map(|link| link.to_string()) {
        for verify in ["count", "xor", "full"] {
            let job =
                job(&[("link", &link), ("verify", verify), ("block", "4k"), ("total", "256k"), ("place", "cross")]);
            let Some(whole) = run(&job, SkippedWork::Nothing) else { continue };
            assert_eq!(whole, Ok(()), "{job:?}");
            for skipped in [SkippedWork::Write, SkippedWork::Read] {
                assert!(run(&job, skipped).unwrap().is_err(), "{link} {verify}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 6 * 9, "{tried}");
}

#[test]
fn in_place_bytes_are_written_and_read_at_any_verify_level() {
    for (send, recv) in [("in-place", "in-place"), ("in-place", "read"), ("write", "in-place")] {
        for verify in ["count", "full"] {
            let job = job(&[
                ("link", "shm"),
                ("send", send),
                ("recv", recv),
                ("verify", verify),
                ("block", "4k"),
                ("total", "256k"),
                ("place", "cross"),
            ]);
            let work = job.ends().unwrap().work();
            assert!(work.written || send != "in-place");
            assert!(work.read || recv != "in-place");
            assert_eq!(run(&job, SkippedWork::Nothing).unwrap(), Ok(()));
            assert!(run(&job, SkippedWork::Write).unwrap().is_err(), "{send} {recv} {verify}");
            assert!(run(&job, SkippedWork::Read).unwrap().is_err(), "{send} {recv} {verify}");
        }
    }
}
