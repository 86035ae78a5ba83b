"""Which project folders may give which secrets to which places: a file of the user, outside projects.

A project names its servers and the variables that hold their logins, so that whoever writes a project could have any
secret of the environment sent anywhere. A secret is therefore given out for pairs that somebody has confirmed:
`engine trust` asks on a terminal and writes them here; ENGINE_TRUST names places, or says 1, where nobody can be asked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.bounds.regular_file import parse_json, read_regular
from engine.errors import SetupError
from engine.secrets.secret_places import Gift
from engine.user_cache import in_checkout, is_own

VARIABLE = "ENGINE_TRUST"
_EVERYTHING = ("1", "true", "yes", "on")
_NAME = "trust.json"
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_MOST_BYTES = 1 << 22


def unconfirmed_gifts(root: Path, gifts: Iterable[Gift], env: Mapping[str, str] | None = None) -> tuple[Gift, ...]:
    """Return gifts that nobody has confirmed; ENGINE_TRUST in `env` is `1`, or a list of places."""
    gifts = tuple(dict.fromkeys(gifts))
    trusted_text = (os.environ if env is None else env).get(VARIABLE, "").strip()
    if not gifts or trusted_text.lower() in _EVERYTHING:
        return ()
    places = {place.strip().lower() for place in trusted_text.split(",")}
    unlisted = tuple(gift for gift in gifts if gift.place.lower() not in places)
    confirmed_gifts = confirmed(root) if unlisted else frozenset()
    return tuple(gift for gift in unlisted if gift not in confirmed_gifts)


def trust_file() -> Path | None:
    """Return the path of the user's file; None: the user has no home."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "headrace" / _NAME
    try:
        return Path.home() / ".config" / "headrace" / _NAME
    except RuntimeError:
        return None


def confirmed(root: Path) -> frozenset[Gift]:
    """Return the confirmed gifts of a project's folder; none if others could have written the file."""
    return frozenset(Gift(*pair) for pair in _read().get(str(root.resolve()), ()))


def confirm(root: Path, gifts: Iterable[Gift]) -> Path:
    """Add gifts to a project's folder; return the file, or raise SetupError `trust-file`."""
    confirmed_gifts = _read()
    name = str(root.resolve())
    pairs = {(gift.secret, gift.place) for gift in gifts} | {(s, p) for s, p in confirmed_gifts.get(name, ())}
    return _write({**confirmed_gifts, name: sorted(pairs)})


def forget(root: Path) -> Path:
    """Remove the gifts of a project's folder; return the file, or raise SetupError `trust-file`."""
    return _write({name: pairs for name, pairs in _read().items() if name != str(root.resolve())})


def _read() -> dict[str, list[tuple[str, str]]]:
    path = trust_file()
    if path is None or not _is_the_users(path):
        return {}
    try:
        content = parse_json(read_regular(path, _MOST_BYTES))
        projects = content["projects"]
        return {str(name): [(str(secret), str(place)) for secret, place in pairs] for name, pairs in projects.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _is_the_users(path: Path) -> bool:
    """Return whether nobody else could have written the file, by permissions or in a checkout."""
    return is_own(path, private=True) and is_own(path.parent, private=True) and not in_checkout(path.parent)


def _write(projects: Mapping[str, Iterable[tuple[str, str]]]) -> Path:
    path = trust_file()
    if path is None:
        raise SetupError("trust-file", "there is no home folder to keep trust in", "Set HOME, or ENGINE_TRUST in CI.")
    temporary = path.with_name(f"{_NAME}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        if not is_own(path.parent, private=True) or in_checkout(path.parent):
            hint = f"Make it yours alone (chmod 700 {path.parent}), outside checkouts and projects."
            raise SetupError("trust-file", f"others could write to the folder {path.parent}", hint)
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE
        )
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump({"projects": {name: list(pairs) for name, pairs in projects.items()}}, stream, indent=1)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        message = f"the file {path} cannot be written: {error.strerror}"
        raise SetupError("trust-file", message, "Make the folder writable, or set ENGINE_TRUST.") from error
    return path
