//! Disturbances of a measurement: CPU time taken by other processes or by the hypervisor, CPU pressure, throttling, a
//! slow clock source, and a CPU frequency that may change.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pipemark_model::{Cpu, Host, Warning};

use crate::files::SystemFiles;
use crate::limits::ControlGroups;

/// The minimum steal that is reported, as a percentage of CPU time.
const MIN_STEAL: f64 = 1.0;
/// The minimum load by other processes that is reported, in CPUs.
const MIN_LOAD: f64 = 0.1;
/// The maximum load by other processes that is ignored, in ticks of 10 ms. The kernel counts CPU time of processes and
/// of CPUs in different ways, so small differences mean nothing.
const IGNORED_LOAD_TICKS: u64 = 10;
/// CPU pressure before the start is reported if it is above this, in per cent. `bench/pressure.py` measures from which
/// level on results change.
pub(crate) const CPU_PRESSURE: f64 = 5.0;
/// The minimum throttling by the control group that is reported, as a percentage of the time.
const MIN_THROTTLED: f64 = 1.0;

/// The values of all counters at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    at: Instant,
    cpus: BTreeMap<Cpu, Ticks>,
    own: Option<u64>,
    throttled: Option<Duration>,
    times_throttled: u64,
}

/// How a CPU has spent its time since boot, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    idle: u64,
    steal: u64,
}

impl Reading {
    /// Reads the counters now. Only child processes that have been waited for count as pipemark's own.
    pub fn now() -> Reading {
        let files = SystemFiles::live();
        let groups = ControlGroups::find(&files);
        Reading {
            at: Instant::now(),
            cpus: files.text("/proc/stat").map(|text| ticks(&text)).unwrap_or_default(),
            own: files.text("/proc/self/stat").and_then(|text| own_ticks(&text)),
            throttled: groups.throttled(&files),
            times_throttled: groups.times_throttled(&files).unwrap_or(0),
        }
    }
}

/// Parses the lines of /proc/stat that have a CPU number.
fn ticks(stat: &str) -> BTreeMap<Cpu, Ticks> {
    let parse = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        // The first line, without a number, is the sum over all CPUs.
        let cpu = Cpu(words.next()?.parse().ok()?);
        let fields: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        // The fields are user nice system idle iowait irq softirq steal guest guest_nice. The first two include the
        // last two: proc_stat(5).
        let &[user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields.as_slice() else { return None };
        Some((cpu, Ticks { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal }))
    };
    BTreeMap::from_iter(stat.lines().filter_map(parse))
}

/// The CPU time of this process and of the children it has waited for, in clock ticks, from /proc/self/stat.
fn own_ticks(stat: &str) -> Option<u64> {
    // utime stime cutime cstime are fields 14 to 17. Count from the 3rd field, because the program's name in the 2nd
    // may contain blanks and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').skip(11).take(4).map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Warnings about disturbances between two readings, on the CPUs that `host` allows.
pub fn warnings(host: &Host, start: &Reading, end: &Reading) -> Vec<Warning> {
    let both =
        || host.topology.iter().filter_map(|place| Some((start.cpus.get(&place.cpu)?, end.cpus.get(&place.cpu)?)));
    // Idle time may decrease a little, because of iowait: proc_stat(5).
    let spent = |of: fn(&Ticks) -> u64| both().map(|(before, after)| of(after).saturating_sub(of(before))).sum::<u64>();
    let [busy, idle, steal] = [spent(|ticks| ticks.busy), spent(|ticks| ticks.idle), spent(|ticks| ticks.steal)];
    let (count, total) = (both().count() as f64, (busy + idle + steal) as f64);
    let mut warnings = Vec::new();

    let steal = steal as f64 / total * 100.0;
    if total > 0.0 && steal > MIN_STEAL {
        warnings.push(Warning::Steal { percent: steal });
    }
    if let (Some(before), Some(after)) = (start.own, end.own) {
        let others = busy.saturating_sub(after.saturating_sub(before));
        let busy = others as f64 / total * count;
        if others > IGNORED_LOAD_TICKS && busy > MIN_LOAD {
            warnings.push(Warning::Load { busy });
        }
    }
    if let Some(pressure) = host.pressure.filter(|pressure| pressure.cpu > CPU_PRESSURE) {
        warnings.push(Warning::CpuPressure { percent: pressure.cpu });
    }
    if let (Some(before), Some(after)) = (start.throttled, end.throttled) {
        // The throttled time is summed over all CPUs, so the elapsed time is multiplied by their number.
        let elapsed = end.at.saturating_duration_since(start.at).as_secs_f64() * count.max(1.0);
        let percent = after.saturating_sub(before).as_secs_f64() / elapsed * 100.0;
        // An elapsed time of 0 gives NaN, which is never above the limit.
        if percent > MIN_THROTTLED {
            let times = end.times_throttled.saturating_sub(start.times_throttled);
            warnings.push(Warning::Throttled { percent, times });
        }
    }
    if let Some(governor) = host.governor.clone().filter(|governor| governor != "performance") {
        warnings.push(Warning::Governor { governor });
    }
    if let Some(clock) = host.clock_source.clone().filter(|clock| SLOW_CLOCKS.contains(&clock.as_str())) {
        warnings.push(Warning::SlowClock { clock });
    }
    warnings
}

/// Clock sources that take a microsecond or more to read. Each reading is a system call that accesses a device.
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "pit", "refined-jiffies"];

