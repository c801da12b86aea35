"""Both ends of a link without a transfer: the sender drops its blocks, and the receiver has one block to check."""

from pipemark_link import Link

link = Link()
link.ready()
block = link.next()
if link.sender:
    while link.next() is not None:
        pass
else:
    while link.received(block):
        pass
link.done()
