"""What a project does in the catalogs of real servers, as it does in a local one."""

from __future__ import annotations

import pytest

from tests.catalogs.conftest import CatalogLab
from tests.catalogs.life_cycle import build_plan_show_maintain_and_drop
from tests.lab import EVENTS, event

pytestmark = pytest.mark.spark


@pytest.mark.nightly
def test_a_project_builds_and_plans_shows_maintains_and_drops(shared: CatalogLab) -> None:
    schema = shared.catalog.path / shared.schema.replace(".", "/")
    build_plan_show_maintain_and_drop(shared, lambda table: list((schema / table).rglob("*.parquet")))
    assert shared.table("plain") is not None


@pytest.mark.nightly
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


@pytest.mark.nightly_cases("jdbc")
def test_a_clone_shares_files_and_leaves_them_to_the_other_target(shared: CatalogLab) -> None:
    text = (shared.root / "project.yml").read_text()
    pr = text.split("targets:\n", 1)[1].replace("  dev:", "  pr:").replace(shared.schema, f"{shared.schema}_pr")
    shared.write("project.yml", f"{text.rstrip()}\n{pr}")
    shared.write("sources/shop.yml", EVENTS)
    paid = "/*---\nstreams: [shop.events]\n---*/\nselect id{0} from {{{{ source('shop', 'events') }}}}"
    shared.model("paid", paid.format(""))
    shared.model("copied", "/*---\nstreams: [paid]\n---*/\nselect id from {{ ref('paid') }}")
    shared.land("a", [event(1), event(2)])
    shared.build("-t", "dev")
    shared.model("paid", paid.format(" + 100 as id"))
    shared.land("b", [event(3)])
    said = shared.build("-t", "pr", "--clone", "dev")
    assert said.codes() == ["table-cloned", "table-cloned"]
    for name in ("paid", "copied"):
        _, rows = shared._lake().rows(f"{shared.schema}_pr", name, None) or ((), ())
        assert sorted(row[0] for row in rows) == [1, 2, 103]
        assert shared.ids(name) == [1, 2]
    dropped = shared.run("drop", "--all", "--target", "pr", "--yes")
    assert dropped.code == 0, dropped.text
    assert shared._lake().names(f"{shared.schema}_pr") == ()
    assert shared.ids("paid") == shared.ids("copied") == [1, 2]
