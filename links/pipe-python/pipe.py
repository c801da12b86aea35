"""Both ends of a named pipe, or of two for round trips."""

import os

from pipemark_link import Link

link = Link()
there, back = f"{link.directory}/there", f"{link.directory}/back"
if not link.sender:
    os.mkfifo(there)
    os.mkfifo(back)
link.bound()
there = open(there, "wb" if link.sender else "rb", buffering=0)
back = open(back, "rb" if link.sender else "wb", buffering=0) if link.round_trips else None
room = bytearray(link.block)


def read_block(file):
    """Reads a whole block into `room`; less at the end."""
    done = 0
    while done < link.block and (got := file.readinto(memoryview(room)[done:])):
        done += got
    return done


def write_block(file, block):
    done = 0
    while done < link.block:
        done += file.write(block[done:])


link.ready()
if link.sender:
    while (block := link.next()) is not None:
        write_block(there, block)
        if link.round_trips and read_block(back):
            link.received(room)
    there.close()
elif link.round_trips:
    while read_block(there):
        link.received(room)
        write_block(back, link.next())
else:
    while got := there.readinto(room):
        link.received(memoryview(room)[:got])
link.done()
