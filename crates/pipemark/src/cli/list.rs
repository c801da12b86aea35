//! `pipemark list`: shows what can be measured, and what of it cannot be measured here.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use strum::IntoEnumIterator;

use super::output::FormatOption;
use super::rows::{self, Row};
use super::{usage, written};
use crate::available::missing;
use crate::host;
use crate::model::{Ends, Host, Job, LinkKind, PageKind, Place, RecvMethod, SendMethod, WaitPolicy};
use crate::plan::{EMBEDDED, Suite};
use crate::show::{Cell, Column, Form, Grid, Room, Side};

/// What `list` takes.
#[derive(Debug, Clone, Args)]
pub struct ListOptions {
    #[command(flatten)]
    format: FormatOption,
}

/// Lists what there is.
pub fn run(options: &ListOptions) -> ExitCode {
    let mut suites = Vec::new();
    for (name, text) in EMBEDDED {
        match Suite::parse(&format!("suites/{name}.toml"), text) {
            Ok(suite) => suites.push((name.to_owned(), suite.title)),
            Err(error) => return usage(error),
        }
    }
    let mut out = io::stdout().lock();
    let host = host::survey();
    let shown = match options.format.form() {
        Form::Table(_) => show(&mut out, &host, suites),
        form => grid(sections(&host, suites)).write(form, &mut out),
    };
    written(shown.and_then(|()| out.flush()))
}

/// Shows every choice with what it does, and where it cannot be used on `host`, why. `suites` are names with titles.
///
/// # Errors
/// When `out` cannot be written.
fn show(out: &mut dyn io::Write, host: &Host, suites: Vec<Row>) -> io::Result<()> {
    let sections = sections(host, suites);
    let width = rows::widest(sections.iter().flat_map(|(_, rows)| rows).map(|(name, _)| name.as_str()));
    for (index, (heading, rows)) in sections.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        rows::write(out, heading, width, rows)?;
    }
    Ok(())
}

/// The same as one list.
fn grid(sections: [Section; 7]) -> Grid {
    let column = |name| Column { name, heading: name, side: Side::Left, room: Room::Needed };
    let row = |heading: &str, (name, text): Row| {
        let kind = heading.split(" (").next().unwrap_or(heading);
        let (about, missing) = match text.split_once(NOT_HERE) {
            Some((about, reason)) => (about, Cell::text(reason)),
            None => (text.as_str(), Cell::none()),
        };
        vec![Cell::text(kind), Cell::text(name), Cell::text(about), missing]
    };
    let rows = sections.into_iter().flat_map(|(heading, rows)| rows.into_iter().map(move |one| row(heading, one)));
    Grid { columns: ["kind", "name", "about", "missing"].map(column).to_vec(), rows: rows.collect(), ..Grid::default() }
}

/// A heading and what there is to choose from.
type Section = (&'static str, Vec<Row>);

/// Between what a choice does and why it cannot be used.
const NOT_HERE: &str = "\nnot here: ";

fn sections(host: &Host, suites: Vec<Row>) -> [Section; 7] {
    // Apart from the choice itself, nothing that needs anything.
    let Job::Stream(plain) = Job::default() else { unreachable!("a plain pipe is a stream") };
    let plain = Ends { place: Place::Free, ..plain };
    [
        ("Suites (pipemark run SUITE)", suites),
        ("Links (--link)", choices(host, about_link, |link| Ends { link, ..plain.clone() })),
        ("Senders (--send)", choices(host, about_send, |send| Ends { send, ..plain.clone() })),
        ("Receivers (--recv)", choices(host, about_recv, |recv| Ends { recv, ..plain.clone() })),
        ("Wait policies (--wait)", choices(host, about_wait, |wait| Ends { wait, ..plain.clone() })),
        ("Pages (--pages)", choices(host, about_pages, |pages| Ends { pages, ..plain.clone() })),
        ("Placements (--place)", places(host, &plain)),
    ]
}

/// A row for each word of a parameter: what it does, and on a line of its own why it is not here.
fn choices<T: IntoEnumIterator + Copy + ToString>(
    host: &Host,
    about: impl Fn(T) -> &'static str,
    params: impl Fn(T) -> Ends,
) -> Vec<Row> {
    T::iter().map(|choice| (choice.to_string(), described(host, about(choice), &params(choice)))).collect()
}

fn described(host: &Host, about: &str, ends: &Ends) -> String {
    match missing(&Job::Stream(ends.clone()), host) {
        None => about.to_owned(),
        Some(reason) => format!("{about}{NOT_HERE}{reason}"),
    }
}

fn places(host: &Host, plain: &Ends) -> Vec<Row> {
    let about = [
        (Place::Free, "wherever the scheduler puts the ends"),
        (Place::Same, "both ends on one CPU, the first allowed"),
        (Place::Cross, "on two cores, of one package if there are two"),
    ];
    let row =
        |(place, about): (Place, &str)| (place.to_string(), described(host, about, &Ends { place, ..plain.clone() }));
    let pinned = ("W:R".to_owned(), "writer and reader on the CPUs with these numbers".to_owned());
    about.into_iter().map(row).chain([pinned]).collect()
}

fn about_link(link: LinkKind) -> &'static str {
    match link {
        LinkKind::Pipe => "an anonymous pipe between two processes",
        LinkKind::Fifo => "a named pipe",
        LinkKind::Socketpair => "a pair of UNIX stream sockets",
        LinkKind::UnixStream => "a UNIX stream socket, bound, connected and accepted",
        LinkKind::UnixSeqpacket => "a UNIX socket that keeps messages apart, in order",
        LinkKind::UnixDgram => "a UNIX datagram socket",
        LinkKind::Tcp => "TCP over the loopback device",
        LinkKind::SysvMq => "a System V message queue",
        LinkKind::PosixMq => "a POSIX message queue",
        LinkKind::Shm => "a ring in shared memory",
        LinkKind::ProcessVm => "process_vm_readv(2): copied straight out of the source's memory",
        LinkKind::Pty => "a pseudo-terminal in raw mode",
        LinkKind::Null => "no transfer at all: what the harness itself costs",
        LinkKind::MemoryCopy => "one core copies block to block: the limit that others are held against",
    }
}

