"""The server of the site: one folder, on this machine only.

It listens on 127.0.0.1, and answers only requests that name that host (a page elsewhere could let a name of its own
point here: DNS rebinding) and have the token (`page_access`). Files of the folder are read and nothing else is done;
links are not followed. Bounded are the number of connections, the size of a request's head, and the time, in all and
not by the byte, that a client takes to send one and to receive the answer.

A served page asks for the site's version as for any other data file, and loads again when it changes. Neither the
policy of the page nor the written site knows of it.
"""

from __future__ import annotations

import io
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import SplitResult, unquote, urlsplit

from engine.docs.page_access import PageAccess

HOST = "127.0.0.1"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
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


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server gives its clients.

    Attributes:
        connections: open at the same time; further ones are closed at once.
        request_seconds: from the beginning of a connection, or the answer before, to the last byte of a request's head.
        answer_seconds: for sending a file in full.
        head_bytes: of a request's line and headers.
    """

    connections: int = 64
    request_seconds: float = 15
    answer_seconds: float = 60
    head_bytes: int = 16 * 1024


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """What is sent for a path that is not a file: a body, or parts of one as they come, until the iterator ends."""

    content_type: str
    body: bytes | Iterator[bytes]
    status: HTTPStatus = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Additions:
    """What a server has beside the files of its folder.

    Attributes:
        answers: gives the answer for a path and its query; None: it is a file's.
        first_page: the first page, as it is served.
        probes: paths that are answered without a token: they show nothing of the project.
    """

    answers: Callable[[str, str], ServedAnswer | None]
    first_page: Callable[[bytes], bytes]
    probes: frozenset[str] = frozenset()


Version = Callable[[], str]
_VERSION_FILE = ["data", "version.js"]
_FIRST_PAGE = {"/", "/index.html"}
_NO_TOKEN = (
    b"403 Forbidden\nThis page needs the token of the link that engine printed when it started. Open that link.\n"
)


@contextmanager
def serving(
    folder: Path,
    access: PageAccess,
    port: int = 0,
    limits: Limits | None = None,
    version: Version | None = None,
    additions: Additions | None = None,
) -> Iterator[SiteServer]:
    """A server of a folder, ready to `serve_forever`.

    Args:
        folder: of the site.
        access: the token without which nothing but `Additions.probes` is answered.
        port: 0 takes a free one.
        limits: of what clients may hold.
        version: of the site: letters and digits; pages load again when it changes. None: they do not ask.
        additions: what is served beside the files; its pages may ask this server for more.

    Raises OSError: the port is taken.
    """
    handler = partial(_Handler, directory=str(folder.absolute()))
    with SiteServer((HOST, port), handler, access, limits or Limits(), version, additions) as server:
        yield server


class SiteServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        handler: Any,
        access: PageAccess,
        limits: Limits,
        version: Version | None,
        additions: Additions | None,
    ) -> None:
        self.access = access
        self.limits = limits
        self.version = version
        self.additions = additions
        self._free = threading.BoundedSemaphore(limits.connections)
        super().__init__(address, handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def link(self, fragment: str = "") -> str:
        return self.access.link(self.address, fragment)

    def process_request(self, request: Any, client_address: Any) -> None:
        """ServedAnswer in a thread of its own, if there are not too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is not an error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Head(io.RawIOBase):
    """What a client sends, as far as one request may be long and may take."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._bytes_left = 0
        self._deadline = 0.0
        self.too_long = False

    def begin(self, limits: Limits) -> None:
        self._bytes_left = limits.head_bytes
        self._deadline = time.monotonic() + limits.request_seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there, of what is left. Raises TimeoutError: the request took too long."""
        size = min(len(buffer), self._bytes_left)
        wait = self._deadline - time.monotonic()
        if not size:
            self.too_long = True
            return 0
        if wait <= 0:
            raise TimeoutError
        self._connection.settimeout(wait)
        count = self._connection.recv_into(buffer, size)
        self._bytes_left -= count
        return count


