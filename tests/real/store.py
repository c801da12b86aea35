#!/usr/bin/env python3
"""A slow object store: store.py PORT FILE RATE [PART PAUSE].

Serves FILE and ranges of it at RATE MiB/s per connection. Accepts uploads, but stops reading for PAUSE seconds after each PART
MiB."""

import http.server
import os
import re
import sys
import time

PORT, FILE, RATE = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
PART, PAUSE = (int(sys.argv[4]) << 20, float(sys.argv[5])) if sys.argv[5:] else (0, 0)


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = os.path.getsize(FILE)
        wanted = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin, end = 0, size
        if wanted:
            begin, end = int(wanted[1]), min(size, int(wanted[2]) + 1 if wanted[2] else size)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        start = time.monotonic()
        with open(FILE, "rb") as file:
            file.seek(begin)
            for at in range(begin, end, 65536):
                self.wfile.write(file.read(min(65536, end - at)))
                time.sleep(max(0, start + (at - begin) / RATE / (1 << 20) - time.monotonic()))

    def do_PUT(self):
        got = 0
        while block := self.chunk():
            if PART and (got + len(block)) // PART > got // PART:
                time.sleep(PAUSE)
            got += len(block)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def chunk(self):
        if "Content-Length" in self.headers:
            return None
        size = int(self.rfile.readline(), 16)
        block = self.rfile.read(size)
        self.rfile.readline()
        return block

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", str(os.path.getsize(FILE)))
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Store).serve_forever()
