"""Files that the user or the project names: reports of CI, and OpenLineage's events."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from engine.docs.openlineage.background_delivery import _file_transport
from engine.errors import ProjectError
from engine.target_folder import append_line, own_folder, write_report
from tests.security.hostile import write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {})


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine\n")
    return folder


@pytest.mark.parametrize("name", ["../precious/notes.txt", "%s/notes.txt", "a/../../precious/notes.txt"])
def test_events_are_added_to_no_file_outside_the_project(root, precious, name):
    path = Path(name % precious if "%s" in name else name)
    with pytest.raises(ProjectError) as raised:
        append_line(path, "{}", root)
    assert raised.value.diagnostic.code == "path-outside"
    assert (precious / "notes.txt").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["events.jsonl", "target/events.jsonl", "logs/events.jsonl"])
@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_events_are_added_through_no_link(root, precious, name, make):
    path = root / name
    path.parent.mkdir(exist_ok=True)
    make(precious / "notes.txt", path)
    with pytest.raises(ProjectError) as raised:
        append_line(Path(name), "{}", root)
    assert raised.value.diagnostic.code == "target-link"
    path.unlink()
    if path.parent != root:
        path.parent.rmdir()
        path.parent.symlink_to(precious)
        with pytest.raises(ProjectError):
            append_line(Path(name), "{}", root)
    assert (precious / "notes.txt").read_text() == "mine\n"
    assert [p.name for p in precious.iterdir()] == ["notes.txt"]


def test_events_stand_one_a_line_and_below_target_they_are_private(root):
    transport = _file_transport(Path("target/events.jsonl"), root)
    for number in range(2):
        transport.emit({"run": number})  # type: ignore[arg-type]
    path = root / "target/events.jsonl"
    assert path.read_text() == '{"run": 0}\n{"run": 1}\n'
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


@pytest.mark.parametrize("name", ["reports/junit.xml", "junit.xml", "target/junit.xml"])
def test_a_report_inside_the_project_is_written_through_no_link(root, precious, name, monkeypatch):
    path = root / name
    if path.parent != root:
        path.parent.symlink_to(precious)
        with pytest.raises(ProjectError):
            write_report(path, b"<x/>", root)
        path.parent.unlink()
        path.parent.mkdir()
    path.symlink_to(precious / "notes.txt")
    monkeypatch.chdir(root)
    with pytest.raises(ProjectError) as raised:
        write_report(Path(name), b"<x/>", root)
    assert raised.value.diagnostic.code == "target-link"
    path.unlink()
    write_report(path, b"<x/>", root)
    assert path.read_bytes() == b"<x/>"
    assert (precious / "notes.txt").read_text() == "mine\n"
    assert stat.S_IMODE(root.stat().st_mode) != 0o700 or stat.S_IMODE(root.parent.stat().st_mode) == 0o700


def test_a_project_reached_by_a_link_is_no_way_around(root, precious, tmp_path):
    (tmp_path / "alias").symlink_to(root)
    (root / "reports").symlink_to(precious)
    with pytest.raises(ProjectError):
        write_report(tmp_path / "alias/reports/notes.txt", b"<x/>", root)
    assert (precious / "notes.txt").read_text() == "mine\n"


def test_a_report_outside_the_project_goes_where_the_user_says(root, precious, tmp_path):
    (tmp_path / "reports").symlink_to(precious)
    write_report(tmp_path / "reports/new/junit.xml", b"<x/>", root)
    assert (precious / "new/junit.xml").read_bytes() == b"<x/>"


@pytest.mark.parametrize("umask", [0o000, 0o022])
@pytest.mark.parametrize("first", [".engine/lake", ".engine/state"])
def test_lake_and_state_are_private_whichever_was_made_first(root, umask, first):
    before = os.umask(umask)
    try:
        (root / first).mkdir(parents=True)
        for name in (".engine/lake", ".engine/state"):
            own_folder(root / name, root)
    finally:
        os.umask(before)
    for name in (".engine", ".engine/lake", ".engine/state"):
        assert stat.S_IMODE((root / name).stat().st_mode) == 0o700


def test_a_lake_elsewhere_keeps_the_mode_that_its_owner_chose(root, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    (root / "lake").mkdir()
    (root / "lake").chmod(0o750)
    for folder in (tmp_path / "shared", root / "lake"):
        own_folder(folder, root)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o750


def test_a_lake_or_state_behind_a_link_is_refused_by_a_build(root, precious):
    (root / ".engine").symlink_to(precious)
    with pytest.raises(ProjectError) as raised:
        own_folder(root / ".engine/lake", root)
    assert raised.value.diagnostic.code == "target-link"
    assert [p.name for p in precious.iterdir()] == ["notes.txt"]
