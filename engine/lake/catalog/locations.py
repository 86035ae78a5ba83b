"""Where a location of Iceberg's leads: below the warehouse, or nowhere. Needs no library.

Locations are in the catalog, in metadata files and in what state kept of them; all of these may come with a project
that somebody else wrote.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit


class OutsideError(OSError):
    """A location that is not below the warehouse."""


def roots(warehouse: Path) -> tuple[Path, ...]:
    """The folder of a warehouse, links resolved; Java takes its address as it is written, without decoding it."""
    written = _written(warehouse)
    return _resolved(str(warehouse), written, _which(warehouse), _which(written))


@lru_cache(maxsize=8)
def _written(warehouse: Path) -> str:
    return urlsplit(warehouse.absolute().as_uri()).path


def _which(folder: Path | str) -> tuple[int, int] | None:
    """Which folder it is; None: there is none."""
    try:
        found = os.stat(folder)  # noqa: PTH116 - a text is as good
    except OSError:
        return None
    return found.st_dev, found.st_ino


@lru_cache(maxsize=8)
def _resolved(warehouse: str, written: str, *_: tuple[int, int] | None) -> tuple[Path, ...]:
    """Both with links resolved; asked again for another folder of that name."""
    return tuple({Path(os.path.realpath(path)) for path in (warehouse, written)})


def resolve(warehouse: Path, location: str) -> Path:
    """The file or folder of a location, links resolved.

    Raises:
        OutsideError: it is not below the warehouse.
    """
    return Path(path_of(warehouse, location))


def path_of(warehouse: Path, location: str) -> str:
    """The same as a text: of a thousand tables the paths take as long as the looks at the disk.

    Raises:
        OutsideError: it is not below the warehouse.
    """
    return _below(roots(warehouse), location)


def resolve_below(folders: tuple[Path, ...], location: str) -> Path:
    """The same for folders that `roots` gave.

    Raises:
        OutsideError: it is below none of them.
    """
    return Path(_below(folders, location))


def _below(folders: tuple[Path, ...], location: str) -> str:
    try:
        parts = urlsplit(location)
        path = location if not parts.scheme else parts.path
        if parts.scheme not in {"", "file"} or parts.netloc or not path.startswith("/"):
            raise OutsideError(location)
        for root in folders:
            if _has_no_link(path, str(root)):
                return path
        resolved = os.path.realpath(path)
    except ValueError as error:
        raise OutsideError(location) from error
    if not any(resolved == str(root) or resolved.startswith(f"{root}/") for root in folders):
        raise OutsideError(location)
    return resolved


def _has_no_link(path: str, root: str) -> bool:
    """Whether a path goes from a folder straight to what is in it: the links on the way to the folder are resolved.

    `os.path.realpath` looks at each part of the way from `/`; of a thousand tables that is most of the time.
    """
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
