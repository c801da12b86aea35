//! `pipemark host`: shows what matters about this machine.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use super::output::{FormatOption, destination};
use super::rows::{self, Row};
use super::{failure, written};
use crate::host::{self, show_cpu_list};
use crate::model::{ByteSize, Cpu, Host};
use crate::show::{Cell, Column, Destination, Form, Grid, Room, Side};

/// What `host` takes.
#[derive(Debug, Clone, Args)]
pub struct HostOptions {
    /// Write it as JSON to FILE, or to standard output for '-'
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    json: Option<Destination>,
    #[command(flatten)]
    format: FormatOption,
}

/// Shows the machine, or writes it as JSON.
pub fn run(options: &HostOptions) -> ExitCode {
    let machine = host::survey();
    let mut out = io::stdout().lock();
    match &options.json {
        None => {
            let shown = match options.format.form() {
                Form::Table(_) => show(&mut out, &machine),
                Form::Json => json(&machine, &mut out),
                form => grid(&machine).write(form, &mut out),
            };
            written(shown.and_then(|()| out.flush()))
        }
        Some(destination) => match destination.write_with("JSON", &|out| json(&machine, out)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure(error),
        },
    }
}

fn json(machine: &Host, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, machine)?;
    writeln!(out)
}

fn show(out: &mut dyn io::Write, host: &Host) -> io::Result<()> {
    let (machine, not_here) = rows_of(host);
    let width = rows::widest(machine.iter().chain(&not_here).map(|(name, _)| name.as_str()));
    rows::write(out, &host.name, width, &machine)?;
    if !not_here.is_empty() {
        writeln!(out)?;
        rows::write(out, "Not here", width, &not_here)?;
    }
    Ok(())
}

/// What the machine is, and what cannot be used on it.
fn rows_of(host: &Host) -> (Vec<Row>, Vec<Row>) {
    let (here, not_here): (Vec<_>, Vec<_>) =
        host.permissions.iter().partition(|permission| permission.missing.is_none());
    let mut machine = machine(host);
    let here: Vec<&str> = here.iter().map(|permission| permission.name.as_str()).collect();
    machine.push(row("may be used", here.join(", ")));
    let not_here = not_here
        .iter()
        .map(|permission| row(&permission.name, permission.missing.clone().unwrap_or_default()))
        .collect();
    (machine, not_here)
}

/// The same as one list.
fn grid(host: &Host) -> Grid {
    let column = |name| Column { name, heading: name, side: Side::Left, room: Room::Needed };
    let (machine, not_here) = rows_of(host);
    let missing = not_here.into_iter().map(|(name, reason)| (name, format!("not here: {reason}")));
    let name = row("name", &*host.name);
    let rows = [name].into_iter().chain(machine).chain(missing);
    let rows = rows.map(|(name, text)| vec![Cell::text(name), Cell::text(text)]).collect();
    Grid { columns: ["name", "about"].map(column).to_vec(), rows, ..Grid::default() }
}

fn row(name: &str, text: impl Into<String>) -> Row {
    (name.to_owned(), text.into())
}

fn machine(host: &Host) -> Vec<Row> {
    let mut rows = vec![
        row("kernel", &*host.kernel),
        row("processor", &*host.cpu),
        row("CPUs", cpus(host)),
        row("caches", caches(host)),
    ];
    rows.push(row("virtual", virtualization(host)));
    rows.push(row("governor", host.governor.as_deref().unwrap_or("none to be seen")));
    rows.push(row("memory", limited(ByteSize(host.memory), host.memory_limit.map(ByteSize))));
    rows.push(row("pages", pages(host)));
    rows.push(row("pipes", pipes(host)));
    rows.push(row(
        "vmsplice",
        match host.vmsplice_shares_pages {
            Some(true) => "shares pages: a change after the call shows at the reader",
            Some(false) => "copies pages on this kernel, so it saves nothing",
            None => "cannot be tried here",
        },
    ));
    rows.push(row("load", load(host)));
    rows
}

fn cpus(host: &Host) -> String {
    let allowed: Vec<Cpu> = host.topology.iter().map(|entry| entry.cpu).collect();
    let count = |mut numbers: Vec<u32>| {
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    };
    let cores = count(host.topology.iter().map(|entry| entry.core).collect());
    let packages = count(host.topology.iter().map(|entry| entry.package).collect());
    let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let all = format!(
        "{} allowed ({}): {} in {}",
        host.cpus,
        show_cpu_list(&allowed),
        plural(cores, "core"),
        plural(packages, "package")
    );
    match host.cpu_limit {
        Some(limit) => {
            // A quota over a period: two digits are more than anyone sets.
            let limit = (limit * 100.0).round() / 100.0;
            format!("{all}; the control group gets the time of {limit}")
        }
        None => all,
    }
}

