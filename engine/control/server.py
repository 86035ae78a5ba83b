"""Answer requests on the private socket of a project and target.

One thread accepts connections, receives requests and notices clients that leave; each request runs in a thread of its
own. A request is one line `{"do": name, ...}`; its answers are lines, the last of which is `{"end": true, ...}` or
`{"error": {"code", "message", "hint"}}`. While a request runs, its client may send `{"do": "cancel", "signal": 2}`.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from engine.control.messages import MalformedError, MessageReader, send
from engine.control.private_socket import address, own, peer, release
from engine.control.request import Request
from engine.errors import Diagnostic, EngineError, SetupError
from engine.secrets import scrub
from engine.user_cache import create_private, is_own, is_own_user

Handler = Callable[[Request], Iterable[Mapping[str, Any]]]
# Connections at a time; more are closed at once.
CONNECTIONS = 256
# A request must have come this many seconds after its connection, or after its first bytes.
REQUEST_SECONDS = 10.0
# A client that does not read an answer for this long has left.
ANSWER_SECONDS = 60.0
_AGAIN = "Stop the process that runs and start it again, if it is of another version."
_log = logging.getLogger("engine.control")


@dataclass(slots=True, eq=False)
class _Connection:
    socket: socket.socket
    pid: int
    lines: MessageReader
    # When a complete request must have come; infinite while one runs.
    until: float
    running: Request | None = None
    # A request that came before the last one was seen to end.
    waiting: dict[str, Any] | None = None
    worker: threading.Thread | None = field(default=None, repr=False)


class ControlServer:
    """The owner of a socket, from its construction until it is closed.

    Args:
        path: see `socket_path`.
        handlers: what answers each request; called in a thread of its own, with a `Request`.

    Raises:
        StateError: `project-running`: another process owns the socket.
        SetupError: `control-folder`: the socket cannot be made.
    """

    def __init__(self, path: Path | None, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._connections: dict[socket.socket, _Connection] = {}
        self._closing = False
        # Handlers that have ended wake the thread that receives.
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        try:
            self._path, self._lock, self._listener = _listen(path)
        except OSError as error:
            self._wake_reader.close()
            self._wake_writer.close()
            hint = "Make ~/.cache/headrace a folder that only you may read and write, or set XDG_CACHE_HOME."
            message = f"the private socket of the project cannot be made: {error.strerror or error}"
            raise SetupError("control-folder", message, hint) from error
        except EngineError:
            self._wake_reader.close()
            self._wake_writer.close()
            raise
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a request runs."""
        return any(connection.running is not None for connection in list(self._connections.values()))

    def close(self, seconds: float = 5.0) -> None:
        """Accept nothing more, cancel the requests that run, give them some seconds to end, and remove the socket."""
        if self._closing:
            return
        self._closing = True
        self._wake()
        self._thread.join()
        until = time.monotonic() + seconds
        for connection in list(self._connections.values()):
            if connection.running is not None:
                connection.running.cancel(0)
        for connection in list(self._connections.values()):
            if connection.worker is not None and connection.worker is not threading.current_thread():
                connection.worker.join(max(0.0, until - time.monotonic()))
            self._drop(connection)
        self._selector.close()
        self._listener.close()
        self._wake_reader.close()
        self._wake_writer.close()
        release(self._path, self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"x")

    def _serve(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(self._patience()):
                try:
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj is self._wake_reader:
                        self._wake_reader.recv(4096)
                    else:
                        self._received(key.data)
                except OSError:
                    _log.debug("a connection failed", exc_info=True)
            self._look()

    def _patience(self) -> float | None:
        idle = [c.until for c in self._connections.values() if c.running is None]
        return max(0.0, min(idle) - time.monotonic()) if idle else None

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        pid, user = peer(client)
        if not is_own_user(user) or len(self._connections) >= CONNECTIONS:
            client.close()
            return
        client.settimeout(ANSWER_SECONDS)
        connection = _Connection(client, pid, MessageReader(client), time.monotonic() + REQUEST_SECONDS)
        self._connections[client] = connection
        self._selector.register(client, selectors.EVENT_READ, connection)

    def _received(self, connection: _Connection) -> None:
        try:
            if not connection.lines.receive(socket.MSG_DONTWAIT):
                self._drop(connection)
                return
            self._requests(connection)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)
        except MalformedError as error:
            if connection.running is None:
                _answer(connection.socket, _error("request-invalid", f"the request cannot be read: {error}", _AGAIN))
            self._drop(connection)

    def _requests(self, connection: _Connection) -> None:
        """Begin the next request that has come, or cancel the one that runs."""
        while (message := connection.lines.next()) is not None:
            if message.get("do") != "cancel":
                if connection.waiting is not None:
                    raise MalformedError("requests came faster than their answers")
                connection.waiting = message
            elif connection.running is not None:
                number = message.get("signal")
                connection.running.cancel(number if isinstance(number, int) else 0)
        self._begin(connection)

    def _begin(self, connection: _Connection) -> None:
        """Begin the request that waits, unless one runs."""
        if connection.running is not None or connection.waiting is None:
            return
        message, connection.waiting = connection.waiting, None
        name = message.pop("do", None)
        request = Request(message, connection.pid, connection.lines.take_files())
        connection.running, connection.until = request, float("inf")
        connection.worker = threading.Thread(
            target=self._run, args=(connection, request, name), name=f"control {name}", daemon=True
        )
        connection.worker.start()

    def _run(self, connection: _Connection, request: Request, name: object) -> None:
        try:
            handler = self._handlers.get(name) if isinstance(name, str) else None
            if handler is None:
                known = ", ".join(sorted(self._handlers))
                _answer(connection.socket, _error("request-invalid", f"unknown request {name!r}", f"Known: {known}."))
                return
            _answer(connection.socket, _answers(handler, request))
        finally:
            for descriptor in request.files:
                os.close(descriptor)
            connection.until = time.monotonic() + REQUEST_SECONDS
            connection.running = None
            self._wake()

    def _look(self) -> None:
        """Begin requests that wait; close connections from which none has come in time."""
        now = time.monotonic()
        for connection in list(self._connections.values()):
            self._begin(connection)
            if connection.running is None and connection.until < now:
                _answer(connection.socket, _error("request-invalid", "no complete request came in time", _AGAIN))
                self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if self._connections.pop(connection.socket, None) is None:
            return
        if connection.running is not None:
            connection.running.cancel(0)
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.lines.close_files()
        connection.socket.close()


