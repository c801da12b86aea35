//! Demonstrations: quick tests that settle a claim without a trial.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

use pipeio_harness::copies::{WayIn, read_copies, sees_later_change};
use pipeio_harness::pattern::{Checker, Pattern, Rule};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::gettid;

use pipemark_model::{Answer, Claim, ClaimVerdict};

/// The names that a claim's `shown_by` accepts.
pub(crate) const DEMONSTRATIONS: [&str; 8] = [
    "two-flips",
    "blocking",
    "two-copies",
    "vmsplice-passes",
    "splice-passes",
    "io-uring-passes",
    "shared-code",
    "pipe-max-size",
];

/// The time limit for a call to start sleeping, and another for the call to return.
const LIMIT: Duration = Duration::from_secs(5);

/// The number of attempts at a call that shouldn't sleep. It may also sleep for another reason, such as a page fault.
const ATTEMPTS: u32 = 5;

/// Answers the claims that name a demonstration.
pub fn demonstrate(claims: &mut [Claim]) {
    for claim in claims {
        claim.answer = match claim.shown_by.as_deref() {
            Some("two-flips") => Some(answer(two_flips())),
            Some("blocking") => Some(answer(blocking())),
            Some("two-copies") => Some(answer(two_copies())),
            Some("pipe-max-size") => Some(answer(pipe_max_size())),
            Some("vmsplice-passes") => Some(answer(passes(WayIn::Vmsplice))),
            Some("splice-passes") => Some(answer(passes(WayIn::Splice))),
            Some("shared-code") => Some(answer(shared_code())),
            Some("io-uring-passes") => Some(answer(passes(WayIn::IoUring))),
            _ => continue,
        };
    }
}

fn answer(shown: io::Result<(bool, String)>) -> Answer {
    let (verdict, here) = match shown {
        Ok((true, here)) => (ClaimVerdict::Holds, here),
        Ok((false, here)) => (ClaimVerdict::DoesntHold, here),
        Err(error) => (ClaimVerdict::NotMeasured, format!("the demonstration failed: {error}")),
    };
    Answer { verdict, here, evidence: Vec::new() }
}

/// Makes two faults: flips the same bit in two bytes, and exchanges two blocks. Checks that an XOR over all bytes
/// misses both faults, and that a check by position detects both.
fn two_flips() -> io::Result<(bool, String)> {
    const FLIPPED: [usize; 2] = [1000, 40_000];
    const BLOCK: usize = 4096;
    const EXCHANGED: [usize; 2] = [2, 11];
    let mut sound = vec![0; 64 << 10];
    Pattern::endless(Rule::Position { seed: 1 }).fill(0, &mut sound[..]);
    let mut flipped = sound.clone();
    FLIPPED.iter().for_each(|at| flipped[*at] ^= 0x10);
    let mut exchanged = sound.clone();
    let (head, tail) = exchanged.split_at_mut(EXCHANGED[1] * BLOCK);
    head[EXCHANGED[0] * BLOCK..][..BLOCK].swap_with_slice(&mut tail[..BLOCK]);
    let xor = |bytes: &[u8]| bytes.iter().fold(0, |xor, byte| xor ^ byte);
    let missed = |bytes: &[u8]| xor(bytes) == xor(&sound);
    let [flips_missed, exchange_missed] = [missed(&flipped), missed(&exchanged)];
    let [flips_seen, exchange_seen] = [detects(&flipped), detects(&exchanged)];
    let words = |missed: bool| if missed { "misses it" } else { "detects it" };
    let here = format!(
        "one bit flipped in bytes {} and {} of 65536: xor {}, full {}; blocks {} and {} of {BLOCK} bytes exchanged: xor {}, \
         full {}",
        FLIPPED[0],
        FLIPPED[1],
        words(flips_missed),
        words(!flips_seen),
        EXCHANGED[0],
        EXCHANGED[1],
        words(exchange_missed),
        words(!exchange_seen),
    );
    let only_full = flips_missed && flips_seen && exchange_missed && exchange_seen;
    Ok((only_full && !detects(&sound), here))
}

/// Whether a check by position finds a fault.
fn detects(bytes: &[u8]) -> bool {
    let mut checker = Checker::new(Pattern::endless(Rule::Position { seed: 1 }));
    checker.check(bytes);
    checker.fault().is_some()
}

/// Checks that write copies the bytes into the pipe, and that read copies them out.
fn two_copies() -> io::Result<(bool, String)> {
    let (passes, write) = passes(WayIn::Write)?;
    let read = read_copies()?;
    let out = match read {
        true => {
            "the same bytes, duplicated by tee, stay as they were when the reader's memory changes: read copied them"
        }
        false => "the same bytes, duplicated by tee, change with the reader's memory",
    };
    Ok((!passes && read, format!("{write}; {out}")))
}

