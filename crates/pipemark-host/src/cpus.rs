//! The CPUs this process may use: model, topology, caches and frequency governor.

use pipemark_model::{Cache, Cpu, CpuTopology};

use crate::files::{SystemFiles, cpu_list, field};

const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs the scheduler may put this process on; never empty.
pub fn allowed(files: &SystemFiles) -> Vec<Cpu> {
    let mut cpus: Vec<Cpu> = match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..Cpu::LIMIT).filter(|&cpu| set.is_set(cpu.into())).map(Cpu).collect(),
        // The call fails if the kernel supports more CPUs than the 1024 that a CPU set holds.
        Err(_) => listed(files),
    };
    if cpus.is_empty() {
        cpus.push(Cpu(u16::try_from(rustix::thread::sched_getcpu()).unwrap_or(0)));
    }
    cpus
}

/// The online CPUs that this process may use.
fn listed(files: &SystemFiles) -> Vec<Cpu> {
    let status = files.text("/proc/self/status").unwrap_or_default();
    let mut cpus = field(&status, "Cpus_allowed_list").and_then(cpu_list).unwrap_or_default();
    if let Some(online) = files.text(format!("{CPUS}/online")).and_then(|list| cpu_list(&list)) {
        cpus.retain(|cpu| online.contains(cpu));
    }
    cpus
}

/// The core, L3 cache, die, package and node of each CPU. If /sys is hidden, each CPU counts as a separate core, all in one package.
pub fn topology(files: &SystemFiles, cpus: &[Cpu]) -> Vec<CpuTopology> {
    let locate = |&cpu: &Cpu| {
        let directory = format!("{CPUS}/cpu{cpu}/topology");
        // Linux before 5.3 calls the file thread_siblings_list.
        let siblings = ["core_cpus_list", "thread_siblings_list"]
            .iter()
            .find_map(|name| cpu_list(&files.text(format!("{directory}/{name}"))?));
        let core = siblings.and_then(|siblings| siblings.into_iter().min()).unwrap_or(cpu);
        // Some ARM systems report -1 here.
        let package = files.value(format!("{directory}/physical_package_id")).unwrap_or(0);
        let die = files.value(format!("{directory}/die_id"));
        let l3 = files.line(format!("{CPUS}/cpu{cpu}/cache/index3/shared_cpu_list"));
        let l3 = l3.and_then(|list| cpu_list(&list)?.into_iter().min()).map(|first| first.0.into());
        CpuTopology { cpu, core: core.0.into(), package, node: node(files, cpu), die, l3 }
    };
    cpus.iter().map(locate).collect()
}

/// The caches of one CPU, nearest first.
pub fn caches(files: &SystemFiles, cpu: Cpu) -> Vec<Cache> {
    let directory = format!("{CPUS}/cpu{cpu}/cache");
    let indices = files.names(&directory).into_iter().filter(|name| name.starts_with("index"));
    let read = |index: String| {
        let entry = |name: &str| files.line(format!("{directory}/{index}/{name}"));
        Some(Cache {
            level: entry("level")?.parse().ok()?,
            kind: entry("type")?,
            size: cache_size(&entry("size")?)?,
            shared_by: entry("shared_cpu_list")
                .and_then(|list| u32::try_from(cpu_list(&list)?.len()).ok())
                .unwrap_or(1),
        })
    };
    let mut caches: Vec<Cache> = indices.filter_map(read).collect();
    caches.sort_by(|a, b| (a.level, &a.kind).cmp(&(b.level, &b.kind)));
    caches
}

/// Parses `32K` into bytes.
fn cache_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The start of /proc/cpuinfo, with the block of the first CPU. This block is used for all CPUs, because reading the
/// whole file makes the kernel query every CPU's clock.
pub fn cpuinfo(files: &SystemFiles) -> String {
    files.read_prefix("/proc/cpuinfo", 8 << 10).unwrap_or_default()
}

