"""Sources whose files are in an object store: read once, and checked as those of a local folder are."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.sources.files import s3_files
from tests.lab import EVENTS, event
from tests.object_store.conftest import StoreLab

pytestmark = pytest.mark.spark
PLAIN = "/*---\nstreams: [shop.events]\n---*/\nselect id, amount from {{ source('shop', 'events') }}\n"
WHOLE = "select count(*) as n from {{ source('shop', 'events') }}\n"


def put(lab: StoreLab, key: str, body: bytes) -> None:
    assert lab.server is not None
    lab.server.client().put_object(Bucket=lab.bucket, Key=key, Body=body)


def land(lab: StoreLab, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    put(lab, f"landing/events/{name}.json", "".join(json.dumps(row) + "\n" for row in rows).encode())


def declare(lab: StoreLab, scheme: str = "s3a", **settings: str) -> None:
    text = EVENTS.replace("landing/events", f"{scheme}://{lab.bucket}/landing/events")
    lab.write("sources/shop.yml", text.replace("format: json", settings.get("format", "format: json")))


def without_spark(lab: StoreLab, *arguments: str) -> Any:
    """A command whose session cannot be had."""
    with patch("engine.runtime.build.spark_session", side_effect=AssertionError("Spark was started")):
        return lab.run(*arguments)


@pytest.mark.nightly_cases("s3")
@pytest.mark.parametrize("scheme", ["s3a", "s3"])
def test_files_are_read_once_and_what_is_new_is_known_without_java(landing: StoreLab, scheme: str) -> None:
    lab = landing
    declare(lab, scheme)
    lab.model("plain", PLAIN)
    lab.model("whole", WHOLE)
    missing = without_spark(lab, "plan")
    assert missing.codes() == ["source-folder-missing"], missing.text
    land(lab, "a b%20c", [event(1), event(2)])
    put(lab, "landing/events/_temporary/x.json", b'{"id": 9}\n')
    put(lab, "landing/events/sub/", b"")
    lab.build()
    assert lab.ids("plain") == [1, 2]
    assert lab.rows("whole") == [{"n": 2}]
    second = without_spark(lab, "build")
    assert {m["message"] for m in second.events if m["event"] == "ModelFinished"} == {"no new data"}, second.text

    land(lab, "sub/b", [event(3)])
    lab.build()
    assert lab.ids("plain") == [1, 2, 3]
    assert lab.rows("whole") == [{"n": 3}]


def test_a_file_that_changed_after_it_was_read_is_an_error_before_java(landing: StoreLab) -> None:
    lab = landing
    declare(lab)
    lab.model("plain", PLAIN)
    land(lab, "a", [event(1)])
    lab.build()
    time.sleep(1.1)
    land(lab, "a", [event(1), event(2)])
    changed = without_spark(lab, "build")
    assert changed.codes() == ["file-changed"], changed.text
    assert lab.ids("plain") == [1]


def test_files_of_another_schema_are_not_read_as_nulls(landing: StoreLab) -> None:
    lab = landing
    declare(lab, format="format: parquet")
    lab.model("plain", PLAIN)
    content = io.BytesIO()
    parquet.write_table(pa.table({"id": ["one"], "amount": [1.0]}), content)
    put(lab, "landing/events/a.parquet", content.getvalue())
    failed = lab.run("build")
    assert failed.codes() == ["source-unreadable"], failed.text
    assert "s3a://" in failed.text
    assert lab.table("plain") is None or lab.rows("plain") == []


def test_times_are_those_of_the_listing_however_many_files_are_asked_for(landing: StoreLab) -> None:
    lab = landing
    assert lab.server is not None
    for number in range(s3_files._ONE_BY_ONE + 1):
        put(lab, f"landing/{number}", b"x")
    folder, settings = f"s3a://{lab.bucket}/landing", lab.server.settings
    listed = {uri: modified for uri, _, modified in s3_files.walk(folder, settings)}
    assert len(listed) == s3_files._ONE_BY_ONE + 1
    assert s3_files.times(listed, [folder], settings) == listed
    few = [*list(listed)[:3], f"{folder}/gone"]
    assert s3_files.times(few, [folder], settings) == {uri: listed[uri] for uri in few[:3]}
    assert list(s3_files.walk(f"{folder}/7", settings)) == [(f"{folder}/7", 1, listed[f"{folder}/7"])]
    assert s3_files.exists(f"{folder}/7", settings)
    assert not s3_files.exists(f"{folder}/none", settings)