/// Checks that the largest pipe that users may ask for has 1 MiB.
fn pipe_max_size() -> io::Result<(bool, String)> {
    let path = "/proc/sys/fs/pipe-max-size";
    let text = fs::read_to_string(path)?;
    let bytes: u64 = text.trim().parse().map_err(|_| io::Error::other(format!("{path} has no number")))?;
    Ok((bytes == 1 << 20, format!("{path} is {bytes}")))
}

/// Checks that a call passes a reference to the bytes into the pipe: the bytes change after the call, and a later read
/// returns the changed bytes. The read itself copies the bytes into the reader's memory.
fn passes(entry: WayIn) -> io::Result<(bool, String)> {
    let changed = sees_later_change(entry)?;
    let call = match entry {
        WayIn::Write => "write",
        WayIn::Vmsplice => "vmsplice",
        WayIn::Splice => "splice from pipe to pipe",
        WayIn::IoUring => "a write by io_uring",
    };
    let here = match changed {
        true => "read returns bytes that were changed after the call: no copy, only a reference was passed",
        false => "read returns the bytes as they were at the call, though they were changed after it: they were copied",
    };
    Ok((changed, format!("{call}: {here}")))
}

/// Checks that two processes that run cat map the same pages of code.
fn shared_code() -> io::Result<(bool, String)> {
    let cats = [Cat::start()?, Cat::start()?];
    let pages = [cats[0].code_kib()?, cats[1].code_kib()?];
    let (shared, own) = (pages[0].0 + pages[1].0, pages[0].1 + pages[1].1);
    if shared + own == 0 {
        return Err(io::Error::other("/proc/PID/smaps shows no pages of code"));
    }
    let percent = 100.0 * shared as f64 / (shared + own) as f64;
    let here = format!("of the pages of its code that two cats use, {percent:.0} % are shared with other processes");
    Ok((percent >= 90.0, here))
}

/// A cat that has passed on one byte and waits for more. Dropping it ends it.
struct Cat(process::Child);

impl Cat {
    fn start() -> io::Result<Cat> {
        let mut command = process::Command::new("cat");
        let mut cat = Cat(command.stdin(process::Stdio::piped()).stdout(process::Stdio::piped()).spawn()?);
        let piped = || io::Error::other("cat has no pipe");
        cat.0.stdin.as_mut().ok_or_else(piped)?.write_all(b"a")?;
        cat.0.stdout.as_mut().ok_or_else(piped)?.read_exact(&mut [0])?;
        Ok(cat)
    }

    /// The KiB of mapped code that other processes map too, and the KiB that none does.
    fn code_kib(&self) -> io::Result<(u64, u64)> {
        let of = |name: &str| format!("/proc/{}/{name}", self.0.id());
        let program = fs::read_link(of("exe"))?;
        let smaps = fs::read_to_string(of("smaps"))?;
        let (mut code, mut shared, mut own) = (false, 0, 0);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
            let kib = || second.parse::<u64>().unwrap_or(0);
            match first {
                // A mapping begins with its addresses and permissions; its last word is its file.
                _ if !first.ends_with(':') => {
                    code = second.contains('x') && line.ends_with(program.to_string_lossy().as_ref());
                }
                "Shared_Clean:" | "Shared_Dirty:" if code => shared += kib(),
                "Private_Clean:" | "Private_Dirty:" if code => own += kib(),
                _ => {}
            }
        }
        Ok((shared, own))
    }
}

impl Drop for Cat {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that a write to a full pipe sleeps, that a read from an empty pipe sleeps, that a write to a pipe with room
/// doesn't, and that a read returns the available bytes.
fn blocking() -> io::Result<(bool, String)> {
    let filled = {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut filled = 0;
        while let Ok(bytes) = rustix::io::write(&write, &[0; 4096]) {
            filled += bytes;
        }
        drop(read);
        filled
    };
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // The read finds an empty pipe. Then fewer bytes are written to the pipe than the read requested.
    let (slept_empty, returned) = while_asleep(
        read,
        |read| rustix::io::read(read, &mut [0; 4096][..]),
        || rustix::io::write(&write, &[0; 100]).map(drop),
    )?;
    let (returns_at_once, with_room) = write_with_room()?;
    let (reads_at_once, available) = read_with_bytes()?;
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut rest = filled;
    while rest > 0 {
        rest -= rustix::io::write(&write, &vec![0; rest])?;
    }
    let (slept_full, written) = while_asleep(
        write,
        |write| rustix::io::write(write, &[0; 4096]),
        || rustix::io::read(&read, &mut vec![0; filled][..]).map(drop),
    )?;
    let words = |slept: bool| if slept { "sleeps" } else { "doesn't sleep" };
    let here = format!(
        "a read of an empty pipe {} until 100 bytes are written, and returns {returned} of 4096; a read of a pipe with 100 \
         bytes {}, and returns {available} of 4096; a write to an empty pipe {}, and writes {with_room}; a write to a full pipe of {filled} bytes {} until the pipe is read, and then writes {written}",
        words(slept_empty),
        words(!reads_at_once),
        words(!returns_at_once),
        words(slept_full),
    );
    let whole = with_room == 4096 && written == 4096 && reads_at_once && available == 100;
    Ok((slept_empty && returns_at_once && slept_full && returned == 100 && whole, here))
}

/// Writes a page to a pipe that has room and that nobody reads. Returns whether the call returned without sleeping, and
/// its result.
fn write_with_room() -> io::Result<(bool, usize)> {
    let mut written = 0;
    for _ in 0..ATTEMPTS {
        let (_read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let before = voluntary_switches()?;
        written = rustix::io::write(&write, &[0; 4096])?;
        if voluntary_switches()? == before {
            return Ok((true, written));
        }
    }
    Ok((false, written))
}

/// Reads from a pipe that holds 100 bytes. Returns whether the call returned without sleeping, and its result.
fn read_with_bytes() -> io::Result<(bool, usize)> {
    let mut bytes = 0;
    for _ in 0..ATTEMPTS {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::write(&write, &[0; 100])?;
        let before = voluntary_switches()?;
        bytes = rustix::io::read(&read, &mut [0; 4096][..])?;
        if voluntary_switches()? == before {
            return Ok((true, bytes));
        }
    }
    Ok((false, bytes))
}

/// The number of times that this thread gave up the CPU to wait.
fn voluntary_switches() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok());
    count.ok_or_else(|| io::Error::other("/proc/thread-self/status has no voluntary_ctxt_switches"))
}

