"""REST and local catalogs over one hostile table: its metadata choose no class, store, address or login."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine.compile import Catalog
from engine.lake.catalog.catalog_settings import prepare
from engine.lake.clients import catalog_client
from engine.lake.clients.catalog_client import client
from engine.lake.clients.table_removal import stored_relation
from engine.lake.lake_reader import Lake
from tests.lab import writable_catalog
from tests.security.answering import answering
from tests.security.test_hostile_catalogs import PLANTED

pytestmark = pytest.mark.slow

HOSTILE = {
    "py-io-impl": "planted.Run",
    "py-catalog-impl": "planted.Run",
    "io-impl": "org.example.Run",
    "write.py-location-provider.impl": "planted.Run",
    "auth": "planted.Run",
    "s3.signer": "planted.Run",
    "s3.endpoint": "http://127.0.0.1:9",
    "DEFAULT_SCHEME": "s3",
    "DEFAULT_NETLOC": "elsewhere",
}


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process keeps its clients; a test has those of its own."""
    monkeypatch.setattr(catalog_client, "_clients", {})


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    mark = tmp_path / "ran"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "planted.py").write_text(PLANTED.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    return mark


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The metadata file of the table `s.base`, with two rows, whose properties are hostile."""
    lake = tmp_path / "lake"
    prepare(Catalog("sqlite", "lake", lake))
    catalog = writable_catalog(lake)
    catalog.create_namespace("s")
    rows = pa.table({"id": pa.array([1, 2], pa.int32())})
    made = catalog.create_table("s.base", rows.schema)
    made.append(rows)
    path = Path(made.metadata_location.removeprefix("file://"))
    catalog.close()
    path.write_text(json.dumps({**json.loads(path.read_text()), "properties": HOSTILE}))
    return path


class Served:
    """A catalog of a kind that has the table, and what its server was asked."""

    def __init__(self, stack: ExitStack, kind: str, location: str, lake: Path) -> None:
        self.server: Any = None
        if kind == "rest":
            metadata = json.loads(Path(location.removeprefix("file://")).read_text())
            answers = {
                "GET /v1/config": {"defaults": HOSTILE, "overrides": HOSTILE},
                "GET /v1/namespaces/s/tables": {"identifiers": [{"namespace": ["s"], "name": "base"}]},
                "GET /v1/namespaces/s/tables/base": {
                    "metadata": metadata,
                    "config": HOSTILE,
                    "metadata-location": location,
                },
                "GET /v1/namespaces/s/tables/other": (404, {"error": {"type": "NoSuchTableException"}}),
            }
            self.server = stack.enter_context(answering(answers))
            self.catalog = Catalog("rest", "lake", lake, {"uri": self.server.url})
        else:
            self.catalog = Catalog("sqlite", "lake", lake.parent)


@pytest.mark.parametrize("kind", ["sqlite", "rest"])
def test_one_hostile_table_in_each_catalog(kind: str, table: Path, tmp_path: Path, mark: Path) -> None:
    with ExitStack() as stack:
        catalog = Served(stack, kind, table.as_uri(), tmp_path / "lake" / "warehouse").catalog
        lake = Lake(catalog)
        assert lake.names("s") == ("base",)
        facts = lake.table("s", "base")
        assert facts is not None
        assert facts.properties == HOSTILE
        assert lake.rows("s", "base", None) == (["id"], [(1,), (2,)])
        assert lake.count("s", "base") == 2
        assert lake.table("s", "other") is None
        (entry,) = client(catalog).entries("s")
        assert stored_relation(catalog, entry).uuid == facts.uuid
    assert not mark.exists()
