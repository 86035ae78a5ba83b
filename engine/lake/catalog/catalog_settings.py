"""The catalog block of a target as settings for Spark; `engine.lake.lake_reader` reads the same catalog without Java.

The catalog's name must be the same on both sides, or everything looks empty without an error; views need
JDBC schema version V1; without WAL a second writer meets SQLITE_BUSY (all measured, Iceberg 1.12.0).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol

from engine.errors import SetupError

PRIVATE = 0o700


class CatalogConfig(Protocol):
    """The chosen target's catalog."""

    @property
    def type(self) -> str:
        """The kind."""

    @property
    def name(self) -> str:
        """The name in SQL."""

    @property
    def path(self) -> Path:
        """The folder of the local warehouse."""


def database(catalog: CatalogConfig) -> Path:
    """The SQLite file of a local warehouse."""
    return catalog.path / "catalog.db"


def prepare(catalog: CatalogConfig) -> None:
    """Make the local warehouse's folder, for its owner only.

    Raises:
        SetupError: `catalog-unusable` if that is not possible.
    """
    try:
        missing = [folder for folder in (catalog.path, *catalog.path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=PRIVATE, exist_ok=True)
        (catalog.path / "warehouse").mkdir(mode=0o777 & ~umask(catalog), exist_ok=True)
    except OSError as error:
        hint = "Make the folder writable, or change 'path' of the target's catalog."
        raise SetupError(
            "catalog-unusable", f"the lake {catalog.path} cannot be written: {error.strerror}", hint
        ) from error


def umask(catalog: CatalogConfig) -> int:
    """Which permissions new files of the lake do not get: none beyond those that its folder gives to others.

    The folder is its owner's alone unless somebody made it otherwise. Of a lake that a group reads on purpose, the
    group reads what is written next, too.
    """
    try:
        given = stat.S_IMODE(catalog.path.stat().st_mode)
    except OSError:
        given = PRIVATE
    mine = os.umask(0o077)
    os.umask(mine)
    return mine | (0o077 & ~given)


def spark_conf(catalog: CatalogConfig) -> dict[str, str]:
    """Spark's settings for the catalog."""
    prefix = f"spark.sql.catalog.{catalog.name}"
    # FULL costs 3 ms a commit. With NORMAL a power loss takes back commits that model.json, synced after them, has as
    # done: rows of a micro-batch that went to the quarantine alone were lost without a word (measured).
    options = "journal_mode=WAL&busy_timeout=30000&synchronous=FULL"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{database(catalog)}?{options}",
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": (catalog.path / "warehouse").as_uri(),
        f"{prefix}.cache-enabled": "false",
        # Iceberg sets it in the session that is active on a thread, which need not be the one that stages files.
        "spark.sql.catalog.default_rewrite_catalog": "org.apache.iceberg.spark.SparkRewriteTableCatalog",
    }