def _listen(path: Path | None) -> tuple[Path, int, socket.socket]:
    """Own a socket and listen on it: its path, the descriptor of its lock, and the listener.

    Raises:
        StateError: `project-running`.
        OSError: it cannot be made, or its folder is not the user's alone.
    """
    if path is None:
        raise OSError("the user has no folder for it")
    create_private(path.parent)
    if not is_own(path.parent, private=True):
        raise PermissionError(1, f"{path.parent} is not a folder of this user alone")
    lock = own(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Clients see it when it listens.
    fresh = path.with_suffix(".new")
    try:
        fresh.unlink(missing_ok=True)
        with address(fresh) as name:
            listener.bind(name)
        fresh.chmod(0o600)
        listener.listen(128)
        # In the place of one that a killed process left.
        fresh.replace(path)
    except BaseException:
        listener.close()
        release(path, lock)
        raise
    listener.setblocking(False)
    return path, lock, listener


def _answers(handler: Handler, request: Request) -> Iterable[Mapping[str, Any]]:
    """The answers of a handler, the last of which is an end or an error."""
    try:
        for answer in handler(request):
            yield answer
            if "end" in answer or "error" in answer:
                return
        yield {"end": True}
    except EngineError as error:
        yield {"error": _as_dict(error.diagnostic)}
    except Exception as error:  # noqa: BLE001 - the client gets it, and the server serves others
        _log.exception("a request failed")
        yield from _error(
            "internal-error", f"{type(error).__name__}: {error}", "The log of that process has the details."
        )


def _answer(client: socket.socket, answers: Iterable[Mapping[str, Any]]) -> None:
    """Send answers; whoever does not read them has left, which the receiving thread sees."""
    try:
        for answer in answers:
            send(client, answer)
    except OSError:
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def _as_dict(found: Diagnostic) -> dict[str, str]:
    return {"code": found.code, "message": scrub(found.message), "hint": scrub(found.hint)}


def _error(code: str, message: str, hint: str) -> tuple[dict[str, dict[str, str]]]:
    return ({"error": _as_dict(Diagnostic(code, message, hint))},)
