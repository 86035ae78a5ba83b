"""The private socket of `engine start`, one for each project and target: its owner, its server and its clients.

The folder of the socket is the user's alone. The socket's name includes the host, because several machines may share
a home folder. A request is one line of JSON, `{"do": name, ...}`; the reply is `{}` or `{"error": {"code", "message",
"hint"}}`. One thread accepts connections, and each connection has a thread of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from engine.errors import Diagnostic, EngineError, SetupError, StateError
from engine.secrets.scrubber import scrub
from engine.user_cache import create_private, is_own, is_own_user, own_folder

_FOLDER = "run"
_ATTEMPTS = 10
# struct ucred of unix(7): process, user, group.
_PEER = struct.Struct("3i")


def socket_path(root: Path, target: str) -> Path | None:
    """Return the path of the socket of a project and target; None if the user has no private folder."""
    folder = own_folder(_FOLDER)
    if folder is None:
        return None
    parts = (os.fsencode(root.resolve()), target.encode(), socket.gethostname().encode())
    name = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
    return folder / f"{name}.sock"


@contextmanager
def address(path: Path) -> Iterator[str]:
    """Yield an address of a socket that fits into the 108 bytes of `sun_path`, however long its path is."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def is_private(path: Path) -> bool:
    return is_own(path.parent, private=True)


def peer_credentials(connection: socket.socket) -> tuple[int, int]:
    """Return the process id and the user id of the other end, as the kernel reports them."""
    process, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return process, user


def acquire(path: Path) -> int:
    """Acquire a socket: return the descriptor of its lock, which the system frees when this process ends.

    Raise StateError `project-running` if another process owns it, OSError if the lock cannot be created.
    """
    lock = _lock_file(path)
    for _ in range(_ATTEMPTS):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last owner may have removed it after it was opened here.
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise _running(path) from None
        except FileNotFoundError:
            pass
        os.close(descriptor)
    raise _running(path)


def release(path: Path, descriptor: int) -> None:
    """Remove an acquired socket, and free its lock."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
        _lock_file(path).unlink(missing_ok=True)
    os.close(descriptor)


def owner(path: Path) -> int | None:
    """Return the process id that the owner of a socket wrote; None: unknown."""
    try:
        return int(_lock_file(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _lock_file(path: Path) -> Path:
    return path.with_suffix(".lock")


def _running(path: Path) -> StateError:
    number = owner(path)
    owner_text = f"process {number}" if number else "another process"
    hint = "Use it, or stop it first: engine stop."
    return StateError("project-running", f"{owner_text} keeps this project and target running already", hint)


LONGEST = 1024 * 1024
_CHUNK = 64 * 1024


class MalformedError(Exception):
    """A message is not one line of JSON with an object, or it is too long."""


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def receive(connection: socket.socket, seconds: float) -> dict[str, Any]:
    """Receive one line; raise OSError (TimeoutError) if it is late, MalformedError if it is no JSON object."""
    deadline = time.monotonic() + seconds
    received = bytearray()
    while (end := received.find(b"\n")) < 0:
        if len(received) > LONGEST:
            raise MalformedError(f"a line is longer than {LONGEST} bytes")
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        chunk = connection.recv(_CHUNK)
        if not chunk:
            raise ConnectionResetError("the other end has left")
        received += chunk
    try:
        value = json.loads(received[:end])
    except (ValueError, RecursionError) as error:
        raise MalformedError("not JSON") from error
    if not isinstance(value, dict):
        raise MalformedError("not a JSON object")
    return value


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
    """Own a socket until `close`; the constructor raises `project-running` or `control-folder`."""

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
        """Accept no more connections, give running requests `seconds` to end, and remove the socket."""
        if self._closing:
            return
        self._closing = True
        # Wakes the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        deadline = time.monotonic() + seconds
        for worker in tuple(self._workers):
            worker.join(max(0.0, deadline - time.monotonic()))
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
                if not is_own_user(peer_credentials(client)[1]):
                    return
                reply = self._reply(client)
                client.settimeout(_ANSWER_SECONDS)
                send(client, reply)
        finally:
            self._workers.discard(threading.current_thread())

    def _reply(self, client: socket.socket) -> Mapping[str, Any]:
        try:
            request = receive(client, REQUEST_SECONDS)
        except TimeoutError:
            return _error("request-invalid", "no complete request came in time", _AGAIN)
        except MalformedError as error:
            return _error("request-invalid", f"the request cannot be read: {error}", _AGAIN)
        name = request.pop("do", None)
        handler = self._handlers.get(name) if isinstance(name, str) else None
        if handler is None:
            handler_names = ", ".join(sorted(self._handlers))
            return _error("request-invalid", f"unknown request {name!r}", f"Known: {handler_names}.")
        try:
            handler(request)
        except EngineError as error:
            return _error_reply(error.diagnostic)
        except Exception as error:  # noqa: BLE001 - the client gets it, and the server serves others
            _log.exception("a request failed")
            message = f"{type(error).__name__}: {error}"
            return _error("internal-error", message, "The log of that process has the details.")
        return {}


def _listen(path: Path | None) -> tuple[Path, int, socket.socket]:
    """Acquire a socket and listen on it; raise `project-running`, or OSError if the folder is not private."""
    if path is None:
        raise OSError("the user has no folder for it")
    create_private(path.parent)
    if not is_own(path.parent, private=True):
        raise PermissionError(1, f"{path.parent} is not a folder of this user alone")
    lock = acquire(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Clients see it when it listens.
    unlinked = path.with_suffix(".new")
    try:
        unlinked.unlink(missing_ok=True)
        with address(unlinked) as name:
            listener.bind(name)
        unlinked.chmod(0o600)
        listener.listen(128)
        # In the place of one that a killed process left.
        unlinked.replace(path)
    except BaseException:
        listener.close()
        release(path, lock)
        raise
    return path, lock, listener


def _error_reply(diagnostic: Diagnostic) -> dict[str, dict[str, str]]:
    message, hint = scrub(diagnostic.message), scrub(diagnostic.hint)
    return {"error": {"code": diagnostic.code, "message": message, "hint": hint}}


def _error(code: str, message: str, hint: str) -> dict[str, dict[str, str]]:
    return _error_reply(Diagnostic(code, message, hint))


_CONNECT_SECONDS = 5.0
_CLIENT_SECONDS = 30.0


def ask(path: Path | None, name: str, /, **arguments: Any) -> int | None:
    """Send a request to the owner of a socket; return its process id, or None if no process of this user owns it.

    Raise StateError with the reply's code, or `process-lost` if the process has ended or does not answer.
    """
    if path is None or not path.exists() or not is_private(path):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(_CONNECT_SECONDS)
            with address(path) as place:
                connection.connect(place)
            pid, user = peer_credentials(connection)
        except OSError:
            return None
        if not is_own_user(user):
            return None
        try:
            send(connection, {"do": name, **arguments})
            reply = receive(connection, _CLIENT_SECONDS)
        except (OSError, MalformedError) as error:
            message = f"process {pid}, which carried out the command, has ended or does not respond"
            hint = "Run the command again: rows that were committed are kept, and the next build continues there."
            raise StateError("process-lost", message, hint) from error
    if (reason := reply.get("error")) is not None:
        raise _as_error(reason)
    return pid


def _as_error(reason: object) -> StateError:
    from engine.diagnostics.codes import CODES

    fields: Mapping[str, Any] = reason if isinstance(reason, dict) else {}
    code = fields.get("code")
    handler_names = code if isinstance(code, str) and code in CODES else "internal-error"
    return StateError(handler_names, str(fields.get("message", "")), str(fields.get("hint", "")))
