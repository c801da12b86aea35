//! Whether a trial can run on a machine, and on which CPUs. This module does no I/O: all facts about the machine are in
//! [`Host`].

use pipemark_host::{Facility, show_cpu_list};
use pipemark_model::{
    ByteSize, Capacity, Cpu, CpuTopology, Ends, Host, Job, LinkKind, PageKind, Place, RecvMethod, SendMethod, Value,
    counted,
};

/// Why a trial with these parameters can't run on this machine, as a sentence that says what would help. `None` if the
/// trial can run.
pub fn missing(job: &Job, host: &Host) -> Option<String> {
    let Some(ends) = job.ends() else { return cpus_for(job.place(), host).err() };
    let piped = ends.link.is_pipe();
    None.or_else(|| needed(job, ends).into_iter().find_map(|(user, own)| not_permitted(&user, own, host)))
        .or_else(|| cpus_for(ends.place, host).err())
        .or_else(|| piped.then(|| capacity_problem(job, ends, host)).flatten())
        .or_else(|| (ends.pages == PageKind::Huge).then(|| huge_pages_problem(host)).flatten())
        .or_else(|| memory_problem(ends, host))
}

/// The writer's and the reader's CPU; `None` if the scheduler chooses.
///
/// `cross` prefers two cores of one package, then two packages, and uses the two threads of one core only as a last
/// resort.
///
/// # Errors
/// If a required CPU may not be used here. The message lists the allowed CPUs.
pub fn cpus_for(place: Place, host: &Host) -> Result<Option<(Cpu, Cpu)>, String> {
    let allowed: Vec<Cpu> = host.topology.iter().map(|entry| entry.cpu).collect();
    match place {
        Place::Free => Ok(None),
        Place::Same => match allowed.first() {
            Some(&cpu) => Ok(Some((cpu, cpu))),
            None => Err("--place same needs a CPU to pin to, and none could be found; use --place free".to_owned()),
        },
        Place::Cross => best_pair(&host.topology).map(Some).ok_or_else(|| {
            format!(
                "--place cross needs two CPUs, but only CPU {} is allowed here; use --place same, or allow more CPUs (taskset, docker run --cpuset-cpus)",
                show_cpu_list(&allowed)
            )
        }),
        Place::Pinned(writer, reader) => match [writer, reader].into_iter().find(|cpu| !allowed.contains(cpu)) {
            None => Ok(Some((writer, reader))),
            Some(cpu) => Err(format!(
                "--place {place}: CPU {cpu} does not exist, is offline or is not allowed; allowed CPUs: {}",
                show_cpu_list(&allowed)
            )),
        },
    }
}

/// The pair with the lowest CPU numbers among the best pairs; `None` if there is no pair.
fn best_pair(cpus: &[CpuTopology]) -> Option<(Cpu, Cpu)> {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Distance {
        Package,
        Machine,
        Core,
    }
    let distance = |a: &CpuTopology, b: &CpuTopology| match (a.package == b.package, a.core == b.core) {
        (true, true) => Distance::Core,
        (true, false) => Distance::Package,
        (false, _) => Distance::Machine,
    };
    let pairs = cpus.iter().enumerate().flat_map(|(i, a)| cpus[i + 1..].iter().map(move |b| (a, b)));
    // Among equal pairs, `min_by_key` returns the first one, which has the lowest numbers.
    pairs.min_by_key(|(a, b)| distance(a, b)).map(|(a, b)| (a.cpu, b.cpu))
}

/// The facility that a parameter's value needs.
const NEEDED: [(Value, Facility); 15] = [
    (Value::Link(LinkKind::SysvMq), Facility::SysvQueues),
    (Value::Link(LinkKind::PosixMq), Facility::PosixQueues),
    (Value::Link(LinkKind::ProcessVm), Facility::ProcessVm),
    (Value::Link(LinkKind::UnixStream), Facility::UnixSockets),
    (Value::Link(LinkKind::Tcp), Facility::Tcp),
    (Value::Send(SendMethod::Vmsplice), Facility::Vmsplice),
    (Value::Send(SendMethod::VmspliceGift), Facility::Vmsplice),
    (Value::Send(SendMethod::Sendfile), Facility::Sendfile),
    (Value::Send(SendMethod::Splice), Facility::Splice),
    (Value::Send(SendMethod::Tee), Facility::Tee),
    (Value::Send(SendMethod::IoUring), Facility::IoUring),
    (Value::Recv(RecvMethod::Splice), Facility::Splice),
    (Value::Recv(RecvMethod::Vmsplice), Facility::Vmsplice),
    (Value::Recv(RecvMethod::IoUring), Facility::IoUring),
    (Value::Pages(PageKind::Huge), Facility::HugePages),
];

