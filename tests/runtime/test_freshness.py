"""`engine source freshness`: the newest row against its bounds, from real files and a real broker."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.cli.main import invoke
from engine.docs.site.freshness_status import Fresh, read_freshness
from engine.sources.files import file_source
from engine.sources.kafka import topic_check
from tests.lab import Lab, Result
from tests.services.kafka import Broker

pytestmark = pytest.mark.spark


def declare(lab: Lab, freshness: str, *more: str, name: str = "events", schema: str = "id int, at timestamp") -> None:
    lines = ["format: json", f"path: landing/{name}", f'schema: "{schema}"', f"freshness: {freshness}", *more]
    body = "".join(f"        {line}\n" for line in lines)
    lab.write(f"sources/{name}.yml", f"sources:\n  - name: shop_{name}\n    tables:\n      - name: {name}\n{body}")


def at(hours_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours_ago)).isoformat()


def freshness(lab: Lab, *arguments: str) -> tuple[Result, dict[str, dict[str, Any]]]:
    result = lab.run("source", "freshness", *arguments)
    return result, {e["node"].split(".")[-1]: e for e in result.events if e["event"] == "FreshnessFinished"}


def test_the_newest_row_decides(lab: Lab) -> None:
    bounds = "{warn_after: 1 hour, error_after: 1 day}"
    for name, hours in (("young", [50, 0.1]), ("older", [50, 3, 4]), ("old", [49, 50])):
        declare(lab, bounds, "loaded_at_field: at", name=name)
        lab.land("a", [{"id": n, "at": at(h)} for n, h in enumerate(hours)], folder=f"landing/{name}")
    result, found = freshness(lab)
    assert result.code == 1
    assert {name: e["status"] for name, e in found.items()} == {"young": "pass", "older": "warn", "old": "error"}
    assert found["older"]["age_seconds"] == pytest.approx(3 * 3600, abs=600)
    known = read_freshness(lab.root / "target")
    assert {name: seen.status for name, seen in known.items()} == {
        "source.shop_young.young": Fresh.PASS,
        "source.shop_older.older": Fresh.WARN,
        "source.shop_old.old": Fresh.ERROR,
    }
    written = json.loads((lab.root / "target/sources.json").read_text())
    assert written["metadata"]["dbt_schema_version"].endswith("/sources/v3.json")
    criteria = {"warn_after": {"count": 1, "period": "hour"}, "error_after": {"count": 1, "period": "day"}}
    assert written["results"][0]["criteria"] == {**criteria, "filter": None}
    # A warning alone is no failure.
    assert freshness(lab, "-s", "source:shop_older.older source:shop_young.young")[0].code == 0


def test_a_time_far_ahead_of_the_clock_does_not_count(lab: Lab) -> None:
    later = {"id": 3, "at": "2099-01-01T00:00:00Z"}
    for name, bounds, hours in (
        ("old", "{error_after: 1 hour}", [30, -2000]),
        ("near", "{error_after: 1 hour, max_future: 1 hour}", [5, -3]),
        ("wide", "{error_after: 1 hour, max_future: 40000 days}", [5, -2000]),
        ("only", "{error_after: 1 hour}", []),
    ):
        declare(lab, bounds, "loaded_at_field: at", name=name)
        rows = [{"id": n, "at": at(h)} for n, h in enumerate(hours)]
        lab.land("a", [*rows, *([] if name == "near" else [later])], folder=f"landing/{name}")
    result, found = freshness(lab)
    assert result.code == 1
    expected = {"old": "error", "near": "error", "wide": "pass", "only": "runtime error"}
    assert {name: e["status"] for name, e in found.items()} == expected
    assert [found[name].get("ahead") for name in expected] == [2, 1, None, 1]
    assert found["old"]["farthest"] == found["only"]["farthest"] == "2099-01-01 00:00:00"
    assert found["only"]["error"] == "there is no row that counts"
    lab.capsys.readouterr()
    invoke(["source", "freshness", "-s", "source:shop_old.old", "--project-dir", str(lab.root)])
    text = lab.capsys.readouterr().out
    assert "2 rows do not count, more than 1 day ahead of the clock: up to 2099-01-01 00:00:00" in text


def test_without_a_column_the_time_of_the_newest_file_counts(lab: Lab) -> None:
    declare(lab, "{error_after: 2 hours}")
    path = lab.land("a", [{"id": 1}])
    os.utime(path, (time.time() - 3 * 3600,) * 2)
    result, found = freshness(lab)
    assert (result.code, found["events"]["status"]) == (1, "error")
    path.touch()
    assert freshness(lab)[1]["events"]["status"] == "pass"


def test_an_expression_a_filter_and_bad_records(lab: Lab) -> None:
    expression = "loaded_at_field: cast(text as timestamp)"
    declare(lab, "{error_after: 2 hours, filter: id > 1}", expression, schema="id int, text string")
    rows = [{"id": 1, "text": at(0)}, {"id": 2, "text": at(5)}]
    path = lab.land("a", rows)
    with path.open("a") as file:
        file.write(f'{{"id": "x", "text": "{at(0)}"}}\n')
    result, found = freshness(lab)
    assert (result.code, found["events"]["status"]) == (1, "error")
    assert found["events"]["age_seconds"] == pytest.approx(5 * 3600, abs=600)
    written = json.loads((lab.root / "target/sources.json").read_text())
    assert written["results"][0]["criteria"]["filter"] == "id > 1"


def test_what_cannot_be_read_is_told_and_the_others_are_looked_at(lab: Lab) -> None:
    declare(lab, "{warn_after: 1 day}", "loaded_at_field: at", name="a_missing")
    declare(lab, "{warn_after: 1 day}", "loaded_at_field: at", name="b_empty")
    (lab.root / "landing/b_empty").mkdir(parents=True)
    declare(lab, "{warn_after: 1 day}", "loaded_at_field: cast(text as timestamp)", name="c_bad", schema="text string")
    lab.land("a", [{"text": "never"}], folder="landing/c_bad")
    declare(lab, "{warn_after: 1 day}", "loaded_at_field: at", name="d_fine")
    lab.land("a", [{"id": 1, "at": at(1)}], folder="landing/d_fine")
    result, found = freshness(lab)
    assert result.code == 1
    assert {name: e["status"] for name, e in found.items()} == {
        "a_missing": "runtime error", "b_empty": "runtime error", "c_bad": "runtime error", "d_fine": "pass",
    }  # fmt: skip
    assert "does not exist" in found["a_missing"]["error"]
    assert found["b_empty"]["error"] == "there is no row"
    assert "never" in found["c_bad"]["error"]
    assert len(json.loads((lab.root / "target/sources.json").read_text())["results"]) == 4


def test_of_many_files_the_newest_are_read(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(lab, "{warn_after: 1 hour}", "loaded_at_field: at")
    for number in range(4):
        lab.land(str(number), [{"id": number, "at": at(10 - number)}])
    torn = lab.land("old", [])
    torn.write_text("not JSON, and too old to be looked at")
    os.utime(torn, (1, 1))
    monkeypatch.setattr(file_source, "NEWEST", 2)
    result, found = freshness(lab)
    assert (result.code, found["events"]["status"]) == (0, "warn")
    assert found["events"]["age_seconds"] == pytest.approx(7 * 3600, abs=600)


def test_of_a_topic_the_newest_records_are_read(lab: Lab, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = broker.create(f"fresh-{lab.schema}", 2)
    project = lab.root / "project.yml"
    project.write_text(f"{project.read_text()}    connections: {{main: {{bootstrap_servers: '{broker.address}'}}}}\n")
    lines = ["format: kafka", f"topic: {topic}", "connection: main", 'schema: "id int, at timestamp"']
    body = "".join(f"        {line}\n" for line in (*lines, "freshness: {error_after: 2 hours}"))
    lab.write("sources/shop.yml", f"sources:\n  - name: shop\n    tables:\n      - name: events\n{body}")
    assert freshness(lab)[1]["events"]["error"] == "there is no row"
    broker.send(topic, ["poison", {"id": 1, "at": at(9)}, {"id": 2, "at": at(5)}], 0)
    broker.send(topic, [{"id": 3, "at": at(6)}], 1)
    # Without a column it is the time of the newest record that can be read.
    assert freshness(lab)[1]["events"]["status"] == "pass"
    lab.write(
        "sources/shop.yml",
        f"sources:\n  - name: shop\n    tables:\n      - name: events\n{body}        loaded_at_field: at\n",
    )
    monkeypatch.setattr(topic_check, "NEWEST", 1)
    model = (
        "/*---\nstreams: {shop.events: {on_bad_record: drop}}\n---*/\nselect id from {{ source('shop', 'events') }}\n"
    )
    lab.model("ids", model)
    result, found = freshness(lab)
    assert (result.code, found["events"]["status"]) == (1, "error")
    assert found["events"]["age_seconds"] == pytest.approx(5 * 3600, abs=600)
    assert found["events"]["waiting"] == {"ids": 4}
    lab.build()
    broker.send(topic, [{"id": 4, "at": at(5)}], 1)
    assert freshness(lab)[1]["events"]["waiting"] == {"ids": 1}


def test_archived_files_count(lab: Lab) -> None:
    declare(lab, "{error_after: 1 day}", "loaded_at_field: at", "after_reading: archive", "archive_path: read")
    lab.model(
        "events", "/*---\nstreams: [shop_events.events]\n---*/\nselect id from {{ source('shop_events', 'events') }}\n"
    )
    lab.land("a", [{"id": 1, "at": at(2)}])
    lab.build()
    assert not list((lab.root / "landing/events").glob("*.json"))
    result, found = freshness(lab)
    assert (result.code, found["events"]["status"]) == (0, "pass")


def test_a_project_without_bounds_and_another_place_for_the_result(lab: Lab) -> None:
    lab.write("project.yml", (lab.root / "project.yml").read_text())
    assert lab.run("source", "freshness").code == 0
    assert not (lab.root / "target/sources.json").exists()
    declare(lab, "{warn_after: 1 day}")
    lab.land("a", [{"id": 1}])
    assert lab.run("source", "freshness", "-o", str(lab.root / "elsewhere/fresh.json")).code == 0
    assert json.loads((lab.root / "elsewhere/fresh.json").read_text())["results"][0]["status"] == "warn"
