//! Finds which of 64 bytes equal a given byte. The vector instructions are chosen at run time.
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one SAFETY comment covers a load, a store and their addresses"
)]

use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes compared in one step: one bit each in a `u64`.
pub(super) const WORD: usize = 64;

/// The vector instructions that the engine uses. All choices give the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Simd {
    /// Eight bytes in a 64-bit register, on any processor.
    Portable,
    /// 32 bytes in an AVX2 register.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64 bytes in an AVX-512 register, with the byte comparisons of AVX-512BW.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 64 bytes in an AVX-512 register, with AVX-512BW and the byte permutations of AVX-512VBMI.
    #[cfg(target_arch = "x86_64")]
    Avx512Vbmi,
    /// Four times 16 bytes in NEON registers, which every aarch64 processor has.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// Whether [`Simd::use_portable`] was called.
static PORTABLE: AtomicBool = AtomicBool::new(false);

impl Simd {
    /// The widest instructions that this processor and the system support.
    #[inline]
    pub fn best() -> Self {
        if PORTABLE.load(Ordering::Relaxed) {
            return Self::Portable;
        }
        #[cfg(target_arch = "aarch64")]
        return Self::Neon;
        #[cfg(not(target_arch = "aarch64"))]
        Self::detected()
    }

    /// Makes [`Simd::best`] return [`Simd::Portable`] in this process from now on. Use it to check whether wide
    /// instructions cause a fault, and to measure the gain from them.
    pub fn use_portable() {
        PORTABLE.store(true, Ordering::Relaxed);
    }

    #[cfg(not(target_arch = "aarch64"))]
    #[inline]
    fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let common = is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            if common && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
                return if is_x86_feature_detected!("avx512vbmi") { Self::Avx512Vbmi } else { Self::Avx512 };
            }
            if common && is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Every level that this processor supports, up to [`Simd::best`], the widest last.
    pub fn available() -> impl Iterator<Item = Self> {
        let all = [
            Self::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vbmi,
            #[cfg(target_arch = "aarch64")]
            Self::Neon,
        ];
        let best = all.iter().position(|&level| level == Self::best()).map_or(1, |at| at + 1);
        all.into_iter().take(best)
    }
}

/// Compares and copies 64 bytes.
pub(super) trait Lanes {
    /// Whether [`Lanes::permute`] is one instruction.
    const PERMUTES: bool = false;

    /// Returns for each of `bytes` a mask of the 64 bytes at `from` that equal it. Bit 0 stands for the first byte.
    ///
    /// # Safety
    ///
    /// 64 bytes at `from` are readable, and the processor supports the instructions.
    unsafe fn equal<const N: usize>(from: *const u8, bytes: [u8; N]) -> [u64; N];

    /// Copies 64 bytes.
    ///
    /// # Safety
    ///
    /// 64 bytes at `from` are readable and 64 at `to` writable, they don't overlap, and the processor supports the
    /// instructions.
    unsafe fn copy(from: *const u8, to: *mut u8);

    /// Copies 64 bytes, with `A` to `Z` in place of `a` to `z`.
    ///
    /// # Safety
    ///
    /// As [`Lanes::copy`].
    unsafe fn upper(from: *const u8, to: *mut u8);

    /// Stores the first `AT` bytes of `before` (at most 16), then at least 16 bytes from `from`. Stores at most 32
    /// bytes in all.
    ///
    /// # Safety
    ///
    /// 32 bytes at `from` are readable and 32 at `to` writable, they don't overlap, and the processor supports the
    /// instructions.
    #[inline(always)]
    unsafe fn join<const AT: usize>(before: &[u8; 16], from: *const u8, to: *mut u8) {
        // SAFETY: the caller promises 32 readable bytes at `from` and 32 writable ones at `to` that don't overlap. `AT`
        // is at most 16, so both stores of 16 bytes end within the 32 writable bytes.
        unsafe {
            to.cast::<[u8; 16]>().write(*before);
            std::ptr::copy_nonoverlapping(from, to.add(AT), 16);
        }
    }

