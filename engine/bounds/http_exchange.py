"""HTTP requests with one deadline over connection, headers and body, however slowly a server sends them.

The timeout of a socket counts from one byte to the next: a server that sends a byte each second would hold the caller
for days. Here each read waits until the deadline at most. Host names are looked up within the resolver's own limits.
Redirects are not followed: the header with the password would go along, to any host. The server of the parsed address
is checked once more when the connection is made.
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
    """Return seconds until the silence `timeout` or the monotonic `deadline`, or raise TimeoutError."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("its response takes too long")
    return max(_LEAST_SECONDS, min(timeout, seconds))


class TimedReader(io.RawIOBase):
    """What a socket receives; each read waits at most for the seconds that are left."""

    def __init__(self, sock: socket.socket, seconds: Callable[[], float]) -> None:
        super().__init__()
        self._sock, self._seconds_left = sock, seconds
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._seconds_left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the reader; the socket stays open."""
        self._raw.close()
        super().close()


_CHUNK: Final = 1 << 16
_GZIP: Final = 16 + zlib.MAX_WBITS


class BodyTooLargeError(Exception):
    pass


class OtherServerError(OSError):
    """A connection would lead to another server than the address names."""


class BodyEncodingError(Exception):
    """A body is not packed as its header says, or in a way that was not requested."""


def fetch(
    address: WebAddress, headers: Mapping[str, str], *, timeout: float, deadline: float, most_bytes: int, ca: str = ""
) -> bytes:
    """Return the body of a successful answer; `timeout` is seconds of silence, `deadline` on the monotonic clock.

    Raises:
        HTTPError: the server answers with another status; its body has the same deadline.
        BodyTooLargeError: the body is larger.
        OSError, HTTPException: there is no answer, or it is too late.
    """
    request = _Request(address, deadline, headers=dict(headers))
    with _opener(ca).open(request, timeout=seconds_left(timeout, deadline)) as response:
        return _body(response, most_bytes)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
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
    """Send a request and return the answer, unpacked from gzip; redirects are answers, too.

    Times and errors are those of `fetch`, with BodyEncodingError, and ValueError for a header that cannot be sent.
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
            raise BodyTooLargeError(f"its response has more than {most_bytes:,} bytes")
    return bytes(body)


def _unpacked(content: bytes, packed: str, most_bytes: int) -> bytes:
    if packed == "identity":
        return content
    if packed not in {"gzip", "x-gzip"}:
        raise BodyEncodingError("its response has an encoding that was not requested")
    try:
        unpacking = zlib.decompressobj(_GZIP)
        unpacked = unpacking.decompress(content, most_bytes + 1)
    except zlib.error as error:
        raise BodyEncodingError("its response cannot be decompressed") from error
    if len(unpacked) > most_bytes:
        raise BodyTooLargeError(f"its response has more than {most_bytes:,} bytes")
    if not unpacking.eof:
        raise BodyEncodingError("its response is truncated")
    return unpacked


class _Request(urllib.request.Request):
    def __init__(self, address: WebAddress, deadline: float, **options: Any) -> None:
        super().__init__(str(address), **options)
        self.address, self.deadline = address, deadline

    def connection(self) -> dict[str, Any]:
        """Return the arguments of a connection; `proxied`: the user's environment names a proxy."""
        return {"deadline": self.deadline, "server": self.address.server, "proxied": self.has_proxy()}


class _Patient(http.client.HTTPConnection):
    """A connection with a deadline for connecting and for its answers."""

    def __init__(self, *args: Any, deadline: float, server: Server, proxied: bool, **options: Any) -> None:
        super().__init__(*args, **options)
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
        for candidate in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            try:
                return socket.create_connection((str(candidate[4][0]), address[1]), self._seconds_left())
            except OSError as error:
                failure = error
        raise failure

    def _response(self, sock: socket.socket, *args: Any, **options: Any) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(sock, *args, **options)
        response.fp.close()
        response.fp = io.BufferedReader(TimedReader(sock, self._seconds_left))
        return response

    def _seconds_left(self) -> float:
        return seconds_left(self.timeout or 0.0, self.deadline)


class _PatientTls(_Patient, http.client.HTTPSConnection):
    """The same over TLS; the handshake as a whole has the connection's timeout."""


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
    """Return the PEM text of the authorities in REQUESTS_CA_BUNDLE; empty: those of the machine."""
    path = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or ""
    try:
        return read_regular(Path(os.path.realpath(path)), 1 << 24).decode() if path else ""
    except (OSError, ValueError):
        return ""
