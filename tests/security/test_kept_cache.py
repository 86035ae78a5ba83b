"""What one command keeps for the next is the user's own: nothing that comes with a project is believed."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.compile import compile_project
from engine.project import load_project
from engine.user_cache import in_checkout, is_own, own_folder, project_cache
from tests.security.hostile import run, write

POISON = "select 'poison' as id"


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENGINE_CACHE", str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.fixture
def root(tmp_path: Path, caches: Path) -> Path:
    return write(tmp_path / "project", {"models/a.sql": "select 'clean!' as id"})


def kept(root: Path) -> Path:
    found = project_cache(root / "target")
    assert found
    return found


def poison(folder: Path) -> int:
    """Write another query of the same length into all that is kept below a folder."""
    spoilt = 0
    for path in folder.rglob("*"):
        if path.is_file() and b"clean!" in path.read_bytes():
            stat = path.stat()
            path.write_bytes(path.read_bytes().replace(b"clean!", b"poison"))
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            spoilt += 1
    return spoilt


@pytest.mark.slow
def test_the_test_knows_what_a_poisoned_cache_does(root):
    assert run(root, "compile") == 0
    assert poison(kept(root)), "what is kept holds the query"
    shutil.rmtree(root / "target")
    assert run(root, "compile") == 0
    assert "poison" in (root / "target/compiled/small/models/a.sql").read_text(), "who can write there is believed"


@pytest.mark.slow
@pytest.mark.parametrize("place", ["target/.cache", "target/compiled", "target"])
def test_a_cache_that_comes_with_the_project_is_not_believed(root, place, caches):
    assert run(root, "compile") == 0
    poisoned = root.parent / "poisoned"
    shutil.copytree(kept(root), poisoned)
    shutil.rmtree(caches)
    assert poison(poisoned)
    (root / "target").rename(root.parent / "old")
    # As a pull request may have it, in every form there is and was.
    shutil.copytree(poisoned, root / place)
    shutil.copytree(poisoned / "compiled", root / place, dirs_exist_ok=True)
    assert run(root, "compile") == 0
    assert "clean!" in (root / "target/compiled/small/models/a.sql").read_text()
    assert "poison" not in (root / "target/manifest.json").read_text()


def test_compiled_files_that_come_with_the_project_are_written_again(root):
    assert run(root, "compile") == 0
    path = root / "target/compiled/small/models/a.sql"
    text = path.read_text()
    path.write_text(text.replace("clean!", "poison"))
    assert run(root, "compile") == 0
    assert path.read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("name", [".cache/headrace", "caches", "deep/er"])
def test_a_cache_folder_inside_the_project_or_its_repository_is_not_used(root, name, monkeypatch):
    repository = root.parent / "repository"
    (repository / ".git").mkdir(parents=True)
    inner = write(repository / "flights", {})
    for base in (inner, repository):
        monkeypatch.setenv("ENGINE_CACHE", str(base / name))
        assert project_cache(inner / "target") is None
        monkeypatch.delenv("ENGINE_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(base / name))
        assert project_cache(inner / "target") is None
        assert own_folder("verified") is None
        assert run(inner, "compile") == 0
        assert not (base / name).exists()


@pytest.mark.slow
def test_a_folder_of_another_user_or_that_others_may_write_to_is_not_used(root, caches, tmp_path, monkeypatch):
    folder = kept(root)
    for mode in (0o770, 0o707, 0o777, 0o755):
        folder.chmod(mode)
        assert project_cache(root / "target") is None
        assert run(root, "compile") == 0
        assert list(folder.iterdir()) == []
    folder.chmod(0o700)
    assert is_own(folder)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not is_own(folder)
    assert project_cache(root / "target") is None


def test_a_link_in_place_of_the_cache_is_not_followed(root, tmp_path):
    folder = kept(root)
    folder.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "theirs")
    assert project_cache(root / "target") is None
    assert run(root, "compile") == 0
    assert list((tmp_path / "theirs").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("home", ["none", "missing", "a file", "read-only"])
def test_without_a_home_that_can_be_written_nothing_is_kept_and_all_works(root, home, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("ENGINE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    place = tmp_path / "home"
    if home == "a file":
        place.write_text("")
    elif home == "read-only":
        place.symlink_to("/proc")
    monkeypatch.setenv("HOME", "" if home == "none" else str(place / "x") if home == "missing" else str(place))
    if home == "none":
        monkeypatch.setattr(Path, "home", _no_home)
    assert home == "missing" or project_cache(root / "target") is None
    for command in (["compile"], ["compile"], ["docs", "generate"], ["ls"], ["clean"]):
        assert run(root, *command) == 0, capsys.readouterr().err


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


DAMAGE = (
    b"",
    b"{",
    b"[]",
    b'{"":1}',
    b"\xff",
    b'{"shared":1}',
    b"[" * 100_000,
    b'{"":{"key":"","files":{"../../x":[1,2]}}}',
)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_costs_time_and_nothing_else(root, damage, capsys):
    (root.parent.parent / "x").unlink(missing_ok=True)
    precious = root.parent / "x"
    precious.write_text("mine")
    assert run(root, "compile") == 0
    for name in ("files.json", "written.json", "compiled/dev.cache"):
        path = kept(root) / name
        assert path.is_file()
        path.write_bytes(damage)
        assert run(root, "compile") == 0, capsys.readouterr().err
        assert "clean!" in (root / "target/compiled/small/models/a.sql").read_text()
    assert precious.read_text() == "mine"


def change_head(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the head of a cache again: its length and itself are before the bytes of the nodes."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "big")
    head = msgspec.json.decode(content[8:end])
    change(head)
    changed = msgspec.json.encode(head)
    path.write_bytes(len(changed).to_bytes(8, "big") + changed + content[end:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"models": {"model.a": 1}}, {"order": ["model.none"]}, {"size": 1}, {"size": 1 << 60}, {"places": {}}],
    ids=str,
)
def test_a_head_that_does_not_fit_its_nodes_is_not_used(root, change, capsys):
    assert run(root, "compile") == 0
    change_head(kept(root) / "compiled/dev.cache", lambda head: head.update(change))
    write(root, {"models/b.sql": "select 1 as b", "models/a.sql": "select 'clean!' as id"})
    assert run(root, "compile") == 0, capsys.readouterr().err
    assert "clean!" in (root / "target/compiled/small/models/a.sql").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("place", [[1 << 40, 1, 1], [-1, 1, 1], [0, -5, 1], [0, 1 << 40, 1], [0, 0, 1 << 62]], ids=str)
def test_a_place_outside_of_the_nodes_is_not_used(root, place, capsys):
    def move(head: dict[str, Any]) -> None:
        for entry in head["places"].values():
            entry[2:] = place

    assert run(root, "compile") == 0
    change_head(kept(root) / "compiled/dev.cache", move)
    write(root, {"models/b.sql": "select 1 as b", "models/a.sql": "select 'clean!' as id"})
    assert run(root, "compile") == 0, capsys.readouterr().err
    assert "clean!" in (root / "target/compiled/small/models/a.sql").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 1, 1 << 30, (1 << 63) - 1])
def test_a_head_of_another_length_is_not_used(root, length, capsys):
    assert run(root, "compile") == 0
    path = kept(root) / "compiled/dev.cache"
    path.write_bytes(length.to_bytes(8, "big") + path.read_bytes()[8:])
    assert run(root, "compile") == 0, capsys.readouterr().err


def test_a_record_of_what_was_written_removes_nothing_that_it_should_not(root):
    assert run(root, "compile") == 0
    own = root / "target/compiled/small/models/own.sql"
    own.write_text("mine")
    out = root.parent / "precious.sql"
    out.write_text("mine")
    path = kept(root) / "written.json"
    record = {"model.gone": {"key": "k", "files": {f"../../{out.name}": [1, 1], str(out): [1, 1]}}}
    path.write_bytes(msgspec.json.encode(record))
    run(root, "compile")
    assert out.read_text() == own.read_text() == "mine"


def test_what_is_kept_is_private_and_clean_removes_it(root):
    before = os.umask(0)
    try:
        assert run(root, "compile") == 0
    finally:
        os.umask(before)
    folder = kept(root)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [folder, *folder.rglob("*")]}
    assert {oct(mode) for mode in modes.values()} == {"0o700", "0o600"}
    assert run(root, "clean") == 0
    assert not any(folder.rglob("*"))


def test_caches_are_bounded_and_foreign_folders_beside_them_stay(tmp_path, caches, monkeypatch):
    monkeypatch.setattr("engine.user_cache._PROJECTS", 5)
    (caches / "mine").mkdir(parents=True)
    (caches / "mine" / "notes").write_text("mine")
    made = []
    for number in range(9):
        folder = project_cache(tmp_path / f"p{number}" / "target")
        assert folder
        made.append(folder)
        os.utime(folder, (number, number))
    assert [folder.exists() for folder in made] == [False] * 4 + [True] * 5
    monkeypatch.setattr("engine.user_cache._BYTES", 10)
    (made[-1] / "large").write_bytes(b"x" * 20)
    newest = project_cache(tmp_path / "p10" / "target")
    assert newest is not None
    assert not any(folder.exists() for folder in made)
    assert (caches / "mine" / "notes").exists()


def test_two_checkouts_keep_apart(tmp_path, caches):
    folders = {project_cache(tmp_path / name / "target") for name in ("a", "b")}
    assert len(folders) == 2
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert project_cache(tmp_path / "link" / "target") in folders


def test_a_home_in_a_repository_is_no_checkout(tmp_path, monkeypatch):
    (tmp_path / "home/.git").mkdir(parents=True)
    monkeypatch.setattr("engine.user_cache._home", lambda: tmp_path / "home")
    assert not in_checkout(tmp_path / "home/.cache")
    (tmp_path / "home/person/.git").mkdir(parents=True)
    assert in_checkout(tmp_path / "home/person/.cache")


def test_a_link_that_came_after_compiling_is_seen(root):
    assert run(root, "compile") == 0
    (root / ".engine").symlink_to(root.parent)
    found = compile_project(load_project(root, cached=kept(root)), cached=kept(root))
    assert {problem.code for problem in found.manifest.errors} == {"path-outside"}
