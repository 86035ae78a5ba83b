"""`engine state`: what queries hold, of each kind of step, and where there is nothing to show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import EVENTS, Lab, LabSession, event, share_session

pytestmark = pytest.mark.spark

STREAM = "/*---\nstreams: {{shop.events: {{watermark: at delay 10 minutes{more}}}}}\n{settings}\n---*/\n{sql}\n"
SOURCE = "{{ source('shop', 'events') }}"
OTHER = """
      - name: others
        format: json
        path: landing/others
        schema: "id int, at timestamp, kind string, amount double"
"""
JOINED = """/*---
streams:
  shop.events: {watermark: at delay 10 minutes}
  shop.others: {watermark: at delay 10 minutes}
---*/
select e.id, o.kind from {{ source('shop', 'events') }} e join {{ source('shop', 'others') }} o
  on e.id = o.id and o.at between e.at and e.at + interval 1 hour
"""


@pytest.fixture
def lab(lab_session: LabSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Lab]:
    """A project in a folder with letters that Java's URIs encode."""
    with share_session(lab_session):
        yield Lab(tmp_path / "a %b", lab_session, capsys)


def steps(lab: Lab, name: str, *options: str) -> list[dict[str, Any]]:
    """What `engine state` says of a model."""
    result = lab.run("state", name, "--output", "json", *options)
    assert result.code == 0, result.text
    return json.loads(result.out)["steps"]


def test_open_windows_keys_and_rows_that_wait(lab: Lab) -> None:
    lab.write("sources/shop.yml", EVENTS + OTHER)
    hourly = f"select hour.start as hour, kind, count(*) as n from {SOURCE} group by hour, kind"
    lab.model("hourly", STREAM.format(more="", settings="windows: {hour: 'tumbling(at, 1 hour)'}", sql=hourly))
    lab.model("once", STREAM.format(more=", dedup: [id]", settings="", sql=f"select id, at from {SOURCE}"))
    lab.model("joined", JOINED)
    lab.model("plain", f"/*---\nstreams: [shop.events]\n---*/\nselect id from {SOURCE}\n")
    lab.land("a", [event(1, "10:05"), event(2, "10:06"), event(2, "10:06"), event(3, "11:20", kind="sent")])
    lab.land("a", [event(1, "10:07")], folder="landing/others")
    built = lab.build()
    (windows,) = steps(lab, "hourly")
    # The hour from ten is closed by the watermark at 11:10.
    assert (windows["operator"], windows["meaning"], windows["count"]) == ("stateStoreSave", "open groups", 1)
    shown = dict(zip(windows["columns"], windows["sample"][0], strict=True))
    assert (shown["kind"], shown["count"]) == ("sent", 1)
    assert "2024-05-01 11:00:00" in json.dumps(windows["sample"])
    (keys,) = steps(lab, "once", "--limit", "1")
    assert (keys["meaning"], len(keys["sample"])) == ("keys of dedup", 1)
    assert keys["count"] >= 1
    assert [built.model(name)["duplicates"] for name in ("once", "hourly")] == [1, 0]
    left, right = steps(lab, "joined")
    assert (left["meaning"], right["meaning"]) == (
        "rows that may still find a match, left side", "rows that may still find a match, right side",
    )  # fmt: skip
    assert left["count"] >= 1
    # The last micro-batch reports the same, without another query.
    for name, counted in (
        ("hourly", windows["count"]),
        ("once", keys["count"]),
        ("joined", left["count"] + right["count"]),
    ):
        (last,) = [e for e in built.events if e["event"] == "BatchCommitted" and e["node"] == f"model.{name}"][-1][
            "held"
        ]
        assert (last["count"], last["memory_bytes"] > 0) == (counted, True), name
        assert last["meaning"] == {"hourly": "open groups", "once": "keys of dedup"}.get(
            name, "rows that may still find a match"
        )
        assert last["explanation"]
    assert [e["held"] for e in built.events if e["event"] == "BatchCommitted" and e["node"] == "model.plain"] == [[]]
    # As text.
    text = lab.run("state", "hourly").out
    assert text.startswith("1 entry: open groups\n")
    assert "| sent |" in text
    # Reading changes nothing.
    assert {lab.build().model(name)["status"] for name in ("hourly", "once", "joined")} == {"unchanged"}
    assert "keeps no state" in lab.run("state", "plain").text
    assert lab.run("state", "plian").code == 2
    lab.model("table", "select 1 as n")
    assert "not a streaming table" in lab.run("state", "table").text
    lab.model("fresh", STREAM.format(more=", dedup: [id]", settings="", sql=f"select id, at from {SOURCE}"))
    assert lab.run("state", "fresh").codes() == ["table-missing"]
