// Both ends of the channel between a Node process, the sender, and the child that it forks. The child and the parent
// send a message when the one before it has been written, as the documentation of `send` advises.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const { Link } = await import(`${process.env.PIPEMARK_CONTRACT}/pipemark_link.mjs`);
const isReceiver = process.argv[2] === "receiver";

// Sends a copy of the block, because the serializer may keep a reference to it.
const send = (to, block) => new Promise((sent) => to.send(block, sent));

if (isReceiver) {
  const link = new Link("receiver0");
  const arrived = [];
  let more = () => {};
  process.on("message", (message) => (arrived.push(message), more()));
  link.ready();
  for (;;) {
    if (arrived.length === 0) await new Promise((wake) => (more = wake));
    const message = arrived.shift();
    if (message === undefined) continue;
    if (!link.received(message)) break;
    if (link.roundTrips) await send(process, link.next());
  }
  link.done();
  process.disconnect();
} else {
  const child = fork(fileURLToPath(import.meta.url), ["receiver"], { serialization: "advanced" });
  child.on("exit", (code) => code !== 0 && process.exit(1));
  const link = new Link("sender0");
  let reply = () => {};
  child.on("message", (message) => reply(message));
  link.ready();
  for (;;) {
    if (link.roundTrips) await link.due();
    const block = link.next();
    if (block === null) break;
    const answered = link.roundTrips && !link.last ? new Promise((wake) => (reply = wake)) : null;
    await send(child, block);
    if (answered) link.received(await answered);
  }
  link.done();
}
