"""Generations: whose commits and whose tables are whose, after resets, lost states and builds that failed half-way."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.compile import Relation
from engine.errors import StateError
from engine.lake.table_facts import SnapshotFacts, TableFacts
from engine.plan.actions import state_checks
from engine.plan.deployed.checkpoint_facts import CheckpointFacts
from engine.runtime.inputs import initial_snapshot
from engine.runtime.lifecycle import full_refresh
from engine.state import ModelState, Phase
from tests.lab import EVENTS, Lab, event

pytestmark = pytest.mark.spark

ONE_BY_ONE = EVENTS.replace(
    "path: landing/events", "path: landing/events\n        max_files_per_trigger: 1\n        on_bad_record: fail"
)
LATEST = """/*---
streams: [shop.events]
unique_key: id
---*/
select id, at from {{ source('shop', 'events') }}
"""


def generation_ids(lab: Lab, name: str) -> list[str | None]:
    table = lab.table(name)
    assert table is not None
    return [snapshot.marker("generation-id") for snapshot in table.history]


@pytest.mark.nightly
def test_a_rebuild_that_failed_half_way_is_not_taken_for_a_generation_of_the_same_number(lab: Lab) -> None:
    lab.write("sources/shop.yml", ONE_BY_ONE)
    lab.model("latest", LATEST)
    lab.land("a", [event(1)])
    lab.build()
    lab.land("b", [event(2)])
    lab.build("--reset-checkpoint", "earliest")
    table = lab.table("latest")
    assert table is not None
    assert [s.marker("generation") for s in table.history] == ["2", "2", "1"]
    # With the state the number is lost; the rebuild gets as far as the third file.
    shutil.rmtree(lab.state / "latest")
    lab.land("c", [event(3)])
    poison = lab.write("landing/events/d.json", '{"id": "four"}\n')
    failed = lab.run("build", "-f")
    assert (failed.code, failed.codes()) == (1, ["bad-record"])
    poison.write_text(json.dumps(event(4)) + "\n")
    # What was built of it is not the table's: the state is as lost as it was.
    assert lab.run("build", "--discard-refresh").codes() == ["state-missing"]
    assert lab.ids("latest") == [1, 2]
    # A full refresh that failed is finished by the next build.
    lab.build()
    assert lab.ids("latest") == [1, 2, 3, 4]
    assert lab.build().model("latest")["status"] == "unchanged"


PAID = "/*---\nstreams: [shop.events]\n---*/\nselect id, at from {{ source('shop', 'events') }}\n"


def test_only_tables_of_the_model_itself_are_ever_dropped(lab: Lab) -> None:
    lab.model("paid", PAID)
    lab.land("a", [event(1)])
    spark = lab.session.spark  # type: ignore[union-attr]
    spark.sql(f"create namespace if not exists lake.{lab.schema}")
    others = ("paid__g1", "paid__g2", "paid__seed7_x")
    for name in others:
        spark.sql(f"create table lake.{lab.schema}.{name} using iceberg as select 7 as id")
    lab.build()
    lab.land("b", [event(2)])
    lab.build()
    # A rebuild needs the name, and nothing has changed when that is said.
    failed = lab.run("build", "-f", "-s", "paid")
    assert (failed.code, failed.codes()) == (1, ["name-taken"])
    assert f"lake.{lab.schema}.paid__g2" in failed.out
    assert [lab.ids(name) for name in ("paid", *others)] == [[1, 2], [7], [7], [7]]
    # The refresh was begun, so the next build continues it, with the next name.
    continued = lab.build()
    assert continued.codes() == ["refresh-unfinished"]
    assert [lab.ids(name) for name in ("paid", *others)] == [[1, 2], [7], [7], [7]]
    assert lab.build().model("paid")["status"] == "unchanged"
    spark.sql(f"drop table lake.{lab.schema}.paid__g2 purge")
    lab.build("-f", "-s", "paid")
    assert [lab.ids(name) for name in ("paid", "paid__g1", "paid__seed7_x")] == [[1, 2], [7], [7]]


def test_a_batch_table_is_rebuilt_where_its_state_is_lost_and_nobody_elses_is(lab: Lab) -> None:
    lab.model("one", "select 1 as one")
    lab.model("two", "select 2 as two")
    lab.build()
    shutil.rmtree(lab.state / "one")
    spark = lab.session.spark  # type: ignore[union-attr]
    two = f"lake.{lab.schema}.two"
    spark.sql(f"drop table {two} purge")
    spark.sql(f"create table {two} using iceberg as select 7 as id")
    failed = lab.run("build")
    assert sorted(failed.codes()) == ["name-taken", "state-missing"]
    assert "engine build -f -s one" in failed.out
    failed = lab.run("build", "-f")
    assert failed.codes() == ["name-taken", "build-rejected"]
    lab.build("-f", "--exclude", "two")
    assert (lab.rows("one"), lab.rows("two")) == ([{"one": 1}], [{"id": 7}])
    assert lab.build("-s", "one").model("one")["status"] == "unchanged"


def test_initial_snapshots_of_different_tables_have_different_names() -> None:
    model: Any = SimpleNamespace(relation=Relation("lake", "shop", "paid"))
    names = ("a.b_c", "a_b.c", "a_b_c", "a_.b_c", "a._b_c", "a__b.c")
    assert len({initial_snapshot.seed_of(model, 1, name).name for name in names}) == len(names)
    assert initial_snapshot.seed_of(model, 1, "shop.orders").name == "paid__seed1_shop_orders"


def test_a_rebuild_is_published_with_the_micro_batch_that_its_staging_table_has(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write("sources/shop.yml", ONE_BY_ONE)
    lab.model("paid", PAID)
    for number in (1, 2, 3):
        lab.land(f"f{number}", [event(number)])
    lab.build()
    publish = full_refresh.publish

    def interrupted(run: Any, model: Any, folder: Any, session: Any, state: Any) -> Any:
        # The query was stopped between the last commit to the staging table and the notes of it.
        for name in (str(state.batch), f".{state.batch}.crc"):
            (folder.checkpoint(state.generation) / "commits" / name).unlink()
        return publish(run, model, folder, session, replace(state, batch=state.batch - 1))

    with monkeypatch.context() as patched:
        patched.setattr(full_refresh, "publish", interrupted)
        lab.build("-f")
    noted = lab.model_json("paid", 2)["batch"]
    lab.land("f4", [event(4)])
    lab.build()
    assert (lab.ids("paid"), noted) == ([1, 2, 3, 4], 2)


def test_a_micro_batch_that_is_in_the_table_twice_is_found_out(tmp_path: Path) -> None:
    model: Any = SimpleNamespace(name="paid", relation=Relation("lake", "shop", "paid"))
    state = ModelState("lake.shop.paid", 1, Phase.PUBLISHED, "u", batch=1, snapshot=12, generation_id="g")

    def check(*batches: int) -> None:
        marks = [{"engine.generation-id": "g", "engine.batch-id": str(batch)} for batch in batches]
        history = tuple(SnapshotFacts(12 - n, 11 - n, "append", m) for n, m in enumerate(marks))
        table = TableFacts("u", {}, history, ())
        state_checks.check_table(model, state, CheckpointFacts(tmp_path), table)

    # Both were running at a time, and this copy was the later one.
    with pytest.raises(StateError, match="two copies") as raised:
        check(1, 1, 0)
    assert raised.value.diagnostic.code == "state-copied"
    with pytest.raises(StateError, match="lost or damaged"):
        check(1, 0)


def test_two_copies_of_one_state_that_both_write_are_found_out(lab: Lab) -> None:
    lab.model("paid", PAID.rstrip() + " where amount > 0\n")
    lab.land("a", [event(1)])
    lab.build()
    state, one, other = (lab.root / ".engine" / name for name in ("state", "one", "other"))
    shutil.copytree(state, other)
    # The one reads a file of which nothing is written; the other reads it too, and the one behind it.
    lab.land("b", [event(2) | {"amount": 0.0}])
    lab.build()
    state.rename(one)
    other.rename(state)
    lab.land("c", [event(3)])
    lab.build()
    state.rename(other)
    one.rename(state)
    before = lab.snapshots()
    assert lab.run("build").codes() == ["state-copied"]
    assert (lab.snapshots(), lab.ids("paid")) == (before, [1, 3])
    shutil.rmtree(state)
    other.rename(state)
    assert lab.build().model("paid")["status"] == "unchanged"
