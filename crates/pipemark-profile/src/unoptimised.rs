//! Recognises programs that were compiled without optimisation, by the functions in which they spend their time: such a
//! compiler keeps each variable in memory, on the stack, and calls the smallest functions of a library. Pure.

use object::Architecture;

/// Code that is shorter, in bytes, says too little.
pub const MIN_CODE: usize = 64;
/// The maximum number of bytes of a function that are examined.
pub const MAX_CODE: usize = 64 << 10;

/// Accesses to the stack for each 14 bytes of x86-64 code, or each instruction of arm64 code times 4. Of the functions of
/// SQLite 3.50 (2026-11-29, gcc 12, from 64 bytes): without optimisation 90 % have more than 1.04, half more than 1.4; with
/// -O1, -O2, -Og, with frame pointers or without, 90 % have less than 0.83 and 99 % less than 1.31.
pub fn stack_use(code: &[u8], architecture: Architecture) -> Option<f64> {
    let code = &code[..code.len().min(MAX_CODE)];
    if code.len() < MIN_CODE {
        return None;
    }
    match architecture {
        Architecture::X86_64 => {
            let accesses = code.windows(6).filter(|bytes| is_access_of_x86(bytes)).count();
            Some(accesses as f64 * 14.0 / code.len() as f64)
        }
        Architecture::Aarch64 => {
            let words = code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            let accesses = words.clone().filter(|&word| is_access_of_arm(word)).count();
            Some(accesses as f64 * 4.0 / words.count().max(1) as f64)
        }
        _ => None,
    }
}

/// Whether bytes look like the opcode of a move or of arithmetic with a byte below the frame pointer, or above the stack
/// pointer.
fn is_access_of_x86(bytes: &[u8]) -> bool {
    const OPCODES: [u8; 23] = [
        0x01, 0x03, 0x10, 0x11, 0x28, 0x29, 0x2b, 0x39, 0x3b, 0x63, 0x83, 0x88, 0x89, 0x8a, 0x8b, 0x8d, 0xb6, 0xb7,
        0xbe, 0xbf, 0xc6, 0xc7, 0x2a,
    ];
    OPCODES.contains(&bytes[0])
        && match bytes[1] & 0xc7 {
            0x45 => bytes[2] >= 0x80,
            0x85 => bytes[5] == 0xff,
            0x44 | 0x84 => bytes[2] == 0x24,
            _ => false,
        }
}

/// Whether an instruction loads or stores at an offset from the stack pointer or the frame pointer.
fn is_access_of_arm(word: u32) -> bool {
    let base = (word >> 5) & 31;
    (base == 31 || base == 29) && (word & 0x3b00_0000 == 0x3900_0000 || word & 0x3b00_0000 == 0x3800_0000)
}

/// Whether a function is one that every optimising compiler puts into its callers.
pub fn is_inlined_by_optimisation(function: &str) -> bool {
    const BEGIN: [&str; 16] = [
        // Rust
        "core::iter::range::",
        "<core::ops::range::Range<",
        "<core::slice::iter::Iter<",
        "core::slice::index::",
        "<usize as core::slice::index::SliceIndex<",
        "core::ptr::non_null::",
        "core::ptr::const_ptr::",
        "core::ptr::mut_ptr::",
        "core::ptr::read",
        "core::ptr::write",
        "core::ub_checks::",
        "core::cmp::impls::",
        // C++
        "_ZN9__gnu_cxx17__normal_iterator",
        "_ZNK9__gnu_cxx17__normal_iterator",
        "_ZSt7forwardI",
        "_ZSt4moveI",
    ];
    let ends =
        |start: &str, ends: &[&str]| function.starts_with(start) && ends.iter().any(|end| function.ends_with(end));
    BEGIN.iter().any(|begin| function.starts_with(begin))
        || function.contains(" as core::iter::range::Step>::")
        || ends("_ZNSt6vectorI", &["ixEm", "5beginEv", "3endEv", "4backEv"])
        || ends("_ZNKSt6vectorI", &["ixEm", "4sizeEv", "5beginEv", "3endEv", "5emptyEv"])
        || ends("_ZNSt5arrayI", &["ixEm"])
        || ends("_ZNKSt5arrayI", &["ixEm", "4sizeEv"])
}