#[cfg(test)]
mod tests {
    use pipemark_model::{CpuTopology, Pressure};

    use super::*;

    const BEFORE: &str = "\
cpu  300 0 300 2000 20 0 10 40 0 0
cpu0 100 0 100 1000 10 0 5 20 0 0
cpu1 100 0 100 1000 10 0 5 20 0 0
cpu3 100 0 100 0 0 0 0 0 0 0
intr 2943136 0 0
ctxt 11379923
";

    fn host() -> Host {
        let topology = [0, 1].map(|cpu| {
            let core = cpu.into();
            CpuTopology { cpu: Cpu(cpu), core, package: 0, node: None, die: None, l3: None }
        });
        Host { topology: topology.to_vec(), ..Host::default() }
    }

    fn reading(stat: &str, own: u64, at: Instant) -> Reading {
        Reading { at, cpus: ticks(stat), own: Some(own), throttled: Some(Duration::ZERO), times_throttled: 3 }
    }

    /// Warnings after ten seconds in which CPUs 0 and 1 each spent `user`, `idle` and `steal` ticks, and pipemark's own
    /// processes `own` ticks.
    fn after(user: u64, idle: u64, steal: u64, own: u64) -> Vec<Warning> {
        let at = Instant::now();
        let line = |cpu: u16| format!("cpu{cpu} {} 0 100 {} 10 0 5 {} 0 0\n", 100 + user, 1000 + idle, 20 + steal);
        let stat = line(0) + &line(1) + "cpu3 999999 0 100 0 0 0 0 0 0 0\n";
        warnings(&host(), &reading(BEFORE, 50, at), &reading(&stat, 50 + own, at + Duration::from_secs(10)))
    }

    #[test]
    fn a_quiet_machine_gives_no_warning() {
        assert_eq!(after(500, 500, 0, 1000), []);
        // The CPUs spent slightly more time than pipemark used. The rest is the kernel's own work.
        assert_eq!(after(500, 500, 0, 950), []);
        // pipemark used more time than the CPUs spent, because processes are counted in a different way.
        assert_eq!(after(500, 500, 0, 1010), []);
        assert_eq!(after(0, 0, 0, 0), []);
    }

    #[test]
    fn steal_is_a_share_of_the_allowed_cpus_time() {
        assert_eq!(after(500, 450, 50, 1000), [Warning::Steal { percent: 5.0 }]);
        assert_eq!(after(500, 495, 5, 1000), []);
    }

    #[test]
    fn load_is_what_other_processes_used_on_allowed_cpus() {
        // CPU 3 was busy all the time, but is not allowed.
        assert_eq!(after(500, 500, 0, 500), [Warning::Load { busy: 0.5 }]);
        // Ten ticks are too few to report, whatever the elapsed time.
        assert_eq!(after(10, 0, 0, 10), []);
    }

    #[test]
    fn warnings_report_pressure_and_throttling_and_the_governor() {
        let at = Instant::now();
        let start = reading(BEFORE, 0, at);
        let end = Reading {
            at: at + Duration::from_secs(2),
            throttled: Some(Duration::from_millis(500)),
            times_throttled: 8,
            ..start.clone()
        };
        let mut host = host();
        host.pressure = Some(Pressure { cpu: 30.0, memory: 0.0 });
        host.governor = Some("powersave".to_owned());
        assert_eq!(
            warnings(&host, &start, &end),
            [
                Warning::CpuPressure { percent: 30.0 },
                Warning::Throttled { percent: 12.5, times: 5 },
                Warning::Governor { governor: "powersave".to_owned() }
            ]
        );
        host.pressure = Some(Pressure { cpu: 1.0, memory: 0.0 });
        host.governor = Some("performance".to_owned());
        host.clock_source = Some("tsc".to_owned());
        assert_eq!(warnings(&host, &start, &start), []);
        host.clock_source = Some("hpet".to_owned());
        assert_eq!(warnings(&host, &start, &start), [Warning::SlowClock { clock: "hpet".to_owned() }]);
    }

    #[test]
    fn hidden_counters_give_no_warning() {
        let blind =
            Reading { at: Instant::now(), cpus: ticks("nonsense"), own: None, throttled: None, times_throttled: 0 };
        assert_eq!(warnings(&host(), &blind, &blind), []);
        assert_eq!(ticks("cpu0 1 2 3\ncpux 1 2 3 4 5 6 7 8\n"), BTreeMap::new());
    }

    #[test]
    fn our_own_time_grows_when_we_work() {
        let before = Reading::now();
        let start = Instant::now();
        let mut sum = 0u64;
        while Reading::now().own == before.own && start.elapsed() < Duration::from_secs(10) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(Reading::now().own > before.own, "{before:?}");
        assert!(!before.cpus.is_empty());
    }
}
