// Both ends of a link without a transfer: the sender drops its blocks, and the receiver has one block to check.

const { Link } = await import(`${process.env.PIPEMARK_CONTRACT}/pipemark_link.mjs`);

const link = new Link();
link.ready();
const block = Buffer.from(link.next());
if (link.sender) while (link.next() !== null);
else while (link.received(block));
link.done();
