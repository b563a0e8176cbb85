"""A web server with one disk on it, which sends it or never comes to its end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.kit.processes.terminal import IMAGES

_PARTITION = bytes([0x80, 0, 2, 0, 0x83, 0, 5, 0]) + (1).to_bytes(4, "little") + (4).to_bytes(4, "little")
DISK = bytes(446) + _PARTITION + bytes(48) + b"\x55\xaa" + bytes(2048)
"""A raw disk with a master boot record, which OpenStack looks at as well."""


@contextmanager
def images() -> Iterator[str]:
    """Give the address of a server: `/disk.raw` is a disk, `/slow.raw` one that does not end while the block runs."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_whole = "Range" not in self.headers
            self.send_response(200)
            self.send_header("Content-Length", str(len(DISK)))
            self.end_headers()
            if self.path == "/slow.raw" and is_whole:
                self.wfile.write(DISK[:512])
                over.wait()
                return
            self.wfile.write(DISK)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((IMAGES, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://{IMAGES}:{server.server_port}"
        finally:
            over.set()
            server.shutdown()
            thread.join()
