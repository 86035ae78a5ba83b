"""The catalog block of a target as settings for Spark; `engine.lake.lake_reader` reads the same catalog without Java.

The catalog's name must be the same on both sides, or everything looks empty without an error; views need JDBC schema
version V1; without WAL a second writer meets SQLITE_BUSY (all measured, Iceberg 1.12.0). Keys of Spark
(`spark.sql.catalog.<name>.<key>`) are Iceberg's and pass as written. Sources: Iceberg 1.12, "Configuration" (catalog
properties), "JDBC catalog", and its RESTCatalog.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from engine import local_paths
from engine.errors import Location, SetupError
from engine.lake.catalog.object_warehouse import ObjectWarehouse
from engine.object_store.s3_settings import FILE_IO, S3Settings, iceberg_properties, is_s3

SPARK_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"


# Nobody waits for a server without end: a connection, and one answer.
_REST: Final = {"rest.client.connection-timeout-ms": "10000", "rest.client.socket-timeout-ms": "60000"}


# A token is renewed as the first was fetched, with the credential. Iceberg's default is to exchange the old one, which
# servers that know client credentials alone reject: the next commit is not authorized (measured).
_RENEWAL: Final = {"token-exchange-enabled": "false"}


# The same, in seconds, for the PostgreSQL driver; V1 knows views.
_JDBC: Final = {
    "jdbc.schema-version": "V1",
    "jdbc.loginTimeout": "10",
    "jdbc.socketTimeout": "60",
    "jdbc.tcpKeepAlive": "true",
}


_BESIDE: Final[Mapping[str, Mapping[str, str]]] = {"rest": _REST, "jdbc": _JDBC}


PRIVATE = 0o700
SQLITE = "sqlite"
CATALOG_FILE = "catalog.db"
# A folder that is never there: the warehouse of a catalog whose files are not on this machine.
NO_WAREHOUSE = Path(os.devnull) / "nowhere"
# Locked jars that a kind of catalog needs beside Iceberg's.
_JARS = {"jdbc": ("postgres",)}
OBJECT_STORE_JARS = ("s3",)


class CatalogConfig(Protocol):
    @property
    def type(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...

    @property
    def objects(self) -> str:
        """Where the tables' files are in an object store: `s3://bucket/folder`; `s3://`: anywhere; empty: not there."""

    @property
    def store(self) -> Callable[[], S3Settings] | None: ...

    @property
    def place(self) -> Location | None: ...

    def settings(self) -> Mapping[str, str]:
        """The keys of a catalog that a server keeps, with secrets; they are masked in all texts from now on."""


def is_local(catalog: CatalogConfig) -> bool:
    return catalog.type == SQLITE


def warehouse(catalog: CatalogConfig) -> Path | ObjectWarehouse:
    if catalog.objects and catalog.store is not None:
        return ObjectWarehouse(catalog.objects, catalog.store)
    return catalog.path / "warehouse" if is_local(catalog) else catalog.path


def catalog_jars(catalog: CatalogConfig) -> tuple[str, ...]:
    return (*_JARS.get(catalog.type, ()), *(OBJECT_STORE_JARS if catalog.store is not None else ()))


def database(catalog: CatalogConfig) -> Path:
    return catalog.path / CATALOG_FILE


def prepare(catalog: CatalogConfig) -> None:
    """Make the local warehouse's folder, for its owner only; a server's warehouse is made by who writes to it.

    Raises SetupError: `catalog-unusable` if that is not possible.
    """
    if not is_local(catalog):
        return
    try:
        missing_folders = [folder for folder in (catalog.path, *catalog.path.parents) if not folder.exists()]
        for folder in reversed(missing_folders):
            folder.mkdir(mode=PRIVATE, exist_ok=True)
        if not catalog.objects:
            (catalog.path / "warehouse").mkdir(mode=0o777 & ~umask(catalog), exist_ok=True)
    except OSError as error:
        hint = "Make the folder writable, or change 'path' of the target's catalog."
        raise SetupError(
            "catalog-unusable", f"the lake {catalog.path} cannot be written: {error.strerror}", hint
        ) from error


def umask(catalog: CatalogConfig) -> int:
    """Which permissions new files of the lake do not get: none beyond those that its folder gives to others."""
    try:
        folder_mode = stat.S_IMODE(catalog.path.stat().st_mode)
    except OSError:
        folder_mode = PRIVATE
    process_umask = os.umask(0o077)
    os.umask(process_umask)
    return process_umask | (0o077 & ~folder_mode)


def spark_conf(catalog: CatalogConfig) -> dict[str, str]:
    # Iceberg sets it in the session that is active on a thread, which need not be the one that stages files.
    rewriting = {"spark.sql.catalog.default_rewrite_catalog": "org.apache.iceberg.spark.SparkRewriteTableCatalog"}
    if not is_local(catalog):
        return {**spark_properties(catalog.type, catalog.name, catalog.settings()), **rewriting}
    prefix = f"spark.sql.catalog.{catalog.name}"
    # FULL costs 3 ms a commit. With NORMAL a power loss takes back commits that model.json, synced after them, has as
    # done: rows of a micro-batch that went to the quarantine alone were lost without a word (measured).
    options = "journal_mode=WAL&busy_timeout=30000&synchronous=FULL"
    return {
        prefix: SPARK_CATALOG,
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{local_paths.sqlite(database(catalog), options)}",
        f"{prefix}.jdbc.schema-version": "V1",
        **_sqlite_warehouse(catalog, prefix),
        f"{prefix}.cache-enabled": "false",
        **rewriting,
    }


def _sqlite_warehouse(catalog: CatalogConfig, prefix: str) -> dict[str, str]:
    if catalog.objects and catalog.store is not None:
        files = {"warehouse": catalog.objects, "io-impl": FILE_IO, **iceberg_properties(catalog.store())}
        return {f"{prefix}.{key}": value for key, value in files.items()}
    return {f"{prefix}.warehouse": local_paths.iceberg(catalog.path / "warehouse")}


def spark_properties(kind: str, name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for a `rest` or `jdbc` catalog, from the target's keys with secrets in place."""
    prefix = f"spark.sql.catalog.{name}"
    # With its cache Spark would not see for half a minute what others commit.
    renewal = _RENEWAL if "credential" in settings else {}
    files = {"io-impl": FILE_IO} if kind != "rest" and is_s3(settings.get("warehouse", "")) else {}
    inner = {"type": kind, "cache-enabled": "false", **_BESIDE[kind], **files, **renewal, **settings}
    return {prefix: SPARK_CATALOG, **{f"{prefix}.{key}": value for key, value in inner.items()}}
