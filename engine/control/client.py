"""Ask the process that keeps a project running."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.control.messages import MalformedError, receive, send
from engine.control.private_socket import address, is_private, peer
from engine.errors import StateError
from engine.user_cache import is_own_user

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0


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
            answer = receive(connection, _ANSWER_SECONDS)
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
