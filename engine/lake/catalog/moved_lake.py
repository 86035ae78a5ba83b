"""A lake whose tables are elsewhere: Iceberg records absolute paths, in the catalog and in every metadata file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from engine import local_paths
from engine.errors import SetupError
from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_settings import CATALOG_FILE, CatalogConfig, is_local, warehouse


def check(config: CatalogConfig) -> None:
    """Make sure that tables are where the catalog has them, without Java.

    Raises SetupError: `lake-moved`; `lake-outside` or `catalog-unusable` if the catalog is not read.
    """
    error = moved_error(config)
    if error is not None:
        raise error


def moved_error(config: CatalogConfig) -> SetupError | None:
    """Why the metadata of a table is not where the catalog has it, if that is because the lake is elsewhere now.

    Raises SetupError: `lake-outside`, `catalog-unusable`; `lake-moved`, the catalog itself is elsewhere.
    """
    if not is_local(config) or config.objects:
        return None
    warehouse_prefix = f"{(config.path / 'warehouse').absolute()}/"
    elsewhere = [path for path in _paths(catalog_database.locations(config)) if not path.startswith(warehouse_prefix)]
    if error := misplaced_error(config, elsewhere):
        return error
    missing_path = next((path for path in elsewhere if not os.path.exists(path)), None)  # noqa: PTH110 - False for any name
    if missing_path is None:
        return None
    location = Path(missing_path)
    # <lake>/warehouse/<schema>/<table>/metadata/<file>
    earlier_lake = location.parents[4] if len(location.parents) > 4 else location.parent  # noqa: PLR2004
    message = (
        f"the warehouse was moved from {earlier_lake} to {config.path}, but the tables of the catalog {config.name} "
        "record absolute paths"
    )
    old, old_parent, new = (shlex.quote(str(path)) for path in (earlier_lake, earlier_lake.parent, config.path))
    hint = (
        f"Move the folder back; or link it to its old name: mkdir -p {old_parent} && ln -s {new} {old}; "
        f"or start with an empty warehouse: remove {new} and the state folder, and build again."
    )
    return SetupError("lake-moved", message, hint)


def misplaced_error(config: CatalogConfig, locations: Iterable[str]) -> SetupError | None:
    """Why tables are outside of the warehouse, if an earlier version wrote them there.

    It gave Hadoop the encoded address of the warehouse, and Hadoop decodes nothing: in the project `a b` tables were
    written to the folder `a%20b` beside it.
    """
    folder = warehouse(config)
    if not isinstance(folder, Path):
        return None
    encoded = local_paths.encoded_path(folder)
    if encoded == str(folder) or not any(_is_misplaced(path, encoded, folder) for path in _paths(locations)):
        return None
    message = (
        f"the tables of the catalog {config.name} are in {encoded}, outside of {folder}: earlier versions of Headrace "
        "wrote to the encoded name of a folder"
    )
    old, new = shlex.quote(encoded), shlex.quote(str(folder))
    choice = (
        f"Move them, and leave a link, as tables record absolute paths: rmdir {new}; mv {old} {new} && "
        f"ln -s {new} {old}; or start with an empty warehouse"
    )
    if (Path(encoded).parent / CATALOG_FILE).exists():
        choice = (
            "Another project has its tables in that folder, so leave it as it is, and start with an empty warehouse"
        )
    hint = f"{choice}: remove {new}, the catalog and the state folder, and build again."
    return SetupError("lake-moved", message, hint)


def _is_misplaced(path: str, encoded: str, folder: Path) -> bool:
    try:
        return path.startswith(f"{encoded}/") and not Path(os.path.realpath(path)).is_relative_to(folder.resolve())
    except (OSError, ValueError):
        return False


def _paths(locations: Iterable[str]) -> list[str]:
    paths = (place if place.startswith("/") else local_paths.path_of_location(place) for place in locations)
    return [path for path in paths if path is not None and "\0" not in path]
