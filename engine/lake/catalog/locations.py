"""Where a location of Iceberg's leads: below the warehouse, or nowhere. Needs no library.

Locations are in the catalog, in metadata files and in what state kept of them; all of these may come with a project
that somebody else wrote.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path

from engine import local_paths


class OutsideError(OSError):
    pass


def root(warehouse: Path) -> Path:
    return _resolved(str(warehouse), _file_identity(warehouse))


def _file_identity(folder: Path) -> tuple[int, int] | None:
    try:
        stats = folder.stat()
    except OSError:
        return None
    return stats.st_dev, stats.st_ino


@lru_cache(maxsize=8)
def _resolved(warehouse: str, _: tuple[int, int] | None) -> Path:
    return Path(os.path.realpath(warehouse))


def resolve(warehouse: Path, location: str) -> Path:
    """The file or folder of a location, links resolved. Raises OutsideError: it is not below the warehouse."""
    return Path(path_of(warehouse, location))


def path_of(warehouse: Path, location: str) -> str:
    """The same as a text: of a thousand tables the paths take as long as the looks at the disk.

    Raises OutsideError: it is not below the warehouse.
    """
    return _below(root(warehouse), location)


def resolve_below(folder: Path, location: str) -> Path:
    return Path(_below(folder, location))


def _below(folder: Path, location: str) -> str:
    path = location if location.startswith("/") else local_paths.path_of_location(location)
    if path is None:
        raise OutsideError(location)
    try:
        if _has_no_link(path, str(folder)):
            return path
        resolved = os.path.realpath(path)
    except ValueError as error:
        raise OutsideError(location) from error
    if resolved != str(folder) and not resolved.startswith(f"{folder}/"):
        raise OutsideError(location)
    return resolved


def _has_no_link(path: str, root: str) -> bool:
    """Avoid `os.path.realpath`, which checks each part of the way from `/`: most of the time with many tables."""
    if not path.startswith(f"{root}/"):
        return False
    at = root
    for part in path[len(root) + 1 :].split("/"):
        at = f"{at}/{part}"
        try:
            if part in {"", ".", ".."} or stat.S_ISLNK(os.lstat(at).st_mode):
                return False
        except OSError:
            return False
    return True
