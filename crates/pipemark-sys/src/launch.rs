//! Executes a program in a copy of this process that has given up its memory.
//!
//! The kernel counts in a program's peak memory (`ru_maxrss`, getrusage(2)) what its process had before it executed the
//! program: with fork(2) a copy of this process's memory, and with vfork(2) or posix_spawn(3) this process's own peak. The
//! copy made here unmaps everything but a few pages, makes what is left its peak (`/proc/self/clear_refs`), and waits. So
//! the peak has a floor of 12 to 76 KiB, and neither the copy nor the unmapping is part of the program's time.
//!
//! For x86-64 and arm64; elsewhere nothing is prepared.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr::null_mut;

use libc::c_int;
use rustix::process::Pid;

use crate::result_of;
use crate::usage::Usage;

/// The arguments of execve(2).
#[derive(Debug, Clone)]
pub struct ExecCall {
    /// Where it may be, in the order in which the places are tried.
    pub paths: Vec<CString>,
    /// Its arguments, the first of which is its name.
    pub arguments: Vec<CString>,
    /// Its environment, as NAME=value.
    pub environment: Vec<CString>,
}

/// A process that waits to execute its program.
#[derive(Debug)]
pub struct HeldProgram {
    pid: Pid,
    used: Usage,
    gate: PipeWriter,
    report: PipeReader,
}

/// The words of the plan at the beginning of [`LaunchPlan`], which the machine code of [`execute`] reads.
const WORDS: usize = 10;
/// The bytes that the copy reads and writes before it executes its program.
pub const COPY_READS_AND_WRITES: (u64, u64) = (1, 2);
/// The byte that the copy writes when it is ready. It also resets the kernel's record of the peak: proc(5).
const READY: u8 = b'5';

impl HeldProgram {
    /// Makes a copy of this process that has the three streams and is in the process group `group` (0 for its own), and
    /// that waits to execute the program. Returns `None` if that isn't possible here. The caller reaps the process, also
    /// if it is never released.
    ///
    /// # Errors
    /// When no process, descriptor or memory is available.
    pub fn prepare(program: &ExecCall, streams: [BorrowedFd; 3], group: c_int) -> io::Result<Option<HeldProgram>> {
        let streams = streams.map(|stream| stream.as_raw_fd());
        // A descriptor below 3 might be replaced before it is copied.
        if !SUPPORTED || streams.iter().any(|fd| *fd < 3) {
            return Ok(None);
        }
        let Ok(refs) = File::options().write(true).open("/proc/self/clear_refs") else { return Ok(None) };
        drop(refs);
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return Ok(None) };
        let (gate_of_copy, gate) = io::pipe()?;
        let (report, report_of_copy) = io::pipe()?;
        let region = LaunchPlan::of(program, &maps, [gate_of_copy.as_raw_fd(), report_of_copy.as_raw_fd()])?;
        // SAFETY: in the child, only functions run that may be called after fork(2) in a program with threads
        // (signal-safety(7)), and they never return.
        let pid = result_of(unsafe { libc::fork() })?;
        if pid == 0 {
            become_program(&region, gate.as_raw_fd(), streams, group);
        }
        let pid = Pid::from_raw(pid).expect("a child has a number above 0");
        drop((gate_of_copy, report_of_copy));
        let mut held = HeldProgram { pid, used: Usage::default(), gate, report };
        let mut ready = [0];
        let is_ready = held.report.read_exact(&mut ready).is_ok() && ready == [READY];
        if !is_ready {
            // The copy may have ended already.
            let _ = rustix::process::kill_process(held.pid, rustix::process::Signal::KILL);
            crate::usage::reap(held.pid, crate::usage::WaitMode::Block)?;
            return Ok(None);
        }
        held.used = used_by(pid);
        Ok(Some(held))
    }

    /// What the copy has used so far, which the kernel counts as the program's: CPU time (as `sys_ns`), page faults and
    /// context switches.
    pub fn used(&self) -> Usage {
        self.used
    }

    /// The process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the process execute its program, and returns when it has. After an error, the process ends with the exit code
    /// 127.
    ///
    /// # Errors
    /// When the program can't be executed.
    pub fn release(mut self) -> io::Result<()> {
        self.gate.write_all(&[0])?;
        let mut error = [0; 8];
        match self.report.read(&mut error)? {
            // Executing the program has closed the pipe.
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(-i64::from_ne_bytes(error) as i32)),
        }
    }
}