fn about_send(send: SendMethod) -> &'static str {
    match send {
        SendMethod::Write => "write(2): the kernel copies the block",
        SendMethod::Vmsplice => "vmsplice(2): the pipe takes the block's pages instead of a copy",
        SendMethod::VmspliceGift => "vmsplice(2) with SPLICE_F_GIFT: the pages are given away for good",
        SendMethod::Sendfile => "sendfile(2) from memory that is a file (memfd)",
        SendMethod::Splice => "splice(2) from memory that is a file (memfd)",
        SendMethod::Tee => "tee(2) from a filled pipe: the same pages over and over",
        SendMethod::IoUring => "io_uring writes from registered buffers",
        SendMethod::InPlace => "produced where the sink reads it (shared memory)",
        SendMethod::Zerocopy => "send(2) with MSG_ZEROCOPY (TCP)",
    }
}

fn about_recv(recv: RecvMethod) -> &'static str {
    match recv {
        RecvMethod::Read => "read(2): the kernel copies into the sink's buffer",
        RecvMethod::Splice => "splice(2) to /dev/null: pages are dropped, no byte is looked at",
        RecvMethod::Vmsplice => "vmsplice(2) from the pipe to memory: the kernel copies, as with read",
        RecvMethod::IoUring => "io_uring reads into registered buffers",
        RecvMethod::InPlace => "looked at where the source produced it (shared memory)",
    }
}

fn about_wait(wait: WaitPolicy) -> &'static str {
    match wait {
        WaitPolicy::Block => "the call sleeps in the kernel until it can go on",
        WaitPolicy::Poll => "calls that do not block, and poll(2) when they would",
        WaitPolicy::Spin => "calls that do not block, tried again at once; costs a whole CPU",
    }
}

fn about_pages(pages: PageKind) -> &'static str {
    match pages {
        PageKind::Base => "the system's usual pages",
        PageKind::Huge => "transparent huge pages, asked for with MADV_HUGEPAGE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Permission;

    fn text(host: &Host, suites: &[(&str, &str)]) -> String {
        let mut out = Vec::new();
        let suites = suites.iter().map(|&(name, title)| (name.to_owned(), title.to_owned())).collect();
        show(&mut out, host, suites).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_word_is_listed_within_80_columns() {
        let host = crate::host::survey();
        let text = text(&host, &[("quick", "pipes in half a minute"), ("block-size", &"long ".repeat(40))]);
        let words =
            SendMethod::iter().map(|word| word.to_string()).chain(RecvMethod::iter().map(|word| word.to_string()));
        for word in words.chain(["quick", "memory-copy", "spin", "cross"].map(str::to_owned)) {
            assert!(text.lines().any(|line| line.split_whitespace().next() == Some(&word)), "{word} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn what_is_not_here_says_why() {
        let mut host = crate::host::survey();
        host.permissions = vec![Permission { name: "vmsplice".to_owned(), missing: Some("refused".to_owned()) }];
        host.topology.truncate(1);
        host.huge_pages = Some("never".to_owned());
        let text = text(&host, &[]);
        // Two senders and one receiver use it; then huge pages and two CPUs.
        assert_eq!(text.matches("needs vmsplice: refused").count(), 3, "{text}");
        assert_eq!(text.matches("not here: ").count(), 5, "{text}");
        assert!(text.contains("Suites (pipemark run SUITE)\n  none\n"), "{text}");
    }
}
