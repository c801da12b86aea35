//! Takes samples of threads with perf_event_open(2), and collects their stacks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use crate::kernel;
use crate::maps::Maps;
use crate::profile::{Profile, Stacks};
use crate::stack::{self, RawFrame, Unwinding};
use crate::time_limit::TimeLimit;

/// Samples per second of CPU time. Not 100, so that samples don't run in step with timers of 10 ms.
const FREQUENCY: u64 = 99;
/// The bytes of stack that a sample copies. The return address of a function of libc without locals is in the first of
/// them; 1 KiB holds the frames of most library functions.
const STACK_BYTES: u32 = 1024;
/// The bytes of a thread's ring: samples of half a second. Without privileges the kernel locks about 516 KiB per CPU for
/// all rings (/proc/sys/kernel/perf_event_mlock_kb).
const RING: usize = 64 << 10;
/// The maximum number of threads that are sampled at once, each with one descriptor and one ring.
const MAX_THREADS: usize = 16;
/// The maximum number of processes whose maps are kept.
const MAX_PROCESSES: usize = 64;
/// The kernel's functions get names only in a stage that spends at least this share of its samples in the kernel.
const MIN_KERNEL_SHARE: f64 = 0.1;
/// The shortest time between two readings of a process's maps.
const MAPS_INTERVAL: Duration = Duration::from_millis(200);

/// Why threads can't be sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable(String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why this process can't sample even its own threads; `None` if it can.
pub fn unavailable() -> Option<Unavailable> {
    let own = i32::try_from(std::process::id()).ok()?;
    open(own, false).err().map(|error| explain(&error))
}

fn explain(error: &io::Error) -> Unavailable {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let level = level.and_then(|text| text.trim().parse::<i32>().ok());
    Unavailable(match (error.kind(), level) {
        (io::ErrorKind::PermissionDenied, Some(level)) if level > 2 => {
            format!("needs CAP_PERFMON (/proc/sys/kernel/perf_event_paranoid is {level})")
        }
        (io::ErrorKind::PermissionDenied, _) => "perf_event_open is refused, as in many containers".to_owned(),
        _ => format!("perf_event_open: {error}"),
    })
}

/// A sampler of one thread: of its user code and, if permitted, of the kernel's work for it.
struct ThreadSampler {
    sampler: Sampler,
    kernel: bool,
}

/// Starts to sample a thread. `kernel` asks for the kernel's work too.
fn open(tid: i32, kernel: bool) -> io::Result<ThreadSampler> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder.observe_pid(tid).any_cpu().sample_frequency(FREQUENCY);
    builder.exclude_hv(true).exclude_kernel(!kernel).exclude_callchain_user(true);
    let mut flags = SampleFlag::IP | SampleFlag::TID | SampleFlag::REGS_USER | SampleFlag::STACK_USER;
    if kernel {
        flags |= SampleFlag::CALLCHAIN;
    }
    builder.sample(flags);
    let attributes = builder.attrs_mut();
    attributes.sample_regs_user = stack::REGISTERS;
    attributes.sample_stack_user = STACK_BYTES;
    attributes.sample_max_stack = stack::MAX_KERNEL_FRAMES;
    let mut sampler = builder.build()?.sampled(RING)?;
    sampler.enable()?;
    Ok(ThreadSampler { sampler, kernel })
}

/// A process whose threads are sampled.
struct SampledProcess {
    maps: Maps,
    read: Instant,
}

/// Samples threads, each on behalf of a stage of a pipeline.
pub struct Profiler {
    threads: BTreeMap<u32, (usize, ThreadSampler)>,
    /// Threads that can't be sampled: they ended, or belong to another user.
    refused: BTreeSet<u32>,
    processes: BTreeMap<u32, SampledProcess>,
    unwinding: Unwinding,
    stacks: BTreeMap<usize, Stacks>,
    /// Whether sampling the kernel's work is permitted.
    kernel: bool,
    refusal: Option<Unavailable>,
}

impl Default for Profiler {
    fn default() -> Profiler {
        Profiler {
            threads: BTreeMap::new(),
            refused: BTreeSet::new(),
            processes: BTreeMap::new(),
            unwinding: Unwinding::default(),
            stacks: BTreeMap::new(),
            kernel: true,
            refusal: None,
        }
    }
}

