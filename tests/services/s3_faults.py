"""A proxy in front of the S3-compatible store that does to chosen requests what networks and stores do."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

_CALL_SECONDS = 120.0
_REFUSED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>refused by the proxy</Message></Error>"
_AWAY = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>broken by the proxy</Message></Error>"
# Of a connection, not of what is asked.
_HOP = {"connection", "keep-alive", "transfer-encoding", "proxy-connection", "expect"}


class Fault(StrEnum):
    """What is done to a request.

    `refuse`: 403, the store sees nothing. `break`: 500, the store sees nothing. `drop`: the connection ends, the store
    sees nothing. `lose`: the store does it, and the answer is lost. `truncate`: half of the answer's body comes, then
    the connection ends; of a request's body half reaches the store. `shorten`: half of the answer comes, as if it were
    all. `delay`: the request waits. `duplicate`: the store gets it twice, and the second answer is given.
    """

    REFUSE = "refuse"
    BREAK = "break"
    DROP = "drop"
    LOSE = "lose"
    TRUNCATE = "truncate"
    SHORTEN = "shorten"
    DELAY = "delay"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came.

    Attributes:
        number: of all that came since the last `begin`, from 0.
        method: GET, PUT, ...
        key: of the object, without the bucket; of a listing its prefix.
        query: of the address.
        headers: with names in lower case.
    """

    number: int
    method: str
    key: str
    query: str
    headers: dict[str, str]

    @property
    def kind(self) -> str:
        """The method and the key with numbers and ids left out: what is done to which sort of object."""
        key = re.sub(r"[0-9a-f]{8}-?[0-9a-f-]{8,}", "#", self.key)
        return f"{self.method} {re.sub(r'[0-9]+', 'N', key)}{'?' if self.query else ''}"


@dataclass(slots=True)
class FaultProxy:
    """Listens on the loopback interface and passes requests on.

    Attributes:
        upstream: port of the store.
        port: of the proxy.
        choose: the fault of a request; None: it is passed on.
        before: called with each request before anything is done to it: it may wait.
        delay_seconds: how long `delay` waits.
        requests: that came since the last `begin`.
        done: the requests that a fault was done to.
    """

    upstream: int
    port: int = 0
    choose: Callable[[Request], Fault | None] = lambda _: None
    before: Callable[[Request], None] = lambda _: None
    delay_seconds: float = 3.0
    requests: list[Request] = field(default_factory=list)
    done: list[tuple[Request, Fault]] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self.port}"

    def begin(
        self,
        choose: Callable[[Request], Fault | None] = lambda _: None,
        before: Callable[[Request], None] = lambda _: None,
    ) -> None:
        """Count requests from 0 again, and do other faults from now on."""
        with self._guard:
            self.requests, self.done = [], []
            self.choose, self.before = choose, before

    def note(self, method: str, path: str, headers: Any) -> tuple[Request, Fault | None]:
        """Number a request, and choose its fault."""
        parts = urlsplit(path)
        key = unquote(parts.path).lstrip("/").partition("/")[2]
        prefix = re.search(r"(?:^|&)prefix=([^&]*)", parts.query)
        with self._guard:
            request = Request(
                len(self.requests),
                method,
                key or (unquote(prefix[1]) if prefix else ""),
                parts.query,
                {name.lower(): text for name, text in headers.items()},
            )
            self.requests.append(request)
            choose, before = self.choose, self.before
        before(request)
        fault = choose(request)
        if fault is not None:
            with self._guard:
                self.done.append((request, fault))
        return request, fault

    @contextmanager
    def running(self) -> Iterator[FaultProxy]:
        """Listen until the block ends."""
        server = _Server(("127.0.0.1", self.port), _Handler)
        server.proxy = self
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    proxy: FaultProxy

    def handle_error(self, *_: object) -> None:
        """No-op: clients that are killed leave broken connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    _methods: ClassVar = ("GET", "HEAD", "PUT", "POST", "DELETE")

    def _handle(self) -> None:
        # Bodies come whole, before anything is asked of the store: a client may be stopped in the middle.
        body = self._body()
        request, fault = self.server.proxy.note(self.command, self.path, self.headers)
        if fault is Fault.DROP:
            self._end()
        elif fault is Fault.REFUSE:
            self._answer(403, {"content-type": "application/xml"}, _REFUSED)
        elif fault is Fault.BREAK:
            self._answer(500, {"content-type": "application/xml"}, _AWAY)
        else:
            if fault is Fault.DELAY:
                time.sleep(self.server.proxy.delay_seconds)
            if fault is Fault.DUPLICATE:
                self._ask(request, body)
            if fault is Fault.TRUNCATE and body:
                self._ask_half(request, body)
                self._end()
                return
            status, headers, content = self._ask(request, body)
            if fault is Fault.LOSE:
                self._end()
            elif fault is Fault.SHORTEN:
                self._answer(status, headers, content[: len(content) // 2])
            elif fault is Fault.TRUNCATE:
                self._answer(status, headers, content, cut=True)
            else:
                self._answer(status, headers, content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - names of http.server

    def _body(self) -> bytes:
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            content = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _forwarded(self, length: int | None) -> dict[str, str]:
        headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP}
        if length is not None and self.command in {"PUT", "POST"}:
            headers = {name: text for name, text in headers.items() if name.lower() != "content-length"}
            headers["Content-Length"] = str(length)
        return headers

    def _ask(self, request: Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.proxy.upstream, timeout=_CALL_SECONDS)
        try:
            connection.request(request.method, self.path, body or None, self._forwarded(len(body)))
            response = connection.getresponse()
            headers = {name: text for name, text in response.getheaders() if name.lower() not in _HOP}
            return response.status, headers, response.read()
        finally:
            connection.close()

    def _ask_half(self, request: Request, body: bytes) -> None:
        with socket.create_connection(("127.0.0.1", self.server.proxy.upstream), _CALL_SECONDS) as connection:
            head = "".join(f"{name}: {text}\r\n" for name, text in self._forwarded(len(body)).items())
            connection.sendall(f"{request.method} {self.path} HTTP/1.1\r\n{head}\r\n".encode() + body[: len(body) // 2])

    def _answer(self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False) -> None:
        self.send_response_only(status)
        length = headers.get("Content-Length") if self.command == "HEAD" else str(len(content))
        for name, text in headers.items():
            if name.lower() != "content-length":
                self.send_header(name, text)
        if length is not None:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self._end()

    def _end(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """No-op."""
