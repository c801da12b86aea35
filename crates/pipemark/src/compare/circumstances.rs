//! What else differs between two measurements, so that a change may not be due to what the person changed.

use super::Party;
use crate::model::{ByteSize, Host, Key, Record};

/// Sentences; empty where nothing differs.
pub(super) fn differences(base: Party, new: Party) -> Vec<String> {
    let mut sentences = Vec::new();
    let hosts: Vec<String> = aspects(&base.document.host)
        .into_iter()
        .zip(aspects(&new.document.host))
        .filter(|((_, base), (_, new))| base != new)
        .map(|((aspect, base), (_, new))| match (base.as_str(), new.as_str()) {
            ("", _) | (_, "") => aspect.to_owned(),
            _ => format!("{aspect} ({base} in BASE, {new} in NEW)"),
        })
        .collect();
    if !hosts.is_empty() {
        sentences.push(format!("not the same machine or system; what differs: {}", hosts.join("; ")));
    }
    if base.document.version != new.document.version {
        sentences.push(format!(
            "pipemark {} measured BASE, pipemark {} measured NEW",
            base.document.version, new.document.version
        ));
    }
    if base.document == new.document {
        sentences.push("both files hold the same measurement".to_owned());
    }
    for (side, party, other) in [("BASE", base, new), ("NEW", new, base)] {
        if party.document.partial {
            sentences.push(format!("{side} was interrupted before all of its runs were made"));
        }
        for warning in &party.document.warnings {
            match other.document.warnings.contains(warning) {
                true if side == "NEW" => {}
                true => sentences.push(format!("both: {warning}")),
                false => sentences.push(format!("{side}: {warning}")),
            }
        }
    }
    sentences
}

/// What the kernel granted, where it differs though the same was asked for.
pub(super) fn granted(base: &Record, new: &Record, chosen: &[Key]) -> Vec<String> {
    let granted = |record: &Record| {
        let first = record.samples.first();
        [
            ("capacity", Key::Capacity, first.and_then(|sample| sample.capacity_granted)),
            ("send buffer", Key::Buffer, first.and_then(|sample| sample.send_buffer)),
            ("receive buffer", Key::Buffer, first.and_then(|sample| sample.recv_buffer)),
        ]
    };
    let both = granted(base).into_iter().zip(granted(new));
    both.filter_map(|((what, key, base), (_, _, new))| match (base, new) {
        (Some(base), Some(new)) if base != new && !chosen.contains(&key) => {
            Some(format!("the {what} granted was {} in BASE and {} in NEW", ByteSize(base), ByteSize(new)))
        }
        _ => None,
    })
    .collect()
}

/// What of a machine decides how fast it moves bytes; an empty text is something that has no short one.
fn aspects(host: &Host) -> Vec<(&'static str, String)> {
    let optional = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    let pages = |pages: u64| if pages == 0 { "no limit".to_owned() } else { format!("{pages} pages") };
    let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
    let underneath = match host.virtualized {
        true => host.virtualization.clone().unwrap_or_else(|| "a hypervisor".to_owned()),
        false => optional(host.virtualization.clone()),
    };
    vec![
        ("host", host.name.clone()),
        ("kernel", host.kernel.clone()),
        ("processor", host.cpu.clone()),
        ("CPUs", host.cpus.to_string()),
        ("virtualization", underneath),
        ("clock source", optional(host.clock_source.clone())),
        ("frequency governor", optional(host.governor.clone())),
        ("memory", ByteSize(host.memory).to_string()),
        ("memory limit", optional(host.memory_limit.map(|bytes| ByteSize(bytes).to_string()))),
        ("CPU limit", optional(host.cpu_limit.map(|cpus| cpus.to_string()))),
        ("page size", ByteSize(host.page_size).to_string()),
        ("huge pages", optional(host.huge_pages.clone())),
        ("pipe-max-size", ByteSize(host.pipe_max_size).to_string()),
        ("pipe-user-pages-soft", pages(host.pipe_user_pages_soft)),
        ("pipe-user-pages-hard", pages(host.pipe_user_pages_hard)),
        ("limits on pipes lifted", yes(host.pipe_limits_lifted)),
        ("limits per user lifted", yes(host.pipe_user_limits_lifted)),
        ("vmsplice shares pages", host.vmsplice_shares_pages.map_or_else(|| "unknown".to_owned(), yes)),
        ("the CPUs' places", places(host)),
        ("caches", caches(host)),
    ]
}

/// Core and package of each CPU: `0.0 1.0` are two cores of one package.
fn places(host: &Host) -> String {
    let cpus = host.topology.iter().map(|place| format!("{}:{}.{}", place.cpu, place.core, place.package));
    cpus.collect::<Vec<_>>().join(" ")
}

fn caches(host: &Host) -> String {
    let caches = host.caches.iter().map(|cache| format!("L{} {} {}", cache.level, cache.kind, ByteSize(cache.size)));
    caches.collect::<Vec<_>>().join(", ")
}