class _Handler(SimpleHTTPRequestHandler):
    server: SiteServer
    _session = False
    server_version = "headrace"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    # An answer is written in two parts; the second would wait for the first one's receipt.
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._head = _Head(self.connection)
        self.rfile = io.BufferedReader(self._head, 1024)

    def handle_one_request(self) -> None:
        self._head.begin(self.server.limits)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the headers; a request with a body is none for a file."""
        good = super().parse_request()
        if self._head.too_long:
            self.close_connection = True
            if good:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return False
        if good and ("Content-Length" in self.headers or "Transfer-Encoding" in self.headers):
            self.close_connection = True
        self.connection.settimeout(self.server.limits.answer_seconds)
        return good

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file within the time for it. Raises TimeoutError: the client does not take it."""
        deadline = time.monotonic() + self.server.limits.answer_seconds
        while chunk := source.read(1 << 16):
            wait = deadline - time.monotonic()
            if wait <= 0:
                raise TimeoutError
            self.connection.settimeout(wait)
            outputfile.write(chunk)

    def send_head(self) -> IO[bytes] | None:  # type: ignore[override] # a file, or nothing
        opened = self._file()
        if opened is None:
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        file, suffix = opened
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", _TYPES[suffix])
        self.send_header("Content-Length", str(file.seek(0, os.SEEK_END)))
        file.seek(0)
        self.end_headers()
        return file

    def do_GET(self) -> None:
        if (url := self._admitted()) is None:
            return
        added = self.server.additions
        if added is None or (served := added.answers(url.path, url.query)) is None:
            super().do_GET()
        else:
            self._send_answer(served)

    def do_HEAD(self) -> None:
        if self._admitted() is not None:
            super().do_HEAD()

    def _admitted(self) -> SplitResult | None:
        """What is asked for; None: it may not be, and the request is answered."""
        self._session = False
        try:
            url = urlsplit(self.path)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return None
        if not self._is_for_us():
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        access, added = self.server.access, self.server.additions
        self._session = access.is_in(url.query)
        if self._session and url.path in _FIRST_PAGE:
            # The browser keeps the fragment, and the token leaves its address line.
            self._send(HTTPStatus.SEE_OTHER, b"", Location="/")
            return None
        is_probe = added is not None and url.path in added.probes
        if self._session or is_probe or access.admits(self.headers, self.server.server_port):
            return url
        self._send(HTTPStatus.FORBIDDEN, _NO_TOKEN)
        return None

    def _send_answer(self, served: ServedAnswer) -> None:
        """Send a body; parts of one each within the time for an answer, for as long as the client takes them."""
        whole = isinstance(served.body, bytes)
        self.send_response(served.status)
        self.send_header("Content-Type", served.content_type)
        if isinstance(served.body, bytes):
            self.send_header("Content-Length", str(len(served.body)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        for part in [served.body] if isinstance(served.body, bytes) else served.body:
            self.copyfile(io.BytesIO(part), self.wfile)
            if not whole:
                self.wfile.flush()

    def _is_for_us(self) -> bool:
        """Whether the request names this host and port, once."""
        hosts = self.headers.get_all("Host") or []
        port = self.connection.getsockname()[1]
        return len(hosts) == 1 and hosts[0].lower() in {f"{name}:{port}" for name in _NAMES}

    def _file(self) -> tuple[IO[bytes], str] | None:
        try:
            path = unquote(urlsplit(self.path).path, errors="strict").removeprefix("/") or "index.html"
            parts = path.split("/")
            suffix = Path(path).suffix
            if suffix not in _TYPES or any(part in {"", ".", ".."} for part in parts):
                return None
            version = self.server.version() if self.server.version is not None else None
            if version is not None and parts == _VERSION_FILE:
                return io.BytesIO(f'headrace.put("version","{version}");\n'.encode()), suffix
            file = _opened(Path(self.directory), parts)
            if self.server.additions is not None and parts == ["index.html"]:
                with file:
                    return io.BytesIO(self.server.additions.first_page(file.read())), suffix
            return (_live(file, version), suffix) if version is not None and parts == ["index.html"] else (file, suffix)
        except (ValueError, OSError):  # a NUL, a name too long, a link, no file
            return None

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, f"{status.value} {status.phrase}\n".encode())

    def _send(self, status: HTTPStatus, text: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def end_headers(self) -> None:
        """Every answer has the headers that keep a page in its place; that to the link has the cookie."""
        if self._session:
            self.send_header("Set-Cookie", self.server.access.cookie(self.server.server_port))
        for name, value in _HEADERS.items():
            # Scripts of a page with additions ask this server for more.
            asks = name == "Content-Security-Policy" and self.server.additions is not None
            self.send_header(name, f"{value}; connect-src 'self'" if asks else value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        ...


def _live(page: IO[bytes], version: str) -> IO[bytes]:
    with page:
        script = f'<script src="live.js" data-version="{version}"></script>\n</body>'.encode()
        return io.BytesIO(page.read().replace(b"</body>", script, 1))


def _opened(folder: Path, parts: list[str]) -> IO[bytes]:
    """A regular file below a folder; neither it nor a folder on the way is a link, nor is the folder itself.

    Raises OSError: there is no such file.
    """
    before = os.open(folder.parent, _FOLDER)
    try:
        for part in (folder.name, *parts[:-1]):
            inner = os.open(part, _FOLDER, dir_fd=before)
            os.close(before)
            before = inner
        # Without waiting: a pipe would hold the thread.
        descriptor = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=before)
    finally:
        os.close(before)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(parts[-1])
    return os.fdopen(descriptor, "rb")
