"""Generations: whose commits and whose tables are whose, after resets, lost states and builds that failed half-way."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.lab import EVENTS, Lab

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


def event(number: int, minute: int = 0) -> dict[str, Any]:
    return {"id": number, "at": f"2024-05-01T10:{minute:02}:00Z", "kind": "paid", "amount": 1.0}


def ids(lab: Lab, name: str) -> list[int]:
    return sorted(row["id"] for row in lab.rows(name))


def generation_ids(lab: Lab, name: str) -> list[str | None]:
    table = lab.table(name)
    assert table is not None
    return [snapshot.marker("generation-id") for snapshot in table.history]


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
    assert lab.run("build").codes() == ["state-missing"]
    assert ids(lab, "latest") == [1, 2]
    lab.build("-f")
    assert ids(lab, "latest") == [1, 2, 3, 4]
    assert lab.build().model("latest")["status"] == "unchanged"


def test_a_generation_that_began_before_there_were_ids_goes_by_its_number(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.write("sources/shop.yml", ONE_BY_ONE)
    lab.model("latest", LATEST)
    lab.land("a", [event(1)])
    with monkeypatch.context() as patched:
        patched.setattr("engine.runtime.generations.new_id", lambda: "")
        lab.build()
    state = lab.state / "latest" / "1" / "model.json"
    state.write_text(json.dumps({k: v for k, v in lab.model_json("latest").items() if k != "generation_id"}))
    assert generation_ids(lab, "latest") == [None]
    assert lab.build().model("latest")["status"] == "unchanged"
    # The note of the last commit is lost, as after a kill: its marker still counts.
    lab.land("b", [event(2)])
    lab.build()
    state.write_text(json.dumps({**lab.model_json("latest"), "batch": 0, "snapshot": None}))
    checkpoint = lab.state / "latest" / "1" / "checkpoint"
    for name in ("1", ".1.crc"):
        (checkpoint / "commits" / name).unlink()
    assert lab.build().model("latest")["rows_out"] == 0
    assert generation_ids(lab, "latest") == [None, None]
    lab.build("-f")
    (identifier,) = generation_ids(lab, "latest")
    assert identifier == lab.model_json("latest", 2)["generation_id"]
    assert len(str(identifier)) == 32
    assert ids(lab, "latest") == [1, 2]
