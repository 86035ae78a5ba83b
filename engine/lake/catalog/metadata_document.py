"""Metadata files of tables and views, read as plain JSON: files or objects below the warehouse, of a bounded size."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

from engine.bounds.regular_file import MOST_BYTES, parse_json, read_regular
from engine.lake.catalog.locations import path_of
from engine.lake.catalog.object_warehouse import ObjectWarehouse

# Of one metadata file, unpacked: ten thousand snapshots take some 10 MB.
METADATA_BYTES = MOST_BYTES


def read_document(warehouse: Path | ObjectWarehouse, location: str) -> dict[str, Any]:
    """Return the content of a metadata file of a table or view.

    Raises:
        OutsideError: it is not below the warehouse.
        OSError, EOFError, zlib.error: it cannot be read.
        ValueError: it does not hold the metadata of a table.
        SetupError: the object store denies it, or does not answer.
    """
    if isinstance(warehouse, ObjectWarehouse):
        content = warehouse.read(location, METADATA_BYTES + 1)
    else:
        content = read_regular(path_of(warehouse, location), METADATA_BYTES)
    if location.endswith(".gz.metadata.json"):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as source:
            content = source.read(METADATA_BYTES + 1)
    if len(content) > METADATA_BYTES:
        message = f"{location} is too large"
        raise ValueError(message)
    document = parse_json(content)
    if not isinstance(document, dict):
        message = f"{location} is not the metadata of a table"
        raise ValueError(message)  # noqa: TRY004 - as the JSON reader says it
    return document
