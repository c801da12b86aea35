// One end of a link that pipemark measures, in JavaScript for Node. docs/outside-links.md describes the contract, version 1.

import { execFileSync } from "node:child_process";
import fs from "node:fs";

const STEP = 0x9e3779b97f4a7c15n; // between two words of the content
const STEP_INVERSE = 0xf1de83e19937733dn; // modulo 2^64
const END = 1n << 63n; // added to the seed for the block that ends a stream
const word = (number) => BigInt.asUintN(64, number);
const now = () => process.hrtime.bigint();

export class Link {
  #in;
  #out;
  #text = "";
  #given = Object.create(null);
  #options = new Map();
  #count = { sent: 0, received: 0, written: 0, checked: 0, wrong: 0, found: 0, size: 0, moved: 0, calls: 0 };
  #next = 0; // number of the next block to send
  #seen = 0; // number of the block that is expected
  #offset = 0;
  #clock = { calls: 0, bytes: 0 };
  #trips = new Map();
  #ceiling = 0;

  // Reads the assignment. The role names the end in a program that is both ends, such as "receiver0".
  constructor(role = process.env.PIPEMARK_ROLE) {
    const directory = process.env.PIPEMARK_LINK;
    this.#in = fs.openSync(`${directory}/${role}.in`, "r");
    this.#out = fs.openSync(`${directory}/${role}.out`, "w");
    for (let line; (line = this.#line()) !== ""; ) {
      const [, key, value] = line.match(/^(\S+) (.*)$/);
      if (key === "option") this.#options.set(...value.split(" "));
      else this.#given[key] = value;
    }
    const given = this.#given;
    Object.assign(this, { block: Number(given.block), sender: given.role === "sender", last: false });
    Object.assign(this, { roundTrips: given.mode === "round-trips", index: Number(given.index) });
    Object.assign(this, { wait: given.wait, directory: given.directory, name: given.name });
    if (given.senders !== "1") throw new Error("not supported by this module");
    this.fresh = given.content === "fresh";
    const [there, back] = [BigInt(given.seed), BigInt(given.seed) + (1n << 32n)];
    this.seeds = given.transfer === "none" ? [there, there] : this.sender ? [there, back] : [back, there]; // own, other's
    this.blocks = [Buffer.alloc(this.block + 8), Buffer.alloc(this.block + 8)]; // to send, and expected
    if (given.cpu) execFileSync("taskset", ["-acp", given.cpu, `${process.pid}`]); // Node has no call for it
    this.fault = given.fault?.split(" ");
    this.pace = { interval: Number(given.interval ?? 0) / 1000, gap: Number(given.gap ?? 0), nth: 0, started: 0n };
  }

  option(name, otherwise) {
    return this.#options.get(name) ?? otherwise;
  }

  // Says that this end exists, so that the other may connect to it.
  bound() {
    fs.writeSync(this.#out, "bound\n");
  }

  // Says that this end is connected, and waits until all ends are.
  ready() {
    this.#fill(0, this.seeds[0], 0);
    this.#fill(1, this.seeds[1], 0);
    if (this.fresh && !this.roundTrips) this.#measureCeiling();
    fs.writeSync(this.#out, "ready\n");
    const [, from, until] = this.#line().split(" ");
    Object.assign(this, { from: BigInt(from), until: BigInt(until) });
  }

  // The next block to send or to return, valid until the next call; null once all have been sent.
  next() {
    if (this.over) return null;
    if (this.sender && !this.roundTrips && this.#next > 0) this.#moved(this.block);
    if (this.sender && this.ended) return this.#end();
    const n = this.#next++;
    const [kind, at] = [this.fault?.[0], Number(this.fault?.[1])];
    let content = this.fresh && this.#given.transfer === "bytes" ? n : 0;
    if (kind === "drop" && n >= at) content = n + 1;
    if (kind === "repeat" && n > at) content = n - 1;
    if (kind === "reorder" && (n === at || n === at + 1)) content = 2 * at + 1 - n;
    this.#count.sent += 1 + (kind === "drop" && n === at) - (kind === "repeat" && n === at + 1);
    if (this.fresh) {
      this.#fill(0, this.seeds[0], content);
      this.#count.written += this.block;
    }
    const block = this.blocks[0].subarray(0, this.block);
    if (kind === "flip" && n === at) block[this.block >> 1] ^= 1;
    if (this.sender && this.roundTrips && this.pace.started === 0n) this.pace.started = now();
    return block;
  }

  // In round trips, waits until the next one is due; without a pace it returns at once.
  async due() {
    const { interval, gap } = this.pace;
    if (gap > 0 || (interval > 0 && this.begun)) {
      const due = gap > 0 ? now() + BigInt(gap) : this.begun + BigInt(Math.round(interval * ++this.pace.nth));
      const milliseconds = Number(due - now()) / 1e6 - 1.5; // a timer may fire a millisecond late
      if (milliseconds > 0) await new Promise((wake) => setTimeout(wake, milliseconds));
      while (now() < due);
      this.pace.started = due;
    }
  }

  // Checks and counts a message, or any piece of a byte stream. False at the end of a stream of messages.
  received(data) {
    const arrived = this.sender ? now() : 0n;
    const messages = this.#given.boundaries === "kept";
    if (messages && data.length !== this.block && this.#count.wrong === 0) {
      Object.assign(this.#count, { wrong: this.#seen + 1, size: data.length + 1 });
    }
    for (let from = 0; from < data.length; ) {
      const part = Math.min(this.block - this.#offset, data.length - from);
      const first = messages && part >= 8 ? data.readBigUInt64LE(from) : 0n;
      if (messages && first === word(this.seeds[1] + END) && part === this.block) return false;
      if (this.#given.check === "all" || !this.begun) this.#check(data, from, part);
      this.#offset = (this.#offset + part) % this.block;
      if (this.#offset === 0 && this.#given.transfer === "bytes") {
        this.#seen++;
        if (this.fresh) this.#fill(1, this.seeds[1], this.#seen);
      }
      from += part;
    }
    this.#count.received += data.length;
    if (this.sender && this.roundTrips) {
      const trip = Number(arrived - this.pace.started);
      const bucket = trip < 2048 ? trip : Math.round(trip / 2 ** (Math.floor(Math.log2(trip)) - 10)) * 2 ** (Math.floor(Math.log2(trip)) - 10);
      if (this.begun && !this.ended) this.#trips.set(bucket, (this.#trips.get(bucket) ?? 0) + 1);
      this.pace.started = arrived;
    }
    this.#moved(data.length, arrived);
    return !(this.#given.transfer === "none" && this.ended);
  }

  // Reports the results, and waits until all ends have. The sender of a byte stream closes its end before.
  done() {
    if (this.begun && !this.ended) this.#edge(now());
    const [before, after] = [this.before, this.after];
    const used = (key) => (after?.[key] ?? 0) - (before?.[key] ?? 0);
    const { moved, calls, ...count } = this.#count;
    const lines = { ...count, bytes: this.bytes ?? 0, calls: this.callsInWindow ?? 0, ns: this.ended ? this.ended - this.begun : 0 };
    Object.assign(lines, { "user-ns": used("userCPUTime") * 1000, "system-ns": used("systemCPUTime") * 1000 });
    Object.assign(lines, { voluntary: used("voluntaryContextSwitches"), involuntary: used("involuntaryContextSwitches") });
    const peak = fs.readFileSync("/proc/self/status", "latin1").match(/VmHWM:\s*(\d+)/);
    Object.assign(lines, { "max-rss": Number(peak?.[1] ?? 0) * 1024 });
    if (this.#ceiling > 0) lines.ceiling = Math.round(this.#ceiling);
    if (this.pace.interval > 0) lines.due = Math.floor(Number(lines.ns) / this.pace.interval);
    const text = Object.entries(lines).map(([key, value]) => `${key} ${value}\n`);
    for (const [ns, times] of this.#trips) text.push(`trip ${ns} ${times}\n`);
    for (let all = Buffer.from(text.join("") + "end\n"); all.length > 0; ) all = all.subarray(fs.writeSync(this.#out, all));
    this.#line();
  }

  #line() {
    const piece = Buffer.alloc(4096);
    let end;
    while ((end = this.#text.indexOf("\n")) < 0) {
      const count = fs.readSync(this.#in, piece);
      if (count === 0) process.exit(1); // pipemark has ended
      this.#text += piece.toString("latin1", 0, count);
    }
    const line = this.#text.slice(0, end);
    this.#text = this.#text.slice(end + 1);
    return line;
  }

  #fill(which, seed, n) {
    const words = Math.ceil(this.block / 8);
    const to = new Uint32Array(this.blocks[which].buffer, this.blocks[which].byteOffset, 2 * words);
    const first = word(seed + BigInt(n) * BigInt(words) * STEP);
    const [stepLow, stepHigh] = [Number(STEP & 0xffffffffn), Number(STEP >> 32n)];
    let [low, high] = [Number(first & 0xffffffffn), Number(first >> 32n)];
    for (let i = 0; i < 2 * words; i += 2) {
      to[i] = low;
      to[i + 1] = high;
      low += stepLow;
      high = (high + stepHigh + (low > 0xffffffff ? 1 : 0)) >>> 0;
      low >>>= 0;
    }
  }

  // The bytes per second that this end can make, or compare, without a transfer. The first calls are interpreted.
  #measureCeiling() {
    const expected = Buffer.from(this.blocks[1].subarray(0, this.block));
    for (let batch = 0; batch < 30; batch++) {
      const begin = now();
      let rounds = 0;
      for (; now() - begin < 5_000_000n; rounds++) {
        this.#fill(this.sender ? 0 : 1, this.seeds[this.sender ? 0 : 1], 0);
        if (!this.sender && expected.compare(this.blocks[1], 0, this.block) !== 0) throw new Error("not equal");
      }
      this.#ceiling = Math.max(this.#ceiling, (rounds * this.block * 1e9) / Number(now() - begin));
    }
  }

  #check(data, from, part) {
    const expected = this.blocks[1];
    if (expected.compare(data, from, from + part, this.#offset, this.#offset + part) === 0) {
      this.#count.checked += part;
    } else if (this.#count.wrong === 0) {
      this.#count.wrong = this.#seen + 1;
      const words = BigInt(Math.ceil(this.block / 8));
      const index = part >= 8 ? word((data.readBigUInt64LE(from) - this.seeds[1]) * STEP_INVERSE) : 1n;
      if (part === this.block && index % words === 0n && index < 1n << 50n) this.#count.found = Number(index / words) + 1;
    }
  }

  // Counts what was moved, and reads the clock, but not for each small block.
  #moved(bytes, at = 0n) {
    this.#count.moved += bytes;
    this.#count.calls++;
    this.#clock.bytes += bytes;
    if (at === 0n && ++this.#clock.calls < 16 && this.#clock.bytes < 65536) return;
    this.#clock = { calls: 0, bytes: 0 };
    at = at === 0n ? now() : at;
    if ((!this.begun && at >= this.from) || (this.begun && !this.ended && at >= this.until)) this.#edge(at);
  }

  #edge(at) {
    const { moved, calls } = this.#count;
    if (!this.begun) Object.assign(this, { begun: at, before: process.resourceUsage(), bytes: moved, callsInWindow: calls });
    else Object.assign(this, { ended: at, after: process.resourceUsage(), bytes: moved - this.bytes, callsInWindow: calls - this.callsInWindow });
  }

  #end() {
    this.over = true;
    if (this.#given.boundaries !== "kept" || this.#given.transfer === "none") return null;
    this.last = true;
    this.#fill(0, word(this.seeds[0] + END), 0);
    return this.blocks[0].subarray(0, this.block);
  }
}
