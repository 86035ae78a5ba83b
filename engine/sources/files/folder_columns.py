"""Columns in the names of folders, as Hive writes them: `dt=2024-05-01/hour=01/a.json`.

Which of the declared columns a folder gives, and its value, is read in Java with each file (`FolderValues.java`). Here
are its two numbers, and what is known without reading: the columns that some files have.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from engine.relations import quoted
from engine.sources import listing
from engine.sources.spec import Place, SourceSpec
from engine.spark.internals.handles import column_of, java_column, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Hive's name for the folder of rows without a value.
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


def depths(spec: SourceSpec, place: Place) -> tuple[int, int]:
    """How many folders of a file's path are above the source's, and how many behind them are the source's own path."""
    path = str(spec.settings.get("path", ""))
    exact = not listing.is_uri(path) and (place.root / path).exists()
    own = path if exact else listing.base(path)
    if listing.is_uri(path) or path.startswith("/"):
        return 0, len(_parts(own))
    above = len(_parts(str(place.root)))
    return above, len(_parts(posixpath.normpath(f"{place.root}/{own}"))) - above


def _parts(location: str) -> list[str]:
    address = _ADDRESS.match(location)
    path = posixpath.normpath("/" + location[address.end() if address else 0 :].lstrip("/"))
    return [part for part in path.split("/") if part]


def values_in(uris: Iterable[str], spec: SourceSpec, place: Place) -> Mapping[str, list[str | None]]:
    """The values in names of folders, by column; None is NULL.

    Args:
        uris: of files, as Hadoop prints them.
        spec: their source.
        place: where it is read.
    """
    above, _ = depths(spec, place)
    values: dict[str, list[str | None]] = {}
    for folder in dict.fromkeys(uri.rpartition("/")[0] for uri in uris):
        for part in _parts(folder)[above:]:
            name, sign, value = part.partition("=")
            if name and sign:
                values.setdefault(unquote(name), []).append(None if value == NULL_FOLDER else unquote(value))
    return values


def declared_in(uris: Iterable[str], spec: SourceSpec, place: Place) -> tuple[str, ...]:
    from pyspark.sql.types import StructType

    folder_names = {name.lower() for name in values_in(uris, spec, place)}
    declared: Any = StructType.fromDDL(spec.schema)
    return tuple(name for name in declared.fieldNames() if name.lower() in folder_names)


def zone_of(session: SparkSession, spec: SourceSpec) -> str:
    return spec.timezone or str(session.conf.get("spark.sql.session.timeZone"))


def with_folder_columns(
    frame: DataFrame, names: Iterable[str], spec: SourceSpec, place: Place, file_path: str
) -> DataFrame:
    """A frame with `__folders`: a struct of the columns in `r`, and in `reason` what does not fit."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    session: Any = frame.sparkSession
    columns = StructType([frame.schema[name] for name in names])
    own = f.struct(*(f.col(quoted(name)) for name in columns.fieldNames()))
    read = jvm_of(session).headrace.FolderColumns.column(
        java_column(f.col(file_path)), java_column(own), columns.json(), zone_of(session, spec), *depths(spec, place)
    )
    return frame.withColumn("__folders", column_of(read))
