"""Manifests made by hand, and the written site read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.compile import (
    DataTest,
    Input,
    Manifest,
    Materialized,
    Model,
    Partition,
    Relation,
    Source,
    UnitTest,
    Watermark,
    Write,
)
from engine.compile.nodes.column_facts import Origin
from engine.compile.nodes.manifest import Column, Macro
from engine.compile.nodes.model_settings import TimeWindow
from engine.compile.nodes.unit_test_steps import ExpectedResult, GivenRows, Rows, StepKind, UnitTestStep
from engine.docs.site.differences import Differences
from engine.docs.site.last_run import read_results
from engine.docs.site.shared_page_data import Facts
from engine.docs.site.table_rows import TableRows
from engine.docs.site.write_site import write_site
from engine.errors import Diagnostic, Location
from engine.sources import SourceSpec

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@dataclass
class Site:
    """A written site: its data as the pages get it."""

    folder: Path

    def data(self, name: str) -> Any:
        text = (self.folder / "data" / f"{name}.js").read_text(encoding="ascii")
        before, after = f'headrace.put("{name}",', ");\n"
        assert text.startswith(before)
        assert text.endswith(after)
        return json.loads(text[len(before) : -len(after)])

    @property
    def index(self) -> dict[str, Any]:
        return self.data("index")

    def short(self, node_id: str) -> dict[str, Any]:
        """A node as every page knows it."""
        (found,) = [node for node in self.index["nodes"] if node["id"] == node_id]
        return found

    def node(self, node_id: str) -> dict[str, Any]:
        """What the node's own page has beside that."""
        number = [node["id"] for node in self.index["nodes"]].index(node_id)
        return self.data(f"nodes{number // 25}")[number % 25]

    def words(self, node_id: str) -> dict[str, str]:
        return dict(self.node(node_id)["words"])

    @property
    def all_data(self) -> str:
        return "".join(path.read_text() for path in sorted((self.folder / "data").iterdir()))


def source(name: str = "events", **changes) -> Source:
    spec = SourceSpec(f"ops.{name}", "json", "id string, at timestamp", settings={"path": f"landing/{name}"})
    columns = (Column("id", "Unique.", "string"), Column("at", "", "timestamp"))
    defaults = {
        "id": f"source.ops.{name}", "source": "ops", "table": name, "file": "sources/ops.yml", "spec": spec,
        "columns": columns,
    }  # fmt: skip
    return Source(**defaults | changes)


def model(name: str, *reads: str | Input, **changes) -> Model:
    inputs = tuple(r if isinstance(r, Input) else Input(r, r.partition(".")[2], False, "v") for r in reads)
    defaults = {
        "id": f"model.{name}", "name": name, "file": f"models/{name}.sql", "description": "",
        "materialized": Materialized.TABLE, "relation": Relation("lake", "main", name),
        "raw_sql": "\n   \nselect 1\n", "sql": "select 1", "inputs": inputs,
    }  # fmt: skip
    return Model(**defaults | changes)


def hourly(**changes) -> Model:
    """A windowed streaming table over the source."""
    watermark = Watermark("at", "30 minutes", "data.at")
    id_, at = (Origin("source.ops.events", name) for name in ("id", "at"))
    defaults = {
        "materialized": Materialized.STREAMING_TABLE,
        "stateful": True,
        "windows": {"hour": TimeWindow("tumbling", "at", "1 hours")},
        "write": Write("append", (Partition("day", "window_start"), Partition("bucket", "id", 16))),
        "columns": (
            Column("window_start", "Begin of the hour.", "timestamp", {}, (at,), "hour.start"),
            Column("id", "", "string", {}, (id_,), "id"),
        ),
        "indirect": (Origin("source.ops.events", "at", "group"),),
        "tags": ("nightly",),
    }
    read = Input("source.ops.events", "ops.events", True, "v", watermark, ("id",), 12)
    return model("hourly", read, **defaults | changes)


def not_null(model_name: str, column: str | None, **changes) -> DataTest:
    name = f"not_null_{model_name}_{column}"
    defaults = {
        "id": f"test.{name}", "name": name, "kind": "not_null", "model": f"model.{model_name}", "sql": "select 1",
        "column": column, "depends_on": (f"model.{model_name}",),
    }  # fmt: skip
    return DataTest(**defaults | changes)


def unit_test(name: str = "late_rows", **changes) -> UnitTest:
    """A unit test of hourly that names a column of its source, and one of its own."""
    place = Location("tests/hourly.yml", 4, 11)
    given = GivenRows("ops.events", "v", Rows((("at", "timestamp"),), ({"at": "2026-01-01"},)), place)
    defaults = {
        "id": f"unit_test.hourly.{name}", "name": name, "model": "model.hourly", "file": place.file, "location": place,
        "steps": (UnitTestStep(StepKind.GIVEN, place, (given,)), UnitTestStep(StepKind.RESTART, place)),
        "expect": ExpectedResult(place, Rows((("ID", "string"),)), late=1),
    }  # fmt: skip
    return UnitTest(**defaults | changes)


def manifest(
    *nodes: Model | Source | DataTest | UnitTest, found: tuple[Diagnostic, ...] = (), macros: tuple[Macro, ...] = ()
) -> Manifest:
    order = tuple(n.id for n in nodes if not isinstance(n, Source))
    return Manifest("shop", "1.0", "dev", {n.id: n for n in nodes}, order, found, macros)


def small() -> Manifest:
    daily = model(
        "daily", "model.hourly", columns=(Column("id", "", "string", {}, (Origin("model.hourly", "id"),), "*"),)
    )
    return manifest(source(), hourly(), daily, not_null("hourly", "window_start"))


def facts(
    project: Manifest,
    results: Any = None,
    *,
    tables: Mapping[str, Any] | None = None,
    freshness: Mapping[str, Any] | None = None,
    watermarks: Mapping[str, datetime] | None = None,
    history: Mapping[str, Any] | None = None,
    differences: Differences | None = None,
    rows: Mapping[str, TableRows] | None = None,
) -> Facts:
    run = read_results(results, history)
    return Facts(project, run, tables or {}, freshness or {}, NOW, watermarks or {}, differences, rows or {})


def written(folder: Path, project: Manifest, results: Any = None, **more) -> Site:
    page = write_site(facts(project, results, **more), folder)
    assert page == folder / "index.html"
    return Site(folder)


def dbt() -> Any:
    """The parsers of dbt's artifacts; a second to import, which a run without such a test does not pay."""
    from dbt_artifacts_parser import parser

    return parser
