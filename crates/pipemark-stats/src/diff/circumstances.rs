//! Lists differences between the conditions of two measurements. Each difference may be the cause of a change.

use std::mem::discriminant;
use std::slice::from_ref;

use pipemark_model::{ByteSize, Document, Host, Key, Record, Warning};

use crate::diff::SideInput;

/// The differences between the conditions, one sentence each.
pub(super) fn differences(base: SideInput, new: SideInput) -> Vec<String> {
    let mut sentences = Vec::new();
    let (one, other) = (base.first(), new.first());
    let hosts: Vec<String> = machine_properties(&one.host)
        .into_iter()
        .zip(machine_properties(&other.host))
        .filter(|((_, base), (_, new))| base != new)
        .map(|((aspect, base), (_, new))| match (base.as_str(), new.as_str()) {
            ("", _) | (_, "") => aspect.to_owned(),
            _ => format!("{aspect} ({base} in BASE, {new} in NEW)"),
        })
        .collect();
    if !hosts.is_empty() {
        sentences.push(format!("machine or system differs: {}", hosts.join("; ")));
    }
    if one.version != other.version {
        sentences.push(format!("pipemark {} measured BASE, pipemark {} measured NEW", one.version, other.version));
    }
    if base.documents.iter().any(|document| new.documents.contains(document)) {
        sentences.push("both files hold the same measurement".to_owned());
    }
    let (of_base, of_new) = (warnings(base), warnings(new));
    for (side, side_input, own, other) in [("BASE", base, &of_base, &of_new), ("NEW", new, &of_new, &of_base)] {
        if side_input.documents.iter().any(|document| document.partial) {
            sentences.push(format!("{side} was interrupted before all of its runs were done"));
        }
        for warning in own {
            match other.contains(warning) {
                true if side == "NEW" => {}
                true => sentences.push(format!("both: {warning}")),
                false => sentences.push(format!("{side}: {warning}")),
            }
        }
    }
    sentences
}

/// The first warning of each kind. If the side has several sessions, each warning is followed by the number of sessions
/// that have it.
fn warnings(side_input: SideInput) -> Vec<String> {
    let all: Vec<&Warning> = side_input.documents.iter().flat_map(|document| &document.warnings).collect();
    let alike = |one: &Warning, other: &Warning| discriminant(one) == discriminant(other);
    let sessions = side_input.documents.len();
    let first = |(index, warning): (usize, &&Warning)| {
        let count = all.iter().filter(|other| alike(warning, other)).count();
        let new = !all[..index].iter().any(|other| alike(warning, other));
        new.then(
            || if sessions > 1 { format!("{warning} ({count} of {sessions} sessions)") } else { warning.to_string() },
        )
    };
    all.iter().enumerate().filter_map(first).collect()
}

/// A disturbance by other processes, the hypervisor or a limit.
struct Disturbance {
    /// The figure in a warning.
    figure: fn(&Warning) -> Option<f64>,
    /// The text before the figure.
    text: &'static str,
    unit: &'static str,
    /// With a larger difference between the sides, there is no verdict.
    max_difference: f64,
    advice: &'static str,
}

const QUIET_MACHINE: &str = "measure both again on a quiet machine";

const DISTURBANCES: [Disturbance; 3] = [
    Disturbance {
        figure: |warning| if let Warning::Load { busy } = warning { Some(*busy) } else { None },
        text: "others used",
        unit: " CPUs",
        max_difference: 0.2,
        advice: QUIET_MACHINE,
    },
    Disturbance {
        figure: |warning| if let Warning::Steal { percent } = warning { Some(*percent) } else { None },
        text: "the hypervisor took",
        unit: " %",
        max_difference: 2.0,
        advice: QUIET_MACHINE,
    },
    Disturbance {
        figure: |warning| if let Warning::Throttled { percent, .. } = warning { Some(*percent) } else { None },
        text: "the control group's CPU limit throttled the processes for",
        unit: " % of the CPU time",
        max_difference: 2.0,
        advice: "raise the CPU limit, or measure both under the same limit",
    },
];

/// The first disturbance that differs too much between the sides: its description for BASE, its figure for NEW, and
/// advice. `None` if no disturbance does.
fn unequal_disturbance(base: &[Document], new: &[Document]) -> Option<(String, String, &'static str)> {
    DISTURBANCES.iter().find_map(|Disturbance { figure, text, unit, max_difference, advice }| {
        let mean = |documents: &[Document]| {
            let found = documents.iter().flat_map(|document| &document.warnings).filter_map(figure);
            found.fold(0.0, |sum, of_one| sum + of_one) / documents.len() as f64
        };
        let (base, new) = (mean(base), mean(new));
        let with_unit = |figure: f64| format!("{figure:.2}{unit}");
        ((base - new).abs() > *max_difference).then(|| (format!("{text} {}", with_unit(base)), with_unit(new), *advice))
    })
}

/// A sentence about a disturbance that was stronger on one side, so that it may have caused the change. `None` if there
/// is no such disturbance.
pub(super) fn disturbance_reason(base: SideInput, new: SideInput) -> Option<String> {
    let (base, new, advice) = unequal_disturbance(base.documents, new.documents)?;
    Some(format!("unequal disturbance: {base} in BASE and {new} in NEW; {advice}"))
}

/// Describes a disturbance that was stronger or weaker in a session than in the previous session; `None` if there is no
/// such disturbance.
pub fn disturbances(before: &Document, after: &Document) -> Option<String> {
    let (base, new, _) = unequal_disturbance(from_ref(before), from_ref(after))?;
    Some(format!("a different load ({base} before, {new} after)"))
}

/// Describes sizes that were requested equally on both sides but granted differently by the kernel.
pub(super) fn granted_differences(base: &Record, new: &Record, chosen: &[Key]) -> Vec<String> {
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

/// Names and values of a machine's properties that may affect throughput. An empty value isn't printed.
fn machine_properties(host: &Host) -> Vec<(&'static str, String)> {
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
        ("exempt from pipe limits", yes(host.pipe_limits_lifted)),
        ("exempt from per-user pipe limits", yes(host.pipe_user_limits_lifted)),
        ("vmsplice shares pages", host.vmsplice_shares_pages.map_or_else(|| "unknown".to_owned(), yes)),
        ("CPU topology", cpu_places(host)),
        ("caches", caches(host)),
    ]
}

/// Each CPU as CPU:CORE.PACKAGE. For example, `0:0.0 1:1.0` means two cores of one package.
fn cpu_places(host: &Host) -> String {
    let cpus = host.topology.iter().map(|place| format!("{}:{}.{}", place.cpu, place.core, place.package));
    cpus.collect::<Vec<_>>().join(" ")
}

fn caches(host: &Host) -> String {
    let caches = host.caches.iter().map(|cache| format!("L{} {} {}", cache.level, cache.kind, ByteSize(cache.size)));
    caches.collect::<Vec<_>>().join(", ")
}
