// Streams to a child in idiomatic JavaScript: child_process and streams.
//
// Node's "pipe" to a child is a Unix socket pair on Linux, so there is no capacity to report.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { Blocks, answerLine, fold, parseOptions, report, sums, xor } from './stream.mjs';

/** Joins chunks of any length into blocks; the last may be shorter. */
async function* blocksOf(chunks, size) {
  const block = Buffer.alloc(size);
  let have = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      const n = chunk.copy(block, have, taken);
      taken += n;
      have += n;
      if (have === size) {
        yield block;
        have = 0;
      }
    }
  }
  if (have > 0) yield block.subarray(0, have);
}

async function child(options) {
  let checksum = options.document ? 0n : 1n;
  let bytes = 0;
  process.stdout.write('ready\n');
  for await (const block of blocksOf(process.stdin, options.block)) {
    checksum = options.document ? checksum ^ BigInt(xor(block)) : fold(checksum, ...sums(block));
    bytes += block.length;
  }
  process.stdout.write(answerLine(bytes, checksum, null));
}

async function parent(options) {
  const program = fileURLToPath(import.meta.url);
  const reader = spawn(process.execPath, [program, '--child', ...process.argv.slice(2)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exit = once(reader, 'exit');
  const back = createInterface({ input: reader.stdout })[Symbol.asyncIterator]();
  const blocks = new Blocks(options);
  if ((await back.next()).value !== 'ready') throw new Error('the child ended before it was ready');

  const start = process.hrtime.bigint();
  const data = reader.stdin;
  for (const block of blocks.send()) {
    // The stream keeps a chunk until the chunk is written, so it gets a copy of the reused block.
    if (!data.write(Buffer.from(block))) await once(data, 'drain');
  }
  data.end();
  const { value: line } = await back.next();
  const ns = process.hrtime.bigint() - start;

  const [status] = await exit;
  if (status !== 0 || line === undefined) throw new Error('the child failed');
  report(line, ns);
}

const options = parseOptions();
await (options.child ? child(options) : parent(options));
