"""What a project does in the catalogs of real servers, as it does in a local one."""

from __future__ import annotations

import pytest

from tests.catalogs.conftest import CatalogLab
from tests.catalogs.life_cycle import build_plan_show_maintain_and_drop
from tests.lab import EVENTS, event

pytestmark = pytest.mark.spark


def test_a_project_builds_and_plans_shows_maintains_and_drops(shared: CatalogLab) -> None:
    schema = shared.catalog.path / shared.schema.replace(".", "/")
    build_plan_show_maintain_and_drop(shared, lambda table: list((schema / table).rglob("*.parquet")))
    assert shared.table("plain") is not None


def test_a_renamed_model_keeps_its_table_and_its_readers(shared: CatalogLab) -> None:
    shared.write("sources/shop.yml", EVENTS)
    paid = "streams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}"
    copied = "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}"
    shared.model("paid", f"/*---\n{paid}")
    shared.model("copied", copied)
    shared.land("a", [event(1), event(2)])
    shared.build()
    before = shared.table("paid")
    (shared.root / "models/paid.sql").unlink()
    shared.model("payments", f"/*---\nrenamed_from: paid\n{paid}")
    shared.model("copied", copied.replace("paid", "payments"))
    shared.land("b", [event(3)])
    assert "table-renamed" in shared.build().codes()
    now = shared.table("payments")
    assert before is not None
    assert now is not None
    assert (now.uuid, shared.table("paid")) == (before.uuid, None)
    assert shared.ids("payments") == shared.ids("copied") == [1, 2, 3]
    # Into a schema that is not there yet, and a new model of the old name.
    shared.model("payments", f"/*---\nrenamed_from: payments\nschema: marts\n{paid}")
    shared.model("paid", f"/*---\n{paid}")
    shared.land("c", [event(4)])
    shared.build()
    assert shared.ids("paid") == shared.ids("copied") == [1, 2, 3, 4]
    assert shared.run("maintain").code == 0
    assert shared.ids("paid") == [1, 2, 3, 4]
