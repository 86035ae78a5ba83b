"""Answer requests on the private socket of a project and target.

One thread accepts connections; each has a thread of its own, which receives one request `{"do": name, ...}` and answers
`{}` or `{"error": {"code", "message", "hint"}}`.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from engine.control.messages import MalformedError, receive, send
from engine.control.private_socket import address, own, peer, release
from engine.errors import Diagnostic, EngineError, SetupError
from engine.secrets import scrub
from engine.user_cache import create_private, is_own, is_own_user

Handler = Callable[[Mapping[str, Any]], None]
# Connections at a time; more are closed at once.
CONNECTIONS = 128
# A request must have come this many seconds after its connection.
REQUEST_SECONDS = 10.0
# A client that does not read an answer for this long has left.
_ANSWER_SECONDS = 10.0
_PAUSE_SECONDS = 0.1
_AGAIN = "Stop the process that runs and start it again, if it is of another version."
_log = logging.getLogger("engine.control")


class ControlServer:
    """The owner of a socket, from its construction until it is closed.

    Raises:
        StateError: `project-running`: another process owns the socket.
        SetupError: `control-folder`: the socket cannot be made.
    """

    def __init__(self, path: Path | None, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._workers: set[threading.Thread] = set()
        self._closing = False
        try:
            self._path, self._lock, self._listener = _listen(path)
        except OSError as error:
            hint = "Make ~/.cache/headrace a folder that only you may read and write, or set XDG_CACHE_HOME."
            message = f"the private socket of the project cannot be made: {error.strerror or error}"
            raise SetupError("control-folder", message, hint) from error
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._thread.start()

    def close(self, seconds: float = 5.0) -> None:
        """Accept nothing more, give the requests that run some seconds to end, and remove the socket."""
        if self._closing:
            return
        self._closing = True
        # Wakes the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        until = time.monotonic() + seconds
        for worker in tuple(self._workers):
            worker.join(max(0.0, until - time.monotonic()))
        self._listener.close()
        release(self._path, self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                # It is closed, or this process has no descriptor left for now.
                time.sleep(0 if self._closing else _PAUSE_SECONDS)
                continue
            if len(self._workers) >= CONNECTIONS:
                client.close()
                continue
            worker = threading.Thread(target=self._serve_client, args=(client,), name="control request", daemon=True)
            self._workers.add(worker)
            worker.start()

    def _serve_client(self, client: socket.socket) -> None:
        try:
            # Whoever leaves, or does not read, wants no answer.
            with client, suppress(OSError):
                if not is_own_user(peer(client)[1]):
                    return
                answer = self._answer(client)
                client.settimeout(_ANSWER_SECONDS)
                send(client, answer)
        finally:
            self._workers.discard(threading.current_thread())

    def _answer(self, client: socket.socket) -> Mapping[str, Any]:
        try:
            request = receive(client, REQUEST_SECONDS)
        except TimeoutError:
            return _error("request-invalid", "no complete request came in time", _AGAIN)
        except MalformedError as error:
            return _error("request-invalid", f"the request cannot be read: {error}", _AGAIN)
        name = request.pop("do", None)
        handler = self._handlers.get(name) if isinstance(name, str) else None
        if handler is None:
            known = ", ".join(sorted(self._handlers))
            return _error("request-invalid", f"unknown request {name!r}", f"Known: {known}.")
        try:
            handler(request)
        except EngineError as error:
            return _as_answer(error.diagnostic)
        except Exception as error:  # noqa: BLE001 - the client gets it, and the server serves others
            _log.exception("a request failed")
            message = f"{type(error).__name__}: {error}"
            return _error("internal-error", message, "The log of that process has the details.")
        return {}


def _listen(path: Path | None) -> tuple[Path, int, socket.socket]:
    """Own a socket and listen on it; raise StateError `project-running`, or OSError if the folder is not private."""
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
    return path, lock, listener


def _as_answer(diagnostic: Diagnostic) -> dict[str, dict[str, str]]:
    message, hint = scrub(diagnostic.message), scrub(diagnostic.hint)
    return {"error": {"code": diagnostic.code, "message": message, "hint": hint}}


def _error(code: str, message: str, hint: str) -> dict[str, dict[str, str]]:
    return _as_answer(Diagnostic(code, message, hint))
