"""Data under an absolute path: read as data inside the project is, and changed only where the target allows it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab import Lab, event

pytestmark = pytest.mark.spark
SOURCE = """
sources:
  - name: shop
    tables:
      - name: events
        format: json
        path: {path}
        schema: "id int, at timestamp, kind string, amount double"
        {more}
"""
MODEL = "/*---\nstreams: [shop.events]\n---*/\nselect id from {{ source('shop', 'events') }}\n"


def elsewhere(lab: Lab, tmp_path_factory: pytest.TempPathFactory, more: str = "", path: str = "{}") -> Path:
    folder = tmp_path_factory.mktemp("data") / "landing [1]"
    folder.mkdir()
    lab.write("sources/shop.yml", SOURCE.format(path=f'"{path.format(folder)}"', more=more))
    lab.model("read", MODEL)
    return folder


def test_files_are_read_and_checked_as_those_inside(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = elsewhere(lab, tmp_path_factory)
    first = lab.land("a", [event(1)], str(folder))
    lab.build()
    lab.land("b", [event(2)], str(folder))
    lab.build()
    assert lab.ids("read") == [1, 2]
    assert {m["message"] for m in lab.build().events if m["event"] == "ModelFinished"} == {"no new data"}

    first.write_text(first.read_text() + first.read_text())
    os.utime(first)
    changed = lab.run("build")
    assert (changed.code, changed.codes()[0]) == (1, "file-changed"), changed.text


def test_a_pattern_leads_anywhere(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("data")
    lab.write("sources/shop.yml", SOURCE.format(path=f'"{folder}/2024-*/x.json"', more=""))
    lab.model("read", MODEL)
    lab.land("x", [event(1)], str(folder / "2024-05"))
    lab.land("x", [event(2)], str(folder / "2025-05"))
    lab.build()
    assert lab.ids("read") == [1]


def test_a_folder_that_is_missing(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere(lab, tmp_path_factory)
    folder = tmp_path_factory.mktemp("data") / "missing"
    lab.write("sources/shop.yml", SOURCE.format(path=f'"{folder}"', more=""))
    ended = lab.run("build")
    assert ended.code == 1
    assert ended.codes()[0] == "source-folder-missing"
    assert str(folder) in ended.text


def test_files_are_removed_where_the_target_allows_it_and_through_no_link(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = elsewhere(lab, tmp_path_factory, "after_reading: delete")
    refused = lab.run("build")
    assert (refused.code, refused.codes()) == (1, ["after-reading-outside"])
    project = lab.root / "project.yml"
    project.write_text(project.read_text().rstrip() + f"\n    allow_after_reading: ['{folder.parent}']\n")
    other = tmp_path_factory.mktemp("other")
    kept = lab.land("kept", [event(2)], str(other))
    (folder / "link").symlink_to(other)
    lab.land("a", [event(1)], str(folder))
    led_out = lab.run("build")
    assert (led_out.code, led_out.codes()[0]) == (1, "source-path"), led_out.text
    (folder / "link").unlink()
    lab.build()
    assert lab.ids("read") == [1]
    assert not (folder / "a.json").exists()
    assert kept.exists()
