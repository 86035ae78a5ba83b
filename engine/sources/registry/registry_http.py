"""HTTP requests with one deadline over the connection, the headers and the body, however slowly a server sends them.

A timeout of a socket counts from one byte to the next: a server that sends a byte of a header each second would hold
the caller for days. Here each read waits at most until the deadline. Looking up the host's name has the limits of the
machine's resolver. Redirects are not followed: the header with the password would go with them, to any host.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

_LEAST_SECONDS: Final = 0.05


class BodyTooLargeError(Exception):
    """A body has more bytes than are read."""


def fetch(
    url: str, headers: Mapping[str, str], *, timeout: float, deadline: float, most_bytes: int, ca: str = ""
) -> bytes:
    """The body of an answer.

    Args:
        url: http or https.
        headers: to send.
        timeout: seconds that the server may be silent.
        deadline: of the whole, by the monotonic clock.
        most_bytes: a larger body is an error.
        ca: PEM text of the authorities that certificates are checked with; empty: those of the machine.

    Raises:
        HTTPError: the server answers with another status than success; its body is under the same deadline.
        TooLargeError: the body is larger.
        OSError, HTTPException: no answer, or too late.
    """
    request = _Request(url, headers=dict(headers))
    request.deadline = deadline
    with _opener(ca).open(request, timeout=_left(timeout, deadline)) as response:
        body = bytearray()
        while chunk := response.read1(1 << 16):
            body += chunk
            if len(body) > most_bytes:
                raise BodyTooLargeError(f"its answer has more than {most_bytes:,} bytes")
        return bytes(body)


class _Request(urllib.request.Request):
    deadline: float


class _Timed(io.RawIOBase):
    """What a socket receives; each read waits until the deadline at most."""

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
        self._raw.close()
        super().close()


def _left(timeout: float, deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("its answer takes too long")
    return max(_LEAST_SECONDS, min(timeout, left))


class _Patient(http.client.HTTPConnection):
    """A connection that is made, and whose answers are read, until a deadline."""

    def __init__(self, *args: Any, deadline: float, **also: Any) -> None:
        super().__init__(*args, **also)
        self.deadline = deadline
        # http.client's own gives each address of a host the whole timeout.
        self._create_connection = self._reached
        self.response_class = self._response  # type: ignore[assignment]

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
        response.fp = io.BufferedReader(_Timed(sock, self._left))
        return response

    def _left(self) -> float:
        return _left(self.timeout or 0.0, self.deadline)


class _PatientTls(_Patient, http.client.HTTPSConnection):
    """The same over TLS; the handshake has the connection's timeout as a whole."""


# urllib hands what it does not know on to the connection; its stubs do not say so.
_TCP: Any = _Patient
_TLS: Any = _PatientTls


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request: Any) -> Any:
        return self.do_open(_TCP, request, deadline=request.deadline)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request: Any) -> Any:
        return self.do_open(_TLS, request, context=self._context, deadline=request.deadline)  # type: ignore[attr-defined]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@lru_cache(maxsize=8)
def _opener(ca: str) -> urllib.request.OpenerDirector:
    https = _Https(context=ssl.create_default_context(cadata=ca)) if ca else _Https()
    return urllib.request.build_opener(_NoRedirect, _Http, https)