/// The facilities that a trial needs, each with the parameter that requires the facility.
fn needed(job: &Job, ends: &Ends) -> Vec<(String, Facility)> {
    let flag = |value: &Value| format!("--{} {value}", value.key());
    // Both ends of every trial share a page, on which they wait for the start.
    let mut needed = vec![("every trial".to_owned(), Facility::Memfd), ("every trial".to_owned(), Facility::Futex)];
    let settings = job.settings();
    needed.extend(NEEDED.iter().filter(|(value, _)| settings.has(value)).map(|(value, own)| (flag(value), *own)));
    // `quota` needs no permission, because the kernel gives this capacity to users over their limit.
    if ends.link.is_pipe() && matches!(ends.capacity, Capacity::Bytes(_)) {
        needed.push((flag(&Value::Capacity(ends.capacity)), Facility::PipeCapacity));
    }
    if ends.place != Place::Free {
        needed.push((flag(&Value::Place(ends.place)), Facility::Affinity));
    }
    needed
}

fn not_permitted(user: &str, facility: Facility, host: &Host) -> Option<String> {
    let name = facility.to_string();
    let reason = host.permissions.iter().find(|permission| permission.name == name)?.missing.as_ref()?;
    Some(format!("{user} needs {name}: {reason}"))
}

/// The number of pages of a pipe with the requested capacity. The kernel rounds up to a power of two.
fn pipe_pages(capacity: Capacity, page_size: u64) -> u64 {
    match capacity {
        Capacity::Bytes(ByteSize(bytes)) => bytes.div_ceil(page_size.max(1)).next_power_of_two(),
        Capacity::Named(name) => name.pages(),
    }
}

fn capacity_problem(job: &Job, ends: &Ends, host: &Host) -> Option<String> {
    let pages = pipe_pages(ends.capacity, host.page_size);
    let granted = ByteSize(pages.saturating_mul(host.page_size));
    if granted.0 > host.pipe_max_size && !host.pipe_limits_lifted && matches!(ends.capacity, Capacity::Bytes(_)) {
        return Some(format!(
            "pipe capacity {granted} is above this system's limit of {} (/proc/sys/fs/pipe-max-size); lower --capacity or raise the limit",
            ByteSize(host.pipe_max_size)
        ));
    }
    let pipes = u64::from(ends.pairs) * (u64::from(job.chain().map_or(0, |chain| chain.length)) + 1);
    let in_all = pages.saturating_mul(pipes);
    let limits = [("soft", host.pipe_user_pages_soft), ("hard", host.pipe_user_pages_hard)];
    let (name, limit) = limits.into_iter().find(|&(_, limit)| limit > 0 && in_all > limit)?;
    (!host.pipe_user_limits_lifted).then(|| {
        format!(
            "{} of {granted} {} {in_all} pages, more than the per-user limit of {limit} (/proc/sys/fs/pipe-user-pages-{name}); lower {} or --capacity, or raise the limit",
            counted(pipes as usize, "pipe"),
            if pipes == 1 { "takes" } else { "take" },
            if job.chain().is_some() { "--length" } else { "--pairs" }
        )
    })
}

