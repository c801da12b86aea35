//! Describes the machine, its limits and its load ([`survey`], [`Reading`]). Also starts the processes that are measured
//! and waits for them ([`child`]).

#![forbid(unsafe_code)]

pub mod child;
mod cpus;
mod disturbance;
mod files;
mod input_file;
mod limits;
mod permissions;
mod virtualization;

use std::time::{Duration, Instant};

use files::SystemFiles;

use pipemark_model::{Host, Pressure};
use rustix::process::{Resource, getrlimit};

pub use disturbance::{Reading, warnings};
pub use files::{field, show_cpu_list};
pub use input_file::open_input;
pub use limits::{ControlGroups, Headroom};
pub use permissions::Facility;

/// Default of /proc/sys/fs/pipe-max-size in bytes, for a kernel that hides its limits: fs/pipe.c since Linux 2.6.35.
const DEFAULT_PIPE_MAX_SIZE: u64 = 1 << 20;
/// Default of /proc/sys/fs/pipe-user-pages-soft in pages: fs/pipe.c since Linux 4.5.
const DEFAULT_PIPE_USER_PAGES_SOFT: u64 = 16384;

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

/// Describes this machine. Takes a few milliseconds. Hidden or forbidden properties are omitted.
pub fn survey() -> Host {
    let files = SystemFiles::live();
    let uname = rustix::system::uname();
    let text = |field: &std::ffi::CStr| field.to_string_lossy().into_owned();
    let system = rustix::system::sysinfo();
    let cpus = cpus::allowed(&files);
    let cpuinfo = cpus::cpuinfo(&files);
    let virtualization = virtualization::detect(&files, &cpuinfo);
    let groups = ControlGroups::find(&files);
    let pipe_max_size = pipe_max_size(&files);
    let (pipe_limits_lifted, pipe_user_limits_lifted) = permissions::pipe_limits_lifted(&files, pipe_max_size);
    let huge_page_size = files.value(format!("{HUGE_PAGES}/hpage_pmd_size"));
    Host {
        name: text(uname.nodename()),
        kernel: format!("{} {}", text(uname.release()), text(uname.version())),
        cpu: cpus::model(&files, &cpuinfo),
        cpus: u32::try_from(cpus.len()).expect("at most 1024"),
        topology: cpus::topology(&files, &cpus),
        caches: cpus::caches(&files, cpus[0]),
        governor: cpus::governor(&files, cpus[0]),
        clock_source: files.line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtualized: virtualization.hypervisor,
        virtualization: virtualization.names,
        memory: system.totalram.saturating_mul(system.mem_unit.into()),
        memory_limit: groups.memory(&files),
        cpu_limit: groups.cpus(&files),
        page_size: u64::try_from(rustix::param::page_size()).expect("a few KiB"),
        huge_page_size,
        huge_pages: huge_page_policy(&files, huge_page_size),
        pipe_default_size: pipeio::pipe::Pipe::new().and_then(|pipe| pipe.capacity()).ok().map(|bytes| bytes as u64),
        pipe_max_size,
        pipe_user_pages_soft: files.value("/proc/sys/fs/pipe-user-pages-soft").unwrap_or(DEFAULT_PIPE_USER_PAGES_SOFT),
        pipe_user_pages_hard: files.value("/proc/sys/fs/pipe-user-pages-hard").unwrap_or(0),
        pipe_limits_lifted,
        pipe_user_limits_lifted,
        vmsplice_shares_pages: pipeio_harness::probe::vmsplice_shares_pages().ok(),
        permissions: permissions::probe_all(&files),
        // Fixed point with 16 fractional bits: sysinfo(2).
        load: system.loads[0] as f64 / 65536.0,
        pressure: pressure(&files),
    }
}

/// The maximum number of samples of the CPU pressure in [`survey_before_measuring`].
const PRESSURE_SAMPLES: u32 = 3;
/// The length of each of these samples.
const PRESSURE_SAMPLE_TIME: Duration = Duration::from_millis(200);

/// Like [`survey`], for use before a measurement. The CPU pressure over the last ten seconds includes that of
/// pipemark's own previous run. So if the pressure is high, this function idles and samples the pressure that other
/// processes cause. It keeps the lowest sample, because the first one may include the end of the previous run.
pub fn survey_before_measuring() -> Host {
    let mut host = survey();
    if let Some(pressure) = &mut host.pressure {
        let files = SystemFiles::live();
        for _ in 0..PRESSURE_SAMPLES {
            if pressure.cpu <= disturbance::CPU_PRESSURE {
                break;
            }
            let (before, start) = (cpu_stall_time(&files), Instant::now());
            std::thread::sleep(PRESSURE_SAMPLE_TIME);
            if let (Some(before), Some(after)) = (before, cpu_stall_time(&files)) {
                let share = after.saturating_sub(before).as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
                pressure.cpu = pressure.cpu.min(share);
            }
        }
    }
    host
}

