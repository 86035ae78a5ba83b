"""Which files Spark reads, by their names.

The rules are those of Spark 4.1: `HadoopFSUtils.shouldFilterOutPathName`, which decides on each file and folder that is
listed, and `PartitioningAwareFileIndex.isDataPath`, which decides on each listed file that is to be read.
"""

from __future__ import annotations

from typing import Final

_UNFINISHED: Final = "._COPYING_"
# The summaries of Parquet: they are listed, and not read as rows.
_SUMMARIES: Final = ("_metadata", "_common_metadata")


def is_listed(name: str) -> bool:
    """Return whether Spark lists a file, or searches a folder, of this name: `_date=2024` is a folder of Hive."""
    return name.startswith(_SUMMARIES) or (holds_rows(name) and not name.endswith(_UNFINISHED))


def holds_rows(name: str) -> bool:
    """Return whether Spark reads a listed file of this name; a stream also lists `_metadata`, but reads none of it."""
    return not name.startswith(".") and ("=" in name or not name.startswith("_"))
