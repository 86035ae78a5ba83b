"""The user's own cache folder: what is kept there is believed, because nobody else could have written it.

A folder counts if it is a real folder, belongs to the user who runs the command, and nobody else may write to it. One
that lies in a project or a checkout does not: what is in it came with the project.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_MODE = 0o700
_OTHERS = 0o022
_NAME = re.compile("[0-9a-f]{32}")
_CHECKOUTS = (".git", ".hg", ".svn", "project.yml")
# Of this many projects and bytes the caches are kept; those used last stay.
_PROJECTS = 50
_BYTES = 2_000_000_000
# How often the time of use is noted.
_NOTED_AFTER = 3600


def cache_home(env: Mapping[str, str] = os.environ) -> Path | None:
    """The folder `headrace` in the user's cache folder; None if the user has no home."""
    base = env.get("XDG_CACHE_HOME", "")
    # The specification of XDG says that a relative path is to be ignored.
    if Path(base).is_absolute():
        return Path(base) / "headrace"
    try:
        return Path.home() / ".cache" / "headrace"
    except RuntimeError:
        return None


def project_cache(target: Path, env: Mapping[str, str] = os.environ) -> Path | None:
    """The folder that keeps what is known of a project from one command to the next, outside the project.

    Args:
        env: ENGINE_CACHE names another folder than `projects` in the user's cache.

    Returns:
        A folder that is there and only the user's; None if there can be none: then nothing is kept, and all works.
    """
    own, home = env.get("ENGINE_CACHE", ""), cache_home(env)
    if own and not Path(own).is_absolute():
        return None
    base = Path(own) if own else home / "projects" if home else None
    if base is None or in_checkout(base):
        return None
    name = hashlib.sha256(os.fsencode(target.parent.resolve() / target.name)).hexdigest()[:32]
    folder = base / name
    try:
        fresh = not folder.exists()
        create_private(folder)
        if not is_own(folder, private=True) or not os.access(folder, os.W_OK):
            return None
        if fresh:
            _forget_old(base, folder)
        elif time.time() - folder.stat().st_mtime > _NOTED_AFTER:
            os.utime(folder)
    except OSError:
        return None
    return folder


def own_folder(name: str, env: Mapping[str, str] = os.environ) -> Path | None:
    """A folder of some name in the user's cache, made if it is missing; None if it cannot be the user's alone."""
    home = cache_home(env)
    if home is None or in_checkout(home):
        return None
    folder = home / name
    try:
        create_private(folder)
    except OSError:
        return None
    return folder if is_own(folder, private=True) else None


def create_private(folder: Path) -> None:
    """Make a folder with those above it, which are the user's alone: `mkdir` gives the mode to the last one only.

    The folder `headrace` and what is directly in it lose what others may read there. One that others may write to stays
    as it is, and is not used: what is in it may be theirs.

    Raises:
        OSError: one of them cannot be made.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=_MODE, exist_ok=True)
    for path in (folder, folder.parent, folder.parent.parent):
        if "headrace" in (path.name, path.parent.name) and (path != folder or is_own(folder)):
            _close(path)


def _close(folder: Path) -> None:
    """Take from a folder of the user what others may do in it; a link is left as it is.

    Raises:
        OSError: it cannot be changed.
    """
    seen = folder.lstat()
    if stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and seen.st_mode & 0o077:
        folder.chmod(_MODE)


def is_own(path: Path, *, private: bool = False) -> bool:
    """Whether no link, of the user and writable by nobody else; `private`: nor readable by them."""
    try:
        seen = path.lstat()
        if not (stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode)) or seen.st_uid != os.geteuid():
            return False
    except OSError:
        return False
    return not seen.st_mode & (0o077 if private else _OTHERS)


def is_own_user(user: int) -> bool:
    return user == os.geteuid()


def in_checkout(folder: Path) -> bool:
    """Whether a folder is in a project or a checkout of a repository, whose content came from others.

    A home that is kept in a repository is not a checkout of somebody else's.
    """
    home = _home()
    real = folder.resolve()
    return any(
        (above / name).exists()
        for above in (real, *real.parents)
        for name in _CHECKOUTS
        if above != home or name == _CHECKOUTS[-1]
    )


def _home() -> Path | None:
    """The user's home as the system knows it, not the environment, which CI points at its workspace."""
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve()
    except (KeyError, RuntimeError, OSError):
        return None


def _forget_old(base: Path, new: Path) -> None:
    """Remove the caches that were not used for longest, beyond a number and a size."""
    if not is_own(base):
        return
    with suppress(OSError):
        folders = [path for path in base.iterdir() if _NAME.fullmatch(path.name) and path != new]
        room = _BYTES
        for place, path in enumerate(sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True), 2):
            room -= sum(file.lstat().st_size for file in path.rglob("*"))
            if place > _PROJECTS or room < 0:
                shutil.rmtree(path, ignore_errors=True)