fn caches(host: &Host) -> String {
    let cache = |cache: &crate::model::Cache| {
        let kind = match cache.kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let shared = if cache.shared_by > 1 { format!(" for {} CPUs", cache.shared_by) } else { String::new() };
        format!("L{}{kind} {}{shared}", cache.level, ByteSize(cache.size))
    };
    let caches: Vec<String> = host.caches.iter().map(cache).collect();
    if caches.is_empty() { "not told".to_owned() } else { caches.join(", ") }
}

fn virtualization(host: &Host) -> String {
    match (host.virtualized, host.virtualization.as_deref()) {
        (true, Some(names)) => format!("yes ({names})"),
        (true, None) => "yes".to_owned(),
        (false, Some(names)) => format!("no hypervisor, but a container ({names})"),
        (false, None) => "no".to_owned(),
    }
}

fn limited(value: ByteSize, limit: Option<ByteSize>) -> String {
    match limit {
        Some(limit) if limit < value => format!("{value}, of which the control group may use {limit}"),
        _ => value.to_string(),
    }
}

fn pages(host: &Host) -> String {
    let base = ByteSize(host.page_size);
    match (host.huge_page_size, &host.huge_pages) {
        (Some(size), Some(policy)) => format!("{base}, transparent huge pages of {} ({policy})", ByteSize(size)),
        _ => format!("{base}, no transparent huge pages"),
    }
}

fn pipes(host: &Host) -> String {
    let largest = ByteSize(host.pipe_max_size);
    if host.pipe_limits_lifted {
        return format!("no limit for this process (CAP_SYS_RESOURCE); {largest} for others");
    }
    let per_user = match (host.pipe_user_limits_lifted, host.pipe_user_pages_soft, host.pipe_user_pages_hard) {
        (true, ..) | (false, 0, 0) => "no limit per user".to_owned(),
        (false, soft @ 1.., _) => {
            format!("{} per user in all, then {} each", ByteSize(soft * host.page_size), ByteSize(2 * host.page_size))
        }
        (false, 0, hard) => format!("{} per user in all, then none", ByteSize(hard * host.page_size)),
    };
    format!("up to {largest} each, {per_user}")
}

fn load(host: &Host) -> String {
    let load = format!("{:.2}", host.load);
    match host.pressure {
        Some(pressure) => {
            format!(
                "{load}; tasks waited {:.1} % of the time for a CPU, {:.1} % for memory",
                pressure.cpu, pressure.memory
            )
        }
        None => load,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CpuTopology, Permission};

    fn text(host: &Host) -> String {
        let mut out = Vec::new();
        show(&mut out, host).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn everything_fits_80_columns_however_long_the_reasons_are() {
        let mut host = crate::host::survey();
        host.kernel = "6.1 ".repeat(60);
        host.permissions =
            vec![Permission { name: "io_uring".to_owned(), missing: Some("because of something ".repeat(20)) }];
        let text = text(&host);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("Not here\n  io_uring"), "{text}");
        assert_eq!(text.matches("something").count(), 20, "nothing is cut off\n{text}");
    }

    #[test]
    fn a_machine_that_tells_nothing_is_shown() {
        assert!(text(&Host::default()).contains("not told"));
    }

    #[test]
    fn limits_are_shown_where_they_bind() {
        let cpu = |cpu, core| CpuTopology { cpu: Cpu(cpu), core, package: 0 };
        let host = Host {
            cpus: 2,
            topology: vec![cpu(0, 0), cpu(1, 0)],
            cpu_limit: Some(1.5),
            memory: 8 << 30,
            memory_limit: Some(1 << 30),
            pipe_max_size: 1 << 20,
            pipe_user_pages_soft: 16384,
            page_size: 4096,
            ..Host::default()
        };
        let text = text(&host).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["(0-1): 1 core in 1 package", "the time of 1.5", "may use 1 GiB", "64 MiB per user in all, then 8 KiB"]
        {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }

    #[test]
    fn json_reads_back_as_the_same_machine() {
        let host = crate::host::survey();
        let mut out = Vec::new();
        json(&host, &mut out).unwrap();
        assert_eq!(serde_json::from_slice::<Host>(&out).unwrap(), host);
    }
}
