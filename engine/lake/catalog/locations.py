"""Where a location of Iceberg's leads: below the warehouse, or nowhere. Needs no library.

Locations are in the catalog, in metadata files and in what state kept of them; all of these may come with a project
that somebody else wrote.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit


class OutsideError(OSError):
    """A location that is not below the warehouse."""


def roots(warehouse: Path) -> tuple[Path, ...]:
    """The folder of a warehouse, links resolved; Java takes its address as it is written, without decoding it."""
    written = urlsplit(warehouse.absolute().as_uri()).path
    return tuple({Path(os.path.realpath(path)) for path in (warehouse, written)})


def resolve(warehouse: Path, location: str) -> Path:
    """The file or folder of a location, links resolved.

    Raises:
        OutsideError: it is not below the warehouse.
    """
    return resolve_below(roots(warehouse), location)


def resolve_below(folders: tuple[Path, ...], location: str) -> Path:
    """The same for folders that `roots` gave.

    Raises:
        OutsideError: it is below none of them.
    """
    try:
        parts = urlsplit(location)
        path = location if not parts.scheme else parts.path
        if parts.scheme not in {"", "file"} or parts.netloc or not path.startswith("/"):
            raise OutsideError(location)
        resolved = Path(os.path.realpath(path))
    except ValueError as error:
        raise OutsideError(location) from error
    if not any(resolved.is_relative_to(root) for root in folders):
        raise OutsideError(location)
    return resolved
