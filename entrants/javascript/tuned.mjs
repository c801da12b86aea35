// The fastest JavaScript that still writes, reads and checks every byte: a real pipe of 1 MiB, synchronous reads and
// writes with one buffer each, and comparison of blocks with the expected ones.
//
// Node can't create a pipe (a child gets a socket), and can't set a capacity. So mkfifo creates the pipe and, if Perl
// is installed, a line of Perl enlarges it before the clock starts. JavaScript still moves every byte.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { Blocks, answerLine, fold, parseOptions, report, sums, xor } from './stream.mjs';

// F_SETPIPE_SZ to 1 MiB, then F_GETPIPE_SZ. If 1 MiB exceeds the user's limit, the pipe keeps its capacity.
const ENLARGE = 'fcntl(STDIN, 1031, 1 << 20); print fcntl(STDIN, 1032, 0)';

// The child's descriptors, in the order of stdio.
const DATA = 0;
const BACK = 1;

/**
 * Sums the blocks that the child receives. A loop over words is slow, so each block is compared, byte for byte, with the
 * expected one. If they are equal, their sums are too, and the sums of any block follow from those of block 0. A block
 * that differs is summed word by word. So the checksum depends only on the bytes received.
 */
class Checksum {
  #document;
  #expected;
  #words;
  #a;
  #b;
  #xor;
  #number = 0;

  constructor(options) {
    this.#document = options.document;
    this.#expected = new Blocks(options);
    this.#words = Math.ceil(options.block / 4);
    [this.#a, this.#b] = sums(this.#expected.expect(0));
    this.#xor = xor(this.#expected.expect(0));
    this.value = options.document ? 0n : 1n;
  }

  add(block) {
    const number = this.#number++;
    const equal = block.equals(this.#expected.expect(number));
    if (this.#document) {
      this.value ^= BigInt(equal ? this.#xor : xor(block));
    } else if (equal && block.length >= 8) {
      const low = number | 0;
      const high = Math.floor(number / 2 ** 32);
      const b = this.#b + Math.imul(this.#words, low) + Math.imul(this.#words - 1, high);
      this.value = fold(this.value, this.#a + low + high, b);
    } else {
      this.value = fold(this.value, ...sums(block));
    }
  }
}

/** Reads until the block is full or the stream ends. Returns the number of bytes read. */
function fill(fd, block) {
  let have = 0;
  while (have < block.length) {
    const n = fs.readSync(fd, block, have, block.length - have, null);
    if (n === 0) break;
    have += n;
  }
  return have;
}

function writeAll(fd, block) {
  for (let sent = 0; sent < block.length; ) sent += fs.writeSync(fd, block, sent, block.length - sent);
}

/** Both ends of a pipe, opened by a name that is removed before this returns. */
function openPipe() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'pipemark-'));
  try {
    const name = path.join(directory, 'pipe');
    const made = spawnSync('mkfifo', [name], { stdio: 'inherit' });
    if (made.status !== 0) throw new Error(`mkfifo ${name} failed`);
    // Opening one end waits for the other end, but opening for both reading and writing doesn't wait.
    const both = fs.openSync(name, 'r+');
    const ends = { read: fs.openSync(name, 'r'), write: fs.openSync(name, 'w') };
    fs.closeSync(both);
    return ends;
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

/** Enlarges the pipe if the system allows it. Returns the pipe's capacity, or null if unknown. */
function enlarge(fd) {
  const { status, stdout } = spawnSync('perl', ['-e', ENLARGE], { stdio: [fd, 'pipe', 'ignore'] });
  return status === 0 ? Number(stdout) : null;
}

function child(options) {
  const checksum = new Checksum(options);
  const block = Buffer.alloc(options.block);
  let bytes = 0;
  writeAll(BACK, Buffer.from('r'));
  for (let n; (n = fill(DATA, block)) > 0; bytes += n) {
    checksum.add(n === block.length ? block : block.subarray(0, n));
  }
  writeAll(BACK, Buffer.from(answerLine(bytes, checksum.value, null)));
}

async function parent(options) {
  const data = openPipe();
  const back = openPipe();
  const capacity = enlarge(data.write);
  const program = fileURLToPath(import.meta.url);
  const reader = spawn(process.execPath, [program, '--child', ...process.argv.slice(2)], {
    stdio: [data.read, back.write, 'inherit'],
  });
  const exit = once(reader, 'exit');
  fs.closeSync(data.read);
  fs.closeSync(back.write);
  const blocks = new Blocks(options);
  const answer = Buffer.alloc(256);
  if (fill(back.read, answer.subarray(0, 1)) !== 1) throw new Error('the child ended before it was ready');

  const start = process.hrtime.bigint();
  for (const block of blocks.send()) writeAll(data.write, block);
  fs.closeSync(data.write);
  const length = fill(back.read, answer);
  const ns = process.hrtime.bigint() - start;

  const [status] = await exit;
  if (status !== 0 || length === 0) throw new Error('the child failed');
  const line = JSON.stringify({ ...JSON.parse(answer.subarray(0, length)), capacity });
  report(line, ns);
}

const options = parseOptions();
await (options.child ? child(options) : parent(options));
