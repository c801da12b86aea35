"""Both ends of a link of Python's multiprocessing. The sender is the parent of the receiver.

pipe: Connection.send_bytes and recv_bytes. queue: a Queue of bytes. shm: one block of memory with two
semaphores, as a producer and a consumer use it."""

import multiprocessing
import sys
from multiprocessing import shared_memory

from pipemark_link import Link


class Pipe:
    """One way; Connection objects copy what is sent."""

    def __init__(self, _block, _name):
        self.reader, self.writer = multiprocessing.Pipe(duplex=False)

    def send(self, block):
        self.writer.send_bytes(block)

    def receive(self, link):
        return link.received(self.reader.recv_bytes())


class Queue:
    def __init__(self, block, _name):
        self.queue = multiprocessing.Queue(max(2, min(1000, (64 << 20) // block)))

    def send(self, block):
        self.queue.put(bytes(block))

    def receive(self, link):
        return link.received(self.queue.get())


class SharedMemory:
    def __init__(self, block, name):
        self.memory = shared_memory.SharedMemory(name=name, create=True, size=block)
        self.block = block
        self.free, self.full = multiprocessing.Semaphore(1), multiprocessing.Semaphore(0)

    def send(self, block):
        self.free.acquire()
        self.memory.buf[: self.block] = block
        self.full.release()

    def receive(self, link):
        self.full.acquire()
        with memoryview(self.memory.buf)[: self.block] as data:
            more = link.received(data)
        self.free.release()
        return more


def receive(there, back):
    link = Link("receiver0")
    link.ready()
    while there.receive(link):
        if link.round_trips:
            back.send(link.next())
    link.done()


def main():
    multiprocessing.set_start_method("fork")
    link = Link("sender0")
    kind = {"pipe": Pipe, "queue": Queue, "shm": SharedMemory}[link.option("kind", "pipe")]
    there, back = kind(link.block, link.name + "-there"), kind(link.block, link.name + "-back")
    child = multiprocessing.Process(target=receive, args=(there, back))
    child.start()
    link.ready()
    while (block := link.next()) is not None:
        there.send(block)
        if link.round_trips and not link.last():
            back.receive(link)
    link.done()
    child.join()
    for end in (there, back):
        if kind is SharedMemory:
            end.memory.close()
            end.memory.unlink()
    sys.exit(child.exitcode)


main()
