"""What state asks of a store, over the local file system and over one that has neither folders nor renames."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state import ModelState, Phase, TableState
from engine.state.blob_store import Folder, Store
from engine.state.object_path import ObjectPath, ReadOnce


class Table:
    """A store of keys and values in a database: a file is there whole or not at all, and folders are only prefixes."""

    uri = "s3a://bucket"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._do("create table objects (key text primary key, content blob)")

    def _do(self, text: str, *values: object) -> tuple[list[tuple[object, ...]], int]:
        with closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall(), cursor.rowcount

    def get(self, key: str) -> bytes | None:
        rows, _ = self._do("select content from objects where key = ?", key)
        return bytes(rows[0][0]) if rows else None  # type: ignore[arg-type]

    def put(self, key: str, content: bytes) -> None:
        self._do("insert or replace into objects values (?, ?)", key, content)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        return self._do("insert or ignore into objects values (?, ?)", key, content)[1] == 1

    def age(self, _: str) -> float | None:
        return None

    def list(self, prefix: str) -> tuple[str, ...]:
        rows, _ = self._do("select key from objects where key glob ?", f"{prefix}/*")
        return tuple(sorted({str(key)[len(prefix) + 1 :].split("/")[0] for (key,) in rows}))

    def delete(self, prefix: str) -> None:
        self._do("delete from objects where key = ? or key glob ?", prefix, f"{prefix}/*")

    def entries(self, prefix: str) -> tuple[tuple[str, bool], ...]:
        parts = [key.split("/") for key in self.keys(prefix)]
        return tuple(sorted({(first, bool(rest)) for first, *rest in parts}))

    def keys(self, prefix: str) -> tuple[str, ...]:
        begin = f"{prefix}/" if prefix else ""
        rows, _ = self._do("select key from objects where key glob ? order by key", f"{begin}*")
        return tuple(str(key)[len(begin) :] for (key,) in rows)

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._do("delete from objects where key = ?", key)


@pytest.fixture(params=["folder", "table"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Folder(tmp_path / "state") if request.param == "folder" else Table(tmp_path / "state.db")


@pytest.mark.slow
def test_files_are_written_read_listed_and_removed(store: Store) -> None:
    assert (store.get("a/b/c"), store.list("a"), store.list("")) == (None, (), ())
    store.put("a/b/c", b"one")
    store.put("a/b/c", b"two")
    store.put("a/d", b"\x00")
    assert (store.get("a/b/c"), store.get("a/d"), store.list("a")) == (b"two", b"\x00", ("b", "d"))
    assert not store.put_if_absent("a/b/c", b"three")
    assert store.put_if_absent("a/b/d", b"four")
    assert (store.get("a/b/c"), store.list("a/b")) == (b"two", ("c", "d"))
    store.delete("a/b/c")
    store.delete("a/b/c")
    assert store.list("a/b") == ("d",)
    store.delete("a")
    assert (store.list("a"), store.get("a/b/d")) == ((), None)


@pytest.mark.slow
def test_of_several_that_create_a_file_one_wins(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        for turn in range(20):
            won = list(pool.map(lambda n, t=turn: store.put_if_absent(f"x/{t}", b"%d" % n), range(8)))
            assert won.count(True) == 1
            assert store.get(f"x/{turn}") == b"%d" % won.index(True)
    assert len(store.list("x")) == 20


def test_the_state_of_a_table_needs_no_more_than_a_store(store: Store, tmp_path: Path) -> None:
    state = TableState(tmp_path / "state", "lake", "shop", "paid", store)
    assert (state.load(), state.generations(), state.unpublished()) == (None, (), None)
    one = ModelState("lake.shop.paid", 1, Phase.PUBLISHED, "u", "f1", batch=3, inputs={"a": {"b": [1]}})
    state.save_facts(1, "f1", {"sql": "select 1"})
    state.save(one)
    state.save_facts(1, "f1", {"sql": "select 2"})
    assert (state.load(), state.facts(one)) == (one, {"sql": "select 1"})
    state.save(ModelState("lake.shop.paid__g2", 2, Phase.STAGED))
    assert state.load() == one
    assert (state.generations(), state.unpublished()) == ((1, 2), ModelState("lake.shop.paid__g2", 2, Phase.STAGED))
    state.discard(2)
    assert (state.generations(), state.unpublished()) == ((1,), None)
    store.put("lake/shop/paid/1/model.json", b"{")
    with pytest.raises(StateError) as caught:
        state.load()
    assert caught.value.diagnostic.code == "state-unreadable"


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    Folder(tmp_path / "a" / "b").put("c/d/e.json", b"x")
    found = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}
    assert sorted(p.name for p in found) == ["a", "b", "c", "d", "e.json"]


def test_what_is_read_once_is_what_there_is_until_it_is_written(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    class Counted(Table):
        def get(self, key: str) -> bytes | None:
            asked.append(("get", key))
            return super().get(key)

        def entries(self, prefix: str) -> tuple[tuple[str, bool], ...]:
            asked.append(("entries", prefix))
            return super().entries(prefix)

    store = Counted(tmp_path / "state.db")
    plain = TableState(ObjectPath(store, "state"), "lake", "shop", "orders")
    for generation in (1, 2):
        plain.save(ModelState("lake.shop.orders", generation, Phase.PUBLISHED, fingerprint=f"f{generation}"))
    once = TableState(ObjectPath(ReadOnce(store), "state"), "lake", "shop", "orders")
    expected = (plain.load(), plain.unpublished(), list(plain.generations()))
    asked.clear()
    for _ in range(3):
        assert (once.load(), once.unpublished(), list(once.generations())) == expected
        assert not (once.generation(2) / "batches").exists()
    assert len(asked) >= 4
    assert len(asked) == len(set(asked))
    once.save(ModelState("lake.shop.orders", 2, Phase.PUBLISHED, fingerprint="new"))
    assert once.load() == plain.load()
    assert once.load() != expected[0]