impl Profiler {
    /// Samples these threads, given as stage and thread ID, from now on, and no others. Samples that aren't taken from the
    /// rings within the time stay there for the next call.
    pub fn follow(&mut self, wanted: &[(usize, u32)], time: &TimeLimit<'_>) {
        self.drain(time);
        self.threads.retain(|tid, (stage, _)| wanted.contains(&(*stage, *tid)));
        for &(stage, tid) in wanted {
            if self.threads.len() >= MAX_THREADS {
                break;
            }
            if self.threads.contains_key(&tid) || self.refused.contains(&tid) {
                continue;
            }
            match self.open(tid) {
                Ok(sampler) => drop(self.threads.insert(tid, (stage, sampler))),
                Err(error) => {
                    let has_ended = error.raw_os_error() == Some(3); // ESRCH
                    if !has_ended {
                        self.refusal.get_or_insert_with(|| explain(&error));
                    }
                    self.refused.insert(tid);
                }
            }
        }
    }

    fn open(&mut self, tid: u32) -> io::Result<ThreadSampler> {
        let tid = i32::try_from(tid).map_err(io::Error::other)?;
        if self.kernel {
            match open(tid, true) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.kernel = false,
                opened => return opened,
            }
        }
        open(tid, false)
    }

    /// Takes the samples from the rings. Call this at least every half second, or samples are lost.
    pub fn drain(&mut self, time: &TimeLimit<'_>) {
        let Profiler { threads, processes, unwinding, stacks, .. } = self;
        for (stage, thread) in threads.values_mut() {
            while !time.is_over()
                && let Some(record) = thread.sampler.next_record()
            {
                let Ok(perf_event::data::Record::Sample(sample)) = record.parse_record() else { continue };
                let (Some(pid), Some(ip)) = (sample.pid(), sample.ip()) else { continue };
                let registers = sample.regs_user().and_then(|registers| stack::Registers::new(&registers.regs));
                let chain = sample.callchain().unwrap_or_default();
                let own = stacks.entry(*stage).or_insert_with(|| Stacks::new(thread.kernel));
                let mut frames: Vec<RawFrame> = kernel::frames(chain);
                let address = registers.as_ref().map_or(ip, stack::Registers::pc);
                if let Some(maps) = maps_with(processes, pid, address) {
                    unwinding.add_user_frames(maps, registers.as_ref(), sample.stack_user(), ip, &mut frames);
                }
                own.add(frames);
            }
        }
    }

    /// The number of samples of a stage so far.
    pub fn samples(&self, stage: usize) -> u32 {
        self.stacks.get(&stage).map_or(0, Stacks::samples)
    }

    /// Why no thread could be sampled; `None` if some could.
    pub fn refusal(&self) -> Option<&Unavailable> {
        self.refusal.as_ref().filter(|_| self.stacks.is_empty() && self.threads.is_empty())
    }

    /// Each stage's profile, by the stage's number in [`Profiler::follow`]. `program` is the name of a stage's program.
    /// Names that can't be found within the time stay unknown. The stacks for flame graphs are kept if `keeps_stacks`.
    pub fn finish(
        mut self,
        program: impl Fn(usize) -> String,
        keeps_stacks: bool,
        time: &TimeLimit<'_>,
    ) -> BTreeMap<usize, Profile> {
        self.drain(time);
        self.threads.clear();
        let mut images = self.unwinding.into_images();
        let stacks = std::mem::take(&mut self.stacks);
        images.resolve(stacks.values().flat_map(Stacks::image_addresses), time);
        // Reading the kernel's names takes tens of milliseconds, so it must be worth it.
        let in_kernel = stacks.values().filter(|stacks| stacks.kernel_share() >= MIN_KERNEL_SHARE);
        let kernel = kernel::names(in_kernel.flat_map(Stacks::kernel_addresses), time);
        let profile = |stage: usize, stacks: &Stacks| {
            let folded = if keeps_stacks { stacks.folded(&images, &kernel, &program(stage)) } else { Vec::new() };
            Profile { folded, ..stacks.profile(&images, &kernel) }
        };
        stacks.iter().map(|(&stage, stacks)| (stage, profile(stage, stacks))).collect()
    }
}

/// The maps of a process, read again if they don't contain the address. `None` if the process can't be read.
fn maps_with(processes: &mut BTreeMap<u32, SampledProcess>, pid: u32, address: u64) -> Option<&Maps> {
    let now = Instant::now();
    let is_stale = match processes.get(&pid) {
        None if processes.len() >= MAX_PROCESSES => return None,
        None => true,
        Some(known) => !known.maps.contains(address) && now.duration_since(known.read) >= MAPS_INTERVAL,
    };
    if is_stale && let Some(maps) = Maps::read(pid) {
        processes.insert(pid, SampledProcess { maps, read: now });
    }
    processes.get(&pid).map(|known| &known.maps)
}
