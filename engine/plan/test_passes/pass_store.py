"""The passes of tests, as they are kept from one command to the next: hashes and times, no text and no row.

They are kept in the user's cache of the project, which `engine clean` removes: a file that comes with the project is
not believed. There is one file a target, for its owner only, written at once or not at all.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.bounds.regular_file import MOST_OF_A_CACHE, read_regular
from engine.compile.artifacts.node_json import digest
from engine.errors import ProjectError
from engine.target_folder import TargetFolder
from engine.user_cache import is_own

FOLDER = "passes"
_LOCK = "lock"
_FORM = 1


@dataclass(frozen=True, slots=True)
class LastPass:
    """The last pass of a test: a hash of all that decided on it, and its time in UTC."""

    key: str
    at: str


class _Content(msgspec.Struct, frozen=True):
    form: int
    passes: dict[str, LastPass]


def read_passes(cache: Path | None, target: str) -> dict[str, LastPass]:
    """Return the passes for a target by the ids of their tests; none if there is no file of ours that can be read."""
    if cache is None or not is_own(cache / FOLDER, private=True):
        return {}
    path = cache / FOLDER / _name(target)
    with suppress(OSError, ValueError, RecursionError, msgspec.MsgspecError):
        if is_own(path, private=True):
            content = msgspec.json.decode(read_regular(path, MOST_OF_A_CACHE), type=_Content)
            return content.passes if content.form == _FORM else {}
    return {}


def write_passes(
    cache: Path, target: str, passed: Mapping[str, LastPass], others: Collection[str], tests: Collection[str]
) -> None:
    """Keep passes beside those of other runs, of the project's `tests` only; a failed write is not an error."""
    with suppress(OSError, ProjectError), TargetFolder(cache / FOLDER) as folder:
        folder.make("")
        with _alone(cache / FOLDER):
            before = read_passes(cache, target)
            kept = {**before, **passed}
            kept = {test: kept[test] for test in sorted(kept) if test in tests and test not in others}
            if kept != before:
                folder.write(_name(target), msgspec.json.encode(_Content(_FORM, kept)))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / _LOCK, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _name(target: str) -> str:
    # What is asked for by --target need not be a file's name.
    return f"{target if re.fullmatch(r'[a-z][a-z0-9_]{0,60}', target) else digest(target)}.json"