/// Makes a call in a thread, and wakes the thread once it sleeps, or after [`LIMIT`]. Returns whether the thread slept,
/// and the call's result.
fn while_asleep(
    end: OwnedFd,
    call: fn(&OwnedFd) -> rustix::io::Result<usize>,
    wake: impl FnOnce() -> rustix::io::Result<()>,
) -> io::Result<(bool, usize)> {
    let (tell, told) = mpsc::channel();
    let (done, returned) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let _ = tell.send(gettid());
        let _ = done.send(call(&end));
    })?;
    let late = |_| io::Error::other("a call did not return");
    let thread = told.recv_timeout(LIMIT).map_err(late)?;
    let stat = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let begin = Instant::now();
    // The stat file is missing once the thread has ended.
    let asleep = || {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))
    };
    // A thread may sleep briefly before or after the call, so it must be asleep in two checks, 10 ms apart.
    let mut slept = false;
    let mut early = None;
    while !slept && early.is_none() && begin.elapsed() < LIMIT {
        slept = asleep();
        thread::sleep(Duration::from_millis(10));
        slept = slept && asleep();
        early = returned.try_recv().ok();
    }
    wake()?;
    let slept = slept && early.is_none();
    let bytes = match early {
        Some(result) => result?,
        None => returned.recv_timeout(LIMIT).map_err(late)??,
    };
    Ok((slept, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_returns_at_once_does_not_sleep() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let one = |write: &OwnedFd| rustix::io::write(write, &[0]);
        let call = while_asleep(write, one, || rustix::io::read(&read, &mut [0; 2][..]).map(drop));
        assert_eq!(call.unwrap(), (false, 1));
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let empty = |read: &OwnedFd| rustix::io::read(read, &mut [0; 2][..]);
        let call = while_asleep(read, empty, || rustix::io::write(&write, &[0]).map(drop));
        assert_eq!(call.unwrap(), (true, 1));
    }

    #[test]
    fn demonstrated_claims_hold_on_linux() {
        for (name, words) in [
            ("two-flips", "of 65536: xor misses it, full detects it; blocks"),
            ("two-flips", "bytes exchanged: xor misses it, full detects it"),
            (
                "blocking",
                "a read of a pipe with 100 bytes doesn't sleep, and returns 100 of 4096; a write to an empty pipe doesn't sleep, and",
            ),
            ("two-copies", "read copied them"),
            ("vmsplice-passes", "no copy"),
            ("splice-passes", "no copy"),
            ("shared-code", "shared with other processes"),
        ] {
            let mut claims = [Claim { shown_by: Some(name.to_owned()), ..Claim::default() }];
            demonstrate(&mut claims);
            let answer = claims[0].answer.as_ref().unwrap();
            assert_eq!(answer.verdict, ClaimVerdict::Holds, "{answer:?}");
            assert!(answer.here.contains(words), "{answer:?}");
        }
    }

    #[test]
    fn a_sleep_is_counted_for_its_thread_only() {
        let count = |sleep: fn()| {
            let before = voluntary_switches().unwrap();
            sleep();
            voluntary_switches().unwrap() - before
        };
        assert!(count(|| thread::sleep(Duration::from_millis(2))) > 0);
        let other = thread::spawn(|| thread::sleep(Duration::from_millis(50)));
        assert_eq!((0..5).map(|_| count(|| ())).min(), Some(0));
        other.join().unwrap();
    }
}
