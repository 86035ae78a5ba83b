"""A project whose tables were built without Spark: PyIceberg makes them, and the state says what a build would."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from engine.lake.catalog import catalog_database
from engine.lake.catalog.catalog_database import CatalogEntry
from engine.state import ModelState, Phase, TableState
from tests.lab import Lab, writable_catalog
from tests.projects import LAB as PROJECT

TABLE = "/*---\nmaterialized: table\n---*/\nselect 1 as id"
BUILT = {"project": "lab", "target": "dev", "schema": "s"}
ROWS = pa.table({"id": pa.array([1, 2], pa.int32())})


class Orphaned(Lab):
    """A project in which `current` is a model, and nothing else is."""

    @property
    def config(self) -> Any:
        return SimpleNamespace(type="sqlite", name="lake", objects="", store=None, path=self.lake_path)

    @property
    def warehouse(self) -> Path:
        return self.lake_path / "warehouse"

    def folder(self, name: str, schema: str = "s") -> TableState:
        return TableState(self.root / ".engine" / "state", "lake", schema, name)

    def table_of(self, name: str, schema: str = "s", *, rows: bool = True, **properties: str) -> str:
        """Make a table with two rows, or none; gives its UUID."""
        with self.catalog() as catalog:
            catalog.create_namespace_if_not_exists(schema)
            table = catalog.create_table(f"{schema}.{name}", ROWS.schema, properties=properties)
            if rows:
                table.append(ROWS)
            return str(table.metadata.table_uuid)

    @contextmanager
    def catalog(self) -> Iterator[Any]:
        catalog = writable_catalog(self.lake_path)
        yield catalog
        catalog.close()

    def built(
        self,
        name: str,
        schema: str = "s",
        *,
        model: str = "",
        rows: bool = True,
        state: Mapping[str, Any] | None = None,
    ) -> str:
        """A table that a model has built, with its state; gives its UUID."""
        made = self.table_of(name, schema, rows=rows, **{"engine.model": model or name})
        self.noted(name, schema, uuid=made, model=model or name, **(state or {}))
        return made

    def noted(self, name: str, schema: str = "s", **state: Any) -> None:
        """The state of a table."""
        said = {"phase": Phase.PUBLISHED, "environment": BUILT, **state}
        folder = self.folder(name, schema)
        folder.save(ModelState(folder.name, **said))
        checkpoint = folder.checkpoint(1)
        checkpoint.mkdir(parents=True)
        (checkpoint / "metadata").write_text("{}")

    def view(self, name: str) -> None:
        """A view that a model has built."""
        folder = self.warehouse / "s" / name
        file = folder / "metadata" / "0.metadata.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"view-uuid": str(uuid.uuid4()), "location": folder.as_uri()}))
        self.sql(
            "insert into iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
            " values ('lake', 's', ?, ?, 'VIEW')",
            name,
            file.as_uri(),
        )
        self.noted(name, fingerprint="f")
        self.folder(name).save_facts(1, "f", {"materialized": "view"})

    def sql(self, text: str, *values: str) -> None:
        import sqlite3
        from contextlib import closing

        with closing(sqlite3.connect(self.lake_path / "catalog.db")) as connection, connection:
            connection.execute(text, values)

    def entries(self, schema: str = "s") -> dict[str, CatalogEntry]:
        return {entry.name: entry for entry in catalog_database.entries(self.config, schema)}

    def orphans(self) -> list[str]:
        done = self.run("ls", "--orphans", "--output", "json")
        assert done.code == 0, done.text
        return [json.loads(line)["relation"] for line in done.out.splitlines() if line.startswith('{"resource_type')]


def project(root: Path, capsys: pytest.CaptureFixture[str] | None) -> Orphaned:
    lab = Orphaned(root, None, capsys, schema="s")
    lab.write("project.yml", PROJECT)
    lab.model("current", TABLE)
    return lab
