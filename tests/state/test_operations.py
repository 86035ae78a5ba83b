"""Operations that were interrupted: what is noted of them, and how they are carried out again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import StateError
from engine.state import TableState
from engine.state.known_tables import remove
from engine.state.operations import (
    PUBLISHING,
    Drop,
    DroppedTable,
    Operation,
    Rebuild,
    Refresh,
    Rename,
    Rollback,
    Step,
    carry_out,
)
from tests.fault_injection.points import KilledError, kill, reached

EARLIER = Path(__file__).parents[1] / "plan" / "formats"
TABLE = DroppedTable("table", "s", "m", "0f2c5f0c-bbd1-4e4f-8c7a-2f6a3f1f7a11", "/lake/s/m")
NOTED: dict[str, tuple[Operation, tuple[str, ...]]] = {
    "drop": (Drop("m", {"project": "shop", "schema": "s", "target": "dev"}, (TABLE,)), ()),
    "refresh": (Refresh("2026-11-27 10:00:00", ("downstream-stops",), before=1, attempt=3), ()),
    "rollback": (Rollback(1, 2), ()),
    "rename": (Rename("lake.s.n", {"": "u", "__quarantine": "v"}), ()),
    "rebuild": (Rebuild("2026-11-27 10:00:00", "m", ("m", "n")), (PUBLISHING,)),
}
STEPS = ("put back", "brought back", "retired")


@pytest.fixture
def table(tmp_path: Path) -> TableState:
    return TableState(tmp_path, "lake", "s", "m")


def file_of(table: TableState) -> Path:
    return Path(str(table.folder)) / "operation.json"


@pytest.mark.parametrize("kind", NOTED)
def test_what_version_0_1_0_noted_is_finished(table: TableState, kind: str) -> None:
    operation, completed = NOTED[kind]
    folder = file_of(table).parent
    folder.mkdir(parents=True)
    earlier = folder / f"{kind}.json"
    earlier.write_bytes((EARLIER / f"{kind}-0.1.0.json").read_bytes())
    assert table.journal.open_operations() == (operation,)
    assert table.journal.completed(type(operation)) == completed
    done: list[str] = []
    carry_out([(table.journal, operation)], [Step(PUBLISHING, lambda: done.append("noted")), Step("retired")], "m")
    assert done == ["noted"] * (not completed)
    assert [*folder.iterdir()] == []


def test_an_earlier_note_that_is_not_finished_moves_to_the_new_file(table: TableState) -> None:
    folder = file_of(table).parent
    folder.mkdir(parents=True)
    for kind in ("refresh", "rollback"):
        (folder / f"{kind}.json").write_bytes((EARLIER / f"{kind}-0.1.0.json").read_bytes())
    table.journal.complete(Rollback, "put back")
    assert [path.name for path in folder.iterdir()] == ["operation.json"]
    assert set(table.journal.open_operations()) == {NOTED["refresh"][0], NOTED["rollback"][0]}
    assert table.journal.completed(Rollback) == ("put back",)


def test_operations_of_a_table_are_noted_beside_each_other(table: TableState) -> None:
    journal = table.journal
    for operation, _ in NOTED.values():
        journal.begin(operation)
    journal.complete(Rebuild, PUBLISHING)
    journal.begin(Rebuild("later", "m"))
    assert set(map(type, journal.open_operations())) == {Drop, Refresh, Rollback, Rename, Rebuild}
    assert (journal.open_operation(Rebuild), journal.completed(Rebuild)) == (Rebuild("later", "m"), (PUBLISHING,))
    first = json.loads(file_of(table).read_text())["operations"][0]
    assert (first["operation"]["kind"], first["operation"]["model"], first["completed"]) == ("drop", "m", [])
    for kind in (Drop, Refresh, Rollback, Rename, Rebuild):
        assert file_of(table).exists()
        journal.end(kind)
        assert journal.open_operation(kind) is None
    assert not file_of(table).exists()


@pytest.mark.parametrize("point", ["begun", *STEPS])
def test_what_was_killed_goes_on_with_the_step_that_is_not_noted(table: TableState, point: str) -> None:
    done: list[str] = []

    def effect(name: str) -> Callable[[], None]:
        return lambda: done.append(name)

    def again() -> None:
        carry_out([(table.journal, Rollback(1, 2))], [Step(name, effect(name)) for name in STEPS], "m")

    with reached(point, kill), pytest.raises(KilledError):
        again()
    assert table.journal.open_operation(Rollback) == Rollback(1, 2)
    again()
    # The kill came between the effect and its note: it is done once more, and nothing before it is.
    assert done == [name for name in STEPS for _ in range(1 + (name == point))]
    assert table.journal.open_operations() == ()


def test_an_effect_that_fails_is_not_noted(table: TableState) -> None:
    def fail() -> None:
        raise StateError("rename-blocked", "no")

    with pytest.raises(StateError):
        carry_out([(table.journal, Rollback(1, 2))], [Step("put back"), Step("retired", fail)], "m")
    assert table.journal.completed(Rollback) == ("put back",)


def test_steps_may_move_the_folder_or_remove_it(table: TableState, tmp_path: Path) -> None:
    to = TableState(tmp_path, "lake", "s", "n")
    place, other = file_of(table).parent, file_of(to).parent
    rename = Rename("lake.s.n", {"": "u"})
    with reached("moved", kill), pytest.raises(KilledError):
        carry_out([(table.journal, rename)], [Step("moved", lambda: place.rename(other))], "m", ends_in=to.journal)
    # In the folder of the new name it is finished.
    assert (to.journal.open_operations(), file_of(to).exists()) == ((), True)
    to.journal.end(Rename)
    assert not file_of(to).exists()
    carry_out([(table.journal, Drop("m"))], [Step("forgotten", lambda: remove(table))], "m")
    assert not place.exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "\udcff", "[" * 100_000,
        '{"format": 2, "operations": [{"operation": {"kind": "drop"}}]}',
        '{"format": 1, "operations": [{"operation": {"kind": "other"}}]}',
        '{"format": 1, "operations": [{"operation": {"kind": "rollback", "to": "x", "from": 1}}]}',
        '{"format": 1, "operations": [{"operation": {"kind": "rename", "to": "n", "tables": {"__a; b": "u"}}}]}',
    ],
)  # fmt: skip
def test_a_file_that_no_run_wrote_is_not_guessed_at(table: TableState, text: str) -> None:
    file_of(table).parent.mkdir(parents=True)
    file_of(table).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StateError) as failure:
        table.journal.open_operations()
    assert failure.value.diagnostic.code == "state-unreadable"
    assert "operation.json" in failure.value.diagnostic.message
