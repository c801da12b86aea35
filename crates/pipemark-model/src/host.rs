//! The machine on which a measurement was made.

use serde::{Deserialize, Serialize};

use crate::place::Cpu;

/// The machine: its hardware and limits, and how busy it was when the measurement began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Kernel release and version.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Number of CPUs this process may use.
    pub cpus: u32,
    /// The core, package and node of each of these CPUs.
    pub topology: Vec<CpuTopology>,
    /// Caches of the first allowed CPU.
    pub caches: Vec<Cache>,
    /// Frequency governor, if any.
    pub governor: Option<String>,
    /// The kernel's clock source (/sys/devices/system/clocksource).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Whether the machine is virtual.
    pub virtualized: bool,
    /// Hypervisor or container manager, if it can be detected.
    pub virtualization: Option<String>,
    /// Memory in bytes.
    pub memory: u64,
    /// Memory limit of the control group in bytes, if any.
    pub memory_limit: Option<u64>,
    /// CPU limit of the control group in CPUs, if any.
    pub cpu_limit: Option<f64>,
    /// Size of a base page in bytes.
    pub page_size: u64,
    /// Size of a transparent huge page in bytes, if supported.
    pub huge_page_size: Option<u64>,
    /// Policy for transparent huge pages: always, madvise or never.
    pub huge_pages: Option<String>,
    /// Capacity of a new pipe in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipe_default_size: Option<u64>,
    /// /proc/sys/fs/pipe-max-size in bytes.
    pub pipe_max_size: u64,
    /// /proc/sys/fs/pipe-user-pages-soft in pages; 0 means no limit.
    pub pipe_user_pages_soft: u64,
    /// /proc/sys/fs/pipe-user-pages-hard in pages; 0 means no limit.
    pub pipe_user_pages_hard: u64,
    /// Whether this process may exceed all pipe limits (CAP_SYS_RESOURCE).
    pub pipe_limits_lifted: bool,
    /// Whether this process may exceed the per-user pipe limits (CAP_SYS_RESOURCE or CAP_SYS_ADMIN).
    pub pipe_user_limits_lifted: bool,
    /// Whether the reader sees changes made to a page after vmsplice: true if the page is shared, false if it is
    /// copied.
    pub vmsplice_shares_pages: Option<bool>,
    /// Each system call or facility that pipemark can use, and whether it is available here.
    pub permissions: Vec<Permission>,
    /// Load average over one minute when the measurement began.
    pub load: f64,
    /// Pressure on CPUs and memory when the measurement began, if the kernel reports it.
    pub pressure: Option<Pressure>,
}

/// The core, package and node of a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTopology {
    /// The CPU.
    pub cpu: Cpu,
    /// Its core, named by the lowest CPU on it; CPUs of one core share its execution units.
    pub core: u32,
    /// Its package (socket).
    pub package: u32,
    /// Its NUMA node, if the machine has more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// Its die in the package, if the kernel tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
    /// Its L3 cache, named by the lowest CPU that shares it; `None` if the CPU has no L3 cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3: Option<u32>,
}

impl CpuTopology {
    /// The order of CPUs in a map: those that share most are next to each other.
    pub fn position(&self) -> impl Ord + use<> {
        (self.node, self.package, self.die, self.l3, self.core, self.cpu)
    }
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// 1 for L1.
    pub level: u32,
    /// Data, Instruction or Unified.
    pub kind: String,
    /// Size in bytes.
    pub size: u64,
    /// Number of CPUs that share it.
    pub shared_by: u32,
}

/// Whether a system call or facility is available here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Permission {
    /// The system call or facility.
    pub name: String,
    /// Why it is unavailable; `None` if it is available. Both refused (EPERM) and missing (ENOSYS) mean unavailable.
    pub missing: Option<String>,
}

/// Share of the last ten seconds in which some task waited, in per cent (/proc/pressure).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// For a CPU.
    pub cpu: f64,
    /// For memory.
    pub memory: f64,
}
