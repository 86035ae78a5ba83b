"""A table of Iceberg that PyIceberg writes, and a database that a sink delivers it to; no Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from engine.lake.changes.committed_rows import CommittedTable, committed_table
from engine.lake.lake_reader import Lake, isolate
from engine.sinks.delivery import deliver
from engine.sinks.position import Position
from engine.sinks.postgres import PostgresTarget
from engine.sinks.target import SinkColumn, SinkSpec, Written
from tests.lab import writable_catalog
from tests.services import postgres
from tests.services.postgres import USER, Postgres

COLUMNS = (SinkColumn("id", "bigint"), SinkColumn("name", "string"))
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    if postgres.binaries() is None:
        pytest.skip("no PostgreSQL here: install the package postgresql, or name its bin folder in ENGINE_POSTGRES")
    with postgres.running() as server:
        yield server


@dataclass(slots=True)
class Delivery:
    """A table of the lake, and the sink that delivers it to a schema of its own in the database."""

    root: Path
    server: Postgres
    schema: str = field(default_factory=lambda: f"s{uuid.uuid4().hex[:8]}")
    key: tuple[str, ...] = ("id",)
    columns: tuple[SinkColumn, ...] = COLUMNS
    unique: bool = True
    create: bool = True
    from_now: bool = False
    table: Any = None

    def __post_init__(self) -> None:
        self.server.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")

    def make(self, schema: pa.Schema = SCHEMA, **properties: str) -> Any:
        isolate()
        catalog = writable_catalog(self.root)
        catalog.create_namespace_if_not_exists("main")
        self.table = catalog.create_table("main.orders", schema, properties=properties)
        return self.table

    def append(self, *rows: tuple[Any, ...]) -> None:
        if self.table is None:
            self.make()
        self.table.append(self.arrow(rows))

    def arrow(self, rows: Any) -> pa.Table:
        names = [column.name for column in self.columns]
        schema = self.table.schema().as_arrow()
        return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)

    def committed(self) -> CommittedTable:
        config = SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=self.root)
        found = committed_table(Lake(config), "main", "orders")
        assert found is not None
        return found

    @property
    def spec(self) -> SinkSpec:
        return SinkSpec("orders", f"shop/{self.schema}/orders", self.columns, self.key, self.unique, self.create)

    def target(self) -> PostgresTarget:
        settings = {"uri": self.server.jdbc, "username": USER, "password": self.server.password}
        return PostgresTarget(self.spec, "crm", settings, f"{self.schema}.orders")

    def deliver(self) -> Written:
        target = self.target()
        try:
            return deliver(self.spec, self.committed(), target, from_now=self.from_now).written
        finally:
            target.close()

    def position(self) -> Position | None:
        target = self.target()
        try:
            return target.position()
        finally:
            target.close()

    def delivered(self, columns: str = "id, name") -> list[tuple[object, ...]]:
        return self.server.execute(f"SELECT {columns} FROM {self.schema}.orders ORDER BY 1, 2")

    def stored(self) -> list[tuple[object, ...]]:
        """The rows of the Iceberg table."""
        self.table.refresh()
        rows = self.table.scan().to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=lambda row: row[0])


@pytest.fixture
def delivery(tmp_path: Path, database: Postgres) -> Delivery:
    return Delivery(tmp_path, database)
