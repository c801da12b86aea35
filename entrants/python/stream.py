"""Shared by both programs: the options, the blocks, their checksum and the result line.

Each program moves bytes in its own way. See ../README.md for the contract.
"""

import argparse
import json
import platform
import struct
from itertools import accumulate

FACTOR = 0x9E3779B97F4A7C15
MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1
STAMP = struct.Struct("<Q")


def arguments(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--block", type=int, required=True)
    parser.add_argument("--pattern", choices=["position", "document"], default="position")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--flip", type=int, default=None)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.bytes < 0 or options.block < 1:
        parser.error("--bytes must not be negative and --block must be at least 1")
    return options


class Blocks:
    """The blocks of a stream, which use one buffer in turn."""

    def __init__(self, options):
        self.size = options.block
        self.stamped = options.pattern == "position"
        if self.stamped:
            self.buffer = bytearray(self._noise(options.seed, self.size))
        else:
            self.buffer = bytearray(i & 0xFF for i in range(self.size))

    @staticmethod
    def _noise(x, size):
        for _ in range(size):
            x = (x * 1664525 + 1013904223) & MASK32
            yield x >> 24

    def stamp(self, number):
        """Fills the buffer with block `number`."""
        if not self.stamped:
            return
        if self.size >= STAMP.size:
            STAMP.pack_into(self.buffer, 0, number)
        else:
            self.buffer[:] = STAMP.pack(number)[: self.size]


class Source(Blocks):
    """The blocks that the parent sends."""

    def __init__(self, options):
        super().__init__(options)
        self.bytes = options.bytes
        self.flip = options.flip

    def __iter__(self):
        """Yields each block as a view. A view is valid until the next block."""
        whole = memoryview(self.buffer)
        flip_number, flip_index = (-1, 0) if self.flip is None else divmod(self.flip, self.size)
        for number in range(-(-self.bytes // self.size)):
            self.stamp(number)
            length = min(self.size, self.bytes - number * self.size)
            if number == flip_number:
                self.buffer[flip_index] ^= 0xFF
                yield whole[:length]
                self.buffer[flip_index] ^= 0xFF
            else:
                yield whole[:length]


class Checksum:
    """The checksum of the blocks that the child receives.

    In Python, a loop over words takes about a hundred times as long as a comparison of bytes. So each
    block is compared, byte for byte, with the expected block. If the blocks are equal, so are their
    sums, and the sums of any expected block follow from those of block 0. A block that differs is
    summed word by word. So the checksum depends only on the bytes received.
    """

    def __init__(self, options):
        self.expected = Blocks(options)
        self.number = 0
        self.bytes = 0
        if self.expected.stamped:
            self.value = 1
            self.expected.stamp(0)
            self.words = -(-options.block // 4)
            self.sum_a, self.sum_b = sums(self.expected.buffer)
        else:
            self.value = 0
            self.xor = xor(self.expected.buffer)

    def add(self, block):
        size = len(block)
        self.bytes += size
        if self.expected.stamped:
            self._add_word_sums(block, size)
        elif self.expected.buffer == block:
            self.value ^= self.xor
        else:
            self.value ^= xor(block)

    def _add_word_sums(self, block, size):
        number = self.number
        self.number += 1
        self.expected.stamp(number)
        if size >= STAMP.size and self.expected.buffer == block:
            low, high = number & MASK32, number >> 32
            a = (self.sum_a + low + high) & MASK32
            b = (self.sum_b + self.words * low + (self.words - 1) * high) & MASK32
        else:
            a, b = sums(block)
        self.value = (self.value * FACTOR + (b << 32 | a)) & MASK64


def sums(block):
    """The two running sums over the block's little-endian 32-bit words."""
    padded = bytes(block) + bytes(-len(block) % 4)
    words = struct.unpack(f"<{len(padded) // 4}I", padded)
    return sum(words) & MASK32, sum(accumulate(words)) & MASK32


def xor(block):
    """The exclusive or of all bytes, by folding one large number in halves."""
    value = int.from_bytes(block, "little")
    width = max(8, 1 << (8 * len(block) - 1).bit_length())
    while width > 8:
        width //= 2
        value = (value >> width) ^ (value & ((1 << width) - 1))
    return value


def report(options, answer, ns):
    """Prints the result line that the contract requires."""
    if answer["bytes"] != options.bytes:
        raise SystemExit(f"the child got {answer['bytes']} of {options.bytes} bytes")
    runtime = f"{platform.python_implementation()} {platform.python_version()}"
    print(json.dumps({"language": "Python", "runtime": runtime, "ns": ns, **answer}))
