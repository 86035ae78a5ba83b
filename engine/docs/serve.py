"""The server of the site: one folder, on this machine only.

It listens on 127.0.0.1, and answers only requests that name that host: a page elsewhere that lets a name of its own
point here (DNS rebinding) gets nothing. Files of the folder are read and nothing else is done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

HOST = "127.0.0.1"
_NAMES = {HOST, "localhost"}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types headrace"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[ThreadingHTTPServer]:
    """A server of a folder, ready to `serve_forever`; port 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """
    with _Server((HOST, port), partial(_Handler, directory=str(folder.resolve()))) as server:
        yield server


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(SimpleHTTPRequestHandler):
    server_version = "headrace"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    # An answer is written in two parts; the second would wait for the first one's receipt.
    disable_nagle_algorithm = True

    def send_head(self) -> IO[bytes] | None:  # type: ignore[override] # a file, or nothing
        """The file of a GET or HEAD, after its headers."""
        if not self._is_for_us():
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        path = self._file()
        if path is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        file = path.open("rb")
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", _TYPES[path.suffix])
        self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
        self.end_headers()
        return file

    def _is_for_us(self) -> bool:
        """Whether the request names this host and port, once."""
        hosts = self.headers.get_all("Host") or []
        port = self.connection.getsockname()[1]
        return len(hosts) == 1 and hosts[0].lower() in {f"{name}:{port}" for name in _NAMES}

    def _file(self) -> Path | None:
        """The file that is asked for, if it is one of the site's; links that lead out of the folder are none."""
        folder = Path(self.directory)
        try:
            asked = unquote(urlsplit(self.path).path, errors="strict").removeprefix("/") or "index.html"
            path = (folder / asked).resolve()
            known = path.is_relative_to(folder) and path.is_file() and path.suffix in _TYPES
        except (ValueError, OSError):  # a NUL, a name too long, a loop of links
            return None
        return path if known and ".." not in Path(asked).parts else None

    def _refuse(self, status: HTTPStatus) -> None:
        text = f"{status.value} {status.phrase}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def end_headers(self) -> None:
        """Every answer has the headers that keep a page in its place."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: requests are nobody's news."""
