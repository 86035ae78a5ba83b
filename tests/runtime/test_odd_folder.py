"""A project in a folder whose name other programs mistake for something; `python -m tests.odd_folders` makes many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import Lab, LabSession, event, share_session

# Options of SQLite and of addresses, escapes, patterns, lists, letters beyond ASCII and the ends of lines.
NAME = "a b+c#d?e%20f[g]{h,i}&j=k;l@n'o$p\"q\\r*s^é😀\u2028\nt"

pytestmark = pytest.mark.spark


def test_everything_that_is_written_is_in_the_project_and_is_read_again(
    lab_session: LabSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = Lab(tmp_path / NAME, None, capsys)
    lab.write("project.yml", "name: odd\ntargets: {dev: {catalog: {type: sqlite, name: lake}, schema: s}}\n")
    lab.schema = "s"
    lab.write(
        "sources/shop.yml",
        "sources:\n  - name: shop\n    tables:\n      - name: events\n        format: json\n        path: 'landing/a ?*[é]'\n"
        "        schema: 'id int, at timestamp, kind string, amount double'\n",
    )
    lab.model(
        "events",
        "/*---\nstreams: {shop.events: {watermark: at delay 1 hour, dedup: [id]}}\n---*/\n"
        "select id, kind from {{ source('shop', 'events') }}",
    )
    with share_session(lab_session, own_lakes=True):
        lab.land("a #1", [event(1), event(1)], folder="landing/a ?*[é]")
        assert lab.build().model("events")["rows_out"] == 1
        lab.land("b %31", [event(1), event(2)], folder="landing/a ?*[é]/c=1&d")
        assert lab.build().model("events")["rows_in"] == 2
    assert lab.ids("events") == [1, 2]
    shown = lab.run("show", "--table", "events")
    assert shown.code == 0, shown.text
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
