//! `pipemark list`: shows what can be measured, and what of it cannot be measured here.

use clap::Args;
use strum::IntoEnumIterator;

use super::Ending;
use super::output::FormatOption;
use crate::available::missing;
use crate::host;
use crate::model::{Ends, Host, Job, LinkKind, PageKind, Place, RecvMethod, SendMethod, WaitPolicy};
use crate::plan::{EMBEDDED, Suite};
use crate::sheet::{self, Choice};

/// What `list` takes.
#[derive(Debug, Clone, Args)]
pub struct ListOptions {
    #[command(flatten)]
    format: FormatOption,
}

/// Lists what there is.
pub fn run(options: &ListOptions) -> Ending {
    let mut suites = Vec::new();
    for (name, text) in EMBEDDED {
        let suite = Suite::parse(&format!("suites/{name}.toml"), text)?;
        suites.push(Choice { name: name.to_owned(), about: suite.title, missing: None });
    }
    Ok(options.format.print(&sheet::choices(&sections(&host::survey(), suites)), None)?)
}

/// Every choice with what it does, and where it cannot be used on `host`, why.
fn sections(host: &Host, suites: Vec<Choice>) -> Vec<(String, Vec<Choice>)> {
    // Apart from the choice itself, nothing that needs anything.
    let Job::Stream(plain) = Job::default() else { unreachable!("a plain pipe is a stream") };
    let plain = Ends { place: Place::Free, ..plain };
    let sections = [
        ("Suites (pipemark run SUITE)", suites),
        ("Links (--link)", choices(host, about_link, |link| Ends { link, ..plain.clone() })),
        ("Senders (--send)", choices(host, about_send, |send| Ends { send, ..plain.clone() })),
        ("Receivers (--recv)", choices(host, about_recv, |recv| Ends { recv, ..plain.clone() })),
        ("Wait policies (--wait)", choices(host, about_wait, |wait| Ends { wait, ..plain.clone() })),
        ("Pages (--pages)", choices(host, about_pages, |pages| Ends { pages, ..plain.clone() })),
        ("Placements (--place)", places(host, &plain)),
    ];
    sections.into_iter().map(|(heading, choices)| (heading.to_owned(), choices)).collect()
}

/// One for each word of a parameter.
fn choices<T: IntoEnumIterator + Copy + ToString>(
    host: &Host,
    about: impl Fn(T) -> &'static str,
    params: impl Fn(T) -> Ends,
) -> Vec<Choice> {
    T::iter().map(|choice| described(host, choice.to_string(), about(choice), params(choice))).collect()
}

fn described(host: &Host, name: String, about: &str, ends: Ends) -> Choice {
    Choice { name, about: about.to_owned(), missing: missing(&Job::Stream(ends), host) }
}

fn places(host: &Host, plain: &Ends) -> Vec<Choice> {
    let about = [
        (Place::Free, "wherever the scheduler puts the ends"),
        (Place::Same, "both ends on one CPU, the first allowed"),
        (Place::Cross, "on two cores, of one package if there are two"),
    ];
    let choice =
        |(place, about): (Place, &str)| described(host, place.to_string(), about, Ends { place, ..plain.clone() });
    let about_pinned = "writer and reader on the CPUs with these numbers".to_owned();
    let pinned = Choice { name: "W:R".to_owned(), about: about_pinned, missing: None };
    about.into_iter().map(choice).chain([pinned]).collect()
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
    use crate::render::{Characters, Colour, Terminal};

    fn text(host: &Host, suites: &[(&str, &str)]) -> String {
        let choice = |&(name, about): &(&str, &str)| Choice { name: name.into(), about: about.into(), missing: None };
        let sheet = sheet::choices(&sections(host, suites.iter().map(choice).collect()));
        Terminal { width: 80, colour: Colour::Never, characters: Characters::Unicode }.render(&sheet)
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
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Two senders and one receiver use it; then huge pages and two CPUs.
        assert_eq!(words.matches("needs vmsplice: refused").count(), 3, "{text}");
        assert_eq!(words.matches("not here: ").count(), 5, "{text}");
    }
}
