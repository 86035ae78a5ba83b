"""A web server that answers as a test says, and keeps what it was asked: who sent which header and body."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


# JSON, bytes, or what writes to the connection itself.
Reply = Any
Write = Callable[[BaseHTTPRequestHandler], None]


@dataclass(slots=True)
class Answering:
    """A server.

    Attributes:
        answers: what is answered, by the begin of "METHOD /path"; the longest that fits counts. A pair is a status and
            a reply; a function writes to the connection itself.
        asked: what came.
    """

    answers: dict[str, Reply] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Its address."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def seen(self) -> str:
        """All that was sent to it, as one text."""
        return "\n".join(f"{a.method} {a.path} {dict(a.headers)} {a.body.decode('latin-1')}" for a in self.asked)

    def reply(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer a request."""
        self.asked.append(Asked(handler.command, handler.path, dict(handler.headers), body))
        line = f"{handler.command} {handler.path}"
        known = max((begin for begin in self.answers if line.startswith(begin)), key=len, default=None)
        none = (404, {"error": {"message": "none", "type": "NoSuchTableException", "code": 404}})
        reply = self.answers[known] if known is not None else none
        if callable(reply):
            reply(handler)
            return
        status, content = reply if isinstance(reply, tuple) else (200, reply)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        answer(handler, status, data, Content_Type="application/json")


@contextlib.contextmanager
def answering(answers: Mapping[str, Reply] | None = None) -> Iterator[Answering]:
    """Serve as long as the block lasts."""
    door = Answering(dict(answers or {}))

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            with contextlib.suppress(OSError):
                door.reply(self, self.rfile.read(length))

        do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    door._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    door._server.daemon_threads = True
    door._server.door = door  # type: ignore[attr-defined]
    door._server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=door._server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield door
    finally:
        door._server.shutdown()
        door._server.server_close()
        thread.join()


def redirect(address: str, status: int = 302) -> Write:
    """An answer that leads elsewhere."""
    return lambda handler: answer(handler, status, b"", Location=address)


def answer(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", /, **headers: str) -> None:
    """Write an answer to the connection."""
    handler.send_response(status)
    for key, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(key.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def endless(chunk: bytes, pause: float = 0.0, headers: Mapping[str, str] | None = None, limit: int = 1 << 34) -> Write:
    """An answer that does not end, or not for long: a chunk again and again."""

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for key, value in (headers or {}).items():
            handler.send_header(key, value)
        handler.end_headers()
        stop = threading.Event()
        for _ in range(limit // len(chunk)):
            handler.wfile.write(chunk)
            if pause:
                handler.wfile.flush()
                stop.wait(pause)

    return write
