//! The frames of a sample's kernel code, and their names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::time::Duration;

use crate::stack::RawFrame;
use crate::time_limit::TimeLimit;

/// The maximum size of /proc/kallsyms, in bytes; with many modules it has about 15 MB.
const MAX_SYMBOLS: u64 = 64 << 20;
/// Approximate CPU time of reading the kernel's own functions, which come before those of modules.
const USUAL_TIME: Duration = Duration::from_millis(20);
/// Addresses in the kernel are at least this; values above [`MARKS`] are marks between parts of a call chain.
const KERNEL: u64 = 1 << 63;
const MARKS: u64 = u64::MAX - 4095;

/// The kernel's frames in a call chain of perf_event_open(2), the innermost first.
pub fn frames(chain: &[u64]) -> Vec<RawFrame> {
    chain.iter().copied().filter(|address| (KERNEL..MARKS).contains(address)).map(RawFrame::Kernel).collect()
}

/// The names of the kernel's functions at these addresses. None if the kernel hides its addresses
/// (/proc/sys/kernel/kptr_restrict), or if the time doesn't suffice.
pub fn names(addresses: impl Iterator<Item = u64>, time: &TimeLimit<'_>) -> BTreeMap<u64, Arc<str>> {
    let wanted: Vec<u64> = addresses.collect::<BTreeSet<u64>>().into_iter().collect();
    if wanted.is_empty() || time.left() < USUAL_TIME {
        return BTreeMap::new();
    }
    let Ok(file) = File::open("/proc/kallsyms") else { return BTreeMap::new() };
    nearest(BufReader::with_capacity(1 << 16, file.take(MAX_SYMBOLS)), &wanted, time)
}

/// For each of the sorted addresses, the function with the highest address that isn't above it.
fn nearest(mut symbols: impl BufRead, wanted: &[u64], time: &TimeLimit<'_>) -> BTreeMap<u64, Arc<str>> {
    /// The number of lines between two readings of the clock.
    const LINES_PER_CHECK: usize = 256;
    let mut best: Vec<(u64, Option<Arc<str>>)> = vec![(0, None); wanted.len()];
    let mut line = Vec::new();
    for nth in 1.. {
        if time.is_over_at(nth, LINES_PER_CHECK) {
            return BTreeMap::new();
        }
        if !symbols.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            break;
        }
        if let Some((address, name)) = function(&line) {
            let first = wanted.partition_point(|&one| one < address);
            // The kernel's own functions come first, in the order of their addresses, and then those of modules.
            if first == wanted.len() && best.iter().all(|(_, name)| name.is_some()) {
                break;
            }
            let mut shared: Option<Arc<str>> = None;
            // The distance of a function's first and last instruction is far below 1 MiB.
            for (best, _) in
                best[first..].iter_mut().zip(&wanted[first..]).take_while(|(_, one)| **one - address < 1 << 20)
            {
                if address > best.0 {
                    let name = shared.get_or_insert_with(|| String::from_utf8_lossy(name).into());
                    *best = (address, Some(name.clone()));
                }
            }
        }
        line.clear();
    }
    wanted.iter().zip(best).filter_map(|(&address, (_, name))| Some((address, name?))).collect()
}

/// The address and name of a line of /proc/kallsyms; `None` if it isn't a function, or the address is hidden.
fn function(line: &[u8]) -> Option<(u64, &[u8])> {
    let (address, rest) = line.split_at_checked(16)?;
    let is_function = matches!(rest.get(1)?, b't' | b'T' | b'w' | b'W');
    let mut value = 0;
    for digit in address {
        value = value << 4 | u64::from(char::from(*digit).to_digit(16)?);
    }
    let name = rest.get(3..)?.split(|byte| byte.is_ascii_whitespace()).next()?;
    (is_function && value != 0).then_some((value, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_function_at_or_below_an_address() {
        let symbols = b"ffffffff81000000 T first\nffffffff81000100 D data\nffffffff81000200 t second\t[module]\n";
        let (inside, start, below) = (0xffff_ffff_8100_0180, 0xffff_ffff_8100_0200, 0xffff_ffff_80ff_ffff);
        let found = nearest(&symbols[..], &[below, inside, start], &TimeLimit::none());
        assert_eq!(found.get(&inside).map(|name| &**name), Some("first"));
        assert_eq!(found.get(&start).map(|name| &**name), Some("second"));
        assert_eq!(found.get(&below), None);
        assert!(nearest(&b"0000000000000000 T hidden\n"[..], &[inside], &TimeLimit::none()).is_empty());
    }

    #[test]
    fn no_names_are_found_when_the_time_is_over() {
        let symbols = "ffffffff81000000 T first\n".repeat(1000);
        let wanted = [0xffff_ffff_8200_0000];
        let clock = || Duration::from_secs(5);
        assert!(nearest(symbols.as_bytes(), &wanted, &TimeLimit::new(Duration::ZERO, &clock)).is_empty());
        assert!(names(wanted.into_iter(), &TimeLimit::new(USUAL_TIME / 2, &clock)).is_empty());
    }

    #[test]
    fn reading_ends_behind_the_last_address() {
        let symbols = "ffffffff81000000 T first\nffffffff81000200 T second\nffffffff81000080 T unsorted\n";
        let found = nearest(symbols.as_bytes(), &[0xffff_ffff_8100_0100], &TimeLimit::none());
        assert_eq!(found.values().map(|name| &**name).collect::<Vec<_>>(), ["first"]);
    }

    #[test]
    fn marks_are_no_frames() {
        // PERF_CONTEXT_KERNEL and PERF_CONTEXT_USER.
        assert_eq!(frames(&[u64::MAX - 127, 0xffff_ffff_8100_0000, u64::MAX - 511, 4]).len(), 1);
    }
}
