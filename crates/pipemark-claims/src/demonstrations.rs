//! Demonstrations: quick checks of this machine that settle a claim without a trial.

use std::io::{Read, Write};
use std::{fs, io, process};

use pipeio_harness::copies::{WayIn, read_copies, sees_later_change};

use pipemark_model::{Answer, ByteSize, Cache, Claim, ClaimVerdict};

/// The names that a claim's `shown_by` accepts.
pub(crate) const DEMONSTRATIONS: [&str; 7] = [
    "two-copies",
    "vmsplice-passes",
    "splice-passes",
    "io-uring-passes",
    "shared-code",
    "cat-fits-cache",
    "pipe-max-size",
];

/// Answers the claims that name a demonstration. `caches` are those of a CPU.
pub fn demonstrate(claims: &mut [Claim], caches: &[Cache]) {
    for claim in claims {
        claim.answer = match claim.shown_by.as_deref() {
            Some("two-copies") => Some(answer(two_copies())),
            Some("pipe-max-size") => Some(answer(pipe_max_size())),
            Some("vmsplice-passes") => Some(answer(passes(WayIn::Vmsplice))),
            Some("splice-passes") => Some(answer(passes(WayIn::Splice))),
            Some("shared-code") => Some(answer(shared_code())),
            Some("cat-fits-cache") => Some(answer(cat_fits_cache(caches))),
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

/// Checks that what a cat has in memory of its program file takes at most half of the largest cache.
fn cat_fits_cache(caches: &[Cache]) -> io::Result<(bool, String)> {
    let unknown = || io::Error::other("the sizes of this machine's caches are unknown");
    let largest = caches.iter().filter(|cache| cache.kind != "Instruction").max_by_key(|cache| cache.size);
    let largest = largest.filter(|cache| cache.size > 0).ok_or_else(unknown)?;
    let program = Cat::start()?.program()?;
    let (level, size) = (largest.level, ByteSize(largest.size));
    let here = format!("a cat at work has {program} of its program in memory, and the L{level} cache holds {size}");
    Ok((2 * program.0 <= largest.size, here))
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
        let of = |names: [&str; 2]| self.kib_of_program(&names, |permissions| permissions.contains('x'));
        Ok((of(["Shared_Clean:", "Shared_Dirty:"])?, of(["Private_Clean:", "Private_Dirty:"])?))
    }

    /// The size of what is in memory of its program file.
    fn program(&self) -> io::Result<ByteSize> {
        match self.kib_of_program(&["Rss:"], |_| true)? {
            0 => Err(io::Error::other("/proc/PID/smaps shows nothing of the program")),
            kib => Ok(ByteSize(kib << 10)),
        }
    }

    /// The sum of these lines of /proc/PID/smaps, for mappings of the program file whose permissions are `wanted`.
    fn kib_of_program(&self, names: &[&str], wanted: fn(&str) -> bool) -> io::Result<u64> {
        let of = |name: &str| format!("/proc/{}/{name}", self.0.id());
        let program = fs::read_link(of("exe"))?;
        let smaps = fs::read_to_string(of("smaps"))?;
        let (mut is_wanted, mut sum) = (false, 0);
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
            // A mapping begins with its addresses and permissions; its last word is its file.
            if !first.ends_with(':') {
                is_wanted = wanted(second) && line.ends_with(program.to_string_lossy().as_ref());
            } else if is_wanted && names.contains(&first) {
                sum += second.parse::<u64>().unwrap_or(0);
            }
        }
        Ok(sum)
    }
}

impl Drop for Cat {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demonstrated_claims_hold_on_linux() {
        let cache = |level, size| Cache { level, kind: "Unified".to_owned(), size, shared_by: 1 };
        let caches = [cache(1, 32 << 10), cache(2, 1 << 20)];
        for (name, words) in [
            ("two-copies", "read copied them"),
            ("vmsplice-passes", "no copy"),
            ("splice-passes", "no copy"),
            ("shared-code", "shared with other processes"),
            ("cat-fits-cache", "of its program in memory, and the L2 cache holds 1 MiB"),
        ] {
            let mut claims = [Claim { shown_by: Some(name.to_owned()), ..Claim::default() }];
            demonstrate(&mut claims, &caches);
            let answer = claims[0].answer.as_ref().unwrap();
            assert_eq!(answer.verdict, ClaimVerdict::Holds, "{answer:?}");
            assert!(answer.here.contains(words), "{answer:?}");
        }
    }

    #[test]
    fn a_cat_does_not_fit_into_a_small_cache() {
        let cache = |size| [Cache { level: 1, kind: "Data".to_owned(), size, shared_by: 1 }];
        assert!(!cat_fits_cache(&cache(4096)).unwrap().0);
        assert!(cat_fits_cache(&cache(0)).is_err() && cat_fits_cache(&[]).is_err());
    }
}
