"""Where the socket of a project and target is, and who owns it.

The folder is the user's alone. The name has the host in it: a home folder may be shared by several machines, and a
socket works on one.

One line of JSON on a socket: a request, or the answer to it.

Answer requests on the private socket of a project and target.

One thread accepts connections; each has a thread of its own, which receives one request `{"do": name, ...}` and answers
`{}` or `{"error": {"code", "message", "hint"}}`.

Ask the process that keeps a project running.
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
from engine.secrets import scrub
from engine.user_cache import create_private, is_own, is_own_user, own_folder

_FOLDER = "run"
_ATTEMPTS = 10
# struct ucred of unix(7): process, user, group.
_PEER = struct.Struct("3i")


def socket_path(root: Path, target: str) -> Path | None:
    """Return the path of the socket of a project and target; None if the user has no folder that is theirs alone."""
    folder = own_folder(_FOLDER)
    if folder is None:
        return None
    parts = (os.fsencode(root.resolve()), target.encode(), socket.gethostname().encode())
    name = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
    return folder / f"{name}.sock"


@contextmanager
def address(path: Path) -> Iterator[str]:
    """Yield an address of a socket that fits into the 108 bytes of `sun_path`, however long its path is.

    Raises:
        OSError: the folder cannot be opened.
    """
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def is_private(path: Path) -> bool:
    return is_own(path.parent, private=True)


def peer(connection: socket.socket) -> tuple[int, int]:
    """Return the process id and the user id at the other end, as the kernel has them."""
    process, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return process, user


def own(path: Path) -> int:
    """Own a socket: return the descriptor of its lock, which is free when this process ends, however it does.

    Raises:
        StateError: `project-running`: another process owns it.
        OSError: the lock cannot be made.
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
    """Remove a socket that is owned, and free its lock."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
        _lock_file(path).unlink(missing_ok=True)
    os.close(descriptor)


def owner(path: Path) -> int | None:
    """Return the process id of the owner of a socket, as it wrote it; None: not known."""
    try:
        return int(_lock_file(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _lock_file(path: Path) -> Path:
    return path.with_suffix(".lock")


def _running(path: Path) -> StateError:
    number = owner(path)
    which = f"process {number}" if number else "another process"
    hint = "Use it, or stop it first: engine stop."
    return StateError("project-running", f"{which} keeps this project and target running already", hint)


LONGEST = 1024 * 1024
_CHUNK = 64 * 1024


class MalformedError(Exception):
    """What came is not a line of JSON with an object, or it is too long."""


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a line.

    Raises:
        OSError: the other end has left, or does not read (TimeoutError).
    """
    connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def receive(connection: socket.socket, seconds: float) -> dict[str, Any]:
    """Receive a line.

    Raises:
        OSError: the other end has left, or it did not come in time (TimeoutError).
        MalformedError: it is too long, or not a JSON object.
    """
    until = time.monotonic() + seconds
    received = bytearray()
    while (end := received.find(b"\n")) < 0:
        if len(received) > LONGEST:
            raise MalformedError(f"a line is longer than {LONGEST} bytes")
        connection.settimeout(max(0.001, until - time.monotonic()))
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


_CONNECT_SECONDS = 5.0
_CLIENT_SECONDS = 30.0


def ask(path: Path | None, name: str, /, **arguments: Any) -> int | None:
    """Have the owner of a socket carry out a request; return its id, None: nobody owns it, or not the user's process.

    Raises:
        StateError: the code, message and hint of the process; `process-lost`: it has ended, or does not answer.
    """
    if path is None or not path.exists() or not is_private(path):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(_CONNECT_SECONDS)
            with address(path) as place:
                connection.connect(place)
            pid, user = peer(connection)
        except OSError:
            return None
        if not is_own_user(user):
            return None
        try:
            send(connection, {"do": name, **arguments})
            answer = receive(connection, _CLIENT_SECONDS)
        except (OSError, MalformedError) as error:
            message = f"process {pid}, which carried out the command, has ended or does not answer"
            hint = "Run the command again: rows that were committed are kept, and the next build continues there."
            raise StateError("process-lost", message, hint) from error
    if (reason := answer.get("error")) is not None:
        raise _as_error(reason)
    return pid


def _as_error(reason: object) -> StateError:
    from engine.diagnostics.codes import CODES

    fields: Mapping[str, Any] = reason if isinstance(reason, dict) else {}
    code = fields.get("code")
    known = code if isinstance(code, str) and code in CODES else "internal-error"
    return StateError(known, str(fields.get("message", "")), str(fields.get("hint", "")))
