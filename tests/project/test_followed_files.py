"""The follower of a project's files: which count, links, and writes that belong together."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.project import load_project
from engine.project.followed_files import FileFollower, read_stamps
from tests.project.small_projects import ORDERS, write

pytestmark = pytest.mark.slow

FILES: dict[str, str | bytes] = {
    "models/orders.sql": ORDERS,
    "models/marts/deep.sql": ORDERS,
    "tests/units.yml": "unit_tests: []\n",
    "tests/fixtures/rows.csv": "id\n1\n",
    "tests/own.sql": "select 1 as n limit 0\n",
    "macros/own.sql": "{% macro a() %}1{% endmacro %}\n",
    "packages/more/macros/b.jinja": "{% macro b() %}1{% endmacro %}\n",
    "sources/a.avsc": "{}",
    "selectors.yml": "selectors: []\n",
}
OTHERS: dict[str, str | bytes] = {
    "target/compiled/x.sql": "",
    "landing/orders/a.json": "{}",
    ".engine/s.yml": "",
    "models/notes.txt": "",
    "models/.orders.sql.swp": "",
    "models/.#orders.sql": "",
    "tests/test_own.py": "",
    "README.md": "",
    "sources/data.csv": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {**FILES, **OTHERS})


def test_the_files_that_a_project_is_read_from_are_followed(root: Path) -> None:
    assert set(read_stamps(root)) == {"project.yml", "sources/shop.yml", *FILES}
    loaded = load_project(root)
    assert {model.file for model in loaded.models} | loaded.texts.keys() | {"selectors.yml"} <= {
        *read_stamps(root, loaded.paths)
    }


def test_links_are_followed_as_the_loader_follows_them(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.sql"
    outside.write_text(ORDERS)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "far.sql").write_text(ORDERS)
    (root / "models" / "out.sql").symlink_to(outside)
    (root / "models" / "away").symlink_to(tmp_path / "folder")
    (root / "models" / "inside.sql").symlink_to(root / "models" / "orders.sql")
    (root / "models" / "circle.sql").symlink_to(root / "models" / "circle.sql")
    follower = FileFollower(root)
    assert {"models/out.sql", "models/away/far.sql"}.isdisjoint(read_stamps(root))
    outside.write_text("select 1 as n\n")
    (tmp_path / "folder" / "far.sql").write_text("select 1 as n\n")
    assert follower.edited() == ()
    (root / "models" / "orders.sql").write_text("select 1 as n\n")
    assert follower.edited() == ("models/inside.sql", "models/orders.sql")


def _same_time_and_size(path: Path) -> None:
    before = path.stat()
    path.write_text(path.read_text().replace("1", "2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


EDITS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "written": (lambda root: (root / "models/orders.sql").write_text("select 1 as n"), ("models/orders.sql",)),
    "same time and size": (lambda root: _same_time_and_size(root / "tests/own.sql"), ("tests/own.sql",)),
    "removed": (lambda root: (root / "macros/own.sql").unlink(), ("macros/own.sql",)),
    "made": (lambda root: (root / "models/new.sql").write_text("select 1 as n"), ("models/new.sql",)),
    "moved": (
        lambda root: (root / "models/orders.sql").rename(root / "models/sales.sql"),
        ("models/orders.sql", "models/sales.sql"),
    ),
    "another file in its place": (
        lambda root: ((root / "x").write_text(ORDERS), (root / "x").replace(root / "models/orders.sql")),
        ("models/orders.sql",),
    ),
    "data": (lambda root: (root / "landing/orders/b.json").write_text("{}"), ()),
    "artifacts": (lambda root: (root / "target/compiled/x.sql").write_text("x"), ()),
    "an editor's own file": (lambda root: (root / "models/.orders.sql.swp").write_text("x"), ()),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_seen_once(root: Path, name: str) -> None:
    follower = FileFollower(root)
    assert follower.edited() == ()
    edit, seen = EDITS[name]
    edit(root)
    assert follower.edited() == seen
    assert follower.edited() == ()


def test_files_that_are_written_one_after_another_are_one_edit(root: Path) -> None:
    """An editor saves all; the file that it empties first is not taken for its text."""
    follower = FileFollower(root)
    models = root / "models"

    def save() -> None:
        with (models / "orders.sql").open("w") as file:
            time.sleep(0.05)
            file.write("select 1 as n\n")
        for number in range(4):
            (models / f"more{number}.sql").write_text("select 1 as n\n")
            time.sleep(0.04)

    saving = threading.Thread(target=save)
    saving.start()
    while not (edited := follower.edited()):
        time.sleep(0.005)
    saving.join()
    assert edited == (*(f"models/more{number}.sql" for number in range(4)), "models/orders.sql")
    assert follower.edited() == ()


def test_a_checkout_is_waited_for(root: Path) -> None:
    (root.parent / ".git").mkdir()
    lock = root.parent / ".git" / "index.lock"
    lock.touch()
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 5:
            (root / "models" / "late.sql").write_text("select 1 as n\n")
            lock.unlink()

    follower = FileFollower(root, sleep=sleep)
    (root / "models" / "orders.sql").write_text("select 1 as n\n")
    assert follower.edited() == ("models/late.sql", "models/orders.sql")
    assert len(looks) >= 6


def test_a_folder_that_project_yml_names_later_is_followed_from_then_on(root: Path) -> None:
    follower = FileFollower(root)
    (root / "other").mkdir()
    (root / "other" / "a.sql").write_text(ORDERS)
    (root / "project.yml").write_text("name: shop\npaths: {models: other}\n")
    assert follower.edited() == ("project.yml",)
    follower.paths = load_project(root).paths
    assert follower.edited() == ("models/marts/deep.sql", "models/orders.sql", "other/a.sql")


def test_looking_takes_a_small_part_of_the_time(root: Path) -> None:
    for number in range(300):
        (root / "models" / f"m{number}.sql").write_text("select 1 as n\n")
    follower = FileFollower(root)
    begin = time.process_time()
    follower.edited()
    assert time.process_time() - begin < follower.pause / 4