fn huge_pages_problem(host: &Host) -> Option<String> {
    match (host.huge_page_size, host.huge_pages.as_deref()) {
        (None, _) | (_, None) => Some(
            "--pages huge: this system has no transparent huge pages (/sys/kernel/mm/transparent_hugepage); use --pages base"
                .to_owned(),
        ),
        (_, Some("never")) => Some(
            "--pages huge: transparent huge pages are switched off (/sys/kernel/mm/transparent_hugepage/enabled is never); as root, write madvise to it, or use --pages base"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Why the ends need too much memory; `None` if they don't. Each source and each sink needs a block. A sender that
/// gives pages away (vmsplice) also needs as much memory as the pipe holds.
fn memory_problem(ends: &Ends, host: &Host) -> Option<String> {
    let (per_pair, pairs) = match ends.link {
        LinkKind::MemoryCopy => (ends.block.0.saturating_mul(2), 1),
        link => {
            let in_flight = match (link, ends.capacity) {
                (LinkKind::Pipe | LinkKind::Fifo, asked) => {
                    pipe_pages(asked, host.page_size).saturating_mul(host.page_size)
                }
                (LinkKind::Shm, Capacity::Bytes(ring)) => ring.0,
                _ => 8 << 20,
            };
            (ends.block.0.saturating_add(ends.read_block().0).saturating_add(in_flight), ends.pairs)
        }
    };
    let need = per_pair.saturating_mul(pairs.into());
    let (limit, whose) = match host.memory_limit {
        Some(limit) if limit < host.memory => (limit, "the control group's memory limit"),
        _ => (host.memory, "this machine's memory"),
    };
    (need > limit).then(|| {
        let (need, limit) = (ByteSize(need), ByteSize(limit));
        format!(
            "blocks and pipes of {} need {need}, more than {whose} of {limit}; lower --block, --read-block or --pairs",
            counted(pairs as usize, "pair")
        )
    })
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Key, Permission, Settings, Value};

    use super::*;

    fn cpu(cpu: u16, core: u32, package: u32) -> CpuTopology {
        CpuTopology { cpu: Cpu(cpu), core, package, node: None, die: None, l3: None }
    }

    /// A machine with two packages of two cores with two threads each. All CPUs are allowed.
    fn host() -> Host {
        Host {
            topology: (0..8).map(|n| cpu(n, u32::from(n % 4), u32::from(n % 4 / 2))).collect(),
            cpus: 8,
            memory: 8 << 30,
            page_size: 4096,
            huge_page_size: Some(2 << 20),
            huge_pages: Some("madvise".to_owned()),
            pipe_max_size: 1 << 20,
            pipe_user_pages_soft: 16384,
            permissions: Facility::iter().map(|f| Permission { name: f.to_string(), missing: None }).collect(),
            ..Host::default()
        }
    }

    fn without(facility: Facility) -> Host {
        let mut host = host();
        let name = facility.to_string();
        host.permissions.iter_mut().find(|p| p.name == name).unwrap().missing = Some("refused".to_owned());
        host
    }

    fn params(pairs: &[(Key, &str)]) -> Job {
        let mut settings = Settings::default();
        for (key, text) in pairs {
            settings.set(Value::parse(*key, text).unwrap());
        }
        Job::try_from(settings).unwrap()
    }

    fn reason(pairs: &[(Key, &str)], host: &Host) -> String {
        missing(&params(pairs), host).unwrap_or_else(|| panic!("{pairs:?} is not missing anything"))
    }

    #[test]
    fn unrestricted_trials_can_run() {
        for pairs in [
            &[][..],
            &[(Key::Send, "vmsplice"), (Key::Recv, "splice"), (Key::Pages, "huge"), (Key::Capacity, "1m")],
            &[(Key::Send, "io-uring"), (Key::Recv, "io-uring"), (Key::Place, "3:7"), (Key::Capacity, "quota")],
            &[(Key::Link, "memory-copy"), (Key::Place, "same"), (Key::Block, "1g")],
            &[(Key::Pairs, "256"), (Key::Capacity, "256k")],
        ] {
            assert_eq!(missing(&params(pairs), &host()), None, "{pairs:?}");
        }
    }

    #[test]
    fn a_method_needs_its_system_call() {
        for (facility, key, method) in [
            (Facility::Vmsplice, Key::Send, "vmsplice"),
            (Facility::Vmsplice, Key::Send, "vmsplice-gift"),
            (Facility::Vmsplice, Key::Recv, "vmsplice"),
            (Facility::Sendfile, Key::Send, "sendfile"),
            (Facility::Splice, Key::Send, "splice"),
            (Facility::Splice, Key::Recv, "splice"),
            (Facility::Tee, Key::Send, "tee"),
            (Facility::IoUring, Key::Send, "io-uring"),
            (Facility::IoUring, Key::Recv, "io-uring"),
            (Facility::PipeCapacity, Key::Capacity, "4k"),
            (Facility::Affinity, Key::Place, "same"),
            (Facility::HugePages, Key::Pages, "huge"),
        ] {
            let host = without(facility);
            let text = reason(&[(key, method)], &host);
            assert!(text.contains(method) || text.contains("4 KiB"), "{text}");
            assert!(text.contains(&facility.to_string()) && text.contains("refused"), "{text}");
            assert_eq!(missing(&params(&[(Key::Place, "free")]), &host), None, "a plain pipe does not need {facility}");
        }
        assert!(reason(&[], &without(Facility::Futex)).contains("every trial"));
    }

    #[test]
    fn capacity_is_checked_against_the_limit_after_rounding() {
        let mut host = host();
        assert_eq!(
            reason(&[(Key::Capacity, "4m")], &host),
            "pipe capacity 4 MiB is above this system's limit of 1 MiB (/proc/sys/fs/pipe-max-size); lower --capacity or raise the limit"
        );
        assert!(reason(&[(Key::Capacity, "1048577")], &host).contains("2 MiB"));
        host.pipe_limits_lifted = true;
        assert_eq!(missing(&params(&[(Key::Capacity, "4m")]), &host), None);
        // The default capacity is granted regardless of the limit.
        host.pipe_limits_lifted = false;
        host.pipe_max_size = 4096;
        assert_eq!(missing(&params(&[]), &host), None);
    }

    #[test]
    fn many_large_pipes_are_checked_against_the_user_limit() {
        let mut host = host();
        let many = [(Key::Pairs, "65"), (Key::Capacity, "1m")];
        assert!(reason(&many, &host).contains("16640 pages, more than the per-user limit of 16384"));
        host.pipe_user_limits_lifted = true;
        assert_eq!(missing(&params(&many), &host), None);
        host.pipe_user_limits_lifted = false;
        host.pipe_user_pages_soft = 0;
        assert_eq!(missing(&params(&many), &host), None);
        host.pipe_user_pages_hard = 100;
        assert!(reason(&many, &host).contains("pipe-user-pages-hard"));
    }

    #[test]
    fn huge_pages_follow_the_policy() {
        let huge = [(Key::Pages, "huge")];
        let mut host = host();
        host.huge_pages = Some("always".to_owned());
        assert_eq!(missing(&params(&huge), &host), None);
        host.huge_pages = Some("never".to_owned());
        assert!(reason(&huge, &host).contains("switched off"));
        host.huge_pages = None;
        assert!(reason(&huge, &host).contains("no transparent huge pages"));
        assert_eq!(missing(&params(&[]), &host), None);
    }

    #[test]
    fn blocks_have_to_fit_the_tightest_memory() {
        let large = [(Key::Block, "1g"), (Key::Pairs, "8")];
        let mut host = host();
        assert!(reason(&large, &host).contains("this machine's memory of 8 GiB"));
        host.memory = 64 << 30;
        assert_eq!(missing(&params(&large), &host), None);
        host.memory_limit = Some(1 << 30);
        assert!(reason(&large, &host).contains("control group's memory limit of 1 GiB"));
        assert!(reason(&[(Key::Link, "memory-copy"), (Key::Block, "1g")], &host).contains("2 GiB"));
        assert_eq!(missing(&params(&[]), &host), None);
    }

    #[test]
    fn cross_takes_two_cores_of_a_package() {
        let pair = |topology: &[CpuTopology]| {
            let host = Host { topology: topology.to_vec(), ..Host::default() };
            cpus_for(Place::Cross, &host).map(|pair| pair.map(|(a, b)| (a.0, b.0)))
        };
        assert_eq!(pair(&host().topology), Ok(Some((0, 1))));
        // Threads 0 and 1 share a core.
        assert_eq!(pair(&[cpu(0, 0, 0), cpu(1, 0, 0), cpu(2, 2, 0)]), Ok(Some((0, 2))));
        // The first CPU is alone in its package.
        assert_eq!(pair(&[cpu(0, 0, 0), cpu(4, 4, 1), cpu(5, 5, 1)]), Ok(Some((4, 5))));
        // Another package is better than another thread of the same core.
        assert_eq!(pair(&[cpu(0, 0, 0), cpu(1, 0, 0), cpu(4, 4, 1)]), Ok(Some((0, 4))));
        // The machine has only one core.
        assert_eq!(pair(&[cpu(2, 2, 0), cpu(3, 2, 0)]), Ok(Some((2, 3))));
        assert!(pair(&[cpu(3, 3, 0)]).unwrap_err().contains("only CPU 3 is allowed"));
    }

    #[test]
    fn the_other_placements_use_what_is_allowed() {
        let host = Host { topology: vec![cpu(2, 2, 0), cpu(3, 3, 0)], ..Host::default() };
        assert_eq!(cpus_for(Place::Free, &host), Ok(None));
        assert_eq!(cpus_for(Place::Same, &host), Ok(Some((Cpu(2), Cpu(2)))));
        assert_eq!(cpus_for(Place::Pinned(Cpu(3), Cpu(2)), &host), Ok(Some((Cpu(3), Cpu(2)))));
        let error = cpus_for(Place::Pinned(Cpu(2), Cpu(0)), &host).unwrap_err();
        assert!(error.contains("CPU 0") && error.contains("2-3"), "{error}");
    }
}
