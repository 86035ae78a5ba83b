"""Which tables a state folder knows, and what is left when one is forgotten."""

from __future__ import annotations

from pathlib import Path

from engine.state import TableState
from engine.state.known_tables import remove, tables_in


def kept(root: Path, *names: str) -> Path:
    """The folder of the table `shop.orders` with files of these names."""
    folder = root / "lake" / "shop" / "orders"
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return folder


def test_tables_are_known_by_their_folders_in_order(tmp_path: Path) -> None:
    kept(tmp_path, "1/model.json")
    for name in ("shop/a", "shop.eu/b", "shop/.hidden", "shop/not a name"):
        (tmp_path / "lake" / name).mkdir(parents=True)
    (tmp_path / "lake" / "shop" / "file").write_text("")
    (tmp_path / "lake" / "shop" / "link").symlink_to(tmp_path)
    found = [(one.schema, one.table) for one in tables_in(tmp_path, "lake")]
    assert found == [("shop", "a"), ("shop", "orders"), ("shop.eu", "b")]
    assert list(tables_in(tmp_path, "other")) == []
    (tmp_path / "linked").symlink_to(tmp_path / "lake")
    assert list(tables_in(tmp_path, "linked")) == []


def test_nothing_of_a_table_is_left_but_what_is_not_ours(tmp_path: Path) -> None:
    table = TableState(tmp_path, "lake", "shop", "orders")
    folder = kept(
        tmp_path, "1/model.json", "2/facts/a.json", "refresh.json", "operation.json", "lock", ".model.json.tmp"
    )
    remove(table)
    assert not folder.exists()
    folder = kept(tmp_path, "1/model.json", "notes.txt", "lock")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "model.json").write_text("{}")
    (folder / "3").symlink_to(outside)
    remove(table)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert (outside / "model.json").exists()
