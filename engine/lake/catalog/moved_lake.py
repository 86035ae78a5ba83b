"""A lake whose folder was renamed: Iceberg records absolute paths, in the catalog and in every metadata file."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from engine.errors import SetupError
from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_settings import CatalogConfig, is_local


def check(config: CatalogConfig) -> None:
    """Make sure that tables are where the catalog has them, without Java.

    Raises:
        SetupError: `lake-moved`; `lake-outside` or `catalog-unusable` if the catalog is not read.
    """
    error = moved(config)
    if error is not None:
        raise error


def moved(config: CatalogConfig) -> SetupError | None:
    """Why the metadata of a table is not where the catalog has it, if that is because the lake is elsewhere now.

    Raises:
        SetupError: `lake-outside`, `catalog-unusable`.
    """
    if not is_local(config) or config.objects:
        return None
    here = f"{(config.path / 'warehouse').absolute()}/"
    elsewhere = (path for path in _locations(config) if not path.startswith(here))
    missing = next((path for path in elsewhere if not os.path.exists(path)), None)  # noqa: PTH110 - False for any name
    if missing is None:
        return None
    location = Path(missing)
    # <lake>/warehouse/<schema>/<table>/metadata/<file>
    before = location.parents[4] if len(location.parents) > 4 else location.parent  # noqa: PLR2004
    message = (
        f"the warehouse was moved from {before} to {config.path}, but the tables of the catalog {config.name} "
        "record absolute paths"
    )
    hint = (
        f"Move the folder back; or link it to its old name: mkdir -p {before.parent} && ln -s {config.path} "
        f"{before}; or start with an empty warehouse: remove {config.path} and the state folder, and build again."
    )
    return SetupError("lake-moved", message, hint)


def _locations(config: CatalogConfig) -> list[str]:
    """The metadata files of all tables on this machine."""
    places = [place for location in catalog_database.locations(config) if (place := _parsed(location))]
    paths = [unquote(place.path) for place in places if place.scheme in {"", "file"} and not place.netloc]
    return [path for path in paths if path.startswith("/")]


def _parsed(location: str) -> SplitResult | None:
    try:
        return None if "\0" in location else urlsplit(location)
    except ValueError:
        return None