/// What a process has used so far; zero where that can't be read.
fn used_by(pid: Pid) -> Usage {
    let mut clock = 0;
    // SAFETY: the pointer is that of a clock's number.
    let failed = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &raw mut clock) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    if failed == 0 {
        // SAFETY: the pointer is that of a time. If the clock is gone, the time stays zero.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // The tenth field of /proc/PID/stat, counted from the third, which follows the name in parentheses: proc(5).
    let faults = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(7)?.parse().ok());
    Usage {
        sys_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        minor_faults: faults.unwrap_or(0),
        // It waits at the gate.
        voluntary_switches: 1,
        ..Usage::default()
    }
}

/// What the copy does, in memory that it keeps: the plan, and all that it points to.
struct LaunchPlan {
    start: *mut u64,
    bytes: usize,
}

impl LaunchPlan {
    fn of(program: &ExecCall, maps: &str, [gate, report]: [RawFd; 2]) -> io::Result<LaunchPlan> {
        let strings = || program.paths.iter().chain(&program.arguments).chain(&program.environment);
        let text: usize = strings().map(|string| string.as_bytes_with_nul().len()).sum();
        // A mapping is split into at most three parts.
        let ranges = 3 * (maps.lines().count() + 8);
        let bytes = 8 * (WORDS + 2 * ranges + strings().count() + 3) + text + 1;
        let page = rustix::param::page_size();
        let bytes = bytes.next_multiple_of(page);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { libc::mmap(null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let region = LaunchPlan { start: start.cast(), bytes };
        let base = region.start as u64;
        let mut words = vec![0_u64; WORDS];
        let unmapped = ranges_to_unmap(maps, &[(base, base + bytes as u64), code(), thread_local_storage()]);
        (words[0], words[1]) = (base + 8 * WORDS as u64, unmapped.len() as u64);
        words.extend(unmapped.iter().flat_map(|(from, to)| [*from, to - from]));
        // The strings follow the lists of pointers to them.
        let lists = [&program.paths, &program.arguments, &program.environment];
        let pointers: usize = lists.iter().map(|list| list.len() + 1).sum();
        let mut at = base + 8 * (words.len() + pointers) as u64;
        let mut text = Vec::new();
        for (nth, list) in lists.into_iter().enumerate() {
            words[5 + nth] = base + 8 * words.len() as u64;
            for string in list {
                words.push(at);
                text.extend_from_slice(string.as_bytes_with_nul());
                at += string.as_bytes_with_nul().len() as u64;
            }
            words.push(0);
        }
        (words[3], words[4], words[8]) = (gate as u64, report as u64, at);
        text.push(READY);
        assert!(8 * words.len() + text.len() <= bytes, "the plan has room for all that it needs");
        // SAFETY: the mapping has room for the words, as asserted, and nothing else refers to it.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), region.start, words.len()) };
        // SAFETY: the text follows the words, within the mapping, as asserted.
        let after = unsafe { region.start.add(words.len()) };
        // SAFETY: the mapping has room for the text after the words, as asserted, and nothing else refers to it.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), after.cast(), text.len()) };
        Ok(region)
    }

    /// Sets the descriptor of the copy's `clear_refs`.
    fn set_refs(&self, fd: RawFd) {
        // SAFETY: the third word is within the mapping.
        let word = unsafe { self.start.add(2) };
        // SAFETY: the word is within the mapping, and no reference to it exists.
        unsafe { word.write(fd as u64) };
    }
}

impl Drop for LaunchPlan {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping, and no reference to it exists.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// The pages of the code that executes the program.
fn code() -> (u64, u64) {
    let (address, page) = (execute as *const () as u64, rustix::param::page_size() as u64);
    (address & !(page - 1), (address & !(page - 1)) + 2 * page)
}

/// The neighbourhood of the thread's own data. The kernel writes to it whenever it moves the thread to another CPU:
/// rseq(2).
fn thread_local_storage() -> (u64, u64) {
    const AROUND: u64 = 32 << 10;
    let pointer = thread_pointer();
    let page = rustix::param::page_size() as u64;
    (pointer.saturating_sub(AROUND) & !(page - 1), (pointer + AROUND) & !(page - 1))
}

/// The parts of all mappings that aren't kept. The mappings of the kernel itself stay too.
fn ranges_to_unmap(maps: &str, kept: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    for line in maps.lines().filter(|line| !line.ends_with("[vdso]") && !line.contains("[v")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let end = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((Some(from), Some(to))) = range.map(|(from, to)| (end(from), end(to))) else { continue };
        let mut parts = vec![(from, to)];
        for &(keep_from, keep_to) in kept {
            let around = |(from, to): (u64, u64)| [(from, to.min(keep_from)), (from.max(keep_to), to)];
            parts = parts.into_iter().flat_map(around).filter(|(from, to)| from < to).collect();
        }
        ranges.extend(parts);
    }
    ranges
}

/// In the copy: arranges its descriptors, group and signals, and waits to execute the program. `gate` is the end of the
/// gate that its parent holds.
fn become_program(region: &LaunchPlan, gate: RawFd, streams: [RawFd; 3], group: c_int) -> ! {
    // With this end, the copy would wait for ever after its parent has died.
    // SAFETY: the copy uses this descriptor nowhere else: it drops no value of its parent.
    unsafe { libc::close(gate) };
    // SAFETY: setpgid(2) takes numbers only.
    let mut failed = unsafe { libc::setpgid(0, group) } < 0;
    for (fd, standard) in streams.into_iter().zip(0..) {
        // SAFETY: dup2(2) takes numbers only.
        failed |= unsafe { libc::dup2(fd, standard) } < 0;
    }
    // As std::process does: the program handles no signal, and blocks none.
    for signal in 1..=64 {
        let is_ignored = signal != libc::SIGPIPE && is_ignored(signal);
        if !is_ignored {
            // SAFETY: SIG_DFL is a valid action. Of a signal without actions, this only fails.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is that of a set, which this initialises.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set is initialised, and the pointer for the previous one may be null.
    failed |= unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), null_mut()) } != 0;
    // SAFETY: the name is a C string.
    let refs = unsafe { libc::open(c"/proc/self/clear_refs".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if failed || refs < 0 {
        // SAFETY: this ends the process without running any code of the program that it is a copy of.
        unsafe { libc::_exit(127) };
    }
    region.set_refs(refs);
    // SAFETY: the region holds a plan, which is in memory that the plan doesn't unmap.
    unsafe { execute(region.start) }
}

fn is_ignored(signal: c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null pointer changes no action, and the other one points to a writable action.
    let found = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: an action that is all zeros is valid, and so is one that sigaction(2) wrote.
    found && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

const SUPPORTED: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Unmaps what the plan lists, the stack included, makes the rest this process's peak, reports that it is ready, waits for
/// a byte, and executes the program. It uses no memory but the plan, and calls nothing but the kernel.
///
/// # Safety
///
/// `plan` points to the words of a [`LaunchPlan`], which its list of what to unmap doesn't contain. The list may contain all
/// other memory but the pages of this code ([`code`]), so the process must have no other thread.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn execute(plan: *const u64) -> ! {
    // SAFETY: the caller guarantees that the plan can be read to its end after each munmap(2). The code needs no stack.
    unsafe {
        std::arch::asm!(
            "mov r13, [r12]",
            "mov r14, [r12 + 8]",
            "2:",
            "test r14, r14",
            "jz 3f",
            "mov rdi, [r13]",
            "mov rsi, [r13 + 8]",
            "mov eax, 11", // munmap
            "syscall",
            "add r13, 16",
            "dec r14",
            "jmp 2b",
            "3:",
            "mov rdi, [r12 + 16]", // clear_refs
            "mov rsi, [r12 + 64]",
            "mov edx, 1",
            "mov eax, 1", // write
            "syscall",
            "mov rdi, [r12 + 32]", // the report
            "mov rsi, [r12 + 64]",
            "mov edx, 1",
            "mov eax, 1",
            "syscall",
            "mov rdi, [r12 + 24]", // the gate
            "lea rsi, [r12 + 72]",
            "mov edx, 1",
            "xor eax, eax", // read
            "syscall",
            "cmp rax, 1",
            "jne 6f",
            "mov r13, [r12 + 40]",
            "4:",
            "mov rdi, [r13]",
            "test rdi, rdi",
            "jz 5f",
            "mov rsi, [r12 + 48]",
            "mov rdx, [r12 + 56]",
            "mov eax, 59", // execve
            "syscall",
            "mov [r12 + 72], rax",
            "add r13, 8",
            "jmp 4b",
            "5:",
            "mov rdi, [r12 + 32]",
            "lea rsi, [r12 + 72]",
            "mov edx, 8",
            "mov eax, 1",
            "syscall",
            "6:",
            "mov edi, 127",
            "mov eax, 231", // exit_group
            "syscall",
            "ud2",
            in("r12") plan,
            options(noreturn),
        )
    }
}

/// Like the version for x86-64.
///
/// # Safety
///
/// That of the version for x86-64.
#[cfg(target_arch = "aarch64")]
#[inline(never)]
unsafe fn execute(plan: *const u64) -> ! {
    // SAFETY: the caller guarantees that the plan can be read to its end after each munmap(2). The code needs no stack.
    unsafe {
        std::arch::asm!(
            "mov x19, x0",
            "ldr x20, [x19]",
            "ldr x21, [x19, #8]",
            "2:",
            "cbz x21, 3f",
            "ldp x0, x1, [x20], #16",
            "mov x8, #215", // munmap
            "svc #0",
            "sub x21, x21, #1",
            "b 2b",
            "3:",
            "ldr x0, [x19, #16]", // clear_refs
            "ldr x1, [x19, #64]",
            "mov x2, #1",
            "mov x8, #64", // write
            "svc #0",
            "ldr x0, [x19, #32]", // the report
            "ldr x1, [x19, #64]",
            "mov x2, #1",
            "mov x8, #64",
            "svc #0",
            "ldr x0, [x19, #24]", // the gate
            "add x1, x19, #72",
            "mov x2, #1",
            "mov x8, #63", // read
            "svc #0",
            "cmp x0, #1",
            "b.ne 6f",
            "ldr x20, [x19, #40]",
            "4:",
            "ldr x0, [x20], #8",
            "cbz x0, 5f",
            "ldr x1, [x19, #48]",
            "ldr x2, [x19, #56]",
            "mov x8, #221", // execve
            "svc #0",
            "str x0, [x19, #72]",
            "b 4b",
            "5:",
            "ldr x0, [x19, #32]",
            "add x1, x19, #72",
            "mov x2, #8",
            "mov x8, #64",
            "svc #0",
            "6:",
            "mov x0, #127",
            "mov x8, #94", // exit_group
            "svc #0",
            "brk #1",
            in("x0") plan,
            options(noreturn),
        )
    }
}

/// Nothing is ever executed here, because nothing is prepared.
///
/// # Safety
///
/// None is needed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn execute(_plan: *const u64) -> ! {
    std::process::abort()
}

/// The address of the thread's own data.
#[cfg(target_arch = "x86_64")]
fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: the System V ABI puts the address at the beginning of the segment FS.
    unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
    pointer
}

/// The address of the thread's own data.
#[cfg(target_arch = "aarch64")]
fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: this reads a register that programs may read.
    unsafe { std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem)) };
    pointer
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn thread_pointer() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::usage::{WaitMode, reap};

    fn text(words: &[&str]) -> Vec<CString> {
        words.iter().map(|word| CString::new(*word).unwrap()).collect()
    }

    /// Runs a program, and returns its exit code, what it wrote and its peak memory.
    fn run(paths: &[&str], arguments: &[&str], environment: &[&str]) -> Option<(Option<i32>, String, u64)> {
        let program = ExecCall { paths: text(paths), arguments: text(arguments), environment: text(environment) };
        let (mut output, writer) = io::pipe().unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let held = HeldProgram::prepare(&program, [null.as_fd(), writer.as_fd(), null.as_fd()], 0).unwrap()?;
        drop(writer);
        let pid = held.pid();
        let released = held.release();
        let mut written = String::new();
        output.read_to_string(&mut written).unwrap();
        let (status, usage) = reap(pid, WaitMode::Block).unwrap().unwrap();
        if let Err(error) = released {
            written = error.to_string();
        }
        Some((status.code(), written, usage.peak_bytes))
    }

    /// A program that has less memory than this one is found to have less.
    #[test]
    fn a_programs_peak_is_its_own() {
        // This process has 64 MiB more than the program.
        let own = vec![1_u8; 64 << 20];
        assert!(std::hint::black_box(&own).iter().step_by(4096).all(|byte| *byte == 1));
        let Some((code, written, peak)) = run(&["/nowhere", "/bin/echo"], &["echo", "a", "b c"], &[]) else {
            assert!(!SUPPORTED || !std::path::Path::new("/proc/self/clear_refs").exists(), "it is possible here");
            return;
        };
        assert_eq!((code, written.as_str()), (Some(0), "a b c\n"));
        assert!(peak < 8 << 20, "{peak}");
    }

    #[test]
    fn a_program_has_its_environment_and_its_signals() {
        let script = "echo $X; trap; kill -PIPE $$";
        let Some((code, written, _)) = run(&["/bin/sh"], &["sh", "-c", script], &["X=1"]) else { return };
        assert_eq!((code, written.as_str()), (None, "1\n"), "SIGPIPE, which this program ignores, ends it");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let Some((code, error, _)) = run(&["/nowhere", "/no/where"], &["x"], &[]) else { return };
        assert!(code == Some(127) && error.contains("No such file"), "{error}");
    }

    #[test]
    fn a_program_that_is_never_released_ends() {
        let program = ExecCall { paths: text(&["/bin/true"]), arguments: text(&["true"]), environment: Vec::new() };
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let held = HeldProgram::prepare(&program, [null.as_fd(), null.as_fd(), null.as_fd()], 0).unwrap();
        let Some(held) = held else { return };
        let pid = held.pid();
        drop(held);
        let (status, _) = reap(pid, WaitMode::Block).unwrap().unwrap();
        assert_eq!(status.code(), Some(127));
    }

    #[test]
    fn all_but_what_is_kept_is_unmapped() {
        let maps = "1000-5000 rw-p 0 00:00 0\n8000-9000 r-xp 0 00:00 0  [vdso]\na000-b000 rw-p 0 00:00 0 [stack]\n";
        let kept = [(0x2000, 0x3000), (0x4000, 0x4000)];
        assert_eq!(
            ranges_to_unmap(maps, &kept),
            [(0x1000, 0x2000), (0x3000, 0x4000), (0x4000, 0x5000), (0xa000, 0xb000)]
        );
    }
}
