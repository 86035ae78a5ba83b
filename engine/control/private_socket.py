"""Where the socket of a project and target is, and who owns it.

The folder is the user's alone. The name has the host in it: a home folder may be shared by several machines, and a
socket works on one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import StateError
from engine.user_cache import is_own, own_folder

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
