//! The properties of a machine that matter to pipes.

use std::collections::BTreeSet;

use pipemark_host::show_cpu_list;
use pipemark_model::{ByteSize, Cpu, Host, counted};
use pipemark_show::{Cell, Column, Fit, Sheet, Table};

/// The machine, and the facilities that can't be used on it.
pub fn host(host: &Host) -> Sheet {
    let here = machine(host).into_iter().map(|(name, text)| ("", name, Cell::text(text)));
    let missing = host.permissions.iter().filter_map(|permission| {
        let reason = permission.missing.as_ref()?;
        Some((
            "Not available here",
            permission.name.as_str(),
            Cell::of(reason, format!("not available here: {reason}")),
        ))
    });
    let all: Vec<(&str, &str, Cell)> = here.chain(missing).collect();
    let table = Table::of(&all)
        .column(Column::words("name", "name"), |(_, name, _)| Cell::text(*name))
        .column(Column::words("about", "about").fit(Fit::Wrapped), |(.., about)| about.clone());
    Sheet::of(table.grouped(|(caption, ..)| *caption, |caption| (*caption).to_owned()), [])
}

fn machine(host: &Host) -> Vec<(&'static str, String)> {
    let vmsplice = match host.vmsplice_shares_pages {
        Some(true) => "shares pages: a later change is visible to the reader",
        Some(false) => "copies pages on this kernel: no gain",
        None => "could not be tested here",
    };
    let usable = host.permissions.iter().filter(|permission| permission.missing.is_none());
    let usable: Vec<&str> = usable.map(|permission| permission.name.as_str()).collect();
    vec![
        ("name", host.name.clone()),
        ("kernel", host.kernel.clone()),
        ("processor", host.cpu.clone()),
        ("CPUs", cpus(host)),
        ("caches", caches(host)),
        ("virtual", virtualization(host)),
        ("clock source", host.clock_source.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("governor", host.governor.clone().unwrap_or_else(|| "not available".to_owned())),
        ("memory", with_limit(ByteSize(host.memory), host.memory_limit.map(ByteSize))),
        ("pages", pages(host)),
        ("pipes", pipes(host)),
        ("vmsplice", vmsplice.to_owned()),
        ("load", load(host)),
        ("permitted", usable.join(", ")),
    ]
}

fn cpus(host: &Host) -> String {
    let allowed: Vec<Cpu> = host.topology.iter().map(|entry| entry.cpu).collect();
    let cores = BTreeSet::from_iter(host.topology.iter().map(|entry| entry.core)).len();
    let packages = BTreeSet::from_iter(host.topology.iter().map(|entry| entry.package)).len();
    let all = format!(
        "{} allowed ({}): {} in {}",
        host.cpus,
        show_cpu_list(&allowed),
        counted(cores, "core"),
        counted(packages, "package")
    );
    match host.cpu_limit {
        Some(limit) => {
            // The limit is a quota over a period, for which two decimals are enough.
            let limit = (limit * 100.0).round() / 100.0;
            format!("{all}; the control group is limited to {limit}")
        }
        None => all,
    }
}

fn caches(host: &Host) -> String {
    let cache = |cache: &pipemark_model::Cache| {
        let kind = match cache.kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let shared = if cache.shared_by > 1 { format!(" for {} CPUs", cache.shared_by) } else { String::new() };
        format!("L{}{kind} {}{shared}", cache.level, ByteSize(cache.size))
    };
    let caches: Vec<String> = host.caches.iter().map(cache).collect();
    if caches.is_empty() { "not available".to_owned() } else { caches.join(", ") }
}

fn virtualization(host: &Host) -> String {
    match (host.virtualized, host.virtualization.as_deref()) {
        (true, Some(names)) => format!("yes ({names})"),
        (true, None) => "yes".to_owned(),
        (false, Some(names)) => format!("no hypervisor, but a container ({names})"),
        (false, None) => "no".to_owned(),
    }
}

fn with_limit(value: ByteSize, limit: Option<ByteSize>) -> String {
    match limit {
        Some(limit) if limit < value => format!("{value}, limited to {limit} by the control group"),
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
    let default = host.pipe_default_size.map_or_else(String::new, |size| format!("default {}, ", ByteSize(size)));
    default + &largest_pipes(host)
}

fn largest_pipes(host: &Host) -> String {
    let largest = ByteSize(host.pipe_max_size);
    if host.pipe_limits_lifted {
        return format!("no limit for this process (CAP_SYS_RESOURCE); {largest} without this capability");
    }
    let per_user = match (host.pipe_user_limits_lifted, host.pipe_user_pages_soft, host.pipe_user_pages_hard) {
        (true, ..) | (false, 0, 0) => "no limit per user".to_owned(),
        (false, soft @ 1.., _) => {
            format!(
                "up to {} in total per user; beyond that, {} per pipe",
                ByteSize(soft * host.page_size),
                ByteSize(2 * host.page_size)
            )
        }
        (false, 0, hard) => format!("up to {} in total per user; beyond that, none", ByteSize(hard * host.page_size)),
    };
    format!("up to {largest} each, {per_user}")
}

fn load(host: &Host) -> String {
    let load = format!("{:.2}", host.load);
    match host.pressure {
        Some(pressure) => {
            format!("{load}; pressure: CPU {:.1} %, memory {:.1} %", pressure.cpu, pressure.memory)
        }
        None => load,
    }
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Cpu, CpuTopology, Permission};
    use pipemark_show::{Characters, Colour, Terminal};

    use super::*;

    fn text(host: &Host) -> String {
        let terminal = Terminal { width: 80, colour: Colour::Never, characters: Characters::Unicode };
        terminal.render(&super::host(host))
    }

    #[test]
    fn everything_fits_80_columns_however_long_the_reasons_are() {
        let mut host = pipemark_host::survey();
        host.kernel = "6.1 ".repeat(60);
        host.permissions =
            vec![Permission { name: "io_uring".to_owned(), missing: Some("because of something ".repeat(20)) }];
        let text = text(&host);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("Not available here\nio_uring"), "{text}");
        assert_eq!(text.matches("something").count(), 20, "nothing is cut off\n{text}");
    }

    #[test]
    fn a_machine_without_any_files_is_shown() {
        assert!(text(&Host::default()).contains("not available"));
    }

    #[test]
    fn binding_limits_are_shown() {
        let cpu = |cpu, core| CpuTopology { cpu: Cpu(cpu), core, package: 0, node: None, die: None, l3: None };
        let host = Host {
            cpus: 2,
            topology: vec![cpu(0, 0), cpu(1, 0)],
            cpu_limit: Some(1.5),
            memory: 8 << 30,
            memory_limit: Some(1 << 30),
            pipe_default_size: Some(64 << 10),
            pipe_max_size: 1 << 20,
            pipe_user_pages_soft: 16384,
            page_size: 4096,
            ..Host::default()
        };
        let text = text(&host).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "(0-1): 1 core in 1 package",
            "limited to 1.5",
            "limited to 1 GiB",
            "default 64 KiB, up to",
            "up to 64 MiB in total per user; beyond that, 8 KiB",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }
}