/// The processor's name.
pub fn model(files: &SystemFiles, cpuinfo: &str) -> String {
    // x86 and s390 report names. ARM reports numbers, and often the name of the board.
    let named = ["model name", "Processor", "cpu model", "cpu", "uarch"].iter().find_map(|key| field(cpuinfo, key));
    if let Some(name) = named {
        return name.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let Some(board) = files.line("/sys/firmware/devicetree/base/model") {
        return board.trim_end_matches('\0').to_owned();
    }
    match (field(cpuinfo, "CPU implementer"), field(cpuinfo, "CPU part")) {
        (Some(implementer), Some(part)) => format!("{} implementer {implementer} part {part}", std::env::consts::ARCH),
        _ => format!("unknown {} processor", std::env::consts::ARCH),
    }
}

/// The NUMA node of a CPU; `None` if the machine has one node.
fn node(files: &SystemFiles, cpu: Cpu) -> Option<u32> {
    let cpus = |node: &u32| cpu_list(&files.line(format!("/sys/devices/system/node/node{node}/cpulist"))?);
    files
        .line("/sys/devices/system/node/node1/cpulist")
        .and_then(|_| (0..64).find(|node| cpus(node).is_some_and(|cpus| cpus.contains(&cpu))))
}

/// The frequency governor of one CPU; `None` if it has none.
pub fn governor(files: &SystemFiles, cpu: Cpu) -> Option<String> {
    files.line(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::sample::Tree;

    fn core(cpu: u16, core: u32, package: u32) -> CpuTopology {
        CpuTopology { cpu: Cpu(cpu), core, package, node: None, die: None, l3: None }
    }

    #[test]
    fn siblings_share_a_core_and_packages_differ() {
        let tree = Tree::new(&[
            ("/sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0,4\n"),
            ("/sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
            ("/sys/devices/system/cpu/cpu4/topology/core_cpus_list", "0,4\n"),
            ("/sys/devices/system/cpu/cpu4/topology/physical_package_id", "0\n"),
            // File name of Linux before 5.3.
            ("/sys/devices/system/cpu/cpu6/topology/thread_siblings_list", "6\n"),
            ("/sys/devices/system/cpu/cpu6/topology/physical_package_id", "1\n"),
            ("/sys/devices/system/cpu/cpu6/topology/die_id", "2\n"),
            ("/sys/devices/system/cpu/cpu6/cache/index3/shared_cpu_list", "4-7\n"),
        ]);
        assert_eq!(
            topology(&tree.files, &[Cpu(0), Cpu(4), Cpu(6)]),
            [core(0, 0, 0), core(4, 0, 0), CpuTopology { die: Some(2), l3: Some(4), ..core(6, 6, 1) }]
        );
    }

    #[test]
    fn cpus_that_are_offline_are_not_allowed() {
        let status = ("/proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
        let online = ("/sys/devices/system/cpu/online", "0,2-3\n");
        assert_eq!(listed(&Tree::new(&[status, online]).files), [Cpu(0), Cpu(2), Cpu(3)]);
        assert_eq!(listed(&Tree::new(&[status]).files).len(), 8);
        assert_eq!(listed(&Tree::new(&[]).files), []);
    }

    #[test]
    fn with_sys_hidden_each_cpu_is_a_core() {
        let tree = Tree::new(&[]);
        assert_eq!(topology(&tree.files, &[Cpu(1), Cpu(3)]), [core(1, 1, 0), core(3, 3, 0)]);
        assert_eq!(caches(&tree.files, Cpu(1)), []);
        assert_eq!(governor(&tree.files, Cpu(1)), None);
    }

    #[test]
    fn caches_come_nearest_first() {
        let directory = "/sys/devices/system/cpu/cpu0/cache";
        let tree = Tree::new(&[
            (&format!("{directory}/index0/level"), "3\n"),
            (&format!("{directory}/index0/type"), "Unified\n"),
            (&format!("{directory}/index0/size"), "32768K\n"),
            (&format!("{directory}/index0/shared_cpu_list"), "0-7\n"),
            (&format!("{directory}/index1/level"), "1\n"),
            (&format!("{directory}/index1/type"), "Data\n"),
            (&format!("{directory}/index1/size"), "32K\n"),
            // No file `size`, as on some virtual ARM machines.
            (&format!("{directory}/index2/level"), "2\n"),
            (&format!("{directory}/index2/type"), "Unified\n"),
        ]);
        let l1 = Cache { level: 1, kind: "Data".to_owned(), size: 32 << 10, shared_by: 1 };
        let l3 = Cache { level: 3, kind: "Unified".to_owned(), size: 32 << 20, shared_by: 8 };
        assert_eq!(caches(&tree.files, Cpu(0)), [l1, l3]);
    }

    #[test]
    fn every_processor_has_a_name() {
        let nothing = Tree::new(&[]);
        let name = |cpuinfo| model(&nothing.files, cpuinfo);
        assert_eq!(name("processor\t: 0\nmodel name\t: Intel(R)  Xeon(R) CPU\n"), "Intel(R) Xeon(R) CPU");
        assert!(name("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n").contains("0xd0c"));
        assert!(name("").contains("unknown"));
        let board = Tree::new(&[("/sys/firmware/devicetree/base/model", "Raspberry Pi 5\0")]);
        assert_eq!(model(&board.files, "processor : 0\n"), "Raspberry Pi 5");
    }
}