    /// Stores 64 bytes, one for each of `indices`. For an index below 64, stores that byte of the 64 at `from`; for any
    /// other index, the byte of `others` at `index - 64`.
    ///
    /// # Safety
    ///
    /// 64 bytes at `from` are readable and 64 at `to` writable, they don't overlap, and the processor supports the
    /// instructions.
    unsafe fn permute(from: *const u8, others: &[u8; WORD], indices: &[u8; WORD], to: *mut u8) {
        // SAFETY: the caller promises 64 readable bytes at `from`.
        let word = unsafe { &*from.cast::<[u8; WORD]>() };
        let stored = indices.map(|index| {
            let index = usize::from(index);
            if index < WORD { word[index] } else { others[index % WORD] }
        });
        // SAFETY: the caller promises 64 writable bytes at `to`.
        unsafe { to.cast::<[u8; WORD]>().write(stored) };
    }
}

/// [`Simd::Portable`].
pub(super) struct Portable;

impl Lanes for Portable {
    #[inline(always)]
    unsafe fn equal<const N: usize>(from: *const u8, bytes: [u8; N]) -> [u64; N] {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let mut masks = [0; N];
        for eight in 0..8 {
            // SAFETY: the caller promises 64 readable bytes; this reads eight of them.
            let word = u64::from_le_bytes(unsafe { from.add(8 * eight).cast::<[u8; 8]>().read() });
            for (mask, byte) in masks.iter_mut().zip(bytes) {
                let differs = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
                // Sets the top bit of each byte that is zero, and no other bit. No carry crosses from byte to byte.
                let equal = !(((differs & LOW) + LOW) | differs | LOW);
                // The multiplication collects the eight bits in the top byte.
                let gathered = (equal >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
                *mask |= gathered << (8 * eight);
            }
        }
        masks
    }

    #[inline(always)]
    unsafe fn copy(from: *const u8, to: *mut u8) {
        // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to` that don't overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, WORD) };
    }

    #[inline(always)]
    unsafe fn upper(from: *const u8, to: *mut u8) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const TOP: u64 = ONES << 7;
        for eight in 0..8 {
            // SAFETY: the caller promises 64 readable bytes; this reads eight of them.
            let word = u64::from_le_bytes(unsafe { from.add(8 * eight).cast::<[u8; 8]>().read() });
            let low = word & !TOP;
            // The top bit of each byte that is at least `a`, and of each that is greater than `z`.
            let (from_a, after_z) = (low + (0x80 - u64::from(b'a')) * ONES, low + (0x7f - u64::from(b'z')) * ONES);
            let lower = (from_a ^ after_z) & !word & TOP;
            // SAFETY: the caller promises 64 writable bytes; this writes eight of them.
            unsafe { to.add(8 * eight).cast::<[u8; 8]>().write((word ^ lower >> 2).to_le_bytes()) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512, Avx512Vbmi};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256, _mm256_castsi128_si256, _mm256_cmpeq_epi8,
        _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_mask_loadu_epi8, _mm256_movemask_epi8, _mm256_set1_epi8,
        _mm256_storeu_si256, _mm256_xor_si256, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512,
        _mm512_mask_sub_epi8, _mm512_permutex2var_epi8, _mm512_set1_epi8, _mm512_storeu_si512, _mm512_sub_epi8,
    };

    use super::{Lanes, WORD};

    /// [`Simd::Avx2`](super::Simd::Avx2).
    pub(in super::super) struct Avx2;

    impl Lanes for Avx2 {
        #[inline(always)]
        unsafe fn equal<const N: usize>(from: *const u8, bytes: [u8; N]) -> [u64; N] {
            // SAFETY: the caller promises 64 readable bytes; this loads both halves.
            let (low, high) = unsafe { (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())) };
            bytes.map(|byte| {
                // SAFETY: arithmetic on registers; the caller promises that the processor supports the instructions.
                let (low, high) = unsafe {
                    let byte = _mm256_set1_epi8(byte.cast_signed());
                    (
                        _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, byte)),
                        _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, byte)),
                    )
                };
                u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
            })
        }

        #[inline(always)]
        unsafe fn copy(from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to`; this copies both
            // halves.
            unsafe {
                let (low, high) = (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast()));
                _mm256_storeu_si256(to.cast(), low);
                _mm256_storeu_si256(to.add(32).cast(), high);
            }
        }

        #[inline(always)]
        unsafe fn upper(from: *const u8, to: *mut u8) {
            for at in [0, 32] {
                // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to`; this copies half of
                // them. Only `a` to `z` are above 101 after the addition, as signed bytes.
                unsafe {
                    let bytes = _mm256_loadu_si256(from.add(at).cast());
                    let moved = _mm256_add_epi8(bytes, _mm256_set1_epi8(0x7f - b'z'.cast_signed()));
                    let lower = _mm256_cmpgt_epi8(moved, _mm256_set1_epi8(0x7f - 26));
                    let upper = _mm256_xor_si256(bytes, _mm256_and_si256(lower, _mm256_set1_epi8(0x20)));
                    _mm256_storeu_si256(to.add(at).cast(), upper);
                }
            }
        }
    }

    /// [`Simd::Avx512`](super::Simd::Avx512).
    pub(in super::super) struct Avx512;

    impl Lanes for Avx512 {
        #[inline(always)]
        unsafe fn equal<const N: usize>(from: *const u8, bytes: [u8; N]) -> [u64; N] {
            // SAFETY: the caller promises 64 readable bytes.
            let word = unsafe { _mm512_loadu_si512(from.cast()) };
            // SAFETY: arithmetic on registers; the caller promises that the processor supports the instructions.
            bytes.map(|byte| unsafe { _mm512_cmpeq_epi8_mask(word, _mm512_set1_epi8(byte.cast_signed())) })
        }

        #[inline(always)]
        unsafe fn copy(from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to`.
            unsafe { _mm512_storeu_si512(to.cast(), _mm512_loadu_si512(from.cast())) };
        }

        #[inline(always)]
        unsafe fn upper(from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to`.
            unsafe {
                let bytes = _mm512_loadu_si512(from.cast());
                let letter = _mm512_sub_epi8(bytes, _mm512_set1_epi8(b'a'.cast_signed()));
                let lower = _mm512_cmplt_epu8_mask(letter, _mm512_set1_epi8(26));
                let upper = _mm512_mask_sub_epi8(bytes, lower, bytes, _mm512_set1_epi8(0x20));
                _mm512_storeu_si512(to.cast(), upper);
            }
        }

        #[inline(always)]
        unsafe fn join<const AT: usize>(before: &[u8; 16], from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 32 readable bytes at `from` and 32 writable ones at `to`. The mask excludes
            // the bytes before `from`, so they aren't read.
            unsafe {
                let before = _mm256_castsi128_si256(_mm_loadu_si128(before.as_ptr().cast()));
                let from = from.wrapping_sub(AT);
                _mm256_storeu_si256(to.cast(), _mm256_mask_loadu_epi8(before, u32::MAX << AT, from.cast()));
            }
        }
    }

    /// [`Simd::Avx512Vbmi`](super::Simd::Avx512Vbmi).
    pub(in super::super) struct Avx512Vbmi;

    impl Lanes for Avx512Vbmi {
        const PERMUTES: bool = true;

        #[inline(always)]
        unsafe fn equal<const N: usize>(from: *const u8, bytes: [u8; N]) -> [u64; N] {
            // SAFETY: the caller promises 64 readable bytes and a processor with AVX-512VBMI, which also has these
            // instructions.
            unsafe { Avx512::equal(from, bytes) }
        }

        #[inline(always)]
        unsafe fn copy(from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to` that don't overlap,
            // and a processor with AVX-512VBMI, which also has these instructions.
            unsafe { Avx512::copy(from, to) };
        }

        #[inline(always)]
        unsafe fn upper(from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to` that don't overlap,
            // and a processor with AVX-512VBMI, which also has these instructions.
            unsafe { Avx512::upper(from, to) };
        }

        #[inline(always)]
        unsafe fn join<const AT: usize>(before: &[u8; 16], from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 32 readable bytes at `from` and 32 writable ones at `to` that don't overlap,
            // and a processor with AVX-512VBMI, which also has these instructions.
            unsafe { Avx512::join::<AT>(before, from, to) };
        }

        #[inline(always)]
        unsafe fn permute(from: *const u8, others: &[u8; WORD], indices: &[u8; WORD], to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to`; both arrays have 64
            // bytes.
            unsafe {
                let (word, others) = (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(others.as_ptr().cast()));
                let indices = _mm512_loadu_si512(indices.as_ptr().cast());
                _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi8(word, indices, others));
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use arm::Neon;

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::{
        uint8x16_t, vandq_u8, vceqq_u8, vcltq_u8, vdupq_n_u8, veorq_u8, vgetq_lane_u64, vld1q_u8, vpaddq_u8,
        vreinterpretq_u64_u8, vst1q_u8, vsubq_u8,
    };

    use super::Lanes;

    /// [`Simd::Neon`](super::Simd::Neon).
    pub(in super::super) struct Neon;

    /// A different bit for each of eight bytes, twice.
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

    /// Loads the 64 bytes at `from`.
    ///
    /// # Safety
    ///
    /// 64 bytes at `from` are readable.
    #[inline(always)]
    unsafe fn load(from: *const u8) -> [uint8x16_t; 4] {
        // SAFETY: the caller promises 64 readable bytes; this loads four times 16 of them.
        [0, 16, 32, 48].map(|at| unsafe { vld1q_u8(from.add(at)) })
    }

    impl Lanes for Neon {
        #[inline(always)]
        unsafe fn equal<const N: usize>(from: *const u8, bytes: [u8; N]) -> [u64; N] {
            // SAFETY: the caller promises 64 readable bytes, and `BITS` has 16.
            let (word, bits) = unsafe { (load(from), vld1q_u8(BITS.as_ptr())) };
            bytes.map(|byte| {
                // SAFETY: arithmetic on registers; every aarch64 processor supports the instructions.
                unsafe {
                    let byte = vdupq_n_u8(byte);
                    // A byte that is equal keeps its bit. Adding neighbours three times collects the bits of eight
                    // bytes in one byte.
                    let [a, b, c, d] = word.map(|sixteen| vandq_u8(vceqq_u8(sixteen, byte), bits));
                    let all = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
                    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(all, all)))
                }
            })
        }

        #[inline(always)]
        unsafe fn copy(from: *const u8, to: *mut u8) {
            // SAFETY: the caller promises 64 readable bytes at `from` and 64 writable ones at `to`; this copies four
            // times 16 of them. All bytes are read before any is written.
            unsafe {
                for (sixteen, at) in load(from).into_iter().zip([0, 16, 32, 48]) {
                    vst1q_u8(to.add(at), sixteen);
                }
            }
        }

        #[inline(always)]
        unsafe fn upper(from: *const u8, to: *mut u8) {
            // SAFETY: as for `copy`.
            unsafe {
                for (sixteen, at) in load(from).into_iter().zip([0, 16, 32, 48]) {
                    let lower = vcltq_u8(vsubq_u8(sixteen, vdupq_n_u8(b'a')), vdupq_n_u8(26));
                    vst1q_u8(to.add(at), veorq_u8(sixteen, vandq_u8(lower, vdupq_n_u8(0x20))));
                }
            }
        }
    }
}

/// Calls `$function`, which is generic over [`Lanes`], as compiled for the level `$simd`. The processor must have that
/// level.
macro_rules! with_lanes {
    ($simd:expr, $function:ident$(<$life:lifetime>)?($($name:ident: $type:ty),*) -> $result:ty) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn avx2$(<$life>)?($($name: $type),*) -> $result {
            // SAFETY: the attribute makes this function's callers ensure that the processor supports the instructions.
            unsafe { $function::<$crate::lines::simd::Avx2>($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
        fn avx512$(<$life>)?($($name: $type),*) -> $result {
            // SAFETY: the attribute makes this function's callers ensure that the processor supports the instructions.
            unsafe { $function::<$crate::lines::simd::Avx512>($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
        fn avx512vbmi$(<$life>)?($($name: $type),*) -> $result {
            // SAFETY: the attribute makes this function's callers ensure that the processor supports the instructions.
            unsafe { $function::<$crate::lines::simd::Avx512Vbmi>($($name),*) }
        }
        // SAFETY: this processor has the level's instructions, so it can run the function compiled for them.
        unsafe {
            match $simd {
                Simd::Portable => $function::<$crate::lines::simd::Portable>($($name),*),
                #[cfg(target_arch = "x86_64")]
                Simd::Avx2 => avx2($($name),*),
                #[cfg(target_arch = "x86_64")]
                Simd::Avx512 => avx512($($name),*),
                #[cfg(target_arch = "x86_64")]
                Simd::Avx512Vbmi => avx512vbmi($($name),*),
                // No separate function: the whole program is compiled for NEON.
                #[cfg(target_arch = "aarch64")]
                Simd::Neon => $function::<$crate::lines::simd::Neon>($($name),*),
            }
        }
    }};
}
pub(super) use with_lanes;

/// An iterator over the positions of a given byte in `bytes`, in order.
#[derive(Debug, Clone)]
pub(super) struct Positions<'b> {
    bytes: &'b [u8],
    byte: u8,
    simd: Simd,
    /// The number of bytes compared.
    seen: usize,
    /// The matches in the last 64 of these bytes, except those already returned.
    found: u64,
}

impl<'b> Positions<'b> {
    #[inline]
    pub(super) fn new(bytes: &'b [u8], byte: u8) -> Self {
        Self::with(Simd::best(), bytes, byte)
    }

    #[inline]
    fn with(simd: Simd, bytes: &'b [u8], byte: u8) -> Self {
        Self { bytes, byte, simd, seen: 0, found: 0 }
    }

    /// Searches until a word has a match or fewer than 64 bytes are left.
    #[inline]
    fn whole_words(&mut self) {
        let (bytes, seen, byte) = (self.bytes, self.seen, self.byte);
        (self.seen, self.found) = with_lanes!(self.simd, find(bytes: &[u8], seen: usize, byte: u8) -> (usize, u64));
    }

    #[cold]
    fn last_bytes(&mut self) {
        let rest = &self.bytes[self.seen..];
        for (bit, &byte) in rest.iter().enumerate() {
            self.found |= u64::from(byte == self.byte) << bit;
        }
        // Counts the rest as a whole word, so that bit 0 is at `seen - WORD`, as for other words.
        self.seen += WORD;
    }
}

impl Iterator for Positions<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.found == 0 {
            if self.seen < self.bytes.len() {
                self.whole_words();
            }
            if self.found == 0 && self.seen < self.bytes.len() {
                self.last_bytes();
            }
            if self.found == 0 {
                return None;
            }
        }
        let bit = self.found.trailing_zeros() as usize;
        self.found &= self.found - 1;
        Some(self.seen - WORD + bit)
    }
}

/// Searches for `byte` in whole words from `seen` on. Returns how far it searched, and the matches in the last word.
///
/// # Safety
///
/// The processor has `L`'s instructions.
#[inline(always)]
unsafe fn find<L: Lanes>(bytes: &[u8], mut seen: usize, byte: u8) -> (usize, u64) {
    while bytes.len() - seen >= WORD {
        // SAFETY: 64 bytes are left from `seen` on, and the caller guarantees that the CPU supports the instructions.
        let [found] = unsafe { L::equal(bytes.as_ptr().add(seen), [byte]) };
        seen += WORD;
        if found != 0 {
            return (seen, found);
        }
    }
    (seen, 0)
}

/// Copies `bytes` to the beginning of `to`, with `A` to `Z` in place of `a` to `z`.
///
/// # Panics
///
/// If `to` is shorter.
#[inline]
pub(super) fn copy_upper(simd: Simd, bytes: &[u8], to: &mut [u8]) {
    let to = &mut to[..bytes.len()];
    let whole = bytes.len() - bytes.len() % WORD;
    with_lanes!(simd, copy_upper_words(bytes: &[u8], to: &mut [u8]) -> ());
    for (to, from) in to[whole..].iter_mut().zip(&bytes[whole..]) {
        *to = from.to_ascii_uppercase();
    }
}

/// Copies whole words, as [`copy_upper`].
///
/// # Safety
///
/// The processor has `L`'s instructions, and `to` is as long as `bytes`.
#[inline(always)]
unsafe fn copy_upper_words<L: Lanes>(bytes: &[u8], to: &mut [u8]) {
    for at in (0..bytes.len() / WORD).map(|word| word * WORD) {
        // SAFETY: both slices have 64 bytes from `at` on and don't overlap, and the caller guarantees that the CPU supports
        // the instructions.
        unsafe { L::upper(bytes.as_ptr().add(at), to.as_mut_ptr().add(at)) };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_level_changes_the_same_bytes_to_upper_case() {
        let bytes: Vec<u8> = (0..=u8::MAX).chain(0..=77).collect();
        for simd in Simd::available() {
            for from in 0..bytes.len() {
                let mut upper = vec![0; bytes.len() - from + 1];
                copy_upper(simd, &bytes[from..], &mut upper);
                assert_eq!(upper.pop(), Some(0));
                assert_eq!(upper, bytes[from..].to_ascii_uppercase(), "{simd:?} from {from}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_level_finds_what_a_plain_loop_finds(
            bytes in prop::collection::vec(prop_oneof![3 => Just(b'\n'), 1 => any::<u8>()], 0..300),
            sparse in prop::collection::vec(prop_oneof![1 => Just(b'\n'), 200 => any::<u8>()], 0..1000),
            byte in prop_oneof![Just(b'\n'), any::<u8>()],
        ) {
            for bytes in [bytes, sparse] {
                let expected: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == byte).collect();
                for simd in Simd::available() {
                    prop_assert_eq!(&Positions::with(simd, &bytes, byte).collect::<Vec<_>>(), &expected, "{:?}", simd);
                }
            }
        }
    }
}
