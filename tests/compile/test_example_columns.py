"""Columns, types and lineage through the example project, from the sources to the last model."""

from __future__ import annotations

import pytest

from engine.compile import Manifest, compile_project
from engine.project import load_project
from tests.lab import REPOSITORY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flights() -> Manifest:
    manifest = compile_project(load_project(REPOSITORY)).manifest
    assert not manifest.errors
    return manifest


def columns(manifest: Manifest, model: str) -> dict[str, tuple[str | None, list[str]]]:
    return {
        c.name: (c.type, [f"{o.node.partition('.')[2]}:{o.column}" for o in c.origins])
        for c in manifest.model(model).columns
    }


def test_fields_of_a_struct_and_a_watermark_column_lead_to_the_source(flights: Manifest) -> None:
    found = columns(flights, "flights")
    assert found["carrier"] == ("string", ["ops.departures:data.carrier"])
    assert found["scheduled_at"] == ("timestamp", ["ops.departures:data.scheduled_at"])
    assert found["departure_delay"] == ("int", ["ops.departures:data.departure_delay"])


def test_windows_and_aggregates_have_sparks_types(flights: Manifest) -> None:
    assert columns(flights, "departures_hourly") == {
        "window_start": ("timestamp", ["flights:scheduled_at"]),
        "origin": ("string", ["flights:origin"]),
        "departures": ("bigint", []),
        "mean_delay": ("double", ["flights:departure_delay"]),
    }


def test_columns_go_through_models_joins_and_views(flights: Manifest) -> None:
    assert columns(flights, "carriers") == {
        "carrier": ("string", ["flights:carrier"]),
        "airline": ("string", ["airlines:airline"]),
        "flights": ("bigint", []),
        "long_delays": ("bigint", ["flights:departure_delay"]),
    }
    assert columns(flights, "busiest_hours")["mean_delay"][1] == [
        "departures_hourly:mean_delay",
        "departures_hourly:departures",
    ]


def test_what_decides_on_rows_is_kept_apart(flights: Manifest) -> None:
    indirect = {(o.kind, o.node, o.column) for o in flights.model("long_delays").indirect}
    assert indirect == {("filter", "model.flights", "departure_delay")}
    kinds = {o.kind for o in flights.model("carriers").indirect}
    assert kinds == {"join", "group"}


def test_every_type_of_the_example_is_known(flights: Manifest) -> None:
    unknown = [(m.name, c.name) for m in flights.models for c in m.columns if c.type is None]
    assert unknown == []
