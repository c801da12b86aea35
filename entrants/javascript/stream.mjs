// Shared by both programs: the options, the blocks, the sums of a block and the result line.
// Each program moves and checks bytes in its own way. See ../README.md.

import { parseArgs } from 'node:util';

const FACTOR = 0x9e3779b97f4a7c15n;
const STAMP_SIZE = 8;

export function parseOptions() {
  const { values } = parseArgs({
    options: {
      bytes: { type: 'string' },
      block: { type: 'string' },
      pattern: { type: 'string', default: 'position' },
      seed: { type: 'string', default: '0' },
      flip: { type: 'string' },
      child: { type: 'boolean', default: false },
    },
  });
  const options = {
    bytes: wholeNumber('bytes', values.bytes),
    block: wholeNumber('block', values.block),
    document: values.pattern === 'document',
    seed: wholeNumber('seed', values.seed),
    flip: values.flip === undefined ? -1 : wholeNumber('flip', values.flip),
    child: values.child,
  };
  if (options.block < 1) throw new Error('--block must be at least 1');
  if (!options.document && values.pattern !== 'position') throw new Error('--pattern must be position or document');
  return options;
}

function wholeNumber(name, text) {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} must be a whole number, not "${text}"`);
  return value;
}

/** The blocks of a stream, which use one buffer in turn. */
export class Blocks {
  #options;
  #stamp;
  #buffer;

  constructor(options) {
    this.#options = options;
    this.#buffer = Buffer.alloc(options.block);
    this.#stamp = Math.min(STAMP_SIZE, options.block);
    let x = options.seed;
    for (let i = 0; i < options.block; i++) {
      x = (Math.imul(x, 1664525) + 1013904223) | 0;
      this.#buffer[i] = options.document ? i : x >>> 24;
    }
    this.expect(0);
  }

  /** The whole block with this number; valid until the next call. */
  expect(number) {
    if (!this.#options.document) {
      for (let i = 0, rest = number; i < this.#stamp; i++, rest = Math.floor(rest / 256)) this.#buffer[i] = rest % 256;
    }
    return this.#buffer;
  }

  /** Yields every block to send. Each is valid until the next one. */
  *send() {
    const { bytes, block, flip } = this.#options;
    for (let offset = 0, number = 0; offset < bytes; offset += block, number++) {
      const whole = this.expect(number);
      const part = bytes - offset < block ? whole.subarray(0, bytes - offset) : whole;
      const flipped = flip >= offset && flip < offset + part.length;
      if (flipped) part[flip - offset] ^= 0xff;
      yield part;
      if (flipped) part[flip - offset] ^= 0xff;
    }
  }
}

/** The two running sums over a block's little-endian 32-bit words. */
export function sums(block) {
  let a = 0;
  let b = 0;
  const whole = block.length - (block.length % 4);
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  for (let i = 0; i < whole; i += 4) {
    a = (a + view.getInt32(i, true)) | 0;
    b = (b + a) | 0;
  }
  if (whole < block.length) {
    a = (a + block.readUIntLE(whole, block.length - whole)) | 0;
    b = (b + a) | 0;
  }
  return [a, b];
}

export function xor(block) {
  let x = 0;
  for (let i = 0; i < block.length; i++) x ^= block[i];
  return x;
}

/** The checksum with a block's sums added to it. */
export function fold(checksum, a, b) {
  const sums = (BigInt(b >>> 0) << 32n) | BigInt(a >>> 0);
  return BigInt.asUintN(64, checksum * FACTOR + sums);
}

/** The line that the child sends to its parent. The capacity is null if unknown. */
export function answerLine(bytes, checksum, capacity) {
  return JSON.stringify({ bytes, checksum: checksum.toString(16).padStart(16, '0'), capacity }) + '\n';
}

/** Prints the result line that the contract requires. */
export function report(line, ns) {
  const result = { language: 'JavaScript', runtime: `Node.js ${process.versions.node}`, ...JSON.parse(line) };
  console.log(JSON.stringify({ ...result, ns: Number(ns) }));
}
