"""The user's own cache folder: its content is trusted, because nobody else could have written it.

It must be a real folder of the user that nobody else may write to, and lie in no project or checkout: what is in there
came with the project.
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
_OTHERS_MAY_WRITE = 0o022
_NAME = re.compile("[0-9a-f]{32}")
_CHECKOUTS = (".git", ".hg", ".svn", "project.yml")
# Of this many projects and bytes the caches are kept; those used last stay.
_PROJECTS = 50
_BYTES = 2_000_000_000
# How often the time of use is noted.
_TOUCH_SECONDS = 3600


def cache_home(env: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder `headrace` in the user's cache folder; None if the user has no home."""
    base = env.get("XDG_CACHE_HOME", "")
    # The specification of XDG says that a relative path is to be ignored.
    if Path(base).is_absolute():
        return Path(base) / "headrace"
    try:
        return Path.home() / ".cache" / "headrace"
    except RuntimeError:
        return None


def project_cache(target: Path, env: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder that keeps facts about a project between commands, outside the project.

    ENGINE_CACHE names another folder than `projects` in the user's cache. None if there can be no private folder: then
    nothing is cached, and everything works.
    """
    named_folder, home = env.get("ENGINE_CACHE", ""), cache_home(env)
    if named_folder and not Path(named_folder).is_absolute():
        return None
    base = Path(named_folder) if named_folder else home / "projects" if home else None
    if base is None or in_checkout(base):
        return None
    name = hashlib.sha256(os.fsencode(target.parent.resolve() / target.name)).hexdigest()[:32]
    folder = base / name
    try:
        is_new = not folder.exists()
        create_private(folder)
        if not is_own(folder, private=True) or not os.access(folder, os.W_OK):
            return None
        if is_new:
            _remove_oldest(base, folder)
        elif time.time() - folder.stat().st_mtime > _TOUCH_SECONDS:
            os.utime(folder)
    except OSError:
        return None
    return folder


def own_folder(name: str, env: Mapping[str, str] = os.environ) -> Path | None:
    """Return a folder in the user's cache, created if missing; None if it cannot be private."""
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
    """Create a folder and its parents for the user alone: `mkdir` sets the mode of the last one only.

    `headrace` and its direct subfolders lose the permissions of others. A folder that others may write to stays as it
    is, and is not used: its content may be theirs. Raise OSError if one cannot be created.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=_MODE, exist_ok=True)
    for path in (folder, folder.parent, folder.parent.parent):
        if "headrace" in (path.name, path.parent.name) and (path != folder or is_own(folder)):
            _close(path)


def _close(folder: Path) -> None:
    """Remove others' permissions from a folder of the user; a link is left as it is."""
    file_stat = folder.lstat()
    if stat.S_ISDIR(file_stat.st_mode) and file_stat.st_uid == os.geteuid() and file_stat.st_mode & 0o077:
        folder.chmod(_MODE)


def is_own(path: Path, *, private: bool = False) -> bool:
    """Return whether the user owns a path that others cannot write, and that is not a link; `private`: nor read it."""
    try:
        file_stat = path.lstat()
        if not (stat.S_ISREG(file_stat.st_mode) or stat.S_ISDIR(file_stat.st_mode)) or file_stat.st_uid != os.geteuid():
            return False
    except OSError:
        return False
    return not file_stat.st_mode & (0o077 if private else _OTHERS_MAY_WRITE)


def is_own_user(user: int) -> bool:
    return user == os.geteuid()


def in_checkout(folder: Path) -> bool:
    """Return whether a folder is in a project or checkout, whose content came from others; a home is none."""
    home = _home()
    real = folder.resolve()
    return any(
        (above / name).exists()
        for above in (real, *real.parents)
        for name in _CHECKOUTS
        if above != home or name == _CHECKOUTS[-1]
    )


def _home() -> Path | None:
    """Return the user's home as the system has it, not the environment, which CI sets to its workspace."""
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve()
    except (KeyError, RuntimeError, OSError):
        return None


def _remove_oldest(base: Path, new: Path) -> None:
    """Remove the least recently used caches beyond a number and a size."""
    if not is_own(base):
        return
    with suppress(OSError):
        folders = [path for path in base.iterdir() if _NAME.fullmatch(path.name) and path != new]
        room = _BYTES
        for place, path in enumerate(sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True), 2):
            room -= sum(file.lstat().st_size for file in path.rglob("*"))
            if place > _PROJECTS or room < 0:
                shutil.rmtree(path, ignore_errors=True)
