"""Serves one trace on this machine to the Perfetto UI, which then shows it without uploading it.

The UI may fetch from port 9001 of the own machine only: its content security policy allows
http://127.0.0.1:9001 beside its own address (perfetto.dev, "Deep linking to the Perfetto UI").
"""

from __future__ import annotations

import secrets
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from shutil import copyfileobj
from urllib.parse import quote

from nsysmap.core.errors import NsysmapError, no_such_file

UI = "https://ui.perfetto.dev"
PORT = 9001  # the only one from which Perfetto's own policy lets its page load a trace


class TraceServer(HTTPServer):
    """Answers requests for one file, at an address that cannot be guessed, until it was fetched."""

    allow_reuse_address = True
    timeout = 1.0  # seconds for which one call of handle_request waits

    def __init__(self, path: Path, port: int | None = None) -> None:
        """Listens on the loopback address only, at PORT unless another one is given.

        Raises NsysmapError if the file is not there, or the port is taken.
        """
        if not path.is_file():
            raise no_such_file(path)
        port = PORT if port is None else port
        self.path = path
        self.fetched = False
        self.address = f"/{secrets.token_urlsafe(16)}/{quote(path.name, safe='')}"
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError:
            raise NsysmapError(
                f"127.0.0.1:{port}",
                "is in use by another program, and the Perfetto UI fetches from no other port",
                f"end that program, or open {UI} and drop the file on it",
            ) from None

    @property
    def link(self) -> str:
        """The address at which the Perfetto UI fetches and shows the file."""
        return f"{UI}/#!/?url=http://127.0.0.1:{self.server_address[1]}{self.address}"

    def serve(self, limit_s: float) -> bool:
        """Answers until the file was fetched; False if nobody did so within this time."""
        end = time.monotonic() + limit_s
        while not self.fetched and time.monotonic() < end:
            self.handle_request()
        return self.fetched


class _Handler(BaseHTTPRequestHandler):
    server: TraceServer

    def do_GET(self) -> None:  # the name is http.server's
        """Sends the file to who knows its address."""
        if self.path != self.server.address:
            self.send_error(404)
            return
        with self.server.path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            self.send_response(200)
            self._allow_the_ui()
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()
            copyfileobj(file, self.wfile)
        self.server.fetched = True

    def do_OPTIONS(self) -> None:  # the name is http.server's
        """Browsers ask first whether a page from elsewhere may fetch from this machine."""
        self.send_response(204)
        self._allow_the_ui()
        self.send_header("Access-Control-Allow-Private-Network", "true")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _allow_the_ui(self) -> None:
        self.send_header("Access-Control-Allow-Origin", UI)
        self.send_header("Cache-Control", "no-store")

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing about requests."""
