"""The sources of a checkpoint: their order and identity, renamed sources, moved projects, renamed files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.lab import EVENTS, Lab, Result
from tests.projects import sources_yaml

pytestmark = pytest.mark.spark

TWO = sources_yaml(one="id int, at timestamp", two="id int, at timestamp")
ONE, OTHER = "{{ source('shop', 'one') }}", "{{ source('shop', 'two') }}"
BASE, SECOND = "{{ ref('base') }}", "{{ ref('second') }}"


def union(*parts: str, streams: str = "[shop.one, shop.two]") -> str:
    selects = " union all ".join(f"select id from {part}" for part in parts)
    return f"/*---\nstreams: {streams}\n---*/\n{selects}"


def row(number: int) -> dict[str, Any]:
    return {"id": number, "at": f"2024-05-01T10:{number:02d}:00Z"}


def landed(lab: Lab, *numbers: int) -> None:
    """Odd numbers are landed in one, even numbers in two."""
    for number in numbers:
        lab.land(f"f{number}", [row(number)], "landing/one" if number % 2 else "landing/two")


def rejected(lab: Lab, name: str, *arguments: str) -> str:
    """A build that is rejected for its sources, with the table as before; its message."""
    before = lab.snapshot(name), lab.ids(name)
    result = lab.run("build", "-s", name, *arguments)
    assert (result.code, result.codes()) == (1, ["source-changed"]), result.text
    assert (lab.snapshot(name), lab.ids(name)) == before
    return message(result)


def message(result: Result) -> str:
    (found,) = [e["message"] for e in result.events if e["event"] == "Diagnosed" and e["level"] == "error"]
    return str(found)


def test_streams_in_another_order_are_rejected_and_nothing_is_read_again(lab: Lab) -> None:
    lab.write("sources/shop.yml", TWO)
    landed(lab, 1, 2)
    ctes = "with x as (select id from {0}), y as (select id from {1}) select * from {2} union all select * from {3}"
    lab.model("files", union(ONE, OTHER))
    lab.model("ctes", "/*---\nstreams: [shop.one, shop.two]\n---*/\n" + ctes.format(ONE, OTHER, "y", "x"))
    lab.model("base", union(ONE, streams="[shop.one]"))
    lab.model("second", union(OTHER, streams="[shop.two]"))
    lab.model("tables", union(BASE, SECOND, streams="[base, second]"))
    lab.build()
    landed(lab, 3, 4)

    lab.model("files", union(OTHER, ONE))
    lab.model("tables", union(SECOND, BASE, streams="[base, second]"))
    # Spark counts the definitions of CTEs, wherever they are used.
    lab.model("ctes", "/*---\nstreams: [shop.one, shop.two]\n---*/\n" + ctes.format(ONE, OTHER, "x", "y"))
    assert "order of its streams changed from shop.one, shop.two to shop.two, shop.one" in rejected(lab, "files")
    assert "from base, second to second, base" in rejected(lab, "tables")
    lab.build("-s", "ctes")
    assert lab.ids("ctes") == [1, 2, 3, 4]

    # One of them twice is another checkpoint as well; undone, all is read once.
    lab.model("files", union(ONE, ONE, streams="[shop.one]"))
    assert "its streams changed" in rejected(lab, "files")
    lab.model("files", union(ONE, OTHER))
    lab.model("tables", union(BASE, SECOND, streams="[base, second]"))
    lab.build()
    assert lab.ids("files") == lab.ids("tables") == [1, 2, 3, 4]


def test_a_checkpoint_of_an_older_version_tells_its_sources_itself(lab: Lab) -> None:
    lab.write("sources/shop.yml", TWO)
    landed(lab, 1, 2)
    lab.model("files", union(ONE, OTHER))
    lab.build()
    (lab.state / "files" / "1" / "sources.json").unlink()
    lab.model("files", union(OTHER, ONE))
    assert "has read other files than the files of shop.two" in rejected(lab, "files")
    lab.model("files", union(ONE, OTHER))
    landed(lab, 3)
    lab.build()
    assert lab.ids("files") == [1, 2, 3]
    assert (lab.state / "files" / "1" / "sources.json").exists()


def test_one_stream_read_twice_is_one_source_with_two_offsets(lab: Lab) -> None:
    lab.write("sources/shop.yml", TWO)
    landed(lab, 1, 2)
    lab.model("m", union(ONE, ONE, OTHER))
    lab.build()
    landed(lab, 4)
    lab.build()
    assert lab.ids("m") == [1, 1, 2, 4]
    # A file of the source behind it, that was read and is gone: no file is missing.
    (lab.root / "landing/two/f4.json").unlink()
    landed(lab, 3)
    lab.build()
    assert lab.ids("m") == [1, 1, 2, 3, 3, 4]


def test_what_does_not_change_a_source_is_accepted(lab: Lab) -> None:
    hourly = (
        "/*---\nstreams: {shop.events: {watermark: at delay 10 minutes, dedup: [id, kind]}}\n"
        "windows: {hour: 'tumbling(at, 1 hour)'}\n---*/\n"
        "select hour.start as hour, count(*) as n from {{ source('shop', 'events') }} events "
        "where events.kind = 'paid' group by hour"
    )
    plain = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}"
    lab.model("hourly", hourly)
    lab.model("plain", plain)
    lab.land("a", [row(1) | {"kind": "paid"}])
    lab.build()
    # Another spelling of the path, a column added, the rest in another order, another name, a rate limit.
    changed = (
        EVENTS.replace("path: landing/events", "path: ./landing//events/\n        max_files_per_trigger: 5")
        .replace(
            "id int, at timestamp, kind string, amount double",
            "extra int, amount double, kind string, at timestamp, id int",
        )
        .replace("name: events", "name: happenings")
    )
    lab.write("sources/shop.yml", changed)
    lab.model("hourly", hourly.replace("shop.events", "shop.happenings").replace("'events'", "'happenings'"))
    lab.model("plain", plain.replace("events", "happenings"))
    lab.land("b", [row(2) | {"kind": "paid"}, {**row(3), "at": "2024-05-01T12:00:00Z", "kind": "paid"}])
    built = lab.build()
    assert [built.model(name)["rows_in"] for name in ("hourly", "plain")] == [2, 2]
    assert lab.ids("plain") == [1, 2, 3]
    assert [r["n"] for r in lab.rows("hourly")] == [2]


def test_a_moved_project_with_state_elsewhere_reads_no_file_again(lab: Lab, tmp_path: Path) -> None:
    state = tmp_path / "kept" / "state"
    project = (lab.root / "project.yml").read_text()
    lab.write("project.yml", project + f"    state: {state}\n")
    lab.write("sources/shop.yml", TWO)
    landed(lab, 1, 2)
    lab.model("m", union(ONE, OTHER))
    lab.build()
    home = lab.root
    lab.root = tmp_path / "moved"
    lab.root.mkdir()
    for name in ("project.yml", "sources", "models", "landing"):
        shutil.move(home / name, lab.root / name)
    assert f"the project was moved from {home} to {lab.root}" in rejected(lab, "m")
    # Also without the record: the checkpoint names its files.
    record = state / "lake" / lab.schema / "m" / "1" / "sources.json"
    record.unlink()
    assert "has read other files" in rejected(lab, "m")
    # Reading on from now is a way that works.
    lab.build("-s", "m", "--reset-checkpoint", "now")
    landed(lab, 4)
    lab.build()
    assert lab.ids("m") == [1, 2, 4]


@pytest.mark.nightly_cases("True")
@pytest.mark.parametrize("old_state", [False, True])
def test_the_keys_of_a_dedup_keep_the_order_of_the_state(lab: Lab, old_state: bool) -> None:
    """Spark keeps keys by position: 1, 2 and 2, 1 would be one key of two ids in another order."""
    lab.write("sources/shop.yml", EVENTS.replace("kind string", "other int"))
    model = "/*---\nstreams: {{shop.events: {{watermark: at delay 1 hour, dedup: [{0}]}}}}\n---*/\nselect id, other from {{{{ source('shop', 'events') }}}}"
    lab.model("m", model.format("other, id"))
    lab.land("a", [row(1) | {"other": 2}])
    with pytest.MonkeyPatch.context() as patched:
        if old_state:
            # As the version before wrote it: in the order of the header.
            patched.setattr("engine.runtime.streams.stream_query.with_dedup_order", lambda model, *_: model)
        lab.build()
    lab.model("m", model.format("ID, other"))
    # One that was written, and one whose keys are those of the first the other way round.
    lab.land("b", [row(1) | {"other": 2}, row(2) | {"other": 1}])
    lab.build()
    assert sorted((r["id"], r["other"]) for r in lab.rows("m")) == [(1, 2), (2, 1)]


def test_settings_and_hooks_that_change_what_a_query_means(lab: Lab) -> None:
    hourly = (
        "/*---\nstreams: {shop.events: {watermark: at delay 10 minutes}}\nwindows: {hour: 'tumbling(at, 1 hour)'}\n"
        'pre_hook: "declare or replace variable factor int default 2"\n---*/\n'
        "select hour.start as hour, sum(id) as n from {{ source('shop', 'events') }} group by hour"
    )
    lab.model("hourly", hourly)
    lab.model("plain", "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}")
    lab.model("ranked", "/*---\nmaterialized: table\n---*/\nselect id from {{ ref('plain') }}")
    lab.land("a", [row(1)])
    lab.build()
    project = (lab.root / "project.yml").read_text()
    assert lab.build().model("ranked")["status"] == "unchanged"

    # What the hook makes can be read by the query.
    lab.model("hourly", hourly.replace("default 2", "default 3"))
    result = lab.run("build", "-s", "hourly")
    assert (result.code, result.codes()) == (1, ["model-changed"]), result.text
    assert "'pre_hook' changed from" in message(result)
    # A hook that writes to a table of somebody's is not.
    lab.model("hourly", hourly.replace('pre_hook: "', 'pre_hook:\n  - "select 1"\n  - "'))
    lab.build("-s", "hourly")
    lab.model("hourly", hourly)

    lab.write("project.yml", project.replace("conf: {", "conf: {spark.sql.ansi.enabled: false, "))
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["model-changed", "build-rejected"]), result.text
    assert "'spark.sql.ansi.enabled' changed from its default to false" in result.text
    result = lab.build("--exclude", "hourly+")
    assert result.model("ranked")["status"] == "success"

    lab.write("project.yml", project.replace("conf: {", "conf: {spark.sql.session.timeZone: Europe/Berlin, "))
    result = lab.run("build")
    assert (result.code, result.codes()) == (1, ["setting-pinned"]), result.text
    lab.write("project.yml", project)
    lab.model("hourly", hourly.replace('pre_hook: "', 'pre_hook:\n  - "set time zone \'Europe/Berlin\'"\n  - "'))
    result = lab.run("build", "-s", "hourly", "-f")
    assert (result.code, result.codes()) == (1, ["setting-pinned"]), result.text
    assert "pre_hook" in message(result)


def test_a_file_that_is_renamed_after_reading_is_read_again_with_a_warning(lab: Lab) -> None:
    lab.write("sources/shop.yml", TWO)
    landed(lab, 1, 3)
    lab.model("m", union(ONE, streams="[shop.one]"))
    lab.build()
    files = lab.root / "landing" / "one"
    (files / "f1.json").rename(files / "f1-done.json")
    landed(lab, 5)
    built = lab.build()
    (warned,) = [e for e in built.events if e["event"] == "Diagnosed"]
    assert (warned["level"], warned["code"]) == ("warning", "file-renamed")
    assert "1 file of 'shop.one'" in warned["message"]
    assert "landing/one/f1-done.json (was landing/one/f1.json)" in warned["message"]
    assert lab.ids("m") == [1, 1, 3, 5]
    # Told once: it is known under its new name now. A file that is gone is no news.
    (files / "f3.json").unlink()
    landed(lab, 7)
    assert lab.build().codes() == []
