//! Both ends of a named pipe, or of two for round trips. With the argument null, there is no transfer.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::process::Command;

use pipemark_link::Link;

#[allow(dead_code)]
mod pipemark_link {
    include!(concat!(env!("PIPEMARK_CONTRACT"), "/pipemark_link.rs"));
}

fn without_transfer(link: &mut Link) {
    link.ready();
    let block = link.next().map(|block| block.to_vec()).unwrap_or_default();
    if link.is_sender() {
        while link.next().is_some() {}
    } else {
        while link.received(&block) {}
    }
}

fn pipe(link: &mut Link) -> io::Result<()> {
    let (sender, trips) = (link.is_sender(), link.round_trips());
    let directory = link.directory();
    let path = |name: &str| format!("{directory}/{name}");
    if !sender {
        // std has no mkfifo.
        let made = Command::new("mkfifo").args([path("there"), path("back")]).status()?;
        assert!(made.success(), "mkfifo failed");
    }
    let open = |name: &str, writes: bool| OpenOptions::new().read(!writes).write(writes).open(path(name));
    link.bound();
    let mut there = open("there", sender)?;
    let mut back = if trips { Some(open("back", !sender)?) } else { None };
    let mut room = vec![0; link.block()];
    link.ready();
    if sender {
        while let Some(block) = link.next() {
            there.write_all(block)?;
            if let Some(back) = &mut back {
                back.read_exact(&mut room)?;
                link.received(&room);
            }
        }
    } else if let Some(back) = &mut back {
        while there.read_exact(&mut room).is_ok() {
            link.received(&room);
            back.write_all(link.next().unwrap_or_default())?;
        }
    } else {
        loop {
            let count = there.read(&mut room)?;
            if count == 0 {
                break;
            }
            link.received(&room[..count]);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut link = Link::start(None);
    if std::env::args().count() > 1 {
        without_transfer(&mut link);
    } else {
        pipe(&mut link)?;
    }
    link.done();
    Ok(())
}
