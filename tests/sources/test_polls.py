"""A poll sees files that come and go, without reading folders that have not changed."""

from __future__ import annotations

import os
import time

import pytest

from engine.sources.polls import FolderTimes


def settled(folders: FolderTimes, top):
    """A poll when the last change is no longer too fresh to be told from the next one."""
    time.sleep(0.12)
    return folders.poll(str(top))


@pytest.mark.slow
def test_a_file_that_lands_and_one_that_goes_change_the_poll(tmp_path):
    folders = FolderTimes()
    (tmp_path / "a").write_text("1")
    before = settled(folders, tmp_path)
    assert settled(folders, tmp_path) == before
    (tmp_path / "b").write_text("2")
    landed = settled(folders, tmp_path)
    assert landed != before
    (tmp_path / "b").unlink()
    assert settled(folders, tmp_path) != landed


@pytest.mark.slow
def test_files_in_folders_below_count(tmp_path):
    folders = FolderTimes()
    inner = tmp_path / "day=1" / "hour=2"
    inner.mkdir(parents=True)
    before = settled(folders, tmp_path)
    (inner / "x").write_text("1")
    after = settled(folders, tmp_path)
    assert after != before
    (tmp_path / "day=2").mkdir()
    (tmp_path / "day=2" / "y").write_text("1")
    assert settled(folders, tmp_path) != after


def test_a_change_at_the_same_time_as_the_last_one_is_seen_by_a_later_poll(tmp_path):
    folders = FolderTimes()
    (tmp_path / "a").write_text("1")
    moment = time.time_ns()
    os.utime(tmp_path, ns=(moment, moment))
    first = folders.poll(str(tmp_path))
    (tmp_path / "b").write_text("2")
    os.utime(tmp_path, ns=(moment, moment))
    assert folders.poll(str(tmp_path)) != first


def test_a_folder_that_is_missing_is_seen_when_it_comes(tmp_path):
    folders = FolderTimes()
    before = folders.poll(str(tmp_path / "landing"))
    (tmp_path / "landing").mkdir()
    assert folders.poll(str(tmp_path / "landing")) != before
