"""The example in a server's catalog and on a cluster: its tables are those of the local target."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.compile import compile_project
from engine.lake.lake_reader import Lake
from engine.project import load_project
from tests.example import golden
from tests.example.test_build import (
    FILES,
    aircraft_rows,
    arrived,
    check_flights,
    check_latest,
    check_streams_of_two,
    departed_once,
    golden_aircraft,
    golden_hours,
    golden_trend,
    hourly_replay,
    hourly_rows,
    land,
    trend_replay,
    trend_rows,
)
from tests.lab import REPOSITORY, Lab, Result, run_alone
from tests.services import iceberg_rest, postgres, s3, spark_cluster

pytestmark = pytest.mark.spark
# An append with a window, a MERGE and a batch table; `make nightly` builds all of the example.
_MODELS = () if os.environ.get("ENGINE_WHOLE_EXAMPLE") else ("departures_hourly", "aircraft", "routes")


@dataclass(slots=True)
class Example(Lab):
    """The example with some days of flights, built by processes of their own.

    Attributes:
        target: that it builds with.
        days: of flights.
    """

    target: str = ""
    days: int = 2

    def __post_init__(self) -> None:
        for folder in ("models", "macros", "sources"):
            shutil.copytree(REPOSITORY / folder, self.root / folder)
        shutil.copy(REPOSITORY / "project.yml", self.root)
        land(self, "--days", str(self.days))

    def build(self, *arguments: str) -> Result:
        # Unit tests run on this machine for any target, and are those of the local one.
        done = run_alone(self.root, "build", "--target", self.target, "--exclude", "test_type:unit", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    def check(self, *models: str) -> None:
        """Build all models, or some that are enough for those of these names, and compare them with golden numbers."""
        self.build(*(part for model in models for part in ("-s", f"+{model}")))
        batches = golden.read_batches(self.root / "landing" / "departures", FILES)
        once, replay, trend = departed_once(), hourly_replay(), trend_replay()
        rows = once.run(batches)
        events = {row["id"]: row for row in rows}
        assert hourly_rows(self) == golden_hours(replay.run([rows]))
        assert aircraft_rows(self) == golden_aircraft(events.values())
        routes = Counter((event["origin"], event["destination"]) for event in events.values())
        assert {(r["origin"], r["destination"]): r["flights"] for r in self.rows("routes")} == routes
        if not models:
            assert trend_rows(self) == golden_trend(trend.run([rows]))
            check_flights(self, events)
            check_latest(self, events.values())
            check_streams_of_two(self, events.values(), arrived(self))
            again = self.build()
            assert {e["status"] for e in again.events if e["event"] == "ModelFinished"} == {"unchanged"}

    def _lake(self) -> Lake:
        return Lake(compile_project(load_project(self.root), target=self.target).target.catalog)


@pytest.mark.nightly
def test_the_tables_of_a_rest_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with iceberg_rest.running(tmp_path / "server") as server:
        monkeypatch.setenv("CATALOG_URI", server.url)
        monkeypatch.setenv("CATALOG_WAREHOUSE", server.warehouse.as_uri())
        Example(tmp_path / "project", None, None, "flights", target="rest").check(*_MODELS)


@pytest.mark.nightly
@pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL here")
def test_the_tables_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        postgres.running() as server,
        s3.running() as store,
        spark_cluster.running(tmp_path / "cluster") as cluster,
    ):
        variables = {
            "S3_ENDPOINT": store.endpoint, "S3_BUCKET": store.bucket("lake"),
            "ENGINE_SECRET_S3_ID": store.access_key_id, "ENGINE_SECRET_S3_KEY": store.secret_access_key,
            "LAKE_URI": server.jdbc, "LAKE_USER": postgres.USER, "ENGINE_SECRET_LAKE": server.password,
            "SPARK_MASTER": cluster.url, "ENGINE_SECRET_SPARK": cluster.secret,
        }  # fmt: skip
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        Example(tmp_path / "project", None, None, "flights", target="cluster", days=1 if _MODELS else 2).check(*_MODELS)
        # Nothing but the landed files is on a disk that the executors share with the driver.
        assert store.keys("lake", "warehouse/flights/flights/data/")
        assert store.keys("lake", "state/lake/flights/departures_hourly/")
        assert not (tmp_path / "project" / ".engine").exists()
