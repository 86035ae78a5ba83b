"""Projects in the catalogs of real servers; each test has a schema of its own, of two levels."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.compile import Catalog
from engine.lake.catalog import catalog_settings
from engine.lake.clients import catalog_client
from engine.lake.lake_reader import Lake
from tests.lab import JAVA_OPTIONS, Lab, LabSession, share_session
from tests.services import iceberg_rest, postgres
from tests.services.iceberg_rest import Door, RestServer
from tests.services.postgres import USER, Postgres

PROJECT = """
name: lab
targets:
  dev:
    catalog: {catalog}
    schema: {schema}
    spark: {{master: "local[2]", conf: {{spark.driver.extraJavaOptions: "{java}"}}}}
"""


@dataclass(slots=True)
class CatalogLab(Lab):
    """A project whose tables a server knows.

    Attributes:
        catalog: of the target; a name of its own, for a session keeps what it knows of a catalog.
        written: the same, as the target has it.
    """

    catalog: Catalog = field(default_factory=lambda: Catalog("rest", "none", Path("/nowhere")))
    written: str = ""

    def __post_init__(self) -> None:
        self.schema = f"{self.schema}.inner"
        Lab.__post_init__(self)
        self.retarget(self.written)
        if self.session is not None:
            # What new sessions begin with: the process has one Spark, which was started without this catalog.
            known = self.session.spark._jsparkSession.sharedState().conf()
            for key, value in catalog_settings.spark_conf(self.catalog).items():
                self.session.spark.conf.set(key, value)
                known.set(key, value)

    def retarget(self, written: str) -> None:
        """Write the project with another catalog block."""
        text = PROJECT.format(catalog=written, schema=self.schema, java=JAVA_OPTIONS)
        self.write("project.yml", text)

    @property
    def state(self) -> Path:
        return self.root / ".engine" / "state" / self.catalog.name / self.schema

    def _lake(self) -> Lake:
        return Lake(self.catalog)


def block(catalog: Catalog) -> str:
    """The catalog as a target has it."""
    settings = {"type": catalog.type, "name": catalog.name, **catalog.keys}
    return "{" + ", ".join(f'{key}: "{value}"' for key, value in settings.items()) + "}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A real PostgreSQL; a test that stops it starts it again."""
    if postgres.binaries() is None:
        pytest.skip("no PostgreSQL here: install the package postgresql, or name its bin folder in ENGINE_POSTGRES")
    with postgres.running() as server:
        yield server
        # A clean end waits for clients that are still connected.
        server.stop(kill=True)


@pytest.fixture(scope="session")
def rest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """The reference server; a test that stops it starts it again."""
    with iceberg_rest.running(tmp_path_factory.mktemp("rest")) as server:
        yield server
        server.stop(kill=True)


@pytest.fixture
def door(rest_server: RestServer) -> Iterator[Door]:
    """A door before the server, of this test alone."""
    with Door(rest_server.start().url).serving() as opened:
        yield opened


def jdbc_catalog(server: Postgres, warehouse: Path, **keys: str) -> Catalog:
    """A catalog in the database."""
    made = {
        "uri": server.jdbc, "jdbc.user": USER, "jdbc.password": server.password, "warehouse": warehouse.as_uri(), **keys,
    }  # fmt: skip
    return Catalog("jdbc", f"pg{uuid.uuid4().hex[:8]}", warehouse, made)


def rest_catalog(url: str, server: RestServer, **keys: str) -> Catalog:
    """A catalog of the server, at one of its addresses."""
    made = {"uri": url, "warehouse": server.warehouse.as_uri(), **keys}
    return Catalog("rest", f"rest{uuid.uuid4().hex[:8]}", server.warehouse, made)


@pytest.fixture(params=["jdbc", "rest"])
def shared(
    request: pytest.FixtureRequest, lab_session: LabSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[CatalogLab]:
    """A project in each of the catalogs."""
    if request.param == "jdbc":
        server = request.getfixturevalue("postgres_server")
        catalog = jdbc_catalog(server.start(), tmp_path / "warehouse")
    else:
        rest = request.getfixturevalue("rest_server")
        catalog = rest_catalog(rest.start().url, rest)
    with share_session(lab_session):
        yield CatalogLab(tmp_path, lab_session, capsys, catalog=catalog, written=block(catalog))


@pytest.fixture
def rest_lab(
    request: pytest.FixtureRequest,
    door: Door,
    rest_server: RestServer,
    lab_session: LabSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[CatalogLab]:
    """A project in the catalog of the server, through the door; a parameter: further keys of its catalog."""
    catalog = rest_catalog(door.url, rest_server, **getattr(request, "param", {}))
    with share_session(lab_session):
        yield CatalogLab(tmp_path, lab_session, capsys, catalog=catalog, written=block(catalog))


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process keeps its clients; a test has those of its own."""
    monkeypatch.setattr(catalog_client, "_clients", {})


def settings(result: Any) -> Mapping[str, Any]:
    """The only diagnostic of a command."""
    (found,) = [event for event in result.events if event["event"] == "Diagnosed"]
    return found
