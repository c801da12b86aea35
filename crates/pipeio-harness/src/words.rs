//! Words of 8 bytes in vector registers. The vector instructions are written out: the compiler would choose them only in a
//! build that is optimised for speed as a whole.

/// The difference between two words of a stream: 2⁶⁴ divided by the golden ratio, an odd number without a pattern in its
/// bits.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The most words in a register.
const MOST: usize = 8;

/// Words that are computed together.
///
/// # Safety
/// Each function requires that the processor has the instructions of this type, `load` also that [`Words::COUNT`] words
/// are readable, and `store` that as many are writable.
pub trait Words: Copy {
    const COUNT: usize;

    /// `first`, and words that follow it in a stream.
    unsafe fn from(first: u64) -> Self;
    /// The words that follow these in a stream.
    unsafe fn next(self) -> Self;
    unsafe fn zero() -> Self;
    unsafe fn load(from: *const [u8; 8]) -> Self;
    unsafe fn store(self, to: *mut [u8; 8]);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    /// Each word, then zeros.
    unsafe fn lanes(self) -> [u64; MOST];
}

/// One word, on any processor.
impl Words for u64 {
    const COUNT: usize = 1;

    #[inline(always)]
    unsafe fn from(first: u64) -> u64 {
        first
    }

    #[inline(always)]
    unsafe fn next(self) -> u64 {
        self.wrapping_add(STEP)
    }

    #[inline(always)]
    unsafe fn zero() -> u64 {
        0
    }

    #[inline(always)]
    unsafe fn load(from: *const [u8; 8]) -> u64 {
        // SAFETY: the caller promises a readable word.
        u64::from_le_bytes(unsafe { from.read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut [u8; 8]) {
        // SAFETY: the caller promises a writable word.
        unsafe { to.write(self.to_le_bytes()) };
    }

    #[inline(always)]
    unsafe fn xor(self, other: u64) -> u64 {
        self ^ other
    }

    #[inline(always)]
    unsafe fn or(self, other: u64) -> u64 {
        self | other
    }

    #[inline(always)]
    unsafe fn lanes(self) -> [u64; MOST] {
        [self, 0, 0, 0, 0, 0, 0, 0]
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_add_epi64, _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi64x,
        _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256, _mm512_add_epi64, _mm512_loadu_si512,
        _mm512_or_si512, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_xor_si512,
    };

    use super::{MOST, STEP, Words};

    /// The steps from the first word to each.
    const STEPS: [u64; MOST] = {
        let (mut steps, mut at) = ([0; MOST], 1);
        while at < MOST {
            steps[at] = STEP.wrapping_mul(at as u64);
            at += 1;
        }
        steps
    };

    /// Defines a vector type with these instructions.
    macro_rules! vector {
        ($(#[$doc:meta])* $name:ident($register:ty), $count:literal, $add:ident, $load:ident, $or:ident, $splat:ident,
         $zero:ident, $store:ident, $xor:ident) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $name($register);

            impl Words for $name {
                const COUNT: usize = $count;

                #[inline(always)]
                unsafe fn from(first: u64) -> $name {
                    // SAFETY: the caller promises the instructions, and `STEPS` has at least as many words.
                    unsafe { $name($add($splat(first.cast_signed()), $load(STEPS.as_ptr().cast()))) }
                }

                #[inline(always)]
                unsafe fn next(self) -> $name {
                    // SAFETY: the caller promises the instructions.
                    unsafe { $name($add(self.0, $splat(STEP.wrapping_mul($count).cast_signed()))) }
                }

                #[inline(always)]
                unsafe fn zero() -> $name {
                    // SAFETY: the caller promises the instructions.
                    unsafe { $name($zero()) }
                }

                #[inline(always)]
                unsafe fn load(from: *const [u8; 8]) -> $name {
                    // SAFETY: the caller promises the instructions and as many readable words.
                    unsafe { $name($load(from.cast())) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut [u8; 8]) {
                    // SAFETY: the caller promises the instructions and as many writable words.
                    unsafe { $store(to.cast(), self.0) };
                }

                #[inline(always)]
                unsafe fn xor(self, other: $name) -> $name {
                    // SAFETY: the caller promises the instructions.
                    unsafe { $name($xor(self.0, other.0)) }
                }

                #[inline(always)]
                unsafe fn or(self, other: $name) -> $name {
                    // SAFETY: the caller promises the instructions.
                    unsafe { $name($or(self.0, other.0)) }
                }

                #[inline(always)]
                unsafe fn lanes(self) -> [u64; MOST] {
                    let mut lanes = [0; MOST];
                    // SAFETY: the caller promises the instructions, and `lanes` has at least as many words.
                    unsafe { self.store(lanes.as_mut_ptr().cast()) };
                    lanes
                }
            }
        };
    }

    vector! {
        /// Four words.
        Avx2(__m256i), 4, _mm256_add_epi64, _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi64x,
        _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256
    }

    vector! {
        /// Eight words.
        Avx512(__m512i), 8, _mm512_add_epi64, _mm512_loadu_si512, _mm512_or_si512, _mm512_set1_epi64,
        _mm512_setzero_si512, _mm512_storeu_si512, _mm512_xor_si512
    }
}