/// Total time since boot in which at least one task waited for a CPU; `None` if the kernel doesn't report it.
fn cpu_stall_time(files: &SystemFiles) -> Option<Duration> {
    let text = files.text("/proc/pressure/cpu")?;
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok());
    total.map(Duration::from_micros)
}

fn pipe_max_size(files: &SystemFiles) -> u64 {
    files.value("/proc/sys/fs/pipe-max-size").unwrap_or(DEFAULT_PIPE_MAX_SIZE)
}

/// The processes and memory that the control groups still allow this process.
pub fn headroom() -> Headroom {
    let files = SystemFiles::live();
    ControlGroups::find(&files).headroom(&files)
}

/// Whether a control group or a resource limit gives this process less memory than the machine has.
pub fn memory_is_limited() -> bool {
    let files = SystemFiles::live();
    let system = rustix::system::sysinfo();
    let memory = system.totalram.saturating_mul(system.mem_unit.into());
    let group = ControlGroups::find(&files).memory(&files);
    let own = [Resource::As, Resource::Data].map(|resource| getrlimit(resource).current);
    own.into_iter().chain([group]).flatten().any(|limit| limit < memory)
}

/// The policy for private anonymous memory. Since Linux 6.8 each huge-page size has its own policy, which may inherit
/// the global one.
fn huge_page_policy(files: &SystemFiles, size: Option<u64>) -> Option<String> {
    let chosen = |path: &str| Some(files.text(path)?.split_once('[')?.1.split_once(']')?.0.to_owned());
    let own = size.and_then(|bytes| chosen(&format!("{HUGE_PAGES}/hugepages-{}kB/enabled", bytes >> 10)));
    own.filter(|policy| policy != "inherit").or_else(|| chosen(&format!("{HUGE_PAGES}/enabled")))
}

fn pressure(files: &SystemFiles) -> Option<Pressure> {
    let some = |path: &str| {
        let text = files.text(path)?;
        let line = text.lines().find(|line| line.starts_with("some "))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("avg10=")?.parse().ok())
    };
    Some(Pressure { cpu: some("/proc/pressure/cpu")?, memory: some("/proc/pressure/memory")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::sample::Tree;

    #[test]
    fn the_policy_of_a_page_size_overrides_the_global_one() {
        let common = (&*format!("{HUGE_PAGES}/enabled"), "always [madvise] never\n");
        let own = format!("{HUGE_PAGES}/hugepages-2048kB/enabled");
        let policy = |contents: &[(&str, &str)]| huge_page_policy(&Tree::new(contents).files, Some(2 << 20));
        assert_eq!(policy(&[common]), Some("madvise".to_owned()));
        assert_eq!(policy(&[common, (&own, "always [inherit] madvise never\n")]), Some("madvise".to_owned()));
        assert_eq!(policy(&[common, (&own, "always inherit madvise [never]\n")]), Some("never".to_owned()));
        assert_eq!(policy(&[]), None);
    }

    #[test]
    fn pressure_is_the_share_of_the_last_ten_seconds() {
        // The line "full" is missing: Linux before 5.13 omits it for CPUs.
        let cpu = ("/proc/pressure/cpu", "some avg10=6.49 avg60=21.09 avg300=28.49 total=160505893\n");
        let memory = (
            "/proc/pressure/memory",
            "some avg10=0.50 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=7\n",
        );
        assert_eq!(pressure(&Tree::new(&[cpu, memory]).files), Some(Pressure { cpu: 6.49, memory: 0.5 }));
        assert_eq!(pressure(&Tree::new(&[memory]).files), None);
        assert_eq!(cpu_stall_time(&Tree::new(&[cpu]).files), Some(Duration::from_micros(160_505_893)));
        assert_eq!(cpu_stall_time(&Tree::new(&[memory]).files), None);
    }

    #[test]
    fn this_machine_has_cpus_and_memory() {
        let host = survey();
        assert!(host.cpus >= 1);
        assert_eq!(host.topology.len(), host.cpus as usize);
        assert!(host.memory > 1 << 20);
        assert!(host.page_size.is_power_of_two());
        assert!(host.pipe_max_size >= host.page_size);
        assert!(host.pipe_default_size.is_some_and(|size| size >= host.page_size && size % host.page_size == 0));
        assert!(!host.kernel.trim().is_empty() && !host.cpu.is_empty());
        assert!(host.load >= 0.0 && host.load < 1e6);
        assert!(host.caches.iter().all(|cache| cache.size > 0 && cache.shared_by > 0));
        if host.pipe_limits_lifted {
            assert!(host.pipe_user_limits_lifted);
        }
    }
}
