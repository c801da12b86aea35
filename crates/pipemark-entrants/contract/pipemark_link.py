"""One end of a link that pipemark measures. docs/outside-links.md describes the contract, version 1.

The content is generated and checked by pipemark_link.c, compiled as a shared library, whose path is in the environment
variable PIPEMARK_LIBRARY."""

import ctypes
import os


class _Fields(ctypes.Structure):
    _fields_ = [
        ("block", ctypes.c_size_t),
        ("round_trips", ctypes.c_bool),
        ("sender", ctypes.c_bool),
        ("index", ctypes.c_uint),
        ("last", ctypes.c_bool),
        ("senders", ctypes.c_uint),
        ("receivers", ctypes.c_uint),
        ("wait", ctypes.c_char * 8),
        ("directory", ctypes.c_char * 256),
        ("name", ctypes.c_char * 64),
    ]


def _library():
    library = ctypes.CDLL(os.environ["PIPEMARK_LIBRARY"])
    library.pm_new.restype = ctypes.POINTER(_Fields)
    library.pm_option.restype = ctypes.c_char_p
    library.pm_next_block.restype = ctypes.c_void_p
    library.pm_check.restype = ctypes.c_bool
    library.pm_check.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return library


class Link:
    """An end. `role` is None, except in a program of both ends, where it is "sender0" or "receiver0"."""

    def __init__(self, role=None):
        self._library = _library()
        fields = self._library.pm_new(role.encode() if role else None)
        self._link = ctypes.cast(fields, ctypes.c_void_p)
        self._fields = fields.contents
        for name in ("block", "round_trips", "sender", "index", "senders", "receivers", "wait", "directory", "name"):
            value = getattr(self._fields, name)
            setattr(self, name, value.decode() if isinstance(value, bytes) else value)
        self._next = self._library.pm_next_block
        self._next.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._check = self._library.pm_check
        self._view = None

    def option(self, name, otherwise=None):
        """The value of an option of the link."""
        value = self._library.pm_option(self._link, name.encode(), None)
        return value.decode() if value else otherwise

    def bound(self):
        """Says that this end exists, so that the other may connect to it."""
        self._library.pm_bound(self._link)

    def ready(self):
        """Says that this end is connected, and waits until all ends are."""
        self._library.pm_ready(self._link)

    def last(self):
        """Whether next has returned the end of the stream, which gets no reply."""
        return self._fields.last

    def next(self):
        """The next block to send or to return, as a memoryview that is valid until the next call; None at the end."""
        address = self._next(self._link, None)
        if address is None:
            return None
        if self._view is None:
            self._view = memoryview((ctypes.c_char * self.block).from_address(address)).cast("B")
        return self._view

    def fill(self, room):
        """As next, but writes the block into `room`, a writable buffer. Returns False at the end."""
        return self._next(self._link, ctypes.addressof(ctypes.c_char.from_buffer(room))) is not None

    def received(self, data):
        """Checks and counts a message, or any piece of a byte stream. False at the end of a stream of messages."""
        if isinstance(data, bytes):
            return self._check(self._link, data, len(data))
        return self._check(self._link, ctypes.addressof(ctypes.c_char.from_buffer(data)), len(data))

    def done(self):
        """Reports the results, and waits until all ends have. The sender of a byte stream closes its end before."""
        self._library.pm_done(self._link)
