"""Ask the process that keeps a project running."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from engine.control.messages import MalformedError, MessageReader, send
from engine.control.private_socket import address, is_private, peer
from engine.errors import StateError
from engine.user_cache import is_own_user


class Client:
    """A connection, on which one request is asked at a time.

    Attributes:
        pid: of the process that answers.
    """

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.pid = pid
        self._connection = connection
        self._lines = MessageReader(connection)

    def ask(self, name: str, /, *, files: Sequence[int] = (), **arguments: Any) -> Iterator[dict[str, Any]]:
        """Yield the answers to a request; the last one has the key `end`.

        Args:
            name: of the request.
            files: descriptors that the process gets.
            arguments: JSON values.

        Raises:
            StateError: the code, message and hint of the process; `process-lost`: it has ended, or does not answer.
        """
        ended = False
        try:
            send(self._connection, {"do": name, **arguments}, files)
            while not ended:
                answer = self._answer()
                if (error := answer.get("error")) is not None:
                    ended = True
                    raise _as_error(error)
                ended = "end" in answer
                yield answer
        except (OSError, MalformedError) as error:
            raise self._lost() from error
        finally:
            if not ended:
                self.close()

    def cancel(self, signal: int) -> None:
        """Ask the process to end what it does for this client, as a signal would."""
        try:
            send(self._connection, {"do": "cancel", "signal": signal})
        except OSError:
            return  # whoever reads the answers sees it

    def set_timeout(self, seconds: float | None) -> None:
        """Set how long the process may take for each answer; None: any time."""
        self._connection.settimeout(seconds)

    def close(self) -> None:
        """Leave; what the process does for this client is cancelled."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        while True:
            answer = self._lines.next()
            if answer is not None:
                return answer
            if not self._lines.receive():
                raise self._lost()

    def _lost(self) -> StateError:
        message = f"process {self.pid}, which carried out the command, has ended or does not answer"
        hint = "Run the command again: rows that were committed are kept, and the next build continues there."
        return StateError("process-lost", message, hint)


def connect(path: Path | None, timeout: float | None = 30.0) -> Client | None:
    """Return a connection to the process that owns a socket; None: nobody does, or it is not the user's process.

    Args:
        path: of the socket; None gives None.
        timeout: seconds that the process may take for each answer; None: any time.
    """
    if path is None or not path.exists() or not is_private(path):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(5.0)
        with address(path) as name:
            connection.connect(name)
        pid, user = peer(connection)
        if is_own_user(user):
            connection.settimeout(timeout)
            return Client(connection, pid)
    except OSError:
        pass
    connection.close()
    return None


def _as_error(error: object) -> StateError:
    from engine.diagnostics.codes import CODES

    found: Mapping[str, Any] = error if isinstance(error, dict) else {}
    code = found.get("code")
    known = code if isinstance(code, str) and code in CODES else "internal-error"
    return StateError(known, str(found.get("message", "")), str(found.get("hint", "")))
