"""Proof that a record below target/ is of this user, and did not come with a checkout: a seal with a key elsewhere.

The key is in the user's own cache folder, outside projects. A seal is for one place (folder and name) and one content:
who cannot read the key can make none. Nothing of a record is read before its seal is compared.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from engine.bounds.regular_file import read_regular
from engine.user_cache import is_own, own_folder

_FOLDER, _KEY = "keys", "records"
_BYTES = 32
_BEFORE, _AFTER = b', "seal": "', b'"}'
_LENGTH = len(_BEFORE) + 2 * hashlib.sha256().digest_size + len(_AFTER)


def sealed(content: bytes, target_dir: Path, name: str) -> bytes:
    """Return a JSON object with its seal as the last key; unchanged if the user has no folder for the key."""
    key = _key(make=True)
    if key is None:
        return content
    return content[:-1] + _BEFORE + _seal(key, content, target_dir, name) + _AFTER


def verified(content: bytes, target_dir: Path, name: str) -> bytes | None:
    """Return the object without its seal; None: this user did not write it, or not there."""
    key = _key(make=False)
    if key is None or len(content) <= _LENGTH:
        return None
    unsealed, end = content[:-_LENGTH] + b"}", content[-_LENGTH:]
    seal = _BEFORE + _seal(key, unsealed, target_dir, name) + _AFTER
    return unsealed if hmac.compare_digest(seal, end) else None


def _seal(key: bytes, content: bytes, target_dir: Path, name: str) -> bytes:
    place = os.fsencode(target_dir.parent.resolve() / target_dir.name / name)
    return hmac.new(key, b"\0".join((hashlib.sha256(place).digest(), content)), hashlib.sha256).hexdigest().encode()


def _key(*, make: bool) -> bytes | None:
    """The key; None if there is none, or others could have written it."""
    folder = own_folder(_FOLDER)
    if folder is None:
        return None
    path = folder / _KEY
    key = _read(path)
    if key is None and make:
        with suppress(OSError):
            _create(path)
        key = _read(path)
    return key


def _read(path: Path) -> bytes | None:
    try:
        content = read_regular(path, _BYTES)
    except OSError:
        return None
    return content if len(content) == _BYTES and is_own(path, private=True) else None


def _create(path: Path) -> None:
    """Put a whole new key in its place; of two processes that do, the last one's stays, and both read that.

    Raises OSError: it cannot be written.
    """
    temporary = path.with_name(f".{os.getpid()}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
