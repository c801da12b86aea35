//! What matters about the machine that measured.

use serde::{Deserialize, Serialize};

use crate::place::Cpu;

/// The machine: what it is, what it allows and how busy it was when the measurement began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// The machine's own name.
    pub name: String,
    /// Kernel release and version.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Number of CPUs this process may use.
    pub cpus: u32,
    /// These CPUs, and where they sit.
    pub topology: Vec<CpuTopology>,
    /// Caches of the first allowed CPU.
    pub caches: Vec<Cache>,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// What the kernel tells the time by: /sys/devices/system/clocksource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Whether a hypervisor is underneath.
    pub virtualized: bool,
    /// Which hypervisor or container manager, where it tells.
    pub virtualization: Option<String>,
    /// Memory in bytes.
    pub memory: u64,
    /// Memory limit of the control group in bytes, where there is one.
    pub memory_limit: Option<u64>,
    /// CPU limit of the control group in CPUs, where there is one.
    pub cpu_limit: Option<f64>,
    /// Size of a base page in bytes.
    pub page_size: u64,
    /// Size of a transparent huge page in bytes, where there are any.
    pub huge_page_size: Option<u64>,
    /// Policy for transparent huge pages: always, madvise or never.
    pub huge_pages: Option<String>,
    /// Capacity in bytes that a new pipe has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipe_default_size: Option<u64>,
    /// /proc/sys/fs/pipe-max-size in bytes.
    pub pipe_max_size: u64,
    /// /proc/sys/fs/pipe-user-pages-soft in pages; 0 is no limit.
    pub pipe_user_pages_soft: u64,
    /// /proc/sys/fs/pipe-user-pages-hard in pages; 0 is no limit.
    pub pipe_user_pages_hard: u64,
    /// Whether no pipe limit binds this process (CAP_SYS_RESOURCE).
    pub pipe_limits_lifted: bool,
    /// Whether the limits per user do not bind this process (CAP_SYS_RESOURCE or CAP_SYS_ADMIN).
    pub pipe_user_limits_lifted: bool,
    /// Whether a page given to a pipe by vmsplice shows later changes at the reader: true is sharing, false is a copy.
    pub vmsplice_shares_pages: Option<bool>,
    /// Each system call pipemark may use, and whether it may be used here.
    pub permissions: Vec<Permission>,
    /// Load average over one minute when the measurement began.
    pub load: f64,
    /// Pressure on CPUs and memory when the measurement began, where the kernel tells.
    pub pressure: Option<Pressure>,
}

/// Where a CPU sits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTopology {
    /// The CPU.
    pub cpu: Cpu,
    /// Its core, named by the lowest CPU on it; CPUs of one core share its execution units.
    pub core: u32,
    /// Its package (socket).
    pub package: u32,
    /// Its NUMA node, where the machine has more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// L1 is 1.
    pub level: u32,
    /// Data, Instruction or Unified.
    pub kind: String,
    /// Bytes.
    pub size: u64,
    /// How many of the machine's CPUs share it.
    pub shared_by: u32,
}

/// Whether something may be used here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Permission {
    /// The system call or facility.
    pub name: String,
    /// Why not; `None` if it may. A refusal (EPERM) and an absence (ENOSYS) both mean "not here".
    pub missing: Option<String>,
}

/// Shares of the last ten seconds in which some task waited, in per cent (/proc/pressure).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// For a CPU.
    pub cpu: f64,
    /// For memory.
    pub memory: f64,
}
