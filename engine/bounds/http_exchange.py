"""HTTP requests with one deadline over the connection, the headers and the body, however slowly a server sends them.

A timeout of a socket counts from one byte to the next: a server that sends a byte of a header each second would hold
the caller for days. Here each read waits at most until the deadline. Looking up the host's name has the limits of the
machine's resolver. Redirects are not followed: the header with the password would go with them, to any host. What is
connected to is the server of a parsed address, which is checked once more when the connection is made.

A socket's answers until a deadline: a timeout of a socket counts from one byte to the next, a deadline does not.
"""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from engine.addresses import Server, WebAddress
from engine.bounds.regular_file import read_regular

_LEAST_SECONDS: Final = 0.05


def seconds_left(timeout: float, deadline: float) -> float:
    """Return seconds to wait for the next bytes, by a silence `timeout` and a `deadline` of the monotonic clock.

    Raises:
        TimeoutError: the deadline has passed.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("its answer takes too long")
    return max(_LEAST_SECONDS, min(timeout, left))


class TimedReader(io.RawIOBase):
    """What a socket receives; each read waits for the seconds that are left at most."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        super().__init__()
        self._sock, self._left = sock, left
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close it; the socket stays open."""
        self._raw.close()
        super().close()


_CHUNK: Final = 1 << 16
_GZIP: Final = 16 + zlib.MAX_WBITS


class BodyTooLargeError(Exception):
    """A body has more bytes than are read."""


class OtherServerError(OSError):
    """A connection would be made to another server than the address names."""


class BodyEncodingError(Exception):
    """A body is not packed as its header says, or in a way that nobody asked for."""


def fetch(
    address: WebAddress, headers: Mapping[str, str], *, timeout: float, deadline: float, most_bytes: int, ca: str = ""
) -> bytes:
    """Return the body of an answer; `timeout` is seconds of silence, `deadline` is by the monotonic clock.

    Raises:
        HTTPError: the server answers with another status than success; its body is under the same deadline.
        BodyTooLargeError: the body is larger.
        OSError, HTTPException: no answer, or too late.
    """
    request = _Request(address, deadline, headers=dict(headers))
    with _opener(ca).open(request, timeout=seconds_left(timeout, deadline)) as response:
        return _body(response, most_bytes)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer of a server, whatever its status."""

    status: int
    reason: str
    body: bytes


def exchange(
    method: str,
    address: WebAddress,
    headers: Mapping[str, str],
    body: bytes | None = None,
    *,
    timeout: float,
    deadline: float,
    most_bytes: int,
    ca: str = "",
) -> HttpAnswer:
    """Send a request and return the answer, unpacked from gzip; redirects are answers, too. Times as in `fetch`.

    Raises:
        BodyTooLargeError: the body is larger.
        BodyEncodingError: the body is not packed as it says.
        OSError, HTTPException, ValueError: no answer, too late, or a header that cannot be sent.
    """
    request = _Request(address, deadline, data=body, headers={**headers, "Accept-Encoding": "gzip"}, method=method)
    try:
        response = _opener(ca).open(request, timeout=seconds_left(timeout, deadline))
    except urllib.error.HTTPError as error:
        response = error
    with response:
        packed = (response.headers.get("Content-Encoding") or "identity").strip().lower()
        content = _body(response, most_bytes)
        return HttpAnswer(response.status, str(response.reason or ""), _unpacked(content, packed, most_bytes))


def _body(response: Any, most_bytes: int) -> bytes:
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > most_bytes:
            raise BodyTooLargeError(f"its answer has more than {most_bytes:,} bytes")
    return bytes(body)


def _unpacked(content: bytes, packed: str, most_bytes: int) -> bytes:
    if packed == "identity":
        return content
    if packed not in {"gzip", "x-gzip"}:
        raise BodyEncodingError("its answer is packed in a way that was not asked for")
    try:
        unpacking = zlib.decompressobj(_GZIP)
        made = unpacking.decompress(content, most_bytes + 1)
    except zlib.error as error:
        raise BodyEncodingError("its answer cannot be unpacked") from error
    if len(made) > most_bytes:
        raise BodyTooLargeError(f"its answer has more than {most_bytes:,} bytes")
    if not unpacking.eof:
        raise BodyEncodingError("its answer is cut off")
    return made


class _Request(urllib.request.Request):
    def __init__(self, address: WebAddress, deadline: float, **also: Any) -> None:
        super().__init__(str(address), **also)
        self.address, self.deadline = address, deadline

    def connection(self) -> dict[str, Any]:
        """What a connection has to know: a proxy is one that the user's environment names."""
        return {"deadline": self.deadline, "server": self.address.server, "proxied": self.has_proxy()}


class _Patient(http.client.HTTPConnection):
    """A connection that is made, and whose answers are read, until a deadline."""

    def __init__(self, *args: Any, deadline: float, server: Server, proxied: bool, **also: Any) -> None:
        super().__init__(*args, **also)
        self.deadline, self.server, self.proxied = deadline, server, proxied
        # http.client's own gives each address of a host the whole timeout.
        self._create_connection = self._reached
        self.response_class = self._response  # type: ignore[assignment]

    def connect(self) -> None:
        # Of a tunnel through a proxy, its other end.
        tunnel: tuple[str | None, int | None] = (self._tunnel_host, self._tunnel_port)  # type: ignore[attr-defined]
        host, port = tunnel if tunnel[0] else (self.host, self.port)
        if not self.proxied and (host, port) != (self.server.host, self.server.port):
            raise OtherServerError("the connection would lead to another server than the address names")
        super().connect()

    def _reached(self, address: tuple[str, int], *_: object) -> socket.socket:
        failure: OSError = OSError("the host has no address")
        for found in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            try:
                return socket.create_connection((str(found[4][0]), address[1]), self._left())
            except OSError as error:
                failure = error
        raise failure

    def _response(self, sock: socket.socket, *args: Any, **also: Any) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(sock, *args, **also)
        response.fp.close()
        response.fp = io.BufferedReader(TimedReader(sock, self._left))
        return response

    def _left(self) -> float:
        return seconds_left(self.timeout or 0.0, self.deadline)


class _PatientTls(_Patient, http.client.HTTPSConnection):
    """The same over TLS; the handshake has the connection's timeout as a whole."""


# urllib hands what it does not know on to the connection; its stubs do not say so.
_TCP: Any = _Patient
_TLS: Any = _PatientTls


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> Any:
        return self.do_open(_TCP, request, **request.connection())


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: Any) -> Any:
        return self.do_open(_TLS, request, context=self._context, **request.connection())  # type: ignore[attr-defined]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@lru_cache(maxsize=8)
def _opener(ca: str) -> urllib.request.OpenerDirector:
    https = _Https(context=ssl.create_default_context(cadata=ca)) if ca else _Https()
    return urllib.request.build_opener(_NoRedirect, _Http, https)


@cache
def authorities() -> str:
    """PEM text of the authorities that REQUESTS_CA_BUNDLE names; empty: those of the machine."""
    path = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or ""
    try:
        return read_regular(Path(os.path.realpath(path)), 1 << 24).decode() if path else ""
    except (OSError, ValueError):
        return ""
