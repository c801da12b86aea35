//! The checksums expected in the answers of entrants, as defined in entrants/README.md. This module uses a different
//! method from the entrants, so that a mistake in one is detected by the other.

use pipemark_model::Verify;

/// The factor by which each block multiplies the checksum: 2⁶⁴ divided by the golden ratio, made odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream as defined by the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteStream {
    /// Number of bytes.
    pub bytes: u64,
    /// Bytes per block, at least 1.
    pub block: u64,
    /// The pattern. `xor` selects the contract's pattern `document`, and all other values select `position`.
    pub verify: Verify,
    /// The seed of the pattern `position`.
    pub seed: u32,
    /// The position of a byte that is inverted before it is sent, if any.
    pub flip: Option<u64>,
}

impl ByteStream {
    /// The contract's word for the pattern.
    pub fn pattern(&self) -> &'static str {
        if self.verify == Verify::Xor { "document" } else { "position" }
    }

    fn flipped_byte(&self) -> Option<u64> {
        self.flip.filter(|&flip| flip < self.bytes)
    }
}

/// The checksum of a stream.
pub fn checksum(stream: &ByteStream) -> u64 {
    match stream.verify {
        Verify::Xor => document_checksum(stream),
        _ => position_checksum(stream),
    }
}

/// The checksum of the pattern `document`. The XOR of a whole period of 256 bytes is 0, so only the remainder of a
/// block counts, and only if it occurs an odd number of times.
fn document_checksum(stream: &ByteStream) -> u64 {
    let xor = |length: u64| (0..length % 256).fold(0, |xor, byte| xor ^ byte);
    let (whole, rest) = (stream.bytes / stream.block, stream.bytes % stream.block);
    let blocks = if whole % 2 == 1 { xor(stream.block) } else { 0 };
    let flipped_byte = if stream.flipped_byte().is_some() { 0xff } else { 0 };
    blocks ^ xor(rest) ^ flipped_byte
}

/// The checksum of the pattern `position`. Whole blocks differ only in their first two words, which contain the block's
/// number. So their sums follow from the sum of a block without a number. All other blocks are summed word by word.
fn position_checksum(stream: &ByteStream) -> u64 {
    let noise = noise(stream);
    let mut unnumbered = noise.clone();
    let stamped = unnumbered.len().min(8);
    unnumbered[..stamped].fill(0);
    let (plain, words) = (block_sums(&unnumbered), stream.block.div_ceil(4) as u32);
    let mut value = 1;
    for number in 0..stream.bytes.div_ceil(stream.block) {
        let start = number * stream.block;
        let length = stream.block.min(stream.bytes - start);
        let flip = stream.flip.and_then(|flip| flip.checked_sub(start)).filter(|&at| at < length);
        let (a, b) = if flip.is_none() && length == stream.block && length >= 8 {
            let (low, high) = (number as u32, (number >> 32) as u32);
            let later = words.wrapping_mul(low).wrapping_add(words.wrapping_sub(1).wrapping_mul(high));
            (plain.0.wrapping_add(low).wrapping_add(high), plain.1.wrapping_add(later))
        } else {
            block_sums(&block(&noise[..length as usize], number, flip))
        };
        value = FACTOR.wrapping_mul(value).wrapping_add(u64::from(b) << 32 | u64::from(a));
    }
    value
}

fn noise(stream: &ByteStream) -> Vec<u8> {
    let mut state = stream.seed;
    let length = stream.block.min(stream.bytes);
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect()
}

/// A block as it is sent, with the byte at `flip` inverted.
fn block(noise: &[u8], number: u64, flip: Option<u64>) -> Vec<u8> {
    let mut block = noise.to_vec();
    let stamped = block.len().min(8);
    block[..stamped].copy_from_slice(&number.to_le_bytes()[..stamped]);
    if let Some(flip) = flip {
        block[flip as usize] ^= 0xff;
    }
    block
}

fn block_sums(block: &[u8]) -> (u32, u32) {
    let mut block_sums = (0u32, 0u32);
    for chunk in block.chunks(4) {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        block_sums.0 = block_sums.0.wrapping_add(u32::from_le_bytes(word));
        block_sums.1 = block_sums.1.wrapping_add(block_sums.0);
    }
    block_sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the checksum byte by byte, as the README defines it.
    fn plain_checksum(stream: &ByteStream) -> u64 {
        let mut value = u64::from(stream.verify != Verify::Xor);
        let mut sent = 0;
        for number in 0u64.. {
            let length = stream.block.min(stream.bytes - sent);
            if length == 0 {
                return value;
            }
            let mut state = stream.seed;
            let mut bytes: Vec<u8> = (0..length)
                .map(|i| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if stream.verify == Verify::Xor { i as u8 } else { (state >> 24) as u8 }
                })
                .collect();
            if stream.verify != Verify::Xor {
                for (byte, stamp) in bytes.iter_mut().zip(number.to_le_bytes()) {
                    *byte = stamp;
                }
            }
            if let Some(at) = stream.flip.and_then(|flip| flip.checked_sub(sent)).filter(|&at| at < length) {
                bytes[at as usize] ^= 0xff;
            }
            sent += length;
            if stream.verify == Verify::Xor {
                value = bytes.iter().fold(value, |value, byte| value ^ u64::from(*byte));
            } else {
                let (a, b) = block_sums(&bytes);
                value = value.wrapping_mul(FACTOR).wrapping_add(u64::from(b) << 32 | u64::from(a));
            }
        }
        unreachable!()
    }

    proptest! {
        #[test]
        fn checksums_are_those_of_the_contract(
            bytes in 0u64..3000,
            block in prop_oneof![1u64..20, 1u64..4000],
            seed in any::<u32>(),
            flip in prop::option::of(0u64..3500),
            verify in prop::sample::select(vec![Verify::Xor, Verify::Full]),
        ) {
            let stream = ByteStream { bytes, block, verify, seed, flip };
            prop_assert_eq!(checksum(&stream), plain_checksum(&stream));
        }
    }

    #[test]
    fn a_long_stream_has_the_checksum_of_the_plain_loop() {
        // All entrants and entrants/check.py compute this checksum.
        let stream = ByteStream { bytes: 1_000_003, block: 65_536, verify: Verify::Full, seed: 2, flip: None };
        assert_eq!(checksum(&stream), plain_checksum(&stream));
        assert_eq!(checksum(&ByteStream { bytes: 0, ..stream }), 1);
        assert_ne!(checksum(&ByteStream { flip: Some(65_540), ..stream }), checksum(&stream));
    }
}