/// A function with its share of the samples.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    /// The share of all samples of the stage, from 0 to 1.
    pub share: f64,
    /// Its use of the stack; `None` if unknown.
    pub stack_use: Option<f64>,
    /// Whether an optimising compiler would have put it into its callers.
    pub is_inlined: bool,
}

/// Whether a program is unoptimised, from the functions with names in which it spends its time.
pub fn is_unoptimised(functions: &[Sampled]) -> bool {
    /// A tenth of the time in functions that optimised programs don't have.
    const MIN_INLINED: f64 = 0.1;
    /// At least this number of functions, each with this share of the samples, and together with this share, use the stack on
    /// average as unoptimised code does, and each more than most optimised code does. A single one might be a cipher, which
    /// has more values than the CPU has registers.
    const MIN_FUNCTIONS: usize = 3;
    const MIN_SHARE: f64 = 0.02;
    const MIN_TOGETHER: f64 = 0.4;
    const MIN_MEAN: f64 = 1.1;
    const MIN_EACH: f64 = 0.7;
    let inlined: f64 = functions.iter().filter(|one| one.is_inlined).map(|one| one.share).sum();
    let known: Vec<(f64, f64)> = functions
        .iter()
        .filter(|one| one.share >= MIN_SHARE)
        .filter_map(|one| Some((one.share, one.stack_use?)))
        .collect();
    let together: f64 = known.iter().map(|(share, _)| share).sum();
    let mean = known.iter().map(|(share, stack_use)| share * stack_use).sum::<f64>() / together.max(f64::MIN_POSITIVE);
    inlined >= MIN_INLINED
        || known.len() >= MIN_FUNCTIONS
            && together >= MIN_TOGETHER
            && mean >= MIN_MEAN
            && known.iter().all(|&(_, stack_use)| stack_use >= MIN_EACH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_functions_of_libraries_are_inlined_by_optimisation() {
        for name in [
            "core::iter::range::<impl core::iter::traits::iterator::Iterator for core::ops::range::Range<A>>::next",
            "<u64 as core::iter::range::Step>::forward_unchecked",
            "<core::slice::iter::Iter<T> as core::iter::traits::iterator::Iterator>::next",
            "_ZNSt6vectorIiSaIiEEixEm",
            "_ZNKSt6vectorIiSaIiEE4sizeEv",
            "_ZN9__gnu_cxx17__normal_iteratorIPiSt6vectorIiSaIiEEEppEv",
        ] {
            assert!(is_inlined_by_optimisation(name), "{name}");
        }
        for name in [
            "core::fmt::Formatter::pad_integral",
            "core::str::converts::from_utf8",
            "core::ptr::drop_in_place<alloc::string::String>",
            "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
            "main",
        ] {
            assert!(!is_inlined_by_optimisation(name), "{name}");
        }
    }

    #[test]
    fn one_function_that_uses_the_stack_proves_nothing() {
        let of = |share, stack_use| Sampled { share, stack_use: Some(stack_use), is_inlined: false };
        assert!(is_unoptimised(&[of(0.5, 1.4), of(0.2, 1.2), of(0.1, 1.0)]));
        assert!(!is_unoptimised(&[of(0.9, 1.8)]));
        assert!(!is_unoptimised(&[of(0.5, 1.4), of(0.2, 1.2), of(0.1, 0.1)]));
        assert!(!is_unoptimised(&[of(0.1, 1.4), of(0.1, 1.2), of(0.1, 1.0)]), "most of the time is elsewhere");
        assert!(is_unoptimised(&[Sampled { share: 0.2, stack_use: None, is_inlined: true }]));
        assert!(!is_unoptimised(&[]));
    }
}
